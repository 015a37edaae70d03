"""What a curation is told: inputs, steps, sizes; read from YAML, unknown keys are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator

from empatheia.errors import ConfigError
from empatheia.settings import Strict, apply_override, read_yaml
from empatheia_people.curation.cleaning import Cleaner
from empatheia_people.curation.dialogues import CHAT_GAP_MS, MAX_GAP_MS
from empatheia_people.curation.segmenter import BUNDLED
from empatheia_research.recipes.recipe import find_recipe

_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,60}(?:/[A-Za-z0-9][\w-]{0,60})?")
_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?\s*", re.IGNORECASE)
Positive = Annotated[int, Field(ge=1)]


class ReadSettings(Strict):
    """How files are read."""

    most_mb: Positive = Field(
        default=64, description="Largest file, after it is unpacked, in MiB; larger ones are left out."
    )
    recase: bool = Field(default=False, description="Take OPUS's re-cased tokens in files that are all in upper case.")
    most_unreadable: float = Field(
        default=0.05, ge=0, le=1, description="Share of unreadable files above which the run ends before labelling."
    )


class SegmentSettings(Strict):
    """How turns are found."""

    segmenter: str = Field(
        default=BUNDLED, description="`bundled`, a rule (`always_new`, `dash_or_gap` ...), or a folder."
    )
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Probability from which on two sentences are joined."
    )
    use_marks: bool = Field(default=True, description="Believe dashes and speakers' names in the file.")
    longest_pause_ms: Positive | None = Field(
        default=None, description="A longer pause always begins a turn; off in the paper."
    )


class DialogueSettings(Strict):
    """How dialogues are cut."""

    max_gap_ms: int = Field(
        default=MAX_GAP_MS, ge=0, description="Longest pause inside of a dialogue; a longer one cuts."
    )
    chat_gap_ms: int = Field(default=CHAT_GAP_MS, ge=0, description="The same in chats.")
    backwards_ms: Positive | None = Field(
        default=None, description="Cut where times jump back by more; off in the paper."
    )
    max_turns: Positive | None = Field(default=None, description="Cut longer dialogues; off in the paper.")


class CleanSettings(Strict):
    """Which cleaning steps run."""

    without: tuple[str, ...] = Field(default=(), description="Steps that are switched off.")
    min_tokens: int = Field(default=2, ge=0, description="Fewest tokens of an utterance.")
    max_tokens: Positive = Field(default=100, description="Most tokens of an utterance.")
    min_turns: Positive = Field(default=2, description="Fewest turns of a dialogue.")
    splits: bool = Field(default=True, description="A dropped utterance in the middle parts the dialogue.")
    duplicates: bool = Field(default=True, description="Drop all but one of equal dialogues, in all files.")
    cap: Positive | None = Field(
        default=None, description="Most dialogues that end with the same utterance, in all files."
    )

    def cleaner(self) -> Cleaner:
        """The local steps.

        Raises:
            ConfigError: A step is unknown.
        """
        return Cleaner.without(
            self.without,
            min_tokens=self.min_tokens,
            max_tokens=self.max_tokens,
            min_turns=self.min_turns,
            splits=self.splits,
        )


class LabelSettings(Strict):
    """What labels the utterances."""

    classifier: str | None = Field(
        default=None, description="Name or folder of a model; none: no labels and no ranking."
    )
    exact: bool = Field(
        default=True, description="Double precision, so that no result depends on what shared its batch."
    )
    engine: Literal["auto", "torch", "onnx"] = Field(
        default="auto",
        description="What the classifier runs on; auto: ONNX Runtime if it is installed and `exact` is false.",
    )
    batch_size: Positive = Field(default=32, description="Texts in one pass.")
    weights: Literal["even", "recent"] = Field(
        default="even", description="Of the utterances in a dialogue's emotionality; recent: each twice the one before."
    )


class RankSettings(Strict):
    """Which dialogues are the emotional ones."""

    top: Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.25, description="How many of them, or which share; the paper: 1000000 (of 4,010,009)."
    )


class SplitSettings(Strict):
    """What is on which side."""

    by: Literal["movie", "dialogue"] = Field(
        default="movie", description="What is never on two sides; the paper: `dialogue`."
    )
    shares: tuple[int, int, int] = Field(default=(8, 1, 1), description="Parts of train, valid, test.")

    @field_validator("shares")
    @classmethod
    def _some(cls, value: tuple[int, int, int]) -> tuple[int, int, int]:
        if min(value) < 0 or sum(value) < 1:
            raise ValueError("shares are three numbers of 0 or more, not all 0")
        return value


class CurationSettings(Strict):
    """A whole curation."""

    name: str = Field(description="Of the corpus, e.g. `curation/sample`.")
    inputs: tuple[str, ...] = Field(min_length=1, description="Files, folders and ZIP archives.")
    out: str | None = Field(default=None, description="Folder of the result; default `runs/NAME`.")
    shards: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=16, description="Parts the work is cut into, by film."
    )
    workers: Annotated[int, Field(ge=0, le=4096)] = Field(
        default=2, description="Processes; 0 = in this one, without Dask."
    )
    memory: str = Field(default="2GB", description="Of each worker, and of the steps that see all films.")
    scheduler: str | None = Field(default=None, description="Address of a Dask cluster in place of own workers.")
    read: ReadSettings = Field(default_factory=ReadSettings)
    segment: SegmentSettings = Field(default_factory=SegmentSettings)
    dialogues: DialogueSettings = Field(default_factory=DialogueSettings)
    clean: CleanSettings = Field(default_factory=CleanSettings)
    label: LabelSettings = Field(default_factory=LabelSettings)
    rank: RankSettings = Field(default_factory=RankSettings)
    split: SplitSettings = Field(default_factory=SplitSettings)

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value[:60]!r} is not a plain name; accepted: letters, digits, - and _, one / inside")
        return value

    @field_validator("memory")
    @classmethod
    def _is_size(cls, value: str) -> str:
        memory_bytes(value)
        return value

    @property
    def folder(self) -> Path:
        """Where everything is written."""
        return Path(self.out) if self.out is not None else Path("runs") / self.name

    def to_yaml(self) -> str:
        """As a file that :func:`load_settings` reads."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)


def memory_bytes(text: str) -> int:
    """Bytes of ``2GB`` or ``500 MiB``.

    Raises:
        ValueError: It is no size, or less than 64 MB.
    """
    found = _BYTES.fullmatch(text)
    size = 0 if found is None else int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " "))
    if size < 64_000_000:
        raise ValueError(f"memory is {text[:40]!r}; accepted: 64MB or more, such as 2GB")
    return size


def load_settings(place: str | Path, overrides: Sequence[str] = ()) -> CurationSettings:
    """The settings of a file, with ``a.b=value`` laid over them; inputs are taken from the folder of the call.

    Raises:
        ConfigError: The file is missing, no YAML, or a key or a value is not accepted.
    """
    tree: dict[str, Any] = read_yaml(find_recipe(place))
    for override in overrides:
        tree = apply_override(tree, override)
    try:
        settings = CurationSettings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(
            f"{place}: {where}: {first['msg']} (found {str(first['input'])[:80]!r}). See docs/howto/curate.md."
        ) from None
    settings.clean.cleaner()
    return settings
