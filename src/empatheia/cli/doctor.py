"""``empatheia doctor``: what is installed, where each part comes from, what is missing and how to get it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated

import typer

from empatheia.cli.checks import CHECKS, REINSTALL, Check, DoctorChecks
from empatheia.cli.doctor_uses import USES, trials, tried
from empatheia.cli.licences import licences
from empatheia.cli.options import JsonOption
from empatheia.cli.output import print_json, print_lines
from empatheia.errors import EmpatheiaError
from empatheia.perceive.perception import bundled_perception
from empatheia.resources import cache_dir, is_offline
from empatheia.resources.catalogue import LISTENER, describe_model, find_model

CORE = ("tokenizers", "safetensors", "numpy", "pydantic", "pyyaml", "jinja2", "typer", "rich", "onnxruntime")
_NEED = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*\])? *(?P<range>[^;]*)(; *extra *== *['\"](?P<extra>[\w-]+)['\"])?")


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
    extras = _extras()
    for check in (*_packages(), _listener(), *_extra_checks(extras)):
        missing = missing or (check.state == "missing" and check.part in CORE)
        yield check
    joined: list[DoctorChecks] = []
    for name in CHECKS.names():
        if not _lacks(name, extras):
            yield from _joined(name, joined)
    yield from _places()
    if quick or missing:  # without what everything needs nothing works, as was said
        return
    for trial in trials({name: not lacking for name, (lacking, _) in extras.items()}, joined):
        works, found = tried(trial)
        yield Check(trial.part, "ok" if works else "broken", found, "" if works else trial.remedy)


def _joined(name: str, joined: list[DoctorChecks]) -> Iterator[Check]:
    """The lines of another package, which is put to those that join."""
    try:
        checks = CHECKS.get(name)
        yield from checks.look()
    except EmpatheiaError as error:
        yield Check(name, "broken", str(error), f"pip install --upgrade 'empatheia[{name}]'")
        return
    joined.append(checks)


def _packages() -> Iterator[Check]:
    yield Check("python", "ok", platform.python_version())
    wanted = {need["name"]: f"{need['name']}{need['range'].strip()}" for need in _needs() if not need["extra"]}
    for name in CORE:
        found = _version(name)
        remedy = "" if found else f"pip install '{wanted.get(name, name)}'"
        yield Check(name, "ok" if found else "missing", found or "not installed", remedy)


def _extra_checks(extras: dict[str, tuple[list[str], list[str]]]) -> Iterator[Check]:
    for extra, (lacking, found) in extras.items():
        remedy = f"pip install 'empatheia[{extra}]'" if lacking else ""
        text = f"without {', '.join(lacking)}" if lacking else ", ".join(found)
        yield Check(f"extra {extra}", "optional" if lacking else "ok", text, remedy)


def _lacks(name: str, extras: dict[str, tuple[list[str], list[str]]]) -> list[str]:
    return extras[name][0] if name in extras else []


def _extras() -> dict[str, tuple[list[str], list[str]]]:
    """Extras a user has a use for, to the packages that are not here and those that are, with versions.

    Those of the core; each package that joins; and of one that is complete, the extras it has a use for.
    """
    own = _packages_of([*USES, *CHECKS.names()])
    for name in CHECKS.names():
        if not _lacks(name, own):
            try:
                own |= _packages_of(list(CHECKS.get(name).uses))
            except EmpatheiaError:  # told where it joins
                continue
    return own


def _packages_of(extras: Sequence[str]) -> dict[str, tuple[list[str], list[str]]]:
    found: dict[str, tuple[list[str], list[str]]] = {extra: ([], []) for extra in extras}
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


def _listener() -> Check:
    entry = describe_model(find_model(LISTENER), LISTENER)
    if entry.fault:
        return Check("listener", "missing", entry.fault, REINSTALL)
    try:
        bundled_perception()
    except EmpatheiaError as error:
        return Check("listener", "missing", str(error), REINSTALL)
    return Check("listener", "ok", f"{entry.title} perceives ({entry.system}), a reflection answers")


def _places() -> Iterator[Check]:
    cache = cache_dir()
    nearest = next((folder for folder in (cache, *cache.parents) if folder.exists()), Path("/"))
    if os.access(nearest, os.W_OK):
        yield Check("cache", "ok", f"{cache}{'' if cache.exists() else ' (made when needed)'}")
    else:
        yield Check("cache", "missing", f"{cache} cannot be written", "set EMPATHEIA_CACHE to a folder you may write")
    yield Check("network", "ok", "switched off (offline)" if is_offline() else "allowed; this report did not use it")
