"""A produce request of a new transaction while the producer's last one ends: the query is retried,
but not too often.
"""

from collections.abc import Callable
from itertools import pairwise

import pytest

from pykafka_core._core import VerifyTransaction
from pykafka_core.broker.runtime.coordinators.verification import (
    RETRY_NS,
    RETRY_NS_MAX,
    Verification,
)
from pykafka_core.errors import ConcurrentTransactionsError
from pykafka_core.handlers.outcome import ShardResult, TransactionQuery
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import topic_id
from tests.handlers.transaction_requests import (
    Producer,
    producer_of,
    transactional_broker,
)

PATIENCE_MS = 100


class World:
    """A coordinator with a transaction whose end only the test completes."""

    def __init__(self) -> None:
        self.broker = transactional_broker()
        self.producer: Producer = producer_of(self.broker)
        self.asked_ns: list[int] = []
        self.is_complete = False
        coordinators = self.broker.dispatcher._coordinators
        self._verification = Verification(
            core=coordinators._core,
            publisher=coordinators._verification._publisher,
            timers=coordinators._verification._timers,
            faults=coordinators._verification._faults,
            ask=self._ask,
        )

    def begin(self) -> None:
        partitions = [(topic_id(self.broker), 1)]
        now_ns = self.broker.core.clock_ns
        event = VerifyTransaction(7, "transfers", *self.producer, partitions, True, now_ns)
        self._verification.begin(event)

    def _ask(self, _question: TransactionQuery, settle: Callable[[ShardResult], None]) -> None:
        self.asked_ns.append(self.broker.core.clock_ns)
        settle(ShardResult(0 if self.is_complete else ConcurrentTransactionsError.code))


def test_transaction_that_completes_soon_is_retried_soon() -> None:
    world = World()
    world.begin()
    world.is_complete = True
    pass_ms(world.broker, RETRY_NS // 1_000_000)
    assert world.broker.core.verdicts[7] == [0]


def test_retries_for_a_long_transaction_have_growing_pauses() -> None:
    """A thousand producers on a slow disk sent a query every 2 ms each, and the control thread had
    no time for other work.
    """
    world = World()
    world.begin()
    for _ in range(2 * PATIENCE_MS):
        pass_ms(world.broker, 1)
    asked = world.asked_ns
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (RETRY_NS, RETRY_NS_MAX)
    assert len(asked) < 12
    assert world.broker.core.verdicts[7] == [ConcurrentTransactionsError.code]
    assert asked[-1] - asked[0] == pytest.approx(PATIENCE_MS * 1_000_000, abs=RETRY_NS_MAX)
