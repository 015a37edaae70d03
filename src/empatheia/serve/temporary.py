"""Temporary folders for what people wrote: deleted at the end, and after a kill by the next server that starts."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from empatheia.errors import EmpatheiaError
from empatheia.writing import hold_folder

_PREFIX = "empatheia-texts-"
_YOUNG = 60.0  # seconds in which a folder may not be held yet by who made it


class _HeldError(EmpatheiaError):
    """Somebody uses a folder."""


class PrivateFolder:
    """A new one that nobody else can read, held until it is deleted, by :meth:`cleanup` or at the end of ``with``.

    Attributes:
        name: Its path.
    """

    def __init__(self) -> None:
        sweep()
        self._inside = ExitStack()
        self.name = self._inside.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX))
        self._inside.enter_context(hold_folder(Path(self.name), _HeldError(f"{self.name} is in use.")))

    def cleanup(self) -> None:
        """Deletes it and all that is in it."""
        self._inside.close()

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()


def sweep() -> None:
    """Deletes what killed processes of this user left."""
    if not hasattr(os, "getuid"):  # a system on which a folder cannot be held
        return
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, _HeldError):
            facts = place.lstat()
            is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
            if is_ours and time.time() - facts.st_mtime > _YOUNG:
                with hold_folder(place, _HeldError(f"{place} is in use.")):
                    shutil.rmtree(place)
