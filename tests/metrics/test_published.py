"""The transcription of printed numbers, and verdicts beside them."""

import math
from collections import Counter

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError
from empatheia.metrics import METRICS
from empatheia.metrics.published import (
    DEFINITIONS,
    PAPERS,
    REQUIRED,
    Published,
    compare,
    published,
    read_published,
    to_text,
)
from empatheia.metrics.retrieval import HitsAtK
from empatheia.metrics.score import Score


def row(**changes):
    facts = {
        "paper": "gao2021", "table": "Table 2", "dataset": "ED", "setting": "automatic", "row": "X",
        "metric": "Accuracy", "value": 40.0, "std": 1.0, "higher_is_better": True, "decimals": 1,
    }  # fmt: skip
    number = Published(**{**facts, **changes})
    return {number.metric: number}


def verdict(value, **changes):
    name = changes.pop("score", "accuracy")
    unit = changes.pop("unit", "percent")
    score = Score(name, value, unit, 10, changes.get("higher_is_better", True))
    return compare([score], row(**changes))[0].verdict


def test_every_paper_is_there_and_readable():
    counts = Counter(number.paper for number in read_published())
    assert set(counts) == set(PAPERS)
    assert all(math.isfinite(number.value) for number in read_published())
    assert counts.total() > 1000


def test_known_rows():
    soft = published("gao2021", "Table 2", "Ours(Soft)")
    assert str(soft["BLEU"]) == "1.774 ± 0.063"
    assert (soft["Dist-1"].value, soft["Dist-1"].decimals, soft["Accuracy"].std) == (0.017, 3, 0.3)
    assert published("imagine", "1", "IMAGINE")["Distinct-1"].higher_is_better is True
    assert published("rashkin2018", "2", "Base (generation)")["PPL"].value == 21.24
    assert published("kim2021", "README statistics table", "EmoCause")["n_emotions"].value == 32


def test_choosing_a_setting():
    with pytest.raises(ConfigError, match="a metric is printed more than once; choose by setting"):
        published("gao2021", "Table 7", "MoEL")
    assert published("gao2021", "Table 7", "MoEL", setting="run 2")["BLEU"].value == 1.61
    with pytest.raises(ConfigError, match=r"choose by setting='', dataset=''.*EDOS"):
        published("meed2", "Table 3", "Raw (ED)")
    assert published("meed2", "Table 3", "Raw (ED)", dataset="OS")["PPL"].value == 793.9  # not EDOS
    retrieval = ("rashkin2018", "Table 2", "Base (retrieval)")
    assert list(published(*retrieval, setting="retrieval")) == ["P@1,100"]
    assert published(*retrieval, setting="candidates=ED")["AVG BLEU"].setting == "retrieval; candidates=ED"


def test_unknown_names_are_suggested():
    with pytest.raises(ConfigError, match=r"unknown paper: 'gao2020'\. Did you mean 'gao2021'"):
        published("gao2020", "2", "MoEL")
    with pytest.raises(ConfigError, match="unknown table of gao2021: 'Table 12'"):
        published("gao2021", "12", "MoEL")
    with pytest.raises(ConfigError, match=r"unknown row of gao2021, Table 2: 'Soft'.*Ours\(Soft\)"):
        published("gao2021", "2", "Soft")
    with pytest.raises(ConfigError, match="nothing matches setting='run 9'"):
        published("gao2021", "Table 7", "MoEL", setting="run 9")


def test_verdicts():  # of a printed 40.0 with deviation 1.0, or with none
    assert verdict(42.1) == "better"
    assert verdict(42.0) == verdict(39.96) == verdict(38.0) == "met"
    assert verdict(37.9) == "missed"
    assert verdict(41.0, std=None) == verdict(39.0, std=None) == "met"  # a point of accuracy
    assert verdict(38.9, std=None) == "missed" and verdict(41.1, std=None) == "better"


def test_what_is_met_may_lie_below_what_is_reached():
    def made(value):
        return compare([Score("accuracy", value, "percent", 10, True)], row())[0]

    assert [(made(v).verdict, made(v).is_reached) for v in (40.0, 39.96, 39.9, 45.0, 30.0)] == [
        ("met", True), ("met", True), ("met", False), ("better", True), ("missed", False),
    ]  # fmt: skip
    assert made(39.0).tolerance.value == 2.0 and made(39.0).tolerance.rule == "2 printed deviations"
    unknown = compare({}, row())[0]
    assert unknown.tolerance is None and not unknown.is_reached and not unknown.is_comparable


def test_lower_is_better():
    facts = {"paper": "imagine", "metric": "PPL", "higher_is_better": False, "score": "ppl_item"}
    assert verdict(37.9, unit="perplexity", **facts) == "better"
    assert verdict(41.9, unit="perplexity", **facts) == "met"
    assert verdict(43.0, unit="perplexity", **facts) == "missed"
    assert verdict(41.1, unit="perplexity", **facts | {"std": None}) == "met"  # 3 % of 40
    assert verdict(41.3, unit="perplexity", **facts | {"std": None}) == "missed"


def test_units_are_converted_to_those_of_print():
    score = Score("dist_corpus_1", 1.9, "percent", 10, True, (1.5, 2.3))
    dist = compare([score], row(metric="Dist-1", value=0.018, decimals=3, std=0.001))[0]
    assert (dist.verdict, dist.ours) == ("met", pytest.approx(0.019))
    assert dist.interval == pytest.approx((0.015, 0.023))
    assert dist.difference == pytest.approx(0.001)


def test_what_cannot_be_compared_says_why():
    assert verdict(40.0, paper="imagine", metric="BLEU-2") == "not comparable: the paper does not define it"
    assert verdict(40.0, metric="Novelty") == "not comparable: no score of this package measures it"
    assert verdict(40.0, metric="Fluency") == "not comparable: rated by people, not computed"
    assert verdict(40.0, score="f1_macro") == "not comparable: accuracy was not measured"
    assert verdict(math.nan) == "not comparable: ours is undefined (no value)"
    score = Score("accuracy", 50.0, "percent", 10, True)
    told = compare([score], row(), not_comparable={"Accuracy": "other test set"})[0]
    assert (told.verdict, told.ours) == ("not comparable: other test set", 50.0)
    assert math.isnan(told.difference)


def test_a_mapping_is_taken_at_its_word():
    mine = Score("bertscore_f", 0.14, "fraction", 10, True)
    result = compare({"F_BERT": mine}, row(metric="F_BERT", value=0.136, std=0.003, decimals=3))[0]
    assert (result.verdict, result.score) == ("met", "bertscore_f")
    assert compare({}, row())[0].verdict == "not comparable: not measured"


def test_tables():
    score = Score("accuracy", 42.93, "percent", 5259, True, (41.6, 44.2))
    verdicts = compare([score], published("gao2021", "Table 2", "Ours(Soft)"))
    text = to_text(verdicts).splitlines()
    assert len(text) == len(verdicts) + 1
    assert text[-1].split() == ["Accuracy", "42.9", "41.6", "to", "44.2", "42.4", "±", "0.3", "+0.5", "±", "0.6", "met"]
    assert len({line.index(" met") + 1 for line in text if " met" in line} | {text[0].index("verdict")}) == 1


def test_definitions_point_at_printed_metrics_and_existing_scores():
    printed = {(number.paper, number.metric) for number in read_published()}
    assert set(DEFINITIONS) == printed  # a name, or the reason why there is none
    names = {definition[0] for definition in DEFINITIONS.values() if isinstance(definition, tuple)}
    assert names <= set(METRICS.names())
    assert all(reason.strip() for reason in DEFINITIONS.values() if isinstance(reason, str))
    assert {pair for pair in REQUIRED if isinstance(DEFINITIONS[pair], str)} == set()


def test_a_score_with_other_settings_is_another_number():
    """BERTScore of another encoder, P@1,100 of another protocol."""
    right = "encoder:roberta-large|idf:no|layer:17"
    facts = {"metric": "F_BERT", "value": 0.136, "std": 0.003, "decimals": 3}
    for signature, told in (
        (right, "met"),
        ("encoder:minilm|idf:no|layer:17", "not comparable: measured with encoder:minilm, not roberta-large"),
        ("", "not comparable: measured with encoder:unknown, not roberta-large; layer:unknown, not 17; idf:unknown"),
    ):
        score = Score("bertscore_f_rescaled", 0.14, "fraction", 10, True, signature=signature)
        assert compare([score], row(**facts))[0].verdict.startswith(told)
    printed = row(paper="rashkin2018", metric="P@1,100", value=56.9)
    for metric, told in (
        (HitsAtK(), "better"),
        (HitsAtK(protocol="inline"), "not comparable: measured with protocol"),
    ):
        metric.update(np.eye(100))
        assert compare([metric.compute()], printed)[0].verdict.startswith(told)


def test_without_a_direction_there_is_no_worse():
    score = Score("length_words", 12.0, "words", 10, None)
    facts = {"metric": "length", "higher_is_better": None, "value": 11.0, "std": None}
    printed = row(**facts)
    assert compare({"length": score}, printed)[0].verdict == "other"
    assert compare({"length": Score("length_words", 11.0, "words", 10, None)}, printed)[0].verdict == "met"


def test_a_bad_line_is_named(tmp_path):
    file = tmp_path / "numbers.csv"
    header = "seed,paper_table,dataset,setting,model,metric,value,std,higher_is_better,notes"
    file.write_text(f"{header}\n001,Table 2,ED,auto,X,BLEU,high,,true,\n")
    with pytest.raises(DataError, match="line 2"):
        read_published(file)


def test_figure_5_of_rashkin_gives_the_means_of_table_5():
    """Check X of Rashkin et al.: plain means of ratios; of the printed ones only 5.73 does not come out."""
    cells = {}
    for one in read_published():
        if (one.paper, one.table) == ("rashkin2018", "Figure 5"):
            first, second = one.row.split(" vs ")
            cells[first, second] = one.value
    assert len(cells) == 17 * 16

    def mean(rows, columns):
        return np.mean([cells[a, b] for a in rows for b in columns if a != b])

    systems = sorted({first for first, _ in cells} - {"Gold Response"})
    assert mean(["Gold Response"], systems) == pytest.approx(13.79, abs=0.005)
    ways = ("Multitask", "EmoPrepend-1", "EmoPrepend-3", "EmoPrepend-5", "Ensem-Tran", "Ensem-DM+")
    generation, retrieval = ([s for s in systems if f"({kind})" in s] for kind in ("generation", "retrieval"))
    assert mean(generation, retrieval) == pytest.approx(0.619, abs=0.0006)
    for kind, pretrained, base in (("retrieval", 3.668, 0.970), ("generation", 5.642, 1.555)):
        rows = [f"{way} ({kind})" for way in ways]
        assert mean(rows, [f"Pretrained ({kind})"]) == pytest.approx(pretrained, abs=0.0006)
        assert mean(rows, [f"Base ({kind})"]) == pytest.approx(base, abs=0.0006)
