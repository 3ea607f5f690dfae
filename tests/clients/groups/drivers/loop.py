"""The loop of a Python driver: commands are lines of JSON on stdin, events are lines of JSON on stdout.

The first argument is JSON: bootstrap, group, topic, strategy, instance (or null), session_ms and protocol. A driver
subscribes, polls all the time, and tells what happens:

    {"event": "assigned" | "revoked", "partitions": [all that it owns from now on], "generation": number or null}
    {"event": "record", "partition": 0, "offset": 7, "value": "text"}
    {"event": "committed" | "sought" | "paused" | "resumed" | "closed"}    an answer to a command
    {"event": "lag", "lag": {"0": 2}}                   by the client's own calls: end offset less committed offset

Commands are {"do": "commit" | "pause" | "resume" | "seek" | "lag" | "close"}; pause, resume and
seek name a partition, seek also an offset. ``commit`` commits everything that was told as a record before the
answer.
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
    """What a client must be able to do; each call returns when the broker has answered."""

    def poll(self) -> None: ...
    def commit(self) -> None: ...
    def seek(self, partition: int, offset: int) -> None: ...
    def pause(self, partition: int) -> None: ...
    def resume(self, partition: int) -> None: ...
    def lag(self) -> dict[int, int]: ...
    def close(self) -> None: ...


def tell(event: str, **fields: object) -> None:
    """Write one line at once."""
    with LOCK:
        # The clock is the machine's: who reads the line may be late, and two members would seem to overlap.
        sys.stdout.write(json.dumps({"event": event, "at": time.monotonic(), **fields}) + "\n")
        sys.stdout.flush()


def own(event: str, partitions: object, generation: int | None = None) -> None:
    """Tell the whole set of partitions that the member owns from now on."""
    tell(event, partitions=sorted(partitions), generation=generation)  # type: ignore[call-overload]


def settings() -> Settings:
    """The driver's argument."""
    found: Settings = json.loads(sys.argv[1])
    return found


def commands() -> "queue.SimpleQueue[Command]":
    """Commands as they come; the end of stdin is a close."""
    waiting: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            waiting.put(json.loads(line))
        waiting.put({"do": "close"})

    threading.Thread(target=read, daemon=True).start()
    return waiting


def run(driver: Driver) -> None:
    """Poll, and obey, until the close."""
    waiting = commands()
    while True:
        driver.poll()
        while not waiting.empty():
            if obey(driver, waiting.get()):
                return


def obey(driver: Driver, command: Command) -> bool:
    """Whether it was the last."""
    do = command.pop("do")
    if do == "close":
        own("revoked", ())  # not all clients tell it before they leave
    answers: dict[str, Callable[[], None]] = {
        "commit": lambda: tell("committed"),
        "seek": lambda: tell("sought"),
        "pause": lambda: tell("paused"),
        "resume": lambda: tell("resumed"),
        "close": lambda: tell("closed"),
    }
    found = getattr(driver, do)(**command)
    tell("lag", lag=found) if do == "lag" else answers[do]()
    return bool(do == "close")
