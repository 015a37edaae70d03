"""Feelings that the speaker names of themselves."""

import pytest

from empatheia.records.dialogue import Turn
from empatheia.taxonomy import EMOTIONS
from empatheia.voices.reflection import Perceived, reflect
from empatheia.voices.reflection.feelings import SHARE, heeded, told_feeling


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("learnt to swim at 43, so chuffed with myself", "proud"),
        ("mri results tuesday. scared. trying not to google", "afraid"),
        ("Divorce papers came. Relieved, mostly.", "content"),
        ("he said ok and made me eggs. im so happy", "joyful"),
        ("I broke down in the car, gutted", "devastated"),
        ("proud of my son today", "proud"),
        ("feeling low since sunday", "sad"),
        ("I\u2019m fed up with the trains", "annoyed"),
        ("she was so happy", ""),
        ("my boss is mad", ""),
        ("I am not happy about this", ""),
        ("I don't feel scared any more", ""),
        ("I used to be happy here", ""),
        ("happy birthday to me", ""),
        ("the sun went down", ""),
        ("cross the road at the lights", ""),
        ("scared. and relieved", ""),
        ("", ""),
    ],
)
def test_of_oneself_now_and_not_negated(text, label):
    assert told_feeling(text) == label


def test_what_is_named_outweighs_what_is_perceived():
    even = dict.fromkeys(EMOTIONS, 1 / 32)
    found = heeded(Perceived(even, {"pleasant": 0.1, "unpleasant": 0.9, "mixed": 0.0}), "proud")
    assert sum(found.emotions.values()) == pytest.approx(1) and found.emotions["proud"] > SHARE
    assert sum(found.sides.values()) == pytest.approx(1) and found.sides["pleasant"] > 0.6


def test_gladness_that_is_named_is_not_met_with_grief():
    wrong = Perceived(
        {name: float(name == "sad") for name in EMOTIONS}, {"pleasant": 0.2, "unpleasant": 0.8, "mixed": 0.0}
    )
    for seed in range(20):
        said = reflect([Turn("speaker", "learnt to swim at 43, so chuffed with myself")], wrong, seed=seed)[0]
        assert said.moment in ("pride", "unclear_pleasant")
