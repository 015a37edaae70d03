"""Comparisons of two systems at a time: wins, sign tests, ratios, and strengths over all pairs.

Sources: sign test, ties left out; ratio of Rashkin et al. (2019), times A was chosen over times B; Bradley and Terry
(1952), fitted by Hunter's (2004) minorisation, a tie as half a win of each.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from empatheia.metrics.base import bootstrap_weights, quantiles
from empatheia.metrics.item_tests import mcnemar
from empatheia.metrics.significance import holm
from empatheia_people.studies.sheets import Answer

N_RESAMPLES = 1000
_STEPS, _CLOSE = 500, 1e-9


@dataclass(frozen=True, slots=True)
class PairResult:
    """All judgements of one pair under one criterion, seen from A.

    Attributes:
        criterion: Name of the question.
        a, b: The systems.
        wins, losses, both, neither: Judgements.
        rate: Wins as a share of the judgements that chose one, in percent; NaN without any.
        interval: 95 %, dialogues drawn as a whole; None for fewer than two.
        p_value: Two-sided exact sign test; 1 without any choice.
        p_adjusted: Holm's, over the pairs of a criterion.
        ratio: Wins over losses; infinite without losses, NaN without either.
        smooth_ratio: The same with half a choice added to each side.
    """

    criterion: str
    a: str
    b: str
    wins: int
    losses: int
    both: int
    neither: int
    rate: float
    interval: tuple[float, float] | None
    p_value: float
    p_adjusted: float
    ratio: float
    smooth_ratio: float

    @property
    def effect(self) -> float:
        """Rank-biserial correlation of matched pairs (Kerby 2014): wins minus losses as a share of both, -1 to 1."""
        return self.rate / 50 - 1

    @property
    def effect_interval(self) -> tuple[float, float] | None:
        """95 %, dialogues drawn as a whole."""
        return None if self.interval is None else (self.interval[0] / 50 - 1, self.interval[1] / 50 - 1)

    @property
    def n(self) -> int:
        """Judgements."""
        return self.wins + self.losses + self.both + self.neither

    def percent(self) -> tuple[float, float, float]:
        """Win, loss and tie (both or neither), as printed by Gao et al. and Chen et al."""
        return (
            100 * self.wins / self.n,
            100 * self.losses / self.n,
            100 * (self.both + self.neither) / self.n,
        )

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; what is undefined or infinite becomes None."""
        record = asdict(self) | {"effect": self.effect, "effect_interval": self.effect_interval}
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in record.items()
        }


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact p-value of wins against losses; 1 where there are neither.

    >>> round(sign_test(99, 88), 2)
    0.46
    """
    return mcnemar([True] * wins + [False] * losses, [False] * wins + [True] * losses).p_value if wins + losses else 1.0


def pair_results(answers: Iterable[Answer], n_resamples: int = N_RESAMPLES) -> list[PairResult]:
    """Results of every criterion and pair.

    Args:
        answers: Those of pairs; all others are passed over.
        n_resamples: Of the bootstrap over dialogues.
    """
    found: dict[str, dict[tuple[str, str], dict[str, Counter[str]]]] = defaultdict(lambda: defaultdict(dict))
    for answer in answers:
        if answer.is_pair:
            pair, value = _in_order(answer)
            found[answer.criterion][pair].setdefault(answer.item, Counter())[value] += 1
    results = []
    for criterion, by_pair in found.items():
        tests = {}
        for pair, by_item in by_pair.items():
            total = sum(by_item.values(), Counter())
            tests["\n".join(pair)] = sign_test(total["first"], total["second"])
        adjusted = holm(tests)
        for pair, by_item in by_pair.items():
            key = "\n".join(pair)
            results.append(_pair_result(criterion, pair, by_item, tests[key], adjusted[key], n_resamples))
    return results


def _in_order(answer: Answer) -> tuple[tuple[str, str], str]:
    """Pairs are named in one order throughout, and sides with them."""
    one, other = answer.systems
    if one <= other:
        return (one, other), answer.value
    return (other, one), {"first": "second", "second": "first"}.get(answer.value, answer.value)


def _pair_result(
    criterion: str,
    pair: tuple[str, str],
    by_item: Mapping[str, Counter[str]],
    p_value: float,
    p_adjusted: float,
    n_resamples: int,
) -> PairResult:
    table = np.array([[c["first"], c["second"]] for c in by_item.values()], dtype=np.float64)
    total = sum(by_item.values(), Counter())
    wins, losses = total["first"], total["second"]
    interval = None
    if len(table) > 1 and wins + losses:
        sums = np.concatenate([weights @ table for weights in bootstrap_weights(len(table), n_resamples, 0)])
        decided = sums.sum(axis=1)
        interval = quantiles(100 * sums[decided > 0, 0] / decided[decided > 0], 0.95)
    rate = 100 * wins / (wins + losses) if wins + losses else math.nan
    ratio = wins / losses if losses else (math.inf if wins else math.nan)
    smooth = (wins + 0.5) / (losses + 0.5)
    counts = (wins, losses, total["both"], total["neither"])
    return PairResult(criterion, *pair, *counts, rate, interval, p_value, p_adjusted, ratio, smooth)


@dataclass(frozen=True, slots=True)
class Strength:
    """A system's place on one scale.

    Attributes:
        system: Its name.
        log_strength: Natural logarithm of its Bradley-Terry strength; the mean over systems is 0.
        interval: 95 %, dialogues drawn as a whole; None where it cannot be drawn.
        chance: Of being preferred to an average opponent, ties as half, in percent.
    """

    system: str
    log_strength: float
    interval: tuple[float, float] | None
    chance: float


def strengths(answers: Iterable[Answer], criterion: str, n_resamples: int = 200) -> list[Strength]:
    """Bradley-Terry strengths, the strongest first; empty for fewer than three systems.

    Half a win is added to both sides of every pair that was compared, which keeps strengths finite.

    Args:
        answers: Those of pairs under the criterion count.
        criterion: Name of the question.
        n_resamples: Of the bootstrap over dialogues.
    """
    by_item = _wins(answers, criterion)
    names = sorted({name for wins in by_item.values() for pair in wins for name in pair})
    if len(names) < 3:
        return []
    place = {name: i for i, name in enumerate(names)}
    table = np.zeros((len(by_item), len(names), len(names)))
    for row, wins in zip(table, by_item.values(), strict=True):
        for (one, other), n in wins.items():
            row[place[one], place[other]] += n
    prior = np.where((table + table.transpose(0, 2, 1)).sum(axis=0) > 0, 0.5, 0.0)
    logs = bradley_terry(table.sum(axis=0) + prior)
    drawn = np.array(
        [
            bradley_terry(np.tensordot(weights, table, axes=1) + prior)
            for chunk in bootstrap_weights(len(table), n_resamples, 0)
            for weights in chunk
        ]
    )
    out = []
    for name, i in place.items():
        others = [j for j in range(len(names)) if j != i]
        chance = float(np.mean([1 / (1 + math.exp(logs[j] - logs[i])) for j in others]))
        out.append(Strength(name, float(logs[i]), quantiles(drawn[:, i], 0.95), 100 * chance))
    return sorted(out, key=lambda strength: -strength.log_strength)


def _wins(answers: Iterable[Answer], criterion: str) -> dict[str, dict[tuple[str, str], float]]:
    """How often each item's first of two systems won against its second, ties as half."""
    by_item: dict[str, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
    for answer in answers:
        if answer.is_pair and answer.criterion == criterion:
            one, other = answer.systems
            share = {"first": 1.0, "second": 0.0}.get(answer.value, 0.5)
            by_item[answer.item][one, other] += share
            by_item[answer.item][other, one] += 1 - share
    return by_item


def bradley_terry(wins: np.ndarray) -> np.ndarray:
    """Logarithms of strengths that make the wins most probable; their mean is 0.

    Args:
        wins: How often the row's system won against the column's. Shape: (n_systems, n_systems).

    Returns:
        Shape: (n_systems,).

    Example:
        >>> strengths = bradley_terry(np.array([[0, 30], [10, 0]]))
        >>> round(float(np.exp(strengths[0] - strengths[1])), 6)
        3.0
    """
    games = wins + wins.T
    won = wins.sum(axis=1)
    strength = np.ones(len(wins))
    for _ in range(_STEPS):
        sums = (games / (strength[:, None] + strength[None, :])).sum(axis=1)
        new = np.divide(won, sums, out=np.ones_like(won, dtype=np.float64), where=sums > 0)
        new /= np.exp(np.log(np.maximum(new, 1e-12)).mean())
        is_close = bool(np.abs(new - strength).max() < _CLOSE)
        strength = new
        if is_close:
            break
    return np.log(np.maximum(strength, 1e-12))


def agreement_units(answers: Sequence[Answer]) -> dict[str, list[list[str]]]:
    """What raters said of the same thing, by criterion: units of agreement."""
    units: dict[str, dict[tuple[Any, ...], list[str]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        if answer.is_pair:
            pair, value = _in_order(answer)
            units[answer.criterion][answer.item, pair].append(value)
        else:
            units[answer.criterion][answer.item, answer.systems, answer.card].append(answer.value)
    return {criterion: list(found.values()) for criterion, found in units.items()}
