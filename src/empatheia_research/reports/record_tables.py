"""Run records as tables, one for each task: our scores by row, and under them what the paper printed.

Every value keeps its interval, its number of items and its signature; a printed number stands in the column of the
score that measures it (``metrics.published.DEFINITIONS``), in that column's unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from empatheia.errors import EmpatheiaError
from empatheia.metrics.mechanisms import EPITOME_PAPER
from empatheia.metrics.mechanisms import EPITOME_PUBLISHED as EPITOME
from empatheia.metrics.published import DEFINITIONS, Published, compare, published
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.metrics.rows import fold_name
from empatheia.metrics.score import Score
from empatheia.metrics.significance import ComparisonRecord
from empatheia.settings import YAML_LOADER
from empatheia.taxonomy import MECHANISMS
from empatheia_research.recipes.recipe import PublishedRow, load_recipe
from empatheia_research.shipped import recipes_root

_TESTED_ON = re.compile(r"test (\d)$")
_TUNED = "tuned on valid"
BESIDE_PRINT = ("cpu", "full")
"""Sizes whose values are set beside printed ones; runs of size ``row`` are compared with each other."""


@dataclass(frozen=True, slots=True)
class Column:
    """What is measured.

    Attributes:
        key: Name of the score, see ``METRICS``.
        title: Heading.
        unit: Of the cells: ``percent``, ``fraction``, ``perplexity``.
        decimals: Shown.
        higher_is_better: Direction, or None.
    """

    key: str
    title: str
    unit: str = "percent"
    decimals: int = 2
    higher_is_better: bool | None = True


@dataclass(frozen=True, slots=True)
class Value:
    """Our number, in the unit of its column.

    Attributes:
        value: The number.
        interval: 95 % bootstrap interval, or None for records that kept none.
        n: Items; 0 = not recorded.
        signature: What else must be equal to compare; may be empty.
    """

    value: float
    interval: tuple[float, float] | None = None
    n: int = 0
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A published row.

    Attributes:
        source: Paper, table, row.
        values: Column key to (number as text in the column's unit, number, verdict).
    """

    source: str
    values: Mapping[str, tuple[str, float, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Attributes:
        run: ``recipe/size-seedN``.
        record: The run record it comes from.
        labels: What tells it from other rows of the run, by heading, e.g. ``{"mechanism": "exploration"}``.
        values: By column key.
        printed: Published row under it, or None.
    """

    run: str
    record: RunRecord
    labels: Mapping[str, str]
    values: Mapping[str, Value]
    printed: Printed | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """All runs of one task.

    Attributes:
        key: Short name, for links.
        title: Heading.
        lead: What a reader must know, plain text.
        labels: Headings of ``Row.labels``, in order.
        columns: Those that any row fills.
        rows: By recipe, size and seed.
    """

    key: str
    title: str
    lead: str
    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    """How rows are made of a record."""

    key: str
    title: str
    lead: str
    columns: tuple[Column, ...]
    rows: Callable[[RunRecord, _Task], Iterator[Row]]
    labels: tuple[str, ...]


def run_name(record: RunRecord) -> str:
    """``recipe/size-seedN``, as its file in ``results/`` is called."""
    return f"{record['recipe']}/{record['size']}-seed{record['seed']}"


def tables(records: Sequence[RunRecord]) -> list[Table]:
    """The tables that have a row, in the order of the package's story; a record may be in several.

    Records that fit none stand in a last one, ``other``, with no scores but the link to all of theirs.
    """
    found, seen = [], set()
    for task in _tasks():
        rows = [row for record in records for row in task.rows(record, task)]
        if not rows:
            continue
        seen.update(row.run for row in rows)
        filled = {key for row in rows for key in row.values}
        columns = tuple(column for column in task.columns if column.key in filled)
        found.append(Table(task.key, task.title, task.lead, task.labels, columns, tuple(rows)))
    rest = [Row(run_name(record), record, {}, {}) for record in records if run_name(record) not in seen]
    if rest:
        found.append(Table("other", "Other runs", "Their scores stand with the run, below.", (), (), tuple(rest)))
    return found


def in_unit(number: float, unit: str, wanted: str) -> float:
    """A number of one unit in another; units that are not percent and fraction stay as they are."""
    return number * {("percent", "fraction"): 0.01, ("fraction", "percent"): 100.0}.get((unit, wanted), 1.0)


def _value(score: Score | None, column: Column) -> Value | None:
    if score is None or not math.isfinite(score.value):
        return None
    ends = None
    if score.interval and all(map(math.isfinite, score.interval)):
        low, high = score.interval
        ends = (in_unit(low, score.unit, column.unit), in_unit(high, score.unit, column.unit))
    return Value(in_unit(score.value, score.unit, column.unit), ends, score.n, score.signature)


def _values(task: _Task, find: Callable[[str], Score | None]) -> dict[str, Value]:
    made = {column.key: _value(find(column.key), column) for column in task.columns}
    return {key: value for key, value in made.items() if value is not None}


def _row(record: RunRecord, task: _Task, values: Mapping[str, Value], *labels: str, printed: bool = True) -> Row:
    named = dict(zip(task.labels, labels, strict=True))
    row = _published_row(record) if printed and record["size"] in BESIDE_PRINT else None
    if row is not None and labels and (fold := _TESTED_ON.search(row.row)) and fold.group(1) != labels[0]:
        row = None
    return Row(run_name(record), record, named, values, _printed(row, record, task, values) if row else None)


def _published_row(record: RunRecord) -> PublishedRow | None:
    """The row the recipe of that name is compared with; None for a recipe of one's own."""
    try:
        return load_recipe(recipes_root() / f"{record['recipe']}.yaml", "cpu").published
    except EmpatheiaError:
        return None


def _printed(row: PublishedRow, record: RunRecord, task: _Task, values: Mapping[str, Value]) -> Printed | None:
    try:
        numbers = published(row.paper, row.table, row.row, row.setting, row.dataset)
    except EmpatheiaError:
        return None
    columns = {column.key: column for column in task.columns}
    cells = {}
    for metric, number in numbers.items():
        definition = DEFINITIONS.get((row.paper, metric))
        column = columns.get(definition[0]) if isinstance(definition, tuple) else None
        if column is None or not isinstance(definition, tuple):
            continue
        verdict = _verdict(metric, number, column, values.get(column.key))
        shown = in_unit(number.value, definition[1], column.unit)
        cells[column.key] = (_shown(number, definition[1], column.unit), shown, verdict)
    table = row.table if not row.table.isdigit() else f"Table {row.table}"
    dataset = f", {row.dataset}" if row.dataset else ""
    return Printed(f"{row.paper}, {table}, {row.row}{dataset}", cells) if cells else None


def _verdict(metric: str, number: Published, column: Column, ours: Value | None) -> str:
    if ours is None:
        return "not measured by this run"
    score = Score(column.key, ours.value, column.unit, max(ours.n, 1), column.higher_is_better, None, ours.signature)
    (verdict,) = compare([score], {metric: number})
    return verdict.verdict


def _shown(number: Published, unit: str, wanted: str) -> str:
    if unit == wanted:
        return str(number)
    shift = 2 if wanted == "percent" else -2
    decimals = max(0, number.decimals - shift)
    spread = "" if number.std is None else f" ± {in_unit(number.std, unit, wanted):.{decimals}f}"
    return f"{in_unit(number.value, unit, wanted):.{decimals}f}{spread}"


def _responder_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    scores = measured_of(record).by_key()
    if any(key in scores for key in ("ppl_word", "ppl_token", "bleu_nltk_4", "bleu_avg", "p_at_1_100")):
        yield _row(record, task, _values(task, scores.get))


def _classifier_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    scores = measured_of(record).by_key()
    if "calibration_error_before" in scores:
        yield _row(record, task, _values(task, scores.get))


def _fold_rows(kind: str) -> Callable[[RunRecord, _Task], Iterator[Row]]:
    """Rows of RECCON's folds, one for each threshold."""

    def rows(record: RunRecord, task: _Task) -> Iterator[Row]:
        measured = measured_of(record)
        folds = {fold_name(row.labels): dict(row.labels) for row in measured.rows if "fold" in row.labels}
        tuned = any(labels.get("threshold") == _TUNED for labels in folds.values())
        for name, labels in folds.items():
            if labels["of"] != kind:
                continue
            threshold = f"{measured.facts[name]['threshold']:g}"
            is_tuned = labels.get("threshold") == _TUNED
            told = labels.get("rule") or (f"{threshold} ({_TUNED})" if is_tuned else threshold)
            values = _values(task, measured.by_key(**labels).get)
            yield _row(record, task, values, labels["fold"], told, printed=is_tuned or not tuned)

    return rows


def _mechanism_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    for name in MECHANISMS:
        values = _values(task, measured_of(record).by_key(mechanism=name).get)
        if "accuracy" not in values:
            continue
        printed = EPITOME[name][EPITOME_PAPER]
        cells = {key: (f"{number:.2f}", number, "another split") for key, number in printed.items()}
        source = f"{EPITOME_PAPER}; RoBERTa-base"
        yield Row(run_name(record), record, {task.labels[0]: name}, values, Printed(source, cells))


def _word_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    measured = measured_of(record)
    for row in measured.where("cause_recall_top1"):
        values = _values(task, measured.by_key(**row.labels).get)
        yield _row(record, task, values, row.labels["set"], row.labels["method"], printed=False)


def _reaction_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    measured = measured_of(record)
    if measured.score("f1_weighted", turns="all") is None:
        return
    for turns, title in ((None, "one turn a dialogue, 2,000"), ("all", "all turns"), ("listener", "replies")):
        values = _values(task, measured.by_key(**({} if turns is None else {"turns": turns})).get)
        if values:
            yield _row(record, task, values, title, printed=turns is None)


def _focus_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    """S0, each focused system with the p-values of its coverage, and what stands beside them."""
    measured = measured_of(record)
    systems = measured.facts.get("systems")
    if not isinstance(systems, Mapping):
        return
    for name in (row.labels["system"] for row in measured.where("coverage")):
        facts = systems.get(name, {})
        scores = measured.by_key(system=name)
        others = {"p_plain": "S0"} | ({"p_random": f"random{name.removeprefix(facts['kind'])}"} if facts else {})
        for key, other in others.items():
            if test := measured.test("coverage", other, system=name):
                scores[key] = _p_value(key, test)
        yield _row(record, task, _values(task, scores.get), name, printed=False)


def _listener_rows(record: RunRecord, task: _Task) -> Iterator[Row]:
    """The whole listener, each variant with the p-values of its difference, and what stands beside them."""
    measured = measured_of(record)
    if not isinstance(measured.facts.get("variants"), Mapping):
        return
    baseline = measured.facts.get("baseline")
    for name in (row.labels["variant"] for row in measured.where("coverage")):
        scores = measured.by_key(variant=name)
        for column in task.columns:
            metric, _, against = column.key.removeprefix("p_").partition(" against ")
            if not column.key.startswith("p_"):
                continue
            if test := measured.test(metric, baseline if against == "baseline" else "whole", variant=name):
                scores[column.key] = _p_value(column.key, test)
        yield _row(record, task, _values(task, scores.get), name, printed=False)


def _p_value(key: str, test: ComparisonRecord) -> Score:
    signature = f"method:{test['method']}|resamples:{test['n_resamples']}"
    return Score(key, test["p_value"], "p", test["n"], None, signature=signature)


_ROWS: Mapping[str, Callable[[RunRecord, _Task], Iterator[Row]]] = {
    "responders": _responder_rows,
    "perceive": _classifier_rows,
    "turns": _fold_rows("pairs"),
    "spans": _fold_rows("spans"),
    "words": _word_rows,
    "mechanisms": _mechanism_rows,
    "reactions": _reaction_rows,
    "focus": _focus_rows,
    "listener": _listener_rows,
}
"""By task: how rows are made of a record."""


@cache
def _tasks() -> tuple[_Task, ...]:
    """The tasks of ``record_tables.yaml``."""
    tasks = []
    for entry in yaml.load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"), YAML_LOADER):
        columns = (each for column in entry["columns"] for each in column.items())
        read = tuple(Column(key, facts) if isinstance(facts, str) else Column(key, **facts) for key, facts in columns)
        key = entry["key"]
        tasks.append(_Task(key, entry["title"], entry["lead"], read, _ROWS[key], tuple(entry["labels"])))
    return tuple(tasks)
