"""Features of causal span extraction: published questions in windows, or joint rows with the places of gold spans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from empatheia.errors import ConfigError
from empatheia.records.dialogue import Span
from empatheia.taxonomy import IGNORED
from empatheia.text.readable import SURROGATES
from empatheia_research.corpora.reccon_pairs import span_question
from empatheia_research.understanding.causes.entailment_items import (
    EntailmentItem,
    JointRow,
    encode_joint,
    split_candidates,
)
from empatheia_research.understanding.causes.span_config import LEAST_CONTEXT, CauseSpansConfig
from empatheia_research.understanding.encoders import special_ids
from empatheia_research.understanding.labels.classifier import pad_rows


class QuestionRow(TypedDict):
    """A question and a window of its context in pieces; see :func:`question_rows`."""

    input_ids: list[int]
    token_type_ids: list[int]
    answerable: list[int]
    offsets: list[tuple[int, int]]
    item: int
    turn: int
    span_positions: NotRequired[list[tuple[int, int]]]


def question_rows(
    items: Sequence[EntailmentItem],
    tokenizer: PreTrainedTokenizerBase,
    config: CauseSpansConfig,
    with_answers: bool = False,
) -> list[QuestionRow]:
    """Published form: ``[CLS] question [SEP] context [SEP]``, one row for each window of the context.

    Args:
        items: Targets with their histories.
        tokenizer: A fast tokenizer; its own pair layout is used.
        config: Lengths, overlap, context, where answers may lie.
        with_answers: One question for each published item with its gold answer (training); else one for each turn
            asked about.

    Returns:
        ``input_ids``, ``token_type_ids``, ``answerable`` (1 where an answer may begin or end), ``offsets`` (characters
        in the context), ``item``, ``turn``; with answers ``span_positions``: one (first, last) piece, (0, 0) for no
        answer in this window.

    Raises:
        ConfigError: The tokenizer is not a fast one.
    """
    if not tokenizer.is_fast:
        raise ConfigError("the tokenizer gives no offsets; span extraction needs a fast tokenizer.")
    asked = _asked(items, with_answers)
    if not asked:
        return []
    texts = [_question(items[number], turn, config) for number, turn, _ in asked]
    questions, contexts = [question for question, _ in texts], [context for _, context in texts]
    encoded = tokenizer(
        _shortened(questions, tokenizer, config),
        contexts,
        truncation="only_second",
        max_length=config.max_pieces,
        stride=config.overlap,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
        split_special_tokens=True,
    )
    rows = []
    for window, source in enumerate(encoded["overflow_to_sample_mapping"]):
        number, turn, span = asked[source]
        begin = _begin(items[number], turn) if config.context else 0
        scope = (begin, begin + len(items[number].texts[turn])) if config.answers == "evidence" else None
        offsets = [tuple(pair) for pair in encoded["offset_mapping"][window]]
        row: QuestionRow = {
            "input_ids": encoded["input_ids"][window],
            "token_type_ids": encoded["token_type_ids"][window],
            "answerable": _answerable(encoded.sequence_ids(window), offsets, scope),
            "offsets": offsets,
            "item": number,
            "turn": turn,
        }
        if with_answers:
            gold = None if span is None else (begin + span.start, begin + span.end)
            row["span_positions"] = [_position(row, gold) or (0, 0)]
        rows.append(row)
    return rows


def _asked(items: Sequence[EntailmentItem], with_answers: bool) -> list[tuple[int, int, Span | None]]:
    """Number of the item, turn and gold answer of each question."""
    if with_answers:
        return [(number, turn, span) for number, item in enumerate(items) for turn, _, span in item.questions()]
    return [(number, turn, None) for number, item in enumerate(items) for turn in item.asked()]


def _question(item: EntailmentItem, turn: int, config: CauseSpansConfig) -> tuple[str, str]:
    """The question about a turn, and the context in which the answer is looked for."""
    candidate = item.texts[turn]
    question = span_question(item.emotion, item.texts[-1], candidate if config.context else None)
    return question, SURROGATES.sub(" ", item.context() if config.context else candidate)


def _answerable(
    parts: Sequence[int | None], offsets: Sequence[tuple[int, int]], scope: tuple[int, int] | None
) -> list[int]:
    """1 for pieces of the context where an answer may begin or end: in all of it, or within a scope."""
    first, last = scope or (-1, math.inf)
    return [
        int(part == 1 and start < end and start < last and first < end)
        for part, (start, end) in zip(parts, offsets, strict=True)
    ]


def _begin(item: EntailmentItem, turn: int) -> int:
    """Where a turn begins in the joined context."""
    return sum(len(text) + 1 for text in item.texts[:turn])


def _shortened(questions: list[str], tokenizer: PreTrainedTokenizerBase, config: CauseSpansConfig) -> list[str]:
    """Questions cut on the right to their limit, so that every window has room for context."""
    room = min(config.max_question, config.max_pieces - tokenizer.num_special_tokens_to_add(pair=True) - LEAST_CONTEXT)
    if room < 1:
        raise ConfigError(f"cause_spans: max_pieces is {config.max_pieces}; accepted: {LEAST_CONTEXT + 16} or more.")
    clean = [SURROGATES.sub(" ", question) for question in questions]
    cut = tokenizer(
        clean, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
    )
    return [
        question if len(ids) <= room else question[: offsets[room - 1][1]]
        for question, ids, offsets in zip(clean, cut["input_ids"], cut["offset_mapping"], strict=True)
    ]


def _position(row: Mapping[str, Any], gold: tuple[int, int] | None) -> tuple[int, int] | None:
    """First and last answerable piece that overlaps the gold characters; None unless all of them are here."""
    if gold is None:
        return None
    places = [i for i, yes in enumerate(row["answerable"]) if yes]
    inside = [i for i in places if row["offsets"][i][0] < gold[1] and gold[0] < row["offsets"][i][1]]
    if not inside:
        return None
    before = any(row["offsets"][i][0] <= gold[0] for i in places)
    after = any(row["offsets"][i][1] >= gold[1] for i in places)
    return (inside[0], inside[-1]) if before and after else None


def joint_rows(
    items: Sequence[EntailmentItem], tokenizer: PreTrainedTokenizerBase, config: CauseSpansConfig
) -> list[JointRow]:
    """Joint form: the rows of :func:`encode_joint` with ``span_positions`` for located gold spans of labelled items.

    Also ``item`` and ``turn``: which item a row is of, and, without context, which of its turns (else -1).
    """
    owners = [(number, -1, item) for number, item in enumerate(items) if item.asked()]
    if not config.context:
        owners = [(number, turn, short) for number, _, item in owners for turn, short in split_candidates(item)]
    rows = encode_joint([item for _, _, item in owners], tokenizer, config.max_pieces)
    for row, (number, turn, item) in zip(rows, owners, strict=True):
        row["item"], row["turn"] = number, turn
        if item.labels is not None:
            found = [_joint_position(row, item, span) for span in item.spans or ()]
            row["span_positions"] = [place for place in found if place is not None]
    return rows


def _joint_position(row: Mapping[str, Any], item: EntailmentItem, span: Span) -> tuple[int, int] | None:
    assert item.labels is not None
    if item.labels[span.turn] != 1:
        return None
    turn = span.turn - row["first_turn"]
    inside = [
        i
        for i, (turn_id, (start, end)) in enumerate(zip(row["turn_ids"], row["offsets"], strict=True))
        if turn_id == turn and turn_id >= 0 and max(start, span.start) < min(end, span.end)
    ]
    return (inside[0], inside[-1]) if inside else None


def span_rows(
    items: Sequence[EntailmentItem], tokenizer: PreTrainedTokenizerBase, config: CauseSpansConfig
) -> Sequence[JointRow | QuestionRow]:
    """Targets with labels and spans as the form learns from them."""
    if config.form == "joint":
        return joint_rows(items, tokenizer, config)
    return question_rows(items, tokenizer, config, with_answers=True)


class SpanCollator:
    """Pads rows into one batch that holds only what ``CauseSpans.forward`` names.

    Args:
        tokenizer: Gives the pad piece.
        form: ``paper`` or ``joint``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, form: str) -> None:
        self.pad_id = special_ids(tokenizer)[2]
        self.form = form

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Shapes: (batch, source) for pieces, (batch, max_turns) for ``labels``, (batch, n, 2) for spans."""
        batch = {
            "input_ids": pad_rows([row["input_ids"] for row in rows], self.pad_id),
            "attention_mask": pad_rows([[1] * len(row["input_ids"]) for row in rows], 0).bool(),
            "token_type_ids": pad_rows([row["token_type_ids"] for row in rows], 0),
        }
        if self.form == "joint":
            batch["turn_ids"] = pad_rows([row["turn_ids"] for row in rows], -1)
            if all("labels" in row for row in rows):
                batch["labels"] = pad_rows([row["labels"] for row in rows], IGNORED)
        if all("span_positions" in row for row in rows):
            most = max(1, *(len(row["span_positions"]) for row in rows))
            blank = (IGNORED, IGNORED)
            batch["span_positions"] = torch.tensor(
                [[*row["span_positions"], *[blank] * (most - len(row["span_positions"]))] for row in rows]
            )
        return batch
