"""The generative emotion estimator: arithmetic by hand, passes against a plain loop, padding, caching, files."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiny_estimators import KINDS, TEXTS, estimator, hf_tokenizer

from empatheia.errors import CheckpointError, ConfigError, DataError
from empatheia.taxonomy import EMOTION_TO_RECCON, EMOTIONS
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.words.estimator import (
    EmotionEstimator,
    EmotionEstimatorConfig,
    Likelihoods,
    estimate,
    explain,
    likelihoods,
)
from empatheia_research.understanding.words.estimator_pieces import EstimatorReader, TextPieces
from empatheia_research.understanding.words.evidence import (
    PAPER,
    REPO,
    RUNNING,
    Evidence,
    cause_probabilities,
    emotion_joint,
    informative_probabilities,
    remembered,
)

LOG = torch.log
WORDS = torch.tensor([[0.2, 0.1, 0.5], [0.1, 0.1, 0.5], [0.05, 0.1, 0.5], [0.02, 0.1, 0.5]], dtype=torch.float64)
UNIFORM = torch.full((4,), math.log(1 / 4), dtype=torch.float64)
ABCD = ("afraid", "angry", "annoyed", "anxious")


def near(found, expected):
    assert np.allclose(np.asarray(found), expected, atol=1e-6), found


# -- arithmetic ----------------------------------------------------------------------------------------------


def test_g1_paper_evidence():
    """Check G1: P(A | w) over all labels, then normalised over positions."""
    found = cause_probabilities(LOG(WORDS[0]), UNIFORM[0], LOG(WORDS[1:]), UNIFORM[1:])
    posterior = WORDS[0] / WORDS.sum(0)
    near(posterior, [0.540541, 0.25, 0.25])
    near(found, [0.519481, 0.240260, 0.240260])


def test_g2_length_normalisation_flattens():
    """Check G2: M as a mean, and the true posterior."""
    mean = emotion_joint(LOG(WORDS), UNIFORM)
    near(mean, [-2.921351, -3.152400, -3.383449, -3.688879])
    near(mean.softmax(-1), [0.346282, 0.274844, 0.218144, 0.160730])
    near(emotion_joint(LOG(WORDS), UNIFORM, length_norm=False).softmax(-1), [0.540541, 0.270270, 0.135135, 0.054054])


def test_g3_repo_evidence():
    """Check G3: labels A and B read as one against C and D, weighted by M."""
    joint = emotion_joint(LOG(WORDS), UNIFORM)
    together = LOG(torch.tensor([0.16, 0.1, 0.5], dtype=torch.float64))
    found = cause_probabilities(together, joint[:2].logsumexp(0), LOG(WORDS[2:]), joint[2:])
    near(found, [0.413432, 0.293284, 0.293284])
    weight = joint[:2].logsumexp(0)
    r = together + weight - torch.stack([together + weight, *(LOG(WORDS[2:]) + joint[2:, None])]).logsumexp(0)
    near(r.exp(), [0.875581, 0.621126, 0.621126])


class Given(EmotionEstimator):
    """A model whose likelihoods are a table: what it reads of a text is looked up."""

    def __init__(self, together):
        self.together = together

    def score_rows(self, reader, sources, texts):
        return torch.stack([self.together] * len(texts)).float()

    @property
    def config(self):
        return EmotionEstimatorConfig({"model_type": "gpt2"}, ABCD)

    @property
    def backbone(self):
        return type("Backbone", (), {"config": type("Config", (), {"vocab_size": 9})})


class Labels:
    """A reader that knows labels only."""

    def label_ids(self, labels):
        return [ABCD.index(label) for label in labels]


THREE = Likelihoods(TextPieces((1, 2, 3), ((0, 2), (3, 5), (6, 8))), LOG(WORDS))


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [(PAPER, (0.519481, 0.240260, 0.240260)), (REPO, (0.413432, 0.293284, 0.293284))],
)
def test_g1_and_g3_through_the_whole_path(evidence, expected):
    """Checks G1 and G3 as the estimator puts them together."""
    model = Given(LOG(torch.tensor([0.16, 0.1, 0.5], dtype=torch.float64)))
    (found,) = explain(model, Labels(), [THREE], None, evidence)
    near([p for _, _, p in found.pieces], expected)
    assert found.explained == ((0,) if evidence is PAPER else (0, 1))
    near(found.posterior[0], 0.540541 if evidence is PAPER else 0.346282)


def test_memory_by_hand():
    """Memory 1 gives P(A | w_1..w_t) of Bayes' rule; less fades piece by piece; 0 is the paper's."""
    likely = LOG(WORDS)
    assert remembered(likely, 0.0).equal(likely) and remembered(likely[:, :0], 0.5).shape == (4, 0)
    near(remembered(likely, 0.5)[0], [math.log(0.2), math.log(0.1 * 0.2**0.5), math.log(0.5 * 0.1**0.5 * 0.2**0.25)])
    for memory, power in ((1.0, (1, 1, 1)), (0.5, (1, 0.5, 0.25)), (0.0, (1, 0, 0))):
        values = remembered(likely, memory) + UNIFORM[:, None]
        first = WORDS[:, :1] ** torch.tensor(power)  # only the first word tells labels apart
        near((values[0] - values.logsumexp(0)).exp(), first[0] / first.sum(0))


def test_running_evidence_through_the_whole_path():
    """Without an emotion the divergence of the posterior from the prior; a given group is one hypothesis."""
    running = Evidence("all", 1, False, 0.5, "any")
    (found,) = explain(Given(None), Labels(), [THREE], None, running)
    posterior = WORDS[:, :1] ** torch.tensor([1, 0.5, 0.25])  # only the first word tells labels apart
    posterior = posterior / posterior.sum(0)
    told = (posterior * (4 * posterior).log()).sum(0)
    assert told[0] > told[1] > told[2] > 0
    near([p for _, _, p in found.pieces], told.softmax(-1))
    assert [ABCD[e] for e in found.explained] == ["afraid"]
    (anger,) = explain(Given(None), Labels(), [THREE], ["anger"], running)
    assert [ABCD[e] for e in anger.explained] == ["angry", "annoyed"]
    either = posterior[1] + posterior[2]
    near([p for _, _, p in anger.pieces], either / either.sum())
    (one,) = explain(Given(None), Labels(), [THREE], ["annoyed"], running)
    assert [ABCD[e] for e in one.explained] == ["annoyed"]
    near([p for _, _, p in one.pieces], posterior[2] / posterior[2].sum())


def test_what_is_known_already_tells_nothing():
    prior = LOG(torch.tensor([0.7, 0.1, 0.1, 0.1], dtype=torch.float64))
    near(informative_probabilities(torch.zeros(4, 3), prior), [1 / 3] * 3)


def test_g4_equal_likelihoods_give_equal_words():
    """Check G4."""
    same = LOG(torch.tensor([0.3, 0.01, 0.2, 0.7], dtype=torch.float64))
    found = cause_probabilities(same, UNIFORM[0], torch.stack([same, same]), UNIFORM[1:3])
    near(found, [0.25] * 4)


def test_a_prior_moves_the_joint():
    prior = LOG(torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64))
    near(emotion_joint(torch.zeros(4, 3), prior).softmax(-1), [0.1, 0.2, 0.3, 0.4])
    model, reader = estimator("own bart", ABCD, log_prior=[0.0, 0.0, 0.0, 3.0])
    (found,) = estimate(model, reader, [""])
    assert found.posterior.argmax() == 3 and found.pieces == ()


# -- the passes ----------------------------------------------------------------------------------------------


def by_hand(model, reader, source, text):
    """Log-probabilities of one text under one label, in a plain loop without batches, masks or caches."""
    pieces = reader.pieces([text])[0]
    out = []
    with torch.inference_mode():
        for t, piece in enumerate(pieces.ids):
            seen = [*reader.target.before, *pieces.ids[:t]]
            if reader.is_seq2seq:
                logits = model.backbone(
                    input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[model.start, *seen]])
                ).logits
            else:
                logits = model.backbone(input_ids=torch.tensor([[*source, *seen]])).logits
            out.append(float(logits[0, -1].log_softmax(-1)[piece]))
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_are_those_of_a_plain_loop(kind):
    """Alignment: the scored pieces are the text's own, without what the tokenizer puts around them."""
    model, reader = estimator(kind, ABCD)
    for text, found in zip(TEXTS, likelihoods(model, reader, TEXTS), strict=True):
        for e, label in enumerate(ABCD):
            expected = by_hand(model, reader, reader.label_ids([label]), text)
            assert np.allclose(found.values[e], expected, atol=1e-4)
    assert float(likelihoods(model, reader, TEXTS[:1])[0].values.std(0).max()) > 0.05  # labels do make a difference


def test_what_stands_around_a_text():
    bart, t5, gpt2 = (estimator(kind, ABCD)[1] for kind in ("bart", "t5", "gpt2"))
    assert (bart.target.before, bart.target.after, bart.start) == ((0,), (2,), 2)
    assert (t5.target.before, t5.target.after, t5.start) == ((), (2,), 1)
    assert (gpt2.source.before, gpt2.target.before, gpt2.start) == ((2,), (), None)
    a, b = (tuple(bart.label_ids([label])[1:-1]) for label in ABCD[:2])
    assert tuple(bart.label_ids(ABCD[:2])) == (0, *a, *b, 2)  # two labels read as one


@pytest.mark.parametrize(
    ("kind", "evidence"),
    [("bart", REPO), ("t5", PAPER), ("gpt2", REPO), ("bert", PAPER), ("own bart", REPO), ("own gpt2", RUNNING)],
)
def test_g5_batched_is_single(kind, evidence):
    """Check G5: padding leaves probabilities unchanged, in any batch."""
    model, reader = estimator(kind)
    together = estimate(model, reader, TEXTS, None, evidence)
    for options in ({"batch_size": 1}, {"batch_size": 3}):
        for a, b in zip(together, estimate(model, reader, TEXTS, None, evidence, **options), strict=True):
            assert np.allclose(a.joint, b.joint, atol=1e-3) and a.explained == b.explained
            assert np.allclose([p for *_, p in a.pieces], [p for *_, p in b.pieces], atol=1e-4)
            assert a.places == b.places
    for text, found in zip(TEXTS, together, strict=True):
        assert math.isclose(sum(p for *_, p in found.pieces), 1.0 if text else 0.0, abs_tol=1e-9)
        assert "".join(text[a:b] for a, b in dict.fromkeys(found.places)) == text.replace(" ", "")


@pytest.mark.parametrize("evidence", [REPO, PAPER, RUNNING, Evidence("all", 2, True, 0.5), Evidence("repo3", 1, False)])
def test_g8_order_of_labels(evidence):
    """Check G8: another order of the labels leaves the outputs unchanged."""
    model, reader = estimator("own bart")
    order = EMOTIONS[::-1]
    other = EmotionEstimator(EmotionEstimatorConfig(model.config.backbone_config, order, max_pieces=64)).eval()
    other.load_state_dict(model.state_dict())
    for a, b in zip(
        estimate(model, reader, TEXTS, None, evidence), estimate(other, reader, TEXTS, None, evidence), strict=True
    ):
        assert np.allclose(a.joint, b.joint[::-1], atol=1e-4)
        assert np.allclose([p for *_, p in a.pieces], [p for *_, p in b.pieces], atol=1e-4)
        if a.pieces:  # an empty text is a tie
            assert [EMOTIONS[e] for e in a.explained] == [order[e] for e in b.explained]


def test_a_given_emotion_is_explained():
    model, reader = estimator("own bart")
    for evidence in (REPO, PAPER, RUNNING):
        given, own = (estimate(model, reader, TEXTS[:1], e, evidence)[0] for e in (["jealous"], None))
        assert [EMOTIONS[e] for e in given.explained] == ["jealous"]
        assert np.array_equal(given.joint, own.joint)
        (group,) = estimate(model, reader, TEXTS[:1], ["anger"], evidence)
        assert {EMOTION_TO_RECCON[EMOTIONS[e]] for e in group.explained} == {"anger"}
        n_anger = sum(EMOTION_TO_RECCON[label] == "anger" for label in EMOTIONS)
        assert len(group.explained) == (n_anger if evidence is RUNNING else evidence.top_emotions)
    with pytest.raises(DataError, match=r"unknown emotion 'hapiness'\. Did you mean 'happiness'"):
        estimate(model, reader, ["x"], ["hapiness"])


def test_labels_are_encoded_once_and_forgotten_with_the_weights(monkeypatch):
    """Label encodings are computed once; training or new weights drop them."""
    model, reader = estimator("own bart")
    calls = []
    encoder = model.backbone.get_encoder()
    whole = encoder.forward
    monkeypatch.setattr(encoder, "forward", lambda *a, **k: calls.append(len(k["input_ids"])) or whole(*a, **k))
    before = likelihoods(model, reader, TEXTS)
    assert calls == [32]
    likelihoods(model, reader, TEXTS[::-1], batch_size=2)
    assert calls == [32]
    with torch.no_grad():
        model.backbone.model.shared.weight.add_(0.05)
    after = likelihoods(model, reader, TEXTS)
    assert calls == [32, 32] and not torch.equal(before[0].values, after[0].values)
    model.train()
    fresh = likelihoods(model, reader, TEXTS)
    assert calls == [32, 32, 32] and torch.equal(fresh[0].values, after[0].values)
    other = estimator("own bart", seed=1)[0]
    model.load_state_dict(other.state_dict())
    assert torch.allclose(likelihoods(model, reader, TEXTS)[0].values, likelihoods(other, reader, TEXTS)[0].values)


def test_all_passes_of_a_batch_are_one_call(monkeypatch):
    model, reader = estimator("own bart")
    rows = []
    whole = EmotionEstimator.score_rows
    monkeypatch.setattr(
        EmotionEstimator, "score_rows", lambda s, r, sources, t: rows.append(len(sources)) or whole(s, r, sources, t)
    )
    likelihoods(model, reader, TEXTS, batch_size=4)
    assert rows == [128, 96]


def test_a_long_text_is_cut_and_says_so():
    model, reader = estimator("own bart", max_pieces=16)
    pieces = reader.pieces(["cake " * 200, "cake"])
    assert (len(pieces[0].ids), pieces[0].is_whole, pieces[1].is_whole) == (15, False, True)
    assert len(estimate(model, reader, ["cake " * 200])[0].pieces) == 15


# -- learning ------------------------------------------------------------------------------------------------

PAIRS = [("afraid", "the bear came"), ("joyful", "we won the cup"), ("sad", "my cat is dead"), ("angry", "he broke it")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_mean_over_target_pieces(kind):
    model, reader = estimator(kind, backbone_dropout=0.0)
    rows = reader.encode(PAIRS)
    batch = reader.collate(rows)
    output = model(**batch)
    assert int(output.counts["text"]) == sum(len(row["text_ids"]) for row in rows)
    assert int(model.count_items(batch, model.config)["text"]) == int(output.counts["text"])
    single = [model(**reader.collate([row])) for row in rows]
    expected = sum(o.loss * o.counts["text"] for o in single) / output.counts["text"]
    assert torch.allclose(output.loss, expected, atol=1e-4)
    # the text's part of the loss is what scoring gives
    text = reader.pieces([PAIRS[0][1]])[0]
    scored = likelihoods(model, reader, [PAIRS[0][1]])[0].values[0].sum()
    n_around = len(reader.target.before) + len(reader.target.after)
    assert len(rows[0]["text_ids"]) == len(text.ids) + n_around
    assert single[0].loss.item() * int(single[0].counts["text"]) >= -scored.item() - 1e-3


@pytest.mark.parametrize("kind", ["bart", "gpt2", "own bart"])
def test_every_weight_gets_a_gradient_and_emotions_are_learnt(kind):
    torch.manual_seed(0)
    model, reader = estimator(kind, ("afraid", "joyful", "sad", "angry"), backbone_dropout=0.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.div_(4)
    batch = reader.collate(reader.encode(PAIRS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model.train()
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        output = model(**batch)
        output.loss.backward()
        without = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        optimizer.step()
        losses.append(output.loss.item())
    assert [name for name in without if "k_proj.bias" not in name] == []
    assert losses[-1] < 0.3 * losses[0]
    found = estimate(model, reader, [text for _, text in PAIRS], None, PAPER)
    assert [model.config.id2label[e.explained[0]] for e in found] == [emotion for emotion, _ in PAIRS]


# -- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded(tmp_path, kind):
    fields = {"evidence": "all", "top_emotions": 1, "length_norm": False}
    model, reader = estimator(kind, **fields, memory=0.85, explains="any")
    model.save_pretrained(tmp_path)
    reader.save(tmp_path)
    opened, own = UNDERSTANDERS.get("emotion_estimator").open(tmp_path)
    assert opened.config.settings() == RUNNING and own.label_ids(["sad"]) == reader.label_ids(["sad"])
    for a, b in zip(estimate(model, reader, TEXTS), estimate(opened, own, TEXTS), strict=True):
        assert np.array_equal(a.joint, b.joint) and a.pieces == b.pieces


@pytest.mark.parametrize("kind", ["bart", "t5", "gpt2", "bert"])
def test_starts_from_any_folder(tmp_path, kind):
    source, _ = estimator(kind)
    source.backbone.save_pretrained(tmp_path)
    hf_tokenizer(kind).save_pretrained(tmp_path)
    model, reader = EmotionEstimator.from_backbone(str(tmp_path), max_pieces=64)
    assert isinstance(reader, EstimatorReader) and model.config.id2label[0] == "afraid"
    assert np.array_equal(
        likelihoods(model, reader, TEXTS[:2])[0].values, likelihoods(source, reader, TEXTS[:2])[0].values
    )


def test_an_encoder_becomes_a_causal_model(tmp_path):
    """Its own weights are kept and it looks back only."""
    from tiny_estimators import SIZES
    from transformers import BertConfig, BertModel

    encoder = BertModel(BertConfig(vocab_size=340, **SIZES["bert"]))
    encoder.save_pretrained(tmp_path)
    hf_tokenizer("bert").save_pretrained(tmp_path)
    model, reader = EmotionEstimator.from_backbone(str(tmp_path))
    assert torch.equal(
        model.backbone.bert.encoder.layer[0].output.dense.weight, encoder.encoder.layer[0].output.dense.weight
    )
    short, long = (likelihoods(model, reader, [text])[0] for text in ("My dog", "My dog ate the whole cake."))
    n = len(short.text.ids)
    assert torch.allclose(short.values, long.values[:, :n], atol=1e-5)


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"evidence": "repo"}, "evidence is 'repo'; accepted: repo3, all"),
        ({"memory": 1.5, "evidence": "all"}, "memory is 1.5; accepted: 0 to 1"),
        ({"memory": 0.5}, "memory is 0.5 with evidence repo3; accepted: 0, or evidence=all"),
        ({"explains": "all"}, "explains is 'all'; accepted: label, any"),
        ({"explains": "any"}, "explains=any with evidence repo3 and top_emotions=2; it goes with evidence=all"),
        ({"top_emotions": 3}, "top_emotions is 3; accepted: 1, 2"),
        ({"label_form": "x"}, "label_form is 'x'; accepted: a text with {} in it"),
        ({"max_pieces": 600, "model_type": "bert"}, "max_pieces is 600, but the backbone has 512 positions"),
        ({"max_pieces": 2}, "max_pieces is 2; accepted: 4 or more"),
        ({"labels": ("sad", "angry", "proud")}, "3 labels; evidence repo3 with top_emotions=2 needs 4 or more"),
        ({"labels": ABCD, "log_prior": [0.0]}, "1 values in log_prior for 4 labels"),
    ],
)
def test_bad_settings(fields, message):
    """Check G-b of the pitfalls among them: too few labels for the released evidence."""
    fields = dict(fields)
    with pytest.raises(ConfigError, match=message):
        EmotionEstimatorConfig({"model_type": fields.pop("model_type", "gpt2")}, **fields)


def test_bad_backbones(tmp_path):
    with pytest.raises(ConfigError, match="backbone_config has no 'model_type'"):
        EmotionEstimatorConfig({}, ABCD)
    with pytest.raises(ConfigError, match="no language model of model_type 'vit'"):
        EmotionEstimator(EmotionEstimatorConfig({"model_type": "vit"}, ABCD))
    with pytest.raises(CheckpointError, match=r"cannot read a language model .* Give a folder with config\.json"):
        EmotionEstimator.from_backbone(str(tmp_path))
    with pytest.raises(CheckpointError, match="cannot read a model from"):
        EmotionEstimator.open(tmp_path)
    model, reader = estimator("own bart", ABCD[:3], evidence="all", top_emotions=1)
    with pytest.raises(ConfigError, match="3 labels; evidence repo3 with top_emotions=2 needs 4"):
        estimate(model, reader, ["cake"], None, REPO)
