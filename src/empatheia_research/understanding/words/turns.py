"""Explain: which words carry the emotion? One scorer for a whole conversation, chosen by name.

The generative emotion estimator (Kim, Kim and Kim 2021) and its baselines, none of which has seen a word label, under
one protocol (:mod:`empatheia.analysis.questions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from empatheia.analysis.component import Component
from empatheia.analysis.questions import WordAnswer, WordQuestion, WordScorer, record, spread_to_words
from empatheia.errors import CheckpointError, ConfigError
from empatheia.reading import read_record
from empatheia.records.analysis import TurnLabels, WordScores
from empatheia.records.dialogue import Dialogue, Role
from empatheia.registry import nearest
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS, RECCON_EMOTIONS
from empatheia_research.understanding.labels.classifier import groups_of_turns, label_names
from empatheia_research.understanding.words.baselines import (
    AttentionWords,
    GradientWords,
    LexiconWords,
    RakeWords,
    RandomWords,
)
from empatheia_research.understanding.words.estimator import EmotionEstimator, Likelihoods, explain, likelihoods
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader
from empatheia_research.understanding.words.evidence import PAPER, REPO, RUNNING, Evidence

WINDOW_TURNS = 2048
EVIDENCES: Mapping[str, Evidence] = {"repo": REPO, "paper": PAPER, "running": RUNNING}
"""Names of the forms: as released, as the equations have it, and with what was read before as prior (ours)."""


class EstimatorWords:
    """The generative emotion estimator: P(word | emotion); a word has the score of its best piece.

    Args:
        model: Trained.
        reader: Its own.
        evidence: ``REPO``, ``PAPER`` or another; None = the model's own.
        memory: Likelihoods by text, filled as texts come: scorers that share a model may share it. None = none kept.
        name: For tables and records.
    """

    def __init__(
        self,
        model: EmotionEstimator,
        reader: EstimatorReader,
        evidence: Evidence | None = None,
        memory: dict[str, Likelihoods] | None = None,
        name: str = "estimator",
    ) -> None:
        self.model = model
        self.reader = reader
        self.evidence = evidence or model.config.settings()
        self.evidence.check(len(label_names(model.config)))
        self.memory = memory
        self.name = name

    def score(self, questions: Sequence[WordQuestion], *, batch_size: int = 32) -> list[WordAnswer]:
        """See :class:`WordScorer`; without an emotion the most likely one of each text is explained."""
        found = self.likelihoods_of([q.text for q in questions], batch_size=batch_size)
        emotions = [q.emotion for q in questions]
        estimates = explain(self.model, self.reader, found, emotions, self.evidence, batch_size=batch_size)
        labels = label_names(self.model.config)
        answers = []
        for question, own in zip(questions, estimates, strict=True):
            scores = [0.0 if score is None else score for score in spread_to_words(question, own.pieces)]
            answers.append(WordAnswer(labels[own.explained[0]], tuple(scores)))
        return answers

    def likelihoods_of(self, texts: Sequence[str], *, batch_size: int = 32) -> list[Likelihoods]:
        """Texts under every label; those in ``memory`` are not read again."""
        known: dict[str, Likelihoods] = {} if self.memory is None else self.memory
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, likelihoods(self.model, self.reader, new, batch_size=batch_size), strict=True))
        return [known[text] for text in texts]


SCORERS: Mapping[str, str] = {
    "random": "any order",
    "rake": "keywords of the text",
    "lexicon": "affect of each word",
    "attention": "of a classifier",
    "gradient": "gradient times input on a classifier",
    "estimator": "generative emotion estimator",
}
"""What ``WordsOfTurns.load`` accepts as ``method``."""


class WordsOfTurns:
    """The words that carry the emotion of each speaker turn.

    Args:
        scorer: Any method of this module.
        emotion: What each turn expresses: None (the scorer's own view), one of the 32 emotions or of RECCON's six for
            all turns, ``conversation`` (the conversation's own label, gold in a corpus), or a component of part
            ``emotion``, whose most probable emotion is explained (intents and ``neutral`` are passed over).
        targets: Roles whose turns are explained.
        name: For records; None = the scorer's.

    Raises:
        ConfigError: An emotion that is no label.
    """

    part = "words"

    def __init__(
        self,
        scorer: WordScorer,
        *,
        emotion: str | Component[TurnLabels] | None = None,
        targets: Sequence[Role] = ("speaker",),
        name: str | None = None,
    ) -> None:
        known = (*EMOTIONS, *RECCON_EMOTIONS, "conversation")
        if isinstance(emotion, str) and emotion not in known:
            raise ConfigError(
                f"words: unknown emotion {emotion!r}.{nearest(emotion, list(known))} Known: {', '.join(known)}."
            )
        if emotion is not None and not isinstance(emotion, str) and getattr(emotion, "part", None) != "emotion":
            raise ConfigError(
                f"words: emotion is {emotion!r}; accepted: an emotion, `conversation`, a component of part 'emotion',"
                " or None."
            )
        self.scorer = scorer
        self.emotion = emotion
        self.targets = tuple(targets)
        self.name = name or scorer.name

    @classmethod
    def load(
        cls,
        folder: str | Path | None = None,
        *,
        method: str | None = None,
        emotion: str | Component[TurnLabels] | None = None,
        evidence: str | None = None,
        targets: Sequence[Role] = ("speaker",),
        device: str | torch.device | None = None,
    ) -> WordsOfTurns:
        """From a trained model, a lexicon, or nothing.

        Args:
            folder: An estimator or (``attention``, ``gradient``) a classifier; the file of a lexicon, or ``warriner`` /
                ``vader``; None for ``random`` and ``rake``.
            method: One of :data:`SCORERS`; None = ``estimator``.
            emotion: See the class.
            evidence: Estimator only: ``repo``, ``paper`` or ``running`` (:data:`EVIDENCES`); None = the model's own.
            targets: See the class.
            device: Where a model runs; None = the processor.

        Raises:
            MissingResourceError: There is no such folder or file.
            CheckpointError: It holds another kind of model, or lacks weights.
            ConfigError: An unknown method or evidence, or a method without what it needs.
        """
        method = method or "estimator"
        if method not in SCORERS:
            raise ConfigError(
                f"words: no method {method!r}.{nearest(method, list(SCORERS))} There are: {', '.join(SCORERS)}."
            )
        if folder is None and method not in ("random", "rake"):
            raise ConfigError(f"words: method {method!r} needs a model folder or a lexicon; random and rake do not.")
        if evidence is not None and method != "estimator":
            raise ConfigError(f"words: evidence={evidence!r} goes with method estimator, found {method!r}.")
        if evidence is not None and evidence not in EVIDENCES:
            raise ConfigError(f"words: evidence is {evidence!r}; accepted: {', '.join(EVIDENCES)}.")
        scorer, name = _load_scorer(method, folder, evidence)
        model = getattr(scorer, "model", None)
        if device is not None and model is not None:
            model.to(device)
        return cls(scorer, emotion=emotion, targets=targets, name=name)

    def annotate(
        self,
        dialogues: Sequence[Dialogue],
        *,
        batch_size: int = 32,
        progress: Callable[[int], None] | None = None,
        emotion: Component[TurnLabels] | None = None,
    ) -> list[tuple[WordScores, ...]]:
        """One record for each turn that is explained, in the order of the turns.

        A turn is read alone. Scores of the words that may be named share a total of 1, other words have 0. ``emotion``
        of a record is the label explained, "" where the method knows none.

        Args:
            dialogues: Conversations; roles matter.
            batch_size: Most turns in one forward pass.
            progress: Called with the number of conversations just finished.
            emotion: Says what the turns express in place of the component's own, for this call; None = its own.

        Raises:
            DataError: ``emotion`` is ``conversation`` and a label is none of the 32 or RECCON's.
        """
        out: list[tuple[WordScores, ...]] = []
        for group in groups_of_turns(dialogues, WINDOW_TURNS):
            out += self._annotated(group, batch_size, emotion)
            if progress is not None:
                progress(len(group))
        return out

    def _annotated(
        self, dialogues: Sequence[Dialogue], batch_size: int, emotion: Component[TurnLabels] | None
    ) -> list[tuple[WordScores, ...]]:
        places = [[i for i, turn in enumerate(d.turns) if turn.role in self.targets] for d in dialogues]
        emotions = self._emotions(dialogues, batch_size, emotion)
        questions = [
            WordQuestion.of(dialogue.turns[i].text, own.get(i))
            for dialogue, indices, own in zip(dialogues, places, emotions, strict=True)
            for i in indices
        ]
        answers = iter(zip(questions, self.scorer.score(questions, batch_size=batch_size), strict=True))
        return [tuple(record(i, *next(answers)) for i in indices) for indices in places]

    def _emotions(
        self, dialogues: Sequence[Dialogue], batch_size: int, emotion: Component[TurnLabels] | None
    ) -> list[dict[int, str | None]]:
        source = emotion or self.emotion
        if source is None:
            return [{} for _ in dialogues]
        if isinstance(source, str):
            labels = [d.emotion if source == "conversation" else source for d in dialogues]
            return [dict.fromkeys(range(len(d.turns)), label) for label, d in zip(labels, dialogues, strict=True)]
        found = source.annotate(dialogues, batch_size=batch_size)
        return [{labels.turn: _most_probable_emotion(labels) for labels in row} for row in found]


def _most_probable_emotion(labels: TurnLabels) -> str | None:
    """Of the labels that are emotions to a scorer; None where the component knows only others, e.g. intents."""
    known = {name: p for name, p in labels.probabilities.items() if name in EMOTIONS or name in RECCON_EMOTIONS}
    return max(known, key=lambda name: known[name]) if known else None


def _load_scorer(method: str, folder: str | Path | None, evidence: str | None) -> tuple[WordScorer, str]:
    if method == "random":
        return RandomWords(), "random"
    if method == "rake" or folder is None:
        return RakeWords(), "rake"
    if method == "lexicon":
        own = LexiconWords.load(folder)
        return own, own.name
    path = resolve_model(folder)
    meta = path / "empatheia.json"
    name = read_record(meta).get("name") if meta.is_file() else None
    if method != "estimator":
        words = (AttentionWords if method == "attention" else GradientWords).load(path)
        return words, f"{method} of {name or path.name}"
    kind = _model_type(path)
    if kind != "emotion_estimator":
        raise CheckpointError(
            f"{path}: model_type is {kind!r}; accepted: emotion_estimator, or give method=attention or method=gradient"
            " for a classifier."
        )
    model, reader = EmotionEstimator.open(path)
    chosen = None if evidence is None else EVIDENCES[evidence]
    return EstimatorWords(model, reader, chosen), str(name or path.name)


def _model_type(folder: Path) -> Any:
    try:
        return read_record(folder / "config.json").get("model_type")
    except (OSError, ValueError, AttributeError) as problem:
        raise CheckpointError(
            f"{folder}: no readable config.json ({problem}); give a trained model's folder."
        ) from None
