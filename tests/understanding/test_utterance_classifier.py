"""The encoder classifier and the bulk path: layouts, padding, saving, calibration, errors, learning."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tiny_classifiers import SENTENCES, encoder_classifier, linear_classifier, save
from transformers import BertConfig, BertModel, get_linear_schedule_with_warmup, pipeline

import fresh
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.records.dialogue import Dialogue
from empatheia.taxonomy import EMOTIONS, LABELS_41
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.labels.classifier import TextClassifier, classify_rows
from empatheia_research.understanding.labels.utterance_classifier import (
    PieceReader,
    UtteranceClassifier,
    UtteranceClassifierConfig,
    train_pieces,
)

LONG = Dialogue.of(*[f"turn number {i} of the cake" for i in range(500)])


def spoken(classifier, ids):
    return classifier.reader.tokenizer.convert_ids_to_tokens(ids)


# -- what is read --------------------------------------------------------------------------------------------


def test_one_text_is_what_the_tokenizer_itself_makes_of_it():
    tiny = encoder_classifier()
    for text, row in zip(SENTENCES, tiny.reader.encode(SENTENCES), strict=True):
        assert row["input_ids"] == tiny.reader.tokenizer(text)["input_ids"]
        assert set(row["token_type_ids"]) == {0}


def test_turns_are_closed_by_separators_and_typed_by_role():
    tiny = encoder_classifier()
    row = tiny.reader.encode([Dialogue.of("cake", "dog", "cake cake").turns])[0]
    assert spoken(tiny, row["input_ids"]) == ["[CLS]", "cake", "[SEP]", "dog", "[SEP]", "cake", "cake", "[SEP]"]
    assert row["token_type_ids"] == [0, 0, 0, 1, 1, 0, 0, 0]


def test_the_newest_turns_are_kept():
    tiny = encoder_classifier(max_pieces=8)
    turns = Dialogue.of("dog dog dog", "cake cake", "dog cake").turns
    assert spoken(tiny, tiny.reader.encode([turns])[0]["input_ids"]) == [
        "[CLS]", "cake", "cake", "[SEP]", "dog", "cake", "[SEP]",
    ]  # fmt: skip
    alone = tiny.reader.encode([Dialogue.of("cake", "dog " * 30).turns, "dog " * 30])
    assert [spoken(tiny, row["input_ids"]) for row in alone] == [["[CLS]", *["dog"] * 6, "[SEP]"]] * 2
    whole, newest = encoder_classifier(max_pieces=40).reader.encode([LONG.turns, LONG.turns[-40:]])
    assert 20 <= len(whole["input_ids"]) <= 40 and whole == newest


def test_a_typed_special_piece_is_text_and_stray_surrogates_do_no_harm():
    tiny = encoder_classifier()
    ids = tiny.reader.encode(["cake [SEP] cake", "\ud800 cake"])
    assert spoken(tiny, ids[0]["input_ids"]).count("[SEP]") == 1
    assert spoken(tiny, ids[1]["input_ids"]) == ["[CLS]", "cake", "[SEP]"]


def test_lower_case_is_the_models_choice():
    cased, lower = encoder_classifier(), encoder_classifier(lowercase=True)
    for tiny in (cased, lower):
        tiny.reader.tokenizer.backend_tokenizer.normalizer = None  # an encoder that reads case
    assert lower.reader.encode(["CAKE"]) == lower.reader.encode(["cake"]) == cased.reader.encode(["cake"])
    assert cased.reader.encode(["CAKE"]) != cased.reader.encode(["cake"])


# -- answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [encoder_classifier, linear_classifier])
@pytest.mark.parametrize("options", [{}, {"batch_size": 2}, {"batch_tokens": 30}, {"window": 2}])
def test_in_bulk_as_one_at_a_time(make, options):
    tiny = make()
    texts = [*SENTENCES, Dialogue.of("cake", "dog").turns]
    single = np.concatenate([tiny.classify_texts([text]) for text in texts])
    done: list[int] = []
    together = tiny.classify_texts(iter(texts), progress=done.append, **options)
    assert np.allclose(single, together, atol=1e-6)
    assert np.allclose(together.sum(1), 1, atol=1e-5) and together.shape == (10, 32)
    assert sum(done) == 10
    assert np.ptp(together, axis=0).max() > 0.05  # the answers do differ from text to text


@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "additive", "dot"])
def test_padding_changes_nothing(model_type, pooling):
    tiny = encoder_classifier(model_type=model_type, pooling=pooling)
    rows = tiny.reader.encode([SENTENCES[3], SENTENCES[2]])
    batch = tiny.reader.collate(rows)
    batch["input_ids"][~batch["attention_mask"]] = 7  # whatever stands under the mask
    batch["token_type_ids"][~batch["attention_mask"]] = 1
    alone = tiny.reader.collate(rows[1:])
    with torch.inference_mode():
        assert torch.allclose(tiny.model(**batch).logits[1], tiny.model(**alone).logits[0], atol=1e-5)


def test_nothing_in_nothing_out():
    assert encoder_classifier().classify_texts([]).shape == (0, 32)


@pytest.mark.parametrize("labels", [EMOTIONS, LABELS_41, ("yes", "no")])
def test_saved_and_loaded_in_a_fresh_process(tmp_path, labels):
    tiny = encoder_classifier(labels, pooling="additive", head_width=16, softmax_temperature=1.7)
    folder = save(tiny, tmp_path / "model")
    code = (
        "import json, sys\nfrom empatheia_research.understanding.labels.classifier import TextClassifier\n"
        f"found = TextClassifier.load({str(folder)!r})\n"
        f"print(json.dumps([found.labels, found.classify_texts({list(SENTENCES)!r}).tolist()]))"
    )
    if labels is LABELS_41:
        done = fresh.run(["-c", code], check=True)
        names, found = json.loads(done.stdout.splitlines()[-1])
    else:
        opened = TextClassifier.load(folder)
        names, found = opened.labels, opened.classify_texts(SENTENCES)
    assert tuple(names) == tuple(labels)
    assert np.array_equal(np.array(found, dtype=np.float32), tiny.classify_texts(SENTENCES))


def test_a_saved_folder_is_a_transformers_pipeline(tmp_path):
    tiny = encoder_classifier(softmax_temperature=2.0)
    folder = save(tiny, tmp_path / "model")
    pipe = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")
    for text, row in zip(SENTENCES, tiny.classify_texts(SENTENCES), strict=True):
        scores = {entry["label"]: entry["score"] for entry in pipe([text], truncation=True)[0]}
        assert np.allclose([scores[name] for name in tiny.labels], row, atol=1e-6)


def test_temperature_divides_the_logits():
    cold, warm = encoder_classifier(), encoder_classifier(softmax_temperature=2.0)
    p, q = cold.classify_texts(SENTENCES), warm.classify_texts(SENTENCES)
    expected = np.sqrt(p) / np.sqrt(p).sum(1, keepdims=True)
    assert np.allclose(q, expected, atol=1e-5) and (q.argmax(1) == p.argmax(1)).all()


def test_head_width_is_a_tanh_layer():
    tiny = encoder_classifier(head_width=16)
    kinds = [type(layer).__name__ for layer in tiny.model.head]
    assert kinds == ["Dropout", "HeadLinear", "Tanh", "Dropout", "HeadLinear"]
    assert tiny.model.head[1].out_features == 16 and tiny.model.head[-1].out_features == 32


# -- learning ------------------------------------------------------------------------------------------------


def test_every_weight_gets_a_gradient_and_the_loss_falls():
    torch.manual_seed(0)
    tiny = encoder_classifier(("cake", "none"), pooling="additive", head_width=8, dropout=0.0, encoder_dropout=0.0)
    labels = [int("cake" not in text.lower()) for text in SENTENCES]
    rows = [{**row, "label": label} for row, label in zip(tiny.reader.encode(SENTENCES), labels, strict=True)]
    batch = tiny.reader.collate(rows)
    optimizer = torch.optim.AdamW(tiny.model.parameters(), lr=3e-3)
    tiny.model.train()
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        output = tiny.model(**batch)
        output.loss.backward()
        without = [name for name, p in tiny.model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        optimizer.step()
        losses.append(output.loss.item())
    assert [name for name in without if "position" not in name and "key.bias" not in name] == []
    assert losses[-1] < 0.2 * losses[0]
    assert (classify_rows(tiny.model, tiny.reader, rows).argmax(1) == labels).all()


def test_smoothing_and_weights_act_in_training_only():
    plain, changed = (
        encoder_classifier(dropout=0.0, encoder_dropout=0.0, **fields)
        for fields in ({}, {"label_smoothing": 0.3, "label_weights": [3.0] * 32})
    )
    batch = plain.reader.collate([{**row, "label": i} for i, row in enumerate(plain.reader.encode(SENTENCES))])
    assert torch.equal(plain.model(**batch).loss, changed.model(**batch).loss)
    changed.model.train()
    logits = changed.model(**batch).logits
    expected = 3 * torch.nn.functional.cross_entropy(logits, batch["labels"], label_smoothing=0.3)
    assert torch.allclose(changed.model(**batch).loss, expected)


def test_counts_are_known_without_running_the_model():
    tiny = encoder_classifier()
    batch = {"labels": torch.tensor([3, -100, 0])}
    assert int(tiny.model.count_items(batch, tiny.model.config)["label"]) == 2
    full = tiny.reader.collate(tiny.reader.encode(SENTENCES[:3])) | batch
    output = tiny.model(**full)
    assert int(output.counts["label"]) == 2
    logits = output.logits[[0, 2]].log_softmax(-1)
    assert torch.allclose(output.loss, -(logits[0, 3] + logits[1, 0]) / 2)


def test_published_learning_rate():
    """MEED2 checks, learning rate: peak 2e-5, warm-up 700, total 7,000 (the recipe's max_steps), never below 0."""
    from pathlib import Path

    from empatheia_research.recipes.recipe import load_recipe

    recipes = Path(__file__).resolve().parents[2] / "recipes"
    stage = load_recipe(recipes / "meed2/emotion_intent_repo.yaml", size="full").stages[0]
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=stage.learning_rate)
    schedule = get_linear_schedule_with_warmup(optimizer, stage.warmup_steps, stage.max_steps)
    rate = {step: stage.learning_rate * schedule.lr_lambdas[0](step) for step in (350, 700, 3850, 7000, 8930)}
    assert rate == pytest.approx({350: 1e-5, 700: 2e-5, 3850: 1e-5, 7000: 0.0, 8930: 0.0})
    assert stage.schedule == "linear" and (stage.betas, stage.eps) == ((0.9, 0.98), 1e-6)


# -- pretrained encoders and faults --------------------------------------------------------------------------


@pytest.fixture
def encoder_folder(tmp_path):
    pieces = train_pieces(SENTENCES, 200, 64)
    config = BertConfig(vocab_size=len(pieces), max_position_embeddings=80, hidden_size=32, num_hidden_layers=1,
                        num_attention_heads=2, intermediate_size=32)  # fmt: skip
    BertModel(config).save_pretrained(tmp_path / "encoder")
    pieces.save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


def test_a_pretrained_encoder_keeps_its_weights(encoder_folder):
    model, reader = UtteranceClassifier.from_encoder(
        str(encoder_folder), labels=EMOTIONS, encoder_dropout=0.0, max_pieces=64
    )
    source = BertModel.from_pretrained(encoder_folder)
    weight = "encoder.layer.0.attention.self.query.weight"
    assert torch.equal(model.encoder.state_dict()[weight], source.state_dict()[weight])
    assert model.config.encoder_config["hidden_dropout_prob"] == 0.0
    assert TextClassifier(model, reader).classify_texts(["cake"]).shape == (1, 32)


def test_an_encoder_folder_without_weights(encoder_folder, tmp_path):
    (encoder_folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="cannot read an encoder and its tokenizer"):
        UtteranceClassifier.from_encoder(str(encoder_folder), labels=EMOTIONS)


def test_a_model_folder_that_is_broken(tmp_path):
    folder = save(encoder_classifier(), tmp_path / "model")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights.pop("head.1.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"lacks 1 weights, first 'head\.1\.weight'"):
        TextClassifier.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="cannot read a model"):
        TextClassifier.load(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(
        CheckpointError, match=r"model_type is 'bert'.*Accepted: utterance_classifier, linear_classifier"
    ):
        TextClassifier.load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        TextClassifier.load(folder)
    with pytest.raises(MissingResourceError):
        TextClassifier.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pooling": "max"}, "pooling is 'max'; accepted: cls, mean"),
        ({"reads": "all"}, "reads is 'all'; accepted: turn, context"),
        ({"max_pieces": 2}, "max_pieces is 2; accepted: 3 or more"),
        ({"softmax_temperature": 0.0}, "softmax_temperature is 0.0; accepted: above 0"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0; accepted: from 0 to below 1"),
        ({"labels": ("a", "a")}, "two or more different names"),
        ({"label_weights": [1.0]}, "1 label_weights for 32 labels"),
        ({"max_pieces": 100}, "max_pieces is 100, but the encoder has 80 positions"),
    ],
)
def test_settings_that_cannot_be(fields, message):
    with pytest.raises(ConfigError, match=message):
        encoder_classifier(**{"labels": EMOTIONS, **fields})


def test_encoders_that_cannot_be():
    for config, message in (
        ({"hidden_size": 8}, "has no 'model_type'"),
        ({"model_type": "bart"}, "is an encoder-decoder"),
        ({"model_type": "bort"}, "which transformers does not know"),
    ):
        with pytest.raises(ConfigError, match=message):
            UtteranceClassifier(UtteranceClassifierConfig(encoder_config=config, labels=EMOTIONS))
    pieces = train_pieces(SENTENCES, 200, 64)
    pieces.sep_token = None
    with pytest.raises(ConfigError, match="no CLS/BOS or no SEP/EOS piece"):
        PieceReader(pieces, UtteranceClassifierConfig())


def test_batch_limits_that_cannot_be():
    tiny = encoder_classifier()
    with pytest.raises(ConfigError, match="give one of the two"):
        tiny.classify_texts(["a"], batch_size=2, batch_tokens=20)
    with pytest.raises(ConfigError, match="window is 0"):
        tiny.classify_texts(["a"], window=0)
    with pytest.raises(ConfigError, match="batch_size is 0"):
        tiny.classify_texts(["a"], batch_size=0)


def test_registered():
    assert UNDERSTANDERS.get("utterance_classifier") is UtteranceClassifier
