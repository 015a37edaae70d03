"""``empatheia doctor``: what is installed, where each part comes from, what is missing and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Literal

import typer

from empatheia.cli.doctor_uses import REINSTALL, USES, trials, tried
from empatheia.cli.licences import licences
from empatheia.cli.options import JsonOption
from empatheia.cli.output import print_json, print_lines
from empatheia.errors import EmpatheiaError, MissingResourceError
from empatheia.perceive.perception import bundled_perception
from empatheia.resources import cache_dir, corpus_roots, data_root, find_corpus_file, is_offline
from empatheia.resources.catalogue import (
    LISTENER,
    SMALL,
    bundled_root,
    describe_model,
    find_model,
    known_models,
    second_look_lacks,
)
from empatheia_research.corpora import CORPORA, facts_of, labelled_texts, lexicons, place_of

State = Literal["ok", "missing", "broken", "optional"]
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
_NEED = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*\])? *(?P<range>[^;]*)(; *extra *== *['\"](?P<extra>[\w-]+)['\"])?")


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    part: str
    state: State
    found: str
    remedy: str = ""


def doctor(
    as_json: JsonOption = False,
    with_licences: Annotated[
        bool, typer.Option("--licences", help="Only list the licences of all packages needed.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Look, but load nothing.")] = False,
) -> None:
    """Say what is installed, whether it works, what is missing and how to get it.

    Each part that is installed is loaded and used once. Never uses the network. The exit code is 3 when a needed part
    is missing, else 1 when one that is installed does not work.
    """
    if with_licences:
        rows = licences()
        widest = max(len(row["name"]) for row in rows) + 2
        if as_json:
            print_json(rows)
        else:
            print_lines([[(f"{row['name']:<{widest}}{row['version']:<16}{row['licence']}", "")] for row in rows])
        return
    styles = {"ok": "green", "missing": "bold red", "broken": "bold red", "optional": "yellow"}
    checks = []
    for check in _checks(quick):
        checks.append(check)
        if not as_json:
            line = [(f"{check.state:<9}", styles[check.state]), (f"{check.part:<28}  ", "bold"), (check.found, "")]
            print_lines([[*line, (f"  ->  {check.remedy}" if check.remedy else "", "cyan")]])
    if as_json:
        print_json([asdict(check) for check in checks])
    states = {check.state for check in checks}
    if states & {"missing", "broken"}:
        raise typer.Exit(3 if "missing" in states else 1)


def _checks(quick: bool) -> Iterator[Check]:
    missing = False
    for check in (*_packages(), *_models(), *_corpora(), *_other_data(), *_places()):
        missing = missing or (check.state == "missing" and check.part in CORE)
        yield check
    if quick or missing:  # without what everything needs nothing works, as was said
        return
    for trial in trials({name: not lacking for name, (lacking, _) in _extras().items()}):
        works, found = tried(trial)
        yield Check(trial.part, "ok" if works else "broken", found, "" if works else trial.remedy)


def _packages() -> Iterator[Check]:
    yield Check("python", "ok", platform.python_version())
    wanted = {need["name"]: f"{need['name']}{need['range'].strip()}" for need in _needs() if not need["extra"]}
    for name in CORE:
        found = _version(name)
        remedy = "" if found else f"pip install '{wanted.get(name, name)}'"
        yield Check(name, "ok" if found else "missing", found or "not installed", remedy)
    for extra, (lacking, found) in _extras().items():
        remedy = f"pip install 'empatheia[{extra}]'" if lacking else ""
        text = f"without {', '.join(lacking)}" if lacking else ", ".join(found)
        yield Check(f"extra {extra}", "optional" if lacking else "ok", text, remedy)


def _extras() -> dict[str, tuple[list[str], list[str]]]:
    """Extras a user has a use for, to the packages that are not here and those that are, with versions."""
    found: dict[str, tuple[list[str], list[str]]] = {extra: ([], []) for extra in USES}
    for need in _needs():
        if need["extra"] in found and need["name"] != "empatheia":
            lacking, here = found[need["extra"]]
            number = _version(need["name"])
            (here if number else lacking).append(f"{need['name']} {number}".strip())
    return {extra: packages for extra, packages in found.items() if any(packages)}


def _needs() -> list[re.Match[str]]:
    """What the package needs: its name, range, and the extra it is for, if it is for one."""
    try:
        return [match for line in requires("empatheia") or () if (match := _NEED.match(line))]
    except PackageNotFoundError:
        return []


def _version(package: str) -> str:
    """Of an installed package; empty where it is not here."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _models() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        return
    yield _bundled()
    yield _listener()
    yield _second_look()
    yield _more_models()


def _bundled() -> Check:
    default = bundled_root() / SMALL
    if not default.is_dir():
        return Check("bundled model", "missing", f"not at {default}", REINSTALL)
    entry = describe_model(default, SMALL)
    if entry.fault:
        return Check("bundled model", "missing", entry.fault, REINSTALL)
    facts = f"{entry.system}, {entry.megabytes:.1f} MB, {entry.licence}"
    return Check("bundled model", "ok", f"{entry.title} ({facts})")


def _listener() -> Check:
    entry = describe_model(find_model(LISTENER), LISTENER)
    if entry.fault:
        return Check("listener", "missing", entry.fault, REINSTALL)
    try:
        bundled_perception()
    except EmpatheiaError as error:
        return Check("listener", "missing", str(error), REINSTALL)
    return Check("listener", "ok", f"{entry.title} perceives ({entry.system}), a reflection answers")


def _second_look() -> Check:
    lacks = second_look_lacks()
    if not lacks:
        text = "a small language model reads what is felt a second time, where perception: joined asks for it"
        return Check("second look", "ok", text)
    text = f"{lacks}; with it, and perception: joined, the feeling is right more often"
    fix = 'pip install "empatheia[gguf]"' if "gguf" in lacks else "empatheia models get second_look"
    return Check("second look", "optional", text, fix)


def _more_models() -> Check:
    others = [entry for entry in known_models() if entry.origin != "bundled"]
    places = sorted({str(Path(entry.folder).parent) for entry in others})
    mirror = os.environ.get("EMPATHEIA_MODELS", "").strip()
    return Check(
        "more models",
        "ok" if others else "optional",
        f"{len(others)} in {' and '.join(places) or mirror or 'EMPATHEIA_MODELS (unset)'}",
        "" if others or mirror else "empatheia models train understanding, or EMPATHEIA_MODELS=FOLDER of model folders",
    )


def _corpora() -> Iterator[Check]:
    root = data_root()
    if root is not None and not root.is_dir():
        yield Check("EMPATHEIA_DATA", "missing", f"{root} is not a folder", "point EMPATHEIA_DATA at your corpora")
    for name in CORPORA.names():
        here = place_of(name)
        if here is None:
            yield Check(f"corpus {name}", "optional", "not here", _how_to_get(name))
        else:
            yield Check(f"corpus {name}", "ok", str(here.parent) if facts_of(name).file else "in the package")


def _how_to_get(name: str) -> str:
    """One corpus is fetched; of the others the command says what to do by hand."""
    command = f"empatheia data get {name}"
    return command if name == "empathetic_dialogues" else f"{command} says how"


def _other_data() -> Iterator[Check]:
    """What recipes read besides conversations."""
    from empatheia_research.corpora import atomic

    atomic_files = [file for files in atomic.SPLITS.values() for file in files]
    for part, folder, files, use, get in (
        (
            "lexicon vader",
            lexicons.FOLDER,
            [lexicons.KNOWN["vader"]],
            "EmpDG, Gao et al.'s eLex",
            lexicons.GET["vader"],
        ),
        ("lexicon warriner", lexicons.FOLDER, [lexicons.KNOWN["warriner"]], "KEMP", lexicons.GET["warriner"]),
        ("ATOMIC 2020", atomic.FOLDER, atomic_files, "CEM and IMAGINE at size cpu", atomic.GET),
    ):
        try:
            yield Check(part, "ok", str(find_corpus_file(folder, files).parent))
        except MissingResourceError:
            yield Check(part, "optional", f"not here; read by {use}", f"EMPATHEIA_DATA/{folder}: from {get}")
    groups = next((root / "20newsgroups" for root in corpus_roots() if (root / "20newsgroups").is_dir()), None)
    remedy = f"EMPATHEIA_DATA/20newsgroups: from {labelled_texts.GET}"
    if groups is not None:
        yield Check("20 Newsgroups", "ok", str(groups))
    else:
        yield Check("20 Newsgroups", "optional", "not here; read by TopicPrepend", remedy)


def _places() -> Iterator[Check]:
    cache = cache_dir()
    nearest = next((folder for folder in (cache, *cache.parents) if folder.exists()), Path("/"))
    if os.access(nearest, os.W_OK):
        yield Check("cache", "ok", f"{cache}{'' if cache.exists() else ' (made when needed)'}")
    else:
        yield Check("cache", "missing", f"{cache} cannot be written", "set EMPATHEIA_CACHE to a folder you may write")
    yield Check("network", "ok", "switched off (offline)" if is_offline() else "allowed; this report did not use it")
