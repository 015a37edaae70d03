"""EPITOME's bi-encoder: attention, losses, rationales as spans, padding, gradients, saving, and the component.

P and E numbers are those of the EPITOME checks and traps in the specification.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tiny_classifiers import encoder_classifier
from tiny_reactions import SENTENCES, SIZES, encoder_folder, identifier, pairs, pieces
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from empatheia.analysis.component import COMPONENTS
from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.taxonomy import IGNORED, MECHANISMS
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.mechanisms.identifier import (
    MechanismIdentifier,
    MechanismIdentifierConfig,
    MechanismsOfTurns,
    identify,
)
from empatheia_research.understanding.mechanisms.pairs import (
    Identified,
    Pair,
    PairReader,
    answered_turns,
    lowered,
    marked_spans,
)

ER, IP, EX = MECHANISMS


def labelled(level=2, spans=(), seeker="My dog is ill", response="I'm so sorry to hear that. Why?"):
    return Pair("a", seeker, response, dict.fromkeys(MECHANISMS, level), dict.fromkeys(MECHANISMS, tuple(spans)))


def batch_of(reader, items):
    return reader.collate(reader.encode(items))


# -- reading -------------------------------------------------------------------------------------------------


def test_rationale_pieces_follow_offsets():
    """P4: the released map lets labels drift to the left; offsets give the pieces of the rationale and no others."""
    _, reader = identifier()
    text = "That's pretty vague. Why?"
    pair = labelled(spans=[Span(1, text.index("Why"), len(text))], response=text)
    (row,) = reader.encode([pair])
    names = reader.tokenizer.convert_ids_to_tokens(row["response_ids"])
    marked = [name for name, label in zip(names, row["rationale_label"][0], strict=True) if label == 1]
    assert "".join(marked).replace("##", "") == "why?"
    assert [text[a:b] for a, b in row["offsets"] if b > a][-1] == "?"


def test_rationale_pieces_of_a_byte_level_tokenizer():
    """P4 with its own pieces, a blank leading the word: "why?" is {why, ?}; the released map says {ague, ., why}."""
    words = ["that", "'s", "\u0120pretty", "\u0120v", "ague", ".", "\u0120why", "?"]
    names = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>"}
    core: Any = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*names.values(), *words])}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Split(Regex("(?<=\u0120v)"), "isolated"),
        ]
    )
    special = {f"{name}_token": piece for name, piece in names.items()}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    reader = PairReader(tokenizer, MechanismIdentifierConfig())
    text = "that's pretty vague. why?"
    for start, end, wanted in (
        (text.index("why"), len(text), words[6:]),
        (0, text.index(" pretty"), words[:2]),
        (text.index("pretty"), text.index("."), words[2:5]),
    ):
        (row,) = reader.encode([labelled(spans=[Span(1, start, end)], response=text)])
        found = tokenizer.convert_ids_to_tokens(row["response_ids"])
        assert found == ["<s>", *words, "</s>"]
        assert [p for p, mark in zip(found, row["rationale_label"][0], strict=True) if mark == 1] == wanted


def test_special_pieces_are_not_supervised():
    """P5: a response of three pieces has three supervised labels; the released code stores a length of seven."""
    _, reader = identifier()
    (row,) = reader.encode([labelled(response="why why ?")])
    assert len(row["response_ids"]) == 5
    assert row["rationale_label"] == [[IGNORED, 1, 1, 1, IGNORED]] * 3


@pytest.mark.parametrize(
    ("no_rationale", "expected"), [("whole", [1, 1]), ("nothing", [0, 0]), ("ignored", [IGNORED, IGNORED])]
)
def test_no_rationale_named(no_rationale, expected):
    _, reader = identifier(no_rationale=no_rationale)
    for level in (0, 2):
        (row,) = reader.encode([labelled(level, response="why ?")])
        assert row["rationale_label"][0][1:-1] == expected
    unknown = Pair("a", "b", "why ?", {ER: 2}, {})
    (row,) = reader.encode([unknown])
    assert row["rationale_label"] == [[IGNORED] * 4] * 3
    assert row["label"] == [2, IGNORED, IGNORED]


def test_long_texts_are_cut_on_the_right():
    _, reader = identifier(max_pieces=8)
    (row,) = reader.encode([Pair("a", SENTENCES[2], SENTENCES[2])])
    assert len(row["response_ids"]) == len(row["seeker_ids"]) == 8
    assert row["response_ids"][-1] == reader.closing
    assert row["offsets"][1][0] == 0


def test_lower_case_keeps_places():
    assert lowered("I AM fine") == "i am fine"
    assert lowered("\u0130\u00c9") == "\u0130\u00e9"
    _, reader = identifier()
    (row,) = reader.encode([Pair("a", "\ud800", "WHY \ud83d")])  # lone surrogates
    assert row["response_ids"][1] == reader.tokenizer.convert_tokens_to_ids("why")


# -- model ---------------------------------------------------------------------------------------------------


def test_forward_by_hand():
    """Equations of the specification, 5.3: H = H_R + A, level from H[0] through ReLU, rationale from H."""
    model, reader = identifier(mechanisms=[IP])
    items = pairs()[:3]
    batch = batch_of(reader, items)
    output = model(**batch)
    head = model.heads[0]
    with torch.no_grad():
        row = 2
        n = int(batch["seeker_mask"][row].sum())
        m = int(batch["response_mask"][row].sum())
        one = torch.ones(1, 1, dtype=torch.long)
        seeker = model.seeker_encoder(batch["seeker_ids"][row : row + 1, :n], one.expand(1, n)).last_hidden_state[0]
        response = model.response_encoder(batch["response_ids"][row : row + 1, :m], one.expand(1, m))
        response = response.last_hidden_state[0]
        weights, bias = head.attention.in_proj_weight.chunk(3), head.attention.in_proj_bias.chunk(3)
        q = response @ weights[0].T + bias[0]
        k, v = (seeker @ w.T + b for w, b in zip(weights[1:], bias[1:], strict=True))
        attended = torch.softmax(q @ k.T / math.sqrt(SIZES["hidden_size"]), -1) @ v
        states = response + head.attention.out_proj(attended)
        level = head.level[4](torch.relu(head.level[1](states[0])))
        assert torch.allclose(level, output.level_logits[row, 0], atol=1e-5)
        assert torch.allclose(head.rationale(states), output.rationale_logits[row, 0, :m], atol=1e-5)
    assert output.level_logits.shape == (3, 1, 3)


def test_fresh_heads_are_small_and_unbiased():
    model = MechanismIdentifier(identifier()[0].config)
    for head in model.heads:
        assert head.attention.in_proj_weight.std().item() == pytest.approx(0.02, rel=0.2)
        assert head.level[1].weight.std().item() == pytest.approx(0.02, rel=0.2)
        assert not head.attention.in_proj_bias.any() and not head.rationale.bias.any()


def test_losses_by_hand():
    model, reader = identifier()
    items = [labelled(2, [Span(1, 0, 3)]), labelled(0, response="ok"), Pair("c", "a", "why?", {ER: 1}, {})]
    batch = batch_of(reader, items)
    output = model(**batch)
    levels, pieces = output.level_logits.log_softmax(-1), output.rationale_logits.log_softmax(-1)
    wanted = [-levels[0, m, 2] for m in range(3)] + [-levels[1, m, 0] for m in range(3)] + [-levels[2, 0, 1]]
    assert output.losses["level"].item() == pytest.approx(sum(wanted).item() / 7, rel=1e-5)
    assert int(output.counts["level"]) == 7
    places = (batch["rationale_labels"] != IGNORED).nonzero().tolist()
    total = sum(-pieces[b, m, i, batch["rationale_labels"][b, m, i]] for b, m, i in places)
    assert output.losses["rationale"].item() == pytest.approx(total.item() / len(places), rel=1e-5)
    counted = MechanismIdentifier.count_items(batch, model.config)
    assert {name: int(n) for name, n in counted.items()} == {"level": 7, "rationale": len(places)}


@pytest.mark.parametrize("fields", [{}, {"padding": "repo"}, {"tie_encoders": True, "freeze_seeker": False}])
def test_batched_is_single(fields):
    """P2: a pair scores the same alone and beside longer ones (the KIM scorer does not)."""
    model, reader = identifier(**fields)
    together = identify(model, reader, pairs())
    for pair, answers in zip(pairs(), together, strict=True):
        (alone,) = identify(model, reader, [pair])
        for one, other in zip(alone, answers, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
            assert one.pieces == pytest.approx(other.pieces, abs=1e-5)
    assert len({round(answers[0].probabilities[0], 4) for answers in together}) > 4


def test_padding_the_repo_way_changes_the_answer():
    """E7: attention over padding is another function of the same weights."""
    model, reader = identifier()
    masked = identify(model, reader, pairs()[:3])
    model.config.padding = "repo"
    repo = identify(model, reader, pairs()[:3])
    assert abs(masked[0][0].probabilities[0] - repo[0][0].probabilities[0]) > 1e-4


def test_what_stands_under_the_mask_does_not_matter():
    model, reader = identifier()
    batch = batch_of(reader, pairs()[:3])
    before = model(**batch)
    for side in ("seeker", "response"):
        batch[f"{side}_ids"] = batch[f"{side}_ids"].masked_fill(~batch[f"{side}_mask"], 17)
    after = model(**batch)
    assert torch.allclose(before.level_logits, after.level_logits, atol=1e-6)


def test_evaluation_is_repeatable():
    """P3: twice the same, dropout off; a model left in training mode is put right."""
    model, reader = identifier(dropout=0.5)
    model.train()
    first = identify(model, reader, pairs())
    assert identify(model, reader, pairs()) == first


def test_gold_labels_are_not_read():
    model, reader = identifier()
    plain = [Pair(p.id, p.seeker, p.response) for p in pairs()]
    gold = [Pair(p.id, p.seeker, p.response, dict.fromkeys(MECHANISMS, 2), {}) for p in pairs()]
    assert identify(model, reader, plain) == identify(model, reader, gold)


def test_seeker_encoder_has_no_gradient():
    """P8: the seeker encoder stays; every other parameter gets a gradient."""
    model, reader = identifier()
    model.train()
    items = [labelled(2, [Span(1, 0, 3)]), labelled(0), labelled(1)]
    model(**batch_of(reader, items)).loss.backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == name.startswith("seeker_encoder."), name
        if parameter.grad is not None and "token_type" not in name:
            assert parameter.grad.abs().sum() > 0, name
    thawed, reader = identifier(freeze_seeker=False)
    thawed(**batch_of(reader, items)).loss.backward()
    assert all(parameter.grad is not None for parameter in thawed.parameters())


def test_rationale_head_stays_without_its_loss():
    """P9: with weight 0 on the rationale loss (and no weight decay) its head keeps its first values."""
    model, reader = identifier()
    before = [head.rationale.weight.clone() for head in model.heads]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(2):
        output = model(**batch_of(reader, [labelled(2, [Span(1, 0, 3)]), labelled(0)]))
        (1.0 * output.losses["level"] + 0.0 * output.losses["rationale"]).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert all(torch.equal(head.rationale.weight, old) for head, old in zip(model.heads, before, strict=True))
    assert not torch.equal(model.heads[0].level[4].weight, identifier()[0].heads[0].level[4].weight)


def test_one_encoder_is_smaller():
    sizes = {}
    for tied in (False, True):
        model, _ = identifier(tie_encoders=tied, freeze_seeker=not tied)
        sizes[tied] = sum(p.numel() for p in model.parameters())
    encoder = sum(p.numel() for p in identifier()[0].response_encoder.parameters())
    assert sizes[False] - sizes[True] == encoder


def test_learns():
    model, reader = identifier(tie_encoders=True, freeze_seeker=False, dropout=0.0, encoder_dropout=0.0)
    sorry, why = "I'm so sorry to hear that.", "Did they tell you why?"
    items = [
        Pair("1", "a", sorry, {ER: 2, IP: 0, EX: 0}, {ER: (Span(1, 0, len(sorry)),), IP: (), EX: ()}),
        Pair("2", "a", f"ok {why}", {ER: 0, IP: 0, EX: 1}, {ER: (), IP: (), EX: (Span(1, 3, 3 + len(why)),)}),
        Pair("3", "a", "ok", {ER: 0, IP: 1, EX: 0}, {ER: (), IP: (Span(1, 0, 2),), EX: ()}),
    ]
    batch = batch_of(reader, items)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(60):
        output = model(**batch)
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    answers = identify(model, reader, items)
    assert [[a.level for a in own] for own in answers] == [[2, 0, 0], [0, 0, 1], [0, 1, 0]]
    (span,) = answers[1][2].rationales(items[1].response)
    assert span.of([Turn("speaker", "a"), Turn("listener", items[1].response)]) == why
    assert answers[1][0].rationales(items[1].response) == ()


# -- answers -------------------------------------------------------------------------------------------------


def test_level_0_has_no_rationale():
    """E10: the head is trained to mark everything at level 0, so nothing is shown there."""
    answer = Identified(ER, (0.5, 0.2, 0.3), (0.0, 0.9, 0.9), ((0, 0), (0, 2), (3, 5)))
    assert answer.level == 0 and answer.rationales("no no") == ()
    weak = Identified(ER, (0.1, 0.6, 0.3), (0.0, 0.9, 0.7), ((0, 0), (0, 2), (3, 5)))
    assert weak.rationales("no no", turn=4) == (Span(4, 0, 5, pytest.approx(0.8)),)


def test_spans_are_whole_words():
    text = "vague! so vague"
    offsets = ((0, 0), (0, 1), (1, 5), (5, 6), (7, 9), (10, 11), (11, 15), (0, 0))
    found = marked_spans((0.9, 0.1, 0.9, 0.2, 0.1, 0.8, 0.1, 0.9), offsets, text, 1)
    assert [text[s.start : s.end] for s in found] == ["vague", "vague"]
    inside = marked_spans((0.9, 0.1, 0.9), ((0, 1), (1, 2), (2, 5)), "vague", 1)
    assert [(s.start, s.end) for s in inside] == [(0, 5)]
    assert marked_spans((0.5,), ((0, 1),), "a", 1) == ()


def test_empty_response_is_level_0():
    """E8: the released tokenizer raises on an empty response; here no mechanism is in it."""
    model, reader = identifier()
    for text in ("", " \n"):
        ((first, *_),) = identify(model, reader, [Pair("a", "Hello", text)])
        assert (first.level, first.probabilities, first.rationales(text)) == (0, (1.0, 0.0, 0.0), ())
    assert identify(model, reader, []) == []
    assert len(identify(model, reader, [Pair("a", "", "ok")])) == 1


def test_answered_turns():
    roles = ("listener", "speaker", "speaker", "listener", "listener")
    dialogue = Dialogue("x", tuple(Turn(role, "t") for role in roles))
    assert answered_turns(dialogue) == [(3, 2), (4, 2)]
    assert answered_turns(Dialogue("y", (Turn("listener", "t"),))) == []


# -- folders and the component -------------------------------------------------------------------------------


def save(folder, **fields):
    model, reader = identifier(**fields)
    model.save_pretrained(folder)
    reader.save(folder)
    return folder


@pytest.mark.parametrize("fields", [{}, {"tie_encoders": True, "freeze_seeker": False}, {"mechanisms": [EX]}])
def test_saved_and_loaded_is_the_same(tmp_path, fields):
    save(tmp_path / "m", **fields)
    model, reader = identifier(**fields)
    loaded = UNDERSTANDERS.get("mechanism_identifier").open(tmp_path / "m")
    assert identify(*loaded, pairs()) == identify(model, reader, pairs())
    assert loaded[0].config.mechanisms == model.config.mechanisms


def test_from_encoder(tmp_path):
    folder = encoder_folder(tmp_path / "encoder")
    model, _ = MechanismIdentifier.from_encoder(str(folder), max_pieces=32)
    for name, weight in model.seeker_encoder.state_dict().items():
        assert torch.equal(weight, model.response_encoder.state_dict()[name])
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="cannot read an encoder"):
        MechanismIdentifier.from_encoder(str(folder))


def test_component(tmp_path):
    component = COMPONENTS.get("mechanisms").load(save(tmp_path / "m"))
    dialogues = [Dialogue.of(*SENTENCES[:4], id="d"), Dialogue.of(SENTENCES[4], id="e"), Dialogue.of(*SENTENCES[1:7])]
    seen = []
    together = component.annotate(dialogues, batch_size=3, progress=seen.append)
    assert sum(seen) == 3
    assert [[(r.turn, r.name) for r in own] for own in together][:2] == [
        [(t, m) for t in (1, 3) for m in MECHANISMS],
        [],
    ]
    for dialogue, records in zip(dialogues, together, strict=True):
        (alone,) = component.annotate([dialogue])
        for one, other in zip(alone, records, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
            assert (one.turn, one.name, one.level) == (other.turn, other.name, other.level)
            assert bool(one.rationales) <= (one.level > 0)
            assert all(span.turn == one.turn and span.of(dialogue.turns).strip() for span in one.rationales)
    assert any(record.rationales for records in together for record in records)
    assert sum(together[0][0].probabilities) == pytest.approx(1)


def test_component_reads_only_the_last_speaker_turn(tmp_path):
    component = MechanismsOfTurns.load(save(tmp_path / "m"))
    short = component.annotate([Dialogue.of(SENTENCES[4], SENTENCES[2])])[0]
    longer = component.annotate([Dialogue.of("Hi", "Hello", SENTENCES[4], SENTENCES[2], "bye")])[0]
    assert [r.probabilities for r in longer if r.turn == 3] == [pytest.approx(r.probabilities, abs=1e-6) for r in short]


def test_one_model_a_mechanism(tmp_path):
    folders = [save(tmp_path / name.split()[0], mechanisms=[name], seed=i) for i, name in enumerate(MECHANISMS)]
    dialogue = Dialogue.of(SENTENCES[0], SENTENCES[2])
    component = MechanismsOfTurns.load(",".join(map(str, folders[::-1])))
    assert [r.name for r in component.annotate([dialogue])[0]] == list(MECHANISMS)
    assert component.name == "exploration + interpretation + emotional"
    alone = MechanismsOfTurns.load([folders[1]]).annotate([dialogue])[0]
    assert alone == tuple(r for r in component.annotate([dialogue])[0] if r.name == IP)
    assert MechanismsOfTurns.load(folders[1]).mechanisms == (IP,)
    with pytest.raises(ConfigError, match="'interpretation' is in two of them; give it once"):
        MechanismsOfTurns.load([folders[1], folders[1]])


def test_wrong_folders(tmp_path):
    (tmp_path / "other").mkdir()
    with pytest.raises(CheckpointError, match=r"other/config.json"):
        MechanismsOfTurns.load(tmp_path / "other")
    (tmp_path / "other" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(CheckpointError, match="model_type is 'bert'; accepted: mechanism_identifier"):
        MechanismsOfTurns.load(tmp_path / "other")
    with pytest.raises(MissingResourceError):
        MechanismsOfTurns.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mechanisms": ["empathy"]}, "mechanisms is .*'empathy'.*; accepted: a list of emotional reaction"),
        ({"mechanisms": "exploration"}, "mechanisms is 'exploration'"),
        ({"tie_encoders": True}, "cannot both learn and stay fixed"),
        ({"no_rationale": "some"}, "no_rationale is 'some'; accepted: whole, ignored, nothing"),
        ({"padding": "none"}, "padding is 'none'; accepted: masked, repo"),
        ({"max_pieces": 2}, "max_pieces is 2; accepted: 4 or more"),
        ({"level_weights": [1.0]}, "level_weights is .*; accepted: 3 numbers from 0"),
        ({"level_weights": {EX: [1, 1, -1]}}, "level_weights is .*; accepted: 3 numbers from 0"),
        ({"level_weights": {EX: [1, 1, 1]}, "mechanisms": [IP]}, r"by mechanism \(interpretation\)"),
        ({"n_heads": 5}, "n_heads is 5; accepted: a divisor of 32"),
        ({"n_heads": 0}, "n_heads is 0; accepted: 1 or more"),
        ({"dropout": -0.1}, "dropout is -0.1; accepted: from 0 to below 1"),
        ({"attention_dropout": 1}, "attention_dropout is 1; accepted: from 0 to below 1"),
        ({"max_pieces": 131}, "max_pieces is 131, but the encoder has 130 positions"),
    ],
)
def test_wrong_settings(fields, message):
    with pytest.raises(ConfigError, match=message):
        identifier(**fields)


def test_slow_tokenizer_is_refused():
    class Slow:
        is_fast = False

    with pytest.raises(ConfigError, match="gives no offsets"):
        PairReader(Slow(), MechanismIdentifierConfig())  # pyright: ignore[reportArgumentType]
    assert pieces().is_fast


def test_level_weights_change_the_loss_only_by_level():
    model, reader = identifier()
    batch = batch_of(reader, [labelled(1)])
    plain = model(**batch).losses["level"].item()
    model.config.level_weights = [1.0, 3.0, 1.0]
    assert model(**batch).losses["level"].item() == pytest.approx(3 * plain, rel=1e-5)


def test_level_weights_by_mechanism():
    model, reader = identifier()
    batch = batch_of(reader, [labelled(1), labelled(2)])
    each = []
    for name in MECHANISMS:
        model.config.level_weights = {other: [float(other == name)] * 3 for other in MECHANISMS}
        each.append(model(**batch).losses["level"].item())
    model.config.level_weights = None
    assert sum(each) == pytest.approx(model(**batch).losses["level"].item(), rel=1e-5)
    model.config.level_weights = {EX: [2.0, 2.0, 2.0]}  # the others count once
    assert model(**batch).losses["level"].item() == pytest.approx(each[0] + each[1] + 2 * each[2], rel=1e-5)


def test_level_weights_survive_saving(tmp_path):
    folder = save(tmp_path / "m", level_weights={EX: [1, 3, 2]})
    model, _ = MechanismIdentifier.open(folder)
    assert model.config.level_weights == {EX: [1.0, 3.0, 2.0]}


def test_it_starts_from_what_a_classifier_learnt(tmp_path):
    classifier = encoder_classifier()
    classifier.model.save_pretrained(tmp_path / "c")
    classifier.reader.save(tmp_path / "c")
    model, _ = MechanismIdentifier.from_encoder(str(tmp_path / "c"), freeze_seeker=False, max_pieces=32)
    for encoder in (model.response_encoder, model.seeker_encoder):
        ours, theirs = encoder.state_dict(), classifier.model.encoder.state_dict()
        assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
