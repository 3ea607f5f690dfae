"""`pykafka-core serve` as a child process that can be killed."""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.costs import charge
from tests.support.evidence.logs import new_log, tail_of
from tests.support.patience import PATIENCE_S
from tests.support.processes.nodes import SERVE, port_of, reserve_port


class Server:
    """A broker process on a data directory; after `kill`, `start` serves the same address again.

    ``descriptors`` are its soft and its hard limit, or one number for both.
    """

    def __init__(
        self, data: Path, *options: str, descriptors: int | tuple[int, int] | None = None
    ) -> None:
        self.data, self.options = data, options
        self._descriptors = (
            (descriptors, descriptors) if isinstance(descriptors, int) else descriptors
        )
        self._reserved = reserve_port()
        self.address = f"127.0.0.1:{port_of(self._reserved)}"
        self.process: subprocess.Popen[str] | None = None
        self._kills = 0

    def start(self) -> str:
        """Start the broker; return the address once it has reported that it is ready."""
        with new_log(f"the broker at {self.address}") as log:
            self.process = subprocess.Popen(
                [*SERVE, "--data", str(self.data), "--listen", self.address, *self.options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=self._limit_descriptors,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            self.process.communicate()
            raise AssertionError(f"the server did not start: {line}{tail_of(Path(log.name))}")
        return self.address

    def _limit_descriptors(self) -> None:
        if self._descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._descriptors)

    def kill(self) -> None:
        """Kill the process with SIGKILL, without a flush or a message."""
        self._kills += 1
        if self._kills > 1:
            charge("kill")
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop the process with SIGTERM; return the exit code."""
        return self._end(signal.SIGTERM)

    def close(self) -> None:
        """Kill the process if it runs, and release its port."""
        if self.process is not None and self.process.poll() is None:
            self._end(signal.SIGKILL)
        self._reserved.close()

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        os.kill(self.process.pid, number)
        self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode


@contextmanager
def serving(
    data: Path, *options: str, descriptors: int | tuple[int, int] | None = None
) -> Iterator[Server]:
    """Run a server, which always ends with the block."""
    server = Server(data, *options, descriptors=descriptors)
    try:
        server.start()
        yield server
    finally:
        server.close()
