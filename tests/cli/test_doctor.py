"""``empatheia doctor`` uses what is installed; what is there and does not work is told with what mends it."""

import json
import shutil

import pytest

from empatheia.cli import doctor
from empatheia.cli.checks import CHECKS, REINSTALL, Trial
from empatheia.cli.doctor_uses import USES, trials, tried
from empatheia.errors import CheckpointError


def fail():
    raise TypeError("ResponderOutput.__init__() got an unexpected keyword argument 'cache'")


@pytest.mark.parametrize(
    ("uses", "code"), [([], 0), ([Trial("use: reply", lambda: "sad")], 0), ([Trial("use: reply", fail)], 1)]
)
def test_the_exit_code_tells_what_does_not_work(cli, monkeypatch, uses, code):
    """After an upgrade of transformers nothing generated, and all was said to be well."""
    monkeypatch.setattr(doctor, "trials", lambda extras, joined: uses)
    done = cli("doctor", "--json")
    checks = {check["part"]: check for check in json.loads(done.out)}
    assert done.code == code
    if uses:
        assert checks["use: reply"]["state"] == ("broken" if code else "ok")
        assert checks["use: reply"]["remedy"] == (REINSTALL if code else "")
    if code:
        assert "does not work: TypeError: ResponderOutput" in checks["use: reply"]["found"]
        assert REINSTALL in cli("doctor").out


def test_quick_loads_nothing(cli, monkeypatch):
    monkeypatch.setattr(doctor, "trials", lambda extras, joined: pytest.fail("used"))
    assert cli("doctor", "--quick").code == 0


def test_what_is_not_installed_is_not_broken(cli, monkeypatch):
    real = doctor.version

    def without(package):
        if package in ("fastapi", "matplotlib"):
            raise doctor.PackageNotFoundError(package)
        return real(package)

    asked = {}
    monkeypatch.setattr(doctor, "version", without)
    monkeypatch.setattr(doctor, "trials", lambda extras, joined: asked.update(extras) or [])
    done = cli("doctor", "--json")
    checks = {check["part"]: check for check in json.loads(done.out)}
    assert done.code == 0 and checks["extra plots"]["state"] == checks["extra serve"]["state"] == "optional"
    assert checks["extra serve"]["found"] == "without fastapi"
    assert checks["extra serve"]["remedy"] == "pip install 'empatheia[serve]'"
    assert not asked["plots"] and not asked["serve"] and asked["gguf"]
    parts = {trial.part for trial in trials({"plots": False, "gguf": True}, [CHECKS.get("research")])}
    assert parts >= {"use: extra gguf", "use: reply"} and "use: extra plots" not in parts


def test_a_core_install_says_in_a_line_what_installs_the_others(cli, monkeypatch):
    real = doctor.version

    def without(package):
        if package in ("torch", "sqlalchemy"):
            raise doctor.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(doctor, "version", without)
    done = cli("doctor", "--json", "--quick")
    checks = {check["part"]: check for check in json.loads(done.out)}
    assert done.code == 0 and checks["listener"]["state"] == "ok"
    assert checks["extra research"]["found"] == "without torch"
    assert checks["extra people"]["remedy"] == "pip install 'empatheia[people]'"
    assert not any(part.startswith(("corpus", "extra plots", "second look")) for part in checks)
    monkeypatch.setattr(doctor, "version", real)
    whole = {check["part"] for check in json.loads(cli("doctor", "--json", "--quick").out)}
    assert {"corpus sample", "extra plots", "second look", "ATOMIC 2020"} <= whole


def test_a_package_that_cannot_be_loaded_is_told(cli, monkeypatch):
    def broken():
        raise CheckpointError("its table is cut short")

    monkeypatch.setattr(CHECKS, "get", lambda name: broken())
    done = cli("doctor", "--json", "--quick")
    checks = {check["part"]: check for check in json.loads(done.out)}
    assert done.code == 1 and checks["research"]["found"] == "its table is cut short"


def test_without_what_everything_needs_nothing_is_used(cli, monkeypatch):
    monkeypatch.setattr(doctor, "CORE", (*doctor.CORE, "nonesuch"))
    monkeypatch.setattr(doctor, "trials", lambda extras, joined: pytest.fail("used"))
    assert cli("doctor").code == 3


def test_an_installed_model_is_used(tiny_model, tmp_path, monkeypatch):
    shutil.copytree(tiny_model, tmp_path / "mine")
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path))
    (mine,) = (trial for trial in trials({}, [CHECKS.get("research")]) if trial.part == "use: mine")
    works, found = tried(mine)
    assert works and found.startswith("works (")
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"\0" * 99)
    works, found = tried(mine)
    assert not works and found.startswith("does not work: CheckpointError: ") and "model.safetensors" in found
    assert mine.remedy == f"copy {tmp_path / 'mine'} anew, or train it again"


@pytest.mark.parametrize("extra", ["score", "plots", "search", "gguf", "signing", "onnx", "topics"])
def test_the_use_of_an_extra_says_what_came_of_it(extra):
    (lacking, _) = doctor._packages_of([extra])[extra]
    if lacking:
        pytest.skip(f"the extra {extra} is not installed")
    assert (USES | CHECKS.get("research").uses)[extra]()


def test_studies_and_curation_are_used():
    """Each says a number of its own: what the database answers, and the rows of a table."""
    if doctor._packages_of(["people"])["people"][0]:
        pytest.skip("the extra people is not installed")
    assert [trial.use() for trial in CHECKS.get("people").trials()] == ["a database says 1", "2 rows of 2"]
