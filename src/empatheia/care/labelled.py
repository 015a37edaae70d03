"""Labelled texts: the files that the check learns from and is measured on, and slips of the hand for both."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from empatheia.errors import DataError
from empatheia.reading import UnreadableError, lines_of, parse_json
from empatheia.records.danger import ABOUT, KINDS, LEVELS, check_name

TRAINING_TEXTS = Path(__file__).parent / "data" / "texts_train.jsonl"
TEXT_FIELDS = "JSON lines, each an object with text, level, about, kinds"
NEAR_MISS_WEIGHT = 2.0
"""Of harmless texts that look grave, in training."""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text with its labels.

    Attributes:
        text: As written.
        level: ``none``, ``concern`` or ``crisis``.
        about: Whose danger.
        kinds: Of what kind.
        voice: Who might write so; the parts are cut between voices.
        weight: In training.
    """

    text: str
    level: str
    about: str
    kinds: tuple[str, ...] = ()
    voice: str = ""
    weight: float = 1.0


def read_texts(path: str | Path = TRAINING_TEXTS) -> list[LabelledText]:
    """Labelled texts of a JSON lines file.

    Raises:
        DataError: The file or a line cannot be used; says which.
    """
    out = []
    for where, record in labelled_records(path, TEXT_FIELDS):
        if not isinstance(record.get("text"), str):
            raise DataError(f"{where}no text; accepted: {TEXT_FIELDS}.")
        kinds = tuple(check_name(kind, KINDS, where + "kind") for kind in record.get("kinds") or ())
        out.append(
            LabelledText(
                record["text"],
                check_name(record.get("level"), LEVELS, where + "level"),
                check_name(record.get("about", "unclear"), ABOUT, where + "about"),
                kinds,
                str(record.get("voice", "")),
                NEAR_MISS_WEIGHT if record.get("level") == "none" else 1.0,
            )
        )
    return out


def labelled_records(path: str | Path, accepted: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of a JSON lines file, each with its place for messages.

    Args:
        path: Of the file.
        accepted: What a line may hold, for messages.

    Raises:
        DataError: The file or a line cannot be read; says which.
    """
    try:
        for number, line in lines_of(path):
            if not line.strip():
                continue
            where = f"{path}, line {number}: "
            try:
                record = parse_json(line)
            except UnreadableError as error:
                raise DataError(f"{where}no JSON: {error} Accepted: {accepted}.") from None
            if not isinstance(record, dict):
                raise DataError(f"{where}no object; accepted: {accepted}.")
            yield where, record
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Accepted: {accepted}.") from None


def with_typos(text: str, share: float, seed: int) -> str:
    """The text with a slip in about ``share`` of its words: two letters swapped, one lost, doubled or wrong.

    >>> with_typos("nothing", 0.0, 1)
    'nothing'
    """
    draw = random.Random(crc32(text.encode("utf-8", "replace")) ^ seed)
    out = []
    for word in text.split(" "):
        if len(word) >= 3 and draw.random() < share:
            place = draw.randrange(len(word) - 1)
            kind = draw.randrange(4)
            if kind == 0:
                word = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
            elif kind == 1:
                word = word[:place] + word[place + 1 :]
            elif kind == 2:
                word = word[: place + 1] + word[place:]
            else:
                word = word[:place] + draw.choice("abcdefghijklmnopqrstuvwxyz") + word[place + 1 :]
        out.append(word)
    return " ".join(out)
