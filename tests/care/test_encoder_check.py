"""The second classifier of the check, read from the bundled perception's file."""

import numpy as np
import pytest

from empatheia.care import Care, Detector
from empatheia.care.danger import DangerReader, bundled_danger_reader
from empatheia.care.detector import DOUBT
from empatheia.perceive.perception import Perception, bundled_perception
from empatheia.records.dialogue import Dialogue

ITEMS = [
    "nobody would even notice if i stopped showing up. i've thought about it a lot",
    "We had pancakes and then the bus was late.",
    Dialogue.of("It has been a long week.", "What happened?", "i gave the dog to my sister. she will be good to him"),
    "he put his hands round my neck again last night",
]


def fresh() -> Detector:
    """A detector that remembers nothing."""
    facts = bundled_perception().file.facts
    return Detector(encoder=DangerReader(bundled_perception().danger, facts.danger_thresholds))


@pytest.fixture(scope="module")
def detector():
    return fresh()


def test_the_shipped_detector_has_it():
    reader = bundled_danger_reader()
    assert Detector().encoder is reader and reader.notes["left_out"] > 1000
    assert Detector().thresholds == reader.thresholds != Detector(encoder=False).thresholds


def test_texts_read_together_are_judged_as_alone(detector):
    alone = [fresh().assess(item) for item in ITEMS]
    together = [checked.assessment for checked in Care(detector=detector).check_all(ITEMS)]
    for one, other in zip(alone, together, strict=True):
        assert (one.level, one.kinds, one.spans) == (other.level, other.kinds, other.spans)
        assert one.score == pytest.approx(other.score, abs=1e-5)


def test_what_was_read_is_not_read_again(detector, monkeypatch):
    first = [detector.assess(item).score for item in ITEMS]
    monkeypatch.setattr(detector.encoder, "_read", lambda *_: pytest.fail("it was read before"))
    assert [detector.assess(item).score for item in ITEMS] == first


def test_the_encoder_is_asked_only_where_the_small_classifier_doubts(detector, monkeypatch):
    small = Detector(encoder=False)
    asked = []
    monkeypatch.setattr(
        DangerReader, "probabilities", lambda _, windows: asked.append(windows) or np.full((len(windows), 2), 0.5)
    )
    for item in ("We had pancakes and then the bus was late.", ITEMS[0]):
        was_doubtful = small.assess(item).score >= DOUBT
        asked.clear()
        detector.assess(item)
        assert bool(asked) == was_doubtful


def test_without_a_sound_file_the_small_classifier_judges_and_the_log_says_so(monkeypatch, caplog, tmp_path):
    bundled_danger_reader.cache_clear()
    monkeypatch.setattr("empatheia.care.danger.bundled_perception", lambda: Perception.open(tmp_path))
    try:
        detector = Detector()
    finally:
        bundled_danger_reader.cache_clear()
    assert detector.encoder is None and "the small classifier judges danger alone" in caplog.text
    assert detector.assess("I want to kill myself.").level == "crisis"
