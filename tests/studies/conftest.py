"""Stores of both kinds: SQLite, and PostgreSQL in a folder of its own where it is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_studies import Clock

from empatheia.studies.store import Store


@pytest.fixture()
def clock() -> Clock:
    return Clock()


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a server's database ``postgres``."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb") or (str(homes[-1] / "initdb") if homes else None)
    if found is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    bin_folder, folder = Path(found).parent, Path(tempfile.mkdtemp(prefix="empatheia-pg-"))
    user = {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        import pwd

        try:
            pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        user = {"user": "postgres", "group": "postgres"}
        shutil.chown(folder, "postgres", "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **user}
    port, data = _free_port(), folder / "data"
    made = [str(bin_folder / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync"]
    subprocess.run(made, check=True, **quiet)
    command = [str(bin_folder / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder), "-F"]
    server = subprocess.Popen([*command, "-c", "listen_addresses=127.0.0.1"], **quiet)
    address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        _wait_for(address)
        yield address
    finally:
        server.send_signal(signal.SIGQUIT)  # at once
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(address: str) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(address, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise RuntimeError("PostgreSQL did not start")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "s.db")
    import psycopg

    address = request.getfixturevalue("postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return address


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
