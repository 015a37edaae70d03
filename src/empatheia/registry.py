"""Lazy tables from a name to a class: listing the names imports nothing heavy.

A registry exists only where a string from a recipe, the command line or HTTP must become a thing. Third
parties add entries through the entry-point group ``empatheia.<kind>``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from empatheia.errors import ConfigError, MissingDependencyError

_SINGULAR = {
    "checks": "check",
    "components": "component",
    "contexts": "source of contexts",
    "corpora": "corpus",
    "distractors": "kind of distractors",
    "listeners": "listener",
    "metrics": "metric",
    "responders": "system",
    "side inputs": "side input",
    "perceptions": "perception",
    "targets": "kind of targets",
    "voices": "voice",
    "terms": "ranking term",
    "tasks": "task",
    "token_encoders": "encoder",
    "understanders": "model of the analysis",
}


def nearest(name: str, known: Iterator[str] | list[str]) -> str:
    """Returns a hint such as ``did you mean 'soft'?`` or the empty string when nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


class Registry:
    """Names to lazily imported objects.

    Args:
        kind: What the entries are, for messages and for the entry-point group, e.g. ``"responders"``.
        entries: Name to ``"package.module:attribute"``.
    """

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self._plugins_loaded = False

    def _load_plugins(self) -> None:
        if self._plugins_loaded:
            return
        self._plugins_loaded = True
        for point in entry_points(group=f"empatheia.{self.kind}"):
            self._entries.setdefault(point.name, point.value)

    def names(self) -> list[str]:
        """All names, own entries first, without importing any of them."""
        self._load_plugins()
        return list(self._entries)

    def target(self, name: str) -> str:
        """The ``module:attribute`` a name stands for.

        Raises:
            ConfigError: The name is unknown; the message lists the nearest and all names.
        """
        self._load_plugins()
        if name not in self._entries:
            raise ConfigError(
                f"no {self._kind_of_one()} is called {name!r}.{nearest(name, list(self._entries))}"
                f" Known: {', '.join(sorted(self._entries))}."
            )
        return self._entries[name]

    def get(self, name: str) -> Any:
        """Imports and returns the object behind ``name``.

        Raises:
            ConfigError: See :meth:`target`.
            MissingDependencyError: It stands in another of our packages, and what that needs is not installed.
        """
        module, _, attribute = self.target(name).partition(":")
        try:
            return getattr(import_module(module), attribute)
        except ModuleNotFoundError as error:
            extra = module.partition(".")[0].removeprefix("empatheia_")
            if not module.startswith("empatheia_") or (error.name or "").startswith("empatheia"):
                raise
            raise MissingDependencyError(
                f"the {self._kind_of_one()} {name!r} needs the module {error.name!r}, which is not installed."
                f" pip install 'empatheia[{extra}]'"
            ) from error

    def _kind_of_one(self) -> str:
        return _SINGULAR.get(self.kind, self.kind)

    def add(self, name: str, target: str) -> None:
        """Adds an entry at run time (tests and notebooks; packages use the entry-point group)."""
        self._entries[name] = target

    def __contains__(self, name: str) -> bool:
        return name in self.names()
