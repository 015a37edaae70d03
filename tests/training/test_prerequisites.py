"""What a recipe lacks, found before anything is trained: held against what the training itself says."""

from pathlib import Path

import pytest

from empatheia.errors import MissingResourceError
from empatheia_research.recipes import needs
from empatheia_research.recipes.recipe import load_recipe, recipe_files
from empatheia_research.shipped import recipes_root
from empatheia_research.training.prerequisites import Missing, lacking, missing_for
from empatheia_research.training.tasks import make_task


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch):
    """Neither corpora nor installed models, and no run folders."""
    for name, value in (("DATA", "data"), ("CACHE", "cache"), ("MODELS", "models")):
        monkeypatch.setenv(f"EMPATHEIA_{name}", str(tmp_path / value))
    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def smoke(name, *overrides):
    return load_recipe(recipes_root() / f"{name}.yaml", "smoke", overrides)


@pytest.mark.parametrize(
    "file", recipe_files(recipes_root()), ids=lambda file: "/".join(file.with_suffix("").parts[-2:])
)
def test_a_smoke_run_lacks_nothing_but_a_package(file):
    found = [
        missing for missing in lacking(load_recipe(file, "smoke")) if not missing.command.startswith("pip install")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "overrides", "what", "said"),
    [
        ("cem/cem", ["data.side_inputs.knowledge_of_relations.cache=none.jsonl"], "cache of inferences none.jsonl",
         "no cache of inferences at 'none.jsonl'"),
        ("cem/cem", ["data.side_inputs.knowledge_of_relations.provider=inferences"], "model inferences",
         "no provider of inferences"),
        ("kemp/kemp", ["data.side_inputs.concept_graph.lexicon=warriner"], "lexicon warriner", "Ratings_Warriner"),
        ("empdg/empdg", ["data.side_inputs.emotion_words.lexicon=vader"], "lexicon vader", "vader_lexicon"),
        ("meed2/generator_raw", ["data.side_inputs.turn_labels.classifier=intent"], "model intent",
         "turn_labels, classifier"),
        ("gao2021/soft", ["data.corpus=empathetic_dialogues"], "corpus empathetic_dialogues", "train.csv"),
        ("gao2021/soft", ["tokenizer.distil=nobody/nothing"], "model nobody/nothing", "nobody/nothing"),
        ("gao2021/soft", ["tokenizer.vectors=none.txt"], "file none.txt", "none.txt"),
    ],
)  # fmt: skip
def test_what_is_told_is_what_the_training_misses(name, overrides, what, said, tmp_path):
    recipe = smoke(name, *overrides)
    found = [missing.what for missing in lacking(recipe)]
    assert found == [what]
    with pytest.raises(MissingResourceError, match=said):
        task = make_task(recipe, tmp_path)
        task.stage_data(recipe.stages[0])


def test_a_file_that_is_brought_is_no_longer_told(tmp_path):
    recipe = smoke("cem/cem", "data.side_inputs.knowledge_of_relations.cache=here.jsonl")
    assert [missing.what for missing in lacking(recipe)] == ["cache of inferences here.jsonl"]
    (tmp_path / "here.jsonl").write_text("{}\n")
    assert list(lacking(recipe)) == []


def test_runs_of_other_recipes_are_made_first_but_what_they_lack_is_told():
    recipe = load_recipe(recipes_root() / "gao2021/moel.yaml", "cpu")
    assert "runs/" not in " ".join(missing.what for missing in lacking(recipe))
    first = load_recipe(recipes_root() / "imagine/moel.yaml", "cpu")
    assert set(lacking(first)) <= set(missing_for(recipe))
    topics = missing_for(load_recipe(recipes_root() / "rashkin2018/retrieval_topicprepend1.yaml", "row"))
    assert any(missing.what == "labelled texts 20newsgroups" for missing in topics)
    strange = smoke("gao2021/transformer", "start=runs/nobody/nothing/smoke-seed1")
    assert [str(missing) for missing in lacking(strange)] == [
        "model runs/nobody/nothing/smoke-seed1; get it: train it first, or name another folder with --set"
    ]


def test_commands_say_how_to_ask():
    recipe = load_recipe(recipes_root() / "imagine/imagine.yaml", "full")
    (cache,) = [missing for missing in lacking(recipe) if missing.what.startswith("cache of inferences")]
    assert cache == Missing(
        "cache of inferences runs/knowledge/empathetic_dialogues.comet-causes.jsonl",
        "empatheia infer empathetic_dialogues --provider comet-atomic-2020-bart --head causes --causes causes --out"
        " runs/knowledge/empathetic_dialogues.comet-causes.jsonl",
    )


def test_a_run_comes_behind_all_that_it_needs(monkeypatch):
    class Run:
        file, is_here = Path(__file__), False

        def __init__(self, name: str) -> None:
            self.name = name

        def load(self) -> str:
            return self.name

    runs = {name: Run(name) for name in "abcd"}
    reads = {"whole": "ad", "a": "bc", "b": "c", "c": "", "d": "b"}
    monkeypatch.setattr(needs, "runs_needed", lambda recipe: [runs[name] for name in reads[recipe]])
    names = [run.name for run in needs.runs_to_make_first(["whole", "d"])]
    assert sorted(names) == list("abcd")
    for name in names:
        assert all(names.index(needed) < names.index(name) for needed in reads[name])
