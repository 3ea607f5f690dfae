"""Verifies that the partitions of a produce request are part of its transaction (KIP-890)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core._core import Core, VerifyTransaction
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.errors import (
    NONE,
    ConcurrentTransactionsError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.outcome import ShardResult, TransactionQuery

RETRY_NS = 2_000_000
"""Delay before the first retry: the previous transaction usually completes soon, and clients start
the next one immediately."""
RETRY_NS_MAX = 20_000_000
"""The delay doubles up to this, Kafka's ``add.partitions.to.txn.retry.backoff.ms``. A slow disk
delays the ends of all transactions, and a thousand queries every 2 ms would fill the control
thread's time."""

Ask = Callable[[TransactionQuery, Callable[[ShardResult], None]], None]
"""`Coordinators.run`."""

_TopicPartition = tuple[str, int]


class _Verified(NamedTuple):
    """An event, and the names of its partitions; None for one whose topic does not exist."""

    event: VerifyTransaction
    places: Sequence[_TopicPartition | None]
    give_up_ns: int
    pause_ns: int = RETRY_NS


class Verification:
    """Handles `VerifyTransaction` events. Used only by the control thread.

    Args:
        core: Gets the results.
        publisher: Has the committed image.
        timers: Run the retries.
        faults: Records a result that the core rejects; the produce request then times out.
        ask: Sends a query to the coordinator of a transaction.
    """

    def __init__(
        self, *, core: Core, publisher: Publisher, timers: Timers, faults: Faults, ask: Ask
    ) -> None:
        self._core = core
        self._publisher = publisher
        self._timers = timers
        self._faults = faults
        self._ask_coordinator = ask

    def begin(self, event: VerifyTransaction) -> None:
        """Send a query to the coordinator of the transaction."""
        by_id = self._publisher.image.topics.by_id
        topics = ((by_id.get(topic_id), index) for topic_id, index in event.partitions)
        places = [(topic.name, index) if topic else None for topic, index in topics]
        self._ask(_Verified(event, places, self._core.now_ns() + self._patience_ns()))

    def _patience_ns(self) -> int:
        patience_ms = self._publisher.settings.int("add.partitions.to.txn.retry.backoff.max.ms")
        return patience_ms * 1_000_000

    def _ask(self, request: _Verified) -> None:
        event = request.event
        question = TransactionQuery(
            event.transactional_id,
            event.producer_id,
            event.producer_epoch,
            [place for place in request.places if place],
            event.add,
        )
        self._ask_coordinator(question, partial(self._on_result, request))

    def _on_result(self, request: _Verified, result: ShardResult) -> None:
        code, now_ns = result.error_code, self._core.now_ns()
        if code == ConcurrentTransactionsError.code and now_ns < request.give_up_ns:
            pause_ns = min(2 * request.pause_ns, RETRY_NS_MAX)
            again = partial(self._ask, request._replace(pause_ns=pause_ns))
            self._timers.once("a transaction's partitions", now_ns + request.pause_ns, again)
            return
        codes = result.value
        self._respond(request, code, codes if isinstance(codes, dict) else {})

    def _respond(self, request: _Verified, code: int, codes: dict[_TopicPartition, int]) -> None:
        missing = UnknownTopicOrPartitionError.code
        responses = [
            missing if place is None else code or codes.get(place, NONE) for place in request.places
        ]
        token = request.event.token
        self._faults.guard(
            "the response to a verification", lambda: self._core.verified(token, responses)
        )
