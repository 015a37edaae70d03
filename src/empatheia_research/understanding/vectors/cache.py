"""Vectors kept on disk, so that a gold reply is encoded once and not once for each system that is scored.

One SQLite file; a key is a hash of the encoder's fingerprint and the text, so files of several encoders may be one, and
an encoder whose weights changed finds nothing old. What is read back is what was written, to the last bit.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from empatheia.errors import CheckpointError
from empatheia.metrics.bertscore import TokenVectors

_SLAB = 1024
"""Texts encoded between two writes; a run that is killed loses at most these."""
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, states BLOB NOT NULL, ids BLOB, counts BLOB)"


Rows = TypeVar("Rows", covariant=True)
"""An array for sentences, a list of ``TokenVectors`` for pieces."""


class Encoder(Protocol[Rows]):
    """What can be cached: ``SentenceVectors``, ``WordVectors`` or ``TokenEncoder``."""

    name: str
    width: int

    def fingerprint(self) -> str:
        """A hash of everything the vectors depend on."""
        ...

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> Rows:
        """One row or one record for each text."""
        ...


class CachedVectors(Generic[Rows]):
    """An encoder that looks into a file first, and writes there what it lacked.

    Args:
        encoder: Asked for what the file lacks.
        path: The file; made when first needed, in a folder that exists.
    """

    def __init__(self, encoder: Encoder[Rows], path: str | Path) -> None:
        self.encoder, self.path = encoder, Path(path)
        self.name, self.width = encoder.name, encoder.width

    def fingerprint(self) -> str:
        """The encoder's."""
        return self.encoder.fingerprint()

    def encode(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> Rows:
        """As the encoder's: an array for sentences, a list of ``TokenVectors`` for pieces.

        Args:
            texts: Any.
            batch_size: Most texts in one pass.
            progress: Called with the number of texts just finished.

        Raises:
            CheckpointError: The file is damaged or cannot be written.
        """
        mark = self.fingerprint()
        keys = {text: _key(mark, text) for text in dict.fromkeys(texts)}
        with self._open() as file:
            found = {text: entry for text, key in keys.items() if (entry := self._read(file, key)) is not None}
            missing = [text for text in keys if text not in found]
            if progress is not None and len(texts) > len(missing):
                progress(len(texts) - len(missing))
            for start in range(0, len(missing), _SLAB):
                some = missing[start : start + _SLAB]
                made: Any = self.encoder.encode(some, batch_size=batch_size, progress=progress)
                found.update(zip(some, made, strict=True))
                file.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                    [(keys[text], *_blobs(entry)) for text, entry in zip(some, made, strict=True)],
                )
                file.commit()
        if not texts:
            return self.encoder.encode([])
        ordered: list[Any] = [found[text] for text in texts]
        rows: Any = ordered if isinstance(ordered[0], TokenVectors) else np.stack(ordered)
        return rows

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as file:
                file.execute(_TABLE)
                yield file
        except sqlite3.Error as error:
            raise CheckpointError(
                f"the vectors kept in {str(self.path)!r} cannot be used ({error}); delete the file or name another."
            ) from None

    def _read(self, file: sqlite3.Connection, key: str) -> np.ndarray | TokenVectors | None:
        row = file.execute("SELECT states, ids, counts FROM vectors WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        states = np.frombuffer(row[0], dtype=np.float32)
        if row[1] is None:
            return states
        ids = np.frombuffer(row[1], dtype=np.int64)
        return TokenVectors(ids, states.reshape(len(ids), -1), np.frombuffer(row[2], dtype=bool))


def _key(fingerprint: str, text: str) -> str:
    return hashlib.sha256(f"{fingerprint}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _blobs(entry: Any) -> tuple[bytes, bytes | None, bytes | None]:
    if isinstance(entry, TokenVectors):
        return entry.vectors.astype(np.float32).tobytes(), entry.ids.astype(np.int64).tobytes(), entry.counts.tobytes()
    return np.asarray(entry, dtype=np.float32).tobytes(), None, None
