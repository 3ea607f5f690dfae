"""Random sequences of writes, retries, redelivery and crashes, compared with a plain model: each id
has its effect once.

The log is a list; deliveries use `plan` and a real ledger in the same way as `IdempotentConsumer`.
A crash is an exception at a point of the transaction, after which the consumer has no state and
reads the ledger.
"""

import sqlite3
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykafka_core.idempotent import PartitionKey, SQLiteLedger, Transaction
from pykafka_core.idempotent.deduplication import plan

KEYS = [PartitionKey(b"\1" * 16, "orders", number) for number in range(2)]
POINTS = ["begun", "claimed", "effect done", "advanced", "committed", *[None] * 6]


class Crash(Exception):
    """The process dies here."""


class OneEffectPerId(RuleBasedStateMachine):
    """Two partitions, and two independent consumers of one group."""

    claims_ids = True

    def __init__(self) -> None:
        super().__init__()
        # The database survives every crash; an open transaction does not.
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.execute("CREATE TABLE effects (id BLOB)")
        self.logs: list[list[bytes]] = [[], []]
        self.positions: list[dict[PartitionKey, int] | None] = [None, None]

    @initialize()
    def open(self) -> None:
        self.ledger = SQLiteLedger(lambda: self.database)

    @rule(
        partition=st.integers(0, 1),
        ids=st.lists(st.binary(min_size=1, max_size=1), min_size=1, max_size=5),
    )
    def produce(self, partition: int, ids: list[bytes]) -> None:
        """Produce ids of one byte, so that many repeat earlier ones of either partition."""
        self.logs[partition] += ids if self.claims_ids else self._unlike_any(partition, len(ids))

    def _unlike_any(self, partition: int, count: int) -> list[bytes]:
        end = len(self.logs[partition])
        return [b"%d-%d" % (partition, offset) for offset in range(end, end + count)]

    @rule(consumer=st.integers(0, 1), back=st.integers(0, 10), number=st.integers(0, 1))
    def redeliver(self, consumer: int, back: int, number: int) -> None:
        """Let the client seek backwards, as after a rebalance or with an old checkpoint."""
        position = self.positions[consumer]
        if position is not None:
            position[KEYS[number]] = max(position[KEYS[number]] - back, 0)

    @rule(
        consumer=st.integers(0, 1),
        size=st.integers(1, 8),
        point=st.sampled_from(POINTS),
        order=st.booleans(),
    )
    def process(self, consumer: int, size: int, point: str | None, order: bool) -> None:
        try:
            self._process(consumer, size, point, order)
        except Crash:
            self.positions[consumer] = None

    def _process(self, consumer: int, size: int, point: str | None, order: bool) -> None:
        if self.positions[consumer] is None:
            with self.ledger.transaction("g") as transaction:
                marks = transaction.marks()
                transaction.advance({key: 0 for key in KEYS if key not in marks})
            self.positions[consumer] = {key: marks.get(key, 0) for key in KEYS}
        batch = self._poll(consumer, size, order)
        with self.ledger.transaction("g") as transaction:
            self._reach("begun", point)
            step = plan(transaction.marks(), [(key, offset) for key, offset, _ in batch])
            fresh = [batch[index][2] for index in step.fresh]
            new = self._claim(transaction, fresh)
            self._reach("claimed", point)
            effect(transaction.connection, new)
            self._reach("effect done", point)
            transaction.advance(step.marks)
            self._reach("advanced", point)
        self._reach("committed", point)

    def _claim(self, transaction: Transaction, fresh: list[bytes]) -> list[bytes]:
        if not self.claims_ids:
            return fresh
        mask = transaction.claim(fresh)
        return [value for value, is_new in zip(fresh, mask, strict=True) if is_new]

    def _poll(self, consumer: int, size: int, order: bool) -> list[tuple[PartitionKey, int, bytes]]:
        position = self.positions[consumer]
        assert position is not None
        batch = []
        for key in KEYS if order else reversed(KEYS):
            log, start = self.logs[key.partition], position[key]
            end = min(start + size, len(log))
            batch += [(key, offset, log[offset]) for offset in range(start, end)]
            position[key] = max(end, start)
        return batch

    def _reach(self, here: str, point: str | None) -> None:
        if here == point:
            raise Crash

    def _done(self) -> list[bytes]:
        return [value for (value,) in self.database.execute("SELECT id FROM effects")]

    @invariant()
    def no_id_has_its_effect_twice(self) -> None:
        done = self._done()
        assert len(done) == len(set(done))

    @invariant()
    def what_is_below_the_marks_is_done_and_nothing_else(self) -> None:
        with self.ledger.transaction("g") as transaction:
            marks = transaction.marks()
        below = {value for key in KEYS for value in self.logs[key.partition][: marks.get(key, 0)]}
        assert set(self._done()) == below

    def teardown(self) -> None:
        """Check that all records are processed once there are no more crashes."""
        self.positions[0] = None
        for _ in range(2):
            self._process(0, 10_000, None, True)
        assert set(self._done()) == {value for log in self.logs for value in log}
        self.ledger.close()


def effect(connection: Any, ids: list[bytes]) -> None:
    connection.executemany("INSERT INTO effects VALUES (?)", [(value,) for value in ids])


class OneEffectPerOffset(OneEffectPerId):
    """Only marks without claims: each record of the log has an effect."""

    claims_ids = False


SETTINGS = settings(max_examples=60, stateful_step_count=30)
TestOneEffectPerId = OneEffectPerId.TestCase
TestOneEffectPerId.settings = SETTINGS
TestOneEffectPerOffset = OneEffectPerOffset.TestCase
TestOneEffectPerOffset.settings = SETTINGS
