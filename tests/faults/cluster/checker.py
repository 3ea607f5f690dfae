"""Rules for the histories of a cluster, and for the final contents of all replicas.

The rules for the clients of one broker (`tests/faults/history.py`) apply to a cluster, too. This
module adds the errors that several nodes can make: an acknowledged or read offset that holds
another record after a change of leader; records that a reader skipped; replicas whose logs differ;
transactions that no leader ends.

A history is taken when all faults are over, every replica is in sync and no client writes. It is
pure data: a planted anomaly is a history with one changed value (`test_checker.py`).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.faults import history as one_broker
from tests.faults.history import Anomaly, History, Read


class Acknowledged(NamedTuple):
    """An acknowledged position; the offset is None if only a later record was acknowledged."""

    producer: str
    partition: int
    offset: int | None
    value: str


class Replica(NamedTuple):
    """The record batches of a partition on a node's disk, concatenated as Kafka stores them."""

    node: int
    partition: str
    batches: bytes


class Stable(NamedTuple):
    """The ends that a leader reports when no transaction should be open; both are exclusive."""

    partition: str
    last_stable_offset: int
    high_watermark: int


class ClusterHistory(NamedTuple):
    """The actions of clients on one topic, and the final state.

    Attributes:
        clients: Their writes, reads and commits; ``final`` is a read from the first offset, after
            all faults.
        acknowledged: Positions from acknowledgements with an offset.
        replicas: Partitions of any topics, each on all of its nodes.
        stable: Partitions that had transactions.
    """

    clients: History = History()
    acknowledged: Sequence[Acknowledged] = ()
    replicas: Sequence[Replica] = ()
    stable: Sequence[Stable] = ()


def check(history: ClusterHistory) -> list[Anomaly]:
    """Return all violations in a history."""
    checks = (
        reused_offsets,
        vanished_reads,
        skipped_records,
        divergent_replicas,
        stuck_stable_offsets,
    )
    found = one_broker.check(history.clients)
    return found + [anomaly for one in checks for anomaly in one(history)]


def reused_offsets(history: ClusterHistory) -> Iterator[Anomaly]:
    """Find acknowledged offsets at which a reader found another record."""
    values: dict[tuple[int, int | None], str] = {
        (read.partition, read.offset): read.value
        for read in (*history.clients.reads, *history.clients.final)
    }
    for one in history.acknowledged:
        if one.offset is None:
            continue
        place = one.partition, one.offset
        if values.setdefault(place, one.value) != one.value:
            detail = f"{place} was acknowledged to {one.producer} as {one.value} and held {values[place]}"
            yield Anomaly("offset reuse", detail)


def vanished_reads(history: ClusterHistory) -> Iterator[Anomaly]:
    """Find non-transactional records that were read and are missing at the end.

    Readers see only records below the high watermark, and these must not disappear.
    """
    transactional = {one.value for one in history.clients.writes if one.transaction is not None}
    left = {(read.partition, read.offset, read.value) for read in history.clients.final}
    for read in history.clients.reads:
        place = read.partition, read.offset, read.value
        if read.value not in transactional and place not in left:
            detail = f"{read.consumer} saw {read.value} at {read.partition}/{read.offset}"
            yield Anomaly("vanished read", detail)


def skipped_records(history: ClusterHistory) -> Iterator[Anomaly]:
    """Find gaps between the first and the last record of a partition, by assignment."""
    left: dict[int, set[int]] = defaultdict(set)
    for read in history.clients.final:
        left[read.partition].add(read.offset)
    seen: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    for read in history.clients.reads:
        seen[read.consumer, read.assignment, read.partition].add(read.offset)
    for (consumer, _, partition), offsets in seen.items():
        first, last = min(offsets), max(offsets)
        missing = {offset for offset in left[partition] if first < offset < last} - offsets
        if missing:
            detail = f"{consumer} passed over {len(missing)} from {partition}/{min(missing)} on"
            yield Anomaly("skipped record", detail)


def divergent_replicas(history: ClusterHistory) -> Iterator[Anomaly]:
    """Find partitions whose replicas hold different bytes."""
    by_partition: dict[str, list[Replica]] = defaultdict(list)
    for replica in history.replicas:
        by_partition[replica.partition].append(replica)
    for partition, (first, *others) in by_partition.items():
        for other in others:
            if other.batches != first.batches:
                detail = f"{partition}: {first_difference(first, other)}"
                yield Anomaly("divergent replicas", detail)


def first_difference(one: Replica, other: Replica) -> str:
    """Return the first batch in which two replicas differ, as each of them has it."""
    for own, theirs in zip(_described(one.batches), _described(other.batches), strict=False):
        if own != theirs:
            return f"node {one.node} has {own}, node {other.node} has {theirs}"
    return f"node {one.node} has {len(one.batches)} bytes, node {other.node} {len(other.batches)}"


def _described(batches: bytes) -> Iterator[str]:
    for batch in split(batches):
        field = {
            "offset": batch[0:8],
            "epoch": batch[12:16],
            "last delta": batch[23:27],
            "producer": batch[43:51],
            "sequence": batch[53:57],
        }
        numbers = " ".join(
            f"{name} {int.from_bytes(raw, 'big', signed=True)}" for name, raw in field.items()
        )
        yield f"[{numbers} crc {batch[17:21].hex()} of {len(batch)} bytes]"


def split(segment: bytes) -> Iterator[bytes]:
    """Yield the whole batches of a segment, up to preallocated zeros or a torn batch."""
    at = 0
    while size := int.from_bytes(segment[at + 8 : at + 12], "big"):
        batch = segment[at : at + 12 + size]
        if len(batch) < 12 + size:
            return
        yield batch
        at += len(batch)


def stuck_stable_offsets(history: ClusterHistory) -> Iterator[Anomaly]:
    """Find last stable offsets below the high watermark, after the end of all transactions."""
    for one in history.stable:
        if one.last_stable_offset != one.high_watermark:
            detail = f"{one.partition}: {one.last_stable_offset} of {one.high_watermark}"
            yield Anomaly("stuck last stable offset", detail)


def unread_records(history: ClusterHistory) -> Iterator[Anomaly]:
    """Find acknowledged records that no member of a group read, if it has read to the end."""
    seen = {read.value for read in history.clients.reads}
    for write in history.clients.writes:
        if write.acknowledged and write.transaction is None and write.value not in seen:
            yield Anomaly("unread record", f"{write.value} of {write.producer}")


def wrong_copies(originals: Sequence[Read], copies: Sequence[Read]) -> Iterator[Anomaly]:
    """Find partitions whose transactional copies are not the originals, once each and in order."""
    copied = _values(copies)
    for partition, wanted in _values(originals).items():
        found = copied[partition]
        if found != wanted:
            pairs = enumerate(zip(found, wanted, strict=False))
            differs = next((at for at, (one, other) in pairs if one != other), "none")
            detail = f"partition {partition}: {len(found)} of {len(wanted)}, the first that differs: {differs}"
            yield Anomaly("wrong copy", detail)


def _values(reads: Sequence[Read]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for read in sorted(reads, key=lambda read: (read.partition, read.offset)):
        found[read.partition].append(read.value)
    return found
