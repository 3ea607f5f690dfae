"""Random histories of transactional ids: their invariants hold after each step."""

from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.coordinator.transaction.effects import WriteMarkers
from pykafka_core.coordinator.transaction.records import read_transaction, read_transactional_id
from pykafka_core.coordinator.transaction.states import FOLLOWING, TransactionState
from pykafka_core.coordinator.transaction.transaction import TV1, TV2, Transaction
from pykafka_core.protocol.messages import EndTxnResponse
from tests.coordinator.transaction.world import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    HOUR_MS,
    ONGOING,
    PREPARE_COMMIT,
    T0,
    T1,
    U0,
    Operation,
    World,
    abort,
    add,
    commit,
    init,
    producer,
    transaction,
    verify,
    without_last_epoch,
    written,
)

LAST = 32766
NAMES = ["x", "y"]
names = st.sampled_from(NAMES)
versions = st.sampled_from([TV1, TV2, TV2])
# An assigned identity, counted from the newest one, and the deviation of the epoch.
who = st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, 0, 0, -1, 1]))
places = st.lists(st.sampled_from([T0, T1, U0]), max_size=3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("init"), names, st.none() | who),
        st.tuples(st.just("add"), names, who, places, versions),
        st.tuples(st.just("add"), names, who, places, versions),
        st.tuples(st.just("verify"), names, who, places),
        st.tuples(st.just("end"), names, who, st.booleans(), versions),
        st.tuples(st.just("end"), names, who, st.booleans(), versions),
        st.tuples(st.just("write"), st.integers(0, 9)),
        st.tuples(st.just("write"), st.integers(0, 9)),
        st.tuples(st.just("stale"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from([1, 30_000, 61_000, HOUR_MS, 25 * HOUR_MS])),
        st.tuples(st.just("load")),
        st.tuples(st.just("ids"), st.booleans()),
    ),
    max_size=60,
)  # fmt: skip


class Life:
    """A shard, all identities that its clients had, and the outcome of each transaction."""

    def __init__(self, epoch: int) -> None:
        self.world = World(*[transaction(transactional_id=name, epoch=epoch) for name in NAMES])
        self.given: dict[str, list[tuple[int, int]]] = {name: [(7, epoch)] for name in NAMES}
        self.outcomes: dict[tuple[str, int, int], TransactionState] = {}
        """The decision of the last transaction of a producer id with this epoch of its records."""
        self.told: list[WriteMarkers] = []
        self.seen_records = len(self.world.records)
        self.epochs: dict[str, Transaction] = dict(self.world.shard.by_id)

    def step(self, kind: str, *arguments: object) -> None:
        before = dict(self.world.shard.by_id)
        asked = len(self.world.effects)
        getattr(self, f"do_{kind}")(*arguments)
        self.check_records()
        if kind == "load":
            assert without_last_epoch(before) == self.world.shard.by_id
        else:
            self.check_effects(asked if kind not in ("write", "wait") else 0)
        self.check_loads()

    def identity(self, name: str, which: tuple[int, int]) -> tuple[int, int]:
        given = self.given[name]
        producer_id, epoch = given[max(len(given) - 1 - which[0], 0)]
        return producer_id, epoch + which[1]

    def do_init(self, name: str, which: tuple[int, int] | None) -> None:
        wanted = (-1, -1) if which is None else self.identity(name, which)
        if wanted[0] >= 0 and wanted[1] < 0:
            return
        is_known = name in self.world.shard.by_id
        response = self.ask(init(*wanted, name=name))
        if isinstance(response, tuple):
            assert response[1] <= LAST
            # T11: a repeated request gets the same identity; a new client, or one whose id expired,
            # gets an unused identity.
            if which is None or not is_known:
                assert response not in self.given[name]
            else:
                assert self.ask(init(*wanted, name=name)) == response
            self.given[name].append(response)

    def do_add(
        self, name: str, which: tuple[int, int], wanted: list[tuple[str, int]], version: int
    ) -> None:
        identity = self.identity(name, which)
        if self.ask(add(*identity, *wanted, name=name, version=version)) == 0:
            one = self.world.one(name)
            assert one.state is ONGOING
            assert one.partitions.issuperset(wanted)
            assert (one.producer_id, one.producer_epoch) == identity

    def do_verify(self, name: str, which: tuple[int, int], wanted: list[tuple[str, int]]) -> None:
        identity = self.identity(name, which)
        response = self.world.ask(verify(*identity, *wanted, name=name))
        if isinstance(response, dict) and 0 in response.values():
            assert self.world.one(name).state is ONGOING

    def do_end(self, name: str, which: tuple[int, int], is_commit: bool, version: int) -> None:
        identity = self.identity(name, which)
        end = commit if is_commit else abort
        response = self.world.ask(end(*identity, name=name, version=version))
        self.check_records()
        if not isinstance(response, EndTxnResponse):
            return
        # A successful response reports the outcome of the client's own transaction, unless there
        # was nothing to decide.
        decided = self.outcomes.get((name, *identity))
        assert decided in (None, COMPLETE_COMMIT if is_commit else COMPLETE_ABORT)
        if version == TV2:
            given = producer(response)
            assert isinstance(given, tuple)
            assert given[1] <= LAST
            self.given[name].append(given)

    def do_write(self, which: int) -> None:
        if self.world.effects:
            effect = self.world.effects.pop(which % len(self.world.effects))
            self.told.append(effect)
            assert self.world.ask(written(effect)) is None
            expected = COMPLETE_COMMIT if effect.committed else COMPLETE_ABORT
            assert self.world.one(effect.transactional_id).state is expected

    def do_stale(self, which: int) -> None:
        """Report the markers of completed transactions again."""
        before = dict(self.world.shard.by_id)
        if self.told:
            self.world.ask(written(self.told[which % len(self.told)]))
            assert self.world.shard.by_id == before

    def do_wait(self, duration_ms: int) -> None:
        self.world.pass_ms(duration_ms)

    def do_load(self) -> None:
        self.world = self.world.reload()

    def do_ids(self, are_there: bool) -> None:
        self.world.ids_at_hand = are_there

    def ask(self, operation: Operation) -> object:
        return producer(self.world.ask(operation))

    def check_records(self) -> None:
        """Check that each record follows from the one before it: T2, T10, and the epoch never
        decreases.
        """
        for key, value in self.world.records[self.seen_records :]:
            name = read_transactional_id(key)
            old = self.epochs.pop(name, None)
            if value is None:
                assert old is not None
                assert old.state.is_ended
                continue
            new = read_transaction(name, value)
            self.epochs[name] = new
            if old is not None:
                self.check_transition(old, new)
        self.seen_records = len(self.world.records)

    def check_transition(self, old: Transaction, new: Transaction) -> None:
        assert new.state in FOLLOWING[old.state]
        if new.producer_id == old.producer_id:
            assert old.producer_epoch <= new.producer_epoch <= old.producer_epoch + 1
        else:
            assert new.producer_epoch == 0
            assert old.producer_epoch >= LAST
            assert new.producer_id > old.producer_id
        if old.state.is_prepared:
            assert new.state is (COMPLETE_COMMIT if old.state is PREPARE_COMMIT else COMPLETE_ABORT)
            assert not new.partitions
        elif new.state.is_prepared:
            # T3: markers are written to all partitions that were ever added.
            assert new.partitions == old.partitions
            outcome = COMPLETE_COMMIT if new.state is PREPARE_COMMIT else COMPLETE_ABORT
            whose = (new.transactional_id, old.producer_id, old.producer_epoch)
            self.outcomes[whose] = outcome
            assert outcome is COMPLETE_ABORT or old.state is ONGOING
        elif old.state is ONGOING:
            assert new.partitions > old.partitions or not old.partitions
            assert new.producer_epoch == old.producer_epoch

    def check_effects(self, asked: int) -> None:
        """Check T1: markers are only requested with the decision, and only once."""
        for effect in self.world.effects[asked:]:
            one = self.world.one(effect.transactional_id)
            assert one.state.is_prepared
            assert effect.partitions == one.partitions
            assert effect.committed == (one.state is PREPARE_COMMIT)
            assert (effect.producer_id, effect.producer_epoch) == (
                one.producer_id,
                one.producer_epoch,
            )
        prepared = [name for name, one in self.world.shard.by_id.items() if one.state.is_prepared]
        assert sorted(effect.transactional_id for effect in self.world.effects) == sorted(prepared)

    def check_loads(self) -> None:
        """Check that the records contain the whole state except the last epoch, and that a load
        sets deadlines and requests markers.
        """
        world, loaded = self.world, self.world.reload()
        assert loaded.shard.by_id == without_last_epoch(world.shard.by_id)
        assert loaded.shard.bytes_used == world.shard.bytes_used
        assert sorted(loaded.effects, key=str) == sorted(world.effects, key=str)
        assert len(loaded.shard.deadlines) == len(world.shard.deadlines)


@given(st.sampled_from([0, 5, LAST - 3, LAST - 1, LAST]), steps)
def test_random_history_keeps_the_invariants(epoch: int, script: list[tuple[object, ...]]) -> None:
    life = Life(epoch)
    for kind, *arguments in script:
        life.step(str(kind), *arguments)
