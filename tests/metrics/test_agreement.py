"""Kappas against statsmodels and textbook tables; checks on printed tables of Gao et al. 2021."""

import math

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.agreement import (
    CohenKappa,
    FleissKappa,
    RawAgreement,
    check_ab_row,
)
from empatheia.metrics.bertscore import ROBERTA_LARGE_BASELINE, rescale
from empatheia.metrics.published import read_published

# Fleiss' example as tabulated in textbooks: 10 subjects, 14 raters, 5 categories, kappa 0.210
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def score(metric, *columns):
    metric.update(*columns)
    return metric.compute()


def test_fleiss_extremes_and_textbook():
    assert score(FleissKappa(2), [[3, 0], [0, 3]]).value == pytest.approx(1)
    assert score(FleissKappa(2), [[2, 1], [1, 2]]).value == pytest.approx(-1 / 3)
    assert score(FleissKappa(5), FLEISS).value == pytest.approx(0.210, abs=0.0005)


def test_kappas_against_statsmodels():
    rater = pytest.importorskip("statsmodels.stats.inter_rater")
    rng = np.random.default_rng(2)
    counts = rng.multinomial(5, [0.5, 0.3, 0.2], size=40)
    assert score(FleissKappa(3), counts).value == pytest.approx(rater.fleiss_kappa(counts))
    a, b = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    table = np.zeros((3, 3))
    np.add.at(table, (a, b), 1)
    expected = rater.cohens_kappa(table, return_results=False)
    assert score(CohenKappa([0, 1, 2]), a, b).value == pytest.approx(expected)


def test_cohen_by_hand():
    # 20 + 15 agreements of 50; shares .5 and .6: chance .5; kappa .4
    a = ["y"] * 25 + ["n"] * 25
    b = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    result = score(CohenKappa("yn"), a, b)
    assert (result.value, result.parts["observed"]) == (pytest.approx(0.4), pytest.approx(0.7))


def test_no_variation_is_undefined():
    for result in (score(FleissKappa(2), [[3, 0]]), score(CohenKappa("yn"), ["y"], ["y"])):
        assert math.isnan(result.value) and "chance agreement is 1" in result.parts["note"]


def test_fleiss_merge_keeps_the_number_of_raters():
    a, b = FleissKappa(2), FleissKappa(2)
    a.update([[3, 0]])
    b.update([[2, 0]])
    with pytest.raises(DataError, match="cannot merge items with 3 and 2 raters"):
        a + b
    assert (FleissKappa(2) + a).n_raters == 3


def test_raw_agreement_with_varying_numbers_of_raters():
    assert score(RawAgreement(), [["a", "a"], ["a", "b", "a"]]).value == pytest.approx(100 * (1 + 1 / 3) / 2)
    assert score(RawAgreement(), [[1, 1], [1, None], [1, 2]]).value == 50


def printed_ab_rows():
    rows = {}
    for number in read_published():
        if number.paper == "gao2021" and number.table == "Table 5":
            rows.setdefault(number.row, {})[number.metric] = number.value
    return {row: (v["Win %"], v["Loss %"], v["Tie %"]) for row, v in rows.items()}


def test_ab_table_is_made_of_whole_judgements_and_one_row_does_not_add_up():
    checks = {row: check_ab_row(*values) for row, values in printed_ab_rows().items()}
    assert len(checks) == 9
    assert all(check.integral for check in checks.values())
    assert [row for row, check in checks.items() if not check.complete] == ["Ours(Hard) vs MK-EDG"]
    assert not check_ab_row(38.10, 20.33, 41.57).integral


def test_bertscore_rescaling():
    base = ROBERTA_LARGE_BASELINE["F"]
    assert rescale(base, base) == 0
    assert rescale(1.0, base) == 1
    assert rescale(0.854, base) == pytest.approx(0.1349, abs=5e-5)
    with pytest.raises(DataError, match="baseline is 1"):
        rescale(0.5, 1)


def test_bad_input():
    with pytest.raises(DataError, match=r"items have .* raters"):
        FleissKappa(2).update([[3, 0], [1, 1]])
    with pytest.raises(DataError, match="at least 2"):
        FleissKappa(2).update([[1, 0]])
    with pytest.raises(DataError, match=r"shape \(1, 3\)"):
        FleissKappa(2).update([[1, 1, 1]])
    with pytest.raises(ConfigError, match="n_categories is 1"):
        FleissKappa(1)
    with pytest.raises(ConfigError, match="two or more different labels"):
        CohenKappa("y")
    with pytest.raises(DataError, match=r"item 0 has 1 rating\(s\)"):
        RawAgreement().update([["a"]])
