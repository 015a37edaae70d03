"""Weights of the ranking: chosen so that a fitting reply stands above one that must not be said, and above a stray one.

Of each everyday conversation three replies are weighed: the one a careful writer gave (``reply``), the one that a
careless listener might give (``avoid``), and the fitting reply of another conversation (``stray``). With ``x`` the
terms of a reply, weights ``w >= 0`` minimise the logistic loss of its two pairs (RankNet, Burges et al., ICML 2005)

    L(w) = mean over pairs of log(1 + exp(-w . (x_reply - x_other))) + decay * |w|^2 / 2

on the validation part; the test part says how many pairs stand in the right order, with the weights as they were, with
the chosen ones, and without each term. A reply that is missing one of the terms has 0 there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from empatheia.errors import ConfigError
from empatheia.listener.listener import Listener
from empatheia.listener.steps.express import reply_key
from empatheia.listener.steps.focused import FocusedListener
from empatheia.listener.steps.settings import FocusSettings, WeightSettings, check_settings
from empatheia.listener.terms.term import TERMS
from empatheia.metrics.classification import Accuracy
from empatheia.resources.arrays import load_arrays
from empatheia.voices.given import GivenVoice
from empatheia.voices.voice import Voice
from empatheia_research.corpora import everyday
from empatheia_research.recipes.data import RankData
from empatheia_research.training.evaluation import N_RESAMPLES
from empatheia_research.training.tasks.base import Measurement, write_rows
from empatheia_research.voices.local import LocalVoice

KINDS = ("avoid", "stray")
"""What a fitting reply is compared with."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Comparisons of a fitting reply with another one.

    Attributes:
        differences: Terms of the fitting reply less those of the other one. Shape: (pairs, terms).
        kinds: Of :data:`KINDS`, one a pair.
        items: Id of the conversation of each.
    """

    differences: np.ndarray
    kinds: tuple[str, ...]
    items: tuple[str, ...]

    def right(self, weights: np.ndarray, kind: str | None = None) -> list[bool]:
        """Whether the fitting reply stands above the other one; a tie is wrong."""
        scores = self.differences @ weights
        return [bool(s > 0) for s, own in zip(scores, self.kinds, strict=True) if kind in (None, own)]


class RankTask(Measurement):
    """Chooses the weights of :class:`~empatheia.listener.steps.settings.WeightSettings` that a recipe names.

    ``model`` holds the settings of a listener of five steps, whose perception and weights are taken; ``data.scorer``
    gives probabilities.
    """

    data: RankData

    def build(self) -> None:
        """The listener, which is given replies and weighs each term once."""
        if self.data.corpus not in (everyday.NAME, "sample"):
            raise ConfigError(
                f"data.corpus is {self.data.corpus!r}; accepted: {everyday.NAME}, the only corpus with replies that"
                " must not be said (or sample: the same, for a trial)."
            )
        if unknown := sorted(set(self.data.terms) - set(TERMS.names())):
            raise ConfigError(f"data.terms: no term {unknown[0]!r}; accepted: {', '.join(TERMS.names())}.")
        if not self.data.scorer and {"likelihood", "information"} & set(self.data.terms):
            raise ConfigError(
                "data.terms: likelihood and information need data.scorer: a model that gives probabilities."
            )
        self.given = GivenVoice()
        voices: list[Voice] = [self.given]
        if self.data.scorer:
            scorer = Listener.load(self.data.scorer).as_voice()
            if not isinstance(scorer, LocalVoice):
                raise ConfigError(f"data.scorer: {self.data.scorer} gives no probabilities.")
            scorer.ways = lambda ways: []  # it weighs and writes nothing
            voices.append(scorer)
        settings = check_settings(self.recipe.model, f"recipe {self.recipe.name!r}")
        self.before = settings.express.weights
        weights = dict.fromkeys(WeightSettings.model_fields, 0.0) | dict.fromkeys(self.data.terms, 1.0)
        express = settings.express.model_copy(
            update={
                "weights": WeightSettings.model_validate(weights),
                "focus": FocusSettings.model_validate({"use": "off"}),
            }
        )
        self.listener = FocusedListener(settings.model_copy(update={"express": express}), voices=voices)

    def pairs(self, split: str, limit: int | None) -> Pairs:
        """The comparisons of a split; read from the run folder if they are there."""
        found = [item for item in everyday.items(split) if item.reply and item.avoid][:limit]
        if len(found) < 2:
            raise ConfigError(f"{split} has {len(found)} conversations with a fitting and a bad reply; 2 are needed.")
        stray = list(range(len(found)))
        random.Random(self.recipe.seed).shuffle(stray)
        strays = {a: found[b].reply for a, b in zip(stray, [*stray[1:], stray[0]], strict=True)}
        replies = [(item.reply, item.avoid, strays[i]) for i, item in enumerate(found)]
        self.record[split] = {"conversations": len(found)}
        terms = self._terms(split, [item.dialogue for item in found], replies)
        kinds = KINDS * len(found)
        differences = np.stack([rows[0] - rows[k] for rows in terms for k in (1, 2)])
        return Pairs(differences, kinds, tuple(item.dialogue.id for item in found for _ in KINDS))

    def _terms(self, split: str, dialogues: Sequence[Any], replies: Sequence[Sequence[str]]) -> np.ndarray:
        """Shape: (conversations, replies, terms)."""
        file = self.folder / f"terms.{split}.safetensors"
        if file.is_file():
            kept = load_arrays(file)["terms"]
            if kept.shape == (len(dialogues), len(replies[0]), len(self.data.terms)):
                return kept
        self.given.replies = {dialogue.id: texts for dialogue, texts in zip(dialogues, replies, strict=True)}
        rows = []
        for start in range(0, len(dialogues), 16):
            part = list(dialogues[start : start + 16])
            for dialogue, reply in zip(part, self.listener.respond(part, explain=True, care=False), strict=True):
                by_text = {reply_key(one.text): one.terms for one in reply.candidates}
                found = [by_text[reply_key(text)] for text in self.given.replies[dialogue.id]]
                rows.append([[float(own[name] or 0.0) for name in self.data.terms] for own in found])
        terms = np.array(rows, dtype=np.float64)
        self.folder.mkdir(parents=True, exist_ok=True)
        save_file({"terms": terms}, file)
        return terms

    def evaluate(self, split: str, outputs: Path | None) -> dict[str, Any]:
        """The chosen weights, and how many pairs of the test part stand in the right order.

        Args:
            split: Whose pairs are counted.
            outputs: File for one JSON line a pair: its conversation, kind and differences.

        Returns:
            Accuracies by ``WEIGHTS: KIND``; ``weights`` before and chosen; ``gain`` of each term: points of accuracy on
            that split that are lost when the weights are chosen without it.
        """
        fit = self.pairs("valid", self.data.valid_limit)
        test = self.pairs(split, self.data.test_limit)
        names = list(self.data.terms)
        before = np.array([getattr(self.before, name) for name in names])
        chosen = choose_weights(fit.differences, self.data.decay)
        result: dict[str, Any] = {}
        for title, weights in (("before", before), ("chosen", chosen)):
            for kind in (*KINDS, None):
                score = _accuracy(test.right(weights, kind))
                result[f"{title}: {kind or 'all'}"] = score.to_dict()
        whole = _share(test.right(chosen))
        gains, alone = {}, {}
        for i, name in enumerate(names):
            kept = [j for j in range(len(names)) if j != i]
            weights = np.zeros(len(names))
            weights[kept] = choose_weights(fit.differences[:, kept], self.data.decay) if kept else 0.0
            gains[name] = round(100 * (whole - _share(test.right(weights))), 2)
            alone[name] = round(100 * _share(test.right(np.eye(len(names))[i])), 2)
        result["weights"] = {
            "before": dict(zip(names, before.tolist(), strict=True)),
            "chosen": {name: round(float(w), 2) for name, w in zip(names, chosen, strict=True)},
        }
        result["gain"], result["alone"] = gains, alone
        write_rows(
            outputs,
            (
                {"id": item, "kind": kind, **dict(zip(names, row, strict=True))}
                for item, kind, row in zip(test.items, test.kinds, test.differences.tolist(), strict=True)
            ),
        )
        return result


def choose_weights(differences: np.ndarray, decay: float, steps: int = 4000) -> np.ndarray:
    """Weights of at least 0 with the least logistic loss of pairs, by projected gradient descent; the loss is convex.

    Args:
        differences: Terms of the better reply less those of the worse one. Shape: (pairs, terms).
        decay: Of the squared weights.
        steps: Of the descent.

    Returns:
        Shape: (terms,).
    """
    x = torch.as_tensor(differences, dtype=torch.float64)
    scale = x.pow(2).mean(0).sqrt()
    says = scale > 0  # a term that is the same in all pairs weighs nothing
    weights = torch.zeros(x.shape[1], dtype=torch.float64)
    if not says.any():
        return weights.numpy()
    scale = scale[says]
    unit = x[:, says] / scale  # descent on terms of like size; the decay is that of the weights themselves
    decays = decay / scale**2
    rate = 1.0 / (0.25 * float(unit.pow(2).sum(1).mean()) + float(decays.max()))
    w = torch.zeros_like(scale)
    for _ in range(steps):
        slope = -(torch.sigmoid(-(unit @ w))[:, None] * unit).mean(0) + decays * w
        w = (w - rate * slope).clamp_min(0)
    weights[says] = w / scale
    return weights.numpy()


def _share(right: Sequence[bool]) -> float:
    return sum(right) / max(1, len(right))


def _accuracy(right: Sequence[bool]) -> Any:
    metric = Accuracy()
    metric.update([int(r) for r in right], [1] * len(right))
    return metric.compute(N_RESAMPLES)
