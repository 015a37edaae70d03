"""``empatheia care`` and what it measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from empatheia.care.evaluating import CareItem, Share, evaluate, read_items
from empatheia.care.labelled import LabelledText, read_texts, with_typos
from empatheia.cli import main
from empatheia.errors import DataError
from empatheia_research.care.training import limit_for, parts_of, targets


def run(capsys: pytest.CaptureFixture, *arguments: str, code: int = 0) -> str:
    with pytest.raises(SystemExit) as left:
        main(["care", *arguments])
    told = capsys.readouterr()
    assert left.value.code == code, told.err
    return told.out if code == 0 else told.err


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_check_says_level_words_and_reasons(capsys: pytest.CaptureFixture):
    out = run(capsys, "check", "I want to kill myself.")
    assert "crisis" in out and "kill myself" in out and "because" in out


def test_check_json_is_one_object(capsys: pytest.CaptureFixture):
    out = run(capsys, "check", "I could murder a pizza", "--json")
    assert json.loads(out)["level"] == "none"


def test_check_takes_a_conversation(capsys: pytest.CaptureFixture):
    out = run(capsys, "check", "I'm so low.", "Are you thinking of suicide?", "yes", "--json")
    assert json.loads(out)["level"] == "crisis"
    assert "listener" in run(capsys, "check", "a", "b", code=1)


def test_resources_of_a_country(capsys: pytest.CaptureFixture):
    assert "116 123" in run(capsys, "resources", "--country", "IE")
    rows = json.loads(run(capsys, "resources", "--json"))
    assert all(row["source"] for row in rows)
    assert "no entry" in run(capsys, "resources", "--country", "ZZ")


def test_evaluate_counts_by_kind(capsys: pytest.CaptureFixture, tmp_path: Path):
    path = write(
        tmp_path / "held_out.jsonl",
        {"text": "I want to kill myself.", "level": "crisis", "kind": "explicit"},
        {"text": "The soup was warm.", "level": "none", "kind": "everyday"},
        {"turns": ["I'm low.", "Are you thinking of suicide?", "yes"], "level": "crisis", "kind": "turns"},
        {"text": "My umbrella broke.", "level": "concern", "kind": "hidden"},
    )
    told = json.loads(run(capsys, "evaluate", str(path), "--json"))
    assert told["recall"]["found"] == 2 and told["recall"]["n"] == 3 and told["false_alarms"]["found"] == 0
    assert told["by_kind"]["explicit"]["share"] == 1.0 and told["missed"][0]["kind"] == "hidden"
    assert told["thresholds"]["risk"] > 0 and "validation_recall" in told["validation"]
    assert "risks found" in run(capsys, "evaluate", str(path), "--typos", "0.05", "--before", "10")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no text"),
        ("{", "no JSON"),
        ('{"text": 1, "level": "none"}', "no text"),
        ('{"text": "a", "level": "x"}', "level"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, text: str, message: str):
    path = tmp_path / "texts.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_items(path)


def test_settings_out_of_range_are_told():
    items = [CareItem(("a",), "none", "k", "1")]
    with pytest.raises(DataError, match="typos"):
        evaluate(items, typos=2.0)
    with pytest.raises(DataError, match="n_before"):
        evaluate(items, n_before=3)


def test_wilson_intervals():
    assert Share(95, 100).interval == (0.888, 0.978)
    assert Share(0, 200).interval == (0.0, 0.019)
    assert Share(0, 0).interval is None


def test_training_texts_are_many_labelled_and_of_many_voices():
    texts = read_texts()
    risks = [text for text in texts if text.level != "none"]
    assert len(texts) >= 5000 and len(texts) - len(risks) >= 0.8 * len(risks)
    assert len({text.text.lower() for text in texts}) == len(texts)
    assert len({text.voice for text in texts}) > 40
    assert all(text.kinds for text in risks)
    kinds = {kind for text in risks for kind in text.kinds}
    assert len(kinds) == 10


def test_shipped_weights_are_small():
    from empatheia.care.classifier import WEIGHTS
    from empatheia.care.word_vectors import WORDS

    assert WEIGHTS.stat().st_size + WORDS.stat().st_size < 2_000_000


def test_slips_are_the_same_each_time():
    assert with_typos("nothing will ever change here", 1.0, 3) == with_typos("nothing will ever change here", 1.0, 3)
    assert with_typos("nothing will ever change here", 1.0, 3) != "nothing will ever change here"


def test_parts_keep_runs_of_a_voice_together():
    texts = [LabelledText(str(i), "none", "unclear", (), "a") for i in range(8)]
    parts = parts_of(texts)
    assert len(set(parts[:4].tolist())) == 1 and len(set(parts[4:].tolist())) == 1


def test_labels_and_limits():
    import numpy as np

    rows = targets([LabelledText("a", "crisis", "self", ("means",)), LabelledText("b", "none", "unclear")])
    assert rows[0, 0] == 1 and rows[0, 1] == 1 and rows[1, 0] == 0
    (concern,) = targets([LabelledText("c", "concern", "self", ("hopelessness",))])
    assert (concern[0], concern[1]) == (1, 0)
    assert limit_for(np.array([0.1, 0.6, 0.9]), np.array([1, 1, 0]), 0.0) == 0.6001


def test_training_twice_gives_the_same_weights(tmp_path: Path):
    pytest.importorskip("scipy")
    from empatheia.care.classifier import LinearClassifier
    from empatheia.care.lexicon import Lexicon
    from empatheia_research.care.training import train

    texts = [text for text in read_texts() if text.voice in ("burden", "teen_us", "grief")][::4]
    lexicon = Lexicon.read()
    for name in ("one", "two"):
        train(texts, lexicon)[0].save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert LinearClassifier.load(tmp_path / "one").thresholds
    (tmp_path / "one").write_bytes(b"nothing")
    with pytest.raises(Exception, match="cannot be read"):
        LinearClassifier.load(tmp_path / "one")


def test_the_detector_needs_no_scipy():
    import subprocess
    import sys

    code = "import sys; from empatheia.care import Detector; Detector(encoder=False).assess('hi')"
    code += "; print([m for m in ('scipy', 'sklearn', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
