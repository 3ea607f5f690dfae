"""Random commits, deletions and transactions, compared with plain dictionaries; a replay of the
records leads to the same state.
"""

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.group.offsets.table import Committed
from pykafka_core.coordinator.shard import BatchFullError
from tests.coordinator.offsets.shard_world import Row, ShardWorld, at, commit, delete, stored

GROUPS, TOPICS, PARTITIONS, PRODUCERS = "ab", "xy", range(2), range(2)

places = st.tuples(st.sampled_from(TOPICS), st.sampled_from(PARTITIONS))
some_places = st.lists(places, min_size=1, max_size=5)
groups = st.sampled_from(GROUPS)
producers = st.sampled_from(PRODUCERS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), groups, some_places),
        st.tuples(st.just("delete"), groups, some_places),
        st.tuples(st.just("write"), groups, some_places, producers),
        st.tuples(st.just("end"), producers, st.booleans()),
    ),
    max_size=30,
)
Step = tuple[str, *tuple[object, ...]]


class Life:
    """A shard and its expected content.

    An offset of a transaction takes effect with its marker, unless a later offset in the log has
    already taken effect.

    Attributes:
        rows: Number in the log and offset, by place.
        open: The same for the open transaction of each producer.
    """

    def __init__(self) -> None:
        self.world = ShardWorld(bytes_max=250)
        self.numbers = count(1)
        self.groups: set[str] = set()
        self.rows: dict[Row, tuple[int, int]] = {}
        self.open: dict[int, dict[Row, tuple[int, int]]] = {one: {} for one in PRODUCERS}

    def step(self, kind: str, *arguments: object) -> None:
        getattr(self, f"do_{kind}")(*arguments)

    def do_commit(self, group_id: str, chosen: list[tuple[str, int]]) -> None:
        offsets = [at(next(self.numbers), *place) for place in chosen]
        code = self.world.ask(commit(*offsets, group_id=group_id))
        assert code in (None, BatchFullError.code)
        if code is None:
            self.groups.add(group_id)
            for new in offsets:
                number = next(self.numbers)
                self.rows[group_id, new.topic, new.partition] = number, new.offset

    def do_delete(self, group_id: str, chosen: list[tuple[str, int]]) -> None:
        response = self.world.ask(delete(group_id, *chosen))
        if group_id not in self.groups:
            assert response == 69
        elif response != BatchFullError.code:
            assert response == frozenset()
            self.forget({(group_id, *place) for place in chosen})

    def forget(self, gone: set[Row]) -> None:
        for held in (self.rows, *self.open.values()):
            for row in gone & held.keys():
                del held[row]

    def do_write(self, group_id: str, chosen: list[tuple[str, int]], producer_id: int) -> None:
        self.groups.add(group_id)
        for topic, partition in chosen:
            number = next(self.numbers)
            self.world.write(producer_id, (group_id, topic, partition), stored(number))
            self.open[producer_id][group_id, topic, partition] = number, number

    def do_end(self, producer_id: int, committed: bool) -> None:
        self.world.end(producer_id, committed=committed)
        ended, self.open[producer_id] = self.open[producer_id], {}
        for row, (number, offset) in ended.items():
            if committed and number > self.rows.get(row, (0, 0))[0]:
                self.rows[row] = number, offset

    def check(self, world: ShardWorld) -> None:
        assert set(world.shard.groups) == self.groups
        found = {row: committed.offset for row, committed in world.rows().items()}
        assert found == {row: offset for row, (_, offset) in self.rows.items()}
        assert world.pending() == {row for held in self.open.values() for row in held}
        offsets = world.shard.offsets
        assert len(offsets) == len(self.rows)
        for name in GROUPS:
            listed = [(name, *place) for place in offsets.places(name)]
            assert sorted(listed) == sorted(
                row for row in self.rows.keys() | world.pending() if row[0] == name
            )


@given(steps)
def test_offsets_equal_those_of_the_dictionary(history: list[Step]) -> None:
    life = Life()
    for step in history:
        life.step(*step)
        life.check(life.world)


@given(steps, st.booleans())
def test_stored_records_replay_to_the_same_offsets(history: list[Step], committed: bool) -> None:
    life = Life()
    for step in history:
        life.step(*step)
    again = life.world.reload()
    assert again.rows() == life.world.rows()
    life.check(again)
    # The offsets that only take effect with later markers must be equal, too.
    life.world = again
    for producer_id in PRODUCERS:
        life.do_end(producer_id, committed)
        life.check(again)


@given(steps)
def test_fetched_offsets_do_not_change_with_later_commits(history: list[Step]) -> None:
    life = Life()
    kept: list[tuple[object, dict[str, dict[int, Committed]]]] = []
    for step in history:
        life.step(*step)
        fetched = life.world.fetched("a")
        kept.append((fetched.offsets, {t: dict(ps) for t, ps in fetched.offsets.items()}))
    assert all(fetched == copied for fetched, copied in kept)
