"""How many rows of a file were used, and which were not: counted as they come, told at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from empatheia.cli.output import say
from empatheia.errors import DataError

LISTED = 10
"""Numbers of bad rows that are told at the end; each was told when it came."""


@dataclass
class Tally:
    """Rows so far.

    Attributes:
        n_good: Used, those of an earlier run among them.
        n_bad: Not used, likewise.
        bad: Numbers of the first bad rows of this run, one more than are listed.
    """

    n_good: int = 0
    n_bad: int = 0
    bad: list[int] = field(default_factory=list)

    def add(self, number: int, fault: str | None) -> None:
        """Counts a row; says at once what is wrong with it."""
        if fault is None:
            self.n_good += 1
            return
        self.n_bad += 1
        if len(self.bad) <= LISTED:
            self.bad.append(number)
        say(f"row {number}: {fault}")

    def tell(self, places: Sequence[str]) -> None:
        """Says the numbers and where the results are; nothing if all is well and nothing was written.

        Raises:
            DataError: Not one row could be used.
        """
        if self.n_bad or places:
            listed = ", ".join(map(str, self.bad[:LISTED])) + (" ..." if len(self.bad) > LISTED else "")
            numbers = f"{self.n_good + self.n_bad:,} rows, {self.n_bad:,} bad{f' ({listed})' if self.bad else ''}"
            say("; ".join([numbers, *places]))
        if self.n_bad and not self.n_good:
            raise DataError("no row could be used; see the messages above.")
