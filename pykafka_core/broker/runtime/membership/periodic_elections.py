"""Elections that the active controller runs at intervals, and again at once while some remain."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.broker.runtime.requests.pending_request import LocalRequest
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.runtime.timers import Timer
from pykafka_core.errors import NONE
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work
from pykafka_core.handlers.topics.leader_passes import balance_leaders, elect_leaderless
from pykafka_core.metadata.elections import ELECTIONS_MAX
from pykafka_core.protocol.messages import ElectLeadersResponse, Message


class LeaderPass(NamedTuple):
    """A pass over all partitions, and its interval."""

    name: str
    interval_ms: int
    decide: Callable[[Context], Work[MetadataWrite]]


def leader_passes(balance_s: int, leaderless_ms: int) -> tuple[LeaderPass, ...]:
    """Return the passes of an active controller.

    Args:
        balance_s: ``leader.imbalance.check.interval.seconds``.
        leaderless_ms: ``unclean.leader.election.interval.ms``.
    """
    return (
        LeaderPass("preferred leaders", balance_s * 1000, balance_leaders),
        LeaderPass("partitions without a leader", leaderless_ms, elect_leaderless),
    )


class LeaderPasses:
    """Runs the passes while a node is the active controller. Belongs to the control thread.

    Args:
        services: Has the clock and the timers.
        passes: See `leader_passes`.
        ask: Submits a request that this node decides.
    """

    def __init__(
        self,
        services: Services,
        passes: Sequence[LeaderPass],
        ask: Callable[[LocalRequest], None],
    ) -> None:
        self._services = services
        self._passes = passes
        self._ask = ask
        self._timers: list[Timer] = []

    def begin(self) -> None:
        """Start the timers; the first pass of each kind runs after its interval."""
        self.end()
        timers, now_ns = self._services.timers, self._services.core.now_ns()
        self._timers = [
            timers.every(made.name, made.interval_ms, now_ns, partial(self._make, made))
            for made in self._passes
        ]

    def end(self) -> None:
        """Stop the timers."""
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _make(self, made: LeaderPass) -> None:
        is_full = False

        def decide(context: Context) -> Work[MetadataWrite]:
            nonlocal is_full
            proposed = yield from made.decide(context)
            is_full = len(proposed.records) >= ELECTIONS_MAX
            return proposed

        def on_response(response: Message) -> None:
            is_done = isinstance(response, ElectLeadersResponse) and response.error_code == NONE
            if is_done and is_full and self._timers:
                self._make(made)

        self._ask(LocalRequest(decide, on_response=on_response))
