"""How many items and raters a study needs before it begins.

Ratings of one dialogue resemble each other: m of them are worth m / (1 + (m - 1) r), r their correlation within
dialogues (the design effect of cluster samples, Kish 1965). Normal approximations; the sign test is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import comb
from statistics import NormalDist

from empatheia.errors import ConfigError

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study needs.

    Attributes:
        items: Dialogues of each system, or of each pair.
        raters: People a dialogue.
        ratings: items * raters.
        effect: The difference it is made for.
        power: Chance to find it.
        alpha: Level of the two-sided test, after division by the number of comparisons.
        assumed: What the number rests on, in words.
    """

    items: int
    raters: int
    ratings: int
    effect: float
    power: float
    alpha: float
    assumed: tuple[str, ...] = ()


def design_effect(raters: int, correlation: float) -> float:
    """By how much ratings of the same dialogues count less than independent ones.

    >>> design_effect(4, 0.5)
    2.5
    """
    if raters < 1 or not 0 <= correlation <= 1:
        raise ConfigError(f"{raters} raters, correlation {correlation}; accepted: 1 or more, and 0 to 1.")
    return 1 + (raters - 1) * correlation


def plan_shares(
    first: float,
    second: float,
    raters: int = 4,
    correlation: float = 0.3,
    power: float = 0.8,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> Plan:
    """Dialogues for a difference between two shares, e.g. of replies rated good.

    Args:
        first: A share between 0 and 1.
        second: The other.
        raters: People a dialogue.
        correlation: Of ratings within a dialogue.
        power: Wanted chance to find the difference.
        alpha: Two-sided level.
        comparisons: Alpha is divided by so many (the strictest step of Holm).

    Raises:
        ConfigError: Numbers out of range, or equal shares.
    """
    _check(power, alpha, comparisons)
    if not (0 < first < 1 and 0 < second < 1) or first == second:
        raise ConfigError(f"shares are {first} and {second}; accepted: two different ones between 0 and 1.")
    level = alpha / comparisons
    spread = first * (1 - first) + second * (1 - second)
    assumed = (f"shares {first:g} and {second:g}", *_of_ratings(raters, correlation, comparisons))
    return _plan(spread, first - second, raters, correlation, power, level, assumed)


def plan_means(
    difference: float,
    deviation: float = 1.3,
    raters: int = 1,
    correlation: float = 0.3,
    power: float = 0.8,
    alpha: float = 0.05,
    comparisons: int = 1,
) -> Plan:
    """Dialogues for a difference between two mean ratings; raises as :func:`plan_shares`.

    Args:
        difference: In points of the scale.
        deviation: Of single ratings; about 1.3 on scales of five in Rashkin et al. (2019).
        raters: People a dialogue.
        correlation: Of ratings within a dialogue.
        power: Wanted chance to find the difference.
        alpha: Two-sided level.
        comparisons: Alpha is divided by so many.
    """
    _check(power, alpha, comparisons)
    if not (0 < abs(difference) < math.inf and 0 < deviation < math.inf):
        raise ConfigError(f"difference {difference}, deviation {deviation}; accepted: not 0, and above 0.")
    assumed = (f"ratings deviate by {deviation:g} points", *_of_ratings(raters, correlation, comparisons))
    return _plan(2 * deviation**2, difference, raters, correlation, power, alpha / comparisons, assumed)


def _of_ratings(raters: int, correlation: float, comparisons: int) -> tuple[str, ...]:
    effect = design_effect(raters, correlation)
    alike = f"ratings of one dialogue correlate by {correlation:g}, so {effect:.2g} of them tell as much as one alone"
    return (
        *((alike,) if raters > 1 else ()),
        "the two systems' dialogues are taken as independent (the same dialogues for both need fewer)",
        "two-sided test, normal approximation",
        *_of_comparisons(comparisons),
    )


def _of_comparisons(comparisons: int) -> tuple[str, ...]:
    return (f"alpha divided by {comparisons} comparisons (Holm's strictest step)",) if comparisons > 1 else ()


def _plan(
    spread: float,
    difference: float,
    raters: int,
    correlation: float,
    power: float,
    level: float,
    assumed: tuple[str, ...],
) -> Plan:
    z = _NORMAL.inv_cdf(1 - level / 2) + _NORMAL.inv_cdf(power)
    n_ratings = spread * (z / difference) ** 2 * design_effect(raters, correlation)
    items = max(2, math.ceil(n_ratings / raters))
    return Plan(items, raters, items * raters, abs(difference), power, level, assumed)


def plan_preference(
    share: float, ties: float = 0.3, raters: int = 1, power: float = 0.8, alpha: float = 0.05, comparisons: int = 1
) -> Plan:
    """Judgements for a preference in A/B, by the exact sign test.

    Args:
        share: Of choices that fall on the better system, above 0.5.
        ties: Share of judgements without a choice.
        raters: People a dialogue; their choices are taken as independent.
        power: Wanted chance to find the preference.
        alpha: Two-sided level.
        comparisons: Alpha is divided by so many.

    Raises:
        ConfigError: Numbers out of range.
    """
    _check(power, alpha, comparisons)
    if not (0.5 < share <= 1 and 0 <= ties < 1):
        raise ConfigError(f"share {share}, ties {ties}; accepted: above 0.5 up to 1, and 0 up to below 1.")
    level = alpha / comparisons
    guess = ((_NORMAL.inv_cdf(1 - level / 2) + _NORMAL.inv_cdf(power)) / (2 * share - 1)) ** 2
    n = max(6, int(0.7 * guess))
    while sign_power(n, share, level) < power:
        n += 1 + n // 200
        if n > 100_000:
            raise ConfigError(f"a share of {share} needs over 100,000 choices; plan for a larger difference.")
    items = math.ceil(n / (1 - ties) / raters)
    assumed = (
        f"{100 * share:g} % of choices fall on the better system, {100 * ties:g} % of judgements are ties",
        *(("raters of one dialogue choose independently (they do not quite)",) if raters > 1 else ()),
        "exact two-sided sign test",
        *_of_comparisons(comparisons),
    )
    return Plan(items, raters, items * raters, share, power, level, assumed)


def sign_power(n: int, share: float, alpha: float = 0.05) -> float:
    """Chance that the sign test on n choices finds a preference.

    >>> round(sign_power(50, 0.7), 2)
    0.78
    """
    least = needed_wins(n, alpha)
    logs = [
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(share)
        + ((n - k) * math.log(1 - share) if share < 1 else (0.0 if k == n else -math.inf))
        for k in range(least, n + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))


def _check(power: float, alpha: float, comparisons: int) -> None:
    if not 0 < power < 1 or not 0 < alpha < 1 or comparisons < 1:
        raise ConfigError(
            f"power {power}, alpha {alpha}, {comparisons} comparisons; accepted: between 0 and 1, and 1 or more."
        )


def needed_wins(n: int, alpha: float = 0.05) -> int:
    """Fewest wins among n choices for which the two-sided sign test is below alpha.

    >>> [needed_wins(n) for n in (50, 100, 200, 300)]
    [33, 61, 115, 168]
    """
    tail = 0.0
    for wins in range(n, n // 2, -1):
        tail += comb(n, wins) / 2**n
        if 2 * tail >= alpha:
            return wins + 1
    return n // 2 + 1
