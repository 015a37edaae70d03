"""Weights that are not numbers, and files of different models, are refused by name where they are loaded."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

sys.path.insert(0, str(Path(__file__).parent / "understanding"))

from tiny_classifiers import encoder_classifier, linear_classifier, save

from empatheia.care.classifier import WEIGHTS as CARE
from empatheia.care.classifier import LinearClassifier
from empatheia.care.word_vectors import WORDS, WordVectors
from empatheia.errors import CheckpointError
from empatheia.listener.listener import Listener
from empatheia.resources.arrays import load_described
from empatheia.resources.catalogue import bundled_root
from empatheia_people.curation.segmenter import TurnSegmenter
from empatheia_research.pretrained import load_weights
from empatheia_research.understanding.affect.reader import AffectReader
from empatheia_research.understanding.labels.classifier import TextClassifier

NOT_NUMBERS = [np.nan, np.inf, -np.inf]


def spoil(path, value, name=None):
    """Puts one value into one array of a file of weights."""
    arrays, told = load_described(path)
    chosen = name or next(name for name, array in arrays.items() if array.dtype.kind == "f" and array.size)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    arrays[chosen].flat[-1] = value
    save_file(arrays, path, told)
    return chosen


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_a_responder_whose_weights_are_not_numbers(tiny_copy, value):
    """It answered "afraid" to everything, in JSON that was none."""
    name = spoil(tiny_copy / "model.safetensors", value)
    with pytest.raises(CheckpointError, match=rf"1 of \d+ arrays hold NaN or infinite numbers, first '{name}'"):
        Listener.load(tiny_copy)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn])
def test_every_kind_of_number_is_looked_at(tmp_path, dtype):
    path = tmp_path / "x.safetensors"
    fine = {"whole": torch.arange(3), "none": torch.zeros(0), "w": torch.ones(9).to(dtype)}
    save_tensors(fine, path)
    assert load_weights(path).keys() == fine.keys()
    save_tensors({**fine, "w": torch.full((9,), torch.nan).to(dtype)}, path)
    with pytest.raises(CheckpointError, match=r"x.safetensors: 1 of 3 arrays hold NaN .*first 'w'"):
        load_weights(path)


@pytest.mark.parametrize("kind", ["care", "words", "segmenter", "listener", "classifier"])
def test_every_loader_looks(tmp_path, kind, request):
    if kind == "care":
        shutil.copy(CARE, place := tmp_path / "c.safetensors")
        load, file = lambda: LinearClassifier.load(place), place
    elif kind == "words":
        shutil.copy(WORDS, place := tmp_path / "w.safetensors")
        load, file = lambda: WordVectors.load(place), place
    elif kind == "segmenter":
        TurnSegmenter.load().save(tmp_path)
        load, file = lambda: TurnSegmenter.load(tmp_path), next(tmp_path.glob("*.safetensors"))
    elif kind == "listener":
        request.getfixturevalue("sentence_encoder")
        shutil.copytree(bundled_root() / "listener_as_trained", tmp_path, dirs_exist_ok=True)
        load, file = lambda: AffectReader.open(tmp_path), tmp_path / "adapter.safetensors"
    else:
        save(linear_classifier(), tmp_path)
        load, file = lambda: TextClassifier.load(tmp_path), tmp_path / "model.safetensors"
    load()
    name = spoil(file, np.nan)
    with pytest.raises(CheckpointError, match=rf"hold NaN or infinite numbers, first '{name}'"):
        load()


def test_weights_too_large_to_compute_with(tmp_path, tiny_copy):
    """They are numbers, and nothing that comes of them is."""
    save(linear_classifier(), tmp_path)
    arrays, told = load_described(tmp_path / "model.safetensors")
    save_file({name: np.full_like(array, 3e38) for name, array in arrays.items()}, tmp_path / "model.safetensors", told)
    with pytest.raises(CheckpointError, match=r"what the model .* computes: 1 of 1 arrays hold NaN"):
        TextClassifier.load(tmp_path)
    name = next(
        name for name in load_weights(tiny_copy / "model.safetensors") if name.endswith("reasoner.emotion.weight")
    )
    spoil(tiny_copy / "model.safetensors", 3e38, name)
    listener = Listener.load(tiny_copy)
    listener.network.encoder.reasoner.emotion.weight.data.mul_(1e5)
    with pytest.raises(CheckpointError, match=r"what the model 'tiny' computes: 1 of 1 arrays hold NaN"):
        listener.analyze("I lost my keys.")


def test_a_tokenizer_with_more_pieces_than_rows(tmp_path):
    """An index that is not there was an IndexError at the first text with such a piece."""
    save(encoder_classifier(), tmp_path)
    text = json.loads((tmp_path / "tokenizer.json").read_text())
    pieces = text["model"]["vocab"]
    pieces["zebra"] = len(pieces)
    (tmp_path / "tokenizer.json").write_text(json.dumps(text))
    with pytest.raises(CheckpointError, match=r"vocabulary in .* has \d+ pieces but the weights have \d+ rows"):
        TextClassifier.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        (
            "generation_config.json",
            "decoder_start_token_id",
            10**30,
            "has decoder_start_token_id 10+; accepted: ",
        ),
        ("generation_config.json", "eos_token_id", [], r"has eos_token_id \[\]; accepted: a piece from 0 to 399"),
        ("generation_config.json", "eos_token_id", 400, "has eos_token_id 400; accepted: a piece from 0 to 399"),
        ("empatheia.json", "emotions", [[]] * 32, "lists 32 emotions that are not the taxonomy's"),
        ("empatheia.json", "layout", {"max_source": "9"}, "has a layout this release cannot read: .*max_source"),
        ("empatheia.json", "layout", {"sources": 9}, "has a layout this release cannot read: .*sources"),
        ("empatheia_tokenizer.json", "specials", {"pad": 10**30}, "cannot be read|its special ones are"),
    ],
)
def test_files_that_do_not_fit_each_other(tiny_copy, file, key, value, message):
    record = json.loads((tiny_copy / file).read_text())
    if isinstance(value, dict) and key == "specials":
        value = {**record[key], **value}
    (tiny_copy / file).write_text(json.dumps({**record, key: value}))
    with pytest.raises(CheckpointError, match=message):
        Listener.load(tiny_copy)


def test_settings_without_a_piece_to_start_from(tiny_copy):
    (tiny_copy / "generation_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"generation_config.json has no decoder_start_token_id"):
        Listener.load(tiny_copy)
