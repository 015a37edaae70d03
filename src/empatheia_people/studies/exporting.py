"""Everything a study holds as files: ratings, events and messages as CSV, JSON lines or Parquet.

Every file carries the version of its columns; workers are numbers, and their platform's names are in none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from sqlalchemy import select

from empatheia.errors import ConfigError, DataError
from empatheia.files.result_table import as_text, csv_pieces
from empatheia_people.studies.answers import PAIR
from empatheia_people.studies.store import Store, whole_file
from empatheia_people.studies.tables import Assignment, Event, HitRow, Message, Participant, Rating, TaskRow

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
EXPORT_VERSION = 1
"""Of the columns below; it goes up when one changes its meaning or goes away."""
RATING_COLUMNS = (
    *("version", "study", "assignment", "state", "worker", "hit", "seat", "task", "item", "set"),
    *("is_bonus", "is_check"),
    *("system", "other_system", "card", "place", "criterion", "value", "first_value", "changes", "at", "points"),
)


def rating_rows(store: Store) -> list[dict[str, object]]:
    """One row for each answer and system behind its card.

    ``system`` is the one rated, or the first of a pair with ``other_system`` the second: ``value`` is then ``first``,
    ``second``, ``both`` or ``neither`` of these two. ``place`` is where the card stood on the screen, from 0;
    of a pair, where its first system stood. Times are seconds since 1970.
    """
    name, items = store.study().name, store.items()
    rows = []
    with store.read() as session:
        tasks = {task.id: task for task in session.scalars(select(TaskRow))}
        orders = {hit.number: hit.orders for hit in session.scalars(select(HitRow))}
        found = select(Rating, Assignment).join(Assignment, Assignment.id == Rating.assignment).order_by(Rating.id)
        for rating, assignment in session.execute(found):
            task = tasks[rating.task]
            seats = orders[task.hit]
            order = seats[assignment.seat % len(seats)][task.place]
            item = None if task.item is None else items[task.item]
            behind, other = _rated_systems(task.cards, rating.card)
            card = 0 if rating.card == PAIR else rating.card
            place = order.index(card) if card in order else 0
            for system in behind or [""]:
                values = (
                    *(EXPORT_VERSION, name, assignment.id, assignment.state, assignment.worker, task.hit),
                    *(assignment.seat, task.place, task.key, "" if item is None else item.set, task.is_bonus),
                    item is None,
                    *(system, other, rating.card, place, rating.criterion, rating.value, rating.first),
                    *(rating.version - 1, rating.at, assignment.points),
                )
                rows.append(dict(zip(RATING_COLUMNS, values, strict=True)))
    return rows


def _rated_systems(cards: Sequence[Sequence[str]], card: int) -> tuple[Sequence[str], str]:
    """The systems behind a card, or the first of a pair and the other one; no other is an empty name."""
    if card == PAIR:
        return cards[0][:1], cards[1][0] if len(cards) == 2 else ""
    return (cards[card] if 0 <= card < len(cards) else cards[0]), ""


def _rows_of(store: Store, table: type[Event | Message], names: str, *order: Any) -> list[dict[str, object]]:
    """The named columns of a table, and the data as JSON."""
    rows: list[dict[str, object]] = []
    with store.read() as session:
        for row in session.scalars(select(table).order_by(*order)):
            values = {name: getattr(row, name) for name in names.split()}
            rows.append({"version": EXPORT_VERSION, **values, "data": json.dumps(row.data, ensure_ascii=False)})
    return rows


def event_rows(store: Store) -> list[dict[str, object]]:
    """What happened, in order."""
    return _rows_of(store, Event, "id at worker assignment kind", Event.id)


def message_rows(store: Store) -> list[dict[str, object]]:
    """Messages of live conversations and of collections."""
    return _rows_of(store, Message, "room place worker text at", Message.room, Message.place)


def payment_rows(store: Store) -> list[dict[str, object]]:
    """What to pay for which code of the platform; the platform knows whose it is."""
    design, rows = store.design(), []
    bonus, payment = design.composition.bonus, design.payment
    sent = select(Assignment).where(Assignment.state.in_(("submitted", "extra"))).order_by(Assignment.id)
    talked = select(Participant).where(Participant.code.is_not(None)).order_by(Participant.id)
    with store.read() as session:
        for row in (*session.scalars(sent), *session.scalars(talked)):
            is_won = isinstance(row, Assignment) and bonus is not None and (row.points or 0) >= bonus.needed
            owed = {"base": payment.base, "bonus": payment.bonus if is_won else 0.0, "currency": payment.currency}
            rows.append({"code": row.code, "platform": row.platform, "state": row.state, **owed})
    return rows


def bonus_rows(store: Store) -> tuple[dict[str, float], int]:
    """What a platform that pays every submission once still owes: bonuses won, and each further HIT of a submission.

    Returns:
        Amount by the platform's word for the submission (``worker.assignment_field``), and how many payments cannot be
        made since the link lacked that word.
    """
    owed: dict[str, float] = {}
    paid: set[str] = set()
    n_lost = 0
    for row in payment_rows(store):
        id, amount = str(row["platform"]), float(str(row["bonus"]))
        if id in paid:
            amount += float(str(row["base"]))
        if not id:
            n_lost += amount > 0
            continue
        paid.add(id)
        if amount > 0:
            owed[id] = round(owed.get(id, 0.0) + amount, 2)
    return owed, n_lost


def write_bonuses(owed: dict[str, float], path: Path) -> None:
    """Writes lines ``id,amount`` without a header, as platforms take them.

    Raises:
        DataError: The file cannot be written.
    """
    with whole_file(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows((as_text(id), f"{amount:.2f}") for id, amount in owed.items())


def export(store: Store, folder: Path, form: str = "csv") -> list[Path]:
    """Writes ``ratings``, ``events``, ``messages`` and ``payments`` in a form, and ``manifest.jsonl``, ``design.yaml``.

    Args:
        store: With a study.
        folder: Made if it is not there.
        form: One of ``FORMATS``.

    Raises:
        ConfigError: Unknown form.
        DataError: The folder cannot be made.
    """
    if form not in FORMATS:
        raise ConfigError(f"unknown format {form!r}; accepted: {', '.join(FORMATS)}, empathetic_dialogues.")
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    tables = {"ratings": rating_rows, "events": event_rows, "messages": message_rows, "payments": payment_rows}
    for name, rows_of in tables.items():
        if rows := rows_of(store):
            written.append(_write(rows, folder / f"{name}.{form}", form))
    for name, text in (("manifest.jsonl", store.manifest().lines()), ("design.yaml", store.design().dump())):
        with whole_file(folder / name) as part:
            part.write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


def _write(rows: list[dict[str, object]], path: Path, form: str) -> Path:
    frame: pl.DataFrame = pl.DataFrame(rows, infer_schema_length=None)
    with whole_file(path) as part:
        try:
            if form == "csv":
                with part.open("w", encoding="utf-8", newline="") as stream:
                    stream.writelines(csv_pieces(frame.columns, frame.iter_rows(named=True)))
            elif form == "jsonl":
                frame.write_ndjson(part)
            else:
                frame.write_parquet(part)
        except pl.exceptions.PolarsError as error:  # a full disk, too
            raise OSError(" ".join(str(error).split())) from None
    return path
