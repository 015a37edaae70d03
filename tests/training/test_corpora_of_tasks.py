"""A corpus that is registered is one that responders and language models learn from: no task knows its name."""

import pytest

from empatheia.errors import ConfigError
from empatheia_research.corpora import CORPORA
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.training.sources.conversations import Conversations
from empatheia_research.training.tasks.focus_contexts import chosen_examples
from empatheia_research.training.tasks.prompt import PromptTask
from empatheia_research.training.tasks.respond import RespondTask


def task(kind: type, recipe: str, corpus: str) -> RespondTask | PromptTask:
    """A task without its model: its data alone is asked for."""
    made = object.__new__(kind)
    made.recipe = load_recipe(recipes_root() / recipe, "smoke", overrides=[f"data.corpus={corpus}"])
    made.data, made._dialogues = made.recipe.data, {}
    made.source = Conversations(made.recipe)
    return made


@pytest.fixture
def registered(monkeypatch) -> str:
    monkeypatch.setitem(CORPORA._entries, "mine", "empatheia_research.corpora.everyday:load")
    return "mine"


def test_responders_and_prompts_learn_from_a_corpus_by_its_one_line(registered):
    wanted = [dialogue.id for dialogue in CORPORA.get(registered)("train").dialogues][:3]
    respond = task(RespondTask, "gao2021/soft.yaml", registered)
    assert [d.id for d in respond.source.dialogues(respond.data, "train")][:3] == wanted
    prompt = task(PromptTask, "language_model/zero_shot.yaml", registered)
    assert [d.id for d in prompt.dialogues("train")][:3] == wanted


def test_an_unknown_corpus_is_named_with_the_nearest():
    """It was silently EmpatheticDialogues for prompts."""
    prompt = task(PromptTask, "language_model/zero_shot.yaml", "recon")
    with pytest.raises(ConfigError, match=r"no corpus is called 'recon'. Did you mean 'rec"):
        prompt.dialogues("train")
    respond = task(RespondTask, "gao2021/soft.yaml", "recon")
    with pytest.raises(ConfigError, match=r"data.corpus='recon'. Did you mean 'reccon'\? Accepted: .*pooled"):
        respond.source.dialogues(respond.data, "train")


def test_contexts_to_answer_come_from_the_corpus_of_the_recipe():
    data = load_recipe(recipes_root() / "kim2021/focus_default.yaml", "smoke").data
    ids = {dialogue.id for dialogue in CORPORA.get("sample")(data.split).dialogues}
    assert {example.dialogue_id for example in chosen_examples(data)} <= ids
