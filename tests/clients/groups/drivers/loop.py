"""The loop of a Python driver: commands are JSON lines on stdin, events are JSON lines on stdout.

The first argument is JSON: bootstrap, group, topic, strategy, instance (or null), session_ms and
protocol. A driver subscribes, polls continuously, and reports events:

    {"event": "assigned" | "revoked", "partitions": [all now owned], "generation": number or null}
    {"event": "record", "partition": 0, "offset": 7, "value": "text"}
    {"event": "committed" | "sought" | "paused" | "resumed" | "closed"}    the result of a command
    {"event": "lag", "lag": {"0": 2}}    end offset minus committed offset, by the client's calls

Commands are {"do": "commit" | "pause" | "resume" | "seek" | "lag" | "close"}; pause, resume and
seek have a partition, seek also has an offset. ``commit`` commits all records that were reported
before its result.
"""

import json
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

Settings = dict[str, Any]
Command = dict[str, Any]
LOCK = threading.Lock()


class Driver(Protocol):
    """The operations of a client; each call returns when the broker has responded."""

    def poll(self) -> None: ...
    def commit(self) -> None: ...
    def seek(self, partition: int, offset: int) -> None: ...
    def pause(self, partition: int) -> None: ...
    def resume(self, partition: int) -> None: ...
    def lag(self) -> dict[int, int]: ...
    def close(self) -> None: ...


def tell(event: str, **fields: object) -> None:
    """Write one line and flush it."""
    with LOCK:
        # The machine's clock, because lines may be read late, and members would seem to overlap.
        sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **fields}) + "\n")
        sys.stdout.flush()


def own(event: str, partitions: object, generation: int | None = None) -> None:
    """Report the whole set of partitions that the member owns from now on."""
    tell(event, partitions=sorted(partitions), generation=generation)  # type: ignore[call-overload]


def settings() -> Settings:
    """Return the driver's argument."""
    found: Settings = json.loads(sys.argv[1])
    return found


def commands() -> "queue.SimpleQueue[Command]":
    """Return a queue of the commands; the end of stdin is a close."""
    waiting: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        waiting.put({"do": "close"})

    threading.Thread(target=read, daemon=True).start()
    return waiting


def run(driver: Driver) -> None:
    """Poll and execute commands until the close."""
    waiting = commands()
    while True:
        driver.poll()
        while not waiting.empty():
            if obey(driver, waiting.get()):
                return


def obey(driver: Driver, command: Command) -> bool:
    """Execute a command; return whether it was the last one."""
    do = command.pop("do")
    if do == "close":
        own("revoked", ())  # not all clients report it before they leave
    responses: dict[str, Callable[[], None]] = {
        "commit": lambda: tell("committed"),
        "seek": lambda: tell("sought"),
        "pause": lambda: tell("paused"),
        "resume": lambda: tell("resumed"),
        "close": lambda: tell("closed"),
    }
    found = getattr(driver, do)(**command)
    tell("lag", lag=found) if do == "lag" else responses[do]()
    return bool(do == "close")
