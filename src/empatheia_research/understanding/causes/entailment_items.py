"""Questions for the cause models and their features: items of all three folds, input layouts, dataset, collator.

Layouts: the published pair text (Poria et al. 2021, subtask 2) and our joint sequence; the models are in
``entailment`` and ``spans``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NotRequired, TypedDict

import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from empatheia.errors import ConfigError, DataError
from empatheia.records.dialogue import Dialogue, Span
from empatheia.taxonomy import IGNORED
from empatheia.text.readable import SURROGATES
from empatheia_research.corpora.loading import LoadedCorpus
from empatheia_research.corpora.reccon_pairs import Pair, pairs
from empatheia_research.understanding.causes.entailment_config import CauseEntailmentConfig
from empatheia_research.understanding.encoders import special_ids
from empatheia_research.understanding.labels.classifier import pad_rows

LITERAL_SEPARATOR = "<SEP>"


@dataclass(frozen=True, slots=True)
class EntailmentItem:
    """One target turn with its history.

    Attributes:
        dialogue_id: The dialogue it is from.
        target: 0-based index of the target turn, which is the last of ``texts``.
        texts: Turns 0..target. In folds 2 and 3 the context may be another dialogue's, the target after it.
        speakers: Who says each of them.
        emotion: Emotion of the target turn, as the model shall read it.
        labels: For each turn 1 causal, 0 not, -100 not supervised; None when unknown.
        spans: Gold causal spans in those turns; None when unknown.
        target_in_context: False when the published context leaves the target out (folds 2 and 3).
    """

    dialogue_id: str
    target: int
    texts: tuple[str, ...]
    speakers: tuple[str, ...]
    emotion: str
    labels: tuple[int, ...] | None = None
    spans: tuple[Span, ...] | None = None
    target_in_context: bool = True

    def __post_init__(self) -> None:
        sizes = {len(self.texts), len(self.speakers), self.target + 1, len(self.labels or self.texts)}
        if len(sizes) != 1:
            raise DataError(
                f"item {self.dialogue_id!r}: target {self.target} needs {self.target + 1} texts, speakers and"
                f" labels; found {len(self.texts)}, {len(self.speakers)} and"
                f" {'none' if self.labels is None else len(self.labels)}."
            )

    def context(self) -> str:
        """The history as the published inputs have it: turns joined by single spaces."""
        return " ".join(self.texts if self.target_in_context else self.texts[:-1])

    def asked(self) -> list[int]:
        """Turns the models are asked about: all, or those with a label."""
        return [i for i in range(len(self.texts)) if self.labels is None or self.labels[i] != IGNORED]

    def questions(self) -> Iterator[tuple[int, int, Span | None]]:
        """The published items of a labelled target: (turn, label, span).

        A causal turn with several gold spans is one item for each, as in the released files.
        """
        for turn, label in enumerate(self.labels or ()):
            found = [span for span in self.spans or () if span.turn == turn] if label == 1 else []
            if found:
                yield from ((turn, 1, span) for span in found)
            elif label != IGNORED:
                yield turn, label, None


def items_of_fold(corpus: LoadedCorpus, fold: int = 1, seed: int = 0, limit: int | None = None) -> list[EntailmentItem]:
    """A RECCON fold as items that together hold exactly its published pairs.

    Fold 1 gives one item a target. In folds 2 and 3 a negative stands in the history of another dialogue, so each has
    an item of its own; speakers are then those of the foreign turns and of the target.

    Args:
        corpus: One split, from :func:`empatheia_research.corpora.reccon.load`.
        fold: 1, 2 or 3.
        seed: Of the draw in folds 2 and 3.
        limit: First so many dialogues; None = all. Negatives of folds 2 and 3 come from all of them.

    Raises:
        ConfigError: Another fold.
    """
    kept = {dialogue.id for dialogue in corpus.dialogues[:limit]}
    groups: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in pairs(corpus, fold, seed):
        if pair.dialogue_id in kept:
            foreign = pair.candidate_dialogue_id != pair.dialogue_id
            key = (
                pair.dialogue_id,
                pair.target,
                len(pair.context),
                foreign and (pair.candidate_dialogue_id, pair.candidate),
            )
            groups.setdefault(key, []).append(pair)
    roles = {dialogue.id: [turn.role for turn in dialogue.turns] for dialogue in corpus.dialogues}
    return [_item_of_pairs(group, roles) for group in groups.values()]


def _item_of_pairs(group: Sequence[Pair], roles: Mapping[str, Sequence[str]]) -> EntailmentItem:
    """Pairs of one target with one context."""
    first = group[0]
    whole = first.candidate_dialogue_id == first.dialogue_id and len(first.context) == first.target + 1
    texts = first.context if whole else (*first.context, first.target_text)
    speakers = (*roles[first.candidate_dialogue_id][: len(texts) - 1], roles[first.dialogue_id][first.target])
    labels = [IGNORED] * len(texts)
    for pair in group:
        labels[pair.candidate] = pair.label
    return EntailmentItem(
        dialogue_id=first.dialogue_id,
        target=len(texts) - 1,
        texts=texts,
        speakers=speakers,
        emotion=first.emotion,
        labels=tuple(labels),
        spans=tuple(span for pair in group for span in pair.spans),
        target_in_context=whole,
    )


def split_candidates(item: EntailmentItem) -> list[tuple[int, EntailmentItem]]:
    """The item without context: for each turn asked about its index and an item of that turn and the target alone.

    Nothing of where the turn stood is left: the candidate, then the target; or the target alone when it is the
    candidate.
    """
    out = []
    for turn in item.asked():
        chosen = [turn] if turn == item.target else [turn, item.target]
        labels = None if item.labels is None else (item.labels[turn], *[IGNORED] * (len(chosen) - 1))
        spans = None
        if item.spans is not None:
            spans = tuple(replace(span, turn=0) for span in item.spans if span.turn == turn)
        short = EntailmentItem(
            item.dialogue_id,
            len(chosen) - 1,
            tuple(item.texts[i] for i in chosen),
            tuple(item.speakers[i] for i in chosen),
            item.emotion,
            labels,
            spans,
        )
        out.append((turn, short))
    return out


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
        per_prefix: True: for each listener turn the last speaker turn before it is a target, so no label
            knows the future. False: one item, target = the last speaker turn (as the released annotation
            was made).
        emotion_map: From the label to the word the model shall read (e.g. 32 labels to RECCON's 6);
            None = verbatim.

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
    roles = tuple(turn.role for turn in dialogue.turns)
    texts = tuple(turn.text for turn in dialogue.turns)
    targets = _answered(roles) if per_prefix else [i for i, role in enumerate(roles) if role == "speaker"][-1:]
    return [EntailmentItem(dialogue.id, t, texts[: t + 1], roles[: t + 1], label) for t in targets]


def _answered(roles: Sequence[str]) -> list[int]:
    """Speaker turns that are the last before a turn of the listener, in order."""
    out: list[int] = []
    last: int | None = None
    for i, role in enumerate(roles):
        if role == "speaker":
            last = i
        elif role == "listener" and last is not None and last not in out[-1:]:
            out.append(last)
    return out


def in_stretches(items: Sequence[EntailmentItem], n_questions: int) -> Iterator[Sequence[EntailmentItem]]:
    """Items in runs that ask at most so many questions (or one item), for forms that need a text for each question.

    A conversation of 500 turns asks 62,500 questions, each with its history: too much for the memory at once.

    Args:
        items: In order.
        n_questions: Most turns asked about in a run.
    """
    start = n = 0
    for i, item in enumerate(items):
        more = len(item.asked())
        if i > start and n + more > n_questions:
            yield items[start:i]
            start, n = i, 0
        n += more
    if start < len(items):
        yield items[start:]


def pair_text(
    emotion: str, target: str, candidate: str, context: str | None = None, separator: str = LITERAL_SEPARATOR
) -> str:
    """The pair form's published input: ``emotion <SEP> U_t <SEP> U_i``, with context also ``<SEP> H(U_t)``.

    >>> pair_text("anger", "Stop it !", "I ate your cake .")
    'anger <SEP> Stop it ! <SEP> I ate your cake .'
    """
    fields = [emotion, target, candidate] + ([] if context is None else [context])
    return f" {separator} ".join(fields)


class PairRow(TypedDict):
    """A text of the pair form in pieces; ``labels`` holds its one label, where it is known."""

    input_ids: list[int]
    labels: NotRequired[list[int]]


class JointRow(TypedDict):
    """A target with its history in pieces.

    Attributes:
        input_ids: With the special ones.
        token_type_ids: 1 for turns by the target's speaker.
        turn_ids: Index of the turn, from the first kept one on; -1 outside.
        offsets: Characters in the turn's text, (0, 0) for special pieces.
        first_turn: Index of the first kept turn.
        labels: Of the kept turns: 1 causal, 0 not, -100 not supervised.
        span_labels: Likewise of the pieces.
        item, turn: Which item a row is of, and which of its turns it asks about (-1 = all).
        span_positions: First and last piece of each gold span.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    turn_ids: list[int]
    offsets: list[tuple[int, int]]
    first_turn: int
    labels: NotRequired[list[int]]
    span_labels: NotRequired[list[int]]
    item: NotRequired[int]
    turn: NotRequired[int]
    span_positions: NotRequired[list[tuple[int, int]]]


def encode_pairs(
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    labels: Sequence[int] | None = None,
) -> list[PairRow]:
    """Pieces of pair-form texts, cut on the right; ``labels`` (if given) become one-turn label lists."""
    if not texts:
        return []
    clean = [SURROGATES.sub(" ", text) for text in texts]
    rows = tokenizer(clean, truncation=True, max_length=max_length)["input_ids"]
    features: list[PairRow] = [{"input_ids": row} for row in rows]
    for feature, label in zip(features, labels or [], strict=bool(labels)):
        feature["labels"] = [label]
    return features


def encode_joint(
    items: Sequence[EntailmentItem],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int = 512,
    span_supervision: str | None = None,
) -> list[JointRow]:
    """``[CLS] emotion [SEP] U_0 [SEP] ... U_t [SEP]`` with turn numbers, speaker types and labels.

    When the sequence is longer than ``max_length`` the oldest turns go first; a target that does not fit
    alone is cut on the right. Turn ids then count from the first kept turn, whose index is ``first_turn``.
    A special piece typed by a user is text.

    Args:
        items: Targets with their histories.
        tokenizer: A fast tokenizer with a CLS (or BOS) and a SEP (or EOS) piece.
        max_length: Most pieces.
        span_supervision: ``causal`` or ``history`` adds ``span_labels`` over the pieces of those turns.

    Returns:
        One dict for each item: ``input_ids``, ``token_type_ids``, ``turn_ids``, ``offsets`` (characters in
        the turn's text, (0, 0) for special pieces), ``first_turn``; if known ``labels``, ``span_labels``.

    Raises:
        ConfigError: The tokenizer has no CLS or SEP piece.
    """
    cls_id, sep_id, _ = special_ids(tokenizer)
    unique = list(dict.fromkeys(text for item in items for text in (item.emotion, *item.texts)))
    cut = _tokenize(unique, tokenizer)
    return [_encode_item(item, cut, cls_id, sep_id, max_length, span_supervision) for item in items]


_Pieces = tuple[list[int], list[tuple[int, int]]]


def _tokenize(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> dict[str, _Pieces]:
    if not texts:
        return {}
    batch = tokenizer(
        [SURROGATES.sub(" ", text) for text in texts],
        add_special_tokens=False,
        split_special_tokens=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    return {
        text: (ids, [tuple(pair) for pair in offsets])
        for text, ids, offsets in zip(texts, batch["input_ids"], batch["offset_mapping"], strict=True)
    }


def _encode_item(
    item: EntailmentItem,
    cut: dict[str, _Pieces],
    cls_id: int,
    sep_id: int,
    max_length: int,
    supervision: str | None,
) -> JointRow:
    head = [cls_id, *cut[item.emotion][0], sep_id]
    room = max_length - len(head)
    if room < 2:
        raise ConfigError(
            f"max_length {max_length} leaves no room beside the emotion {item.emotion!r}; use 32 or more."
        )
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
    feature: JointRow = {
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


def _span_labels(item: EntailmentItem, feature: JointRow, supervision: str) -> list[int]:
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


def item_pair_texts(
    item: EntailmentItem, config: CauseEntailmentConfig, tokenizer: PreTrainedTokenizerBase
) -> list[str]:
    """Pair-form texts of an item, one for each turn of its history."""
    separator = _separator(config, tokenizer)
    context = item.context() if config.context else None
    return [pair_text(item.emotion, item.texts[-1], text, context, separator) for text in item.texts]


def _separator(config: CauseEntailmentConfig, tokenizer: PreTrainedTokenizerBase) -> str:
    if config.separator == "literal":
        return LITERAL_SEPARATOR
    native = tokenizer.sep_token or tokenizer.eos_token
    if native is None:
        raise ConfigError("separator=native, but the tokenizer has no SEP or EOS piece; use separator=literal.")
    return str(native)


def entailment_rows(
    items: Sequence[EntailmentItem], tokenizer: PreTrainedTokenizerBase, config: CauseEntailmentConfig
) -> Sequence[JointRow | PairRow]:
    """Items to learn from, as the form and its context want them.

    Joint form: one row for each target, or without context for each supervised turn. Pair form: one row for each
    published pair, so a turn with two gold spans comes twice.

    Args:
        items: Targets with labels.
        tokenizer: The encoder's tokenizer.
        config: The model's configuration: form, lengths, span supervision.
    """
    if config.form == "joint":
        supervision = config.span_supervision if config.spans else None
        if not config.context:
            items = [short for item in items for _, short in split_candidates(item)]
        return encode_joint(items, tokenizer, config.max_pieces, supervision)
    chosen = []
    for item in items:
        texts = item_pair_texts(item, config, tokenizer)
        chosen += [(texts[turn], label) for turn, label, _ in item.questions()]
    texts, labels = [text for text, _ in chosen], [label for _, label in chosen]
    return encode_pairs(texts, tokenizer, config.max_pieces, labels)


class EntailmentCollator:
    """Pads rows into one batch that holds only what ``CauseEntailment.forward`` names.

    Args:
        tokenizer: Gives the pad piece.
        form: ``joint`` or ``pair``.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, form: str = "joint") -> None:
        self.pad_id: Any = tokenizer.pad_token_id or 0
        self.form = form

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Shapes: (batch, source) for pieces, (batch, max_turns) for ``labels``."""
        batch = {
            "input_ids": pad_rows([row["input_ids"] for row in rows], self.pad_id),
            "attention_mask": pad_rows([[1] * len(row["input_ids"]) for row in rows], 0).bool(),
        }
        if self.form == "joint":
            batch["token_type_ids"] = pad_rows([row["token_type_ids"] for row in rows], 0)
            batch["turn_ids"] = pad_rows([row["turn_ids"] for row in rows], -1)
        for key in ("labels", "span_labels"):
            if any(key in row for row in rows):
                blank = "turn_ids" if key == "span_labels" else None
                batch[key] = pad_rows(
                    [row.get(key) or [IGNORED] * (len(row[blank]) if blank else 1) for row in rows], IGNORED
                )
        if "labels" in batch and self.form == "joint":
            missing = int(batch["turn_ids"].max()) + 1 - batch["labels"].shape[1]
            batch["labels"] = F.pad(batch["labels"], (0, max(missing, 0)), value=IGNORED)
        return batch
