"""What a system reads beside the pieces of the context: emotion words, concept graphs, commonsense, knowledge.

A responder names what it needs in ``side_inputs``; training and answering build the same from the same settings,
which lie in the model folder's ``empatheia.json``. Nothing here reads the reply or a gold label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from torch import Tensor

from empatheia.errors import ConfigError
from empatheia.records.dialogue import Example
from empatheia.registry import Registry
from empatheia_research.text.collation import EncodedExample
from empatheia_research.text.tokenizer import DialogueTokenizer


class SideInput(Protocol):
    """One kind of side input.

    Attributes:
        features: Names of the tensors it gives.
    """

    features: ClassVar[tuple[str, ...]]

    def __init__(self, tokenizer: DialogueTokenizer, **settings: Any) -> None:
        """Settings are JSON values: paths, names, numbers.

        Raises:
            ConfigError: A setting is unknown or out of range.
            MissingResourceError: A resource a setting names is not there; says how to get it.
        """
        ...

    def settings(self) -> Mapping[str, object]:
        """What makes an equal one: saved with a model."""
        ...

    def add(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes what belongs to each context into ``item.extra``; reads neither reply nor labels.

        What an answer must be distrusted for (a source is not there) goes into the list ``item.extra["doubts"]``.
        """
        ...

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """Its features of a batch, padded on the right.

        Args:
            items: At least one; an item nothing was added to counts as one that has nothing.
            pad_id: Padding piece.
            width: Padded length of the source.
        """
        ...


SIDE_INPUTS = Registry(
    "side inputs",
    {
        "external_vectors": "empatheia_research.side_inputs.external_vectors:ExternalVectors",
        "prepended_labels": "empatheia_research.side_inputs.prepended_labels:PrependedLabels",
        "emotion_words": "empatheia_research.side_inputs.emotion_words:EmotionWords",
        "concept_graph": "empatheia_research.side_inputs.concept_graph:ConceptGraph",
        "cause_turns": "empatheia_research.side_inputs.cause_turns:CauseTurns",
        "knowledge_of_relations": "empatheia_research.side_inputs.knowledge:KnowledgeOfRelations",
        "knowledge_of_types": "empatheia_research.side_inputs.knowledge:KnowledgeOfTypes",
        "turn_labels": "empatheia_research.side_inputs.turn_labels:LabelsOfTurns",
    },
)
"""Name in a responder's ``side_inputs`` and in a recipe's ``data.side_inputs`` to a :class:`SideInput`."""


class TeachingSideInput(SideInput, Protocol):
    """A side input that also says what the gold reply expresses."""

    def teach(self, examples: Sequence[Example], items: Sequence[EncodedExample]) -> None:
        """Writes what is known of context and gold reply into ``item.extra``, for training and told scores alone."""
        ...


def make_side_inputs(
    names: Sequence[str], settings: Mapping[str, Mapping[str, object]], tokenizer: DialogueTokenizer
) -> list[SideInput]:
    """The side inputs a system needs, each with its settings.

    Args:
        names: The system's ``side_inputs``.
        settings: By name; a name left out has none.
        tokenizer: The system's pieces.

    Raises:
        ConfigError: Settings for a side input the system does not read, or bad ones.
        MissingResourceError: A resource is not there.
    """
    for name in settings:
        if name not in names:
            accepted = ", ".join(names) or "none: the system reads nothing beside the context"
            raise ConfigError(f"data.side_inputs: {name!r} is not read by this system; accepted: {accepted}.")
    made = []
    for name in names:
        try:
            made.append(SIDE_INPUTS.get(name)(tokenizer, **settings.get(name, {})))
        except TypeError as error:
            raise ConfigError(f"data.side_inputs.{name}: {error}.") from None
    return made


__all__ = ["SIDE_INPUTS", "SideInput", "make_side_inputs"]
