"""The measurement of a listener of five steps: variants, tests, resuming, and no gold emotion in the replies."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from empatheia.errors import ConfigError
from empatheia.listener.steps.focused import FocusedListener
from empatheia.metrics.records import read_records
from empatheia_research.recipes.recipe import load_recipe
from empatheia_research.reports.record_tables import tables
from empatheia_research.reports.results_page import keep
from empatheia_research.shipped import recipes_root
from empatheia_research.training.runner import run
from empatheia_research.training.tasks import listen
from empatheia_research.training.tasks.listen import WHOLE, ListenTask

NAMES = [
    WHOLE, "responder alone", "no focus", "predicted intent", "no ranking", "no knowledge", "bundled parts only",
    "bundled, no focus", "bundled, greedy",
]  # fmt: skip


def recipe(*overrides: str):
    return load_recipe(recipes_root() / "default" / "five_steps.yaml", size="smoke", overrides=list(overrides))


def with_variants(*names: str):
    """The recipe with these of its variants; an override would add to them."""
    made = recipe()
    variants = {name: made.data.variants[name] for name in names}
    return made.model_copy(update={"data": made.data.model_copy(update={"variants": variants})})


@pytest.fixture(scope="module", autouse=True)
def no_corpora():
    """Distractors come from the sample, which is read in no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EMPATHEIA_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing stopped."""
    return run(recipe(), tmp_path_factory.mktemp("whole"), show_progress=False)


def test_the_record_holds_every_variant_and_its_tests(whole, tmp_path):
    done = whole
    metrics = done.metrics["metrics"]
    assert list(metrics["variants"]) == NAMES and metrics["variants"][WHOLE] == {}
    alone = [f"coverage: {name} against responder alone" for name in NAMES[2:]]
    assert list(metrics["tests"]) == [f"coverage: {name} against {WHOLE}" for name in NAMES[1:]] + alone
    for name in NAMES:
        assert {f"{name}: {key}" for key in ("coverage", "bleu_nltk_4", "dist_corpus_2")} <= set(metrics)
        assert f"variant:{name.replace(' ', '')}" in metrics[f"{name}: coverage"]["signature"].replace(" ", "")
    assert metrics["decoding"]["no focus"]["focused"] == metrics["decoding"]["responder alone"]["focused"] == 0
    assert metrics["decoding"]["no ranking"]["focused"] == 3  # distractors are possible in all three
    rows = [json.loads(line) for line in (done.folder / "outputs.jsonl").read_text().splitlines()]
    assert len(rows) == 3 and list(rows[0]["replies"]) == NAMES
    keep(done.folder, tmp_path / "results")
    (table,) = [table for table in tables(read_records(tmp_path / "results")) if table.key == "listener"]
    assert [row.labels["variant"] for row in table.rows][: len(NAMES)] == NAMES
    assert "p_coverage" not in table.rows[0].values and 0 < table.rows[2].values["p_coverage"].value <= 1
    first, second = ("p_coverage against baseline" in row.values for row in table.rows[:2])
    assert not first and not second and "p_coverage against baseline" in table.rows[2].values


def test_replies_are_those_of_the_listener_and_know_no_gold_emotion(tmp_path):
    task = ListenTask(with_variants("responder alone"), tmp_path)
    task.evaluate("test", tmp_path / "outputs.jsonl")
    listener = FocusedListener(task.settings[WHOLE])
    said = [json.loads(line)["replies"][WHOLE] for line in (tmp_path / "outputs.jsonl").read_text().splitlines()]
    for dialogue, reply in zip(task.judges.contexts.dialogues, said, strict=True):
        assert dialogue.emotion
        for other in (None, "proud" if dialogue.emotion != "proud" else "afraid"):
            assert listener.respond(replace(dialogue, emotion=other)).text == reply


def test_a_stopped_run_goes_on_behind_the_last_variant(whole, tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    asked, real = [], ListenTask._respond
    two, names = with_variants("responder alone", "no focus"), [WHOLE, "responder alone", "no focus"]

    def stopped_once(self, name, settings):
        asked.append(name)
        if len(asked) == 2:
            raise Stop
        return real(self, name, settings)

    monkeypatch.setattr(listen.ListenTask, "_respond", stopped_once)
    with pytest.raises(Stop):
        run(two, tmp_path / "parts", show_progress=False)
    done = run(two, tmp_path / "parts", show_progress=False)
    assert asked == [*names[:2], *names[1:]]
    for name in names:
        assert done.metrics["metrics"][f"{name}: coverage"] == whole.metrics["metrics"][f"{name}: coverage"]
    lines = ((one.folder / "outputs.jsonl").read_text().splitlines() for one in (done, whole))
    ours, theirs = ([json.loads(line)["replies"] for line in of] for of in lines)
    assert ours == [{name: replies[name] for name in names} for replies in theirs]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("system=cause_gated", "task listen is for system five_steps"),
        ("data.baseline=nobody", r"data\.baseline is 'nobody'; accepted: a variant \('responder alone'"),
        ("start=gao2021-small", "starts from nothing; drop start"),
        ("data.variants.whole={}", "a variant is called 'whole'"),
        ("data.variants.loud={express: {loudness: 3}}", r"loud: unknown key 'express\.loudness'"),
        ("model.express.focus.alpha=-1", r"whole: express\.focus\.alpha"),
        ("data.words=estimator", r"data\.estimator is null"),
    ],
)
def test_what_cannot_be_measured(override, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        ListenTask(recipe(override), tmp_path)
