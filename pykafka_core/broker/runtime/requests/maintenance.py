"""Maintenance of logs: commands that complete when the core has carried them out."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests.gathering import Answer, Gathering
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.requests import Asked
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.errors import (
    RequestTimedOutError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.outcome import (
    DeleteBefore,
    DescribeLogProducers,
    DescribeLogs,
    LogCommand,
    Maintain,
    Maintained,
    Slices,
    WriteMarker,
)

TIMEOUT_MS_MIN = 1000
"""Kafka deletes first and looks at the time then: a log that is not busy is always answered."""


class Maintenance:
    """Has logs maintained, for requests and by itself.

    Args:
        core: Carries out the commands.
        completions: Where their ends are waited for.
        requests: Where requests end that wait for them.
        timers: End what takes longer than its request allows.
        faults: Takes note of what failed alone.
    """

    def __init__(
        self,
        *,
        core: Core,
        completions: Completions,
        requests: OpenRequests,
        timers: Timers,
        faults: Faults,
    ) -> None:
        self._core = core
        self._completions = completions
        self._requests = requests
        self._timers = timers
        self._faults = faults

    def begin(self, asked: Asked, outcome: Maintain, answer: Answer) -> Slices[None]:
        """Send a request's commands; ``answer`` gets its reply when all are over, or its time is."""
        waiting = _Waiting(asked, outcome, answer)
        self._requests.when_over(asked, partial(self._cancel, waiting))
        for slot, command in enumerate(outcome.commands):
            if not self._requests.is_open(asked):
                return
            self._send(waiting, slot, command)
            yield
        waiting.gathering.answer_if_complete()
        if outcome.timeout_ms is not None and self._requests.is_open(asked):
            due_ns = self._core.now_ns() + max(outcome.timeout_ms, TIMEOUT_MS_MIN) * 1_000_000
            timer = self._timers.once("maintenance", due_ns, partial(self._time_out, waiting))
            self._requests.when_over(asked, timer.cancel)

    def enforce_retention(self) -> None:
        """Have the core delete what is past its limits. A log that the last run has not come to is looked at once."""
        token = self._completions.open(_nothing)
        try:
            self._core.enforce_retention(token)
        except BaseException:
            self._completions.cancel(token)
            raise

    def _send(self, waiting: "_Waiting", slot: int, command: LogCommand) -> None:
        token = self._completions.open(partial(self._on_maintained, waiting, slot))
        waiting.tokens[slot] = token
        if not self._faults.guard("a maintenance command", self._call(token, command)):
            self._completions.cancel(waiting.tokens.pop(slot))
            waiting.gathering.add(slot, Maintained(UnknownServerError.code, -1))

    def _call(self, token: int, command: LogCommand) -> Callable[[], None]:
        match command:
            case DeleteBefore(topic_id, partition, offset):
                return partial(self._core.delete_before, token, (topic_id, partition), offset)
            case DescribeLogs(partitions):
                return partial(self._core.describe_log_dirs, token, partitions)
            case DescribeLogProducers(topic_id, partition):
                return partial(self._core.describe_producers, token, (topic_id, partition))
            case WriteMarker(topic_id, partition, end):
                marker = (topic_id, partition, *end)
                return partial(self._core.write_markers, token, [marker])
            case _:
                assert_never(command)

    def _cancel(self, waiting: "_Waiting") -> None:
        waiting.gathering.drop()
        for token in waiting.tokens.values():
            self._completions.cancel(token)

    def _on_maintained(self, waiting: "_Waiting", slot: int, completed: Completed) -> None:
        del waiting.tokens[slot]
        done = Maintained(*completed)
        if isinstance(done.answer, MarkerCodes):
            done = Maintained(done.answer.codes[0], -1)
        waiting.gathering.add(slot, _by_name(done))

    def _time_out(self, waiting: "_Waiting") -> None:
        """Answer now. The core carries on with what it has begun."""
        for slot in range(waiting.count):
            waiting.gathering.add(slot, Maintained(RequestTimedOutError.code, -1))


def _by_name(done: Maintained) -> Maintained:
    """The core knows topics by id. These requests name them, and a deleted one is an unknown name."""
    if done.error_code != UnknownTopicIdError.code:
        return done
    return done._replace(error_code=UnknownTopicOrPartitionError.code)


def _nothing(_: Completed) -> None:
    """Nobody waits for retention: one log on a disk that stalls must not keep it from the others the next time."""


class _Waiting:
    """A request that waits for its logs.

    Attributes:
        gathering: What came of its commands so far.
        tokens: Of the commands that are not over, by their places.
    """

    __slots__ = "count", "gathering", "tokens"

    def __init__(self, asked: Asked, outcome: Maintain, answer: Answer) -> None:
        self.count = len(outcome.commands)
        self.gathering = Gathering(asked, self.count, outcome.reply, answer)
        self.tokens: dict[int, int] = {}
