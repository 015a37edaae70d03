"""Pairs of a seeker's text and a response for the mechanism models: pieces, labels, and answers as character spans.

The model is in ``identifier``; E and P numbers are those of the EPITOME notes in the specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase as Tokenizer

from empatheia.errors import ConfigError
from empatheia.records.dialogue import Dialogue, Span
from empatheia.taxonomy import IGNORED
from empatheia.text.readable import SURROGATES
from empatheia_research.understanding.encoders import check_positions, special_ids
from empatheia_research.understanding.labels.classifier import pad_rows
from empatheia_research.understanding.mechanisms.config import N_LEVELS, MechanismIdentifierConfig


@dataclass(frozen=True, slots=True)
class Pair:
    """A response and what it answers, with gold labels where they are known.

    Attributes:
        id: Unique.
        seeker: What is answered.
        response: The answer.
        levels: Mechanism to level 0-2; a mechanism that is missing is not supervised.
        rationales: Mechanism to character spans of the response. A mechanism above level 0 that is missing has
            unknown rationales and is not supervised; an empty tuple says that none is named.
    """

    id: str
    seeker: str
    response: str
    levels: Mapping[str, int] | None = None
    rationales: Mapping[str, tuple[Span, ...]] | None = None


class PairRow(TypedDict):
    """A pair in pieces.

    Attributes:
        input_ids: Of both texts, for their number only.
        seeker_ids, response_ids: Of each, with the special ones.
        offsets: Characters of each response piece; special pieces have none (start = end).
        label: Level by mechanism, -100 not supervised.
        rationale_label: By mechanism and response piece: 1, 0 or -100.
    """

    input_ids: list[int]
    seeker_ids: list[int]
    response_ids: list[int]
    offsets: list[tuple[int, int]]
    label: NotRequired[list[int]]
    rationale_label: NotRequired[list[list[int]]]


class PairReader:
    """Pairs to pieces: ``[CLS] text [SEP]`` for each of the two texts.

    Args:
        tokenizer: The encoder's fast tokenizer.
        config: The model's configuration.

    Raises:
        ConfigError: The tokenizer is not a fast one or lacks special pieces, or the encoder has fewer positions than
            ``max_pieces``.
    """

    def __init__(self, tokenizer: Tokenizer, config: MechanismIdentifierConfig) -> None:
        if not tokenizer.is_fast:
            raise ConfigError("mechanism_identifier: the tokenizer gives no offsets; a fast one (tokenizer.json) does.")
        self.tokenizer = tokenizer
        self.config = config
        self.opening, self.closing, self.padding = special_ids(tokenizer)
        check_positions(config.encoder_config, config.max_pieces)

    def encode(self, pairs: Sequence[Pair]) -> list[PairRow]:
        """One row a pair; ``input_ids`` are both texts' pieces, for their number only.

        ``offsets`` are the characters of each response piece; special pieces have none (start = end).
        """
        seekers = self._pieces([pair.seeker for pair in pairs])
        responses = self._pieces([pair.response for pair in pairs])
        rows = []
        for pair, (seeker, _), (response, offsets) in zip(pairs, seekers, responses, strict=True):
            row: PairRow = {
                "input_ids": seeker + response,
                "seeker_ids": seeker,
                "response_ids": response,
                "offsets": offsets,
            }
            if pair.levels is not None:
                row["label"] = [pair.levels.get(name, IGNORED) for name in self.config.mechanisms]
                row["rationale_label"] = [self.rationale_labels(pair, name, offsets) for name in self.config.mechanisms]
            rows.append(row)
        return rows

    def rationale_labels(self, pair: Pair, mechanism: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
        """1 for each piece that shares a character with a rationale, 0 for the others, -100 where nothing is known.

        Special pieces are never supervised, so a response of three pieces has three labels (specification, P5).
        """
        spans = (pair.rationales or {}).get(mechanism)
        if spans is None and (pair.levels or {}).get(mechanism) == 0:
            spans = ()
        if spans is None or (not spans and self.config.no_rationale == "ignored"):
            return [IGNORED] * len(offsets)
        is_whole = not spans and self.config.no_rationale == "whole"
        return [
            IGNORED if start == end else int(is_whole or any(start < span.end and span.start < end for span in spans))
            for start, end in offsets
        ]

    def collate(self, rows: Sequence[PairRow]) -> dict[str, Tensor]:
        """A padded batch of what ``forward`` names."""
        batch = {}
        sides = {"seeker": [row["seeker_ids"] for row in rows], "response": [row["response_ids"] for row in rows]}
        for side, ids in sides.items():
            lengths = torch.tensor([len(own) for own in ids])
            if self.config.padding == "repo":
                ids = [own + [self.padding] * (self.config.max_pieces - len(own)) for own in ids]
            batch[f"{side}_ids"] = pad_rows(ids, self.padding)
            batch[f"{side}_mask"] = torch.arange(batch[f"{side}_ids"].shape[1]) < lengths[:, None]
        if "label" in rows[0]:
            width = batch["response_ids"].shape[1]
            batch["labels"] = torch.tensor([row.get("label") for row in rows], dtype=torch.long)
            batch["rationale_labels"] = torch.tensor(
                [[own + [IGNORED] * (width - len(own)) for own in row.get("rationale_label", [])] for row in rows],
                dtype=torch.long,
            )
        return batch

    def save(self, folder: Path) -> None:
        """Writes the tokenizer."""
        self.tokenizer.save_pretrained(folder)

    def _pieces(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Ids with the special pieces, and the characters of each piece."""
        if not texts:
            return []
        room = self.config.max_pieces - 2
        clean = [SURROGATES.sub(" ", text) for text in texts]
        found = self.tokenizer(
            [lowered(text) if self.config.lowercase else text for text in clean],
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            split_special_tokens=True,
            verbose=False,
        )
        out = []
        ids_of: Any = found["input_ids"]
        offsets_of: Any = found["offset_mapping"]
        for ids, offsets in zip(ids_of, offsets_of, strict=True):
            places = [(int(start), int(end)) for start, end in offsets[:room]]
            out.append(([self.opening, *ids[:room], self.closing], [(0, 0), *places, (0, 0)]))
        return out


def lowered(text: str) -> str:
    """Lower case with every character in its place: the few whose lower case is longer stay as they are.

    >>> lowered("I AM İ")
    'i am İ'
    """
    if text.isascii():
        return text.lower()
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@dataclass(frozen=True, slots=True)
class Identified:
    """What the model says of one mechanism in one response.

    Attributes:
        mechanism: Its name.
        probabilities: Of the levels 0, 1, 2.
        pieces: Probability of each response piece to be part of a rationale; 0 at special pieces.
        offsets: Characters of each piece.
    """

    mechanism: str
    probabilities: tuple[float, float, float]
    pieces: tuple[float, ...]
    offsets: tuple[tuple[int, int], ...]

    @property
    def level(self) -> int:
        """The most probable level; the lower one of two."""
        return max(range(N_LEVELS), key=lambda level: self.probabilities[level])

    def rationales(self, response: str, turn: int = 1) -> tuple[Span, ...]:
        """Stretches of marked pieces, whole words, with the mean probability of their pieces as score.

        The head is trained to mark the whole response at level 0 (E10), so there it is not asked: no span.
        """
        if self.level == 0:
            return ()
        return marked_spans(self.pieces, self.offsets, response, turn)


def marked_spans(pieces: Sequence[float], offsets: Sequence[tuple[int, int]], text: str, turn: int) -> tuple[Span, ...]:
    """Runs of pieces with a probability above one half, as spans of whole words.

    Args:
        pieces: Probability of each piece.
        offsets: Its characters; special pieces have none.
        text: What the characters index.
        turn: For the spans.
    """
    groups: list[list[int]] = []
    last = -2
    for i, (p, (start, end)) in enumerate(zip(pieces, offsets, strict=True)):
        if start == end or p <= 0.5:
            continue
        if i == last + 1:
            groups[-1].append(i)
        else:
            groups.append([i])
        last = i
    spans: list[Span] = []
    for group in groups:
        start, end = _whole_words(text, offsets[group[0]][0], offsets[group[-1]][1])
        score = sum(pieces[i] for i in group) / len(group)
        if spans and start <= spans[-1].end:  # two runs inside one word
            score = max(score, spans[-1].score or 0.0)
            start = spans.pop().start
        spans.append(Span(turn, start, end, score))
    return tuple(spans)


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    def joined(at: int) -> bool:
        return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()

    while joined(start):
        start -= 1
    while joined(end):
        end += 1
    return start, end


def answered_turns(dialogue: Dialogue) -> list[tuple[int, int]]:
    """(listener turn, the last speaker turn before it) for each listener turn that answers one."""
    found = []
    spoken = None
    for i, turn in enumerate(dialogue.turns):
        if turn.role == "speaker":
            spoken = i
        elif spoken is not None:
            found.append((i, spoken))
    return found
