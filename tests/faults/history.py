"""A checker of histories: the actions and observations of clients, and the rules for them.

A history consists of events with times of one clock. Values are unique, so a value identifies the
write that a read returned. Each check yields an `Anomaly` for every violation of its rule. A
history without anomalies is one that a broker may produce.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple


class Outcome(Enum):
    """The outcome that a client observed. `UNKNOWN`: no response, so both are possible."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Write(NamedTuple):
    """A record that was sent. Outside of a transaction (None), ``acknowledged`` alone decides."""

    producer: str
    partition: int
    value: str
    acknowledged: bool
    transaction: str | None = None


class End(NamedTuple):
    """A transaction's end: requested at ``began``, with a response at ``ended``."""

    transaction: str
    outcome: Outcome
    began: float
    ended: float


class Read(NamedTuple):
    """A record returned by a poll of ``consumer``, in poll order. ``at``: time of the return."""

    consumer: str
    assignment: int
    partition: int
    offset: int
    value: str
    at: float
    read_committed: bool = True


class Owned(NamedTuple):
    """A member's ownership of a partition, from the assignment until it was revoked or killed."""

    member: str
    generation: int
    partition: int
    since: float
    until: float


class OffsetCommitted(NamedTuple):
    """A group's commit; one that was not acknowledged may have succeeded."""

    partition: int
    offset: int
    acknowledged: bool
    ended: float


class OffsetFetched(NamedTuple):
    """The committed offset that a group got; -1 if it had not committed."""

    partition: int
    offset: int
    began: float


class History(NamedTuple):
    """A whole history.

    ``final`` has all records that a read_committed consumer finds at the end. ``sent_again`` has
    the values that their producer may have sent twice, each time with another identity.
    """

    writes: Sequence[Write] = ()
    ends: Sequence[End] = ()
    reads: Sequence[Read] = ()
    owned: Sequence[Owned] = ()
    commits: Sequence[OffsetCommitted] = ()
    fetches: Sequence[OffsetFetched] = ()
    final: Sequence[Read] = ()
    sent_again: Collection[str] = ()


class Anomaly(NamedTuple):
    """A violation of a rule."""

    kind: str
    detail: str


def check(history: History) -> list[Anomaly]:
    """Return all violations in a history."""
    checks = (
        lost_writes,
        duplicates,
        torn_transactions,
        aborted_reads,
        dirty_reads,
        non_monotonic_polls,
        inconsistent_offsets,
        reordered_writes,
        two_owners,
        lost_commits,
    )
    return [anomaly for one in checks for anomaly in one(history)]


def lost_writes(history: History) -> Iterator[Anomaly]:
    """Find lost records: acknowledged and, in a transaction, committed, but absent at the end."""
    outcomes, found = _outcomes(history), {read.value for read in history.final}
    for write in history.writes:
        if write.transaction is None:
            is_due = write.acknowledged
        else:
            is_due = outcomes.get(write.transaction) is Outcome.COMMITTED
        if is_due and write.value not in found:
            yield Anomaly("lost write", f"{write.value} of {write.producer}")


def duplicates(history: History) -> Iterator[Anomaly]:
    """Find values that exist twice at the end, except those in ``sent_again``."""
    seen: set[str] = set()
    for read in history.final:
        if read.value in seen and read.value not in history.sent_again:
            yield Anomaly("duplicate", f"{read.value} at {read.partition}/{read.offset}")
        seen.add(read.value)


def torn_transactions(history: History) -> Iterator[Anomaly]:
    """Find transactions that are present only in part at the end."""
    found = {read.value for read in history.final}
    values: dict[str, list[bool]] = defaultdict(list)
    for write in history.writes:
        if write.transaction is not None and write.acknowledged:
            values[write.transaction].append(write.value in found)
    for transaction, present in values.items():
        if any(present) and not all(present):
            yield Anomaly("torn transaction", f"{transaction}: {sum(present)} of {len(present)}")


def aborted_reads(history: History) -> Iterator[Anomaly]:
    """Find aborted records that a read_committed consumer returned."""
    outcomes, transactions = _outcomes(history), _transactions(history)
    for read in (*history.reads, *history.final):
        transaction = transactions.get(read.value)
        if read.read_committed and transaction and outcomes.get(transaction) is Outcome.ABORTED:
            yield Anomaly("aborted read", f"{read.consumer} saw {read.value} of {transaction}")


def dirty_reads(history: History) -> Iterator[Anomaly]:
    """Find records that a read_committed consumer returned before their commit was requested."""
    began = {end.transaction: end.began for end in history.ends}
    transactions = _transactions(history)
    for read in history.reads:
        transaction = transactions.get(read.value)
        if read.read_committed and transaction and read.at < began.get(transaction, read.at):
            yield Anomaly("dirty read", f"{read.consumer} saw {read.value} of {transaction}")


def non_monotonic_polls(history: History) -> Iterator[Anomaly]:
    """Find offsets that do not increase within one assignment of a consumer."""
    polls: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for read in history.reads:
        polls[read.consumer, read.assignment, read.partition].append(read.offset)
    for (consumer, _, partition), offsets in polls.items():
        for before, after in pairwise(offsets):
            if after <= before:
                detail = f"{consumer} read {partition}/{after} after {before}"
                yield Anomaly("non-monotonic poll", detail)


def inconsistent_offsets(history: History) -> Iterator[Anomaly]:
    """Find offsets at which different reads returned different records."""
    values: dict[tuple[int, int], str] = {}
    for read in (*history.reads, *history.final):
        place = read.partition, read.offset
        if values.setdefault(place, read.value) != read.value:
            detail = f"{place} held {values[place]} and {read.value}"
            yield Anomaly("inconsistent offset", detail)


def reordered_writes(history: History) -> Iterator[Anomaly]:
    """Find records of a producer that are not in the order in which it sent them to a partition."""
    offsets = {read.value: read.offset for read in history.final}
    sent: dict[tuple[str, int], list[str]] = defaultdict(list)
    for write in history.writes:
        if write.value in offsets:
            sent[write.producer, write.partition].append(write.value)
    for (producer, partition), values in sent.items():
        for before, after in pairwise(values):
            if offsets[after] < offsets[before]:
                detail = f"{after} before {before} of {producer} in {partition}"
                yield Anomaly("reordered writes", detail)


def two_owners(history: History) -> Iterator[Anomaly]:
    """Find partitions with two owners in one generation."""
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    for owned in history.owned:
        owners[owned.generation, owned.partition].add(owned.member)
    for (generation, partition), members in owners.items():
        if len(members) > 1:
            detail = f"{sorted(members)} of {partition} in generation {generation}"
            yield Anomaly("two owners", detail)


def lost_commits(history: History) -> Iterator[Anomaly]:
    """Find starts of a group at neither its last acknowledged commit nor a possible later one."""
    for fetched in history.fetches:
        known = [one for one in history.commits if one.partition == fetched.partition]
        before = [one for one in known if one.acknowledged and one.ended <= fetched.began]
        last = max(before, key=lambda one: one.ended, default=None)
        allowed = {one.offset for one in known if last is None or one.ended >= last.ended}
        allowed |= {one.offset for one in known if not one.acknowledged}
        if last is None:
            allowed.add(-1)
        if fetched.offset not in allowed:
            detail = f"{fetched.partition} began at {fetched.offset}, committed was {last}"
            yield Anomaly("lost commit", detail)


def _outcomes(history: History) -> dict[str, Outcome]:
    return {end.transaction: end.outcome for end in history.ends}


def _transactions(history: History) -> dict[str, str]:
    """Return the transactions by value."""
    return {one.value: one.transaction for one in history.writes if one.transaction is not None}


def final_of(values: Iterable[tuple[int, int, str]]) -> list[Read]:
    """Return the final reads, from the partition, offset and value of each record."""
    return [Read("final", 0, partition, offset, value, 0.0) for partition, offset, value in values]
