"""How should a listener react? The emotion or intent of the turn that should come next, out of 41 labels.

The response emotion/intent predictor of MEED2 (Xie and Pu 2021): piece, position, turn parity and *turn
label* embeddings are added up, an encoder reads the context, attention pooling, a tanh layer and 41 labels follow.
The parity of a turn tells who says it: 0 the speaker, 1 the listener. Where the speaker opens and turns alternate, as
in all of EmpatheticDialogues, that is the published index modulo 2; it stays so when the oldest turns are left out.
Pooling in both forms: ``dot`` (the paper) and ``additive`` (the released code). The published encoder (4 layers of
width 300 on RoBERTa's pieces, 19,652,441 parameters) learns from scratch; any pretrained encoder can take its place.
The labels of the context's turns come from a classifier (``intent``); the label to be predicted is never read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers import PreTrainedTokenizerBase as Tokenizer
from transformers import initialization as init

from empatheia.analysis.component import COMPONENTS, Component
from empatheia.errors import DataError
from empatheia.records.analysis import TurnLabels
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.taxonomy import LABELS_41
from empatheia.text.batching import BucketBatchSampler
from empatheia_research.layers.pooling import POOLINGS, Pooling
from empatheia_research.understanding.encoders import check_positions, pieces_of, special_ids
from empatheia_research.understanding.heads import RATE, SHARE, Check, EncoderHeads, HeadsConfig, LabelOutput, at_least
from empatheia_research.understanding.labels.classifier import label_tensor, pad_rows

NO_LABEL = -1


class ReactionPredictorConfig(HeadsConfig):
    """What the predictor reads and how it scores; the defaults are the released code's.

    The labels are :data:`empatheia.taxonomy.LABELS_41`, by index; ``id2label`` holds them.

    Attributes:
        pooling: ``additive`` (code), ``dot`` (paper), ``mean`` or ``cls``.
        head_width: Width of the tanh layer; None = the encoder's.
        turn_labels: Add the embedding of each context turn's label to its pieces.
        label_dropout: How often, in training, all labels of a context are left out, in [0, 1]; above 0 the model also
            learns to do without them. Published: 0.
        double_separator: Two separators between turns (published), the first with the turn before, the second with
            the turn after; false = one, with the turn before.
        max_pieces: Most pieces of a context.
        dropout: On the input of the head, in [0, 1).
    """

    model_type = "reaction_predictor"
    pooling: str = "additive"
    head_width: int | None = None
    turn_labels: bool = True
    label_dropout: float = 0.0
    double_separator: bool = True
    max_pieces: int = 100
    dropout: float = 0.0
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"pooling": POOLINGS}
    checks: ClassVar[Mapping[str, Check]] = {
        "label_dropout": SHARE,
        "dropout": RATE,
        "head_width": (lambda width: width is None or width >= 1, "1 or more, or null"),
        "max_pieces": at_least(4),
    }

    def __post_init__(self, labels: Sequence[str] | None = None, **kwargs: Any) -> None:
        super().__post_init__(LABELS_41 if self.id2label is None else labels, **kwargs)


class ReactionPredictor(EncoderHeads):
    """Distribution over the 41 labels of the next turn.

    ``x = piece + position + parity + label``; ``r = encoder(x)``; ``p = softmax(W_2 tanh(W_1 pool(r)))``. The encoder
    brings pieces and positions, and parities where it has two token types; else they have a table here.

    Args:
        config: Sizes and form; ``config.encoder_config`` says which encoder to build (no weights are loaded).
    """

    config_class = ReactionPredictorConfig
    recipe = "recipes/meed2/response_labels.yaml"
    config: ReactionPredictorConfig
    features: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "parity_ids", "turn_label_ids", "labels")

    def __init__(self, config: ReactionPredictorConfig) -> None:
        super().__init__(config)
        words: Any = self.get_input_embeddings()
        width, embedded = self.width, int(words.weight.shape[1])
        if config.turn_labels:
            self.label_table = nn.Embedding(len(LABELS_41), embedded)
        if not self.reads_types:
            self.parity_table = nn.Embedding(2, embedded)
        head_width = config.head_width or width
        self.pool = Pooling(config.pooling, width)
        self.head = nn.Sequential(
            nn.Dropout(config.dropout), nn.Linear(width, head_width), nn.Tanh(), nn.Linear(head_width, len(LABELS_41))
        )
        self.post_init()

    @classmethod
    def on_encoder(cls, source: PreTrainedModel, **fields: Any) -> Self:
        """As the base's; tables that the encoder did not know start at zero, so at first it reads as it is used to."""
        model = super().on_encoder(source, **fields)
        for name in ("label_table", "parity_table"):
            if hasattr(model, name):
                init.zeros_(getattr(model, name).weight)
        return model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        parity_ids: Tensor | None = None,
        turn_label_ids: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> LabelOutput:
        """Scores the labels of the next turn; content under a false ``attention_mask`` does not matter.

        Args:
            input_ids: Pieces of the context. Shape: (batch, source), int64.
            attention_mask: True = keep. Shape: (batch, source).
            parity_ids: 1 for the pieces of listener turns, else 0; None = 0. Shape: (batch, source), int64.
            turn_label_ids: Label of the piece's turn, -1 = unknown; None = all unknown. Shape: (batch, source), int64.
            labels: Label of the next turn, -100 = not supervised. Shape: (batch,), int64.
            return_dict: Accepted for the Trainer; the answer is always a ``LabelOutput``.
        """
        keep = attention_mask.bool()
        embedded = self.encoder.get_input_embeddings()(input_ids.masked_fill(~keep, self.pad_id))
        parities = torch.zeros_like(input_ids) if parity_ids is None else parity_ids.masked_fill(~keep, 0)
        extra = {}
        if self.reads_types:
            extra = {"token_type_ids": parities}
        else:
            embedded = embedded + self.parity_table(parities)  # (batch, source, width)
        if self.config.turn_labels and turn_label_ids is not None:
            known = (turn_label_ids >= 0) & keep
            if self.training and self.config.label_dropout:
                stays = torch.rand(len(input_ids), 1, device=input_ids.device) >= self.config.label_dropout
                known = known & stays
            embedded = embedded + self.label_table(turn_label_ids.clamp(min=0)) * known.unsqueeze(-1)
        states = self.encoder(inputs_embeds=embedded, attention_mask=keep.long(), **extra).last_hidden_state
        logits = self.head(self.pool(states, keep))
        return LabelOutput(logits=logits, **self.learn({"label": logits}, {"labels": labels}))


@dataclass(frozen=True, slots=True)
class NextTurn:
    """A context and, where it is known, the label of the turn after it.

    Attributes:
        context: Turns so far.
        turn_labels: One of the 41 labels (or None) a turn of the context.
        label: Of the next turn; never part of what the model reads.
        dialogue_id: Where it is from.
        turn: Index of the next turn.
        role: Who says it.
    """

    context: tuple[Turn, ...]
    turn_labels: tuple[str | None, ...]
    label: str | None = None
    dialogue_id: str = ""
    turn: int = -1
    role: str = ""

    def __post_init__(self) -> None:
        if not self.context or len(self.context) != len(self.turn_labels):
            raise DataError(
                f"dialogue {self.dialogue_id!r}, turn {self.turn}: {len(self.context)} turns of context with"
                f" {len(self.turn_labels)} labels; accepted: one or more turns, one label (or None) each."
            )


class ContextReader:
    """Contexts to pieces: ``<s> u_1 </s> </s> u_2 </s> ...`` with the parity and the label of each piece's turn.

    Args:
        tokenizer: The encoder's.
        config: The model's configuration.

    Raises:
        ConfigError: The tokenizer lacks special pieces, or the encoder has fewer positions than ``max_pieces``.
    """

    def __init__(self, tokenizer: Tokenizer, config: ReactionPredictorConfig) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.opening, self.closing, self.padding = special_ids(tokenizer)
        check_positions(config.encoder_config, config.max_pieces)
        self._index = {name: i for i, name in enumerate(LABELS_41)}

    def encode(self, items: Sequence[NextTurn]) -> list[dict[str, Any]]:
        """One row an item; whole turns go from the oldest on until it fits, a last turn that is too long is cut.

        ``is_whole`` says that nothing was left out; ``label`` is there if all items have one.
        """
        texts = (turn.text for item in items for turn in item.context)
        pieces = pieces_of(self.tokenizer, texts, lambda text: text.encode("utf-8", "replace").decode())
        has_labels = all(item.label is not None for item in items)
        rows = []
        for item in items:
            row = self._row(item, [pieces[turn.text] for turn in item.context])
            if has_labels:
                row["label"] = self._index[str(item.label)]
            rows.append(row)
        return rows

    def collate(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """A padded batch of what ``forward`` names."""
        ids = [row["input_ids"] for row in rows]
        lengths = torch.tensor([len(row) for row in ids])
        batch = {"input_ids": pad_rows(ids, self.padding)}
        batch["attention_mask"] = torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]
        batch["parity_ids"] = pad_rows([row["parity_ids"] for row in rows], 0)
        batch["turn_label_ids"] = pad_rows([row["turn_label_ids"] for row in rows], NO_LABEL)
        return batch | label_tensor([dict(row) for row in rows])

    def save(self, folder: Path) -> None:
        """Writes the tokenizer."""
        self.tokenizer.save_pretrained(folder)

    def _row(self, item: NextTurn, turns: Sequence[Sequence[int]]) -> dict[str, Any]:
        between = 2 if self.config.double_separator else 1
        room = self.config.max_pieces - 2  # the opening piece and the last separator
        first = len(turns) - 1
        used = len(turns[first])
        while first > 0 and used + between + len(turns[first - 1]) <= room:
            used += between + len(turns[first - 1])
            first -= 1
        kept = [list(turn) for turn in turns[first:]]
        is_whole = first == 0 and used <= room
        if len(kept) == 1:
            kept[0] = kept[0][:room]
        row: dict[str, Any] = {
            "input_ids": [self.opening],
            "parity_ids": [],
            "turn_label_ids": [],
            "is_whole": is_whole,
        }
        for i, turn in enumerate(kept):
            leads = [self.closing] if i and self.config.double_separator else []
            row["input_ids"] += [*leads, *turn, self.closing]
            n = len(row["input_ids"]) - len(row["parity_ids"])
            label = item.turn_labels[first + i]
            row["parity_ids"] += [int(item.context[first + i].role == "listener")] * n
            row["turn_label_ids"] += [NO_LABEL if label is None else self._index[label]] * n
        return row


@torch.inference_mode()
def predict(
    model: ReactionPredictor,
    reader: ContextReader,
    items: Sequence[NextTurn],
    batch_size: int = 32,
    use_labels: bool = True,
) -> np.ndarray:
    """Distributions over the next turn's label, in order; ``NextTurn.label`` is not read.

    Args:
        model: Put into evaluation mode.
        reader: The model's own.
        items: Contexts.
        batch_size: Most contexts in one pass.
        use_labels: False hides the labels of the context's turns.

    Returns:
        float64, rows sum to 1. Shape: (n_items, 41).
    """
    model.eval()
    rows = reader.encode([NextTurn(item.context, item.turn_labels) for item in items])
    out = np.zeros((len(items), len(LABELS_41)))
    for batch in BucketBatchSampler([len(row["input_ids"]) for row in rows], batch_size, shuffle=False):
        tensors = {key: value.to(model.device) for key, value in reader.collate([rows[i] for i in batch]).items()}
        if not use_labels:
            tensors["turn_label_ids"] = torch.full_like(tensors["turn_label_ids"], NO_LABEL)
        out[batch] = model(**tensors).logits.double().softmax(-1).cpu().numpy()
    return out


class ReactionToTurns:
    """Part ``reaction``: for each speaker turn, the emotion or intent of the reply that should come next.

    ``TurnLabels.turn`` is the speaker turn that is answered. Only turns up to it are read, and their labels as the
    labeller sees them; replies that the conversation already has play no part, and no gold label does.

    Args:
        model: Trained.
        reader: The model's own.
        name: For records.
        labeller: Component of part ``intent`` that labels the context's turns one by one; None = unknown labels, which
            a model trained with ``label_dropout`` 0 has never seen.
    """

    part: str = "reaction"

    def __init__(
        self,
        model: ReactionPredictor,
        reader: ContextReader,
        name: str = "reaction",
        labeller: Component[TurnLabels] | None = None,
    ) -> None:
        self.model = model.eval()
        self.reader = reader
        self.labeller = labeller if model.config.turn_labels else None
        self.name = name
        if model.config.turn_labels:
            self.name += f", turn labels by {labeller.name}" if labeller else ", without turn labels"

    @classmethod
    def load(
        cls,
        folder: str | Path,
        labeller: Component[TurnLabels] | str | Path | None = None,
        device: str | torch.device | None = None,
    ) -> ReactionToTurns:
        """Reads a model folder.

        Args:
            folder: What training saved, or a name that ``resolve_model`` knows.
            labeller: Folder or name of an intent classifier, or the loaded component.
            device: Where the models run; None = the processor.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: The folder holds another model, or lacks weights.
        """
        model, reader, name = ReactionPredictor.load(folder, device)
        if isinstance(labeller, str | Path):
            options = {} if device is None else {"device": device}
            own: Component[TurnLabels] | None = COMPONENTS.get("intent").load(labeller, **options)
        else:
            own = labeller
        return cls(model, reader, name, own)

    def annotate(
        self, dialogues: Sequence[Dialogue], *, batch_size: int = 32, progress: Callable[[int], None] | None = None
    ) -> list[tuple[TurnLabels, ...]]:
        """One distribution a speaker turn, in the order of the turns.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most contexts in one forward pass.
            progress: Called with the number of conversations just finished.
        """
        out: list[tuple[TurnLabels, ...]] = []
        for start in range(0, len(dialogues), 512):
            group = dialogues[start : start + 512]
            labels = turn_labels(group, self.labeller, batch_size)
            items, places = [], []
            for d, (dialogue, own) in enumerate(zip(group, labels, strict=True)):
                for i, turn in enumerate(dialogue.turns):
                    if turn.role == "speaker":
                        items.append(NextTurn(dialogue.turns[: i + 1], own[: i + 1], None, dialogue.id, i + 1))
                        places.append((d, i))
            found = predict(self.model, self.reader, items, batch_size).tolist()
            records: list[list[TurnLabels]] = [[] for _ in group]
            for (d, i), row in zip(places, found, strict=True):
                records[d].append(TurnLabels(i, dict(zip(LABELS_41, row, strict=True))))
            out += [tuple(own) for own in records]
            if progress is not None:
                progress(len(group))
        return out


def turn_labels(
    dialogues: Sequence[Dialogue], labeller: Component[TurnLabels] | None, batch_size: int = 32
) -> list[tuple[str | None, ...]]:
    """The most probable label of every turn by a component of part ``intent``; all None without one.

    With ``corpora.turn_labels.write_turn_labels`` this makes the file that the recipe's ``data.labels`` names.
    """
    if labeller is None:
        return [(None,) * len(dialogue.turns) for dialogue in dialogues]
    out = []
    for dialogue, records in zip(dialogues, labeller.annotate(dialogues, batch_size=batch_size), strict=True):
        by_turn = {record.turn: record.label for record in records}
        out.append(tuple(by_turn.get(i) for i in range(len(dialogue.turns))))
    return out


ReactionPredictor.reader_class = ContextReader
AutoConfig.register(ReactionPredictorConfig.model_type, ReactionPredictorConfig, exist_ok=True)
AutoModel.register(ReactionPredictorConfig, ReactionPredictor, exist_ok=True)
