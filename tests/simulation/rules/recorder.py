"""Histories for `tests.faults.history`, recorded at the broker, where the order is known."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from pykafka_core.protocol.messages import (
    Message,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.faults.history import (
    End,
    History,
    OffsetCommitted,
    OffsetFetched,
    Outcome,
    Owned,
    Read,
    Write,
    final_of,
)
from tests.simulation.core import Produce
from tests.simulation.rules.ledger import DataView

UNSTABLE = 88


class Recorder:
    """Collects events.

    Args:
        now: Each call returns a later time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._writes: dict[str, Write] = {}
        self._ends: dict[str, End] = {}
        self._reads: list[Read] = []
        self._final: list[tuple[int, int, str]] = []
        self._transactions: dict[tuple[str, int, int], str] = {}
        """The clients' names of their transactions, by transactional id and producer."""
        self.commits: defaultdict[str, list[OffsetCommitted]] = defaultdict(list)
        self.fetches: defaultdict[str, list[OffsetFetched]] = defaultdict(list)
        self.owned: defaultdict[str, list[Owned]] = defaultdict(list)
        self._pending: dict[int, list[tuple[str, int]]] = {}
        self._offsets: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
        """Offsets within transactions: group, partition, offset."""

    # Transactions.

    def writes(self, transaction: str, partition: int, record: Produce) -> None:
        """Record that a client is about to send a record."""
        value = record.value.decode()
        self._writes[value] = Write(
            record.transactional_id + transaction.partition("/")[0],
            partition,
            value,
            acknowledged=False,
            transaction=transaction,
        )

    def produced(self, record: Produce) -> None:
        """Record an acknowledgement."""
        value = record.value.decode()
        self._writes[value] = self._writes[value]._replace(acknowledged=True)

    def offset_in(self, transaction: str, group: str, partition: int, offset: int) -> None:
        """Record that a transaction commits an offset."""
        self._offsets[transaction].append((group, partition, offset))

    def aborts(self, transaction: str) -> None:
        """Record that the client will never request a commit."""
        self._ends[transaction] = End(transaction, Outcome.ABORTED, self._now(), self._now())

    def may_commit(self, transaction: str) -> None:
        """Record that the client requests a commit."""
        self._ends[transaction] = End(transaction, Outcome.UNKNOWN, self._now(), self._now())

    def ended(self, transaction: str, outcome: Outcome) -> None:
        """Record the outcome that the client has received."""
        self._ends[transaction] = self._ends[transaction]._replace(
            outcome=outcome, ended=self._now()
        )

    # Readers.

    def read(self, consumer: str, partition: int, records: list[tuple[int, str]]) -> None:
        """Record a returned poll."""
        at = self._now()
        self._reads += [Read(consumer, 0, partition, *record, at) for record in records]

    # The broker's door.

    def asked(self, request: Message) -> None:
        """Record the arrival of a request: its commits may count from now on."""
        if isinstance(request, OffsetCommitRequest):
            rows = [row for topic in request.topics for row in topic.partitions]
            commits = self.commits[request.group_id]
            self._pending[id(request)] = []
            for row in rows:
                commits.append(
                    OffsetCommitted(row.partition_index, row.committed_offset, False, self._now())
                )

    def replied(self, request: Message, response: Any, began: float) -> None:
        """Record a response."""
        if isinstance(request, OffsetCommitRequest):
            self._committed(request, response)
        elif isinstance(request, OffsetFetchRequest):
            for group in response.groups:
                for topic in group.topics if not group.error_code else ():
                    for row in topic.partitions:
                        if not row.error_code:
                            fetched = OffsetFetched(
                                row.partition_index, row.committed_offset, began
                            )
                            self.fetches[group.group_id].append(fetched)

    def _committed(self, request: OffsetCommitRequest, response: Any) -> None:
        codes = {
            row.partition_index: row.error_code for t in response.topics for row in t.partitions
        }
        commits = self.commits[request.group_id]
        for topic in request.topics:
            for row in topic.partitions:
                place = next(
                    place
                    for place, one in enumerate(commits)
                    if one.partition == row.partition_index and one.offset == row.committed_offset
                )
                if codes[row.partition_index] == 0:
                    commits[place] = commits[place]._replace(acknowledged=True, ended=self._now())

    # The end.

    def final(self, partition: int, view: DataView) -> None:
        """Record the contents of a partition at the end."""
        self._final += [(partition, offset, value) for offset, value in view.visible(0)]

    def histories(self) -> Iterator[History]:
        """Yield the history of the records, then of each group."""
        yield History(
            list(self._writes.values()),
            list(self._ends.values()),
            self._reads,
            final=final_of(self._final),
        )
        # If a group commits in both ways, the order in the log decides, which clients cannot see.
        both = {group for rows in self._offsets.values() for group, *_ in rows} & set(self.commits)
        self._transactional_commits()
        for group in sorted({*self.commits, *self.fetches, *self.owned}):
            fetches = [] if group in both else self.fetches[group]
            yield History(owned=self.owned[group], commits=self.commits[group], fetches=fetches)

    def _transactional_commits(self) -> None:
        for transaction, offsets in self._offsets.items():
            end = self._ends.get(transaction)
            if end is None or end.outcome is Outcome.ABORTED:
                continue
            for group, partition, offset in offsets:
                is_known = end.outcome is Outcome.COMMITTED
                self.commits[group].append(OffsetCommitted(partition, offset, is_known, end.ended))
