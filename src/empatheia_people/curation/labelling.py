"""Emotions of utterances by any installed classifier, and how emotional a dialogue is (MEED2, section 3.1).

With the 41 emotions and intents an utterance's emotionality is the probability of the 32 emotions, and a dialogue's the
mean over its utterances. A model of the 32 emotions alone gives them all the probability, so there the probability of
the likeliest stands in its place; which of the two it was is written with the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from empatheia.errors import CheckpointError, ConfigError, MissingDependencyError
from empatheia.reading import read_record
from empatheia.resources import resolve_model
from empatheia.taxonomy import EMOTIONS
from empatheia_people.curation.settings import LabelSettings

DECIMALS = 6
"""Digits of probabilities that are kept; with double precision they depend on the utterance alone."""
BY_MASS, BY_PEAK = "probability of the emotions", "probability of the likeliest emotion"


class Labeller(Protocol):
    """Gives each text a distribution.

    Attributes:
        name: For records.
        labels: Names by index.
    """

    name: str
    labels: tuple[str, ...]

    def probabilities(self, texts: Sequence[str], batch_size: int) -> np.ndarray:
        """Shape: (n_texts, n_labels), rows sum to 1."""
        ...


class ByClassifier:
    """A text classifier's folder.

    Args:
        folder: Of the model.
        exact: Double precision.
        engine: ``torch`` or ``onnx``.
    """

    def __init__(self, folder: Path, exact: bool, engine: str) -> None:
        from empatheia_research.understanding.labels.classifier import TextClassifier

        self._classifier = TextClassifier.load(folder)
        if engine == "onnx":
            from empatheia_research.understanding.labels.onnx_inference import on_onnx

            self._classifier = on_onnx(self._classifier)
        elif exact:
            self._classifier.model.double()
        self.name, self.labels = self._classifier.name, self._classifier.labels

    def probabilities(self, texts: Sequence[str], batch_size: int) -> np.ndarray:
        """See :class:`Labeller`."""
        return self._classifier.classify_texts(texts, batch_size=batch_size)


class ByListener:
    """A listener that perceives emotions, such as the bundled ones.

    Args:
        folder: Of the model.
        exact: Double precision.
    """

    def __init__(self, folder: Path, exact: bool) -> None:
        from empatheia.listener import Listener

        self._listener: Any = Listener.load(folder)
        if exact:
            self._listener.network.double()
        self.name, self.labels = self._listener.name, EMOTIONS

    def probabilities(self, texts: Sequence[str], batch_size: int) -> np.ndarray:
        """See :class:`Labeller`."""
        found = self._listener.analyze(list(texts), batch_size=batch_size)
        return np.array([[one.newest.emotions[name] for name in EMOTIONS] for one in found]).reshape(-1, len(EMOTIONS))


def engine_of(label: LabelSettings) -> str:
    """What the network runs on: ``onnx`` where it is installed and fits, else ``torch``.

    Raises:
        ConfigError: ``onnx`` was asked for and does not fit.
        MissingDependencyError: It was asked for and is not installed.
        MissingResourceError: The classifier is not here.
    """
    if label.classifier is None or label.engine == "torch":
        return "torch"
    if label.engine == "onnx" and label.exact:
        raise ConfigError("label.engine is onnx, which has single precision only; set label.exact=false as well.")
    from empatheia_research.understanding.labels.onnx_inference import is_installed

    fits = _kind_of(resolve_model(label.classifier)) == "utterance_classifier"
    if label.engine == "onnx":
        if not fits:
            raise ConfigError(
                f"label.engine is onnx, which runs classifiers of text on an encoder; {label.classifier!r} is another"
                " model. Leave label.engine out."
            )
        if not is_installed():
            raise MissingDependencyError("label.engine onnx needs ONNX Runtime: pip install 'empatheia[onnx]'")
    return "onnx" if fits and not label.exact and is_installed() else "torch"


def _kind_of(folder: Path) -> str | None:
    try:
        return read_record(folder / "config.json").get("model_type")
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=1)
def load_labeller(place: str, exact: bool, engine: str = "torch") -> Labeller:
    """A model, loaded once in each process, on one thread.

    Args:
        place: Name or folder.
        exact: Double precision.
        engine: What :func:`engine_of` gave.

    Raises:
        MissingResourceError: It is not here.
        CheckpointError: It names no emotions.
    """
    import torch

    torch.set_num_threads(1)
    folder = resolve_model(place)
    from empatheia_research.understanding.labels.classifier import SYSTEMS

    is_classifier = _kind_of(folder) in SYSTEMS
    labeller: Labeller = ByClassifier(folder, exact, engine) if is_classifier else ByListener(folder, exact)
    if not set(EMOTIONS) & set(labeller.labels):
        raise CheckpointError(
            f"{place!r} has none of the 32 emotions among its labels ({', '.join(labeller.labels[:5])} ...)."
            " Name a classifier of 41 or 32 labels: `empatheia models train intent` makes one."
        )
    return labeller


def emotionality(probabilities: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """How emotional each utterance is, in [0, 1].

    Args:
        probabilities: Shape: (n, n_labels).
        labels: Names of the columns.

    Returns:
        Shape: (n,), float64.

    >>> p = dict(joyful=0.5, sad=0.2, questioning=0.2, neutral=0.1)
    >>> float(emotionality(np.array([list(p.values())]), list(p)).round(6)[0])
    0.7
    """
    emotions = np.array([name in EMOTIONS for name in labels])
    values = np.asarray(probabilities, np.float64)
    return values[:, emotions].sum(axis=1) if measure_of(labels) == BY_MASS else values.max(axis=1)


def measure_of(labels: Sequence[str]) -> str:
    """What stands for emotionality with these labels."""
    return BY_MASS if set(labels) - set(EMOTIONS) else BY_PEAK


def turn_weights(n: int, kind: str = "even") -> list[float]:
    """How much each utterance of a dialogue counts; they sum to 1.

    Args:
        n: Utterances.
        kind: ``even``, as MEED2; ``recent``: each counts twice the one before it, as in the classifier of dialogues of
            the other EDOS (Welivita, Xie and Pu 2021).

    >>> turn_weights(2, "recent") == [1 / 3, 2 / 3]
    True
    """
    return [1 / n] * n if kind == "even" else [2**i / (2**n - 1) for i in range(n)]


def mean_emotionality(values: Sequence[float], kind: str = "even") -> float:
    """Of a dialogue: the mean over its utterances, added in their order, in double precision.

    >>> mean_emotionality([0.7, 0.0]), round(mean_emotionality([0.7, 0.0, 0.5]), 6)
    (0.35, 0.4)
    >>> round(mean_emotionality([0.3, 0.9], "recent"), 6)
    0.7
    """
    total = 0.0
    if kind == "even":
        for value in values:
            total += float(value)
        return total / len(values)
    for value, weight in zip(values, turn_weights(len(values), kind), strict=True):
        total += float(value) * weight
    return total
