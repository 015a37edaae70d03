"""A PostgreSQL server of its own, in a temporary folder and on a free port, that can be stopped and started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path


class NoPostgres(Exception):
    """Why no server can be had here."""


class PostgresServer:
    """A cluster with trust on the loopback; its database is ``postgres``.

    Raises:
        NoPostgres: It is not installed, or cannot be run by this user.
    """

    def __init__(self) -> None:
        homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        found = shutil.which("initdb") or (str(homes[-1] / "initdb") if homes else None)
        if found is None:
            raise NoPostgres("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        self._bin, self._folder = Path(found).resolve().parent, Path(tempfile.mkdtemp(prefix="empatheia-pg-"))
        self._user: dict[str, str] = {}
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            import pwd

            try:
                pwd.getpwnam("postgres")
            except KeyError:
                raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres") from None
            self._user = {"user": "postgres", "group": "postgres"}
            shutil.chown(self._folder, "postgres", "postgres")
        with contextlib.closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        made = [str(self._bin / "initdb"), "-D", str(self._folder / "data"), "-A", "trust", "-U", "postgres"]
        subprocess.run([*made, "-E", "UTF8", "--no-sync"], check=True, **self._quiet)
        self._process: subprocess.Popen | None = None
        self.address = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        self.start()

    @property
    def _quiet(self) -> dict:
        return {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder, **self._user}

    def start(self) -> None:
        """Returns when it accepts connections."""
        import psycopg

        command = [str(self._bin / "postgres"), "-D", str(self._folder / "data"), "-p", str(self._port)]
        command += ["-k", str(self._folder), "-F", "-c", "listen_addresses=127.0.0.1"]
        self._process = subprocess.Popen(command, **self._quiet)
        for _ in range(300):
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise RuntimeError("PostgreSQL did not start")

    def stop(self) -> None:
        """At once, with every connection cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        """Takes everything out of the database."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    def remove(self) -> None:
        """Stops it and deletes its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
