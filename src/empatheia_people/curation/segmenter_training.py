"""Trains the turn segmenter and measures it on films it has not seen, beside the baselines.

Cross-validated by film: no film is on both sides, and the penalty is chosen inside each training part. Intervals
resample films, not pairs. The probability is calibrated on scores of held-out films (Platt 1999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from empatheia.errors import DataError, MissingDependencyError
from empatheia_people.curation.labelled_pairs import LabelledFilm, LabelledPairs, joined, pairs_of
from empatheia_people.curation.pair_features import BITS, FAMILIES, SLOTS
from empatheia_people.curation.segmenter import TurnSegmenter

PENALTIES = (0.003, 0.005, 0.01, 0.02)
N_FOLDS = 5
_INNER = 3
_N_RESAMPLES = 2000
_LEAST_FILMS = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """How well pairs are told apart.

    Attributes:
        n: Pairs.
        accuracy: Share of right ones, in [0, 1].
        low: Of its 95 % interval over films.
        high: As ``low``.
        balanced: Mean of the shares of right ones among new and same.
        mcc: Matthews' correlation, in [-1, 1].
        f1_new: Of borders of turns.
        f1_same: Of pairs inside of a turn.
    """

    n: int
    accuracy: float
    low: float
    high: float
    balanced: float
    mcc: float
    f1_new: float
    f1_same: float

    def record(self) -> dict[str, float]:
        """Rounded, JSON-ready."""
        return {name: round(getattr(self, name), 4) for name in self.__dataclass_fields__}


def measure(is_new: np.ndarray, found_new: np.ndarray, films: np.ndarray, seed: int = 0) -> Measured:
    """Scores of decisions.

    Args:
        is_new: The truth. Shape: (n,), bool.
        found_new: The decisions. Shape: (n,), bool.
        films: Film of each pair. Shape: (n,).
        seed: Of the resampling.

    >>> measure(np.array([True, False]), np.array([True, True]), np.array([0, 1])).accuracy
    0.5
    """
    hit, right = (is_new & found_new).sum(), is_new == found_new
    n, n_new, n_found = len(is_new), int(is_new.sum()), int(found_new.sum())
    clear = (~is_new & ~found_new).sum()
    low, high = _interval(right, films, seed)
    spread = float(np.sqrt(float(n_new) * (n - n_new) * n_found * (n - n_found)))
    return Measured(
        n,
        float(right.mean()) if n else 0.0,
        low,
        high,
        float((hit / max(1, n_new) + clear / max(1, n - n_new)) / 2),
        float((hit * n - n_new * n_found) / spread) if spread else 0.0,
        float(2 * hit / max(1, n_new + n_found)),
        float(2 * clear / max(1, 2 * n - n_new - n_found)),
    )


def _interval(right: np.ndarray, films: np.ndarray, seed: int) -> tuple[float, float]:
    names, place = np.unique(films, return_inverse=True)
    if not len(names):
        return 0.0, 0.0
    n, n_right = np.bincount(place), np.bincount(place, weights=right)
    drawn = np.random.default_rng(seed).integers(0, len(names), (_N_RESAMPLES, len(names)))
    shares = n_right[drawn].sum(axis=1) / n[drawn].sum(axis=1)
    return float(np.quantile(shares, 0.025)), float(np.quantile(shares, 0.975))


def _sklearn() -> Any:
    try:
        import sklearn.linear_model
        import sklearn.svm
    except ImportError:
        raise MissingDependencyError(
            "training a segmenter needs scikit-learn: pip install 'empatheia[people]'"
        ) from None
    return sklearn


def _matrix(features: np.ndarray) -> Any:
    """One row a pair, one column a bucket."""
    from scipy.sparse import csr_matrix

    n, k = features.shape
    ones, rows = np.ones(n * k, np.float32), np.arange(0, n * k + 1, k)
    return csr_matrix((ones, features.ravel(), rows), shape=(n, 1 << BITS))


Fit = Callable[[np.ndarray, np.ndarray, float], tuple[np.ndarray, float]]


def _fit_svm(features: np.ndarray, is_new: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    model = _sklearn().svm.LinearSVC(C=penalty, random_state=0).fit(_matrix(features), is_new)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])


def _fit_logistic(features: np.ndarray, is_new: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
    model = _sklearn().linear_model.LogisticRegression(C=penalty, max_iter=500).fit(_matrix(features), is_new)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])


def folds_of(films: np.ndarray, n_folds: int, seed: int = 0) -> np.ndarray:
    """The fold of each pair; a film is in one. Shape: (n,)."""
    names, place = np.unique(films, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(names)) % n_folds)[place]


def cross_validated(
    pairs: LabelledPairs, fit: Fit, penalties: Sequence[float], columns: Sequence[int] | None = None
) -> np.ndarray:
    """The score of each pair by a model that has seen nothing of its film; the penalty is chosen without it, too.

    Returns:
        Above 0 speaks for a new turn. Shape: (n,).
    """
    features = pairs.features if columns is None else pairs.features[:, list(columns)]
    folds = folds_of(pairs.films, N_FOLDS)
    scores = np.zeros(len(pairs))
    for fold in range(N_FOLDS):
        seen = folds != fold
        penalty = _chosen(features[seen], pairs.is_new[seen], pairs.films[seen], fit, penalties)
        weights, bias = fit(features[seen], pairs.is_new[seen], penalty)
        scores[~seen] = weights[features[~seen]].sum(axis=1) + bias
    return scores


def _chosen(features: np.ndarray, is_new: np.ndarray, films: np.ndarray, fit: Fit, penalties: Sequence[float]) -> float:
    """The penalty of the best accuracy over inner folds; of equal ones the strongest."""
    if len(penalties) == 1:
        return penalties[0]
    folds = folds_of(films, _INNER, seed=1)
    n_right = []
    for penalty in penalties:
        right = 0
        for fold in range(_INNER):
            seen = folds != fold
            weights, bias = fit(features[seen], is_new[seen], penalty)
            right += int(((weights[features[~seen]].sum(axis=1) + bias > 0) == is_new[~seen]).sum())
        n_right.append(right)
    return penalties[int(np.argmax(n_right))]


def calibrated(scores: np.ndarray, is_new: np.ndarray) -> tuple[float, float]:
    """Slope and offset so that ``1 / (1 + exp(slope * score + offset))`` is the probability of the same turn."""
    model = _sklearn().linear_model.LogisticRegression(C=1e6).fit(scores[:, None], is_new)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def best_thresholds(probabilities: np.ndarray, is_new: np.ndarray) -> dict[str, float]:
    """From which probability of the same turn on: for ``accuracy``, and for ``balanced`` accuracy."""
    grid = np.linspace(0.05, 0.95, 181)
    same = ~is_new
    said = probabilities[:, None] >= grid  # (n, grid)
    hit = (said & same[:, None]).mean(axis=0) / same.mean()
    clear = (~said & ~same[:, None]).mean(axis=0) / (1 - same.mean())
    accuracy = hit * same.mean() + clear * (1 - same.mean())
    return {
        "accuracy": float(grid[int(np.argmax(accuracy))]),
        "balanced": float(grid[int(np.argmax(hit + clear))]),
    }


@dataclass(frozen=True, slots=True)
class Trained:
    """A segmenter and how it and its baselines do.

    Attributes:
        segmenter: Learnt from all films.
        rows: Unit (``cues``, ``sentences``, ``sentences across cues``) to system to scores, on films not learnt from.
    """

    segmenter: TurnSegmenter
    rows: dict[str, dict[str, Measured]]


def train(
    films: Sequence[LabelledFilm],
    extra: Sequence[LabelledFilm] = (),
    neural: Callable[[LabelledPairs], np.ndarray] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Trained:
    """Learns from films and measures on those left out.

    Args:
        films: With true speakers; measured on.
        extra: Learnt from too, never measured on (no film may be among both).
        neural: Gives cross-validated scores of another model, for comparison; see ``neural_pairs``.
        say: Told what is being done.

    Raises:
        DataError: There are too few films, or all pairs are of one kind.
        MissingDependencyError: scikit-learn is not installed.
    """
    if len(films) < _LEAST_FILMS:
        raise DataError(f"{len(films)} films with true speakers; accepted: {_LEAST_FILMS} or more, to hold some out.")
    cues, sentences = pairs_of(films), pairs_of(film.split() for film in films)
    both = joined(cues, sentences)
    if both.is_new.all() or not both.is_new.any():
        raise DataError("every pair is of one kind, so there is nothing to learn; check the speakers.")
    more = pairs_of(extra, first_film=len(films))
    say(f"{len(cues):,} pairs of cues and {len(sentences):,} of sentences in {len(films)} films; {len(more):,} more")
    scores, chosen = _scores(both, more)
    n = len(cues)
    slope, offset = calibrated(scores, both.is_new)
    probability = 1 / (1 + np.exp(slope * scores + offset))
    timing = [SLOTS.index(name) for family in FAMILIES.values() for name in family]
    say("baselines")
    logistic = cross_validated(both, _fit_logistic, (0.1,), timing)
    found = {"svm": scores > 0, "logistic, timing and punctuation": logistic > 0}
    if neural is not None:
        say("the neural model")
        found["neural"] = neural(both) > 0
    found |= {name: ~same for name, same in both.rules.items()}
    parts = {
        "cues": np.arange(len(both)) < n,
        "sentences": np.arange(len(both)) >= n,
        "sentences across cues": (np.arange(len(both)) >= n) & both.crosses,
    }
    rows = {
        unit: {name: measure(both.is_new[part], new[part], both.films[part]) for name, new in found.items()}
        for unit, part in parts.items()
    }
    say("the segmenter, from all films")
    weights, bias = _fit_svm(*_stacked(both, more), chosen)
    thresholds = best_thresholds(probability[~parts["cues"]], both.is_new[~parts["cues"]])
    facts = {
        "films": len(films),
        "pairs": {"cues": n, "sentences": len(sentences), "extra": len(more)},
        "penalty": chosen,
        "thresholds": thresholds,
        "folds": N_FOLDS,
        "held_out": {unit: {name: one.record() for name, one in row.items()} for unit, row in rows.items()},
    }
    return Trained(TurnSegmenter("svm", weights, bias, slope, offset, 0.5, facts), rows)


def _scores(both: LabelledPairs, more: LabelledPairs) -> tuple[np.ndarray, float]:
    """Cross-validated scores of the films, and the penalty for all."""

    def fit(features: np.ndarray, is_new: np.ndarray, penalty: float) -> tuple[np.ndarray, float]:
        return _fit_svm(np.concatenate([features, more.features]), np.concatenate([is_new, more.is_new]), penalty)

    scores = cross_validated(both, fit, PENALTIES)
    return scores, _chosen(both.features, both.is_new, both.films, fit, PENALTIES)


def _stacked(both: LabelledPairs, more: LabelledPairs) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([both.features, more.features]), np.concatenate([both.is_new, more.is_new])
