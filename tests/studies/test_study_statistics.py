"""Filters, shares, preferences, agreement and plans against known truths and other implementations."""

from __future__ import annotations

import random

import numpy as np
import pytest
from made_studies import made_items, meed2, simple
from simulated_study import simulated_sheets

from empatheia.errors import ConfigError, DataError
from empatheia.metrics.agreement import FleissKappa, RawAgreement, check_ab_row
from empatheia.metrics.intraclass import IntraclassCorrelation
from empatheia.metrics.item_tests import cliff_delta, cohen_d
from empatheia.metrics.krippendorff import krippendorff_alpha
from empatheia.metrics.published import read_published
from empatheia_people.studies.design import GOLD, read_design
from empatheia_people.studies.effects import effect_of
from empatheia_people.studies.filters import apply, at_least_points, attentive, dwelt, filter_of, hurried, same_answer
from empatheia_people.studies.items import Candidate, StudyItem
from empatheia_people.studies.manifest import compose
from empatheia_people.studies.power import needed_wins, plan_means, plan_preference, plan_shares, sign_power
from empatheia_people.studies.preferences import PairResult, bradley_terry, pair_results, sign_test, strengths
from empatheia_people.studies.report import report_page
from empatheia_people.studies.results import results_of
from empatheia_people.studies.sheets import Answer, Sheet
from empatheia_people.studies.simulation import KINDS, Opinion, Rater, plausible, published_shares
from empatheia_people.studies.statistics import agreement_rows, answers_of, mean_rows, share_rows, worker_rows

BOXES = ("good", "okay", "bad")


def sheet(number=1, worker=1, minutes=15.0, points=3, answers=(), **more) -> Sheet:
    filled = {"is_attentive": None, "dwell": None, "n_tasks": 10, **more}
    return Sheet(
        number,
        worker,
        number,
        minutes,
        points,
        filled["is_attentive"],
        filled["dwell"],
        tuple(answers),
        filled["n_tasks"],
    )


# the paper's study


@pytest.fixture(scope="module")
def rebuilt():
    shares, systems, sets = published_shares()
    items = [
        StudyItem(
            f"{name}/{i}",
            name,
            ("x",),
            {s: Candidate(s, f"{s} {i}", label=f"l{i % 3}") for s in systems},
            "",
            f"gold {i}",
        )
        for name in sets
        for i in range(2000)
    ]
    design = meed2()
    manifest = compose(design, items, systems)
    crowd = {"honest": 50, "random": 1, "okay": 2}
    return design, items, shares, simulated_sheets(design, items, manifest, Opinion(shares, {}, is_even=True), crowd)


def test_the_published_study_comes_back(rebuilt):
    design, items, shares, sheets = rebuilt
    assert len(sheets) == 2400 and sum(s.n_tasks for s in sheets) == 24_000
    results = results_of(design, sheets, items, n_resamples=0)
    assert results.answers[1] == results.sheets[1] * 10 and results.removed[0].workers == 2  # the two "okay"
    found = {(row.set, row.system): row for row in results.shares if row.system != "gold"}
    assert len(found) == 12
    for place, printed in shares.items():
        assert sum(printed) == pytest.approx(1, abs=2e-4)
        for answer, share in zip(BOXES, printed, strict=True):
            assert found[place].percent[answer] == pytest.approx(100 * share, abs=1.0), (place, answer)
    assert all(sum(row.percent.values()) == pytest.approx(100) for row in results.shares)
    page = report_page(results)
    assert (
        "meed2, Table 5, as printed" in page
        and "Labels of replies rated good" in page
        and "http" not in page.split("<body>")[1]
    )


def test_the_papers_arithmetic_of_filters():
    sheets = [sheet(n, n, 15 if n % 2 else 4, 3 if n <= 2163 else 1) for n in range(1, 2401)]
    kept, removed = apply(sheets, [filter_of(rule) for rule in meed2().filters])
    assert len(kept) == 2163 and sum(s.n_tasks for s in kept) == 21_630
    assert [r.assignments for r in removed] == [0, 119, 118] and sum(r.answers for r in removed) == 2370


@pytest.mark.parametrize(
    ("minutes", "points", "by_b", "by_c"),
    [(4 + 59 / 60, 1, True, True), (4 + 59 / 60, 2, False, False), (6, 1, False, True), (5, 1, False, True)],
)
def test_hurry_and_points(minutes, points, by_b, by_c):
    one = [sheet(minutes=minutes, points=points)]
    assert (hurried()(one) == []) == by_b and (at_least_points()(one) == []) == by_c


def test_the_same_answer_almost_always():
    def worker(number, n_okay, n=40, gold="good"):
        values = ["okay"] * n_okay + ["bad"] * (n - n_okay)
        answers = [Answer(f"i{i}", "ED", ("A",), "quality", value) for i, value in enumerate(values)]
        return sheet(
            number, number, answers=[*answers, *(Answer("g", "ED", ("gold",), "quality", gold) for _ in range(9))]
        )

    kept = same_answer(0.9, 10)([worker(1, 36), worker(2, 35), worker(3, 40)])
    assert [s.worker for s in kept] == [2]
    few = [sheet(n_tasks=9, answers=[Answer("i", "ED", ("A",), "quality", "okay")])]
    assert same_answer(0.9, 10)(few) == few


def test_other_filters_and_one_of_ones_own():
    sheets = [sheet(1, is_attentive=False, dwell=1.0), sheet(2, is_attentive=True, dwell=5.0), sheet(3, points=None)]
    assert [s.assignment for s in attentive()(sheets)] == [2, 3] == [s.assignment for s in dwelt(2)(sheets)]
    assert sheets[2] in at_least_points(3)(sheets)
    kept, (removed,) = apply(sheets, [("only the third", lambda given: given[2:])])
    assert len(kept) == 1 and (removed.workers, removed.assignments) == (0, 2)


def test_careless_raters_and_the_bonus():
    """At random two of three points come with 0.741 and all three with 0.296; 'all okay' always wins."""
    design, items = meed2(), made_items(600)
    manifest = compose(design, items, ("A", "B"))
    kinds = {}
    for kind in KINDS:
        sheets = simulated_sheets(design, items, manifest, Opinion({}, {}), {kind: 60})
        kinds[kind] = np.array([s.points for s in sheets])
    points = simulated_sheets(design, items * 1, manifest, Opinion({}, {}), {"random": 60}, seed=1) + simulated_sheets(
        design, items, manifest, Opinion({}, {}), {"random": 60}, seed=2
    )
    drawn = np.concatenate([[s.points for s in points], kinds["random"]])
    assert abs((drawn >= 2).mean() - 20 / 27) < 0.05 and abs((drawn == 3).mean() - 8 / 27) < 0.05
    assert (kinds["okay"] == 3).all() and kinds["honest"].mean() > 2.8 and (kinds["bonus_only"] >= 2).mean() > 0.9
    sheets = simulated_sheets(design, items, manifest, Opinion({}, {}), {"okay": 60})
    kept, removed = apply(sheets, [filter_of(rule) for rule in design.filters])
    assert kept == [] and removed[0].workers == 60


# shares and means


def test_shares_are_clustered_by_dialogue():
    alike = [
        sheet(i, i % 7, answers=[Answer(f"d{d}", "ED", ("A",), "q", "good" if d % 2 else "bad") for d in range(20)])
        for i in range(1, 9)
    ]
    (clustered,) = share_rows(alike, "q", BOXES)
    (by_worker,) = share_rows(alike, "q", BOXES, cluster="worker")
    assert clustered.n == 160 and clustered.items == 20 and clustered.percent["good"] == 50
    low, high = clustered.intervals["good"]  # type: ignore[misc]
    assert high - low > 35  # 20 dialogues; 160 independent ratings would give 15
    assert by_worker.intervals["good"] == (50, 50)


def test_equal_replies_share_the_vote():
    rows = share_rows([sheet(answers=[Answer("d", "ED", ("A", "B"), "q", "good")])], "q", BOXES)
    assert [(row.system, row.counts["good"]) for row in rows] == [("A", 1), ("B", 1)]


def test_honest_likert_effects_come_back_within_their_intervals():
    design = simple("likert", composition={"items_per_hit": 10, "raters": 3})
    items = made_items(120)
    shares = {("ED", "A"): (0.05, 0.1, 0.2, 0.35, 0.3), ("ED", "B"): (0.2, 0.3, 0.2, 0.2, 0.1)}
    truth = {s: sum((i + 1) * p for i, p in enumerate(shares["ED", s])) for s in "AB"}
    sheets = simulated_sheets(design, items, compose(design, items, ("A", "B")), Opinion(shares, {}), {"honest": 9})
    results = results_of(design, sheets, items)
    for row in results.means:
        low, high = row.interval  # type: ignore[misc]
        assert low - 0.1 < truth[row.system] < high + 0.1 and row.error == pytest.approx(row.deviation / 360**0.5)
    (difference,) = results.differences
    assert difference.difference == pytest.approx(truth["A"] - truth["B"], abs=0.25) and difference.p_value < 0.01
    assert mean_rows(sheets[:1], design, design.criteria[0], 0)[0].interval is None


# pairs


def judged(a, b, wins, losses, both=0, neither=0):
    values = ["first"] * wins + ["second"] * losses + ["both"] * both + ["neither"] * neither
    return [Answer(f"{a}{b}{i}", "ED", (a, b), "overall", value, True, -1) for i, value in enumerate(values)]


def test_pairs_whatever_side_they_stood_on():
    answers = judged("A", "B", 30, 10, 5, 5) + judged("B", "A", 10, 30)
    (found,) = pair_results(answers)
    assert (found.a, found.wins, found.losses, found.both, found.neither) == ("A", 60, 20, 5, 5)
    assert (
        found.rate == 75 and found.ratio == 3 and found.p_value < 1e-4 and found.percent()[2] == pytest.approx(100 / 9)
    )
    (none,) = pair_results(judged("A", "B", 0, 0, 3))
    assert none.p_value == 1 and none.to_dict()["ratio"] is None and none.to_dict()["rate"] is None


def test_a_ratio_and_its_mirror():
    """Rashkin et al.: 12 wins, 4 losses, 30 ties are 3.0; seen from the other side 0.333; their product is 1."""
    (one,) = pair_results(judged("A", "B", 12, 4, 20, 10))
    (other,) = pair_results(judged("A", "B", 4, 12, 20, 10))
    assert one.effect == 0.5 == -other.effect and one.to_dict()["effect"] == 0.5  # (12 - 4) / 16
    assert one.effect_interval[0] < 0.5 < one.effect_interval[1]  # type: ignore[index]
    assert one.ratio == 3 and other.ratio == pytest.approx(1 / 3) and one.ratio * other.ratio == pytest.approx(1)
    assert one.smooth_ratio == 12.5 / 4.5 and one.n == 46


def test_standard_error_as_printed():
    """50 ones and 50 fives: 0.201."""
    design = simple("likert", composition={"cards": "one"})
    answers = [Answer(f"d{i}", "ED", ("A",), "quality", "1" if i < 50 else "5") for i in range(100)]
    (row,) = mean_rows([sheet(answers=answers)], design, design.criteria[0])
    assert row.mean == 3 and row.error == pytest.approx(0.201, abs=5e-4) and row.error == row.deviation / 10


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(114, 61, 7.5e-5), (122, 73, 5.5e-4), (140, 65, 1.7e-7), (99, 88, 0.46)]
)
def test_sign_tests_of_gao_table_5(wins, losses, p):
    from scipy.stats import binomtest

    assert sign_test(wins, losses) == pytest.approx(binomtest(wins, wins + losses).pvalue)
    assert sign_test(wins, losses) == pytest.approx(p, rel=0.06)


def test_bradley_terry_is_the_maximum_of_its_likelihood():
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    truth = np.array([0.8, 0.1, -0.2, -0.7])
    wins = np.zeros((4, 4))
    rows, outcomes, weights = [], [], []
    for i in range(4):
        for j in range(i + 1, 4):
            won = rng.binomial(200, 1 / (1 + np.exp(truth[j] - truth[i])))
            wins[i, j], wins[j, i] = won, 200 - won
            contrast = np.zeros(4)
            contrast[i], contrast[j] = 1, -1
            rows.append(contrast[1:])
            outcomes.append(won / 200)
            weights.append(200)
    fit = sm.GLM(outcomes, np.array(rows), family=sm.families.Binomial(), var_weights=np.array(weights)).fit()
    other = np.array([0, *fit.params])
    assert bradley_terry(wins) == pytest.approx(other - other.mean(), abs=1e-5)


def test_strengths_of_simulated_people_come_back():
    names, truth = ("A", "B", "C", "D"), {"A": 1.0, "B": 0.3, "C": -0.3, "D": -1.0}
    design = simple("ab", composition={"items_per_hit": 10, "raters": 1, "per_pair": 60}, worker={"cap": 9})
    items = made_items(100, names)
    sheets = simulated_sheets(design, items, compose(design, items, names), Opinion({}, truth, ties=0), {"honest": 9})
    found = strengths(answers_of(sheets), "quality")
    assert [row.system for row in found] == list(names)
    inside = [row.interval[0] < truth[row.system] < row.interval[1] for row in found]  # type: ignore[index]
    assert sum(inside) >= 3  # 95 % intervals miss one in twenty
    first = simulated_sheets(design, items, compose(design, items, names), Opinion({}, truth), {"always_first": 9})
    sides = [row.rate for row in pair_results(answers_of(first))]
    assert set(sides) == {100.0}  # who always takes the manifest's first system; a page shows it on either side
    assert strengths(judged("A", "B", 3, 1), "overall") == []


def test_published_ab_rows_that_cannot_be():
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for number in read_published():
        if "human A/B" in number.setting and number.metric.endswith("%"):
            rows.setdefault((number.paper, number.row), {})[number.metric] = number.value
    bad = [
        place
        for place, row in rows.items()
        if not ((check := check_ab_row(row["Win %"], row["Loss %"], row["Tie %"], 300)).integral and check.complete)
    ]
    assert len(rows) == 16 and sum(paper == "imagine" for paper, _ in bad) == 7
    assert [row for paper, row in bad if paper == "gao2021"] == ["Ours(Hard) vs MK-EDG"]


# agreement

_ = None
TABLE = [  # Krippendorff (2011): four raters, twelve units
    (1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3),
    (_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _),
]
UNITS = [[value for value in unit if value is not None] for unit in zip(*TABLE, strict=True)]


@pytest.mark.parametrize(
    ("level", "alpha"),
    [("nominal", 0.743421), ("ordinal", 0.815388), ("interval", 0.849107), ("ratio", 0.797403)],
)
def test_krippendorff(level, alpha):
    assert krippendorff_alpha(UNITS, level) == pytest.approx(alpha, abs=1e-6)


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan])
def test_missing_ratings_are_no_category(missing):
    """The printed table as people have it: a column a rater, with gaps."""
    table = [[missing if value is None else value for value in unit] for unit in zip(*TABLE, strict=True)]
    assert krippendorff_alpha(table) == pytest.approx(0.743421, abs=1e-6)
    assert np.isnan(krippendorff_alpha([[1, missing], [2, missing], [missing, missing]]))
    raw = RawAgreement()
    raw.update([["a", "a", missing], ["a", "b", missing]])
    assert raw.compute().value == 50
    raw.update([["a", missing]])  # one label agrees with nobody: left out, as alpha leaves it
    assert raw.compute().value == 50
    with pytest.raises(DataError, match=r"item 0 has 1 rating\(s\)"):
        raw.update([["a"]])
    with pytest.raises(DataError, match="none negative"):
        FleissKappa(2).update([[np.nan, 2.0]])  # type: ignore[list-item]


SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


@pytest.mark.parametrize(
    ("form", "value"),
    [("1", 0.17), ("A,1", 0.29), ("C,1", 0.71), ("k", 0.44), ("A,k", 0.62), ("C,k", 0.91)],
)
def test_intraclass_correlations_of_the_printed_example(form, value):
    """Shrout and Fleiss (1979), table 4: four judges of six targets."""
    metric = IntraclassCorrelation(form, n_raters=4)
    metric.update(SHROUT_FLEISS[:2])
    metric.update(SHROUT_FLEISS[2:])
    assert metric.compute().value == pytest.approx(value, abs=0.005)


def test_an_intraclass_correlation_of_unequal_numbers_is_that_of_the_analysis_of_variance():
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(0)
    sizes = [2, 3, 5, 2, 4, 4, 3, 2]
    units = [(rng.normal() + rng.normal(size=n)).tolist() for n in sizes]
    frame = {"x": np.concatenate(units), "unit": np.repeat(np.arange(len(sizes)), sizes)}
    between, within = anova_lm(ols("x ~ C(unit)", frame).fit())["mean_sq"]
    k = (sum(sizes) - sum(n * n for n in sizes) / sum(sizes)) / (len(sizes) - 1)
    found = {}
    for form in ("1", "k"):
        found[form] = IntraclassCorrelation(form)
        found[form].update([*([*unit, None] for unit in units), [1.0, float("nan")]])
    assert found["1"].n_items == 8
    assert found["1"].compute().value == pytest.approx((between - within) / (between + (k - 1) * within))
    assert found["k"].compute().value == pytest.approx((between - within) / between)
    low, high = found["1"].interval(500)  # type: ignore[misc]
    assert low < found["1"].compute().value < high


def test_intraclass_correlations_that_cannot_be():
    with pytest.raises(ConfigError, match="unknown form '2'; accepted: 1, k, A,1"):
        IntraclassCorrelation("2")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="2 or more, the same for every item"):
        IntraclassCorrelation("A,1")
    with pytest.raises(DataError, match=r"item 1 has 1 rating.*one of each of 2 raters"):
        IntraclassCorrelation("C,1", 2).update([[1, 2], [1, None]])
    same = IntraclassCorrelation()
    same.update([[2, 2], [2, 2, 2]])
    assert np.isnan(same.compute().value)


def test_experts_who_rated_everything_have_the_two_way_form():
    design = simple("likert", composition={"cards": "one"})

    def rated(only=None):
        return [
            sheet(w + 1, w, answers=[Answer(f"d{d}", "ED", ("A",), "quality", str(min(5, (row[w] + 1) // 2)))
                                     for d, row in enumerate(SHROUT_FLEISS) if only is None or (d + w) % 4 != only])
            for w in range(4)
        ]  # fmt: skip

    table = [[min(5, (value + 1) // 2) for value in row] for row in SHROUT_FLEISS]
    (row,) = agreement_rows(rated(), design)
    metric = IntraclassCorrelation("A,1", 4)
    metric.update(table)
    assert row.icc_form == "A" and row.icc == pytest.approx(metric.compute().value) and row.icc_mean > row.icc
    (crowd,) = agreement_rows(rated(only=0), design)
    assert crowd.icc_form == "1" and crowd.icc != pytest.approx(row.icc)
    assert crowd.icc_interval is not None and crowd.to_dict()["icc_form"] == "1"


def test_effects_are_those_of_single_ratings():
    """Against the functions on two lists of values, and against a count of all pairs by hand."""
    rng = np.random.default_rng(1)
    a, b = (rng.multinomial(3, p, size=40).astype(float) for p in ([0.1, 0.1, 0.2, 0.3, 0.3], [0.2] * 5))
    scores = [1.0, 2.0, 3.0, 4.0, 5.0]
    one, other = (np.repeat(scores, counts.sum(axis=0).astype(int)) for counts in (a, b))
    effect = effect_of(scores, a, b)
    pairs = [np.sign(x - y) for x in one for y in other]
    assert effect.delta == pytest.approx(sum(pairs) / len(pairs)) == pytest.approx(cliff_delta(one, other))
    assert effect.d == pytest.approx(cohen_d(one, other))
    for interval, value in (
        (effect.delta_interval, effect.delta),
        (effect.d_interval, effect.d),
        (effect.difference_interval, one.mean() - other.mean()),
    ):
        assert interval is not None and interval[0] < value < interval[1]
    share = effect_of(scores, a, b, counted=[0, 0, 0, 0, 100])
    assert share.difference == pytest.approx(100 * ((one == 5).mean() - (other == 5).mean()))
    assert share.difference_interval[0] < share.difference < share.difference_interval[1]  # type: ignore[index]
    assert share.delta == effect.delta and effect.difference == pytest.approx(one.mean() - other.mean())
    flat = effect_of(scores, np.tile([0, 0, 3.0, 0, 0], (4, 1)), np.tile([0, 0, 3.0, 0, 0], (4, 1)))
    assert flat.delta == 0 and np.isnan(flat.d) and flat.d_interval is None


def test_krippendorff_where_it_is_undefined():
    assert np.isnan(krippendorff_alpha([[1], [2]])) and np.isnan(krippendorff_alpha([[3, 3], [3, 3]]))
    assert krippendorff_alpha([[1, 1], [2, 2]]) == 1
    with pytest.raises(ConfigError, match="unknown level 'ordinl'"):
        krippendorff_alpha([[1, 2]], "ordinl")  # type: ignore[arg-type]


def test_agreement_of_one_rater_is_undefined_and_fleiss_is_statsmodels():
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    design = simple("drag")
    rng = random.Random(0)
    values = {(d, w): rng.choice(["good", "okay"] if d % 2 else BOXES) for d in range(30) for w in range(4)}
    sheets = [
        sheet(w + 1, w, answers=[Answer(f"d{d}", "ED", ("A",), "quality", values[d, w]) for d in range(30)])
        for w in range(4)
    ]
    (row,) = agreement_rows(sheets, design)
    table, _ = aggregate_raters([[BOXES.index(values[d, w]) for w in range(4)] for d in range(30)])
    assert row.fleiss == pytest.approx(fleiss_kappa(table)) and row.units == 30 and row.level == "ordinal"
    (alone,) = agreement_rows(sheets[:1], design)
    assert alone.percent is None and np.isnan(alone.alpha) and alone.to_dict()["alpha"] is None
    crowd = worker_rows(sheets)
    assert len(crowd) == 4 and all(0 < w.agreement < 100 for w in crowd)  # type: ignore[operator]


# plans


def test_needed_wins_and_power():
    assert [needed_wins(n) for n in (50, 100, 200, 300)] == [33, 61, 115, 168]
    assert plan_preference(0.6, ties=0).items == pytest.approx(199, abs=6)  # exact test, power 0.8
    n = plan_preference(0.65, ties=0.2, raters=2, comparisons=3)
    assert sign_power(int(n.ratings * 0.8), 0.65, 0.05 / 3) >= 0.79


def test_plans_hold_in_simulation():
    plan = plan_means(0.5, deviation=1.0, raters=3, correlation=0.4)
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(300):
        means = []
        for shift in (0, 0.5):
            dialogue = rng.normal(shift, 0.4**0.5, plan.items)
            means.append((dialogue[:, None] + rng.normal(0, 0.6**0.5, (plan.items, 3))).mean(axis=1))
        difference = means[0].mean() - means[1].mean()
        error = (means[0].var(ddof=1) / plan.items + means[1].var(ddof=1) / plan.items) ** 0.5
        found += abs(difference) > 1.96 * error
    assert 0.72 < found / 300 < 0.88
    assert plan_shares(0.32, 0.35).items < plan_shares(0.32, 0.34).items
    for wrong in (
        lambda: plan_shares(0.3, 0.3),
        lambda: plan_means(0),
        lambda: plan_preference(0.4),
        lambda: plan_shares(0.1, 0.2, power=1),
    ):
        with pytest.raises(ConfigError, match="accepted"):
            wrong()


@pytest.mark.parametrize("name", ["rashkin_ratings", "rashkin_ab", "dialogue_pairs", "meed2"])
@pytest.mark.parametrize("null", [False, True])
def test_made_up_people_differ_in_what_they_see_and_agree_somewhat(name, null):
    design = read_design(f"studies/{name}", ["composition.raters=3", "worker.cap=1000", "published=[]"])
    names = ("A", "B", "C")
    items = [
        StudyItem(i.id, i.set, i.context, {**i.candidates, GOLD: Candidate(GOLD, f"g{i.id}")}, "", i.reference)
        if design.composition.with_gold
        else i
        for i in made_items(100, names)
    ]
    opinion = plausible(design, names, seed=3, is_null=null)
    assert {opinion.strengths[system] for system in names} == ({0.0} if null else {-0.6, 0.0, 0.6})
    sheets = simulated_sheets(design, items, compose(design, items, names), opinion, {"honest": 12})
    results = results_of(design, sheets, items, n_resamples=100)
    assert len(sheets) == results.sheets[1]  # nobody is filtered out
    best, *_, worst = sorted(names, key=lambda system: -opinion.strengths[system])
    for row in [*results.differences, *results.pairs]:
        effect = row.effect if isinstance(row, PairResult) else row.effect.delta
        if {row.a, row.b} == {best, worst}:
            assert abs(effect) < 0.25 if null else (effect > 0.2) == (row.a == best)
    assert all(0.03 < row.alpha < 0.6 for row in results.agreement)
    assert [row.icc_form for row in results.agreement] == ["" if results.pairs else "1"] * len(results.agreement)


def test_a_printed_table_is_what_made_up_people_think():
    shares, systems, _ = published_shares()
    opinion = plausible(meed2(), systems)
    assert opinion.shares == shares and plausible(meed2(), systems, is_null=True).shares == {}


def test_unknown_raters_are_told():
    with pytest.raises(ConfigError, match=r"'honst'. Did you mean 'honest'"):
        Rater("honst", Opinion({}, {}), 0)
    design, items = meed2(), made_items(10)
    with pytest.raises(ConfigError, match="1 raters of at most 50 HITs cannot take 4 seats"):
        simulated_sheets(design, items, compose(design, items, ("A", "B")), Opinion({}, {}), {"honest": 1})
