"""Requests a second of ``empatheia serve``: closed loops of 1, 8 and 32 clients, with and without batches; then abuse.

Every answer is compared with the one the same server gave when it was asked alone. The abuse: of 2,000 requests one
in ten leaves in the middle of a stream and one in twenty is malformed; memory before and after, the queue, what went
unanswered.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import psutil
from report import arguments, contexts

CHAT = "/v1/chat/completions"
BROKEN = ["{", "[]", '{"messages": []}', '{"messages": 5}', '{"messages": [{"role": "user", "content": ""}]}', "\x00"]


@dataclass
class Loop:
    """What a closed loop measured."""

    name: str
    n_clients: int
    seconds: list[float] = field(default_factory=list)
    wall: float = 0.0
    n_wrong: int = 0
    n_lost: int = 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.wall

    def at(self, share: float) -> float:
        """Seconds below which this share of the answers came."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


@contextmanager
def serving(*options: str) -> Iterator[tuple[str, psutil.Process]]:
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


async def closed_loop(
    address: str, model: str, texts: Sequence[str], alone: dict[str, str], n_clients: int, seconds: float, name: str
) -> Loop:
    """Each client asks as soon as it was answered, until the time is over."""
    loop = Loop(name, n_clients)
    async with httpx2.AsyncClient(base_url=address, timeout=120, limits=httpx2.Limits(max_connections=64)) as client:
        begun = time.perf_counter()

        async def one(number: int) -> None:
            draw = random.Random(number)
            while time.perf_counter() - begun < seconds:
                text, started = draw.choice(texts), time.perf_counter()
                said = await answer(client, asked(model, text))
                loop.seconds.append(time.perf_counter() - started)
                loop.n_lost += said is None
                loop.n_wrong += said is not None and said != alone[text]

        await asyncio.gather(*(one(number) for number in range(n_clients)))
        loop.wall = time.perf_counter() - begun
    return loop


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


def queue_of(address: str) -> float:
    """Requests that wait."""
    lines = httpx2.get(f"{address}/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("empatheia_queue "))


def main() -> None:
    parser = arguments(__doc__, n=2000, n_naive=40)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each closed loop")
    parser.add_argument("--models", nargs="+", default=["default", "empatheia"])
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    dialogues, source = contexts(options.naive_n)
    texts = [dialogue.turns[-1].text for dialogue in dialogues]
    record: dict[str, Any] = {"texts": source, "threads": options.threads, "loops": [], "first_words_ms": {}}

    for batched, extra in ((True, ()), (False, ("--batch", "1"))):
        with serving(*extra) as (address, process):
            for model in options.models:
                alone = asyncio.run(by_itself(address, model, texts))
                for n_clients in (1, 8, 32) if batched else (32,):
                    name = f"{model}, {'batches' if batched else 'each alone'}"
                    loop = asyncio.run(closed_loop(address, model, texts, alone, n_clients, options.seconds, name))
                    tell(loop)
                    facts = {"name": name, "clients": n_clients, "requests": len(loop.seconds), "rate": loop.rate}
                    facts |= {"p50": loop.at(0.5), "p95": loop.at(0.95), "wrong": loop.n_wrong, "lost": loop.n_lost}
                    record["loops"].append(facts)
                if batched:
                    waits = asyncio.run(first_words(address, model, texts[:20]))
                    record["first_words_ms"][model] = round(1000 * statistics.median(waits), 1)
                    print(
                        f"{model}: first words after {1000 * statistics.median(waits):.0f} ms (median of {len(waits)})"
                    )
            if batched:
                asyncio.run(abuse(address, options.models, texts, 200))  # caches are filled before memory is read
                before = process.memory_info().rss
                counts = asyncio.run(abuse(address, options.models, texts, options.n))
                time.sleep(1)
                after, waiting = process.memory_info().rss, queue_of(address)
                record["abuse"] = {**counts, "rss_before": before, "rss_after": after, "queue": waiting}
                print(
                    f"{options.n:,} requests under abuse: {counts}; memory {before / 1e6:.0f} -> {after / 1e6:.0f} MB"
                    f" ({after / before - 1:+.1%}), queue {waiting:g}",
                    file=sys.stderr,
                )
    for model in options.models:
        conclude(model, record["loops"])
    if options.json:
        print(json.dumps(record))


def tell(loop: Loop) -> None:
    print(
        f"{loop.name:<28} {loop.n_clients:>2} clients: {loop.rate:7.1f} requests/s, p50 {1000 * loop.at(0.5):6.0f} ms,"
        f" p95 {1000 * loop.at(0.95):6.0f} ms; {len(loop.seconds):,} answers, {loop.n_wrong} wrong, {loop.n_lost} lost",
        file=sys.stderr,
        flush=True,
    )


def conclude(model: str, loops: Sequence[dict[str, Any]]) -> None:
    own = {(one["name"], one["clients"]): one for one in loops}
    single, many = own[f"{model}, batches", 1], own[f"{model}, batches", 32]
    without = own[f"{model}, each alone", 32]
    print(
        f"{model}: with batches {many['rate'] / without['rate']:.1f} times the requests/s at 32 clients;"
        f" p95 {many['p95'] / single['p50']:.1f} times the median of one client",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
