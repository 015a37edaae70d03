"""The perception on ONNX Runtime beside the one of torch it was made of; and files that are not to be trusted."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from empatheia.errors import CheckpointError, ConfigError
from empatheia.perceive.model_file import FACTS, GRAPH, TOKENIZER
from empatheia.perceive.perception import Perception
from empatheia.perceive.pieces import alike
from empatheia.records.dialogue import Turn
from empatheia_research.corpora import everyday

onnx = pytest.importorskip("onnx")
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
    from empatheia_research.understanding.affect.turns import AffectOfTurns

    return AffectOfTurns.load("listener_as_trained")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Both exports; how far they are from torch is measured on sixty conversations in place of all."""
    from empatheia_research.training import perception_file

    root, few = tmp_path_factory.mktemp("perception"), everyday.items("valid")[:60]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perception_file.everyday, "items", lambda split: few)
        for weights in ("full", "mixed"):
            perception_file.export_perception("listener_as_trained", root / weights, weights=weights)
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
    from empatheia_research.care.encoder import EncoderClassifier, plain

    texts = [plain(text) for text in ("I want to die tonight.", "The train was late again, I'm dead", "word " * 200)]
    expected = EncoderClassifier.load().probabilities(texts)
    np.testing.assert_allclose(full.danger(texts), expected, atol=1e-4)
    assert full.danger(texts)[0, 0] > full.danger(texts)[1, 0]


def test_a_listener_answers_from_it(folders, by_torch):
    from empatheia.listener import Listener

    text = "I finally passed my driving test after three tries!"
    understanding = Listener.load(str(folders / "mixed")).analyze(text)
    assert understanding.newest.emotion.label == by_torch.read([(Turn("speaker", text),)])[0].emotion == "proud"


def test_reading_takes_neither_torch_nor_transformers(folders):
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'accelerate', 'nltk', 'polars')))\n"
        "from empatheia.records.dialogue import Turn\n"
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


def rewritten(folder: Path, change_of=None, data: bytes | None = None) -> None:
    """Another graph, with the hash that fits it."""
    if data is None:
        model = onnx.load(str(folder / GRAPH))
        change_of(model)
        data = model.SerializeToString()
    (folder / GRAPH).write_bytes(data)
    change(folder, sha256=hashlib.sha256(data).hexdigest())


def without_words(model) -> None:
    del model.graph.output[2:]


def newer_operators(model) -> None:
    model.opset_import[0].version = 99


def no_numbers(model) -> None:
    for one in model.graph.initializer:
        if one.name.endswith("emotion_head.weight"):
            values = np.full(tuple(one.dims), np.nan, np.float32)
            one.CopyFrom(onnx.numpy_helper.from_array(values, one.name))


def other_input(model) -> None:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT32


def truncated(folder: Path) -> None:
    data = (folder / GRAPH).read_bytes()
    (folder / GRAPH).write_bytes(data[: len(data) // 2])


def lacking(folder: Path, name: str) -> None:
    record = json.loads((folder / FACTS).read_text())
    del record[name]
    (folder / FACTS).write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            truncated,
            r"perception\.onnx \(.* bytes\) is not the file that perception\.json describes.*Get the model again",
        ),
        (lambda f: change(f, sha256="0" * 64), "is not the file that perception.json describes"),
        (lambda f: rewritten(f, data=b"no graph at all"), "ONNX Runtime cannot open .*perception.onnx"),
        (lambda f: rewritten(f, without_words), r"gives \['emotion', 'side'\]; a perception gives"),
        (lambda f: rewritten(f, newer_operators), "ONNX Runtime cannot open"),
        (lambda f: rewritten(f, other_input), "ONNX Runtime cannot open|reads .*; a perception reads"),
        (lambda f: rewritten(f, no_numbers), "its weights are broken"),
        (lambda f: change(f, format=2), "format 2; this release reads 1.*Upgrade"),
        (lambda f: change(f, opset=99), "has opset 99, which cannot be"),
        (lambda f: change(f, emotions=["sad"]), "has emotions .*cannot be"),
        (lambda f: change(f, emotion_temperature=0), "has emotion_temperature 0, which cannot be"),
        (lambda f: change(f, word_threshold=2), "has word_threshold 2"),
        (lambda f: change(f, most_pieces="many"), "has most_pieces many"),
        (lambda f: change(f, danger_thresholds={"risk": 0.5}), "has danger_thresholds"),
        (lambda f: change(f, danger_thresholds={}), r"gives \[.*'danger'\]; a perception gives .*without danger"),
        (lambda f: change(f, probe=[0.5]), "has probe"),
        (lambda f: lacking(f, "probe"), "lacks 'probe'"),
        (lambda f: (f / FACTS).unlink(), "perception.json cannot be read"),
        (lambda f: (f / FACTS).write_text("[1]"), "holds a JSON list"),
        (lambda f: (f / GRAPH).unlink(), "cannot read .*perception.onnx: No such file"),
        (lambda f: (f / TOKENIZER).write_text("{}"), "is no tokenizer"),
        (lambda f: (f / TOKENIZER).unlink(), "is no tokenizer"),
    ],
)
def test_a_file_that_is_not_to_be_trusted_is_refused(copy, damage, message):
    damage(copy)
    with pytest.raises(CheckpointError, match=message):
        Perception.open(copy)


def test_a_perception_without_updates_is_not_written(tmp_path, by_torch, monkeypatch):
    from empatheia_research.training import perception_file

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
