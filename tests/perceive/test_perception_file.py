"""The perception on ONNX Runtime beside the one of torch it was made of; and files that are not to be trusted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from empatheia.corpora import everyday
from empatheia.dialogue import Turn
from empatheia.errors import CheckpointError, ConfigError
from empatheia.perceive.model_file import FACTS, GRAPH, TOKENIZER, read_facts
from empatheia.perceive.perception import Perception
from empatheia.perceive.pieces import alike

pytest.importorskip("onnx")
pytestmark = pytest.mark.usefixtures("sentence_encoder")

ODD = [
    (Turn("speaker", "[SEP] I typed [CLS] myself"),),
    (Turn("speaker", "\ud83d half a \U0001f600 face, na\u00efve, it\u2019s"),),
    (Turn("speaker", "word " * 400),),
    (Turn("speaker", "Hi."), Turn("listener", "Hello, how are you?"), Turn("speaker", "my ring is gone")),
    (Turn("speaker", "...")),
    (Turn("speaker", "x"),),
]


@pytest.fixture(scope="module")
def conversations():
    odd = [one if isinstance(one, tuple) else (one,) for one in ODD]
    return [*odd, *(item.dialogue.turns for item in everyday.items("test")[:40])]


@pytest.fixture(scope="module")
def by_torch():
    from empatheia.understanding.affect.turns import AffectOfTurns

    return AffectOfTurns.load("listener")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    from empatheia.training.perception_file import export_perception

    root = tmp_path_factory.mktemp("perception")
    for weights in ("full", "mixed"):
        export_perception("listener", root / weights, weights=weights)
    return root


@pytest.fixture(scope="module")
def full(folders) -> Perception:
    return Perception.open(folders / "full")


@pytest.fixture(scope="module")
def mixed(folders) -> Perception:
    return Perception.open(folders / "mixed")


def places(spans):
    return [(span.turn, span.start, span.end) for span in spans]


def test_whole_weights_read_as_torch_does(full, by_torch, conversations):
    for own, other in zip(full.read(conversations), by_torch.read(conversations), strict=True):
        np.testing.assert_allclose(own.emotions, other.emotions, atol=1e-4)
        np.testing.assert_allclose(own.sides, other.sides, atol=1e-4)
        assert places(own.words) == places(other.words) and places(own.causes) == places(other.causes)
        np.testing.assert_allclose([word.score for word in own.words], [word.score for word in other.words], atol=1e-4)
        assert (own.first_turn, own.is_cut, own.threshold) == (other.first_turn, other.is_cut, other.threshold)


def test_rounded_weights_stay_near(mixed, full, conversations):
    pairs = list(zip(mixed.read(conversations), full.read(conversations), strict=True))
    assert max(np.abs(one.emotions - other.emotions).max() for one, other in pairs) < 0.02
    assert mixed.file.facts.deviation < 0.02 < full.file.facts.most_pieces
    for one, other in pairs:
        first, second = np.sort(other.emotions)[::-1][:2]
        assert one.emotion == other.emotion or first - second < 0.02


def test_the_same_alone_and_in_company(mixed, conversations):
    together = mixed.read(conversations)
    for conversation, one in zip(conversations, together, strict=True):
        alone = mixed.read([conversation])[0]
        np.testing.assert_allclose(alone.emotions, one.emotions, atol=2e-6)
        assert places(alone.causes) == places(one.causes)


def test_danger_is_read_from_the_same_file(full):
    from empatheia.care.encoder import EncoderClassifier, plain

    texts = [plain(text) for text in ("I want to die tonight.", "The train was late again, I'm dead", "word " * 200)]
    expected = EncoderClassifier.load().probabilities([text.split() for text in texts])
    np.testing.assert_allclose(full.danger(texts), expected, atol=1e-4)
    assert full.danger(texts)[0, 0] > full.danger(texts)[1, 0]


def test_a_listener_answers_from_it(folders, by_torch):
    from empatheia.listener import Listener

    text = "I finally passed my driving test after three tries!"
    understanding = Listener.load(str(folders / "mixed")).analyze(text)
    assert understanding.emotion == by_torch.read([(Turn("speaker", text),)])[0].emotion == "proud"


def test_reading_takes_neither_torch_nor_transformers(folders):
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'accelerate', 'nltk', 'polars')))\n"
        "from empatheia.dialogue import Turn\n"
        "from empatheia.perceive.perception import Perception\n"
        f"found = Perception.open({str(folders / 'mixed')!r}).read([(Turn('speaker', 'I got the job!'),)])[0]\n"
        "print(found.side)\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": source, "PATH": ""}
    )
    assert done.stdout == "pleasant\n", done.stderr


@pytest.fixture()
def copy(folders, tmp_path) -> Path:
    return Path(shutil.copytree(folders / "mixed", tmp_path / "copy"))


def change(folder: Path, **fields) -> None:
    record = json.loads((folder / FACTS).read_text())
    (folder / FACTS).write_text(json.dumps(record | fields))


def test_a_damaged_graph_is_refused(copy):
    data = (copy / GRAPH).read_bytes()
    (copy / GRAPH).write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match=r"perception\.onnx .* is not the file that perception\.json describes"):
        Perception.open(copy)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": 2}, "format 2; this release reads 1.*Upgrade"),
        ({"emotions": ["sad"]}, "has emotions .*cannot be"),
        ({"emotion_temperature": 0}, "has emotion_temperature 0, which cannot be"),
        ({"word_threshold": 2}, "has word_threshold 2"),
        ({"most_pieces": "many"}, "has most_pieces many"),
        ({"probe": [0.5]}, "has probe"),
    ],
)
def test_facts_that_cannot_be_are_refused(copy, fields, message):
    change(copy, **fields)
    with pytest.raises(CheckpointError, match=message):
        read_facts(copy)


def test_a_missing_fact_and_file_are_named(copy):
    record = json.loads((copy / FACTS).read_text())
    del record["probe"]
    (copy / FACTS).write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match="lacks 'probe'"):
        read_facts(copy)
    (copy / FACTS).unlink()
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_facts(copy)


def test_a_foreign_graph_is_refused(copy):
    import hashlib

    import onnx

    model = onnx.load(str(copy / GRAPH))
    del model.graph.output[2:]
    data = model.SerializeToString()
    (copy / GRAPH).write_bytes(data)
    change(copy, sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(CheckpointError, match=r"gives \['emotion', 'side'\]; a perception gives"):
        Perception.open(copy)
    (copy / GRAPH).write_bytes(b"no graph at all")
    change(copy, sha256=hashlib.sha256(b"no graph at all").hexdigest())
    with pytest.raises(CheckpointError, match="ONNX Runtime cannot open"):
        Perception.open(copy)


def test_broken_weights_are_found_by_the_probe(copy):
    import hashlib

    import onnx

    model = onnx.load(str(copy / GRAPH))
    for one in model.graph.initializer:
        if one.name.endswith("emotion_head.weight"):
            values = np.full(tuple(one.dims), np.nan, np.float32)
            one.CopyFrom(onnx.numpy_helper.from_array(values, one.name))
    data = model.SerializeToString()
    (copy / GRAPH).write_bytes(data)
    change(copy, sha256=hashlib.sha256(data).hexdigest())
    with pytest.raises(CheckpointError, match="its weights are broken"):
        Perception.open(copy)


def test_a_tokenizer_that_is_none_is_refused(copy):
    (copy / TOKENIZER).write_text("{}")
    with pytest.raises(CheckpointError, match="is no tokenizer"):
        Perception.open(copy)


def test_a_perception_without_updates_is_not_written(tmp_path, by_torch, monkeypatch):
    from empatheia.training import perception_file

    class Whole:
        class config:
            rank = 0

    with pytest.raises(ConfigError, match="has no updates apart from its base"):
        perception_file._check_bases(Whole(), None)


def test_batches_are_of_like_length_and_bounded():
    lengths = [5, 300, 5, 7, 2, 600, 5]
    found = alike(lengths, 20, 3)
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or (len(batch) <= 3 and len(batch) * max(lengths[i] for i in batch) <= 20)
