"""The listener: analysis, replies, streams, conversations; a batch answers as its members alone."""

import random
import subprocess
import sys

import pytest

import empatheia
from empatheia.errors import CheckpointError, DataError, DecodingError
from empatheia.listener import Decoding, Listener
from empatheia.records.dialogue import Dialogue, Turn
from empatheia.taxonomy import EMOTIONS
from empatheia.text.inputs import MAX_CHARACTERS, prepare, readable

TEXT = "I lost my grandmother last week and I keep her scarf on my desk."
MIXED = [
    TEXT,
    "Hi.",
    Dialogue.of("We moved to a new town.", "Do you like it?", "I don't know anybody here yet."),
    "I was so angry when the dog ate my dinner! " * 12,
    "It's funny; she's proud, isn't she?",
    Dialogue.of(*["I hope so.", "Were you close?"] * 40, "Yes, we were."),
]


def test_emotions_are_a_distribution_in_taxonomy_order(listener):
    analysis = listener.analyze(TEXT)
    assert tuple(analysis.newest.emotions) == EMOTIONS
    assert sum(analysis.newest.emotions.values()) == pytest.approx(1.0, abs=1e-9)
    assert analysis.newest.emotion.label == max(analysis.newest.emotions, key=analysis.newest.emotions.get)
    assert analysis.by["emotion"] == "tiny"


def test_words_and_causes_index_the_text(tiny_model, monkeypatch):
    listener = Listener.load(tiny_model)
    dialogue = Dialogue.of("We moved to a new town.", "Do you like it?", "I don't know anybody, here.")
    words = listener.analyze(dialogue).newest.words
    assert [word.of(dialogue.turns) for word in words if word.turn == 2] == [
        "I",
        "do",
        "n't",
        "know",
        "anybody",
        ",",
        "here",
        ".",
    ]
    middle = sorted(word.score for word in words)[len(words) // 2]
    object.__setattr__(listener.manifest, "cause_threshold", middle)
    analysis = listener.analyze(dialogue)
    assert analysis.newest.causes
    scores = [span.score for span in analysis.newest.causes]
    assert scores == sorted(scores, reverse=True)
    for record in analysis.to_dict()["causes"]:
        text = dialogue.turns[record["turn"]].text[record["start"] : record["end"]]
        assert text == record["text"] and text[0].isalnum() and text[-1].isalnum()


def test_a_batch_is_its_members_in_order(listener):
    items = MIXED * 3
    random.Random(4).shuffle(items)
    together = listener.analyze(items, batch_size=5)
    for item, analysis in zip(items, together, strict=True):
        alone = listener.analyze(item)
        assert analysis.dialogue.turns == alone.dialogue.turns
        assert analysis.newest.emotions == pytest.approx(alone.newest.emotions, abs=1e-5)
        assert [(w.turn, w.start, w.end) for w in analysis.newest.words] == [
            (w.turn, w.start, w.end) for w in alone.newest.words
        ]
        assert [w.score for w in analysis.newest.words] == pytest.approx(
            [w.score for w in alone.newest.words], abs=1e-5
        )
        assert analysis.unsure == alone.unsure


@pytest.mark.parametrize(
    "settings", [{}, {"strategy": "beam", "num_beams": 3}, {"strategy": "sample", "seed": 7}], ids=str
)
def test_a_batch_answers_as_its_members_alone(listener, settings):
    together = listener.respond(MIXED, max_new_tokens=12, **settings)
    assert [reply.text for reply in together] == [
        listener.respond(item, max_new_tokens=12, **settings).text for item in MIXED
    ]
    assert together[0].analysis.newest.emotions == pytest.approx(listener.analyze(MIXED[0]).newest.emotions, abs=1e-5)


def test_progress_counts_every_input(listener):
    seen = []
    listener.analyze(MIXED, batch_size=2, progress=seen.append)
    assert sum(seen) == len(MIXED)
    assert listener.analyze([]) == [] and listener.respond([]) == []


def test_seeds_and_settings(listener):
    def said(**settings):
        return listener.respond(TEXT, strategy="sample", max_new_tokens=15, **settings).text

    assert said(seed=1) == said(seed=1)
    assert len({said(seed=seed) for seed in range(6)}) > 1
    assert said(seed=1, top_k=1) == said(seed=2, top_k=1) == listener.respond(TEXT, max_new_tokens=15).text
    reply = listener.respond(TEXT, strategy="sample", seed=3, max_new_tokens=5)
    assert reply.decoding == {
        "strategy": "sample", "top_k": 20, "temperature": 0.9, "seed": 3, "max_new_tokens": 5
    }  # fmt: skip
    assert listener.respond(TEXT).decoding == {"strategy": "greedy", "max_new_tokens": 60}


def test_sampling_follows_the_distribution():
    """Gumbel noise and arg max draw from the softmax: 4,000 seeds within four standard errors."""
    import torch

    from empatheia_research.decoding.strategies import RowNoise

    logits = torch.tensor([0.5, 2.0, -1.0, 1.0])
    n = 4000
    drawn = RowNoise(range(n))(None, logits.expand(n, 4)).argmax(-1).bincount(minlength=4) / n
    expected = logits.softmax(-1)
    assert ((drawn - expected).abs() <= 4 * (expected * (1 - expected) / n).sqrt()).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "beem"}, "Did you mean 'beam'"),
        ({"num_beam": 3}, "Did you mean 'num_beams'"),
        ({"num_beams": 0}, "num_beams is 0"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": 1, "decoding": Decoding()}, "not both"),
    ],
)
def test_wrong_settings(listener, settings, message):
    with pytest.raises(DecodingError, match=message):
        listener.respond(TEXT, **settings)


@pytest.mark.parametrize("strategy", ["greedy", "sample", "beam"])
def test_a_stream_gives_the_reply_piece_by_piece(listener, strategy):
    stream = listener.stream(TEXT, strategy=strategy, max_new_tokens=20, care=False)  # with care: by sentences
    assert stream.analysis.newest.emotions == pytest.approx(listener.analyze(TEXT).newest.emotions, abs=1e-5)
    assert stream.reply is None
    pieces = list(stream)
    whole = listener.respond(TEXT, strategy=strategy, max_new_tokens=20, care=False)
    assert stream.reply.text == whole.text and stream.reply.decoding == whole.decoding
    assert "".join(pieces) == whole.text
    assert (len(pieces) == 1) == (strategy == "beam" or " " not in whole.text.strip())


def test_a_stream_may_be_left_and_its_errors_reach_the_reader(listener, monkeypatch):
    for _ in listener.stream(TEXT, strategy="sample", max_new_tokens=1000):
        break

    def fail(*args, **kwargs):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(listener.network, "generate", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        list(listener.stream(TEXT))


def test_a_conversation_remembers(listener):
    conversation = listener.converse(max_new_tokens=6)
    first = conversation.say("I lost my dog.")
    assert conversation.dialogue.turns == (Turn("speaker", "I lost my dog."), Turn("listener", first.text))
    with pytest.raises(DataError):
        conversation.say("  ")
    assert len(conversation.dialogue.turns) == 2
    stream = conversation.stream("He was fourteen.")
    said = "".join(stream)
    assert len(conversation.dialogue.turns) == 4 and conversation.dialogue.turns[-1].text == stream.reply.text == said
    assert stream.analysis.dialogue.turns[:2] == conversation.dialogue.turns[:2]
    history = Dialogue("", conversation.dialogue.turns)
    assert listener.converse(history, max_new_tokens=6).say("Yes.").analysis.dialogue.turns[:4] == history.turns
    conversation.reset()
    assert conversation.dialogue.turns == ()


def test_replies_have_words_and_no_special_pieces(listener):
    for reply in listener.respond(MIXED, strategy="sample", max_new_tokens=20):
        assert reply.text.strip() and "[" not in reply.text


def test_long_input_is_cut_and_says_so(listener):
    text = "She passed the exam. " * 40_000
    analysis = listener.analyze(text)
    assert analysis.dialogue.turns[0].text == text
    assert any("long text" in reason and f"{len(text):,}" in reason for reason in analysis.unsure)
    last = analysis.newest.words[-1]
    assert (last.of(analysis.dialogue.turns), last.end) == (".", len(text.rstrip()))
    turns = [f"Turn {i}." for i in range(401)]
    analysis = listener.analyze(Dialogue.of(*turns))
    assert any("long conversation" in reason for reason in analysis.unsure)
    last = analysis.newest.words[-2]
    assert (last.turn, last.of(analysis.dialogue.turns)) == (400, "400")


@pytest.mark.parametrize("n", [1, 2, MAX_CHARACTERS - 1, MAX_CHARACTERS, MAX_CHARACTERS + 1, 3 * MAX_CHARACTERS])
def test_prepared_turns_keep_their_offsets(n):
    generator = random.Random(n)
    texts = ["".join(generator.choices("ab \t\x00é😀\u200b", k=n)) + "x" for _ in range(3)]
    ready = prepare(Dialogue.of(*texts))
    for index, turn in enumerate(ready.example.context):
        whole = readable(texts[index + ready.n_skipped])
        shift = ready.shift if index == len(ready.example.context) - 1 else 0
        assert whole.startswith(turn.text, shift) and len(turn.text) <= MAX_CHARACTERS
    assert len(ready.example.context) + ready.n_skipped == 3


def test_a_model_without_an_emotion_head_answers_and_says_so(tmp_path, tiny_model):
    import json
    import shutil

    import torch
    from transformers import GenerationConfig

    from empatheia_research.responders import RESPONDERS

    folder = shutil.copytree(tiny_model, tmp_path / "plain")
    network_class = RESPONDERS.get("transformer")
    old = Listener.load(tiny_model).network.config
    torch.manual_seed(1)
    network = network_class(
        network_class.config_class(
            vocab_size=old.vocab_size,
            width=16,
            n_encoder_layers=1,
            n_decoder_layers=1,
            n_heads=2,
            ffn_width=16,
        )
    )
    network.generation_config = GenerationConfig.from_pretrained(tiny_model)
    network.save_pretrained(folder)
    record = json.loads((folder / "empatheia.json").read_text())
    (folder / "empatheia.json").write_text(json.dumps(record | {"system": "transformer", "name": "plain"}))
    plain = Listener.load(folder)
    reply = plain.respond(TEXT, max_new_tokens=5)
    assert sum(reply.analysis.newest.emotions.values()) == pytest.approx(1)
    assert any("no emotion head" in reason for reason in reply.analysis.unsure)
    with pytest.raises(CheckpointError, match="only answers"):
        plain.analyze(TEXT)


def test_emotion_order_and_temperature_are_the_manifests(tiny_model, tiny_copy):
    import json

    record = json.loads((tiny_copy / "empatheia.json").read_text())
    turned = {"emotions": record["emotions"][::-1], "temperature": 2.0, "degraded": "trained for a minute"}
    (tiny_copy / "empatheia.json").write_text(json.dumps(record | turned))
    straight, other = Listener.load(tiny_model).analyze(TEXT), Listener.load(tiny_copy).analyze(TEXT)
    assert tuple(other.newest.emotions) == EMOTIONS
    assert other.emotion == EMOTIONS[31 - EMOTIONS.index(straight.emotion)]
    roots = [p**0.5 for p in reversed(straight.newest.emotions.values())]
    assert list(other.newest.emotions.values()) == pytest.approx([root / sum(roots) for root in roots], rel=1e-4)
    assert "a stand-in answered: trained for a minute" in other.unsure


def test_the_package_is_light_until_used():
    code = (
        "import sys, empatheia; assert 'torch' not in sys.modules;"
        "empatheia.Dialogue, empatheia.Turn, empatheia.EmpatheiaError, empatheia.__version__;"
        "assert 'torch' not in sys.modules and set(empatheia.__all__) <= set(dir(empatheia))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_works_in_three_lines(tiny_model, listener):
    model = str(tiny_model)
    assert empatheia.analyze(TEXT, model=model).newest.emotion.label == listener.analyze(TEXT).newest.emotion.label
    assert empatheia.respond([TEXT], model=model, max_new_tokens=3)[0].model == "tiny"
    assert empatheia.Listener is Listener
    with pytest.raises(AttributeError, match="nonsense"):
        empatheia.nonsense  # noqa: B018
