"""``--set KEY=VALUE`` in ``respond`` and ``chat``: the keys of a listener's YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from empatheia.errors import ConfigError
from empatheia.settings import apply_override

LISTENER_FILES = (".yaml", ".yml")
"""Ends of names of files that hold a listener's settings."""
_DECODING = "express.decoding."
_WRITING = ("strategy", "seed")
"""Options that say how one model writes."""


@dataclass(frozen=True)
class GivenSettings:
    """What the command line says of how to write.

    Attributes:
        writing: Fields of :class:`~empatheia.listener.Decoding` that were given, by name.
        overrides: All other settings, ``key=value``: they need a listener of five steps.
    """

    writing: Mapping[str, Any]
    overrides: tuple[str, ...] = ()

    def requested(self, focus: str | None) -> frozenset[str]:
        """Words of what was asked for: of the keys that were set, and ``focus`` where one is wanted."""
        words = {word for pair in self.overrides for word in pair.partition("=")[0].split(".")}
        return frozenset(words | ({"focus"} if focus not in (None, "off") else set()))


def given_settings(context: typer.Context, pairs: Sequence[str] | None, file: Path | str | None) -> GivenSettings:
    """What stands on the command line, in ``--set``, ``--strategy`` and ``--seed``.

    Args:
        context: Of the command.
        pairs: Of ``--set``; the last one of a key counts.
        file: As ``--listener``, or ``--model``: over a listener's file, settings are checked when it is opened, since
            they may need what it says.

    Raises:
        ConfigError: A pair is not ``key=value``, its key is unknown (names the nearest), or its value is wrong.
    """
    of_writing = [pair for pair in pairs or () if pair.lstrip().startswith(_DECODING)]
    others = tuple(pair for pair in pairs or () if pair not in of_writing)
    if file is None or Path(file).suffix not in LISTENER_FILES:
        check_overrides(others)
    sources = {name: context.get_parameter_source(name) for name in _WRITING}
    named = {
        name: context.params[name]
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    }
    return GivenSettings(named | _writing(of_writing), others)


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

    laid = dict(tree or {})
    for override in overrides:
        laid = apply_override(laid, override)
    check_settings(laid, "--set")
    return laid
