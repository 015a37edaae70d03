"""Requests a second of ``empatheia serve``: closed loops of 1, 8 and 32 clients, with and without batches; then abuse.

Every answer is compared with the one the same server gave when it was asked alone. The abuse: of 2,000 requests one
in ten leaves in the middle of a stream and one in twenty is malformed; memory before and after, the queue, what went
unanswered. The pages are loaded by a headless Chromium, where there is one.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
from report import arguments, contexts

CHAT = "/v1/chat/completions"
Place = tuple[str, psutil.Process]
BROKEN = ["{", "[]", '{"messages": []}', '{"messages": 5}', '{"messages": [{"role": "user", "content": ""}]}', "\x00"]


@dataclass
class Loop:
    """What a closed loop measured.

    Attributes:
        model: Who answers.
        is_batched: Whether the server joins requests.
        n_clients: How many ask.
        seconds: To each answer.
        wall: Of the whole loop.
        processor: Of the server, in seconds.
        n_wrong: Answers other than those computed alone.
        n_lost: Requests without one.
    """

    model: str
    is_batched: bool
    n_clients: int
    seconds: list[float] = field(default_factory=list)
    wall: float = 0.0
    n_wrong: int = 0
    n_lost: int = 0
    processor: float = 0.0

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.model}, {'batches' if self.is_batched else 'each alone'}"

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.wall

    def at(self, share: float) -> float:
        """Seconds below which this share of the answers came."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]

    def facts(self) -> dict[str, Any]:
        """For the record; times in milliseconds."""
        return {
            "model": self.model,
            "batches": self.is_batched,
            "clients": self.n_clients,
            "requests": len(self.seconds),
            "requests_per_second": round(self.rate, 2),
            "p50_ms": round(1000 * self.at(0.5), 1),
            "p95_ms": round(1000 * self.at(0.95), 1),
            "processor_ms": round(1000 * self.processor / len(self.seconds), 1),
            "wrong": self.n_wrong,
            "lost": self.n_lost,
        }


@contextmanager
def serving(*options: str) -> Iterator[Place]:
    """A server in a process of its own; its address and the process. It must end with status 0."""
    command = [sys.executable, "-m", "empatheia", "serve", "--port", "0", "--quiet", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    try:
        yield address, psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def asked(model: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **fields}


async def answer(client: httpx2.AsyncClient, body: dict[str, Any]) -> str | None:
    """The reply; None where there is none."""
    try:
        got = await client.post(CHAT, json=body)
        return got.json()["choices"][0]["message"]["content"] if got.status_code == 200 else None
    except (httpx2.HTTPError, ValueError):
        return None


async def closed_loop(address: str, texts: Sequence[str], alone: dict[str, str], seconds: float, loop: Loop) -> None:
    """Each client asks as soon as it was answered, until the time is over."""
    limits = httpx2.Limits(max_connections=64)
    async with httpx2.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
        begun = time.perf_counter()

        async def one(number: int) -> None:
            draw = random.Random(number + len(loop.seconds))
            while time.perf_counter() - begun < seconds:
                text, started = draw.choice(texts), time.perf_counter()
                said = await answer(client, asked(loop.model, text))
                loop.seconds.append(time.perf_counter() - started)
                loop.n_lost += said is None
                loop.n_wrong += said is not None and said != alone[text]

        await asyncio.gather(*(one(number) for number in range(loop.n_clients)))
        loop.wall += time.perf_counter() - begun


async def by_itself(address: str, model: str, texts: Sequence[str]) -> dict[str, str]:
    """Each text's reply, nobody asking beside it."""
    async with httpx2.AsyncClient(base_url=address, timeout=120) as client:
        return {text: await answer(client, asked(model, text)) or "" for text in texts}


async def first_words(address: str, model: str, texts: Sequence[str]) -> list[float]:
    """Seconds to the first words of streamed replies."""
    out = []
    async with httpx2.AsyncClient(base_url=address, timeout=120) as client:
        for text in texts:
            begun = time.perf_counter()
            async with client.stream("POST", CHAT, json=asked(model, text, stream=True)) as got:
                async for line in got.aiter_lines():
                    if '"content":"' in line and '"content":""' not in line:
                        out.append(time.perf_counter() - begun)
                        break
    return out


async def abuse(address: str, models: Sequence[str], texts: Sequence[str], n: int) -> dict[str, int]:
    """Requests of which some leave and some are malformed; what became of them."""
    counts = {"answered": 0, "left": 0, "refused": 0, "busy": 0, "unanswered": 0}
    draw = random.Random(0)
    async with httpx2.AsyncClient(base_url=address, timeout=120, limits=httpx2.Limits(max_connections=32)) as client:
        places = asyncio.Semaphore(24)

        async def one(number: int) -> None:
            body = asked(draw.choice(models), draw.choice(texts))
            async with places:
                try:
                    if number % 20 == 7:
                        raw = BROKEN[number % len(BROKEN)]
                        got = await client.post(CHAT, content=raw, headers={"content-type": "application/json"})
                        counts["refused" if 400 <= got.status_code < 500 else "unanswered"] += 1
                    elif number % 10 == 3:
                        async with client.stream("POST", CHAT, json={**body, "stream": True}) as got:
                            await anext(got.aiter_lines())
                        counts["left"] += 1
                    else:
                        got = await client.post(CHAT, json=body)
                        counts[{200: "answered", 429: "busy"}.get(got.status_code, "unanswered")] += 1
                except (httpx2.HTTPError, StopAsyncIteration):
                    counts["unanswered"] += 1

        await asyncio.gather(*(one(number) for number in range(n)))
    return counts


def page_loads(address: str, n: int = 7) -> dict[str, Any] | None:
    """Milliseconds until each page can be used, with nothing cached, and what was asked of other hosts."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    browser_at = os.environ.get("EMPATHEIA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if browser_at is None:
        return None
    took: dict[str, list[float]] = {"/": [], "/analyze": []}
    foreign: list[str] = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=browser_at, args=["--headless", "--no-sandbox"])
        for place in list(took) * n:
            context = browser.new_context()
            page = context.new_page()
            page.on("request", lambda one: None if one.url.startswith(address) else foreign.append(one.url))
            begun = time.perf_counter()
            page.goto(address + place)
            page.locator("body[data-ready]").wait_for()
            took[place].append(1000 * (time.perf_counter() - begun))
            context.close()
        browser.close()
    record = {"ready_ms": {place: round(statistics.median(ms), 1) for place, ms in took.items()}, "foreign": foreign}
    say(f"pages ready after {record['ready_ms']} ms (median of {n} cold loads), requests elsewhere: {len(foreign)}")
    return record


def queue_of(address: str) -> float:
    """Requests that wait."""
    lines = httpx2.get(f"{address}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("empatheia_queue "))


def main() -> None:
    parser = arguments(__doc__, n=2000, n_naive=40)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each closed loop in a round")
    parser.add_argument("--rounds", type=int, default=4, help="in which the loops take turns (default %(default)s)")
    parser.add_argument("--models", nargs="+", default=["gao2021-small", "empatheia"])
    parser.add_argument("--out", type=Path, help="write the record to this file, too")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    dialogues, source = contexts(options.naive_n)
    texts = [dialogue.turns[-1].text for dialogue in dialogues]
    record: dict[str, Any] = {"machine": machine(options.threads), "texts": f"{len(texts)} last turns of {source}"}
    record |= {"loops": [], "gains": {}, "first_words_ms": {}}
    with serving() as batched, serving("--batch", "1") as single:
        for model in options.models:
            loops = in_turns(batched, single, model, texts, options.rounds, options.seconds)
            for loop in loops:
                tell(loop)
            record["loops"] += [loop.facts() for loop in loops]
            record["gains"][model] = conclude(model, loops)
            waits = 1000 * statistics.median(asyncio.run(first_words(batched[0], model, texts[:20])))
            record["first_words_ms"][model] = round(waits, 1)
            say(f"{model}: first words after {waits:.0f} ms (median of 20)")
        record["pages"] = page_loads(batched[0])
        if options.n:
            record["abuse"] = abused(*batched, options.models, texts, options.n)
    written = json.dumps(record, indent=1)
    if options.out:
        options.out.write_text(written + "\n", encoding="utf-8")
    if options.json:
        print(written)


def in_turns(
    batched: Place, single: Place, model: str, texts: Sequence[str], n_rounds: int, seconds: float
) -> list[Loop]:
    """The four loops, each in every round: whatever else the machine does meets all of them."""
    alone = asyncio.run(by_itself(batched[0], model, texts))
    assert alone == asyncio.run(by_itself(single[0], model, texts)) and all(alone.values())
    loops = [Loop(model, True, n_clients) for n_clients in (1, 8, 32)] + [Loop(model, False, 32)]
    for _ in range(n_rounds):
        for loop in loops:
            address, process = batched if loop.is_batched else single
            before = sum(process.cpu_times()[:2])
            asyncio.run(closed_loop(address, texts, alone, seconds, loop))
            loop.processor += sum(process.cpu_times()[:2]) - before
    return loops


def abused(
    address: str, process: psutil.Process, models: Sequence[str], texts: Sequence[str], n: int
) -> dict[str, float]:
    """The abuse, and the server's memory and queue before and after."""
    asyncio.run(abuse(address, models, texts, max(200, n // 2)))  # caches are filled before memory is read
    before = process.memory_info().rss
    counts = asyncio.run(abuse(address, models, texts, n))
    time.sleep(1)
    after, waiting = process.memory_info().rss, queue_of(address)
    say(
        f"{n:,} requests under abuse: {counts}; memory {before / 1e6:.0f} -> {after / 1e6:.0f} MB"
        f" ({after / before - 1:+.1%}), queue {waiting:g}"
    )
    return {"requests": n, **counts, "rss_before": before, "rss_after": after, "queue": waiting}


def tell(loop: Loop) -> None:
    say(
        f"{loop.name:<28} {loop.n_clients:>2} clients: {loop.rate:7.1f} requests/s, p50 {1000 * loop.at(0.5):6.0f} ms,"
        f" p95 {1000 * loop.at(0.95):6.0f} ms, processor {1000 * loop.processor / len(loop.seconds):4.0f} ms;"
        f" {len(loop.seconds):,} answers, {loop.n_wrong} wrong, {loop.n_lost} lost"
    )


def conclude(model: str, loops: Sequence[Loop]) -> dict[str, float]:
    """What batches gain: by the clock, and by the processor time of the server, which other work hardly touches."""
    one, _, many, without = loops
    gains = {
        "rate": many.rate / without.rate,
        "processor": without.processor / len(without.seconds) / (many.processor / len(many.seconds)),
        "p95_by_median": many.at(0.95) / one.at(0.5),
    }
    say(
        f"{model}: with batches {gains['rate']:.1f} times the requests/s at 32 clients, by processor time"
        f" {gains['processor']:.1f} times; p95 {gains['p95_by_median']:.1f} times the median of one client"
    )
    return {name: round(value, 2) for name, value in gains.items()}


def machine(n_threads: int) -> dict[str, Any]:
    """What it ran on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {"processor": name or platform.processor(), "cores": os.cpu_count(), "threads": n_threads, "load": load}


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
