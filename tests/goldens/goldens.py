"""What the package says today, kept so that a move of its code can be held against it: ``make goldens``.

Sections are made from the outside only (command line, the two functions of the package, HTTP), so that they outlive a
new layout. ``goldens.py`` makes each section and compares it with ``tests/goldens/NAME.json.gz``: texts exactly,
numbers within 1e-5. ``--keep`` writes instead. A file goes when the move it guards is done, or is made anew where a
change of what is said is meant; the changelog then says so.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
NEAR = 1e-5
DIGITS = 7
_ENDS = "created|seconds|at|time|times|fingerprint|commit|environment|path|folder|version|per_second"
VOLATILE = re.compile(rf"(^|_)({_ENDS})$")
DRAWN = re.compile(r"[0-9a-f]{12,}")

CHATS: tuple[tuple[str, ...], ...] = (
    ("My dog ran away in the park.",),
    ("My dog ran away.", "Oh no. Where did it happen?", "In the park, because of the fireworks. I am so worried."),
    ("I got the job!",),
    ("How do I reset my password?",),
    ("The meeting is at 3 pm.",),
    ("I want to die.",),
    ("my brother hits me when mum is out",),
    ("I lost my ring", "Oh no, which one?", "my gran's. but a lady found it, she is so kind"),
    ("😀😀 my dog died and I cry 😢 every night",),
    ("me duele mucho que se haya ido",),
    ("not bad at all, I loved it",),
    ("ok",),
)


def cut(value: Any) -> Any:
    """The value without what differs from run to run, numbers rounded."""
    if isinstance(value, dict):
        return {
            str(key): cut(item)
            for key, item in value.items()
            if not VOLATILE.search(str(key)) and not (key == "id" and DRAWN.search(str(item)))
        }
    if isinstance(value, list | tuple):
        return [cut(item) for item in value]
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else str(value)
    return value


def command(*arguments: object, stdin: str = "") -> str:
    """What a command prints; its errors too where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "empatheia", *map(str, arguments)], input=stdin, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"


def conversations(most: int = 500) -> list[list[str]]:
    """Turns of self-written conversations, those of the valid and the test part of the everyday corpus."""
    from empatheia_research.corpora import everyday

    items = (*everyday.items("valid"), *everyday.items("test"))
    return [[turn.text for turn in item.dialogue.turns] for item in items[:most]]


def heard(_: Path) -> dict[str, Any]:
    """Analysis, reply and level of danger of 500 conversations, alone."""
    import empatheia
    from empatheia.care import Care

    care = Care()
    out = {}
    for number, turns in enumerate([*conversations(), *map(list, CHATS)]):
        dialogue = empatheia.Dialogue.of(*turns)
        out[str(number)] = {
            "analysis": cut(empatheia.analyze(dialogue).to_dict()),
            "reply": empatheia.respond(dialogue).text,
            "danger": cut(care.check(dialogue).assessment.to_dict()),
        }
    return out


def voices(_: Path) -> dict[str, Any]:
    """An explained reply of each bundled voice, with and without a focus."""
    import empatheia

    out = {}
    for model in ("empatheia-listener", "gao2021-small"):
        for number, turns in enumerate(CHATS):
            for focus in ("off", "auto"):
                reply = empatheia.respond(empatheia.Dialogue.of(*turns), model=model, focus=focus, explain=True)
                out[f"{model}/{number}/{focus}"] = cut(reply.to_dict())
    return out


def http(_: Path) -> dict[str, Any]:
    """Exchanges with the server in this process, plain and streamed, with what is refused."""
    from fastapi.testclient import TestClient

    from empatheia.serve import ServerSettings, create_app

    messages = [
        [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate(turns)]
        for turns in CHATS
    ]
    asked: list[tuple[str, str, Any]] = [("GET", path, None) for path in ("/healthz", "/v1/models", "/v1/labels")]
    for chat in messages:
        asked.append(("POST", "/v1/chat/completions", {"messages": chat}))
        asked.append(("POST", "/v1/chat/completions", {"messages": chat, "stream": True}))
        asked.append(("POST", "/v1/care", {"messages": chat}))
        asked.append(("POST", "/v1/analyze", {"input": [chat[-1]["content"]]}))
    asked += [
        ("POST", "/v1/chat/completions", {}),
        ("POST", "/v1/chat/completions", {"messages": []}),
        ("POST", "/v1/chat/completions", {"messages": messages[0], "model": "nobody"}),
        ("POST", "/v1/chat/completions", {"messages": messages[0], "n": 3, "seed": 1}),
        ("POST", "/v1/rank", {"messages": messages[0], "candidates": ["Oh no!", "That's great."]}),
    ]
    out = {}
    with TestClient(create_app(ServerSettings())) as client:
        for number, (method, path, body) in enumerate(asked):
            answer = client.request(method, path, json=body)
            out[f"{number} {method} {path}"] = {"status": answer.status_code, "body": _body(answer.text)}
    return out


def _body(text: str) -> Any:
    if text.startswith("data: "):
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        return [line if line == "[DONE]" else cut(json.loads(line)) for line in lines]
    try:
        return cut(json.loads(text))
    except json.JSONDecodeError:
        return text


def commands(folder: Path) -> dict[str, Any]:
    """What commands print and write: a table, chats, explanations, care, scores, printed tables, curation."""
    table = folder / "posts.csv"
    table.write_text(
        "number,text\n" + "".join(f'{i},"{turns[-1]}"\n' for i, turns in enumerate(CHATS)), encoding="utf-8"
    )
    out = folder / "posts.out.csv"
    sent = folder / "posts.out.jsonl"
    page = folder / "page.html"
    said = {
        "analyze csv": command("analyze", table, "--column", "text", "--out", out) and out.read_text("utf-8"),
        "analyze jsonl": command("analyze", table, "--column", "text", "--out", sent)
        and [cut(json.loads(line)) for line in sent.read_text("utf-8").splitlines()],
        "analyze html": command("analyze", *CHATS[0], "--html", page) and page.read_text("utf-8"),
        "respond": [cut(json.loads(command("respond", "--json", *turns))) for turns in CHATS[:4]],
        "explain": command("respond", "--explain", *CHATS[1]),
        "demo": command("demo"),
        "care": command("care", "evaluate", "tests/data/care_texts.jsonl"),
        "reproduce": {
            table: command("reproduce", table) for table in ("gao2021/2", "imagine/1", "meed2/3", "kim2021/2")
        },
        "models": command("models", "list"),
        "labels": command("train", "--list"),
    }
    curated = folder / "curated"
    command("curate", "run", "recipes/curation/sample.yaml", "--workers", 0, "--out", curated)
    said["curate"] = {
        str(path.relative_to(curated)): _digest(path.read_bytes()) for path in sorted(curated.rglob("*.jsonl"))
    }
    return said


def study(folder: Path) -> dict[str, Any]:
    """A study from its items to the exported ratings, with rehearsed raters."""
    systems = {name: folder / f"{name}.jsonl" for name in ("first", "second")}
    for place, (name, path) in enumerate(systems.items()):
        rows = (
            {"context": list(turns), "reply": f"{name} says {i + place}"}
            for i, turns in enumerate(CHATS)
            if len(turns) == 1
        )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    store, exported, page = folder / "study.db", folder / "exported", folder / "study.html"
    outputs = [part for path in systems.values() for part in ("--outputs", path)]
    said = {
        "init": command("study", "init", "studies/imagine_ratings", *outputs, "--db", store).replace(str(folder), ""),
        "simulate": command("study", "simulate", store, "--seed", 3).replace(str(folder), ""),
        "report": _body(command("study", "report", store, "--json")),
    }
    command("study", "export", store, "--out", exported, "--format", "jsonl")
    command("study", "report", store, "--out", page)
    said["export"] = {
        path.name: [cut(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
        for path in sorted(exported.glob("ratings*.jsonl"))
    }
    said["page"] = page.is_file()
    return said


def training(folder: Path) -> dict[str, Any]:
    """Losses, measures and weights of every recipe at size smoke."""
    names = sorted(
        str(path.relative_to(ROOT / "recipes").with_suffix(""))
        for path in (ROOT / "recipes").glob("*/*.yaml")
        if path.parent.name not in ("curation", "studies")
    )
    command("train", "--size", "smoke", "--quiet", "--out", folder / "runs", *names)
    return {name: _run(next(iter((folder / "runs" / name).glob("smoke-*")), None)) for name in names}


def _run(run: Path | None) -> Any:
    if run is None or not (run / "metrics.json").is_file():
        return "not run"
    curves = run / "curves.jsonl"  # what is only measured has none
    rows = [json.loads(line) for line in curves.read_text("utf-8").splitlines()] if curves.is_file() else []
    weights = dict(_tensors(run / "checkpoint"))
    return {
        "losses": [cut(row["loss"]) for row in rows if "loss" in row],
        "metrics": cut(json.loads((run / "metrics.json").read_text("utf-8"))["metrics"]),
        "weights": _digest("".join(sorted(weights.values())).encode()),
        "names": _digest("".join(sorted(weights)).encode()),
        "tensors": len(weights),
    }


def _tensors(folder: Path) -> Iterator[tuple[str, str]]:
    from safetensors import safe_open

    for path in sorted(folder.rglob("*.safetensors")):
        with safe_open(str(path), "numpy") as opened:
            for name in sorted(opened.keys()):
                yield name, _digest(opened.get_tensor(name).tobytes())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


SECTIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "heard": heard,
    "voices": voices,
    "http": http,
    "commands": commands,
    "study": study,
    "training": training,
}


def differences(kept: Any, now: Any, where: str = "") -> Iterator[str]:
    """Places at which two values differ, and how."""
    if isinstance(kept, dict) and isinstance(now, dict):
        for key in sorted({*kept, *now}):
            if key not in kept or key not in now:
                yield f"{where}/{key}: {'new' if key not in kept else 'gone'}"
            else:
                yield from differences(kept[key], now[key], f"{where}/{key}")
    elif isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        for number, (one, other) in enumerate(zip(kept, now, strict=True)):
            yield from differences(one, other, f"{where}/{number}")
    elif isinstance(kept, int | float) and isinstance(now, int | float):
        if abs(kept - now) > NEAR * max(1.0, abs(kept)):
            yield f"{where}: {kept} -> {now}"
    elif kept != now:
        yield f"{where}: {str(kept)[:160]!r} -> {str(now)[:160]!r}"


def main() -> int:
    """Makes sections and compares them with those kept; the number of sections that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="all, without one")
    parser.add_argument("--keep", action="store_true", help="write them in place of comparing")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "goldens", help="a folder for what is made on the way"
    )
    asked = parser.parse_args()
    os.environ.pop("EMPATHEIA_DATA", None)
    failed = 0
    for name in asked.sections or SECTIONS:
        folder = (asked.out / name).absolute()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        now = json.loads(json.dumps(SECTIONS[name](folder), ensure_ascii=False))
        file = HERE / f"{name}.json.gz"
        if asked.keep:
            data = json.dumps(now, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
            file.write_bytes(gzip.compress(data, 9, mtime=0))
            print(f"{name}: kept, {len(now)} entries, {file.stat().st_size:,} bytes")
            continue
        kept = json.loads(gzip.decompress(file.read_bytes()))
        found = list(differences(kept, now))
        failed += bool(found)
        print(f"{name}: {len(now)} entries, {len(found)} differences")
        for line in found[:20]:
            print(f"  {line}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
