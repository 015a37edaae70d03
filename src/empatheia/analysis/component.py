"""Models that say what a person feels, why, what else is likely true and how to react; names import nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from empatheia.records.analysis import Inference, Mechanism, TurnLabels, WordScores
from empatheia.records.dialogue import CauseAnnotation, Dialogue
from empatheia.registry import Registry

Record = TurnLabels | CauseAnnotation | WordScores | Mechanism | Inference
"""What components say of a turn."""
Kind = TypeVar("Kind", bound=Record, covariant=True)


class Component(Protocol[Kind]):
    """One question answered for whole conversations, by a loaded model or a look-up."""

    @property
    def part(self) -> str:
        """Which of :data:`empatheia.records.analysis.PARTS` it answers."""
        ...

    @property
    def name(self) -> str:
        """Of the model or provider, for the record."""
        ...

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> Sequence[tuple[Kind, ...]]:
        """Records of each conversation, in order; the same alone or among others.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most items in one forward pass.
            progress: Called with the number of conversations just finished.

        Returns:
            For each conversation the records of its part (:mod:`empatheia.records.analysis`), by turn.
        """
        ...


class ExplainingComponent(Component[Kind], Protocol[Kind]):
    """A component that explains an emotion: another component may say which, in place of its own source."""

    def annotate(
        self,
        dialogues: Sequence[Dialogue],
        *,
        batch_size: int = 32,
        progress: Callable[[int], None] | None = None,
        emotion: Component[TurnLabels] | None = None,
    ) -> Sequence[tuple[Kind, ...]]:
        """As :meth:`Component.annotate`.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most items in one forward pass.
            progress: Called with the number of conversations just finished.
            emotion: Says what the turns express, for this call; None = the component's own source.
        """
        ...


COMPONENTS = Registry("components", {})
"""Part, or ``component`` of a model's ``empatheia.json``, to a class with ``load(folder, **options) -> Component``."""

__all__ = ["COMPONENTS", "Component", "ExplainingComponent", "Kind", "Record"]
