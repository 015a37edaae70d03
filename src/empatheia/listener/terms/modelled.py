"""Terms that ask a model of the analysis what a reply is like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from empatheia.listener.terms.term import LEAST, UNWEIGHTED, Case, RankingTerm, Row, Tools, placed
from empatheia.records.dialogue import Dialogue, Turn


class IntentTerm(RankingTerm):
    """Log-probability of the wanted intent given the reply, by the model of part ``intent``."""

    name, unit, default = "intent", "nats, at most 0", 0.2
    example = ("Where did you lose your dog?", "I am so sorry.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`; no model is loaded where no intent is wanted, or for a weight of 0."""
        chosen = [
            i for i, row in enumerate(rows) if row.case.intent and row.case.weights[self.name] and not row.is_blank
        ]
        component = tools.part("intent") if chosen else None
        if component is None:
            return [None] * len(rows)
        labels = [found[-1].probabilities for found in component.annotate(_answered(rows, chosen))]
        wanted = [rows[i].case.intent for i in chosen]
        values = [math.log(max(own.get(label, 0.0), LEAST)) for own, label in zip(labels, wanted, strict=True)]
        return placed(rows, chosen, values)

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        if not case.intent:
            return "no intent is wanted of the reply."
        if not case.weights[self.name]:
            return UNWEIGHTED if case.is_intent_given else "`predicted_intent`, its weight for a predicted one, is 0."
        return tools.lacking.get("intent", "")


class MechanismTerm(RankingTerm):
    """Expected level of EPITOME's mechanisms, mean over those the model of part ``mechanisms`` knows."""

    name, unit, default = "mechanism", "level, 0 to 2", 0.2
    example = ("I am so sorry you lost your dog.", "Ok.")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`; no model is loaded for a weight of 0."""
        chosen = [i for i, row in enumerate(rows) if row.case.weights[self.name] and not row.is_blank]
        component = tools.part("mechanisms") if chosen else None
        if component is None:
            return [None] * len(rows)
        values = []
        for found in component.annotate(_answered(rows, chosen)):
            levels = [sum(level * p for level, p in enumerate(own.probabilities)) for own in found if own.turn == 1]
            values.append(sum(levels) / max(1, len(levels)))
        return placed(rows, chosen, values)

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        return tools.lacking.get("mechanisms", "") if case.weights[self.name] else UNWEIGHTED


class SideTerm(RankingTerm):
    """How well the side of a reply, glad or grave, fits the side of what was said."""

    name, unit, default = "side", "nats, at most 0", 1.0
    example = ("I am sorry that your dog is gone.", "How wonderful, I am so happy for you!")

    def values(self, rows: Sequence[Row], tools: Tools) -> list[float | None]:
        """See :class:`RankingTerm`; a candidate that is alone needs none."""
        chosen = [
            i
            for i, row in enumerate(rows)
            if row.case.n_candidates > 1 and not row.is_blank and row.case.weights[self.name]
        ]
        said = tools.reading.sides_of([rows[i].text for i in chosen]) if chosen else None
        if said is None:
            return [None] * len(rows)
        values = [side(rows[i].case.newest.sides, sides) for i, sides in zip(chosen, said, strict=True)]
        return placed(rows, chosen, values)

    def missing(self, case: Case, tools: Tools) -> str:
        """See :class:`RankingTerm`."""
        if not case.newest.sides:
            return "no perception says how pleasant it is (empatheia models get listener)."
        return "there is one candidate." if case.weights[self.name] else UNWEIGHTED


def side(felt: Mapping[str, float], said: Mapping[str, float]) -> float | None:
    """How well the side of a reply fits the side of what was said; None where one of them is unknown.

    Args:
        felt: Probability of pleasant and unpleasant (mixed counts half to each) at the newest speaker turn.
        said: Likewise of the reply.

    Returns:
        Log of the probability that both are on the same side, nats, at most 0.

    >>> round(side({"pleasant": 0.9, "unpleasant": 0.1}, {"pleasant": 0.2, "unpleasant": 0.8}), 3)
    -1.347
    """
    if not felt or not said:
        return None
    one, other = _pleasant(felt), _pleasant(said)
    return math.log(max(one * other + (1 - one) * (1 - other), LEAST))


def _pleasant(sides: Mapping[str, float]) -> float:
    return sides["pleasant"] + sides.get("mixed", 0.0) / 2


def _answered(rows: Sequence[Row], chosen: Sequence[int]) -> list[Dialogue]:
    """The newest speaker turn and the reply to it."""
    return [Dialogue("", (rows[i].case.analysis.dialogue.turns[-1], Turn("listener", rows[i].text))) for i in chosen]
