"""``make wheel``: the package built, installed in an empty environment, and each kind of command run far from here.

First the core alone, which brings no torch; then research and people beside it.

python tests/project/wheel.py build/wheel torch==2.13.0
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from environments import QUIET, ROOT, clean_environment, make_environment, pip

EXTRAS = "research,people,encoder"
TEXT = "I love this blender, it crushed ice in seconds!"
COMMANDS: dict[str, tuple[Sequence[str], str, str]] = {
    "doctor": (("doctor",), "", "empatheia[research]"),
    "demo": (("demo",), "", "speaker"),
    "analyze": (("analyze", TEXT), "", "pleasant"),
    "respond": (("respond", "I lost my keys."), "", "."),
    "chat": (("chat", "--show", "analysis"), "I lost my keys.\n/quit\n", "unpleasant"),
}
"""Of the core: name to words, what is typed, and what must be in the answer."""
BESIDE: dict[str, tuple[Sequence[str], str, str]] = {
    "train": (("train", "gao2021/soft", "--size", "smoke"), "", "gao2021/soft"),
    "study": (("study", "init", "studies/collect", "--db", "s.db"), "", "s.db"),
    "curate": (("curate", "run", "recipes/curation/sample.yaml"), "", "dialogues"),
}
"""Of research and people; without them, each says the line that installs them."""
HEAVY = ("torch", "transformers", "accelerate", "polars", "nltk", "scipy", "scikit-learn")
SERVE = ("serve",)
MOST_SECONDS = 300


def run_command(empatheia: Path, place: Path, name: str) -> str:
    """What is wrong with a command; empty if nothing."""
    words, typed, wanted = (COMMANDS | BESIDE)[name]
    done = subprocess.run(
        [str(empatheia), *words], cwd=place, env=clean_environment(), input=typed, capture_output=True, text=True,
        timeout=MOST_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode or wanted not in done.stdout + done.stderr:
        return f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[-600:]}"
    return ""


def heavy_packages(python: Path) -> str:
    """Packages that the core must not bring and that are there; empty if none is."""
    listed = subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, check=True)
    return ", ".join(sorted({package["name"].lower() for package in json.loads(listed.stdout)} & set(HEAVY)))


def refusal(empatheia: Path, place: Path, name: str) -> str:
    """What is wrong with how a command says that its extra is missing; empty if nothing."""
    done = subprocess.run(
        [str(empatheia), *BESIDE[name][0]], cwd=place, env=clean_environment(), capture_output=True, text=True,
        timeout=MOST_SECONDS, check=False,
    )  # fmt: skip
    is_told = done.returncode == 3 and "pip install 'empatheia[" in done.stderr and len(done.stderr.splitlines()) == 1
    return "" if is_told else f"exit {done.returncode}: {(done.stdout + done.stderr).strip()[-600:]}"


def install_beside(python: Path, wheel: Path, torch: str) -> str:
    """Installs what research and people need."""
    pip(python, torch)
    pip(python, f"{wheel}[{EXTRAS}]")
    return ""


def run_server(empatheia: Path, place: Path) -> str:
    """What is wrong with one request to a server; empty if nothing."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"http://127.0.0.1:{port}/v1/chat/completions"
    body = {"model": "empatheia", "messages": [{"role": "user", "content": "I lost my keys."}]}
    request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with (place / "serve.log").open("w") as log:
        server = subprocess.Popen(
            [str(empatheia), *SERVE, "--port", port], cwd=place, env=clean_environment(), stdout=log, stderr=log
        )
        try:
            for _ in range(MOST_SECONDS):
                try:
                    with urlopen(request, timeout=60) as answer:
                        return "" if json.load(answer)["choices"][0]["message"]["content"] else "an empty answer"
                except (URLError, ConnectionError):
                    if server.poll() is not None:
                        break
                    time.sleep(1)
        finally:
            server.terminate()
            server.wait(60)
    return f"no answer: {(place / 'serve.log').read_text()[-600:]}"


def main(folder: str, torch: str) -> int:
    """Builds, installs, runs; 1 if a command does not do what it should."""
    built = Path(folder).resolve()
    shutil.rmtree(built, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", *QUIET[:3], "--no-deps", "-w", str(built), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = built.glob("*.whl")
    python = make_environment(built / "venv")
    pip(python, f"{wheel}[serve]")
    empatheia, n_wrong = python.parent / "empatheia", 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        checks: dict[str, Callable[[], str]] = {name: partial(run_command, empatheia, place, name) for name in COMMANDS}
        checks["serve"] = partial(run_server, empatheia, place)
        checks["nothing heavy"] = partial(heavy_packages, python)
        checks |= {f"no {name}": partial(refusal, empatheia, place, name) for name in BESIDE}
        checks["research"] = partial(install_beside, python, wheel, torch)
        checks |= {name: partial(run_command, empatheia, place, name) for name in BESIDE}
        for name, check in checks.items():
            start = time.perf_counter()
            wrong = check()
            print(f"{name:<14}{wrong or 'ok'} ({time.perf_counter() - start:.0f} s)", flush=True)
            n_wrong += bool(wrong)
    print(f"{len(checks)} checks of {wheel.name} ({wheel.stat().st_size / 1e6:.0f} MB), {n_wrong} failed")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
