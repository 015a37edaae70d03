"""One vector a piece from any encoder, and vectors kept on disk: same answers in any batch, from any file."""

import json

import numpy as np
import pytest
import torch
from tiny_inferences import save_encoder

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.metrics.bertscore import BERTScore, inverse_document_frequencies
from empatheia.metrics.similarity import SentenceSimilarity
from empatheia_research.understanding.vectors.cache import CachedVectors
from empatheia_research.understanding.vectors.texts import SentenceVectors
from empatheia_research.understanding.vectors.tokens import TokenEncoder

TEXTS = ["i lost my dog .", "so sad", "", "my dog died and i lost the job .", "so sad"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    save_encoder(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(folder):
    return TokenEncoder.load(folder)


def equal(first, second):
    return all(
        np.array_equal(a.ids, b.ids) and np.array_equal(a.vectors, b.vectors) and np.array_equal(a.counts, b.counts)
        for a, b in zip(first, second, strict=True)
    )


class Counting:
    """An encoder that remembers what it was asked."""

    def __init__(self, encoder):
        self.encoder, self.asked = encoder, []
        self.name, self.width = encoder.name, encoder.width

    def fingerprint(self):
        return self.encoder.fingerprint()

    def encode(self, texts, *, batch_size=32, progress=None):
        self.asked += texts
        return self.encoder.encode(texts, batch_size=batch_size, progress=progress)


def test_states_are_the_models_own(encoder):
    found = encoder.encode(TEXTS)
    assert [len(one.ids) for one in found] == [7, 4, 2, 11, 4]
    assert found[0].counts.tolist() == [False, True, True, True, True, True, False]
    assert not found[2].counts.any() and found[0].vectors.dtype == np.float32
    with torch.no_grad():
        states = encoder.model(torch.tensor([found[3].ids.tolist()])).last_hidden_state[0]
    assert found[3].vectors == pytest.approx(states.float().numpy(), abs=1e-6)


def test_batches_and_order_change_nothing(encoder):
    together, alone = encoder.encode(TEXTS, batch_size=8), [encoder.encode([text])[0] for text in TEXTS]
    assert equal(together, alone)
    assert equal(together, encoder.encode(TEXTS[::-1], batch_size=2)[::-1])
    assert encoder.encode([]) == []


def test_layers(folder, encoder):
    first = TokenEncoder.load(folder, layer=1)
    assert encoder.layer == 2
    assert not np.allclose(first.encode(TEXTS[:1])[0].vectors, encoder.encode(TEXTS[:1])[0].vectors)
    assert first.fingerprint() != encoder.fingerprint()
    with pytest.raises(ConfigError, match=r"has 2 layers, not 3; accepted: 0 to 2"):
        TokenEncoder.load(folder, layer=3)
    with pytest.raises(MissingResourceError):
        TokenEncoder.load("no-such-encoder-anywhere")


def test_progress_counts_every_text(encoder, tmp_path):
    seen = []
    encoder.encode(TEXTS, batch_size=2, progress=seen.append)
    assert sum(seen) == len(TEXTS)
    for _ in range(2):
        kept = []
        CachedVectors(encoder, tmp_path / "kept.sqlite").encode(TEXTS, batch_size=2, progress=kept.append)
        assert sum(kept) == len(TEXTS)


@pytest.mark.parametrize("kind", [TokenEncoder, SentenceVectors])
def test_kept_vectors_are_the_same_and_made_once(kind, folder, tmp_path):
    plain = kind.load(folder)
    file = tmp_path / "vectors.sqlite"
    counting = Counting(plain)
    first = CachedVectors(counting, file).encode(TEXTS[:2])
    whole = CachedVectors(counting, file).encode(TEXTS)
    again = CachedVectors(counting, file).encode(TEXTS)
    assert sorted(counting.asked) == sorted(set(TEXTS))
    if kind is SentenceVectors:
        assert np.array_equal(whole, plain.encode(TEXTS)) and np.array_equal(again, whole)
        assert np.array_equal(first, whole[:2]) and whole.dtype == np.float32
        assert CachedVectors(counting, file).encode([]).shape == (0, plain.width)
    else:
        assert equal(whole, plain.encode(TEXTS)) and equal(again, whole) and equal(first, whole[:2])


def test_one_file_may_serve_several_encoders(folder, encoder, tmp_path):
    other_folder = tmp_path / "other"
    save_encoder(other_folder, seed=1)
    file = tmp_path / "vectors.sqlite"
    other = TokenEncoder.load(other_folder)
    for one in (encoder, other, TokenEncoder.load(folder, layer=1)):
        assert equal(CachedVectors(one, file).encode(TEXTS), one.encode(TEXTS))


def test_a_damaged_file_is_named(encoder, tmp_path):
    file = tmp_path / "vectors.sqlite"
    file.write_bytes(b"this is no database, " * 100)
    with pytest.raises(CheckpointError, match=r"vectors\.sqlite.*delete the file or name another"):
        CachedVectors(encoder, file).encode(TEXTS)


def test_scores_from_an_encoder(encoder):
    refs = ["so sad", "i lost the dog", "my dog died"]
    idf = inverse_document_frequencies(encoder.encode(refs))
    for weights in (None, idf):
        metric = BERTScore("f", encoder=encoder.name, layer=encoder.layer, idf=weights)
        metric.update(encoder.encode(refs), encoder.encode(refs), texts=refs)
        assert metric.compute().value == pytest.approx(1)
    metric = BERTScore("f")
    metric.update(encoder.encode(["", "so sad"]), encoder.encode(["so sad", ""]))
    assert metric.compute().value == 0 and metric.compute().parts["n_empty"] == 2


@pytest.mark.usefixtures("sentence_encoder")
def test_the_bundled_encoder_ranks_a_paraphrase_first():
    sentences = SentenceVectors.load("minilm")
    refs = ["I am so sorry for your loss."] * 2
    hyps = ["My condolences, that must hurt.", "The train leaves at nine."]
    tokens = TokenEncoder(sentences)
    near, far = ([], [])
    for scores, hyp, ref in zip((near, far), hyps, refs, strict=True):
        ses, bert = SentenceSimilarity("minilm"), BERTScore(encoder="minilm")
        ses.update(sentences.encode([hyp]), sentences.encode([ref]))
        bert.update(tokens.encode([hyp]), tokens.encode([ref]))
        scores += [ses.compute().value, bert.compute().value]
    assert near[0] > far[0] + 0.2 and near[1] > far[1]


def test_the_command_that_scores_replies_takes_an_encoder(cli, folder, encoder, tmp_path):
    hyp, ref = tmp_path / "hyp.txt", tmp_path / "ref.txt"
    hyp.write_text("so sad\n\ni lost my dog .\n")
    ref.write_text("so sad\nmy dog died\ni lost the job .\n")
    words = ("score", "--hyp", str(hyp), "--ref", str(ref), "--bertscore", str(folder), "--json")
    (system,) = json.loads(cli(*words, "--metrics", "bertscore_f").out)["systems"]
    metric = BERTScore("f")
    replies, references = (file.read_text().split("\n")[:3] for file in (hyp, ref))
    metric.update(encoder.encode(replies), encoder.encode(references))
    values = {score["metric"]: score["value"] for score in system["scores"]}
    assert values["bertscore_f"] == pytest.approx(metric.compute().value) and len(values) == 3
    (printed,) = json.loads(cli(*words, "--profile", "gao2021").out)["systems"]
    reasons = {column["column"]: column["reason"] for column in printed["missing"]}
    assert "needs a baseline of layer" in reasons["F_BERT"]
    (baseline := tmp_path / "base.tsv").write_text("LAYER,P,R,F\n1,0.5,0.5,0.5\n")
    rescaled = cli(*words, "--profile", "gao2021", "--bertscore-layer", "1", "--bertscore-baseline", str(baseline))
    (system,) = json.loads(rescaled.out)["systems"]
    assert "F_BERT" in {score["column"] for score in system["scores"]}
