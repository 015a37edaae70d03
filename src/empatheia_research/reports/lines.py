"""One printed number beside a run of ours, or beside none: value, tolerance, verdict, and why it was missed."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from empatheia.metrics.published import AT_ROW_SIZE, DEFINITIONS, Published, Verdict, compare
from empatheia.metrics.records import RunRecord, measured_of
from empatheia.metrics.score import Score
from empatheia_research.reports.differences import Why, why_of
from empatheia_research.reports.targets import Reason, Target, reason_of

PAPER_SEEDS: Mapping[str, tuple[int, ...]] = MappingProxyType({"gao2021": (1024, 2048, 3170, 4096, 5120)})
"""Seeds of papers that print a mean over several runs."""
CANDIDATES: Mapping[str, str] = MappingProxyType({"candidates=ED": "own", "candidates=ED+DD": "own+dailydialog"})
"""Printed sets of candidates, as ``data.candidates`` of a recipe calls them."""
AS_PUBLISHED = ("0", "0.5")
"""RECCON's thresholds in print: of spans, of pairs."""
_RUN_OF_PAPER = re.compile(r"run (\d) of 5")
_TEST_FOLD = re.compile(r"test (\d)$")
_Thing = TypeVar("_Thing")


@dataclass(frozen=True, slots=True)
class Line:
    """A printed number beside a run of a recipe, or beside none.

    Attributes:
        number: What was printed.
        recipe: The recipe whose run it is; empty where no recipe answers the number.
        size: Of the run; empty where there is none.
        seeds: Of the runs the value is the mean of.
        variant: What distinguishes several scores of one run, e.g. the threshold; or empty.
        verdict: Ours beside the printed number; None without a run.
        deviation: Sample deviation over seeds, in the unit of print, or None.
        reason: Why there is no recipe, or None.
        marks: Numbers of the notes that belong to it, from 1.
        why: What is known of a difference beyond the tolerance; None where there is none.
    """

    number: Published
    recipe: str = ""
    size: str = ""
    seeds: tuple[int, ...] = ()
    variant: str = ""
    verdict: Verdict | None = None
    deviation: float | None = None
    reason: Reason | None = None
    marks: tuple[int, ...] = ()
    why: Why | None = None

    @property
    def run(self) -> str:
        """Recipe, size, seeds and variant in words; empty without a run."""
        if self.verdict is None:
            return ""
        seeds = f"seed{'s' if len(self.seeds) > 1 else ''} {', '.join(map(str, self.seeds))}"
        return f"{self.recipe} {self.size}, {seeds}" + (f"; {self.variant}" if self.variant else "")

    @property
    def difference(self) -> float | None:
        """Ours less the printed value; None without a run, or where the two do not compare."""
        return None if self.verdict is None or math.isnan(self.verdict.difference) else self.verdict.difference

    @property
    def is_inside(self) -> bool | None:
        """Whether the printed value lies in our interval; None without one, or where the two do not compare."""
        if self.verdict is None or self.verdict.interval is None or self.difference is None:
            return None
        low, high = self.verdict.interval
        return low <= self.number.value <= high

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "row": self.number.row,
            "dataset": self.number.dataset,
            "setting": self.number.setting,
            "metric": self.number.metric,
            "published": self.number.value,
            "published_std": self.number.std,
            "recipe": self.recipe or None,
            "size": self.size or None,
            "seeds": list(self.seeds),
            "variant": self.variant or None,
            **self._verdict_dict(),
            "why": None if self.why is None else self.why.text,
            "shown_by": None if self.why is None else self.why.shown_by or None,
            "reason": None if self.reason is None else {"kind": self.reason.kind, "text": self.reason.text},
            "recipe_to_come": None if self.reason is None else self.reason.recipe or None,
            "notes": list(self.marks),
        }

    def _verdict_dict(self) -> dict[str, Any]:
        """Ours beside the printed number; None in every place without a run."""
        verdict = self.verdict
        if verdict is None:
            names = ("ours", "interval", "std", "difference", "tolerance", "tolerance_rule", "verdict", "reached")
            return dict.fromkeys((*names, "published_in_interval", "score"))
        return {
            "ours": None if math.isnan(verdict.ours) else verdict.ours,
            "interval": None if verdict.interval is None else list(verdict.interval),
            "std": self.deviation,
            "difference": self.difference,
            "tolerance": None if verdict.tolerance is None else verdict.tolerance.value,
            "tolerance_rule": None if verdict.tolerance is None else verdict.tolerance.rule,
            "verdict": verdict.verdict,
            "reached": verdict.is_reached if verdict.is_comparable else None,
            "published_in_interval": self.is_inside,
            "score": verdict.score or None,
        }


def row_of(number: Published) -> tuple[str, str, str]:
    """What one row of print is: its settings that print different metrics are one row."""
    setting = number.setting if _RUN_OF_PAPER.search(number.setting) else ""
    return number.row, number.dataset, setting


def grouped(things: Iterable[_Thing], key: Callable[[_Thing], Any]) -> dict[Any, list[_Thing]]:
    """Things with the same key together, in the order in which the keys are met."""
    out: dict[Any, list[_Thing]] = {}
    for thing in things:
        out.setdefault(key(thing), []).append(thing)
    return out


def seeds_of(number: Published) -> tuple[int, ...]:
    """The one seed a printed single run belongs to; empty where any seed will do."""
    found = _RUN_OF_PAPER.search(number.setting)
    return (PAPER_SEEDS[number.paper][int(found.group(1)) - 1],) if found else ()


def lines_of_row(
    numbers: Sequence[Published], found: Sequence[Target], by_recipe: Mapping[str, Sequence[RunRecord]]
) -> Iterator[Line]:
    """Lines of one printed row: first every run, then what no run measured."""
    with_run: set[Published] = set()
    for target in found:
        own = by_recipe.get(target.recipe, ())
        for of_size in grouped(own, lambda record: record["size"]).values():
            measured = [(n, _by_variant(n, of_size)) for n in numbers if target.answers(n)]
            for variant in dict.fromkeys(v for _, variants in measured for v in variants):
                for number, variants in measured:
                    with_run.add(number)
                    yield _line(number, target, of_size, variant, variants.get(variant, ()))
    yield from (_line_without_run(number, found) for number in numbers if number not in with_run)


def _line_without_run(number: Published, found: Sequence[Target]) -> Line:
    """With the first recipe that answers the number, or the reason why there is none."""
    target = next((target for target in found if target.answers(number)), None)
    return Line(number, reason=reason_of(number)) if target is None else Line(number, target.recipe)


def _by_variant(number: Published, records: Iterable[RunRecord]) -> dict[str, list[tuple[RunRecord, Score]]]:
    out: dict[str, list[tuple[RunRecord, Score]]] = {}
    for record in records:
        if record["seed"] in (seeds_of(number) or (record["seed"],)):
            for variant, score in scores_for(record, number):
                out.setdefault(variant, []).append((record, score))
    return out


def _line(
    number: Published,
    target: Target,
    records: Sequence[RunRecord],
    variant: str,
    measured: Sequence[tuple[RunRecord, Score]],
) -> Line:
    """A number beside the runs of one recipe and size; without a score of that variant it is told as not measured."""
    size, used = records[0]["size"], [record for record, _ in measured] or list(records)
    scores, deviation = [in_print(number, score) for _, score in measured], None
    if len(scores) > 1:
        values = [score.value for score in scores]
        scores = [replace(scores[0], value=statistics.fmean(values), interval=None)]
        deviation = statistics.stdev(values)
    doubt = _not_the_same(target, used, variant)
    (verdict,) = compare(scores[:1], {number.metric: number}, {number.metric: doubt} if doubt and scores else {})
    line = Line(number, target.recipe, size, tuple(r["seed"] for r in used), variant, verdict, deviation)
    return replace(line, why=why_of(number, verdict, target, used))


def in_print(number: Published, score: Score) -> Score:
    """A score in the unit of the printed number, where that is percent or fraction."""
    unit = DEFINITIONS[number.paper, number.metric][1]
    return score.in_unit(unit) if {unit, score.unit} <= {"percent", "fraction"} else score


def _not_the_same(target: Target, records: Sequence[RunRecord], variant: str) -> str:
    """Why a run's value is another number than the printed one although its score is defined the same; or nothing."""
    size = records[0]["size"]
    if size in ("smoke", "row"):
        return {"smoke": "measured on the self-written sample", "row": AT_ROW_SIZE}[size]
    if target.stands_in:
        return f"another system stands in: {target.stands_in}"
    changed = [c for record in records for c in record.get("overrides") or () if str(c).startswith("encoder=")]
    if changed:
        return f"another encoder by --set {changed[0]}"
    return "the printed threshold is another" if variant and not variant.endswith("as published") else ""


def scores_for(record: RunRecord, number: Published) -> list[tuple[str, Score]]:
    """The scores of a run that are measured as the printed number is: (variant, score).

    RECCON's rows name the fold they are tested on, and have a score at the published threshold and one at the threshold
    chosen on valid. Retrieval's rows name the candidates: ``candidates=ED`` are the corpus's own, ``candidates=ED+DD``
    DailyDialog's besides; the first set of a run has its scores without that label.
    """
    definition = DEFINITIONS.get((number.paper, number.metric))
    if not isinstance(definition, tuple):
        return []
    metric, measured = definition[0], measured_of(record)
    if fold := _TEST_FOLD.search(number.row):
        of = "spans" if metric.startswith("span_") else "pairs"
        found = measured.where(metric, fold=fold.group(1), of=of)
        return [(_threshold_name(row.labels["threshold"]), row.score) for row in found]
    labels = {}
    for part in number.setting.split("; "):
        if "=" in part:
            labels = _candidates(record, part)
    score = measured.score(metric, **labels)
    return [] if score is None else [("", score)]


def _candidates(record: RunRecord, setting: str) -> dict[str, str]:
    """The label of a score over the candidates of a printed setting; the first set of a run has none."""
    known = CANDIDATES.get(setting, setting)
    first = next(iter((record.get("data") or {}).get("candidates") or ()), None)
    return {} if known == first else {"candidates": known}


def _threshold_name(chosen: str) -> str:
    return f"threshold {chosen}, as published" if chosen in AS_PUBLISHED else f"threshold {chosen}"
