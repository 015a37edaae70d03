"""Analyses in the background: rows come in pieces, results wait in a folder until they are fetched or expire.

Everything of a job lies in files, so memory does not grow with it, and any process of a server can tell of it: rows as
they came (``given.jsonl``), results (``rows.jsonl``, the records that ``analyze --out`` writes), how far it is
(``state.json``). Its id cannot be guessed; who has it may read it. An hour after the end all of it is deleted.

Who works at a job holds its folder, and a kill lets go of it: the next server, or process of this one, that starts with
the same folder of jobs goes on after the last whole row.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from empatheia.errors import DataError, EmpatheiaError
from empatheia.files.bulk import joined, record_of, usable
from empatheia.files.result_file import keep_whole
from empatheia.files.result_table import CSV_COLUMNS, beside_given, csv_pieces, flat, side_of
from empatheia.files.rows import Row
from empatheia.reading import lines_of, parse_json, read_record
from empatheia.records.dialogue import Dialogue
from empatheia.serve.analysis import read_item
from empatheia.serve.faults import ApiError, api_error
from empatheia.serve.messages import ChatMessage
from empatheia.serve.service import Service
from empatheia.serve.shelf import Entry
from empatheia.serve.temporary import PrivateFolder
from empatheia.text.inputs import as_conversation
from empatheia.writing import hold_folder, whole_file

_LOG = logging.getLogger(__name__)
_IS_ID = re.compile(r"[A-Za-z0-9_-]{32}\Z")
_PIECE = 32  # rows that are analysed together
_POLL = 0.2  # seconds between two looks for further rows
_PATIENCE = 600.0  # seconds to wait for further rows
_EMPTY_STAYS = 60.0  # seconds in which a job without rows is not deleted for another
_STALE = 900.0  # seconds without a sign of the process that works
_N_CAUSES = 40
_GONE = "there is no such analysis; it may have expired."
_HAS = {
    "id": lambda row: row.get("id", "") not in ("", *row.get("cells", {}).values()),
    "text": lambda row: row["input"] not in row.get("cells", {}).values(),
}
"""Our columns that a table may do without, to whether a row needs one: what stands there is not among its cells."""
ENDED = ("done", "cancelled", "failed")


class _HeldError(EmpatheiaError):
    """Another process works at a job."""


@dataclass
class Tally:
    """What is counted while a job runs.

    Attributes:
        emotions, sides, causes: How many rows name each.
        done: Rows, those that could not be read included.
        failed: Those.
    """

    emotions: Counter[str] = field(default_factory=Counter)
    sides: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    done: int = 0
    failed: int = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """One more row."""
        self.done += 1
        if "error" in record:
            self.failed += 1
            return
        if record["emotion"] is not None:
            self.emotions[record["emotion"]] += 1
        if (side := side_of(record["emotion"], record.get("sides"))) is not None:
            self.sides[side] += 1
        self.causes.update({cause["text"].lower() for cause in record["causes"]})
        if len(self.causes) > 50 * _N_CAUSES:
            self.causes = Counter(dict(self.causes.most_common(25 * _N_CAUSES)))

    def to_dict(self) -> dict[str, object]:
        """As it is told."""
        return {
            "done": self.done,
            "failed": self.failed,
            "emotions": dict(self.emotions.most_common()),
            "sides": dict(self.sides.most_common()),
            "causes": [{"text": text, "rows": n} for text, n in self.causes.most_common(_N_CAUSES)],
        }


class Jobs:
    """The jobs of a server.

    Args:
        service: Who computes, and the limits.

    Attributes:
        clock: Says the time by which a job without rows grows old.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.clock = time.time
        self.limits = service.settings.limits
        self._tasks: set[asyncio.Task[None]] = set()
        self._own: PrivateFolder | None = None
        self._folder = Path(service.settings.jobs) if service.settings.jobs else None

    # -- what a client asks ------------------------------------------------------------------------------------

    def create(self, name: str, columns: Sequence[str], entry: Entry) -> str:
        """A new job without rows; its id.

        Raises:
            ApiError: There are too many.
        """
        folder = self._home()
        if sum(1 for _ in folder.iterdir()) >= self.limits.jobs and not self._drop_empty():
            said = f"{self.limits.jobs} analyses are held already; delete one, or try again later."
            raise ApiError(429, said, code="too_many_jobs", headers={"Retry-After": "60"})
        id = secrets.token_urlsafe(24)
        place = folder / id
        place.mkdir(mode=0o700)
        (place / "given.jsonl").touch()
        (place / "rows.jsonl").touch()
        head = {"id": id, "name": name, "model": entry.id, "columns": list(columns), "created": int(time.time())}
        _write(place / "head.json", head)
        _write(place / "given.json", {"rows": 0, "closed": False, "without": ["id", "text"]})
        _note(place, "waiting", Tally())
        self._begin(place)
        return id

    def take_over(self) -> None:
        """Goes on with what others left in the folder of jobs when they were killed; does nothing without one."""
        if self._folder is None:
            return
        for place in self._home().iterdir():
            if _IS_ID.match(place.name) and (place / "state.json").is_file():
                self._begin(place)
            elif _IS_ID.match(place.name) and time.time() - place.stat().st_mtime > _STALE:  # nobody knows its id
                shutil.rmtree(place, ignore_errors=True)

    def give(self, id: str, rows: Sequence[Mapping[str, Any]], is_last: bool) -> None:
        """Adds rows.

        Raises:
            ApiError: There is no such job, it takes no more, they are too many or none, or one has a cell of no column.
        """
        place = self._place(id)
        columns = self._record(id, "head")["columns"]
        for number, row in enumerate(rows):
            for name in row.get("cells", ()):
                if name not in columns:
                    said = f"rows[{number}] has a cell {str(name)[:100]!r}; accepted: the names in columns."
                    raise ApiError(422, said, param=f"rows[{number}].cells", code="unknown_column")
        given = self._record(id, "given")
        if given["closed"] or self._record(id, "state")["status"] in ENDED:
            raise ApiError(409, "this analysis takes no further rows; start another.", code="job_closed")
        if is_last and not rows and not given["rows"]:
            raise ApiError(422, "the analysis has no rows; give one or more.", param="rows", code="empty")
        if given["rows"] + len(rows) > self.limits.rows:
            said = f"an analysis takes at most {self.limits.rows:,} rows; split the file."
            raise ApiError(422, said, param="rows", code="too_many_rows")
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        file = place / "given.jsonl"
        if file.stat().st_size + len(text) > self.limits.row_bytes:
            said = f"an analysis takes at most {self.limits.row_bytes:,} bytes; split the file."
            raise ApiError(413, said, param="rows", code="too_large")
        with file.open("ab") as stream:
            stream.write(text)
        without = [name for name in given["without"] if not any(_HAS[name](row) for row in rows)]
        _write(place / "given.json", {"rows": given["rows"] + len(rows), "closed": is_last, "without": without})

    def tell(self, id: str) -> dict[str, object]:
        """How far a job is, and what was counted."""
        state, given = self._record(id, "state"), self._record(id, "given")
        if state["status"] not in ENDED and time.time() - state.pop("seen") > _STALE:
            state |= {"status": "failed", "error": "the process that did it has ended; start it again."}
        state.pop("seen", None)
        return {**self._record(id, "head"), "total": given["rows"], "closed": given["closed"], **state}

    def cancel(self, id: str) -> None:
        """Ends a job; what is done stays."""
        (self._place(id) / "cancel").touch()

    def delete(self, id: str) -> None:
        """Ends a job and deletes all of it."""
        shutil.rmtree(self._place(id), ignore_errors=True)

    def rows(self, id: str, start: int, count: int, wanted: Mapping[str, str]) -> tuple[list[dict[str, object]], int]:
        """Some of the results, and how many there are.

        Args:
            id: Of the job.
            start: The first, counted among those that are wanted.
            count: How many.
            wanted: ``emotion``, ``side``, ``search`` (in the text, any case); ``error`` = those that failed.
        """
        found: list[dict[str, object]] = []
        n = 0
        for record in map(parse_json, self._lines(id)):
            if _is_wanted(record, wanted):
                if start <= n < start + count:
                    found.append(record)
                n += 1
        return found, n

    def table(self, id: str) -> Iterator[str]:
        """The results as CSV, piece by piece; the caller's columns stand in front of ours."""
        given, without = self._record(id, "head")["columns"], self._record(id, "given")["without"]
        own = [name for name in CSV_COLUMNS if name not in without]
        columns, cells = beside_given(given, own, lambda record: [flat(record)])
        return csv_pieces(columns, (row for line in self._lines(id) for row in cells(parse_json(line))))

    def lines(self, id: str) -> Iterator[str]:
        """The results as JSON lines."""
        return self._lines(id)

    async def close(self) -> None:
        """Ends all and deletes the folder, if it is our own."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._own is not None:
            self._own.cleanup()

    # -- work --------------------------------------------------------------------------------------------------

    def _begin(self, place: Path) -> None:
        task = asyncio.get_running_loop().create_task(self._run(place))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, place: Path) -> None:
        """To its end, and to that of its time."""
        with contextlib.suppress(_HeldError, FileNotFoundError):  # another process works at it; it was deleted
            with hold_folder(place, _HeldError()):
                state = read_record(place / "state.json")
                if state["status"] not in ENDED:
                    state = await self._work(place)
            await asyncio.sleep(max(0.0, state["expires"] - time.time()))
            shutil.rmtree(place, ignore_errors=True)

    async def _work(self, place: Path) -> dict[str, Any]:
        """What became of it.

        Raises:
            FileNotFoundError: The job was deleted.
        """
        tally, status, error = Tally(), "done", None
        try:
            entry = self.service.shelf.entry(read_record(place / "head.json")["model"])
            _go_on(place, tally)
            _note(place, "running" if tally.done else "waiting", tally)
            await self._analyse(place, entry, tally)
            if (place / "cancel").exists():
                status = "cancelled"
        except FileNotFoundError:
            raise
        except Exception as problem:
            _LOG.error("a job failed: %s", type(problem).__name__)
            status, error = "failed", api_error(problem).body["error"]["message"]
        _note(place, status, tally, error, time.time() + self.limits.job_seconds)
        (place / "given.jsonl").unlink()
        return read_record(place / "state.json")

    async def _analyse(self, place: Path, entry: Entry, tally: Tally) -> None:
        """All rows, as they come in.

        Raises:
            FileNotFoundError: The job was deleted.
        """
        waited = 0.0
        with (place / "given.jsonl").open("rb") as source:
            for _ in range(tally.done):
                source.readline()
            while not (place / "cancel").exists() and waited < _PATIENCE:
                is_closed = read_record(place / "given.json")["closed"]
                piece = _next_rows(source)
                if piece:
                    waited = 0.0
                    await self._piece(place, entry, piece, tally)
                elif is_closed:
                    return
                else:
                    waited += _POLL
                    await asyncio.sleep(_POLL)
        if waited >= _PATIENCE:
            (place / "cancel").touch()

    async def _piece(self, place: Path, entry: Entry, given: Sequence[Mapping[str, Any]], tally: Tally) -> None:
        rows = [self._row(number, row) for number, row in enumerate(given, tally.done + 1)]
        good, faults = usable(rows, as_conversation)
        answers = await self._patiently(good, entry) if good else []
        records = [record_of(row, found, has_cells=bool(row.cells)) for row, found in joined(rows, faults, answers)]
        if not place.exists():
            raise FileNotFoundError(place)
        with (place / "rows.jsonl").open("a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        for record in records:
            tally.add(record)
        _note(place, "running", tally)

    def _row(self, number: int, given: Mapping[str, Any]) -> Row:
        """What a client gave, read within the limits; or what is wrong with it."""
        item = error = None
        try:
            item = read_item(_item(given["input"]), self.limits)
        except (ApiError, DataError) as fault:
            error = api_error(fault).body["error"]["message"]
        cells = (given["cells"],) if given.get("cells") else ()
        return Row(number, item, error, given.get("id") or None, cells=cells)

    async def _patiently(self, items: Sequence[Dialogue], entry: Entry) -> list[Any]:
        """Analyses; waits where the queue is full, because nobody waits for this one."""
        while True:
            try:
                return await self.service.analyses(items, entry, is_bulk=True)
            except ApiError as error:
                if error.status_code != 429:
                    raise
                await asyncio.sleep(float((error.headers or {}).get("Retry-After", 1)))

    # -- files -------------------------------------------------------------------------------------------------

    def _home(self) -> Path:
        if self._folder is None:
            self._own = PrivateFolder()
            self._folder = Path(self._own.name)
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    def _drop_empty(self) -> bool:
        """Deletes the oldest job that nobody gave a row to for long; whether there was one."""
        empty, now = [], self.clock()
        for place in self._home().iterdir():
            with contextlib.suppress(OSError, ValueError):  # deleted just now, or not begun
                changed = place.stat().st_mtime
                if now - changed >= _EMPTY_STAYS and not read_record(place / "given.json")["rows"]:
                    empty.append((changed, place))
        if empty:
            shutil.rmtree(min(empty)[1], ignore_errors=True)
        return bool(empty)

    def _place(self, id: str) -> Path:
        place = self._home() / id if _IS_ID.match(id) else None
        if place is None or not place.is_dir():
            raise ApiError(404, _GONE, code="not_found")
        return place

    def _record(self, id: str, name: str) -> dict[str, Any]:
        try:
            return read_record(self._place(id) / f"{name}.json")
        except OSError:  # it was deleted just now
            raise ApiError(404, _GONE, code="not_found") from None

    def _lines(self, id: str) -> Iterator[str]:
        """The results that are whole: a row may be on its way to the file."""
        done = self._record(id, "state")["done"]
        return (line for _, line in islice(lines_of(self._place(id) / "rows.jsonl"), done))


def _go_on(place: Path, tally: Tally) -> None:
    """Counts the results that are there, and cuts what a kill left unfinished: a row, or rows that nobody confirmed."""
    for record in keep_whole(place / "rows.jsonl"):
        tally.add(record)
    with (place / "given.jsonl").open("rb+") as stream:
        n_given = sum(len(stream.readline()) for _ in range(read_record(place / "given.json")["rows"]))
        stream.truncate(n_given)


def _note(place: Path, status: str, tally: Tally, error: str | None = None, expires: float | None = None) -> None:
    told = {
        "status": status,
        "error": error,
        "expires": None if expires is None else math.ceil(expires),
        "seen": time.time(),
    }
    _write(place / "state.json", {**told, **tally.to_dict()})


def _write(path: Path, record: Mapping[str, object]) -> None:
    """A record, whole or as it was before."""
    with whole_file(path) as part:
        part.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")


def _item(given: Any) -> str | list[ChatMessage]:
    return given if isinstance(given, str) else [ChatMessage.model_validate(one) for one in given]


def _next_rows(source: Any) -> list[dict[str, Any]]:
    """The next rows that are whole."""
    rows: list[dict[str, Any]] = []
    while len(rows) < _PIECE:
        place = source.tell()
        line = source.readline()
        if not line.endswith(b"\n"):
            source.seek(place)
            break
        rows.append(parse_json(line))
    return rows


def _is_wanted(record: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    if "error" in record:
        return not (set(wanted) - {"error"})
    if "error" in wanted:
        return False
    if "emotion" in wanted and record["emotion"] != wanted["emotion"]:
        return False
    if "side" in wanted and side_of(record["emotion"], record.get("sides")) != wanted["side"]:
        return False
    search = wanted.get("search", "").casefold()
    return not search or any(search in turn["text"].casefold() for turn in record["turns"])
