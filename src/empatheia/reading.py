"""The one door to JSON, JSON lines, CSV, gzip of others: bounded in size, depth and digits, in UTF-8.

Whatever is wrong with a file is an :class:`UnreadableError` that says where and what is accepted. It is a
``DataError``, so nobody has to catch it, and a ``ValueError``, so who has another remedy may.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from empatheia.errors import DataError

if TYPE_CHECKING:
    import numpy as np

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""What JSON can hold, and so what every ``to_dict`` here gives."""
MAX_BYTES = 1 << 30
"""Of a file that is read whole, after it is unpacked."""
MAX_LINE = 64 << 20
"""Characters of a line of a file that is read line by line."""
MAX_DEPTH = 100
"""Lists and objects of JSON within each other."""
MAX_DIGITS = 100
"""Of a whole number in JSON."""
MAX_FIELD = 64 << 20
"""Characters of a cell of CSV."""
MAX_ENTRIES = 100_000
"""Files and folders that are looked at below a folder that somebody named."""
MAX_CONTENTS = 1 << 20
"""Bytes of the table of contents of a ZIP archive of a few files."""
MAX_ALL_CONTENTS = 256 << 20
"""The same of a corpus, one entry a film: about two million."""
_GZIP = b"\x1f\x8b"
_DAMAGED = (OSError, EOFError, zlib.error)


_LOG = logging.getLogger(__name__)
_LOGGED = 5
"""Problems of a file that are logged one by one."""


class UnreadableError(DataError, ValueError):
    """A file or a text is not what its reader accepts.

    Args:
        msg: What is wrong.
        lineno, colno: Where, from 1; 0 if it is nowhere in particular.
    """

    def __init__(self, msg: str, lineno: int = 0, colno: int = 0) -> None:
        self.msg, self.lineno, self.colno = msg, lineno, colno
        super().__init__(f"{msg}: line {lineno} column {colno}" if lineno else msg)


def parse_json(text: str | bytes) -> Any:
    """A JSON value.

    Raises:
        UnreadableError: The text is none, is not UTF-8, is nested too deep or has a number of too many digits.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    try:
        value = json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise UnreadableError(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise UnreadableError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(value)
    return value


_TOO_DEEP = f"lists and objects are nested too deep; accepted: at most {MAX_DEPTH} within each other"


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise UnreadableError(_TOO_DEEP)


def _inside(value: Any) -> Iterable[Any]:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (inner for inner in values if isinstance(inner, dict | list))


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise UnreadableError(f"a number of too many digits ({len(digits):,}); accepted: at most {MAX_DIGITS}")
    return int(digits)


def whole_number(text: str) -> int | None:
    """A whole number of 0 or more in plain digits, or None: not of thousands of digits, not ``²``.

    >>> whole_number(" 41 "), whole_number("-1"), whole_number("²")
    (41, None, None)
    """
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS else None


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """What a file holds, plain or unpacked from gzip (told by its first bytes, not its name).

    Args:
        path: Of the file.
        most: Bytes, after it is unpacked; None = :data:`MAX_BYTES`.

    Raises:
        OSError: It cannot be opened.
        UnreadableError: It is too large, or a damaged or truncated gzip file.
    """
    path, most = Path(path), MAX_BYTES if most is None else most
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size  # asked for more, Python takes all of that memory first
        raw = file.read(min(size, most) + 1)
        if len(raw) > size:  # a pipe, or a file that grows
            raw += file.read(most + 1 - len(raw))
        if raw[:2] == _GZIP:
            file.seek(0)
            raw = _gunzipped(file, path, most)
    return _bounded(raw, path, most)


def _gunzipped(file: IO[bytes], place: str | Path, most: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            return unpacked.read(most + 1)
    except _DAMAGED as error:
        raise _damaged(Path(place), error) from None


def _bounded(raw: bytes, place: str | Path, most: int) -> bytes:
    if len(raw) > most:
        size = f"{most >> 20:,} MiB" if most >= 1 << 20 else f"{most:,} bytes"
        raise UnreadableError(f"{place}: holds more than {size}, unpacked; accepted: at most that. Split the file.")
    return raw


def _damaged(path: Path, error: Exception) -> UnreadableError:
    return UnreadableError(f"{path}: damaged or truncated gzip file ({error}). Get the file again.")


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, without a byte order mark, as :func:`read_bytes` reads it.

    Raises:
        OSError: It cannot be opened.
        UnreadableError: It is too large, not UTF-8, or a damaged or truncated gzip file.
    """
    return _decoded(read_bytes(path), path)


def _decoded(raw: bytes, path: str | Path = "") -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        where = f"{path}:{line}: " if path else ""
        raise UnreadableError(
            f"{where}byte 0x{error.object[error.start]:02x} is not UTF-8. Convert the file to UTF-8."
        ) from None


def read_json(path: str | Path) -> Any:
    """The JSON value of a file.

    Raises:
        OSError: It cannot be opened.
        UnreadableError: It holds none, or one that :func:`parse_json` refuses.
    """
    text = read_text(path)
    try:
        return parse_json(text)
    except UnreadableError as error:
        raise UnreadableError(f"{path}: not JSON ({error}). Copy the file again, or make it again.") from None


def read_record(path: str | Path) -> dict[str, Any]:
    """The JSON object of a file; raises as :func:`read_json`, and UnreadableError for a value of another kind."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise UnreadableError(f"{path}: holds a JSON {type(value).__name__}; accepted: an object. Make the file again.")
    return value


def lines_of(path: str | Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Lines of a plain or gzip file with their numbers from 1, one at a time; only a line feed ends one.

    Args:
        path: Of any size; one line is bounded.
        errors: What becomes of bytes that are not UTF-8: ``strict`` or ``replace``.

    Raises:
        OSError: It cannot be opened.
        UnreadableError: A line is too long or not UTF-8, or the gzip file is damaged or truncated.
    """
    path = Path(path)
    with path.open("rb") as raw:
        is_packed = raw.read(2) == _GZIP
        raw.seek(0)
        file: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if is_packed else raw
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(MAX_LINE + 1)
            except _DAMAGED as error:
                raise _damaged(path, error) from None
            if not line:
                return
            if len(line) > MAX_LINE:
                raise UnreadableError(f"{path}:{number}: a line of more than {MAX_LINE >> 20} MiB. Break it up.")
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8", errors)
            except UnicodeDecodeError as error:
                raise UnreadableError(
                    f"{path}:{number}: byte 0x{error.object[error.start]:02x} is not UTF-8. Convert the file to UTF-8."
                ) from None


class CsvCells(Iterator[list[str]], Protocol):
    """Cells of each row, as ``csv.reader`` gives them."""

    @property
    def line_num(self) -> int:
        """Line at which the last row ended."""
        ...


def csv_reader(lines: Iterable[str], **options: Any) -> CsvCells:
    """``csv.reader`` with bounded cells; see there for the options and for ``csv.Error``."""
    csv.field_size_limit(MAX_FIELD)
    return csv.reader(lines, **options)


class CsvRows:
    """Rows of a CSV text as dictionaries; a cell that a row lacks is empty, one that has no column is left out.

    Args:
        text: With a header line.
        place: Whose it is, for messages.
        delimiter: Between cells.
    """

    def __init__(self, text: str, place: str | Path = "", delimiter: str = ",") -> None:
        self.place = str(place)
        self._reader = csv_reader(io.StringIO(text, newline=""), delimiter=delimiter)
        self.fieldnames: list[str] = next(self._cells(), [])

    @property
    def line_num(self) -> int:
        """Line of the file at which the last row ended."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[dict[str, str]]:
        for cells in self._cells():
            if cells:
                cells += [""] * (len(self.fieldnames) - len(cells))
                yield dict(zip(self.fieldnames, cells, strict=False))

    def _cells(self) -> Iterator[list[str]]:
        try:
            yield from self._reader
        except csv.Error as error:
            where = f"{self.place}:{self.line_num}: " if self.place else ""
            raise UnreadableError(f"{where}not readable as CSV: {error}. Is a quotation mark not closed?") from None


def read_array(path: str | Path, mmap: bool = False) -> np.ndarray:
    """The array of a ``.npy`` file; no more is taken into memory than the file is long.

    Args:
        path: Never unpickled.
        mmap: Leave it on disk.

    Raises:
        OSError: It cannot be opened.
        UnreadableError: It is no such file, or shorter than it says.
    """
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # a header without its numbers maps nothing
        if not isinstance(array, np.ndarray):
            raise ValueError("an archive instead of one array")
        return array if mmap else np.array(array)
    except OSError:
        raise
    except Exception as error:  # numpy evaluates a header as Python, with errors of all its kinds
        raise UnreadableError(
            f"{path}: not a complete array ({' '.join(str(error).split())[:200]}). Make it again."
        ) from None


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of a ``.npz`` file, bounded after they are unpacked; raises as :func:`read_array`."""
    import numpy as np

    try:
        with _zip_file(path, MAX_CONTENTS) as archive:
            if (size := sum(entry.file_size for entry in archive.infolist())) > MAX_BYTES:
                raise UnreadableError(f"{path}: unpacks to {size:,} bytes; accepted: at most {MAX_BYTES:,}.")
            out = {}
            for entry in archive.infolist():
                head = io.BytesIO(archive.read(entry))  # no more than the size that was added up
                out[entry.filename.removesuffix(".npy")] = np.lib.format.read_array(head, allow_pickle=False)
            return out
    except UnreadableError:
        raise
    except FileNotFoundError:
        raise
    except Exception as error:  # as above, and those of a damaged archive
        said = " ".join(str(error).split())[:200]
        raise UnreadableError(f"{path}: not complete arrays ({said}). Make it again.") from None


def files_below(folder: str | Path, pattern: str) -> list[Path]:
    """Files below a folder, in order of their paths; links to folders are not followed.

    Args:
        folder: Where to look; nothing is found where there is none.
        pattern: Of the names, as ``*-seed*.json``.

    Raises:
        UnreadableError: More than :data:`MAX_ENTRIES` files and folders are below it (somebody named the whole disk).
    """
    found: list[Path] = []
    n_seen = 0
    for place, folders, names in os.walk(folder):
        n_seen += len(folders) + len(names)
        if n_seen > MAX_ENTRIES:
            raise UnreadableError(
                f"more than {MAX_ENTRIES:,} files and folders are below {folder}; name the folder that holds "
                f"the files looked for ({pattern})."
            )
        found += (Path(place, name) for name in names if fnmatchcase(name, pattern))
    return sorted(found)


class Member(NamedTuple):
    """Where a file lies in a ZIP archive, so that it can be read without the archive's table of contents.

    Attributes:
        name: As the archive has it; a name only, nothing is ever unpacked to a path.
        offset: Of its header in the archive.
        packed: Bytes in the archive.
        size: Bytes after it is unpacked, as the archive says.
        method: 0 stored, 8 deflated.
        crc: CRC-32 of what it holds.
    """

    name: str
    offset: int
    packed: int
    size: int
    method: int
    crc: int


class BoundedReads(io.RawIOBase):
    """A file of which a library reads no more than is left to it, whatever the file says of its own sizes.

    Args:
        file: What is read.
        what: Is read, for the message.
        left: Bytes; whoever made this sets it anew as it goes on.
    """

    def __init__(self, file: IO[bytes], what: str, left: float = math.inf) -> None:
        self.file, self.what, self.left = file, what, left

    def read(self, size: int = -1, /) -> bytes:
        """As of any file.

        Raises:
            UnreadableError: More is asked for than is left.
        """
        data = self.file.read(size) if size <= self.left else b""
        self.left -= max(size, len(data))
        if self.left < 0:
            raise UnreadableError(f"{self.what} is longer than accepted. Get the archive from where it was made.")
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """As of any file."""
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        """As of any file."""
        return self.file.tell()


@contextmanager
def _zip_file(path: str | Path, most: int) -> Iterator[zipfile.ZipFile]:
    """A ZIP archive whose table of contents has at most so many bytes, of which zipfile makes objects at once."""
    with Path(path).open("rb") as file:
        bounded = BoundedReads(file, f"{path}: its list of files", most)
        with zipfile.ZipFile(cast("IO[bytes]", bounded)) as archive:
            bounded.left = math.inf
            yield archive


def members_of(path: str | Path) -> list[Member]:
    """The files of a ZIP archive, in its order.

    Raises:
        OSError: It cannot be opened.
        UnreadableError: It is no archive, truncated or damaged.
    """
    try:
        with _zip_file(path, MAX_ALL_CONTENTS) as archive:
            return [
                Member(one.filename, one.header_offset, one.compress_size, one.file_size, one.compress_type, one.CRC)
                for one in archive.infolist()
                if not one.is_dir() and not one.flag_bits & 1
            ]
    except (OSError, UnreadableError):
        raise
    except Exception as error:  # damaged archives raise errors of all kinds
        said = " ".join(str(error).split())[:200]
        raise UnreadableError(f"{path}: a damaged or truncated ZIP archive ({said}). Get it again.") from None


def read_member_at(path: str | Path, member: Member, most: int = MAX_BYTES) -> bytes:
    """What a file of a ZIP archive holds, unpacked from gzip too where it is packed twice.

    Args:
        path: Of the archive.
        member: One of :func:`members_of`.
        most: Bytes, after it is unpacked, whatever the archive says of its size.

    Raises:
        OSError: The archive cannot be opened.
        UnreadableError: It is damaged, packed by another method, or larger than ``most``.
    """
    place = f"{path}:{member.name}"
    if member.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnreadableError(f"{place}: packed by method {member.method}; accepted: 0 (stored) and 8 (deflated).")
    with Path(path).open("rb") as file:
        file.seek(member.offset)
        head = file.read(30)
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise UnreadableError(f"{place}: no file where the archive says there is one. Get it again.")
        file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), io.SEEK_CUR)
        raw = file.read(min(member.packed, most + 1))
    if member.method == zipfile.ZIP_DEFLATED:
        try:
            raw = zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, most + 1)
        except zlib.error as error:
            raise UnreadableError(f"{place}: damaged ({error}). Get the archive again.") from None
    _bounded(raw, place, most)
    if zlib.crc32(raw) != member.crc:
        raise UnreadableError(f"{place}: damaged (its checksum differs). Get the archive again.")
    return _bounded(_gunzipped(io.BytesIO(raw), place, most), place, most) if raw[:2] == _GZIP else raw


def read_member(path: str | Path, choose: Callable[[list[str]], str]) -> tuple[str, bytes]:
    """A file of a ZIP archive with its name, bounded after it is unpacked.

    Args:
        path: Of the archive.
        choose: Given the names in it, gives that of the file, or raises.

    Raises:
        UnreadableError: The archive is damaged, or the file in it too large.
    """
    try:
        with _zip_file(path, MAX_CONTENTS) as archive:
            name = choose(archive.namelist())
            if (size := archive.getinfo(name).file_size) > MAX_BYTES:
                raise UnreadableError(f"{path}: {name} unpacks to {size:,} bytes; accepted: at most {MAX_BYTES:,}.")
            return name, archive.read(name)
    except DataError:
        raise
    except Exception as error:  # damaged archives raise errors of all kinds
        said = " ".join(str(error).split())[:200]
        raise UnreadableError(f"{path}: a damaged archive ({said}). Get it again.") from None


@dataclass(frozen=True, slots=True)
class Problem:
    """A place in a corpus file that could not be used.

    Attributes:
        path: The file.
        line: 1-based line, or 0 when the fault is not in one line.
        reason: What is wrong and what was left out because of it.
    """

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their 1-based numbers; only a line feed (or carriage return and line feed) ends one."""
    for number, line in enumerate(io.StringIO(read_text(path), newline="\n"), start=1):
        yield number, line.rstrip("\r\n")


def report(problems: Sequence[Problem], strict: bool) -> None:
    """Logs the problems of a file, or raises the first when ``strict``.

    Raises:
        DataError: ``strict`` and there is a problem.
    """
    if not problems:
        return
    if strict:
        more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
        raise DataError(f"{problems[0]}{more}")
    for problem in problems[:_LOGGED]:
        _LOG.warning("%s", problem)
    if len(problems) > _LOGGED:
        _LOG.warning("... and %d more problems in %s", len(problems) - _LOGGED, problems[0].path)
