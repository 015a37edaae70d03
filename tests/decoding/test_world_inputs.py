"""Conversations and distractors as model inputs: our responders with their side inputs, a Listener's reader, any
Hugging Face tokenizer."""

import logging

import pytest
import torch
from tiny_focus import byte_tokenizer, own_tokenizer

from empatheia.analysis.targets import GivenTargets
from empatheia.errors import DecodingError
from empatheia.records.dialogue import Dialogue
from empatheia.text.inputs import prepare
from empatheia_research.checkpoints.contexts import ContextReader
from empatheia_research.checkpoints.reader import Reader
from empatheia_research.decoding.distractors import GivenDistractors
from empatheia_research.decoding.focus import focused_generate
from empatheia_research.decoding.given_replies import focused_score
from empatheia_research.decoding.world_inputs import stacked_worlds, told_apart, world_texts, worlds_of
from empatheia_research.responders import RESPONDERS
from empatheia_research.text.collation import Layout

DIALOGUES = [
    Dialogue.of("Hello.", "How was the day?", "My dog ate the cake.", id="a"),
    Dialogue.of("I lost my keys and my phone, and then the train was late and I was sad!", id="b"),
]
WORDS = [("dog", ["cat", "brother"]), ("keys", ["cake", "job"])]


@pytest.fixture(scope="module")
def contrasts():
    out = []
    for dialogue, (word, others) in zip(DIALOGUES, WORDS, strict=True):
        out += GivenDistractors(words={word: others}).make(GivenTargets(word).find([dialogue]))
    return out


class Seen:
    """A side input that reads the text, and what is filed under an id."""

    features = ("seen",)
    filed = {"a": 7}

    def __init__(self):
        self.texts = []

    def add(self, examples, items):
        for example, item in zip(examples, items, strict=True):
            text = example.context[-1].text
            self.texts.append(text)
            item.extra["seen"] = self.filed.get(example.dialogue_id, len(text))

    def collate(self, items, pad_id, width):
        return {"seen": torch.tensor([item.extra["seen"] for item in items])}


class Network:
    features = ("input_ids", "attention_mask", "role_ids", "seen", "labels", "emotion_labels")
    gold_features = frozenset({"labels", "emotion_labels"})
    device = "cpu"


def test_side_inputs_read_the_altered_text(contrasts):
    side = Seen()
    contexts = ContextReader(Network, own_tokenizer(), Layout(), [side])
    worlds = worlds_of(DIALOGUES, contrasts, contexts)
    assert side.texts == [text for contrast in contrasts for text in contrast.texts]
    assert set(worlds.inputs) == {"input_ids", "attention_mask", "role_ids", "seen"}
    assert (worlds.n_examples, worlds.n_worlds) == (2, 3)
    assert worlds.inputs["seen"].tolist() == [7, *map(len, side.texts[1:])]  # filed answers are of the true text alone
    assert told_apart(worlds).all()
    for i, dialogue in enumerate(DIALOGUES):
        alone = contexts([dialogue])["input_ids"][0]
        assert torch.equal(worlds.true()["input_ids"][i][: len(alone)], alone)
    replies = ["My dog!", "The cake for my sister's party and the keys"]
    labels = contexts.labels(replies)
    for row, pieces in zip(labels.tolist(), own_tokenizer().encode_batch(replies), strict=True):
        n = len(pieces.ids)
        assert row[: n + 1] == [*pieces.ids, own_tokenizer().eos_id] and set(row[n + 1 :]) <= {-100}
    assert labels[0, -1] == -100


def test_without_distractors_it_is_plain_decoding(tiny_model, contrasts):
    reader = _reader(tiny_model)

    def encode(dialogues):
        return reader.tensors(reader.encode([prepare(dialogue) for dialogue in dialogues]))

    mixed = worlds_of(DIALOGUES, [contrasts[0], None], encode)
    assert told_apart(mixed).tolist() == [[True, True], [False, False]]
    assert set(mixed.inputs) == set(reader.contexts.features)
    options = {"num_beams": 2, "max_new_tokens": 6, "do_sample": False}
    focused = focused_generate(reader.network, mixed, 6.0, 0.9, **options)
    plain = reader.network.generate(**mixed.true(), **options)
    assert focused[1].tolist()[: plain.shape[1]] == plain[1].tolist()[: focused.shape[1]]
    labels = ContextReader(reader.network, reader.tokenizer, reader.contexts.layout).labels(["I see.", "Oh"])
    assert focused_score(reader.network, mixed, labels).log_belief[1, -1].exp().tolist() == pytest.approx([1 / 3] * 3)


def test_the_contexts_of_training_are_those_of_the_listener(tiny_model, contrasts):
    reader = _reader(tiny_model)
    ours = worlds_of(DIALOGUES, contrasts, ContextReader(reader.network, reader.tokenizer, reader.contexts.layout))
    theirs = worlds_of(DIALOGUES, contrasts, lambda ds: reader.tensors(reader.encode([prepare(d) for d in ds])))
    assert set(ours.inputs) == set(theirs.inputs)
    assert all(torch.equal(tensor, theirs.inputs[name]) for name, tensor in ours.inputs.items())


def _reader(folder):
    from empatheia.listener import Listener

    found = [value for value in vars(Listener.load(folder)).values() if isinstance(value, Reader)]
    found[0].network.eval()
    return found[0]


def test_unseen_differences_are_told(contrasts, caplog):
    contexts = ContextReader(Network, own_tokenizer(), Layout(max_source=8), [Seen()])
    with caplog.at_level(logging.WARNING, logger="empatheia"):
        worlds = worlds_of(DIALOGUES, contrasts, contexts)
    assert not told_apart(worlds)[1].any()
    assert "2 of 4 distractors read like the true context" in caplog.text


def test_hugging_face_tokenizers(contrasts):
    tokenizer = byte_tokenizer()
    texts = world_texts(DIALOGUES, contrasts, max_turns=2)
    assert texts[0] == ["How was the day?\n" + text for text in contrasts[0].texts]
    worlds = stacked_worlds(DIALOGUES, contrasts, tokenizer, max_turns=2)
    for i, text in enumerate(text for row in texts for text in row):
        kept = worlds.inputs["input_ids"][i][worlds.inputs["attention_mask"][i].bool()]
        assert tokenizer.decode(kept, skip_special_tokens=True) == text
    with pytest.raises(DecodingError, match="truncation_side"):
        stacked_worlds(DIALOGUES, contrasts, tokenizer, truncation=True, max_length=12)
    tokenizer.truncation_side = "left"
    assert told_apart(stacked_worlds(DIALOGUES[:1], contrasts[:1], tokenizer, truncation=True, max_length=12)).all()


def test_bad_input(contrasts):
    contexts = ContextReader(Network, own_tokenizer(), Layout(), [Seen()])
    with pytest.raises(DecodingError, match="2 conversations and 1 contrasts"):
        worlds_of(DIALOGUES, contrasts[:1], contexts)
    with pytest.raises(DecodingError, match="have none"):
        worlds_of(DIALOGUES, [None, None], contexts)
    two = GivenDistractors(words={"dog": ["cat"]}).make(GivenTargets("dog").find(DIALOGUES[:1]), 2)
    with pytest.raises(DecodingError, match=r"have \[2, 3\] worlds"):
        worlds_of(DIALOGUES, [*two, contrasts[1]], contexts)
    with pytest.raises(DecodingError, match="does not hold the turn"):
        worlds_of(DIALOGUES, contrasts[::-1], contexts)


def test_responders_can_be_read(contrasts):
    """A system of the registry, from features to a focused reply."""
    tokenizer = own_tokenizer()
    torch.manual_seed(0)
    network_class = RESPONDERS.get("transformer")
    config = network_class.config_class(
        vocab_size=len(tokenizer), width=24, n_encoder_layers=1, n_decoder_layers=1, n_heads=2, ffn_width=48,
        pad_token_id=tokenizer.pad_id, bos_token_id=tokenizer.bos_id, eos_token_id=tokenizer.eos_id,
    )  # fmt: skip
    network = network_class(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    worlds = worlds_of(DIALOGUES, contrasts, ContextReader(network, tokenizer, Layout()))
    ids = focused_generate(network, worlds, 6.0, 0.9, max_new_tokens=5, do_sample=False)
    assert ids.shape[0] == 2
