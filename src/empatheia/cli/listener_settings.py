"""``--set KEY=VALUE`` in ``respond`` and ``chat``: the keys of a listener's YAML file, and the options they replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from empatheia.errors import ConfigError

if TYPE_CHECKING:
    from empatheia.listener import Decoding, Steering

SetOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of a listener's YAML file: express.focus.alpha=6, express.decoding.top_k=50, ... Repeatable.",
    ),
]
KEYS = {
    "num_beams": "express.decoding.num_beams",
    "top_k": "express.decoding.top_k",
    "top_p": "express.decoding.top_p",
    "temperature": "express.decoding.temperature",
    "no_repeat_ngram_size": "express.decoding.no_repeat_ngram_size",
    "repetition_penalty": "express.decoding.repetition_penalty",
    "max_new_tokens": "express.decoding.max_new_tokens",
    "alpha": "express.focus.alpha",
    "beta": "express.focus.beta",
    "worlds": "express.focus.worlds",
    "distractors": "express.focus.distractors",
}
"""Options of version 0.1, still accepted, to the key that says the same."""
_DECODING = "express.decoding."
LISTENER_FILES = (".yaml", ".yml")
"""Ends of names of files that hold a listener's settings."""
_STEERED = tuple(name for name, key in KEYS.items() if key.startswith("express.focus."))
"""Of these options, the ones that ask for focus by themselves."""

NumBeamsOption = Annotated[int, typer.Option(hidden=True)]
TopKOption = Annotated[int, typer.Option(hidden=True)]
TopPOption = Annotated[float, typer.Option(hidden=True)]
TemperatureOption = Annotated[float, typer.Option(hidden=True)]
NoRepeatOption = Annotated[Optional[int], typer.Option(hidden=True)]  # noqa: UP045
PenaltyOption = Annotated[float, typer.Option(hidden=True)]
MaxNewTokensOption = Annotated[int, typer.Option(hidden=True)]
AlphaOption = Annotated[Optional[float], typer.Option(hidden=True)]  # noqa: UP045
BetaOption = Annotated[Optional[float], typer.Option(hidden=True)]  # noqa: UP045
WorldsOption = Annotated[Optional[int], typer.Option(hidden=True)]  # noqa: UP045
DistractorsOption = Annotated[Optional[str], typer.Option(hidden=True)]  # noqa: UP045


@dataclass(frozen=True)
class GivenSettings:
    """What the command line says of how to write.

    Attributes:
        writing: Fields of :class:`~empatheia.listener.Decoding` that were given, by name.
        focus: Likewise of :class:`~empatheia.listener.Steering`, from the options of version 0.1.
        overrides: All other settings, ``key=value``: they need a listener of five steps.
    """

    writing: Mapping[str, Any]
    focus: Mapping[str, Any]
    overrides: tuple[str, ...] = ()

    def decoding(self) -> Decoding:
        """How one model alone writes.

        Raises:
            DecodingError: A value is out of range.
        """
        from empatheia.listener import Decoding

        return Decoding(**self.writing)

    def steering(self, focus: str | None) -> Steering | None:
        """What is decided of the focus; None if nothing is. A number for the focus asks for it.

        Args:
            focus: As ``--focus``.

        Raises:
            DecodingError: A value is out of range or unknown.
        """
        from empatheia.listener import Steering

        if focus is None and not self.focus:
            return None
        return Steering(focus="auto" if focus is None else focus, **self.focus)

    def asked(self, focus: str | None) -> frozenset[str]:
        """Words of what was asked for: of the keys that were set, and ``focus`` where one is wanted."""
        words = {word for pair in self.overrides for word in pair.partition("=")[0].split(".")}
        return frozenset(words | ({"focus"} if focus not in (None, "off") or self.focus else set()))

    @property
    def needs_five_steps(self) -> bool:
        """Whether one model alone cannot do what was set."""
        return bool(self.overrides)


def given_settings(context: typer.Context, pairs: Sequence[str] | None, file: Path | str | None) -> GivenSettings:
    """What stands on the command line, in ``--set`` and in the options of version 0.1, which are told their key.

    Args:
        context: Of the command.
        pairs: Of ``--set``; the last one of a key counts.
        file: As ``--listener``, or ``--model``: over a listener's file, settings are checked when it is opened, since
            they may need what it says.

    Raises:
        ConfigError: A pair is not ``key=value``, its key is unknown (names the nearest), or its value is wrong.
    """
    _tell_new_keys(context)
    focus = {name: context.params[name] for name in _STEERED if context.params.get(name) is not None}
    of_writing = [pair for pair in pairs or () if pair.lstrip().startswith(_DECODING)]
    others = tuple(pair for pair in pairs or () if pair not in of_writing)
    if file is None or Path(file).suffix not in LISTENER_FILES:
        check_overrides(others)
    return GivenSettings(given_decoding(context) | _writing(of_writing), focus, others)


def _tell_new_keys(context: typer.Context) -> None:
    """Says of each given option of version 0.1 how it is set now."""
    from empatheia.cli.output import say

    for name, key in KEYS.items():
        if name in context.params and was_given(context, name):
            old = f"--{name.replace('_', '-')}"
            ask = "--focus auto " if name in _STEERED and not was_given(context, "focus") else ""
            say(f"{old} is now {ask}--set {key}={context.params[name]}; {old} goes with version 0.2.")


def _writing(pairs: Sequence[str]) -> dict[str, Any]:
    """Fields of one way of writing, checked as a file's would be.

    Raises:
        ConfigError: See :func:`given_settings`; more than one reply is asked for.
    """
    if not pairs:
        return {}
    from empatheia.listener.steps.settings import check_settings

    tree: dict[str, Any] = check_overrides(pairs)
    (way,) = check_settings(tree).express.decoding
    given = {name: getattr(way, name) for name in tree["express"]["decoding"]}
    if (n := given.pop("n", 1)) != 1:
        raise ConfigError(
            f"--set {_DECODING}n is {n}; one reply is given. Candidates are set by a file: --listener FILE."
        )
    return given


def was_given(context: typer.Context, *names: str) -> bool:
    """Whether one of these options stands on the command line."""
    sources = (context.get_parameter_source(name) for name in names)
    return any(source is not None and source.name == "COMMANDLINE" for source in sources)


def given_decoding(context: typer.Context) -> dict[str, Any]:
    """The options of writing that stand on the command line."""
    from empatheia.listener import Decoding

    return {name: context.params[name] for name in Decoding.__dataclass_fields__ if was_given(context, name)}


def check_overrides(overrides: Sequence[str], tree: Mapping[str, object] | None = None) -> dict[str, object]:
    """The settings of a listener of five steps with these laid over them, as a plain tree.

    Args:
        overrides: ``key=value`` texts.
        tree: Settings below them; None = the defaults.

    Raises:
        ConfigError: See :func:`given_settings`.
    """
    if not overrides:
        return dict(tree or {})
    from empatheia.listener.steps.settings import check_settings
    from empatheia.settings import apply_override

    laid = dict(tree or {})
    for override in overrides:
        laid = apply_override(laid, override)
    check_settings(laid, "--set")
    return laid
