"""Explain: why does the speaker feel so? Causal turns and the words in them, for every speaker turn of a conversation.

Puts the two RECCON models (Poria et al. 2021) to conversations without labels: entailment says which turns, extraction
says which words. RECCON's models read an emotion word; it comes from a component of part ``emotion``, from the caller,
or is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from empatheia.analysis.component import Component
from empatheia.errors import CheckpointError, ConfigError, DataError
from empatheia.reading import read_record
from empatheia.records.analysis import TurnLabels
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Role
from empatheia.registry import nearest
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTION_TO_RECCON, EMOTIONS, RECCON_EMOTIONS
from empatheia_research.understanding.causes.entailment import CauseEntailment, annotate
from empatheia_research.understanding.causes.entailment_items import EntailmentItem
from empatheia_research.understanding.causes.spans import CauseSpans, SpanAnswer, extract
from empatheia_research.understanding.labels.classifier import groups_of_turns, read_model, read_tokenizer

MODELS = {"cause_entailment": CauseEntailment, "cause_spans": CauseSpans}
UNKNOWN = "neutral"
"""What the models read when nobody says what the target turn expresses."""
WINDOW_TURNS = 2048

Loaded = tuple[Any, PreTrainedTokenizerBase]
Emotion = str | Component[TurnLabels] | None


class CausesOfTurns:
    """Causal turns and spans of each speaker turn.

    With an entailment model its probabilities choose the causal turns; a joint span model alone chooses them by its
    own. Spans come from the span model if there is one, else from the entailment model's piece head, if it has one.

    Args:
        entailment: Model and tokenizer, or None.
        spans: Model and tokenizer, or None; at least one of the two.
        emotion: What each target turn expresses: None (unknown; the models read ``neutral``), one of the 32 emotions
            or RECCON's six for all turns, ``conversation`` (the conversation's own label, gold in a corpus), or a
            component of part ``emotion``, whose distribution is summed to RECCON's six. Every record says the word
            that was read (``emotion``) and where it came from (end of ``annotator``).
        threshold: Probability from which a turn is causal; None = the models' own.
        targets: Roles whose turns are explained.
        name: For records.

    Raises:
        ConfigError: No model, or an emotion that is no label.
    """

    part = "causes"

    def __init__(
        self,
        entailment: Loaded | None = None,
        spans: Loaded | None = None,
        *,
        emotion: Emotion = None,
        threshold: float | None = None,
        targets: Sequence[Role] = ("speaker",),
        name: str = "causes",
    ) -> None:
        if entailment is None and spans is None:
            raise ConfigError("causes: give an entailment model, a span model, or both.")
        if isinstance(emotion, str) and emotion != "conversation":
            reccon_word(emotion)
        elif emotion is not None and not isinstance(emotion, str) and getattr(emotion, "part", None) != "emotion":
            raise ConfigError(
                f"causes: emotion is {emotion!r}; accepted: an emotion, `conversation`, a component of part 'emotion',"
                " or None."
            )
        self.entailment = entailment
        self.spans = spans
        self.emotion = emotion
        self.threshold = threshold
        self.targets = tuple(targets)
        self.name = name

    @classmethod
    def load(
        cls,
        folder: str | Path,
        spans: str | Path | None = None,
        *,
        emotion: Emotion = None,
        threshold: float | None = None,
        targets: Sequence[Role] = ("speaker",),
        device: str | torch.device | None = None,
    ) -> CausesOfTurns:
        """From trained model folders or names.

        Args:
            folder: A ``cause_entailment`` or a ``cause_spans`` model.
            spans: A ``cause_spans`` model beside an entailment model in ``folder``.
            emotion: See the class.
            threshold: See the class.
            targets: See the class.
            device: Where the models run; None = the processor.

        Raises:
            MissingResourceError: There is no such folder.
            CheckpointError: A folder holds another kind of model, or lacks weights.
        """
        found: dict[str, Loaded] = {}
        names = []
        for place in (folder, spans):
            if place is None:
                continue
            kind, loaded, name = _load(place, device)
            if kind in found:
                raise CheckpointError(f"{folder} and {spans} are both {kind} models; give one of each kind.")
            found[kind] = loaded
            names.append(name)
        return cls(
            found.get("cause_entailment"),
            found.get("cause_spans"),
            emotion=emotion,
            threshold=threshold,
            targets=targets,
            name="+".join(names),
        )

    def annotate(
        self,
        dialogues: Sequence[Dialogue],
        *,
        batch_size: int = 32,
        progress: Callable[[int], None] | None = None,
        emotion: Component[TurnLabels] | None = None,
    ) -> list[tuple[CauseAnnotation, ...]]:
        """One annotation for each turn that is explained, in the order of the turns.

        A target reads the turns up to itself, never later ones. In a long conversation the oldest turns that do not
        fit into a joint model's length get probability 0; ``first_read`` of the record is the first that did.
        ``emotion`` of a record is the word the models read, ``annotator`` ends with where it came from:
        ``emotion:unknown``, ``emotion:given``, ``emotion:conversation`` or ``emotion:`` and the component's name.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most rows in one forward pass.
            progress: Called with the number of conversations just finished.
            emotion: Says what the turns express in place of the component's own, for this call; None = its own.

        Raises:
            DataError: ``emotion`` is ``conversation`` and a label is none of the 32 or RECCON's.
        """
        out: list[tuple[CauseAnnotation, ...]] = []
        for group in groups_of_turns(dialogues, WINDOW_TURNS):
            words = self._emotions(group, batch_size, emotion)
            items, owners = [], []
            for number, (dialogue, by_turn) in enumerate(zip(group, words, strict=True)):
                texts = tuple(turn.text for turn in dialogue.turns)
                roles = tuple(turn.role for turn in dialogue.turns)
                for target, role in enumerate(roles):
                    if role in self.targets:
                        word = by_turn.get(target, UNKNOWN)
                        item = EntailmentItem(dialogue.id, target, texts[: target + 1], roles[: target + 1], word)
                        items.append(item)
                        owners.append(number)
            rows: list[list[CauseAnnotation]] = [[] for _ in group]
            for number, note in zip(owners, self._explain(items, batch_size), strict=True):
                rows[number].append(replace(note, annotator=note.annotator + self._source))
            out += [tuple(row) for row in rows]
            if progress is not None:
                progress(len(group))
        return out

    @property
    def _source(self) -> str:
        if self.emotion is None:
            return "+emotion:unknown"
        if isinstance(self.emotion, str):
            return "+emotion:conversation" if self.emotion == "conversation" else "+emotion:given"
        return f"+emotion:{getattr(self.emotion, 'name', '') or 'component'}"

    def _explain(self, items: list[EntailmentItem], batch_size: int) -> list[CauseAnnotation]:
        notes: list[CauseAnnotation | None] = [None] * len(items)
        if self.entailment is not None:
            model, tokenizer = self.entailment
            notes = list(annotate(model, tokenizer, items, threshold=self.threshold, batch_size=batch_size))
        if self.spans is None:
            return [note for note in notes if note is not None]
        model, tokenizer = self.spans
        asked = [_about_causes(item, note) for item, note in zip(items, notes, strict=True)]
        answers = extract(model, tokenizer, asked, batch_size=batch_size)
        name = f"cause_spans/{model.config.form}-{model.fingerprint()}"
        return [
            self._combined(item, note, found, name) for item, note, found in zip(items, notes, answers, strict=True)
        ]

    def _combined(
        self, item: EntailmentItem, note: CauseAnnotation | None, found: Mapping[int, SpanAnswer], name: str
    ) -> CauseAnnotation:
        """Spans laid on the causal turns of ``note``; without one the span model chooses the turns too."""
        given = {turn: answer for turn, answer in found.items() if answer.span.start < answer.span.end}
        if note is not None:
            spans = tuple(given[turn].span for turn in note.turns if turn in given)
            return replace(note, spans=spans, annotator=f"{note.annotator}+{name}")
        probabilities, turns = self._chosen(item, found)
        spans = tuple(given[turn].span for turn in turns if turn in given)
        first = min(found, default=0)
        if not any(text.strip() for text in item.texts[:first]):
            first = 0  # turns without text have no answer, read or not
        return CauseAnnotation(item.dialogue_id, item.target, turns, spans, name, probabilities, item.emotion, first)

    def _chosen(
        self, item: EntailmentItem, found: Mapping[int, SpanAnswer]
    ) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Of every turn the probability that it holds an answer, and the turns where that reaches the limit."""
        assert self.spans is not None
        limit = _probability(self.spans[0].config.null_threshold) if self.threshold is None else self.threshold
        chances = [_probability(found[i].log_odds) if i in found else 0.0 for i in range(len(item.texts))]
        probabilities = tuple(round(p, 4) for p in chances)
        return probabilities, tuple(i for i, p in enumerate(probabilities) if p >= round(limit, 4) and i in found)

    def _emotions(
        self, dialogues: Sequence[Dialogue], batch_size: int, emotion: Component[TurnLabels] | None
    ) -> list[dict[int, str]]:
        """The word the models read for each turn whose emotion is known."""
        source = emotion or self.emotion
        if source is None:
            return [{} for _ in dialogues]
        if isinstance(source, str):
            labels = [d.emotion if source == "conversation" else source for d in dialogues]
            return [
                {} if label is None else dict.fromkeys(range(len(d.turns)), reccon_word(label))
                for label, d in zip(labels, dialogues, strict=True)
            ]
        found = source.annotate(dialogues, batch_size=batch_size)
        return [{labels.turn: reccon_word_of(labels.probabilities) for labels in row} for row in found]


def reccon_word(label: str) -> str:
    """RECCON's word for one of the 32 emotions, or a word of RECCON itself.

    Raises:
        DataError: Neither.

    >>> reccon_word("furious")
    'anger'
    """
    if label in (*RECCON_EMOTIONS, UNKNOWN):
        return label
    if label not in EMOTION_TO_RECCON:
        known = [*EMOTIONS, *RECCON_EMOTIONS]
        raise DataError(f"unknown emotion {label!r}.{nearest(label, known)} Known: {', '.join(known)}.")
    return EMOTION_TO_RECCON[label]


def reccon_word_of(probabilities: Mapping[str, float]) -> str:
    """The RECCON emotion with the largest sum; labels that are no emotion do not count.

    >>> reccon_word_of({"sad": 0.3, "lonely": 0.3, "joyful": 0.4})
    'sadness'
    """
    sums = dict.fromkeys(RECCON_EMOTIONS, 0.0)
    for label, value in probabilities.items():
        word = label if label in sums else EMOTION_TO_RECCON.get(label)
        if word is not None:
            sums[word] += value
    best = max(sums, key=lambda word: sums[word])
    return best if sums[best] > 0 else UNKNOWN


def _about_causes(item: EntailmentItem, note: CauseAnnotation | None) -> EntailmentItem:
    """The item asking only about the turns that were found causal."""
    if note is None:
        return item
    return replace(item, labels=tuple(0 if i in note.turns else -100 for i in range(len(item.texts))))


def _probability(log_odds: float) -> float:
    return float(torch.tensor(log_odds, dtype=torch.float64).sigmoid())


def _load(place: str | Path, device: str | torch.device | None) -> tuple[str, Loaded, str]:
    folder = resolve_model(place)
    try:
        kind = read_record(folder / "config.json").get("model_type")
    except (OSError, ValueError, AttributeError) as problem:
        raise CheckpointError(
            f"{folder}: no readable config.json ({problem}); give a trained model's folder."
        ) from None
    if kind not in MODELS:
        raise CheckpointError(f"{folder}: model_type is {kind!r}; accepted: {', '.join(MODELS)}.")
    model = read_model(MODELS[kind], folder)
    tokenizer = read_tokenizer(folder, model)
    if kind == "cause_spans" and model.config.form == "paper":
        model.config.answers = "evidence"  # a span of a turn must lie in that turn
    try:
        name = read_record(folder / "empatheia.json").get("name")
    except (OSError, ValueError, AttributeError):
        name = None  # the record is a nicety: any folder that holds a model will do
    return kind, (model if device is None else model.to(device), tokenizer), str(name or folder.name)
