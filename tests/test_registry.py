"""Names to what is imported when it is asked for."""

import sys

import pytest

from empatheia.errors import ConfigError, MissingDependencyError
from empatheia.registry import Registry


def test_a_package_of_ours_whose_needs_are_missing_says_what_installs_it(tmp_path, monkeypatch):
    package = tmp_path / "empatheia_trial"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text("import nonesuch_module")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("colours", {"own": "empatheia_trial.parts:Own", "gone": "empatheia_trial.gone:Own"})
    with pytest.raises(
        MissingDependencyError, match=r"the colours 'own' needs the module 'nonesuch_module'.* \S+\[trial\]'$"
    ):
        registry.get("own")
    with pytest.raises(ModuleNotFoundError, match=r"empatheia_trial\.gone"):  # a mistake of ours is no missing package
        registry.get("gone")
    with pytest.raises(ConfigError, match=r"no colours is called 'owm'. Did you mean 'own'\? Known: gone, own\."):
        registry.get("owm")
    sys.modules.pop("empatheia_trial", None)


def test_somebody_elses_module_that_is_broken_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "their_parts.py").write_text("import nonesuch_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nonesuch_module"):
        Registry("colours", {"theirs": "their_parts:Own"}).get("theirs")
