"""What is left out where the packages of research and people are not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import lacking

HELPER = "import numpy\n\n\ndef folder():\n    import torch\n\n\ndef plain():\n    return 1\n"
TESTS = """
import pytest
from made_helper import folder, plain
from empatheia.records.dialogue import Turn

@pytest.fixture
def model():
    return folder()

@pytest.fixture
def other(model):
    return model

def test_by_fixture(other): ...

def test_by_name():
    assert folder() is None

def test_inside():
    from empatheia_research.recipes.recipe import load_recipe

def test_with_a_name_of_its_own():
    folder = plain()
    assert folder

def test_of_the_core(tmp_path):
    assert plain()
"""


@pytest.fixture
def without_torch(monkeypatch):
    """As where only the core is installed; what was found is forgotten before and after."""
    real = importlib.util.find_spec
    monkeypatch.setattr(lacking.importlib.util, "find_spec", lambda name: None if name == "torch" else real(name))
    kept = (lacking.absent, lacking.needs_of_file, lacking.needs_of_functions, lacking.everything_is_installed)
    for one in kept:
        one.cache_clear()
    yield
    for one in kept:
        one.cache_clear()


@pytest.mark.parametrize(
    ("source", "lack"),
    [
        ("import torch.nn", "torch"),
        ("from safetensors.torch import save_file", "torch"),
        ("from empatheia_research import shipped", "torch"),
        ("import made_needy", "torch"),
        ("import made_helper", ""),
        ("from empatheia.errors import DataError", ""),
        ("def test_inside():\n    import torch", ""),
        ("import a_module_that_is_misspelt", ""),
    ],
)
def test_a_file_is_left_out_for_what_it_and_its_helpers_import(without_torch, tmp_path, source, lack):
    (tmp_path / "made_helper.py").write_text(HELPER)
    (tmp_path / "made_needy.py").write_text("from empatheia_research.recipes.recipe import load_recipe\n")
    file = tmp_path / "test_made.py"
    file.write_text(source)
    assert lacking.needs_of_file(file) == lack
    assert lacking.pytest_ignore_collect(file) == (True if lack else None)
    lacking._left_out.pop(file, None)


def test_a_test_is_skipped_for_what_it_names(without_torch, tmp_path):
    (tmp_path / "made_helper.py").write_text(HELPER)
    file = tmp_path / "test_made.py"
    file.write_text(TESTS)
    needs = lacking.needs_of_functions(file)
    assert {name for name in needs if name.startswith("test")} == {"test_by_fixture", "test_by_name", "test_inside"}
    assert set(needs.values()) == {"torch"}


def test_fixtures_of_the_conftest_files_above_count(without_torch):
    assert lacking.needs_of_functions(Path(__file__).with_name("test_listener.py"))["tiny_model"] == "torch"


def test_with_everything_installed_nothing_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr(lacking, "everything_is_installed", lambda: True)
    assert lacking.pytest_ignore_collect(tmp_path / "test_that_is_not_there.py") is None
