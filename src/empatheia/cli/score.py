"""``empatheia score``: anybody's replies measured, from two text files or from a file as a paper released it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from empatheia.cli.options import with_options
from empatheia.cli.output import aligned, print_json, show
from empatheia.documents.latex import for_latex
from empatheia.errors import ConfigError
from empatheia.files.result_table import as_text
from empatheia.metrics.bertscore import read_baseline
from empatheia.registry import nearest
from empatheia.replies.alignment import OUTPUTS, labels_of, title_of
from empatheia.replies.reply_files import read_replies, read_texts
from empatheia.replies.scoring import (
    N_RESAMPLES,
    TOKEN_ENCODERS,
    Likeness,
    columns_of,
    compare_systems,
    own_signature,
    score_file,
    shared_signature,
)
from empatheia.resources.quiet import quiet_loading

if TYPE_CHECKING:
    from empatheia.metrics.profiles import Column
    from empatheia.metrics.score import Signature
    from empatheia.replies.replies import ReplyFile
    from empatheia.replies.scoring import Cell, SystemScores, SystemTests

_SHOWN_LINES = 8
_MOST_LIKELY = 0.05
"""Holm's p below this has a star in a LaTeX table."""


@dataclass(frozen=True)
class BertScoreOptions:
    """BERTScore, where an encoder is named."""

    bertscore: Annotated[
        str | None,
        typer.Option(metavar="ENCODER", help="BERTScore by this encoder: a folder such as roberta-large's, or minilm."),
    ] = None
    bertscore_layer: Annotated[int | None, typer.Option(help="Its layer. [default: the last]")] = None
    bertscore_baseline: Annotated[
        Path | None,
        typer.Option(help="File LAYER,P,R,F of the bert-score package, to rescale; roberta-large's 17 is known."),
    ] = None


@dataclass(frozen=True)
class FormOptions:
    """How files are read and scores are printed."""

    as_released: Annotated[
        bool, typer.Option("--as-released", help="Strip labels as EmpDG's, KEMP's and CEM's scripts do.")
    ] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a row for each number, as CSV.")] = False
    as_latex: Annotated[bool, typer.Option("--latex", help="Print the table of systems for LaTeX (booktabs).")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False


@with_options
def score(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files of replies and references, or run folders; or --hyp and --ref."),
    ] = None,
    format: Annotated[
        str, typer.Option(help="moel, mime, empdg, kemp, cem, jsonl, csv, or auto: recognise it.")
    ] = "auto",
    system: Annotated[
        list[str] | None, typer.Option(help="Only this system of the file; can be repeated. Default: all.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="Compare the others with this system, paired. [default: of several files, the first]"),
    ] = None,
    hyp: Annotated[list[Path] | None, typer.Option(help="Text file, one reply a line; can be repeated.")] = None,
    ref: Annotated[Path | None, typer.Option(help="Text file, one gold reply a line, in the same order.")] = None,
    context: Annotated[
        Path | None, typer.Option(help="Text file, one context a line: a JSON list of turns, or tabs between turns.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Numbers as defined by a paper: gao2021, imagine, meed2, rashkin2018, kim2021, moel, mime, ..."
        ),
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="Metrics by name, comma-separated.")] = None,
    words: Annotated[
        str,
        typer.Option(help="How text is split into words without a profile: space, nltk, nltk-cased, family, rashkin."),
    ] = "space",
    bootstrap: Annotated[
        int, typer.Option(help="Resamples for the 95 % intervals and the tests; 0 for none.", min=0, max=1_000_000)
    ] = 1000,
    bert: BertScoreOptions,
    form: FormOptions,
) -> None:
    r"""Measure generated replies: every number with its interval, unit and signature; several systems also paired.

    \b
    empatheia score --hyp replies.txt --ref gold.txt
    empatheia score generation_result.txt --format moel --profile moel
    empatheia score theirs.jsonl ours.jsonl --baseline theirs.jsonl
    """
    if sum((form.as_csv, form.as_latex, form.as_json)) > 1:
        raise ConfigError("--csv, --latex and --json are three forms of one answer; choose one.")
    if bootstrap == 1:
        raise ConfigError("--bootstrap is 1; accepted: 0 for no intervals, or 2 and more, 1000 is usual.")
    columns = _columns(profile, metrics or "", words, bert.bertscore is not None)
    read = _read(files or [], hyp or [], ref, context, format, form.as_released)
    systems = _systems(read, system or [])
    likeness = _likeness(bert.bertscore, bert.bertscore_layer, bert.bertscore_baseline)
    scores = _scores(systems, columns, bootstrap, likeness)
    compares = baseline is not None or (len(read) > 1 and bootstrap > 0)
    tests = _tests(systems, baseline, columns, bootstrap, likeness) if compares else ()
    if form.as_json:
        print_json(_record(read, profile, scores, tests))
    elif form.as_csv:
        show("\n".join(csv_rows(scores, tests)))
    elif form.as_latex:
        show("\n".join(latex_lines(scores, tests)))
    else:
        show("\n".join(_lines(read, scores, tests, profile)))


def _columns(profile: str | None, metrics: str, words: str, with_bertscore: bool) -> tuple[Column, ...]:
    """What is measured: profile or metrics, and BERTScore where an encoder is given and it is not among them.

    Raises:
        ConfigError: An unknown profile, metric or way to cut words.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    columns = columns_of(profile, names, words)
    there = {column.metric.removesuffix("_rescaled") for column in columns}
    wanted = [name for name in ("bertscore_p", "bertscore_r", "bertscore_f") if with_bertscore and name not in there]
    return (*columns, *(columns_of(metrics=wanted) if wanted else ()))


def _scores(
    systems: Mapping[str, tuple[ReplyFile, str]],
    columns: Sequence[Column],
    bootstrap: int,
    likeness: Likeness | None,
) -> list[SystemScores]:
    """The scores of each system, under the name it has here."""
    found = []
    for name, (file, own) in systems.items():
        (scores,) = score_file(file, columns, [own], bootstrap, likeness)
        found.append(replace(scores, system=name))
    return found


def _tests(
    systems: Mapping[str, tuple[ReplyFile, str]],
    baseline: str | None,
    columns: Sequence[Column],
    bootstrap: int,
    likeness: Likeness | None,
) -> Sequence[SystemTests]:
    """Every other system against the baseline; the first where none is named.

    Raises:
        ConfigError: There is no such system, or no other.
        DataError: A system shares no item with it.
    """
    against = next(iter(systems)) if baseline is None else _named(baseline, systems)
    chosen = {name: file.of(own) for name, (file, own) in systems.items()}
    return compare_systems(chosen, against, columns, bootstrap or N_RESAMPLES, likeness)


def _read(
    files: Sequence[Path],
    hyp: Sequence[Path],
    ref: Path | None,
    context: Path | None,
    format: str,
    as_released: bool,
) -> list[ReplyFile]:
    """The files that are named, read.

    Raises:
        ConfigError: Neither or both kinds of files are named.
        DataError: One cannot be read.
    """
    if bool(files) == bool(hyp):
        raise ConfigError("name files of replies, or text files with --hyp and --ref; see 'empatheia score --help'.")
    if not hyp and (ref or context):
        raise ConfigError("--ref and --context go with --hyp; a file of replies holds its own.")
    if hyp:
        return [read_texts(file, ref, context) for file in hyp]
    return [read_replies(file / OUTPUTS if file.is_dir() else file, format, as_released) for file in files]


def _systems(read: Sequence[ReplyFile], wanted: Sequence[str]) -> dict[str, tuple[ReplyFile, str]]:
    """What each system is called, its file and its name there.

    Raises:
        ConfigError: A system that is wanted is in no file, or two are called the same.
    """
    if len(read) == 1:
        names = wanted or read[0].systems
        return {read[0].of(name)[0].system: (read[0], name) for name in names}
    found: dict[str, tuple[ReplyFile, str]] = {}
    titles = [title_of(file.path.parent if file.path.name == OUTPUTS else file.path) for file in read]
    if len(set(titles)) < len(titles):
        titles = [str(file.path) for file in read]
    for file, title in zip(read, titles, strict=True):
        for own, label in labels_of(file, title).items():
            if label in found:
                raise ConfigError(f"{label} is named twice; name each file once.")
            found[label] = file, own
    return {name: found[name] for name in (_named(one, found) for one in wanted)} or found


def _named(name: str, systems: Mapping[str, tuple[ReplyFile, str]]) -> str:
    """The system that is meant: by its name here, its name in its file, or its file's path.

    Raises:
        ConfigError: None or several are.
    """
    if name in systems:
        return name
    alike = [
        label
        for label, (file, own) in systems.items()
        if name.lower() in (label.lower(), own.lower()) or name.rstrip("/") in (str(file.path), str(file.path.parent))
    ]
    if len(alike) == 1:
        return alike[0]
    several = f" It may be {' or '.join(alike)}." if alike else nearest(name, list(systems))
    raise ConfigError(f"there is no one system {name!r}.{several} There are: {', '.join(systems)}.")


def _likeness(encoder: str | None, layer: int | None, baseline: Path | None) -> Likeness | None:
    """The encoder for BERTScore; loading it takes seconds.

    Raises:
        ConfigError: A layer or a baseline without an encoder, or no such layer.
        MissingResourceError: There is no such encoder or file here.
        CheckpointError: The folder holds no encoder.
    """
    if encoder is None:
        if layer is not None or baseline is not None:
            raise ConfigError("--bertscore-layer and --bertscore-baseline go with --bertscore ENCODER.")
        return None

    if baseline is not None and layer is None:
        raise ConfigError("--bertscore-baseline has a line for each layer: name yours with --bertscore-layer.")
    known = None if baseline is None else read_baseline(baseline, int(layer or 0))
    with quiet_loading():
        return Likeness(TOKEN_ENCODERS.get("bertscore").load(encoder, layer), known)


def _record(
    read: Sequence[ReplyFile], profile: str | None, scores: Sequence[SystemScores], tests: Sequence[SystemTests]
) -> dict[str, object]:
    """Everything, JSON-ready."""
    files: list[dict[str, object]] = [
        {
            "file": str(file.path),
            "format": file.format,
            "reported": dict(file.reported),
            "notes": list(file.notes),
        }
        for file in read
    ]
    facts = files[0] if len(files) == 1 else {"files": files}
    compared = {"tests": [each.to_dict() for each in tests]} if tests else {}
    return {**facts, "profile": profile, "systems": [each.to_dict() for each in scores], **compared}


def csv_rows(scores: Sequence[SystemScores], tests: Sequence[SystemTests]) -> Iterator[str]:
    """A header and a row for each number: score, interval, and the test against the baseline where there is one."""
    compared = {each.system: each for each in tests}
    compares = ["baseline", "n_paired", "difference", "difference_low", "difference_high", "p", "p_holm"]
    header = ["system", "column", "metric", "value", "low", "high", "unit", "n", "signature"]
    rows: list[list[object]] = [[*header, *(compares if tests else ())]]
    for each in scores:
        for cell in each.cells:
            value = None if math.isnan(cell.value) else cell.value
            low, high = cell.interval or (None, None)
            row = [each.system, cell.column.name, _metric(cell), value, low, high, cell.unit, each.n]
            row.append(cell.score.signature)
            if (own := compared.get(each.system)) is not None and (test := own.tests.get(cell.column.name)):
                bounds = test.interval or (None, None)
                row += [own.baseline, own.n, test.difference, *bounds, test.p_value, test.p_adjusted]
            rows.append(row + [None] * (len(rows[0]) - len(row)))
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([[as_text(cell) for cell in row] for row in rows])
    yield from stream.getvalue().splitlines()


def latex_lines(scores: Sequence[SystemScores], tests: Sequence[SystemTests]) -> Iterator[str]:
    """The table of systems; a star where Holm's p against the baseline is below .05."""
    names = list(dict.fromkeys(cell.column.name for each in scores for cell in each.cells))
    compared = {each.system: each.tests for each in tests}
    yield rf"\begin{{tabular}}{{l{'r' * (len(names) + 1)}}}"
    yield r"\toprule"
    yield " & ".join(("System", "$n$", *map(for_latex, names))) + r" \\"
    yield r"\midrule"
    for each in scores:
        cells = {cell.column.name: cell for cell in each.cells}
        row = [for_latex(each.system), f"{each.n:,}".replace(",", "{,}")]
        for name in names:
            test = compared.get(each.system, {}).get(name)
            star = "$^{*}$" if test is not None and (test.p_adjusted or 0.0) < _MOST_LIKELY else ""
            row.append((cells[name].show().replace(",", "{,}") if name in cells else "--") + star)
        yield " & ".join(row) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    if tests:
        test = next(iter(tests[0].tests.values()), None)
        n = test.n_resamples if test is not None else 0
        yield (
            f"% * Holm-adjusted p < {_MOST_LIKELY:g} against {for_latex(tests[0].baseline)}: paired permutation test"
            f" over items, {n:,} permutations"
        )


def _lines(
    read: Sequence[ReplyFile], scores: Sequence[SystemScores], tests: Sequence[SystemTests], profile: str | None
) -> Iterator[str]:
    how = f"profile {profile}" if profile else "no profile"
    yield from (f"{file.path} ({file.format}, {how})" for file in read)
    shared = shared_signature([cell for each in scores for cell in each.cells])
    yield from _one(scores[0], shared) if len(scores) == 1 else _several(scores)
    if len(scores) > 1:
        yield from _signatures(scores)
    if str(shared) and scores[0].cells:
        yield f"all: {shared}"
    for each in tests:
        yield from _compared(each, len(tests), {reason for one in scores for _, reason in one.missing})
    yield from _beside(read, scores)


def _beside(read: Sequence[ReplyFile], scores: Sequence[SystemScores]) -> Iterator[str]:
    """What was not measured, blank replies, and what the files say of themselves."""
    if scores[0].missing:
        yield "not measured:"
        yield from _indented([(column.name, reason) for column, reason in scores[0].missing], right=())
    for each in scores:
        yield from _blank(each)
    for file in read:
        if file.reported:
            found = ", ".join(f"{name} {value:g}" for name, value in file.reported.items())
            yield f"stated in the file, not measured here: {found}"
        yield from (f"note: {note}" for note in file.notes)


def _compared(tests: SystemTests, n_systems: int, told: Container[str]) -> Iterator[str]:
    """A system against the baseline, one line a column, and why others have no test where that is not told anyway."""
    left_out = f"; {tests.n_left_out:,} in one of them only, left out" if tests.n_left_out else ""
    yield f"{tests.system} minus {tests.baseline}, paired over {tests.n:,} items{left_out}:"
    rows = [("", "difference", "95 % interval", "p", *(["p, Holm"] if n_systems > 1 else []))]
    for name, test in tests.tests.items():
        between = "" if test.interval is None else f"{test.interval[0]:+.4g} to {test.interval[1]:+.4g}"
        holm = [_p(test.p_adjusted or test.p_value)] if n_systems > 1 else []
        rows.append((name, f"{test.difference:+.4g}", between, _p(test.p_value), *holm))
    yield from _indented(rows, right={1, 3, 4})
    n = next((test.n_resamples for test in tests.tests.values()), 0)
    of = f"; Holm over {n_systems} systems" if n_systems > 1 else ""
    yield f"  p: two-sided permutation of items, {n:,} times; interval: paired bootstrap, if unbiased{of}"
    yield from (f"  no test of {name}: {reason}" for name, reason in tests.untested.items() if reason not in told)


def _p(value: float) -> str:
    return f"{value:.3f}".lstrip("0") if value < 1 else "1"


def _blank(scores: SystemScores) -> Iterator[str]:
    """How many replies and references are blank, and where the first of them stand."""
    for what, lines in (("replies", scores.blank_replies), ("references", scores.blank_references)):
        if lines:
            more = ", ..." if len(lines) > _SHOWN_LINES else ""
            found = ", ".join(map(str, lines[:_SHOWN_LINES]))
            yield f"{scores.system}: {len(lines):,} blank {what} (items at lines {found}{more})"


def _one(scores: SystemScores, shared: Signature) -> Iterator[str]:
    """One line a column."""
    yield f"{scores.system}: {scores.n:,} replies"
    rows = [("", "value", "interval", "unit", "metric", "signature")]
    rows += [
        (cell.column.name, cell.show(), _between(cell), cell.unit, _metric(cell), _own(cell, shared))
        for cell in scores.cells
    ]
    yield from _indented(rows, right={1})


def _several(scores: Sequence[SystemScores]) -> Iterator[str]:
    """One line a system, and under it the intervals where there are any."""
    names = list(dict.fromkeys(cell.column.name for each in scores for cell in each.cells))
    rows = [("", "n", *names)]
    for each in scores:
        cells = {cell.column.name: cell for cell in each.cells}
        rows.append((each.system, f"{each.n:,}", *(cells[n].show() if n in cells else "-" for n in names)))
        if any(cell.interval for cell in each.cells):
            rows.append(("", "", *(_between(cells[n]) if n in cells else "" for n in names)))
    yield from _indented(rows, right=range(1, len(names) + 2))


def _signatures(scores: Sequence[SystemScores]) -> Iterator[str]:
    """What each column of the table of systems is; where systems differ, the first that has it."""
    shared = shared_signature([cell for each in scores for cell in each.cells])
    seen: dict[str, Cell] = {}
    for each in scores:
        for cell in each.cells:
            seen.setdefault(cell.column.name, cell)
    yield from _indented(
        [(name, cell.unit, _metric(cell), _own(cell, shared)) for name, cell in seen.items()], right=()
    )


def _own(cell: Cell, shared: Signature) -> str:
    return str(own_signature(cell, shared))


def _metric(cell: Cell) -> str:
    return f"{cell.column.metric}.{cell.column.part}" if cell.column.part else cell.column.metric


def _between(cell: Cell) -> str:
    if cell.interval is None:
        return ""
    return f"{cell.show(cell.interval[0])}-{cell.show(cell.interval[1])}"


def _indented(rows: Sequence[Sequence[str]], right: Container[int]) -> Iterator[str]:
    return (f"  {line}" for line in aligned(rows, right))
