"""A table beside self-made runs: values, means over seeds, verdicts, what is missing, and the pages."""

import json
import math
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

from empatheia.documents.document import Figure
from empatheia.documents.markdown import to_markdown
from empatheia.errors import DataError
from empatheia.metrics.published import compare, published
from empatheia.metrics.score import Score
from empatheia_research.reports.reproduction import read_runs, report_table, scores_for
from empatheia_research.reports.reproduction_pages import (
    overview_text,
    reproduction_document,
    reproduction_page,
    short_text,
)
from empatheia_research.reports.targets import read_targets, tables
from empatheia_research.shipped import recipes_root

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def targets():
    return read_targets(recipes_root())


def score(name, value, unit="percent", interval=None, better=True):
    return {"name": name, "value": value, "unit": unit, "n": 50, "higher_is_better": better, "interval": interval}


def keep(folder, recipe, metrics, size="cpu", seed=1024, note=""):
    file = folder / recipe / f"{size}-seed{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    record = {"recipe": recipe, "size": size, "seed": seed, "note": note, "metrics": metrics}
    record |= {
        "training_seconds": 90.0,
        "parameters": 2_500_000,
        "environment": {"device": "2 CPU cores", "commit": "c" * 40},
    }
    file.write_text(json.dumps(record), encoding="utf-8")
    return file


def soft(bleu, accuracy):
    return {
        "bleu_nltk_4": score("bleu_nltk_4", bleu, interval=[bleu - 0.3, bleu + 0.3]),
        "accuracy": score("accuracy", accuracy, interval=[accuracy - 1, accuracy + 1]),
        "dist_corpus_1": score("dist_corpus_1", 1.9),
    }


def lines_of(report, recipe, metric):
    return [line for line in report.lines if line.recipe == recipe and line.number.metric == metric]


def test_a_run_beside_the_printed_row(tmp_path, targets):
    keep(tmp_path, "gao2021/soft", soft(1.9, 41.8), note="Small.")
    report = report_table("gao2021/2", targets, read_runs(tmp_path))
    (bleu,) = lines_of(report, "gao2021/soft", "BLEU")
    assert bleu.verdict.ours == 1.9 and bleu.verdict.interval == pytest.approx((1.6, 2.2))
    assert bleu.verdict.verdict == "met" and bleu.verdict.tolerance.value == pytest.approx(0.126)
    assert bleu.verdict.difference == pytest.approx(1.9 - 1.774)
    assert bleu.run == "gao2021/soft cpu, seed 1024" and bleu.is_inside
    (accuracy,) = lines_of(report, "gao2021/soft", "Accuracy")
    assert accuracy.verdict.verdict == "met" and accuracy.is_inside  # 42.4 less two printed deviations of 0.3
    (distinct,) = lines_of(report, "gao2021/soft", "Dist-1")
    assert distinct.verdict.ours == pytest.approx(0.019)  # the paper prints a fraction
    (bert,) = lines_of(report, "gao2021/soft", "F_BERT")
    assert bert.verdict.verdict == "not comparable: bertscore_f_rescaled was not measured"
    assert (report.n_rows, report.n_rows_with_recipe, report.n_rows_with_run) == (6, 6, 1)
    assert report.notes[max(bleu.marks) - 1].text == "gao2021/soft: Small."  # the run's own, not that of another size
    assert [note.text for note in report.notes if note.text.startswith("gao2021/soft")] == ["gao2021/soft: Small."]
    baseline = next(line for line in report.lines if line.number.row == "MoEL")
    assert baseline.verdict is None and baseline.reason is None  # it has a recipe, and waits for its run
    assert any("recipes/gao2021/moel.yaml" in run.command for run in report.missing)


def test_several_seeds_are_a_mean_with_their_deviation(tmp_path, targets):
    for seed, bleu in ((1024, 1.6), (2048, 1.8), (3170, 1.7)):
        keep(tmp_path, "gao2021/soft", soft(bleu, 42.0), seed=seed)
    report = report_table("gao2021/2", targets, read_runs(tmp_path))
    (bleu,) = lines_of(report, "gao2021/soft", "BLEU")
    assert bleu.verdict.ours == pytest.approx(1.7) and bleu.deviation == pytest.approx(0.1)
    assert bleu.seeds == (1024, 2048, 3170) and bleu.verdict.interval is None
    assert bleu.verdict.verdict == "met" and not bleu.verdict.is_reached  # 0.074 under the mean, its deviation is 0.063
    assert "± 0.100 over 3 seeds" in short_text(report)
    (left,) = [run for run in report.as_published if run.target.recipe == "gao2021/soft"]
    assert left.seeds == (1024, 2048, 3170, 4096, 5120) and left.size == "full"


def test_single_runs_of_the_paper_are_set_beside_their_seed(tmp_path, targets):
    keep(tmp_path, "gao2021/soft", soft(1.6, 42.0), seed=2048)
    report = report_table("gao2021/7", targets, read_runs(tmp_path))
    found = [line for line in lines_of(report, "gao2021/soft", "BLEU") if line.verdict is not None]
    assert [line.number.setting for line in found] == ["automatic; run 2 of 5"]
    (missing,) = [run for run in report.missing if run.target.recipe == "gao2021/soft"]
    assert missing.seeds == (1024, 3170, 4096, 5120)


def test_missing_runs_and_their_commands(tmp_path, targets, monkeypatch):
    monkeypatch.chdir(recipes_root().parent)
    report = report_table("rashkin2018/9", targets, [], results=tmp_path)
    assert [run.command for run in report.missing] == [
        f"empatheia train recipes/rashkin2018/{name}.yaml --size cpu --record {tmp_path}"
        for name in ("fasttext", "emotion_situation", "fasttext_cut", "emotion_situation_cut")
    ]
    keep(tmp_path, "rashkin2018/fasttext", {"accuracy": score("accuracy", 44.0)}, size="full")
    report = report_table("rashkin2018/9", targets, read_runs(tmp_path))
    assert "rashkin2018/fasttext" not in {run.target.recipe for run in (*report.missing, *report.as_published)}
    assert len(report.missing) == 3  # a full run stands for a cpu run


def test_a_long_list_of_commands_is_cut_in_the_terminal_and_whole_in_the_report(targets):
    report = report_table("rashkin2018/2", targets, [])
    n = len(report.missing)
    assert n > 20
    text, page = short_text(report), to_markdown(reproduction_document(report))
    assert sum(run.command in text for run in report.missing) == 7
    assert f"  and {n - 7} more, in the report" in text
    assert all(run.command in page for run in report.missing)


def test_old_records_and_both_thresholds_of_reccon(tmp_path, targets):
    plain = {"positive_f1": 66.0, "negative_f1": 88.0, "macro_f1": 77.0, "n_positive": 10, "n_negative": 30}
    tuned = plain | {"scores": {"entailment_f1_macro": score("entailment_f1_macro", 78.0, interval=[77.0, 79.0])}}
    metrics = {"fold1 pairs, threshold 0.5": plain, "fold1 pairs, threshold tuned on valid": tuned}
    keep(tmp_path, "reccon/entailment", metrics)
    report = report_table("reccon/subtask-2-with-context", targets, read_runs(tmp_path))
    macro = [line for line in lines_of(report, "reccon/entailment", "macro F1") if line.verdict is not None]
    assert [(line.variant, line.verdict.ours) for line in macro] == [
        ("threshold 0.5, as published", 77.0),
        ("threshold tuned on valid", 78.0),
    ]
    assert {line.number.row for line in macro} == {"RoBERTa-base, train 1, test 1"}
    again = next(run for run in report.missing if run.target.recipe == "reccon/entailment")
    assert again.is_partial and str(again).endswith("lacks rows of this table")
    without = report_table("reccon/subtask-2-without-context", targets, read_runs(tmp_path))
    assert without.n_rows_with_run == 0


@pytest.mark.parametrize(("setting", "found"), [("ED", [5.9]), ("ED+DD", [5.6]), ("ED+DD+R", [])])
@pytest.mark.parametrize("first", ["own", "own+dailydialog"])
def test_a_score_over_printed_candidates_stands_under_them(setting, found, first):
    """The keys a retrieval run writes: its first set of candidates has no prefix."""
    number = published("rashkin2018", "2", "Base (retrieval)", f"candidates={setting}")["AVG BLEU"]
    values = {"own": score("bleu_avg", 5.9), "own+dailydialog": score("bleu_avg", 5.6)}
    metrics = {"bleu_avg" if name == first else f"{name}: bleu_avg": value for name, value in values.items()}
    record = {"metrics": metrics, "data": {"candidates": {first: 100}}}
    assert [own.value for _, own in scores_for(record, number)] == found


def test_the_kept_retrieval_run_answers_both_its_rows():
    """The record of a real run, so that its keys cannot drift from what the report reads."""
    kept = [r for r in read_runs(RESULTS) if (r["recipe"], r["size"]) == ("rashkin2018/retrieval_minilm", "cpu")]
    record = kept[0]
    for setting in ("ED", "ED+DD"):
        number = published("rashkin2018", "2", "Base (retrieval)", f"candidates={setting}")["AVG BLEU"]
        ((_, own),) = scores_for(record, number)
        (verdict,) = compare([own], {"AVG BLEU": number})
        assert not verdict.verdict.startswith("not comparable")


@pytest.mark.parametrize(
    ("paper", "table", "row", "metric", "name", "signature"),
    [
        ("rashkin2018", "2", "Base (generation)", "AVG BLEU", "bleu_avg", "case:mixed|tok:space"),
        ("rashkin2018", "2", "Base (generation)", "PPL", "ppl_token", "tok:word-24185"),
        ("meed2", "3", "Raw (ED)", "PPL", "ppl_token", "tok:bpe-8000"),
    ],
)
def test_numbers_over_other_words_get_no_verdict(paper, table, row, metric, name, signature):
    places = {"dataset": "ED test"} if paper == "meed2" else {}
    number = published(paper, table, row, **places)[metric]
    unit = "perplexity" if metric == "PPL" else "percent"
    (verdict,) = compare([Score(name, 5.0, unit, 9, metric != "PPL", signature=signature)], {metric: number})
    assert verdict.verdict.startswith("not comparable: measured with")
    good = {"AVG BLEU": "case:mixed|tok:rashkin"}.get(
        metric, "tok:hf-50265" if paper == "meed2" else "tok:rashkin-250006"
    )
    (verdict,) = compare([Score(name, 5.0, unit, 9, metric != "PPL", signature=good)], {metric: number})
    assert not verdict.verdict.startswith("not comparable")


def test_smoke_runs_are_never_compared(tmp_path, targets):
    keep(tmp_path, "gao2021/soft", soft(99.0, 99.0), size="smoke")
    left = report_table("gao2021/2", targets, read_runs(tmp_path))
    assert left.n_rows_with_run == 0 and left.left_out == ("gao2021/soft smoke, seed 1024",)
    for page in (short_text(left), to_markdown(reproduction_document(left)), reproduction_page(left)):
        assert "smoke runs, left out" in page and "gao2021/soft smoke, seed 1024" in page
    assert report_table("rashkin2018/9", targets, read_runs(tmp_path)).left_out == ()
    report = report_table("gao2021/2", targets, read_runs(tmp_path), size="smoke")
    (bleu,) = lines_of(report, "gao2021/soft", "BLEU")
    assert bleu.verdict.verdict == "not comparable: measured on the self-written sample"
    assert report.left_out == ()
    for page in (short_text(report), to_markdown(reproduction_document(report)), reproduction_page(report)):
        assert "none of their values compares with print" in page


def test_run_folders_and_broken_records(tmp_path):
    run = tmp_path / "runs" / "x" / "cpu-seed1"
    run.mkdir(parents=True)
    with pytest.raises(DataError, match="holds no finished run"):
        read_runs(tmp_path / "results", [run])
    (run / "metrics.json").write_text(json.dumps({"recipe": "x", "size": "cpu", "seed": 1, "metrics": {}}))
    assert [record["recipe"] for record in read_runs(tmp_path / "results", [tmp_path / "runs"])] == ["x"]
    for bad in ('{"recipe": "x"', '{"recipe": "x", "size": "tiny", "seed": 1, "metrics": {}}'):
        (run / "metrics.json").write_text(bad)
        with pytest.raises(DataError, match="not a whole run record"):
            read_runs(tmp_path / "results", [run])


def test_half_a_score_of_an_old_record_is_shown_without_interval(tmp_path, targets):
    keep(tmp_path, "gao2021/soft", {"accuracy": {"value": 40.0, "unit": "percent"}})
    report = report_table("gao2021/2", targets, read_runs(tmp_path))
    (ours,) = {line.verdict.ours for line in report.lines if line.verdict and not math.isnan(line.verdict.ours)}
    assert ours == 40


def test_commands_can_be_pasted(targets, tmp_path):
    report = report_table("meed2/text", targets, [], results=tmp_path / "my results")
    assert all(shlex.split(run.command)[-1] == str(tmp_path / "my results") for run in report.missing)
    assert report.missing


def test_every_table_makes_all_pages(targets):
    reports = [report_table(key, targets, []) for key in tables()]
    for report in reports:
        Page(reproduction_page(report))
        assert to_markdown(reproduction_document(report)).startswith(f"# {report.paper}, {report.table}\n")
        assert short_text(report).startswith(f"{report.key}: ")
        json.dumps(report.to_dict())
        assert all(line.recipe or line.reason for line in report.lines)
        assert {run.target.recipe for run in report.missing} >= {line.recipe for line in report.lines} - {""}
    text = overview_text(reports)
    assert re.search(r"^gao2021/4 +10 +10 +0 +0 +0$", text, re.MULTILINE)
    assert re.search(r"^gao2021/3 +- .*Rated by people", text, re.MULTILINE)


class Page(HTMLParser):
    """Every element closed in order, ids unique, nothing loaded from elsewhere."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.words, self.tags = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open and len(set(self.ids)) == len(self.ids)
        assert all(link[1:] in self.ids for link in self.links if link.startswith("#"))
        assert not {"script", "link", "iframe"} & set(self.tags)
        assert "url(" not in text and "@import" not in text

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append(tag)
        assert not str(named.get("src", "")).startswith("http")
        self.ids += [named["id"]] if "id" in named else []
        self.links += [named["href"]] if "href" in named else []
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_says_it_all_and_escapes(tmp_path, targets):
    keep(tmp_path, "gao2021/soft", soft(1.9, 41.6), note="</table><script>alert(1)</script> | a")
    report = report_table("gao2021/2", targets, read_runs(tmp_path))
    page = Page(reproduction_page(report, [Figure("Training", b"<svg xmlns='http://www.w3.org/2000/svg'/>")]))
    words = " ".join(page.words)
    for part in (
        "1.900",
        "1.774 ± 0.063",
        "+0.126",
        "± 0.126",
        "met",
        "missed, inside our interval",
        "empatheia train",
    ):
        assert part in words, part
    assert "gao2021/moel.yaml" in words and "alert(1)" in words and "img" in page.tags
    assert "prefers-color-scheme: dark" in words
    plain = to_markdown(reproduction_document(report, [Figure("Training", address="curves.svg")]))
    table = [line for line in plain.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table if "Ours(" in line}) == 1
    assert "![Training](curves.svg)" in plain and "\\| a" in plain


def test_a_page_fits_a_narrow_screen(targets):
    """Wide tables scroll by themselves."""
    records = read_runs(RESULTS)
    page = reproduction_page(report_table("gao2021/2", targets, records))
    assert (
        page.count("<table") == page.count("><table") == page.count('<div class="chart"') > 3
    )  # in boxes of their own
    assert ".chart > table { min-width" in page
    runs = page.partition("<h2>Runs</h2>")[2]
    assert "<td>70</td>" in runs and "<td>0</td>" not in runs  # minutes: those of the run whose weights are measured
