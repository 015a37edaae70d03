"""One case of the attack: a reader and a damaged file, or a command line; what comes of it is told or is a fault."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from damage import DAMAGES, ODD, damaged
from readers import Reader

from empatheia.errors import EmpatheiaError

PACKAGES = ("empatheia", "empatheia_research", "empatheia_people")
CHATTY = ("respond", "chat", "analyze", "serve", "mcp")
"""Commands that would load the bundled model (and listen for ever); they get one that is not there."""
LEFT_OUT = ("demo", "judge", "reproduce")
"""Would load the bundled model whatever is given, or ask an endpoint, or take seconds over all recipes."""
SUB = {
    "curate": ("run", "resume", "status", "report", "sample", "train-segmenter"),
    "study": ("init", "status", "export", "report", "close", "backup", "invite", "plan", "simulate"),  # not serve
    "care": ("check", "evaluate", "resources"),
    "models": ("list", "show", "remove", "pull"),
    "data": ("list", "show", "stats", "path", "licences"),
    "plot": ("curves", "confusion", "labels", "systems", "tradeoff", "focus"),
}
VALUES = (
    *(str(value) for value in ODD if not isinstance(value, dict | list)),
    *("-", "--", "--help", "none.jsonl", "/", ".", "..", "/dev/null", "../x", "x" * 5000, "a/b/c", "é日", "\x1b[31m"),
    *("seed=1", "stages.x.epochs=2", "a=[[[[", "9" * 30, "-1", "1e999", "nan", "cpu", "full", "cuda:99", "warp", "*"),
)
OPTIONS = (
    *(
        "--out",
        "--json",
        "--model",
        "--with",
        "--column",
        "--speaker",
        "--resume",
        "--size",
        "--seed",
        "--set",
        "--limit",
    ),
    *("--results", "--runs", "--replies", "--format", "--hyp", "--ref", "--x", "--y", "--split", "--n", "--relations"),
    *(
        "--quiet",
        "--record",
        "--batch-size",
        "--device",
        "--focus",
        "--alpha",
        "--emotion",
        "--what",
        "--top",
        "--html",
    ),
)


MOST_SECONDS = 10.0
"""Of processor time."""
MOST_WAITED = 300.0
"""Seconds on the wall; a machine may be busy with other things."""
MOST_BYTES = 2 << 30
"""Of memory."""


class FaultError(AssertionError):
    """Something that should have been told was not."""


class TooLongError(BaseException):
    """A case takes longer than any may; nobody catches it by chance."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """A case within :data:`MOST_SECONDS`, :data:`MOST_WAITED` and :data:`MOST_BYTES`; in the main thread only.

    Raises:
        FaultError: It went beyond, or ended with something else than an ``Exception``.
    """

    def end(*_: object) -> None:
        raise TooLongError

    before, limits = _peak(), ((signal.ITIMER_PROF, MOST_SECONDS), (signal.ITIMER_REAL, MOST_WAITED))
    earlier = [(sign, signal.signal(sign, end)) for sign in (signal.SIGPROF, signal.SIGALRM)]
    try:
        # again and again, as one may be lost in a callback; whose timer ran before (a test's limit) goes on afterwards
        left = [(timer, signal.setitimer(timer, seconds, 1.0)) for timer, seconds in limits]
        try:
            yield
        finally:
            for timer, _ in limits:
                signal.setitimer(timer, 0)
    except TooLongError as error:
        where = [frame for frame in traceback.extract_tb(error.__traceback__) if "attacks" not in frame.filename][-1:]
        place = f"{where[0].filename}:{where[0].lineno}" if where else "nowhere in particular"
        raise FaultError(f"more than {MOST_SECONDS:g} s of work or {MOST_WAITED:g} s of waiting, in {place}") from None
    finally:
        for sign, handler in earlier:
            signal.signal(sign, handler)
        for timer, times in left:
            signal.setitimer(timer, *times)
    if before < MOST_BYTES < _peak():
        raise FaultError(f"more than {MOST_BYTES >> 30} GB of memory")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def read_damaged(reader: Reader, damage: str, seed: int) -> str:
    """What comes of it: ``read`` or ``told``.

    Raises:
        FaultError: Another exception than those of the package, or a message that says nothing.
    """
    folder = Path(tempfile.mkdtemp(prefix="attack"))
    try:
        place = folder / reader.file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(damaged(reader.good, damage, seed))
        try:
            reader.read(folder)
        except EmpatheiaError as error:
            if len(str(error).strip()) < 10 or len(str(error)) > 3000:
                raise FaultError(
                    f"{reader.name}: a message of {len(str(error)):,} characters: {error!s:.200}"
                ) from None
            return "told"
        except FaultError:
            raise
        except Exception as error:
            raise FaultError(f"{reader.name}, {damage}, {seed}: {type(error).__name__}: {error!s:.200}") from error
        return "read"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def command_of(seed: int) -> list[str]:
    """A command line of names, options and odd values; the same for the same seed."""
    from empatheia.cli import listed_commands

    chance = Random(seed)
    name = chance.choice([*(name for name in listed_commands() if name not in LEFT_OUT), chance.choice(VALUES)])
    words = [name, *([chance.choice(SUB[name])] if name in SUB else [])]
    if name == "models" and words[-1] not in SUB["models"]:
        return words
    for _ in range(chance.randrange(5)):
        words += [chance.choice(OPTIONS)] if chance.random() < 0.5 else []
        words += [chance.choice(VALUES)] if chance.random() < 0.8 else []
    return [*words, "--model", "./none"] if name in CHATTY else words


def run_command(words: Sequence[str]) -> str:
    """What comes of a command line in an empty folder: ``done`` or ``told``.

    Raises:
        FaultError: A traceback, an unexpected error, or not one line that begins with ``error: ``.
    """
    from empatheia.cli import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with _alone(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([word.replace("\0", "?") for word in words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except Exception as error:
            raise FaultError(f"{words}: {type(error).__name__}: {error!s:.200}") from error
    said = err.getvalue()
    if "(EMPATHEIA_DEBUG=1" in said or "Traceback" in said:
        raise FaultError(f"{words}: {said:.400}")
    if code and not any(
        line.startswith(("error: ", "Usage: ")) for line in [*said.splitlines(), *out.getvalue().splitlines()]
    ):
        raise FaultError(f"{words}: exit code {code} without a reason: {said:.300}")
    if any(c in out.getvalue() + said for c in "\x1b\x9b\u202e"):
        raise FaultError(f"{words}: an escape reached the terminal")
    return "told" if code else "done"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """An empty folder, empty caches, no network, no input; beside it things that nobody named.

    Raises:
        FaultError: They have changed.
    """
    before, environment, stdin = Path.cwd(), dict(os.environ), sys.stdin
    with tempfile.TemporaryDirectory(prefix="attack") as folder:
        os.environ |= {
            "EMPATHEIA_OFFLINE": "1",
            "EMPATHEIA_CACHE": f"{folder}/cache",
            "EMPATHEIA_MODELS": f"{folder}/models",
        }
        os.environ.pop("EMPATHEIA_DATA", None)
        os.environ.pop("EMPATHEIA_DEBUG", None)
        inner = Path(folder) / "here"
        inner.mkdir()
        sentinel = _sentinel(Path(folder) / "others")
        os.chdir(inner)
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
        try:
            yield
        finally:
            os.chdir(before)
            sys.stdin = stdin
            os.environ.clear()
            os.environ.update(environment)
        if (found := _listed(Path(folder) / "others")) != sentinel:
            raise FaultError(f"files beside its folder have changed: {sorted({*found} ^ {*sentinel})[:5]}")


def _sentinel(folder: Path) -> list[tuple[str, bytes]]:
    """Makes a tree that looks like what commands write, and gives its list."""
    for name in ("thesis.txt", "runs/x/metrics.json", "model/config.json", "r.csv", "cache/vectors.sqlite"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}", encoding="utf-8")
    return _listed(folder)


def _listed(folder: Path) -> list[tuple[str, bytes]]:
    files = sorted(folder.rglob("*"))
    return [(str(path.relative_to(folder)), path.read_bytes() if path.is_file() else b"") for path in files]


def quiet() -> None:
    """The packages' warnings are what is wanted here, a thousand times."""
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.CRITICAL)


def loud() -> None:
    """Undoes :func:`quiet`."""
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.NOTSET)


__all__ = ["DAMAGES", "FaultError", "bounded", "command_of", "loud", "quiet", "read_damaged", "run_command"]
