"""Conversations to the pieces a perception reads, and back to characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
from tokenizers import Tokenizer

from empatheia.errors import CheckpointError
from empatheia.records.dialogue import Turn
from empatheia.text.noise import straight
from empatheia.text.readable import SURROGATES

Cut = tuple[list[int], list[tuple[int, int]]]
"""Piece numbers of a text, and the characters each stands for."""


class PieceRow(TypedDict):
    """A conversation as pieces.

    Attributes:
        input_ids: Numbers of the pieces.
        token_type_ids: 1 for the pieces of listener turns.
        newest: Whether a piece is of the newest turn.
        places: Turn, start and end of each piece; turn -1 for special ones.
        is_cut: The newest turn alone did not fit: its beginning and its end were kept.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    newest: list[bool]
    places: list[tuple[int, int, int]]
    is_cut: bool


def typed(text: str) -> str:
    """A text as perceptions read it: straight apostrophes, no half characters. Same length, same offsets."""
    return straight(SURROGATES.sub(" ", text))


def rows_of(
    conversations: Sequence[Sequence[Turn]],
    cut: Callable[[list[str]], Mapping[str, Cut]],
    marks: tuple[int, int],
    most: int,
) -> list[PieceRow]:
    """A row a conversation: ``[CLS] U_1 [SEP] U_2 [SEP] ...``.

    Whole turns are dropped from the oldest on until the rest fits; of a newest turn that does not fit alone the first
    third and the last two thirds of the room are kept.

    Args:
        conversations: Turns, the newest last.
        cut: Pieces of each of some different texts.
        marks: Numbers of the pieces that open a row and close a turn.
        most: Pieces in a row.
    """
    texts = sorted({turn.text for turns in conversations for turn in turns[-most:]})
    found = cut(texts)
    return [_row_of(turns, found, marks, most) for turns in conversations]


def _row_of(turns: Sequence[Turn], cut: Mapping[str, Cut], marks: tuple[int, int], most: int) -> PieceRow:
    opening, closing = marks
    room = most - 1
    kept: list[tuple[int, list[int], list[tuple[int, int]]]] = []
    is_cut = False
    for number in range(len(turns) - 1, max(-1, len(turns) - 1 - room), -1):
        ids, places = cut[turns[number].text]
        if len(ids) + 1 > room:
            if not kept:
                is_cut = True
                head = (room - 1) // 3  # how it begins, and how it ends
                tail = room - 1 - head
                kept.append((number, ids[:head] + ids[-tail:], places[:head] + places[-tail:]))
            break
        kept.append((number, ids, places))
        room -= len(ids) + 1
    row = PieceRow(input_ids=[opening], token_type_ids=[0], newest=[False], places=[(-1, 0, 0)], is_cut=is_cut)
    for number, ids, places in reversed(kept):
        kind, is_newest = int(turns[number].role == "listener"), number == len(turns) - 1
        row["input_ids"] += [*ids, closing]
        row["token_type_ids"] += [kind] * (len(ids) + 1)
        row["newest"] += [is_newest] * (len(ids) + 1)
        row["places"] += [(number, start, end) for start, end in places] + [(-1, 0, 0)]
    return row


class Pieces:
    """A tokenizer's file, read without transformers.

    Args:
        path: ``tokenizer.json`` with pieces ``[CLS]`` and ``[SEP]``.

    Raises:
        CheckpointError: The file cannot be read, or lacks those pieces.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as problem:  # whatever the library raises of a file that is not one
            raise CheckpointError(f"{path} is no tokenizer: {problem}. Get the model again.") from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # a typed "[SEP]" is text
        opening, closing = map(self._tokenizer.token_to_id, ("[CLS]", "[SEP]"))
        if opening is None or closing is None:
            raise CheckpointError(f"{path} has no pieces [CLS] and [SEP]. Get the model again.")
        self.marks: tuple[int, int] = (opening, closing)
        self.size: int = self._tokenizer.get_vocab_size()

    def cut(self, texts: Sequence[str]) -> dict[str, Cut]:
        """Pieces of each text, without special ones."""
        found = self._tokenizer.encode_batch([typed(text) for text in texts], add_special_tokens=False)
        return {text: (one.ids, one.offsets) for text, one in zip(texts, found, strict=True)}

    def rows(self, conversations: Sequence[Sequence[Turn]], most: int) -> list[PieceRow]:
        """A row a conversation; see :func:`rows_of`."""
        return rows_of(conversations, self.cut, self.marks, most)

    def plain_rows(self, texts: Sequence[str], most: int) -> list[PieceRow]:
        """A row a text, cut off at its end where it does not fit."""
        opening, closing = self.marks
        cut = self.cut(texts)
        rows = []
        for text in texts:
            ids = [opening, *cut[text][0][: most - 2], closing]
            rows.append(
                PieceRow(
                    input_ids=ids, token_type_ids=[0] * len(ids), newest=[True] * len(ids), places=[], is_cut=False
                )
            )
        return rows


def collate(rows: Sequence[PieceRow]) -> dict[str, np.ndarray]:
    """A batch of what a perception file reads, padded to its longest row. Shapes: (rows, pieces)."""
    shape = (len(rows), max(len(row["input_ids"]) for row in rows))
    batch = {
        "input_ids": np.zeros(shape, np.int64),
        "token_type_ids": np.zeros(shape, np.int64),
        "attention_mask": np.zeros(shape, np.bool_),
        "newest": np.zeros(shape, np.bool_),
    }
    for number, row in enumerate(rows):
        length = len(row["input_ids"])
        batch["input_ids"][number, :length] = row["input_ids"]
        batch["token_type_ids"][number, :length] = row["token_type_ids"]
        batch["attention_mask"][number, :length] = True
        batch["newest"][number, :length] = row["newest"]
    return batch


def alike(lengths: Sequence[int], most_pieces: int, most_rows: int) -> list[list[int]]:
    """Numbers of rows in batches of like length: at most so many padded pieces and rows, or one row.

    >>> alike([3, 9, 4, 3], 8, 64)
    [[0, 3], [2], [1]]
    """
    out: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        fits = out and len(out[-1]) < most_rows and (len(out[-1]) + 1) * lengths[number] <= most_pieces
        if fits:
            out[-1].append(number)
        else:
            out.append([number])
    return out
