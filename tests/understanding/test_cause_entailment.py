"""Causal entailment: exact input layouts, padding, saving, learning, spans and the published pair counts."""

import json
from collections import namedtuple

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

import fresh
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import CauseAnnotation, Dialogue, Span, Turn
from empatheia_research.understanding import UNDERSTANDERS
from empatheia_research.understanding.causes.entailment import CauseEntailment, annotate, best_run, token_batches
from empatheia_research.understanding.causes.entailment_config import CauseEntailmentConfig
from empatheia_research.understanding.causes.entailment_items import (
    EntailmentCollator,
    EntailmentItem,
    encode_joint,
    encode_pairs,
    entailment_rows,
    in_stretches,
    item_pair_texts,
    items_from_dialogue,
    items_of_fold,
    pair_text,
)
from empatheia_research.understanding.causes.entailment_scores import question_cells, scores_at
from empatheia_research.understanding.causes.span_answers import whole_words

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "joy",
    "anger",
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "<",
    "SEP",
    ">",
    "/",
]
Pair = namedtuple("Pair", "dialogue_id target candidate label")


@pytest.fixture(scope="module")
def tokenizer():
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=core, **{f"{key}_token": value for key, value in special.items()})


def small_encoder(kind=BertConfig):
    sizes = {"vocab_size": len(WORDS), "pad_token_id": 0}
    if kind is DistilBertConfig:
        return DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, **sizes)
    sizes |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return kind(max_position_embeddings=80, **sizes)


def build(kind=BertConfig, seed=0, **fields):
    torch.manual_seed(seed)
    encoder = small_encoder(kind).to_dict()
    return CauseEntailment(CauseEntailmentConfig(encoder_config=encoder, head_width=16, **fields)).eval()


def item(*texts, labels=None, spans=None, emotion="joy", id="x"):
    speakers = tuple("AB"[i % 2] for i in range(len(texts)))
    return EntailmentItem(id, len(texts) - 1, texts, speakers, emotion, labels, spans)


@pytest.fixture
def items():
    return [
        item("a b", "c", "d e f", labels=(1, 0, 1), spans=(Span(0, 0, 1), Span(2, 2, 5)), id="x"),
        item("b", labels=(1,), spans=(Span(0, 0, 1),), emotion="anger", id="y"),
        item("c d", "a", labels=(0, -100), spans=(), id="z"),
        item("e", "f f", "a b", "c c c c", labels=(0, 0, 1, 0), spans=(), id="w"),
    ]


def test_pair_text_is_the_published_format():
    assert pair_text("joy", "U t", "U i") == "joy <SEP> U t <SEP> U i"
    assert pair_text("joy", "U t", "U i", "U i U t") == "joy <SEP> U t <SEP> U i <SEP> U i U t"
    assert pair_text("joy", "U t", "U i", separator="[SEP]") == "joy [SEP] U t [SEP] U i"


@pytest.mark.parametrize(("separator", "piece"), [("literal", "< SEP >"), ("native", "[SEP]")])
def test_pair_dataset_holds_one_row_for_each_supervised_turn(tokenizer, items, separator, piece):
    config = CauseEntailmentConfig(encoder_config=small_encoder(), form="pair", separator=separator)
    data = entailment_rows(items, tokenizer, config)
    assert [row["labels"] for row in data] == [[1], [0], [1], [1], [0], [0], [0], [1], [0]]
    text = tokenizer.decode(data[1]["input_ids"])
    assert text == f"joy {piece} d e f {piece} c {piece} a b c d e f"


def test_pairs_are_cut_on_the_right_and_their_length_follows_the_context(tokenizer):
    assert encode_pairs(["a b c d"], tokenizer, 3, [1]) == [{"input_ids": [6, 7, 8], "labels": [1]}]
    assert CauseEntailmentConfig(encoder_config=small_encoder(), form="pair").max_pieces == 512
    assert CauseEntailmentConfig(encoder_config=small_encoder(), form="pair", context=False).max_pieces == 300
    with pytest.raises(ValueError):
        encode_pairs(["a", "b"], tokenizer, 3, [1])


def test_joint_layout(tokenizer, items):
    row = encode_joint(items[:1], tokenizer, span_supervision="causal")[0]
    assert tokenizer.convert_ids_to_tokens(row["input_ids"]) == [
        "[CLS]",
        "joy",
        "[SEP]",
        "a",
        "b",
        "[SEP]",
        "c",
        "[SEP]",
        "d",
        "e",
        "f",
        "[SEP]",
    ]
    assert row["turn_ids"] == [-1, -1, -1, 0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert row["token_type_ids"] == [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1]
    assert row["offsets"][3:6] == [(0, 1), (2, 3), (0, 0)]
    assert row["labels"] == [1, 0, 1] and row["first_turn"] == 0
    assert row["span_labels"] == [-100] * 3 + [1, 0, -100, -100, -100, 0, 1, 1, -100]
    history = encode_joint(items[:1], tokenizer, span_supervision="history")[0]
    assert history["span_labels"] == [-100] * 3 + [1, 0, -100, 0, -100, 0, 1, 1, -100]


def test_causal_turn_without_a_located_span_is_not_supervised(tokenizer, items):
    row = encode_joint(items[3:], tokenizer, span_supervision="causal")[0]
    assert set(row["span_labels"]) == {-100}


def test_long_histories_lose_their_oldest_turns(tokenizer, items):
    row = encode_joint(items[:1], tokenizer, max_length=9)[0]
    assert tokenizer.convert_ids_to_tokens(row["input_ids"]) == [
        "[CLS]",
        "joy",
        "[SEP]",
        "c",
        "[SEP]",
        "d",
        "e",
        "f",
        "[SEP]",
    ]
    assert row["first_turn"] == 1 and row["labels"] == [0, 1] and row["turn_ids"] == [-1, -1, -1, 0, 0, 1, 1, 1, 1]
    row = encode_joint(items[:1], tokenizer, max_length=6)[0]  # the target alone is cut on the right
    assert tokenizer.convert_ids_to_tokens(row["input_ids"]) == ["[CLS]", "joy", "[SEP]", "d", "e", "[SEP]"]
    model = build(max_pieces=9)
    note = annotate(model, tokenizer, items[:1], threshold=0.0)[0]
    assert note.probabilities[0] == 0.0 and len(note.probabilities) == 3
    assert note.first_read == 1 and annotate(build(), tokenizer, items[:1])[0].first_read == 0
    with pytest.raises(ConfigError, match="max_length 4"):
        encode_joint(items[:1], tokenizer, max_length=4)


@pytest.mark.parametrize("kind", [BertConfig, RobertaConfig, DistilBertConfig])
@pytest.mark.parametrize("fields", [{"spans": True}, {"form": "pair"}])
def test_batch_equals_singles_and_padding_content_does_not_matter(tokenizer, items, kind, fields):
    model = build(kind, max_pieces=70, **fields)
    data = entailment_rows(items, tokenizer, model.config)
    collate = EntailmentCollator(tokenizer, model.config.form)
    batch = collate(list(data))
    assert set(batch) <= set(model.features)
    with torch.no_grad():
        whole = model(**batch)
        noise = {key: value.clone() for key, value in batch.items()}
        noise["input_ids"][~batch["attention_mask"]] = 9
        for key in ("turn_ids", "token_type_ids"):
            if key in noise:
                noise[key][~batch["attention_mask"]] = 1
        torch.testing.assert_close(model(**noise).turn_logits, whole.turn_logits, rtol=0, atol=0)
        for i, row in enumerate(data):
            single = model(**collate([row]))
            turns = single.turn_logits.shape[1]
            torch.testing.assert_close(single.turn_logits[0], whole.turn_logits[i, :turns], rtol=0, atol=1e-5)
            if single.piece_logits is not None:
                n = len(data[i]["input_ids"])
                torch.testing.assert_close(single.piece_logits[0], whole.piece_logits[i, :n], rtol=0, atol=1e-5)


def test_losses_are_means_with_counts(tokenizer, items):
    model = build(spans=True, positive_weight=3.0)
    batch = EntailmentCollator(tokenizer)(entailment_rows(items, tokenizer, model.config))
    output = model(**batch)
    assert output.turn_logits.shape == batch["labels"].shape == (4, 4)
    assert output.piece_logits.shape == batch["input_ids"].shape
    assert {name: int(n) for name, n in output.counts.items()} == {"entailment": 9, "span": 6}
    p, y = output.turn_logits.sigmoid(), batch["labels"]
    by_hand = sum(
        -3 * p[r, c].log() if y[r, c] else -(1 - p[r, c]).log() for r in range(4) for c in range(4) if y[r, c] >= 0
    )
    torch.testing.assert_close(output.losses["entailment"], by_hand / 9)
    torch.testing.assert_close(output.loss, output.losses["entailment"] + output.losses["span"])
    assert model(**{k: v for k, v in batch.items() if not k.endswith("labels")}).loss is None
    assert (output.turn_logits[1, 1:] == -1e4).all()


def test_every_parameter_learns(tokenizer, items):
    model = build(spans=True)
    model(**EntailmentCollator(tokenizer)(entailment_rows(items, tokenizer, model.config))).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert not build(freeze_word_embeddings=True).get_input_embeddings().weight.requires_grad


@pytest.mark.parametrize("fields", [{"spans": True}, {"form": "pair", "max_pieces": 70}])
def test_learns_eight_items(tokenizer, fields):
    """The cause is the turn that holds an 'a'."""
    turns = ["a b", "c d", "e a", "f", "b b", "a", "d c", "e e"]
    data = []
    for i in range(8):
        texts = tuple(turns[(i + j) % 8] for j in range(1 + i % 4))
        labels = tuple(int("a" in text) for text in texts)
        spans = tuple(Span(j, t.index("a"), t.index("a") + 1) for j, t in enumerate(texts) if "a" in t)
        data.append(item(*texts, labels=labels, spans=spans, id=str(i)))
    model = build(dropout=0.0, **fields)
    batch = EntailmentCollator(tokenizer, model.config.form)(entailment_rows(data, tokenizer, model.config))
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    first = None
    for _ in range(60):
        loss = model(**batch).loss
        first = loss.item() if first is None else first
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.1 * first
    for note, gold in zip(annotate(model, tokenizer, data), data, strict=True):
        assert tuple(int(i in note.turns) for i in range(len(gold.texts))) == gold.labels
        if model.config.spans:
            assert [gold.texts[s.turn][s.start : s.end] for s in note.spans] == ["a"] * sum(gold.labels)


def test_annotate_keeps_order_and_does_not_depend_on_the_batches(tokenizer, items):
    model = build(spans=True)
    seen = []
    whole = annotate(model, tokenizer, items, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    small = annotate(model, tokenizer, items, batch_tokens=1)
    assert [note.dialogue_id for note in whole] == list("xyzw")
    for a, b in zip(whole, small, strict=True):
        assert a.probabilities == pytest.approx(b.probabilities, abs=2e-4)
        assert a.probabilities == tuple(round(p, 4) for p in a.probabilities)
        assert a.annotator == f"cause_entailment/joint-{model.fingerprint()}"
    assert annotate(model, tokenizer, items, threshold=0.0)[0].turns == (0, 1, 2)
    assert annotate(model, tokenizer, items, threshold=1.1)[0].turns == ()
    assert annotate(model, tokenizer, []) == []
    pair = annotate(build(form="pair", max_pieces=70), tokenizer, items)
    assert [len(note.probabilities) for note in pair] == [3, 1, 2, 4]


def test_fingerprint_follows_weights_and_reading(tokenizer):
    assert build().fingerprint() == build().fingerprint()
    assert len({build().fingerprint(), build(seed=1).fingerprint(), build(max_pieces=99).fingerprint()}) == 3


def test_saved_model_is_bit_equal_in_a_new_process(tokenizer, items, tmp_path):
    model = build(spans=True)
    model.save_pretrained(tmp_path)
    row = EntailmentCollator(tokenizer)(entailment_rows(items, tokenizer, model.config))
    torch.save(row, tmp_path / "batch.pt")
    code = f"""
import json, torch
from empatheia_research.understanding.causes.entailment import CauseEntailment
model = CauseEntailment.from_pretrained({str(tmp_path)!r}).eval()
with torch.no_grad():
    output = model(**torch.load({str(tmp_path / "batch.pt")!r}))
print(json.dumps([output.turn_logits.tolist(), output.piece_logits.tolist(), model.fingerprint()]))
"""
    run = fresh.run(["-c", code], check=True)
    turns, pieces, fingerprint = json.loads(run.stdout.strip().splitlines()[-1])
    with torch.no_grad():
        output = model(**row)
    assert turns == output.turn_logits.tolist() and pieces == output.piece_logits.tolist()
    assert fingerprint == model.fingerprint()
    assert isinstance(AutoModel.from_pretrained(tmp_path), CauseEntailment)


def test_from_encoder_loads_the_encoder(tokenizer, tmp_path):
    torch.manual_seed(3)
    encoder = BertModel(small_encoder())
    encoder.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model, loaded = CauseEntailment.from_encoder(str(tmp_path), spans=True, max_pieces=80)
    assert loaded.convert_tokens_to_ids("joy") == tokenizer.convert_tokens_to_ids("joy")
    for name, tensor in model.encoder.state_dict().items():
        torch.testing.assert_close(tensor, encoder.state_dict()[name], rtol=0, atol=0)
    assert not any("pooler" in name for name in model.state_dict())
    assert str(tmp_path) not in json.dumps(model.config.to_dict())  # no path of this machine in what is published
    with pytest.raises(MissingResourceError, match=r"no model folder .*nothing'"):
        CauseEntailment.from_encoder(str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="max_pieces is 512, but the encoder has 80 positions"):
        CauseEntailment.from_encoder(str(tmp_path))


def test_an_encoder_without_some_weights_is_refused():
    source = BertModel(small_encoder(), add_pooling_layer=False)
    del source.encoder.layer[1].output.dense.bias
    with pytest.raises(CheckpointError, match=r"lacks 1 weights, first 'encoder\.layer\.1\.output\.dense\.bias'"):
        CauseEntailment.on_encoder(source)


def test_typed_special_pieces_and_halves_of_characters_are_text(tokenizer):
    row = encode_joint([item("a [SEP] b", "c \ud83d d")], tokenizer)[0]
    tokens = tokenizer.convert_ids_to_tokens(row["input_ids"])
    assert tokens.count("[SEP]") == 3 and row["turn_ids"].count(0) == 6  # a, [, SEP, ], b and one separator
    assert [row["offsets"][i] for i, turn in enumerate(row["turn_ids"]) if turn == 1] == [(0, 1), (4, 5), (0, 0)]
    whole = "".join(chr(code) for code in (0x61, 0xD83D))
    for fields in ({}, {"form": "pair", "max_pieces": 70}):
        assert len(annotate(build(**fields), tokenizer, [item(whole, "b")])[0].probabilities) == 2


def test_offsets_count_characters_not_bytes_or_normalised_ones():
    core = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "joy": 3, "cafe": 4}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True, handle_chinese_chars=False)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    text = "\U0001f600  Cafe\u0301\u00a0\u00c9t\u00e9  ..  end"
    row = encode_joint([item(text)], made)[0]
    found = [text[s:e] for s, e in row["offsets"] if s < e]
    assert found == ["\U0001f600", "Cafe", "\u00c9t\u00e9", ".", ".", "end"]
    assert [text[slice(*whole_words(text, s, e))] for s, e in row["offsets"] if s < e] == [
        "\U0001f600", "Cafe\u0301", "\u00c9t\u00e9", "..", "..", "end",
    ]  # fmt: skip


def test_questions_come_in_stretches_that_do_not_change_the_answer(tokenizer, items, monkeypatch):
    assert [[i.dialogue_id for i in part] for part in in_stretches(items, 4)] == [["x", "y"], ["z"], ["w"]]
    assert [len(part) for part in in_stretches(items, 1)] == [1, 1, 1, 1] and list(in_stretches([], 3)) == []
    model = build(form="pair", max_pieces=70)
    whole, seen = annotate(model, tokenizer, items), []
    monkeypatch.setattr("empatheia_research.understanding.causes.entailment.PAIRS_AT_ONCE", 3)
    parts = annotate(model, tokenizer, items, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (3, 4), (4, 4)]
    for a, b in zip(whole, parts, strict=True):
        assert a.probabilities == pytest.approx(b.probabilities, abs=2e-4)
    assert whole[2].probabilities[1] == 0 != whole[2].probabilities[0]  # its second turn is not asked about


def test_items_of_a_conversation():
    dialogue = Dialogue.of("a", "b", "c", "d", "e", id="x", emotion="furious")
    prefixes = items_from_dialogue(dialogue)
    assert [i.target for i in prefixes] == [0, 2] and prefixes[1].texts == ("a", "b", "c")
    assert prefixes[1].speakers == ("speaker", "listener", "speaker") and prefixes[0].emotion == "furious"
    assert [i.target for i in items_from_dialogue(dialogue, per_prefix=False)] == [4]
    assert items_from_dialogue(dialogue, emotion_map={"furious": "anger"})[0].emotion == "anger"
    assert items_from_dialogue(Dialogue("y", (Turn("listener", "hi"),)), "joy") == []
    with pytest.raises(DataError, match="'furious' is not in the map"):
        items_from_dialogue(dialogue, emotion_map={"sad": "sadness"})
    with pytest.raises(DataError, match="no emotion label"):
        items_from_dialogue(Dialogue.of("a", "b", id="x"))


def test_best_run_against_brute_force():
    generator = torch.Generator().manual_seed(0)
    for n in range(1, 9):
        for _ in range(20):
            scores = torch.randn(n, generator=generator).tolist()
            start, end = best_run(scores)
            sums = {(i, j): sum(scores[i:j]) for i in range(n) for j in range(i + 1, n + 1)}
            if max(scores) > 0:
                assert sum(scores[start:end]) == pytest.approx(max(sums.values()))
            else:
                assert (start, end) == (0, n)


def test_token_batches_hold_each_index_once_within_the_budget():
    lengths = [5, 30, 7, 7, 1, 12]
    batches = list(token_batches(lengths, 24))
    assert sorted(i for batch in batches for i in batch) == list(range(6))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 24 for batch in batches)


@pytest.mark.parametrize("kind", [BertConfig, RobertaConfig, DistilBertConfig])
def test_without_dropout_training_mode_is_deterministic(tokenizer, items, kind):
    model = build(kind, dropout=0.0, encoder_dropout=0.0).train()
    batch = EntailmentCollator(tokenizer)(encode_joint(items, tokenizer))
    assert torch.equal(model(**batch).turn_logits, model(**batch).turn_logits)


def test_bad_settings_are_refused(tokenizer, items):
    for fields, message in (
        ({"form": "both"}, "form is 'both'"),
        ({"separator": "x"}, "separator is 'x'"),
        ({"form": "pair", "spans": True}, "spans=true needs form=joint"),
    ):
        with pytest.raises(ConfigError, match=message):
            CauseEntailmentConfig(encoder_config=small_encoder(), **fields)
    with pytest.raises(ConfigError, match="model_type"):
        CauseEntailment(CauseEntailmentConfig(encoder_config={"hidden_size": 3}))
    with pytest.raises(DataError, match="needs 2 texts"):
        EntailmentItem("x", 1, ("a",), ("A",), "joy")
    with pytest.raises(DataError, match="turn_ids"):
        build()(torch.ones(1, 3, dtype=torch.long), torch.ones(1, 3))


def test_registry_names_the_model():
    assert UNDERSTANDERS.get("cause_entailment") is CauseEntailment


@pytest.mark.real_data
def test_items_and_scores_cover_the_published_test_pairs(tokenizer):
    """Poria et al. (2021), fold 1: 1,894 positive and 5,330 negative test pairs."""
    reccon = pytest.importorskip("empatheia_research.corpora.reccon")
    try:
        corpus = reccon.load("test")
    except MissingResourceError as error:
        pytest.skip(str(error))
    items = items_of_fold(corpus)
    oracle = [CauseAnnotation(i.dialogue_id, i.target, (), probabilities=i.labels) for i in items]
    pairs = reccon.pairs(corpus, fold=1)
    scores = scores_at(question_cells(items, oracle))
    assert (scores.n_positive, scores.n_negative, scores.macro_f1) == (1894, 5330, 100.0)
    texts = {text for item in items for text in item_pair_texts(item, CauseEntailmentConfig(form="pair"), tokenizer)}
    assert {pair.text() for pair in pairs} == texts
