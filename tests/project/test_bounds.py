"""The ranges of pyproject.toml are what ``make bounds`` ran, and ``make wheel`` runs commands that there are."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import bounds
import wheel
from test_project import _check_command

PAGE = bounds.PAGE.read_text(encoding="utf-8")
ROWS = {name: (low, new) for name, low, new in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)}


def numbers(version: str) -> list[int]:
    """``1.10.0`` and ``1.10`` are the same version."""
    found = [int(number) for number in version.partition("+")[0].split(".")]
    return found[: max((i for i, number in enumerate(found, 1) if number), default=0)]


def test_each_lower_bound_is_what_was_run():
    """transformers 5.24 generated nothing, peft 0.17 and nltk 3.9 could not be imported: nobody had run the ends."""
    project = tomllib.loads((bounds.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (needs for name, needs in project["optional-dependencies"].items() if name not in ("dev", "docs"))
    needs = [*project["dependencies"], *(need for extra in extras for need in extra)]
    allowed = dict(re.findall(r"^([\w.-]+)(?:\[\w+\])?[>=]=([\d.]+)", "\n".join(needs), re.MULTILINE))
    assert set(allowed) == set(bounds.direct()) and len(allowed) > 20
    told = "run make bounds, and raise what was not run"
    odd = {name: (low, ROWS[name][0]) for name, low in allowed.items() if numbers(low) != numbers(ROWS[name][0])}
    assert odd == {}, told


@pytest.mark.parametrize("end", [0, 1])
def test_all_that_was_run_at_an_end_works(end):
    assert ROWS["exit codes"][end] == "0, 0, 0"
    assert re.fullmatch(r"\d+ passed(, \d+ skipped)?", ROWS["quick tests"][end])
    for row in ("responders that generate", "parts that doctor uses"):
        done, _, wanted = ROWS[row][end].partition(" of ")
        assert done == wanted and int(done) > 9


@pytest.mark.parametrize("name", [*wheel.COMMANDS, "serve"])
def test_the_commands_that_a_wheel_is_tried_with_exist(name):
    words = wheel.SERVE if name == "serve" else wheel.COMMANDS[name][0]
    assert words[0] == name
    _check_command(list(words), name)
