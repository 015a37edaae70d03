"""Examples to pieces with labels, pieces to tensors, and piece scores back to words and spans.

The source is ``[CLS] U_1 [SEP] U_2 [SEP] ...`` (Gao et al. 2021, section 3.1); cause labels of turns or spans
are aligned to pieces here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor

from empatheia.errors import ConfigError
from empatheia.records.dialogue import CauseAnnotation, Example, Span
from empatheia.registry import nearest
from empatheia.taxonomy import IGNORED, MECHANISMS
from empatheia.text.words import count_words
from empatheia_research.text.tokenizer import DialogueTokenizer, Pieces

ROLE_IDS = {"speaker": 1, "listener": 2}
LABELS = ("emotion_labels", "cause_labels", "mechanism_labels", "labels")
FEATURES = ("input_ids", "attention_mask", "role_ids", "turn_ids", *LABELS)
NOT_TENSORS = ("emotion_teacher", "feedback_ids", "emotion_vocabulary")  # added by collators of the training package


@dataclass(frozen=True)
class Layout:
    """How a context becomes one sequence.

    Attributes:
        max_source: Most pieces, CLS and SEPs included; at least 2.
        variant: ``paper``: cause labels as annotated, CLS counts as a cause; ``repo``: CLS not, the last turn
            always.
        supervise_cls: Let the loss see position 0 (equation 4 sums from 1).
        separators: Close each turn by SEP (Gao et al.); ``double``: and open each but the first by another one
            (MEED2); False: turns follow each other (MoEL and its kin).
        truncate: What goes when a context is too long. ``oldest``: turns from the front, then the start of
            the last turn; ``newest``: all behind the first ``max_source`` pieces, as Rashkin et al. do.
        max_turns: Turns read at most, the newest; None = as many as fit.

    Raises:
        ConfigError: ``max_source`` has no room for a turn, or an unknown word was given.
    """

    max_source: int = 256
    variant: Literal["paper", "repo"] = "paper"
    supervise_cls: bool = False
    separators: bool | Literal["double"] = True
    truncate: Literal["oldest", "newest"] = "oldest"
    max_turns: int | None = None

    def __post_init__(self) -> None:
        if self.max_source < 2:
            raise ConfigError(f"max_source is {self.max_source}; accepted: at least 2 (CLS and a SEP).")
        if self.max_turns is not None and self.max_turns < 1:
            raise ConfigError(f"max_turns is {self.max_turns}; accepted: at least 1, or none.")
        separators = ("separators", (True, False, "double"))
        for name, accepted in (("variant", ("paper", "repo")), ("truncate", ("oldest", "newest")), separators):
            if getattr(self, name) not in accepted:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; accepted: {', '.join(map(str, accepted))}.")


@dataclass(slots=True)
class EncodedExample:
    """An example in pieces; list fields have one entry a source piece.

    Attributes:
        input_ids: CLS, turns, each closed by SEP.
        turn_ids: Index of the turn in the example's context, -1 for CLS.
        role_ids: 0 for CLS, 1 speaker, 2 listener.
        starts: First character in the turn's text; special pieces have start = end.
        ends: Character after the last.
        word_ids: Index of the word within its turn, -1 for special pieces.
        cause_labels: 1, 0 or -100; None when nothing is known.
        labels: Reply pieces and EOS; None without a reply.
        emotion_label: Taxonomy index, -100 unknown.
        n_target_words: Words of the reply as far as it is kept (family rules) + 1 for the end mark.
        dialogue_id: Where it is from.
        turn_index: Index of the reply turn there.
        n_dropped_turns: Turns that did not fit (the oldest; the newest when the layout truncates there).
        was_cut: True when a turn that was kept had to be shortened.
    """

    input_ids: list[int]
    turn_ids: list[int]
    role_ids: list[int]
    starts: list[int]
    ends: list[int]
    word_ids: list[int]
    cause_labels: list[int] | None = None
    labels: list[int] | None = None
    emotion_label: int = IGNORED
    n_target_words: int = 0
    dialogue_id: str = ""
    turn_index: int = -1
    n_dropped_turns: int = 0
    was_cut: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def encode_examples(
    examples: Sequence[Example],
    tokenizer: DialogueTokenizer,
    layout: Layout,
    causes: Mapping[tuple[str, int], CauseAnnotation] | Mapping[str, CauseAnnotation] | None = None,
    emotion_index: Mapping[str, int] | None = None,
    cause_key: Literal["prefix", "dialogue"] = "prefix",
    level: Literal["turn", "span"] = "turn",
    max_target: int | None = None,
) -> list[EncodedExample]:
    """Encodes examples; each distinct text is cut once.

    Args:
        examples: Contexts and replies.
        tokenizer: Pieces.
        layout: Sequence form.
        causes: By ``(dialogue_id, target turn)`` when ``cause_key`` is ``prefix`` (target = last turn), or by
            dialogue id: released labels, cut to the turns the prefix holds.
        emotion_index: Label to number; a label it lacks gives -100.
        cause_key: See ``causes``.
        level: ``turn``: every piece of a causal turn and its SEP; ``span``: pieces that overlap a causal span
            (causal turns without spans are left unsupervised then, as are CLS and SEP, which hold no word).
        max_target: Reply pieces kept (plus EOS); None keeps all.

    Returns:
        One item an example, in order.
    """
    texts = list(dict.fromkeys(turn.text for example in examples for turn in example.context))
    replies = list(dict.fromkeys(example.response for example in examples if example.response is not None))
    pieces = dict(zip(texts, tokenizer.encode_batch(texts), strict=True))
    targets = dict(zip(replies, tokenizer.encode_batch(replies), strict=True))
    counts_words = tokenizer.kind != "hf" and tokenizer.style == "family"
    n_words = {reply: _n_words(reply, cut, max_target, counts_words) + 1 for reply, cut in targets.items()}
    out = []
    for example in examples:
        item = _encode_context(example, [pieces[turn.text] for turn in example.context], tokenizer, layout)
        item.emotion_label = (emotion_index or {}).get(example.emotion or "", IGNORED)
        note = _note_of(example, causes, cause_key)
        if note is not None:
            item.cause_labels = cause_labels(item, note, layout, level)
        if example.response is not None:
            ids = targets[example.response].ids
            item.labels = [*(ids if max_target is None else ids[:max_target]), tokenizer.eos_id]
            item.n_target_words = n_words[example.response]
        out.append(item)
    return out


def _note_of(
    example: Example, causes: Mapping[Any, CauseAnnotation] | None, key: Literal["prefix", "dialogue"]
) -> CauseAnnotation | None:
    prefix = (example.dialogue_id, len(example.context) - 1)
    return (causes or {}).get(prefix if key == "prefix" else example.dialogue_id)


def _n_words(reply: str, pieces: Pieces, max_target: int | None, counts_words: bool) -> int:
    """Family words of what is kept of a reply; per-word perplexity divides by them."""
    n_kept = len(pieces) if max_target is None else min(max_target, len(pieces))
    if counts_words:  # the pieces know their words
        return pieces.words[n_kept - 1] + 1 if n_kept else 0
    return count_words(reply[: pieces.ends[n_kept - 1]]) if n_kept else 0


def _encode_context(
    example: Example, turns: list[Pieces], tokenizer: DialogueTokenizer, layout: Layout
) -> EncodedExample:
    oldest = max(0, len(turns) - (layout.max_turns or len(turns)))
    if layout.truncate == "newest":
        return _cut_newest(_join(example, turns, tokenizer, layout, oldest, 0), layout.max_source, len(turns))
    room = layout.max_source - 1  # CLS
    first = len(turns)
    n_ends = int(bool(layout.separators))
    n_openings = int(layout.separators == "double")
    while first > oldest:
        n_added = len(turns[first - 1]) + n_ends + (n_openings if first < len(turns) else 0)
        if n_added > room:
            break
        first -= 1
        room -= n_added
    skipped = 0  # beginning of the last turn that does not fit
    if first == len(turns) and turns:
        first -= 1
        skipped = len(turns[first]) + n_ends - room
    return _join(example, turns, tokenizer, layout, first, skipped)


def _join(
    example: Example, turns: list[Pieces], tokenizer: DialogueTokenizer, layout: Layout, first: int, skipped: int
) -> EncodedExample:
    """CLS and the turns from ``first`` on, the first of them without its ``skipped`` oldest pieces."""
    item = EncodedExample(
        [tokenizer.cls_id], [-1], [0], [0], [0], [-1],
        dialogue_id=example.dialogue_id,
        turn_index=example.turn_index,
        n_dropped_turns=first,
        was_cut=skipped > 0,
    )  # fmt: skip
    n_ends = int(bool(layout.separators))
    for index in range(first, len(turns)):
        turn = turns[index]
        skipped = skipped if index == first else 0
        n_openings = int(layout.separators == "double" and index > first)
        begin = [turn.starts[0] if len(turn) else 0] * n_openings
        end = [turn.ends[-1] if len(turn) else 0] * n_ends
        item.input_ids += [*[tokenizer.sep_id] * n_openings, *turn.ids[skipped:], *[tokenizer.sep_id] * n_ends]
        item.starts += [*begin, *turn.starts[skipped:], *end]
        item.ends += [*begin, *turn.ends[skipped:], *end]
        item.word_ids += [*[-1] * n_openings, *turn.words[skipped:], *[-1] * n_ends]
        n_added = n_openings + len(turn) - skipped + n_ends
        item.turn_ids += [index] * n_added
        item.role_ids += [ROLE_IDS[example.context[index].role]] * n_added
    return item


def _cut_newest(item: EncodedExample, n_kept: int, n_turns: int) -> EncodedExample:
    if len(item.input_ids) > n_kept:
        item.was_cut = item.turn_ids[n_kept] == item.turn_ids[n_kept - 1]
        item.n_dropped_turns = n_turns - 1 - item.turn_ids[n_kept - 1]
        for pieces in (item.input_ids, item.turn_ids, item.role_ids, item.starts, item.ends, item.word_ids):
            del pieces[n_kept:]
    return item


def raw_cause_labels(item: EncodedExample, causal_turns: Sequence[int], variant: str = "paper") -> list[int]:
    """0/1 for every position, CLS included (specification of Gao et al., section 9, check 1).

    Args:
        item: The encoded context.
        causal_turns: Indices of causal turns.
        variant: ``paper``: CLS 1; ``repo`` (generator stage): CLS 0 and the last turn always 1.
    """
    causal = set(causal_turns)
    if variant == "repo":
        causal.add(max(item.turn_ids))
    return [int(turn in causal) if turn >= 0 else int(variant == "paper") for turn in item.turn_ids]


def cause_labels(
    item: EncodedExample, note: CauseAnnotation, layout: Layout, level: Literal["turn", "span"] = "turn"
) -> list[int]:
    """Supervision of each position: 1, 0 or -100 (see :func:`encode_examples` for ``level``)."""
    if level == "turn":
        labels = raw_cause_labels(item, note.turns, layout.variant)
    else:
        spans: dict[int, list[Span]] = {}
        for span in note.spans:
            spans.setdefault(span.turn, []).append(span)
        labels = []
        for turn, start, end, word in zip(item.turn_ids, item.starts, item.ends, item.word_ids, strict=True):
            if word < 0:
                labels.append(IGNORED)  # CLS and SEP hold no word
            elif turn in spans:
                labels.append(int(any(s.start < end and start < s.end for s in spans[turn])))
            else:
                labels.append(IGNORED if turn in note.turns else 0)
    if not layout.supervise_cls:
        labels[0] = IGNORED
    return labels


class SideFeatures(Protocol):
    """What builds features beyond those of this file (:class:`empatheia_research.side_inputs.SideInput`)."""

    features: ClassVar[tuple[str, ...]]

    def collate(self, items: Sequence[EncodedExample], pad_id: int, width: int) -> dict[str, Tensor]:
        """Its features of a batch."""
        ...


class Collator:
    """Pads encoded examples into exactly the declared features (shapes on the design page 0001).

    Args:
        features: Names out of ``FEATURES``, or of a side input.
        pad_id: Padding piece.
        side_inputs: Builders of the other features.

    Raises:
        ConfigError: A feature nobody builds; names the nearest.
    """

    def __init__(self, features: Sequence[str], pad_id: int, side_inputs: Sequence[SideFeatures] = ()) -> None:
        others = {name: side for side in side_inputs for name in side.features}
        known = [*FEATURES, *others]
        for name in features:
            if name not in known and name not in NOT_TENSORS:
                raise ConfigError(f"no feature {name!r}.{nearest(name, known)} Accepted: {', '.join(known)}.")
        self.features = tuple(features)
        self.pad_id = pad_id
        self.side_inputs = [side for side in side_inputs if set(side.features) & set(features)]

    def __call__(self, items: Sequence[EncodedExample]) -> dict[str, Tensor]:
        """A batch, padded on the right.

        Args:
            items: At least one.

        Returns:
            The declared features. Shape: source features ``(batch, source)``, ``labels`` ``(batch, target)``,
            ``emotion_labels`` ``(batch,)``, ``mechanism_labels`` ``(batch, 3)``; int64, but ``attention_mask`` bool
            (True = keep). Those of side inputs: as they say.
        """
        width = max(len(item.input_ids) for item in items)
        batch = {name: _PADDED[name](items, width, self.pad_id) for name in self.features if name in _PADDED}
        for side in self.side_inputs:
            built = side.collate(items, self.pad_id, width)
            batch |= {name: tensor for name, tensor in built.items() if name in self.features}
        return batch


def _mask(items: Sequence[EncodedExample], width: int) -> Tensor:
    lengths = torch.tensor([len(item.input_ids) for item in items])
    return torch.arange(width) < lengths[:, None]


def _mechanisms(items: Sequence[EncodedExample]) -> Tensor:
    unknown = (IGNORED,) * len(MECHANISMS)
    return torch.tensor([item.extra.get("mechanism_labels", unknown) for item in items])


_PADDED: Mapping[str, Callable[[Sequence[EncodedExample], int, int], Tensor]] = {
    "input_ids": lambda items, width, pad_id: pad_rows([item.input_ids for item in items], pad_id, width),
    "attention_mask": lambda items, width, _: _mask(items, width),
    "role_ids": lambda items, width, _: pad_rows([item.role_ids for item in items], 0, width),
    "turn_ids": lambda items, width, _: pad_rows([item.turn_ids for item in items], -1, width),
    "emotion_labels": lambda items, _, __: torch.tensor([item.emotion_label for item in items]),
    "cause_labels": lambda items, width, _: pad_rows([item.cause_labels or [] for item in items], IGNORED, width),
    "mechanism_labels": lambda items, _, __: _mechanisms(items),
    "labels": lambda items, _, __: pad_rows([item.labels or [] for item in items], IGNORED),
}
"""Feature to what makes it of items, the width of the sources and the padding piece."""


def pad_rows(rows: Sequence[Sequence[int]], value: int, width: int | None = None) -> Tensor:
    """Lists of numbers padded on the right.

    Args:
        rows: One list an example.
        value: Padding.
        width: Padded length; None = the longest, at least 1.

    Returns:
        Tensor of shape ``(batch, width)``, int64.
    """
    width = max([1, *map(len, rows)]) if width is None else width
    return torch.tensor([[*row, *([value] * (width - len(row)))] for row in rows], dtype=torch.long)


def word_scores(item: EncodedExample, piece_scores: Sequence[float]) -> list[Span]:
    """Words as spans; a word scores as its best piece.

    Args:
        item: The encoded context.
        piece_scores: One number a source piece, e.g. cause probabilities.

    Returns:
        Spans in reading order; pieces of one word, or of several words over the same characters, become one.
    """
    spans: list[Span] = []
    last_word = -1
    for turn, word, start, end, score in zip(
        item.turn_ids, item.word_ids, item.starts, item.ends, piece_scores, strict=False
    ):
        if word < 0 or start >= end:
            continue
        last = spans[-1] if spans else None
        is_same = last is not None and last.turn == turn and (word == last_word or start < last.end)
        last_word = word
        if last is not None and is_same:
            best = max(last.score or 0.0, float(score))
            spans[-1] = Span(turn, min(last.start, start), max(last.end, end), best)
        else:
            spans.append(Span(turn, start, end, float(score)))
    return spans


def merge_spans(words: Sequence[Span], threshold: float, gap: int = 1) -> list[Span]:
    """Highlights: runs of words at or above the threshold, best first.

    Args:
        words: From :func:`word_scores`.
        threshold: In [0, 1].
        gap: So many words below the threshold inside a run do not break it.

    Returns:
        Spans scored by the mean of their words, highest first; ties in reading order.
    """
    runs: list[list[Span]] = []
    since = 0
    for i, word in enumerate(words):
        if (word.score or 0.0) < threshold:
            since += 1
            continue
        if runs and runs[-1][-1].turn == word.turn and since <= gap:
            runs[-1] += words[i - since : i + 1]
        else:
            runs.append([word])
        since = 0
    merged = [
        Span(run[0].turn, run[0].start, run[-1].end, sum(word.score or 0.0 for word in run) / len(run)) for run in runs
    ]
    return sorted(merged, key=lambda span: (-(span.score or 0.0), span.turn, span.start))
