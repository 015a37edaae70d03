"""A task for workers, in a module that is imported in no time."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def doubled(task: tuple[int, str]) -> int:
    """Dies if it is told to: always, or only the first time."""
    number, marker = task
    if marker == "always":
        os.kill(os.getpid(), signal.SIGKILL)
    if marker and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number
