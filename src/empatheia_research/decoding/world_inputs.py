"""From conversations and their distractors to what a model reads: :class:`empatheia_research.decoding.worlds.Worlds`.

Every world is encoded as a conversation of its own. So whatever a system reads beside the pieces (commonsense,
concept graphs, emotion words, causal turns) is computed from the altered text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from empatheia.errors import DecodingError
from empatheia.records.dialogue import Dialogue
from empatheia_research.decoding.distractors import Contrast
from empatheia_research.decoding.worlds import Worlds, stack_worlds

logger = logging.getLogger(__name__)

Encode = Callable[[Sequence[Dialogue]], Mapping[str, Tensor]]
"""Conversations to the model inputs of all of them, one row each."""


def worlds_of(dialogues: Sequence[Dialogue], contrasts: Sequence[Contrast | None], encode: Encode) -> Worlds:
    """The worlds of many conversations in one batch.

    Args:
        dialogues: As they are.
        contrasts: Of each; None = the true context in every world, which is plain decoding.
        encode: E.g. :class:`empatheia_research.checkpoints.contexts.ContextReader`; with the reader of a ``Listener``
            ``lambda ds: reader.tensors(reader.encode([prepare(d) for d in ds]))``.

    Raises:
        DecodingError: No conversation, no contrast at all, contrasts differ in their number of worlds, or one was made
            for another conversation.
    """
    rows = _worlds(dialogues, contrasts)
    worlds = Worlds(encode([dialogue for row in rows for dialogue in row]), len(rows[0]))
    same = ~told_apart(worlds)
    same &= torch.tensor([contrast is not None for contrast in contrasts], device=same.device)[:, None]
    if n_same := int(same.sum()):
        logger.warning(
            "focus: %d of %d distractors read like the true context (their words are unknown to the model, or lie"
            " beyond what it reads); they focus nothing.",
            n_same,
            same.numel(),
        )
    return worlds


def told_apart(worlds: Worlds) -> Tensor:
    """Whether the model reads a distractor as other pieces than the true context. Shape: ``(batch, W - 1)``."""
    ids = worlds.inputs["input_ids"]
    mask = worlds.inputs.get("attention_mask")
    seen = ids if mask is None else torch.where(mask.bool(), ids, torch.full_like(ids, -1))
    grouped = seen.view(worlds.n_examples, worlds.n_worlds, -1)
    return (grouped[:, 1:] != grouped[:, :1]).any(-1)


def world_texts(
    dialogues: Sequence[Dialogue],
    contrasts: Sequence[Contrast | None],
    separator: str = "\n",
    max_turns: int | None = None,
) -> list[list[str]]:
    """For each conversation its worlds as texts, for :func:`empatheia_research.decoding.worlds.stack_worlds`.

    Args:
        dialogues: As they are.
        contrasts: See :func:`worlds_of`.
        separator: Between turns; Kim et al. join them by a line break.
        max_turns: The newest turns that are read; None = all. Kim et al. read two.

    Raises:
        DecodingError: See :func:`worlds_of`.
    """
    start = None if max_turns is None else -max_turns
    return [
        [separator.join(turn.text for turn in dialogue.turns[start:]) for dialogue in row]
        for row in _worlds(dialogues, contrasts)
    ]


def stacked_worlds(
    dialogues: Sequence[Dialogue],
    contrasts: Sequence[Contrast | None],
    tokenizer: PreTrainedTokenizerBase,
    separator: str = "\n",
    max_turns: int | None = None,
    **options: Any,
) -> Worlds:
    """:func:`world_texts` through a Hugging Face tokenizer.

    Args:
        dialogues: As they are.
        contrasts: See :func:`worlds_of`.
        tokenizer: With ``truncation=True`` its ``truncation_side`` must be ``left``: the turn that differs comes last.
        separator: See :func:`world_texts`.
        max_turns: Likewise.
        **options: Of the tokenizer's call.

    Raises:
        DecodingError: See :func:`worlds_of`; or the newest words would be cut.
    """
    if options.get("truncation") and tokenizer.truncation_side != "left":
        raise DecodingError(
            "truncation cuts the end of a context, which holds the words that differ; set tokenizer.truncation_side ="
            " 'left'."
        )
    return stack_worlds(world_texts(dialogues, contrasts, separator, max_turns), tokenizer, **options)


def _worlds(dialogues: Sequence[Dialogue], contrasts: Sequence[Contrast | None]) -> list[list[Dialogue]]:
    if len(dialogues) != len(contrasts) or not dialogues:
        raise DecodingError(f"{len(dialogues)} conversations and {len(contrasts)} contrasts; one each, at least one.")
    counts = sorted({len(contrast.texts) for contrast in contrasts if contrast is not None})
    if len(counts) != 1:
        found = f"{counts} worlds" if counts else "none"
        raise DecodingError(f"the contrasts have {found}; accepted: the same number of worlds for all that have any.")
    return [
        [dialogue] * counts[0] if contrast is None else contrast.dialogues(dialogue)
        for dialogue, contrast in zip(dialogues, contrasts, strict=True)
    ]
