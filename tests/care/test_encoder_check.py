"""The second classifier of the check, on the sentence encoder."""

import numpy as np
import pytest

from empatheia.care import Care, Detector
from empatheia.care.detector import DOUBT
from empatheia.care.encoder import EncoderClassifier
from empatheia.dialogue import Dialogue

ITEMS = [
    "nobody would even notice if i stopped showing up. i've thought about it a lot",
    "We had pancakes and then the bus was late.",
    Dialogue.of("It has been a long week.", "What happened?", "i gave the dog to my sister. she will be good to him"),
    "he put his hands round my neck again last night",
]


@pytest.fixture(scope="module")
def detector(sentence_encoder):
    return Detector(encoder=EncoderClassifier.load())


def test_texts_read_together_are_judged_as_alone(detector):
    alone = [Detector(encoder=EncoderClassifier.load()).assess(item) for item in ITEMS]
    together = [checked.assessment for checked in Care(detector=detector).check_all(ITEMS)]
    for one, other in zip(alone, together, strict=True):
        assert (one.level, one.kinds, one.spans) == (other.level, other.kinds, other.spans)
        assert one.score == pytest.approx(other.score, abs=1e-5)


def test_what_was_read_is_not_read_again(detector, monkeypatch):
    first = [detector.assess(item).score for item in ITEMS]
    monkeypatch.setattr(EncoderClassifier, "forward", lambda *_: pytest.fail("it was read before"))
    assert [detector.assess(item).score for item in ITEMS] == first


def test_the_encoder_is_asked_only_where_the_small_classifier_doubts(detector, monkeypatch):
    small = Detector(encoder=False)
    asked = []
    monkeypatch.setattr(
        EncoderClassifier, "probabilities", lambda _, windows: asked.append(windows) or np.full((len(windows), 2), 0.5)
    )
    for item in ("We had pancakes and then the bus was late.", ITEMS[0]):
        was_doubtful = small.assess(item).score >= DOUBT
        asked.clear()
        detector.assess(item)
        assert bool(asked) == was_doubtful
