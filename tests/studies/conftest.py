"""Stores of both kinds: SQLite, and PostgreSQL in a folder of its own where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_studies import Clock
from postgres_server import NoPostgres, PostgresServer

from empatheia_people.studies.store import Store


@pytest.fixture()
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server with one empty database."""
    try:
        server = PostgresServer()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "s.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    server.empty()
    return server.address


@pytest.fixture()
def opened(place: str, clock: Clock) -> Iterator[Callable[..., Store]]:
    """Opens the store; all are closed at the end."""
    stores: list[Store] = []

    def again(**more) -> Store:
        stores.append(Store(place, **{"clock": clock, **more}))
        return stores[-1]

    yield again
    for store in stores:
        store.close()
