"""What transformers promises of a model holds for every responder: caches, resizing, half precision, Auto classes."""

from dataclasses import fields, make_dataclass

import pytest
import torch
from contract import all_cases
from transformers import (
    AutoModel,
    DataCollatorForSeq2Seq,
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    PreTrainedModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    StaticCache,
)
from transformers.modeling_outputs import BaseModelOutputWithPast, Seq2SeqLMOutput

import fresh
from empatheia_research.layers.attention import Attention
from empatheia_research.layers.cache import CACHE, CACHE_NAMES, cache_field
from empatheia_research.layers.copy import copy_mixture
from empatheia_research.responders.rashkin_retrieval import RashkinRetrieval, RetrievalConfig
from empatheia_research.responders.seq2seq import ResponderOutput
from empatheia_research.text.auto_tokenizer import EmpatheiaTokenizer
from empatheia_research.text.tokenizer import DialogueTokenizer

CASES = all_cases()


def generated(name, **settings):
    """Ids that a tiny model of a case says; draws of systems that draw are the same in every call."""
    case = CASES[name]
    model = case.build().eval()
    torch.manual_seed(1)
    return model.generate(**case.inputs(case.batch()), max_new_tokens=9, do_sample=False, **settings).tolist()


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_a_static_cache_gives_the_same_words(name, beams):
    plain = generated(name, num_beams=beams)
    assert generated(name, num_beams=beams, cache_implementation="static", disable_compile=True) == plain


@pytest.mark.parametrize("name", ["soft", "rashkin", "moel", "kemp"])
def test_a_static_cache_longer_than_the_memory_gives_the_same_scores(name):
    case = CASES[name]
    model = case.build_steady()
    known = case.inputs(case.batch())
    known["attention_mask"] = None
    ids = torch.tensor([[4, 7, 8, 9]] * 3)
    with torch.no_grad():
        encoding = model.encode(**known)
        cache = EncoderDecoderCache(StaticCache(model.config, 16), StaticCache(model.config, 40))
        rows = [
            model(encoder_outputs=encoding, decoder_input_ids=part, **{CACHE: cache}, use_cache=True).logits
            for part in (ids[:, :1], ids[:, 1:3], ids[:, 3:])
        ]
        plain = model(encoder_outputs=encoding, decoder_input_ids=ids).logits
    torch.testing.assert_close(torch.cat(rows, 1), plain, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("pieces", [70, 50])
@pytest.mark.parametrize("name", CASES)
def test_a_resized_model_learns_answers_and_is_loaded_again(name, pieces, tmp_path):
    case = CASES[name]
    model, batch = case.build_steady(), case.batch()
    batch = {key: value.clamp(max=49) if key.endswith("ids") else value for key, value in batch.items()}
    batch["labels"] = batch["labels"].clamp(max=49)
    if "emotion_vocabulary" in batch:  # one entry a piece
        batch["emotion_vocabulary"] = torch.arange(pieces) % 3 == 0
    with torch.no_grad():
        before = model(**batch).logits
        table = model.resize_token_embeddings(pieces)
        assert table.num_embeddings == model.config.vocab_size == pieces
        after = model(**batch).logits
    assert after.shape == (*before.shape[:2], pieces)
    if not getattr(model.config, "copies", False):  # a mixture is normalised over all pieces, the new ones too
        torch.testing.assert_close(after[..., :50], before[..., :50])
    if pieces > 60:  # pieces that were not there before are read, said and learned
        batch["input_ids"][:, 1] = batch["labels"][:, 0] = pieces - 1
    model.train()
    model(**batch).loss.backward()
    model.eval()
    ids = model.generate(**case.inputs(batch), max_new_tokens=4, do_sample=False)
    assert ids.max() < pieces
    with torch.no_grad():
        expected = model(**batch).logits
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path).eval()
    if case.steady is not None:
        case.steady(loaded)
    with torch.no_grad():
        assert torch.equal(loaded(**batch).logits, expected)


@pytest.mark.parametrize("encoder", [None, "bert"])
def test_a_resized_retrieval_model_is_loaded_again(encoder, tmp_path):
    settings = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    described = None if encoder is None else {"model_type": encoder, "intermediate_size": 32, **settings}
    config = RetrievalConfig(vocab_size=60, width=16, n_layers=1, n_heads=2, ffn_width=32, encoder_config=described)
    model = RashkinRetrieval(config).eval()
    model.resize_token_embeddings(70)
    model.save_pretrained(tmp_path)
    ids = torch.tensor([[2, 69, 68]])
    loaded = RashkinRetrieval.from_pretrained(tmp_path).eval()
    for part in ("encode_contexts", "encode_candidates"):
        with torch.no_grad():
            found, expected = (getattr(one, part)(ids, torch.ones_like(ids)) for one in (loaded, model))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_half_precision_says_nearly_the_same(name):
    case = CASES[name]
    model = case.build_steady().half()
    rounded = {key: value.half() if value.is_floating_point() else value for key, value in case.batch().items()}
    with torch.no_grad():
        half = model(**rounded)
        model.float()
        single = model(**{key: value.float() if value.dtype == torch.half else value for key, value in rounded.items()})
    torch.testing.assert_close(half.logits.float(), single.logits, atol=0.05, rtol=0.02)
    for loss, value in half.losses.items():
        torch.testing.assert_close(value.float(), single.losses[loss], atol=0.02, rtol=0.02, msg=loss)
    model.half().train()
    assert all(torch.isfinite(value) for value in model(**rounded).losses.values())


def test_half_precision_copies_where_nothing_else_is_likely():
    logits = torch.tensor([[[12.0, -12.0, -12.0]]])
    weights, ids = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[1, 2]])
    for share in (0.0, 1.0):
        args = (logits, weights, torch.tensor([[[share]]]))
        found = copy_mixture(*(x.half() for x in args), ids)
        assert torch.isfinite(found).all()
        torch.testing.assert_close(found, copy_mixture(*args, ids), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("gate_form", ["weights", "bias"])
@pytest.mark.parametrize("openness", [0.0, 1e-6, 1.0])
def test_half_precision_gates_may_all_be_closed(gate_form, openness):
    torch.manual_seed(1)
    attention = Attention(8, 2, gate_form=gate_form).half()
    states, gates = torch.randn(1, 4, 8).half(), torch.full((1, 4), openness)

    def attend(dtype):
        module, x = attention.to(dtype), states.to(dtype)
        return module(x, *module.project(x), None, gates.to(dtype)).float()

    torch.testing.assert_close(attend(torch.half), attend(torch.float32), atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("asked", ["output_attentions", "output_hidden_states"])
@pytest.mark.parametrize("name", ["soft", "meed2", "moel", "empdg"])
def test_inner_states_are_refused_in_words(name, asked):
    case = CASES[name]
    model = case.build().eval()
    known = case.inputs(case.batch())
    refused = pytest.raises(ValueError, match=f"{asked}: {type(model).__name__} does not give it")
    with refused:
        model.generate(**known, return_dict_in_generate=True, **{asked: True})
    with refused:
        settings = GenerationConfig(return_dict_in_generate=True, max_new_tokens=3, **{asked: True})
        model.generate(**known, generation_config=settings)
    with refused:
        model(**case.batch(), **{asked: True})
    said = model.generate(**known, return_dict_in_generate=True, output_scores=True, max_new_tokens=3, **{asked: False})
    assert len(said.scores) >= 1


def test_auto_classes_know_the_responders(tmp_path):
    """In a new process, which has imported the responders' modules and nothing else of ours."""
    models = {case.system: case.build() for case in CASES.values()}
    for system, model in models.items():
        model.save_pretrained(tmp_path / system)
    code = (
        f"import sys, {', '.join(sorted({type(model).__module__ for model in models.values()}))}\n"
        "from transformers import AutoConfig, AutoModelForSeq2SeqLM\n"
        "for folder in sys.argv[1:]:\n"
        "    print(type(AutoConfig.from_pretrained(folder)).__name__)\n"
        "    print(type(AutoModelForSeq2SeqLM.from_pretrained(folder)).__name__)\n"
    )
    ran = fresh.run(["-c", code, *(str(tmp_path / system) for system in models)])
    known = [type(part).__name__ for model in models.values() for part in (model.config, model)]
    assert ran.stdout.split() == known, ran.stderr


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.fields.get("encoder_config")])
def test_the_pretrained_encoder_attends_as_asked(name, tmp_path):
    CASES[name].build().save_pretrained(tmp_path)
    model_class = type(CASES[name].build())
    for asked in ("eager", "sdpa"):
        loaded = model_class.from_pretrained(tmp_path, attn_implementation=asked)
        inner = {part.config._attn_implementation for part in loaded.modules() if isinstance(part, PreTrainedModel)}
        assert inner == {asked}


def test_auto_classes_know_the_retrieval_model(tmp_path):
    RashkinRetrieval(RetrievalConfig(vocab_size=60, width=16, n_layers=1, n_heads=2, ffn_width=32)).save_pretrained(
        tmp_path
    )
    assert isinstance(AutoModel.from_pretrained(tmp_path), RashkinRetrieval)


@pytest.mark.parametrize("name", ["transformer", "soft", "trs", "empdg w/o G"])
def test_transformers_trainer_smooths_labels(name, tmp_path):
    case = CASES[name]
    model = case.build()
    tokenizer = EmpatheiaTokenizer(DialogueTokenizer.train_words([" ".join(f"w{i}" for i in range(54))]))
    rows = [{"input_ids": [2, 7 + i, 9, 3], "labels": [8 + i, 9, 5][: 2 + i % 2]} for i in range(8)]
    settings = Seq2SeqTrainingArguments(
        output_dir=str(tmp_path), label_smoothing_factor=0.1, max_steps=3, per_device_train_batch_size=4, use_cpu=True,
        report_to="none", save_strategy="no", disable_tqdm=True, eval_strategy="steps", eval_steps=3,
    )  # fmt: skip
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer = Seq2SeqTrainer(model, settings, train_dataset=rows, eval_dataset=rows, data_collator=collator)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < before
    with pytest.raises(KeyError, match="no word scores: give decoder_input_ids"):
        model(input_ids=torch.tensor([[2, 7]]))["logits"]


def test_decoder_inputs_are_made_of_labels():
    model = CASES["transformer"].build()
    made = model.prepare_decoder_input_ids_from_labels(labels=torch.tensor([[8, 9, 5], [8, 5, -100]]))
    assert made.tolist() == [[4, 8, 9], [4, 8, 5]]


@pytest.mark.parametrize("system", sorted({case.system for case in CASES.values()}))
def test_sdpa_is_accepted(system, tmp_path):
    case = next(case for case in CASES.values() if case.system == system)
    model = case.build_steady()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, attn_implementation="sdpa").eval()
    if case.steady is not None:
        case.steady(loaded)
    with torch.no_grad():
        assert torch.equal(loaded(**case.batch()).logits, model(**case.batch()).logits)


@pytest.mark.parametrize("name", ["transformer", "moel", "empdg"])
def test_the_configuration_says_whether_a_cache_is_kept(name):
    case = CASES[name]
    model = case.build().eval()
    asked = {**case.inputs(case.batch()), "decoder_input_ids": torch.full((3, 2), 4)}
    for told, kept in ((True, True), (False, False)):
        model.config.use_cache = told
        assert (getattr(model(**asked), CACHE) is not None) == kept
        assert getattr(model(**asked, use_cache=not told), CACHE) is None or not kept
    model.config.use_cache = True
    assert getattr(model(**case.batch()), CACHE) is None  # labels: nothing will be continued
    assert getattr(model.train()(**asked), CACHE) is None


def test_output_and_cache_follow_the_names_of_the_installed_transformers():
    """A minor release called the cache otherwise, and nothing generated any more."""
    later = make_dataclass("Later", [("loss", "Tensor | None", None), ("kept", "Cache | None", None)])
    assert cache_field(later) == "kept" and cache_field(BaseModelOutputWithPast) == CACHE
    theirs = {field.name for field in fields(Seq2SeqLMOutput)}
    assert theirs <= {field.name for field in fields(ResponderOutput)} and CACHE in theirs


@pytest.mark.parametrize("name", ["transformer", "empdg"])
def test_a_step_with_either_name_of_the_cache_and_what_a_later_release_adds(name):
    case = CASES[name]
    model = case.build_steady()
    ids = torch.tensor([[4, 7, 8]] * 3)
    with torch.no_grad():
        encoding = model.encode(**case.inputs(case.batch()))
        plain = model(encoder_outputs=encoding, decoder_input_ids=ids).logits[:, -1]
        for word in CACHE_NAMES:
            cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
            model(encoder_outputs=encoding, decoder_input_ids=ids[:, :2], use_cache=True, **{word: cache})
            later = {"of_a_later_release": 1, "encoder_outputs": encoding, "use_cache": True, word: cache}
            inputs = model.prepare_inputs_for_generation(ids, **later)
            assert inputs["decoder_input_ids"].shape == (3, 1) and inputs[CACHE] is cache
            torch.testing.assert_close(model(**inputs).logits[:, -1], plain, atol=1e-5, rtol=1e-4)


def test_a_decoding_step_gets_all_that_generate_was_given():
    model = CASES["meed2"].build().eval()
    given = {"role_ids": torch.ones(1, 3), "decoder_attention_mask": torch.ones(1, 2), "labels": torch.ones(1, 2)}
    step = model.prepare_inputs_for_generation(torch.tensor([[4, 7]]), is_first_iteration=True, **given)
    assert step["role_ids"] is given["role_ids"]
    assert step["decoder_attention_mask"] is given["decoder_attention_mask"]
    assert "labels" not in step and "is_first_iteration" not in step


@pytest.mark.parametrize("name", ["soft", "meed2", "moel", "empdg"])
def test_a_reply_without_a_context_is_refused_in_words(name):
    model = CASES[name].build().eval()
    with pytest.raises(ValueError, match=f"no context for {type(model).__name__}: give input_ids, or encoder_outputs"):
        model(labels=torch.tensor([[7, 5]]))


def test_only_systems_that_say_so_go_on_from_what_they_understood():
    model = CASES["transformer"].build().eval()
    assert not model.takes_reasoning and CASES["soft"].build().takes_reasoning
    with pytest.raises(TypeError, match="does not go on from what it understood; give generate"):
        model.encode_reasoned(model.understand(torch.tensor([[2, 7]])), torch.tensor([[2, 7]]))


def test_a_decoder_mask_with_holes_is_refused():
    case = CASES["transformer"]
    model, known = case.build_steady(), case.inputs(case.batch())
    ids = torch.tensor([[4, 7, 8]] * 3)
    right = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    model(**known, decoder_input_ids=ids, decoder_attention_mask=right)
    with pytest.raises(ValueError, match="pad replies on the right"):
        model(**known, decoder_input_ids=ids, decoder_attention_mask=right.flip(1))
