"""Work in slices: a task that grows with its request yields repeatedly, so that other requests get
their turns.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeAlias

from pykafka_core._core import Core
from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.requests.fan_in import Respond
from pykafka_core.broker.runtime.requests.lanes import Lanes
from pykafka_core.broker.runtime.requests.maintenance import Maintenance
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.requests.unread import Unread
from pykafka_core.broker.runtime.time_slice import advanced
from pykafka_core.handlers.outcome import (
    LogCommands,
    Made,
    MetadataWrite,
    Reply,
    ShardCalls,
    Work,
)
from pykafka_core.protocol.messages import Message

JOBS_NS = 5_000_000
"""How long jobs run before the loop reads events again: a request waits for two such turns."""
SLICE_NS = 2_000_000
"""Maximum time of one job before another job gets its turn."""
FIRST_SLICE_NS = 200_000
"""Maximum time of the first slice of a job. A job that takes longer joins the long ones."""

_Job = tuple[PendingRequest, Work[None] | None]
"""A request and its work; None before the first slice."""


class _Queue(Lanes[_Job]):
    """Jobs that share the thread with the other queues.

    Attributes:
        used_ns: Time used so far. An empty queue counts as one that used as much as the others.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used_ns = 0


class Jobs:
    """Requests that take turns: all that the controller does not handle, and the responses to all
    requests.

    Theory of operation. There are three queues: responses, new jobs, and jobs that have had a
    slice. The next job is from the queue that has used the least time, so all queues with jobs get
    equal shares of it; a queue collects no share while it is empty. So a short request waits only
    for the first slices of others, which are short. Long requests leave half of the time to short
    ones, however many long ones are pending, and the other way round. Each queue has lanes
    (docs/design/0033), so a burst of requests about one group does not delay requests about another
    group. A connection has one request at a time, so all connections get equal shares of a queue.

    A job starts only with memory for its decoded request; large requests without memory wait in
    one more queue, which gets an equal share, too. A request that waits for others (a rebalance, a
    disk, another node) releases its memory. So only jobs that run hold memory, and a job waits for
    memory only while others run. Memory that is reserved for a response is kept while the request
    reads from shards, for a limited time (`HELD_NS_MAX`).

    Args:
        core: Provides the clock.
        contexts: Creates the contexts of handlers.
        requests: The table of open requests.
        maintenance: Executes maintenance commands of requests.
        coordinate: Runs the operations of a request on shards: `Coordinators.begin`.
        propose: Sends a request's proposal to the active controller on another node. None on a
            node without others, where no job proposes records.
        unread: Has the arrival times of requests that no shard has run yet.
    """

    def __init__(
        self,
        *,
        core: Core,
        contexts: Contexts,
        requests: OpenRequests,
        maintenance: Maintenance,
        coordinate: Callable[[PendingRequest, ShardCalls, Respond], Work[None]],
        propose: "Propose | None",
        unread: Unread,
    ) -> None:
        self._core = core
        self._contexts = contexts
        self._requests = requests
        self._maintenance = maintenance
        self._coordinate = coordinate
        self._propose = propose
        self._unread = unread
        self._responses, self._new, self._begun, self._large = (_Queue() for _ in range(4))
        self._queues = (self._responses, self._new, self._begun, self._large)
        """`_large` has only a share of the time: its jobs are in `_without_memory`."""
        self._without_memory: OrderedDict[Hashable, _Job] = OrderedDict()
        self._deadline_ns = 0

    def __len__(self) -> int:
        return sum(len(queue.arrived) for queue in self._queues) + len(self._without_memory)

    def take(self, request: PendingRequest) -> None:
        """Queue a request whose handler gets the committed image."""
        self._unread.add(request)
        self._new.push(request.lane, request.key, (request, None))

    def respond(self, request: PendingRequest, make: Callable[[], Reply]) -> None:
        """Queue a response, or the work that it needs first. The first slice runs at once, while
        `run` has time.

        ``make`` is always called at once, even if the response is no longer expected.
        """
        made = self._requests.made(request, make)
        if isinstance(made, ShardCalls):
            work = self._coordinate(request, made, self.respond)
        elif isinstance(made, LogCommands):
            work = self._maintenance.begin(request, made, self.respond)
        elif made is not None:
            work = self._send(request, made)
        else:
            return
        is_late = self._responses.arrived or self._core.now_ns() >= self._deadline_ns
        if is_late or not advanced(work, self._core, 0):
            self._responses.push(request.lane, id(work), (request, work))

    def cancel(self, request_id: int) -> None:
        """Remove the request of a closed connection. A request that has had a slice ends at its
        next slice.
        """
        is_new = self._new.remove(request_id) is not None
        if is_new or self._without_memory.pop(request_id, None) is not None:
            self._unread.remove(request_id)

    def run(self, deadline_ns: int) -> None:
        """Run jobs until the deadline, one slice of each in turn."""
        self._deadline_ns = deadline_ns
        now_ns = self._core.now_ns()
        while now_ns < deadline_ns and (taken := self._take()) is not None:
            queue, (request, work) = taken
            stop_ns = min(now_ns + SLICE_NS, deadline_ns)
            if queue in (self._new, self._large):
                # The deadline does not turn a short job into a long one.
                stop_ns = now_ns + FIRST_SLICE_NS
            work = work or self._decide(request)
            if advanced(work, self._core, stop_ns):
                self._unread.remove(request.key)
            else:
                self._begun.push(request.lane, id(work), (request, work))
            # Counts something even if the clock has not advanced, so that the queues take turns.
            queue.used_ns += 1 - now_ns
            now_ns = self._core.now_ns()
            queue.used_ns += now_ns

    def drop_all(self) -> None:
        """Drop all jobs when the broker stops."""
        for queue in self._queues:
            queue.clear()
        self._without_memory.clear()
        self._unread.clear()

    def _take(self) -> tuple[_Queue, _Job] | None:
        """Return the next job that has memory, and its queue; None if there is none."""
        queue = self._next()
        large = next(iter(self._without_memory.values()), None)
        is_turn_of_large = queue is None or self._large.used_ns <= queue.used_ns
        if large is not None and is_turn_of_large and large[0].admit():
            return self._large, self._without_memory.popitem(last=False)[1]
        while queue is not None:
            job = queue.pop()
            if queue is not self._new or job[0].admit():
                return queue, job
            self._without_memory[job[0].key] = job
            queue = self._next()
        return None

    def _next(self) -> _Queue | None:
        """Return the queue with jobs that has used the least time; None if all are empty."""
        least: _Queue | None = None
        for queue in self._queues:
            if queue.arrived and (least is None or queue.used_ns < least.used_ns):
                least = queue
        if least is not None:
            for queue in self._queues:
                if queue.used_ns < least.used_ns:
                    queue.used_ns = least.used_ns
        return least

    def _decide(self, request: PendingRequest) -> Work[None]:
        """Call the handler, and begin what its outcome requires."""
        context = partial(self._contexts.committed, request)
        outcome = yield from self._requests.decide(request, context)
        if outcome is None:
            return
        if isinstance(outcome, MetadataWrite):
            assert self._propose is not None, f"{request.name}: its row is not the controller's"
            request.unreserve()
            self._propose(self, request, outcome)
        elif isinstance(outcome, LogCommands):
            yield from self._maintenance.begin(request, outcome, self.respond)
        elif isinstance(outcome, ShardCalls):
            yield from self._coordinate(request, outcome, self.respond)
        else:
            yield from self._send(request, outcome)

    def _send(self, request: PendingRequest, response: Message | Work[Made]) -> Work[None]:
        """Send a response; if it needs memory first, continue once the memory is reserved."""
        reserve = yield from self._requests.respond(request, response)
        if reserve is not None:
            self._requests.reserve(request, reserve, self.respond)


Propose: TypeAlias = Callable[[Jobs, PendingRequest, MetadataWrite], object]
"""Gets the records of a request committed; the jobs decide the request again, or respond to it."""
