"""One rule of tolerance a kind of metric, held by the deviations that papers print."""

import fnmatch
import statistics
from collections import defaultdict

import pytest

from empatheia.metrics import METRICS
from empatheia.metrics.published import DEFINITIONS, read_published
from empatheia.metrics.tolerances import KINDS, MOST_BELIEVED, tolerance


@pytest.mark.parametrize(
    ("score", "unit", "value", "deviation", "wanted"),
    [
        ("accuracy", "percent", 42.4, 0.3, 0.6),
        ("accuracy", "percent", 40.0, None, 1.0),
        ("accuracy", "fraction", 0.43, None, 0.01),
        ("span_f1_pos_nested", "percent", 58.17, None, 1.0),
        ("bleu_nltk_4", "percent", 1.6, None, 0.16),
        ("dist_corpus_2", "percent", 2.0, None, 0.5),
        ("ppl_item", "perplexity", 35.1, None, 1.053),
        ("bertscore_f_rescaled", "fraction", 0.136, None, 0.01),
        ("length_words", "words", 11.0, None, 0.0),
        ("dist_corpus_1", "fraction", 0.008, 0.000, 0.002),  # rounded away in print
        ("dist_corpus_1", "fraction", 0.017, 0.020, 0.017 * 0.25),  # a deviation above the mean is a slip of print
    ],
)
def test_the_rule_of_each_kind(score, unit, value, deviation, wanted):
    assert tolerance(score, unit, value, deviation).value == pytest.approx(wanted)


def test_every_printed_automatic_number_has_a_rule_but_for_agreement():
    without = {
        d[0] for d in DEFINITIONS.values() if isinstance(d, tuple) and tolerance(d[0], d[1], 1.0, None).value == 0
    }
    assert without == {"fleiss_kappa"}  # of the paper's own raters
    names = METRICS.names()
    assert all(fnmatch.filter(names, pattern) for kind in KINDS for pattern in kind.scores), "a pattern for no score"


def test_tolerances_are_two_to_four_of_the_deviations_that_papers_print():
    """Median of the printed deviations by kind, as a share of the value or in points; from the transcription itself."""
    found = defaultdict(list)
    for number in read_published():
        definition = DEFINITIONS[number.paper, number.metric]
        if isinstance(definition, tuple) and number.std and number.std <= MOST_BELIEVED * number.value:
            found[definition].append((number.std, number.value))
    assert {score for score, _ in found} >= {"accuracy", "bleu_nltk_4", "dist_corpus_1", "dist_corpus_2"}
    for (score, unit), pairs in found.items():
        middle = statistics.median(value for _, value in pairs)
        deviation = statistics.median(std / value for std, value in pairs) * middle
        assert 1.5 <= tolerance(score, unit, middle, None).value / deviation <= 5, score
