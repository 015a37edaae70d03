"""The measurement of focus, from the recipe to the record: what is scored, kept, resumed and tested."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from empatheia.errors import CheckpointError, ConfigError, MissingResourceError
from empatheia.metrics.coverage import Coverage
from empatheia.metrics.score import Signature
from empatheia.records.analysis import Mechanism
from empatheia.taxonomy import MECHANISMS
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.shipped import recipes_root
from empatheia_research.training.runner import run
from empatheia_research.training.tasks import focus, reply_judges
from empatheia_research.training.tasks.focus import FocusTask, comparisons
from empatheia_research.training.tasks.focus_contexts import FILE, chosen_examples, focus_contexts
from empatheia_research.training.tasks.focus_replies import S0, Point, points_of, speak
from empatheia_research.training.tasks.focus_speakers import open_speaker
from tiny_language_models import make_folder

sys.path.insert(0, str(Path(__file__).parents[1] / "decoding"))
import tiny_focus

RECIPES = recipes_root() / "kim2021"
GEE, RANDOM = "gee, alpha 6, beta 0.9", "random, alpha 6, beta 0.9"


@pytest.fixture(scope="module")
def places(tmp_path_factory, make_model_folder):
    """Folders of a tiny speaker, another one that listens, and an estimator."""
    root = tmp_path_factory.mktemp("models")
    words = tiny_focus.estimator("own")
    words.model.save_pretrained(root / "estimator")
    words.reader.save(root / "estimator")
    speaker = make_model_folder(root / "speaker", name="speaker")
    return SimpleNamespace(
        speaker=speaker, listener=make_model_folder(root / "listener", 1, name="other"), estimator=root / "estimator"
    )


def recipe(places, *overrides: str, name: str = "focus_soft"):
    few = ["data.contexts=5", "decoding.max_new_tokens=6"]
    own = [f"start={places.speaker}", f"data.estimator={places.estimator}", "data.distractors=[random, gee]"]
    return load_recipe(RECIPES / f"{name}.yaml", size="smoke", overrides=[*few, *own, *overrides])


class Levels:
    """The level of every mechanism is the number of words of the reply, 2 at most."""

    mechanisms = MECHANISMS

    def annotate(self, dialogues, *, batch_size=32, progress=None):
        return [
            tuple(Mechanism(1, name, min(2, len(d.turns[1].text.split())), (1, 0, 0)) for name in MECHANISMS)
            for d in dialogues
        ]


@pytest.fixture
def models(places, monkeypatch):
    """Overrides that name all models; those of mechanisms and near words stand for the real ones."""
    vectors = SimpleNamespace(name="v", encode=lambda words: np.array([[len(word), 1.0] for word in words]))
    monkeypatch.setattr(reply_judges.MechanismsOfTurns, "load", lambda *_: Levels())
    monkeypatch.setattr(reply_judges.SentenceVectors, "load", lambda *_: vectors)
    return [f"data.listener={places.listener}", *(f"data.{key}={places.listener}" for key in ("mechanisms", "near"))]


# -- the record ----------------------------------------------------------------------------------------------


def test_the_record_holds_all_scores_tests_and_settings(places, models, tmp_path):
    done = run(recipe(places, *models), tmp_path, show_progress=False)
    metrics, data = done.metrics["metrics"], done.metrics["data"]["sample"]
    measured = {"coverage", "coverage_near", "listener_accuracy", *MECHANISMS}
    costs = {"ppl_token", "ppl_word", "ppl_item", "bleu_nltk_4", "bleu_avg", "dist_corpus_1", "dist_corpus_2"}
    for name in (S0, RANDOM, GEE):
        assert {f"{name}: {key}" for key in measured | costs} <= set(metrics)
    assert {f"gold: {key}" for key in measured} <= set(metrics) and "gold: ppl_token" not in metrics
    assert "trivial: sorry: coverage" in metrics
    assert metrics["systems"] == {S0: {}, RANDOM: point("random"), GEE: point("gee")}
    for key in ("coverage", "coverage_near", "listener_accuracy"):
        found = [name for name in metrics["tests"] if name.startswith(f"{key}: ")]
        assert found == [f"{key}: {RANDOM} against S0", f"{key}: {GEE} against S0", f"{key}: {GEE} against {RANDOM}"]
    signature = metrics[f"{GEE}: ppl_token"]["signature"]
    assert all(part in signature for part in ("alpha:6", "beta:0.9", "prior:L0", "speaker:speaker", "focus:gee clean"))
    assert "focus:none" in metrics["S0: coverage"]["signature"]
    assert "listener:other" in metrics[f"{GEE}: listener_accuracy"]["signature"]
    assert "seed 1" in data["fresh distractors"] and "seed 0" in data["distractors"]["gee"]
    assert data["contexts"] == 5 and done.metrics["parameters"] > 0
    assert done.metrics["start"] == {"from": str(places.speaker)}
    rows = [json.loads(line) for line in (done.folder / "outputs.jsonl").read_text().splitlines()]
    assert len(rows) == 5 and set(rows[0]["replies"]) == {S0, RANDOM, GEE}
    assert not (done.folder / "checkpoint" / "empatheia.json").exists()  # a measurement is no model


def point(kind: str) -> dict:
    return {"kind": kind, "alpha": 6.0, "beta": 0.9}


def test_unfocused_it_is_what_the_responder_is_measured_as(places, tmp_path):
    """Replies, BLEU, Distinct and perplexity of S0 are those of the task that trains responders."""
    from empatheia_research.checkpoints.contexts import ContextReader
    from empatheia_research.responders import RESPONDERS
    from empatheia_research.text.collation import Layout
    from empatheia_research.text.tokenizer import DialogueTokenizer
    from empatheia_research.training.evaluation import evaluate_model

    chosen = recipe(places)
    examples = chosen_examples(chosen.data)
    tokenizer = DialogueTokenizer.from_pretrained(places.speaker)
    network = RESPONDERS.get("cause_gated").from_pretrained(places.speaker).eval()
    contexts = ContextReader(network, tokenizer, Layout(max_source=128))
    theirs = evaluate_model(contexts, examples, chosen.decoding, {})
    ours = run(chosen, tmp_path, show_progress=False).metrics["metrics"]
    for key in ("ppl_token", "ppl_word", "ppl_item", "bleu_nltk_1", "dist_corpus_2"):
        assert ours[f"S0: {key}"]["value"] == pytest.approx(theirs[key]["value"], rel=1e-5), key


def test_focused_it_is_focused_generate_and_focused_score_one_by_one(places, tmp_path):
    from empatheia_research.decoding.focus import focused_generate
    from empatheia_research.decoding.given_replies import focused_score
    from empatheia_research.decoding.world_inputs import worlds_of

    task = FocusTask(recipe(places), tmp_path)
    own, contexts = task.speaker, task.contexts
    reader = own.contexts
    asked, plain = Point("gee", 6.0, 0.9), speak(task.speaker, task.contexts, task.recipe.decoding, "L0")
    spoken = speak(own, contexts, task.recipe.decoding, "L0", asked, plain)
    assert spoken.replies != plain.replies and spoken.nll != plain.nll
    for i, (dialogue, contrast) in enumerate(zip(contexts.dialogues, contexts.contrasts["gee"], strict=True)):
        worlds = worlds_of([dialogue], [contrast], reader)
        row = focused_generate(
            reader.network,
            worlds,
            6.0,
            0.9,
            "L0",
            max_new_tokens=6,
            do_sample=False,
            num_beams=1,
            **reader.marks,
        )
        assert reader.read(row[0].tolist())[0] == spoken.replies[i]
        scores = focused_score(reader.network, worlds, reader.labels([contexts.gold[i]]), 6.0, 0.9, "L0")
        assert spoken.nll[i] == pytest.approx(-float(scores.log_s1.sum()), rel=1e-4)
        assert spoken.n_pieces[i] == int(scores.n_pieces)


@pytest.mark.parametrize("way", ["{strategy: beam, num_beams: 2}", "{strategy: sample, top_p: 0.9}"])
def test_other_ways_of_decoding_say_the_same_twice(way, places, tmp_path):
    task = FocusTask(recipe(places, f"decoding={way}"), tmp_path)
    plain = speak(task.speaker, task.contexts, task.recipe.decoding, "L0")
    first, second = (
        speak(task.speaker, task.contexts, task.recipe.decoding, "L0", Point("gee", 6.0, 0.9), plain) for _ in range(2)
    )
    assert first.replies == second.replies != plain.replies and first.nll == second.nll


def test_released_and_masked_distractors(places, tmp_path):
    model, tokenizer = tiny_focus.masked_model()
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "masked")
    kinds = ["data.distractors=[repo, masked]", f"data.masked={tmp_path / 'masked'}"]
    contexts = FocusTask(recipe(places, *kinds), tmp_path).contexts
    named = contexts.counts()
    assert named["distractors"]["repo"].startswith("gee repo") and named["distractors"]["masked"].startswith("masked")
    assert "masked" in named["fresh distractors"] and "seed 1" in named["fresh distractors"]


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_a_language_model_by_folder(kind, places, tmp_path):
    """Any encoder-decoder or decoder, asked and scored as task ``prompt`` does."""
    base = make_folder(tmp_path / "base", kind, template=None)
    form = "seq2seq" if kind == "t5" else "causal"
    changes = [f"model.base={base}", "model.base_config=null", f"model.form={form}", "start=null"]
    done = run(recipe(places, *changes, name="focus_pretrained"), tmp_path / "runs", show_progress=False)
    prompted = load_recipe(
        RECIPES.parent / "language_model" / "zero_shot.yaml",
        size="smoke",
        overrides=["model={form: seq2seq}", f"model.form={form}", *changes[:2], "decoding.max_new_tokens=6"],
    )
    from empatheia_research.training.tasks.prompt import PromptTask

    task = PromptTask(prompted, tmp_path / "prompt")
    examples = chosen_examples(recipe(places).data)
    theirs = task._measured(examples, task.hints("test", examples))
    ours = done.metrics["metrics"]
    assert ours["S0: ppl_word"]["value"] == pytest.approx(theirs[0][1].value, rel=1e-4)
    rows = [json.loads(line) for line in (done.folder / "outputs.jsonl").read_text().splitlines()]
    assert [row["replies"][S0] for row in rows] == [reply_judges.plain_words(reply) for reply in theirs[1]]


# -- stopping and going on -----------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_behind_the_last_finished_system(places, tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    whole = run(recipe(places), tmp_path / "whole", show_progress=False)
    spoken, real = [], focus.speak

    def stopped_once(*args, **options):
        spoken.append(S0 if args[4] is None else args[4].name)
        if len(spoken) == 3:
            raise Stop
        return real(*args, **options)

    monkeypatch.setattr(focus, "speak", stopped_once)
    with pytest.raises(Stop):
        run(recipe(places), tmp_path / "parts", show_progress=False)
    parts = run(recipe(places), tmp_path / "parts", show_progress=False)
    assert spoken == [S0, RANDOM, GEE, GEE]
    ours, theirs = (_without_rates(status.metrics["metrics"]) for status in (parts, whole))
    assert ours == theirs


def _without_rates(metrics: dict) -> dict:
    return {**metrics, "decoding": {k: v for k, v in metrics["decoding"].items() if "per_second" not in k}}


def test_what_was_kept_counts_only_for_the_same_weights(places, tmp_path):
    from dataclasses import replace

    task = FocusTask(recipe(places), tmp_path)
    first = task._spoken(None, None)
    (file,) = (tmp_path / "systems").iterdir()
    changed = json.loads(file.read_text()) | {"replies": ["kept"] * 5}
    file.write_text(json.dumps(changed))
    assert task._spoken(None, None).replies == ["kept"] * 5
    task.speaker = replace(task.speaker, fingerprint="another")
    assert task._spoken(None, None).replies == first.replies


def test_kept_contexts_are_read_again_as_they_were(places, tmp_path):
    data = recipe(places).data
    made = focus_contexts(data, tmp_path, places.estimator, None)
    kept = (tmp_path / FILE).stat().st_mtime_ns
    again = focus_contexts(data, tmp_path, places.estimator, None)
    assert again == made and again.checksum == made.checksum and (tmp_path / FILE).stat().st_mtime_ns == kept
    assert made.contrasts["gee"][0] != made.fresh[0]
    other = data.model_copy(update={"distractors_seed": 5})
    assert focus_contexts(other, tmp_path, places.estimator, None).contrasts != made.contrasts


def test_the_contexts_are_drawn_once_and_in_the_order_of_the_corpus(places):
    data = recipe(places).data
    every = chosen_examples(data.model_copy(update={"contexts": None}))
    drawn = chosen_examples(data)
    assert len(drawn) == 5 and [e for e in every if e in drawn] == drawn == chosen_examples(data)
    assert chosen_examples(data.model_copy(update={"contexts_seed": 3})) != drawn


def test_without_target_words_a_context_is_answered_plainly(places, tmp_path):
    from dataclasses import replace

    task = FocusTask(recipe(places), tmp_path)
    contexts = task.contexts
    blank = replace(contexts, contrasts={"gee": (None, *contexts.contrasts["gee"][1:])})
    plain = speak(task.speaker, blank, task.recipe.decoding, "L0")
    before = list(plain.replies)
    spoken = speak(task.speaker, blank, task.recipe.decoding, "L0", Point("gee", 6.0, 0.9), plain)
    assert spoken.replies[0] == plain.replies[0] and spoken.nll[0] == plain.nll[0]
    assert spoken.replies != plain.replies and plain.replies == before
    none = replace(contexts, contrasts={"gee": (None,) * 5})
    assert speak(task.speaker, none, task.recipe.decoding, "L0", Point("gee", 6.0, 0.9), plain).nll == plain.nll


# -- tests of differences ------------------------------------------------------------------------------------


def test_focus_is_compared_with_both_baselines_at_its_own_point():
    def covering(share: float) -> Coverage:
        metric = Coverage("word")
        metric.update(["dog" if i < 40 * share else "no" for i in range(40)], [["dog"]] * 40)
        return metric

    points = [Point(kind, alpha, 0.9) for kind in ("random", "gee") for alpha in (2.0, 6.0)]
    shares = {"S0": 0.1, points[0].name: 0.1, points[1].name: 0.5, points[2].name: 0.2, points[3].name: 0.9}
    found = comparisons({name: {"coverage": covering(share)} for name, share in shares.items()}, points)
    assert len(found) == 6 + 3
    assert found["coverage: gee, alpha 6, beta 0.9 against S0"]["difference"] == pytest.approx(80)
    assert found["coverage: gee, alpha 6, beta 0.9 against random, alpha 6, beta 0.9"]["p_value"] < 0.001
    assert found["coverage: gee, alpha 2, beta 0.9 against random, alpha 2, beta 0.9"]["p_value"] > 0.05
    whole = {name: test for name, test in found.items() if "whole grid" in name}
    assert {name: round(test["difference"]) for name, test in whole.items()} == {
        "coverage: random, whole grid against S0": 20,
        "coverage: gee, whole grid against S0": 45,
        "coverage: gee, whole grid against random, whole grid": 25,
    }
    assert all(test["n"] == 40 and test["p_adjusted"] is None for test in whole.values())
    assert all(test["p_adjusted"] >= test["p_value"] for name, test in found.items() if name not in whole)


def test_the_whole_grid_says_what_it_is(places, tmp_path):
    own = recipe(places, "data.grid=[[6, 0.9], [2, 0.5]]", "data.distractors=[random]")
    metrics = run(own, tmp_path / "runs", show_progress=False).metrics["metrics"]
    score = metrics["random, whole grid: coverage"]
    points = [metrics[f"random, alpha {a}, beta {b}: coverage"] for a, b in ((6, 0.9), (2, 0.5))]
    assert score["value"] == pytest.approx(sum(point["value"] for point in points) / 2)
    assert score["n"] == points[0]["n"] and score["parts"] == {"n_points": 2}
    told = Signature.parse(score["signature"])
    assert told.values["alpha/beta"] == "6/0.9 2/0.5" and "3 worlds" in told.values["focus"]
    assert {"decoding", "prior", "speaker"} <= set(told.values)
    assert metrics["systems"]["random, whole grid"] == {"kind": "random"}
    assert "coverage: random, whole grid against S0" in metrics["tests"]


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.estimator=null", r"data\.estimator is null.*words=rake"),
        ("data.words=estimator data.estimator=null data.distractors=[random]", r"data\.estimator is null"),
        ("data.distractors=[masked]", r"data\.masked is null"),
        ("data.grid=[[0, 0.9]]", r"alpha 0, beta 0.9; accepted: both above 0"),
        ("data.grid=[[2, 0.9], [2, 0.9]]", r"data\.grid names something twice"),
        ("data.fresh_seed=0", r"fresh_seed is data\.distractors_seed \(0\)"),
        ("decoding.strategy=diverse_beam", r"accepted with focus: greedy, beam, sample"),
        ("system=cause_gated", r"task focus is for system pragmatic_speaker"),
        ("start=null", r"neither of start and model"),
        ("model.form=causal", r"both of start and model"),
        ("start=null model.form=endpoint", r"model\.form is 'endpoint'; accepted: causal, seq2seq"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(override, message, places, tmp_path):
    with pytest.raises(ConfigError, match=message):
        FocusTask(recipe(places, *_split(override)), tmp_path)


def _split(text: str) -> list[str]:
    """Overrides with blanks inside brackets kept."""
    out: list[str] = []
    for part in text.split(" "):
        if out and out[-1].count("[") > out[-1].count("]"):
            out[-1] += f" {part}"
        else:
            out.append(part)
    return out


def test_models_that_are_missing_or_of_another_kind_are_told_at_once(places, tmp_path):
    with pytest.raises(MissingResourceError, match=r"\(data\.listener\) needs './no/smoke'.*--set data\.listener="):
        FocusTask(recipe(places, "data.listener=./no/{size}"), tmp_path)
    with pytest.raises(ConfigError, match="who also speaks"):
        FocusTask(recipe(places, f"data.listener={places.speaker}"), tmp_path)
    with pytest.raises(CheckpointError, match="not a model that can be focused"):
        open_speaker(places.estimator)


def test_stages_make_no_sense(places, tmp_path):
    with pytest.raises(ConfigError, match="task focus trains nothing; drop stages"):
        FocusTask(recipe(places, "stages=[{name: x, losses: {words: 1.0}}]"), tmp_path)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("focus_*.yaml")), ids=lambda path: path.stem)
def test_recipes(path):
    small, large = load_recipe(path, "cpu"), load_recipe(path, "full")
    assert small.data.contexts == 1000 and large.data.contexts is None and large.data.prior == "L0"
    assert {p.alpha for p in points_of(large.data)} == {1, 2, 4, 6, 8}
    assert {(p.kind, p.alpha, p.beta) for p in points_of(small.data)} >= {("gee", 6.0, 0.5), ("random", 4.0, 0.9)}
    assert small.published is None and small.data.listener != small.start
