"""Every part of understanding a speaker: our recorded score with its interval, the published one, and our aim.

Scores come from the run records of a results folder and from nowhere else; a part without a record names the command
that makes it. Published figures stand in ``metrics/published_results.csv`` where a paper of the collection printed
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from empatheia.errors import DataError
from empatheia.metrics.mechanisms import EPITOME_PAPER
from empatheia.metrics.mechanisms import EPITOME_PUBLISHED as EPITOME
from empatheia.metrics.published import published
from empatheia.metrics.records import RunRecord, measured_of, read_records
from empatheia.metrics.rows import Measured, fold_name
from empatheia.metrics.score import Score
from empatheia.taxonomy import MECHANISMS

_TUNED_PAIRS = {"fold": "1", "of": "pairs", "threshold": "tuned on valid"}
_RULE_PAIRS = {"fold": "1", "of": "pairs", "rule": "this turn and the one before"}
_PUBLISHED_SPANS = {"fold": "1", "of": "spans", "threshold": "0"}
_TUNED_SPANS = {**_PUBLISHED_SPANS, "threshold": "tuned on valid"}
Found = tuple[float, tuple[float, float] | None, int, str]
"""Value and interval in percent, items, remark."""


@dataclass(frozen=True, slots=True)
class Part:
    """One line of the table.

    Attributes:
        task: What is asked of the model.
        metric: What is measured, in percent.
        recipe: Whose records are read, without the size.
        others: Recipes that answer the same question; they are listed if they were run.
        find: The score among those of a record; None where the record has none.
        published: The printed figure in percent, or None.
        by: The model that printed figure belongs to.
        aim: What we want to reach, in percent; None = as stated in ``task``.
    """

    task: str
    metric: str
    recipe: str
    find: Callable[[Measured], Found | None]
    published: float | None
    by: str
    aim: float | None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """A part beside one of its records, or beside none.

    Attributes:
        task, metric, published, by, aim: See :class:`Part`; percent.
        recipe: The recipe.
        size, seed: Of the run, or None.
        value: Ours, percent, or None.
        interval: 95 % bootstrap interval, percent, or None.
        n: Items measured.
        is_reached: Ours is at or above the aim; None if one of them is missing.
        remark: What to know beside it; for a missing run the command that makes it.
    """

    task: str
    metric: str
    recipe: str
    size: str | None
    seed: int | None
    value: float | None
    interval: tuple[float, float] | None
    n: int
    published: float | None
    by: str
    aim: float | None
    is_reached: bool | None
    remark: str

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


def _score(metric: str, remark: str = "", **labels: str) -> Callable[[Measured], Found | None]:
    def find(measured: Measured) -> Found | None:
        score = measured.score(metric, **labels)
        return None if score is None else _percent(score, remark)

    return find


def _pair_score(metric: str) -> Callable[[Measured], Found | None]:
    """Of fold 1, at the threshold chosen on valid, or by the best rule of position."""

    def find(measured: Measured) -> Found | None:
        score = measured.score(metric, **_TUNED_PAIRS)
        if score is None:
            rule = measured.score(metric, **_RULE_PAIRS)
            return None if rule is None else _percent(rule, f"baseline: {_RULE_PAIRS['rule']}, no word is read")
        return _percent(score, f"threshold {measured.facts[fold_name(_TUNED_PAIRS)]['threshold']:g}, chosen on valid")

    return find


def _word_recall(k: int, place: str = "reccon words") -> Callable[[Measured], Found | None]:
    """The estimator's recall of RECCON's cause words; beside it the best method without word labels, and chance."""

    def find(measured: Measured) -> Found | None:
        found = {row.labels["method"]: row.score for row in measured.where(f"cause_recall_top{k}", set=place)}
        scores = {name: score for name, score in found.items() if "gold emotion" not in name}
        others = {name: score for name, score in scores.items() if not name.startswith("estimator")}
        name = f"estimator {measured.facts.get('evidence', 'repo')}"
        if name not in scores or not others:
            return None
        best = max(others, key=lambda other: others[other].value)
        remark = f"best baseline {best} {others[best].value:.1f}"
        if "random" in others and (interval := others["random"].interval):
            remark += f"; random [{interval[0]:.1f}, {interval[1]:.1f}]"
        if name == "estimator running" and "train" in place:
            remark += "; the form was chosen on train and valid"
        return _percent(scores[name], remark)

    return find


def _percent(score: Score, remark: str = "") -> Found:
    factor = 100.0 if score.unit == "fraction" else 1.0
    interval = score.interval and (factor * score.interval[0], factor * score.interval[1])
    return factor * score.value, interval, score.n, remark


def parts() -> tuple[Part, ...]:
    """The table's lines in the order of the five steps, with the published figures beside them."""
    rashkin, meed2, reccon = (partial(_printed, paper) for paper in ("rashkin2018", "meed2", "reccon"))
    out = [
        Part(
            "41 emotions and intents of an utterance",
            "accuracy",
            "meed2/emotion_intent",
            _score("accuracy"),
            meed2("text", "RoBERTa classifier", "41-class emotion/intent classifier accuracy (%)"),
            "RoBERTa-base",
            66.0,
        )
    ]
    for name, dataset, recipe, aims in (
        ("32 emotions of a situation, ED", "ED", "rashkin2018/{}", (55.0, 43.0)),
        ("32 emotions of a situation, ED-cut", "ED-cut", "rashkin2018/{}_cut", (52.0, 41.0)),
    ):
        for system, row, aim in zip(
            ("emotion_situation", "fasttext"), ("DeepMoji chain-thaw", "fastText"), aims, strict=True
        ):
            printed = rashkin("9", row, "Acc", dataset)
            out.append(Part(name, "accuracy", recipe.format(system), _score("accuracy"), printed, row, aim))
    row = "RoBERTa-base, train 1, test 1"
    for column, title, printed, aim in (
        ("positive", "positive F1", "Pos. F1", 67.1),  # three points above the rule of position
        ("macro", "macro F1", "macro F1", 78.0),
    ):
        value = reccon("subtask 2, with context", row, printed)
        find = _pair_score(f"entailment_f1_{column}")
        others = ("reccon/position",)
        out.append(Part("RECCON turns, fold 1", title, "reccon/entailment", find, value, "RoBERTa-base", aim, others))
    for column, title, aim in (("f1_pos", "F1_pos", 58.0), ("f1", "F1", 75.0)):
        value = reccon("subtask 1, with context", row, title)
        find = _span_score(column)
        others = ("reccon/span_from_annotator",)
        out.append(Part("RECCON spans, fold 1", title, "reccon/span", find, value, "RoBERTa-base", aim, others))
    for mechanism in MECHANISMS:
        others = ("shared_weighted", "shared_from_intents", mechanism.replace(" ", "_"))
        for key, title in (("accuracy", "accuracy"), ("f1_macro", "macro F1")):
            value = EPITOME[mechanism][EPITOME_PAPER][key]
            find = _score(key, "split of our own, none is published; printed figure recalled", mechanism=mechanism)
            source, names = "Sharma et al. 2020", tuple(f"epitome/{other}" for other in others)
            task = f"EPITOME, {mechanism}"
            out.append(Part(task, title, "epitome/shared", find, value, source, value - 2, names))
    for splits, place in (("test", "reccon words"), ("all splits", "reccon words, train + valid + test")):
        task, others = f"cause words of RECCON, {splits}, no word labels", ("kim2021/estimator_small",)
        for k in (1, 3, 5):
            find = _word_recall(k, place)
            out.append(Part(task, f"recall@{k}", "kim2021/estimator", find, None, "", None, others))
    value = meed2("4", "MEED2 (OS \u2192 ED)", "weighted F1", "ED test (2000 dialogs)")
    find = _score("f1_weighted", "2,000 contexts drawn the same way")
    out.append(
        Part(
            "emotion or intent of the reply to come", "weighted F1", "meed2/response_labels", find, value, "MEED2", 29.0
        )
    )
    return tuple(out)


def standings(results: Path) -> list[Standing]:
    """Every part beside each of its records; a part without any stands once, with the command to run.

    Args:
        results: Folder of run records, see :func:`~empatheia_research.training.records.keep_record`. Runs of size
            ``smoke`` are left out.

    Raises:
        DataError: There is no such folder.
    """
    if not results.is_dir():
        raise DataError(
            f"there is no folder {results} of run records; name one with --results, or make one with"
            " `empatheia train RECIPE --record results`."
        )
    by_recipe: dict[str, list[RunRecord]] = {}
    for record in read_records(results):
        if record["size"] != "smoke":
            by_recipe.setdefault(record["recipe"], []).append(record)
    return [standing for part in parts() for standing in _stand(part, by_recipe)]


def to_text(found: Sequence[Standing]) -> str:
    """The table for a terminal, percent; what was not run stands below it with its command."""
    rows = [("task", "metric", "ours", "95 % interval", "published", "aim", "", "run", "")]
    for i, s in enumerate(found):
        ours = "-" if s.value is None else f"{s.value:.2f}"
        interval = "" if s.interval is None else "[{:.2f}, {:.2f}]".format(*s.interval)
        printed = "" if s.published is None else f"{s.published:.2f} {s.by}"
        verdict = {None: "", True: "reached", False: "below"}[s.is_reached]
        aim = "" if s.aim is None else f"{s.aim:.1f}"
        run, remark = (f"{s.recipe} {s.size}-seed{s.seed}", s.remark) if s.size else (s.recipe, "not run")
        task = "" if i and found[i - 1].task == s.task else s.task
        rows.append((task, s.metric, ours, interval, printed, aim, verdict, run, remark))
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, *dict.fromkeys(s.remark for s in found if s.size is None)])


def _stand(part: Part, by_recipe: Mapping[str, Sequence[RunRecord]]) -> Iterator[Standing]:
    common = (part.published, part.by, part.aim)
    records = [record for recipe in (part.recipe, *part.others) for record in by_recipe.get(recipe, ())]
    found = [(record, score) for record in records if (score := part.find(measured_of(record))) is not None]
    for record, (value, interval, n, remark) in found:
        is_reached = None if part.aim is None else value >= part.aim
        run = (record["recipe"], record["size"], record["seed"])
        yield Standing(part.task, part.metric, *run, value, interval, n, *common, is_reached, remark)
    if not found:
        todo = f"to run: empatheia train recipes/{part.recipe}.yaml --size cpu --record results"
        yield Standing(part.task, part.metric, part.recipe, None, None, None, None, 0, *common, None, todo)


def _span_score(column: str) -> Callable[[Measured], Found | None]:
    """As the released script counts, at its null threshold 0; beside it SQuAD's F1, and the threshold of valid."""

    def find(measured: Measured) -> Found | None:
        nested = f"span_{column}_nested"
        score, plain = (measured.score(metric, **_PUBLISHED_SPANS) for metric in (nested, f"span_{column}"))
        chosen = measured.score(nested, **_TUNED_SPANS)
        if score is None or plain is None:
            return None
        remark = f"threshold 0, as published; SQuAD F1 {plain.value:.1f}"
        if chosen is not None:
            threshold = measured.facts[fold_name(_TUNED_SPANS)]["threshold"]
            remark += f"; at {threshold:g}, chosen on valid, {chosen.value:.1f}"
        return _percent(score, remark)

    return find


def _printed(paper: str, table: str, row: str, metric: str, dataset: str = "") -> float:
    """A printed number in percent."""
    number = published(paper, table, row, dataset=dataset)[metric]
    return number.value if number.value > 1 else round(100 * number.value, 2)
