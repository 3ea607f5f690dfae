"""A stopped or killed (-9) broker restores its groups, offsets, producers and open transactions.

`TORTURE_ROUNDS` sets the rounds (`make torture`: 50), of about four seconds each. Every second
round kills the broker.
"""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.described import Named, committed, describe_transactions, described, ends
from tests.faults.groups.members import ClassicGroup, ConsumerGroup, commit
from tests.faults.raw import NONE, create_topics, delete_group, find_coordinator
from tests.faults.transactions.copiers import Watcher
from tests.faults.writers import Appended, Transactions, Writer
from tests.support.patience import PATIENCE_S, eventually, seconds
from tests.support.processes.server import Server, serving
from tests.support.wire import Connection

pytestmark = pytest.mark.kill

ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "2"))
OUT_OF_ORDER_SEQUENCE, INVALID_TXN_STATE, GROUP_ID_NOT_FOUND = 45, 48, 69
FENCED_INSTANCE_ID, UNSTABLE_OFFSET_COMMIT = 82, 88
TOPICS = ["orders", "bills", "numbered", "tv1", "tv2"]
# Kept apart, because it changes without a client, also while the broker is down.
ABANDONED, ABANDONED_MS = "abandoned", 2000
OPTIONS = {
    "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
}


class Clients:
    """The state of one broker, and the responses that its clients got."""

    def __init__(self, address: str) -> None:
        with Connection(address) as connection:
            create_topics(connection, [*TOPICS, ABANDONED])
            for kind, name in ((0, "classic"), (1, "tv1")):
                find_coordinator(connection, kind, name)
            described(
                connection, Named(["classic", "simple", "once-0"], ["modern"], [], TOPICS, [])
            )
            self.classic = ClassicGroup(address, "classic")
            self.modern = ConsumerGroup(connection, "modern", ["orders"])
            self.numbered = Writer(connection, "numbered")
            self.transactions = [Transactions(connection, f"tv{n}", n) for n in (1, 2)]
            assert commit(connection, "once-0", "orders", 0) == NONE
        self.appended = Appended(NONE, -1)
        self.committed: dict[str, list[int]] = {one.topic: [] for one in self.transactions}
        self.offsets: dict[str, int] = {one.topic: -1 for one in self.transactions}

    def named(self, number: int) -> Named:
        """Return the names to compare; of one-round groups, those of this and the last round."""
        groups = ["classic", "simple", "modern"]
        pending = [(f"of {one.topic}", one.topic) for one in self.transactions]
        return Named(
            classic=["classic", "simple", f"once-{number}", f"once-{number - 1}"],
            modern=["modern"],
            topics=TOPICS,
            transactions=[one.topic for one in self.transactions],
            committed=[*((group, "orders") for group in groups), *pending],
        )

    def change(self, connection: Connection, number: int) -> None:
        """Change all of the state, and check that each change is acknowledged."""
        self.classic.replace_the_static_member(connection)
        self.modern.subscribe(connection, ["orders", "bills"][: 1 + number % 2])
        codes = [
            self.classic.commit(connection, "orders", number),
            self.modern.commit(connection, "orders", number),
            commit(connection, "simple", "orders", 2 * number),
            commit(connection, f"once-{number}", "orders", number),
        ]
        assert codes == [NONE] * 4
        delete_group(connection, f"once-{number - 1}")
        self.appended = self.numbered.write(connection, 2)
        assert self.appended.error_code == NONE
        for one in self.transactions:
            one.open(connection, f"of {one.topic}", number)

    def go_on(self, connection: Connection, number: int) -> None:
        """Continue on the restarted broker without recovery by the clients."""
        assert self.classic.beats(connection) == [NONE, NONE, FENCED_INSTANCE_ID]
        response = self.modern.beat(connection)
        assert (response.error_code, response.member_epoch) == (NONE, self.modern.epoch)
        self._write_on(connection)
        for one in self.transactions:
            self._end(connection, one, number)

    def _write_on(self, connection: Connection) -> None:
        """Write the last batch again, a batch after a gap, and the next batch."""
        before = self.numbered.sequence
        assert self.numbered.append(connection, 2, before - 2) == self.appended
        too_far = self.numbered.append(connection, 2, before + 1)
        assert too_far.error_code == OUT_OF_ORDER_SEQUENCE
        following = self.numbered.write(connection, 2)
        assert following == Appended(NONE, self.appended.base_offset + 2)

    def _end(self, connection: Connection, one: Transactions, number: int) -> None:
        """Commit one producer's transaction, abort the other's; swap them in the next round."""
        commits = (number + one.version) % 2 == 0
        assert one.end(connection, commits=commits) == NONE
        wait_for_state(connection, one.topic, "CompleteCommit" if commits else "CompleteAbort")
        if commits:
            self.committed[one.topic] += range(one.written - one.opened, one.written)
            self.offsets[one.topic] = number
        row = committed(connection, f"of {one.topic}", one.topic)
        assert (row.error_code, row.committed_offset) == (NONE, self.offsets[one.topic])
        stable, end = ends(connection, one.topic)
        assert stable == end


class Abandoned:
    """A transaction that its producer does not end."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._producer = Transactions(connection, ABANDONED, 2, ABANDONED_MS)
        self._began = time.monotonic()
        self._producer.open(connection, f"of {ABANDONED}", number)

    def _age_ms(self) -> float:
        return 1000 * (time.monotonic() - self._began)

    def assert_its_timeout_decides(self, connection: Connection) -> None:
        """It is open until its timeout, although the broker was down, and then aborted."""
        while (state := state_of(connection, ABANDONED)).transaction_state == "Ongoing":
            assert self._age_ms() < 1000 * PATIENCE_S, "it is never aborted"
            time.sleep(0.01)
        assert self._age_ms() >= ABANDONED_MS
        wait_for_state(connection, ABANDONED, "CompleteAbort")
        assert state.producer_id == self._producer.id
        # The producer has the epoch before, so this is a retry of an end with another outcome.
        assert self._producer.end(connection, commits=True) == INVALID_TXN_STATE
        assert committed(connection, f"of {ABANDONED}", ABANDONED).committed_offset == -1
        stable, end = ends(connection, ABANDONED)
        assert stable == end


def state_of(connection: Connection, name: str) -> Any:
    (state,) = describe_transactions(connection, [name])
    assert state.error_code == NONE
    return state


def wait_for_state(connection: Connection, name: str, wanted: str) -> None:
    eventually(lambda: state_of(connection, name).transaction_state == wanted, wanted)


def assert_all_is_there(found: dict[str, Any], number: int) -> None:
    """Check that the compared state exists, so that the comparison does not compare nothing."""
    groups = [(one.error_code, one.group_state, len(one.members)) for one in found["groups"]]
    gone = (GROUP_ID_NOT_FOUND, "Dead", 0)
    assert groups == [(NONE, "Stable", 2), (NONE, "Empty", 0), (NONE, "Empty", 0), gone], groups
    (modern,) = found["consumer groups"]
    assert (modern.group_state, len(modern.members)) == ("Stable", 1)
    assert [one.transaction_state for one in found["transactions"]] == ["Ongoing"] * 2
    rows = [(row.error_code, row.committed_offset, row.metadata) for row in found["offsets"]]
    wanted = [(NONE, offset, f"at {offset}") for offset in (number, 2 * number, number)]
    assert rows[:3] == wanted
    assert [row[0] for row in rows[3:]] == [UNSTABLE_OFFSET_COMMIT] * 2
    assert [len(one.active_producers) for one in found["producers"]] == [0, 0, 1, 1, 1]
    open_ones = [one.active_producers[0] for one in found["producers"][3:]]
    assert all(one.current_txn_start_offset >= 0 for one in open_ones)
    assert all(stable < end for stable, end in (found["ends"][name] for name in ("tv1", "tv2")))


def restart(server: Server, *, kills: bool) -> None:
    if kills:
        server.kill()
    else:
        assert server.stop() == 0
    server.start()


def one_round(server: Server, clients: Clients, number: int) -> None:
    with Connection(server.address) as connection:
        clients.change(connection, number)
        abandoned = Abandoned(connection, number)
        before = described(connection, clients.named(number))
        assert_all_is_there(before, number)
    restart(server, kills=number % 2 == 0)
    with Connection(server.address) as connection:
        after = described(connection, clients.named(number))
        for what, told in before.items():
            assert after[what] == told, what
        clients.go_on(connection, number)
        abandoned.assert_its_timeout_decides(connection)


def read_committed(address: str, count: int) -> dict[str, dict[bytes, list[int]]]:
    watcher = Watcher(address, [*TOPICS, ABANDONED], 1)
    watcher.start()
    deadline = time.monotonic() + PATIENCE_S
    while watcher.counts.total() < count and time.monotonic() < deadline:
        time.sleep(0.01)
    watcher.stopping.set()
    watcher.join(PATIENCE_S)
    return watcher.values


@pytest.mark.timeout(seconds(120 + 30 * ROUNDS))
def test_restarted_broker_keeps_its_state(tmp_path: Path) -> None:
    options = [word for name, value in OPTIONS.items() for word in ("--set", f"{name}={value}")]
    with serving(tmp_path / "data", *options) as server:
        clients = Clients(server.address)
        for number in range(1, ROUNDS + 1):
            one_round(server, clients, number)
        wanted = {name: {name.encode(): found} for name, found in clients.committed.items()}
        wanted["numbered"] = {b"idempotent": list(range(clients.numbered.written))}
        count = sum(len(found) for values in wanted.values() for found in values.values())
        read = read_committed(server.address, count)
    assert {topic: values for topic, values in read.items() if values} == wanted
