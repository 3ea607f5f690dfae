"""Transactional producers whose connections end at any time, between requests and during them."""

import random
import time
from collections.abc import Callable
from threading import Event

from tests.faults.groups.lives import GoneError, Line
from tests.faults.history import End, Outcome, Write
from tests.faults.raw import BEING_ENDED, LOADING, NONE
from tests.faults.writers import Transactions

NOT_ENOUGH_REPLICAS = 19
"""Also the error of a transaction that cannot be verified while its coordinator loads."""
RETRIED = LOADING | {BEING_ENDED, NOT_ENOUGH_REPLICAS}


class TransactionLife:
    """One transactional id that runs transactions.

    After a cut it initialises its producer again, which ends its open transaction.

    Args:
        version: The transaction version, 1 or 2 (KIP-890).
        cuts: Probability that a request is the last one of its connection.
    """

    def __init__(self, address: str, name: str, version: int, seed: int, cuts: float) -> None:
        self.writes: list[Write] = []
        self.ends: list[End] = []
        self._name, self._version = name, version
        self._choice = random.Random(seed)
        self._line = Line(address, self._choice, cuts)
        self._written = 0

    def run(self, stopping: Event) -> None:
        while not stopping.is_set():
            try:
                producer = Transactions(self._line, self._name, self._version)
                while not stopping.is_set():
                    self._transact(producer)
            except GoneError:
                self._line.cut()
                time.sleep(0.01)
        self._line.cut()

    def _transact(self, producer: Transactions) -> None:
        transaction = f"{self._name}-{len(self.ends)}"
        began, outcome = time.monotonic(), Outcome.ABORTED
        try:
            self._write(producer, transaction)
            if self._choice.random() < 0.5:
                self._commit_offset(producer)
            began = time.monotonic()
            commits = self._choice.random() < 0.7
            outcome = Outcome.UNKNOWN if commits else Outcome.ABORTED
            self._until_done(lambda: producer.end(self._line, commits=commits))
            outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        finally:
            self.ends.append(End(transaction, outcome, began, time.monotonic()))

    def _write(self, producer: Transactions, transaction: str) -> None:
        if self._version == 1:
            self._until_done(lambda: producer.name_the_partition(self._line))
        count = self._choice.randint(1, 4)
        values = [f"{self._name}:{self._written + n}" for n in range(count)]
        producer.written, self._written = self._written, self._written + count
        written = [Write(self._name, 0, value, False, transaction) for value in values]
        first = len(self.writes)
        self.writes += written
        version = 11 if self._version == 1 else 12
        self._until_done(lambda: producer.write(self._line, count, version).error_code)
        self.writes[first:] = [one._replace(acknowledged=True) for one in written]

    def _commit_offset(self, producer: Transactions) -> None:
        group = f"of {self._name}"
        if self._version == 1:
            self._until_done(lambda: producer.name_the_group(self._line, group))
        self._until_done(lambda: producer.commit_offset(self._line, group, self._written))

    def _until_done(self, step: Callable[[], int]) -> None:
        while (code := step()) in RETRIED:
            time.sleep(0.005)
        assert code == NONE, (self._name, code)
