"""The generations shipped with the repository of MoEL: ``--profile moel`` against anchors taken independently."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from empatheia.metrics import METRICS
from empatheia.replies.reply_files import read_replies
from empatheia.replies.scoring import columns_of, score_file, score_replies

FILE = "peer_outputs/moel_repo_generation_result.txt.gz"
ROOT = os.environ.get("EMPATHEIA_DATA", "")

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not ROOT or not (Path(ROOT) / FILE).is_file(), reason=f"EMPATHEIA_DATA has no {FILE}"),
]

COLUMNS = ("corpus BLEU-2", "corpus BLEU-4", "BP", "D-1", "D-2", "length", "distinct replies")
ANCHORS = {
    "trs": ("9.21", "3.02", "0.852", "0.41", "1.68", "12.39", "1,467"),
    "trs+multitask": ("8.47", "2.98", "0.753", "0.63", "3.18", "11.21", "2,614"),
    "MOE": ("8.17", "2.90", "0.774", "0.62", "2.89", "11.45", "1,994"),
}
# the anchors' row of this system has a fault, see below
ORACLE_PRINTED = ("7.73", "2.62", "0.778", "0.38", "1.60", "11.50", "1,371")
ORACLE = ("7.73", "2.63", "0.778", "0.38", "1.60", "11.49", "1,372")


@pytest.fixture(scope="module")
def file():
    return read_replies(Path(ROOT) / FILE)


@pytest.fixture(scope="module")
def scores(file):
    return {each.system: each for each in score_file(file, columns_of("moel"), n_resamples=0)}


def shown(scores):
    return tuple(scores.cell(name).show() for name in COLUMNS)


@pytest.mark.parametrize("system", ANCHORS)
def test_anchors(scores, system):
    """Check 29 of the baselines: every anchor to its printed digit."""
    assert scores[system].n == 5255
    assert shown(scores[system]) == ANCHORS[system]


def test_the_anchor_of_the_oracle_was_read_from_a_stale_line(file, scores):
    """In one item (the eleventh) the reference stands before the reply of MOE+oracle.

    Read by its label it gives other last digits than the anchor. A reader that closes an item at its reference still
    holds the tenth item's reply there; with that one reply put in its place, all seven anchors come out.
    """
    assert shown(scores["MOE+oracle"]) == ORACLE
    replies = list(file.of("MOE+oracle"))
    replies[10] = replace(replies[10], reply=replies[9].reply)
    cells, _ = score_replies(replies, columns_of("moel"), n_resamples=0)
    assert tuple(cell.show() for name in COLUMNS for cell in cells if cell.column.name == name) == ORACLE_PRINTED


@pytest.mark.parametrize(("system", "printed"), [("trs", "3.02"), ("MOE", "2.90")])
def test_published_bleu(scores, system, printed):
    """Table of Lin et al. 2019: TRS 3.02 and MoEL 2.90, as multi-bleu.perl -lc prints them."""
    assert scores[system].cell("BLEU").show() == printed


def test_the_published_bleu_of_the_multitask_transformer_is_not_that_of_its_released_replies(file):
    """Published 2.92 (as recalled, not re-read); the released replies give 2.98, and no variant gives 2.92.

    Casing changes nothing, since the file is lower-case; nltk's totals, sacrebleu's cutting and empty tokens between
    double blanks move the third digit at most. So the printed number belongs to other replies than the released ones.
    """
    replies = file.of("trs+multitask")
    columns = columns_of(metrics=["bleu_corpus_4", "bleu_corpus_4_lc", "bleu_nltk_4", "bleu_sacre"])
    cells, _ = score_replies(replies, columns, n_resamples=0)
    metric = METRICS.get("bleu_corpus_4")()
    metric.update([r.reply.split(" ") for r in replies], [(r.reference or "").split(" ") for r in replies])
    found = {round(value, 2) for value in [*(cell.value for cell in cells), metric.compute().value]}
    assert found == {2.98, 3.0}


def test_what_the_file_cannot_tell_is_listed(scores):
    assert [column.name for column, _ in scores["MOE"].missing] == ["PPL", "top-1", "top-3", "top-5"]


def test_the_variants_differ_in_the_third_digit_at_most_here(file):
    cells, _ = score_replies(file.of("trs"), columns_of(metrics=["bleu_nltk_4", "bleu_corpus_4"]), n_resamples=0)
    nltk, moses = (cell.value for cell in cells)
    assert nltk != moses
    assert nltk == pytest.approx(moses, abs=0.01)


def test_all_metrics_with_intervals(file):
    cells, missing = score_replies(file.of("MOE"), columns_of(metrics=METRICS.names()), n_resamples=1000)
    assert len(cells) > 20
    assert not any("error" in reason for _, reason in missing)
