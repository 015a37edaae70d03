"""From two answers a pair to one verdict, and from verdicts to shares, intervals, a sign test and agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.agreement import CohenKappa, FleissKappa, RawAgreement
from empatheia.metrics.base import Metric
from empatheia.metrics.item_tests import mcnemar
from empatheia.metrics.significance import holm
from empatheia.reading import CsvRows, parse_json, read_text
from empatheia_people.judging.prompts import Choice

Outcome = Literal["win", "loss", "tie"]
OUTCOMES: tuple[Outcome, ...] = ("win", "loss", "tie")
MARK = "judged by a language model; not an automatic metric and not people's opinion"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one pair under one criterion, seen from system A.

    Attributes:
        outcome: ``win`` (A is better), ``loss`` or ``tie``.
        kind: ``agreed`` (both orders say so), ``contradicted`` (each order prefers another system: a tie), ``halved``
            (one order prefers a system, the other none: a tie) or ``identical`` (same reply, not asked: a tie).
    """

    outcome: Outcome
    kind: Literal["agreed", "contradicted", "halved", "identical"]


def verdict_of(a_first: Choice, b_first: Choice) -> Verdict:
    """Joins the answers of both orders.

    Args:
        a_first: What was chosen when A's reply was reply 1.
        b_first: What was chosen when B's reply was reply 1.

    Example:
        >>> verdict_of("first", "second")
        Verdict(outcome='win', kind='agreed')
        >>> verdict_of("first", "first")
        Verdict(outcome='tie', kind='contradicted')
    """
    if_a_first: dict[str, Outcome] = {"first": "win", "second": "loss", "tie": "tie"}
    if_b_first: dict[str, Outcome] = {"first": "loss", "second": "win", "tie": "tie"}
    one, other = if_a_first[a_first], if_b_first[b_first]
    if one == other:
        return Verdict(one, "agreed")
    return Verdict("tie", "halved" if "tie" in (one, other) else "contradicted")


_CHOICES: Mapping[Outcome, tuple[str, ...]] = {
    "win": ("a", "win", "1"),
    "loss": ("b", "loss", "lose", "2"),
    "tie": ("tie", "equal", "both", "neither", "same"),
}
"""What people write into a file of choices."""


class JudgedShare(Metric):
    """Share of pairs with one outcome, or wins minus losses (``net``), in percent; a model's opinion.

    Args:
        of: ``win``, ``loss``, ``tie`` or ``net``.
        judge: Model and prompt, for the signature.

    Raises:
        ConfigError: Unknown share.
    """

    unit = "percent"
    higher_is_better = None
    columns = ("win", "loss", "tie", "n_items")

    def __init__(self, of: str, judge: str = "") -> None:
        super().__init__()
        if of not in (*OUTCOMES, "net"):
            raise ConfigError(f"unknown share {of!r}; accepted: {', '.join(OUTCOMES)}, net.")
        self.of, self.judge = of, judge
        self.name = f"judged_{of}"

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Adds pairs."""
        self._append([[*(float(outcome == each) for each in OUTCOMES), 1.0] for outcome in outcomes])

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent of the pairs."""
        win, loss, tie, n = (sums[..., i] for i in range(4))
        return 100 * {"win": win, "loss": loss, "tie": tie, "net": win - loss}[self.of] / n

    def settings(self) -> Mapping[str, object]:
        """Who judged, and how inconsistent answers count."""
        return {"judge": self.judge.replace("|", "/") or "unknown", "orders": "both", "inconsistent": "tie"}


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """All pairs under one criterion, seen from system A.

    Attributes:
        criterion: Its name.
        n: Pairs with a verdict.
        counts: Pairs by outcome.
        percent: The same in percent.
        intervals: 95 % bootstrap intervals over pairs, percent, of ``win``, ``loss``, ``tie`` and ``net``; None for
            fewer than two pairs.
        net: Percent won minus percent lost.
        p_value: Two-sided exact sign test of wins against losses, ties left out; 1 where there are neither.
        p_adjusted: Holm's, over the criteria.
        kinds: How verdicts came about, see :class:`Verdict`.
        first_share: Percent of asked choices that fell on reply 1, ties left out; 50 without a bias of position, None
            if nothing was chosen.
    """

    criterion: str
    n: int
    counts: Mapping[str, int]
    percent: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float] | None]
    net: float
    p_value: float
    p_adjusted: float
    kinds: Mapping[str, int]
    first_share: float | None

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return asdict(self)


def summarise(
    verdicts: Mapping[str, Mapping[str, Verdict]],
    choices: Mapping[str, Sequence[Choice]],
    judge: str = "",
    n_resamples: int = 1000,
) -> list[CriterionResult]:
    """Results by criterion.

    Args:
        verdicts: Criterion to pair to verdict.
        choices: Criterion to all choices as they were given, for the bias of position.
        judge: Model and prompt.
        n_resamples: Of the bootstrap.

    Raises:
        DataError: A criterion has no verdict at all.
    """
    tests = {}
    for criterion, by_pair in verdicts.items():
        if not by_pair:
            raise DataError(f"no pair has a readable verdict on {criterion}; see the answers in the file of verdicts.")
        outcomes = [verdict.outcome for verdict in by_pair.values()]
        tests[criterion] = mcnemar([o == "win" for o in outcomes], [o == "loss" for o in outcomes]).p_value
    adjusted = holm(tests)
    results = []
    for criterion, by_pair in verdicts.items():
        outcomes: list[Outcome] = [verdict.outcome for verdict in by_pair.values()]
        shares, intervals = {}, {}
        for of in (*OUTCOMES, "net"):
            metric = JudgedShare(of, judge)
            metric.update(outcomes)
            score = metric.compute(n_resamples)
            shares[of], intervals[of] = score.value, score.interval
        counts = Counter(outcomes)
        places = Counter(choices.get(criterion, ()))
        chosen = places["first"] + places["second"]
        results.append(
            CriterionResult(
                criterion,
                len(outcomes),
                {outcome: counts[outcome] for outcome in OUTCOMES},
                {outcome: shares[outcome] for outcome in OUTCOMES},
                intervals,
                shares["net"],
                tests[criterion],
                adjusted[criterion],
                dict(Counter(verdict.kind for verdict in by_pair.values())),
                100 * places["first"] / chosen if chosen else None,
            )
        )
    return results


@dataclass(frozen=True, slots=True)
class HumanRating:
    """One person's choice on one pair, seen from system A."""

    pair: str
    criterion: str
    rater: str
    outcome: Outcome


def read_ratings(path: str | Path, a: str, b: str) -> list[HumanRating]:
    """People's choices: CSV with a header, or JSON lines.

    Columns: ``pair`` (as in the file of verdicts), ``choice`` (``a``, ``b``, ``tie``; or ``win``, ``loss``, seen from
    A; or the name of a system), and if there is more than one ``criterion`` (default ``overall``) and ``rater``.

    Args:
        path: The file.
        a: Name of system A.
        b: Name of system B.

    Raises:
        DataError: The file cannot be read, a column is missing, or a choice is unknown, with the line.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"no such file: {path}. Give the file of people's choices.")
    meanings: dict[str, Outcome] = {word: outcome for outcome, words in _CHOICES.items() for word in words}
    meanings |= {a.lower(): "win", b.lower(): "loss"}
    ratings = []
    seen = set()
    for line, row in _rows(path, read_text(path)):
        given = _cells(row, f"{path}:{line}")
        outcome = meanings.get(given["choice"].lower())
        if outcome is None:
            raise DataError(
                f"{path}:{line}: unknown choice {given['choice']!r:.40}; accepted: a, b, tie, win, loss, {a}, {b}."
            )
        rating = HumanRating(given["pair"], given.get("criterion") or "overall", given.get("rater") or "", outcome)
        key = (rating.pair, rating.criterion, rating.rater)
        if rating.rater and key in seen:
            raise DataError(f"{path}:{line}: rater {rating.rater!r} rates {rating.pair!r} twice on {rating.criterion}.")
        seen.add(key)
        ratings.append(rating)
    if not ratings:
        raise DataError(f"{path} holds no rating; give a file with one rating a line.")
    return ratings


def _cells(row: Mapping[str, Any], place: str) -> dict[str, str]:
    """A row's filled cells by column, with a pair and a choice among them."""
    given = {str(key).strip().lower(): str(value).strip() for key, value in row.items() if value is not None}
    if missing := [name for name in ("pair", "choice") if not given.get(name)]:
        raise DataError(f"{place}: no {missing[0]}; found columns {', '.join(given) or 'none'}.")
    return given


def _rows(path: Path, text: str) -> Iterable[tuple[int, Mapping[str, Any]]]:
    if text.lstrip("\ufeff \n").startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = parse_json(line.lstrip("\ufeff"))
            except ValueError as error:
                raise DataError(f"{path}:{number}: not valid JSON: {error}.") from None
            if not isinstance(row, dict):
                raise DataError(f"{path}:{number}: a JSON {type(row).__name__}; accepted: an object.")
            yield number, row
        return
    reader = CsvRows(text.lstrip("\ufeff"), path)
    for row in reader:
        yield reader.line_num, row


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the judge agrees with people on one criterion.

    Attributes:
        criterion: Its name.
        n: Pairs with both a verdict of the judge and people's choices.
        kappa: Cohen's, judge against what most people chose (no majority: a tie); NaN where it is undefined.
        interval: 95 % bootstrap interval over pairs, or None.
        percent: Of pairs on which they agree.
        people_kappa: Fleiss' among the people; None with fewer than two each or unequal numbers.
        people_percent: Of pairs of people who agree; None with fewer than two each.
        n_raters: Fewest and most people a pair.
    """

    criterion: str
    n: int
    kappa: float
    interval: tuple[float, float] | None
    percent: float
    people_kappa: float | None
    people_percent: float | None
    n_raters: tuple[int, int]

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; an undefined kappa becomes None."""
        record = asdict(self)
        undefined = {
            key: None for key in ("kappa", "people_kappa") if record[key] is not None and math.isnan(record[key])
        }
        return {**record, **undefined}


def agreement(
    verdicts: Mapping[str, Mapping[str, Verdict]], ratings: Sequence[HumanRating], n_resamples: int = 1000
) -> list[Agreement]:
    """The judge beside people, by criterion.

    Raises:
        DataError: No rating belongs to a judged pair.
    """
    results = []
    for criterion, by_pair in verdicts.items():
        people: dict[str, list[Outcome]] = {}
        for rating in ratings:
            if rating.criterion == criterion and rating.pair in by_pair:
                people.setdefault(rating.pair, []).append(rating.outcome)
        if not people:
            continue
        judged = [by_pair[pair].outcome for pair in people]
        common = [_majority(given) for given in people.values()]
        kappa = CohenKappa(OUTCOMES)
        kappa.update(judged, common)
        score = kappa.compute(n_resamples)
        numbers = [len(given) for given in people.values()]
        among, share = _among_people(list(people.values()))
        same = sum(one == other for one, other in zip(judged, common, strict=True))
        spread = (min(numbers), max(numbers))
        results.append(
            Agreement(
                criterion, len(people), score.value, score.interval, 100 * same / len(people), among, share, spread
            )
        )
    if not results:
        known = sorted({rating.criterion for rating in ratings})
        raise DataError(
            f"no rating belongs to a judged pair; ratings name {ratings[0].pair!r:.60} and {', '.join(known)}; pairs"
            " are named as in the file of verdicts."
        )
    return results


def _among_people(given: Sequence[list[Outcome]]) -> tuple[float | None, float | None]:
    """Fleiss' kappa and the share of agreeing pairs of people, as :class:`Agreement` has them."""
    numbers = {len(outcomes) for outcomes in given}
    if min(numbers) < 2:
        return None, None
    raw = RawAgreement()
    raw.update(list(given))
    share = raw.compute().value
    if len(numbers) > 1:
        return None, share
    fleiss = FleissKappa(len(OUTCOMES))
    fleiss.update([[outcomes.count(outcome) for outcome in OUTCOMES] for outcomes in given])
    return fleiss.compute().value, share


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    """What more than half chose; else a tie."""
    outcome, count = Counter(outcomes).most_common(1)[0]
    return outcome if 2 * count > len(outcomes) else "tie"
