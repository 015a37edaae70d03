"""The report of a run: one page with the funnel beside the paper's counts, lengths, labels, dropped lines, samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empatheia.curation.run import RESULT_FILE, settings_of
from empatheia.curation.samples import SampledDialogue, corpus_files, sampled
from empatheia.curation.shards import rows_of
from empatheia.curation.stages import ALL, EMOTIONAL, REST
from empatheia.errors import DataError
from empatheia.reading import read_record
from empatheia.reports.page import check_place, html_page, safe, write_whole

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
_STYLE = """
svg { max-width: 46rem; width: 100%; height: auto; } svg text { font: 13px system-ui, sans-serif; fill: currentColor; }
svg rect { fill: #3b7dd8; } svg rect.paper { fill: none; stroke: currentColor; stroke-dasharray: 3 3; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } dl.dialogue dd { margin: 0 0 .2rem 1rem; }
"""


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
    body = (
        f"<h2>From files to dialogues</h2>{_picture(steps)}{_funnel_table(steps)}"
        f"<h2>Size</h2>{_sizes(record['corpus'])}"
        f"<h2>Turns of a dialogue</h2>{_bars([(_named(k), turns[k]) for k in sorted(turns)])}"
        f"{_labels(record)}<h2>What cleaning dropped</h2>{_dropped(record)}"
        f"<h2>Files that could not be read</h2>{_problems(record)}"
        f"<h2>Time</h2>{_times(record)}"
        f"<h2>Samples</h2>{_samples(folder)}"
        f"<h2>Settings</h2><pre>{safe(settings.to_yaml())}</pre>"
    )
    head = f"<p>{safe(_what(record))} Digest of the corpus: <code>{safe(record['digest'][:16])}</code>.</p>"
    write_whole(path, html_page(f"Curation {settings.name}", head, body, style=_STYLE))
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


def _picture(steps: Sequence[Step]) -> str:
    """Bars on a logarithmic scale, the paper's count as a dashed outline."""
    from math import log10

    most = max([step.n for step in steps] + [PAPER.get(step.name, 1) for step in steps] + [10])
    height, parts = 26, []

    def width(n: int) -> float:
        return 420 * log10(max(1, n) * 1.3) / log10(most * 1.3)

    for i, step in enumerate(steps):
        y = i * height
        parts.append(f'<text x="150" y="{y + 16}" text-anchor="end">{safe(step.name)}</text>')
        parts.append(f'<rect x="160" y="{y + 3}" width="{width(step.n):.1f}" height="18"></rect>')
        if step.name in PAPER:
            paper = width(PAPER[step.name])
            parts.append(f'<rect class="paper" x="160" y="{y + 1}" width="{paper:.1f}" height="22"></rect>')
        parts.append(f'<text x="{168 + width(step.n):.1f}" y="{y + 16}">{step.n:,}</text>')
    title = "Counts of each step on a logarithmic scale; dashed: the paper's"
    return (
        f'<svg viewBox="0 0 720 {len(steps) * height}" role="img" aria-label="{safe(title)}">{"".join(parts)}</svg>'
        f"<p>{safe(title)}.</p>"
    )


def _table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column is text, the others are numbers if they look like one."""
    head = "".join(f"<th>{safe(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    is_number = text.replace(",", "").replace(".", "").replace("%", "").strip().isdecimal()
    return f'<td class="n">{safe(text)}</td>' if is_number else f"<td>{safe(text)}</td>"


def _funnel_table(steps: Sequence[Step]) -> str:
    rows = []
    for step in steps:
        paper = PAPER.get(step.name)
        rows.append((step.name, f"{step.n:,}", f"{paper:,}" if paper else "", step.note))
    return _table(("step", "here", "paper", "the others"), rows)


def _sizes(corpus: dict[str, dict[str, int]]) -> str:
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
    header = (
        "part",
        "dialogues",
        "turns",
        "tokens",
        "turns a dialogue",
        "tokens a turn",
        "tokens a dialogue",
        "train",
        "valid",
        "test",
    )
    return _table(header, rows)


def _ratios(n: int, turns: int, tokens: int) -> tuple[str, ...]:
    counts = f"{n:,}", f"{turns:,}", f"{tokens:,}"
    return *counts, *(f"{a / max(1, b):.2f}" for a, b in ((turns, n), (tokens, turns), (tokens, n)))


def _bars(rows: Sequence[tuple[str, int]]) -> str:
    most, total, height = max([n for _, n in rows], default=1), sum(n for _, n in rows), 20
    parts = [
        f'<text x="110" y="{i * height + 14}" text-anchor="end">{safe(name)}</text>'
        f'<rect x="120" y="{i * height + 3}" width="{400 * n / most:.1f}" height="13"></rect>'
        f'<text x="{126 + 400 * n / most:.1f}" y="{i * height + 14}">{n:,} ({n / max(1, total):.1%})</text>'
        for i, (name, n) in enumerate(rows)
    ]
    return f'<svg viewBox="0 0 640 {max(1, len(rows)) * height}" role="img">{"".join(parts)}</svg>'


def _labels(record: dict[str, Any]) -> str:
    out = ""
    for part, own in record["labels"].items():
        rows = sorted(own.items(), key=lambda item: (-item[1], item[0]))
        out += f"<h2>Labels of last utterances: {safe(part)}</h2>{_bars(rows)}"
    return out


def _times(record: dict[str, Any]) -> str:
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
    return f"{_table(('stage', 'seconds', 'rate'), rows)}<p>Of the last call; what was there already took no time.</p>"


def _dropped(record: dict[str, Any]) -> str:
    out = _table(
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
    return f"{out}<p>The most frequent lines of each step:</p>{_table(('step', 'times', 'line'), rows)}"


def _problems(record: dict[str, Any]) -> str:
    if not record["problems"]:
        return "<p>None.</p>"
    rows = [(place, reason) for place, reason in record["problems"][:100]]
    return f"<p>{record['unreadable']:,} in all.</p>{_table(('file', 'why'), rows)}"


def _samples(folder: Path) -> str:
    if not corpus_files(folder):
        return "<p>No dialogue is left.</p>"
    out = ""
    for row in sampled(folder, _N_SAMPLES):
        score = "" if row["emotionality"] is None else f", emotionality {row['emotionality']:.3f}"
        said = "".join(f"<dd>{safe(text)}{_label_of(row, i)}</dd>" for i, text in enumerate(row["turns"]))
        out += f'<dl class="dialogue"><dt>{safe(row["key"])} ({safe(row["part"])}{score})</dt>{said}</dl>'
    return out


def _label_of(row: SampledDialogue, i: int) -> str:
    return f" <em>({safe(row['labels'][i])})</em>" if row["labels"] else ""
