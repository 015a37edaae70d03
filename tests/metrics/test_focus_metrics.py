"""Forms of one word, coverage by them, and listener accuracy."""

import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.coverage import Coverage
from empatheia.metrics.listening import ListenerAccuracy
from empatheia.metrics.word_forms import base_form

SAME = ["lose lost losing", "dog Dogs dog's", "child children", "go went gone going", "study studied", "bad worst"]


def test_forms_of_one_word():
    for group in SAME:
        assert len({base_form(word) for word in group.split()}) == 1, group
    firsts = [group.split()[0] for group in SAME]
    assert len({base_form(word) for word in firsts}) == len(SAME)


def test_coverage_by_base_form():
    """Section 4.4 counts lemmas: `lost` takes up `losing`, which stems do not see."""
    values = {}
    for forms in ("word", "stem", "base"):
        metric = Coverage(forms)
        metric.update(["You lost two dogs"], [["losing", "dog", "cat", "two"]])
        values[forms] = metric.compute().value
        assert f"forms:{forms}" in metric.compute().signature
    assert values == {"word": 25, "stem": 50, "base": 75}


def test_listener_accuracy():
    metric = ListenerAccuracy(4, "moel", "random (sample/train, seed 0)")
    metric.update([True, False])
    metric.update([1, 1])
    score = metric.compute()
    assert score.value == 75 and score.parts == {"chance": 25} and "listener:moel" in score.signature
    with pytest.raises(ConfigError, match="n_worlds is 1"):
        ListenerAccuracy(1)
    with pytest.raises(DataError, match="item 1 is 2"):
        metric.update([True, 2])
