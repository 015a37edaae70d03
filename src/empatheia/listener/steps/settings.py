"""Settings of a listener of five steps: one YAML file, one section a step.

``read_settings("listener.yaml")`` checks every key; an unknown one names the nearest. A file may be empty: every field
has a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from empatheia.analysis.targets import N_WORDS
from empatheia.errors import ConfigError, DataError
from empatheia.registry import nearest
from empatheia.resources.chat_endpoint import API_KEY
from empatheia.settings import Strict, apply_override, explain_invalid, read_yaml
from empatheia.taxonomy import EMOTIONS, LABELS_41, RELATIONS, canonical_emotion
from empatheia.voices.decoding import DecodingSettings, FocusSettings, on_or_off
from empatheia.voices.reflection.voice import REFLECTION

AUTO = "auto"


def label_of(name: str, known: tuple[str, ...], what: str) -> str:
    """A label by its name, in any spelling of the taxonomy.

    Raises:
        ValueError: It is none of ``known``; names the nearest.
    """
    try:
        return canonical_emotion(name, known)
    except DataError as problem:
        raise ValueError(f"{what}: {str(problem).rstrip('.')}") from None


def one_of(name: str, known: tuple[str, ...], what: str) -> str:
    """The name itself.

    Raises:
        ValueError: It is none of ``known``; names the nearest.
    """
    if name not in known:
        raise ValueError(f"no {what} {name!r}.{nearest(name, list(known))} Accepted: {', '.join(known)}")
    return name


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


class Answered(Strict):
    """Who answers a step: a model by folder or name, or one behind an OpenAI-compatible endpoint."""

    model: str | None = Field(None, description="Folder or name of the model; None = the installed one.")
    llm: str | None = Field(None, description="Name under which an endpoint serves a language model that answers.")
    endpoint: str | None = Field(None, description="Its address up to /v1; None = EMPATHEIA_BASE_URL.")
    key_env: str = Field(API_KEY, description="Environment variable that holds the endpoint's key.")
    timeout: float = Field(30.0, gt=0, description="Seconds without a byte before a request to it is given up.")
    retries: int = Field(2, ge=0, le=20, description="Retries after a failure, with growing pauses.")

    @model_validator(mode="after")
    def _one_place(self) -> Answered:
        if self.model is not None and self.llm is not None:
            raise ValueError(f"model {self.model!r} and llm {self.llm!r} are both named; name one of them")
        if self.endpoint is not None and self.llm is None:
            raise ValueError("endpoint needs llm, the name under which it serves the model")
        return self


class PerceiveSettings(Answered):
    """What does the speaker feel?"""

    emotion: str | None = Field(None, description="One of the 32, instead of what the model finds.")

    @field_validator("emotion")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return None if value is None else label_of(value, EMOTIONS, "emotion")


class ExplainSettings(Answered):
    """Which words of the newest speaker turn is it about?"""

    targets: Literal["auto", "gee", "spans", "reasoner", "given", "off"] = Field(
        "auto",
        description="`gee` (model `words`), `spans` (models `causes`, `cause_spans`), `reasoner` (the listener's own),"
        " `given` (`words`), `auto` = the first of these three that is here, `off` = none.",
    )
    words: tuple[str, ...] = Field((), description="With `given`: words of the newest speaker turn.")
    most: int = Field(N_WORDS, ge=1, description="Words at most.")

    @field_validator("targets", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        return on_or_off(value)

    @model_validator(mode="after")
    def _words_for_given(self) -> ExplainSettings:
        if (self.targets == "given") != bool(self.words):
            raise ValueError(f"targets is {self.targets!r} and words {list(self.words)}; words go with `given` alone")
        if self.llm is not None and self.targets not in ("auto", "gee"):
            raise ValueError(f"an llm names words by itself; targets is {self.targets!r}, accepted: auto")
        return self


class ProjectSettings(Answered):
    """What else is plausibly true?"""

    use: bool = Field(True, description="Ask at all.")
    relations: tuple[str, ...] = Field(RELATIONS, description="Commonsense relations kept, of those the provider has.")
    tails: int = Field(3, ge=1, description="Inferences kept of each relation.")

    @field_validator("relations")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one_of(name, RELATIONS, "relation") for name in value)


class ReactSettings(Answered):
    """What should the reply do?"""

    intent: str | None = Field(None, description="One of the 41 emotions and intents, instead of what is predicted.")

    @field_validator("intent")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return None if value is None else label_of(value, LABELS_41, "intent")


class ResponderSettings(Answered):
    """One who writes candidates: a responder or language model by folder or name, or a served one."""

    folder: str | None = Field(None, description="A language model of transformers by folder or name, as it is.")
    shown: tuple[Literal["emotion", "side", "causes", "intent", "inferences"], ...] | None = Field(
        None,
        description="What a language model is shown of the steps before; what it was tuned with, else emotion, causes,"
        " intent and inferences.",
    )

    @model_validator(mode="after")
    def _has_a_place(self) -> ResponderSettings:
        if [self.model, self.folder, self.llm].count(None) != 2:
            raise ValueError("name one of model (ours, by folder or name), folder (a language model) and llm (served)")
        return self


class WeightSettings(Strict):
    """What each term of the ranking counts; see :mod:`empatheia.listener.terms.term`."""

    likelihood: float = Field(1.0, description="Mean log-probability of a piece of the reply (nats, at most 0).")
    listener: float = Field(1.0, description="Log belief in the true context after the reply (nats, at most 0).")
    coverage: float = Field(1.0, description="Share of the target words taken up, in [0, 1].")
    knowledge: float = Field(0.5, description="Share of the inferred relations that the reply takes up, in [0, 1].")
    intent: float = Field(0.2, description="Log-probability of the given intent given the reply (nats, at most 0).")
    predicted_intent: float = Field(0.0, description="Likewise, where the intent is predicted and not given.")
    mechanism: float = Field(0.2, description="Expected level of EPITOME's mechanisms, mean of the three, in [0, 2].")
    side: float = Field(1.0, description="Log-probability that it is on the side of what is felt (nats, at most 0).")
    information: float = Field(
        0.0, description="What the conversation adds to the log-probability of a piece (nats); 0 = not computed."
    )
    contradiction: float = Field(
        1.0, description="Minus the share of its statements that say the opposite of what the speaker said, in [-1, 0]."
    )
    diversity: float = Field(
        1.0, description="Minus the share of it that the listener, or it itself, said before, in [-1, 0]."
    )
    length: float = Field(1.0, description="Minus how far the reply is out of bounds, in shares of the bound.")


class ExpressSettings(Strict):
    """Which replies are written, and which one is given?"""

    responders: tuple[ResponderSettings, ...] = Field(
        (ResponderSettings.model_validate({"model": REFLECTION}),),
        min_length=1,
        validate_default=True,
        description="Who writes candidates; a plain text is `reflection`, or the folder or name of a model.",
    )
    decoding: tuple[DecodingSettings, ...] = Field(
        (
            DecodingSettings.model_validate({}),
            DecodingSettings.model_validate({"strategy": "beam", "n": 2}),
        ),
        min_length=1,
        description="Ways of writing, each tried with every responder.",
    )
    focus: FocusSettings = FocusSettings.model_validate({})
    weights: WeightSettings = WeightSettings.model_validate({})
    scorer: str | None = Field(
        None, description="Responder (as named above) for likelihood and belief; None = the first that can."
    )
    intent_model: str | None = Field(None, description="Classifier of the 41 labels; None = the installed `intent`.")
    mechanism_model: str | None = Field(None, description="Mechanism model; None = the installed `mechanisms`.")
    min_words: int = Field(3, ge=0, description="A shorter reply loses by the term `length`.")
    max_words: int = Field(40, ge=1, description="A longer one, too.")

    @field_validator("responders", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [value]
        return [{"model": one} if isinstance(one, str) else one for one in value] if _is_list(value) else value

    @field_validator("decoding", mode="before")
    @classmethod
    def _alone(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _bounds(self) -> ExpressSettings:
        if self.min_words > self.max_words:
            raise ValueError(f"min_words is {self.min_words}, max_words {self.max_words}; the first must not be larger")
        return self


class MemorySettings(Strict):
    """What of a conversation counts later."""

    carry: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of the belief about the emotion that is carried to the next turn: posterior ~ p(e | turn)"
        " * previous posterior^carry; 0 = every turn anew.",
    )
    history: Literal["all", "turns", "speaker_turns"] = Field(
        "all", description="What responders read: all turns, the newest `newest` turns, or those from the newest"
        " `newest`-th speaker turn on, the speaker's alone."
    )  # fmt: skip
    newest: int = Field(4, ge=1, description="How many, unless `history` is `all`.")


class ListenerSettings(Strict):
    """A listener of five steps."""

    name: str = Field("empatheia", description="Its name in answers.")
    reasoner: str = Field(
        AUTO, description="Listener for steps 1 and 2 if they have no model; `auto` = the bundled perception."
    )
    perception: Literal["single", "joined"] = Field(
        "single",
        description="`joined` = a small language model looks a second time at what is felt, which is right more often"
        " and takes ten times as long; `empatheia models get second_look` gets it.",
    )
    stand_ins: bool = Field(False, description="Allow installed models of size smoke.")
    perceive: PerceiveSettings = PerceiveSettings.model_validate({})
    explain: ExplainSettings = ExplainSettings.model_validate({})
    project: ProjectSettings = ProjectSettings.model_validate({})
    react: ReactSettings = ReactSettings.model_validate({})
    express: ExpressSettings = ExpressSettings.model_validate({})
    memory: MemorySettings = MemorySettings.model_validate({})


def read_settings(path: str | Path, overrides: Sequence[str] = ()) -> ListenerSettings:
    """Settings from a YAML file.

    Args:
        path: Of the file; it may be empty.
        overrides: Texts such as ``express.focus.alpha=6``, laid over the file's settings.

    Raises:
        ConfigError: No such file, not YAML, an unknown key or a bad value; with the key and the nearest one.
    """
    path = Path(path)
    is_empty = path.is_file() and not path.read_text(encoding="utf-8", errors="replace").strip()
    tree = {} if is_empty else read_yaml(path)
    for override in overrides:
        tree = apply_override(tree, override)
    return check_settings(tree, str(path))


def check_settings(tree: Mapping[str, object], origin: str = "listener") -> ListenerSettings:
    """Settings from a plain tree.

    Args:
        tree: Sections to fields.
        origin: In front of errors.

    Raises:
        ConfigError: An unknown key or a bad value.
    """
    try:
        return ListenerSettings.model_validate(tree)
    except ValidationError as problem:
        told = explain_invalid(problem, tree, ListenerSettings).replace("Value error, ", "")
        raise ConfigError(f"{origin}: {told}") from None
