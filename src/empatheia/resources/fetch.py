"""Downloads that resume and verify, and archives unpacked safely."""

from __future__ import annotations

import errno
import gzip
import hashlib
import math
import re
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO, cast
from urllib.parse import urlsplit

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import BoundedReads
from empatheia.resources.http import Answer, StatusError, opened
from empatheia.resources.lookup import is_offline

Progress = Callable[[int, int | None], None]
_LENGTH = re.compile("[0-9]{1,15}")
MAX_DOWNLOAD = 16 << 30
"""Bytes of a file whose size nobody declared."""
_MOST_MEMBERS, _MOST_HEADER, _LONGEST_NAME = 10_000, 1 << 16, 255
"""Of an archive: files and folders, bytes of a header, characters of a name."""
_OF_DAMAGE = (gzip.BadGzipFile, FileExistsError, IsADirectoryError, NotADirectoryError)
"""A damaged header, or one name that is a file and a folder."""


def download(
    url: str,
    dest: str | Path,
    sha256: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout: float = 20.0,
    longest: float = 3600.0,
) -> Path:
    """Fetches a file, resuming an earlier attempt; ``dest`` appears whole and verified, or not at all.

    What has come so far stays in ``<dest>.part``; the next call asks the server for the rest and starts anew
    if the server cannot do that or its file has changed.

    Args:
        url: http or https address.
        dest: File to write; a file that is there and has the checksum is kept.
        sha256: Expected checksum (hex).
        size: Expected number of bytes.
        progress: Called with bytes so far and the total if known.
        attempts: How often to try when the connection breaks.
        timeout: Seconds without any byte before an attempt is given up.
        longest: Seconds before it is given up however many bytes came; what has come is kept.

    Raises:
        MissingResourceError: No network, no such file on the server, the body ended early, or the disk is
            full.
        DataError: Checksum or size differ from what was expected; the file is removed.
    """
    dest = Path(dest)
    if dest.is_file() and (sha256 is None or file_sha256(dest) == sha256.lower()):
        return dest
    if is_offline():
        raise MissingResourceError(
            f"{url} cannot be fetched: the offline switch is on. Unset it, or fetch it elsewhere."
        )
    part = dest.with_name(dest.name + ".part")
    stamp = dest.with_name(dest.name + ".part.tag")
    fault = ""
    try:
        dest.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(attempts):
            if attempt:
                time.sleep(min(0.2 * 2**attempt, 2.0))
            fault = _fetch(url, part, stamp, size, progress, timeout, longest)
            if not fault:
                break
        else:
            raise MissingResourceError(
                f"{url}: {fault} (tried {attempts} times). Run the same command again to resume."
            )
        if sha256 is not None and (found := file_sha256(part)) != sha256.lower():
            part.unlink()
            raise DataError(
                f"{url}: SHA-256 is {found}, expected {sha256.lower()}: damaged, or another version."
                " It was removed; run again, and report it if the same happens."
            )
        part.replace(dest)
        stamp.unlink(missing_ok=True)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MissingResourceError(
                f"no space left for {dest}. Free some or set EMPATHEIA_CACHE elsewhere."
            ) from error
        raise MissingResourceError(f"cannot write {dest}: {error.strerror or error}.") from error
    return dest


def _fetch(
    url: str, part: Path, stamp: Path, size: int | None, progress: Progress | None, timeout: float, longest: float
) -> str:
    """One attempt; returns what went wrong and may be tried again, or "" if the body is complete.

    Raises:
        MissingResourceError: The server refuses the address.
        DataError: The body has another size than expected.
        OSError: Writing failed.
    """
    have = part.stat().st_size if part.is_file() else 0
    headers = {}
    if have:
        headers["Range"] = f"bytes={have}-"
        if stamp.is_file():
            headers["If-Range"] = stamp.read_text(encoding="utf-8")
    if urlsplit(url).scheme not in ("http", "https"):
        raise MissingResourceError(f"{url} is not an address that can be fetched; accepted: http:// and https://.")
    written = False
    try:
        with opened("GET", url, headers=headers, timeout=timeout, total=longest) as answer:
            written = True
            return _receive(answer, have, part, stamp, size, progress)
    except StatusError as error:
        if error.code == 416:  # the part is at least as long as the file: take it anew
            part.unlink(missing_ok=True)
            return "the server had nothing to resume"
        if error.code in (408, 429) or error.code >= 500:
            return f"the server answers {error.code} {error.reason}"
        raise MissingResourceError(
            f"{url}: the server answers {error.code} {error.reason}. The address may have moved;"
            " `empatheia data list` names the origin."
        ) from error
    except (OSError, ValueError) as error:
        if written and isinstance(error, TimeoutError):
            return str(error)
        if written:
            raise
        return f"cannot be reached ({error}); check the network"


def _receive(answer: Answer, have: int, part: Path, stamp: Path, size: int | None, progress: Progress | None) -> str:
    """Writes a body behind the ``have`` bytes of ``part``, or anew; returns and raises as ``_fetch``."""
    have = have if _continues(answer, have) else 0
    expected = _expected(answer, have, size, part)
    _note_version(answer, stamp)
    most = MAX_DOWNLOAD if expected is None else expected
    blocks, why = answer.blocks(), ""
    with part.open("ab" if have else "wb") as file:
        while True:
            try:
                block = next(blocks, b"")
            except OSError as error:
                block, why = b"", f" ({error})"
            have += len(block)
            if not block or have > most:
                break  # no more is written than was declared
            file.write(block)
            if progress is not None:
                progress(have, expected)
    if expected is not None and have < expected:
        return f"the body ended after {have:,} of {expected:,} bytes{why}"
    if why:
        return f"the connection broke after {have:,} bytes{why}"
    if have > most:
        part.unlink(missing_ok=True)
        raise DataError(f"{answer.url}: more than {most:,} bytes came, expected at most that: another version.")
    return ""


def _continues(answer: Answer, have: int) -> bool:
    """Whether a body is the rest of what is there, not the whole anew."""
    return answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-")


def _expected(answer: Answer, have: int, size: int | None, part: Path) -> int | None:
    """How many bytes the whole file has, as the server or else the caller says; None if neither does.

    Raises:
        DataError: They say different numbers; ``part`` is removed.
    """
    length = answer.headers.get("Content-Length") or ""
    if not _LENGTH.fullmatch(length):
        return size
    total = have + int(length)
    if size is not None and total != size:
        part.unlink(missing_ok=True)
        raise DataError(f"{answer.url}: the file has {total:,} bytes, expected {size:,}: another version.")
    return total


def _note_version(answer: Answer, stamp: Path) -> None:
    """Writes by what the version of the file is known again, if the server tells it."""
    tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    if tag and tag.isascii() and not tag.startswith("W/"):
        stamp.write_text(tag, encoding="utf-8")
    else:
        stamp.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _members(file: IO[bytes], max_bytes: int) -> Iterator[tuple[str, IO[bytes]]]:
    """Names and contents of the files of an unpacked archive, one after another; none is kept.

    Raises:
        DataError: Too many, too large, or no plain files below the folder.
    """
    headers = BoundedReads(file, "a header", _MOST_HEADER)
    total = 0
    with tarfile.TarFile(fileobj=cast("IO[bytes]", headers)) as tar:
        for number in count():
            headers.left = _MOST_HEADER
            member = tar.next()
            vars(tar).update(members=[], pax_headers={})  # what was read before is not kept
            if member is None:
                return
            if number >= _MOST_MEMBERS:
                raise DataError(f"holds more than {_MOST_MEMBERS:,} files and folders; refused.")
            if member.isdir():
                continue
            name = PurePosixPath(member.name)
            is_below = not name.is_absolute() and ".." not in name.parts and "\\" not in member.name
            is_named = len(member.name) <= _LONGEST_NAME and member.name.isprintable()
            if not (member.isreg() and not member.issparse() and member.size >= 0 and is_below and is_named):
                raise DataError(
                    f"member {member.name[:_LONGEST_NAME]!r} is not a plain file below the folder; refused."
                )
            if (total := total + member.size) > max_bytes:
                raise DataError(f"unpacks to {total:,} bytes or more, at most {max_bytes:,} are accepted.")
            headers.left = math.inf
            content = tar.extractfile(member)
            assert content is not None  # only plain files are left
            yield member.name, content


def extract_tar(archive: Path, folder: Path, max_bytes: int = 1 << 30) -> list[Path]:
    """Unpacks a .tar or .tar.gz of plain files into a folder; each file appears whole or not at all.

    Raises:
        DataError: The archive is damaged, unpacks to more than ``max_bytes`` or :data:`_MOST_MEMBERS` files, or holds a
            link, a device or a path that leads out of the folder; then nothing is written.
        MissingResourceError: The disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    try:
        with archive.open("rb") as raw, tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as scratch:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if is_packed else raw
            for number, (name, content) in enumerate(_members(file, max_bytes)):
                with content, (Path(scratch) / str(number)).open("wb") as piece:
                    shutil.copyfileobj(content, piece)
                written.append(folder / name)
            for number, target in enumerate(written):
                target.parent.mkdir(parents=True, exist_ok=True)
                (Path(scratch) / str(number)).replace(target)
    except DataError as error:
        raise DataError(f"{archive}: {error}") from None
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MissingResourceError(
                f"no space left to unpack {archive} in {folder}. Free some and run again."
            ) from error
        if not isinstance(error, _OF_DAMAGE):
            raise
        raise _damaged(archive, error) from error
    except (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError, RecursionError) as error:
        raise _damaged(archive, error) from error
    return written


def _damaged(archive: Path, error: Exception) -> DataError:
    return DataError(f"{archive}: damaged archive ({error}). Delete it and get it again.")
