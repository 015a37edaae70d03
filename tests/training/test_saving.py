"""What is written below a folder stays below it, and no folder is removed that was not made here."""

import json
import re
from pathlib import Path

import pytest
import tiny_training as bench

from empatheia.errors import CheckpointError, ConfigError
from empatheia.settings import path_name, plain_name
from empatheia.writing import MADE, save_folder
from empatheia_research.recipes.recipe import Recipe, load_recipe
from empatheia_research.training import release, runner
from empatheia_research.training.records import keep_record
from empatheia_research.training.runner import run, run_folder

LEAD_ELSEWHERE = ["", ".", "..", "/etc", "a/../b", "../../x", "a\\b", "..\\x", "a\0b", "a\nb", " a", "a ", "a.", ".a"]
NOT_FOR_US = ["joint.part", "x.PARTIAL", "a" * 121, "C:x", "a*", "-rf", "~"]


def refuse_to_fill(folder: Path) -> None:
    pytest.fail(f"{folder} was filled")


# -- names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["joint", "edos_2", "a.b", "x-1", "été", "two words", "_a", "7", "lr=1e-3+b"])
def test_plain_names(name):
    assert plain_name(name) == path_name(name) == name
    assert path_name(f"gao2021/{name}") == f"gao2021/{name}"


@pytest.mark.parametrize("name", [*LEAD_ELSEWHERE, *NOT_FOR_US, "a/b"])
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(ValueError, match=re.escape("cannot be the name of a folder; accepted: a letter, digit or '_'")):
        plain_name(name)
    for path in (f"a/{name}", f"{name}/a", *([name] if name != "a/b" else [])):
        if path not in ("a/a/b", "a/b/a"):
            with pytest.raises(ValueError, match=r"cannot be a name; accepted: names such as 'soft' or 'gao2021/soft'"):
                path_name(path)


@pytest.fixture
def recipe_file(tmp_path):
    """Writes a recipe whose name, stage name or stage in a size is the one given."""

    def write(name="tiny", stage="joint", sized=None):
        recipe = bench.tiny_recipe()
        tree = json.loads(recipe.model_dump_json())
        tree["name"] = name
        stages = [tree["stages"][0] | {"name": stage}]
        del tree["size"]
        if sized is None:
            tree["stages"] = stages
        else:
            del tree["stages"]
            tree["sizes"] = {"smoke": {"stages": [stages[0] | {"name": sized}]}}
        path = tmp_path / "evil.yaml"
        path.write_text(json.dumps(tree))  # JSON is YAML
        return path

    return write


@pytest.mark.parametrize("name", [*LEAD_ELSEWHERE, "stages/joint"])
@pytest.mark.parametrize("where", ["stage", "sized"])
def test_a_stage_that_would_be_another_folder_is_refused(recipe_file, where, name):
    with pytest.raises(ConfigError, match=r"stages\.0\.name: .*cannot be the name of a folder") as caught:
        load_recipe(recipe_file(**{where: name}), size="smoke")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", LEAD_ELSEWHERE)
def test_a_recipe_that_would_run_elsewhere_is_refused(recipe_file, name):
    with pytest.raises(ConfigError, match=r": name: .*cannot be a name; accepted: names such as"):
        load_recipe(recipe_file(name=name), size="smoke")


def test_a_stage_named_like_a_folder_removes_nothing(recipe_file, tmp_path):
    """The command that removed any folder: a stage, named by its path, that is trained and superseded by the next."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    for where in ("stage", "sized"):
        with pytest.raises(ConfigError, match="cannot be the name of a folder"):
            run(load_recipe(recipe_file(**{where: str(precious)}), size="smoke"), tmp_path / "runs")
    assert [path.name for path in precious.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(("text", "told"), [("[a]", r"stages\.0\.name: .*valid string"), ("{a: 1}", "valid string")])
def test_a_stage_whose_name_is_no_text_is_told(recipe_file, tmp_path, text, told):
    path = recipe_file()
    path.write_text(path.read_text()[:-1] + f', "sizes": {{"smoke": {{"stages": [{{"name": {text}}}]}}}}}}')
    with pytest.raises(ConfigError, match=told):
        load_recipe(path, size="smoke")


@pytest.mark.parametrize("record", [{"recipe": "../../x"}, {"recipe": "/x"}, {"recipe": 5}, {}, {"size": "../a"}])
def test_a_record_that_would_be_kept_elsewhere_is_refused(tmp_path, record):
    whole = {"recipe": "a/b", "size": "cpu", "seed": 1} | record
    if not record:
        del whole["recipe"]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(whole))
    with pytest.raises(
        CheckpointError, match=r"does not say whose record it is: .*Give a folder that `empatheia train`"
    ):
        keep_record(tmp_path / "run", tmp_path / "results")
    assert not (tmp_path / "results").exists()


# -- folders -------------------------------------------------------------------------------------------------


def fill(folder: Path, text: str = "1") -> None:
    (folder / "model.txt").write_text(text)


def test_a_folder_made_here_is_replaced(tmp_path):
    target = tmp_path / "model"
    for text in ("1", "2"):
        save_folder(target, lambda folder, text=text: fill(folder, text))
        assert (target / "model.txt").read_text() == text
    assert sorted(path.name for path in target.iterdir()) == [MADE, "model.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (tmp_path / "empty").mkdir()
    save_folder(tmp_path / "empty", fill)
    assert (tmp_path / "empty" / "model.txt").is_file()


@pytest.mark.parametrize("place", ["model", "model.part"])
def test_a_folder_of_others_is_left_as_it_is(tmp_path, place):
    (tmp_path / place).mkdir()
    (tmp_path / place / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match=f"{place} exists and was not made by empatheia. It is left as it is;"):
        save_folder(tmp_path / "model", refuse_to_fill)
    assert (tmp_path / place / "thesis.txt").read_text() == "years of work"


def test_what_others_added_is_left_as_it_is(tmp_path):
    target = tmp_path / "model"
    save_folder(target, fill)
    (target / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match=r"also holds what was not made by empatheia: thesis\.txt\. It is left"):
        save_folder(target, refuse_to_fill)
    assert (target / "model.txt").is_file() and (target / "thesis.txt").is_file()


def test_a_folder_that_appears_meanwhile_is_left_as_it_is(tmp_path):
    target = tmp_path / "model"

    def slowly(folder):
        fill(folder)
        target.mkdir()
        (target / "thesis.txt").write_text("years of work")

    with pytest.raises(CheckpointError, match="was not made by empatheia"):
        save_folder(target, slowly)
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "thesis.txt"]


def test_files_and_links_are_left_as_they_are(tmp_path):
    (tmp_path / "file").write_text("years of work")
    save_folder(tmp_path / "model", fill)
    (tmp_path / "link").symlink_to(tmp_path / "model")
    for name in ("file", "link"):
        with pytest.raises(CheckpointError, match=f"{name} exists and was not made here"):
            save_folder(tmp_path / name, refuse_to_fill)


def test_a_folder_half_made_by_a_kill_is_made_anew(tmp_path):
    class Killed(BaseException):
        pass

    def killed(folder):
        fill(folder)
        raise Killed

    target = tmp_path / "model"
    with pytest.raises(Killed):
        save_folder(target, killed)
    assert (tmp_path / "model.part" / "model.txt").is_file() and not target.exists()
    save_folder(target, fill)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_folder_one_works_in_is_told_like_any_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(CheckpointError, match="was not made by empatheia"):
        save_folder(Path(), refuse_to_fill)
    assert (tmp_path / "thesis.txt").is_file()


def test_a_model_folder_of_an_earlier_version_is_known_by_its_manifest(tmp_path):
    target = tmp_path / "model"
    target.mkdir()
    (target / "empatheia.json").write_text(json.dumps({"format": 1, "system": "cause_gated", "name": "x"}))
    (target / "model.safetensors").touch()
    save_folder(target, fill)
    assert (target / "model.txt").is_file()
    (target / "empatheia.json").write_text(json.dumps({"format": 1, "system": "cause_gated", "name": "x"}))
    (target / MADE).unlink()
    (target / "thesis.tex").touch()
    with pytest.raises(CheckpointError, match=r"also holds what was not made by empatheia: thesis\.tex"):
        save_folder(target, refuse_to_fill)


# -- package -------------------------------------------------------------------------------------------------


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """What a finished run leaves, as far as ``package`` looks before it works."""
    folder = tmp_path / "runs" / "tiny" / "smoke-seed7"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "model.safetensors").touch()
    for name in ("metrics.json", "recipe.yaml", "environment.json"):
        (folder / name).write_text("{}")
    monkeypatch.setattr(release, "load_file", lambda path: pytest.fail(f"{path} was read"))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("place", ["", "checkpoint", "checkpoint/inner", "new", "..", "../.."])
def test_package_leaves_the_run_itself(cli, finished, tmp_path, place):
    before = files(tmp_path)
    done = cli("package", str(finished), str(finished / place) if place else str(finished))
    assert done.code == 1 and "a model folder lies beside runs: name another, new folder" in done.err, done.err
    assert files(tmp_path) == before


def test_package_leaves_another_run(cli, finished, tmp_path):
    other = tmp_path / "runs" / "other"
    (other / "checkpoint").mkdir(parents=True)
    for name in ("recipe.yaml", "environment.json", "checkpoint/model.safetensors"):
        (other / name).touch()
    done = cli("package", str(finished), str(other / "checkpoint"))
    assert done.code == 1 and f"is in the run folder {other}" in done.err and (other / "recipe.yaml").is_file()


@pytest.mark.parametrize("name", ["mine", "."])
def test_package_leaves_a_folder_of_others(cli, finished, tmp_path, monkeypatch, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    monkeypatch.chdir(tmp_path / "mine" if name == "." else tmp_path)
    done = cli("package", str(finished), name)
    assert done.code == 1 and "was not made by empatheia. It is left as it is; name another folder" in done.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


# -- runs ----------------------------------------------------------------------------------------------------


def test_a_run_takes_no_folder_of_others(tmp_path):
    recipe = bench.tiny_recipe()
    folder = run_folder(tmp_path, recipe)
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"smoke-seed7 exists and is not a run folder: it holds 'checkpoint' and no"):
        run(recipe, tmp_path, show_progress=False)
    assert files(tmp_path) == {"tiny/smoke-seed7/checkpoint/thesis.txt": b"years of work"}


def test_one_of_two_that_start_at_once_has_the_folder(tmp_path, monkeypatch):
    """The second looks before the first has written its recipe, and writes its own once the first is at work."""
    pytest.importorskip("fcntl")
    recipe, claim, told = bench.tiny_recipe(), runner._claim, []

    def slow_claim(folder: Path, own: Recipe, is_main: bool) -> None:
        if not told:
            told.append("the first")
            with pytest.raises(ConfigError, match=r"another process is at work in .*smoke-seed7\. Wait for it"):
                run(recipe, tmp_path, deadline=0.0)
            told.append("the second")
        claim(folder, own, is_main)

    monkeypatch.setattr(runner, "_claim", slow_claim)
    assert run(recipe, tmp_path, deadline=0.0).state == "paused" and told == ["the first", "the second"]
