"""What ``empatheia doctor`` looks at and uses: lines of its report, and how other packages add theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from empatheia.registry import Registry

State = Literal["ok", "missing", "broken", "optional"]
TEXT = "I lost my keys and I am so sad about it."
"""What models are tried with."""
REINSTALL = "pip install --force-reinstall --no-deps . in the package's source folder"


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    part: str
    state: State
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Trial:
    """One use.

    Attributes:
        part: What is used.
        use: Uses it and says in a few words what came of it.
        remedy: The command that mends it where the error itself names none.
    """

    part: str
    use: Callable[[], object]
    remedy: str = REINSTALL


@dataclass(frozen=True)
class DoctorChecks:
    """What a package that stands on the core adds to the report, where all it needs is installed.

    Attributes:
        look: Lines about what is here; nothing is loaded.
        trials: Parts that are loaded and used once.
        uses: An extra to its use.
    """

    look: Callable[[], Iterable[Check]]
    trials: Callable[[], Iterable[Trial]]
    uses: Mapping[str, Callable[[], str]]


CHECKS = Registry("checks", {})
"""Extra that a package is installed by, e.g. ``research``, to its :class:`DoctorChecks`."""
