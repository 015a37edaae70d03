"""What does a text express? One label out of N on any Hugging Face encoder: 32 emotions, or 41 emotions and intents.

The 41-class form is the utterance classifier of MEED2 (Xie and Pu 2021, section 3; trained as in Welivita and Pu
2020): encoder, additive attention pooling, a tanh layer, a linear layer. The 32-class form reads EmpatheticDialogues
situations (Rashkin et al. 2019, table 9) or whole dialogue contexts. Probabilities are calibrated by one temperature
(Guo et al. 2017). A conversation is read as ``[CLS] U_1 [SEP] U_2 [SEP] ...``; if it is too long, the oldest turns go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from empatheia.errors import ConfigError
from empatheia.text.readable import SURROGATES
from empatheia_research.layers.pooling import POOLINGS, Pooling
from empatheia_research.understanding.encoders import HeadLinear, check_positions, pieces_of, special_ids
from empatheia_research.understanding.heads import (
    POSITIVE,
    RATE,
    Check,
    EncoderHeads,
    HeadsConfig,
    LabelOutput,
    at_least,
)
from empatheia_research.understanding.labels.classifier import Row, Text, label_tensor, pad_rows

READS = ("turn", "context")


class UtteranceClassifierConfig(HeadsConfig):
    """What the classifier reads and how it scores.

    Label names are the library's own ``id2label``, so a saved folder also works in ``transformers.pipeline``.

    Attributes:
        pooling: ``cls``, ``mean``, ``additive`` (MEED2's code) or ``dot`` (its paper).
        head_width: Width of a tanh layer between pooling and labels (MEED2: the encoder's); 0 = none.
        reads: ``turn`` (one text) or ``context`` (all turns up to the one that is labelled).
        max_pieces: Most pieces in a sequence (MEED2: 100). The name ``max_length`` is reserved by transformers.
        lowercase: Lower-case every text before it is cut into pieces; needed where some classes were learnt from
            lower-cased texts and the encoder is cased.
        dropout: On the inputs of the head, in [0, 1).
        label_smoothing: Share of probability spread over all labels in training, in [0, 1).
        label_weights: Factor of each label in the loss; None = all 1.
        softmax_temperature: Logits are divided by it; above 0. Found on validation data after training.
    """

    model_type = "utterance_classifier"
    pooling: str = "mean"
    head_width: int = 0
    reads: str = "turn"
    max_pieces: int = 128
    lowercase: bool = False
    dropout: float = 0.1
    label_smoothing: float = 0.0
    label_weights: list[float] | None = None
    softmax_temperature: float = 1.0
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"pooling": POOLINGS, "reads": READS}
    checks: ClassVar[Mapping[str, Check]] = {
        "max_pieces": at_least(3),
        "head_width": at_least(0),
        "dropout": RATE,
        "label_smoothing": RATE,
        "softmax_temperature": POSITIVE,
    }

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__post_init__(labels, **kwargs)
        weights = self.label_weights
        if weights is not None and len(weights) != self.num_labels:
            raise ConfigError(
                f"utterance_classifier: {len(weights)} label_weights for {self.num_labels} labels; give one each."
            )


class UtteranceClassifier(EncoderHeads):
    """``softmax(W tanh(V pool(encoder(text))) / temperature)``, without the tanh layer if ``head_width`` is 0.

    Args:
        config: Sizes and labels; ``config.encoder_config`` says which encoder to build (no weights are loaded).
    """

    config_class = UtteranceClassifierConfig
    config: UtteranceClassifierConfig
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "token_type_ids", "labels")

    def __init__(self, config: UtteranceClassifierConfig) -> None:
        super().__init__(config)
        self.pool = Pooling(config.pooling, self.width)
        layers: list[nn.Module] = [nn.Dropout(config.dropout)]
        if config.head_width:
            layers += [HeadLinear(self.width, config.head_width), nn.Tanh(), nn.Dropout(config.dropout)]
        self.head = nn.Sequential(*layers, HeadLinear(config.head_width or self.width, int(config.num_labels or 2)))
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> LabelOutput:
        """Scores the labels; content under a false ``attention_mask`` does not matter.

        Args:
            input_ids: Pieces. Shape: (batch, source), int64.
            attention_mask: True = keep; None keeps all. Shape: (batch, source).
            token_type_ids: 1 for the pieces of listener turns, else 0; read if the encoder has two types.
                Shape: (batch, source), int64.
            labels: Class indices, -100 = not supervised. Shape: (batch,), int64.
            return_dict: Accepted for the Trainer and pipelines; the answer is always a ``LabelOutput``.
        """
        keep = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        states = self.read(input_ids, keep, token_type_ids)  # (batch, source, width)
        logits = self.head(self.pool(states, keep)) / self.config.softmax_temperature  # (batch, n_labels)
        return LabelOutput(logits=logits, **self.learn({"label": logits}, {"labels": labels}))


class PieceReader:
    """Texts to the pieces an encoder reads.

    A string gives ``[CLS] pieces [SEP]``, cut on the right. A conversation gives every turn closed by a separator;
    whole turns are dropped from the oldest on until it fits, and a last turn that does not fit alone is cut on the
    right. A special piece typed by a user is text.

    Args:
        tokenizer: The encoder's fast tokenizer.
        config: The model's configuration.

    Raises:
        ConfigError: The tokenizer lacks special pieces, or the encoder has fewer positions than ``max_pieces``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, config: UtteranceClassifierConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.opening, self.closing, self.padding = special_ids(tokenizer)
        check_positions(config.encoder_config, config.max_pieces)

    def encode(self, texts: Sequence[Text]) -> list[Row]:
        """One row a text: ``input_ids`` and ``token_type_ids`` (1 = listener)."""
        room = self.config.max_pieces - 1
        turns = [self._newest(text, room) for text in texts]
        pieces = pieces_of(self.tokenizer, (words for row in turns for words, _ in row), self._clean)
        return [self._row([(pieces[words], type_id) for words, type_id in row], room) for row in turns]

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A batch. Shapes: (batch, source), and (batch,) for ``labels``."""
        ids = [row["input_ids"] for row in rows]
        lengths = torch.tensor([len(row) for row in ids])
        batch = {"input_ids": pad_rows(ids, self.padding)}
        batch["attention_mask"] = torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]
        batch["token_type_ids"] = pad_rows([row["token_type_ids"] for row in rows], 0)
        return batch | label_tensor(rows)

    def save(self, folder: Path) -> None:
        """Writes the tokenizer."""
        self.tokenizer.model_max_length = self.config.max_pieces
        self.tokenizer.save_pretrained(folder)

    @staticmethod
    def _newest(text: Text, room: int) -> list[tuple[str, int]]:
        """(text, type) of the turns that can have a place at all: each takes two pieces or more."""
        if isinstance(text, str):
            return [(text, 0)]
        return [(turn.text, int(turn.role == "listener")) for turn in text[-max(1, room) :]]

    def _clean(self, text: str) -> str:
        clean = SURROGATES.sub(" ", text)
        return clean.lower() if self.config.lowercase else clean

    def _row(self, turns: list[tuple[list[int], int]], room: int) -> Row:
        kept: list[tuple[list[int], int]] = []
        for pieces, type_id in reversed(turns):
            if len(pieces) + 1 > room:
                if not kept:
                    kept.append((pieces[: room - 1], type_id))
                break
            kept.append((pieces, type_id))
            room -= len(pieces) + 1
        ids, types = [self.opening], [0]
        for pieces, type_id in reversed(kept):
            ids += [*pieces, self.closing]
            types += [type_id] * (len(pieces) + 1)
        return {"input_ids": ids, "token_type_ids": types}


def train_pieces(texts: Sequence[str], size: int, max_pieces: int) -> PreTrainedTokenizerFast:
    """A lower-case WordPiece tokenizer for an encoder trained from scratch.

    Args:
        texts: What the pieces are learned from.
        size: Entries, special ones included.
        max_pieces: Longest sequence.
    """
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    core: Any = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=list(names.values()), show_progress=False)
    core.train_from_iterator(texts, trainer)
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokens = {f"{name}_token": piece for name, piece in names.items()}
    return PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=max_pieces, **tokens)


UtteranceClassifier.reader_class = PieceReader
AutoConfig.register(UtteranceClassifierConfig.model_type, UtteranceClassifierConfig, exist_ok=True)
AutoModel.register(UtteranceClassifierConfig, UtteranceClassifier, exist_ok=True)
AutoModelForSequenceClassification.register(UtteranceClassifierConfig, UtteranceClassifier, exist_ok=True)
