"""Hooks of pytest: nothing waits for ever, and what hung is told with the stacks of all threads.

pytest-timeout ends a test by an exception, which a test can swallow and a call in C never sees. Some time after it, and
after the session for threads and processes that keep it from ending, the process ends here whatever it does.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from typing import IO

import pytest

TEST_SECONDS = 420.0
"""More than --timeout in pyproject.toml."""
END_SECONDS = 180.0
_told: list[IO[str]] = []


def keep_error_output() -> IO[str]:
    """Called before pytest captures it."""
    if not _told:
        _told.append(os.fdopen(os.dup(2), "w"))
    return _told[0]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    mark = item.get_closest_marker("timeout")
    longer = float(mark.args[0]) + 60.0 if mark is not None and mark.args else 0.0
    faulthandler.dump_traceback_later(max(TEST_SECONDS, longer), exit=True, file=keep_error_output())
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Iterator[None]:
    faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=keep_error_output())
    return (yield)
