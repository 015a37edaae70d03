"""Counts answers by level and day; no text, no time of day, nothing of the person. Off unless asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from threading import Lock

from empatheia.errors import DataError
from empatheia.reading import UnreadableError, read_record
from empatheia.records.danger import LEVELS, Level


class Counter:
    """Answers by day and level, in memory, and in a file if one is named.

    Args:
        path: A JSON file that is written after every answer; None = memory only.

    Raises:
        DataError: The file is there and holds something else.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = Lock()
        self.days: dict[str, dict[str, int]] = {}
        if self.path is not None and self.path.exists():
            try:
                self.days = read_record(self.path)
                if not all(isinstance(one, dict) for one in self.days.values()):
                    raise UnreadableError("no counts by day")
            except (UnreadableError, OSError) as error:
                raise DataError(f"{self.path} holds no counts: {error}. Name another file, or remove it.") from error

    def add(self, level: Level, day: date | None = None) -> None:
        """One more answer."""
        with self._lock:
            counts = self.days.setdefault((day or date.today()).isoformat(), dict.fromkeys(LEVELS, 0))
            counts[level] = counts.get(level, 0) + 1
            if self.path is not None:
                self.path.write_text(json.dumps(self.days, indent=1, sort_keys=True), encoding="utf-8")

    def year(self, year: int) -> Mapping[str, int]:
        """Sums of a year, for a report."""
        with self._lock:
            days = [counts for day, counts in self.days.items() if day.startswith(f"{year}-")]
        return {level: sum(counts.get(level, 0) for counts in days) for level in LEVELS}
