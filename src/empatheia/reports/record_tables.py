"""Run records as tables, one for each task: our scores by row, and under them what the paper printed.

Every value keeps its interval, its number of items and its signature; a printed number stands in the column of the
score that measures it (``metrics.published.DEFINITIONS``), in that column's unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from empatheia.config import PublishedRow, load_recipe, recipes_root
from empatheia.errors import EmpatheiaError
from empatheia.metrics.mechanisms import EPITOME_PAPER
from empatheia.metrics.mechanisms import EPITOME_PUBLISHED as EPITOME
from empatheia.metrics.published import DEFINITIONS, Published, compare, published
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.metrics.rows import fold_name
from empatheia.metrics.score import Score
from empatheia.metrics.significance import ComparisonRecord
from empatheia.taxonomy import MECHANISMS

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
    labels: tuple[str, ...] = field(default=())


def run_name(record: RunRecord) -> str:
    """``recipe/size-seedN``, as its file in ``results/`` is called."""
    return f"{record['recipe']}/{record['size']}-seed{record['seed']}"


def tables(records: Sequence[RunRecord]) -> list[Table]:
    """The tables that have a row, in the order of the package's story; a record may be in several.

    Records that fit none stand in a last one, ``other``, with no scores but the link to all of theirs.
    """
    found, seen = [], set()
    for task in TASKS:
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


TASKS: tuple[_Task, ...] = (
    _Task(
        "responders",
        "Responders",
        "Replies to EmpatheticDialogues. Perplexities of different vocabularies are not comparable, Distinct and BLEU"
        " only under one decoding; the signatures tell.",
        (
            Column("accuracy", "emotion accuracy %"),
            Column("ppl_word", "PPL, word", "perplexity", higher_is_better=False),
            Column("ppl_token", "PPL, piece", "perplexity", higher_is_better=False),
            Column("ppl_item", "PPL, item", "perplexity", higher_is_better=False),
            Column("bleu_nltk_4", "BLEU-4 % (NLTK)", decimals=3),
            Column("bleu_corpus_2", "BLEU-2 % (corpus)"),
            Column("bleu_avg", "mean BLEU-1 to -4 %"),
            Column("bertscore_f_rescaled", "BERTScore F", "fraction", 3),
            Column("dist_corpus_1", "Distinct-1 %", decimals=3),
            Column("dist_corpus_2", "Distinct-2 %", decimals=3),
            Column("p_at_1_100", "P@1,100 %"),
            Column("cause_f1_turn", "cause F1 % (turns)"),
        ),
        _responder_rows,
    ),
    _Task(
        "perceive",
        "Perceive: emotion or intent of a text",
        "Expected calibration error before and after temperature scaling on valid.",
        (
            Column("accuracy", "accuracy %"),
            Column("accuracy_top5", "top 5 %"),
            Column("f1_weighted", "weighted F1 %"),
            Column("f1_macro", "macro F1 %"),
            Column("calibration_error_before", "ECE before %", higher_is_better=False),
            Column("calibration_error", "ECE after %", higher_is_better=False),
        ),
        _classifier_rows,
    ),
    _Task(
        "turns",
        "Explain: causal turns of RECCON",
        "Each row is a test fold at one threshold, or by a rule that reads no word: the baseline of every model here.",
        (
            Column("entailment_f1_positive", "positive F1 %"),
            Column("entailment_f1_negative", "negative F1 %"),
            Column("entailment_f1_macro", "macro F1 %"),
        ),
        _fold_rows("pairs"),
        ("fold", "threshold or rule"),
    ),
    _Task(
        "spans",
        "Explain: causal spans of RECCON",
        "The printed F1_pos and F1 are the nested ones: the released script gives 0 to an answer that neither lies"
        " inside the gold span nor holds it.",
        (
            Column("span_em_pos", "EM_pos %"),
            Column("span_f1_pos", "F1_pos %"),
            Column("span_f1_pos_nested", "F1_pos % (nested)"),
            Column("span_f1_neg", "F1_neg %"),
            Column("span_f1", "F1 %"),
            Column("span_f1_nested", "F1 % (nested)"),
        ),
        _fold_rows("spans"),
        ("fold", "threshold"),
    ),
    _Task(
        "words",
        "Explain: cause words without word labels",
        "Recall among the best 1, 3 and 5 words. Methods get the emotion they recognise unless the gold one is named;"
        " nothing is published on the set from RECCON's spans, which is ours.",
        (
            Column("cause_recall_top1", "recall@1 %"),
            Column("cause_recall_top3", "recall@3 %"),
            Column("cause_recall_top5", "recall@5 %"),
        ),
        _word_rows,
        ("set", "method"),
    ),
    _Task(
        "mechanisms",
        "React: mechanisms of empathy, EPITOME",
        "The paper's split is not released; ours has its sizes and keeps near-duplicates together.",
        (
            Column("accuracy", "accuracy %"),
            Column("f1_macro", "macro F1 %"),
            Column("rationale_f1", "rationale F1 %"),
            Column("rationale_iou_f1", "IOU F1 %"),
        ),
        _mechanism_rows,
        ("mechanism",),
    ),
    _Task(
        "reactions",
        "React: emotion or intent of the reply to come",
        "41 classes, before the reply is seen.",
        (
            Column("precision_weighted", "weighted P", "fraction", 4),
            Column("recall_weighted", "weighted R", "fraction", 4),
            Column("f1_weighted", "weighted F1", "fraction", 4),
        ),
        _reaction_rows,
        ("test turns",),
    ),
    _Task(
        "focus",
        "Focus: one responder as it is (S0) and focused on the words that caused the emotion",
        "Perplexity is that of the gold replies under the same speaker, focused as its replies are. p: two-sided paired"
        " permutation test of coverage, against S0 and against random distractors at the same alpha and beta; not"
        " corrected for several tests (the records have Holm's too). Listener: another model, asked about distractors"
        " the speaker was not focused with.",
        (
            Column("coverage", "coverage %"),
            Column("p_plain", "p, S0", "p", 4, None),
            Column("p_random", "p, random", "p", 4, None),
            Column("coverage_near", "near coverage %"),
            Column("listener_accuracy", "listener %", decimals=1),
            *(Column(name, name, "level") for name in MECHANISMS),
            Column("ppl_token", "PPL, piece", "perplexity", 1, False),
            Column("ppl_word", "PPL, word", "perplexity", 1, False),
            Column("bleu_nltk_4", "BLEU-4 % (NLTK)", decimals=3),
            Column("bleu_avg", "mean BLEU-1 to -4 %"),
            Column("dist_corpus_1", "Distinct-1 %"),
            Column("dist_corpus_2", "Distinct-2 %"),
        ),
        _focus_rows,
        ("system",),
    ),
    _Task(
        "listener",
        "The listener of five steps, whole and without each of its parts",
        "Candidates are ranked by coverage, mechanisms and the wanted intent, among others: there the whole listener is"
        " favoured by construction. The fresh listener, near coverage, BLEU and Distinct have no part in the choice."
        " p: two-sided paired permutation test against the whole (p, baseline: against the variant that the recipe"
        " calls so, the responder alone), not corrected for several tests (the records have Holm's too).",
        (
            Column("coverage", "coverage %"),
            Column("p_coverage", "p", "p", 4, None),
            Column("p_coverage against baseline", "p, baseline", "p", 4, None),
            Column("coverage_near", "near coverage %"),
            Column("p_coverage_near against baseline", "p, baseline", "p", 4, None),
            Column("listener_accuracy", "listener %", decimals=1),
            Column("p_listener_accuracy", "p", "p", 4, None),
            Column("p_listener_accuracy against baseline", "p, baseline", "p", 4, None),
            *(Column(name, name, "level") for name in MECHANISMS),
            Column("bleu_nltk_4", "BLEU-4 % (NLTK)", decimals=3),
            Column("bleu_avg", "mean BLEU-1 to -4 %"),
            Column("dist_corpus_1", "Distinct-1 %"),
            Column("dist_corpus_2", "Distinct-2 %"),
        ),
        _listener_rows,
        ("variant",),
    ),
)
