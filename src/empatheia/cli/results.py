"""Result files that are whole or absent: rows go to ``NAME.partial``, which takes the name when all are in.

With ``resume`` an interrupted run leaves its ``.partial`` behind and the next one goes on after its last row.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from empatheia.errors import DataError

CSV_COLUMNS = ("row", "id", "text", "emotion", "probability", "causes", "uncertain", "error")


class ResultFile:
    """JSON lines (or CSV, by the suffix), written atomically.

    Args:
        path: Where the result goes.
        resume: Continue from ``NAME.partial`` and keep it on failure; without it leftovers are dropped.
        columns: Of the CSV table.
        cells: A record as rows of that table; None = one row, see :func:`flat`.

    Raises:
        DataError: The folder does not exist or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        resume: bool = False,
        columns: Sequence[str] = CSV_COLUMNS,
        cells: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None,
    ) -> None:
        self.path = path
        self.columns = columns
        self.cells = cells or (lambda record: [flat(record)])
        self.partial = path.with_name(path.name + ".partial")
        self.resume = resume
        self.n_done = 0
        self.last_record: dict[str, Any] | None = None
        self.last_good: dict[str, Any] | None = None
        if path.is_dir():
            raise DataError(f"{path} is a folder; name a file, e.g. {path / 'result.jsonl'}.")
        if not path.absolute().parent.is_dir():
            raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")

    def __enter__(self) -> ResultFile:
        if self.resume and self.partial.exists():
            self._keep_whole_rows()
        self._stream = self.partial.open("ab" if self.resume else "wb")
        return self

    def write(self, record: dict[str, Any]) -> None:
        """Adds one row."""
        self._stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")

    def flush(self) -> None:
        """Hands finished rows to the system, so that a kill loses none of them."""
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_whole = False
        try:
            try:
                self._stream.flush()
                os.fsync(self._stream.fileno())
            finally:
                self._stream.close()
            if kind is None:
                self._finish()
                is_whole = True
        finally:
            if not is_whole and not self.resume:
                self.partial.unlink(missing_ok=True)

    def done_records(self) -> Iterator[dict[str, Any]]:
        """The rows an interrupted run left, in order; none after a fresh start."""
        if self.n_done:
            yield from _records(self.partial)

    def _finish(self) -> None:
        if self.path.suffix.lower() != ".csv":
            self.partial.replace(self.path)
            return
        table = self.path.with_name(self.path.name + ".table.partial")
        try:
            with table.open("w", encoding="utf-8", newline="") as stream:
                writer: csv.DictWriter[str] = csv.DictWriter(stream, self.columns)
                writer.writeheader()
                for record in _records(self.partial):
                    writer.writerows(self.cells(record))
            table.replace(self.path)
        finally:
            table.unlink(missing_ok=True)
        self.partial.unlink()

    def _keep_whole_rows(self) -> None:
        """Cuts a last line that a kill left unfinished, and notes how many rows are done."""
        size = 0
        with self.partial.open("rb") as stream:
            for line in stream:
                try:
                    record = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    record = None
                if not isinstance(record, dict) or "row" not in record:
                    break
                size += len(line)
                self.n_done, self.last_record = int(record["row"]), record
                self.last_good = self.last_good if "error" in record else record
        os.truncate(self.partial, size)


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """A result row as CSV cells: the strongest emotion, the last turn, causes joined by ``|``."""
    cells: dict[str, Any] = {
        "row": record["row"],
        "id": record.get("id", ""),
        "error": record.get("error", ""),
    }
    if "emotions" in record:
        cells["text"] = record["turns"][-1]["text"]
        cells["emotion"] = record["emotion"]
        cells["probability"] = f"{record['emotions'][record['emotion']]:.4f}"
        cells["causes"] = " | ".join(cause["text"] for cause in record["causes"])
        cells["uncertain"] = "; ".join(record["uncertain"])
    return cells


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)
