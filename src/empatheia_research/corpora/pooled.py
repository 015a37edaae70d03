"""Several dialogue corpora read as one, in mixed order, with parts to learn from and to validate on.

MEED2 (Xie and Pu 2021) pre-trains on film dialogues split 80/10/10 by conversation. Here any corpora of
``conversations`` and the EDOS files can be put together; what is learnt from them is named after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from empatheia.errors import ConfigError, DataError
from empatheia.records.dialogue import Dialogue
from empatheia.registry import nearest
from empatheia_research.corpora import conversations, edos
from empatheia_research.corpora.conversations import excerpts, merged, part_of, text_hash
from empatheia_research.corpora.loading import SPLITS

NAME = "pooled"
NAMES = (*conversations.NAMES, edos.NAME)
"""What can be pooled."""


def load(names: Sequence[str], split: str, root: str | Path | None = None, max_turns: int = 8) -> tuple[Dialogue, ...]:
    """The conversations of a split, in an order that depends on their texts alone.

    The split of a conversation depends on its whole text: equal ones are on one side, and so are all excerpts of a
    long one. Neighbouring turns of one role are joined, so that roles alternate. What a corpus calls the emotion of a
    conversation is left out: it is another thing in each.

    Args:
        names: Of ``NAMES``; each corpus gives what one may learn from (see ``conversations.load``).
        split: ``train`` (eight tenths), ``valid`` or ``test`` (one tenth each).
        root: Folder of corpora; None = EMPATHEIA_DATA, then the download cache.
        max_turns: Longer conversations become excerpts of so many turns.

    Raises:
        ConfigError: A name is unknown, or there is none.
        DataError: The split is unknown.
        MissingResourceError: A corpus is not there.
    """
    if not names:
        raise ConfigError(f"corpus {NAME!r} needs names of corpora (data.pool); known: {', '.join(NAMES)}.")
    if split not in SPLITS:
        raise DataError(f"{NAME} has no split {split!r}; accepted: {', '.join(SPLITS)}.")
    found: list[tuple[str, Dialogue]] = []
    for name in names:
        if name not in NAMES:
            hint = nearest(name, list(NAMES))
            raise ConfigError(f"unknown corpus {name!r} in data.pool.{hint} Known: {', '.join(NAMES)}.")
        corpus = edos.load(root=root) if name == edos.NAME else conversations.load(name, root=root)
        for dialogue in corpus:
            if part_of(dialogue) == split:
                key = text_hash(dialogue)
                plain = replace(merged(dialogue), id=f"{name}/{dialogue.id}", emotion=None, situation=None)
                found += [(f"{key}{i:06}", part) for i, part in enumerate(excerpts(plain, max_turns))]
    found.sort(key=lambda pair: (pair[0][8:], pair[1].id))
    return tuple(dialogue for _, dialogue in found if len(dialogue.turns) > 1)
