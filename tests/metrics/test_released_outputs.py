"""The generations shipped with the repository of MoEL: our metrics against anchors taken independently."""

import gzip
import os
from pathlib import Path

import pytest

from empatheia.metrics import METRICS

FILE = "peer_outputs/moel_repo_generation_result.txt.gz"
ROOT = os.environ.get("EMPATHEIA_DATA", "")

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not ROOT or not (Path(ROOT) / FILE).is_file(), reason=f"EMPATHEIA_DATA has no {FILE}"),
]

# white-space tokens, percent: BLEU-2, BLEU-4, brevity penalty, D-1, D-2, mean length
ANCHORS = {
    "trs": (9.21, 3.02, 0.852, 0.41, 1.68, 12.39),
    "trs+multitask": (8.47, 2.98, 0.753, 0.63, 3.18, 11.21),
    "MOE": (8.17, 2.90, 0.774, 0.62, 2.89, 11.45),
}


@pytest.fixture(scope="module")
def outputs():
    columns = {name: [] for name in (*ANCHORS, "ref")}
    with gzip.open(Path(ROOT) / FILE, "rt", encoding="utf-8") as file:
        for line in file:
            name, _, text = line.rstrip("\n").partition(":")
            if name in columns:
                columns[name].append(text)
    return columns


def measured(name, *columns):
    metric = METRICS.get(name)()
    metric.update(*columns)
    return metric.compute()


@pytest.mark.parametrize("system", ANCHORS)
def test_anchors(outputs, system):
    hyps, refs = outputs[system], outputs["ref"]
    bleu2, bleu4 = measured("bleu_corpus_2", hyps, refs), measured("bleu_corpus_4", hyps, refs)
    dist1, dist2 = measured("dist_corpus_1", hyps), measured("dist_corpus_2", hyps)
    assert bleu4.n == 5255
    found = (bleu2.value, bleu4.value, dist1.value, dist2.value, dist1.parts["mean_length"])
    b2, b4, penalty, d1, d2, length = ANCHORS[system]
    assert found == pytest.approx((b2, b4, d1, d2, length), abs=0.0051)
    assert bleu4.parts["brevity_penalty"] == pytest.approx(penalty, abs=0.00051)


def test_the_variants_differ_in_the_third_digit_at_most_here(outputs):
    hyps, refs = outputs["trs"], outputs["ref"]
    nltk, moses = measured("bleu_nltk_4", hyps, refs).value, measured("bleu_corpus_4", hyps, refs).value
    assert nltk != moses
    assert nltk == pytest.approx(moses, abs=0.01)
