"""Collected dialogues as files in the official format of EmpatheticDialogues, and what a collection looks like."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from sqlalchemy import select

from empatheia.documents.document import Block, Document, Heading, Table, Text, note
from empatheia.documents.html import to_html
from empatheia.errors import DataError
from empatheia_people.studies.collecting import room_of
from empatheia_people.studies.design import Design
from empatheia_people.studies.store import Store, whole_file
from empatheia_people.studies.tables import Message, Pair, Participant
from empatheia_research.corpora.empathetic_dialogues import FOLDER, HEADER

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Collected:
    """One conversation.

    Attributes:
        id: As the official files have it: ``hit:N_conv:2N`` and ``2N+1``.
        label: Emotion of the speaker.
        situation: As they described it.
        author: Number of the worker who is the speaker.
        utterances: Number of the worker (0 = a system) and text.
        is_complete: Of a pair that was finished.
        flags: What a person should look at.
    """

    id: str
    label: str
    situation: str
    author: int
    utterances: tuple[tuple[int, str], ...]
    is_complete: bool
    flags: tuple[str, ...] = ()


def read_collected(store: Store) -> list[Collected]:
    """All conversations with a message, of pairs finished or not, in order; those of who withdrew are not there."""
    found = []
    with store.read() as session:
        rounds = {row.id: row for row in session.scalars(select(Participant))}
        by_room: dict[str, list[Any]] = {}
        for message in session.scalars(select(Message).order_by(Message.room, Message.place)):
            by_room.setdefault(message.room, []).append(message)
        for number, pair in enumerate(session.scalars(select(Pair).order_by(Pair.id)).all()):
            if pair.reason == "withdrawn":
                continue
            for chat, speaker in ((1, pair.first), (2, pair.second)):
                messages = by_room.get(room_of(pair.id, chat), [])
                row = rounds.get(speaker) if speaker is not None else None
                if row is None or not messages:
                    continue
                said = tuple((message.worker or 0, message.text) for message in messages)
                flags = (*row.flags, *_flags([text for _, text in said]))
                id = f"hit:{number}_conv:{2 * number + chat - 1}"
                is_whole = pair.state == "done" or (chat == 1 and pair.chat == 2)
                found.append(Collected(id, row.label or "", row.situation, row.worker, said, is_whole, flags))
    return found


def _flags(texts: list[str]) -> list[str]:
    """Signs of careless writing."""
    flags = []
    if mean(len(text.split()) for text in texts) < 3:
        flags.append("short")
    if sum(text.isupper() and len(text) > 3 for text in texts) >= 2:
        flags.append("capitals")
    if len(set(texts)) < len(texts):
        flags.append("repeated")
    return flags


def split_of(author: int, design: Design) -> str:
    """The split of all conversations of an author: drawn once for each, the same whenever it is asked."""
    digest = hashlib.sha256(f"{design.seed}/{author}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    train, valid, _ = design.collect.split
    return "train" if place < train else "valid" if place < train + valid else "test"


def encoded(text: str) -> str:
    """A text as the official files write it: no line breaks, commas as ``_comma_``.

    The format has no way to write the letters ``_comma_`` themselves; a person who typed them gets ``_ comma_``.

    >>> encoded("Well, yes")
    'Well_comma_ yes'
    """
    return " ".join(text.split()).replace("_comma_", "_ comma_").replace(",", "_comma_")


def export_dialogues(store: Store, folder: Path, incomplete: bool = False) -> list[Path]:
    """Writes ``empatheticdialogues/{train,valid,test}.csv`` and ``dialogues.jsonl`` with the texts as typed.

    A split without a conversation has no file.

    Args:
        store: Of a collection.
        folder: Made if it is not there; name it as EMPATHEIA_DATA to load what is in it.
        incomplete: Conversations that were broken off, too.

    Raises:
        DataError: The study collects nothing, or there is no conversation yet.
    """
    design = store.design()
    if design.protocol != "collect":
        raise DataError(f"the study {design.name!r} has protocol {design.protocol}; only collections hold dialogues.")
    chosen = [each for each in read_collected(store) if each.is_complete or incomplete]
    if not chosen:
        raise DataError("no conversation is finished yet; --incomplete exports those that were broken off, too.")
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {split: [HEADER] for split in SPLITS}
    for each in chosen:
        for index, (worker, text) in enumerate(each.utterances, 1):
            fields = (each.id, str(index), each.label, encoded(each.situation), str(worker), encoded(text), "", "")
            lines[split_of(each.author, design)].append(",".join(fields))
    written = []
    for split, rows in lines.items():
        path = place / f"{split}.csv"
        if len(rows) == 1:  # a reader takes a file without conversations for a broken one
            path.unlink(missing_ok=True)
            continue
        with whole_file(path) as part:
            part.write_text("\n".join(rows) + "\n", encoding="utf-8")
        written.append(path)
    path = folder / "dialogues.jsonl"
    records = [
        {
            "id": each.id,
            "split": split_of(each.author, design),
            "emotion": each.label,
            "situation": each.situation,
            "author": each.author,
            "turns": [text for _, text in each.utterances],
            "workers": [worker for worker, _ in each.utterances],
            "complete": each.is_complete,
            "flags": list(each.flags),
        }
        for each in chosen
    ]
    with whole_file(path) as part:
        part.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return [*written, path]


def collection_record(store: Store) -> dict[str, object]:
    """Numbers of a collection, JSON-ready."""
    found = read_collected(store)
    whole = [each for each in found if each.is_complete]
    authors = Counter(worker for each in whole for worker, _ in set((w, "") for w, _ in each.utterances) if worker)
    turns = [len(each.utterances) for each in whole]
    words = [len(each.situation.split()) for each in whole]
    return {
        "conversations": len(whole),
        "incomplete": len(found) - len(whole),
        "workers": len(authors),
        "conversations_a_worker": {
            "median": median(authors.values()) if authors else None,
            "mean": _mean(authors.values()),
        },
        "turns": dict(sorted(Counter(turns).items())),
        "mean_turns": _mean(turns),
        "situation_words": _mean(words),
        "labels": dict(Counter(each.label for each in whole).most_common()),
        "flags": dict(Counter(flag for each in found for flag in each.flags)),
        "most_active": dict(authors.most_common(20)),
    }


def _mean(counts: Collection[int]) -> float | None:
    return mean(counts) if counts else None


def collection_page(design: Design, record: Mapping[str, object]) -> str:
    """The record as a page."""
    blocks: list[Block] = []
    for name, value in record.items():
        title = name.replace("_", " ")
        if isinstance(value, dict):
            blocks += [Heading(title), Table((), [(str(key), _shown(own)) for key, own in value.items()])]
        else:
            blocks.append(Text(f"{title}: {_shown(value)}"))
    told = "Rashkin et al. (2019): 4.31 utterances and 19.8 words of situation on average, a median of 8 conversations."
    return to_html(Document(f"Collection {design.name}", [note(told)], blocks))


def _shown(value: object) -> str:
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
