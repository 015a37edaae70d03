"""Damaged files and odd command lines: each is read or told, none ends in a traceback. ``make fuzz`` tries more."""

from __future__ import annotations

import importlib.util
import multiprocessing
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent / "attacks"))

from cases import DAMAGES, bounded, command_of, loud, quiet, read_damaged, run_command
from readers import ROOT, readers

N_FILES, N_COMMANDS = 900, 100
FORKED = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes are not forked")
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
    with bounded():
        assert read_damaged(reader, damage, seed) in ("read", "told")


@given(SEEDS)
@settings(max_examples=N_COMMANDS, **BOUNDED)
def test_an_odd_command_line_is_done_or_told(seed):
    with bounded():
        assert run_command(command_of(seed)) in ("done", "told")


def test_the_attack_sees_a_fault():
    from cases import FaultError
    from readers import Reader

    with pytest.raises(FaultError, match="KeyError"):
        read_damaged(Reader("x", "x.txt", b"abc", lambda folder: {}["none"]), "cut", 1)


def test_a_case_that_takes_too_long_is_a_fault_and_says_where(monkeypatch):
    import cases

    monkeypatch.setattr(cases, "MOST_SECONDS", 0.05)
    with pytest.raises(cases.FaultError, match=r"s of work or 300 s of waiting, in .*random\.py"), cases.bounded():
        while True:
            random.Random(1).shuffle([0] * 1000)  # nearly all of it in random.py
    monkeypatch.setattr(cases, "MOST_SECONDS", 10.0)
    monkeypatch.setattr(cases, "MOST_WAITED", 0.05)
    with pytest.raises(cases.FaultError, match=r"0\.05 s of waiting"), cases.bounded():
        time.sleep(30)
    assert run_command(["score", "--hyp", "none.txt"]) == "told"


def test_a_change_beside_the_folder_of_a_command_is_a_fault(monkeypatch):
    import cases

    def stray(words):
        Path("../others/thesis.txt").write_text("gone")
        raise SystemExit(0)

    monkeypatch.setattr("empatheia.cli.main", stray)
    with pytest.raises(cases.FaultError, match=r"have changed: .*thesis\.txt"):
        run_command(["doctor"])


@FORKED
def test_of_processes_that_start_at_once_one_has_the_run_folder(tmp_path):
    from crowds import starts

    from empatheia_research.recipes.recipe import load_recipe

    assert starts(3, tmp_path, load_recipe(ROOT / "recipes/gao2021/soft.yaml", "smoke")) == []


@FORKED
@pytest.mark.parametrize("number", range(3))
def test_a_cache_whose_writers_are_killed_is_read_afterwards(tmp_path, number):
    from crowds import CACHES, kill_writers

    n_entries, faults = kill_writers(CACHES[number], 4, tmp_path, random.Random(1))
    assert faults == [] and n_entries > 0


def test_a_full_disk_is_told_and_what_follows_is_equal(tmp_path):
    import kills

    write = "import sys; open('out.txt', 'w').write(300_000 * 'x')"
    job = kills.Job("x", ("score", "none.txt"), (), ("out.txt",))
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "out.txt").write_text(300_000 * "x")
    ran = []

    def run_once(job, folder, words, after):
        done = subprocess.run([sys.executable, "-c", write], cwd=folder, capture_output=True, text=True, timeout=60)
        ran.append(done.returncode)
        return done.returncode, "error: no space left on the disk"

    faults = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kills, "run_once", run_once)
        told = kills.fill_disk(job, 0.4, whole, kills.left(whole, job), tmp_path / "disk", faults)
    if told == "no right to mount":
        pytest.skip(told)
    assert told == "told, then whole" and ran == [1, 0]
    assert faults == ["x: on a full disk it left out.txt, which is not whole"]


def test_the_table_of_an_attack_whose_process_dies_and_which_goes_on(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("fuzz", Path(__file__).parent / "attacks" / "fuzz.py")
    assert spec is not None and spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    ran = []

    def run_here(command, **options):
        assert options["timeout"] and options["stdin"] == subprocess.DEVNULL
        ran.append(command)
        if len(ran) == 1:  # in the middle of its third case
            Path(command[command.index("--told") + 1]).write_text('[2, "cut", "EDOS", 7]')
            return subprocess.CompletedProcess(command, -9)
        return subprocess.CompletedProcess(command, fuzz.main(command[2:]))

    monkeypatch.setattr(fuzz.subprocess, "run", run_here)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz, "code_mark", lambda: "x")
    out = tmp_path / "robustness.md"
    arguments = ["--cases", "20", "--seed", "3", "--out", str(out), "--jobs", "1"]
    assert fuzz.main(arguments) == 1
    text = out.read_text(encoding="utf-8")
    assert "| damage | cases | read or done | told | faults |" in text and "18 cases (seed 3), 1 faults" in text
    assert "- EDOS, cut, 7: the process ended with -9; the 2 cases before are not counted" in text
    assert ran[1][ran[1].index("--first") + 1] == "3" and len(ran) == 2
    assert fuzz.main(arguments) == 1 and len(ran) == 2  # what is done is not done again
    assert out.read_text(encoding="utf-8") == text
