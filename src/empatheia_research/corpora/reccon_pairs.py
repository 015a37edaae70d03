"""RECCON's two tasks as items: (target, candidate) pairs and span questions, in the three published folds.

Poria et al. (2021), sections 4 and 5. Fold 1 takes negatives from the target's own history and is the only
fold that trains a usable annotator; folds 2 and 3 take them from other dialogues and are here for comparison.
Rules that the paper leaves open were settled by the released counts:

- every numbered span entry is a positive item, so a turn with two spans counts twice;
- a target whose cause is only latent keeps its whole history as negatives in fold 1: the paper says it was
  dropped, but 838 negatives in valid and 5,330 in test are only reached with it;
- evidence after the target (two entries in train) gives no positive: 7,269 and 20,646 items remain there;
- folds 2 and 3 have four negatives for each annotated target: 800 in valid, 4,396 in test, 18,248 in train.
  The printed 18,428 seems to swap two digits: the released file is said to have 25,517 = 7,269 + 18,248 rows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from empatheia.errors import ConfigError
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span
from empatheia_research.corpora.loading import LoadedCorpus

SEPARATOR = " <SEP> "
FOLDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Pair:
    """Does the candidate hold a cause of the target's emotion?

    Attributes:
        id: ``<corpus>_<dialogue>_utt_<t>_<true|impossible>_cause_utt_<i>[_span_<k>]``, turns counted from 1,
            k from 0 in the target's own list of spans. A candidate of another dialogue is
            ``..._cause_<dialogue>_utt_<i>``.
        dialogue_id: Dialogue of the target.
        target: 0-based index of the target turn.
        candidate: 0-based index of the candidate turn, in ``candidate_dialogue_id``.
        label: 1 cause, 0 not.
        emotion: Of the target, normalised.
        target_text: Text of the target.
        candidate_text: Text of the candidate.
        context: Texts of the history that goes with the pair, oldest first.
        spans: The causal span of a positive, as offsets into the candidate; empty for a negative.
        candidate_dialogue_id: Dialogue of the candidate; another one for negatives of folds 2 and 3.
    """

    id: str
    dialogue_id: str
    target: int
    candidate: int
    label: int
    emotion: str
    target_text: str
    candidate_text: str
    context: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    candidate_dialogue_id: str = ""

    def text(self, with_context: bool = True) -> str:
        """The classifier's input as released: ``emotion <SEP> U_t <SEP> U_i [<SEP> history]``."""
        parts = [self.emotion, self.target_text, self.candidate_text]
        return SEPARATOR.join([*parts, " ".join(self.context)] if with_context else parts)


def pairs(
    corpus: LoadedCorpus, fold: int = 1, seed: int = 0, per_target: int = 4, prefix: str = "dailydialog"
) -> list[Pair]:
    """The items of a fold: positives and negatives, target by target.

    Folds 2 and 3 were drawn at random by their authors without a published seed: here they follow ``seed``
    and are the same on every machine, but not the released draw.

    Args:
        corpus: One split, from :func:`empatheia_research.corpora.reccon.load`.
        fold: 1 (negatives from the history), 2 (from other dialogues), 3 (as 2, with the target's emotion).
        seed: Of the draw in folds 2 and 3.
        per_target: Negatives for each annotated target in folds 2 and 3 (IEMOCAP: 15).
        prefix: Corpus name in the ids.

    Raises:
        ConfigError: Another fold.
    """
    if fold not in FOLDS:
        raise ConfigError(f"RECCON fold is {fold!r}; accepted: 1, 2, 3.")
    by_id = corpus.by_id()
    out: list[Pair] = []
    draw = None if fold == 1 else _Draw(corpus, seed, matched=fold == 3)
    for note in corpus.annotations:
        dialogue = by_id[note.dialogue_id]
        out += _positives(dialogue, note, prefix, without_target=fold != 1)
        if draw is None:
            out += _own_negatives(dialogue, note, prefix)
        else:
            out += draw.negatives(dialogue, note, prefix, per_target)
    return out


def span_question(emotion: str, target: str, candidate: str | None = None) -> str:
    """The question of subtask 1 in the wording of the released files; ``candidate`` is named with context only."""
    evidence = "" if candidate is None else f" The evidence utterance is {candidate}"
    return (
        f"The target utterance is {target}{evidence}"
        f" What is the causal span from context that is relevant to the target utterance's emotion {emotion} ?"
    )


def _base_id(prefix: str, dialogue_id: str, target: int, label: int) -> str:
    return f"{prefix}_{dialogue_id}_utt_{target + 1}_{'true' if label else 'impossible'}_cause_"


def _texts(dialogue: Dialogue, end: int) -> tuple[str, ...]:
    return tuple(turn.text for turn in dialogue.turns[: end + 1])


def _positives(dialogue: Dialogue, note: CauseAnnotation, prefix: str, without_target: bool) -> Iterator[Pair]:
    """One item for each span in the history; ``without_target`` drops a target that is not the cause."""
    history = _texts(dialogue, note.target)
    for k, span in enumerate(note.spans):
        if span.turn > note.target:
            continue
        drop = without_target and span.turn != note.target
        yield Pair(
            f"{_base_id(prefix, dialogue.id, note.target, 1)}utt_{span.turn + 1}_span_{k}",
            dialogue.id,
            note.target,
            span.turn,
            1,
            note.emotion or "neutral",
            history[-1],
            history[span.turn],
            history[:-1] if drop else history,
            (span,),
            dialogue.id,
        )


def _own_negatives(dialogue: Dialogue, note: CauseAnnotation, prefix: str) -> Iterator[Pair]:
    causes = set(note.turns)
    history = _texts(dialogue, note.target)
    for turn in range(note.target + 1):
        if turn not in causes:
            yield Pair(
                f"{_base_id(prefix, dialogue.id, note.target, 0)}utt_{turn + 1}",
                dialogue.id,
                note.target,
                turn,
                0,
                note.emotion or "neutral",
                history[-1],
                history[turn],
                history,
                candidate_dialogue_id=dialogue.id,
            )


class _Draw:
    """Seeded draws of utterances from other dialogues; fold 3 prefers those with the target's emotion.

    Where a rare emotion has too few utterances elsewhere (10 of 800 draws in valid), fold 3 fills up with
    any.
    """

    def __init__(self, corpus: LoadedCorpus, seed: int, matched: bool) -> None:
        self.by_id = corpus.by_id()
        self.random = random.Random(seed)
        self.matched = matched
        self.everything: list[tuple[str, int]] = []
        self.by_emotion: dict[str, list[tuple[str, int]]] = {}
        for dialogue in corpus.dialogues:
            labels = corpus.turn_labels.get(dialogue.id, ("",) * len(dialogue.turns))
            for turn, label in enumerate(labels):
                self.everything.append((dialogue.id, turn))
                self.by_emotion.setdefault(label, []).append((dialogue.id, turn))

    def negatives(self, dialogue: Dialogue, note: CauseAnnotation, prefix: str, n: int) -> Iterator[Pair]:
        pools = [self.by_emotion.get(note.emotion or "", [])] if self.matched else []
        chosen: list[tuple[str, int]] = []
        for pool in (*pools, self.everything):
            self._draw(pool, dialogue.id, n, chosen)
        target_text = dialogue.turns[note.target].text
        for id, turn in chosen:
            context = _texts(self.by_id[id], turn)
            yield Pair(
                f"{_base_id(prefix, dialogue.id, note.target, 0)}{id}_utt_{turn + 1}",
                dialogue.id,
                note.target,
                turn,
                0,
                note.emotion or "neutral",
                target_text,
                context[-1],
                context,
                candidate_dialogue_id=id,
            )

    def _draw(self, pool: list[tuple[str, int]], own: str, n: int, chosen: list[tuple[str, int]]) -> None:
        """Adds places of ``pool`` outside dialogue ``own`` until ``chosen`` has ``n`` or none is left."""
        for _ in range(20 * n):
            if len(chosen) >= n or not pool:
                return
            place = pool[self.random.randrange(len(pool))]
            if place[0] != own and place not in chosen:
                chosen.append(place)
        rest = [place for place in pool if place[0] != own and place not in chosen]
        chosen += self.random.sample(rest, min(n - len(chosen), len(rest)))
