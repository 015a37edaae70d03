"""``empatheia analyze`` with the tiny listener and components without a model."""

from __future__ import annotations

import json

import pytest
from fake_components import put_into_registry


@pytest.fixture
def ask(cli, tiny_model, tmp_path, monkeypatch):
    """Runs ``analyze`` with the tiny listener and, where installed, fakes behind the registry."""
    monkeypatch.setenv("EMPATHEIA_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    put_into_registry(monkeypatch)
    for name in ("intent", "causes"):
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        (folder / "empatheia.json").write_text(json.dumps({"format": 1, "name": f"the {name}"}))
    return lambda *arguments, stdin="": cli("analyze", *arguments, "--model", str(tiny_model), stdin=stdin)
