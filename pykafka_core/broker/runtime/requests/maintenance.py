"""Maintenance of logs: commands that complete when the core has executed them."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests.fan_in import FanIn, Respond
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
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
    LogCommands,
    LogResult,
    Work,
    WriteMarker,
)

TIMEOUT_MS_MIN = 1000
"""Kafka first deletes and then checks the timeout: a request for an idle log always succeeds."""


class Maintenance:
    """Maintains logs, for requests and periodically.

    Args:
        core: Executes the commands.
        completions: Pending commands.
        requests: The table of open requests.
        timers: End commands that exceed the timeout of their request.
        faults: Records faults of single items.
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

    def begin(self, request: PendingRequest, outcome: LogCommands, respond: Respond) -> Work[None]:
        """Send a request's commands; ``respond`` is called when all have completed, or after the
        timeout.
        """
        waiting = _Waiting(request, outcome, respond)
        self._requests.when_over(request, partial(self._cancel, waiting))
        for slot, command in enumerate(outcome.commands):
            if not self._requests.is_open(request):
                return
            self._send(waiting, slot, command)
            yield
        waiting.fan_in.respond_if_complete()
        if not waiting.fan_in.is_over:
            request.park()
        if outcome.timeout_ms is not None and self._requests.is_open(request):
            due_ns = self._core.now_ns() + max(outcome.timeout_ms, TIMEOUT_MS_MIN) * 1_000_000
            timer = self._timers.once("maintenance", due_ns, partial(self._time_out, waiting))
            self._requests.when_over(request, timer.cancel)

    def enforce_retention(self) -> None:
        """Delete records beyond their retention.

        A log that the last run has not reached is checked only once.
        """
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
            waiting.fan_in.add(slot, LogResult(UnknownServerError.code, -1))

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
        waiting.fan_in.drop()
        for token in waiting.tokens.values():
            self._completions.cancel(token)

    def _on_maintained(self, waiting: "_Waiting", slot: int, completed: Completed) -> None:
        del waiting.tokens[slot]
        done = LogResult(*completed)
        if isinstance(done.value, MarkerCodes):
            done = LogResult(done.value.codes[0], -1)
        waiting.fan_in.add(slot, _by_name(done))

    def _time_out(self, waiting: "_Waiting") -> None:
        """Respond now. The core continues with commands that have started."""
        waiting.fan_in.complete(LogResult(RequestTimedOutError.code, -1))


def _by_name(done: LogResult) -> LogResult:
    """Map UNKNOWN_TOPIC_ID: the core identifies topics by id, but these requests by name."""
    if done.error_code != UnknownTopicIdError.code:
        return done
    return done._replace(error_code=UnknownTopicOrPartitionError.code)


def _nothing(_: Completed) -> None:
    """Do nothing: a log on a stalled disk must not delay the retention of the others in the next
    run.
    """


class _Waiting:
    """A request that waits for its logs.

    Attributes:
        fan_in: Results of its commands so far.
        tokens: Tokens of the pending commands, by index.
    """

    __slots__ = "fan_in", "tokens"

    def __init__(self, request: PendingRequest, outcome: LogCommands, respond: Respond) -> None:
        self.fan_in = FanIn(request, len(outcome.commands), outcome.reply, respond)
        self.tokens: dict[int, int] = {}
