"""Files of a run: whole under their final name or absent, each with a manifest that says what it was made from.

A file is written under another name, brought to disk and renamed; then its manifest is. A shard whose manifest fits its
inputs, settings and code is not made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from empatheia import writing
from empatheia.errors import DataError, MissingDependencyError
from empatheia.reading import UnreadableError, read_record

if TYPE_CHECKING:
    import numpy as np
    from pyarrow import RecordBatch, Schema

ROWS_AT_ONCE = 2048
"""Rows held in memory before they are written."""


def pyarrow() -> ModuleType:
    """The package, or what to install.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install 'empatheia[people]'") from None
    return pyarrow


@lru_cache(maxsize=1)
def code_hash() -> str:
    """What tells this version of the curation from others: 16 hex digits of its files."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def settings_hash(*parts: object) -> str:
    """16 hex digits of anything JSON can hold."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write; the file gets its name when all went well, and is gone otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing.whole_file(path, durable=True) as part:
        yield part


def write_json(path: Path, record: Mapping[str, object]) -> None:
    """A JSON file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


class RowWriter:
    """Rows into a Parquet file, a bounded number at a time; the same rows give the same bytes.

    Args:
        path: Where it is written.
        schema: Of pyarrow.
    """

    def __init__(self, path: Path, schema: Schema) -> None:
        self._arrow = pyarrow()
        self._schema = schema
        self._writer = self._arrow.parquet.ParquetWriter(path, schema, compression="zstd")
        self._rows: list[Mapping[str, object]] = []
        self.n = 0

    def add(self, row: Mapping[str, object]) -> None:
        """One row."""
        self._rows.append(row)
        self.n += 1
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = {name: [row[name] for row in self._rows] for name in self._schema.names}
            self._writer.write_table(self._arrow.table(columns, schema=self._schema))
            self._rows = []

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._flush()
            self._writer.close()
        else:
            with contextlib.suppress(Exception):  # what is half is removed by its owner
                self._writer.close()


def rows_of(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet file, a stretch at a time.

    Raises:
        UnreadableError: It is damaged.
    """
    for batch in batches_of(path, columns):
        yield from batch.to_pylist()


def batches_of(path: Path, columns: Sequence[str] | None = None) -> Iterator[RecordBatch]:
    """Record batches of a Parquet file.

    Raises:
        UnreadableError: It is damaged.
    """
    arrow = pyarrow()
    try:
        file = arrow.parquet.ParquetFile(path)
        yield from file.iter_batches(ROWS_AT_ONCE, columns=None if columns is None else list(columns))
    except (arrow.ArrowException, ValueError, EOFError) as error:
        said = " ".join(str(error).split())[:200]
        raise UnreadableError(f"{path}: not a complete Parquet file ({said}). Remove it and resume.") from None


def column_of(path: Path, name: str) -> np.ndarray:
    """A column of numbers as an array of numpy.

    Raises:
        UnreadableError: The file is damaged.
    """
    import numpy as np

    parts = [batch.column(0).to_numpy(zero_copy_only=False) for batch in batches_of(path, [name])]
    return np.concatenate(parts) if parts else np.zeros(0)


def manifest_of(path: Path) -> Path:
    """Where a file's manifest lies."""
    return path.with_name(f"{path.name}.json")


def is_made(path: Path, key: str) -> dict[str, Any] | None:
    """The manifest of a file that is there, whole, and made from what ``key`` tells; else None."""
    try:
        record = read_record(manifest_of(path))
        sizes = record.get("sizes")
        if record.get("key") != key or not isinstance(sizes, dict):
            return None
        if any((path.parent / name).stat().st_size != size for name, size in sizes.items()):
            return None
    except (OSError, UnreadableError):
        return None
    return record


def finish(
    path: Path, key: str, record: Mapping[str, object], files: Sequence[Path] | None = None
) -> dict[str, object]:
    """Writes the manifest of files that have their final names.

    Args:
        path: The file that the manifest is named after.
        key: Of inputs, settings and code.
        record: Counts and the like.
        files: All files; None = ``path`` alone.
    """
    made = [path] if files is None else list(files)
    out = {
        "key": key,
        "sizes": {str(one.relative_to(path.parent)): one.stat().st_size for one in made},
        "sha256": {str(one.relative_to(path.parent)): file_hash(one) for one in made},
        "code": code_hash(),
        **record,
    }
    write_json(manifest_of(path), out)
    return out


def outputs_mark(manifests: Sequence[Mapping[str, object]]) -> str:
    """One hash for the outputs of several shards, whatever their order."""
    return settings_hash(sorted(json.dumps(one["sha256"], sort_keys=True) for one in manifests))


def check_room(folder: Path, needed: int) -> None:
    """Whether there is some room before a long run starts.

    Raises:
        DataError: There is less than ``needed`` bytes.
    """
    import shutil

    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DataError(
            f"{folder} has {free >> 20:,} MiB free; about {needed >> 20:,} are needed."
            " Free some, or choose another --out."
        )
