"""Conversations are encoded once for each model, whoever asks; what is not sure is asked again."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from empatheia.errors import CheckpointError
from empatheia.listener import FocusedListener, Listener
from empatheia.records.dialogue import Dialogue, Example
from empatheia_research.checkpoints import contexts as home
from empatheia_research.checkpoints.contexts import N_KEPT, ContextReader
from empatheia_research.checkpoints.open import open_model
from empatheia_research.decoding.distractors import GivenDistractors
from empatheia_research.text.collation import Layout
from empatheia_research.voices.responder_listener import ResponderListener

TEXT = "I lost my grandmother last week."
OTHERS = ("I am very proud of my daughter.", "My sister passed the exam today.")


@pytest.fixture
def encoded(monkeypatch) -> Counter:
    """How often each context was encoded."""
    counts: Counter = Counter()
    real = home.encode_examples

    def counting(examples, *args, **options):
        counts.update(example.context for example in examples)
        return real(examples, *args, **options)

    monkeypatch.setattr(home, "encode_examples", counting)
    return counts


def test_a_five_step_reply_encodes_each_world_once(tiny_model, encoded):
    opened = ResponderListener(open_model(tiny_model).reader)
    ways = [{"max_new_tokens": 6}, {"strategy": "beam", "n": 2, "max_new_tokens": 6}]
    own = FocusedListener(
        {"express": {"decoding": ways}},
        voices=[opened],
        reasoner=opened,
        distractors={"given": GivenDistractors(OTHERS)},
    )
    why = own.respond(TEXT, focus="grandmother", explain=True, care=False)
    assert len(why.worlds) == 3 and any("focus" in one.decoding for one in why.candidates)
    assert set(encoded.values()) == {1}, "the context and two distractors, for analysis, writing and ranking alike"
    assert {turns[-1].text for turns in encoded} == {TEXT, *OTHERS}


def test_what_is_kept_is_bounded_and_equal_to_what_is_made_anew(tiny_model, encoded):
    reader = open_model(tiny_model).reader.contexts
    examples = [Example(Dialogue.of(f"I lost {i} keys.").turns, None) for i in range(N_KEPT + 5)]
    items = reader.encode([*examples, examples[0]])
    assert items[0] is items[-1] and max(encoded.values()) == 1
    assert reader.encode(examples[-3:]) == reader.pieces(examples[-3:])
    reader.encode(examples[:1])
    assert encoded[examples[0].context] == 2  # the oldest were let go
    again = ContextReader(reader.network, reader.tokenizer, Layout(), reader.side_inputs)
    for name, tensor in reader.tensors(items[:3]).items():
        assert torch.equal(tensor, again.tensors(again.encode(examples[:3]))[name]), name


def test_a_source_that_was_not_there_is_asked_again(tiny_model):
    class Absent:
        features = ()
        asked = 0

        def add(self, examples, items):
            self.asked += len(items)
            for item in items:
                item.extra["doubts"] = ["the source is not there"]

    opened, side = open_model(tiny_model), Absent()
    reader = ContextReader(opened.network, opened.tokenizer, Layout(), [side])
    for _ in range(2):
        reader.encode([Example(Dialogue.of(TEXT).turns, None)])
    assert side.asked == 2


def test_an_opened_model_reads_as_its_listener_does(tiny_model, tmp_path):
    opened, listener = open_model(tiny_model), Listener.load(tiny_model)
    assert (opened.folder, opened.manifest) == (tiny_model, listener.manifest)
    assert len(opened.fingerprint) == 16 and not opened.network.training
    talk = Dialogue.of("Hello.", "Hi!", TEXT)
    ours = opened.reader.contexts([talk])
    theirs = listener.reader.contexts([talk])
    assert set(ours) == set(opened.reader.contexts.features)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    with pytest.raises(CheckpointError, match=r"no empatheia\.json|not a complete model folder"):
        open_model(tmp_path)


def test_causes_of_a_turn_too_long_to_read_stand_where_its_words_do(tiny_model):
    text = "Well then. " * 2000 + "My dog ran away in the park today."
    found = Listener.load(tiny_model).analyze(text)
    starts = {word.start for word in found.newest.words}
    assert min(starts) > len(text) // 2 and found.newest.causes
    assert {span.start for span in found.newest.causes} <= starts
