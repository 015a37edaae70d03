"""How far from a printed number ours may lie and still be called the same: one rule for each kind of metric.

Where a paper prints a deviation over runs, two of them; a run of ours is one draw, and so is a paper's. Elsewhere twice
what Gao et al. (2021, tables 2 and 4, 13 to 16 systems with five seeds each) print for that kind, as a share of the
value, rounded:

========================================  ===============================  ==========================================
kind                                      tolerance                        their median deviation
========================================  ===============================  ==========================================
right answers (accuracy, F1, P@1, EM)     1 point (0.01 as a fraction)     0.3 points; our test sets are smaller or
                                                                           equal, so a little more than twice that
BLEU                                      10 % of the printed value        4.8 %
Distinct                                  25 % of the printed value        13 % (Dist-1), 12 % (Dist-2)
BERTScore                                 0.01                             0.0025 to 0.005
perplexity                                3 % of the printed value         none printed; half a 95 % interval of ours
                                                                           over EmpatheticDialogues' test replies
========================================  ===============================  ==========================================

Any other score must print as the same number. Rounding in print is allowed for besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

MOST_BELIEVED = 0.5
"""A printed deviation above this share of its value is a slip of print (Gao et al., table 4: .017 with .020)."""
N_DEVIATIONS = 2.0
"""Printed deviations that a run may differ by."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of metric.

    Attributes:
        name: In words.
        scores: Names of our scores that are of it, as patterns.
        points: Tolerance in percent points (0.01 of a fraction each), or None.
        share: Tolerance as a share of the printed value, or None.
    """

    name: str
    scores: tuple[str, ...]
    points: float | None = None
    share: float | None = None

    def around(self, value: float, unit: str) -> float:
        """The tolerance, in the unit of print."""
        if self.points is not None:
            return self.points / (100 if unit == "fraction" else 1)
        return abs(value) * (self.share or 0.0)

    @property
    def rule(self) -> str:
        """In words."""
        if self.points is not None:
            return f"{self.points:g} point{'' if self.points == 1 else 's'}"
        return f"{100 * (self.share or 0.0):g} % of the printed value"


_RIGHT = ("accuracy*", "p_at_*", "f1_*", "precision_*", "recall_*", "entailment_*", "span_*")
KINDS: tuple[Kind, ...] = (
    Kind("right answers", _RIGHT, points=1.0),
    Kind("BLEU", ("bleu_*",), share=0.10),
    Kind("Distinct", ("dist_*",), share=0.25),
    Kind("BERTScore", ("bertscore_*",), points=1.0),
    Kind("perplexity", ("ppl_*",), share=0.03),
)
"""In order; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a printed number allows.

    Attributes:
        value: In the unit of print; 0 = it must print as the same number.
        rule: Where it comes from, in words.
    """

    value: float
    rule: str


def is_believed(value: float, deviation: float | None) -> bool:
    """Whether a printed deviation is one: neither 0, which is rounded away, nor most of its value."""
    return deviation is not None and 0 < deviation <= MOST_BELIEVED * abs(value)


def tolerance(score: str, unit: str | None, value: float, deviation: float | None) -> Tolerance:
    """The tolerance around a printed number.

    Args:
        score: Name of our score that measures it, e.g. ``bleu_nltk_4``.
        unit: Of print; None = unknown.
        value: As printed.
        deviation: As printed, or None; one that :func:`is_believed` doubts counts as None.

    Example:
        >>> tolerance("accuracy", "percent", 42.4, 0.3)
        Tolerance(value=0.6, rule='2 printed deviations')
        >>> tolerance("ppl_item", "perplexity", 40.0, None)
        Tolerance(value=1.2, rule='3 % of the printed value')
    """
    if deviation is not None and is_believed(value, deviation):
        return Tolerance(N_DEVIATIONS * deviation, f"{N_DEVIATIONS:g} printed deviations")
    for kind in KINDS:
        if any(fnmatchcase(score, pattern) for pattern in kind.scores):
            return Tolerance(kind.around(value, unit or ""), kind.rule)
    return Tolerance(0.0, "the printed digits")
