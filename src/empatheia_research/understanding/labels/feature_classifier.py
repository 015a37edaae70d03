"""A linear layer on the features of a frozen encoder, read from a file: how DeepMoji and its like take part.

Rashkin et al. (2019), table 9, row ``DeepMoji last``: everything is frozen but the last layer. Whoever has such an
encoder writes one vector an item (DeepMoji: 2,304 numbers) into a ``.safetensors`` or ``.npz`` file with one array a
split; this module learns labels from them. The encoder itself is never loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from empatheia.errors import DataError, MissingResourceError
from empatheia.reading import read_arrays
from empatheia_research.layers.aligned import AlignedModel
from empatheia_research.understanding.heads import POSITIVE, RATE, Check, FieldsConfig, Heads, LabelOutput, at_least
from empatheia_research.understanding.labels.classifier import Row, Text, label_tensor, read_model

SUFFIXES = (".safetensors", ".npz")


def read_features(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of a feature file.

    Args:
        path: ``.safetensors`` or ``.npz``; one array a split, row i = item i in the order of the loader.

    Returns:
        Split to float32. Shape of each: (n_items, width), the same width everywhere.

    Raises:
        MissingResourceError: There is no such file.
        DataError: It cannot be read, or an array is no matrix of finite numbers, or widths differ.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise DataError(f"{path}: unknown kind of feature file {path.suffix!r}; accepted: {', '.join(SUFFIXES)}.")
    if not path.is_file():
        raise MissingResourceError(
            f"no feature file {str(path)!r}. Run your encoder over the texts and write one array a split with"
            " empatheia_research.understanding.labels.feature_classifier.write_features."
        )
    try:
        if path.suffix == ".npz":
            arrays: dict[str, np.ndarray] = read_arrays(path)
        else:
            arrays = load_file(path)
    except (OSError, ValueError, KeyError, SafetensorError) as problem:
        raise DataError(f"{path}: cannot read features: {' '.join(str(problem).split())[:200]}") from None
    for name, array in arrays.items():
        if array.ndim != 2 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise DataError(
                f"{path}: array {name!r} has shape {array.shape} and type {array.dtype}; accepted: finite numbers of"
                " shape (n_items, width)."
            )
    widths = {name: array.shape[1] for name, array in arrays.items()}
    if len(set(widths.values())) != 1:
        raise DataError(f"{path}: widths are {widths or 'none'}; accepted: one or more arrays of the same width.")
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def write_features(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes what :func:`read_features` reads.

    Raises:
        DataError: The suffix is another one.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise DataError(f"{path}: unknown kind of feature file {path.suffix!r}; accepted: {', '.join(SUFFIXES)}.")
    part = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        if path.suffix == ".npz":
            named: Any = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
            np.savez(part, **named)
        else:
            save_file({name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class FeatureClassifierConfig(FieldsConfig):
    """The linear layer.

    Attributes:
        width: Of the features (DeepMoji: 2,304).
        encoder_name: Which encoder made the features, for the record.
        dropout: On the features, in [0, 1).
        label_weights: Factor of each label in the loss; None = all 1.
        softmax_temperature: Logits are divided by it; above 0.
    """

    model_type = "feature_classifier"
    width: int = 2304
    encoder_name: str = ""
    dropout: float = 0.0
    label_weights: list[float] | None = None
    softmax_temperature: float = 1.0
    checks: ClassVar[Mapping[str, Check]] = {"width": at_least(1), "dropout": RATE, "softmax_temperature": POSITIVE}


class FeatureClassifier(AlignedModel, Heads):
    """``softmax((W features + b) / temperature)``.

    Args:
        config: Sizes and labels.
    """

    config_class = FeatureClassifierConfig
    main_input_name = "features"
    accepts_loss_kwargs = False
    features: ClassVar[tuple[str, ...]] = ("features", "labels")
    config: FeatureClassifierConfig

    def __init__(self, config: FeatureClassifierConfig) -> None:
        super().__init__(config)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.width, int(config.num_labels or 2))
        self.post_init()

    @classmethod
    def open(cls, folder: str | Path) -> tuple[FeatureClassifier, FeatureReader]:
        """A trained model and its reader from the folder training saved.

        Raises:
            CheckpointError: Weights are missing.
        """
        return read_model(cls, folder), FeatureReader()

    def forward(self, features: Tensor, labels: Tensor | None = None, return_dict: bool | None = None) -> LabelOutput:
        """Scores the labels.

        Args:
            features: Shape: (batch, width).
            labels: Class indices, -100 = not supervised. Shape: (batch,), int64.
            return_dict: Accepted for the Trainer; the answer is always a ``LabelOutput``.
        """
        logits = self.head(self.dropout(features)) / self.config.softmax_temperature  # (batch, n_labels)
        return LabelOutput(logits=logits, **self.learn({"label": logits}, {"labels": labels}))


class FeatureReader:
    """Rows of features to batches; it cannot read text."""

    def encode(self, texts: Sequence[Text]) -> list[Row]:
        """Refuses: the encoder is not part of this package.

        Raises:
            DataError: Always.
        """
        raise DataError(
            "feature_classifier reads features, not text: give classify_rows() rows made with rows_of(features)."
        )

    @staticmethod
    def rows_of(features: np.ndarray) -> list[Row]:
        """One row a vector. Shape of ``features``: (n_items, width)."""
        return [{"features": vector} for vector in np.asarray(features, dtype=np.float32)]

    def collate(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        """A batch. Shapes: (batch, width), and (batch,) for ``labels``."""
        return {"features": torch.from_numpy(np.stack([row["features"] for row in rows]))} | label_tensor(rows)

    def save(self, folder: Path) -> None:
        """Nothing beside the weights."""


AutoConfig.register(FeatureClassifierConfig.model_type, FeatureClassifierConfig, exist_ok=True)
AutoModel.register(FeatureClassifierConfig, FeatureClassifier, exist_ok=True)
