"""A command-line tool of Apache Kafka as a driver: it has no commands, only output."""

import ctypes
import queue
import signal
import subprocess
import threading
from typing import NoReturn

from tests.support.patience import POLL_S

PR_SET_PDEATHSIG = 1
ASSIGNORS = {
    "range": "RangeAssignor",
    "round-robin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def assignor(strategy: str) -> str:
    """Return the class of an assignor."""
    return f"org.apache.kafka.clients.consumer.{ASSIGNORS[strategy]}"


class Tool:
    """The tool as a child that dies with this process, so that SIGKILL ends both."""

    def __init__(self, command: list[str]) -> None:
        self.next: dict[int, int] = {}
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.is_over = False
        self.child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def take(self, line: str) -> None:
        """Process one line of the tool's output."""
        raise NotImplementedError

    def poll(self) -> None:
        try:
            line = self.lines.get(timeout=POLL_S)
        except queue.Empty:
            return
        if line is None:
            self.is_over = True
        else:
            self.take(line)

    def committed(self) -> dict[int, int]:
        """Return the known committed offsets."""
        raise NotImplementedError

    def commit(self) -> None:
        """Wait until the tool has committed the records seen."""
        while not self._is_committed():
            self.poll()

    def _is_committed(self) -> bool:
        committed = self.committed()
        return all(committed.get(part, 0) >= offset for part, offset in self.next.items())

    def close(self) -> None:
        """Send SIGTERM: the tool closes its consumer."""
        self.child.terminate()
        while not self.is_over:
            self.poll()
        self.child.wait()

    def seek(self, partition: int, offset: int) -> NoReturn:
        raise NotImplementedError

    def pause(self, partition: int) -> NoReturn:
        raise NotImplementedError

    def resume(self, partition: int) -> NoReturn:
        raise NotImplementedError

    def lag(self) -> NoReturn:
        raise NotImplementedError
