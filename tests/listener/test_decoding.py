"""Settings of the writing that keep a reply from going round in circles, and what a caller may set."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from empatheia.errors import DecodingError
from empatheia.listener import Decoding
from empatheia.listener.steps.settings import DecodingSettings, check_settings
from empatheia.text.inputs import prepare
from empatheia_research.decoding.strategies import OfReply

TEXT = "I lost my grandmother last week and I keep her scarf on my desk."


def pieces(listener, **settings) -> list[int]:
    inputs = listener.reader.encode([prepare(TEXT)])
    decoding = Decoding(max_new_tokens=40, **settings)
    (row,) = listener.generate(inputs, listener.reader.tensors(inputs), decoding).tolist()
    return row[1:]


@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample"])
def test_no_run_of_pieces_comes_twice(listener, strategy):
    row = pieces(listener, strategy=strategy, no_repeat_ngram_size=2)
    runs = list(pairwise(row))
    assert len(row) > 10 and len(set(runs)) == len(runs)


def test_pieces_that_were_said_become_less_probable(listener):
    plain, penalised = pieces(listener), pieces(listener, repetition_penalty=5.0)
    assert len(set(plain)) < len(plain)  # random weights go round in circles
    assert len(set(penalised)) / len(penalised) > len(set(plain)) / len(plain)


def test_a_small_share_of_the_probability_is_the_most_probable_piece(listener):
    assert pieces(listener, strategy="sample", top_k=0, top_p=1e-6) == pieces(listener)
    assert pieces(listener, strategy="sample", top_k=0) != pieces(listener)


def test_the_prompt_does_not_count_as_said():
    seen = []

    def inner(input_ids, scores):
        seen.append(input_ids.tolist())
        return scores + 1

    processor = OfReply(inner)  # pyright: ignore[reportArgumentType]
    scores = torch.zeros(1, 3)
    assert torch.equal(processor(torch.tensor([[7, 8]]), scores), scores)
    assert torch.equal(processor(torch.tensor([[7, 8, 1]]), scores), scores + 1) and seen == [[[1]]]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"top_p": 0}, "top_p is 0; accepted: above 0 up to 1"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size is -1; accepted: a whole number from 0 to 64"),
        ({"no_repeat_ngram_size": 2.0}, "no_repeat_ngram_size is 2.0"),
    ],
)
def test_what_is_refused(given, told):
    with pytest.raises(DecodingError, match=told):
        Decoding(**given)


def test_only_what_had_a_say_is_told():
    assert Decoding().to_dict() == {"strategy": "greedy", "max_new_tokens": 60}
    assert Decoding(top_p=0.5, no_repeat_ngram_size=0).to_dict() == {"strategy": "greedy", "max_new_tokens": 60}
    told = Decoding(strategy="sample", top_p=0.5, no_repeat_ngram_size=3, repetition_penalty=1.2).to_dict()
    assert (told["top_p"], told["no_repeat_ngram_size"], told["repetition_penalty"]) == (0.5, 3, 1.2)


def test_a_listener_of_five_steps_takes_them_too():
    tree = {"express": {"decoding": {"strategy": "sample", "top_p": 0.8, "no_repeat_ngram_size": 3}}}
    (way,) = check_settings(tree).express.decoding
    assert way.decoding().to_dict()["top_p"] == 0.8 and way.decoding().no_repeat_ngram_size == 3
    assert set(Decoding.__dataclass_fields__) - {"label"} == set(DecodingSettings.model_fields) - {"n"}


def test_on_the_command_line(cli, tiny_model):
    given = ("no_repeat_ngram_size=2", "repetition_penalty=1.5", "top_p=0.7")
    options = ("--strategy", "sample", *(word for one in given for word in ("--set", f"express.decoding.{one}")))
    done = cli("respond", TEXT, "--model", str(tiny_model), "--json", *options)
    assert done.code == 0 and '"no_repeat_ngram_size": 2' in done.out and '"top_p": 0.7' in done.out, done.err
    done = cli("chat", "--model", str(tiny_model), *options, stdin=TEXT)
    assert done.code == 0, done.err
    done = cli("respond", TEXT, "--model", str(tiny_model), "--set", "express.decoding.top_p=3")
    assert done.code == 2 and "top_p" in done.err
