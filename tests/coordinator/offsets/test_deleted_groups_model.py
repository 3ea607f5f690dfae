"""Random commits, transactions, and deletions of a group or its topic in several turns: after a
restart, a deleted group has no offset, and a recreated topic has none of the deleted one.
"""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.coordinator.group.offsets.commit import NewOffset
from pykafka_core.coordinator.group.offsets.table import OffsetTable
from pykafka_core.coordinator.group.offsets.transaction import begin_commit
from pykafka_core.errors import CoordinatorLoadInProgressError, KafkaError
from tests.coordinator.offsets.shard_world import ShardWorld, at
from tests.coordinator.offsets.shard_world import commit as commit_at_once
from tests.coordinator.offsets.test_transactional_commit import asked, commit, end

PARTITIONS = range(4)
partitions = st.sampled_from(PARTITIONS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), partitions),
        st.tuples(st.just("transact"), partitions),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("drop"), st.none()),
        st.tuples(st.just("recreate"), st.none()),
        st.tuples(st.just("turn"), st.none()),
    ),
    max_size=20,
)
History = list[tuple[str, int | bool | None]]


class Life:
    """A group, its offsets and those of one open transaction, by partition."""

    def __init__(self) -> None:
        self.topics = 1
        self.world = ShardWorld(bytes_max=120, topic_id=self.topic_id)
        self.rows: dict[int, int] = {}
        self.open: dict[int, int] = {}
        self.number = 0
        for partition in PARTITIONS:
            self.do_commit(partition)

    @property
    def topic_id(self) -> bytes:
        return self.topics.to_bytes(16, "big")

    def next_at(self, partition: int) -> NewOffset:
        self.number += 1
        return at(self.number, partition=partition, topic_id=self.topic_id)

    def do_commit(self, partition: int) -> None:
        assert self.world.ask(commit_at_once(self.next_at(partition))) is None
        self.rows[partition] = self.number
        self.open.pop(partition, None)

    def do_transact(self, partition: int) -> None:
        wanted = asked(self.next_at(partition))
        is_first = self.world.shard.transactions.epoch(wanted.producer_id) is None
        code = (
            commit(self.world, wanted)
            if is_first
            else self.world.ask(partial(begin_commit, wanted))
        )
        if code is None:
            self.open[partition] = self.number
        else:
            assert code == CoordinatorLoadInProgressError.code

    def do_end(self, committed: bool) -> None:
        end(self.world, committed=committed)
        self.rows |= self.open if committed else {}
        self.open = {}

    def do_drop(self, _: None) -> None:
        turn = self.world._turn()
        try:
            delete_group("g", self.world.shard, "deletion", turn)
        except KafkaError:
            return
        self.world._take(turn)
        self.rows, self.open = {}, {}

    def do_recreate(self, _: None) -> None:
        deleted = {"t": self.topic_id}
        self.topics += 1
        self.world.topic_id = self.topic_id
        self.world.shard.topics_deleted(deleted, self.world._turn())
        self.rows, self.open = {}, {}

    def do_turn(self, _: None) -> None:
        self.world.pass_ms(1)

    def check(self) -> None:
        """Compare the shard, and one that is loaded after the deletions and transactions."""
        finish_removals(self.world)
        self.do_end(True)
        for world in (self.world, self.world.reload(self.topic_id)):
            finish_removals(world)
            found = {place: one.offset for (_, _, place), one in world.rows().items()}
            assert found == self.rows
            assert not world.shard.offsets._hidden


def finish_removals(world: ShardWorld) -> None:
    offsets = world.shard.offsets
    while offsets.detached or offsets.deletions or offsets.leaving:
        world.pass_ms(1)


def run(history: History) -> None:
    life = Life()
    for kind, argument in history:
        getattr(life, f"do_{kind}")(argument)
        offsets = life.world.shard.offsets
        assert {place for _, place in offsets._hidden} <= offsets.pending_places("g")
    life.check()


@given(steps)
def test_deleted_offsets_do_not_return(history: History) -> None:
    run(history)


def test_an_accepted_transaction_over_a_deleted_offset_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model finds the rule that a group without tombstones accepts offsets."""
    monkeypatch.setattr(OffsetTable, "is_detached", lambda *_: False)
    with pytest.raises(AssertionError):
        run([("drop", None), ("transact", 3)])
