"""Causal emotion entailment: which earlier turns caused the emotion of a target turn?

The task and the ``pair`` form (one sequence for each candidate turn, classified at the first piece) are
Poria et al. (2021), "Recognizing Emotion Cause in Conversations", subtask 2; Gao et al. (2021), section 2.2,
label EmpatheticDialogues with such a model. The ``joint`` form is ours: the whole history is read once for each
target and every turn gets its own logit, so context comes without the right truncation that cuts late turns.
An optional head marks the causal span inside a turn (subtask 1).
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from empatheia.dialogue import CauseAnnotation, Dialogue, Span
from empatheia.errors import CheckpointError, ConfigError, DataError

IGNORED = -100
LITERAL_SEPARATOR = "<SEP>"
MASKED_LOGIT = -1e4
PAIR_MAX_PIECES = {True: 512, False: 300}  # with context, without (Poria et al.'s scripts)


class CauseEntailmentConfig(PreTrainedConfig):
    """What the classifier reads and how it scores; the defaults are the ``joint`` form.

    Args:
        encoder_config: The encoder's own configuration as a dict with its ``model_type``; None only for the
            empty configuration that transformers builds internally.
        form: ``joint`` (one pass for each target, a logit for each turn) or ``pair`` (as published).
        max_pieces: Most pieces in a sequence; None = 512 (300 for pairs without context). (``max_length`` is a word
            that transformers reserves for generation.)
        context: Pair form only: append the history of the target.
        separator: Pair form only: ``literal`` keeps the text ``<SEP>`` as the released data have it,
            ``native`` puts the encoder's own separator piece there.
        head_width: Inner width of the turn and span heads (joint form).
        max_distance: Distances between turn and target from here on share one embedding.
        dropout: On the heads' inputs, in [0, 1).
        spans: Add the head that marks causal pieces (joint form).
        span_supervision: Pieces the span loss sees: those of gold-``causal`` turns, or of the whole ``history``.
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
        if isinstance(encoder_config, PreTrainedConfig):
            encoder_config = encoder_config.to_dict()
        self.encoder_config = encoder_config
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
                "cause_entailment: encoder_config has no 'model_type'; give the encoder's configuration as a dict,"
                " or build the model with CauseEntailment.from_encoder(folder)."
            )
        return AutoConfig.for_model(model_type, **values)


@dataclass
class CauseEntailmentOutput(ModelOutput):
    """What one pass gives.

    Attributes:
        loss: Sum of ``losses``; None without labels.
        losses: Unweighted means by name: ``entailment`` over turns, ``span`` over pieces (nats).
        counts: Over how many turns or pieces each mean runs.
        turn_logits: Log-odds that a turn is causal; turns that do not exist hold -1e4. In pair form one column.
            Shape: (batch, max_turns).
        piece_logits: Log-odds that a piece is in a causal span (span head only), -1e4 outside turns.
            Shape: (batch, source).
    """

    loss: Tensor | None = None
    losses: dict[str, Tensor] | None = None
    counts: dict[str, Tensor] | None = None
    turn_logits: Tensor | None = None
    piece_logits: Tensor | None = None


class CauseEntailment(PreTrainedModel):
    """Scores each turn of a history as a cause of the target turn's emotion.

    Joint form: a turn is pooled as ``h_i = [mean of its states; state of its closing separator]`` and scored by
    ``MLP([h_i; h_t; h_i * h_t; distance(t - i); same_speaker(i)])`` with target t = the last turn of the row.
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
        """Normal weights and zero biases; the two-layer heads keep a unit-gain scale so they start to learn at once."""
        super()._init_weights(module)
        if isinstance(module, nn.Linear) and getattr(module, "is_head", False):
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
            CheckpointError: The folder holds no encoder that transformers can read, or weights are missing in it.
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
            {"params": params, "lr": lr if encoder else head_lr, "weight_decay": weight_decay if matrix else 0.0}
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
            labels: 1 causal, 0 not, -100 not supervised. Shape: (batch, max_turns), int64; max_turns = 1 in pair form.
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
                raise DataError("cause_entailment: the joint form needs turn_ids; make batches with EntailmentCollator.")
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
        self, turn_logits: Tensor, piece_logits: Tensor | None, labels: Tensor | None, span_labels: Tensor | None
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        losses, counts = {}, {}
        if labels is not None:
            losses["entailment"], counts["entailment"] = _binary_loss(turn_logits, labels, self.config.positive_weight)
        if span_labels is not None and piece_logits is not None:
            losses["span"], counts["span"] = _binary_loss(piece_logits, span_labels, 1.0)
        return losses, counts

    def fingerprint(self) -> str:
        """Twelve hex digits that change with any weight or with anything that changes the answer."""
        names = ("form", "max_pieces", "context", "separator", "max_distance", "spans")
        digest = hashlib.sha256(json.dumps({name: getattr(self.config, name) for name in names}).encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()[:12]


def _mlp(n_in: int, width: int, dropout: float) -> nn.Sequential:
    layers = nn.Sequential(nn.Linear(n_in, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, 1))
    layers[0].is_head = layers[3].is_head = True
    return layers


def _without_pooler(encoder_config: PreTrainedConfig) -> dict[str, bool]:
    """``add_pooling_layer=False`` if the encoder class takes it: an unused pooler would never get a gradient."""
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


# Items: what is asked about, before any tokeniser ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntailmentItem:
    """One target turn with its history.

    Attributes:
        dialogue_id: The dialogue it is from.
        target: 0-based index of the target turn.
        texts: Turns 0..target.
        speakers: Who says each of them.
        emotion: Emotion of the target turn, as the model shall read it.
        labels: For each turn 1 causal, 0 not, -100 not supervised; None when unknown.
        spans: Gold causal spans in those turns; None when unknown.
    """

    dialogue_id: str
    target: int
    texts: tuple[str, ...]
    speakers: tuple[str, ...]
    emotion: str
    labels: tuple[int, ...] | None = None
    spans: tuple[Span, ...] | None = None

    def __post_init__(self) -> None:
        sizes = {len(self.texts), len(self.speakers), self.target + 1, len(self.labels or self.texts)}
        if len(sizes) != 1:
            raise DataError(
                f"item {self.dialogue_id!r}: target {self.target} needs {self.target + 1} texts, speakers and labels;"
                f" found {len(self.texts)}, {len(self.speakers)} and"
                f" {'none' if self.labels is None else len(self.labels)}."
            )


def items_from_reccon(
    dialogues: Iterable[Dialogue], annotations: Iterable[CauseAnnotation], with_latent: bool = True
) -> list[EntailmentItem]:
    """Fold 1 as items: every annotated target supervises its whole history (positives C, negatives H without C).

    Args:
        dialogues: RECCON dialogues.
        annotations: Their gold annotations; evidence after the target is ignored.
        with_latent: Keep targets without a cause in their history: all turns negative. The released fold 1 has
            them (5330 = 5266 + 64 negatives in the test part), though the paper says they were dropped.

    Raises:
        DataError: An annotation is of a dialogue that was not given.
    """
    by_id = {dialogue.id: dialogue for dialogue in dialogues}
    items = []
    for note in annotations:
        if note.dialogue_id not in by_id:
            raise DataError(f"annotation of unknown dialogue {note.dialogue_id!r}; {len(by_id)} dialogues were given.")
        history = by_id[note.dialogue_id].turns[: note.target + 1]
        causes = {turn for turn in note.turns if 0 <= turn <= note.target}
        if not causes and not with_latent:
            continue
        items.append(
            EntailmentItem(
                dialogue_id=note.dialogue_id,
                target=note.target,
                texts=tuple(turn.text for turn in history),
                speakers=tuple(turn.role for turn in history),
                emotion=note.emotion or "neutral",
                labels=tuple(int(i in causes) for i in range(len(history))),
                spans=tuple(span for span in note.spans if span.turn <= note.target),
            )
        )
    return items


def items_from_dialogue(
    dialogue: Dialogue,
    emotion: str | None = None,
    per_prefix: bool = True,
    emotion_map: Mapping[str, str] | None = None,
) -> list[EntailmentItem]:
    """Unlabelled items of a conversation such as those of EmpatheticDialogues.

    Args:
        dialogue: The conversation.
        emotion: Emotion of the speaker; None = the conversation's label.
        per_prefix: True: for each listener turn the last speaker turn before it is a target, so no label knows
            the future. False: one item, target = the last speaker turn (as the released annotation was made).
        emotion_map: From the label to the word the model shall read (e.g. 32 labels to RECCON's 6); None = verbatim.

    Raises:
        DataError: There is no emotion, or the map lacks it.
    """
    label = emotion or dialogue.emotion
    if label is None:
        raise DataError(f"dialogue {dialogue.id!r} has no emotion label; pass emotion=.")
    if emotion_map is not None:
        if label not in emotion_map:
            raise DataError(f"emotion {label!r} is not in the map; it has: {', '.join(sorted(emotion_map))}.")
        label = emotion_map[label]
    roles = [turn.role for turn in dialogue.turns]
    spoken = [i for i, role in enumerate(roles) if role == "speaker"]
    if per_prefix:
        answered = (max((i for i in spoken if i < j), default=None) for j, r in enumerate(roles) if r == "listener")
        targets = sorted({target for target in answered if target is not None})
    else:
        targets = spoken[-1:]
    texts = tuple(turn.text for turn in dialogue.turns)
    return [EntailmentItem(dialogue.id, t, texts[: t + 1], tuple(roles[: t + 1]), label) for t in targets]


# Features ------------------------------------------------------------------------------------------------------


def pair_text(
    emotion: str, target: str, candidate: str, context: str | None = None, separator: str = LITERAL_SEPARATOR
) -> str:
    """The published input of the pair form: ``emotion <SEP> U_t <SEP> U_i``, with context `` <SEP> H(U_t)`` after it.

    >>> pair_text("anger", "Stop it !", "I ate your cake .")
    'anger <SEP> Stop it ! <SEP> I ate your cake .'
    """
    fields = [emotion, target, candidate] + ([] if context is None else [context])
    return f" {separator} ".join(fields)


def encode_pairs(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int, labels: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """Pieces of pair-form texts, cut on the right; ``labels`` (if given) become one-turn label lists."""
    if not texts:
        return []
    rows = tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
    features: list[dict[str, Any]] = [{"input_ids": row} for row in rows]
    for feature, label in zip(features, labels or [], strict=bool(labels)):
        feature["labels"] = [label]
    return features


def encode_joint(
    items: Sequence[EntailmentItem],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int = 512,
    span_supervision: str | None = None,
) -> list[dict[str, Any]]:
    """``[CLS] emotion [SEP] U_0 [SEP] ... U_t [SEP]`` with turn numbers, speaker types and labels for each item.

    When the sequence is longer than ``max_length`` the oldest turns go first; a target that does not fit alone
    is cut on the right. Turn ids then count from the first kept turn, whose index is ``first_turn``.

    Args:
        items: Targets with their histories.
        tokenizer: A fast tokenizer with a CLS (or BOS) and a SEP (or EOS) piece.
        max_length: Most pieces.
        span_supervision: ``causal`` or ``history`` adds ``span_labels`` over the pieces of those turns.

    Returns:
        One dict for each item: ``input_ids``, ``token_type_ids``, ``turn_ids``, ``offsets`` (characters in the turn's
        text, (0, 0) for special pieces), ``first_turn`` and, if known, ``labels`` and ``span_labels``.

    Raises:
        ConfigError: The tokenizer has no CLS or SEP piece.
    """
    cls_id = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
    sep_id = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    if cls_id is None or sep_id is None:
        raise ConfigError("the tokenizer has no CLS/BOS or no SEP/EOS piece; the joint form needs both.")
    unique = list(dict.fromkeys(text for item in items for text in (item.emotion, *item.texts)))
    cut = _tokenize(unique, tokenizer)
    return [_encode_item(item, cut, cls_id, sep_id, max_length, span_supervision) for item in items]


_Pieces = tuple[list[int], list[tuple[int, int]]]


def _tokenize(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, _Pieces]:
    if not texts:
        return {}
    batch = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return {
        text: (ids, [tuple(pair) for pair in offsets])
        for text, ids, offsets in zip(texts, batch["input_ids"], batch["offset_mapping"], strict=True)
    }


def _encode_item(
    item: EntailmentItem, cut: dict[str, _Pieces], cls_id: int, sep_id: int, max_length: int, supervision: str | None
) -> dict[str, Any]:
    head = [cls_id, *cut[item.emotion][0], sep_id]
    room = max_length - len(head)
    if room < 2:
        raise ConfigError(f"max_length {max_length} leaves no room beside the emotion {item.emotion!r}; use 32 or more.")
    first = len(item.texts)
    while first > 0 and len(cut[item.texts[first - 1]][0]) + 1 <= room:
        first -= 1
        room -= len(cut[item.texts[first]][0]) + 1
    if first == len(item.texts):  # not even the target fits
        first -= 1
    ids, offsets = list(head), [(0, 0)] * len(head)
    turn_ids, types = [-1] * len(head), [0] * len(head)
    for index in range(first, len(item.texts)):
        pieces, where = cut[item.texts[index]]
        pieces, where = pieces[: max_length - len(ids) - 1], where[: max_length - len(ids) - 1]
        ids += [*pieces, sep_id]
        offsets += [*where, (0, 0)]
        turn_ids += [index - first] * (len(pieces) + 1)
        types += [int(item.speakers[index] == item.speakers[item.target])] * (len(pieces) + 1)
    feature: dict[str, Any] = {
        "input_ids": ids,
        "token_type_ids": types,
        "turn_ids": turn_ids,
        "offsets": offsets,
        "first_turn": first,
    }
    if item.labels is not None:
        feature["labels"] = list(item.labels[first:])
    if supervision and item.labels is not None and item.spans is not None:
        feature["span_labels"] = _span_labels(item, feature, supervision)
    return feature


def _span_labels(item: EntailmentItem, feature: dict[str, Any], supervision: str) -> list[int]:
    """1 for pieces that overlap a gold span, 0 for the others of supervised turns, -100 elsewhere.

    A causal turn whose span could not be located in its text is not supervised.
    """
    assert item.labels is not None and item.spans is not None
    spans: dict[int, list[Span]] = {}
    for span in item.spans:
        spans.setdefault(span.turn, []).append(span)
    labels = []
    for turn_id, (start, end) in zip(feature["turn_ids"], feature["offsets"], strict=True):
        turn = turn_id + feature["first_turn"]
        if turn_id < 0 or start == end or item.labels[turn] == IGNORED:
            labels.append(IGNORED)
        elif item.labels[turn] == 1:
            inside = any(span.start < end and start < span.end for span in spans.get(turn, ()))
            labels.append(int(inside) if turn in spans else IGNORED)
        else:
            labels.append(0 if supervision == "history" else IGNORED)
    return labels


def _item_pair_texts(item: EntailmentItem, config: CauseEntailmentConfig, tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Pair-form texts of an item, one for each turn of its history."""
    separator = _separator(config, tokenizer)
    context = " ".join(item.texts) if config.context else None
    return [pair_text(item.emotion, item.texts[-1], text, context, separator) for text in item.texts]


def _separator(config: CauseEntailmentConfig, tokenizer: PreTrainedTokenizerBase) -> str:
    if config.separator == "literal":
        return LITERAL_SEPARATOR
    native = tokenizer.sep_token or tokenizer.eos_token
    if native is None:
        raise ConfigError("separator=native, but the tokenizer has no SEP or EOS piece; use separator=literal.")
    return native


class EntailmentDataset(Sequence[dict[str, Any]]):
    """Encoded items in memory: one row for each target (joint form) or for each supervised turn (pair form).

    Args:
        items: Targets with labels.
        tokenizer: The encoder's tokenizer.
        config: The model's configuration: form, lengths, span supervision.

    Attributes:
        lengths: Pieces in each row, for length-bucketed batches.
    """

    def __init__(
        self, items: Sequence[EntailmentItem], tokenizer: PreTrainedTokenizerBase, config: CauseEntailmentConfig
    ) -> None:
        if config.form == "joint":
            supervision = config.span_supervision if config.spans else None
            self.rows = encode_joint(items, tokenizer, config.max_pieces, supervision)
        else:
            chosen = [
                (text, label)
                for item in items
                for text, label in zip(
                    _item_pair_texts(item, config, tokenizer), item.labels or [IGNORED] * len(item.texts), strict=True
                )
                if label != IGNORED
            ]
            texts, labels = [text for text, _ in chosen], [label for _, label in chosen]
            self.rows = encode_pairs(texts, tokenizer, config.max_pieces, labels)
        self.lengths = [len(row["input_ids"]) for row in self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]


class EntailmentCollator:
    """Pads rows into one batch that holds only what ``CauseEntailment.forward`` names.

    Args:
        tokenizer: Gives the pad piece.
        form: ``joint`` or ``pair``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, form: str = "joint") -> None:
        self.pad_id = tokenizer.pad_token_id or 0
        self.form = form

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Shapes: (batch, source) for pieces, (batch, max_turns) for ``labels``."""
        batch = {
            "input_ids": _pad([row["input_ids"] for row in rows], self.pad_id),
            "attention_mask": _pad([[1] * len(row["input_ids"]) for row in rows], 0).bool(),
        }
        if self.form == "joint":
            batch["token_type_ids"] = _pad([row["token_type_ids"] for row in rows], 0)
            batch["turn_ids"] = _pad([row["turn_ids"] for row in rows], -1)
        for key in ("labels", "span_labels"):
            if any(key in row for row in rows):
                blank = "turn_ids" if key == "span_labels" else None
                batch[key] = _pad(
                    [row.get(key) or [IGNORED] * (len(row[blank]) if blank else 1) for row in rows], IGNORED
                )
        if "labels" in batch and self.form == "joint":
            missing = int(batch["turn_ids"].max()) + 1 - batch["labels"].shape[1]
            batch["labels"] = F.pad(batch["labels"], (0, max(missing, 0)), value=IGNORED)
        return batch


def _pad(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *([value] * (width - len(row)))] for row in rows], dtype=torch.long)


# Inference and evaluation --------------------------------------------------------------------------------------


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

    Turns that did not fit into the model's length get probability 0. Probabilities are rounded to 4 decimals and
    the threshold is applied after that, so the record can be checked against itself.

    Args:
        model: Any form; it is put into evaluation mode.
        tokenizer: The encoder's tokenizer.
        items: Targets with their histories; labels are not read.
        batch_tokens: Most padded pieces in one pass.
        threshold: A turn is causal from this probability on; None = the model's own.
        progress: Called with (items done, items in all) after each pass.
    """
    model.eval()
    threshold = model.config.threshold if threshold is None else threshold
    name = f"cause_entailment/{model.config.form}-{model.fingerprint()}"
    collate = EntailmentCollator(tokenizer, model.config.form)
    if model.config.form == "joint":
        rows = encode_joint(items, tokenizer, model.config.max_pieces)
        owners = list(range(len(items)))
    else:
        texts = [_item_pair_texts(item, model.config, tokenizer) for item in items]
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
        return _pair_annotations(items, owners, scored, threshold, name)
    return [
        _joint_annotation(item, row, turn, piece, threshold, name)
        for item, row, turn, piece in zip(items, rows, scored, pieces, strict=True)
    ]


def _pair_annotations(
    items: Sequence[EntailmentItem], owners: list[int], scored: list[list[float]], threshold: float, name: str
) -> list[CauseAnnotation]:
    probabilities: list[list[float]] = [[] for _ in items]
    for owner, values in zip(owners, scored, strict=True):
        probabilities[owner].append(round(values[0], 4))
    return [
        _annotation(item, tuple(values), (), threshold, name)
        for item, values in zip(items, probabilities, strict=True)
    ]


def _joint_annotation(
    item: EntailmentItem, row: dict[str, Any], turns: list[float], pieces: list[float], threshold: float, name: str
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
    item: EntailmentItem, probabilities: tuple[float, ...], spans: tuple[Span, ...], threshold: float, name: str
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


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores over (target, candidate) pairs, in percent; higher is better.

    Attributes:
        positive_f1: F1 of the causal class.
        negative_f1: F1 of the other class.
        macro_f1: Mean of both.
        precision: Of the causal class.
        recall: Of the causal class.
        n_positive: Gold causal pairs (RECCON DailyDialog test: 1894).
        n_negative: Gold non-causal pairs (5330).
        threshold: Probability from which a pair was called causal.
    """

    positive_f1: float
    negative_f1: float
    macro_f1: float
    precision: float
    recall: float
    n_positive: int
    n_negative: int
    threshold: float


def evaluate_pairs(annotations: Iterable[CauseAnnotation], pairs: Iterable[Any], threshold: float = 0.5) -> PairScores:
    """F1 over published pairs: a turn with several gold spans counts once for each, as in the released files.

    Args:
        annotations: Predictions with probabilities, one for each target.
        pairs: Records with ``dialogue_id``, ``target``, ``candidate`` (0-based) and ``label``.
        threshold: A pair is causal from this probability on.

    Raises:
        DataError: A pair's target was not annotated.
    """
    return _pair_scores(_pair_probabilities(annotations, pairs), threshold)


def best_threshold(annotations: Iterable[CauseAnnotation], pairs: Iterable[Any]) -> PairScores:
    """Scores at the threshold (0.05, 0.06, ... 0.95) with the best macro-F1; to be used on validation pairs only."""
    cells = _pair_probabilities(annotations, pairs)
    return max((_pair_scores(cells, i / 100) for i in range(5, 96)), key=lambda s: (s.macro_f1, -abs(s.threshold - 0.5)))


def _pair_probabilities(annotations: Iterable[CauseAnnotation], pairs: Iterable[Any]) -> list[tuple[float, int]]:
    known = {(note.dialogue_id, note.target): note.probabilities for note in annotations}
    cells = []
    for pair in pairs:
        values = known.get((pair.dialogue_id, pair.target))
        if values is None or not 0 <= pair.candidate < len(values):
            raise DataError(
                f"pair of dialogue {pair.dialogue_id!r}, target {pair.target}, candidate {pair.candidate} has no"
                f" prediction; {len(known)} targets were annotated. Annotate the same items the pairs come from."
            )
        cells.append((values[pair.candidate], int(pair.label)))
    return cells


def _pair_scores(cells: Sequence[tuple[float, int]], threshold: float) -> PairScores:
    hits = sum(p >= threshold for p, label in cells if label)
    false_alarms = sum(p >= threshold for p, label in cells if not label)
    positives = sum(label for _, label in cells)
    negatives = len(cells) - positives
    rejected = negatives - false_alarms
    positive = 200 * hits / max(positives + hits + false_alarms, 1)
    negative = 200 * rejected / max(negatives + rejected + positives - hits, 1)
    return PairScores(
        positive_f1=positive,
        negative_f1=negative,
        macro_f1=(positive + negative) / 2,
        precision=100 * hits / max(hits + false_alarms, 1),
        recall=100 * hits / max(positives, 1),
        n_positive=positives,
        n_negative=negatives,
        threshold=threshold,
    )


AutoConfig.register(CauseEntailmentConfig.model_type, CauseEntailmentConfig, exist_ok=True)
AutoModel.register(CauseEntailmentConfig, CauseEntailment, exist_ok=True)
