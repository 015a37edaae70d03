"""BERTScore against the arithmetic of the bert-score package, written out slowly; sentence similarity by hand."""

import math

import numpy as np
import pytest

from empatheia.errors import ConfigError, DataError, MissingResourceError
from empatheia.metrics.bertscore import (
    ROBERTA_LARGE_BASELINE,
    BERTScore,
    TokenVectors,
    greedy_match,
    inverse_document_frequencies,
    read_baseline,
    rescale,
)
from empatheia.metrics.similarity import SentenceSimilarity


def text(*pieces, seed=0):
    """CLS (1), the pieces, SEP (2), each with a vector that depends on its place as well."""
    ids = np.array([1, *pieces, 2])
    rng = np.random.default_rng(seed)
    vectors = np.stack([np.random.default_rng(i).normal(size=6) for i in ids]) + 0.3 * rng.normal(size=(len(ids), 6))
    return TokenVectors(ids, vectors.astype(np.float32), ~np.isin(ids, (1, 2)))


def slow(hyp, ref, idf=None):
    """Equations 1 to 3 of the paper, piece by piece."""

    def cosine(x, y):
        return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))

    def side(one, other):
        total = weight = 0.0
        for piece, vector, counts in zip(one.ids, one.vectors.astype(float), one.counts, strict=True):
            w = float(counts) * (1.0 if idf is None else idf.get(int(piece), idf[-1]))
            total += w * max(cosine(vector, v) for v in other.vectors.astype(float))
            weight += w
        return total / weight if weight else 0.0

    if not (hyp.counts.any() and ref.counts.any()):
        return 0.0, 0.0, 0.0
    p, r = side(hyp, ref), side(ref, hyp)
    return p, r, 2 * p * r / (p + r)


HYPS = [text(5, 6, 7, seed=1), text(8, seed=2), text(seed=3), text(5, 5, 9, 10, seed=4)]
REFS = [text(5, 7, seed=5), text(8, 11, 12, seed=6), text(6, seed=7), text(9, 10, 5, seed=8)]


@pytest.mark.parametrize("with_idf", [False, True])
def test_against_the_equations(with_idf):
    idf = inverse_document_frequencies(REFS) if with_idf else None
    pairs = [slow(h, r, idf) for h, r in zip(HYPS, REFS, strict=True)]
    for i, report in enumerate("prf"):
        metric = BERTScore(report, idf=idf)
        metric.update(HYPS, REFS)
        assert metric.compute().value == pytest.approx(np.mean([pair[i] for pair in pairs]), abs=1e-6)
        assert metric.compute().parts["n_empty"] == 1


def test_against_the_package():
    """Without its models: only ``greedy_cos_idf``, on padded batches."""
    greedy = pytest.importorskip("bert_score.utils").greedy_cos_idf
    torch = pytest.importorskip("torch")

    def padded(texts):
        longest = max(len(t.ids) for t in texts)
        states, mask, idf = torch.full((len(texts), longest, 6), 2.0), torch.zeros(len(texts), longest), None
        idf = torch.zeros(len(texts), longest)
        for i, t in enumerate(texts):
            states[i, : len(t.ids)], mask[i, : len(t.ids)] = torch.tensor(t.vectors), 1
            idf[i, : len(t.ids)] = torch.tensor(t.counts).float()
        return states, mask, idf

    p, r, f = greedy(*padded(REFS), *padded(HYPS))
    ours = np.array([greedy_match(h, r) for h, r in zip(HYPS, REFS, strict=True)])
    assert ours == pytest.approx(torch.stack([p, r, f], 1).numpy(), abs=1e-5)


def test_idf_by_hand():
    idf = inverse_document_frequencies([text(5, 5), text(5, 6), text(7)])
    assert idf[5] == pytest.approx(math.log(4 / 3)) and idf[6] == pytest.approx(math.log(2))
    assert idf[1] == 0 and idf[-1] == pytest.approx(math.log(4))


def test_check_15_rescaling():
    """gao2021, check 15: raw = baseline gives 0, raw 1 gives 1, F raw .854 gives .1349."""
    assert rescale(0.83122575, ROBERTA_LARGE_BASELINE["F"]) == 0
    assert rescale(1, ROBERTA_LARGE_BASELINE["F"]) == 1
    assert round(rescale(0.854, ROBERTA_LARGE_BASELINE["F"]), 4) == 0.1349
    raw, scaled = BERTScore("f"), BERTScore("f", baseline=ROBERTA_LARGE_BASELINE)
    for metric in (raw, scaled):
        metric.update(HYPS, REFS)
    assert scaled.compute().value == pytest.approx(rescale(raw.compute().value, ROBERTA_LARGE_BASELINE["F"]))
    assert scaled.name == "bertscore_f_rescaled"
    assert scaled.compute().parts["P"] == pytest.approx(rescale(raw.compute().parts["P"], 0.83150584))


def test_equal_texts_score_1():
    for report in "prf":
        metric = BERTScore(report)
        metric.update(HYPS[:2], HYPS[:2])
        assert metric.compute().value == pytest.approx(1)


def test_baseline_file(tmp_path):
    file = tmp_path / "roberta.tsv"
    file.write_text("LAYER,P,R,F\n0,0.3,0.3,0.31\n17,0.83150584,0.8314941,0.83122575\n")
    assert read_baseline(file, 17) == dict(ROBERTA_LARGE_BASELINE)
    with pytest.raises(DataError, match="no baseline of layer 5; it has 0, 17"):
        read_baseline(file, 5)
    with pytest.raises(MissingResourceError, match="no baseline at"):
        read_baseline(tmp_path / "none.tsv", 1)
    file.write_text("LAYER,P,R,F\nzero,0.3,0.3,0.31\n")
    with pytest.raises(DataError, match=r"roberta\.tsv:2: .* is not a layer and three numbers"):
        read_baseline(file, 0)


def test_signature_tells_encoders_weights_and_baselines_apart():
    forms = [
        BERTScore(),
        BERTScore(encoder="minilm"),
        BERTScore(layer=5),
        BERTScore(idf=inverse_document_frequencies(REFS)),
        BERTScore(idf=inverse_document_frequencies(HYPS)),
        BERTScore(baseline={"P": 0.1, "R": 0.1, "F": 0.1}),
        BERTScore(baseline={"P": 0.1, "R": 0.1, "F": 0.2}),
    ]
    assert len({str(metric.signature()) for metric in forms}) == len(forms)


def test_similarity():
    """meed2, section 8 check: equal texts give 1, an empty response 0."""
    metric = SentenceSimilarity("mine")
    metric.update([[3, 4], [0, 0], [1, 0]], [[6, 8], [1, 1], [0, 2]], texts=["a", "b", "c"])
    score = metric.compute()
    assert score.value == pytest.approx(1 / 3) and score.parts == {"n_empty": 1}
    assert "refs:" in score.signature and "encoder:mine" in score.signature


def test_bad_input():
    with pytest.raises(ConfigError, match="unknown report 'g'"):
        BERTScore("g")
    with pytest.raises(DataError, match="baseline has P; accepted"):
        BERTScore(baseline={"P": 0.1})
    with pytest.raises(DataError, match=r"baseline is 1\.0"):
        BERTScore(baseline={"P": 1.0, "R": 0.1, "F": 0.1})
    narrow = TokenVectors(np.array([3]), np.ones((1, 2)), np.ones(1, dtype=bool))
    with pytest.raises(DataError, match="vectors of width 6 against 2"):
        BERTScore().update(HYPS[:1], [narrow])
    with pytest.raises(DataError, match=r"shapes \(1, 2\) and \(1, 3\)"):
        SentenceSimilarity().update([[1, 2]], [[1, 2, 3]])
    with pytest.raises(DataError, match="all finite"):
        SentenceSimilarity().update([[1, float("nan")]], [[1, 2]])
