"""``empatheia reproduce`` and ``empatheia plot``: what they print, write and refuse."""

import json

import pytest


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results" / "rashkin2018" / "fasttext"
    folder.mkdir(parents=True)
    accuracy = {
        "name": "accuracy",
        "value": 42.0,
        "unit": "percent",
        "n": 9,
        "higher_is_better": True,
        "interval": None,
    }
    record = {"recipe": "rashkin2018/fasttext", "size": "cpu", "seed": 1024, "metrics": {"accuracy": accuracy}}
    (folder / "cpu-seed1024.json").write_text(json.dumps(record))
    rows = ({"stage": "label", "step": step, "loss": 1.0 / step, "loss_label": 1.0 / step} for step in (1, 2, 3))
    (folder / "cpu-seed1024.curves.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "results"


def test_the_list_of_tables(cli, results):
    done = cli("reproduce", "--results", str(results))
    assert done.code == 0, done.err
    rows = {line.split()[0]: line.split()[1:6] for line in done.out.splitlines()}
    assert rows["rashkin2018/9"] == ["27", "4", "23", "1", "0"] and rows["gao2021/4"] == ["10", "10", "0", "0", "0"]
    assert "runs: 1 of 1 recipes, 1 seed each; " in done.out and " h of training and " in done.out
    assert "1 with a run (1 beside print, 0 at size row)" in done.out and "0 with neither" in done.out
    assert "718; 0 reached (0 of them better by more than the tolerance), 1 within tolerance, 0 missed" in done.out


def test_a_report_with_pictures(cli, results, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "made"
    done = cli("reproduce", "rashkin2018/9", "--results", str(results), "--out", str(out), "--plots")
    assert done.code == 0, done.err
    assert "fastText; ED" in done.out and "0.42" in done.out and "-0.01" in done.out and "met" in done.out
    assert "rashkin2018/fasttext_cut.yaml --size cpu --record" in done.out
    assert "rashkin2018/fasttext.yaml --size cpu" not in done.out
    page = (out / "rashkin2018-9.html").read_text()
    assert "data:image/svg+xml;base64," in page and "0.42" in page
    assert "curves-rashkin2018-fasttext-cpu-1024.svg" in (out / "rashkin2018-9.md").read_text()
    assert (out / "rashkin2018-9-curves-rashkin2018-fasttext-cpu-1024.png").is_file()


def test_json(cli, results, tmp_path):
    done = cli("reproduce", "rashkin2018/9", "--results", str(results), "--out", str(tmp_path), "--json")
    found = json.loads(done.out)
    (report,) = found["tables"]
    assert found["totals"]["rows"]["with_run"] == found["totals"]["values"]["within_tolerance"] == 1
    (ours,) = [line for line in report["lines"] if line["ours"] is not None]
    assert (ours["row"], ours["ours"], ours["published"]) == ("fastText", pytest.approx(0.42), 0.43)
    assert ours["difference"] == pytest.approx(-0.01) and ours["verdict"] == "met"
    assert (ours["tolerance"], ours["tolerance_rule"], ours["reached"]) == (pytest.approx(0.01), "1 point", False)
    assert {run["recipe"] for run in report["missing"]} == {
        f"rashkin2018/{name}" for name in ("emotion_situation", "fasttext_cut", "emotion_situation_cut")
    }


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("gao2021/99",), 2, "unknown table 'gao2021/99'"),
        (("gao2021/2", "--size", "huge"), 2, "unknown size 'huge'"),
        (("gao2021/2", "--budget", "3"), 2, "--budget goes with --train"),
        (("--train",), 2, "--train needs a table"),
        (("gao2021/2", "--plots"), 2, "--plots goes with --out"),
        (("gao2021/2", "--runs", "nowhere"), 1, "nowhere holds no finished run"),
    ],
)
def test_what_is_refused(cli, words, code, told):
    done = cli("reproduce", *words)
    assert done.code == code and told in done.err


def test_missing_runs_are_trained_once_and_kept(cli, tmp_path, monkeypatch):
    from empatheia_research.training import runner

    seen = []

    def fake(recipes, out, *, budget_minutes=None, **options):
        for recipe in recipes:
            seen.append((recipe.name, recipe.size, recipe.seed, budget_minutes))
            folder = out / recipe.name
            folder.mkdir(parents=True)
            score = {"name": "accuracy", "value": 40.0, "unit": "percent", "n": 3, "higher_is_better": True}
            record = {"recipe": recipe.name, "size": recipe.size, "seed": recipe.seed, "metrics": {"accuracy": score}}
            record |= {"training_seconds": 1.0, "parameters": 10}
            (folder / "metrics.json").write_text(json.dumps(record))
            yield runner.RunStatus(recipe.name, folder, "finished", record)

    monkeypatch.setattr(runner, "run_all", fake)
    places = ("--results", str(tmp_path / "results"), "--run-out", str(tmp_path / "runs"), "--out", str(tmp_path / "o"))
    words = ("reproduce", "meed2/text", "--train", "--size", "smoke", "--budget", "2", *places, "--json")
    done = cli(*words)
    assert done.code == 0, done.err
    assert seen == [("meed2/emotion_intent", "smoke", 1024, 2.0), ("meed2/emotion_intent_repo", "smoke", 1024, 2.0)]
    (report,) = json.loads(done.out)["tables"]
    assert report["missing"] == [] and "self-written sample" in report["lines"][0]["verdict"]
    cli(*words)
    assert len(seen) == 2


def test_runs_that_a_recipe_reads_are_made_before_it(cli, tmp_path, monkeypatch):
    """``gao2021/moel`` measures the weights of ``imagine/moel``: a newcomer has neither."""
    from empatheia_research.training import runner

    seen = []

    def fake(recipes, out, *, budget_minutes=None, goes_on=None, **options):
        assert goes_on  # one that fails is told, and the others are made
        for recipe in recipes:
            seen.append((recipe.name, str(out), budget_minutes))
            yield runner.RunStatus(recipe.name, out / recipe.name, "failed", {}, "no corpus here")

    monkeypatch.setattr(runner, "run_all", fake)
    monkeypatch.chdir(tmp_path)
    done = cli(
        "reproduce", "gao2021/2", "--train", "--size", "cpu", "--run-out", "mine", "--budget", "9", "--results", "kept"
    )
    made = [name for name, *_ in seen]
    assert made.index("imagine/moel") < made.index("gao2021/moel")
    assert dict((name, out) for name, out, _ in seen)["imagine/moel"] == "runs"
    assert dict((name, out) for name, out, _ in seen)["gao2021/moel"] == "mine"
    assert len(made) == len(set(made))
    assert seen[0][2] == 9.0 and 8.9 < seen[-1][2] <= 9.0  # one budget for both
    assert done.code == 1 and "gao2021/moel: failed (no corpus here)" in done.err  # the reason, not the folder
    assert "after: empatheia train" in done.out and "imagine/moel.yaml --size cpu --seed 42" in done.out


def test_pictures(cli, results, tmp_path):
    pytest.importorskip("matplotlib")
    record = results / "rashkin2018" / "fasttext" / "cpu-seed1024.json"
    outputs = tmp_path / "outputs.jsonl"
    outputs.write_text('{"emotion": "sad", "predicted": "sad", "hyp": "oh no .", "ref": "i am sorry ."}\n' * 3)
    for words, name in (
        (("curves", str(record)), "a.svg"),
        (("confusion", str(outputs)), "b.png"),
        (("labels", f"mine={outputs}"), "c.svg"),
        (("systems", f"mine={outputs}"), "d.svg"),
    ):
        done = cli("plot", *words, "--out", str(tmp_path / name))
        assert done.code == 0, done.err
        assert done.out == f"written: {tmp_path / name}\n" and (tmp_path / name).stat().st_size > 1000
    done = cli("plot", "tradeoff", "--x", "accuracy", "--y", "ppl_word", "--results", str(results))
    assert done.code == 1 and "no run has both accuracy and ppl_word" in done.err
    done = cli("plot", "curves", str(tmp_path / "other.json"))
    assert done.code == 1 and "no curves belong to" in done.err
