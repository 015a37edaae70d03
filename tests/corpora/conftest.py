"""The real corpora, where EMPATHEIA_DATA names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    value = os.environ.get("EMPATHEIA_DATA", "").strip()
    if not value:
        pytest.skip("EMPATHEIA_DATA is not set: the real corpora are not here")
    return Path(value)


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without corpora: returns its empty cache folder."""
    monkeypatch.delenv("EMPATHEIA_DATA", raising=False)
    monkeypatch.setenv("EMPATHEIA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
