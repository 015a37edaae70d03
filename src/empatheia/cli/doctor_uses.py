"""Each installed part loaded and used once, for ``empatheia doctor``: a part may be there and not work."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from empatheia.care import assess
from empatheia.cli.checks import TEXT, DoctorChecks, Trial
from empatheia.resources.quiet import quiet_loading


def tried(trial: Trial) -> tuple[bool, str]:
    """Whether it works, and what came of it in one line."""
    start = time.perf_counter()
    try:
        with quiet_loading():
            came = trial.use()
    except Exception as error:  # whatever is broken is told, and the next part is tried
        return False, f"does not work: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return True, f"works ({time.perf_counter() - start:.1f} s): {came}"


def trials(extras: Mapping[str, bool], joined: Sequence[DoctorChecks] = ()) -> Iterator[Trial]:
    """All that is installed, one after another.

    Args:
        extras: Name of an extra to whether its packages are here.
        joined: What other packages add.
    """
    yield Trial("use: reply", _reply)
    yield Trial("use: care", _care)
    uses = dict(USES)
    for checks in joined:
        yield from checks.trials()
        uses |= checks.uses
    for extra, is_here in extras.items():
        if is_here and extra in uses:
            yield Trial(f"use: extra {extra}", uses[extra], f"pip install --upgrade 'empatheia[{extra}]'")


def _reply() -> str:
    from empatheia.listener.listener import respond

    reply = respond(TEXT)
    emotion = reply.analysis.newest.emotion
    return f"{emotion.label if emotion else 'nothing named'}, {reply.text!r}"


def _care() -> str:
    found = assess("I want to kill myself tonight.")
    if found.level != "crisis":
        raise RuntimeError(f"a text of somebody who wants to die is of level {found.level!r}")
    return "a crisis is told"


def _serve() -> str:
    import fastapi

    importlib.import_module("empatheia.serve.run")
    return f"fastapi of OpenAPI {fastapi.FastAPI().openapi()['openapi']}"


def _score() -> str:
    import sacrebleu

    from empatheia.metrics import METRICS

    importlib.import_module("nltk")
    return f"sacrebleu {sacrebleu.__version__}, {len(METRICS.names())} metrics"


def _mcp() -> str:
    importlib.import_module("empatheia.serve.tools")
    return "imported"


USES: Mapping[str, Callable[[], str]] = {"serve": _serve, "mcp": _mcp, "score": _score}
"""An extra of the core to its use."""
