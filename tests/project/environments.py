"""Environments of their own, for what must hold outside of the one that the tests run in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUIET = ("-q", "--disable-pip-version-check", "--no-input", "--no-compile")


def make_environment(folder: Path, torch: str = "") -> Path:
    """A new virtual environment with uv, and with that torch, in it; gives its Python.

    Args:
        folder: Is made anew.
        torch: What pip installs first and alone: asked for by another package, it would fetch the newest CUDA build.
            Empty = none.
    """
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    if torch:
        pip(python, torch)
    pip(python, "uv")
    return python


def pip(python: Path, *arguments: str) -> None:
    """``pip install`` in an environment, with what PIP_FLAGS adds."""
    flags = os.environ.get("PIP_FLAGS", "").split()
    subprocess.run([str(python), "-m", "pip", "install", *QUIET, *flags, *arguments], check=True)


def version_in(python: Path, package: str) -> str:
    """The version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def clean_environment() -> dict[str, str]:
    """The variables of this process without those that lead to a checkout or to corpora and models of its user."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EMPATHEIA_"))}
