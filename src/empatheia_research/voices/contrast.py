"""What the newest speaker turn is to be told from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from empatheia.analysis.targets import Targets
from empatheia.errors import DecodingError, MissingResourceError
from empatheia.records.analysis import Analysis
from empatheia.voices.decoding import FocusSettings
from empatheia.voices.voice import Kit
from empatheia_research.decoding.distractors import Contrast, Distractors, GivenDistractors, RandomDistractors
from empatheia_research.decoding.turn_pool import turn_pool


class Contrasts:
    """Makes the distractors of a voice; models are loaded when first needed.

    Args:
        kit: Of the listener: its estimator serves for distractors too, and those it was handed go first.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self._given: dict[str, Distractors] = dict(kit.distractors)
        self._made: dict[Any, Distractors] = {}

    def make(
        self, analyses: Sequence[Analysis], focus: FocusSettings, batch_size: int = 32
    ) -> tuple[list[Contrast | None], list[str]]:
        """The contrast of each conversation, or None and the reason why there is none.

        Args:
            analyses: With their targets.
            focus: Kind and number.
            batch_size: Most texts in one pass of a model.

        Raises:
            DecodingError: ``focus.strict`` and a text has too few distractors, or the kind lacks its setting.
            MissingResourceError: The kind needs a model that is not here.
            ConfigError: The model that is here is of another kind.
        """
        if not analyses:
            return [], []
        kind = self._kind(focus)
        targets = [targets_of(one) for one in analyses]
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
            from empatheia_research.decoding.masked_distractors import MaskedDistractors

            return MaskedDistractors.load(str(focus.model), seed=focus.seed)
        from empatheia_research.decoding.estimator_distractors import EstimatorDistractors

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
        from empatheia_research.understanding.words.turns import EstimatorWords

        scorer = getattr(self.kit.component("words"), "scorer", None)
        return scorer if isinstance(scorer, EstimatorWords) else None


def targets_of(analysis: Analysis) -> Targets:
    """The words that the reply should be about, as distractors exchange them."""
    turn = len(analysis.dialogue.turns) - 1
    return Targets(analysis.dialogue.turns[turn].text, analysis.targets, turn, source=analysis.by.get("targets", ""))
