"""All runs on one page that works from a file: tables to sort and filter, and replies side by side.

The tables are plain HTML; a short script sorts and filters them, shows replies, and keeps what is shown in the address.
Replies lie in the page as JSON and are put into it as text, never as HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from empatheia.documents.html import render
from empatheia.errors import DataError
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.replies.alignment import Answer, AnswerFile, Item, align, find_runs, read_answers
from empatheia.text.readable import readable
from empatheia.writing import check_place, write_whole
from empatheia_research.corpora.loading import sample_root
from empatheia_research.reports.record_tables import Row, run_name, tables
from empatheia_research.reports.reproduction import read_runs

TITLE = "Leaderboard"
SAMPLE = sample_root() / "replies" / "replies.jsonl"
_ABOUT = (
    "Every number comes from a run record, with its 95 % bootstrap interval; what a paper printed stands under the run"
    " it is compared with. Two numbers are comparable when their signatures are equal. The size says how much was"
    " trained: full as published, cpu small and short, row smaller still and equal for all rows of a table, smoke only"
    " to see that it runs. What a language model judged is not here."
)
_SAMPLE_NOTE = (
    "These replies and dialogues are self-written samples: they show how this part works, and are no system's."
    " Replies of your own runs: empatheia leaderboard --runs runs."
)
_FACTS = {
    "size": "text",
    "seed": "number",
    "items": "number",
    "minutes": "number",
    "parameters, M": "number",
    "commit": "text",
    "hardware": "text",
}
"""Columns of every table, and how they are sorted."""
_ENVIRONMENT = ("device", "processor", "threads", "processes", "python")


def write_leaderboard(
    path: str | Path,
    results: str | Path = "results",
    runs: str | Path | None = None,
    replies: Iterable[str | Path] = (),
) -> tuple[int, int, tuple[str, ...]]:
    """Writes the page.

    Args:
        path: Of the HTML file.
        results: Folder of run records.
        runs: Folder of run folders, whose replies are shown with their dialogues; None shows none. The page then holds
            text of the corpus, whose licence says who may have it.
        replies: More files of replies, see :func:`~empatheia.replies.alignment.read_answers`. Without these
            and ``runs`` the page shows the self-written sample.

    Returns:
        Number of runs in the tables, of contexts with replies, and notes for the person.

    Raises:
        DataError: A folder or file is missing or cannot be used, or there is nothing to show.
    """
    check_place(Path(path))
    folder = Path(results)
    if not folder.is_dir():
        raise DataError(
            f"there is no folder {folder} of run records; name one with --results, or make one with"
            " `empatheia train RECIPE --record results`."
        )
    records, left_out = _showable(read_runs(folder))
    places = [*(find_runs(runs) if runs is not None else ()), *replies]
    if runs is not None and not places:
        raise DataError(f"{runs} holds no run with replies; run `empatheia train RECIPE --out {runs}` to its end.")
    is_sample = not places
    files = [read_answers(place) for place in places] or [read_answers(SAMPLE, name="sample")]
    items = align(_with_own_titles(files))
    notes = [*left_out, *(f"{file.title}: {note}" for file in files for note in file.notes)]
    write_whole(Path(path), leaderboard_html(records, items, notes, _SAMPLE_NOTE if is_sample else ""))
    return len(records), len(items), tuple(notes)


def _showable(records: Sequence[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """The records that the page can show, and why it cannot show the others: one must not hide the rest."""
    shown, told = [], []
    for record in records:
        try:
            leaderboard_html([record])
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, DataError) as problem:
            fault = f"{type(problem).__name__}: {problem!s:.100}"
            told.append(f"{record.get('file')} cannot be shown ({fault}) and is left out; make the run again")
        else:
            shown.append(record)
    return shown, told


def leaderboard_html(
    records: Sequence[RunRecord], items: Sequence[Item] = (), notes: Sequence[str] = (), about_replies: str = ""
) -> str:
    """The whole page.

    Args:
        records: Of runs, see :func:`~empatheia_research.reports.reproduction.read_runs`.
        items: Contexts with replies.
        notes: About the replies.
        about_replies: What they are.
    """
    here = Path(__file__)
    return render(
        here.with_suffix(".html"),
        TITLE,
        here.with_suffix(".css").read_text(encoding="utf-8"),
        skip=("tables", "Skip to the tables"),
        script=here.with_suffix(".js").read_text(encoding="utf-8"),
        about=_ABOUT,
        records=records,
        tables=tables(records),
        sizes=sorted({str(record["size"]) for record in records}),
        notes=(about_replies, *notes),
        n_items=len(items),
        replies=Markup(reply_data(items)),
        facts=_FACTS,
        **_SHOWN_BY,
    )


def reply_data(items: Sequence[Item]) -> str:
    """Contexts and replies as the script reads them: JSON in which no character can end the script element.

    ``systems``: names; ``items``: ``[id, turns, reference, emotion, answers]``, an answer being ``[system's place in
    systems, reply, predicted emotions, [[turn, start, end], ...]]``; ends are in code points.
    """
    systems = list(dict.fromkeys(system for item in items for system in item.answers))
    place = {system: i for i, system in enumerate(systems)}
    rows = [
        [
            item.id,
            [readable(text) for text in item.context],
            None if item.reference is None else readable(item.reference),
            item.emotion,
            [_answer(place[system], answer) for system, answer in item.answers.items()],
        ]
        for item in items
    ]
    text = json.dumps({"systems": systems, "items": rows}, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _answer(place: int, answer: Answer) -> list[Any]:
    spans = [[span.turn, span.start, span.end] for span in answer.causes]
    return [place, readable(answer.reply), list(answer.predicted), spans]


def _with_own_titles(files: Sequence[AnswerFile]) -> list[AnswerFile]:
    """Systems of files with the same title get the file's place in their names."""
    titles = [file.title for file in files]
    out = []
    for file in files:
        answers: Mapping[str, tuple[Answer, ...]] = file.answers
        if titles.count(file.title) > 1:
            answers = {f"{system} ({file.place})": given for system, given in answers.items()}
        out.append(AnswerFile(file.place, file.title, answers, file.notes))
    return out


def _told_apart(record: RunRecord) -> list[str]:
    """What tells a run from others of the same weights or another data set."""
    start = record.get("start") or {}
    is_measured_only = start.get("recipe") and not record.get("training_seconds")
    told = [f"measures the weights of {start['recipe']}"] if is_measured_only else []
    return [*told, *(record.get("overrides") or ())]


def _search_text(row: Row) -> str:
    """All words by which a row is found."""
    record, environment = row.record, row.record.get("environment") or {}
    told = [str(record.get("note", "")), str(environment.get("device", "")), str(environment.get("commit", ""))]
    text = " ".join([row.run, *row.labels.values(), *told, row.printed.source if row.printed else ""])
    return " ".join(text.lower().split())


def _number(value: float | None, digits: int) -> tuple[str, str, str]:
    """A number with one decimal, sorted by so many digits; a dash where there is none."""
    if value is None:
        return "–", "", "number"
    return "< 0.1" if 0 < value < 0.05 else f"{value:,.1f}", f"{value:.{digits}g}", "number"


def _facts_of(row: Row) -> list[tuple[object, object, str]]:
    """What is shown under :data:`_FACTS`, by what it is sorted, and the kind of cell."""
    record, environment = row.record, row.record.get("environment") or {}
    n = max((value.n for value in row.values.values()), default=0)
    seconds = record.get("training_seconds") or (record.get("start") or {}).get("training_seconds")
    parameters = record.get("parameters")
    commit, device = str(environment.get("commit") or ""), environment.get("device") or ""
    return [
        (record["size"], record["size"], ""),
        (record["seed"], record["seed"], "number"),
        (f"{n:,}" if n else "–", n or "", "number"),
        _number(seconds / 60 if seconds else None, digits=4),
        _number(None if parameters is None else parameters / 1e6, digits=6),
        (commit[:8] or "–", commit, ""),
        (device or "–", device, "wide"),
    ]


def _environment_of(record: RunRecord) -> dict[str, object]:
    environment = record.get("environment") or {}
    packages = ", ".join(f"{name} {version}" for name, version in environment.get("packages", {}).items())
    facts = {key: environment[key] for key in _ENVIRONMENT if key in environment}
    return facts | {"commit": environment.get("commit", ""), "packages": packages}


def _plain(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.6g}"


def _between(interval: tuple[float, float] | None) -> str:
    return f"{_plain(interval[0])} to {_plain(interval[1])}" if interval else "–"


_SHOWN_BY = {
    "told_apart": _told_apart,
    "search_text": _search_text,
    "facts_of": _facts_of,
    "environment_of": _environment_of,
    "measured_of": measured_of,
    "run_name": run_name,
    "plain": _plain,
    "between": _between,
}
"""What the template asks."""
