"""Terms of a reply's probability; they need a voice that gives one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from empatheia.listener.terms.term import LEAST, UNWEIGHTED, Case, RankingTerm, Row, Tools, placed
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.voices.voice import Request

NO_SCORER = "no responder in this process gives probabilities."
_GREETED = Request(Dialogue("", (Turn("speaker", "Hello."),)))
"""What says nothing: the term ``information`` compares with it."""


class LikelihoodTerm(RankingTerm):
    """Mean log-probability of a reply's pieces and its end."""

    name, unit, default = "likelihood", "nats, at most 0", 1.0
    example = ("I am sorry to hear that.", "Hear sorry that to am I.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        return [None if row.scored is None else row.scored.mean for row in rows]

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        return NO_SCORER if tools.scorer is None else ""


class ListenerTerm(RankingTerm):
    """Log belief in the true context after the reply, of a listener who hears it all."""

    name, unit, default = "listener", "nats, at most 0", 1.0
    example = ("I am sorry about your dog.", "I am sorry about your exam.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`."""
        return [
            math.log(max(row.scored.belief[-1], LEAST)) if row.scored is not None and row.scored.belief else None
            for row in rows
        ]

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        if tools.scorer is None:
            return NO_SCORER
        return "" if case.has_contrast else "there are no distractors to tell the true context from."


class Information(RankingTerm):
    """Pointwise mutual information of reply and conversation for each piece: what fits everything gains nothing.

    The reply's likelihood less that of the same reply to a mere greeting, after the maximum mutual information
    objective of Li et al., NAACL 2016 ("A diversity-promoting objective function for neural conversation models").
    """

    name, unit, default = "information", "nats", 0.0
    example = ("Oh no, I hope you find your dog.", "Hello, how are you?")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`; nothing is scored for a weight of 0."""
        chosen = [
            (i, row.scored.mean, row.text)
            for i, row in enumerate(rows)
            if row.case.weights[self.name] and not row.is_blank and row.scored is not None
        ]
        if not chosen or tools.scorer is None:
            return [None] * len(rows)
        alone = tools.scorer.likelihoods([_GREETED] * len(chosen), [text for _, _, text in chosen])
        gains = [mean - own for (_, mean, _), own in zip(chosen, alone, strict=True)]
        return placed(rows, [i for i, _, _ in chosen], gains)

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        if tools.scorer is None:
            return NO_SCORER
        return "" if case.weights[self.name] else UNWEIGHTED
