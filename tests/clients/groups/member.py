"""One member of a group, in a separate process, with any client."""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.clients.groups.checks import TopicPartition
from tests.faults.history import Owned
from tests.support.evidence.logs import new_log, tail_of
from tests.support.patience import PATIENCE_S, POLL_S


class Seen(NamedTuple):
    """A record that was read, in the order of all members' records."""

    place: TopicPartition
    value: str
    at: float


class Member:
    """Starts a driver, sends commands and stores events. `close` or `kill` ends it."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self.seen: list[Seen] = []
        self.owned: set[int] = set()
        self.changes = 0
        self.spans: list[Owned] = []
        self._since: dict[int, tuple[float, int]] = {}
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._is_ending = False
        with new_log(f"member {name}") as log:
            self._errors = Path(log.name)
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    # Commands.

    def ask(self, do: str, response: str, **fields: object) -> dict[str, Any]:
        """Send a command and wait for its result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self._process.stdin.flush()
        responses: list[dict[str, Any]] = []

        def take(event: dict[str, Any]) -> None:
            if event["event"] == response:
                responses.append(event)

        self._wait(lambda: bool(responses), take)
        return responses[0]

    def commit(self) -> None:
        self.ask("commit", "committed")

    def lag(self) -> dict[int, int]:
        found = self.ask("lag", "lag")["lag"]
        return {int(partition): count for partition, count in found.items()}

    def close(self) -> None:
        """Leave the group with the client's own close, unless the driver has ended."""
        if self._process.poll() is None:
            self._is_ending = True
            self.ask("close", "closed")
            self._end()

    def kill(self) -> None:
        """Send SIGKILL, so that the member does not leave the group."""
        self._is_ending = True
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._drain()
        self._own(set(), None, time.monotonic())

    # Events.

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            event.setdefault("at", time.monotonic())
            self._events.put(event)
        self._events.put(None)

    def step(self, timeout_s: float = POLL_S) -> dict[str, Any] | None:
        """Process the next event, if one arrives in time."""
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if event is not None:
            self._take(event)
        else:
            assert self._is_ending, f"{self.name} died: {self._said()}"
        return event

    def _said(self) -> str:
        """Return the end of its stderr."""
        return tail_of(self._errors)[-2000:]

    def _drain(self) -> None:
        while not self._events.empty():
            self.step()

    def _wait(self, is_done: Callable[[], bool], take: Callable[[dict[str, Any]], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            assert time.monotonic() < deadline, f"{self.name} did not answer"
            event = self.step()
            if event is not None:
                take(event)

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        assert kind != "error", f"{self.name}: {event}"
        if kind == "record":
            place = event["partition"], event["offset"]
            self.seen.append(Seen(place, event["value"], event["at"]))
        elif kind in ("assigned", "revoked"):
            self.changes += set(event["partitions"]) != self.owned
            self._own(set(event["partitions"]), event["generation"], event["at"])

    def _own(self, partitions: set[int], generation: int | None, at: float) -> None:
        for partition in self.owned - partitions:
            since, began = self._since.pop(partition)
            self.spans.append(Owned(self.name, began, partition, since, at))
        for partition in partitions - self.owned:
            self._since[partition] = at, -1 if generation is None else generation
        self.owned = partitions


def wait(members: Iterable[Member], is_done: Callable[[], bool], what: str) -> None:
    """Process events of members until a condition is true."""
    members = list(members)
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        state = [(one.name, sorted(one.owned), len(one.seen)) for one in members]
        assert time.monotonic() < deadline, f"{what}: {state}"
        for member in members:
            member.step()
