"""What clients did and saw, and what must hold of it: a checker of histories.

A history is made of events with times of one clock. Values are unique, so a value says which write a read saw. Each
check yields an `Anomaly` for whatever breaks its rule; a history without any is one that a broker may have.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple


class Outcome(Enum):
    """What a client was told. `UNKNOWN`: nothing, so both are possible."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Write(NamedTuple):
    """A record that was sent. ``transaction`` is None outside of one; then ``acknowledged`` decides alone."""

    producer: str
    partition: int
    value: str
    acknowledged: bool
    transaction: str | None = None


class End(NamedTuple):
    """A transaction's end: asked for at ``began``, and told at ``ended``."""

    transaction: str
    outcome: Outcome
    began: float
    ended: float


class Read(NamedTuple):
    """A record that a poll of ``consumer`` returned, in the order of its polls. ``at`` is when the poll returned."""

    consumer: str
    assignment: int
    partition: int
    offset: int
    value: str
    at: float
    read_committed: bool = True


class Owned(NamedTuple):
    """A member owned a partition in a generation, from its assignment until it gave it up (or was killed)."""

    member: str
    generation: int
    partition: int
    since: float
    until: float


class OffsetCommitted(NamedTuple):
    """A group's commit; one that was not acknowledged may count or not."""

    partition: int
    offset: int
    acknowledged: bool
    ended: float


class OffsetFetched(NamedTuple):
    """What a group was told to begin with; -1 for nothing."""

    partition: int
    offset: int
    began: float


class History(NamedTuple):
    """All of it. ``final`` is everything that a read_committed consumer finds when all is over.

    ``sent_again`` are values that their producer may have sent twice, as another one each time.
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
    """What must not be."""

    kind: str
    detail: str


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong with a history."""
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
    """What was acknowledged, and committed if it is of a transaction, is there in the end."""
    outcomes, found = _outcomes(history), {read.value for read in history.final}
    for write in history.writes:
        if write.transaction is None:
            is_due = write.acknowledged
        else:
            is_due = outcomes.get(write.transaction) is Outcome.COMMITTED
        if is_due and write.value not in found:
            yield Anomaly("lost write", f"{write.value} of {write.producer}")


def duplicates(history: History) -> Iterator[Anomaly]:
    """Nothing is there twice in the end, but what its producer sent as another one."""
    seen: set[str] = set()
    for read in history.final:
        if read.value in seen and read.value not in history.sent_again:
            yield Anomaly("duplicate", f"{read.value} at {read.partition}/{read.offset}")
        seen.add(read.value)


def torn_transactions(history: History) -> Iterator[Anomaly]:
    """Of a transaction all is there in the end, or nothing."""
    found = {read.value for read in history.final}
    values: dict[str, list[bool]] = defaultdict(list)
    for write in history.writes:
        if write.transaction is not None and write.acknowledged:
            values[write.transaction].append(write.value in found)
    for transaction, present in values.items():
        if any(present) and not all(present):
            yield Anomaly("torn transaction", f"{transaction}: {sum(present)} of {len(present)}")


def aborted_reads(history: History) -> Iterator[Anomaly]:
    """Nobody who reads what is committed sees what was aborted."""
    outcomes, transactions = _outcomes(history), _transactions(history)
    for read in (*history.reads, *history.final):
        transaction = transactions.get(read.value)
        if read.read_committed and transaction and outcomes.get(transaction) is Outcome.ABORTED:
            yield Anomaly("aborted read", f"{read.consumer} saw {read.value} of {transaction}")


def dirty_reads(history: History) -> Iterator[Anomaly]:
    """Nor what nobody had asked to commit yet."""
    began = {end.transaction: end.began for end in history.ends}
    transactions = _transactions(history)
    for read in history.reads:
        transaction = transactions.get(read.value)
        if read.read_committed and transaction and read.at < began.get(transaction, read.at):
            yield Anomaly("dirty read", f"{read.consumer} saw {read.value} of {transaction}")


def non_monotonic_polls(history: History) -> Iterator[Anomaly]:
    """Within one assignment a consumer's offsets grow."""
    polls: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for read in history.reads:
        polls[read.consumer, read.assignment, read.partition].append(read.offset)
    for (consumer, _, partition), offsets in polls.items():
        for before, after in pairwise(offsets):
            if after <= before:
                detail = f"{consumer} read {partition}/{after} after {before}"
                yield Anomaly("non-monotonic poll", detail)


def inconsistent_offsets(history: History) -> Iterator[Anomaly]:
    """An offset holds one record, whoever reads it."""
    values: dict[tuple[int, int], str] = {}
    for read in (*history.reads, *history.final):
        place = read.partition, read.offset
        if values.setdefault(place, read.value) != read.value:
            detail = f"{place} held {values[place]} and {read.value}"
            yield Anomaly("inconsistent offset", detail)


def reordered_writes(history: History) -> Iterator[Anomaly]:
    """A producer's records in a partition are in the order in which it sent them."""
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
    """In a generation a partition has one owner; and nobody gets it before the owner of an earlier one is done."""
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    for owned in history.owned:
        owners[owned.generation, owned.partition].add(owned.member)
    for (generation, partition), members in owners.items():
        if len(members) > 1:
            detail = f"{sorted(members)} of {partition} in generation {generation}"
            yield Anomaly("two owners", detail)


def lost_commits(history: History) -> Iterator[Anomaly]:
    """A group begins at its last acknowledged commit, or at one that may have counted later."""
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
    """By value."""
    return {one.value: one.transaction for one in history.writes if one.transaction is not None}


def final_of(values: Iterable[tuple[int, int, str]]) -> list[Read]:
    """What was found in the end: partition, offset and value of each."""
    return [Read("final", 0, partition, offset, value, 0.0) for partition, offset, value in values]
