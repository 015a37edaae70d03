"""The task of focus (Kim et al. 2021, section 4.2): one responder as it is (S0) and focused (S1), on the same contexts.

Each kind of distractors is decoded at each alpha and beta. Beside coverage of the target words stand what it costs
(perplexity of the *gold* replies under the same speaker, BLEU, Distinct), EPITOME's levels and a fresh listener; paired
permutation tests say whether coverage differs from S0 and from random distractors. Nothing learns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from transformers.utils import logging as transformers_logging

from empatheia.errors import ConfigError
from empatheia.metrics import METRICS
from empatheia.metrics.base import Metric
from empatheia.metrics.score import Score, Signature
from empatheia.metrics.significance import Comparison, adjusted, paired_permutation
from empatheia.text.words import count_words
from empatheia_research.recipes.data import FocusData
from empatheia_research.recipes.recipe import Recipe
from empatheia_research.training.evaluation import N_RESAMPLES, reply_scores
from empatheia_research.training.initial_weights import started_from
from empatheia_research.training.tasks.base import write_rows
from empatheia_research.training.tasks.focus_contexts import FocusContexts
from empatheia_research.training.tasks.focus_replies import S0, Point, Spoken, points_of, speak
from empatheia_research.training.tasks.focus_speakers import Speaker, open_language_model, open_speaker
from empatheia_research.training.tasks.reply_judges import JudgedMeasurement, Judges, check_judges, kept, plain_words

SYSTEM = "pragmatic_speaker"
TESTED = ("coverage", "coverage_near", "listener_accuracy")
"""Scores whose differences are tested."""
N_PERMUTATIONS = 10_000
WHOLE_GRID = ", whole grid"
"""Ends the names of systems that stand for one kind of distractors at every alpha and beta."""


class FocusTask(JudgedMeasurement):
    """Measures a responder, ``start``, or a language model, ``model``, with and without focus."""

    systems = (SYSTEM,)
    data: FocusData

    def build(self) -> None:
        """Who speaks, and who judges."""
        recipe = self.recipe
        _check(recipe)
        check_judges(recipe)
        if recipe.start is not None:
            self.speaker: Speaker = open_speaker(started_from(recipe), self.device)
        else:
            self.speaker = open_language_model(recipe, self.folder, self.device)
        self.model = self.speaker.contexts.network
        self.judges = Judges(recipe, self.folder, [self.speaker.name])

    @property
    def contexts(self) -> FocusContexts:
        """What is answered."""
        return self.judges.contexts

    # -- measuring -------------------------------------------------------------------------------------------

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, object]:
        """All scores of all systems, and the tests.

        Args:
            split: Not read: ``data.split`` says whose contexts are answered.
            outputs: File for one JSON line a context: its place, target words, gold reply, and ``replies`` by system.

        Returns:
            ``SYSTEM: METRIC`` to ``Score.to_dict()``; ``systems`` says what each is, ``tests`` holds the comparisons
            (``METRIC: A against B``), ``decoding`` the settings and rates. Systems are ``S0``, one for each kind of
            distractors, alpha and beta, the gold replies and two that fit anything.
        """
        self.model.eval()
        points = points_of(self.data)
        spoken = {S0: self._spoken(None, None)}
        for number, point in enumerate(points, 1):
            spoken[point.name] = self._spoken(point, spoken[S0], f"{number} of {len(points)}")
        table, scores = {}, []
        for name, own in spoken.items():
            table[name] = self.judges.metrics(own.replies, own.judged)
            point = next((point for point in points if point.name == name), None)
            scores += self._scores(name, table[name], own, point)
        scores += self.judges.beside()
        pooled = over_grid(table, points)
        for name, found in pooled.items():
            for key, own in found.items():
                score = own.compute(N_RESAMPLES)
                grid = " ".join(f"{alpha:g}/{beta:g}" for alpha, beta in self.data.grid)
                kind = self.contexts.distractors[name.removesuffix(WHOLE_GRID)]
                facts = {"focus": f"{kind}, {self.data.worlds} worlds", "alpha/beta": grid, "prior": self.data.prior}
                told = Signature.parse(score.signature).including(**self._speaking(), **facts)
                scores.append((name, key, replace(score, signature=str(told), parts={"n_points": len(self.data.grid)})))
        result: dict[str, object] = {f"{name}: {key}": score.to_dict() for name, key, score in scores}
        result["systems"] = {S0: {}} | {point.name: asdict(point) for point in points}
        result["systems"] |= {name: {"kind": name.removesuffix(WHOLE_GRID)} for name in pooled}
        result["tests"] = comparisons(table, points)
        result["decoding"] = self._facts(spoken)
        write_rows(outputs, self._rows(spoken))
        return result

    @property
    def _listener(self) -> str | None:
        return None if self.judges.listener is None else self.judges.listener.name

    def _spoken(self, point: Point | None, plain: Spoken | None, told: str = "") -> Spoken:
        """A system's replies with what models say of them; read from the run folder if they are there."""
        name = S0 if point is None else point.name
        contexts, listener = self.contexts, self._listener or ""
        facts = (name, self.data.prior, self.recipe.decoding.model_dump(), self.speaker.fingerprint, contexts.checksum)
        file = self.folder / "systems" / f"{name.replace(', ', '_').replace(' ', '')}.json"

        def make() -> Spoken:
            n = len(contexts.examples)
            bar: Any = transformers_logging.tqdm(total=n, desc=f"{name} {told}".strip(), unit="reply")
            with bar:
                made = speak(
                    self.speaker, contexts, self.recipe.decoding, self.data.prior, point, plain, advance=bar.update
                )
            return replace(made, judged=self.judges.judge(made.replies, self.speaker.name))

        return kept(file, (*facts, listener, self.data.mechanisms), Spoken, make)

    def _scores(
        self, name: str, metrics: Mapping[str, Metric], own: Spoken, point: Point | None
    ) -> Iterator[tuple[str, str, Score]]:
        """Of one system: its name, the score's name, the score with who spoke and how in its signature."""
        kinds = self.contexts.distractors
        focus = {"focus": "none"}
        if point is not None:
            focus = {"focus": f"{kinds[point.kind]}, {self.data.worlds} worlds", "alpha": f"{point.alpha:g}"}
            focus |= {"beta": f"{point.beta:g}", "prior": self.data.prior}
        facts = {**self._speaking(), **focus}
        found = [metric.compute(N_RESAMPLES) for metric in metrics.values()]
        found += self._likelihood(own)
        found += reply_scores(own.words, [plain_words(reply) for reply in self.contexts.gold])
        for key, score in zip([*metrics, *(score.name for score in found[len(metrics) :])], found, strict=True):
            signature = Signature.parse(score.signature).including(**facts)
            yield name, key, replace(score, signature=str(signature))

    def _speaking(self) -> dict[str, str]:
        decoding = self.recipe.decoding
        way = decoding.strategy + (f"-{decoding.num_beams}" if decoding.strategy == "beam" else "")
        return {"speaker": self.speaker.name, "decoding": way}

    def _likelihood(self, own: Spoken) -> list[Score]:
        """Perplexities of the gold replies under the speaker, focused as its replies are."""
        gold = self.contexts.gold
        words = [count_words(reply) + 1 for reply in gold]
        scores = []
        for name in ("ppl_token", "ppl_word", "ppl_item"):
            metric: Any = METRICS.get(name)(tokenizer=self.speaker.contexts.vocabulary, words="family+eos")
            metric.update(own.nll, own.n_pieces, n_words=words, references=gold)
            scores.append(metric.compute(N_RESAMPLES))
        return scores

    def _facts(self, spoken: Mapping[str, Spoken]) -> dict[str, object]:
        n = len(self.contexts.examples)
        focused = [own.seconds for name, own in spoken.items() if name != S0]
        return {
            **self.recipe.decoding.model_dump(),
            "speaker": self.speaker.name,
            "listener": self._listener,
            "replies": n,
            "plain_replies_per_second": round(n / max(spoken[S0].seconds, 1e-9), 2),
            "focused_replies_per_second": round(n * len(focused) / max(sum(focused), 1e-9), 2),
            "mean_words": {
                name: round(sum(len(text.split()) for text in own.words) / n, 2) for name, own in spoken.items()
            },
            "distinct_replies": {name: len(set(own.words)) for name, own in spoken.items()},
        }

    def _rows(self, spoken: Mapping[str, Spoken]) -> Iterator[dict[str, object]]:
        for i, (example, targets) in enumerate(zip(self.contexts.examples, self.contexts.targets, strict=True)):
            yield {
                "id": example.dialogue_id,
                "turn": example.turn_index,
                "targets": targets.words,
                "ref": plain_words(example.response or ""),
                "replies": {name: own.words[i] for name, own in spoken.items()},
            }


def over_grid(table: Mapping[str, Mapping[str, Metric]], points: Sequence[Point]) -> dict[str, dict[str, Metric]]:
    """Each kind of distractors at every alpha and beta at once: ``KIND, whole grid`` to the tested metrics."""
    out = {}
    for kind in dict.fromkeys(point.kind for point in points):
        first, *others = [table[point.name] for point in points if point.kind == kind]
        found = {key: first[key].together(*(other[key] for other in others)) for key in TESTED if key in first}
        out |= {kind + WHOLE_GRID: found} if others else {}
    return out


def comparisons(table: Mapping[str, Mapping[str, Metric]], points: Sequence[Point]) -> dict[str, object]:
    """Each focused system against S0, and against random distractors at the same alpha and beta; the grid as a whole.

    Args:
        table: System to metrics.
        points: What the focused systems are.

    Returns:
        ``METRIC: A against B`` to the comparison; ``p_adjusted`` is Holm's over all points of one metric. Those of
        ``KIND, whole grid`` ask one question, whatever the points: a coin swaps all replies to a context.
    """
    pooled = over_grid(table, points)
    n_points = len({(point.alpha, point.beta) for point in points})
    plain = {key: own.together(*[own] * (n_points - 1)) for key, own in table[S0].items() if key in TESTED}
    single = {point.name: point.kind for point in points}
    whole = {name: name.removesuffix(WHOLE_GRID) for name in pooled}
    out: dict[str, object] = {}
    for metric in TESTED:
        family = _against_baselines(metric, table, single)
        out |= {name: found.to_dict() for name, found in adjusted(family).items()}
        family = _against_baselines(metric, {S0: plain, **pooled}, whole)
        out |= {name: found.to_dict() for name, found in family.items()}
    return out


def _against_baselines(
    metric: str, table: Mapping[str, Mapping[str, Metric]], kinds: Mapping[str, str]
) -> dict[str, Comparison]:
    """Each system of ``kinds`` against S0, and against the one with random distractors that is otherwise alike."""
    family = {}
    for name, kind in kinds.items():
        for other in [S0] if kind == "random" else [S0, f"random{name.removeprefix(kind)}"]:
            ours, theirs = (table.get(system, {}).get(metric) for system in (name, other))
            if ours is None or theirs is None or math.isnan(ours.compute().value):  # no context has target words
                continue
            family[f"{metric}: {name} against {other}"] = paired_permutation(ours, theirs, N_PERMUTATIONS)
    return family


def _check(recipe: Recipe) -> None:
    """Raises ConfigError for what would fail or be passed over in silence."""
    data: FocusData = recipe.data
    where = f"recipe {recipe.name!r}:"
    if (recipe.start is None) == (not recipe.model):
        found = "neither" if recipe.start is None else "both"
        raise ConfigError(
            f"{where} {found} of start and model named; accepted: start=FOLDER of a responder, or model.form and"
            " model.base of a language model."
        )
    if recipe.decoding.strategy not in ("greedy", "beam", "sample"):
        raise ConfigError(
            f"{where} decoding.strategy is {recipe.decoding.strategy!r}; accepted with focus: greedy, beam, sample."
        )
    for alpha, beta in data.grid:
        if not (0 < alpha < float("inf") and 0 < beta < float("inf")):
            raise ConfigError(
                f"{where} data.grid has alpha {alpha:g}, beta {beta:g}; accepted: both above 0 (S0 is 0)."
            )
    for name in ("grid", "distractors"):
        if len(set(getattr(data, name))) < len(getattr(data, name)):
            raise ConfigError(f"{where} data.{name} names something twice.")
