"""The checker of clusters finds every anomaly in incorrect histories, and none in correct ones."""

from typing import Any

import pytest

from tests.faults.cluster.checker import (
    Acknowledged,
    ClusterHistory,
    Replica,
    Stable,
    check,
    unread_records,
    wrong_copies,
)
from tests.faults.groups.lives import overlaps
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


def batch(offset: int, epoch: int, value: bytes) -> bytes:
    """Return a batch of the length in its header; the tests do not read its records."""
    body = epoch.to_bytes(4, "big") + b"\x02" + bytes(44) + value
    return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body


LOG = batch(0, 3, b"a") + batch(1, 3, b"b") + batch(2, 5, b"c")
WRITES = (
    Write("p", 0, "a", acknowledged=True),
    Write("p", 0, "b", acknowledged=True),
    Write("p", 0, "lost without a response", acknowledged=False),
    Write("p", 0, "c", acknowledged=True),
    Write("t", 1, "d", acknowledged=True, transaction="committed"),
    Write("t", 1, "e", acknowledged=True, transaction="aborted"),
    Write("t", 1, "f", acknowledged=True, transaction="in doubt"),
)
FINAL = final_of([(0, 0, "a"), (0, 1, "b"), (0, 2, "c"), (1, 0, "d")])
READS = (
    Read("r", 1, 0, 0, "a", 1.0),
    Read("r", 1, 0, 1, "b", 2.0),
    Read("r", 2, 0, 1, "b", 3.0),
    Read("r", 2, 0, 2, "c", 3.5),
    Read("q", 1, 1, 0, "d", 3.0),
    Read("u", 1, 1, 2, "e", 1.0, read_committed=False),
)
CLIENTS = History(
    writes=WRITES,
    ends=(
        End("committed", Outcome.COMMITTED, 2.0, 3.0),
        End("aborted", Outcome.ABORTED, 2.0, 3.0),
        End("in doubt", Outcome.UNKNOWN, 4.0, 9.0),
    ),
    reads=READS,
    owned=(Owned("x", 1, 0, 0.0, 1.0), Owned("y", 2, 0, 2.0, 3.0)),
    commits=(OffsetCommitted(0, 1, acknowledged=True, ended=1.0),),
    fetches=(OffsetFetched(0, 1, 3.0),),
    final=FINAL,
)
ACKNOWLEDGED = (
    Acknowledged("p", 0, 0, "a"),
    Acknowledged("p", 0, 1, "b"),
    Acknowledged("p", 0, None, "c"),
)
GOOD = ClusterHistory(
    clients=CLIENTS,
    acknowledged=ACKNOWLEDGED,
    replicas=(
        Replica(1, "orders-0", LOG),
        Replica(2, "orders-0", LOG),
        Replica(3, "orders-0", LOG),
    ),
    stable=(Stable("orders-1", 4, 4),),
)


def _seen(*reads: Read) -> ClusterHistory:
    return GOOD._replace(clients=CLIENTS._replace(reads=(*READS, *reads)))


def _with(**changes: Any) -> ClusterHistory:
    return GOOD._replace(clients=CLIENTS._replace(**changes))


PLANTED = {
    "lost write": _with(final=[*FINAL[:2], FINAL[3]]),
    "duplicate": _with(final=[*FINAL, *final_of([(0, 3, "b")])]),
    "reordered writes": _with(final=final_of([(0, 1, "a"), (0, 0, "b"), (0, 2, "c"), (1, 0, "d")])),
    "torn transaction": _with(
        writes=(*WRITES, Write("t", 2, "g", acknowledged=True, transaction="committed"))
    ),
    "aborted read": _seen(Read("q", 2, 1, 2, "e", 5.0)),
    "dirty read": _seen(Read("q", 2, 1, 0, "d", 1.5)),
    "non-monotonic poll": _seen(Read("r", 2, 0, 1, "b", 6.0)),
    "inconsistent offset": _seen(Read("s", 1, 0, 2, "lost without a response", 6.0)),
    "vanished read": _seen(Read("s", 1, 0, 3, "lost without a response", 6.0)),
    "skipped record": _seen(Read("s", 1, 0, 0, "a", 6.0), Read("s", 1, 0, 2, "c", 6.0)),
    "offset reuse": GOOD._replace(acknowledged=(*ACKNOWLEDGED, Acknowledged("q", 0, 1, "other"))),
    "two owners": _with(owned=(Owned("x", 1, 0, 0.0, 1.0), Owned("y", 1, 0, 2.0, 3.0))),
    "lost commit": _with(fetches=(OffsetFetched(0, 0, 3.0),)),
    "divergent replicas": GOOD._replace(
        replicas=(*GOOD.replicas[:2], Replica(3, "orders-0", LOG[: -len(batch(2, 5, b"c"))]))
    ),
    "stuck last stable offset": GOOD._replace(stable=(Stable("orders-1", 1, 4),)),
}


def test_valid_history_of_a_cluster_has_no_anomaly() -> None:
    assert check(GOOD) == []
    assert overlaps(list(CLIENTS.owned)) == []


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_anomaly_is_found(kind: str) -> None:
    assert kind in {anomaly.kind for anomaly in check(PLANTED[kind])}


def test_replicas_that_differ_in_the_leader_epoch_of_a_batch_are_reported_with_it() -> None:
    other = batch(0, 3, b"a") + batch(1, 4, b"b") + batch(2, 5, b"c")
    history = ClusterHistory(replicas=(GOOD.replicas[0], Replica(2, "orders-0", other)))
    (anomaly,) = check(history)
    assert "epoch 3" in anomaly.detail
    assert "epoch 4" in anomaly.detail


def test_group_that_read_to_the_end_must_have_read_acknowledged_records() -> None:
    clients = CLIENTS._replace(writes=(*WRITES[:4], Write("p", 0, "g", acknowledged=True)))
    (anomaly,) = unread_records(GOOD._replace(clients=clients))
    assert anomaly.detail == "g of p"


def test_missing_repeated_or_reordered_copies_are_found() -> None:
    originals = final_of([(0, 0, "a"), (0, 1, "b"), (1, 0, "c")])
    assert list(wrong_copies(originals, final_of([(0, 1, "a"), (0, 4, "b"), (1, 0, "c")]))) == []
    for wrong in (
        [(0, 1, "a"), (0, 4, "b")],
        [(0, 1, "a"), (0, 4, "b"), (0, 5, "b"), (1, 0, "c")],
        [(0, 1, "b"), (0, 4, "a"), (1, 0, "c")],
    ):
        (anomaly,) = wrong_copies(originals, final_of(wrong))
        assert anomaly.kind == "wrong copy"


def test_two_members_that_own_a_partition_at_the_same_time_are_found() -> None:
    (anomaly,) = overlaps([Owned("x", 0, 3, 0.0, 2.0), Owned("y", 0, 3, 1.0, 3.0)])
    assert anomaly.kind == "two owners at one time"
