"""How a study holds: eight annotators at once, a server that is killed, the time to the next task, a whole study.

python benchmarks/studies.py                                         all of it, ten minutes on an idle machine
python benchmarks/studies.py --only load --stores sqlite
python benchmarks/studies.py --only kills --kills 20 --stores postgresql
python benchmarks/studies.py --out results/robustness.md             as its section of that page

PostgreSQL is started in a temporary folder; where it is not installed its rows are left out. Exits with 1 if an
acknowledged rating was lost or doubled, an annotator met an error, or a share came back more than a point away.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "studies"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "attacks"))

from fuzz import write_section
from postgres_server import NoPostgres, PostgresServer
from served_studies import CHROMIUM, FLAGS

from empatheia_people.studies.design import BOXES, read_design, validate_design
from empatheia_people.studies.desk import Desk
from empatheia_people.studies.exporting import rating_rows
from empatheia_people.studies.items import Candidate, Material, StudyItem
from empatheia_people.studies.manifest import compose
from empatheia_people.studies.report import report_page
from empatheia_people.studies.results import study_results
from empatheia_people.studies.simulation import Opinion, crowd_of, published_shares, work_through
from empatheia_people.studies.store import Store
from empatheia_research.shipped import recipes_root

BEGIN, END = "<!-- studies -->", "<!-- /studies -->"
SYSTEMS = ("A", "B", "C", "D")
STORED = 10_000
"""Ratings in the store when pages are timed."""


@dataclass(frozen=True)
class Held:
    """What came of annotators at work.

    Attributes:
        store: Kind of store.
        ratings: That the server acknowledged.
        kills: Of the server, while annotators were at work.
        lost: Acknowledged, and not as acknowledged in the store afterwards.
        doubled: Places with two ratings, and seats with two people.
        errors: Other answers than 200 (and 503, which pages repeat).
        seconds: Of the whole.
    """

    store: str
    ratings: int
    kills: int
    lost: int
    doubled: int
    errors: list[str]
    seconds: float


def make(place: str, n_items: int, raters: int) -> None:
    """A study of four systems, ten dialogues a HIT."""
    items = [
        StudyItem(f"d{i}", "ED", (f"I lost key {i}.",), {s: Candidate(s, f"{s} says {i}") for s in SYSTEMS})
        for i in range(n_items)
    ]
    composition = {"items_per_hit": 10, "raters": raters}
    tree = {"name": "load", "protocol": "drag", "criteria": [{"name": "quality"}], "composition": composition}
    tree |= {"worker": {"cap": 10_000}, "texts": {"instructions": "Drag every reply into a box."}}
    design = validate_design(tree, "benchmark")
    store = Store(place)
    store.create(design, Material(tuple(items), SYSTEMS), compose(design, items, SYSTEMS))
    store.close()


class Served:
    """A server in a process of its own."""

    def __init__(self, place: str) -> None:
        self._place, self.port = place, 0
        self.start()

    def start(self) -> None:
        """Returns when it listens; always on the same port."""
        command = [sys.executable, "-m", "empatheia", "study", "serve", self._place, "--port", str(self.port)]
        quiet = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=quiet)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        self.port = int(self.address.rstrip("/").rsplit(":", 1)[1])

    def end(self, word: signal.Signals) -> None:
        """Ends it and waits."""
        self._process.send_signal(word)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Annotator(threading.Thread):
    """Gives so many ratings over HTTP, each once, and keeps what was acknowledged.

    Attributes:
        kept: Value by assignment, task and card.
        trouble: Answers that are errors.
    """

    def __init__(self, port: int, name: str, n: int) -> None:
        super().__init__(daemon=True)
        self.kept: dict[str, str] = {}
        self.trouble: list[str] = []
        self._port, self._label, self._n = port, name, n
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._token = ""

    def ask(self, path: str, body: dict[str, Any], method: str = "POST") -> dict[str, Any]:
        """One request, repeated while the server is away."""
        head = {"content-type": "application/json", "authorization": f"Bearer {self._token}"}
        while True:
            try:
                self._line.request(method, f"/api/{path}", json.dumps(body), head)
                answer = self._line.getresponse()
                content = answer.read()
                if answer.status == 200:
                    return json.loads(content)
                if answer.status != 503:
                    raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
            except (OSError, http.client.HTTPException):
                self._line.close()
            time.sleep(0.05)

    def enter(self) -> None:
        """Comes in by the link of a platform."""
        self._token = self.ask("enter", {"query": {"worker": self._label}})["token"]

    def run(self) -> None:
        """Takes HIT after HIT."""
        dice = random.Random(self._label)
        try:
            self.enter()
            while len(self.kept) < self._n:
                page = self.ask("take", {})
                for task in page["tasks"]:
                    for card in range(len(task["cards"])):
                        self._rate(page["assignment"], task["place"], card, dice.choice(BOXES))
                self.ask("submit", {"assignment": page["assignment"]})
        except Exception as error:
            self.trouble.append(f"{self._label}: {type(error).__name__}: {error}")

    def _rate(self, assignment: int, task: int, card: int, value: str) -> None:
        answer = {"assignment": assignment, "task": task, "card": card, "criterion": "quality", "value": value}
        self.ask("rating", {**answer, "client": f"{self._label}-{len(self.kept)}"}, "PUT")
        self.kept[f"{assignment}/{task}/{card}"] = value


def at_work(kind: str, place: str, workers: int, ratings: int, kills: int) -> Held:
    """So many annotators at once; the server is killed at random moments while they work."""
    make(place, 10 * (-(-ratings // 40) + 1), workers)
    server = Served(place)
    crowd = [Annotator(server.port, f"w{i}", ratings) for i in range(workers)]
    begun = time.perf_counter()
    for annotator in crowd:
        annotator.start()
    dice, killed = random.Random(0), 0
    while killed < kills:
        time.sleep(dice.uniform(0.1, 2.0))
        if not any(annotator.is_alive() for annotator in crowd):
            break
        server.end(signal.SIGKILL)
        server.start()
        killed += 1
    for annotator in crowd:
        annotator.join()
    seconds = time.perf_counter() - begun
    server.end(signal.SIGTERM)
    store = Store(place)
    rows = rating_rows(store)
    store.close()
    found = [(f"{row['assignment']}/{row['task']}/{row['place']}", row["value"]) for row in rows]
    places, stored = Counter(where for where, _ in found), dict(found)
    seats = Counter((row["hit"], row["seat"]) for row in rows if row["card"] == 0 and row["task"] == 0)
    kept = {where: value for annotator in crowd for where, value in annotator.kept.items()}
    return Held(
        kind,
        len(kept),
        killed,
        sum(stored.get(where) != value for where, value in kept.items()) + abs(len(rows) - len(kept)),
        sum(n > 1 for n in places.values()) + sum(n > 1 for n in seats.values()),
        [trouble for annotator in crowd for trouble in annotator.trouble],
        round(seconds, 1),
    )


def page_times(kind: str, place: str) -> dict[str, Any]:
    """Milliseconds to the next task with so many ratings in the store: over HTTP, and in a browser."""
    raters = 8
    make(place, STORED // 4 // raters + 40, raters)
    store = Store(place)
    desk = Desk(store)
    for number, rater in enumerate(crowd_of({"honest": raters}, Opinion({}, {}))):
        work_through(desk, rater, f"made-up-{number}", STORED // 40 // raters + 1)
    n = len(rating_rows(store))
    store.close()
    server = Served(place)
    found: dict[str, Any] = {"store": kind, "ratings": n}
    try:
        visitor = Annotator(server.port, "timed", 1)
        visitor.enter()
        visitor.ask("take", {})
        found["over HTTP"] = [_ms(lambda: visitor.ask("take", {})) for _ in range(20)]
        if CHROMIUM is not None:
            found |= _in_a_browser(server.address)
    finally:
        server.end(signal.SIGTERM)
    shown = {name: (median(times), max(times)) for name, times in found.items() if isinstance(times, list)}
    return found | {name: {"median": round(m, 1), "worst": round(w, 1)} for name, (m, w) in shown.items()}


def _ms(do: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    do()
    return 1000 * (time.perf_counter() - begun)


def _in_a_browser(address: str) -> dict[str, list[float]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page()
        page.goto(f"{address}?worker=browsing")
        for _ in ("welcome", "instructions"):
            page.get_by_role("button", name="Next").click()
        page.wait_for_selector("text=Conversation 1/")

        def reload() -> None:
            page.reload(wait_until="commit")
            page.wait_for_selector(".card")

        loads = [_ms(reload) for _ in range(10)]
        nexts = []
        for number in range(2, 11):
            while page.get_by_role("button", name="Next").is_disabled():
                if page.locator(".pool .card").count():
                    page.locator(".pool .card").first.press("2")

            def on(number: int = number) -> None:
                page.get_by_role("button", name="Next").click()
                page.wait_for_selector(f"text=Conversation {number}/")

            nexts.append(_ms(on))
        browser.close()
    return {"page loaded anew": loads, "Next": nexts}


def rebuilt(place: str) -> dict[str, Any]:
    """MEED2's study through a real store: 600 HITs by people who vote as table 5, and some who do not."""
    shares, systems, sets = published_shares()
    items = [
        StudyItem(f"{name}/{i}", name, ("x",), {s: Candidate(s, f"{s} {i}") for s in systems}, "", f"gold {i}")
        for name in sets
        for i in range(2000)
    ]
    design = read_design(recipes_root() / "studies" / "meed2.yaml")
    store = Store(place)
    store.create(design, Material(tuple(items), systems), compose(design, items, systems))
    desk = Desk(store)
    begun = time.perf_counter()
    crowd = crowd_of({"honest": 46, "random": 1, "okay": 2}, Opinion(shares, {}, is_even=True))
    hits = sum(work_through(desk, rater, f"made-up-{number}", 50) for number, rater in enumerate(crowd))
    voted = time.perf_counter() - begun
    results = study_results(store)
    page = report_page(results)
    store.close()
    found = {(row.set, row.system): row for row in results.shares}
    away = {
        (where, answer): abs(found[where].percent[answer] - 100 * share)
        for where, printed in shares.items()
        for answer, share in zip(BOXES, printed, strict=True)
    }
    return {
        "HITs": len(desk.store.manifest().hits),
        "assignments": hits,
        "answers": results.answers[0],
        "kept": results.answers[1],
        "removed": {each.name: each.assignments for each in results.removed},
        "shares": len(away),
        "farthest": round(max(away.values()), 2),
        "voting": round(voted),
        "report": round(time.perf_counter() - begun - voted),
        "page": len(page),
    }


def main() -> int:
    """Runs what is asked and prints a JSON record of each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("load", "kills", "pages", "rebuilt"))
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--ratings", type=int, default=1000, help="Of each.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--out", type=Path, help="Page in which the section is written.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="empatheia-studies-"))
    server = None
    if "postgresql" in options.stores:
        try:
            server = PostgresServer()
        except NoPostgres as reason:
            print(reason, file=sys.stderr)

    def empty(kind: str, name: str) -> str:
        if kind == "sqlite":
            return str(folder / f"{name}.db")
        assert server is not None
        server.empty()
        return server.address

    kinds = [kind for kind in options.stores.split(",") if kind == "sqlite" or server is not None]
    held: list[Held] = []
    pages: list[dict[str, Any]] = []
    study: dict[str, Any] = {}
    try:
        for kind in kinds:
            for part, kills in (("load", 0), ("kills", options.kills)):
                if options.only in (None, part):
                    held.append(at_work(kind, empty(kind, part), options.workers, options.ratings, kills))
                    print(json.dumps(asdict(held[-1])), flush=True)
            if options.only in (None, "pages"):
                pages.append(page_times(kind, empty(kind, "pages")))
                print(json.dumps(pages[-1]), flush=True)
        if options.only in (None, "rebuilt"):
            study = rebuilt(str(folder / "rebuilt.db"))
            print(json.dumps(study), flush=True)
    finally:
        if server is not None:
            server.remove()
    if options.out is not None:
        write_section(options.out, BEGIN, END, section(options, held, pages, study))
    wrong = any(each.lost or each.doubled or each.errors for each in held)
    wrong |= options.only in (None, "kills") and sum(each.kills for each in held) < options.kills * len(kinds)
    return int(wrong or bool(study and (study["farthest"] > 1 or study["answers"] != 24_000)))


def section(options: Any, held: list[Held], pages: list[dict[str, Any]], study: dict[str, Any]) -> list[str]:
    """The section of the page."""
    lines = [
        "## Studies with people",
        "",
        f"`python benchmarks/studies.py`: {options.workers} made-up annotators at once, over HTTP; then the same while",
        "the server is killed (SIGKILL) at random moments. Lost: acknowledged, and not so in the store afterwards.",
        "Doubled: a place with two ratings, or a seat with two people.",
        "",
        "| store | ratings | kills | lost | doubled | errors | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {each.store} | {each.ratings:,} | {each.kills} | {each.lost} | {each.doubled} | {len(each.errors)}"
            f" | {each.seconds} |"
            for each in held
        ),
    ]
    if pages:
        names = [name for name in pages[0] if isinstance(pages[0][name], dict)]
        lines += [
            "",
            "Milliseconds until the task is there, median and worst (in a headless browser: page loaded anew, *Next*):",
            "",
            f"| store | ratings in it | {' | '.join(names)} |",
            f"|---|---:|{'---:|' * len(names)}",
        ]
        for page in pages:
            cells = " | ".join(f"{page[name]['median']:.0f}, {page[name]['worst']:.0f}" for name in names)
            lines.append(f"| {page['store']} | {page['ratings']:,} | {cells} |")
    if study:
        removed = ", ".join(f"{name} ({n})" for name, n in study["removed"].items())
        lines += [
            "",
            f"MEED2's study from made-up votes through a store: {study['HITs']} HITs, {study['assignments']:,}",
            f"assignments, {study['answers']:,} answers, {study['kept']:,} after the filters.",
            f"Assignments removed: {removed}.",
            f"The {study['shares']} shares of table 5 came back within {study['farthest']} points.",
            f"{study['voting']} seconds for the votes, {study['report']} for the report.",
        ]
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
