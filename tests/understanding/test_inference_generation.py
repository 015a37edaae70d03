"""Generation: COMET's prompt, five beams whatever the checkpoint says, the same alone and in a batch."""

from __future__ import annotations

import json

import pytest
import torch
from tiny_inferences import pieces, save_encoder, save_seq2seq

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.taxonomy import RELATIONS
from empatheia_research.understanding.inferences.generation import GeneratedInferences
from empatheia_research.understanding.inferences.turns import open_provider

HEADS = ["i lost my job", "my dog died . i was so sad", "", "happy", "i lost my job"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_seq2seq(tmp_path_factory.mktemp("comet") / "tiny")


@pytest.fixture(scope="module")
def provider(folder):
    return GeneratedInferences.load(folder, max_new_tokens=6)


def test_prompt(provider):
    """Check 23: one blank each."""
    assert provider.prompt_of("i lost my job", "xReact") == "i lost my job xReact [GEN]"
    plain = GeneratedInferences(provider.model, provider.tokenizer, prompt="{head} {relation}")
    assert plain.prompt_of(" i lost  my job ", "xReact") == "i lost my job xReact"
    for wrong in ("{head}", "{relation} {x}", "{head} {relation} {"):
        with pytest.raises(ConfigError, match="must hold"):
            GeneratedInferences(provider.model, provider.tokenizer, prompt=wrong)


def test_the_tokenizer_is_not_changed(provider):
    assert len(provider.tokenizer) == len(pieces())
    assert "[GEN]" not in provider.tokenizer.get_vocab()


def test_answers(provider):
    answers = provider.infer(HEADS, ["xReact", "Causes"], n=5)
    assert [list(answer) for answer in answers] == [["xReact", "Causes"]] * len(HEADS)
    assert answers[0] == answers[4]
    assert answers[2]["xReact"].absent == "nothing to ask about"
    for answer in (answers[0], answers[1], answers[3]):
        for tails in answer.values():
            assert 1 <= len(tails.texts) <= 5 and len(set(tails.texts)) == len(tails.texts)
            assert list(tails.scores) == sorted(tails.scores, reverse=True) and tails.scores[0] <= 0
            assert all(text == text.strip().lower() and len(text.split()) <= 6 for text in tails.texts)


def test_the_search_is_ours(provider):
    """Five beams and five sequences, no sampling, no least length: the checkpoint says 12, 3 beams, sampling."""
    assert provider.model.generation_config.min_length == 12
    first = provider.infer(HEADS, ["xReact"])
    assert first == provider.infer(HEADS, ["xReact"])
    ((texts, scores),) = provider._write([provider._pieces("i lost my job", "xReact")], 5)
    assert len(texts) == len(scores) == 5
    by_hand = provider.model.generate(
        **provider.tokenizer("i lost my job xReact [GEN]", return_tensors="pt"),
        num_beams=5,
        num_return_sequences=5,
        min_length=0,
        max_new_tokens=6,
        do_sample=False,
    )
    assert provider.tokenizer.batch_decode(by_hand, skip_special_tokens=True) == texts


def test_alone_as_among_others(provider):
    together = provider.infer(HEADS, RELATIONS[:4], batch_size=7)
    for head, answer in zip(HEADS, together, strict=True):
        assert provider.infer([head], RELATIONS[:4], batch_size=2)[0] == answer


def test_every_prompt_alone(provider):
    """Nothing of the batch is left in the numbers."""
    together = provider.infer(HEADS, RELATIONS[:4], batch_size=1)
    assert [provider.infer([head], RELATIONS[:4], batch_size=1)[0] for head in HEADS] == together


def test_greedy(folder):
    """The form behind the published table: no [GEN], one tail, and no score where none is computed."""
    greedy = GeneratedInferences.load(folder, prompt="{head} {relation}", beams=1, max_new_tokens=6)
    (answer,) = greedy.infer(["i lost my job"], ["xReact"], n=1)
    assert len(answer["xReact"].texts) == 1 and answer["xReact"].scores == ()


def test_more_than_the_beams(provider):
    (answer,) = provider.infer(["my dog died"], ["xWant"], n=8)
    assert 5 < len(answer["xWant"].texts) <= 8


def test_long_heads_keep_the_relation(provider):
    head = " ".join(["all day long"] * 60 + ["sad"])
    ids = provider._pieces(head, "xWant")
    assert len(ids) <= 64
    assert provider.tokenizer.decode(ids, skip_special_tokens=True).split()[-2:] == ["sad", "xWant"]
    assert provider.infer([head], ["xWant"])[0]["xWant"].texts


def test_relations_the_tokenizer_lacks_are_absent(tmp_path):
    provider = GeneratedInferences.load(save_seq2seq(tmp_path / "six", ["xReact", "xWant"]), max_new_tokens=3)
    assert provider.relations() == ("xReact", "xWant")
    (answer,) = provider.infer(["i lost my job"], ["xReact", "Desires"])
    assert answer["Desires"].absent == "relation not covered" and answer["xReact"].texts
    free = GeneratedInferences.load(save_seq2seq(tmp_path / "none", []), max_new_tokens=3)
    assert free.relations() == RELATIONS


def test_fingerprint(provider, folder, tmp_path):
    """Check 22: weights and prompt change it; loading again does not."""
    same = GeneratedInferences.load(folder, max_new_tokens=6)
    assert same.fingerprint() == provider.fingerprint()
    others = [
        GeneratedInferences.load(folder, max_new_tokens=6, prompt="{head} {relation}"),
        GeneratedInferences.load(folder, max_new_tokens=6, beams=4),
        GeneratedInferences.load(save_seq2seq(tmp_path / "other", seed=1), max_new_tokens=6),
    ]
    assert len({provider.fingerprint(), *(other.fingerprint() for other in others)}) == 4


def test_the_folder_may_name_prompt_and_source(tmp_path):
    folder = save_seq2seq(tmp_path / "mine")
    (folder / "empatheia.json").write_text(json.dumps({"prompt": "{head} {relation}", "source": "ATOMIC, CC BY 4.0"}))
    provider = open_provider(folder)
    assert (provider.prompt, provider.source, provider.name) == ("{head} {relation}", "ATOMIC, CC BY 4.0", "mine")


def test_folders_that_cannot_be_used(tmp_path, folder):
    with pytest.raises(CheckpointError, match="not an encoder-decoder"):
        open_provider(save_encoder(tmp_path / "encoder"))
    broken = save_seq2seq(tmp_path / "broken")
    (broken / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"cannot read an encoder-decoder .*broken"):
        open_provider(broken)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match="neither an index"):
        open_provider(tmp_path / "empty")
    with pytest.raises(MissingResourceError, match="--build-index atomic"):
        open_provider(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="no setting 'minimum'"):
        open_provider(folder, minimum=0.3)
    with pytest.raises(ConfigError, match="beams is 0"):
        open_provider(folder, beams=0)


def test_errors(provider):
    with pytest.raises(ConfigError, match=r"unknown relation 'xReacts'.*'xReact'"):
        provider.infer(["a"], ["xReacts"])
    with pytest.raises(ConfigError, match="n is 0"):
        provider.infer(["a"], ["xReact"], n=0)
    assert provider.infer([], ["xReact"]) == []


def test_gradients_are_off(provider):
    assert not provider.model.training
    with torch.enable_grad():
        provider.infer(["happy"], ["xReact"])
    assert all(p.grad is None for p in provider.model.parameters())
