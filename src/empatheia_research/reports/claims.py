"""Differences between two rows that a paper claims, printed and ours: whether the claim held, not only a number.

Runs of size ``row`` are small, short and equal for all rows of a table: none of their values can be set beside print,
but what an ablation changes can. The same is asked of larger runs. A difference of ours is

- over seeds that both rows have, two or more: their mean paired difference, its sample deviation, and the paired t-test
  (Student), whose 95 % interval is given;
- of one run each: the difference, with the interval that the two 95 % intervals over test items make together
  (square-and-add; Zou and Donner 2008, Statistics in Medicine 27, equation 6). Rows measured on the same items are
  paired and vary less than that, so it is rather too wide; it knows nothing of other seeds.

No p-value is corrected for the number of differences that are looked at.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

from empatheia.errors import EmpatheiaError
from empatheia.metrics.item_tests import t_test
from empatheia.metrics.published import Published, read_published
from empatheia.metrics.records import RunRecord
from empatheia.metrics.score import Score, Signature
from empatheia.metrics.tolerances import is_believed
from empatheia.settings import read_package_yaml
from empatheia_research.recipes.queue import queued_anew
from empatheia_research.reports.lines import PAPER_SEEDS, in_print, scores_for
from empatheia_research.reports.targets import Target, answering, is_automatic, table_key

Outcome = Literal["held", "same sign", "other sign", "not held", "undecided in print", "not comparable", "no run"]
OUTCOMES: Mapping[Outcome, str] = MappingProxyType(
    {
        "held": "same sign as in print, and chance is ruled out",
        "same sign": "same sign as in print, within chance",
        "other sign": "other sign than in print, within chance",
        "not held": "other sign than in print, and chance is ruled out",
        "undecided in print": "the printed difference is within its own spread",
        "not comparable": "measured on other things",
        "no run": "one of the rows has no run of this size",
    }
)
"""What became of a claimed difference."""
SIZES = ("full", "cpu", "row")
"""In which claims are looked at, the largest first."""
SAME_ROW = "the same row"
UNMEASURED = "not measured by one of them"
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles .975 of Student's t with 1 to 10 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Two printed rows that a paper sets beside each other, by one metric.

    Attributes:
        says: The claim, in words.
        number: Of the row that is said to differ.
        against: Of the other row: same metric, same test set.
    """

    says: str
    number: Published
    against: Published

    @property
    def printed(self) -> float:
        """The printed difference."""
        return self.number.value - self.against.value

    @property
    def printed_margin(self) -> float:
        """A printed difference of at most this says nothing.

        From printed deviations of both rows over the paper's seeds (half of the 95 % interval of an unpaired t-test),
        or else one unit of the last digit.
        """
        own = (self.number, self.against)
        n = len(PAPER_SEEDS.get(self.number.paper, ()))
        believed = [one.std for one in own if one.std is not None and is_believed(one.value, one.std)]
        if n > 1 and len(believed) == len(own):
            return _t(2 * (n - 1)) * math.sqrt(sum(std**2 for std in believed) / n)
        return 10.0**-self.number.decimals + 1e-9


@dataclass(frozen=True, slots=True)
class Compared:
    """A claimed difference beside ours.

    Attributes:
        claim: What is claimed.
        size: Of our runs.
        outcome: See :data:`OUTCOMES`.
        recipes: Of the row and of the other one; empty strings where none answers.
        seeds: That both rows have; or one of each where they have none in common.
        ours: Our difference in the unit of print; NaN without one.
        interval: 95 %, or None.
        deviation: Sample deviation over seeds of the paired difference, or None.
        p_value: Of the paired t-test over seeds, two-sided, or None.
        why: What keeps the two from being compared; or empty.
    """

    claim: Claim
    size: str
    outcome: Outcome
    recipes: tuple[str, str] = ("", "")
    seeds: tuple[int, ...] = ()
    ours: float = math.nan
    interval: tuple[float, float] | None = None
    deviation: float | None = None
    p_value: float | None = None
    why: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether both rows have a run that measured the metric."""
        return self.outcome != "no run" and self.why != UNMEASURED

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        number = self.claim.number
        return {
            "claim": self.claim.says,
            "row": number.row,
            "against": self.claim.against.row,
            "against_table": self.claim.against.table,
            "dataset": number.dataset,
            "setting": number.setting,
            "metric": number.metric,
            "published_difference": round(self.claim.printed, number.decimals),
            "published_margin": self.claim.printed_margin,
            "size": self.size,
            "recipes": list(self.recipes),
            "seeds": list(self.seeds),
            "difference": None if math.isnan(self.ours) else self.ours,
            "interval": None if self.interval is None else list(self.interval),
            "std": self.deviation,
            "p_value": self.p_value,
            "outcome": self.outcome,
            "why": self.why or None,
        }


def claims_of(key: str) -> list[Claim]:
    """The claims of a printed table, number by number.

    Args:
        key: See :func:`empatheia_research.reports.targets.tables`.
    """
    return [claim for claim in _claims() if table_key(claim.number) == key]


def compared(claims: Iterable[Claim], targets: Sequence[Target], records: Sequence[RunRecord]) -> Iterator[Compared]:
    """Every claim at every size for which both rows have a run; without any, once without a run.

    Args:
        claims: From :func:`claims_of`.
        targets: From :func:`empatheia_research.reports.targets.read_targets`. Of several recipes of a row the first
            counts that has a run, a recipe of another system never does.
        records: Of runs. One of an earlier recipe that is queued anew does not count.
    """
    usable = [record for record in records if not queued_anew(record)]
    for claim in claims:
        found = [compare_at(claim, targets, usable, size) for size in SIZES]
        with_runs = [one for one in found if one.outcome != "no run"]
        yield from with_runs or found[-1:]


def compare_at(claim: Claim, targets: Sequence[Target], records: Sequence[RunRecord], size: str) -> Compared:
    """A claim by the runs of one size."""
    one, other = (_scores(number, targets, records, size) for number in (claim.number, claim.against))
    recipes = (one[0], other[0])
    if not (one[1] and other[1]):
        is_run = all(_has_run(recipe, records, size) for recipe in recipes)
        return Compared(claim, size, "not comparable" if is_run else "no run", recipes, why=UNMEASURED * is_run)
    common = sorted(one[1].keys() & other[1].keys())
    if common:
        pairs = [(one[1][seed], other[1][seed]) for seed in common]
    else:
        common = [next(iter(one[1])), next(iter(other[1]))]
        pairs = [(one[1][common[0]], other[1][common[1]])]
    if why := next(filter(None, (_not_the_same(*pair) for pair in pairs)), ""):
        return Compared(claim, size, "not comparable", recipes, tuple(common), why=why)
    ours, interval, deviation, p_value = _difference(pairs)
    outcome = _outcome(claim, ours, interval)
    return Compared(claim, size, outcome, recipes, tuple(common), ours, interval, deviation, p_value)


def _has_run(recipe: str, records: Iterable[RunRecord], size: str) -> bool:
    return any((record["recipe"], record["size"]) == (recipe, size) for record in records)


def _scores(
    number: Published, targets: Sequence[Target], records: Sequence[RunRecord], size: str
) -> tuple[str, dict[int, Score]]:
    """The recipe whose runs measure a number at a size, and seed to score."""
    recipes = [target.recipe for target in answering(number, targets) if not target.stands_in]
    for recipe in recipes:
        found = {}
        for record in records:
            if (record["recipe"], record["size"]) == (recipe, size) and (scores := scores_for(record, number)):
                found[int(record["seed"])] = in_print(number, scores[0][1])
        if found:
            return recipe, found
    return next(iter(recipes), ""), {}


def _not_the_same(one: Score, other: Score) -> str:
    """Why two scores cannot be subtracted; or nothing."""
    if math.isnan(one.value) or math.isnan(other.value):
        return "one of the values is undefined"
    signatures = [Signature.parse(score.signature).values for score in (one, other)]
    refs, pieces = ([signature.get(key) for signature in signatures] for key in ("refs", "tok"))
    if one.n != other.n or (None not in refs and refs[0] != refs[1]):
        return f"other test items ({one.n:,} and {other.n:,})"
    if one.name.startswith("ppl_") and pieces[0] != pieces[1]:
        return f"over other pieces ({pieces[0]} and {pieces[1]})"
    return ""


def _difference(
    pairs: Sequence[tuple[Score, Score]],
) -> tuple[float, tuple[float, float] | None, float | None, float | None]:
    """Mean difference, its interval, its deviation over seeds and the p-value of the paired test."""
    differences = [one.value - other.value for one, other in pairs]
    mean = statistics.fmean(differences)
    if len(pairs) == 1:
        return mean, together(*pairs[0]), None, None
    deviation = statistics.stdev(differences)
    half = _t(len(pairs) - 1) * deviation / math.sqrt(len(pairs))
    try:
        p_value = t_test([one.value for one, _ in pairs], [other.value for _, other in pairs], "paired").p_value
    except EmpatheiaError:  # scipy is not here, or the values do not vary
        p_value = None
    return mean, (mean - half, mean + half), deviation, p_value


def together(one: Score, other: Score) -> tuple[float, float] | None:
    """The interval of a difference from the intervals of its parts (square-and-add); None if one has none."""
    if one.interval is None or other.interval is None:
        return None
    difference = one.value - other.value
    low = math.hypot(one.value - one.interval[0], other.interval[1] - other.value)
    high = math.hypot(one.interval[1] - one.value, other.value - other.interval[0])
    return difference - low, difference + high


def _t(degrees: int) -> float:
    return T_95[min(degrees, len(T_95)) - 1]


def _outcome(claim: Claim, ours: float, interval: tuple[float, float] | None) -> Outcome:
    if abs(claim.printed) <= claim.printed_margin:
        return "undecided in print"
    is_sure = interval is not None and (interval[0] > 0 or interval[1] < 0)
    if ours * claim.printed > 0:
        return "held" if is_sure else "same sign"
    return "not held" if is_sure else "other sign"


@cache
def _claims() -> tuple[Claim, ...]:
    entries = read_package_yaml(__file__, "claims.yaml")
    return tuple(claim for entry in entries for claim in _claims_of_entry(entry))


def _claims_of_entry(entry: Mapping[str, Any]) -> Iterator[Claim]:
    rows, others = ([value] if isinstance(value, str) else value for value in (entry["row"], entry["against"]))
    table, other_table = entry["table"], entry.get("against_table", entry["table"])
    for row, other in product(rows, others):
        partners = _numbers(entry["paper"], other_table, row if other == SAME_ROW else other)
        against = {_kind(number): number for number in partners}
        for number in _numbers(entry["paper"], table, row):
            if (partner := against.get(_kind(number))) is not None:
                yield Claim(entry["says"], number, partner)


def _numbers(paper: str, table: str, row: str) -> list[Published]:
    own = [n for n in read_published() if (n.paper, n.table, n.row) == (paper, table, row)]
    return [number for number in own if is_automatic(number)]


def _kind(number: Published) -> tuple[str, str, str]:
    """What two numbers of a claim have in common: metric, test set, and (Rashkin et al.) the set of candidates."""
    candidates = next((part for part in number.setting.split("; ") if part.startswith("candidates=")), "")
    return number.metric, number.dataset, candidates
