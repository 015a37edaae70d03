"""The affect reader: what it reads, that padding and company do not matter, and what a saved folder holds."""

import json

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.perceive.affect import scored_words
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.taxonomy import EMOTIONS
from empatheia_research.understanding.affect.reader import (
    ADAPTER,
    AffectPieces,
    AffectReader,
    AffectReaderConfig,
    cause_targets,
)
from empatheia_research.understanding.affect.turns import AffectOfTurns
from empatheia_research.understanding.labels.utterance_classifier import train_pieces

TEXTS = [
    "I finally passed my driving test!",
    "My cat is very sick and I can't sleep.",
    "They laughed at my stammer, again.",
]
TALK = Dialogue.of("My cat is very sick.", "Oh. What does the doctor say?", "She needs an operation.")


@pytest.fixture(scope="module")
def pieces():
    return train_pieces([*TEXTS, *(turn.text for turn in TALK.turns)], 400, 64)


@pytest.fixture(scope="module")
def base(tmp_path_factory, pieces):
    """A pretrained encoder's folder, with random weights."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("base")
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, pad_token_id=pieces.pad_token_id,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    pieces.save_pretrained(folder)
    return folder


RECURRENT = {"word_hidden": 8, "word_layers": (0, 2)}


@pytest.fixture(params=[{}, RECURRENT], ids=["head on each piece", "recurrent head"])
def trained(request, base, tmp_path):
    """A model with updates that say something, and the folder it was saved to."""
    torch.manual_seed(1)
    model, reader = AffectReader.from_base(str(base), EMOTIONS, rank=2, max_pieces=32, **request.param)
    for name, weight in model.named_parameters():
        if ".up." in name:
            torch.nn.init.normal_(weight, std=0.3)
    folder = tmp_path / "model"
    folder.mkdir()
    model.save(folder, half=False)
    (folder / "empatheia.json").write_text(json.dumps({"name": "mine"}))
    return model.eval(), reader, folder


def test_a_fresh_model_reads_as_its_base_does(base):
    model, reader = AffectReader.from_base(str(base), EMOTIONS, rank=2, max_pieces=32)
    batch = reader.collate(reader.encode([TEXTS[0]]))
    plain = BertModel.from_pretrained(base, add_pooling_layer=False).eval()
    ids = batch["input_ids"]
    with torch.no_grad():
        own = model.eval().read(ids, batch["attention_mask"], batch["token_type_ids"])
        torch.testing.assert_close(own, plain(ids).last_hidden_state)


def test_temperatures_flatten_what_is_said(trained):
    model, reader, _ = trained
    batch = reader.collate(reader.encode(TEXTS))
    with torch.no_grad():
        sure = model(**batch)
        model.config.softmax_temperature, model.config.side_temperature = 2.0, 4.0
        calibrated = model(**batch)
    torch.testing.assert_close(calibrated.logits, sure.logits / 2)
    torch.testing.assert_close(calibrated.side_logits, sure.side_logits / 4)


def test_saved_and_opened_it_says_the_same_and_holds_no_base(trained):
    model, reader, folder = trained
    before = AffectOfTurns(model, reader).read([TALK.turns, (Turn("speaker", TEXTS[1]),)])
    opened = AffectOfTurns.load(folder)
    assert opened.name == "mine"
    for one, other in zip(before, opened.read([TALK.turns, (Turn("speaker", TEXTS[1]),)]), strict=True):
        np.testing.assert_allclose(one.emotions, other.emotions, atol=1e-5)
        np.testing.assert_allclose(one.sides, other.sides, atol=1e-5)
        assert [_place(span) for span in one.causes] == [_place(span) for span in other.causes]
    from safetensors.torch import load_file

    kept = load_file(folder / ADAPTER)
    assert kept and not any(".base." in name or "embeddings" in name for name in kept)


def test_whole_spans_are_asked_of_the_recurrent_head_alone(trained):
    model, reader, _ = trained
    affect = AffectOfTurns(model, reader)
    (few,), (whole,) = affect.read([TALK.turns]), affect.read([TALK.turns], spans=True)
    np.testing.assert_array_equal(few.emotions, whole.emotions)
    differ = [one.score != other.score for one, other in zip(few.words, whole.words, strict=True)]
    assert all(differ) if model.config.word_hidden else not any(differ)


def test_a_recurrent_word_head_goes_on_from_a_model_without_one(trained, base, tmp_path):
    plain, _, folder = trained
    torch.manual_seed(2)
    other, reader = AffectReader.from_base(
        str(base), EMOTIONS, rank=2, max_pieces=32, word_hidden=6, word_layers=(1, 2, 0)
    )
    if plain.config.word_hidden:
        with pytest.raises(CheckpointError, match="does not fit the model that is to go on from it, first at 'word_"):
            other.take(folder)
        return
    other.take(folder)
    batch = reader.collate(reader.encode(TEXTS))
    with torch.no_grad():
        one, two = plain(**batch), other.eval()(**batch)
    torch.testing.assert_close(one.logits, two.logits)
    assert not torch.allclose(one.word_logits, two.word_logits)
    learnt = [name for name, value in other.state_dict().items() if name.startswith("word_")]
    assert learnt and all(other.is_saved(name) and other.learns(name) for name in learnt)


def test_the_recurrent_head_reads_both_ways(base):
    torch.manual_seed(3)
    model, reader = AffectReader.from_base(str(base), EMOTIONS, rank=2, max_pieces=32, word_hidden=8, word_layers=(0,))
    batch = reader.collate(reader.encode([TEXTS[1]]))  # layer 0: what a piece is, whatever stands around it
    changed = {**batch, "input_ids": batch["input_ids"].clone()}
    changed["input_ids"][0, 5] = 9
    with torch.no_grad():
        differ = (model.eval()(**batch).word_logits - model(**changed).word_logits).abs()[0] > 1e-7
    assert differ[:5].any() and differ[6:].any()


def test_a_layer_the_encoder_has_not_is_refused(base):
    with pytest.raises(ConfigError, match="layer 3 is to be read for cause words; the encoder has 2"):
        AffectReader.from_base(str(base), EMOTIONS, rank=2, max_pieces=32, word_hidden=8, word_layers=(1, 3))
    with pytest.raises(ConfigError, match="word_layers is"):
        AffectReaderConfig(word_layers=())


def test_another_base_is_refused_in_words(trained, base, tmp_path):
    *_, folder = trained
    BertModel.from_pretrained(base).save_pretrained(tmp_path / "other")
    weights = tmp_path / "other" / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"base": str(tmp_path / "other")}))
    with pytest.raises(CheckpointError, match="checksum"):
        AffectReader.open(folder)
    (folder / "config.json").write_text(json.dumps(config | {"base": str(tmp_path / "nowhere")}))
    with pytest.raises(MissingResourceError):
        AffectReader.open(folder)


def test_a_damaged_adapter_is_named(trained):
    *_, folder = trained
    (folder / ADAPTER).write_bytes(b"\x00" * 20)
    with pytest.raises(CheckpointError, match=ADAPTER):
        AffectReader.open(folder)


def test_padding_company_and_order_do_not_matter(trained):
    model, reader, _ = trained
    affect = AffectOfTurns(model, reader)
    talks = [(Turn("speaker", text),) for text in TEXTS] + [TALK.turns]
    together = affect.read(talks)
    for talk, found in zip(talks, together, strict=True):
        (alone,) = affect.read([talk])
        np.testing.assert_allclose(alone.emotions, found.emotions, atol=1e-5)
        assert [_place(span) for span in alone.causes] == [_place(span) for span in found.causes]
        assert [_place(span) for span in alone.words] == [_place(span) for span in found.words]


def _place(span):
    return span.turn, span.start, span.end


def test_only_turns_that_hold_a_span_are_supervised_inside(pieces):
    config = AffectReaderConfig(max_pieces=32, encoder_config=None)
    reader = AffectPieces(pieces, config)
    talk = Dialogue.of("My cat is ill.", "Oh.", "She will die.")
    (row,) = reader.encode([talk.turns])
    spans = [Span(2, 0, 3)]
    whole, inside = cause_targets(row, talk.turns, spans), cause_targets(row, talk.turns, spans, inside=True)
    by_turn = {turn: {t for t, place in zip(inside, row["places"], strict=True) if place[0] == turn} for turn in (0, 2)}
    assert by_turn == {0: {-100}, 2: {0, 1}}
    assert {t for t, place in zip(whole, row["places"], strict=True) if place[0] == 0} == {0}


def test_what_stands_under_padding_is_not_read(trained):
    model, reader, _ = trained
    batch = reader.collate(reader.encode([TEXTS[0], TALK.turns]))
    with torch.no_grad():
        before = model(**batch)
        batch["input_ids"] = batch["input_ids"].masked_fill(~batch["attention_mask"], 7)
        after = model(**batch)
    torch.testing.assert_close(before.logits, after.logits)
    torch.testing.assert_close(before.side_logits, after.side_logits)


def test_only_updates_and_heads_learn(trained):
    model, reader, _ = trained
    for name, weight in model.named_parameters():
        weight.requires_grad_(model.learns(name))
    batch = reader.collate(_with_targets(reader, [TEXTS[0], TALK.turns]))
    model(**batch).loss.backward()
    learnt = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert learnt == {name for name, _ in model.named_parameters() if model.learns(name)}
    assert not any(".base." in name or "embeddings" in name for name in learnt)


def _with_targets(reader, texts):
    rows = reader.encode(texts)
    for row, text in zip(rows, texts, strict=True):
        turns = (Turn("speaker", text),) if isinstance(text, str) else text
        row["emotions"] = [float(name == "sad") for name in EMOTIONS]
        row["sides"] = [0.0, 1.0, 0.0]
        row["causes"] = cause_targets(row, turns, [Span(0, 0, 6)])
    return rows


def test_losses_are_means_over_what_has_a_target(trained):
    model, reader, _ = trained
    rows = _with_targets(reader, [TEXTS[0], TEXTS[1]])
    rows[1]["emotions"], rows[1]["sides"] = [0.0] * 32, [0.0] * 3
    rows[1]["causes"] = [-100] * len(rows[1]["input_ids"])
    batch = reader.collate(rows)
    out = model(**batch)
    alone = model(**reader.collate(rows[:1]))
    for name in ("emotion", "side", "words"):
        torch.testing.assert_close(out.losses[name], alone.losses[name])
    counts = AffectReader.count_items(batch, model.config)
    assert counts["emotion"] == counts["side"] == 1 and counts["words"] == alone.counts["words"] == out.counts["words"]


def test_listener_turns_and_special_pieces_are_no_causes(trained):
    _, reader, _ = trained
    (row,) = reader.encode([TALK.turns])
    targets = cause_targets(row, TALK.turns, [Span(0, 3, 6), Span(1, 0, 20)])
    for (turn, start, end), target in zip(row["places"], targets, strict=True):
        if turn in (-1, 1):
            assert target == -100
        else:
            assert target == int(turn == 0 and start < 6 and end > 3)


def test_pieces_know_their_characters_and_curly_apostrophes_change_nothing(trained):
    _, reader, _ = trained
    text = TEXTS[1]
    straight, curly = reader.encode([text, text.replace("'", "\u2019")])
    assert straight["input_ids"] == curly["input_ids"] and straight["places"] == curly["places"]
    assert "".join(text[s:e] for t, s, e in straight["places"] if t == 0) == text.replace(" ", "")


def test_long_input_keeps_the_newest_turns_and_both_ends_of_a_long_last_one(trained):
    _, reader, _ = trained
    turns = tuple(Turn("speaker" if i % 2 == 0 else "listener", TEXTS[i % 3]) for i in range(41))
    (row,) = reader.encode([turns])
    assert len(row["input_ids"]) <= 32 and row["places"][-2][0] == 40 and not row["is_cut"]
    long = " ".join(["cat"] * 80 + ["sick"])
    (row,) = reader.encode([long])
    places = [place for place in row["places"] if place[0] == 0]
    assert row["is_cut"] and places[0][1] == 0 and places[-1][2] == len(long) and len(row["input_ids"]) <= 32


def test_words_take_the_best_score_of_their_pieces():
    turns = (Turn("speaker", "I lost it"), Turn("listener", "Oh no"))
    places = [(-1, 0, 0), (0, 0, 1), (0, 2, 4), (0, 4, 6), (0, 7, 9), (-1, 0, 0), (1, 0, 2)]
    found = scored_words(turns, places, np.array([9.0, 0.1, 0.2, 0.7, 0.3, 9.0, 9.0]))
    assert [(w.of(turns), w.score) for w in found] == [("I", 0.1), ("lost", 0.7), ("it", 0.3)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", -1),
        ("max_pieces", 4),
        ("dropout", 1.0),
        ("word_weight", 0),
        ("softmax_temperature", 0),
        ("word_threshold", 2),
    ],
)
def test_impossible_settings_are_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        AffectReaderConfig(**{field: value})


def test_more_pieces_than_positions_are_refused(base):
    with pytest.raises(ConfigError, match="64 positions"):
        AffectReader.from_base(str(base), EMOTIONS, max_pieces=128)


def test_pieces_of_a_whole_model_are_saved_with_it(pieces, tmp_path):
    config = AffectReaderConfig(
        {"model_type": "bert", "vocab_size": len(pieces), "hidden_size": 16, "num_hidden_layers": 1,
         "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}, EMOTIONS, rank=0,
        max_pieces=32,
    )  # fmt: skip
    model, reader = AffectReader(config).eval(), AffectPieces(pieces, config)
    model.save(tmp_path, half=False)
    reader.save(tmp_path)
    (one,) = AffectOfTurns(model, reader).read([TALK.turns])
    (other,) = AffectOfTurns.load(tmp_path).read([TALK.turns])
    np.testing.assert_allclose(one.emotions, other.emotions, atol=1e-6)
