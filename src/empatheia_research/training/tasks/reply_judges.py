"""How replies of several systems to the same contexts are judged by models that wrote none of them.

Coverage of the target words, EPITOME's mechanisms of empathy, and a fresh listener: the scores that task ``focus`` and
task ``listen`` share, beside those of the gold replies and of two that fit anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

from empatheia.errors import ConfigError
from empatheia.metrics.base import Metric
from empatheia.metrics.score import Score
from empatheia.reading import read_record
from empatheia.text.words import tokenize_words
from empatheia.writing import write_atomically
from empatheia_research.corpora.licences import LICENCES
from empatheia_research.decoding.focus_scores import GOLD, Judged, judge_replies, judged_metrics
from empatheia_research.decoding.listening import FreshListener
from empatheia_research.recipes.data import JudgedData
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.training.evaluation import N_RESAMPLES
from empatheia_research.training.initial_weights import model_named
from empatheia_research.training.tasks.base import Measurement
from empatheia_research.training.tasks.focus_contexts import FocusContexts, focus_contexts
from empatheia_research.training.tasks.focus_speakers import open_speaker
from empatheia_research.understanding.mechanisms.identifier import MechanismsOfTurns
from empatheia_research.understanding.mechanisms.replies import TRIVIAL
from empatheia_research.understanding.vectors.texts import SentenceVectors
from empatheia_research.understanding.vectors.words import WordVectors

Said = TypeVar("Said", bound=Any)
"""What a system said and how it was judged; plain data."""


class Judges:
    """The models and contexts that a recipe's `data` names.

    Args:
        recipe: Of task ``focus`` or ``listen``.
        folder: The run's; the contexts are kept there.
        speakers: Names of those who speak, none of which may listen.

    Raises:
        ConfigError: The listener is one of the speakers.
        MissingResourceError: A model it names is not here.
    """

    def __init__(self, recipe: Recipe, folder: Path, speakers: Sequence[str] = ()) -> None:
        self.recipe = recipe
        self.folder = folder
        self.data: JudgedData = recipe.data
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.places = {
            key: model_named(recipe, place, f"data.{key}")
            for key in ("estimator", "masked", "listener", "mechanisms")
            if (place := getattr(self.data, key)) is not None
        }
        if self.data.near is not None:
            model_named(recipe, self.data.near, "data.near")  # missing models are told before hours of work
        self.listener = self._fresh_listener(speakers)

    def _fresh_listener(self, speakers: Sequence[str]) -> FreshListener | None:
        if "listener" not in self.places:
            return None
        other = open_speaker(self.places["listener"], self.device)
        if other.name in speakers:
            raise ConfigError(
                f"recipe {self.recipe.name!r}: data.listener is {other.name!r}, who also speaks; a speaker understands"
                " itself. Name another responder, or null."
            )
        return FreshListener(other.contexts.network, other.contexts, other.contexts.labels, other.name)

    @cached_property
    def contexts(self) -> FocusContexts:
        """What is answered."""
        return focus_contexts(
            self.data, self.folder, self.places.get("estimator"), self.places.get("masked"), self.device
        )

    def data_record(self) -> dict[str, object]:
        """Counts of contexts, target words and distractors, and a checksum of all of them."""
        data = self.data
        licence = LICENCES[data.corpus].licence if data.corpus in LICENCES else ""
        return {data.corpus: {"split": data.split, **self.contexts.counts(), "licence": licence}}

    def judge(self, replies: Sequence[str], speaker: str | None = None) -> Judged:
        """What the models say of replies to the contexts, in order; plain data."""
        contexts = self.contexts
        listener = self.listener if any(c is not None for c in contexts.fresh) else None
        return judge_replies(
            replies,
            contexts.dialogues,
            mechanisms=self._mechanisms,
            listener=listener,
            contrasts=contexts.fresh,
            speaker=speaker,
        )

    def metrics(self, replies: Sequence[str], judged: Judged) -> dict[str, Metric]:
        """Accumulators by name: coverage, mechanisms, the listener."""
        return judged_metrics(replies, self.contexts.targets, judged, self._vectors)

    def beside(self) -> list[tuple[str, str, Score]]:
        """The gold replies and two that fit anything, by what can be said of any reply: system, score's name, score."""
        out = []
        fixed = {name: [reply] * len(self.contexts.gold) for name, reply in TRIVIAL.items()}
        for name, replies in {GOLD: self.contexts.gold, **fixed}.items():
            found = self.metrics(replies, self.judge(replies))
            out += [(name, key, metric.compute(N_RESAMPLES)) for key, metric in found.items()]
        return out

    @cached_property
    def _mechanisms(self) -> MechanismsOfTurns | None:
        place = self.places.get("mechanisms")
        return None if place is None else MechanismsOfTurns.load(place, self.device)

    @cached_property
    def _vectors(self) -> WordVectors | None:
        near = self.data.near
        return None if near is None else WordVectors.of_encoder(SentenceVectors.load(near))


class JudgedMeasurement(Measurement):
    """A measurement of replies to drawn contexts; a stopped run goes on behind what its folder holds.

    Attributes:
        judges: Contexts and models that judge.
        device: Where models run.
    """

    judges: Judges

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        super().__init__(recipe, folder)

    def data_record(self) -> dict[str, object]:
        """Counts of contexts, target words and distractors, and a checksum of all of them."""
        return self.judges.data_record()


def kept(file: Path, facts: tuple[object, ...], kind: type[Said], make: Callable[[], Said]) -> Said:
    """What ``make`` gives, out of a file if it was made before from the same facts: a stopped run goes on behind it.

    Args:
        file: JSON; written in one piece.
        facts: All that the result depends on; their ``repr`` is compared by checksum.
        kind: Dataclass of plain data with a field ``judged``.
        make: Called if the file is not there or of other facts.
    """
    origin = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    if file.is_file():
        record = read_record(file)
        if record.pop("origin") == origin:
            return kind(**{**record, "judged": Judged.of(record["judged"])})
    made = make()
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps({"origin": origin, **asdict(made)}, ensure_ascii=False))
    return made


def plain_words(reply: str) -> str:
    """Lower-case words with blanks between, as replies are compared."""
    return " ".join(word.text for word in tokenize_words(reply))


def check_judges(recipe: Recipe) -> None:
    """Refuses what would fail later or be passed over in silence.

    Raises:
        ConfigError: A kind of distractors without its model, or the listener is asked about the speaker's own.
    """
    data: JudgedData = recipe.data
    where = f"recipe {recipe.name!r}:"
    kinds = {*data.kinds, data.fresh_kind}
    if data.fresh_kind in data.kinds and data.fresh_seed == data.distractors_seed:
        raise ConfigError(
            f"{where} data.fresh_seed is data.distractors_seed ({data.fresh_seed}); the listener would be asked about"
            " what the speaker was focused with. Give another seed."
        )
    needs_estimator = data.words == "estimator" or bool({"gee", "repo"} & kinds)
    for key, is_needed in (("estimator", needs_estimator), ("masked", "masked" in kinds)):
        if is_needed and getattr(data, key) is None:
            raise ConfigError(
                f"{where} data.{key} is null, and is needed by data.words or the kinds of distractors; name the model's"
                " folder, or take words=rake and random distractors."
            )
