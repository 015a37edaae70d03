"""Frozen features from a file: both kinds of file, their faults, and the linear layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.taxonomy import EMOTIONS
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.labels.classifier import classify_rows
from empatheia_research.understanding.labels.feature_classifier import (
    FeatureClassifier,
    FeatureClassifierConfig,
    FeatureReader,
    read_features,
    write_features,
)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_written_and_read(tmp_path, suffix):
    arrays = {"train": np.arange(12).reshape(4, 3), "test": np.ones((2, 3), dtype=np.float64)}
    write_features(tmp_path / f"f{suffix}", arrays)
    found = read_features(tmp_path / f"f{suffix}")
    assert set(found) == set(arrays)
    assert all(np.array_equal(found[k], arrays[k]) and found[k].dtype == np.float32 for k in arrays)


def test_files_that_cannot_be(tmp_path):
    with pytest.raises(MissingResourceError, match="no feature file"):
        read_features(tmp_path / "none.npz")
    for kind in (read_features, lambda path: write_features(path, {})):
        with pytest.raises(DataError, match=r"unknown kind of feature file '\.csv'; accepted: \.safetensors, \.npz"):
            kind(tmp_path / "f.csv")
    (tmp_path / "broken.safetensors").write_bytes(b"not at all")
    with pytest.raises(DataError, match="cannot read features"):
        read_features(tmp_path / "broken.safetensors")
    for arrays, message in (
        ({"train": np.ones(3)}, r"array 'train' has shape \(3,\)"),
        ({"train": np.full((2, 2), np.nan)}, "finite numbers"),
        ({"train": np.ones((2, 3)), "test": np.ones((2, 4))}, "widths are {'train': 3, 'test': 4}"),
    ):
        write_features(tmp_path / "bad.npz", arrays)
        with pytest.raises(DataError, match=message):
            read_features(tmp_path / "bad.npz")


def test_a_linear_layer_over_the_features(tmp_path):
    torch.manual_seed(0)
    model = FeatureClassifier(FeatureClassifierConfig(width=5, labels=EMOTIONS, softmax_temperature=2.0)).eval()
    features = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    rows = FeatureReader.rows_of(features)
    expected = (torch.from_numpy(features) @ model.head.weight.T + model.head.bias).div(2).softmax(-1)
    found = classify_rows(model, FeatureReader(), rows, batch_size=2)
    assert np.allclose(found, expected.detach().numpy(), atol=1e-6)
    model.save_pretrained(tmp_path)
    opened, reader = FeatureClassifier.open(tmp_path)
    assert np.array_equal(classify_rows(opened, reader, rows, batch_size=2), found)
    with pytest.raises(DataError, match="reads features, not text"):
        reader.encode(["cake"])


def test_settings_that_cannot_be():
    with pytest.raises(ConfigError, match="width is 0; accepted: 1 or more"):
        FeatureClassifierConfig(width=0, labels=EMOTIONS)
    assert UNDERSTANDERS.get("feature_classifier") is FeatureClassifier
