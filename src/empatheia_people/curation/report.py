"""The report of a run: one page with the funnel beside the paper's counts, lengths, labels, dropped lines, samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

from empatheia.documents.document import (
    Block,
    Cell,
    Code,
    Content,
    Document,
    Figure,
    Heading,
    Items,
    Marked,
    Table,
    Text,
    element,
)
from empatheia.documents.html import to_html
from empatheia.documents.svg import drawing, label, rect
from empatheia.errors import DataError
from empatheia.reading import read_record
from empatheia.writing import check_place, write_whole
from empatheia_people.curation.run import RESULT_FILE, settings_of
from empatheia_people.curation.samples import SampledDialogue, corpus_files, sampled
from empatheia_people.curation.shards import rows_of
from empatheia_people.curation.stages import ALL, EMOTIONAL, REST

PAPER = {
    "sentences": 441_000_000,
    "files": 446_612,
    "dialogues": 9_000_000,
    "clean dialogues": 4_010_009,
    "emotional dialogues": 1_000_000,
}
"""Of Xie and Pu (2021), section 3.1; the number of files is ParlAI's for the same release."""
PAPER_PARTS = {
    "os and edos": (4_010_009, 18_849_440, 312_574_468),
    EMOTIONAL: (1_000_000, 3_488_300, 66_447_274),
    REST: (3_010_009, 15_361_140, 246_127_194),
}
"""Dialogues, turns and tokens of tables 1 and 2; those of OS are their difference."""
_N_SAMPLES, _N_LINES, _MOST_TURNS = 10, 10, 20
_STYLE = Path(__file__).with_suffix(".css")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the funnel.

    Attributes:
        name: What is counted.
        n: How many.
        note: What became of the others.
    """

    name: str
    n: int
    note: str = ""


def funnel(record: dict[str, Any]) -> list[Step]:
    """Files to emotional dialogues."""
    counts, unique, corpus = record["dialogues"], record["unique"], record["corpus"]
    left = unique.get("dialogues", 0) - unique.get("duplicates", 0) - unique.get("over_cap", 0)
    steps = [
        Step("files", record["files"], f"{record['unreadable']:,} unreadable, {counts.get('rivals', 0):,} not chosen"),
        Step("files read", counts.get("read", 0), "one for each film"),
        Step("sentences", counts.get("sentences", 0), f"{counts.get('sentences_without_time', 0):,} lack a time"),
        Step("turns", counts.get("turns", 0)),
        Step("dialogues", counts.get("dialogues", 0)),
        Step("cleaned, in each file", counts.get("clean_dialogues", 0), f"{record['n_split']:,} were parted"),
        Step(
            "clean dialogues",
            left,
            f"{unique.get('duplicates', 0):,} equal, {unique.get('over_cap', 0):,} over the cap",
        ),
    ]
    if EMOTIONAL in corpus or REST in corpus:
        steps.append(Step("emotional dialogues", corpus.get(EMOTIONAL, {}).get("dialogues", 0)))
    return steps


def write_page(folder: Path, path: Path) -> Path:
    """Writes the report.

    Raises:
        DataError: The run is not finished, or the place cannot be written.
    """
    settings = settings_of(folder)
    try:
        record = read_record(folder / RESULT_FILE)
    except FileNotFoundError:
        raise DataError(f"{folder} is not finished. Continue with: empatheia curate resume {folder}") from None
    check_place(path)
    turns = Counter(
        min(len(row["turns"]), _MOST_TURNS) for _, _, file in corpus_files(folder) for row in rows_of(file, ["turns"])
    )
    steps = funnel(record)
    blocks = [
        *(Heading("From files to dialogues"), *_picture(steps), _funnel_table(steps)),
        *(Heading("Size"), _sizes(record["corpus"])),
        *(Heading("Turns of a dialogue"), _bars([(_named(k), turns[k]) for k in sorted(turns)])),
        *_labels(record),
        *(Heading("What cleaning dropped"), *_dropped(record)),
        *(Heading("Files that could not be read"), *_problems(record)),
        *(Heading("Time"), *_times(record)),
        *(Heading("Samples"), *_samples(folder)),
        *(Heading("Settings"), Code(settings.to_yaml().split("\n"))),
    ]
    digest = (f"{_what(record)} Digest of the corpus: ", element("code", record["digest"][:16]), ".")
    write_whole(
        path, to_html(Document(f"Curation {settings.name}", [Text(digest)], blocks), _STYLE.read_text(encoding="utf-8"))
    )
    return path


def _named(n: int) -> str:
    return f"{n}+" if n == _MOST_TURNS else str(n)


def _what(record: dict[str, Any]) -> str:
    labelled = record["labelled"]
    if "classifier" not in labelled:
        return "No classifier: nothing is labelled or ranked."
    rank = record["rank"]
    return (
        f"Labelled by {labelled['classifier']}; emotionality is the {labelled['measure']}. The {rank['top']:,} most"
        f" emotional of {rank['of']:,} have {rank['threshold']:.4f} or more."
    )


def _picture(steps: Sequence[Step]) -> list[Block]:
    """Bars on a logarithmic scale, the paper's count as a dashed outline."""
    most = max([step.n for step in steps] + [PAPER.get(step.name, 1) for step in steps] + [10])
    height, shapes = 26, list[Marked]()

    def width(n: int) -> float:
        return 420 * log10(max(1, n) * 1.3) / log10(most * 1.3)

    for i, step in enumerate(steps):
        y = i * height
        shapes += [label(150, y + 16, step.name, "end"), rect(160, y + 3, width(step.n), 18)]
        if step.name in PAPER:
            shapes.append(rect(160, y + 1, width(PAPER[step.name]), 22, class_="paper"))
        shapes.append(label(168 + width(step.n), y + 16, f"{step.n:,}"))
    title = "Counts of each step on a logarithmic scale; dashed: the paper's"
    return [Figure(svg=drawing(720, len(steps) * height, title, shapes)), Text(f"{title}.")]


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Cells that look like a number stand to the right."""
    return Table(header, [[_cell(cell) for cell in row] for row in rows])


def _cell(text: str) -> Cell:
    is_number = text.replace(",", "").replace(".", "").replace("%", "").strip().isdecimal()
    return Cell(text, {"class": "n" if is_number else ""})


def _funnel_table(steps: Sequence[Step]) -> Table:
    rows = []
    for step in steps:
        paper = PAPER.get(step.name)
        rows.append((step.name, f"{step.n:,}", f"{paper:,}" if paper else "", step.note))
    return _table(("step", "here", "paper", "the others"), rows)


def _sizes(corpus: dict[str, dict[str, int]]) -> Table:
    rows = []
    total: Counter[str] = Counter()
    for own in corpus.values():
        total.update(own)
    named = {**({"os and edos": dict(total)} if ALL not in corpus else {}), **corpus}
    for name, own in named.items():
        n, turns, tokens = (own.get(key, 0) for key in ("dialogues", "turns", "tokens"))
        rows.append((name, *_ratios(n, turns, tokens), *(f"{own.get(k, 0):,}" for k in ("train", "valid", "test"))))
        if name in PAPER_PARTS:
            rows.append((f"{name}, paper", *_ratios(*PAPER_PARTS[name]), "", "", ""))
    header = ("part", "dialogues", "turns", "tokens", "turns a dialogue", "tokens a turn", "tokens a dialogue")
    return _table((*header, "train", "valid", "test"), rows)


def _ratios(n: int, turns: int, tokens: int) -> tuple[str, ...]:
    counts = f"{n:,}", f"{turns:,}", f"{tokens:,}"
    return *counts, *(f"{a / max(1, b):.2f}" for a, b in ((turns, n), (tokens, turns), (tokens, n)))


def _bars(rows: Sequence[tuple[str, int]], title: str = "") -> Figure:
    most, total, height = max([n for _, n in rows], default=1), sum(n for _, n in rows), 20
    shapes = list[Marked]()
    for i, (name, n) in enumerate(rows):
        y, width = i * height, 400 * n / most
        shapes += [label(110, y + 14, name, "end"), rect(120, y + 3, width, 13)]
        shapes.append(label(126 + width, y + 14, f"{n:,} ({n / max(1, total):.1%})"))
    return Figure(svg=drawing(640, max(1, len(rows)) * height, title, shapes))


def _labels(record: dict[str, Any]) -> Iterator[Block]:
    for part, own in record["labels"].items():
        yield Heading(f"Labels of last utterances: {part}")
        yield _bars(sorted(own.items(), key=lambda item: (-item[1], item[0])))


def _times(record: dict[str, Any]) -> list[Block]:
    """Wall seconds of the last run that made something, and the rate where it is known."""
    counts, corpus = record["dialogues"], record["corpus"].values()
    items = {
        "dialogues": ("sentences", counts.get("sentences", 0)),
        "unique": ("dialogues", counts.get("clean_dialogues", 0)),
    }
    items |= {stage: ("turns", sum(own["turns"] for own in corpus)) for stage in ("labelled", "corpus")}
    rows = []
    for stage, seconds in record["seconds"].items():
        name, n = items.get(stage, ("", 0))
        rows.append((stage, f"{seconds:,.1f}", f"{n / seconds:,.0f} {name} a second" if n and seconds >= 1 else ""))
    return [_table(("stage", "seconds", "rate"), rows), Text("Of the last call; what was there already took no time.")]


def _dropped(record: dict[str, Any]) -> Iterator[Block]:
    yield _table(
        ("step", "utterances dropped", "changed"),
        [
            (name, f"{record['dropped'].get(name, 0):,}", f"{record['changed'].get(name, 0):,}")
            for name in sorted({*record["dropped"], *record["changed"]})
        ],
    )
    shown: Counter[str] = Counter()
    rows = []
    for step, text, n in record["lines"]:
        shown[step] += 1
        if shown[step] <= _N_LINES:
            rows.append((step, f"{n:,}", text))
    yield from (Text("The most frequent lines of each step:"), _table(("step", "times", "line"), rows))


def _problems(record: dict[str, Any]) -> list[Block]:
    if not record["problems"]:
        return [Text("None.")]
    return [Text(f"{record['unreadable']:,} in all."), _table(("file", "why"), record["problems"][:100])]


def _samples(folder: Path) -> Iterator[Block]:
    if not corpus_files(folder):
        yield Text("No dialogue is left.")
        return
    for row in sampled(folder, _N_SAMPLES):
        score = "" if row["emotionality"] is None else f", emotionality {row['emotionality']:.3f}"
        yield Text(f"{row['key']} ({row['part']}{score})")
        yield Items(
            [(text, _label_of(row, i)) for i, text in enumerate(row["turns"])], attributes={"class": "dialogue"}
        )


def _label_of(row: SampledDialogue, i: int) -> Content:
    return (" ", element("em", f"({row['labels'][i]})")) if row["labels"] else ""
