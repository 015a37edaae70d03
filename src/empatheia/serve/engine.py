"""The queue in front of the models: one thread computes, requests that wait for the same thing are joined.

One thread, because a processor that two replies share answers neither sooner, and because a model answers the same
whoever asks beside it. More processors are used by more processes (``--workers``).

What takes long gives way (:mod:`empatheia.giving_way`): at its steps it ends if its client has left, and lets those
pass who wait, so that one long text does not stop everybody.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from empatheia.giving_way import Abandoned, asking
from empatheia.records.dialogue import Dialogue
from empatheia.serve.faults import ApiError
from empatheia.serve.measures import Measures
from empatheia.serve.settings import Batching

Item = TypeVar("Item")
Result = TypeVar("Result")
Part = TypeVar("Part")
Left = threading.Event
Work = Callable[[Sequence[Any]], Sequence[Any]]
Speak = Callable[[Callable[[Any], None], Left], None]


@dataclass(eq=False)
class Job:
    """What somebody waits for.

    Attributes:
        group: Jobs of one group are computed together; None = alone.
        items: What is asked.
        work: From items to results, in their order; the same function for a whole group.
        speak: In the place of ``work``: hands parts of its answer out while it runs.
        is_bulk: May wait behind others.
        done: Set with the results, one for each item.
        left: Nobody waits any more.
        parts: Where ``speak`` hands its parts to.
    """

    group: Hashable | None
    items: Sequence[Any]
    done: asyncio.Future[Any]
    work: Work | None = None
    speak: Speak | None = None
    is_bulk: bool = False
    left: Left = field(default_factory=Left)
    parts: asyncio.Queue[Any] | None = None

    @property
    def n_characters(self) -> int:
        """Of the conversations that are asked about."""
        return sum(len(turn.text) for item in self.items if isinstance(item, Dialogue) for turn in item.turns)


_END = object()
_PATIENCE = 0.02  # seconds that a batch computes before others may pass
_SHARE = 0.5  # of the time that others took, what it computes before they may pass again
_PASSING = 20_000  # characters, for each second of its own, of whom it lets pass: nobody who takes longer than itself
_DEEPEST = 8  # batches of which each lets the next one pass


class _Steps:
    """Asked at every step of a batch, in the engine's thread.

    Args:
        batch: Its jobs.
        let_pass: Computes those of at most so many characters who wait.
    """

    def __init__(self, batch: Sequence[Job], let_pass: Callable[[float], object]) -> None:
        self.batch, self.let_pass = batch, let_pass
        self._began = time.monotonic()  # but for the time that others took
        self._goes_on_until = self._began + _PATIENCE

    def __call__(self) -> None:
        if all(job.left.is_set() for job in self.batch):
            raise Abandoned
        begun = time.monotonic()
        if begun >= self._goes_on_until:
            self.let_pass(_PASSING * (begun - self._began))
            ended = time.monotonic()
            self._began += ended - begun
            self._goes_on_until = ended + max(_PATIENCE, _SHARE * (ended - begun))


class Engine:
    """Computes jobs in one thread.

    Args:
        settings: How many may wait, how many are joined.
        measures: Where queue and batches are counted.
    """

    def __init__(self, settings: Batching, measures: Measures) -> None:
        self.settings, self.measures = settings, measures
        self._soon: deque[Job] = deque()
        self._bulk: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="empatheia-engine")
        self._task: asyncio.Task[None] | None = None
        self._last_size = 1
        self._last_was_bulk = False
        self._seconds = 0.1  # of a batch, a moving mean
        self._busy = self._depth = 0
        self._lock = threading.Lock()  # of the two queues

    # -- asking ------------------------------------------------------------------------------------------------

    @property
    def n_waiting(self) -> int:
        """Jobs that are not begun."""
        return len(self._soon) + len(self._bulk)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and nothing runs."""
        return not self.n_waiting and not self._busy

    async def ask(
        self,
        group: Hashable | None,
        items: Sequence[Item],
        work: Callable[[Sequence[Item]], Sequence[Result]],
        is_bulk: bool = False,
    ) -> list[Result]:
        """Results for items, perhaps computed among those of others.

        Args:
            group: Whom it may be joined with.
            items: What is asked; more than a batch are asked in several.
            work: From items to results.
            is_bulk: May wait behind others.

        Raises:
            ApiError: The queue is full.
        """
        size = self.settings.size
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        self._check_room(1)
        loop = asyncio.get_running_loop()
        jobs = [Job(group, part, loop.create_future(), work=work, is_bulk=is_bulk) for part in parts]
        for job in jobs:
            self._put(job)
        try:
            return [one for job in jobs for one in await job.done]
        finally:
            for job in jobs:
                self._forget(job)

    async def stream(
        self, speak: Callable[[Callable[[Part], None], Left], None], items: Sequence[object] = ()
    ) -> AsyncIterator[Part]:
        """Parts of an answer while it is computed.

        Args:
            speak: Called in the engine's thread with a function that takes the parts, and an event that tells it to
                stop.
            items: What is answered.

        Raises:
            ApiError: The queue is full.
        """
        self._check_room(1)
        loop = asyncio.get_running_loop()
        parts: asyncio.Queue[Any] = asyncio.Queue()
        job = Job(None, items, loop.create_future(), speak=speak, parts=parts)
        self._put(job)
        try:
            while (part := await parts.get()) is not _END:
                yield part
            await job.done
        finally:
            self._forget(job)

    async def close(self) -> None:
        """Computes what waits, then ends the thread."""
        while not self.is_idle:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=True)

    # -- parts -------------------------------------------------------------------------------------------------

    def _check_room(self, n: int) -> None:
        waiting = self.n_waiting
        if waiting + n > self.settings.queue:
            seconds = max(1, round(self._seconds * waiting / max(1, self._last_size)))
            raise ApiError(
                429,
                f"{waiting} requests are waiting already; try again in {seconds} s.",
                code="queue_full",
                headers={"Retry-After": str(seconds)},
            )

    def _put(self, job: Job) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        with self._lock:
            (self._bulk if job.is_bulk else self._soon).append(job)
        self.measures.queue.set(self.n_waiting)
        self._wake.set()

    def _forget(self, job: Job) -> None:
        """Takes a job out that nobody waits for; one that runs is told to stop."""
        job.left.set()
        with self._lock:
            for waiting in (self._soon, self._bulk):
                if job in waiting:
                    waiting.remove(job)
        self.measures.queue.set(self.n_waiting)

    async def _run(self) -> None:
        while True:
            while not self.n_waiting:
                self._wake.clear()
                await self._wake.wait()
            if self._last_size > 1 and self.settings.wait and self.n_waiting < self.settings.size:
                await asyncio.sleep(self.settings.wait)
            batch = self._take()
            if not batch:
                continue
            self._busy = len(batch)
            begun = time.monotonic()
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._compute, batch, asyncio.get_running_loop()
                )
            finally:
                self._busy = 0
            self._seconds += 0.2 * (time.monotonic() - begun - self._seconds)

    def _take(self) -> list[Job]:
        """The next jobs to compute together: the one that waits longest and those of its group."""
        with self._lock:
            turn_of_bulk = bool(self._bulk) and (not self._soon or not self._last_was_bulk)
            self._last_was_bulk = turn_of_bulk
            return self._taken(self._bulk if turn_of_bulk else self._soon)

    def _taken(self, waiting: deque[Job], first: Job | None = None, most: float = math.inf) -> list[Job]:
        """The first job, or that one, and others of its group of at most so many characters."""
        if not waiting:
            return []
        first = first or waiting[0]
        waiting.remove(first)
        batch, n_items = [first], len(first.items)
        if first.group is not None:
            for job in list(waiting):
                if n_items >= self.settings.size:
                    break
                fits = n_items + len(job.items) <= self.settings.size and job.n_characters <= most
                if job.group == first.group and fits:
                    waiting.remove(job)
                    batch.append(job)
                    n_items += len(job.items)
        self._last_size = len(batch)
        self.measures.queue.set(self.n_waiting)
        self.measures.batch.observe(max(1, n_items))
        return batch

    def _compute(self, batch: Sequence[Job], loop: asyncio.AbstractEventLoop) -> None:
        """In the engine's thread."""
        with asking(_Steps(batch, lambda most: self._let_pass(loop, most))):
            self._work(batch, loop)

    def _let_pass(self, loop: asyncio.AbstractEventLoop, most: float) -> None:
        """In the engine's thread, between two steps of a batch: those of at most so many characters."""
        if self._depth >= _DEEPEST:
            return
        with self._lock:
            first = next((job for job in self._soon if job.n_characters <= most), None)
            passing = [] if first is None else self._taken(self._soon, first, most)
        if passing:
            self._depth += 1
            try:
                with _beside_a_model():
                    self._compute(passing, loop)
            finally:
                self._depth -= 1

    def _work(self, batch: Sequence[Job], loop: asyncio.AbstractEventLoop) -> None:
        if batch[0].speak is not None:
            self._speak(batch[0], loop)
            return
        work = batch[0].work
        assert work is not None
        try:
            results = list(work([item for job in batch for item in job.items]))
        except BaseException as error:
            if len(batch) > 1 and not isinstance(
                error, Abandoned
            ):  # one of them may be at fault: the others get their answers
                for job in batch:
                    self._compute([job], loop)
                return
            for job in batch:
                loop.call_soon_threadsafe(_fail, job.done, error)
            return
        place = 0
        for job in batch:
            loop.call_soon_threadsafe(_succeed, job.done, results[place : place + len(job.items)])
            place += len(job.items)

    def _speak(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        parts = job.parts
        assert job.speak is not None and parts is not None

        def hand_out(part: Any) -> None:
            loop.call_soon_threadsafe(parts.put_nowait, part)

        try:
            if not job.left.is_set():
                job.speak(hand_out, job.left)
            loop.call_soon_threadsafe(_succeed, job.done, [])
        except BaseException as error:
            loop.call_soon_threadsafe(_fail, job.done, error)
        hand_out(_END)


def _succeed(done: asyncio.Future[Any], results: Sequence[Any]) -> None:
    if not done.done():
        done.set_result(list(results))


def _fail(done: asyncio.Future[Any], error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
        done.exception()  # seen, even where nobody waits any more


@contextmanager
def _beside_a_model() -> Iterator[None]:
    """As if the model that waits were not at work: what it draws next, and how torch computes, stay its own."""
    torch: Any = sys.modules.get("torch")  # where nobody loaded it, no model of it waits
    if torch is None:
        yield
        return
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
        yield
