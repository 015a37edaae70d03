"""New processes without the seconds that importing torch and transformers takes.

One process for each test process imports them, and nothing of ours, then waits. Each call forks it: what is forked has
its own memory, imports empatheia anew, ends like any interpreter and may be killed. Where a test is about what a start
itself imports, it starts a Python of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

IMPORTED = ("torch", "transformers.modeling_utils", "transformers.generation.utils", "transformers.trainer")


class Fresh:
    """A forked process, used like :class:`subprocess.Popen`; ``words`` are what follows ``python``, -c or -m first."""

    def __init__(
        self,
        words: list[str],
        *,
        stdout: IO[Any] | int = subprocess.DEVNULL,
        stderr: IO[Any] | int | None = None,
        env: dict[str, str] | None = None,
        cwd: Path | str | None = None,
    ) -> None:
        self.args, self.returncode = words, None
        self._home = _home()
        own = {"stdin": os.open(os.devnull, os.O_RDONLY), "stdout": None, "stderr": None}
        for name, place in (("stdout", stdout), ("stderr", stderr)):
            own[name], stream = _end(place, 2)
            setattr(self, name, stream)
        call = {"words": words, "env": dict(os.environ if env is None else env), "cwd": str(cwd or Path.cwd())}
        self._home.tell(call, list(own.values()))
        for number in own.values():
            os.close(number)
        self.pid: int = self._home.hear()

    def poll(self) -> int | None:
        if self.returncode is None and self._home.has_told(0.0):
            self.returncode = self._home.hear()
        return self.returncode

    def wait(self, timeout: float = 240.0) -> int:
        if self.returncode is None:
            if not self._home.has_told(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = self._home.hear()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    words: list[str], *, check: bool = False, timeout: float = 240.0, **options: Any
) -> subprocess.CompletedProcess:
    """What :func:`subprocess.run` gives with its output captured as text."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = Fresh(words, stdout=out, stderr=err, **options)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        out.seek(0), err.seek(0)
        done = subprocess.CompletedProcess(words, process.returncode, out.read(), err.read())
    if check and done.returncode:
        raise AssertionError(f"ended with {done.returncode}: {done.stderr}")
    return done


def _end(place: IO[Any] | int | None, inherited: int) -> tuple[int, IO[str] | None]:
    """The descriptor that the process writes to, and for a pipe where it is read."""
    if place == subprocess.PIPE:
        reading, writing = os.pipe()
        return writing, os.fdopen(reading)
    if place == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_WRONLY), None
    if place is None:
        return os.dup(inherited), None
    return os.dup(place if isinstance(place, int) else place.fileno()), None


class _Home:
    """The process that is forked."""

    def __init__(self) -> None:
        self.owner, self.open = os.getpid(), 0
        self._line, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def tell(self, call: dict[str, Any], descriptors: list[int]) -> None:
        raw = json.dumps(call).encode()
        socket.send_fds(self._line, [len(raw).to_bytes(8, "big")], descriptors)
        self._line.sendall(raw)
        self.open = 2

    def has_told(self, seconds: float) -> bool:
        return bool(select.select([self._line], [], [], seconds)[0])

    def hear(self) -> int:
        raw = self._line.recv(8, socket.MSG_WAITALL)
        if len(raw) < 8:
            raise RuntimeError("the process that is forked has ended")
        self.open -= 1
        return int.from_bytes(raw, "big", signed=True)

    def end(self) -> None:
        if self.owner == os.getpid():
            self._line.close()
            self.process.wait(60)


_homes: list[_Home] = []


def _home() -> _Home:
    if _homes and (_homes[0].owner != os.getpid() or _homes[0].open or _homes[0].process.poll() is not None):
        _homes.pop()  # another process's, or what was forked runs still: it is left to its test
    if not _homes:
        _homes.append(_Home())
        atexit.register(_homes[0].end)
    return _homes[0]


def _serve(line: socket.socket) -> list[str] | None:
    """Forks at each call; returns in what is forked with its words, and at the end with none."""
    while head := socket.recv_fds(line, 8, 3):
        raw, descriptors, *_ = head
        if not raw:
            return None
        call = json.loads(line.recv(int.from_bytes(raw, "big"), socket.MSG_WAITALL))
        child = os.fork()
        if child:
            for number in descriptors:
                os.close(number)
            line.sendall(child.to_bytes(8, "big", signed=True))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            line.sendall(status.to_bytes(8, "big", signed=True))
            continue
        for place, number in enumerate(descriptors):
            os.dup2(number, place)
            os.close(number)
        line.close()
        sys.stdin = open(0)  # noqa: SIM115
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
        os.environ.clear()
        os.environ.update(call["env"])
        os.chdir(call["cwd"])
        added = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        sys.path[0:1] = [call["cwd"] if call["words"][0] == "-m" else "", *added]
        return call["words"]
    return None


def _main() -> None:
    import gc
    import importlib.util
    import runpy
    import types

    for name in IMPORTED:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    gc.freeze()
    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    if words is None:
        return
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = ["-c", *words[2:]]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    exec(compile(words[1], "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    _main()
