"""Inferences in a file: what expensive providers wrote, read back at once, byte for byte.

JSON lines. The first says who wrote it (provider, fingerprint, n, relations, how turns became heads, source and
licence); each other line is one turn:

    {"row": 1, "id": "hit:0_conv:1", "turn": 0, "text": HASH, "key": HASH, "inferences": {"xReact": {"tails": [...]}}}

``key`` is a hash of the text asked about, the fingerprint and n, so equal texts share an answer; ``text`` is a hash of
the turn as written: a turn is found by conversation id and number only if it still says the same. A line whose end is
missing (the writer was killed) counts as not written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from empatheia.errors import CheckpointError, DataError, MissingResourceError
from empatheia.reading import Json, parse_json
from empatheia.taxonomy import EMPTY, NOT_CACHED, RELATIONS
from empatheia.writing import hold_file
from empatheia_research.understanding.inferences.heads import Asked
from empatheia_research.understanding.inferences.provider import (
    Answer,
    Inferences,
    Progress,
    Tails,
    asked_relations,
    merge,
)

FORMAT = 1
KIND = "inferences"


def text_hash(*texts: str) -> str:
    """16 hex digits of one or several texts."""
    return hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:16]


def cache_key(heads: Sequence[str], fingerprint: str, n: int) -> str:
    """What an answer depends on, as 16 hex digits; white space and case of the heads do not count."""
    return text_hash(fingerprint, str(n), *(" ".join(head.lower().split()) for head in heads))


class CachedInferences:
    """A provider that reads a cache file, and by default nothing else.

    Args:
        path: The file.
        provider: Asked for what the file lacks; what it says is added to the file, which is held against other writers
            until :meth:`close`. It must be the one that wrote it.

    Raises:
        CheckpointError: The file is no cache, or of another provider.
        DataError: With ``provider``, another process writes to it.
    """

    stride = 4096

    def __init__(self, path: str | Path, provider: Inferences | None = None) -> None:
        self.path = Path(path)
        self.provider = provider
        if provider is not None and not self.path.exists():
            _start(self.path, _header(provider, RELATIONS, 5, {}))
        self.header = read_header(self.path)
        if provider is not None and provider.fingerprint() != self.header["fingerprint"]:
            raise CheckpointError(
                f"{self.path} was written by {self.header['provider']!r} with other weights or settings than those of"
                f" {provider.name!r}. Name another file, or delete it to start again."
            )
        self._by_key: dict[str, int] = {}
        self._by_turn: dict[tuple[str, int, str], int] = {}
        self.n_lines = 0
        self._writer: BinaryIO | None = None if provider is None else self.path.open("r+b")
        try:
            if self._writer is not None:
                hold_file(self._writer, self.path)
            whole = 0
            for place, end, line in _whole_lines(self.path):
                whole = end
                if place:
                    self._note(place, line)
            if self._writer is not None:
                self._writer.truncate(whole)
                self._writer.seek(whole)
        except BaseException:
            if self._writer is not None:
                self._writer.close()
            raise
        self.name = f"{self.header['provider']} (cache)"
        self.source = str(self.header.get("source", ""))
        self._stream = self.path.open("rb")

    def close(self) -> None:
        """Lets go of the file; nothing more is read or added."""
        self._stream.close()
        if self._writer is not None:
            self._writer.close()

    def __len__(self) -> int:
        """Number of turns in the file."""
        return self.n_lines

    def relations(self) -> tuple[str, ...]:
        """What the file was filled for, or what the provider behind it can answer."""
        if self.provider is not None:
            return self.provider.relations()
        return tuple(self.header["relations"])

    def fingerprint(self) -> str:
        """The writer's, so that a cache of a cache is the same cache."""
        return str(self.header["fingerprint"])

    def find(self, heads: Sequence[str], n: int = 5) -> Answer | None:
        """The answer to a text (or to several, merged), or None if the file has none."""
        for size in dict.fromkeys((n, int(self.header["n"]))):
            if size >= n and (place := self._by_key.get(cache_key(heads, self.fingerprint(), size))) is not None:
                return self._read(place, n)
        return None

    def find_turn(self, dialogue_id: str, turn: int, text: str, n: int = 5) -> Answer | None:
        """The answer written for this turn of this conversation, whatever was asked about then."""
        if n > int(self.header["n"]) or (place := self._by_turn.get((dialogue_id, turn, text_hash(text)))) is None:
            return None
        return self._read(place, n)

    def infer(
        self,
        heads: Sequence[str],
        relations: Sequence[str] = RELATIONS,
        n: int = 5,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> list[Answer]:
        """See :class:`Inferences`; what the file lacks and no provider gives is absent."""
        names = asked_relations(relations, n)
        found = [self.find((head,), n) for head in heads]
        lacking = [i for i, answer in enumerate(found) if answer is None or not set(names) <= set(answer)]
        if self.provider is not None and lacking:
            new = list(dict.fromkeys(heads[i] for i in lacking))
            made = dict(zip(new, self.provider.infer(new, names, n, batch_size=batch_size), strict=True))
            self._add(made, n)
            for i in lacking:
                found[i] = {**(found[i] or {}), **made[heads[i]]}
        if progress is not None:
            progress(len(heads))
        return [{name: (answer or {}).get(name, Tails(name, absent=NOT_CACHED)) for name in names} for answer in found]

    def _note(self, place: int, line: Mapping[str, Any]) -> None:
        self._by_key[line["key"]] = place
        if line.get("id"):
            self._by_turn[line["id"], line["turn"], line["text"]] = place
        self.n_lines += 1

    def _add(self, made: Mapping[str, Answer], n: int) -> None:
        """Appends lines without a row; a text asked again for other relations gets a line with all of them."""
        stream = self._writer
        assert stream is not None  # there is a provider
        for head, answer in made.items():
            place = stream.tell()
            whole = {**(self.find((head,), n) or {}), **answer}
            line = {"key": cache_key((head,), self.fingerprint(), n), "head": head, "inferences": _plain(whole)}
            stream.write(_line(line))
            stream.flush()  # the next may ask for it
            self._note(place, line)

    def _read(self, place: int, n: int) -> Answer:
        values = _stored(self._stream, place)
        return {name: _first(Tails.from_dict(name, tails), n) for name, tails in values.items()}


@dataclass(frozen=True, slots=True)
class FillReport:
    """What filling a cache came to.

    Attributes:
        path: The file.
        turns: Lines in it now.
        before: Lines that were there already.
        reused: New lines whose text had been asked before.
        answered: Relation to the number of turns with a tail, of all lines.
        absent: Relation to reason to the number of turns without.
    """

    path: Path
    turns: int
    before: int
    reused: int
    answered: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Json]:
        """JSON-ready."""
        return {
            "file": str(self.path),
            "turns": self.turns,
            "already_there": self.before,
            "same_text": self.reused,
            "answered": dict(self.answered),
            "absent": {name: dict(reasons) for name, reasons in self.absent.items()},
        }


def fill_cache(
    provider: Inferences,
    turns: Iterable[Asked],
    path: str | Path,
    *,
    relations: Sequence[str] = RELATIONS,
    n: int = 5,
    resume: bool = False,
    batch_size: int = 32,
    heads: Mapping[str, Json] | None = None,
    progress: Progress | None = None,
) -> FillReport:
    """Asks a provider about turns, one line a turn in their order; a kill loses at most ``provider.stride`` texts.

    The lines go to ``NAME.partial``, which takes the name when all turns are in.

    With ``resume`` the turns that the file has are compared with it one by one and skipped, so none is lost or written
    twice, and the file is the same as that of a run that was not stopped.

    Args:
        provider: Who answers.
        turns: In a fixed order.
        path: File to write.
        relations: Which.
        n: Most tails a relation.
        resume: Go on with the file; without it a file that is there is refused.
        batch_size: Most rows in one forward pass.
        heads: How turns became heads, for the first line.
        progress: Called with the number of turns just finished, those that were there included.

    Raises:
        DataError: The file is there and ``resume`` is not set, or it has other turns, or another process writes to it.
        CheckpointError: The file is no cache, or of another provider or other settings.
        ConfigError: A relation is unknown, or ``n`` is below 1.
    """
    names = asked_relations(relations, n)
    path = Path(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise DataError(
            f"cannot write {path}: it is a folder, or its folder does not exist. Name a file, e.g. cache.jsonl."
        )
    partial = path.with_name(f"{path.name}.partial")
    there = [place for place in (path, partial) if place.exists()]
    if there and not resume:
        raise DataError(f"{there[0]} already exists. Continue it with --resume (resume=True), or name another file.")
    if len(there) > 1:
        raise DataError(f"{path} and {partial.name} are both there; delete the one that you do not want to continue.")
    header = _header(provider, names, n, heads or {})
    place = there[0] if there else partial
    if not there:
        _start(place, header)
    return replace(_fill(provider, turns, place, path, header, names, n, batch_size, progress), path=path)


def _fill(
    provider: Inferences,
    turns: Iterable[Asked],
    path: Path,
    target: Path,
    header: Mapping[str, Any],
    names: Sequence[str],
    n: int,
    batch_size: int,
    progress: Progress | None,
) -> FillReport:
    """Checks what a file has and adds the rest; only while nothing is to be added it has its final name."""
    partial = target.with_name(f"{target.name}.partial")
    rest = iter(turns)
    with path.open("r+b") as stream, path.open("rb") as reader:
        hold_file(stream, path)
        if not path.stat().st_size:
            stream.write(_line(header))
            stream.flush()
        _check_header(path, header)
        there = _gone_over(path, rest, header, n)
        known, counts, before = there.known, there.counts, there.n_turns
        stream.truncate(there.end)
        stream.seek(there.end)
        if progress is not None and before:
            progress(before)
        total, reused = before, 0
        while chunk := list(islice(rest, provider.stride)):
            if path == target and not partial.exists():
                path.replace(partial)
            keys = [cache_key(asked.heads, header["fingerprint"], n) for asked in chunk]
            new = {key: asked.heads for key, asked in zip(keys, chunk, strict=True) if key not in known}
            answers = map(_plain, infer_merged(provider, list(new.values()), names, n, batch_size))
            made = dict(zip(new, answers, strict=True))
            reused += len(chunk) - len(made)
            for key, asked in zip(keys, chunk, strict=True):
                answer = made[key] if key in made else _stored(reader, known[key])
                known.setdefault(key, stream.tell())
                stream.write(_line(_turn_line(asked, key, answer)))
                counts.update(_counted(answer))
            stream.flush()
            total += len(chunk)
            if progress is not None:
                progress(len(chunk))
        if partial.exists():
            partial.replace(target)  # still held
    return FillReport(path, total, before, reused, *_told(counts, names))


@dataclass(slots=True)
class _There:
    """What a file holds: key to the place of its answer, answers counted, turns, and where whole lines end."""

    known: dict[str, int] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_turns: int = 0
    end: int = 0


def _gone_over(path: Path, turns: Iterator[Asked], header: Mapping[str, Any], n: int) -> _There:
    """Takes as many turns as the file has, and checks that they are its own."""
    there = _There()
    for place, end, line in _whole_lines(path):
        there.end = end
        if place:
            there.n_turns += 1
            _check_turn(path, there.n_turns, line, next(turns, None), header["fingerprint"], n)
            there.known.setdefault(line["key"], place)
            there.counts.update(_counted(line["inferences"]))
    return there


def _told(
    counts: Mapping[tuple[str, str], int], names: Sequence[str]
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Of each relation how many turns were answered, and why how many others were not."""
    answered = {name: counts.get((name, ""), 0) for name in names}
    absent = {name: {why: k for (r, why), k in counts.items() if r == name and why} for name in names}
    return answered, {name: why for name, why in absent.items() if why}


def infer_merged(
    provider: Inferences, asked: Sequence[Sequence[str]], relations: Sequence[str], n: int, batch_size: int = 32
) -> list[Answer]:
    """Answers for turns that ask about several texts each, merged by rank; no text, no answer."""
    flat = [head for heads in asked for head in heads]
    found = iter(provider.infer(flat, relations, n, batch_size=batch_size))
    out = []
    for heads in asked:
        answers = [next(found) for _ in heads]
        out.append(
            {
                name: merge([answer[name] for answer in answers], n) if answers else Tails(name, absent=EMPTY)
                for name in relations
            }
        )
    return out


def _plain(answer: Answer) -> dict[str, Any]:
    return {name: tails.to_dict() for name, tails in answer.items()}


def _first(tails: Tails, n: int) -> Tails:
    return Tails(tails.relation, tails.texts[:n], tails.scores[:n], tails.head, tails.absent)


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _turn_line(asked: Asked, key: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "row": asked.row,
        "id": asked.dialogue_id,
        "turn": asked.turn,
        "text": text_hash(asked.text),
        "key": key,
        "inferences": answer,
    }


def _header(provider: Inferences, relations: Sequence[str], n: int, heads: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": KIND,
        "provider": provider.name,
        "fingerprint": provider.fingerprint(),
        "n": n,
        "relations": list(relations),
        "covered": [name for name in relations if name in provider.relations()],
        "heads": dict(heads),
        "source": provider.source,
    }


def _start(path: Path, header: Mapping[str, Any]) -> None:
    """Makes the file with its first line, whole; one that another process has made meanwhile is left."""
    making = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        making.write_bytes(_line(header))
        try:
            os.link(making, path)  # which replaces nothing
        except FileExistsError:
            return
        except OSError:  # a file system without links
            making.replace(path)
    finally:
        making.unlink(missing_ok=True)


def read_header(path: Path) -> dict[str, Any]:
    """The first line of a cache.

    Raises:
        MissingResourceError: There is no such file.
        CheckpointError: It is no cache, or of another format.
    """
    if not path.is_file():
        raise MissingResourceError(f"no file {path}. Make it with: empatheia infer FILE --out {path.name}")
    try:
        _, _, header = next(_whole_lines(path), (0, 0, None))
    except CheckpointError:
        header = None
    if not isinstance(header, dict) or header.get("kind") != KIND or not _is_header(header):
        raise CheckpointError(
            f"{path} is not a cache of inferences. Make one with: empatheia infer FILE --out cache.jsonl"
        )
    if header.get("format") != FORMAT:
        raise CheckpointError(f"{path} has format {header.get('format')}; this release reads {FORMAT}. Make it again.")
    return header


def _is_header(header: Mapping[str, Any]) -> bool:
    """Whether a first line has all that is read of it; what it says of another format is another matter."""
    if header.get("format") != FORMAT:
        return True
    texts, relations = (header.get("provider"), header.get("fingerprint")), header.get("relations")
    named = isinstance(relations, list) and all(isinstance(name, str) for name in relations)
    return all(isinstance(text, str) for text in texts) and named and type(header.get("n")) is int


def _is_answer(values: Any) -> bool:
    """Whether something is what :meth:`Tails.to_dict` gives."""
    if not isinstance(values, dict):
        return False
    if "absent" in values:
        return isinstance(values["absent"], str)
    tails, scores = values.get("tails"), values.get("scores", [])
    is_told = isinstance(tails, list) and all(isinstance(tail, str) for tail in tails)
    return is_told and isinstance(scores, list) and all(isinstance(score, int | float) for score in scores)


def _is_turn(line: Mapping[str, Any]) -> bool:
    """Whether a line after the first one is one that was written; of some turns it is not known whose they were."""
    whose = (line["id"], line["text"]) if line.get("id") else ()
    is_told = all(isinstance(text, str) for text in (line["key"], *whose)) and (not whose or type(line["turn"]) is int)
    return is_told and all(map(_is_answer, line["inferences"].values()))


def _whole_lines(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Where each line begins and ends, and what it says; a last line without its end is left out.

    Raises:
        CheckpointError: A line in between is damaged.
    """
    with path.open("rb") as stream:
        place = 0
        for number, raw in enumerate(stream, 1):
            if not raw.endswith(b"\n"):
                return
            try:
                line = parse_json(raw)
                if place and not _is_turn(line):
                    raise ValueError("another kind of line")
            except (ValueError, KeyError, TypeError, AttributeError):
                raise CheckpointError(
                    f"{path}:{number}: a damaged line. Delete it and what follows, then resume."
                ) from None
            yield place, place + len(raw), line
            place += len(raw)


def _check_header(path: Path, wanted: Mapping[str, Any]) -> None:
    """Raises CheckpointError unless the file was made with the same provider and settings."""
    found = read_header(path)
    for name in ("fingerprint", "n", "relations", "heads"):
        if found.get(name) != wanted[name]:
            raise CheckpointError(
                f"{path} was written by {found.get('provider')!r} with {name} {found.get(name)!r}, now it is"
                f" {wanted[name]!r}. Use the same settings, or name another file."
            )


def _check_turn(path: Path, number: int, line: Mapping[str, Any], asked: Asked | None, mark: str, n: int) -> None:
    """Raises DataError unless a line is about the turn that comes next in the input."""
    remedy = "Give the input it was made from, or name another file."
    if asked is None:
        raise DataError(f"{path} has more turns ({number:,} or more) than the input. {remedy}")
    same = (line.get("row"), line.get("turn"), line.get("text")) == (asked.row, asked.turn, text_hash(asked.text))
    if not same or line["key"] != cache_key(asked.heads, mark, n):
        raise DataError(f"{path}: turn {number:,} of it is not that of the input (row {asked.row}). {remedy}")


def _counted(inferences: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, values.get("absent", "")) for name, values in inferences.items()]


def _stored(stream: BinaryIO, place: int) -> dict[str, Any]:
    stream.seek(place)
    return parse_json(stream.readline())["inferences"]
