"""Was the right emotion named, and how sure was the model: accuracy, precision/recall/F1, calibration.

Sources of the variants: top-1 of 32 emotions in percent (Gao et al. 2021, section 4.2), mean over batches
(released code of Gao et al. and of the MoEL family), support-weighted P/R/F1 (Xie & Pu 2021, table 4), macro
F1 (EPITOME).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.base import Metric, check_same_length
from empatheia.metrics.score import references_hash

Label = Hashable


def confusion(predicted: Sequence[Label], gold: Sequence[Label], labels: Sequence[Label]) -> np.ndarray:
    """Counts of (gold, predicted) pairs.

    Returns:
        int64. Shape: (n_labels, n_labels); the row is the gold label, the column the predicted one.

    Raises:
        DataError: The numbers differ or a label is not in ``labels``.

    Example:
        >>> confusion(["b", "b"], ["a", "b"], labels=["a", "b"]).tolist()
        [[0, 1], [0, 1]]
    """
    check_same_length("confusion", predicted=predicted, gold=gold)
    rows, columns = label_indices("confusion", gold, labels), label_indices("confusion", predicted, labels)
    n = len(labels)
    return np.bincount(rows * n + columns, minlength=n * n).reshape(n, n)


def label_indices(metric: str, values: Sequence[Label] | np.ndarray, labels: Sequence[Label]) -> np.ndarray:
    """Position of each value in ``labels``; raises DataError for a value that is not there."""
    index = {label: i for i, label in enumerate(labels)}
    try:
        return np.array([index[_plain(value)] for value in values], dtype=np.int64)
    except KeyError as error:
        shown = ", ".join(map(str, labels[:8])) + (" ..." if len(labels) > 8 else "")
        raise DataError(f"{metric}: label {error.args[0]!r} is not one of the {len(labels)} known: {shown}.") from None


def _plain(value: Label) -> Label:
    return value.item() if isinstance(value, np.generic) else value


class Accuracy(Metric):
    """Share of items whose gold label is among the k best: 0 to 100 percent, higher is better.

    Args:
        top_k: How many guesses count. With 1, ``update`` takes the predicted label; with more, a ranking.

    Example:
        >>> metric = Accuracy()
        >>> metric.update(["sad", "angry"], ["sad", "afraid"])
        >>> metric.compute().value
        50.0
    """

    unit = "percent"
    reads = ("predicted", "emotion")
    columns = ("correct", "n_items")

    def __init__(self, top_k: int = 1) -> None:
        super().__init__()
        if top_k < 1:
            raise ConfigError(f"top_k is {top_k}; accepted: 1 or more.")
        self.top_k = top_k
        self.name = "accuracy" if top_k == 1 else f"accuracy_top{top_k}"

    def update(
        self, predicted: Sequence[Label] | Sequence[Sequence[Label]] | np.ndarray, gold: Sequence[Label] | np.ndarray
    ) -> None:
        """Adds items.

        Args:
            predicted: One label for each item, or, when ``top_k`` > 1, one ranking for each item, best first.
                A float array of shape (n_items, n_labels) is read as scores of the labels 0..n_labels-1.
            gold: One label for each item.

        Raises:
            DataError: The numbers differ, or a ranking has fewer than ``top_k`` labels.
        """
        check_same_length(self.name, predicted=predicted, gold=gold)
        self._append([[hit, 1] for hit in self._hits(predicted, gold)], references=map(_plain, gold))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent correct."""
        return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """Number of guesses."""
        return {"top": self.top_k}

    def _hits(self, predicted: Sequence[Any] | np.ndarray, gold: Sequence[Label] | np.ndarray) -> list[bool]:
        if isinstance(predicted, np.ndarray) and predicted.ndim == 2 and predicted.dtype.kind == "f":
            predicted = np.argsort(-predicted, axis=1, kind="stable")
            predicted = predicted[:, 0] if self.top_k == 1 else predicted
        if self.top_k == 1:
            return [bool(p == g) for p, g in zip(predicted, gold, strict=True)]
        hits = []
        for i, (ranking, label) in enumerate(zip(predicted, gold, strict=True)):
            if isinstance(ranking, str) or not hasattr(ranking, "__len__") or len(ranking) < self.top_k:
                raise DataError(f"{self.name}: item {i} is {ranking!r}; accepted: {self.top_k} or more ranked labels.")
            hits.append(any(guess == label for guess in ranking[: self.top_k]))
        return hits


class BatchMeanAccuracy(Accuracy):
    """Unweighted mean of the accuracies of batches: 0 to 100 percent, higher is better.

    What the released code of Gao et al. and of the MoEL family prints. A short last batch weighs as much as a
    full one, so the number depends on the batch size: every call of ``update`` is one batch, and ``n`` counts
    batches.

    Example:
        >>> metric = BatchMeanAccuracy()
        >>> metric.update([1, 1, 1], [1, 1, 0])
        >>> metric.update([1], [0])
        >>> round(metric.compute().value, 2)
        33.33
    """

    columns = ("accuracy", "n_batches", "n_items")

    def __init__(self) -> None:
        super().__init__()
        self.name = "accuracy_batch_mean"

    def update(
        self, predicted: Sequence[Label] | Sequence[Sequence[Label]] | np.ndarray, gold: Sequence[Label] | np.ndarray
    ) -> None:
        """Adds one batch of labels; see ``Accuracy.update``. An empty batch adds nothing."""
        if check_same_length(self.name, predicted=predicted, gold=gold):
            hits = self._hits(predicted, gold)
            self._append([[sum(hits) / len(hits), 1, len(hits)]], references=map(_plain, gold))


class F1(Metric):
    """Precision, recall or F1 over several classes: 0 to 1 or 0 to 100, higher is better.

    Of one class: P = tp / predicted, R = tp / gold, F1 = 2 tp / (predicted + gold). ``macro`` is their plain
    mean over the classes that occur in the gold or predicted labels; ``weighted`` weighs by gold count, so
    weighted recall equals accuracy. A class that occurs but was never predicted has precision 0 (as in
    scikit-learn); the part ``n_never_predicted`` counts such classes.

    Args:
        labels: All classes, in order; a number n stands for 0..n-1 (by default the 32 emotions by index).
        average: ``macro``, ``weighted``, or ``class`` for the single class ``of``.
        of: The class, when ``average`` is ``class``.
        report: Which of the three is the value; the others are among the parts.
        unit: ``percent`` or ``fraction``.

    Example:
        >>> metric = F1(labels=[0, 1], average="macro", unit="fraction")
        >>> metric.update([1, 1, 0], [1, 0, 0])
        >>> round(metric.compute().value, 4)
        0.6667
    """

    reads = ("predicted", "emotion")

    def __init__(
        self,
        labels: Sequence[Label] | int = 32,
        average: Literal["macro", "weighted", "class"] = "macro",
        of: Label = None,
        report: Literal["f1", "precision", "recall"] = "f1",
        unit: Literal["percent", "fraction"] = "percent",
    ) -> None:
        super().__init__()
        labels = range(labels) if isinstance(labels, int) else labels
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise ConfigError(f"labels are {list(labels)!r}; accepted: two or more different labels.")
        if average not in ("macro", "weighted", "class") or (average == "class" and of not in labels):
            raise ConfigError(
                f"average is {average!r} of {of!r}; accepted: macro, weighted, or class with a label as `of`."
            )
        if report not in ("f1", "precision", "recall"):
            raise ConfigError(f"unknown report {report!r}; accepted: f1, precision, recall.")
        self.labels, self.average, self.of, self.report, self.unit = list(labels), average, of, report, unit
        self.scale = 100.0 if unit == "percent" else 1.0
        self.name = f"{report}_{average if average != 'class' else f'class_{of}'}"
        self.columns = tuple(f"{kind}:{label}" for kind in ("tp", "predicted", "gold") for label in labels)

    def update(self, predicted: Sequence[Label] | np.ndarray, gold: Sequence[Label] | np.ndarray) -> None:
        """Adds items, one predicted and one gold label each.

        Raises:
            DataError: The numbers differ or a label is unknown.
        """
        check_same_length(self.name, predicted=predicted, gold=gold)
        guess = label_indices(self.name, predicted, self.labels)
        truth = label_indices(self.name, gold, self.labels)
        one_hot = np.eye(len(self.labels))
        said, true = one_hot[guess], one_hot[truth]
        self._append(np.concatenate([said * true, said, true], axis=1), references=map(_plain, gold))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The averaged score in the metric's unit."""
        return self.scale * self._average(sums)[self.report]

    def settings(self) -> Mapping[str, object]:
        """Averaging and a fingerprint of the label set."""
        of = self.labels.index(self.of) if self.average == "class" else None
        average = self.average if of is None else f"class-{of}"
        return {"average": average, "report": self.report, "labels": references_hash(enumerate(self.labels))}

    def parts_of(self, sums: np.ndarray) -> dict[str, float]:
        """The three averages, F1 of each class, gold items of each class."""
        _, predicted, gold = np.split(sums, 3)
        parts: dict[str, float] = {key: self.scale * float(x) for key, x in self._average(sums).items()}
        for label, f1, count in zip(self.labels, self._by_class(sums)["f1"], gold, strict=True):
            parts[f"f1:{label}"], parts[f"gold:{label}"] = self.scale * float(f1), int(count)
        return {**parts, "n_never_predicted": int(((predicted == 0) & (gold > 0)).sum())}

    def note_of(self, sums: np.ndarray) -> str:
        """The class does not occur."""
        return f"class {self.of!r} is neither among the gold nor among the predicted labels"

    def _by_class(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        tp, predicted, gold = np.split(sums, 3, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            occurs = np.where(predicted + gold > 0, 0.0, np.nan)
            return {
                "precision": np.where(predicted > 0, tp / predicted, occurs),
                "recall": np.where(gold > 0, tp / gold, occurs),
                "f1": 2 * tp / (predicted + gold),
            }

    def _average(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        by_class, gold = self._by_class(sums), np.split(sums, 3, axis=-1)[2]
        if self.average == "class":
            at = self.labels.index(self.of)
            return {key: values[..., at] for key, values in by_class.items()}
        weights = gold if self.average == "weighted" else np.ones_like(gold)
        out = {}
        for key, values in by_class.items():
            counted = np.where(np.isnan(values), 0.0, weights)
            with np.errstate(divide="ignore", invalid="ignore"):
                out[key] = (np.nan_to_num(values) * counted).sum(axis=-1) / counted.sum(axis=-1)
        return out


class Confusion(Metric):
    """Which label is taken for which: the whole table as a part, the accuracy in percent as the value.

    Parts: ``matrix`` (rows gold, columns predicted, counts), ``labels``, and ``most_confused``, up to ten
    (gold, predicted, count) of different labels, most frequent first.

    Args:
        labels: All classes, in order; a number n stands for 0..n-1.

    Raises:
        ConfigError: Fewer than two different labels.

    Example:
        >>> metric = Confusion(["sad", "angry"])
        >>> metric.update(["sad", "angry", "angry"], ["sad", "sad", "angry"])
        >>> metric.compute().parts["matrix"]
        [[1, 1], [0, 1]]
    """

    name = "confusion"
    unit = "percent"
    reads = ("predicted", "emotion")
    columns = ("correct", "n_items", "gold", "predicted")  # of the last two only the rows mean something

    def __init__(self, labels: Sequence[Label] | int = 32) -> None:
        super().__init__()
        self.labels = list(range(labels)) if isinstance(labels, int) else list(labels)
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
            raise ConfigError(f"labels are {self.labels!r}; accepted: two or more different labels.")

    def update(self, predicted: Sequence[Label] | np.ndarray, gold: Sequence[Label] | np.ndarray) -> None:
        """Adds items, one predicted and one gold label each.

        Raises:
            DataError: The numbers differ or a label is unknown.
        """
        n = check_same_length(self.name, predicted=predicted, gold=gold)
        guess = label_indices(self.name, predicted, self.labels)
        truth = label_indices(self.name, gold, self.labels)
        self._append(np.column_stack([guess == truth, np.ones(n), truth, guess]), references=map(_plain, gold))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """Percent correct."""
        return 100 * sums[..., 0] / sums[..., 1]

    def settings(self) -> Mapping[str, object]:
        """A fingerprint of the label set."""
        return {"labels": references_hash(enumerate(self.labels))}

    def parts_of(self, sums: np.ndarray) -> dict[str, object]:
        """The table and its largest cells off the diagonal."""
        n = len(self.labels)
        truth, guess = self.statistics()[:, 2:].astype(np.int64).T
        matrix = np.bincount(truth * n + guess, minlength=n * n).reshape(n, n)
        errors = matrix.copy()
        np.fill_diagonal(errors, 0)
        largest = [divmod(int(cell), n) for cell in np.argsort(-errors.ravel(), kind="stable")[:10]]
        worst = [[self.labels[g], self.labels[p], int(errors[g, p])] for g, p in largest if errors[g, p]]
        return {"matrix": matrix.tolist(), "labels": self.labels, "most_confused": worst}


class CalibrationError(Metric):
    """Expected calibration error (Guo et al. 2017, equation 3): 0 to 1, lower is better.

    Predictions are sorted into bins of equal width by confidence; the error is the mean over items of
    |accuracy of the bin - mean confidence of the bin|. Small samples overestimate it, and the bootstrap
    interval inherits that.

    Args:
        n_bins: Number of bins over (0, 1].

    Example:
        >>> metric = CalibrationError(n_bins=10)
        >>> metric.update(confidences=[0.95, 0.95], correct=[True, False])
        >>> round(metric.compute().value, 2)
        0.45
    """

    name = "calibration_error"
    unit = "fraction"
    higher_is_better = False

    def __init__(self, n_bins: int = 15) -> None:
        super().__init__()
        if n_bins < 1:
            raise ConfigError(f"n_bins is {n_bins}; accepted: 1 or more, 15 is usual.")
        self.n_bins = n_bins
        self.columns = tuple(f"{kind}_{b}" for kind in ("confidence", "correct", "n") for b in range(n_bins))

    def update(self, confidences: Sequence[float] | np.ndarray, correct: Sequence[int] | np.ndarray) -> None:
        """Adds items.

        Args:
            confidences: Probability the model gave to its own guess, in [0, 1]. Or the probabilities of all
                labels, shape (n_items, n_labels).
            correct: Whether the guess was right. Or, with the probabilities of all labels, the gold index.

        Raises:
            DataError: The numbers differ or a confidence is no probability.
        """
        n = check_same_length(self.name, confidences=confidences, correct=correct)
        given = np.asarray(confidences, dtype=np.float64)
        if given.ndim == 2:
            correct = given.argmax(axis=1) == np.asarray(correct)
            given = given.max(axis=1, initial=0.0)
        wrong = np.flatnonzero(~((given >= 0) & (given <= 1 + 1e-6)))
        if len(wrong):
            raise DataError(f"{self.name}: confidence of item {wrong[0]} is {given[wrong[0]]}; accepted: 0 to 1.")
        bins = np.clip(np.ceil(given * self.n_bins).astype(int) - 1, 0, self.n_bins - 1)
        rows = np.zeros((n, 3, self.n_bins))
        rows[np.arange(n), :, bins] = np.stack([given, np.asarray(correct, dtype=float), np.ones(n)], axis=1)
        self._append(rows.reshape(n, 3 * self.n_bins))

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The error as a fraction."""
        confidence, correct, n = np.split(sums, 3, axis=-1)
        return np.abs(confidence - correct).sum(axis=-1) / n.sum(axis=-1)

    def settings(self) -> Mapping[str, object]:
        """Number of bins."""
        return {"bins": self.n_bins}


accuracy_top3, accuracy_top5 = partial(Accuracy, 3), partial(Accuracy, 5)
f1_macro, f1_weighted = partial(F1, average="macro"), partial(F1, average="weighted")
precision_weighted = partial(F1, average="weighted", report="precision")
recall_weighted = partial(F1, average="weighted", report="recall")
