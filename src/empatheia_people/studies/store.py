"""The store of a study: SQLite in one file (write-ahead log) or PostgreSQL by URL, with the same words for both.

Every change is one transaction that either holds or did not happen. SQLite takes its write lock when a transaction
begins (``BEGIN IMMEDIATE``), for a lock that is taken between a read and a write can be lost to somebody else; on
PostgreSQL the row of the study is the lock.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, inspect, select, text
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from empatheia import writing
from empatheia.errors import ConfigError, EmpatheiaError
from empatheia.errors import DataError as UnusableError
from empatheia_people.studies.design import Design, validate_design
from empatheia_people.studies.extra import need
from empatheia_people.studies.items import Candidate, Material, StudyItem
from empatheia_people.studies.manifest import Hit, Manifest, Task
from empatheia_people.studies.tables import SCHEMA_VERSION, Event, HitRow, ItemRow, Study, TaskRow

Clock = Callable[[], float]
_BUSY_SECONDS = 30


class StoreError(EmpatheiaError):
    """The store cannot be reached or is full; nothing of the change was kept."""


def store_url(place: str) -> str:
    """A store's address: ``s.db`` and ``sqlite:///s.db`` are a file, ``postgresql://...`` a database.

    Raises:
        ConfigError: Another kind of database.

    >>> store_url("s.db")
    'sqlite:///s.db'
    """
    if "://" not in place:
        return f"sqlite:///{place}"
    kind = place.partition("://")[0].partition("+")[0]
    if kind in ("postgres", "postgresql"):
        return "postgresql+psycopg://" + place.partition("://")[2]
    if kind != "sqlite":
        raise ConfigError(f"no store of kind {kind!r}; accepted: a file, sqlite:///FILE, postgresql://HOST/NAME.")
    return place


def shown_url(url: str) -> str:
    """The address without its password."""
    return re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:***@", url)


class Store:
    """An open store.

    Args:
        place: See :func:`store_url`.
        clock: Seconds since 1970.

    Raises:
        MissingDependencyError: PostgreSQL is asked for, and its driver is not installed.
        ConfigError: Another kind of database.
    """

    def __init__(self, place: str, clock: Clock = time.time) -> None:
        self.url = store_url(place)
        self.is_sqlite = self.url.startswith("sqlite")
        self._clock = clock
        self._last = 0.0
        self._writing = threading.RLock()
        if self.is_sqlite:
            self.engine: Engine = create_engine(self.url, connect_args={"timeout": _BUSY_SECONDS}, pool_size=16)
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)
        else:
            need("psycopg")
            self.engine = create_engine(self.url, pool_size=16, pool_pre_ping=True, connect_args={"connect_timeout": 5})

    def now(self) -> float:
        """Seconds since 1970; a clock that was set back stands still until it has caught up."""
        self._last = max(self._last, self._clock())
        return self._last

    @property
    def file(self) -> Path | None:
        """The file of SQLite; None for PostgreSQL."""
        return Path(self.url.removeprefix("sqlite:///")) if self.is_sqlite else None

    @contextlib.contextmanager
    def change(self) -> Iterator[Session]:
        """A transaction that writes; it is kept if the block ends well.

        Raises:
            StoreError: The database is gone, locked or full.
        """
        guard = self._writing if self.is_sqlite else contextlib.nullcontext()
        with guard, self._session() as session:
            yield session

    @contextlib.contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that only reads."""
        with self._session(read_only=True) as session:
            yield session

    @contextlib.contextmanager
    def _session(self, read_only: bool = False) -> Iterator[Session]:
        engine = self.engine.execution_options(read_only=True) if read_only else self.engine
        try:
            with Session(engine, expire_on_commit=False) as session, session.begin():
                yield session
        except (IntegrityError, ProgrammingError, DataError):  # mistakes of ours, not of the database's state
            raise
        except (DatabaseError, PoolTimeout) as error:
            said = " ".join(str(getattr(error, "orig", error)).split())[:200]
            raise StoreError(f"the store {shown_url(self.url)} cannot be used now: {said}.") from None
        except DBAPIError as error:
            if error.connection_invalidated:
                raise StoreError(f"the store {shown_url(self.url)} went away.") from None
            raise

    def lock(self, session: Session) -> None:
        """Makes everybody else who locks wait until this transaction ends."""
        if not self.is_sqlite:
            session.execute(text("SELECT id FROM study FOR UPDATE"))

    def close(self) -> None:
        """Gives connections back."""
        self.engine.dispose()

    # what is in it

    def migrate(self) -> None:
        """Makes the tables, or brings older ones up to date.

        Raises:
            StoreError: The database cannot be reached.
        """
        config = Config()
        for option, folder in (("script_location", "migrations"), ("version_locations", "versions")):
            config.set_main_option(option, str(Path(__file__).with_name(folder)))
        try:
            with self._writing, self.engine.begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except DatabaseError as error:
            said = " ".join(str(error.orig).split())[:200]
            raise StoreError(f"the store {shown_url(self.url)} cannot be opened: {said}.") from None

    def has_study(self) -> bool:
        """Whether a study is in it."""
        if self.file is not None and not self.file.is_file():
            return False
        with self.read() as session:
            return inspect(session.connection()).has_table("study") and self._found(session) is not None

    def _found(self, session: Session) -> Study | None:
        return session.scalars(select(Study)).first()

    def study_row(self, session: Session) -> Study:
        """The row of the study.

        Raises:
            DataError: There is none.
        """
        if (found := self._found(session)) is None:
            raise _no_study(self.url)
        return found

    def create(self, design: Design, material: Material, manifest: Manifest) -> None:
        """Puts a new study in.

        Raises:
            DataError: There is one already.
        """
        self.migrate()
        with self.change() as session:
            if (found := self._found(session)) is not None:
                raise UnusableError(
                    f"{shown_url(self.url)} holds the study {found.name!r} already; name another --db, or close and"
                    " export that one."
                )
            study = Study(
                id=1,
                name=design.name,
                design=design.model_dump(mode="json"),
                systems=list(material.systems),
                secret=secrets.token_hex(32),
                schema_version=SCHEMA_VERSION,
                created=self.now(),
                closed=None,
            )
            session.add(study)
            rows = {item.id: _item_row(item) for item in material.items}
            session.add_all(rows.values())
            session.add_all(
                HitRow(number=h.number, orders=[list(map(list, s)) for s in h.orders]) for h in manifest.hits
            )
            session.flush()
            for hit in manifest.hits:
                for place, task in enumerate(hit.tasks):
                    item = None if task.is_check else rows[task.item.removeprefix("compare:")].id
                    cards = [list(card) for card in task.cards]
                    session.add(
                        TaskRow(
                            hit=hit.number, place=place, item=item, key=task.item, cards=cards, is_bonus=task.is_bonus
                        )
                    )
            self.event(session, "created", data={"hits": len(manifest.hits), "items": len(rows)})

    def study(self) -> Study:
        """The row of the study.

        Raises:
            DataError: The store holds none.
        """
        if not self.has_study():
            raise _no_study(self.url)
        with self.read() as session:
            return self.study_row(session)

    def design(self) -> Design:
        """The design of the study."""
        return validate_design(self.study().design, f"the design in {shown_url(self.url)}")

    def items(self) -> dict[int, StudyItem]:
        """All items by their number in the store."""
        with self.read() as session:
            return {row.id: _item_of(row) for row in session.scalars(select(ItemRow).order_by(ItemRow.id))}

    def manifest(self) -> Manifest:
        """The HITs as they were composed."""
        with self.read() as session:
            hits = session.scalars(select(HitRow).order_by(HitRow.number)).all()
            tasks = session.scalars(select(TaskRow).order_by(TaskRow.hit, TaskRow.place)).all()
        by_hit: dict[int, list[Task]] = {hit.number: [] for hit in hits}
        for task in tasks:
            by_hit[task.hit].append(Task(task.key, tuple(map(tuple, task.cards)), task.is_bonus))
        return Manifest(
            tuple(
                Hit(hit.number, tuple(by_hit[hit.number]), tuple(tuple(map(tuple, seat)) for seat in hit.orders))
                for hit in hits
            )
        )

    def event(
        self,
        session: Session,
        kind: str,
        worker: int | None = None,
        assignment: int | None = None,
        data: Mapping[str, object] | None = None,
        client: str | None = None,
    ) -> None:
        """Adds a row of what happened."""
        row = Event(
            at=self.now(), worker=worker, assignment=assignment, kind=kind, client=client, data=dict(data or {})
        )
        session.add(row)

    def finish(self) -> None:
        """Closes the study: nothing is given out any more, open HITs may still be sent."""
        with self.change() as session:
            study = self.study_row(session)
            if study.closed is None:
                study.closed = self.now()
                self.event(session, "closed")

    def backup(self, path: Path) -> None:
        """Copies a SQLite store while it is in use.

        Raises:
            ConfigError: The store is a PostgreSQL database.
            DataError: The place cannot be written.
        """
        if self.file is None:
            raise ConfigError("a PostgreSQL store is copied with pg_dump.")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UnusableError(f"{path} cannot be written; name a file in a folder that exists.")
        try:
            with (
                whole_file(path) as part,
                contextlib.closing(sqlite3.connect(self.file)) as ours,
                contextlib.closing(sqlite3.connect(part)) as copy,
            ):
                ours.backup(copy)
        except sqlite3.Error as error:
            raise UnusableError(f"{path} was not written: {error}. Make room there, or name another place.") from None


def _no_study(url: str) -> UnusableError:
    return UnusableError(f"no study in {shown_url(url)}; make one with: empatheia study init DESIGN --db PLACE")


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write a file that stands under its name once it is whole; nothing is left of one that is not.

    Raises:
        DataError: It cannot be written, e.g. on a full disk.
    """
    try:
        with writing.whole_file(path) as part:
            yield part
    except OSError as error:
        raise UnusableError(
            f"{path} was not written: {error.strerror or error}. Make room there, or name another."
        ) from None


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    mode = cursor.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if str(mode).lower() not in ("wal", "memory"):
        raise StoreError(f"SQLite keeps journal mode {mode!r} here, not WAL; put the store on a local disk.")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


def _item_row(item: StudyItem) -> Any:
    candidates = {
        system: {"text": c.text, "turns": list(c.turns), "label": c.label} for system, c in item.candidates.items()
    }
    return ItemRow(
        key=item.id,
        set=item.set,
        context=list(item.context),
        reference=item.reference,
        emotion=item.emotion,
        candidates=candidates,
    )


def _item_of(row: Any) -> StudyItem:
    candidates = {
        system: Candidate(system, c["text"], tuple(c["turns"]), c["label"]) for system, c in row.candidates.items()
    }
    return StudyItem(row.key, row.set, tuple(row.context), candidates, row.emotion, row.reference)
