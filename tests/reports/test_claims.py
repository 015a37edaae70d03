"""Differences between rows: what a paper claims, what our runs show, and whether chance is ruled out."""

import json
import math
from html.parser import HTMLParser

import pytest
import yaml

from empatheia.documents.markdown import to_markdown
from empatheia.metrics.published import published
from empatheia.metrics.score import Score
from empatheia_research.reports import claims as module
from empatheia_research.reports.claims import OUTCOMES, Claim, claims_of, compare_at, compared, together
from empatheia_research.reports.reproduction import read_runs, report_table
from empatheia_research.reports.reproduction_pages import reproduction_document, reproduction_page, short_text
from empatheia_research.reports.targets import read_targets, tables
from empatheia_research.reports.totals import line_that_counts, state_of, totals_of
from empatheia_research.shipped import recipes_root

SOFT, NONE = "gao2021/soft", "gao2021/without_ec"


@pytest.fixture(scope="module")
def targets():
    return read_targets(recipes_root())


def score(name, value, half=None, n=100, refs="a", unit="percent"):
    interval = None if half is None else [value - half, value + half]
    signature = f"refs:{refs}|tok:word-9"
    facts = {"name": name, "value": value, "unit": unit, "n": n, "higher_is_better": True}
    return facts | {"interval": interval, "signature": signature}


def keep(folder, recipe, accuracy, half=1.0, size="row", seed=1024, **facts):
    file = folder / recipe / f"{size}-seed{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "recipe": recipe,
        "size": size,
        "seed": seed,
        "metrics": {"accuracy": score("accuracy", accuracy, half, **facts)},
    }
    record["environment"] = {"commit": "c" * 40}
    file.write_text(json.dumps(record), encoding="utf-8")


@pytest.fixture
def claim():
    table = [published("gao2021", "4", row)["Accuracy"] for row in ("Ours(Soft)", "Ours(Soft) w/o ec")]
    return Claim("causes help", *table)


def outcome(claim, targets, folder, size="row"):
    return compare_at(claim, targets, read_runs(folder), size)


def test_what_is_printed(claim):
    assert claim.printed == pytest.approx(3.9)  # 42.4 - 38.5
    assert claim.printed_margin == pytest.approx(2.306 * math.sqrt((0.3**2 + 0.5**2) / 5))  # t of 8 degrees of freedom
    bare = Claim("", *(published("imagine", "2", row)["ACC"] for row in ("IMAGINE", "IMAGINE w/o cause")))
    assert bare.printed == pytest.approx(1.0) and bare.printed_margin == pytest.approx(0.01, abs=1e-6)


@pytest.mark.parametrize(
    ("soft", "without", "half", "wanted"),
    [(42, 38, 1.0, "held"), (42, 41, 1.0, "same sign"), (41, 42, 1.0, "other sign"), (38, 42, 1.0, "not held")],
)
def test_one_run_each(claim, targets, tmp_path, soft, without, half, wanted):
    keep(tmp_path, SOFT, soft, half)
    keep(tmp_path, NONE, without, half)
    found = outcome(claim, targets, tmp_path)
    assert (found.outcome, found.ours, found.seeds) == (wanted, soft - without, (1024,))
    assert found.interval == pytest.approx((soft - without - math.sqrt(2), soft - without + math.sqrt(2)))
    assert found.deviation is None and found.p_value is None
    assert outcome(claim, targets, tmp_path, "cpu").outcome == "no run"


def test_several_seeds_are_paired(claim, targets, tmp_path):
    """Student 1908 by hand: differences 1, 2, 3, 4, 5 have mean 3, deviation sqrt(2.5), t = 3 / sqrt(.5) = 4.243."""
    scipy = pytest.importorskip("scipy.stats")
    soft = {1024: 41.0, 2048: 42.0, 3170: 43.0, 4096: 44.0, 5120: 45.0}
    for seed, value in soft.items():
        keep(tmp_path, SOFT, value, seed=seed)
        keep(tmp_path, NONE, 40.0, seed=seed)
    keep(tmp_path, NONE, 90.0, seed=7)  # a seed that only one row has does not count
    found = outcome(claim, targets, tmp_path)
    assert (found.outcome, found.ours, found.seeds) == ("held", 3.0, tuple(soft))
    assert found.deviation == pytest.approx(math.sqrt(2.5))
    half = scipy.t.ppf(0.975, 4) * math.sqrt(0.5)
    assert found.interval == pytest.approx((3 - half, 3 + half), abs=1e-3)
    assert found.p_value == pytest.approx(2 * scipy.t.sf(3 / math.sqrt(0.5), 4))
    assert (found.p_value < 0.05) == (found.interval[0] > 0)


def test_quantiles_are_students():
    scipy = pytest.importorskip("scipy.stats")
    assert [scipy.t.ppf(0.975, d) for d in range(1, len(module.T_95) + 1)] == pytest.approx(module.T_95, abs=5e-4)


def test_other_items_or_pieces_are_not_subtracted(claim, targets, tmp_path):
    keep(tmp_path, SOFT, 42)
    keep(tmp_path, NONE, 38, n=99)
    found = outcome(claim, targets, tmp_path)
    assert (found.outcome, found.why) == ("not comparable", "other test items (100 and 99)") and math.isnan(found.ours)
    keep(tmp_path, NONE, 38, refs="b")
    assert outcome(claim, targets, tmp_path).why == "other test items (100 and 100)"
    one, other = (Score("ppl_item", 9.0, "perplexity", 5, False, None, f"tok:word-{n}") for n in (1, 2))
    assert module._not_the_same(one, other) == "over other pieces (word-1 and word-2)"


def test_the_interval_of_a_difference():
    """Square-and-add of two symmetric intervals is the root of the sum of squares; without one there is none."""
    one, other = (
        Score("accuracy", value, "percent", 9, True, (value - h, value + h)) for value, h in ((9.0, 3.0), (5.0, 4.0))
    )
    assert together(one, other) == pytest.approx((4 - 5, 4 + 5))
    assert together(one, Score("accuracy", 5.0, "percent", 9, True)) is None


def test_a_record_of_an_earlier_recipe_or_another_system_does_not_count(targets, tmp_path, monkeypatch):
    (claim,) = [c for c in claims_of("imagine/1") if c.number.metric == "ACC" and c.against.row == "KEMP"]
    keep(tmp_path, "imagine/imagine", 41, size="cpu", seed=42)
    keep(tmp_path, "kemp/kemp_imagine", 38, size="cpu")
    (found,) = compared([claim], targets, read_runs(tmp_path))
    assert (found.outcome, found.seeds) == ("held", (42, 1024))  # they have no seed in common
    monkeypatch.setattr(module, "queued_anew", lambda record: record["recipe"] == "imagine/imagine")
    (found,) = compared([claim], targets, read_runs(tmp_path))
    assert found.outcome == "no run"
    stand_in = next(t for t in targets if t.recipe == "rashkin2018/retrieval_minilm")
    assert stand_in.stands_in and not any(t.stands_in for t in targets if t.recipe == "rashkin2018/retrieval_base")


def test_the_file_names_printed_rows_and_every_table_of_ablations_has_claims():
    from pathlib import Path

    entries = yaml.safe_load(Path(module.__file__).with_name("claims.yaml").read_text(encoding="utf-8"))
    for entry in entries:
        assert set(entry) <= {"paper", "table", "says", "row", "against", "against_table"}
        assert list(module._claims_of_entry(entry)), entry
        for row in [entry["row"]] if isinstance(entry["row"], str) else entry["row"]:
            assert module._numbers(entry["paper"], entry["table"], row), (entry["table"], row)
    assert {"gao2021/4", "imagine/2", "rashkin2018/2"} <= {key for key in tables() if claims_of(key)}
    for claim in module._claims():
        assert (claim.number.metric, claim.number.dataset) == (claim.against.metric, claim.against.dataset)
        assert claim.number != claim.against


def test_context_is_claimed_across_tables():
    found = [c for c in claims_of("reccon/subtask-2-with-context") if c.against.table != c.number.table]
    assert {c.against.table for c in found} == {"subtask 2, without context"}
    assert all(c.number.row == c.against.row for c in found) and len(found) == 9


# -- in the report -------------------------------------------------------------------------------------------


class Tables(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.cells = []
        self.feed(text)

    def handle_data(self, data):
        self.cells.append(data)


def test_runs_of_size_row_have_a_view_of_their_own(targets, tmp_path):
    keep(tmp_path, SOFT, 42)
    keep(tmp_path, NONE, 38)
    keep(tmp_path, "gao2021/soft_without_el", 50, size="cpu")
    records = read_runs(tmp_path)
    report = report_table("gao2021/4", targets, records)
    assert {line.size for line in report.lines if line.verdict} == {"cpu"}
    assert {line.recipe for line in report.row_lines} == {SOFT, NONE}
    assert all(line.verdict.verdict.startswith("not comparable: made small") for line in report.row_lines)
    assert (report.n_rows_with_run, report.n_rows_at_row_size) == (1, 3)  # without causes is printed twice
    assert any(SOFT in run.command for run in report.missing)  # at size cpu it is still to be made
    text = short_text(report)
    assert "at size row: 3 rows; empatheia reproduce gao2021/4 --size row" in text and "+4.00" not in text
    at_row = report_table("gao2021/4", targets, records, size="row")
    text = short_text(at_row)
    assert "+3.9 (± 0.6)" in text and "+4.00" in text and "held" in text and "gao2021/soft_without_el cpu" not in text
    assert not any(run.target.recipe in (SOFT, NONE) for run in at_row.missing)
    assert all("--size row" in run.command for run in at_row.missing)
    for page in (to_markdown(reproduction_document(report)), " ".join(Tables(reproduction_page(report)).cells)):
        assert "At size row" in page and "What the paper claims, at size row" in page and "+3.9 (± 0.6)" in page
    (told,) = [
        c for c in report.to_dict()["claims"] if c["against"] == "Ours(Soft) w/o ec" and c["metric"] == "Accuracy"
    ]
    assert (told["size"], told["outcome"], told["difference"], told["published_difference"]) == (
        "row",
        "held",
        4.0,
        3.9,
    )


def test_a_larger_run_does_not_stand_for_one_of_size_row(targets, tmp_path):
    keep(tmp_path, SOFT, 42, size="cpu")
    report = report_table("gao2021/4", targets, read_runs(tmp_path), size="row")
    assert SOFT in {run.target.recipe for run in report.missing}


def test_totals_count_every_value_once(targets, tmp_path):
    keep(tmp_path, SOFT, 42.9, size="cpu")
    keep(tmp_path, "gao2021/soft_repo", 10.0, size="cpu")
    keep(tmp_path, "gao2021/hard", 41.0, size="cpu")
    keep(tmp_path, NONE, 41.0)
    reports = [report_table(key, targets, read_runs(tmp_path)) for key in tables()]
    found = totals_of(reports)
    states = ("reached", "within_tolerance", "missed", "not_comparable", "no_run", "not_to_be_had")
    assert sum(found.values[state] for state in states) == found.values["printed"] == 718
    # printed accuracy in tables 2, 4 and 7 (run 1): Soft 42.4 ± .3, the same, 41.9; Hard 42.3 ± .3, the same, 41.8
    assert (found.values["reached"], found.values["missed"], found.values["within_tolerance"]) == (3, 2, 1)
    assert found.rows["with_neither"] == 0
    assert found.rows["with_recipe"] + found.rows["with_reason"] == found.rows["printed"] == 199
    assert found.rows["with_run"] > found.rows["with_run_beside_print"] > 0 and found.rows["at_row_size"] == 2
    assert set(found.claims["row"]) == set(OUTCOMES)
    assert (found.runs["runs"], found.runs["recipes"], found.runs["most_seeds"]) == (4, 4, 1)
    runs = {(run["recipe"], run["size"], run["seed"]): run for report in reports for run in report.runs}
    seconds = sum(run.get("training_seconds") or 0 for run in runs.values())
    assert found.runs["training_hours"] == pytest.approx(seconds / 3600, abs=0.005)
    json.dumps(found.to_dict())


def test_of_several_runs_of_a_value_the_comparable_and_larger_one_counts(targets, tmp_path):
    for size, value in (("cpu", 30.0), ("full", 42.4)):
        keep(tmp_path, SOFT, value, size=size)
        keep(tmp_path, "gao2021/soft_repo", 1.0, size=size)
    lines = [
        line
        for line in report_table("gao2021/2", targets, read_runs(tmp_path)).lines
        if line.number.row == "Ours(Soft)" and line.number.metric == "Accuracy"
    ]
    assert len(lines) == 4
    chosen = line_that_counts(lines)
    assert (chosen.recipe, chosen.size, state_of(chosen)) == (SOFT, "full", "reached")


def test_rows_with_neither_recipe_nor_reason_are_none(targets):
    reports = [report_table(key, targets, []) for key in tables()]
    assert all(one.n_rows_with_neither == 0 for one in reports)
    assert {one.key for one in reports if one.n_rows_with_reason} >= {"rashkin2018/9", "meed2/7"}


def test_the_interval_of_a_difference_reaches_where_both_parts_err_most():
    """Lower end: the first too high and the second too low, by hand: 4 - hypot(3, 4), 4 + hypot(1, 1)."""
    one = Score("accuracy", 9.0, "percent", 9, True, (6.0, 10.0))
    other = Score("accuracy", 5.0, "percent", 9, True, (4.0, 9.0))
    assert together(one, other) == pytest.approx((4 - 5, 4 + math.sqrt(2)))
