"""Operations that waited for the load of their shard run in steps of bounded time, in order."""

from functools import partial

from pykafka_core.broker.runtime.time_slice import TIME_SLICE_NS
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.handlers.outcome import GroupOperation, ShardResult
from tests.broker.control.test_slices import step
from tests.handlers.group_requests import broker_with_coordinator
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

MANY = 10_000
OPERATION_NS = 100_000
IN_A_TURN = TIME_SLICE_NS // OPERATION_NS
BUSY, OTHERS = 1, range(2, 12)


class Queues:
    """A broker whose shards load; operations take `OPERATION_NS`."""

    def __init__(self) -> None:
        before = broker_with_coordinator()
        self.broker = SimulatedBroker(core=FakeCore(logs=before.core.logs), ids=before.ids)
        self.ran: list[tuple[int, int]] = []
        """Partition and number of each operation."""
        self.results: list[ShardResult] = []

    def submit(self, partition: int, number: int) -> None:
        operation = GroupOperation(partition, partial(self._run, (partition, number)))
        self.broker.dispatcher._coordinators.run(operation, self.results.append)

    def _run(
        self, name: tuple[int, int], _: GroupShard, waiter: Waiter, turn: CoordinatorResult
    ) -> None:
        self.broker.core.clock_ns += OPERATION_NS
        self.ran.append(name)
        turn.respond(waiter, None)


def test_a_long_queue_runs_in_bounded_steps_between_which_other_shards_run() -> None:
    queues = Queues()
    for number in range(MANY):
        queues.submit(BUSY, number)
    for partition in OTHERS:
        queues.submit(partition, 0)
    in_steps = []
    while len(queues.results) < MANY + len(OTHERS):
        before = len(queues.ran)
        step(queues.broker)
        in_steps.append(len(queues.ran) - before)
    assert max(in_steps) <= IN_A_TURN
    places = [place for place, (partition, _) in enumerate(queues.ran) if partition != BUSY]
    assert places[-1] <= 2 * IN_A_TURN


def test_an_operation_that_arrives_during_the_work_on_a_queue_keeps_its_place() -> None:
    queues = Queues()
    for number in range(5 * IN_A_TURN):
        queues.submit(BUSY, number)
    while not queues.ran:
        step(queues.broker)
    queues.submit(BUSY, 5 * IN_A_TURN)
    assert len(queues.ran) == IN_A_TURN
    queues.broker.run()
    assert queues.ran == [(BUSY, number) for number in range(5 * IN_A_TURN + 1)]
    assert queues.results == [ShardResult(0)] * len(queues.ran)
