"""Causal emotion entailment: which earlier turns caused the emotion of a target turn?

The task and the ``pair`` form (one sequence for each candidate turn, classified at the first piece) are
Poria et al. (2021), "Recognizing Emotion Cause in Conversations", subtask 2; Gao et al. (2021), section 2.2,
label EmpatheticDialogues with such a model. The ``joint`` form is ours: the whole history is read once for
each target and every turn gets its own logit, so context comes without the right truncation that cuts late
turns. An optional head marks the causal span inside a turn (subtask 1).
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers import initialization as init
from transformers.models.auto.modeling_auto import MODEL_MAPPING
from transformers.utils import ModelOutput

from empatheia.dialogue import CauseAnnotation, Span
from empatheia.errors import CheckpointError, ConfigError, DataError
from empatheia.understanding.entailment_items import (
    IGNORED,
    EntailmentCollator,
    EntailmentDataset,
    EntailmentItem,
    encode_joint,
    encode_pairs,
    item_pair_texts,
    items_from_dialogue,
    items_from_reccon,
    pair_text,
)
from empatheia.understanding.entailment_scores import PairScores, best_threshold, evaluate_pairs

__all__ = [
    "CauseEntailment",
    "CauseEntailmentConfig",
    "CauseEntailmentOutput",
    "EntailmentCollator",
    "EntailmentDataset",
    "EntailmentItem",
    "PairScores",
    "annotate",
    "best_run",
    "best_threshold",
    "encode_joint",
    "encode_pairs",
    "evaluate_pairs",
    "items_from_dialogue",
    "items_from_reccon",
    "pair_text",
    "token_batches",
]

MASKED_LOGIT = -1e4
ENCODER_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")
PAIR_MAX_PIECES = {True: 512, False: 300}  # with context, without (Poria et al.'s scripts)


class CauseEntailmentConfig(PreTrainedConfig):
    """What the classifier reads and how it scores; the defaults are the ``joint`` form.

    Args:
        encoder_config: The encoder's own configuration as a dict with its ``model_type``; None only for the
            empty configuration that transformers builds internally.
        form: ``joint`` (one pass for each target, a logit for each turn) or ``pair`` (as published).
        max_pieces: Most pieces in a sequence; None = 512 (300 for pairs without context). The name
            ``max_length`` is reserved: transformers refuses to save a configuration that has it.
        context: Pair form only: append the history of the target.
        separator: Pair form only: ``literal`` keeps the text ``<SEP>`` as the released data have it,
            ``native`` puts the encoder's own separator piece there.
        head_width: Inner width of the turn and span heads (joint form).
        max_distance: Distances between turn and target from here on share one embedding.
        dropout: On the heads' inputs, in [0, 1).
        encoder_dropout: Replaces every dropout rate in ``encoder_config``; None = as the encoder has them.
            On a CPU drawing the masks takes about a sixth of a step, so short trainings may set 0.
        spans: Add the head that marks causal pieces (joint form).
        span_supervision: Pieces the span loss sees: of gold-``causal`` turns, or of the whole ``history``.
        positive_weight: Weight of causal turns in the loss relative to the others.
        freeze_word_embeddings: Keep the encoder's word table fixed in training.
        threshold: A turn is called causal from this probability on.
    """

    model_type = "cause_entailment"

    def __init__(
        self,
        encoder_config: dict[str, Any] | PreTrainedConfig | None = None,
        form: str = "joint",
        max_pieces: int | None = None,
        context: bool = True,
        separator: str = "literal",
        head_width: int = 256,
        max_distance: int = 15,
        dropout: float = 0.1,
        encoder_dropout: float | None = None,
        spans: bool = False,
        span_supervision: str = "causal",
        positive_weight: float = 1.0,
        freeze_word_embeddings: bool = False,
        threshold: float = 0.5,
        **kwargs: Any,
    ) -> None:
        for name, value, accepted in (
            ("form", form, ("joint", "pair")),
            ("separator", separator, ("literal", "native")),
            ("span_supervision", span_supervision, ("causal", "history")),
        ):
            if value not in accepted:
                raise ConfigError(f"cause_entailment: {name} is {value!r}; accepted: {', '.join(accepted)}.")
        if spans and form == "pair":
            raise ConfigError("cause_entailment: spans=true needs form=joint; the pair form has no span head.")
        if encoder_config is not None and not isinstance(encoder_config, dict):
            encoder_config = encoder_config.to_dict()
        if encoder_config is not None and encoder_dropout is not None:
            changed = {name: encoder_dropout for name in ENCODER_DROPOUTS if name in encoder_config}
            encoder_config = {**encoder_config, **changed}
        self.encoder_config = encoder_config
        self.encoder_dropout = encoder_dropout
        self.form = form
        self.max_pieces = max_pieces or (512 if form == "joint" else PAIR_MAX_PIECES[context])
        self.context = context
        self.separator = separator
        self.head_width = head_width
        self.max_distance = max_distance
        self.dropout = dropout
        self.spans = spans
        self.span_supervision = span_supervision
        self.positive_weight = positive_weight
        self.freeze_word_embeddings = freeze_word_embeddings
        self.threshold = threshold
        super().__init__(**kwargs)

    def build_encoder_config(self) -> PreTrainedConfig:
        """The encoder's configuration as an object.

        Raises:
            ConfigError: There is none, or it does not name its ``model_type``.
        """
        values = dict(self.encoder_config or {})
        model_type = values.pop("model_type", None)
        if not model_type:
            raise ConfigError(
                "cause_entailment: encoder_config has no 'model_type'; give the encoder's configuration as a"
                " dict, or build the model with CauseEntailment.from_encoder(folder)."
            )
        return AutoConfig.for_model(model_type, **values)


@dataclass
class CauseEntailmentOutput(ModelOutput):
    """What one pass gives.

    Attributes:
        loss: Sum of ``losses``; None without labels.
        losses: Unweighted means by name: ``entailment`` over turns, ``span`` over pieces (nats).
        counts: Over how many turns or pieces each mean runs.
        turn_logits: Log-odds that a turn is causal; turns that do not exist hold -1e4. One column in
            pair form. Shape: (batch, max_turns).
        piece_logits: Log-odds that a piece is in a causal span (span head only), -1e4 outside turns.
            Shape: (batch, source).
    """

    loss: Tensor | None = None
    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None
    turn_logits: Tensor | None = None
    piece_logits: Tensor | None = None


class _HeadLinear(nn.Linear):
    """A linear map of a fresh head; marks it for ``_init_weights``."""


class CauseEntailment(PreTrainedModel):
    """Scores each turn of a history as a cause of the target turn's emotion.

    Joint form: a turn is pooled as ``h_i = [mean of its states; state of its closing separator]`` and scored
    by ``MLP([h_i; h_t; h_i * h_t; distance(t - i); same_speaker(i)])`` with target t = the row's last turn.
    Pair form: a two-way linear head on the first state; its logit difference is the log-odds.

    Args:
        config: Sizes and form; ``config.encoder_config`` says which encoder to build (no weights are loaded).
    """

    config_class = CauseEntailmentConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True
    _supports_flash_attn = True
    config: CauseEntailmentConfig
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "turn_ids",
        "labels",
        "span_labels",
    )

    def __init__(self, config: CauseEntailmentConfig) -> None:
        super().__init__(config)
        encoder_config = config.build_encoder_config()
        self.encoder = AutoModel.from_config(encoder_config, **_without_pooler(encoder_config))
        self.reads_types = (getattr(encoder_config, "type_vocab_size", 0) or 0) >= 2
        self.pad_id = getattr(encoder_config, "pad_token_id", None) or 0
        width = encoder_config.hidden_size
        self.dropout = nn.Dropout(config.dropout)
        if config.form == "pair":
            self.pair_head = nn.Linear(width, 2)
        else:
            self.distance = nn.Embedding(config.max_distance + 1, 32)
            self.same_speaker = nn.Embedding(2, 8)
            self.turn_head = _mlp(6 * width + 40, config.head_width, config.dropout)
            if config.spans:
                self.span_head = _mlp(3 * width, config.head_width, config.dropout)
        self.post_init()
        if config.freeze_word_embeddings:
            self.encoder.get_input_embeddings().weight.requires_grad_(False)

    def _init_weights(self, module: nn.Module) -> None:
        """Normal weights and zero biases; Xavier weights in the two-layer heads, so they learn at once."""
        super()._init_weights(module)
        if isinstance(module, _HeadLinear):
            init.xavier_uniform_(module.weight)

    def get_input_embeddings(self) -> nn.Module:
        """The encoder's word table."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the encoder's word table."""
        self.encoder.set_input_embeddings(value)

    @classmethod
    def from_encoder(
        cls, folder: str, tokenizer_folder: str | None = None, **kwargs: Any
    ) -> tuple[CauseEntailment, PreTrainedTokenizerBase]:
        """A model with a pretrained encoder and fresh heads, and the tokenizer that goes with it.

        Args:
            folder: Folder (or hub id) of a Hugging Face encoder.
            tokenizer_folder: Folder of its tokenizer, if it lies elsewhere.
            **kwargs: Fields of :class:`CauseEntailmentConfig`.

        Raises:
            CheckpointError: The folder holds no encoder that transformers can read, or lacks weights.
        """
        try:
            source = AutoModel.from_pretrained(folder, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder or folder)
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"cannot read an encoder and its tokenizer from {str(folder)!r}: {error}"
                " Give a folder with config.json, model.safetensors and tokenizer.json."
            ) from error
        model = cls(CauseEntailmentConfig(encoder_config=source.config, **kwargs))
        missing, _ = model.encoder.load_state_dict(source.state_dict(), strict=False)
        if missing:
            raise CheckpointError(f"encoder {str(folder)!r} lacks {len(missing)} weights, first {missing[0]!r}.")
        return model, tokenizer

    def parameter_groups(self, lr: float, head_lr: float, weight_decay: float = 0.01) -> list[dict[str, Any]]:
        """Optimiser groups: encoder and heads with their own rates; biases and norms undecayed.

        Args:
            lr: Peak learning rate of the encoder.
            head_lr: Peak learning rate of the heads.
            weight_decay: Of matrices.
        """
        groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                key = (name.startswith("encoder."), parameter.dim() > 1)
                groups.setdefault(key, []).append(parameter)
        return [
            {
                "params": params,
                "lr": lr if encoder else head_lr,
                "weight_decay": weight_decay if matrix else 0.0,
            }
            for (encoder, matrix), params in groups.items()
        ]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        turn_ids: Tensor | None = None,
        labels: Tensor | None = None,
        span_labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> CauseEntailmentOutput:
        """Scores turns (and pieces); content under a false ``attention_mask`` does not matter.

        Args:
            input_ids: Pieces. Shape: (batch, source), int64.
            attention_mask: True = keep. Shape: (batch, source).
            token_type_ids: 1 for turns by the target's speaker, else 0. Shape: (batch, source), int64.
            turn_ids: Index of the turn, the target last, -1 for CLS, emotion and pad; joint form only.
                Shape: (batch, source), int64.
            labels: 1 causal, 0 not, -100 not supervised. Shape: (batch, max_turns), int64; in pair form
                max_turns = 1.
            span_labels: 1 in a causal span, 0 not, -100 not supervised. Shape: (batch, source), int64.
            return_dict: Accepted for the Trainer; the answer is always a ``CauseEntailmentOutput``.

        Raises:
            DataError: The joint form was given no ``turn_ids``.
        """
        keep = attention_mask.bool()
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids.masked_fill(~keep, 0)
        extra = {"token_type_ids": types} if self.reads_types and self.config.form == "joint" else {}
        states = self.encoder(
            input_ids=input_ids.masked_fill(~keep, self.pad_id), attention_mask=keep.long(), **extra
        ).last_hidden_state  # (batch, source, width)
        piece_logits = None
        if self.config.form == "pair":
            two_way = self.pair_head(self.dropout(states[:, 0]))  # (batch, 2)
            turn_logits = (two_way[:, 1] - two_way[:, 0]).unsqueeze(1)  # (batch, 1)
        else:
            if turn_ids is None:
                raise DataError(
                    "cause_entailment: the joint form needs turn_ids; make batches with EntailmentCollator."
                )
            turn_logits, piece_logits = self._score_joint(states, turn_ids.masked_fill(~keep, -1), types, labels)
        losses, counts = self._losses(turn_logits, piece_logits, labels, span_labels)
        loss = torch.stack(list(losses.values())).sum() if losses else None
        return CauseEntailmentOutput(loss, losses or None, counts or None, turn_logits, piece_logits)

    def _score_joint(
        self, states: Tensor, turn_ids: Tensor, types: Tensor, labels: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Turn logits (batch, max_turns) and, with a span head, piece logits (batch, source)."""
        n_turns = turn_ids.max(dim=1).values + 1  # (batch,)
        width = labels.shape[1] if labels is not None else int(n_turns.max())
        slots = torch.arange(width, device=states.device)  # (max_turns,)
        member = turn_ids.unsqueeze(1) == slots[:, None]  # (batch, max_turns, source)
        weights = member.to(states.dtype)
        mean = weights @ states / weights.sum(-1, keepdim=True).clamp(min=1)  # (batch, max_turns, width)
        positions = torch.arange(turn_ids.shape[1], device=states.device)
        closing = (member * positions).amax(-1)  # (batch, max_turns): each turn ends with its separator
        close = states.gather(1, closing.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
        turns = torch.cat([mean, close], dim=-1)  # (batch, max_turns, 2 width)
        last = (n_turns - 1).clamp(min=0)
        target = turns[torch.arange(len(turns), device=turns.device), last].unsqueeze(1)  # (batch, 1, 2 width)
        distance = (last[:, None] - slots).clamp(0, self.config.max_distance)  # (batch, max_turns)
        features = torch.cat(
            [
                turns,
                target.expand_as(turns),
                turns * target,
                self.distance(distance),
                self.same_speaker(types.gather(1, closing).clamp(0, 1)),
            ],
            dim=-1,
        )
        logits = self.turn_head(self.dropout(features)).squeeze(-1)  # (batch, max_turns)
        turn_logits = logits.masked_fill(slots >= n_turns[:, None], MASKED_LOGIT)
        if not self.config.spans:
            return turn_logits, None
        beside = target.expand(-1, states.shape[1], -1)  # (batch, source, 2 width)
        piece_logits = self.span_head(self.dropout(torch.cat([states, beside], dim=-1))).squeeze(-1)
        return turn_logits, piece_logits.masked_fill(turn_ids < 0, MASKED_LOGIT)

    def _losses(
        self,
        turn_logits: Tensor,
        piece_logits: Tensor | None,
        labels: Tensor | None,
        span_labels: Tensor | None,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        losses, counts = {}, {}
        if labels is not None:
            losses["entailment"], counts["entailment"] = _binary_loss(turn_logits, labels, self.config.positive_weight)
        if span_labels is not None and piece_logits is not None:
            losses["span"], counts["span"] = _binary_loss(piece_logits, span_labels, 1.0)
        return losses, counts

    @classmethod
    def count_items(cls, batch: Mapping[str, Tensor], config: CauseEntailmentConfig) -> dict[str, Tensor]:
        """How many turns or pieces each loss of ``batch`` is a mean over, without running the model."""
        counts = {}
        if (labels := batch.get("labels")) is not None:
            counts["entailment"] = labels.ne(IGNORED).sum()
        if config.spans and (span_labels := batch.get("span_labels")) is not None:
            counts["span"] = span_labels.ne(IGNORED).sum()
        return counts

    def fingerprint(self) -> str:
        """Twelve hex digits that change with any weight or with anything that changes the answer."""
        names = ("form", "max_pieces", "context", "separator", "max_distance", "spans")
        digest = hashlib.sha256(json.dumps({name: getattr(self.config, name) for name in names}).encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()[:12]


def _mlp(n_in: int, width: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(_HeadLinear(n_in, width), nn.GELU(), nn.Dropout(dropout), _HeadLinear(width, 1))


def _without_pooler(encoder_config: PreTrainedConfig) -> dict[str, bool]:
    """``add_pooling_layer=False`` if the class takes it: an unused pooler would never get a gradient."""
    model_class = MODEL_MAPPING.get(type(encoder_config), None)
    if model_class is None or "add_pooling_layer" not in inspect.signature(model_class.__init__).parameters:
        return {}
    return {"add_pooling_layer": False}


def _binary_loss(logits: Tensor, labels: Tensor, positive_weight: float) -> tuple[Tensor, Tensor]:
    """Mean binary cross-entropy (nats) over supervised positions, and how many there are.

    With ``positive_weight`` w the loss of a positive counts w times; the mean still runs over positions.
    """
    chosen = labels != IGNORED
    count = chosen.sum()
    target = labels.clamp(min=0).to(logits.dtype)
    weight = torch.tensor(positive_weight, dtype=logits.dtype, device=logits.device)
    each = F.binary_cross_entropy_with_logits(logits, target, pos_weight=weight, reduction="none")
    return torch.where(chosen, each, 0.0).sum() / count.clamp(min=1), count


def token_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices in batches of at most ``batch_tokens`` padded pieces, longest first; ties keep their order.

    >>> list(token_batches([3, 9, 4], 9))
    [[1], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def annotate(
    model: CauseEntailment,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[EntailmentItem],
    batch_tokens: int = 4096,
    threshold: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[CauseAnnotation]:
    """Predicts the causal turns (and spans, if the model marks them) of each item, in the order given.

    Turns that did not fit into the model's length get probability 0. Probabilities are rounded to 4 decimals
    and the threshold is applied after that, so the record can be checked against itself.

    Args:
        model: Any form; it is put into evaluation mode.
        tokenizer: The encoder's tokenizer.
        items: Targets with their histories; labels are not read.
        batch_tokens: Most padded pieces in one pass.
        threshold: A turn is causal from this probability on; None = the model's own.
        progress: Called with (items done, items in all) after each pass.
    """
    model.eval()
    limit = model.config.threshold if threshold is None else threshold
    name = f"cause_entailment/{model.config.form}-{model.fingerprint()}"
    collate = EntailmentCollator(tokenizer, model.config.form)
    if model.config.form == "joint":
        rows = encode_joint(items, tokenizer, model.config.max_pieces)
        owners = list(range(len(items)))
    else:
        texts = [item_pair_texts(item, model.config, tokenizer) for item in items]
        rows = encode_pairs([t for group in texts for t in group], tokenizer, model.config.max_pieces)
        owners = [i for i, group in enumerate(texts) for _ in group]
    scored: list[list[float]] = [[] for _ in rows]
    pieces: list[list[float]] = [[] for _ in rows]
    done = 0
    for batch in token_batches([len(row["input_ids"]) for row in rows], batch_tokens):
        stripped = [{k: v for k, v in rows[i].items() if not k.endswith("labels")} for i in batch]
        with torch.inference_mode():
            tensors = {key: value.to(model.device) for key, value in collate(stripped).items()}
            output = model(**tensors)
        for row, index in enumerate(batch):
            scored[index] = output.turn_logits[row].double().sigmoid().tolist()
            if output.piece_logits is not None:
                pieces[index] = output.piece_logits[row, : len(rows[index]["input_ids"])].double().tolist()
        done += len(batch)
        if progress is not None:
            progress(done * len(items) // len(rows), len(items))
    if model.config.form == "pair":
        return _pair_annotations(items, owners, scored, limit, name)
    return [
        _joint_annotation(item, row, turn, piece, limit, name)
        for item, row, turn, piece in zip(items, rows, scored, pieces, strict=True)
    ]


def _pair_annotations(
    items: Sequence[EntailmentItem], owners: list[int], scored: list[list[float]], threshold: float, name: str
) -> list[CauseAnnotation]:
    probabilities: list[list[float]] = [[] for _ in items]
    for owner, values in zip(owners, scored, strict=True):
        probabilities[owner].append(round(values[0], 4))
    return [
        _annotation(item, tuple(values), (), threshold, name) for item, values in zip(items, probabilities, strict=True)
    ]


def _joint_annotation(
    item: EntailmentItem,
    row: dict[str, Any],
    turns: list[float],
    pieces: list[float],
    threshold: float,
    name: str,
) -> CauseAnnotation:
    kept = len(item.texts) - row["first_turn"]
    probabilities = (0.0,) * row["first_turn"] + tuple(round(value, 4) for value in turns[:kept])
    spans = []
    for turn, probability in enumerate(probabilities):
        if pieces and probability >= threshold:
            where = [
                (offset, logit)
                for turn_id, offset, logit in zip(row["turn_ids"], row["offsets"], pieces, strict=True)
                if turn_id == turn - row["first_turn"] and turn_id >= 0 and offset[0] < offset[1]
            ]
            if where:
                start, end = best_run([logit for _, logit in where])
                spans.append(Span(turn, where[start][0][0], where[end - 1][0][1], probability))
    return _annotation(item, probabilities, tuple(spans), threshold, name)


def _annotation(
    item: EntailmentItem,
    probabilities: tuple[float, ...],
    spans: tuple[Span, ...],
    threshold: float,
    name: str,
) -> CauseAnnotation:
    return CauseAnnotation(
        dialogue_id=item.dialogue_id,
        target=item.target,
        turns=tuple(i for i, probability in enumerate(probabilities) if probability >= threshold),
        spans=spans,
        annotator=name,
        probabilities=probabilities,
        emotion=item.emotion,
    )


def best_run(scores: Sequence[float]) -> tuple[int, int]:
    """The stretch ``[start, end)`` with the largest sum; the whole when no score is above zero.

    With log-odds as scores it is the most probable single span under independent pieces.

    >>> best_run([-1.0, 2.0, -0.5, 3.0, -4.0])
    (1, 4)
    """
    if max(scores) <= 0:
        return 0, len(scores)
    best, best_range, total, start = float("-inf"), (0, len(scores)), 0.0, 0
    for i, score in enumerate(scores):
        if total <= 0:
            total, start = 0.0, i
        total += score
        if total > best:
            best, best_range = total, (start, i + 1)
    return best_range


AutoConfig.register(CauseEntailmentConfig.model_type, CauseEntailmentConfig, exist_ok=True)
AutoModel.register(CauseEntailmentConfig, CauseEntailment, exist_ok=True)
