"""How an emotion and a text become the numbers a generative emotion estimator reads, for any kind of backbone.

An encoder-decoder reads the label in its encoder and the text in its decoder; a causal model reads the label as a
prompt before the text. The label is plain text (``__afraid__``), as released, so two labels can be read as one. Only
the text's own pieces are ever scored: not the pieces a tokenizer puts around it (BART begins every target with
``<s>``), nor its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from empatheia.errors import ConfigError
from empatheia.taxonomy import IGNORED
from empatheia.text.readable import SURROGATES
from empatheia_research.text.tokenizer import META, DialogueTokenizer
from empatheia_research.understanding.labels.classifier import pad_rows, read_tokenizer

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextPieces:
    """A text in pieces.

    Attributes:
        ids: Vocabulary indices, without special pieces.
        places: Characters ``[start, end)`` of the text each piece stands for.
        is_whole: False where the text was cut to the longest sequence.
    """

    ids: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Frame:
    """Special pieces before and after a sequence."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


class EstimatorReader:
    """Labels and texts as pieces, for one backbone.

    Args:
        tokenizer: Byte-pair pieces of this package, or a Hugging Face fast tokenizer.
        config: The model's configuration: ``label_form``, ``max_pieces``.
        start: Piece an encoder-decoder's decoder starts from; None = a causal model.

    Raises:
        ConfigError: The tokenizer is not a fast one, or a causal model's has no end piece.
    """

    def __init__(
        self, tokenizer: DialogueTokenizer | PreTrainedTokenizerBase, config: PreTrainedConfig, start: int | None = None
    ) -> None:
        self.tokenizer = tokenizer
        self.start = start
        self.label_form: str = config.label_form
        self.max_pieces: int = config.max_pieces
        if isinstance(tokenizer, DialogueTokenizer):
            self.padding = tokenizer.pad_id
            self.source = Frame((tokenizer.cls_id,), (tokenizer.sep_id,))
            self.target = Frame((), (tokenizer.eos_id,))
        else:
            if not tokenizer.is_fast:
                raise ConfigError(f"{type(tokenizer).__name__} gives no character offsets; use a fast tokenizer.")
            self.source, self.target = _frames(tokenizer, start is None)
            padding: Any = tokenizer.pad_token_id
            self.padding = padding if padding is not None else self.target.after[-1]
        self._labels: dict[str, tuple[int, ...]] = {}

    @property
    def is_seq2seq(self) -> bool:
        """Whether label and text are two sequences."""
        return self.start is not None

    # -- pieces ----------------------------------------------------------------------------------------------

    def pieces(self, texts: Sequence[str]) -> list[TextPieces]:
        """Pieces of texts, each cut on the right to ``max_pieces`` with what stands around it."""
        room = max(1, self.max_pieces - len(self.target.before) - len(self.target.after))
        out = []
        for ids, places in self._cut(texts):
            out.append(TextPieces(tuple(ids[:room]), tuple(places[:room]), len(ids) <= room))
        return out

    def label_ids(self, labels: Sequence[str]) -> list[int]:
        """What the model reads of one emotion, or of several one after the other (as the released code does)."""
        ids: list[int] = list(self.source.before)
        for label in labels:
            if label not in self._labels:
                self._labels[label] = tuple(self._cut([self.label_form.format(label)])[0][0])
            ids += self._labels[label]
        return [*ids, *self.source.after]

    def _cut(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        if isinstance(self.tokenizer, DialogueTokenizer):
            rows = self.tokenizer.encode_batch(texts)
            return [(row.ids, list(zip(row.starts, row.ends, strict=True))) for row in rows]
        if not texts:
            return []
        found: Any = self.tokenizer(
            [SURROGATES.sub(" ", text) for text in texts],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=True,
            split_special_tokens=True,
            verbose=False,
        )
        rows = zip(texts, found["input_ids"], found["offset_mapping"], strict=True)
        return [(ids, [_without_blanks(text, start, end) for start, end in places]) for text, ids, places in rows]

    # -- rows and batches ------------------------------------------------------------------------------------

    def encode(self, pairs: Sequence[tuple[str, str]]) -> list[Row]:
        """Training rows of (emotion, text): ``label_ids`` and ``text_ids`` with its end."""
        pieces = self.pieces([text for _, text in pairs])
        return [
            {"label_ids": self.label_ids([emotion]), "text_ids": self.target_ids(own)}
            for (emotion, _), own in zip(pairs, pieces, strict=True)
        ]

    def target_ids(self, pieces: TextPieces) -> list[int]:
        """Pieces of a text with those around it."""
        return [*self.target.before, *pieces.ids, *self.target.after]

    def length(self, row: Row) -> int:
        """Pieces of the longest sequence of a row."""
        if self.is_seq2seq:
            return max(len(row["label_ids"]), len(row["text_ids"]))
        return len(row["label_ids"]) + len(row["text_ids"])

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A training batch.

        Returns:
            ``input_ids`` and ``attention_mask`` (batch, source), ``labels`` (-100 = not supervised), and for an
            encoder-decoder ``decoder_input_ids``; labels go with the decoder's inputs, or with the causal model's
            inputs, position by position, already shifted.
        """
        texts = [row["text_ids"] for row in rows]
        if self.start is not None:
            source = [row["label_ids"] for row in rows]
            inputs = [[self.start, *ids[:-1]] for ids in texts]
            return {**self._padded(source), "decoder_input_ids": pad_rows(inputs, self.padding), **_labels(texts)}
        whole = [[*row["label_ids"], *ids] for row, ids in zip(rows, texts, strict=True)]
        labels = [[IGNORED] * (len(row["label_ids"]) - 1) + ids for row, ids in zip(rows, texts, strict=True)]
        return {**self._padded([row[:-1] for row in whole]), **_labels(labels)}

    def _padded(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        ids = pad_rows(rows, self.padding)
        lengths = torch.tensor([len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": torch.arange(ids.shape[1]) < lengths[:, None]}

    # -- files -----------------------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Writes the tokenizer."""
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def open(cls, folder: str | Path, config: PreTrainedConfig, start: int | None) -> EstimatorReader:
        """What :meth:`save` wrote, or the tokenizer of any Hugging Face folder.

        Raises:
            CheckpointError: There is no tokenizer.
        """
        if (Path(folder) / META).is_file():
            return cls(DialogueTokenizer.from_pretrained(folder), config, start)
        return cls(read_tokenizer(folder), config, start)


def _frames(tokenizer: PreTrainedTokenizerBase, is_causal: bool) -> tuple[Frame, Frame]:
    """Special pieces around a label and around a text.

    Raises:
        ConfigError: A causal model's tokenizer has nothing to end a text with.
    """
    if not is_causal:
        bare, whole = tokenizer.encode("a", add_special_tokens=False), tokenizer.encode("a")
        cut = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
        frame = Frame(tuple(whole[:cut]), tuple(whole[cut + len(bare) :]))
        return frame, frame
    begin: Any = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.cls_token_id
    end: Any = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    if end is None:
        raise ConfigError(f"{type(tokenizer).__name__} has no EOS or SEP piece to end a text with.")
    return Frame(() if begin is None else (begin,)), Frame((), (end,))


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Byte-level pieces may hold the blank before a word."""
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _labels(rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    return {"labels": pad_rows(rows, IGNORED)}
