"""Rashkin et al. 2018: sizes, losses, ensembles, prepended labels, candidates, and the numbers of the specification."""

import json
import math

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import fresh
from empatheia.errors import CheckpointError, ConfigError, DataError, MissingResourceError
from empatheia.records.dialogue import Dialogue, Example, Turn
from empatheia_research.decoding.reply_index import ReplyIndex, candidate_texts
from empatheia_research.layers.post_norm import PostNormDecoder, PostNormEncoder
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.responders.rashkin_generation import RashkinGeneration, RashkinGenerationConfig, prepend
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval, RetrievalConfig, TextReader, in_batch_loss
from empatheia_research.side_inputs.external_vectors import ExternalVectors
from empatheia_research.side_inputs.prepended_labels import PrependedLabels
from empatheia_research.text.collation import Layout, encode_examples
from empatheia_research.text.tokenizer import DialogueTokenizer

SMALL = {"vocab_size": 60, "width": 24, "n_layers": 1, "n_heads": 2, "ffn_width": 48}
TINY_BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "vocab_size": 60, "max_position_embeddings": 64, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
VARIANTS = {
    "base": {},
    "multitask": {"emotion_head": True},
    "one tower": {"towers": "one", "normalize": True, "scale": 20.0, "both_ways": True, "skip_duplicates": True},
    "ensemble": {"external_width": 5},
    "two berts": {"encoder_config": TINY_BERT, "pooling": "first", "output_width": 12},
}


def make_model(**fields):
    torch.manual_seed(3)
    return RashkinRetrieval(RetrievalConfig(**{**SMALL, **fields}))


def make_batch(n=6, external=0):
    generator = torch.Generator().manual_seed(5)
    ids, replies = (torch.randint(6, 60, (n, length), generator=generator) for length in (11, 7))
    keep, kept = torch.ones(n, 11, dtype=torch.bool), torch.ones(n, 7, dtype=torch.bool)
    keep[0, 6:], kept[1, 3:] = False, False
    batch = {
        "input_ids": ids * keep, "attention_mask": keep, "candidate_ids": replies * kept, "candidate_mask": kept,
        "emotion_labels": torch.arange(n),
    }  # fmt: skip
    if external:
        batch["external_vectors"] = torch.randn(n, external, generator=generator)
        batch["candidate_external"] = torch.randn(n, external, generator=generator)
    return batch


def batch_for(name, n=6):
    return make_batch(n, VARIANTS[name].get("external_width", 0))


def count(module):
    return sum(p.numel() for p in module.parameters())


# -- sizes -----------------------------------------------------------------------------------------------------


def test_check_l_layers_have_the_sizes_of_table_4():
    """Check L: one encoder layer 1,083,900, one decoder layer 1,445,700."""
    assert count(PostNormEncoder(1, 300, 6, 300, 1200, 0.0)) == 1_083_900
    assert count(PostNormDecoder(1, 300, 6, 300, 1200, 0.0)) == 1_445_700


def test_check_l_models_have_the_sizes_of_table_4():
    """Check L: dual encoder 84.27 M with both position tables (which are computed here), multitask head 9,600 without
    bias, Ensem-DM's map 781,500; the generator is the 85.1 M of table 4, Large the 86.2 M.
    """
    with torch.device("meta"):
        dual = RashkinRetrieval(RetrievalConfig(vocab_size=250_006, emotion_head=True, external_width=2304))
        base = RashkinGeneration(RashkinGenerationConfig(vocab_size=250_006))
        large = RashkinGeneration(RashkinGenerationConfig(vocab_size=250_006, n_encoder_layers=5, emotion_head=True))
    maps = [dual.context_tower.ensemble, dual.candidate_tower.ensemble]
    assert [count(m) for m in maps] == [781_500, 781_500]
    assert count(dual.emotion) == 9_600 == count(large.encoder.emotion)
    positions = 2 * 1000 * 300
    assert round((count(dual) - 9_600 - 2 * 781_500 + positions) / 1e6, 2) == 84.27
    assert round(count(base) / 1e6, 2) == 85.12
    assert round((count(large) - 9_600) / 1e6, 1) == 86.2


# -- losses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [0.0, 0.5, 2.0])
def test_check_m_in_batch_loss_of_scaled_identities(c):
    """Check M: contexts = candidates = c I give ln(1 + (B - 1) exp(-c^2)); c = 0 gives ln B."""
    vectors = c * torch.eye(8)
    expected = math.log(1 + 7 * math.exp(-(c**2)))
    assert in_batch_loss(vectors, vectors).item() == pytest.approx(expected, abs=1e-6)
    assert in_batch_loss(vectors, vectors, both_ways=True).item() == pytest.approx(expected, abs=1e-6)
    big = torch.zeros(512, 512)
    assert in_batch_loss(big, big).item() == pytest.approx(6.238, abs=1e-3)


def test_words_are_as_long_as_positions_where_they_are_scaled():
    """The same as a table that is sqrt(width) times as large; else small words drown in the positions."""
    plain, scaled = make_model(), make_model(scale_words=True)
    with torch.no_grad():
        plain.words.weight.mul_(SMALL["width"] ** 0.5)
    ids, keep = torch.tensor([[7, 9, 11]]), torch.ones(1, 3, dtype=torch.bool)
    torch.testing.assert_close(scaled.encode_contexts(ids, keep), plain.encode_contexts(ids, keep))
    torch.testing.assert_close(scaled.encode_candidates(ids, keep), plain.encode_candidates(ids, keep))


@pytest.mark.parametrize("size", ["row", "cpu"])
@pytest.mark.parametrize("row", ["base", "multitask", "emoprepend1", "topicprepend5", "ensem_dm", "ensem_tran"])
def test_every_retrieval_row_starts_where_it_can_learn(row, size):
    """Scores of two random texts are near 1, not 128: a softmax that is saturated from the start learns nothing."""
    recipe = load_recipe(f"rashkin2018/retrieval_{row}", size=size)
    assert recipe.model["scale_words"]
    assert recipe.model["scale"] == pytest.approx(recipe.model.get("width", 300) ** -0.5, rel=0.01)


def test_equal_replies_are_negatives_unless_told_otherwise():
    model, batch = make_model(), make_batch()
    batch["candidate_ids"][2], batch["candidate_mask"][2] = batch["candidate_ids"][3], True
    as_released = model(**batch).losses["response"]
    model.config.skip_duplicates = True
    assert model(**batch).losses["response"] < as_released
    lone = {**batch, "candidate_ids": batch["candidate_ids"].clone()}
    lone["candidate_ids"][2, 0] = 59
    with_skip = model(**lone).losses["response"]
    model.config.skip_duplicates = False
    torch.testing.assert_close(model(**lone).losses["response"], with_skip)  # no two are equal: the same loss


def test_check_p_multitask_is_the_mean_of_both_losses():
    """Check P: likelihoods of 2.0 and 4.0 give 3.0; so do the recipes' weights, in both systems."""
    from empatheia_research.recipes.recipe import load_recipe

    for kind, name in (("retrieval", "response"), ("generation", "words")):
        weights = load_recipe(f"recipes/rashkin2018/{kind}_multitask.yaml").stages[0].losses
        assert weights[name] * 2.0 + weights["emotion"] * 4.0 == 3.0
    output = make_model(emotion_head=True)(**make_batch())
    assert set(output.losses) == {"response", "emotion"}
    assert {name: int(n) for name, n in output.counts.items()} == {"response": 6, "emotion": 6}


# -- the retrieval model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_every_parameter_gets_a_gradient_and_the_loss_falls(name):
    model, batch = make_model(**VARIANTS[name]), batch_for(name, 8)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    first = model(**batch).loss
    first.backward()
    idle = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert [n for n in idle if "token_type" not in n and not n.endswith("key.bias")] == []
    for _ in range(30):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
    assert loss < 0.7 * first


@pytest.mark.parametrize("name", VARIANTS)
def test_check_n_padding_changes_neither_encoder(name):
    """Check N: neither more padding nor its content changes a vector; a text alone has the vector it has in a batch."""
    model, batch = make_model(**VARIANTS[name]).eval(), batch_for(name)
    for encode, ids, keep, outside in (
        (model.encode_contexts, "input_ids", "attention_mask", "external_vectors"),
        (model.encode_candidates, "candidate_ids", "candidate_mask", "candidate_external"),
    ):
        external = batch.get(outside)
        with torch.no_grad():
            together = encode(batch[ids], batch[keep], external)
            wide = torch.nn.functional.pad(batch[ids].masked_fill(~batch[keep], 17), (0, 4), value=9)
            padded = encode(wide, torch.nn.functional.pad(batch[keep], (0, 4)), external)
            alone = encode(batch[ids][:1, :6], batch[keep][:1, :6], None if external is None else external[:1])
        torch.testing.assert_close(padded, together, atol=1e-5, rtol=1e-4)
        if ids == "input_ids":
            torch.testing.assert_close(alone, together[:1], atol=1e-5, rtol=1e-4)


def test_chunks_change_neither_loss_nor_gradient():
    batch = make_batch(9)
    found = []
    for chunk in (0, 2):
        model = make_model(chunk=chunk, emotion_head=True).train()
        output = model(**batch)
        output.loss.backward()
        found.append((output.loss.detach(), [p.grad for p in model.parameters()]))
    for whole, cut in zip(*found, strict=True):
        torch.testing.assert_close(cut, whole, atol=1e-6, rtol=1e-5)


def test_gold_labels_do_not_influence_vectors():
    model, batch = make_model(emotion_head=True).eval(), make_batch()
    known = {name: value for name, value in batch.items() if name not in model.gold_features}
    with torch.no_grad():
        torch.testing.assert_close(model(**known).context_vectors, model(**batch).context_vectors)


def test_saved_and_loaded_in_a_new_process_is_bit_equal(tmp_path):
    for name, fields in VARIANTS.items():
        model, batch = make_model(**fields).eval(), batch_for(name)
        with torch.no_grad():
            expected = model(**batch)
        model.save_pretrained(tmp_path / name)
        vectors = {"contexts": expected.context_vectors, "candidates": expected.candidate_vectors}
        torch.save({"batch": batch, **vectors}, tmp_path / name / "b.pt")
    code = f"""
import torch
from pathlib import Path
from empatheia_research.responders import RESPONDERS
for folder in Path({str(tmp_path)!r}).iterdir():
    model = RESPONDERS.get("rashkin_retrieval").from_pretrained(folder).eval()
    saved = torch.load(folder / "b.pt")
    with torch.no_grad():
        output = model(**saved["batch"])
    assert torch.equal(output.context_vectors, saved["contexts"]), folder
    assert torch.equal(output.candidate_vectors, saved["candidates"]), folder
"""
    fresh.run(["-c", code], check=True)


def test_parameters_missing_from_a_checkpoint_are_initialised(tmp_path):
    from safetensors.torch import load_file
    from safetensors.torch import save_file as save_tensors

    make_model(external_width=5).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    kept = {k: v for k, v in weights.items() if "ensemble" not in k and k != "words.weight" and "stack" not in k}
    save_tensors(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded = RashkinRetrieval.from_pretrained(tmp_path)
    assert all(torch.isfinite(p).all() and p.abs().max() < 1e3 for p in loaded.parameters())
    assert torch.equal(loaded.context_tower.ensemble.weight, torch.eye(24, 29))
    assert not loaded.words.weight[0].any()


def test_bad_settings_name_what_is_accepted():
    with pytest.raises(ValueError, match="accepted: mean, first"):
        RetrievalConfig(pooling="max")
    with pytest.raises(ValueError, match="accepted: post, pre"):
        RashkinGenerationConfig(norm="batch")
    with pytest.raises(ValueError, match=r"width 5: name it in data\.external"):
        make_model(external_width=5)(**make_batch(external=4))


# -- ensembles -------------------------------------------------------------------------------------------------


def test_an_ensemble_starts_as_the_model_without_it():
    plain, joined = make_model().eval(), make_model(external_width=5).eval()
    joined.load_state_dict(plain.state_dict(), strict=False)
    batch = make_batch(external=5)
    with torch.no_grad():
        torch.testing.assert_close(joined(**batch).context_vectors, plain(**make_batch()).context_vectors)


@pytest.mark.parametrize("kind", ["retrieval", "generation"])
def test_check_o_one_ensemble_step_moves_the_map_and_the_decoder_only(kind):
    """Check O: with the recipe's parameters of the second stage, only W, b (and the decoder) differ after a step."""
    from empatheia_research.recipes.recipe import load_recipe
    from empatheia_research.training.stages import choose_parameters

    stage = load_recipe(f"recipes/rashkin2018/{kind}_ensem_dm.yaml").stages[1]
    if kind == "retrieval":
        model, batch, moving = make_model(external_width=5), make_batch(external=5), ("ensemble.",)
    else:
        sizes = {"width": 24, "n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2, "ffn_width": 48}
        model = RashkinGeneration(RashkinGenerationConfig(vocab_size=60, external_width=5, **sizes))
        batch, moving = make_batch(external=5), ("ensemble.", "decoder.")
        batch = {
            "input_ids": batch["input_ids"],
            "labels": batch["candidate_ids"],
            "external_vectors": batch["external_vectors"],
        }
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    choose_parameters(model, stage.train, stage.freeze)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    model.train()
    model(**batch).loss.backward()
    optimizer.step()
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {name for name in before if any(part in name for part in moving)}


# -- reading ---------------------------------------------------------------------------------------------------

WORDS = DialogueTokenizer.train_words(["u1 u2 u3 u4 u5 fine good p1 p2 p3"], style="rashkin")
DIALOGUE = Dialogue.of("u1", "u2", "u3", "u4", "u5", id="c")


def text_of(ids):
    return " ".join(WORDS.piece_texts()[i] or "<SOC>" for i in ids)


def test_check_i_words():
    """Check I: the released code's word rules; its empty token for five blanks carries nothing and is left out."""
    from empatheia.text.words import tokenize_words

    said = [word.text for word in tokenize_words("Wow... that's great!", "rashkin")]
    assert said == ["Wow", ".", ".", ".", "that", "'", "s", "great", "!"]
    assert [word.text for word in tokenize_words("a     b", "rashkin")] == ["a", "b"]


@pytest.mark.parametrize(("history", "contexts"), [(2, ["u1", "u2 <SOC> u3"]), (4, ["u1", "u1 <SOC> u2 <SOC> u3"])])
def test_check_j_contexts(history, contexts):
    """Check J: conversation u1..u5, listener replies u2 and u4; contexts of the last 2 or 4 turns."""
    examples = DIALOGUE.examples(("listener",))
    reader = TextReader(WORDS, RetrievalConfig(max_turns=history))
    rows = reader.contexts([[turn.text for turn in example.context] for example in examples])
    assert [text_of(row) for row in rows] == contexts
    assert [example.response for example in examples] == ["u2", "u4"]
    items = encode_examples(examples, WORDS, Layout(max_turns=history, truncate="newest"))
    assert [item.n_dropped_turns for item in items] == [0, max(0, 3 - history)]
    assert [text_of(item.input_ids) for item in items] == [f"<SOC> {text} <SOC>" for text in contexts]


def test_a_long_context_loses_its_newest_words_or_its_oldest():
    turns = [["u1 u2", "u3 u4", "u5"]]
    rows = {
        cut: text_of(TextReader(WORDS, RetrievalConfig(max_pieces=3, truncate=cut)).contexts(turns)[0])
        for cut in ("newest", "oldest")
    }
    assert rows == {"newest": "u1 u2 <SOC>", "oldest": "u4 <SOC> u5"}
    for cut in rows:  # a reply is no context: it begins where it begins
        reader = TextReader(WORDS, RetrievalConfig(max_pieces=3, truncate=cut))
        assert text_of(reader.replies(["u1 u2 u3 u4 u5"])[0]) == "u1 u2 u3"


def test_the_first_piece_of_an_unmarked_text_is_its_first_word_or_the_label_in_front():
    """Trap 10: the released BERT towers pool position 0 without CLS there; ``marks`` puts one."""
    label = WORDS.encode("p1").ids
    for marks, opening, closing in ((False, [], []), (True, [WORDS.cls_id], [WORDS.sep_id])):
        reader = TextReader(WORDS, RetrievalConfig(marks=marks))
        plain, labelled = WORDS.encode("fine").ids, [*label, *WORDS.encode("fine").ids]
        assert reader.contexts([["fine"]]) == reader.replies(["fine"]) == [[*opening, *plain, *closing]]
        assert reader.contexts([["fine"]], [label]) == [[*opening, *labelled, *closing]]
    assert not RetrievalConfig().marks and RetrievalConfig(encoder_config=TINY_BERT).marks
    states = torch.arange(24.0).view(1, 4, 6)
    tower = make_model(encoder_config=TINY_BERT, pooling="first").context_tower
    tower.pretrained.forward = lambda **_: type("Output", (), {"last_hidden_state": states})
    assert torch.equal(tower(torch.tensor([[7, 8, 9, 0]]), torch.tensor([[True] * 3 + [False]])), states[:, 0])


# -- recipes ---------------------------------------------------------------------------------------------------


def full(name):
    from empatheia_research.recipes.recipe import load_recipe

    return load_recipe(f"recipes/rashkin2018/{name}.yaml", "full")


RETRIEVAL = ["base", "multitask", "emoprepend1", "emoprepend3", "emoprepend5", "topicprepend1", "topicprepend3"]
RETRIEVAL += ["topicprepend5", "ensem_dm", "ensem_dm_plus", "ensem_tran"]
GENERATION = [*RETRIEVAL, "large"]


@pytest.mark.parametrize("name", RETRIEVAL)
def test_retrieval_learns_as_the_released_commands_say(name):
    """Sections 2.1 and 4: Adamax 8e-4, 512 pairs a batch, at most 10 epochs, both roles, four turns, 100 words."""
    recipe = full(f"retrieval_{name}")
    stage = recipe.stages[0]
    assert (stage.optimizer, stage.learning_rate, stage.schedule, stage.max_grad_norm) == (
        "adamax",
        8e-4,
        "constant",
        0,
    )
    assert (stage.batch_examples, stage.batch_tokens, stage.epochs, stage.select) == (512, None, 10, "loss")
    assert recipe.seed == 92179 and recipe.data.roles == ("speaker", "listener")
    assert (recipe.data.candidates, recipe.data.max_candidate_words) == (("own", "dailydialog"), 20)
    made = RetrievalConfig(**recipe.model)
    assert (made.width, made.n_layers, made.n_heads, made.ffn_width, made.dropout) == (300, 4, 6, 1200, 0.0)
    assert (made.max_turns, made.max_pieces, made.truncate, made.normalize) == (4, 100, "newest", False)
    assert not (made.skip_duplicates or made.both_ways or made.marks) and made.towers == "two"
    assert recipe.data.prepend.get("k") == (int(name[-1]) if "prepend" in name else None)


def test_bert_towers_learn_as_the_released_command_says():
    """Section 2.2: 256 pairs a batch, 1e-5, up to 100 epochs, 10 without gain; 300 columns on position 0."""
    recipe = full("retrieval_bert")
    (stage,) = recipe.stages
    assert (stage.batch_examples, stage.learning_rate, stage.epochs, stage.patience) == (256, 1e-5, 100, 10)
    assert (recipe.encoder, stage.optimizer) == ("google-bert/bert-base-cased", "adamax")
    assert (recipe.model["output_width"], recipe.model["pooling"], recipe.model["marks"]) == (300, "first", False)
    names = [name for name, _ in make_model(encoder_config=TINY_BERT).named_parameters()]
    frozen = [name for name in names if name.startswith(stage.freeze)]
    assert len(frozen) == 2 and all(name.endswith("word_embeddings.weight") for name in frozen)


@pytest.mark.parametrize("name", GENERATION)
def test_generation_learns_and_answers_as_offered_where_the_paper_is_silent(name):
    """Section 3: as retrieval; 12 beams in 6 groups with 0.5 a use, the highest score by length, at most 100 pieces."""
    recipe = full(f"generation_{name}")
    stage, data, decoding = recipe.stages[0], recipe.data, recipe.decoding
    assert (stage.optimizer, stage.learning_rate, stage.epochs, stage.select) == ("adamax", 8e-4, 10, "words")
    assert stage.data["roles"] == ["speaker", "listener"] and data.roles == ("listener",)
    assert (data.max_turns, data.max_source, data.max_target, data.truncate) == (4, 100, 100, "newest")
    assert (decoding.strategy, decoding.num_beams, decoding.num_groups) == ("diverse_beam", 12, 6)
    assert (decoding.diversity, decoding.length_penalty, decoding.max_new_tokens) == (0.5, 1.0, 100)
    made = RashkinGenerationConfig(**recipe.model)
    assert (made.width, made.n_decoder_layers, made.n_heads, made.ffn_width, made.norm) == (300, 4, 6, 1200, "post")
    assert made.n_encoder_layers == (5 if name == "large" else 4) and made.loss_reduction == "mean"
    if "prepend" in name:
        assert data.side_inputs["prepended_labels"]["k"] == int(name[-1])


class _Says:
    """A classifier that finds p1 best, then p2, then p3."""

    labels = ("p3", "p1", "p2")

    def classify_texts(self, texts):
        return np.array([[0.2, 0.5, 0.3]] * len(texts))


def test_check_k_prepended_labels():
    """Check K: the top three (p1, p2, p3) give "p3 p2 p1 text", and the limit becomes 103."""
    labels = PrependedLabels(WORDS, k=3)
    labels.classifier = _Says()
    reader = TextReader(WORDS, RetrievalConfig())
    row = reader.contexts([["fine " * 200]], labels.pieces_of([(Turn("speaker", "fine"),)]))[0]
    assert text_of(row).startswith("p3 p2 p1 fine fine") and len(row) == 103
    labels.order = "best_first"
    assert labels.labels_of(["fine"]) == [("p1", "p2", "p3")]
    [item] = encode_examples([Example((Turn("speaker", "good"),), None)], WORDS, Layout())
    labels.add([Example((Turn("speaker", "good"),), None)], [item])
    assert text_of(labels.collate([item], 0, 3)["prepended_ids"][0].tolist()) == "p1 p2 p3"


def test_labels_stand_behind_cls_without_padding_between():
    ids = torch.tensor([[2, 11, 12, 0], [2, 21, 22, 23]])
    both, keep = prepend(ids, ids.ne(0), torch.tensor([[7, 0], [8, 9]]), 0)
    assert both.tolist() == [[2, 7, 11, 12, 0, 0], [2, 8, 9, 21, 22, 23]]
    assert keep.tolist() == [[True] * 4 + [False] * 2, [True] * 6]


def test_without_a_classifier_nothing_is_prepended():
    labels = PrependedLabels(WORDS)
    assert labels.settings() == {} and labels.labels_of(["a", "b"]) == [(), ()]
    assert labels.collate(encode_examples(DIALOGUE.examples(), WORDS, Layout()), 0, 9)["prepended_ids"].shape == (2, 0)


def test_the_sample_classifiers_know_their_own_texts():
    for name, text, label in (
        ("sample/topics", "The goalie saved two penalty shots", "hockey"),
        ("sample/topics", "my doctor and the headaches", "medicine"),
    ):
        assert PrependedLabels(WORDS, name).labels_of([text]) == [(label,)]
    assert len(PrependedLabels.vocabulary("sample/emotions")) > 20


def test_a_missing_classifier_names_the_command(monkeypatch):
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    with pytest.raises(MissingResourceError, match=r"empatheia train recipes/rashkin2018/fasttext\.yaml"):
        PrependedLabels(WORDS, "runs/nowhere/checkpoint")
    with pytest.raises(ConfigError, match="k=0; accepted: 1"):
        PrependedLabels(WORDS, "sample/topics", k=0)


def test_external_vectors_from_a_file(tmp_path):
    path = tmp_path / "features.safetensors"
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    save_file({"vectors": table}, path, metadata={"keys": json.dumps(["c#1", "u2"])})
    external = ExternalVectors(path=str(path))
    examples = DIALOGUE.examples()
    items = encode_examples(examples, WORDS, Layout())
    external.add(examples[:1], items[:1])
    assert external.collate(items[:1], 0, 5)["external_vectors"].tolist() == [[0, 1, 2]]
    assert external.of_texts(["u2"]).tolist() == [[3, 4, 5]] and external.width == 3
    assert external.settings() == {"path": str(path), "reads": "last"}
    with pytest.raises(DataError, match="give the encoder that made the file"):
        external.add(examples, items)
    with pytest.raises(MissingResourceError, match="safetensors file with vectors and keys"):
        ExternalVectors(path=str(tmp_path / "none"))
    assert ExternalVectors().settings() == {} and ExternalVectors().collate(items, 0, 5)["external_vectors"].shape == (
        2,
        0,
    )


# -- candidates ------------------------------------------------------------------------------------------------


def test_candidates_are_short_known_and_listed_once():
    texts = ["Yes.", "Yes. ", "word " * 21, "word " * 20, "a &lt b", "&gt quoted", "strange", ""]
    found = candidate_texts(texts, is_known=lambda text: text != "strange")
    assert found == ["Yes.", ("word " * 20).strip(), "&gt quoted"]  # the released test for &gt is always false
    assert candidate_texts(texts[5:6], drop_quotes=True) == []
    seen = {"Yes ."}
    assert candidate_texts(["Yes.", "No.", "Why?"], seen=seen, limit=2) == ["No."] and seen == {"Yes .", "No ."}
    assert candidate_texts(["I'm sorry.", "I'm sorry .", "i'm sorry."]) == ["I'm sorry.", "i'm sorry."]  # same words


def test_the_index_finds_the_largest_dot_product_and_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    vectors, queries = rng.normal(size=(50, 8)), rng.normal(size=(7, 8))
    index = ReplyIndex([f"reply {i}" for i in range(50)], vectors)
    places, scores = index.best(queries, k=3, block=4)
    table = queries @ vectors.astype(np.float16).astype(float).T
    assert places.tolist() == np.argsort(-table, axis=1)[:, :3].tolist()
    np.testing.assert_allclose(scores, np.sort(table, axis=1)[:, ::-1][:, :3], rtol=1e-5)
    assert index.best(queries, k=1)[0][:, 0].tolist() == places[:, 0].tolist()
    assert ReplyIndex(["a", "b"], np.ones((2, 8))).best(queries)[0].tolist() == [[0]] * 7  # of equals the earlier
    index.save(tmp_path)
    again = ReplyIndex.load(tmp_path)
    assert again.texts == index.texts
    assert np.array_equal(again.vectors, index.vectors)  # saved in half precision: so are they before
    queries, near = rng.normal(size=(200, 8)), np.repeat(rng.normal(size=(20, 8)), 20, 0)
    index = ReplyIndex([str(i) for i in range(400)], near + 1e-3 * rng.normal(size=near.shape))
    index.save(tmp_path)
    assert np.array_equal(ReplyIndex.load(tmp_path).best(queries)[0], index.best(queries)[0])
    with pytest.raises(DataError, match="within 65504"):
        ReplyIndex(["a"], np.full((1, 8), 1e5))
    (tmp_path / "candidates.npy").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="train the retrieval model again"):
        ReplyIndex.load(tmp_path)
    with pytest.raises(DataError, match="one each"):
        ReplyIndex([], np.zeros((0, 3)))
