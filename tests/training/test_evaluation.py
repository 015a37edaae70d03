"""Measuring a responder: oracles by single forward passes and by hand, no gold label, whole replies."""

import json
import math

import numpy as np
import pytest
import torch

from empatheia.records.dialogue import CauseAnnotation, Dialogue
from empatheia.taxonomy import EMOTIONS
from empatheia.text.words import count_words
from empatheia_research.checkpoints.contexts import ContextReader
from empatheia_research.corpora import sample
from empatheia_research.recipes.recipe import DecodingConfig
from empatheia_research.responders import RESPONDERS
from empatheia_research.responders.transformer import Transformer, TransformerConfig
from empatheia_research.text.collation import Collator, EncodedExample, Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer
from empatheia_research.training import evaluation
from empatheia_research.training.evaluation import (
    batches_of,
    best_word_threshold,
    emotion_scores,
    evaluate_model,
    generate,
    likelihood_scores,
    measure,
    reply_scores,
    turn_cause_scores,
    word_cause_flags,
    word_cause_scores,
)

INDEX = {name: i for i, name in enumerate(EMOTIONS)}


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return DialogueTokenizer.from_pretrained(tiny_model)


@pytest.fixture(scope="module")
def model(tiny_model):
    return RESPONDERS.get("cause_gated").from_pretrained(tiny_model)


@pytest.fixture(scope="module")
def examples():
    dialogues = list(sample.load("test").dialogues)[:4]
    return [example for dialogue in dialogues for example in dialogue.examples()]


@pytest.fixture(scope="module")
def items(examples, tokenizer):
    return encode_examples(examples, tokenizer, Layout(), emotion_index=INDEX)


@pytest.fixture(scope="module")
def measured(model, items, tokenizer):
    return measure(model, items, tokenizer.pad_id)


def by_name(scores):
    return {score.name: score for score in scores}


# -- one pass ------------------------------------------------------------------------------------------------


def test_a_batch_measures_as_its_items_alone(model, items, tokenizer, measured):
    alone = [measure(model, [item], tokenizer.pad_id) for item in items]
    np.testing.assert_allclose(measured.nll, [m.nll[0] for m in alone], rtol=1e-5)
    assert measured.n_tokens.tolist() == [len(item.labels) for item in items]
    emotions = np.stack([m.emotion_probabilities[0] for m in alone])
    np.testing.assert_allclose(measured.emotion_probabilities, emotions, atol=1e-6)
    for item, together, single in zip(items, measured.cause_probabilities, alone, strict=True):
        assert together.shape == (len(item.input_ids),)
        np.testing.assert_allclose(together, single.cause_probabilities[0], atol=1e-6)


def test_likelihood_is_the_models_log_probability(model, items, tokenizer, measured):
    """Oracle: log-softmax of one reply's scores, by hand; labels other than the reply are not even given."""
    item = items[3]
    batch = Collator(("input_ids", "attention_mask", "role_ids"), tokenizer.pad_id)([item])
    inputs = torch.tensor([[tokenizer.bos_id, *item.labels[:-1]]])
    with torch.no_grad():
        scores = model.eval()(**batch, decoder_input_ids=inputs).logits.log_softmax(-1)[0]
    expected = -sum(scores[i, label].item() for i, label in enumerate(item.labels))
    assert measured.nll[3] == pytest.approx(expected, rel=1e-5)


def test_gold_labels_do_not_reach_the_model(model, items, tokenizer, measured):
    other = [EncodedExample(**{name: getattr(item, name) for name in item.__slots__}) for item in items]
    for item in other:
        item.emotion_label = (item.emotion_label + 5) % len(EMOTIONS)
        item.cause_labels = [1] * len(item.input_ids)
    again = measure(model, other, tokenizer.pad_id)
    assert np.array_equal(again.nll, measured.nll)
    assert np.array_equal(again.emotion_probabilities, measured.emotion_probabilities)


def test_smoothing_in_training_does_not_change_the_likelihood(model, items, tokenizer, measured, monkeypatch):
    monkeypatch.setattr(model.config, "label_smoothing", 0.1)
    np.testing.assert_allclose(measure(model, items, tokenizer.pad_id).nll, measured.nll, rtol=1e-6)


def test_items_without_reply_count_nothing(model, examples, tokenizer):
    some = encode_examples([examples[0], type(examples[0])(examples[0].context, None)], tokenizer, Layout())
    result = measure(model, some, tokenizer.pad_id)
    assert result.n_tokens.tolist() == [len(some[0].labels), 0]
    assert result.nll[0] > 0 and result.nll[1] == 0
    assert measure(model, [], tokenizer.pad_id).nll.shape == (0,)


def test_a_system_without_heads_gives_neither_emotions_nor_causes(items, tokenizer):
    torch.manual_seed(0)
    plain = Transformer(
        TransformerConfig(len(tokenizer), width=16, n_heads=2, ffn_width=16, n_encoder_layers=1, n_decoder_layers=1)
    )
    result = measure(plain, items[:2], tokenizer.pad_id)
    assert result.emotion_probabilities is None and result.cause_probabilities is None and (result.nll > 0).all()


def test_batches_hold_every_item_once_and_keep_the_limit(items):
    batches = batches_of(items, 150, lambda item: len(item.input_ids))
    assert sorted(i for batch in batches for i in batch) == list(range(len(items)))
    assert all(len(b) == 1 or len(b) * max(len(items[i].input_ids) for i in b) <= 150 for b in batches)


# -- scores --------------------------------------------------------------------------------------------------


def test_words_are_counted_by_the_family_whatever_the_pieces(measured, items, examples, tokenizer):
    scores = by_name(likelihood_scores(measured, items, examples, tokenizer))
    n_words = [count_words(example.response) + 1 for example in examples]
    assert [item.n_target_words for item in items] == n_words
    assert scores["ppl_word"].value == pytest.approx(math.exp(measured.nll.sum() / sum(n_words)))
    assert scores["ppl_token"].value == pytest.approx(math.exp(measured.nll.sum() / measured.n_tokens.sum()))
    settings = str(scores["ppl_word"].to_dict())
    assert "family+eos" in settings and "bpe-400" in str(scores["ppl_token"].to_dict())


def test_emotion_scores_by_hand():
    probabilities = np.full((4, 32), 0.5 / 31)
    gold = [0, 1, 2, 3]
    for row, best in enumerate([0, 1, 9, 9]):
        probabilities[row, best] = 0.5
    probabilities[2, 2] = 0.4  # second best
    probabilities[3, 10:15] = 0.3  # the gold emotion is seventh at best
    probabilities /= probabilities.sum(-1, keepdims=True)
    scores = by_name(emotion_scores(probabilities, gold))
    assert scores["accuracy"].value == pytest.approx(50.0)
    assert scores["accuracy_top5"].value == pytest.approx(75.0)
    assert {"f1_macro", "calibration_error"} < set(scores)


def test_turn_causes_by_hand(tokenizer):
    texts = ("I lost my dog", "oh no", "I miss him", "sorry")
    item = encode_examples([Dialogue.of(*texts, id="d").examples()[1]], tokenizer, Layout())[0]
    wanted = {0: 0.9, 1: 0.6, 2: 0.2, -1: 1.0}
    values = np.array([wanted[turn] for turn in item.turn_ids])
    gold = {"d": CauseAnnotation("d", 2, (0, 2))}
    (score,) = turn_cause_scores([values], [item], gold, 0.5)
    assert score.value == pytest.approx(0.5)  # predicted 0 and 1, gold 0 and 2
    (score,) = turn_cause_scores([values], [item], gold, 0.8)
    assert score.value == pytest.approx(2 / 3)  # predicted 0 only
    assert turn_cause_scores([values], [item], {"d": CauseAnnotation("d", 0, (0,))}, 0.5) == []
    assert turn_cause_scores([values], [item], {}, 0.5) == []


def test_a_causal_turn_that_did_not_fit_is_a_miss(tokenizer):
    texts = ("I lost my dog and all I had " * 4, "oh no", "I miss him", "sorry")
    item = encode_examples([Dialogue.of(*texts, id="d").examples()[1]], tokenizer, Layout(max_source=24))[0]
    assert item.n_dropped_turns == 1
    gold = {"d": CauseAnnotation("d", 2, (0, 2))}
    values = np.array([float(turn == 2) for turn in item.turn_ids])
    (score,) = turn_cause_scores([values], [item], gold, 0.5)
    assert score.value == pytest.approx(2 / 3)  # precision 1, recall 1/2


def test_perfect_replies_score_perfectly():
    replies = ["i am so sorry to hear that .", "what happened then ?"]
    scores = by_name(reply_scores(replies, replies))
    assert scores["bleu_nltk_4"].value == pytest.approx(100.0)
    assert all(0 < scores[name].value <= 100 for name in ("dist_corpus_1", "dist_corpus_2"))


def test_word_causes_against_whole_turns(model, tokenizer):
    rows = word_cause_flags(ContextReader(model, tokenizer, Layout()), "test", sample.root())
    assert rows and all(len(values) == len(gold) and set(gold) <= {0, 1} for values, gold in rows)
    assert any(0 < sum(gold) < len(gold) for _, gold in rows)
    certain = [([float(flag) for flag in gold], gold) for _, gold in rows]
    scores = word_cause_scores(certain, best_word_threshold(certain))
    assert scores["reccon_word_f1"]["value"] == pytest.approx(1.0)
    assert scores["reccon_word_f1_whole_turn"]["value"] < 1.0
    assert word_cause_scores([], 0.5) == {}


# -- replies -------------------------------------------------------------------------------------------------


def test_greedy_replies_do_not_depend_on_the_batch(model, items, tokenizer):
    decoding = DecodingConfig(max_new_tokens=6)
    seen = []
    together = generate(model, items, tokenizer, decoding, batch_size=5, progress=lambda *row: seen.append(row))
    alone = [generate(model, [item], tokenizer, decoding)[0] for item in items[:3]]
    assert together[:3] == alone and len(together) == len(items)
    assert seen[-1] == (len(items), len(items)) and [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("strategy", ["sample", "beam"])
def test_other_strategies_are_reproducible(model, items, tokenizer, strategy):
    decoding = DecodingConfig(strategy=strategy, top_k=5, num_beams=2, max_new_tokens=4)
    first = generate(model, items[:3], tokenizer, decoding)
    assert first == generate(model, items[:3], tokenizer, decoding)
    assert all(len(reply.split()) <= 4 for reply in first)


def test_a_whole_evaluation(model, tokenizer, examples, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "N_RESAMPLES", 20)
    unknown = type(examples[0])(examples[0].context, "I DON'T know " + "at all " * 80, "unknown", 1)
    gold = {example.dialogue_id: CauseAnnotation(example.dialogue_id, 0, (0,)) for example in examples}
    decoding = DecodingConfig(max_new_tokens=3)
    contexts = ContextReader(model, tokenizer, Layout())
    arguments = (contexts, [*examples, unknown], decoding, gold, tmp_path / "outputs.jsonl")
    scores = evaluate_model(*arguments, cause_threshold=0.0)
    assert "accuracy" not in scores, "one emotion is unknown"
    assert {"ppl_word", "bleu_nltk_2", "dist_corpus_1", "cause_f1_turn", "decoding"} <= set(scores)
    assert scores["decoding"]["replies"] == len(examples) + 1 and scores["decoding"]["max_new_tokens"] == 3
    json.dumps(scores)
    rows = [json.loads(line) for line in (tmp_path / "outputs.jsonl").read_text().splitlines()]
    assert [row["emotion"] for row in rows] == [*[example.emotion for example in examples], None]
    assert rows[-1]["ref"] == "i do not know " + " ".join(["at all"] * 80), "whole replies, in family words"
    assert all(row["predicted"] in EMOTIONS and row["hyp"] == row["hyp"].lower() for row in rows)
    for row, example in zip(rows, [*examples, unknown], strict=True):
        spans = [example.context[s["turn"]].text[s["start"] : s["end"]] for s in row["causes"]]
        assert all(span and span == span.strip() for span in spans), "causes are words of the context"
    assert any(row["causes"] for row in rows)
    known = evaluate_model(contexts, examples, decoding, {})
    assert {"accuracy", "accuracy_top5", "f1_macro", "calibration_error"} <= set(known)
    assert "cause_f1_turn" not in known


def test_a_model_that_draws_is_measured_the_same_again(tokenizer, examples, monkeypatch):
    """MIME as released draws its latents when it answers; what was drawn before does not matter."""
    from empatheia_research.responders.mime import MIME, MIMEConfig

    monkeypatch.setattr(evaluation, "N_RESAMPLES", 20)
    sizes = {"vocab_size": len(tokenizer), "width": 12, "attention_width": 8, "ffn_width": 6}
    model = MIME(MIMEConfig(**sizes, variant="repo"))
    for parameter in model.parameters():
        parameter.data.normal_(std=0.5)
    contexts = ContextReader(model, tokenizer, Layout())
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(evaluate_model(contexts, examples, DecodingConfig(max_new_tokens=3), {}))
    assert found[0]["ppl_token"] == found[1]["ppl_token"]
    torch.manual_seed(1)
    items = encode_examples(examples, tokenizer, Layout())
    first, second = (measure(model, items, tokenizer.pad_id).nll for _ in range(2))
    assert not np.array_equal(first, second)  # it does draw


def test_the_word_threshold_may_give_up_a_little_f1_to_mark_fewer_words():
    rows = [([0.2] * 40 + [0.4] * 40 + [0.9] * 20, [1] * 18 + [0] * 22 + [1] * 24 + [0] * 16 + [1] * 15 + [0] * 5)]
    best = best_word_threshold(rows)
    assert best == best_word_threshold(rows, tolerance=0.0) == 0.2
    assert best_word_threshold(rows, tolerance=0.1) == 0.4
    assert best_word_threshold(rows, tolerance=1.0) == 0.95
