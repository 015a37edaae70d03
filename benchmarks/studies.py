"""How a study holds: eight annotators at once, a server that is killed, the time to the next task.

python benchmarks/studies.py                        SQLite, in a temporary folder
python benchmarks/studies.py --db postgresql://...  an empty database
python benchmarks/studies.py --kills 20
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

from empatheia.studies.design import validate_design
from empatheia.studies.exporting import rating_rows
from empatheia.studies.items import Candidate, Material, StudyItem
from empatheia.studies.manifest import compose
from empatheia.studies.store import Store

BOXES = ("good", "okay", "bad")


def make(place: str, n_items: int, raters: int) -> None:
    """A study of four systems, ten dialogues a HIT."""
    systems = ("A", "B", "C", "D")
    items = [
        StudyItem(f"d{i}", "ED", (f"I lost key {i}.",), {s: Candidate(s, f"{s} says {i}") for s in systems})
        for i in range(n_items)
    ]
    composition = {"items_per_hit": 10, "raters": raters}
    tree = {"name": "load", "protocol": "drag", "criteria": [{"name": "quality"}], "composition": composition}
    design = validate_design({**tree, "worker": {"cap": 10_000}}, "benchmark")
    store = Store(place)
    store.create(design, Material(tuple(items), systems), compose(design, items, systems))
    store.close()


def serve(place: str, port: int = 0) -> tuple[subprocess.Popen, str]:
    """A server of its own and its address."""
    command = [sys.executable, "-m", "empatheia", "study", "serve", place, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def ask(address: str, path: str, token: str, body: dict, method: str = "POST") -> dict:
    """One request, repeated while the server is away."""
    head = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    while True:
        try:
            request = urllib.request.Request(address + "api/" + path, json.dumps(body).encode(), head, method=method)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.05)


def annotate(address: str, name: str, n: int, kept: dict[str, str], trouble: list[str]) -> None:
    """One annotator who gives n ratings, each under a word of its own."""
    dice = random.Random(name)
    try:
        token = ask(address, "enter", "", {"query": {"worker": name}})["token"]
        done = 0
        while done < n:
            page = ask(address, "take", token, {})
            for task in page["tasks"]:
                for card in range(len(task["cards"])):
                    value = dice.choice(BOXES)
                    client = f"{name}-{done}"
                    answer = {"task": task["place"], "card": card, "criterion": "quality", "value": value}
                    ask(address, "rating", token, {**answer, "assignment": page["assignment"], "client": client}, "PUT")
                    kept[f"{page['assignment']}/{task['place']}/{card}"] = value
                    done += 1
            ask(address, "submit", token, {"assignment": page["assignment"]})
    except Exception as error:
        trouble.append(f"{name}: {type(error).__name__}: {error}")


def main() -> None:
    """Runs it and prints one JSON record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--db")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--ratings", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    place = options.db or str(Path(tempfile.mkdtemp()) / "s.db")
    n_hits = -(-options.ratings // 40) + 1
    make(place, 10 * n_hits, options.workers)
    process, address = serve(place)
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    kept: list[dict[str, str]] = [{} for _ in range(options.workers)]
    trouble: list[str] = []
    begun = time.perf_counter()
    threads = [
        threading.Thread(target=annotate, args=(address, f"w{i}", options.ratings, kept[i], trouble))
        for i in range(options.workers)
    ]
    for thread in threads:
        thread.start()
    dice = random.Random(0)
    for _ in range(options.kills):
        time.sleep(dice.uniform(0.2, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process, _ = serve(place, port)
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    token = ask(address, "enter", "", {"query": {"worker": "late"}})["token"]
    waits = []
    for _ in range(20):
        start = time.perf_counter()
        page = ask(address, "take", token, {})
        waits.append(1000 * (time.perf_counter() - start))
    assert page["tasks"]
    process.terminate()
    process.wait()
    store = Store(place)
    rows = rating_rows(store)
    places = Counter(f"{row['assignment']}/{row['task']}/{row['place']}" for row in rows)
    stored = {f"{row['assignment']}/{row['task']}/{row['place']}": row["value"] for row in rows}
    sent = {where: value for each in kept for where, value in each.items()}
    desk_seats = Counter((row["hit"], row["seat"]) for row in rows if row["card"] == 0 and row["task"] == 0)
    record = {
        "store": "postgresql" if options.db else "sqlite",
        "ratings": len(sent),
        "lost": sum(stored.get(where) != value for where, value in sent.items()),
        "doubled": sum(n > 1 for n in places.values()),
        "seats_doubled": sum(n > 1 for n in desk_seats.values()),
        "errors": trouble,
        "kills": options.kills,
        "seconds": round(seconds, 1),
        "next_task_ms": {"median": round(sorted(waits)[10], 1), "worst": round(max(waits), 1)},
        "in_store": len(rows),
    }
    print(json.dumps(record))
    raise SystemExit(bool(record["lost"] or record["doubled"] or record["seats_doubled"] or trouble))


if __name__ == "__main__":
    main()
