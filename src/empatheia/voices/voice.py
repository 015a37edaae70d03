"""Who writes candidates and who scores them: what a voice is given, what it gives, and what it says of itself.

All write for batches of conversations. A voice that is *focusable* holds a model in this process: it can be focused
(Kim et al. 2021), makes the distractors for that itself, and can score any reply; others can only write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from empatheia.reading import Json
from empatheia.records.analysis import Analysis, TurnAnalysis
from empatheia.records.dialogue import Dialogue
from empatheia.registry import Registry
from empatheia.resources.chat_endpoint import Usage
from empatheia.voices.decoding import DecodingSettings, FocusSettings

VOICES = Registry(
    "voices",
    {
        "reflection": "empatheia.voices.reflection.voice:ReflectionVoice",
        "endpoint": "empatheia.voices.endpoint:EndpointVoice",
        "listener": "empatheia.voices.given:ListenerVoice",
        "given": "empatheia.voices.given:GivenVoice",
    },
)
"""Kind of a voice to its class."""


class Contrast(Protocol):
    """A speaker turn and other texts in its place, from which a focused reply tells it.

    See ``empatheia_research.decoding.distractors``.
    """

    @property
    def kind(self) -> str:
        """Of the distractors."""
        ...

    @property
    def texts(self) -> tuple[str, ...]:
        """The turn, then its distractors."""
        ...

    def at(self, turn: int) -> Contrast:
        """The same where the turn stands at another index."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """A conversation as a voice reads it.

    Attributes:
        dialogue: Ends with the speaker.
        contrast: Its last turn and others to be told from it; None = no focus.
        analysis: What was found in ``dialogue``; None = nothing.
        causes: Words that a language model is told as causes, in place of those of ``analysis``.
    """

    dialogue: Dialogue
    contrast: Contrast | None = None
    analysis: Analysis | None = None
    causes: tuple[str, ...] | None = None

    @property
    def newest(self) -> TurnAnalysis:
        """What is said of the last turn."""
        return TurnAnalysis(len(self.dialogue.turns) - 1) if self.analysis is None else self.analysis.newest

    @property
    def label(self) -> str:
        """Emotion or intent of the reply, for systems that take one; "" = none."""
        return "" if self.newest.reaction is None else self.newest.reaction.label


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply as a voice wrote it.

    Attributes:
        text: The reply.
        way: The settings that had a say in it, ``strategy`` among them.
    """

    text: str
    way: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Likelihood:
    """A reply scored by a voice.

    Attributes:
        mean: Mean log-probability of its pieces and its end, nats.
        pieces: Each as the voice reads it, the end mark as an empty text.
        belief: In the true world before each piece and after the last, in [0, 1], whatever the speaker's own prior: a
            listener who never hears (``uniform``, ``L1``) could not rank replies. Empty without distractors.
    """

    mean: float
    pieces: tuple[str, ...]
    belief: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Traits:
    """What a voice can do.

    Attributes:
        focusable: It can be focused, and can score replies: it is a :class:`Scorer`.
        reads_intent: The wanted intent has a say in what it writes.
        takes_targets: It writes about the target words without being focused.
        needs_no_model: Its kind in :data:`VOICES` is all that settings need to name it.
        unfocused: Said where focus is wanted and it cannot be focused.
    """

    focusable: bool = False
    reads_intent: bool = False
    takes_targets: bool = False
    needs_no_model: bool = False
    unfocused: str = "it gives no probabilities, so it answers without focus."


@dataclass(frozen=True, slots=True)
class Kit:
    """What a listener lends to its voices.

    Attributes:
        component: Part of the analysis to what answers it, or None.
        distractors: Kind to distractors, in place of those the settings name.
    """

    component: Callable[[str], Any]
    distractors: Mapping[str, Any] = field(default_factory=dict)


class Voice(Protocol):
    """Who writes candidates; see :data:`VOICES`. To be subclassed.

    Attributes:
        name: For records.
        place: As the settings name it.
        host: Where conversations are sent; "" = nowhere.
        usage: Tokens and cost so far of a served model; None for others.
        traits: What it can do.
    """

    name: str
    place: str = ""
    host: str = ""
    traits: Traits = Traits()

    @property
    def usage(self) -> Usage | None:
        """See the class."""
        return None

    def ways(self, ways: Sequence[DecodingSettings]) -> list[DecodingSettings]:
        """The ways it can write in."""
        return list(ways)

    def propose(
        self, requests: Sequence[Request], way: DecodingSettings, focus: FocusSettings | None
    ) -> list[list[Draft]]:
        """Replies to each conversation, best first; the same alone or among others.

        Args:
            requests: With ``focus`` each has a contrast, all of as many worlds.
            way: How to write, and how many.
            focus: None = plain.

        Raises:
            DecodingError: It cannot write so.
            EndpointError: It is far away and gave no answer.
        """
        ...


def voice_called(name: str | None) -> Voice | None:
    """The voice of that kind, if its name is all it needs; None for every other name, which is a model's."""
    made = VOICES.get(name) if name is not None and name in VOICES else None
    return made() if made is not None and made.traits.needs_no_model else None


@runtime_checkable
class Scorer(Protocol):
    """A voice that gives probabilities."""

    name: str
    place: str

    def contrasts(
        self, analyses: Sequence[Analysis], focus: FocusSettings, kit: Kit
    ) -> tuple[list[Contrast | None], list[str]]:
        """What each newest turn is to be told from, or None and the reason why there is nothing.

        Raises:
            DecodingError: ``focus.strict`` and a text has too few distractors, or the kind lacks its setting.
            MissingResourceError: The kind needs a model that is not here.
        """
        ...

    def likelihoods(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Mean log-probability of a piece of each reply and its end, nats, one for each conversation."""
        ...

    def score(self, requests: Sequence[Request], replies: Sequence[str], focus: FocusSettings) -> list[Likelihood]:
        """Given replies, one for each conversation; those with and without a contrast may be mixed."""
        ...
