"""The life cycle of a shard: it is loaded before use, its responses follow its records, and it is
dropped when an append fails.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count as numbers

import pytest

from pykafka_core import _core
from pykafka_core.broker.runtime.completions import Completed, Completions, MarkerCodes
from pykafka_core.broker.runtime.coordinators.shard_host import (
    DUE_NS,
    LOAD_BYTES,
    LOAD_PATIENCE_NS,
    UNCOMMITTED_RESPONSES_MAX,
    ShardHost,
    ShardPlace,
)
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.load_backoff import CALM_NS, FIRST_NS, LONGEST_NS, Reloads
from pykafka_core.broker.runtime.timers import Timers
from pykafka_core.coordinator.deadlines import Deadlines
from pykafka_core.coordinator.shard import (
    BatchFullError,
    CoordinatorResult,
    TransactionEnd,
    Waiter,
    Within,
)
from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    InvalidProducerEpochError,
)
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.metadata.health import Replicas, State
from pykafka_core.types import FOREVER_NS
from tests.support.simulated.fake_core import FakeCore, ImageDelta, PartitionImage, TopicImage

TOPIC_ID = b"internal topic  "
PLACE = ShardPlace("__internal", TOPIC_ID, 0, 3)
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
UNKNOWN_SERVER, STORAGE_ERROR, NOT_LEADER = -1, 56, 6


class Register:
    """The smallest state machine: it stores the records, which operations can read."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self.ended: list[tuple[int, bool]] = []
        self.deadlines = Deadlines()
        self.deleted: list[str] = []

    def replay(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        if key == b"damaged":
            raise ValueError("no such record")
        self.values[key] = value

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        self.ended.append((producer_id, committed))

    def loaded(self, turn: CoordinatorResult) -> None:
        self.deadlines.set("expiry", turn.now_ns + 10**12)

    def run_due(self, turn: CoordinatorResult) -> None:
        for key in self.deadlines.take_due(turn.due_ns):
            turn.append([(b"due", str(key).encode())])
            return

    def topics_deleted(self, topics: Mapping[str, bytes], turn: CoordinatorResult) -> None:
        self.deleted += topics
        turn.append([(name.encode(), None) for name in topics])


def put(
    key: bytes, value: bytes, machine: Register, waiter: Waiter, turn: CoordinatorResult
) -> None:
    turn.append([(key, value)])
    machine.values[key] = value
    turn.respond(waiter, value)


def get(key: bytes, machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
    if key not in machine.values:
        raise GroupIdNotFoundError
    turn.respond(waiter, machine.values[key])


def arm(due_ns: int, machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
    machine.deadlines.set("soon", due_ns)
    turn.respond(waiter, b"armed")


def wait(machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
    """Run an operation that never gets a response."""


def fail(machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
    machine.values[b"half"] = b"done"
    raise RuntimeError("a bug")


class NothingUnread:
    """No unread requests, unless a test sets the arrival time of a shard's oldest one."""

    def __init__(self) -> None:
        self.oldest: dict[tuple[str, int], int] = {}

    def oldest_ns(self, topic: str, partition: int) -> int:
        return self.oldest.get((topic, partition), FOREVER_NS)


class World:
    """A host on a fake core, with its responses."""

    def __init__(self, *, hold_appends: bool = False, load: bool = True) -> None:
        self.core = FakeCore(hold_appends=hold_appends)
        partition = PartitionImage(
            index=0, leader=1, leader_epoch=3, partition_epoch=0, replicas=[1], isr=[1]
        )
        topic = TopicImage(name="__internal", topic_id=TOPIC_ID, partitions=[partition])
        self.core.apply(ImageDelta(metadata_offset=1, topics=[topic]))
        self.log = self.core.logs[TOPIC_ID, 0]
        self.completions = Completions()
        self.faults = Faults(self.core.now_ns)
        self.timers = Timers(self.faults)
        self.unread = NothingUnread()
        self.replicas = Replicas()
        self.responses: dict[Waiter, object] = {}
        self.refusals: dict[Waiter, int] = {}
        self.effects: list[object] = []
        self._waiters = iter(range(10**6))
        if load:
            self.host = self.make_host()
            self.run()

    def make_host(self, batch_bytes_max: int = 10_000) -> ShardHost[Register]:
        return ShardHost(
            PLACE,
            Register,
            batch_bytes_max=batch_bytes_max,
            ready=lambda _: None,
            core=self.core,  # type: ignore[arg-type]
            completions=self.completions,
            timers=self.timers,
            unread=self.unread,  # type: ignore[arg-type]
            faults=self.faults,
            responses=self,
            replicas=self.replicas,
        )

    def on_response(self, waiter: Waiter, response: object) -> None:
        assert waiter not in self.responses
        assert waiter not in self.refusals
        self.responses[waiter] = response

    def refused(self, waiter: Waiter, error_code: int) -> None:
        assert waiter not in self.responses
        assert waiter not in self.refusals
        self.refusals[waiter] = error_code

    def committed(self, place: ShardPlace, effect: object) -> None:
        assert place == PLACE
        self.effects.append(effect)

    def write(self, *records: tuple[bytes, bytes | None]) -> None:
        """Add records of an earlier life of the shard to the log, one batch each."""
        for record in records:
            self.core.append(0, (TOPIC_ID, 0), 3, [record])
            self.core.wait(0)

    def submit(self, operation: "partial[None] | object", arrived_ns: int = 0) -> Waiter:
        waiter = next(self._waiters)
        self.host.submit(operation, waiter, arrived_ns)  # type: ignore[arg-type]
        return waiter

    def run(self) -> None:
        """Run events, loads and appends until there is no more work."""
        idle = 0
        while idle < 2:  # an append at the end of a turn completes in the next one
            for event in (events := self.core.wait(self.core.clock_ns)):
                if isinstance(event, _core.Appended | _core.Maintained):
                    done = Completed(event.error_code, event.offset)
                elif isinstance(event, _core.MarkersWritten):
                    done = Completed(0, -1, MarkerCodes(event.error_codes))
                else:
                    assert isinstance(event, _core.RecordsRead)
                    done = Completed(event.error_code, -1, event)
                self.completions.complete(event.token, done)
            work = self.host.carry_on_loading()
            if work is not None:
                run_to_end(work)
            self.host.flush()
            self.host.work_off(FOREVER_NS)
            idle = 0 if events or work is not None else idle + 1

    def ask(self, key: bytes) -> object:
        waiter = self.submit(partial(get, key))
        self.run()
        return self.responses.get(waiter)


def test_reply_is_sent_after_its_records_are_committed() -> None:
    world = World(hold_appends=True)
    waiter = world.submit(partial(put, b"k", b"v"))
    world.run()
    assert not world.responses
    world.core.complete_append()
    world.run()
    assert world.responses == {waiter: b"v"}


def test_read_waits_for_uncommitted_records() -> None:
    world = World(hold_appends=True)
    world.submit(partial(put, b"k", b"v"))
    world.run()
    reader = world.submit(partial(get, b"k"))
    world.run()
    assert reader not in world.responses
    world.core.complete_append()
    world.run()
    assert world.responses[reader] == b"v"


def test_error_waits_for_uncommitted_records() -> None:
    world = World(hold_appends=True)
    world.submit(partial(put, b"k", b"v"))
    world.run()
    reader = world.submit(partial(get, b"missing"))
    world.run()
    assert reader not in world.refusals
    world.core.complete_append()
    world.run()
    assert world.refusals == {reader: GroupIdNotFoundError.code}


def test_read_without_pending_records_gets_its_reply_at_once() -> None:
    world = World()
    world.submit(partial(put, b"k", b"v"))
    world.run()
    reader = world.submit(partial(get, b"k"))
    assert world.responses[reader] == b"v"


def test_operations_of_one_turn_are_one_batch() -> None:
    world = World()
    for number in range(10):
        world.submit(partial(put, b"%d" % number, b"v"))
    world.run()
    assert len(world.responses) == 10
    assert len(world.log.batches) == 1


def test_operations_during_an_append_form_the_next_batch() -> None:
    world = World(hold_appends=True)
    world.submit(partial(put, b"a", b"v"))
    world.run()
    for number in range(10):
        world.submit(partial(put, b"%d" % number, b"v"))
    world.run()
    assert len(world.log.batches) == 1
    world.core.complete_append()
    world.run()
    assert len(world.log.batches) == 2
    world.core.complete_append()
    world.run()
    assert len(world.responses) == 11


def test_a_batch_never_passes_max_message_bytes() -> None:
    world = World(load=False)
    world.host = world.make_host(batch_bytes_max=1128)
    world.run()
    for number in range(10):
        world.submit(partial(put, b"%d" % number, bytes(400)))
    world.run()
    assert len(world.responses) == 10
    assert [end - base for base, end, _ in world.log.batches] == [2] * 5
    assert max(len(data) for _, _, data in world.log.batches) <= 1128


def test_operation_larger_than_a_batch_is_rejected_and_changes_nothing() -> None:
    world = World(load=False)
    world.host = world.make_host(batch_bytes_max=1128)
    world.run()
    waiter = world.submit(partial(put, b"k", bytes(1000)))
    world.run()
    assert world.refusals == {waiter: BatchFullError.code}
    assert world.ask(b"k") is None
    assert not world.log.batches


def test_machine_has_replayed_the_whole_log_before_it_is_used() -> None:
    world = World(load=False)
    value = bytes(LOAD_BYTES // 3)
    world.write(*((b"%d" % number, value) for number in range(10)), (b"3", b"later"), (b"4", None))
    world.host = world.make_host()
    reader = world.submit(partial(get, b"3"))
    assert not world.responses
    world.run()
    assert world.responses[reader] == b"later"
    assert world.host.machine is not None
    assert len(world.host.machine.values) == 10
    assert world.host.machine.values[b"4"] is None


def test_slow_load_fails_operations_with_load_in_progress() -> None:
    world = World(load=False)
    world.write((b"k", b"v"))
    world.host = world.make_host()
    early = world.submit(partial(get, b"k"))
    world.core.clock_ns += LOAD_PATIENCE_NS + 1
    late = world.submit(partial(get, b"k"))
    assert world.refusals == {late: LOADING}
    world.run()
    assert world.refusals == {late: LOADING, early: LOADING}
    assert world.ask(b"k") == b"v"


def test_shard_is_used_after_its_loaded_records_are_committed() -> None:
    """Markers were written for a decision that the previous leader had not replicated, and which
    was lost with this node.
    """
    world = World(load=False)
    world.core.hold_appends = True
    world.write((b"k", b"v"))
    world.host = world.make_host()
    early = world.submit(partial(get, b"k"))
    world.run()
    assert world.host.is_loading
    world.core.complete_append()
    world.run()
    assert world.responses == {early: b"v"}


def test_slow_commit_of_a_load_fails_operations_with_load_in_progress() -> None:
    world = World(load=False)
    world.core.hold_appends = True
    world.write((b"k", b"v"))
    world.host = world.make_host()
    early = world.submit(partial(get, b"k"))
    world.run()
    world.core.clock_ns += LOAD_PATIENCE_NS + 1
    world.timers.run(world.core.clock_ns)
    assert world.refusals == {early: LOADING}
    world.core.complete_append()
    world.run()
    assert world.ask(b"k") == b"v"


def test_new_epoch_ends_a_load_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    world = World(load=False)
    world.core.hold_appends = True
    world.write((b"k", b"v"))
    world.host = world.make_host()
    early = world.submit(partial(get, b"k"))
    world.run()
    partition = replace(world.core.applied[0].topics[0].partitions[0], leader_epoch=4)
    topic = replace(world.core.applied[0].topics[0], partitions=[partition])
    world.core.apply(ImageDelta(metadata_offset=2, topics=[topic]))
    world.run()
    assert world.refusals == {early: NOT_COORDINATOR}
    assert caplog.text == ""


def test_failed_wait_for_the_commit_keeps_the_shard_closed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    world = World(load=False)
    world.write((b"k", b"v"))
    world.host = world.make_host()
    waiting = world.submit(partial(get, b"k"))
    monkeypatch.setattr(world.core, "when_committed", fail)
    world.run()
    assert world.refusals == {waiting: NOT_COORDINATOR}
    assert "__internal-0 cannot be loaded: RuntimeError: a bug" in caplog.text
    assert world.replicas.broken() == {PLACE.id: [State.UNLOADED_COORDINATOR]}


def test_damaged_record_keeps_the_shard_closed_and_its_place_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(load=False)
    world.write((b"damaged", b"v"))
    world.host = world.make_host()
    waiting = world.submit(partial(get, b"k"))
    world.run()
    late = world.submit(partial(get, b"k"))
    assert world.refusals == {waiting: NOT_COORDINATOR, late: NOT_COORDINATOR}
    assert "__internal-0 cannot be loaded: ValueError: no such record" in caplog.text
    assert world.replicas.broken() == {PLACE.id: [State.UNLOADED_COORDINATOR]}
    world.host.close(NOT_COORDINATOR)
    assert world.replicas.broken() == {}


@pytest.mark.parametrize(
    ("error_code", "expected"), [(STORAGE_ERROR, NOT_AVAILABLE), (NOT_LEADER, NOT_COORDINATOR)]
)
def test_failed_append_discards_uncommitted_changes(error_code: int, expected: int) -> None:
    world = World(hold_appends=True)
    world.submit(partial(put, b"k", b"committed"))
    world.run()
    world.core.complete_append()
    world.run()
    first = world.submit(partial(put, b"k", b"lost"))
    world.run()
    second = world.submit(partial(put, b"l", b"lost"))
    waiting = world.submit(wait)
    world.core.complete_append(error_code)
    world.run()
    assert world.refusals == dict.fromkeys((first, second, waiting), expected)
    assert world.ask(b"k") == b"committed"
    assert world.ask(b"l") is None


def fail_appends(world: World, count: int) -> None:
    """Fail an append after each of ``count`` loads, like an append of the shard itself."""
    for _ in range(count):
        waiter = world.submit(partial(put, b"k", b"v"))
        world.run()
        world.core.complete_append(STORAGE_ERROR)
        world.run()
        assert world.refusals[waiter] == NOT_AVAILABLE


def test_log_that_rejects_appends_is_not_reloaded_in_a_loop() -> None:
    """A prepared transaction was completed after each load: thousands of loads a second, each with
    markers.
    """
    world = World(hold_appends=True)
    fail_appends(world, 2)
    assert world.host.is_loading
    world.timers.run(FIRST_NS - 1)
    world.run()
    assert world.host.is_loading
    world.timers.run(FIRST_NS)
    world.run()
    assert not world.host.is_loading


def test_shard_that_waits_for_its_load_can_be_closed() -> None:
    world = World(hold_appends=True)
    fail_appends(world, 2)
    waiter = world.submit(partial(get, b"k"))
    world.host.close(NOT_COORDINATOR)
    assert world.refusals[waiter] == NOT_COORDINATOR
    assert len(world.timers) == 0


@pytest.mark.parametrize(("count", "replayed"), [(0, 0), (1, 0), (1, 1), (10, 1)])
def test_shard_that_is_closed_during_its_load_stays_closed(count: int, replayed: int) -> None:
    """It ran its deadlines and wrote records, although another node had the partition by then."""
    world = World(load=False)
    world.write(*[(b"k", bytes(LOAD_BYTES // 3))] * count)
    world.host = world.make_host()
    (read,) = world.core.wait(0)
    assert isinstance(read, _core.RecordsRead)
    world.completions.complete(read.token, Completed(read.error_code, -1, read))
    work = world.host.carry_on_loading()
    assert work is not None
    for _ in range(replayed):
        next(work)
    waiter = world.submit(partial(get, b"k"))
    world.host.close(NOT_COORDINATOR)
    run_to_end(work)
    world.run()
    assert world.refusals == {waiter: NOT_COORDINATOR}
    assert world.host.machine is None
    assert len(world.timers) == 0


def test_deadlines_run_after_a_delayed_load() -> None:
    world = World(hold_appends=True)
    fail_appends(world, 2)
    world.timers.run(FIRST_NS)
    world.run()
    world.submit(partial(arm, FIRST_NS + 5))
    world.core.clock_ns = FIRST_NS + 5
    world.timers.run(world.core.clock_ns)
    world.core.complete_append()
    world.run()
    assert world.log.end == 1


def test_pauses_between_loads_grow_to_a_bound_and_reset_after_a_calm_time() -> None:
    reloads, now_ns = Reloads(), 0
    pauses = []
    for _ in range(9):
        pauses.append(reloads.pause_ns(now_ns))
        now_ns += pauses[-1]
    assert pauses == [0, *(FIRST_NS << doubled for doubled in range(6)), LONGEST_NS, LONGEST_NS]
    assert reloads.pause_ns(now_ns + CALM_NS + 1) == 0


def test_bug_in_an_operation_discards_its_changes() -> None:
    world = World()
    world.submit(partial(put, b"k", b"v"))
    world.run()
    waiter = world.submit(fail)
    world.run()
    assert world.refusals == {waiter: UNKNOWN_SERVER}
    assert world.faults.count == 1
    assert world.ask(b"half") is None
    assert world.ask(b"k") == b"v"


def test_too_many_uncommitted_records_keep_operations_in_the_queue() -> None:
    world = World(hold_appends=True)
    world.submit(partial(put, b"first", b"v"))
    world.run()
    for number in range(UNCOMMITTED_RESPONSES_MAX + 100):
        world.submit(partial(put, b"%d" % number, b"v"))
    machine = world.host.machine
    assert machine is not None
    assert len(machine.values) == UNCOMMITTED_RESPONSES_MAX + 2
    while len(world.responses) < UNCOMMITTED_RESPONSES_MAX + 101:
        world.core.complete_append()
        world.run()
    assert not world.refusals


def test_operations_continue_after_more_reads_than_may_wait_for_an_append() -> None:
    """While an append stalled, heartbeats filled the next batch, and the shard never continued."""
    world = World(hold_appends=True)
    written = world.submit(partial(put, b"k", b"v"))
    world.run()
    readers = [world.submit(partial(get, b"k")) for _ in range(3 * UNCOMMITTED_RESPONSES_MAX)]
    world.core.complete_append()
    world.run()
    assert list(world.responses) == [written, *readers]


def test_deadline_does_not_overtake_a_queued_operation() -> None:
    """A member's session expired while its heartbeat waited for a stalled append."""
    world = World(hold_appends=True)
    world.submit(partial(arm, 5))
    world.submit(partial(put, b"k", b"v"))
    world.run()
    for _ in range(UNCOMMITTED_RESPONSES_MAX + 1):
        world.submit(partial(get, b"k"))
    late = world.submit(partial(arm, 20), arrived_ns=4)
    world.core.clock_ns = 10
    world.timers.run(10)
    world.run()
    assert late not in world.responses
    assert not len(world.timers), "the control thread would turn without a result"
    world.core.complete_append()
    world.run()
    assert late in world.responses
    world.timers.run(10)
    world.run()
    assert len(world.log.batches) == 1
    world.core.clock_ns = 20
    world.timers.run(20)
    world.run()
    assert len(world.log.batches) == 2


def test_a_deadline_counts_from_the_commit_of_its_turn() -> None:
    world = World()
    world.run()
    world.submit(partial(put, b"k", b"v"))
    world.host.flush()
    world.submit(partial(arm, 20))
    machine = world.host.machine
    assert machine is not None
    world.core.clock_ns = 30
    world.timers.run(30)
    assert machine.deadlines.get("soon") == 20, "its response has not left yet"
    world.run()
    assert machine.deadlines.get("soon") == 50
    world.core.clock_ns = 50
    world.timers.run(50)
    world.run()
    assert machine.deadlines.get("soon") is None


def test_a_deadline_of_a_turn_that_writes_runs_without_a_further_turn() -> None:
    """No timer was set after the commit."""
    world = World()
    world.run()

    def write_and_arm(machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
        put(b"k", b"v", machine, waiter, turn)
        machine.deadlines.set("soon", 20)

    world.submit(write_and_arm)
    world.run()
    world.core.clock_ns = 1_000
    world.timers.run(1_000)
    world.run()
    machine = world.host.machine
    assert machine is not None
    assert machine.deadlines.get("soon") is None


def test_a_deadline_is_judged_by_the_oldest_operation_in_the_queue() -> None:
    """The first operation may not be the oldest one: requests about several groups take turns."""
    world = World(hold_appends=True)
    world.core.clock_ns = 9
    world.submit(partial(put, b"k", b"v"))
    world.run()
    for _ in range(UNCOMMITTED_RESPONSES_MAX + 1):
        world.submit(partial(get, b"k"))
    world.submit(partial(get, b"k"), arrived_ns=8)
    world.submit(partial(get, b"k"), arrived_ns=4)
    assert world.host._judged_ns() == 4


def test_a_deadline_does_not_overtake_a_request_that_is_not_submitted_yet() -> None:
    world = World()
    world.submit(partial(arm, 5_000))
    world.unread.oldest = {(PLACE.topic, PLACE.partition): 4_999}
    world.core.clock_ns = 6_000
    for _ in range(2):
        world.timers.run(6_000)
        world.run()
    assert not world.log.batches
    assert len(world.timers) == 1, "it is looked at again"
    world.unread.oldest = {(PLACE.topic, PLACE.partition + 1): 4_999}
    world.timers.run(6_000)
    world.run()
    assert len(world.log.batches) == 1


def test_a_deadline_runs_once_the_horizon_has_passed_it() -> None:
    world = World()
    world.submit(partial(arm, 5_000))
    world.timers.run(4_999)
    assert not world.log.batches
    world.core.clock_ns = 5_000
    world.timers.run(5_000)
    world.run()
    assert len(world.log.batches) == 1
    world.timers.run(6_000)
    world.run()
    assert len(world.log.batches) == 1


def test_many_deadlines_at_once_leave_time_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """25,000 transactions that had timed out at the start were aborted in one turn of half a
    second.
    """
    world = World()
    machine = world.host.machine
    assert machine is not None
    for number in range(1000):
        machine.deadlines.set(number, 5_000)
    world.submit(partial(arm, 5_000))
    world.core.clock_ns = 5_000
    now_ns, passed = world.core.now_ns, numbers()
    monkeypatch.setattr(world.core, "now_ns", lambda: now_ns() + next(passed) * DUE_NS // 10)
    world.timers.run(5_000)
    assert 0 < 1000 - len(machine.deadlines) < 20
    for _ in range(200):
        world.timers.run(5_000)
        world.run()
    assert world.log.end == 1001


def test_close_fails_waiting_and_new_operations() -> None:
    world = World(hold_appends=True)
    written = world.submit(partial(put, b"k", b"v"))
    waiting = world.submit(wait)
    world.run()
    world.host.close(NOT_COORDINATOR)
    late = world.submit(partial(get, b"k"))
    assert world.refusals == dict.fromkeys((written, waiting, late), NOT_COORDINATOR)
    world.core.complete_append()
    world.run()
    assert not world.responses


def test_deleted_topics_are_passed_to_the_machine() -> None:
    world = World()
    world.host.topics_deleted({"gone": TOPIC_ID})
    world.run()
    assert world.host.machine is not None
    assert world.host.machine.deleted == ["gone"]
    assert len(world.log.batches) == 1


def write_within(
    producer: Within, machine: Register, waiter: Waiter, turn: CoordinatorResult
) -> None:
    put(b"k", b"v", machine, waiter, turn)
    turn.stamp = producer


def end(marker: TransactionEnd, machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
    turn.stamp = marker
    turn.respond(waiter, b"ended")


def want(effect: object, machine: Register, waiter: Waiter, turn: CoordinatorResult) -> None:
    put(b"effect", b"", machine, waiter, turn)
    turn.then(effect)


MARKER = TransactionEnd(7, 2, 0, committed=True, transaction_version=2)


def test_records_of_different_transactions_are_appended_sequentially() -> None:
    world = World(hold_appends=True)
    waiters = [
        world.submit(operation)
        for operation in (
            partial(write_within, Within(7, 1)),
            partial(write_within, Within(8, 1)),
            partial(put, b"plain", b"v"),
            partial(end, MARKER),
        )
    ]
    world.run()
    for count in range(1, len(waiters) + 1):
        world.core.complete_append()
        world.run()
        assert list(world.responses) == waiters[:count]


def test_reply_to_a_read_also_waits_for_a_marker() -> None:
    world = World(hold_appends=True)
    ended, reader = world.submit(partial(end, MARKER)), world.submit(partial(get, b"missing"))
    world.run()
    assert not world.responses
    assert not world.refusals
    world.core.complete_append()
    world.run()
    assert (list(world.responses), list(world.refusals)) == ([ended], [reader])


def test_effect_follows_its_commit_and_is_dropped_on_failure() -> None:
    world = World(hold_appends=True)
    world.submit(partial(want, "first"))
    world.run()
    assert world.effects == []
    world.core.complete_append()
    world.run()
    assert world.effects == ["first"]
    world.submit(partial(want, "second"))
    world.run()
    world.core.complete_append(56)
    world.run()
    assert world.effects == ["first"]


def test_producer_error_of_an_append_fails_only_operations_of_that_producer() -> None:
    world = World(hold_appends=True)
    asked = world.submit(partial(write_within, Within(7, 1)))
    other = world.submit(partial(put, b"k2", b"v"))
    world.run()
    world.core.complete_append(InvalidProducerEpochError.code)
    world.run()
    assert world.refusals == {
        asked: InvalidProducerEpochError.code,
        other: CoordinatorNotAvailableError.code,
    }


def test_read_that_waits_for_an_append_does_not_get_its_producer_error() -> None:
    """A heartbeat got INVALID_PRODUCER_EPOCH if its response had joined such a batch."""
    world = World(hold_appends=True)
    asked = world.submit(partial(write_within, Within(7, 1)))
    world.run()
    ended = world.submit(partial(end, MARKER))
    readers = [world.submit(partial(get, b"missing")), world.submit(partial(arm, 10**12))]
    world.run()
    world.core.complete_append()
    world.run()
    world.core.complete_append(InvalidProducerEpochError.code)
    world.run()
    assert list(world.responses) == [asked]
    assert world.refusals == {
        ended: InvalidProducerEpochError.code,
        **dict.fromkeys(readers, NOT_AVAILABLE),
    }


@pytest.mark.parametrize("error_code", [STORAGE_ERROR, UNKNOWN_SERVER])
def test_log_error_of_a_producer_append_becomes_coordinator_not_available(error_code: int) -> None:
    """Kafka's clients fail at unknown errors, and know only a few errors of TxnOffsetCommit."""
    world = World(hold_appends=True)
    asked = world.submit(partial(write_within, Within(7, 1)))
    world.run()
    world.core.complete_append(error_code)
    world.run()
    assert world.refusals == {asked: NOT_AVAILABLE}
