"""Result files that are whole or absent: rows go to ``NAME.partial``, which takes the name when all are in.

An interrupted run leaves its ``.partial`` behind, and with ``resume`` the next one goes on after its last row; beside
it ``NAME.partial.models`` holds what the models were, until the result is whole. The ``.partial`` is held against other
processes until the result has its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from empatheia.errors import DataError, MissingResourceError
from empatheia.files.result_table import CSV_COLUMNS, beside_file, csv_pieces, flat
from empatheia.files.rows import Row, Say
from empatheia.files.visible import json_line
from empatheia.reading import parse_json, read_record
from empatheia.records.dialogue import Dialogue
from empatheia.resources import resolve_model
from empatheia.writing import hold_file

_MODEL_FILES = (
    *(".safetensors", ".bin", ".pt", ".npy", ".npz", ".model", ".txt"),
    *("config.json", "tokenizer.json", "empatheia.json"),
)
_N_BLOCKS, _BLOCK = 16, 1 << 16


class ResultFile:
    """JSON lines (or CSV, by the suffix), written atomically.

    Args:
        path: Where the result goes.
        resume: Continue from ``NAME.partial``; without it leftovers of an earlier run are dropped.
        columns: Of the CSV table; ``id`` is left out where no row has one.
        cells: A record as rows of that table.
        first: Any row of the input: in CSV the columns of its table stand in front of ours.
        keeps_formulas: Leave cells of the table that a spreadsheet would compute; else see
            :func:`empatheia.files.result_table.as_text`.
        say: Tells a line, where a failure leaves finished rows.

    Attributes:
        has_cells: Whether records need the caller's columns.

    Raises:
        DataError: The folder does not exist or cannot be written; or, on entering, another process is writing.
    """

    def __init__(
        self,
        path: Path,
        resume: bool = False,
        columns: Sequence[str] = CSV_COLUMNS,
        cells: Callable[[dict[str, Any]], list[dict[str, Any]]] = lambda record: [flat(record)],
        *,
        first: Row | None = None,
        keeps_formulas: bool = False,
        say: Say = lambda line: None,
    ) -> None:
        if path.is_dir():
            raise DataError(f"{path} is a folder; name a file, e.g. {path / 'result.jsonl'}.")
        if not path.name or not path.absolute().parent.is_dir():
            raise DataError(f"the folder {path.absolute().parent} does not exist; create it first.")
        self.path = path
        given = [*first.cells[0]] if first is not None and first.cells and path.suffix.lower() == ".csv" else []
        self.has_cells = bool(given)
        self.columns, self.cells = beside_file(given, columns, cells)
        self.keeps_formulas = keeps_formulas
        self.say = say
        self.partial = path.with_name(path.name + ".partial")
        self.models = path.with_name(path.name + ".partial.models")
        self.resume = resume
        self.n_done = 0
        self._has_ids = False
        self.last_good: dict[str, Any] | None = None

    def __enter__(self) -> ResultFile:
        self._stream = self.partial.open("ab")
        try:
            hold_file(self._stream, self.partial)
            if self.resume:
                self._keep_whole_rows()
            else:
                self._stream.truncate(0)
        except BaseException:
            self._stream.close()
            raise
        return self

    @property
    def remedy(self) -> str:
        """What to do with a partial result that cannot be continued."""
        return f"Delete {self.partial} to start anew, or run without --resume."

    def settle(self, marks: Mapping[str, str]) -> None:
        """Notes which models the rows are made with, or checks that those of the finished rows were the same.

        Args:
            marks: Part to :func:`model_mark`.

        Raises:
            DataError: A model is another one now, under the same name.
        """
        if not self.n_done:
            self.models.write_text(json.dumps(dict(marks)), encoding="utf-8")
            return
        try:
            made = read_record(self.models)
        except (OSError, ValueError):  # names alone have to tell
            return
        if changed := [part for part in {**made, **marks} if made.get(part) != marks.get(part)]:
            raise DataError(
                f"{self.partial} was made with other model files for {', '.join(changed)} under the same name."
                f" {self.remedy}"
            )

    def finished(self, rows: Iterator[Row], read: Callable[[str | Dialogue], Dialogue]) -> Iterator[dict[str, Any]]:
        """The rows an interrupted run left, each checked against the input, which then stands at the next row.

        Args:
            rows: The input from its beginning.
            read: What makes a conversation of a row's item, or raises DataError.

        Raises:
            DataError: A finished row is not that of the input.
        """
        for record in self.done_records():
            row = next(rows, None)
            is_same = row is not None and row.number == record["row"] and row.id in (None, record.get("id"))
            if row is None or not is_same or _turns(row, read) != record.get("turns"):
                where = f"row {record['row']:,} differs"
                raise DataError(f"{self.partial} has {self.n_done:,} rows of another input ({where}). {self.remedy}")
            yield record

    def write(self, record: Mapping[str, object]) -> None:
        """Adds one row."""
        self._has_ids |= "id" in record
        self._stream.write(json_line(record).encode("utf-8") + b"\n")

    def flush(self) -> None:
        """Hands finished rows to the system, so that a kill loses none of them."""
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_whole = False
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            if kind is None:
                if os.name == "nt":  # where an open file cannot be renamed, and none is held
                    self._stream.close()
                self._finish()
                self.models.unlink(missing_ok=True)
                is_whole = True
        finally:
            if not is_whole:
                self._leave()
            with contextlib.suppress(OSError):  # what could not be flushed
                self._stream.close()

    def _leave(self) -> None:
        """After a failure: keeps the rows there are and says where; a file without rows goes."""
        if self.n_done or self.partial.stat().st_size:
            if not self.resume:
                self.say(f"finished rows are kept in {self.partial}; repeat the command with --resume to continue")
        elif not self.resume:
            self.partial.unlink(missing_ok=True)
            self.models.unlink(missing_ok=True)

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
            with table.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
                columns = [name for name in self.columns if name != "id" or self._has_ids]
                stream.writelines(csv_pieces(columns, self._cells(), self.keeps_formulas))
            table.replace(self.path)
        finally:
            table.unlink(missing_ok=True)
        self.partial.unlink()

    def _cells(self) -> Iterator[dict[str, Any]]:
        for record in _records(self.partial):
            try:
                yield from self.cells(record)
            except (LookupError, TypeError, ValueError, AttributeError) as problem:
                what = f"is no result ({type(problem).__name__}: {problem})"
                raise DataError(f"{self.partial}: row {record['row']} {what}. {self.remedy}") from None

    def _keep_whole_rows(self) -> None:
        """Cuts a last line that a kill left unfinished, and notes how many rows are done."""
        for record in keep_whole(self.partial):
            self.n_done = record["row"]
            self._has_ids |= "id" in record
            self.last_good = self.last_good if "error" in record else record


def keep_whole(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file of results; what a kill left unfinished behind the last one is then cut off."""
    size = 0
    with path.open("rb") as stream:
        for line in stream:
            try:
                record = parse_json(line) if line.endswith(b"\n") else None
            except ValueError:
                record = None
            if not isinstance(record, dict) or type(record.get("row")) is not int:
                break
            size += len(line)
            yield record
    os.truncate(path, size)


def model_mark(place: str | Path) -> str:
    """What tells a model from another of the same name: 16 hex digits from the files of its folder.

    Weights are told by their sizes and by blocks spread over each file, so the time does not grow with the model.

    Args:
        place: Folder or name of a model; anything else is told by its text.
    """
    try:
        folder = resolve_model(place)
    except MissingResourceError:
        return str(place)
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.name.endswith(_MODEL_FILES) and path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as stream:
            for number in range(_N_BLOCKS):
                stream.seek(number * max(0, size - _BLOCK) // (_N_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
                if size <= _BLOCK:
                    break
    return digest.hexdigest()[:16]


def _turns(row: Row, read: Callable[[str | Dialogue], Dialogue]) -> list[dict[str, str]] | None:
    """A row's turns as a record holds them; None if the row cannot be used."""
    if row.error is not None or row.item is None:
        return None
    try:
        return [{"role": turn.role, "text": turn.text} for turn in read(row.item).turns]
    except DataError:
        return None


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            yield parse_json(line)
