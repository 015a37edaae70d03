"""What a caller decides for one reply, or for a conversation from now on, in place of what the steps find."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from empatheia.errors import DataError, DecodingError
from empatheia.registry import nearest
from empatheia.taxonomy import EMOTIONS, LABELS_41, canonical_emotion
from empatheia.voices.decoding import DecodingFields, FocusSettings, check_rationality

AUTO, OFF = "auto", "off"
KINDS = ("auto", "gee", "masked", "random", "given")


class SteeringFields(TypedDict, total=False):
    """Fields of :class:`Steering` as keywords, in its place."""

    emotion: str | None
    intent: str | None
    focus: str | Sequence[str] | None
    alpha: float | None
    beta: float | None
    worlds: int | None
    distractors: str | None


class SteeredFields(DecodingFields, SteeringFields, total=False):
    """Fields of :class:`~empatheia.listener.Decoding` and of :class:`Steering` as keywords."""


@dataclass(frozen=True, kw_only=True)
class Steering:
    """Decisions of a caller; None = what the listener's settings say.

    Args:
        emotion: What the speaker feels, one of the 32.
        intent: Emotion or intent of the reply, one of the 41.
        focus: Words of the newest speaker turn (a list, or one text with commas), ``auto`` = those the explaining step
            finds, ``off`` = no focus. With words or ``auto`` only focused replies are written.
        alpha: How rational the speaker is, 0 or more.
        beta: How rational the imagined listener is, 0 or more.
        worlds: The true context and its distractors, 2 or more.
        distractors: ``auto``, ``gee``, ``masked``, ``random`` or ``given``.

    Raises:
        DecodingError: A value is out of range or unknown.
    """

    emotion: str | None = None
    intent: str | None = None
    focus: str | tuple[str, ...] | None = None
    alpha: float | None = None
    beta: float | None = None
    worlds: int | None = None
    distractors: str | None = None

    def __post_init__(self) -> None:
        for name, known in (("emotion", EMOTIONS), ("intent", LABELS_41)):
            if (value := getattr(self, name)) is not None:
                try:
                    object.__setattr__(self, name, canonical_emotion(str(value), known))
                except DataError as problem:
                    raise DecodingError(f"{name}: {problem}") from None
        for name, kinds, accepted in (
            ("alpha", int | float, "a number"),
            ("beta", int | float, "a number"),
            ("worlds", int, "a whole number"),
        ):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise DecodingError(f"{name} is {value!r}; accepted: {accepted}.")
        check_rationality(
            0.0 if self.alpha is None else self.alpha,
            0.0 if self.beta is None else self.beta,
            "L0",
            2 if self.worlds is None else self.worlds,
        )
        if self.distractors is not None and self.distractors not in KINDS:
            hint = nearest(str(self.distractors), list(KINDS))
            raise DecodingError(f"no distractors {self.distractors!r}.{hint} Accepted: {', '.join(KINDS)}.")
        object.__setattr__(self, "focus", _words(self.focus))

    @property
    def words(self) -> tuple[str, ...]:
        """Words named by the caller; none for ``auto``, ``off`` and None."""
        return self.focus if isinstance(self.focus, tuple) else ()

    def focused(self, settings: FocusSettings) -> FocusSettings:
        """A listener's settings with these decisions in them; named words must have distractors."""
        changes = {name: getattr(self, name) for name in ("alpha", "beta", "worlds", "distractors")}
        changes = {name: value for name, value in changes.items() if value is not None}
        if self.focus is not None:
            changes["use"] = OFF if self.focus == OFF else "on"
        if self.words:
            changes["strict"] = True
        if self.distractors not in (None, settings.distractors):
            changes["model"] = None  # it belongs to the settings' own kind
        return settings.model_copy(update=changes)

    def but(self, **changes: Any) -> Steering:
        """The same with some decisions changed."""
        return replace(self, **changes)


NAMES: tuple[str, ...] = tuple(field.name for field in fields(Steering))
"""What can be decided."""


def _words(focus: str | Sequence[str] | None) -> str | tuple[str, ...] | None:
    if focus is None:
        return None
    named = re.split(r"[,;]", focus) if isinstance(focus, str) else list(focus)
    words = tuple(dict.fromkeys(word.strip() for word in named if word.strip()))
    if not words:
        raise DecodingError("focus names no word; accepted: words of the newest speaker turn, auto, or off.")
    return words[0].lower() if len(words) == 1 and words[0].lower() in (AUTO, OFF) else words
