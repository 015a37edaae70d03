"""Causal span extraction: which words of the conversation caused the emotion of a target turn?

``paper`` is the form of Poria et al. (2021), "Recognizing Emotion Cause in Conversations", subtask 1: a question
names target, candidate turn and emotion, the history is the context, and a SQuAD-2 reader points at the first and the
last piece of the answer, or at CLS for none (Devlin et al. 2019, section 4.3). ``joint`` is ours: the history is read
once for each target, every turn gets an entailment logit and its own start and end distribution, and

    P(span in turn i) = P(turn i is causal) * P(start | i) * P(end | i),

so entailment is the prior that decides between an answer and none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerBase

from empatheia.errors import CheckpointError, ConfigError, DataError
from empatheia.records.dialogue import Span
from empatheia.taxonomy import IGNORED
from empatheia_research.understanding.causes.entailment import (
    MASKED_LOGIT,
    CauseEntailment,
    JointReader,
    token_batches,
    turn_loss,
    two_layers,
)
from empatheia_research.understanding.causes.entailment_items import EntailmentItem, in_stretches
from empatheia_research.understanding.causes.span_answers import best_overlap, n_best, place_of, whole_words
from empatheia_research.understanding.causes.span_config import CauseSpansConfig
from empatheia_research.understanding.causes.span_items import SpanCollator, joint_rows, question_rows
from empatheia_research.understanding.heads import HeadsOutput, HeadSpec, supervised

QUESTIONS_AT_ONCE = 512


@dataclass
class CauseSpansOutput(HeadsOutput):
    """What one pass gives.

    Attributes:
        start_logits: Of each piece as the first of an answer, -1e4 where none can be. Shape: (batch, source).
        end_logits: Likewise as the last. Shape: (batch, source).
        turn_logits: Joint form: log-odds that a turn is causal. Shape: (batch, max_turns).
    """

    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    turn_logits: Tensor | None = None


def _competing(logits: Tensor, positions: Tensor, turns: Tensor | None, is_text: Tensor) -> Tensor:
    """Logits of starts and ends as gold spans are held against them; others hold -1e4.

    They compete over the whole row, or with ``turns`` over the pieces of the span's own turn.
    Shape: (batch, n_spans or 1, source, 2).
    """
    allowed = is_text.unsqueeze(1)  # (batch, 1, source)
    if turns is not None:
        own = turns.gather(1, positions.clamp(min=0)[..., 0])  # (batch, n_spans)
        allowed = allowed & (turns.unsqueeze(1) == own.unsqueeze(-1))  # (batch, n_spans, source)
    return logits.unsqueeze(1).masked_fill(~allowed.unsqueeze(-1), MASKED_LOGIT)


def _span_loss(model: Any, logits: Tensor, positions: Tensor) -> Tensor:
    """Mean of start and end cross-entropy (nats), summed over gold spans."""
    safe = positions.clamp(min=0)
    each = torch.zeros((), device=logits.device)
    for side in (0, 1):
        log_p = logits[..., side].log_softmax(-1).expand(-1, positions.shape[1], -1)  # (batch, n_spans, source)
        each = each - log_p.gather(2, safe[..., side : side + 1]).squeeze(-1) / 2
    return torch.where(positions[..., 0] != IGNORED, each, 0.0).sum()


class CauseSpans(JointReader):
    """Points at the first and the last piece of a causal span.

    Paper form: a linear map of each state to a start and an end logit. Joint form: turn logits as in
    :class:`~empatheia_research.understanding.causes.entailment.JointReader`, and ``MLP([state; h_t])`` to a start and
    an end logit that compete within a turn.

    Args:
        config: Sizes and form; ``config.encoder_config`` says which encoder to build (no weights are loaded).
    """

    config_class = CauseSpansConfig
    config: CauseSpansConfig
    specs = (
        HeadSpec("entailment", "labels", turn_loss, when=lambda config: config.form == "joint"),
        HeadSpec("span", "span_positions", _span_loss, count=lambda positions: supervised(positions[..., 0])),
    )
    told_by_fingerprint = ("form", "context", "max_pieces", "max_answer", "overlap", "answers", "decoding")
    features: ClassVar[tuple[str, ...]] = (
        "input_ids",
        "attention_mask",
        "token_type_ids",
        "turn_ids",
        "labels",
        "span_positions",
    )

    def __init__(self, config: CauseSpansConfig) -> None:
        super().__init__(config)
        if config.form == "joint":
            self.answer_head: nn.Module = two_layers(3 * self.width, config.head_width, config.dropout, 2)
        else:
            self.answer_head = nn.Linear(self.width, 2)
        self.post_init()

    @classmethod
    def on_encoder(cls, source: PreTrainedModel, **kwargs: Any) -> CauseSpans:
        """A model that starts with the weights of an encoder, or (joint form) of a trained :class:`CauseEntailment`.

        Of an annotator it takes the encoder, the tables of distances and speakers and the turn head, so that it scores
        turns as the annotator does until it learns otherwise. The head that marks pieces is left behind: on the first
        300 training targets a fresh start and end head learned faster than one that began with its weights.

        Args:
            source: Encoder or joint annotator.
            **kwargs: Fields of :class:`CauseSpansConfig`.

        Raises:
            CheckpointError: Weights are missing.
            ConfigError: The annotator's form or heads do not fit ``kwargs``.
        """
        if not isinstance(source, CauseEntailment):
            return super().on_encoder(source, **kwargs)
        old = source.config
        model = cls(CauseSpansConfig(encoder_config=old.encoder_config, **kwargs))
        if any(getattr(old, name) != getattr(model.config, name) for name in ("form", "head_width", "max_distance")):
            raise ConfigError(
                f"cause_spans: the encoder is an annotator of form={old.form}, head_width={old.head_width},"
                f" max_distance={old.max_distance}, the span model has form={model.config.form},"
                f" head_width={model.config.head_width}, max_distance={model.config.max_distance}; accepted: a joint"
                " annotator with the same values, or a plain encoder."
            )
        missing, _ = model.load_state_dict(source.state_dict(), strict=False)
        if lacking := [name for name in missing if not name.startswith("answer_head.")]:
            raise CheckpointError(f"the annotator lacks {len(lacking)} weights, first {lacking[0]!r}.")
        return model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        turn_ids: Tensor | None = None,
        labels: Tensor | None = None,
        span_positions: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> CauseSpansOutput:
        """Scores starts and ends; content under a false ``attention_mask`` does not matter.

        Args:
            input_ids: Pieces. Shape: (batch, source), int64.
            attention_mask: True = keep. Shape: (batch, source).
            token_type_ids: Paper form: 1 for the context; joint form: 1 for turns by the target's speaker.
                Shape: (batch, source), int64.
            turn_ids: Joint form: index of the turn, the target last, -1 for CLS, emotion and pad.
                Shape: (batch, source), int64.
            labels: Joint form: 1 causal, 0 not, -100 not supervised. Shape: (batch, max_turns), int64.
            span_positions: First and last piece of each gold span, (0, 0) for none (paper form), -100 for no more.
                Shape: (batch, n_spans, 2), int64.
            return_dict: Accepted for the Trainer; the answer is always a ``CauseSpansOutput``.

        Raises:
            DataError: The joint form was given no ``turn_ids``.
        """
        keep = attention_mask.bool()
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids.masked_fill(~keep, 0)
        states = self.read(input_ids, keep, types)  # (batch, source, width)
        turn_logits, is_text, turns = None, keep, None
        if self.config.form == "joint":
            if turn_ids is None:
                raise DataError("cause_spans: the joint form needs turn_ids; make batches with SpanCollator.")
            turns = turn_ids.masked_fill(~keep, -1)
            turn_logits, target = self.score_turns(states, turns, types, None if labels is None else labels.shape[1])
            states = self.dropout(torch.cat([states, target.expand(-1, states.shape[1], -1)], dim=-1))
            following = torch.cat([turns[:, 1:], torch.full_like(turns[:, :1], -1)], dim=1)
            is_text = (turns >= 0) & (turns == following)  # the last piece of a turn is its separator
        logits = self.answer_head(states).masked_fill(~is_text.unsqueeze(-1), MASKED_LOGIT)  # (batch, source, 2)
        starts_ends = None if span_positions is None else _competing(logits, span_positions, turns, is_text)
        learnt = self.learn(
            {"entailment": turn_logits, "span": starts_ends}, {"labels": labels, "span_positions": span_positions}
        )
        return CauseSpansOutput(
            start_logits=logits[..., 0], end_logits=logits[..., 1], turn_logits=turn_logits, **learnt
        )


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """The best answer for one candidate turn; whether it is given is for the threshold to say.

    Attributes:
        turn: The candidate asked about.
        span: Where the answer lies. Its score is in [0, 1]: paper form, the answer's probability against no answer;
            joint form, P(turn is causal) times the answer's expected F1 (``overlap``) or probability (``argmax``).
            Without ``answers=evidence`` it may lie in another turn, and is cut at that turn's end.
        text: The answer, whole.
        log_odds: Against no answer; above 0 the answer is more probable (paper: than CLS, joint: causal than not).
    """

    turn: int
    span: Span
    text: str
    log_odds: float


def extract(
    model: CauseSpans,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[EntailmentItem],
    batch_tokens: int = 4096,
    batch_size: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[int, SpanAnswer]]:
    """The best answer for each turn asked about, whatever the threshold; gold labels say only what is asked.

    A turn that did not fit into the model's length, or has no text, has no answer.

    Args:
        model: Put into evaluation mode.
        tokenizer: The encoder's tokenizer.
        items: Targets with their histories.
        batch_tokens: Most padded pieces in one pass.
        batch_size: Most rows in one pass; None = as many as ``batch_tokens`` allows.
        progress: Called with (items done, items in all) as the work goes on.

    Returns:
        For each item, turn index to answer.
    """
    model.eval()
    answers: list[dict[int, SpanAnswer]] = []
    for part in [items] if model.config.form == "joint" else in_stretches(items, QUESTIONS_AT_ONCE):
        answers += _extract(model, tokenizer, part, batch_tokens, batch_size)
        if progress is not None:
            progress(len(answers), len(items))
    return answers


def _extract(
    model: CauseSpans,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[EntailmentItem],
    batch_tokens: int,
    batch_size: int | None,
) -> list[dict[int, SpanAnswer]]:
    is_joint = model.config.form == "joint"
    rows = (joint_rows if is_joint else question_rows)(items, tokenizer, model.config)
    collate = SpanCollator(tokenizer, model.config.form)
    found: list[Any] = [None] * len(rows)
    for indices in token_batches([len(row["input_ids"]) for row in rows], batch_tokens, batch_size):
        stripped = [{k: v for k, v in rows[i].items() if k not in ("labels", "span_positions")} for i in indices]
        with torch.inference_mode():
            output = model(**{key: value.to(model.device) for key, value in collate(stripped).items()})
        starts, ends = output.start_logits.double().cpu().numpy(), output.end_logits.double().cpu().numpy()
        turns = output.turn_logits.double().cpu().numpy() if is_joint else None
        for place, i in enumerate(indices):
            n = len(rows[i]["input_ids"])
            if turns is None:
                found[i] = _window_answers(rows[i], starts[place, :n], ends[place, :n], model.config)
            else:
                found[i] = _turn_answers(rows[i], starts[place, :n], ends[place, :n], turns[place], model.config)
    return _joint_answers(items, rows, found) if is_joint else _asked_answers(items, rows, found, model.config)


def _joint_answers(
    items: Sequence[EntailmentItem], rows: Sequence[Mapping[str, Any]], found: Sequence[Any]
) -> list[dict[int, SpanAnswer]]:
    """For each item, turn to answer, where one row reads all turns."""
    answers: list[dict[int, SpanAnswer]] = [{} for _ in items]
    for row, places in zip(rows, found, strict=True):
        _add_joint(answers[row["item"]], items[row["item"]], row, places)
    return answers


def _asked_answers(
    items: Sequence[EntailmentItem], rows: Sequence[Mapping[str, Any]], found: Sequence[Any], config: CauseSpansConfig
) -> list[dict[int, SpanAnswer]]:
    """For each item, turn to answer, where each turn was asked about in one or more windows."""
    windows: dict[tuple[int, int], list[Any]] = {}
    for row, place in zip(rows, found, strict=True):
        windows.setdefault((row["item"], row["turn"]), []).append(place)
    answers: list[dict[int, SpanAnswer]] = [{} for _ in items]
    for (number, turn), places in windows.items():
        answer = _best_window(places, items[number], turn, config)
        if answer is not None:
            answers[number][turn] = answer
    return answers


def _window_answers(
    row: Mapping[str, Any], start: np.ndarray, end: np.ndarray, config: CauseSpansConfig
) -> tuple[float, tuple[float, int, int] | None]:
    """Score of no answer, and the best answer of one window as (score, first, last character)."""
    allowed = np.asarray(row["answerable"], dtype=bool)
    best = n_best(start, end, allowed, config.n_best, config.max_answer)[:1]
    null = float(start[0] + end[0])
    if not best:
        return null, None
    score, first, last = best[0]
    return null, (score, row["offsets"][first][0], row["offsets"][last][1])


def _best_window(
    places: Sequence[tuple[float, tuple[float, int, int] | None]],
    item: EntailmentItem,
    turn: int,
    config: CauseSpansConfig,
) -> SpanAnswer | None:
    """Windows of one question: the smallest null score, the largest answer (SQuAD 2's rule)."""
    candidates = [answer for _, answer in places if answer is not None]
    if not candidates:
        return None
    score, first, last = max(candidates)
    log_odds = score - min(null for null, _ in places)
    texts = (item.texts if item.target_in_context else item.texts[:-1]) if config.context else (item.texts[turn],)
    whole = " ".join(texts)
    first, last = whole_words(whole, first, last)
    where, start = place_of(first, texts)
    end = min(len(texts[where]), start + last - first)
    probability = float(1 / (1 + np.exp(-np.clip(log_odds, -60, 60))))
    span = Span(where if config.context else turn, start, end, round(probability, 4))
    return SpanAnswer(turn, span, whole[first:last], log_odds)


def _turn_answers(
    row: Mapping[str, Any], start: np.ndarray, end: np.ndarray, turn_logits: np.ndarray, config: CauseSpansConfig
) -> list[tuple[float, tuple[int, int], float] | None]:
    """For each turn of a joint row: log-odds, characters of the best span and its quality in [0, 1]."""
    turn_ids = np.asarray(row["turn_ids"])
    lengths = np.array([e - s for s, e in row["offsets"]])
    out: list[tuple[float, tuple[int, int], float] | None] = []
    for turn in range(int(turn_ids.max()) + 1):
        pieces = np.flatnonzero((turn_ids == turn) & (lengths > 0))
        if not len(pieces):
            out.append(None)
            continue
        left, right = _log_softmax(start[pieces]), _log_softmax(end[pieces])
        if config.decoding == "overlap":
            first, last, quality = best_overlap(left, right, config.max_answer)
        else:
            everywhere = np.ones(len(pieces), dtype=bool)
            score, first, last = n_best(left, right, everywhere, len(pieces), config.max_answer)[0]
            quality = float(np.exp(score))
        characters = (row["offsets"][pieces[first]][0], row["offsets"][pieces[last]][1])
        out.append((float(turn_logits[turn]), characters, quality))
    return out


def _add_joint(
    answers: dict[int, SpanAnswer],
    item: EntailmentItem,
    row: Mapping[str, Any],
    places: Sequence[tuple[float, tuple[int, int], float] | None],
) -> None:
    """The answers of a joint row under their turns' indices in the item."""
    asked = set(item.asked())
    for slot, place in enumerate(places):
        if row["turn"] >= 0 and slot > 0:
            break  # without context the first slot is the candidate, the second only the target
        turn = row["turn"] if row["turn"] >= 0 else slot + row["first_turn"]
        if place is None or turn not in asked:
            continue
        log_odds, characters, quality = place
        start, end = whole_words(item.texts[turn], *characters)
        probability = 1 / (1 + np.exp(-np.clip(log_odds, -60, 60)))
        span = Span(turn, start, end, round(float(probability * quality), 4))
        answers[turn] = SpanAnswer(turn, span, item.texts[turn][start:end], log_odds)


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max()
    return shifted - np.log(np.exp(shifted).sum())


AutoConfig.register(CauseSpansConfig.model_type, CauseSpansConfig, exist_ok=True)
AutoModel.register(CauseSpansConfig, CauseSpans, exist_ok=True)
