"""A broker in a separate process, like `serve`, whose memory is measured."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """
import gc, sys
from pathlib import Path
from pykafka_core import Broker
from pykafka_core._core import return_freed_memory
return_freed_memory()
memory_max, data = int(sys.argv[1]), sys.argv[2]
with Broker(Path(data) if data else None, memory_max=memory_max, durability="os" if data else "memory") as broker:
    broker.create_topic("orders")
    for number in range(int(sys.argv[3])):
        broker.create_topic(f"wide-{number}", partitions=3_000)
    gc.freeze()
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


class Measured(NamedTuple):
    """A serving broker; ``idle_bytes`` is its memory at the start."""

    address: str
    pid: int
    idle_bytes: int

    def peak_bytes(self) -> int:
        """Return the peak of its resident memory."""
        return _status(self.pid, "VmHWM")

    def resident_bytes(self) -> int:
        """Return its current resident memory."""
        return _status(self.pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise KeyError(name)


@contextmanager
def measured(
    memory_max: int, data: Path | None = None, wide_topics: int = 10
) -> Iterator[Measured]:
    """Serve ``orders`` (one partition) and topics of 3,000 partitions, on disk or in memory.

    Logs in memory have a separate limit, which is as large.
    """
    command = [sys.executable, "-c", _PROGRAM, str(memory_max), str(data or ""), str(wide_topics)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, "the broker did not start"
        yield Measured(address, process.pid, _status(process.pid, "VmRSS"))
        assert process.poll() is None, "the broker died"
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
