"""Dialogues of a result to look at, chosen by a hash, so that the same seed shows the same ones."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from empatheia.errors import DataError
from empatheia_people.curation.global_steps import hash64
from empatheia_people.curation.run import settings_of
from empatheia_people.curation.shards import rows_of
from empatheia_people.curation.stages import ALL, EMOTIONAL, REST

PARTS = (EMOTIONAL, REST, ALL)


class SampledDialogue(TypedDict):
    """A row of a result, and which part and split it is in.

    Attributes:
        key, movie: Which dialogue, of which source.
        turns: Its texts.
        starts, ends: Times of each, in ms; None = not known.
        n_tokens: Of all turns.
        labels, label_probabilities, emotionalities: Of each turn; None where nothing was labelled.
        emotionality: Of the dialogue; None where nothing was labelled.
        part, split: Where it lies.
    """

    key: str
    movie: str
    turns: list[str]
    starts: list[int | None]
    ends: list[int | None]
    n_tokens: int
    labels: list[str] | None
    label_probabilities: list[float] | None
    emotionalities: list[float] | None
    emotionality: float | None
    part: str
    split: str


def corpus_files(folder: Path) -> list[tuple[str, str, Path]]:
    """Part, split and file of all files of a result, in order."""
    return [(path.parts[-3], path.parts[-2], path) for path in sorted((folder / "corpus").glob("*/*/shard-*.parquet"))]


def sampled(folder: Path, n: int, part: str | None = None, seed: int = 0) -> Iterator[SampledDialogue]:
    """At most ``n`` dialogues of each part, whatever the shards.

    Raises:
        DataError: There is no such part, or no corpus yet.
    """
    settings_of(folder)
    files = corpus_files(folder)
    there = sorted({one for one, _, _ in files})
    if not files:
        raise DataError(f"{folder} has no corpus yet; `empatheia curate status {folder}` says how far it is.")
    if part is not None and part not in there:
        raise DataError(f"no part {part!r} in {folder}; there is: {', '.join(there)}.")
    for own in there if part is None else [part]:
        rows = (
            (hash64(f"{seed}/{row['key']}"), row["key"], SampledDialogue(**row, part=own, split=split))
            for one, split, path in files
            if one == own
            for row in rows_of(path)
        )
        yield from (row for _, _, row in heapq.nsmallest(n, rows, key=lambda item: item[:2]))
