"""What the newest speaker turn is to be told from, and what responders read of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from empatheia.decoding.distractors import Contrast, Distractors, GivenDistractors, RandomDistractors
from empatheia.decoding.targets import Targets
from empatheia.decoding.turn_pool import turn_pool
from empatheia.dialogue import Dialogue, Span
from empatheia.errors import DecodingError, MissingResourceError
from empatheia.listener.steps.settings import FocusSettings, MemorySettings
from empatheia.listener.steps.understand import Steps
from empatheia.listener.steps.understood import Understood


class Contrasts:
    """Makes distractors; models are loaded when first needed.

    Args:
        steps: Whose estimator serves for distractors too.
        kinds: Name of a kind to distractors the caller hands in.
    """

    def __init__(self, steps: Steps, kinds: dict[str, Distractors] | None = None) -> None:
        self.steps = steps
        self._given = dict(kinds or {})
        self._made: dict[Any, Distractors] = {}

    def make(
        self, understood: Sequence[Understood], focus: FocusSettings, batch_size: int = 32
    ) -> tuple[list[Contrast | None], list[str]]:
        """The contrast of each conversation, or None and the reason why there is none.

        Args:
            understood: With their targets.
            focus: Kind and number.
            batch_size: Most texts in one pass of a model.

        Raises:
            DecodingError: ``focus.strict`` and a text has too few distractors, or the kind lacks its setting.
            MissingResourceError: The kind needs a model that is not here.
            ConfigError: The model that is here is of another kind.
        """
        if not understood:
            return [], []
        kind = self._kind(focus)
        targets = [_targets(one) for one in understood]
        found = kind.make(targets, focus.worlds, strict=focus.strict, batch_size=batch_size)
        reasons = []
        for own, contrast in zip(targets, found, strict=True):
            why = "" if contrast is not None else kind.others([own], focus.worlds - 1, batch_size)[0].reason
            reasons.append(why and f"{why}; answered without focus.")
        return list(found), reasons

    def _kind(self, focus: FocusSettings) -> Distractors:
        name = focus.distractors
        if name in self._given:
            return self._given[name]
        if name == "auto":
            if self._given:
                return next(iter(self._given.values()))
            name = "gee" if self._estimator() is not None else "random"
        key = (name, focus.model, focus.texts, focus.pool, focus.seed)
        if key not in self._made:
            self._made[key] = self._open(name, focus)
        return self._made[key]

    def _open(self, name: str, focus: FocusSettings) -> Distractors:
        needed = {"given": ("texts", focus.texts), "masked": ("model", focus.model)}
        if name in needed and not needed[name][1]:
            raise DecodingError(f"distractors `{name}` need express.focus.{needed[name][0]} in a listener's YAML file.")
        if name == "random":
            return RandomDistractors(turn_pool(focus.pool), seed=focus.seed)
        if name == "given":
            return GivenDistractors(focus.texts)
        if name == "masked":
            from empatheia.decoding.masked_distractors import MaskedDistractors

            return MaskedDistractors.load(str(focus.model), seed=focus.seed)
        from empatheia.decoding.estimator_distractors import EstimatorDistractors

        if focus.model is not None:
            return EstimatorDistractors.load(focus.model, seed=focus.seed)
        estimator = self._estimator()
        if estimator is None:
            raise MissingResourceError(
                "distractors `gee` need an emotion estimator, and none is here. Get it with: empatheia models train"
                " words; name a folder with express.focus.model; or take --distractors random."
            )
        return EstimatorDistractors(estimator, seed=focus.seed)

    def _estimator(self) -> Any:
        """The estimator that finds target words, if it is one."""
        from empatheia.understanding.words.turns import EstimatorWords

        scorer = getattr(self.steps.component("words"), "scorer", None)
        return scorer if isinstance(scorer, EstimatorWords) else None


def read_by_responders(dialogue: Dialogue, memory: MemorySettings) -> Dialogue:
    """The turns that responders read; the newest speaker turn is always the last.

    >>> talk = Dialogue.of("One.", "Two.", "Three.", "Four.", "Five.")
    >>> cut = read_by_responders(talk, MemorySettings(history="speaker_turns", newest=2))
    >>> [turn.text for turn in cut.turns]
    ['Three.', 'Five.']
    """
    turns = dialogue.turns
    if memory.history == "speaker_turns":
        turns = tuple(turn for turn in turns if turn.role == "speaker")
    if memory.history != "all":
        turns = turns[-memory.newest :]
    whole = len(turns) == len(dialogue.turns)
    return Dialogue(dialogue.id if whole else "", turns)  # what is filed under an id is of the whole conversation


def moved(contrast: Contrast | None, turn: int) -> Contrast | None:
    """A contrast whose turn stands at another index."""
    if contrast is None or contrast.targets.turn == turn:
        return contrast
    spans = tuple(Span(turn, s.start, s.end, s.score) for s in contrast.targets.spans)
    return replace(contrast, targets=replace(contrast.targets, spans=spans, turn=turn))


def _targets(one: Understood) -> Targets:
    turn = len(one.dialogue.turns) - 1
    return one.targets or Targets(one.dialogue.turns[turn].text, (), turn)
