"""The checker finds each anomaly in a history that has it, and none in a correct history."""

import pytest

from tests.faults.history import (
    End,
    History,
    OffsetCommitted,
    OffsetFetched,
    Outcome,
    Owned,
    Read,
    Write,
    check,
    final_of,
)

COMMITTED = End("t1", Outcome.COMMITTED, 2.0, 3.0)
ABORTED = End("t2", Outcome.ABORTED, 2.0, 3.0)
WRITES = (
    Write("p", 0, "a", acknowledged=True),
    Write("p", 0, "b", acknowledged=False),
    Write("q", 0, "c", acknowledged=True, transaction="t1"),
    Write("q", 1, "d", acknowledged=True, transaction="t1"),
    Write("q", 1, "e", acknowledged=True, transaction="t2"),
    Write("q", 1, "f", acknowledged=True, transaction="t3"),
)
FINAL = final_of([(0, 0, "a"), (0, 1, "c"), (1, 0, "d")])
GOOD = History(
    writes=WRITES,
    ends=(COMMITTED, ABORTED, End("t3", Outcome.UNKNOWN, 4.0, 9.0)),
    reads=(
        Read("r", 1, 0, 0, "a", 1.0),
        Read("r", 1, 0, 1, "c", 2.5),
        Read("r", 2, 0, 0, "a", 5.0),
        Read("u", 1, 1, 1, "e", 1.0, read_committed=False),
    ),
    owned=(Owned("x", 1, 0, 0.0, 1.0), Owned("y", 2, 0, 2.0, 3.0)),
    commits=(
        OffsetCommitted(0, 1, acknowledged=True, ended=1.0),
        OffsetCommitted(0, 2, acknowledged=False, ended=2.0),
    ),
    fetches=(OffsetFetched(0, 1, 3.0), OffsetFetched(0, 2, 3.0), OffsetFetched(1, -1, 3.0)),
    final=FINAL,
)

PLANTED = {
    "lost write": GOOD._replace(final=FINAL[1:]),
    "duplicate": GOOD._replace(final=[*FINAL, *final_of([(1, 5, "d")])]),
    "torn transaction": GOOD._replace(
        ends=(ABORTED, End("t1", Outcome.UNKNOWN, 2.0, 3.0)), final=FINAL[:2]
    ),
    "aborted read": GOOD._replace(reads=(Read("r", 1, 1, 3, "e", 5.0),)),
    "dirty read": GOOD._replace(reads=(Read("r", 1, 0, 1, "c", 1.5),)),
    "non-monotonic poll": GOOD._replace(
        reads=(Read("r", 1, 0, 1, "c", 5.0), Read("r", 1, 0, 0, "a", 6.0))
    ),
    "inconsistent offset": GOOD._replace(reads=(Read("r", 1, 0, 0, "c", 5.0),)),
    "reordered writes": GOOD._replace(
        writes=(*WRITES, Write("p", 0, "z", acknowledged=True)),
        final=final_of([(0, 1, "a"), (0, 0, "z"), (0, 2, "c"), (1, 0, "d")]),
    ),
    "two owners": GOOD._replace(owned=(Owned("x", 1, 0, 0.0, 1.0), Owned("y", 1, 0, 2.0, 3.0))),
    "lost commit": GOOD._replace(fetches=(OffsetFetched(0, 0, 3.0),)),
}


def test_valid_history_of_a_broker_has_no_anomaly() -> None:
    assert check(GOOD) == []


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_anomaly_is_found(kind: str) -> None:
    assert kind in {anomaly.kind for anomaly in check(PLANTED[kind])}


def test_record_is_duplicated_only_if_its_producer_resent_it_in_a_new_epoch() -> None:
    twice = GOOD._replace(final=[*FINAL, *final_of([(0, 5, "a"), (1, 5, "d")])], sent_again={"a"})
    assert [anomaly.detail for anomaly in check(twice)] == ["d at 1/5"]


def test_committed_transaction_that_was_lost_whole_is_found() -> None:
    history = GOOD._replace(final=FINAL[:1])
    kinds = [anomaly.kind for anomaly in check(history)]
    assert kinds == ["lost write", "lost write"]


def test_group_that_starts_before_its_last_commit_is_found() -> None:
    later = OffsetCommitted(0, 9, acknowledged=True, ended=2.5)
    history = GOOD._replace(commits=(GOOD.commits[0], later), fetches=(OffsetFetched(0, 1, 3.0),))
    assert [anomaly.kind for anomaly in check(history)] == ["lost commit"]
