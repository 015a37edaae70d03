"""Focus beside everything else ``generate()`` can be told, and on models with other caches, tables and heads."""

from threading import Thread

import pytest
import torch
from slow_speaker import Reference, reference
from tiny_models import SPECIAL, VOCABULARY, make_model, make_worlds, pad
from transformers import (
    BertConfig,
    BertGenerationConfig,
    BertGenerationDecoder,
    BertModel,
    BloomConfig,
    BloomForCausalLM,
    EncoderDecoderModel,
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
)

from empatheia.errors import DecodingError
from empatheia_research.decoding.diverse_beams import diverse_beams
from empatheia_research.decoding.focus import FocusProcessor, focused_generate
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.pragmatics import log_speaker
from empatheia_research.decoding.shrinking_beams import shrinking_beams
from empatheia_research.decoding.worlds import Worlds

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BEAMS = {"num_beams": 3, "num_return_sequences": 2, "do_sample": False}


def every_other(example, ids):
    return [2, *range(4, VOCABULARY, 2)]


def end_mark_in_the_middle(example, ids):
    return [2] if int(ids[-1]) == 10 else list(range(4, VOCABULARY)) if len(ids) % 2 else [2, 10]


@pytest.fixture(scope="module")
def models():
    return {name: make_model(name) for name in ("bart", "t5", "gpt2", "llama")}


def spread(model):
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.6)
    return model.eval()


@pytest.mark.parametrize("way", [{"do_sample": False}, BEAMS], ids=["greedy", "beam"])
@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 1.7},
        {"bad_words_ids": [[5], [7, 8], [30]]},
        {"prefix_allowed_tokens_fn": every_other},
        {"renormalize_logits": True},
        {"forced_bos_token_id": 9, "forced_eos_token_id": 2},
        {"eos_token_id": 3, "prefix_allowed_tokens_fn": end_mark_in_the_middle},
        {"generation_config": GenerationConfig(eos_token_id=[3, 11], pad_token_id=0), "suppress_tokens": [2, 6]},
    ],
    ids=["repetition", "bad words", "prefix", "renormalised", "forced", "other end mark", "configuration"],
)
@pytest.mark.parametrize("name", ["bart", "gpt2"])
def test_beside_other_settings(models, name, options, way):
    model, options = models[name], {"max_new_tokens": 6, **options, **way}
    worlds = make_worlds(model, 3)
    ours = focused_generate(model, worlds, 3.0, 0.9, **options)
    assert torch.equal(ours, reference(model, worlds, 3.0, 0.9, **options))


def test_scores_and_logits_are_what_they_are_called(models):
    model = models["llama"]
    worlds = make_worlds(model, 3)
    options = {"max_new_tokens": 4, "do_sample": False, "return_dict_in_generate": True, "output_logits": True}
    ours = focused_generate(model, worlds, 3.0, 0.9, output_scores=True, **options)
    plain = model.generate(**worlds.true(), **options)
    torch.testing.assert_close(ours.logits[0], plain.logits[0])
    scores = torch.stack(ours.scores)
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(scores.shape[:2]))


def test_a_streamer_hears_the_focused_reply(models):
    class Heard(list):
        def put(self, ids):
            self.extend(ids.flatten().tolist())

        def end(self):
            self.append("end")

    heard = Heard()
    worlds = make_worlds(models["gpt2"], 1)
    ours = focused_generate(models["gpt2"], worlds, 3.0, 0.9, streamer=heard, max_new_tokens=5, do_sample=False)
    assert heard == [*ours[0].tolist(), "end"]


@pytest.mark.parametrize("way", [{"do_sample": False}, BEAMS], ids=["greedy", "beam"])
@pytest.mark.parametrize("name", ["llama", "bart"])
def test_a_static_cache(models, name, way):
    worlds = make_worlds(models[name], 2)
    options = {"max_new_tokens": 6, **way}
    ours = focused_generate(models[name], worlds, 3.0, 0.9, cache_implementation="static", **options)
    assert torch.equal(ours, focused_generate(models[name], worlds, 3.0, 0.9, **options))


def make_other(name):
    if name == "sliding window":
        config = MistralConfig(
            vocab_size=VOCABULARY, sliding_window=4, intermediate_size=16, num_key_value_heads=1, **SMALL, **SPECIAL
        )
        return MistralForCausalLM(config)
    if name == "positions of its own":
        sizes = {"ffn_dim": 16, "word_embed_proj_dim": 16, "max_position_embeddings": 64}
        return OPTForCausalLM(OPTConfig(vocab_size=VOCABULARY, **sizes, **SMALL, **SPECIAL))
    if name == "no positions":
        return BloomForCausalLM(BloomConfig(vocab_size=VOCABULARY, hidden_size=16, n_layer=2, n_head=2, **SPECIAL))
    if name == "states":
        return MambaForCausalLM(MambaConfig(vocab_size=VOCABULARY, state_size=4, **SMALL, **SPECIAL))
    encoder = BertModel(BertConfig(vocab_size=VOCABULARY, intermediate_size=16, **SMALL))
    sizes = {"vocab_size": VOCABULARY, "intermediate_size": 16, "is_decoder": True, "add_cross_attention": True}
    model = EncoderDecoderModel(encoder=encoder, decoder=BertGenerationDecoder(BertGenerationConfig(**sizes, **SMALL)))
    model.config.decoder_start_token_id, model.config.pad_token_id = 1, 0
    model.generation_config = GenerationConfig(decoder_start_token_id=1, pad_token_id=0, eos_token_id=2)
    return model


@pytest.mark.parametrize("name", ["sliding window", "positions of its own", "no positions", "states", "two models"])
def test_other_architectures(name):
    model = spread(make_other(name))
    worlds = make_worlds(model, 2)
    if name == "states":  # Mamba's convolution sees padding: contexts of one length
        worlds = Worlds(pad([[5, 6, 7, 8], [5, 9, 7, 8], [5, 6, 12, 8], [9, 9, 4, 30]], left=True), 2)
    options = {"num_beams": 3, "num_return_sequences": 3, "max_new_tokens": 6, "length_penalty": 0.0}
    found = focused_generate(model, worlds, 3.0, 0.9, **options, return_dict_in_generate=True, output_scores=True)
    assert torch.equal(found.sequences, reference(model, worlds, 3.0, 0.9, **options))
    start = 1 if model.config.is_encoder_decoder else worlds.true()["input_ids"].shape[1]
    for i, score in enumerate(found.sequences_scores):
        reply = found.sequences[i, start:]
        ends = (reply == 2).nonzero().flatten()
        reply = reply[: int(ends[0]) + 1] if len(ends) else reply[:6]
        n = worlds.n_worlds
        own = Worlds({key: value[n * (i // 3) :][:n] for key, value in worlds.inputs.items()}, n)
        assert float(focused_score(model, own, reply[None], 3.0, 0.9).log_s1.sum()) == pytest.approx(
            float(score), abs=1e-3
        )


@pytest.mark.parametrize("name", ["bart", "gpt2"])
def test_diverse_beams(models, name):
    model = models[name]
    worlds = make_worlds(model, 2)
    common = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 6, "do_sample": False}
    for loop in (diverse_beams(2, 0.5), diverse_beams(4, 0.0)):
        ours = focused_generate(model, worlds, 3.0, 0.9, custom_generate=loop, **common)
        assert torch.equal(ours, reference(model, worlds, 3.0, 0.9, custom_generate=loop, **common))
    one = focused_generate(model, worlds, 3.0, 0.9, custom_generate=diverse_beams(1, 0.0), **common)
    assert torch.equal(one, focused_generate(model, worlds, 3.0, 0.9, **common))


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_shrinking_beams(models, name):
    model = models[name]
    worlds = make_worlds(model, 3)
    options = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 8, "do_sample": False}
    options["custom_generate"] = shrinking_beams(2)
    ours = focused_generate(model, worlds, 2.0, 0.9, **options)
    assert torch.equal(ours, reference(model, worlds, 2.0, 0.9, **options))


@pytest.mark.parametrize("name", ["bart", "gpt2"])
def test_more_worlds_than_rows(models, name):
    worlds = make_worlds(models[name], 1, n_worlds=20)
    for way in (BEAMS, {"do_sample": False}):
        options = {"max_new_tokens": 6, **way}
        ours = focused_generate(models[name], worlds, 3.0, 0.9, **options)
        assert torch.equal(ours, reference(models[name], worlds, 3.0, 0.9, **options))


def test_rows_are_worked_on_in_blocks(models, monkeypatch):
    worlds = make_worlds(models["gpt2"], 3)
    options = {"max_new_tokens": 5, "return_dict_in_generate": True, "output_scores": True, **BEAMS}
    whole = focused_generate(models["gpt2"], worlds, 3.0, 0.9, **options)
    monkeypatch.setattr("empatheia_research.decoding.focus._IN_CACHE", 2 * 2 * VOCABULARY)  # two rows of nine
    blocks = focused_generate(models["gpt2"], worlds, 3.0, 0.9, **options)
    assert torch.equal(blocks.sequences, whole.sequences)
    torch.testing.assert_close(torch.stack(blocks.scores), torch.stack(whole.scores))


def test_inputs_of_other_types(models):
    for model in (models["bart"], models["gpt2"]):
        worlds = make_worlds(model, 2)
        options = {"max_new_tokens": 4, "do_sample": False}
        expected = focused_generate(model, worlds, 3.0, 0.9, **options)
        for dtype in (torch.bool, torch.float32, torch.int32):
            mask = worlds.inputs["attention_mask"].to(dtype)
            other = Worlds({"input_ids": worlds.inputs["input_ids"].int(), "attention_mask": mask}, 3)
            assert torch.equal(focused_generate(model, other, 3.0, 0.9, **options), expected)


def test_an_empty_context(models):
    rows = [[5, 6, 7], [5, 9, 7], [5, 6, 8, 8], [], [], [4]]
    with pytest.raises(DecodingError, match=r"rows \[3, 4\] are empty"):
        focused_generate(models["gpt2"], Worlds(pad(rows, left=True), 3))
    for name in ("bart", "t5"):
        options = {"max_new_tokens": 5, "num_beams": 2, "return_dict_in_generate": True, "output_scores": True}
        both = focused_generate(models[name], Worlds(pad(rows, left=False), 3), **options)
        alone = focused_generate(models[name], Worlds(pad(rows[:3], left=False), 3), **options)
        assert not torch.stack(both.scores).isnan().any()
        width = alone.sequences.shape[1]
        assert torch.equal(both.sequences[0, :width], alone.sequences[0])


def test_what_is_beyond_the_tables_is_told(models):
    long = [[5] * 70, [5] * 69 + [6], [7] * 70]
    with pytest.raises(DecodingError, match=r"longest context has 70 pieces.*'max_position_embeddings': 64"):
        focused_generate(models["bart"], Worlds(pad(long, left=False), 3))
    with pytest.raises(DecodingError, match=r"70 pieces"):
        focused_score(models["gpt2"], Worlds(pad(long, left=True), 3), torch.tensor([[5]]))
    with pytest.raises(DecodingError, match=r"highest id is 99.*'vocab_size': 40"):
        focused_generate(models["t5"], Worlds(pad([[5], [99]], left=False), 2))


def test_inputs_as_wide_as_the_context_are_not_cut():
    ids = torch.tensor([[5, 6, 0, 0], [5, 6, 7, 8]])
    inputs = {"input_ids": ids, "attention_mask": ids.ne(0).long(), "role_ids": ids.ne(0).long()}
    assert Worlds(inputs, 2).true()["role_ids"].shape == (1, 2)
    probabilities = torch.rand(2, 4)
    kept = Worlds({**inputs, "probabilities": probabilities}, 2).true()
    assert torch.equal(kept["probabilities"], probabilities[:1]) and kept["input_ids"].shape == (1, 4)


def test_logits_that_are_not_as_many_as_the_configuration_says():
    model = make_model("gpt2")
    worlds = make_worlds(model, 2)
    labels = torch.tensor([[5, 6, 2], [39, 2, -100]])
    expected = focused_score(model, worlds, labels)
    model.config.vocab_size = 7
    torch.testing.assert_close(focused_score(model, worlds, labels).log_s1, expected.log_s1)


def test_pieces_no_world_allows():
    model = make_model("bart")
    worlds = make_worlds(model, 3)
    options = {"max_new_tokens": 5, "return_dict_in_generate": True, "output_scores": True, **BEAMS}
    model.final_logits_bias[0, 20:] = -1e4
    expected = focused_generate(model, worlds, 3.0, 0.9, **options)
    model.final_logits_bias[0, 20:] = -torch.inf
    found = focused_generate(model, worlds, 3.0, 0.9, **options)
    assert torch.equal(found.sequences, expected.sequences)
    torch.testing.assert_close(found.sequences_scores, expected.sequences_scores)
    forced = focused_generate(model, worlds, 3.0, 0.9, forced_bos_token_id=30, do_sample=False, max_new_tokens=3)
    assert forced[:, 1].tolist() == [30] * 3


def test_a_listener_who_never_learns_does_not_hear_what_is_forbidden():
    worlds = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]).log()
    even = torch.tensor([0.5, 0.5]).log()
    torch.testing.assert_close(log_speaker(worlds, even, 6.0, 0.0).exp(), worlds[0].exp())


def test_other_threads_use_the_model_meanwhile(models):
    model = models["bart"]
    worlds = make_worlds(model, 2)

    class Elsewhere(LogitsProcessor):
        def __call__(self, input_ids, scores):
            thread = Thread(target=lambda: model(input_ids=torch.tensor([[9, 9], [4, 5]])))
            thread.start()
            thread.join()
            return scores

    options = {"max_new_tokens": 5, "do_sample": False}
    ours = focused_generate(model, worlds, 3.0, 0.9, logits_processor=LogitsProcessorList([Elsewhere()]), **options)
    assert torch.equal(ours, focused_generate(model, worlds, 3.0, 0.9, **options))


def test_one_processor_for_one_reply(models):
    model = models["gpt2"]
    worlds = make_worlds(model, 1)
    focus = FocusProcessor(model, worlds)
    with focus:
        model.generate(**worlds.true(), logits_processor=[focus], max_new_tokens=2)
    with pytest.raises(DecodingError, match="made for one"), focus:
        pass


@pytest.mark.parametrize(
    "options", [{"guidance_scale": 2.0}, {"generation_config": GenerationConfig(guidance_scale=2)}]
)
def test_a_second_reading_of_the_context_is_refused(models, options):
    with pytest.raises(DecodingError, match="guidance_scale: focus needs one piece"):
        focused_generate(models["gpt2"], make_worlds(models["gpt2"], 1), **options)


def test_the_reference_notices_a_difference(models):
    """The comparisons above would not pass whatever one compares."""
    model = models["bart"]
    worlds = make_worlds(model, 3)
    processor = Reference(model, worlds, 3.0, 0.9)
    other = model.generate(**worlds.true(), logits_processor=[processor], max_new_tokens=6, do_sample=False)
    assert not torch.equal(other, focused_generate(model, worlds, 0.0, 0.9, max_new_tokens=6, do_sample=False))
