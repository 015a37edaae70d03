"""The task of the listener: a listener of five steps whole, and without each of its parts, on the same contexts.

Each variant differs from the whole in the settings its recipe names (no focus, no ranking, ...). Replies are judged by
models that had no part in them where there are such: coverage of target words, EPITOME's mechanisms, a fresh listener;
beside BLEU and Distinct. Paired permutation tests say whether a part makes a difference. Nothing learns.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from empatheia.errors import ConfigError
from empatheia.listener.steps.focused import SYSTEM, FocusedListener
from empatheia.listener.steps.settings import ListenerSettings, check_settings
from empatheia.metrics.base import Metric
from empatheia.metrics.score import Score, Signature
from empatheia.metrics.significance import adjusted, paired_permutation
from empatheia.records.dialogue import Dialogue
from empatheia.records.reply import Reply
from empatheia.settings import merge
from empatheia.taxonomy import MECHANISMS
from empatheia_research.decoding.focus_scores import Judged
from empatheia_research.recipes.data import ListenData
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.training.evaluation import N_RESAMPLES, reply_scores
from empatheia_research.training.tasks.base import write_rows
from empatheia_research.training.tasks.reply_judges import JudgedMeasurement, Judges, check_judges, kept, plain_words

WHOLE = "whole"
"""Name of the listener that the recipe's `model` describes."""
TESTED = ("coverage", "coverage_near", "listener_accuracy", *MECHANISMS)
N_PERMUTATIONS = 10_000
_AT_ONCE = 16


@dataclass(frozen=True)
class Answers:
    """What a variant said; plain data.

    Attributes:
        replies: As a person reads them.
        focused: Which of them were focused.
        responders: Who wrote each.
        missing: What had no model or could not be done, to how often.
        seconds: They took, all steps together.
        judged: What models say of the replies.
    """

    replies: list[str]
    focused: list[bool]
    responders: list[str]
    missing: dict[str, int]
    seconds: float
    judged: Judged = field(default_factory=Judged)


class ListenTask(JudgedMeasurement):
    """Measures a listener of five steps and its variants.

    ``model`` holds the settings of :mod:`empatheia.listener.steps.settings`, in whose places ``{size}`` is the run's;
    ``data.variants`` what differs.
    """

    systems = (SYSTEM,)
    data: ListenData

    def build(self) -> None:
        """The settings of each variant, and who judges."""
        recipe = self.recipe
        _check(recipe)
        check_judges(recipe)
        trees = {WHOLE: recipe.model} | {n: merge(recipe.model, own) for n, own in self.data.variants.items()}
        self.settings: dict[str, ListenerSettings] = {
            name: check_settings(_filled(tree, recipe), f"recipe {recipe.name!r}, {name}")
            for name, tree in trees.items()
        }
        found = (
            (voice.name, getattr(getattr(voice, "listener", None), "network", None))
            for settings in self.settings.values()
            for voice in FocusedListener(settings, device=self.device).voices
        )
        networks = {name: network for name, network in found if network is not None}
        self.model = torch.nn.ModuleList(networks.values())
        self.judges = Judges(recipe, self.folder, list(networks))

    # -- measuring -------------------------------------------------------------------------------------------

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """All scores of all variants, and the tests.

        Args:
            split: Not read: ``data.split`` says whose contexts are answered.
            outputs: File for one JSON line a context: its place, target words, gold reply, and ``replies`` by variant.

        Returns:
            ``VARIANT: METRIC`` to ``Score.to_dict()``; ``variants`` says how each differs, ``tests`` holds the
            comparisons (``METRIC: VARIANT against whole``, and against ``baseline``), ``decoding`` what was observed.
        """
        answers = {name: self._answers(name, settings) for name, settings in self.settings.items()}
        table = {name: self.judges.metrics(own.replies, own.judged) for name, own in answers.items()}
        scores = [row for name, own in answers.items() for row in self._scores(name, own, table[name])]
        scores += self.judges.beside()
        result: dict[str, object] = {f"{name}: {key}": score.to_dict() for name, key, score in scores}
        result["variants"] = {WHOLE: {}} | self.data.variants
        result["baseline"] = self.data.baseline
        result["tests"] = comparisons(table, self.data.baseline)
        result["decoding"] = {name: _facts(own) for name, own in answers.items()}
        write_rows(outputs, self._rows(answers))
        return result

    def _answers(self, name: str, settings: ListenerSettings) -> Answers:
        """A variant's replies with what models say of them; read from the run folder if they are there."""
        judges, told = self.judges, settings.model_dump(mode="json")
        listener = "" if judges.listener is None else judges.listener.name
        facts = (told, judges.contexts.checksum, listener, self.data.mechanisms)
        file = self.folder / "variants" / f"{name.replace(' ', '_').replace('/', '_')}.json"

        def make() -> Answers:
            made = self._respond(name, settings)
            return replace(made, judged=judges.judge(made.replies))

        return kept(file, facts, Answers, make)

    def _respond(self, name: str, settings: ListenerSettings) -> Answers:
        listener = FocusedListener(settings, device=self.device)
        asked = [Dialogue(e.dialogue_id, e.context) for e in self.judges.contexts.examples]  # without the gold emotion
        replies: list[Reply] = []
        bar: Any = transformers_logging.tqdm(total=len(asked), desc=name, unit="reply")
        begun = time.perf_counter()
        with bar:
            for start in range(0, len(asked), _AT_ONCE):
                part = listener.respond(asked[start : start + _AT_ONCE], explain=True, care=False)
                replies += part
                bar.update(len(part))
        seconds = time.perf_counter() - begun
        missing = Counter(what for reply in replies for what in reply.analysis.missing)
        return Answers(
            [reply.text for reply in replies],
            ["focus" in reply.decoding for reply in replies],
            [str(reply.decoding.get("responder", "")) for reply in replies],
            dict(missing),
            seconds,
        )

    def _scores(self, name: str, own: Answers, metrics: Mapping[str, Metric]) -> Iterator[tuple[str, str, Score]]:
        """Of one variant: its name, the score's name, the score with the variant in its signature."""
        settings = json.dumps(self.settings[name].model_dump(mode="json"), sort_keys=True)
        facts = {"variant": name, "settings": hashlib.sha256(settings.encode()).hexdigest()[:8]}
        found = {key: metric.compute(N_RESAMPLES) for key, metric in metrics.items()}
        words = [plain_words(reply) for reply in own.replies]
        found |= {s.name: s for s in reply_scores(words, [plain_words(reply) for reply in self.judges.contexts.gold])}
        for key, score in found.items():
            signature = Signature.parse(score.signature).including(**facts)
            yield name, key, replace(score, signature=str(signature))

    def _rows(self, answers: Mapping[str, Answers]) -> Iterator[dict[str, object]]:
        contexts = self.judges.contexts
        for i, (example, targets) in enumerate(zip(contexts.examples, contexts.targets, strict=True)):
            yield {
                "id": example.dialogue_id,
                "turn": example.turn_index,
                "targets": targets.words,
                "ref": example.response,
                "replies": {name: own.replies[i] for name, own in answers.items()},
            }


def comparisons(table: Mapping[str, Mapping[str, Metric]], baseline: str | None = None) -> dict[str, object]:
    """Each variant against the whole, and against the baseline.

    Args:
        table: Variant to metrics, among them ``WHOLE``.
        baseline: One of the variants.

    Returns:
        ``METRIC: VARIANT against whole`` (or the baseline's name) to the comparison; ``p_adjusted`` is Holm's over all
        of one metric with the same other side.
    """
    out: dict[str, object] = {}
    for metric in TESTED:
        for other in (WHOLE,) if baseline is None else (WHOLE, baseline):
            reference = table[other].get(metric)
            if reference is None or math.isnan(reference.compute().value):
                continue
            family = {
                f"{metric}: {name} against {other}": paired_permutation(own[metric], reference, N_PERMUTATIONS)
                for name, own in table.items()
                if name != other and (name, other) != (WHOLE, baseline)  # asked already, the other way round
            }
            out |= {name: found.to_dict() for name, found in adjusted(family).items()}
    return out


def _facts(own: Answers) -> dict[str, object]:
    n = len(own.replies)
    return {
        "replies": n,
        "focused": sum(own.focused),
        "responders": dict(Counter(own.responders)),
        "missing": own.missing,
        "mean_words": round(sum(len(plain_words(reply).split()) for reply in own.replies) / max(1, n), 2),
        "distinct_replies": len(set(own.replies)),
        "seconds_per_reply": round(own.seconds / max(1, n), 3),
    }


def _filled(tree: Any, recipe: Recipe) -> Any:
    """``{size}`` and ``{seed}`` in texts are the run's."""
    if isinstance(tree, Mapping):
        return {name: _filled(own, recipe) for name, own in tree.items()}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [_filled(own, recipe) for own in tree]
    return tree.replace("{size}", recipe.size).replace("{seed}", str(recipe.seed)) if isinstance(tree, str) else tree


def _check(recipe: Recipe) -> None:
    """Raises ConfigError for what would fail or be passed over in silence."""
    where = f"recipe {recipe.name!r}:"
    if recipe.start is not None:
        raise ConfigError(f"{where} task listen starts from nothing; drop start, name models in `model`.")
    if recipe.data.baseline not in (None, *recipe.data.variants):
        known = ", ".join(map(repr, recipe.data.variants)) or "there are none"
        raise ConfigError(f"{where} data.baseline is {recipe.data.baseline!r}; accepted: a variant ({known}) or null.")
    if WHOLE in recipe.data.variants:
        raise ConfigError(f"{where} a variant is called {WHOLE!r}, as the listener itself is; give it another name.")
