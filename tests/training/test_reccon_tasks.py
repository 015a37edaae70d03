"""The two RECCON tasks: a run from recipe to folder and cross-fold scores, recipes in every size, published rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "understanding"))
import tiny_causes as bench

from empatheia.errors import ConfigError
from empatheia.metrics.published import compare, published
from empatheia.metrics.score import Score
from empatheia_research.recipes.recipe import Recipe, load_recipe, recipe_sizes
from empatheia_research.reports.results_page import keep
from empatheia_research.training.runner import run
from empatheia_research.training.tasks.entail import EntailTask
from empatheia_research.training.tasks.extract import ExtractTask
from empatheia_research.training.tasks.span_scores import tuned_value
from empatheia_research.understanding.causes.entailment import CauseEntailment, annotate
from empatheia_research.understanding.causes.spans import CauseSpans, extract

RECIPES = [
    path
    for path in sorted((Path(__file__).resolve().parents[2] / "recipes" / "reccon").glob("*.yaml"))
    if path.stem != "position"  # rules, and no model
]
TASKS = {
    "entail": ("cause_entailment", {"entailment": 1.0}),
    "extract": ("cause_spans", {"span": 1.0}),
}
SCORES = {
    "entail": ("pairs", "entailment_f1_macro", "0.5"),
    "extract": ("spans", "span_f1_pos", "0"),
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    return bench.encoder_folder(tmp_path_factory.mktemp("encoder"))


def recipe(encoder: Path, task: str, model: dict | None = None, data: dict | None = None) -> Recipe:
    system, losses = TASKS[task]
    stage = {"name": "only", "losses": losses, "batch_examples": 16, "learning_rate": 1e-3, "max_steps": 3}
    return Recipe.model_validate(
        {
            "name": f"tiny/{task}",
            "task": task,
            "system": system,
            "size": "smoke",
            "seed": 3,
            "encoder": str(encoder),
            "model": model or {},
            "data": {"corpus": "sample", "valid_limit": 2, "test_limit": 2, "train_limit": 4, **(data or {})},
            "stages": [{**stage, "evaluations": 1, "select": next(iter(losses))}],
        }
    )


@pytest.mark.parametrize(
    ("task", "model"),
    [
        ("entail", {"form": "pair"}),
        ("entail", {"form": "joint", "context": False}),
        ("extract", {"form": "paper"}),
        ("extract", {"form": "joint"}),
    ],
)
def test_a_run_ends_with_a_folder_and_the_cross_fold_scores(task, model, encoder, tmp_path):
    fold = 2 if task == "extract" else 1
    status = run(recipe(encoder, task, model, {"fold": fold}), tmp_path, show_progress=False)
    assert status.state == "finished"
    kind, score, plain = SCORES[task]
    metrics = status.metrics["metrics"]
    names = [f"fold{i} {kind}, threshold {how}" for i in (1, 2, 3) for how in (plain, "tuned on valid")]
    assert list(metrics) == names
    for name in names:
        found = Score.from_dict(metrics[name]["scores"][score])
        assert 0 <= found.value <= 100 and found.interval is not None and "ci:bootstrap-1000" in found.signature
    counts = [metrics[name]["n_positive"] for name in names]
    assert counts[0] == counts[2] == counts[4] > 0  # every fold has the same positives
    folder = status.folder / "checkpoint"
    meta = json.loads((folder / "empatheia.json").read_text())
    assert (meta["fold"], meta["system"]) == (fold, TASKS[task][0]) and (folder / "recipe.yaml").is_file()
    threshold = metrics[names[1]]["threshold"]
    loaded = (CauseEntailment if task == "entail" else CauseSpans).from_pretrained(folder)
    assert (loaded.config.threshold if task == "entail" else loaded.config.null_threshold) == threshold
    if task == "extract":
        assert {metrics[name]["decoding"] for name in names} == {loaded.config.decoding}
    lines = [json.loads(line) for line in (status.folder / "outputs.jsonl").read_text().splitlines()]
    assert {line["fold"] for line in lines} == {1, 2, 3}
    table = keep(status.folder, tmp_path / "results").parents[2] / "README.md"
    assert sum(f"`tiny/{task}/" in line for line in table.read_text().splitlines()) == 6


def test_a_loaded_span_model_answers_as_in_the_run(encoder, tmp_path):
    task = ExtractTask(recipe(encoder, "extract", {"form": "joint"}), tmp_path)
    task.save(tmp_path)
    items = task.items("test")
    loaded = CauseSpans.from_pretrained(tmp_path)
    assert extract(loaded, AutoTokenizer.from_pretrained(tmp_path), items) == extract(task.model, task.tokenizer, items)


def test_an_annotator_that_marks_pieces_is_measured_on_spans_too(encoder, tmp_path):
    made = recipe(encoder, "entail", {"form": "joint", "spans": True, "max_pieces": 40})
    status = run(made, tmp_path, show_progress=False)
    metrics = status.metrics["metrics"]
    for fold in (1, 2, 3):
        for how in ("0", "tuned on valid"):
            found = metrics[f"fold{fold} spans, threshold {how}"]
            assert found["n_positive"] == metrics[f"fold{fold} pairs, threshold 0.5"]["n_positive"]
            assert 0 <= found["f1_pos_nested"] <= found["f1_pos"] <= 100
            assert {"span_f1_pos", "span_f1_pos_nested"} <= set(found["scores"])
    loaded = CauseEntailment.from_pretrained(status.folder / "checkpoint")
    for line in map(json.loads, (status.folder / "outputs.jsonl").read_text().splitlines()):
        assert line["turns"] == [i for i, p in enumerate(line["p"]) if p >= loaded.config.threshold]
    counts = status.metrics["data"]["reccon"]["test, fold 1"]
    assert counts["unread_turns"] > 0 and 0 <= counts["unread_causes"] <= counts["unread_turns"]


def test_unread_turns_are_counted(encoder, tmp_path):
    for max_pieces, turns, causes in ((40, 2, 1), (500, 0, 0)):  # six turns of nine pieces, four of them fit
        task = EntailTask(recipe(encoder, "entail", {"form": "joint", "max_pieces": max_pieces}), tmp_path)
        task.source.read["valid", 1] = [bench.item(*["a b c d e f g h"] * 6, labels=(1, 0, 1, 0, 0, 1), spans=())]
        counts = task.data_record()["reccon"]["valid, fold 1"]
        assert counts == {"items": 1, "pairs": 6, "unread_turns": turns, "unread_causes": causes}
    pair = EntailTask(recipe(encoder, "entail", {"form": "pair"}), tmp_path)
    assert pair.items("valid") and "unread_turns" not in pair.data_record()["reccon"]["valid, fold 1"]


def test_a_span_model_on_a_frozen_annotator_keeps_its_turns(encoder, tmp_path):
    """The recipe's way: only the start and end head learns, so turns get the annotator's own probabilities."""
    annotator = run(recipe(encoder, "entail", {"form": "joint"}), tmp_path, show_progress=False).folder / "checkpoint"
    stage = load_recipe(RECIPES[0].parent / "span_from_annotator.yaml", "cpu").stages[0]
    tiny = recipe(annotator, "extract", {"form": "joint"})
    short = tiny.stages[0].model_copy(update={"train": stage.train, "losses": stage.losses, "select": stage.select})
    status = run(tiny.model_copy(update={"stages": (short,)}), tmp_path, show_progress=False)
    before = CauseEntailment.from_pretrained(annotator).state_dict()
    after = CauseSpans.from_pretrained(status.folder / "checkpoint").state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert set(after) - set(before) == {f"answer_head.{i}.{w}" for i in (0, 3) for w in ("weight", "bias")}
    items = ExtractTask(tiny, tmp_path).items("test")
    tokenizer = AutoTokenizer.from_pretrained(annotator)
    answers = extract(CauseSpans.from_pretrained(status.folder / "checkpoint"), tokenizer, items)
    notes = annotate(CauseEntailment.from_pretrained(annotator), tokenizer, items)
    for note, found in zip(notes, answers, strict=True):
        assert found
        for turn, answer in found.items():
            assert torch.tensor(answer.log_odds).sigmoid().item() == pytest.approx(note.probabilities[turn], abs=2e-4)


def test_the_decoding_is_chosen_on_valid_unless_the_recipe_names_it(encoder, tmp_path):
    values = {}
    for named in ({"decoding": "argmax"}, {"decoding": "overlap"}, {}):
        torch.manual_seed(0)
        task = ExtractTask(recipe(encoder, "extract", {"form": "joint", **named}), tmp_path)
        task.save(tmp_path / "model")
        config, items = task.model.config, task.items("valid")
        answers = extract(task.model, task.tokenizer, items)
        values[named.get("decoding", "chosen")] = tuned_value(items, answers, config.null_threshold)
        assert named.get("decoding", config.decoding) == config.decoding
    assert values["chosen"] == max(values.values())


def test_bad_recipes(encoder, tmp_path):
    with pytest.raises(ConfigError, match=r"unknown key 'model\.from'\. Did you mean 'form'"):
        ExtractTask(recipe(encoder, "extract", {"from": "paper"}), tmp_path)
    with pytest.raises(ConfigError, match="task `entail` needs `encoder`"):
        EntailTask(recipe(encoder, "entail").model_copy(update={"encoder": None}), tmp_path)
    for data in ({"fold": 4}, {"test_folds": []}, {"test_folds": [5]}, {"corpus": "empathetic_dialogues"}):
        with pytest.raises(ValueError, match=r"fold|corpus"):
            recipe(encoder, "extract", data=data)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_in_every_size(path):
    for size in recipe_sizes(path):
        made = load_recipe(path, size)
        assert made.name == f"reccon/{path.stem}"
        config = {"entail": CauseEntailment, "extract": CauseSpans}[made.task].config_class
        settings = config(**made.model)
        assert settings.context == ("without_context" not in path.stem)
        assert str(made.data.fold) == (path.stem.partition("fold")[2] or "1")[0]
        assert (made.data.corpus == "sample") == (size == "smoke")
        if path.stem == "span_from_annotator":
            assert settings.form == "joint" and made.stages[0].train == ("answer_head",)
            assert made.encoder == ("minilm" if size == "smoke" else "causes")
        elif size == "full":
            lengths = {("entail", True): 512, ("entail", False): 300, ("extract", True): 512, ("extract", False): 400}
            assert settings.max_pieces == lengths[made.task, settings.context]
            assert settings.form == ("pair" if made.task == "entail" else "paper")
            assert (made.stages[0].epochs, made.stages[0].learning_rate) == (12, 1e-5)
        assert made.published is not None
        row = published(made.published.paper, made.published.table, made.published.row)
        assert len(row) == (3 if made.task == "entail" else 4)


def test_published_rows_stand_beside_ours():
    """Specification section 3.5, spot checks; ours in fractions are set beside percent."""
    row = published("reccon", "subtask 1, with context", "RoBERTa-base, train 1, test 1")
    assert {name: number.value for name, number in row.items()} == {
        "EM_pos": 32.63,
        "F1_pos": 58.17,
        "F1_neg": 85.85,
        "F1": 75.45,
    }
    cross = published("reccon", "subtask 2, with context", "RoBERTa-large, train 3, test 1")
    assert [number.value for number in cross.values()] == [41.86, 4.89, 23.38]
    ours = Score("entailment_f1_macro", 0.7806, "fraction", 7224, True)
    base = published("reccon", "subtask 2, with context", "RoBERTa-base, train 1, test 1")
    verdict = compare([ours], base)[-1]
    assert (verdict.metric, verdict.verdict, verdict.ours) == ("macro F1", "better", pytest.approx(78.06))
