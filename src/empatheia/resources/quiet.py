"""Silence while something of transformers is loaded."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from io import StringIO


@contextmanager
def quiet_loading(expands: bool = False) -> Iterator[None]:
    """Keeps transformers' progress bars and load reports away from the caller's terminal.

    Args:
        expands: A GGUF file may be expanded, whose bar cannot be switched off; nothing is written to stderr meanwhile.
    """
    transformers_logging = sys.modules.get("transformers.utils.logging")
    if transformers_logging is None:  # nothing to silence: what loads models has imported it by now
        yield
        return
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.CRITICAL)
    transformers_logging.disable_progress_bar()
    try:
        with redirect_stderr(StringIO()) if expands else nullcontext():
            yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
