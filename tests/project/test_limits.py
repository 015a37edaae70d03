"""A test that hangs ends the run, which says where; so does a thread that keeps it from ending."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SWALLOWS = """
import time
def test_that_swallows():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
"""
LEAVES_A_THREAD = """
import threading, time
def test_that_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
"""


@pytest.mark.parametrize(
    ("body", "told", "workers"),
    [
        (SWALLOWS, "in test_that_swallows", "0"),
        (SWALLOWS, "in test_that_swallows", "1"),
        (LEAVES_A_THREAD, "in _shutdown", "0"),
    ],
    ids=["test", "test of a worker", "thread"],
)
def test_a_run_that_hangs_ends_and_says_where(tmp_path, body, told, workers):
    hooks = "pytest_runtest_protocol, pytest_sessionfinish"
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(TESTS)!r})\nimport limits\n"
        f"limits.TEST_SECONDS = limits.END_SECONDS = 2.0\nfrom limits import {hooks}\n"
        "def pytest_configure(config):\n    limits.keep_error_output()\n"
    )
    (tmp_path / "test_x.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--timeout=1", "--max-worker-restart=0", "-p"]
    done = subprocess.run(
        [*command, "no:cacheprovider", str(tmp_path)], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode != 0, done.stdout
    assert "Timeout (0:00:02)!" in done.stderr and told in done.stderr, done.stderr + done.stdout
