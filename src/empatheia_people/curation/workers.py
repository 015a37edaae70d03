"""Who does the work: this process, own worker processes, or a Dask cluster; the results are the same.

A worker that dies is started again and its shard is tried anew, a few times; then the shard counts as failed and the
others go on. Nothing a worker does is half visible, see ``shards``.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from empatheia.errors import ConfigError, DataError, EmpatheiaError, MissingDependencyError
from empatheia_people.curation.shards import code_hash

if TYPE_CHECKING:
    from distributed import Client, KilledWorker

T = TypeVar("T")
R = TypeVar("R")
CONNECT_SECONDS = 15
TRIES = 3
"""How often a worker may die of a shard before it is given up."""
LOOK_SECONDS = 2
LOST_SECONDS = 60
"""How long there may be no worker at all before the work is given up; Dask itself waits for ever."""


class Workers(Protocol):
    """Runs a function on tasks."""

    def results(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | DiedError]]:
        """Place of each task and its result, or a :class:`DiedError`, as they come.

        Raises:
            Exception: What the function raises.
        """
        ...


class DiedError(EmpatheiaError):
    """The worker of a shard died, again and again."""


class Here:
    """This process, one task after the other."""

    def results(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | DiedError]]:
        """See :class:`Workers`."""
        for place, task in enumerate(tasks):
            yield place, function(task)


class OnDask:
    """The workers of a Dask scheduler.

    Args:
        client: Of ``distributed``.
        revive: Starts workers that are missing, as far as it is ours to start them. Dask's own nanny does not when a
            worker dies while it starts.
    """

    def __init__(self, client: Client, revive: Callable[[], None] = lambda: None) -> None:
        self._client = client
        self._revive = revive

    def results(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | DiedError]]:
        """See :class:`Workers`."""
        from distributed import KilledWorker

        suspects = []
        for place, found in self._run(function, tasks):
            if isinstance(found, KilledWorker):
                suspects.append(place)
            else:
                yield place, found
        for place in suspects:  # Dask blames all that a dead worker held: alone, only the one that kills dies again
            for _, found in self._run(function, [tasks[place]]):
                if isinstance(found, KilledWorker):
                    yield place, DiedError("its worker died of it alone, of too little memory as a rule")
                else:
                    yield place, found

    def _run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | KilledWorker]]:
        """Place of each task and its result, or that its workers died."""
        from distributed import CancelledError, KilledWorker, as_completed

        futures = self._client.map(function, list(tasks), pure=False, batch_size=512)
        places = {future.key: place for place, future in enumerate(futures)}
        over, has_none = threading.Event(), threading.Event()
        threading.Thread(target=self._watch, args=(futures, over, has_none), daemon=True).start()
        try:
            for future in as_completed(futures):
                try:
                    found = future.result()
                except KilledWorker as died:
                    found = died
                except CancelledError:
                    lost = f"no worker was left for {LOST_SECONDS} seconds" if has_none.is_set() else "it was lost"
                    raise DataError(
                        f"the Dask scheduler stopped working: {lost}. `empatheia curate resume` continues."
                    ) from None
                yield places[future.key], found
                future.release()
        finally:
            over.set()
            with contextlib.suppress(Exception):
                self._client.cancel(futures, force=True)

    def _watch(self, futures: Sequence[Any], over: threading.Event, has_none: threading.Event) -> None:
        """Until it is over, keeps workers there; cancels the futures when there has been none for too long."""
        seen = time.monotonic()
        while not over.wait(LOOK_SECONDS):
            try:
                self._revive()
                if self._client.nthreads():
                    seen = time.monotonic()
            except Exception:
                continue
            if time.monotonic() - seen > LOST_SECONDS:
                has_none.set()
                with contextlib.suppress(Exception):
                    self._client.cancel(futures, force=True)
                return


@contextlib.contextmanager
def started(
    n_workers: int, memory: str, scheduler: str | None = None, say: Callable[[str], None] = lambda text: None
) -> Iterator[Workers]:
    """Workers for as long as they are needed.

    Args:
        n_workers: Own processes; 0 = none, the work is done here.
        memory: Of each, such as ``2GB``; one that needs more is started again.
        scheduler: Address of a cluster, ``tcp://host:port``; with this version of the package and the same folders.
        say: Told where the dashboard is.

    Raises:
        MissingDependencyError: Dask is not installed.
        DataError: The scheduler cannot be reached or has no workers.
        ConfigError: Its workers have another version of the curation.
    """
    if scheduler is None and n_workers == 0:
        yield Here()
        return
    distributed = _distributed()
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=n_workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=memory,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0" if _has_dashboard() else None,
                )
            )
            client = stack.enter_context(distributed.Client(cluster))

            def revive() -> None:
                cluster.scale(n_workers)

        else:
            client = stack.enter_context(_connected(distributed, scheduler))
            _check_workers(client, scheduler)

            def revive() -> None:
                """They are somebody else's."""

        if _has_dashboard() or scheduler is not None:
            say(f"dashboard: {client.dashboard_link}")
        yield OnDask(client, revive)


def _distributed() -> Any:
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingDependencyError(
            "several workers need Dask: pip install 'empatheia[people]' (or --workers 0: one process)"
        ) from None
    import logging

    logging.getLogger("distributed").setLevel(logging.ERROR)
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": TRIES,
            "distributed.worker.multiprocessing-method": "spawn",
            "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
            "distributed.admin.log-format": "%(message)s",
        }
    )
    return distributed


def _has_dashboard() -> bool:
    from importlib.util import find_spec

    return find_spec("bokeh") is not None


def _connected(distributed: Any, scheduler: str) -> Any:
    try:
        return distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataError(
            f"no Dask scheduler answers at {scheduler!r} ({said}). Start one: `dask scheduler`, `dask worker ADDRESS`."
        ) from None


def _check_workers(client: Any, scheduler: str) -> None:
    with contextlib.suppress(TimeoutError):  # one that has died may be on its way back
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    try:
        codes = client.run(code_hash)
    except Exception as error:  # whatever a worker without this package raises
        said = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"the workers of {scheduler} cannot run this package: {said}. Install it there, too."
        ) from None
    if not codes:
        raise DataError(f"the scheduler {scheduler} has no workers. Start some: `dask worker {scheduler}`.")
    if set(codes.values()) != {code_hash()}:
        raise ConfigError(f"the workers of {scheduler} have another version of the curation; install the same one.")
