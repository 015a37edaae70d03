"""Which files there are to read, inside ZIP archives too, what kind each is, and which subtitle stands for its film."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from empatheia.errors import DataError
from empatheia.reading import Member, UnreadableError, members_of, read_bytes, read_member_at
from empatheia_people.curation import chats
from empatheia_people.curation.opus import OpusFacts, read_facts, read_opus
from empatheia_people.curation.records import Script
from empatheia_people.curation.subtitles import FORMATS, read_subtitles

MOST_BYTES = 64 << 20
"""Of one file after it is unpacked; the largest subtitle files of OPUS have a few megabytes."""
_SUFFIXES = {".xml": "opus", ".csv": "meld"} | dict.fromkeys((".jsonl", ".ndjson", ".json", ".txt"), "chats")
_SUFFIXES |= dict.fromkeys(FORMATS, "subtitles")
_LISTS = {f"{name}.json" for name in ("users", "channels", "groups", "dms", "mpims", "canvases", "integration_logs")}
"""Of a Slack export: who and what there is, no messages."""
_YEAR = re.compile(r"\d{3,4}")
_ODD = re.compile(r"[^\w.+-]+")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        path: Of the file, or of the archive it lies in.
        kind: What reads it: ``opus``, ``subtitles``, ``chats``, ``meld``, ``cornell``.
        movie: Identity of its film: OPUS's folder, elsewhere the path below the input folder.
        subtitle: Identity of the file among those of the film.
        member: Where it lies in the archive; None for a plain file.
        size: Bytes on disk.
        changed: When the file or its archive was changed, in nanoseconds.
    """

    path: str
    kind: str
    movie: str
    subtitle: str
    member: Member | None = None
    size: int = 0
    changed: int = 0

    @property
    def place(self) -> str:
        """For messages."""
        return self.path if self.member is None else f"{self.path}:{self.member.name}"

    @property
    def suffix(self) -> str:
        """Of its name without ``.gz``."""
        return _suffix(self.path if self.member is None else self.member.name)

    @property
    def mark(self) -> str:
        """What tells whether it changed."""
        what = f"{self.member.crc}:{self.member.size}" if self.member is not None else f"{self.size}:{self.changed}"
        return f"{self.movie}/{self.subtitle}:{self.kind}:{what}"

    def read(self, most: int = MOST_BYTES) -> bytes:
        """Its bytes, unpacked.

        Raises:
            OSError: It cannot be opened.
            UnreadableError: It is damaged, or larger than ``most``.
        """
        if self.member is not None:
            return read_member_at(self.path, self.member, most)
        return read_bytes(self.path, most)

    def scripts(self, most: int = MOST_BYTES, recase: bool = False) -> Iterator[Script]:
        """What it says; Cornell's file gives one script a film, every other one in all.

        Raises:
            OSError: It cannot be opened.
            UnreadableError: It is damaged, of another kind than its name says, or larger than ``most``.
        """
        raw = self.read(most)
        if len(raw) < 2:
            raise UnreadableError(f"holds {len(raw)} bytes")
        if self.kind == "opus":
            yield read_opus(raw, self.movie, self.subtitle, recase)
        elif self.kind == "subtitles":
            yield read_subtitles(raw, self.suffix, self.movie, self.subtitle)
        elif self.kind == "cornell":
            companion = read_bytes(chats.cornell_companion(Path(self.path)), most)
            yield from chats.read_cornell(raw, companion, self.subtitle)
        elif self.kind == "meld":
            yield chats.read_meld(raw, self.movie, self.subtitle)
        else:
            yield chats.read_chats(raw, self.suffix, self.movie, self.subtitle)


def _suffix(name: str) -> str:
    return Path(name.lower().removesuffix(".gz")).suffix


@dataclass(slots=True)
class Found:
    """The inventory.

    Attributes:
        sources: By movie and subtitle, each once.
        problems: Place to reason, of what cannot be used.
        n_other: Files of kinds that are not read.
    """

    sources: list[Source]
    problems: list[tuple[str, str]]
    n_other: int = 0


def find_sources(inputs: Iterable[str | Path]) -> Found:
    """All files below some folders, or the files themselves; archives are looked into, not unpacked.

    Raises:
        DataError: An input is not there, or there is nothing to read in any.
    """
    found = Found([], [])
    for given in inputs:
        place = Path(given).expanduser()
        if not place.exists():
            raise DataError(f"no such file or folder: {place}. Give subtitle files, chats, ZIP archives or folders.")
        root = place if place.is_dir() else place.parent
        for path in _files(place):
            _add(path, root, found)
    if not found.sources:
        kinds = ", ".join([*_SUFFIXES, ".gz of these", ".zip"])
        why = f" {len(found.problems)} could not be opened: {found.problems[0]}." if found.problems else ""
        raise DataError(f"nothing to read among the inputs; accepted: {kinds}.{why}")
    found.sources.sort(key=lambda one: (one.movie, one.subtitle, one.place))
    kept: list[Source] = []
    for one in found.sources:
        if kept and (kept[-1].movie, kept[-1].subtitle) == (one.movie, one.subtitle):
            found.problems.append((one.place, f"the same identity as {kept[-1].place}; left out"))
        else:
            kept.append(one)
    found.sources = kept
    return found


def _files(place: Path) -> Iterator[Path]:
    """In a fixed order, a folder at a time, as there may be half a million; folders that are links are not entered."""
    if place.is_file():
        yield place
        return
    for path in sorted(place.iterdir()):
        if path.is_dir():
            if not path.is_symlink():
                yield from _files(path)
        elif path.is_file() and not path.name.startswith("."):
            yield path


def _add(path: Path, root: Path, found: Found) -> None:
    if path.suffix.lower() == ".zip":
        _add_archive(path, root, found)
        return
    if (kind := _kind(path)) is None:
        found.n_other += 1
        return
    try:
        facts = path.stat()
    except OSError as error:
        found.problems.append((str(path), str(error.strerror)))
        return
    movie, subtitle = identity(path.relative_to(root).as_posix(), kind)
    found.sources.append(Source(str(path), kind, movie, subtitle, None, facts.st_size, facts.st_mtime_ns))


def _add_archive(path: Path, root: Path, found: Found) -> None:
    try:
        members, changed = members_of(path), path.stat().st_mtime_ns
    except (OSError, UnreadableError) as error:
        found.problems.append((str(path), reason_of(error)))
        return
    for member in members:
        kind = _kind(Path(member.name))
        if kind in (None, "cornell") or Path(member.name).name.startswith("."):
            found.n_other += 1
            continue
        name = member.name if kind == "opus" else f"{path.relative_to(root).as_posix()}/{member.name}"
        movie, subtitle = identity(name, kind)
        found.sources.append(Source(str(path), kind, movie, subtitle, member, member.packed, changed))


def _kind(path: Path) -> str | None:
    name = path.name.lower()
    if name.startswith("movie_conversations") or name.endswith(".truth.tsv") or name in _LISTS:
        return None
    if name.startswith("movie_lines") and chats.cornell_companion(path).is_file():
        return "cornell"
    return _SUFFIXES.get(_suffix(path.name))


def identity(name: str, kind: str) -> tuple[str, str]:
    """Film and subtitle of a path below the input: plain letters, digits, dots; no path is ever made of them.

    >>> identity("OpenSubtitles/xml/en/1999/133093/4953132.xml.gz", "opus")
    ('133093', '4953132')
    >>> identity("series/s01e01.srt", "subtitles")
    ('series-s01e01', 's01e01')
    """
    parts = [_ODD.sub("_", part).strip("._") or "_" for part in name.replace("\\", "/").split("/") if part.strip(". ")]
    parts = parts or ["_"]
    stem = parts[-1]
    for suffix in (".gz", _suffix(name)):
        stem = stem[: -len(suffix)] if suffix and stem.lower().endswith(suffix) else stem
    if kind == "opus" and len(parts) >= 3 and _YEAR.fullmatch(parts[-3]):
        return parts[-2][:80], stem[:80]
    movie = "-".join([*parts[:-1], stem])
    if len(movie) > 120:
        movie = f"{movie[:100]}-{hashlib.sha256(movie.encode()).hexdigest()[:16]}"
    return movie, stem[:80]


def shard_of(movie: str, n_shards: int) -> int:
    """The shard all files of a film meet in: the first bytes of its name's SHA-256, modulo the number of shards."""
    return int.from_bytes(hashlib.sha256(movie.encode()).digest()[:8], "big") % n_shards


def by_film(sources: Iterable[Source], most: int = MOST_BYTES) -> tuple[list[list[Source]], list[tuple[str, str]]]:
    """The subtitles of each film, first the most confident, then of most sentences, then of the smallest identity.

    Nothing is read of a film that has one file. The rule is ours: the paper does not say how it chose (the counts of a
    text dump of the same pipeline fit one file a film). What is no OPUS file stands for itself.

    Returns:
        For each film its files, best first, so that the next can be taken if the first turns out to be damaged; and the
        places of files that could not be read at all, with reasons.
    """
    films: dict[str, list[Source]] = {}
    for one in sources:
        own = one.movie if one.kind == "opus" else f"{one.movie}/{one.subtitle}"
        films.setdefault(own, []).append(one)
    out: list[list[Source]] = []
    problems: list[tuple[str, str]] = []
    for own in films.values():
        if len(own) == 1:
            out.append(own)
            continue
        ranked = []
        for one in own:
            try:
                ranked.append((_rank(read_facts(one.read(most)), one.subtitle), one))
            except (OSError, UnreadableError) as error:
                problems.append((one.place, reason_of(error)))
        if ranked:
            out.append([one for _, one in sorted(ranked, key=lambda pair: pair[0])])
    return out, problems


def _rank(facts: OpusFacts, subtitle: str) -> tuple[float, int, int, str]:
    """Smallest first."""
    number = int(subtitle) if subtitle.isdecimal() and len(subtitle) < 20 else 1 << 63
    return -facts.confidence, -facts.n_sentences, number, subtitle


def reason_of(error: Exception) -> str:
    """Why a file was left out, on one line, without its path."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else error
    text = " ".join(str(said).split())
    return re.sub(r"^\S*[/\\]\S*: ", "", text)[:300]
