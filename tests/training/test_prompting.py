"""The language model's recipes, from the file to replies of the saved model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from empatheia.errors import CheckpointError, ConfigError, EndpointError
from empatheia.listener import LanguageListener, Listener
from empatheia_research.recipes.recipe import DecodingConfig, load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.training.language_model_card import package_language_model
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.prompt import PromptRun, PromptTask
from tiny_language_models import make_folder

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from chat_server import ChatServer

RECIPES = recipes_root() / "language_model"
FEW = ["data.train_limit=4", "data.valid_limit=2", "data.test_limit=2", "decoding.max_new_tokens=6"]


def recipe(name: str, *overrides: str):
    return load_recipe(RECIPES / f"{name}.yaml", size="smoke", overrides=[*FEW, *overrides])


@pytest.mark.parametrize("name", ["causal_lora", "seq2seq_lora"])
def test_a_tuned_model_trains_saves_measures_and_answers(name, tmp_path):
    status = run(recipe(name, "stages.tune.epochs=1"), tmp_path, show_progress=False)
    metrics = status.metrics["metrics"]
    assert status.state == "finished" and metrics["ppl_word"]["value"] > 1
    assert "family+eos" in metrics["ppl_word"]["signature"] and "bleu_nltk_4" in metrics
    listener = Listener.load(status.folder / "checkpoint")
    assert isinstance(listener, LanguageListener) and listener.manifest.licence == "MIT"
    assert isinstance(listener.respond("I lost my dog.", max_new_tokens=5).text, str)
    rows = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    assert rows and set(rows[0]) == {"id", "turn", "hyp", "ref", "reply"}
    again = PromptRun(status.folder).evaluate("test")
    assert again["ppl_word"]["value"] == pytest.approx(metrics["ppl_word"]["value"], rel=1e-6)
    assert again["bleu_nltk_2"] == metrics["bleu_nltk_2"]


def test_words_are_counted_as_for_the_other_systems(tmp_path):
    """The divisor of the perplexity is the one that RespondTask uses for the same replies."""
    from empatheia_research.training.tasks.respond import RespondTask

    task = PromptTask(recipe("zero_shot"), tmp_path)
    other = load_recipe(recipes_root() / "gao2021" / "transformer.yaml", size="smoke", overrides=FEW[:3])
    theirs = RespondTask(other, tmp_path / "other")
    ours = [item.n_target_words for item in task.encode("test")]
    assert ours == [item.n_target_words for item in theirs.encode(theirs.recipe.data, "test", with_extras=False)]


def test_the_analysis_is_shown_and_the_labels_are_not(tmp_path, tiny_model, monkeypatch):
    from dataclasses import replace

    from empatheia.taxonomy import EMOTIONS

    shown = PromptTask(recipe("conditioned", f"data.analyst={tiny_model}"), tmp_path)
    plain = PromptTask(recipe("zero_shot"), tmp_path)
    items = shown.encode("test")
    texts = [shown.reader.tokenizer.decode(item.prompt) for item in items]
    assert all("The speaker feels" in text for text in texts)
    assert all("The speaker feels" not in plain.reader.tokenizer.decode(i.prompt) for i in plain.encode("test"))
    relabelled = PromptTask(recipe("conditioned", f"data.analyst={tiny_model}"), tmp_path)
    true = relabelled.dialogues("test")
    swapped = [replace(d, emotion=EMOTIONS[(EMOTIONS.index(d.emotion) + 7) % 32], situation="x") for d in true]
    monkeypatch.setattr(relabelled, "dialogues", lambda split: swapped)
    assert [item.prompt for item in relabelled.encode("test")] == [item.prompt for item in items]


def test_a_pretrained_base_is_named_and_not_copied(tmp_path):
    base = make_folder(tmp_path / "base")
    made = run(
        recipe("causal_lora", f"model.base={base}", "model.base_config=null", "stages.tune.epochs=1"),
        tmp_path / "runs",
        show_progress=False,
    )
    checkpoint = made.folder / "checkpoint"
    assert (checkpoint / "model.safetensors").stat().st_size < (base / "model.safetensors").stat().st_size
    assert json.loads((checkpoint / "config.json").read_text())["base"] == str(base)
    listener = Listener.load(checkpoint)
    assert listener.manifest.licence == f"MIT; that of {base}"
    as_it_is = run(
        recipe("zero_shot", f"model.base={base}", "model.base_config=null"), tmp_path / "runs", show_progress=False
    )
    assert not (as_it_is.folder / "checkpoint" / "model.safetensors").exists()
    assert as_it_is.metrics["stages"] == {} and as_it_is.metrics["metrics"]["ppl_word"]["value"] > 1
    assert Listener.load(as_it_is.folder / "checkpoint").respond("Hi.", max_new_tokens=3).model


def test_a_served_model_is_measured_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.delenv("EMPATHEIA_API_KEY", raising=False)
    with ChatServer(lambda body: "I am so sorry to hear that.") as server:
        changes = ["model.form=endpoint", "model.llm=llm", f"model.endpoint={server.url}", "model.workers=1"]
        served = recipe("zero_shot", *changes, "model.base_config=null")
        server.failures = [None, None, 401]
        with pytest.raises(EndpointError, match="repeat the command to continue"):
            run(served, tmp_path, show_progress=False)
        n_before = len(server.requests)
        status = run(served, tmp_path, show_progress=False)
        metrics = status.metrics["metrics"]
        n_replies = metrics["decoding"]["replies"]
        assert len(server.requests) - n_before == n_replies - (n_before - 1)
        assert metrics["decoding"]["usage"]["answers"] == n_replies
        assert metrics["decoding"]["served"] == ["served-model"]
        assert "ppl_word" not in metrics and metrics["bleu_nltk_4"]["value"] is not None
        assert status.metrics["parameters"] == 0
        assert Listener.load(status.folder / "checkpoint").respond("Hi.").text == "I am so sorry to hear that."
        n_before = len(server.requests)
        again = PromptRun(status.folder).evaluate("test")
        assert len(server.requests) == n_before and again["bleu_nltk_4"] == metrics["bleu_nltk_4"]


def test_recipes_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="stages is missing or empty; task 'respond' needs at least one"):
        load_recipe(recipes_root() / "gao2021" / "soft.yaml", overrides=["stages=[]"])
    with pytest.raises(ConfigError, match=r"unknown key 'model\.bass'.*'base'"):
        PromptTask(recipe("zero_shot", "model.bass=x"), tmp_path)
    with pytest.raises(ConfigError, match="is for system language_model, not transformer"):
        PromptTask(recipe("zero_shot", "system=transformer"), tmp_path)
    with pytest.raises(ConfigError, match="cannot be trained; drop stages"):
        PromptTask(recipe("causal_lora", "model.form=endpoint", "model.llm=x"), tmp_path)
    with pytest.raises(ConfigError, match="'diverse_beam'; a language model accepts greedy, sample and beam"):
        PromptTask(recipe("zero_shot", "decoding.strategy=diverse_beam"), tmp_path)
    served = ("model.form=endpoint", "model.llm=x")
    for override, told in (
        ("strategy=beam", "accepts greedy and sample"),
        ("no_repeat_ngram_size=3", "leave them out"),
    ):
        with pytest.raises(ConfigError, match=told):
            PromptTask(recipe("zero_shot", *served, f"decoding.{override}"), tmp_path)
    with pytest.raises(ConfigError, match="takes no data of a stage"):
        task = PromptTask(recipe("causal_lora", "stages.tune.data.train_limit=1"), tmp_path)
        task.stage_data(task.recipe.stages[0])


def test_every_setting_of_decoding_is_passed_on():
    given = DecodingConfig(strategy="beam", num_beams=3, length_penalty=0.5, no_repeat_ngram_size=4, max_new_tokens=9)
    assert given.generate_settings() == {
        "max_new_tokens": 9, "do_sample": False, "num_beams": 3, "length_penalty": 0.5, "no_repeat_ngram_size": 4,
    }  # fmt: skip
    sampled = DecodingConfig(strategy="sample", top_k=7, top_p=0.5, temperature=2.0).generate_settings()
    assert (sampled["do_sample"], sampled["top_k"], sampled["top_p"], sampled["temperature"]) == (True, 7, 0.5, 2.0)


def test_a_tuned_model_is_packaged_without_its_base(tmp_path):
    from safetensors.torch import load_file

    base = make_folder(tmp_path / "base")
    told = recipe("causal_lora", f"model.base={base}", "model.base_config=null", "stages.tune.epochs=1")
    status = run(told, tmp_path / "runs", show_progress=False)
    card = package_language_model(status.folder, tmp_path / "voice", "tiny-voice")
    folder = tmp_path / "voice"
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "README.md", "card.json", "config.json", "empatheia.json", "model.safetensors", "recipe.yaml",
    ]  # fmt: skip
    weights = load_file(folder / "model.safetensors")
    assert weights and all("lora" in name and str(own.dtype) == "torch.float16" for name, own in weights.items())
    text = (folder / "README.md").read_text()
    assert card["metrics"]["ppl_word"]["value"] > 1 and "low-rank updates alone" in text and "tiny-voice" in text
    listener, before = Listener.load(folder), Listener.load(status.folder / "checkpoint")
    assert listener.name == "tiny-voice"
    assert listener.prompt("I lost my dog.") == before.prompt("I lost my dog."), "the pieces are its base's"
    assert isinstance(listener.respond("I lost my dog.", max_new_tokens=4).text, str)
    with pytest.raises(CheckpointError, match="not finished"):
        package_language_model(tmp_path, tmp_path / "x", "x")
    untuned = run(
        recipe("zero_shot", f"model.base={base}", "model.base_config=null"), tmp_path / "runs", show_progress=False
    )
    with pytest.raises(CheckpointError, match="learnt nothing"):
        package_language_model(untuned.folder, tmp_path / "x", "x")


def test_whole_conversations_and_another_corpus_are_learnt(tmp_path):
    """As many replies as by themselves, in fewer items; what is hidden is the same in every run; only train has it."""
    settings = ["data.extra=[everyday]", "data.train_limit=6", "data.valid_limit=2", "data.corpus=sample"]
    template = make_folder(tmp_path / "base")
    base = [f"model.base={template}", "model.base_config=null"]
    alone = PromptTask(recipe("causal_lora", *settings, *base), tmp_path / "a")
    whole = PromptTask(recipe("causal_lora", *settings, *base, "data.items=conversations"), tmp_path / "b")
    singles, joined = alone.encode("train"), whole.encode("train")
    assert len(joined) < len(singles) and len(alone.dialogues("train")) == 12
    assert len(alone.dialogues("test")) == 2, "measured is the corpus alone"

    def learnt(items):
        labels = whole.reader.learning_batch(items)["labels"]
        return int((labels != -100).sum())

    assert learnt(joined) == learnt(singles)
    told = [
        "data.shown=[emotion]",
        "data.hidden=0.5",
        "data.items=conversations",
        "model.wording.inline='{text} [{findings}]'",
    ]
    some = PromptTask(recipe("causal_lora", *settings, *base, *told), tmp_path / "c")
    texts = [some.tokenizer.decode([*item.prompt, *(item.reply or ())]) for item in some.encode("train")]
    n_shown, n_replies = sum(text.count("The speaker feels") for text in texts), len(some.examples("train"))
    assert 0 < n_shown < n_replies
    assert texts == [some.tokenizer.decode([*item.prompt, *(item.reply or ())]) for item in some.encode("train")]
    valid = [some.tokenizer.decode([*item.prompt, *(item.reply or ())]) for item in some.encode("valid")]
    assert sum(text.count("The speaker feels") for text in valid) == len(some.examples("valid"))
