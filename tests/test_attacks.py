"""Damaged files and odd command lines: each is read or told, none ends in a traceback. ``make fuzz`` tries more."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent / "attacks"))

from cases import DAMAGES, command_of, loud, quiet, read_damaged, run_command
from readers import readers

N_FILES, N_COMMANDS = 1800, 200
SEEDS = st.integers(0, 2**32)
BOUNDED = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.generate],  # a slow case is told at once: shrinking it would run it a thousand times
}


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    quiet()
    yield
    loud()


@pytest.mark.parametrize("reader", readers(), ids=lambda reader: reader.name)
def test_a_good_file_is_read(reader):
    assert read_damaged(reader, "nothing", 0) == "read"


@given(st.sampled_from(readers()), st.sampled_from(list(DAMAGES)), SEEDS)
@settings(max_examples=N_FILES, **BOUNDED)
def test_a_damaged_file_is_read_or_told(reader, damage, seed):
    assert read_damaged(reader, damage, seed) in ("read", "told")


@given(SEEDS)
@settings(max_examples=N_COMMANDS, **BOUNDED)
def test_an_odd_command_line_is_done_or_told(seed):
    assert run_command(command_of(seed)) in ("done", "told")


def test_the_attack_sees_a_fault():
    from cases import FaultError
    from readers import Reader

    with pytest.raises(FaultError, match="KeyError"):
        read_damaged(Reader("x", "x.txt", b"abc", lambda folder: {}["none"]), "cut", 1)


def test_the_table_of_a_run_of_its_own(tmp_path):
    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).parent / "attacks" / "fuzz.py")
    assert spec is not None and spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    out = tmp_path / "robustness.md"
    assert fuzz.main(["--cases", "60", "--seed", "3", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "| deep nesting |" in text and "60 cases" in text and "0 faults" in text
