"""Perceive: what the speaker feels at each turn, with what earlier turns left behind.

``posterior_t(e) ~ p(e | turn_t) * posterior_{t-1}(e)^carry``, from an even start: carry 0 judges every turn anew,
carry 1 adds up all evidence. The state is a function of the turns alone, so a conversation can be taken up anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from empatheia.analysis.component import Component
from empatheia.records.analysis import TurnLabels
from empatheia.records.dialogue import Dialogue

_LEAST = 1e-12


class Perceiver:
    """Part ``emotion`` with memory: another component's distributions, each weighed with the one before it.

    Args:
        component: Of part ``emotion``.
        carry: In [0, 1]. Models that read the turns before already know them; carry then counts them twice.
        given: The emotion that the newest speaker turn expresses, as the caller says; None = as the component finds.
    """

    part: str = "emotion"

    def __init__(self, component: Component[TurnLabels], carry: float = 0.0, given: str | None = None) -> None:
        self.component = component
        self.carry = carry
        self.given = given
        self.name: str = component.name

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[TurnLabels, ...]]:
        """The posterior at each speaker turn; at the newest one the caller's own emotion, if given."""
        found = self.component.annotate(dialogues, batch_size=batch_size, progress=progress)
        return [self._with_given(carried(row, self.carry)) for row in found]

    def prior(self, row: Sequence[TurnLabels]) -> dict[str, float]:
        """What was believed before the newest turn: the posterior of the turn before to the power of ``carry``.

        Args:
            row: Posteriors by turn; at least one.
        """
        names = list(row[-1].probabilities)
        before = row[-2].probabilities if len(row) > 1 else dict.fromkeys(names, 1.0)
        return _normalised({name: self.carry * math.log(max(before[name], _LEAST)) for name in names})

    def _with_given(self, row: tuple[TurnLabels, ...]) -> tuple[TurnLabels, ...]:
        if self.given is None or not row:
            return row
        last = row[-1]
        return (*row[:-1], TurnLabels(last.turn, {name: float(name == self.given) for name in last.probabilities}))


def carried(row: Sequence[TurnLabels], carry: float) -> tuple[TurnLabels, ...]:
    """Posteriors of a conversation's turns.

    Args:
        row: Distributions by turn.
        carry: In [0, 1].

    >>> one, two = TurnLabels(0, {"sad": 0.8, "proud": 0.2}), TurnLabels(2, {"sad": 0.5, "proud": 0.5})
    >>> [round(carried([one, two], carry)[1].probabilities["sad"], 6) for carry in (1.0, 0.0)]
    [0.8, 0.5]
    """
    out: list[TurnLabels] = []
    for labels in row:
        if carry == 0.0 or not out:
            out.append(labels)
            continue
        before = out[-1].probabilities
        logs = {
            name: math.log(max(p, _LEAST)) + carry * math.log(max(before[name], _LEAST))
            for name, p in labels.probabilities.items()
        }
        out.append(TurnLabels(labels.turn, _normalised(logs)))
    return tuple(out)


def _normalised(logs: Mapping[str, float]) -> dict[str, float]:
    highest = max(logs.values())
    weights = {name: math.exp(value - highest) for name, value in logs.items()}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
