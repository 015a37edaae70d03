"""EmoCause (Kim, Kim and Kim 2021): words that cause the emotion, marked in EmpatheticDialogues situations.

Evaluation only: 4.6K situations of the valid and test splits, 32 emotions, no training file. The archive is published
on a file-sharing drive that this package does not fetch from: give its path, the folder it was unpacked into, or one
JSON file. Each item is ``original_situation``, ``tokenized_situation`` (spaCy tokens), ``emotion``, ``conv_id``,
``annotation`` (pairs of a word and its 0-based index among the tokens) and ``labels`` (the words again).

The official metric compares words and never looks at the indices, so a file with wrong indices would go unnoticed;
here they are checked, mended where the word stands at one place only, and counted.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from empatheia.errors import DataError
from empatheia.reading import Problem, UnreadableError, parse_json, read_member, read_text, report
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span, Turn
from empatheia.resources import find_corpus_file
from empatheia.taxonomy import EMOTIONS, canonical_emotion
from empatheia_research.corpora.facts import CorpusFacts, Licence
from empatheia_research.corpora.loading import LoadedCorpus, canonical_split

NAME = "emocause"
FOLDER = "emocause"
SPLITS = ("valid", "test")
FACTS = CorpusFacts(
    splits=SPLITS,
    file="emocause/test.json",
    licence=Licence(
        "MIT repository; text CC BY-NC 4.0",
        False,
        "An evaluation set: nothing is trained on it.",
        "Kim et al. 2021, github.com/skywalker023/focused-empathy",
    ),
)
ARCHIVE_SHA256 = "f490361039a98ae13a028ae3c7117ae94165fdbf771eb75d6026b63ec9d12a11"
"""Of the published zip archive; the checksums of the files in it are not known."""
GET = "the archive linked from github.com/skywalker023/focused-empathy, then put {valid,test}.json there"
FIELDS = ("original_situation", "tokenized_situation", "emotion", "conv_id", "annotation", "labels")
ANNOTATOR = "emocause/gold"
_SHIFTED = 0.5  # share of indices that miss their word from which on the whole file is refused


@dataclass(frozen=True, slots=True)
class EmoCauseItem:
    """One situation.

    Attributes:
        id: Conversation id in EmpatheticDialogues.
        text: The situation.
        emotion: One of the 32 (gold).
        tokens: The file's tokens as characters ``[start, end)`` of ``text``, in order; ``(n, n)`` where a token is
            not in the text.
        causes: Indices of the cause tokens, in the order of the file; -1 where no token is the word.
        words: The cause words as written in ``annotation``: what the official metric compares.
    """

    id: str
    text: str
    emotion: str
    tokens: tuple[tuple[int, int], ...]
    causes: tuple[int, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmoCauseCorpus(LoadedCorpus):
    """One split; as a sequence, one-turn dialogues whose turn is the situation, with cause spans as annotations.

    Attributes:
        items: In file order.
        counts: What was found and mended, by name.
        sha256: Of the file that was given (the archive, if one was).
    """

    items: tuple[EmoCauseItem, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""


def load(split: str, root: str | Path | None = None, strict: bool = False) -> EmoCauseCorpus:
    """One split, from ``<root>/emocause/<split>.json[.gz]``.

    Args:
        split: ``valid`` or ``test``; there is no training split.
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        strict: Raise at the first fault.

    Raises:
        MissingResourceError: The file is not there.
        DataError: As :func:`read`.
    """
    name = canonical_split(split, SPLITS)
    return read(find_corpus_file(FOLDER, f"{name}.json", root, GET), name, strict)


def read(path: str | Path, split: str = "test", strict: bool = False) -> EmoCauseCorpus:
    """A split from a path the user gives.

    Args:
        path: The zip archive, a folder with ``valid.json`` and ``test.json``, or a JSON file.
        split: Which of the two; a JSON file is read whatever its name.
        strict: Raise at the first fault, and when an archive is not the published one.

    Raises:
        DataError: There is no such file or split, it is not in this form, at least half of the indices do not point at
            their words (the message says by how much they are shifted), or ``strict`` and something is wrong.
    """
    path, name = Path(path).expanduser(), canonical_split(split, SPLITS)
    content, place, sha256 = _content(path, name)
    if not isinstance(content, list) or not content:
        raise DataError(f"{place}: expected a list of items, found {_kind(content)}. {_form()}")
    counts: Counter[str] = Counter()
    problems: list[Problem] = []
    items: list[EmoCauseItem] = []
    misses: list[tuple[str, ...]] = []
    for number, entry in enumerate(content):
        try:
            items.append(_item(entry, counts, misses))
        except DataError as error:
            problems.append(Problem(str(place), 0, f"item {number}: {error}; left out"))
    if not items:
        raise DataError(f"{place}: none of its {len(content)} items can be used; the first: {problems[0].reason}.")
    _refuse_shifted(place, counts, misses)
    notes = list(_notes(counts))
    if zipfile.is_zipfile(path) and sha256 != ARCHIVE_SHA256:
        notes.append(f"{path} has SHA-256 {sha256}; the published archive has {ARCHIVE_SHA256}.")
    problems += [Problem(str(place), 0, note) for note in notes]
    report(problems, strict)
    dialogues, annotations = _dialogues(items, name)
    return EmoCauseCorpus(
        NAME,
        name,
        place,
        dialogues,
        annotations,
        problems=tuple(problems),
        notes=tuple(notes),
        items=tuple(items),
        counts=dict(counts),
        sha256=sha256,
    )


def _content(path: Path, split: str) -> tuple[Any, Path, str]:
    """JSON content, where it stands, and the checksum of the given file.

    Raises:
        DataError: Nothing there, no such split in the archive, or not JSON.
    """
    if path.is_dir():
        inside = [path / f"{split}.json", path / FOLDER / f"{split}.json"]
        path = next((place for place in inside if place.is_file()), inside[0])
    if not path.is_file():
        raise DataError(f"no file {path}. Get EmoCause: {GET}, and give the path of the archive, folder or file.")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if not zipfile.is_zipfile(path):
        return _json(read_text(path), path), path, sha256

    def choose(names: list[str]) -> str:
        fitting = [n for n in names if PurePosixPath(n).name == f"{split}.json" and "__MACOSX" not in n]
        if not fitting:
            raise DataError(f"{path}: no {split}.json in this archive; it holds {', '.join(names[:6])}.")
        return fitting[0]

    name, raw = read_member(path, choose)
    place = path / name
    try:
        return _json(raw.decode("utf-8-sig"), place), place, sha256
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: damaged ({error}). Get the archive again.") from None


def _json(text: str, place: Path) -> Any:
    try:
        return parse_json(text)
    except UnreadableError as error:
        raise DataError(f"{place}:{error.lineno}: not JSON ({error.msg}). Get the file again: {GET}") from None


def _item(entry: Any, counts: Counter[str], misses: list[tuple[str, ...]]) -> EmoCauseItem:
    """One item; counts what does not fit and notes, for each index that misses, at which shifts the word stands.

    Raises:
        DataError: A field is missing or of another kind, or the emotion is unknown.
    """
    if not isinstance(entry, Mapping):
        raise DataError(f"{_kind(entry)} instead of an object with {', '.join(FIELDS)}")
    if missing := [name for name in FIELDS if name not in entry]:
        raise DataError(f"no field {', '.join(missing)}; found {', '.join(map(str, entry))}")
    text, tokens = entry["original_situation"], entry["tokenized_situation"]
    if not isinstance(text, str) or not _is_texts(tokens):
        raise DataError("original_situation is not a text, or tokenized_situation not a list of texts")
    annotation = entry["annotation"]
    if not isinstance(annotation, list) or not all(_is_mark(mark) for mark in annotation):
        raise DataError(f"annotation is {str(annotation)[:60]}; accepted: a list of [word, index]")
    emotion = canonical_emotion(str(entry["emotion"]), EMOTIONS)
    text = text.replace("_comma_", ",")
    tokens = [token.replace("_comma_", ",") for token in tokens]
    words = tuple(str(word).replace("_comma_", ",") for word, _ in annotation)
    counts["items"] += 1
    counts["cause words"] += len(words)
    counts["items without a cause word"] += not words
    given = entry["labels"]
    counts["items whose labels are not the words of annotation"] += given not in (list(words), " ".join(words))
    places = _places(text, tokens)
    counts["tokens not in the situation"] += sum(start == end for start, end in places)
    causes = tuple(
        _index(tokens, word, index, counts, misses) for word, (_, index) in zip(words, annotation, strict=True)
    )
    return EmoCauseItem(str(entry["conv_id"]), text, emotion, places, causes, words)


def _index(tokens: Sequence[str], word: str, index: int, counts: Counter[str], misses: list[tuple[str, ...]]) -> int:
    """The token a word of the annotation stands at, or -1."""
    if 0 <= index < len(tokens) and tokens[index] == word:
        return index
    counts["indices that do not point at their word"] += 1
    counts["indices beyond the tokens"] += not 0 <= index < len(tokens)
    found = [i for i, token in enumerate(tokens) if token == word]
    misses.append(tuple(f"{i - index:+d}" for i in found))
    if len(found) == 1:
        counts["indices mended"] += 1
        return found[0]
    return -1


def _refuse_shifted(place: Path, counts: Mapping[str, int], misses: Sequence[tuple[str, ...]]) -> None:
    wrong, total = counts.get("indices that do not point at their word", 0), counts["cause words"]
    if not wrong or wrong < _SHIFTED * total:
        return
    shifts = Counter(shift for row in misses for shift in row)
    told = f"{wrong:,} of {total:,} annotation indices do not point at their word"
    if shifts:
        shift, n = shifts.most_common(1)[0]
        told += f"; {n:,} of them would with {shift}"
    raise DataError(f"{place}: {told}. Indices count the tokens of tokenized_situation from 0: fix the file.")


def _places(text: str, tokens: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Characters of each token, found one after the other."""
    places, position = [], 0
    for token in tokens:
        start = text.find(token, position) if token.strip() else -1
        if start < 0:
            places.append((position, position))
            continue
        position = start + len(token)
        places.append((start, position))
    return tuple(places)


def _dialogues(items: Sequence[EmoCauseItem], split: str) -> tuple[tuple[Dialogue, ...], tuple[CauseAnnotation, ...]]:
    """Each situation as a conversation of one turn, and its cause words as spans."""
    dialogues, annotations = [], []
    for item in items:
        turn = Turn("speaker", item.text)
        dialogues.append(Dialogue(item.id, (turn,), item.emotion, item.text, f"{NAME}/{split}"))
        places = [item.tokens[i] for i in item.causes if i >= 0]
        spans = tuple(Span(0, start, end) for start, end in places if start < end)
        annotations.append(CauseAnnotation(item.id, 0, (0,), spans, ANNOTATOR, emotion=item.emotion))
    return tuple(dialogues), tuple(annotations)


def _notes(counts: Mapping[str, int]) -> Iterator[str]:
    """What a reader should know, as sentences with counts."""
    n, total = counts.get("indices that do not point at their word", 0), counts["cause words"]
    if n:
        yield (
            f"{n:,} of {total:,} annotation indices do not point at their word"
            f" ({counts['indices beyond the tokens']:,} lie beyond the tokens); {counts['indices mended']:,} mended,"
            f" the others have no place. The official metric compares words only."
        )
    for name in (
        "items without a cause word",
        "items whose labels are not the words of annotation",
        "tokens not in the situation",
    ):
        if counts.get(name):
            yield f"{counts[name]:,} {name}."


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(token, str) for token in value)


def _is_mark(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and bool(value[0])
    return is_pair and isinstance(value[1], int) and not isinstance(value[1], bool)


def _kind(value: Any) -> str:
    return "an empty list" if value == [] else type(value).__name__


def _form() -> str:
    return f"An item is an object with {', '.join(FIELDS)}."
