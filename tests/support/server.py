"""`pykafka-core serve` as a child process that can be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Server:
    """One broker process on a data directory; `start` again after `kill` serves the same address."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data, self.options, self.address = data, options, "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Return the address once the broker has said that it is ready."""
        command = [sys.executable, "-m", "pykafka_core.cli", "serve", "--data", str(self.data)]
        self.process = subprocess.Popen(
            [*command, "--listen", self.address, *self.options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            _, errors = self.process.communicate()
            raise AssertionError(f"the server did not start: {line}{errors}")
        self.address = line.split()[1]
        return self.address

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        self.process.communicate(timeout=30)
        return self.process.returncode


@contextmanager
def serving(data: Path, *options: str) -> Iterator[Server]:
    """A started server, ended in any case."""
    server = Server(data, *options)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
