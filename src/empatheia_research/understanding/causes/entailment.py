"""Causal emotion entailment: which earlier turns caused the emotion of a target turn?

The task and the ``pair`` form (one sequence for each candidate turn, classified at the first piece) are
Poria et al. (2021), "Recognizing Emotion Cause in Conversations", subtask 2; Gao et al. (2021), section 2.2,
label EmpatheticDialogues with such a model. The ``joint`` form is ours: the whole history is read once for
each target and every turn gets its own logit, so context comes without the right truncation that cuts late
turns. An optional head marks the causal pieces inside a turn; ``cause_spans`` extracts spans (subtask 1).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedTokenizerBase

from empatheia.errors import DataError
from empatheia.records.dialogue import CauseAnnotation, Span
from empatheia_research.understanding.causes.entailment_config import CauseEntailmentConfig
from empatheia_research.understanding.causes.entailment_items import (
    EntailmentCollator,
    EntailmentItem,
    PairRow,
    encode_joint,
    encode_pairs,
    in_stretches,
    item_pair_texts,
    split_candidates,
)
from empatheia_research.understanding.encoders import HeadLinear, check_positions
from empatheia_research.understanding.heads import EncoderHeads, HeadsOutput, HeadSpec, binary_loss

MASKED_LOGIT = -1e4
PAIRS_AT_ONCE = 2048


@dataclass
class CauseEntailmentOutput(HeadsOutput):
    """What one pass gives.

    Attributes:
        turn_logits: Log-odds that a turn is causal; turns that do not exist hold -1e4. One column in
            pair form. Shape: (batch, max_turns).
        piece_logits: Log-odds that a piece is in a causal span (span head only), -1e4 outside turns.
            Shape: (batch, source).
    """

    turn_logits: Tensor | None = None
    piece_logits: Tensor | None = None


def turn_loss(model: Any, logits: Tensor, target: Tensor) -> Tensor:
    """Of whether turns are causal, with the weight of causal ones."""
    return binary_loss(logits, target, model.config.positive_weight)


class JointReader(EncoderHeads):
    """Reads a joint sequence and scores each of its turns as a cause; what the joint models share.

    A turn is pooled as ``h_i = [mean of its states; state of its closing separator]`` and scored by
    ``MLP([h_i; h_t; h_i * h_t; distance(t - i); same_speaker(i)])`` with target t = the row's last turn.

    Args:
        config: Names ``encoder_config``, ``form``, ``head_width``, ``max_distance`` and ``dropout``.
    """

    told_by_fingerprint: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config)
        self.dropout = nn.Dropout(config.dropout)
        if config.form == "joint":
            self.distance = nn.Embedding(config.max_distance + 1, 32)
            self.same_speaker = nn.Embedding(2, 8)
            self.turn_head = two_layers(6 * self.width + 40, config.head_width, config.dropout)

    @classmethod
    def make_reader(cls, tokenizer: PreTrainedTokenizerBase, config: Any) -> PreTrainedTokenizerBase:
        """The tokenizer: rows are made with the configuration at hand."""
        check_positions(config.encoder_config, config.max_pieces)
        return tokenizer

    def score_turns(
        self, states: Tensor, turn_ids: Tensor, types: Tensor, n_columns: int | None
    ) -> tuple[Tensor, Tensor]:
        """Log-odds that each turn is causal, and the pooled target.

        Args:
            states: Shape: (batch, source, width).
            turn_ids: Index of the turn, the target last, -1 outside. Shape: (batch, source), int64.
            types: 1 for turns by the target's speaker. Shape: (batch, source), int64.
            n_columns: Turns to answer for; None = as many as the longest row has.

        Returns:
            ``turn_logits`` (batch, n_columns), -1e4 where there is no turn, and the target (batch, 1, 2 width).
        """
        n_turns = turn_ids.max(dim=1).values + 1  # (batch,)
        slots = torch.arange(n_columns or int(n_turns.max()), device=states.device)  # (max_turns,)
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
        return logits.masked_fill(slots >= n_turns[:, None], MASKED_LOGIT), target

    def fingerprint(self) -> str:
        """Twelve hex digits that change with any weight or with anything that changes the answer."""
        settings = {name: getattr(self.config, name) for name in self.told_by_fingerprint}
        digest = hashlib.sha256(json.dumps(settings).encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()[:12]


class CauseEntailment(JointReader):
    """Scores each turn of a history as a cause of the target turn's emotion.

    Joint form: see :class:`JointReader`. Pair form: a two-way linear head on the first state; its logit difference
    is the log-odds.

    Args:
        config: Sizes and form; ``config.encoder_config`` says which encoder to build (no weights are loaded).
    """

    config_class = CauseEntailmentConfig
    config: CauseEntailmentConfig
    specs = (
        HeadSpec("entailment", "labels", turn_loss),
        HeadSpec(
            "span",
            "span_labels",
            lambda model, logits, target: binary_loss(logits, target),
            when=lambda config: config.spans,
        ),
    )
    told_by_fingerprint = ("form", "max_pieces", "context", "separator", "max_distance", "spans")
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
        if config.form == "pair":
            self.pair_head = nn.Linear(self.width, 2)
        elif config.spans:
            self.span_head = two_layers(3 * self.width, config.head_width, config.dropout)
        self.post_init()
        if config.freeze_word_embeddings:
            self.encoder.get_input_embeddings().weight.requires_grad_(False)

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
        is_joint = self.config.form == "joint"
        states = self.read(input_ids, keep, types if is_joint else None)  # (batch, source, width)
        piece_logits = None
        if not is_joint:
            two_way = self.pair_head(self.dropout(states[:, 0]))  # (batch, 2)
            turn_logits = (two_way[:, 1] - two_way[:, 0]).unsqueeze(1)  # (batch, 1)
        else:
            if turn_ids is None:
                raise DataError(
                    "cause_entailment: the joint form needs turn_ids; make batches with EntailmentCollator."
                )
            turn_logits, piece_logits = self._score_joint(states, turn_ids.masked_fill(~keep, -1), types, labels)
        learnt = self.learn(
            {"entailment": turn_logits, "span": piece_logits}, {"labels": labels, "span_labels": span_labels}
        )
        return CauseEntailmentOutput(turn_logits=turn_logits, piece_logits=piece_logits, **learnt)

    def _score_joint(
        self, states: Tensor, turn_ids: Tensor, types: Tensor, labels: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Turn logits (batch, max_turns) and, with a span head, piece logits (batch, source)."""
        turn_logits, target = self.score_turns(states, turn_ids, types, None if labels is None else labels.shape[1])
        if not self.config.spans:
            return turn_logits, None
        beside = target.expand(-1, states.shape[1], -1)  # (batch, source, 2 width)
        piece_logits = self.span_head(self.dropout(torch.cat([states, beside], dim=-1))).squeeze(-1)
        return turn_logits, piece_logits.masked_fill(turn_ids < 0, MASKED_LOGIT)


def two_layers(n_in: int, width: int, dropout: float, n_out: int = 1) -> nn.Sequential:
    """A head of two linear maps; :class:`JointReader` starts it with Xavier weights."""
    return nn.Sequential(HeadLinear(n_in, width), nn.GELU(), nn.Dropout(dropout), HeadLinear(width, n_out))


def token_batches(lengths: Sequence[int], batch_tokens: int, most: int | None = None) -> Iterator[list[int]]:
    """Indices in batches of at most ``batch_tokens`` padded pieces and ``most`` rows, longest first; ties keep order.

    >>> list(token_batches([3, 9, 4], 9))
    [[1], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batch: list[int] = []
    for index in order:
        if batch and ((len(batch) + 1) * lengths[batch[0]] > batch_tokens or len(batch) == most):
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
    batch_size: int | None = None,
) -> list[CauseAnnotation]:
    """Predicts the causal turns (and spans, if the model marks them) of each item, in the order given.

    Turns that did not fit into the model's length get probability 0, and ``first_read`` of the record says which
    (joint form; the pair form reads every candidate, cut on the right). Probabilities are rounded to 4 decimals
    and the threshold is applied after that, so the record can be checked against itself.

    Args:
        model: Any form; it is put into evaluation mode.
        tokenizer: The encoder's tokenizer.
        items: Targets with their histories; of gold labels only those that say "not asked about" are read, where each
            question costs a pass (pair form, or no context).
        batch_tokens: Most padded pieces in one pass.
        threshold: A turn is causal from this probability on; None = the model's own.
        progress: Called with (items done, items in all) after each pass.
        batch_size: Most rows in one pass; None = as many as ``batch_tokens`` allows.
    """
    model.eval()
    limit = model.config.threshold if threshold is None else threshold
    name = f"cause_entailment/{model.config.form}-{model.fingerprint()}"
    limits = (batch_tokens, batch_size)
    if model.config.form == "pair":
        found: list[CauseAnnotation] = []
        for part in in_stretches(items, PAIRS_AT_ONCE):
            found += _annotate_whole(model, tokenizer, part, limits, limit, name, None)
            if progress is not None:
                progress(len(found), len(items))
        return found
    if model.config.context:
        return _annotate_whole(model, tokenizer, items, limits, limit, name, progress)
    parts = [(i, turn, short) for i, item in enumerate(items) for turn, short in split_candidates(item)]
    notes = _annotate_whole(model, tokenizer, [part[2] for part in parts], limits, limit, name, progress)
    probabilities = [[0.0] * len(item.texts) for item in items]  # a turn not asked about keeps 0
    spans: list[list[Span]] = [[] for _ in items]
    for (i, turn, _), note in zip(parts, notes, strict=True):
        probabilities[i][turn] = note.probabilities[0]
        spans[i] += [replace(span, turn=turn) for span in note.spans if span.turn == 0]
    return [
        _annotation(item, tuple(p), tuple(s), limit, name)
        for item, p, s in zip(items, probabilities, spans, strict=True)
    ]


def _annotate_whole(
    model: CauseEntailment,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[EntailmentItem],
    limits: tuple[int, int | None],
    limit: float,
    name: str,
    progress: Callable[[int, int], None] | None,
) -> list[CauseAnnotation]:
    owners = [(i, turn) for i, item in enumerate(items) for turn in item.asked()]
    if model.config.form == "joint":
        rows: Sequence[Mapping[str, Any]] = encode_joint(items, tokenizer, model.config.max_pieces)
    else:
        rows = _pair_rows(model, tokenizer, items, owners)
    scored: list[list[float]] = [[] for _ in rows]
    pieces: list[list[float]] = [[] for _ in rows]
    done = 0
    for batch in token_batches([len(row["input_ids"]) for row in rows], *limits):
        output = _read(model, tokenizer, [rows[i] for i in batch])
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


def _pair_rows(
    model: CauseEntailment,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[EntailmentItem],
    owners: Sequence[tuple[int, int]],
) -> list[PairRow]:
    """A row for each (item, turn) asked about."""
    texts = [item_pair_texts(item, model.config, tokenizer) for item in items]
    return encode_pairs([texts[i][turn] for i, turn in owners], tokenizer, model.config.max_pieces)


def _read(model: CauseEntailment, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Mapping[str, Any]]) -> Any:
    """What the model says of a batch of rows, without their labels."""
    stripped = [{key: value for key, value in row.items() if not key.endswith("labels")} for row in rows]
    batch = EntailmentCollator(tokenizer, model.config.form)(stripped)
    with torch.inference_mode():
        return model(**{key: value.to(model.device) for key, value in batch.items()})


def _pair_annotations(
    items: Sequence[EntailmentItem],
    owners: Sequence[tuple[int, int]],
    scored: list[list[float]],
    threshold: float,
    name: str,
) -> list[CauseAnnotation]:
    probabilities = [[0.0] * len(item.texts) for item in items]  # a turn not asked about keeps 0
    for (i, turn), values in zip(owners, scored, strict=True):
        probabilities[i][turn] = round(values[0], 4)
    return [
        _annotation(item, tuple(values), (), threshold, name) for item, values in zip(items, probabilities, strict=True)
    ]


def _joint_annotation(
    item: EntailmentItem,
    row: Mapping[str, Any],
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
    return _annotation(item, probabilities, tuple(spans), threshold, name, row["first_turn"])


def _annotation(
    item: EntailmentItem,
    probabilities: tuple[float, ...],
    spans: tuple[Span, ...],
    threshold: float,
    name: str,
    first_read: int = 0,
) -> CauseAnnotation:
    return CauseAnnotation(
        dialogue_id=item.dialogue_id,
        target=item.target,
        turns=tuple(i for i, probability in enumerate(probabilities) if probability >= threshold),
        spans=spans,
        annotator=name,
        probabilities=probabilities,
        emotion=item.emotion,
        first_read=first_read,
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
