"""Old names of modules open with a warning, and they are the modules of today."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from empatheia.moved import MODULES, moved_name


@pytest.fixture
def forgotten(request):
    """An old name that nobody has imported yet."""
    sys.modules.pop(request.param, None)
    yield request.param
    sys.modules.pop(request.param, None)


@pytest.mark.parametrize("forgotten", sorted(MODULES), indirect=True)
def test_an_old_name_is_the_module_of_today(forgotten):
    today = import_module(MODULES[forgotten])
    spec = today.__spec__
    with pytest.warns(DeprecationWarning, match=f"{forgotten} is now {MODULES[forgotten]}"):
        assert import_module(forgotten) is today
    assert today.__spec__ is spec and today.__name__ == MODULES[forgotten]


@pytest.mark.parametrize(
    ("package", "name", "module"),
    [
        ("empatheia.understanding.affect", "AffectReader", "empatheia.understanding.affect.reader"),
        ("empatheia.understanding.causes", "CausesOfTurns", "empatheia.understanding.causes.turns"),
        ("empatheia.understanding.mechanisms", "MechanismIdentifier", "empatheia.understanding.mechanisms.identifier"),
    ],
)
def test_a_module_that_became_a_folder_still_has_its_names(package, name, module):
    with pytest.warns(DeprecationWarning, match=f"{package}.{name} is now in {module}"):
        assert getattr(import_module(package), name) is getattr(import_module(module), name)
    assert not hasattr(import_module(package), "Nothing")
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        moved_name(package, "Nothing", module)


def test_dunder_names_are_not_looked_for():
    with pytest.raises(AttributeError, match="__path_of_nothing__"):
        moved_name("empatheia.understanding", "__path_of_nothing__", "nowhere")


def test_a_name_that_never_was_is_not_found():
    assert find_spec("empatheia.understanding.nothing") is None
