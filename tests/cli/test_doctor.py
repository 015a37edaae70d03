"""``empatheia doctor`` uses what is installed; what is there and does not work is told with what mends it."""

import json
import shutil

import pytest

from empatheia.cli import doctor
from empatheia.cli.doctor_uses import REINSTALL, USES, Trial, trials, tried


def fail():
    raise TypeError("ResponderOutput.__init__() got an unexpected keyword argument 'cache'")


@pytest.mark.parametrize(
    ("uses", "code"), [([], 0), ([Trial("use: reply", lambda: "sad")], 0), ([Trial("use: reply", fail)], 1)]
)
def test_the_exit_code_tells_what_does_not_work(cli, monkeypatch, uses, code):
    """After an upgrade of transformers nothing generated, and all was said to be well."""
    monkeypatch.setattr(doctor, "trials", lambda extras: uses)
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
    monkeypatch.setattr(doctor, "trials", lambda extras: pytest.fail("used"))
    assert cli("doctor", "--quick").code == 0


def test_what_is_not_installed_is_not_broken(cli, monkeypatch):
    real = doctor.version

    def without(package):
        if package in ("fastapi", "matplotlib"):
            raise doctor.PackageNotFoundError(package)
        return real(package)

    asked = {}
    monkeypatch.setattr(doctor, "version", without)
    monkeypatch.setattr(doctor, "trials", lambda extras: asked.update(extras) or [])
    done = cli("doctor", "--json")
    checks = {check["part"]: check for check in json.loads(done.out)}
    assert done.code == 0 and checks["extra plots"]["state"] == checks["extra serve"]["state"] == "optional"
    assert checks["extra serve"]["found"] == "without fastapi"
    assert checks["extra serve"]["remedy"] == "pip install 'empatheia[serve]'"
    assert not asked["plots"] and not asked["serve"] and asked["gguf"]
    assert {trial.part for trial in trials({"plots": False, "gguf": True})} >= {"use: extra gguf", "use: reply"}
    assert "use: extra plots" not in {trial.part for trial in trials({"plots": False})}


def test_without_what_everything_needs_nothing_is_used(cli, monkeypatch):
    monkeypatch.setattr(doctor, "CORE", (*doctor.CORE, "nonesuch"))
    monkeypatch.setattr(doctor, "trials", lambda extras: pytest.fail("used"))
    assert cli("doctor").code == 3


def test_an_installed_model_is_used(tiny_model, tmp_path, monkeypatch):
    shutil.copytree(tiny_model, tmp_path / "mine")
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path))
    (mine,) = (trial for trial in trials({}) if trial.part == "use: mine")
    works, found = tried(mine)
    assert works and found.startswith("works (")
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"\0" * 99)
    works, found = tried(mine)
    assert not works and found.startswith("does not work: CheckpointError: ") and "model.safetensors" in found
    assert mine.remedy == f"copy {tmp_path / 'mine'} anew, or train it again"


@pytest.mark.parametrize("extra", ["plots", "search", "gguf", "signing", "onnx", "topics", "study"])
def test_the_use_of_an_extra_says_what_came_of_it(extra):
    packages, _ = doctor._extras()[extra]
    if packages:
        pytest.skip(f"the extra {extra} is not installed")
    assert USES[extra]()
