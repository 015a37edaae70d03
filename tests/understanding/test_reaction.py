"""MEED2's response predictor: input layout, size, both poolings, turn labels, padding, saving, and the component."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from tiny_reactions import SENTENCES, Labeller, encoder_folder, predictor

from empatheia.analysis.component import COMPONENTS
from empatheia.errors import CheckpointError, ConfigError, DataError
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.taxonomy import LABELS_41
from empatheia_research.layers.pooling import Pooling
from empatheia_research.training.tasks.anticipate import next_turns, one_turn_a_dialogue
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.labels.next_label import (
    NO_LABEL,
    ContextReader,
    NextTurn,
    ReactionPredictor,
    ReactionPredictorConfig,
    ReactionToTurns,
    predict,
    turn_labels,
)

DIALOGUE = Dialogue.of(*SENTENCES[:5], id="d")


def items(labels=("sad", "questioning", None, "neutral", "joyful")):
    """Four contexts of a conversation with the label after them, and a short one."""
    turns = DIALOGUE.turns
    made = [NextTurn(turns[:i], labels[:i], labels[i] or "sad", "d", i, turns[i].role) for i in range(1, len(turns))]
    return [*made, NextTurn((Turn("speaker", "ok"),), (None,))]


# -- input ---------------------------------------------------------------------------------------------------


class Words:
    """A tokenizer whose pieces are the numbers in a text."""

    cls_token_id, sep_token_id, pad_token_id = 0, 2, 1

    def __call__(self, texts, **_):
        return {"input_ids": [[int(word) for word in text.split()] for text in texts]}


def read(*turns, labels=None, **fields):
    config = ReactionPredictorConfig(**fields)
    context = tuple(Turn(("speaker", "listener")[i % 2], text) for i, text in enumerate(turns))
    reader = ContextReader(Words(), config)  # pyright: ignore[reportArgumentType]
    return reader.encode([NextTurn(context, labels or (None,) * len(turns))])[0]


def test_published_layout():
    """Check "Encoding": 3 and 2 pieces give 9, parities 0 x5 and 1 x4; the separator pair is split."""
    row = read("11 12 13", "21 22", labels=("sad", "questioning"))
    assert row["input_ids"] == [0, 11, 12, 13, 2, 2, 21, 22, 2]
    assert row["parity_ids"] == [0] * 5 + [1] * 4
    assert row["turn_label_ids"] == [27] * 5 + [38] * 4
    single = read("11 12 13", "21 22", double_separator=False)
    assert single["input_ids"] == [0, 11, 12, 13, 2, 21, 22, 2]
    assert single["parity_ids"] == [0] * 5 + [1] * 3
    assert single["turn_label_ids"] == [NO_LABEL] * 8


def test_positions_start_at_two():
    """Check "Encoding": RoBERTa counts positions from the padding index + 1: 2 to 10 for nine pieces."""
    from transformers.models.roberta.modeling_roberta import RobertaEmbeddings

    embedded = torch.zeros(1, 9, 4)
    positions = RobertaEmbeddings.create_position_ids_from_inputs_embeds(embedded, padding_idx=1)
    assert positions.tolist() == [list(range(2, 11))]


def test_limit():
    """Check "Encoding": a context of 100 pieces is kept whole, 101 is too long."""
    words = " ".join(["11"] * 47)
    assert read(words, words + " 11 11")["is_whole"]  # 2 + 47 + 2 + 49 = 100
    assert len(read(words, words + " 11 11")["input_ids"]) == 100
    too_long = read(words, words + " 11 11 11")
    assert not too_long["is_whole"]
    assert too_long["input_ids"] == [0, *[11] * 50, 2] and too_long["parity_ids"] == [1] * 52
    alone = read(" ".join(["11"] * 99))
    assert len(alone["input_ids"]) == 100 and not alone["is_whole"]
    assert read(" ".join(["11"] * 98))["is_whole"]


def test_parity_says_who_speaks():
    """The listener's turn is 1 also when the oldest turns are left out, the listener opens, or one speaks twice."""
    cut = read("11 12 13", "21 22", "31", max_pieces=8)
    assert cut["input_ids"] == [0, 21, 22, 2, 2, 31, 2] and not cut["is_whole"]
    assert cut["parity_ids"] == [1] * 4 + [0] * 3
    reader = ContextReader(Words(), ReactionPredictorConfig())  # pyright: ignore[reportArgumentType]
    roles = ("listener", "speaker", "speaker")
    turns = tuple(Turn(role, str(i + 11)) for i, role in enumerate(roles))
    (row,) = reader.encode([NextTurn(turns, (None,) * 3)])
    assert row["parity_ids"] == [1] * 3 + [0] * 3 + [0] * 3


def test_an_answer_does_not_depend_on_how_much_was_left_out():
    """Two turns more at the start of a context that is cut anyway change nothing, one turn more neither."""
    model, reader = predictor(max_pieces=24)
    turns = Dialogue.of(*[SENTENCES[i % 3] for i in range(9)]).turns
    cut = [NextTurn(turns[start:], (None,) * (9 - start)) for start in (0, 1, 2, 3)]
    assert not any(row["is_whole"] for row in reader.encode(cut))
    found = predict(model, reader, cut)
    assert np.allclose(found, found[0], atol=1e-6)


def test_prefix_expansion():
    """Check "Encoding": n utterances give n - 1 examples, the first turn is no target."""
    labels = ("sad", "questioning", "sad", "neutral", "wishing")
    found = next_turns(DIALOGUE, labels)
    assert [(item.turn, item.label, len(item.context), item.role) for item in found] == [
        (1, "questioning", 1, "listener"),
        (2, "sad", 2, "speaker"),
        (3, "neutral", 3, "listener"),
        (4, "wishing", 4, "speaker"),
    ]
    assert all(item.turn_labels == labels[: item.turn] for item in found)
    assert [item.turn for item in next_turns(DIALOGUE, labels, ("listener",))] == [1, 3]
    assert next_turns(DIALOGUE, None) == []
    assert [item.turn for item in next_turns(DIALOGUE, ("sad", None, "sad", None, "sad"))] == [2, 4]


def test_faulty_item():
    with pytest.raises(DataError, match="0 turns of context"):
        NextTurn((), ())
    with pytest.raises(DataError, match="1 turns of context with 2 labels"):
        NextTurn(DIALOGUE.turns[:1], (None, None))


def test_one_turn_a_dialogue():
    made = [NextTurn(DIALOGUE.turns[:1], (None,), "sad", f"d{i // 3}", i % 3 + 1, "listener") for i in range(3 * 2_100)]
    drawn = one_turn_a_dialogue(made)
    assert len(drawn) == 2_000 == len({made[i].dialogue_id for i in drawn})
    assert drawn == one_turn_a_dialogue(made) != one_turn_a_dialogue(made, seed=1)
    assert {made[i].turn for i in drawn} == {1, 2, 3}


# -- model ---------------------------------------------------------------------------------------------------


def test_published_size():
    """Check "Parameters": the predictor has 19,652,441; the paper's pooling needs 90,300 fewer."""
    encoder = {
        "model_type": "roberta",
        "vocab_size": 50_265,
        "hidden_size": 300,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "intermediate_size": 1_200,
        "max_position_embeddings": 102,
        "type_vocab_size": 2,
        "pad_token_id": 1,
    }
    with torch.device("meta"):
        for pooling, n in (("additive", 19_652_441), ("dot", 19_652_441 - 90_300)):
            model = ReactionPredictor(ReactionPredictorConfig(encoder_config=encoder, pooling=pooling))
            assert sum(p.numel() for p in model.parameters()) == n


def test_pooling_by_hand():
    """Check "Pooling": zero weights give the mean of what is kept; dot form with v = (ln 2, 0) gives 2/3, 1/3."""
    states = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]]])
    all_kept, two_kept = torch.tensor([[True] * 3]), torch.tensor([[True, True, False]])
    for form in ("dot", "additive"):
        pool = Pooling(form, 2)
        torch.nn.init.zeros_(pool.query.weight)
        assert pool(states, all_kept).tolist() == [[1.0, 1.0]]
        assert pool(states, two_kept).tolist() == [[0.5, 0.5]]
    pool = Pooling("dot", 2)
    with torch.no_grad():
        pool.query.weight.copy_(torch.tensor([[math.log(2), 0.0]]))
    assert pool.weights(states, two_kept)[0].tolist() == pytest.approx([2 / 3, 1 / 3, 0])


@pytest.mark.parametrize("model_type", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("pooling", ["additive", "dot"])
def test_batched_is_single(model_type, pooling):
    """Check "Pooling": padding never changes the result."""
    model, reader = predictor(model_type=model_type, pooling=pooling)
    together = predict(model, reader, items())
    assert together.shape == (5, 41)
    assert np.allclose(together.sum(1), 1)
    for item, row in zip(items(), together, strict=True):
        assert np.allclose(predict(model, reader, [item])[0], row, atol=1e-5)
    assert np.abs(together - together[0]).max() > 1e-2
    batch = reader.collate(reader.encode(items()))
    before = model(**batch).logits
    hidden = ~batch["attention_mask"]
    changed = {"input_ids": 9, "parity_ids": 1, "turn_label_ids": 5}
    after = model(**batch | {key: batch[key].masked_fill(hidden, value) for key, value in changed.items()}).logits
    assert torch.allclose(before, after, atol=1e-6)


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
def test_embedding_is_a_sum(model_type):
    """Check of section 7.1: piece + label are added before the encoder's own position, parity and norm."""
    model, reader = predictor(model_type=model_type)
    item = items()[2]
    batch = reader.collate(reader.encode([item]))
    words = model.get_input_embeddings()(batch["input_ids"])
    known = batch["turn_label_ids"] >= 0
    words = words + model.label_table(batch["turn_label_ids"].clamp(min=0)) * known.unsqueeze(-1)
    extra = {"token_type_ids": batch["parity_ids"]} if model.reads_types else {}
    if not model.reads_types:
        words = words + model.parity_table(batch["parity_ids"])
    states = model.encoder(inputs_embeds=words, attention_mask=batch["attention_mask"].long(), **extra)
    pooled = model.pool(states.last_hidden_state, batch["attention_mask"])
    logits = model.head[3](torch.tanh(model.head[1](pooled)))
    assert torch.allclose(logits, model(**batch).logits, atol=1e-6)


def test_turn_labels_are_read_and_the_target_is_not():
    model, reader = predictor()
    same = predict(model, reader, items())
    other = predict(model, reader, items(("angry", "questioning", None, "neutral", "wishing")))
    assert np.abs(same - other)[0].max() > 1e-4
    # only the label of the last turn, a target and never context, differs
    assert np.array_equal(same, predict(model, reader, items(("sad", "questioning", None, "neutral", "wishing"))))
    without = predict(model, reader, items(), use_labels=False)
    assert np.array_equal(without, predict(model, reader, items((None,) * 5)))
    assert not np.allclose(without[:4], same[:4], atol=1e-4)
    blind, reader = predictor(turn_labels=False)
    assert np.array_equal(predict(blind, reader, items()), predict(blind, reader, items(), use_labels=False))


def test_label_dropout_works_in_training_only():
    model, reader = predictor(label_dropout=1.0, encoder_dropout=0.0)
    batch = reader.collate(reader.encode(items()[:4]))
    labelled = model(**batch).logits
    hidden = model(**batch | {"turn_label_ids": torch.full_like(batch["input_ids"], NO_LABEL)}).logits
    assert not torch.allclose(labelled, hidden, atol=1e-3)
    model.train()
    assert torch.allclose(model(**batch).logits, hidden, atol=1e-5)


def test_every_parameter_learns():
    for model_type in ("bert", "distilbert"):
        model, reader = predictor(model_type=model_type)
        batch = reader.collate(reader.encode(items()[:4]))
        output = model(**batch)
        output.loss.backward()
        assert int(output.counts["label"]) == 4 == int(ReactionPredictor.count_items(batch, model.config)["label"])
        gold = [LABELS_41.index(str(item.label)) for item in items()[:4]]
        wanted = -output.logits.log_softmax(-1)[range(4), gold].mean()
        assert output.losses["label"].item() == pytest.approx(wanted.item(), rel=1e-5)
        assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_learns():
    model, reader = predictor(encoder_dropout=0.0)
    batch = reader.collate(reader.encode(items()[:4]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(40):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    found = predict(model, reader, items()[:3]).argmax(1)
    assert [LABELS_41[i] for i in found] == [item.label for item in items()[:3]]


# -- folders and the component -------------------------------------------------------------------------------


def save(folder, **fields):
    model, reader = predictor(**fields)
    model.save_pretrained(folder)
    reader.save(folder)
    return folder


@pytest.mark.parametrize("pooling", ["additive", "dot"])
def test_saved_and_loaded_is_the_same(tmp_path, pooling):
    save(tmp_path / "m", pooling=pooling)
    model, reader = UNDERSTANDERS.get("reaction_predictor").open(tmp_path / "m")
    assert np.array_equal(predict(model, reader, items()), predict(*predictor(pooling=pooling), items()))
    assert [model.config.id2label[i] for i in range(41)] == list(LABELS_41)


def test_a_pretrained_encoder_starts_unchanged(tmp_path):
    model, reader = ReactionPredictor.from_encoder(str(encoder_folder(tmp_path / "e")), max_pieces=64)
    assert not model.label_table.weight.any()
    assert np.array_equal(predict(model, reader, items()), predict(model, reader, items(), use_labels=False))


def test_component(tmp_path):
    component = COMPONENTS.get("reaction").load(save(tmp_path / "m"), labeller=Labeller())
    assert component.name == "m, turn labels by by length"
    dialogues = [DIALOGUE, Dialogue.of("Hi", id="e"), Dialogue("f", (Turn("listener", "Hello"),))]
    seen = []
    together = component.annotate(dialogues, batch_size=2, progress=seen.append)
    assert sum(seen) == 3
    assert [[r.turn for r in own] for own in together] == [[0, 2, 4], [0], []]
    assert list(together[0][0].probabilities) == list(LABELS_41)
    assert sum(together[0][1].probabilities.values()) == pytest.approx(1)
    for dialogue, records in zip(dialogues, together, strict=True):
        (alone,) = component.annotate([dialogue])
        for one, other in zip(alone, records, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_component_knows_nothing_of_what_comes_after(tmp_path):
    component = ReactionToTurns.load(save(tmp_path / "m"), labeller=Labeller())
    whole = component.annotate([DIALOGUE])[0]
    for i in (0, 2):
        before = component.annotate([Dialogue("d", DIALOGUE.turns[: i + 1], emotion="sad")])[0][-1]
        after = next(record for record in whole if record.turn == i)
        assert before.probabilities == pytest.approx(after.probabilities, abs=1e-6)


def test_component_without_a_labeller(tmp_path):
    component = ReactionToTurns.load(save(tmp_path / "m"))
    assert component.name == "m, without turn labels"
    assert component.annotate([DIALOGUE])[0] != ReactionToTurns.load(tmp_path / "m", Labeller()).annotate([DIALOGUE])[0]
    assert ReactionToTurns.load(save(tmp_path / "n", turn_labels=False), Labeller()).name == "n"


def test_turn_labels_for_a_file():
    assert turn_labels([Dialogue.of("four", "a")], None) == [(None, None)]
    assert turn_labels([Dialogue.of("four", "a")], Labeller()) == [(LABELS_41[4], LABELS_41[1])]


def test_wrong_folders_and_settings(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(CheckpointError, match="model_type is 'bert'; accepted: reaction_predictor"):
        ReactionToTurns.load(tmp_path)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"pooling": "max"}, "pooling is 'max'; accepted: cls, mean, dot, additive"),
        ({"label_dropout": 2}, "label_dropout is 2; accepted: from 0 to 1"),
        ({"max_pieces": 1}, "max_pieces is 1; accepted: 4 or more"),
        ({"dropout": 1.0}, "dropout is 1.0; accepted: from 0 to below 1"),
        ({"head_width": 0}, "head_width is 0; accepted: 1 or more"),
    ]
    for fields, message in cases:
        with pytest.raises(ConfigError, match=message):
            ReactionPredictorConfig(**fields)
    for model_type, n in (("bert", 130), ("roberta", 129)):  # RoBERTa counts from the padding index + 1
        with pytest.raises(ConfigError, match=f"max_pieces is 131, but the encoder has {n} positions"):
            predictor(model_type=model_type, max_pieces=131)
