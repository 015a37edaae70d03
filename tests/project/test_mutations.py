"""tests/mutations.yaml: every mistake can be made, each room has three, each ranking term its flipped sign."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

import mutation_check
from empatheia.listener.terms.term import TERMS

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src"
MUTATIONS = yaml.safe_load((TESTS / "mutations.yaml").read_text(encoding="utf-8"))
LEAST = 3


def rooms() -> list[str]:
    """Folders of code in the three packages."""
    found = (place for package in sorted(SOURCE.glob("empatheia*")) for place in package.iterdir() if place.is_dir())
    return sorted(place.relative_to(SOURCE).as_posix() for place in found if any(place.glob("*.py")))


def test_every_mistake_can_be_made_and_changes_something():
    mutation_check.check_places(MUTATIONS)
    assert [one["what"] for one in MUTATIONS if one["old"] == one["new"]] == []
    assert len({one["what"] for one in MUTATIONS}) == len(MUTATIONS) >= 80
    places = {place.partition("::")[0] for one in MUTATIONS for place in one["tests"].split()}
    assert [place for place in places if not (TESTS / place).is_file()] == []


def test_each_room_has_three_and_each_ranking_term_one():
    counts = Counter("/".join(one["file"].split("/")[:2]) for one in MUTATIONS)
    assert {room: counts[room] for room in rooms() if counts[room] < LEAST} == {}
    whats = {one["what"] for one in MUTATIONS}
    assert [name for name in TERMS.names() if f"the ranking term {name} has the other sign" not in whats] == []


def test_a_mistake_that_cannot_be_made_is_named():
    with pytest.raises(SystemExit, match=r"terms/term\.py: 'no such line' stands 0 times; once is needed"):
        mutation_check.check_places([{"file": "empatheia/listener/terms/term.py", "old": "no such line"}])
