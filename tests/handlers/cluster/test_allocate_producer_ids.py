"""AllocateProducerIds: KIP-730."""

from pykafka_core.metadata.producer_ids import PRODUCER_ID_MAX
from pykafka_core.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ProducerIdsRecord,
)
from tests.handlers.cluster_world import NOT_CONTROLLER, STALE_BROKER_EPOCH, ClusterWorld, Process

UNKNOWN_SERVER_ERROR = -1


def allocate(world: ClusterWorld, process: Process, code: int = 0) -> tuple[int, int, int]:
    request = AllocateProducerIdsRequest(broker_id=process.node_id, broker_epoch=process.epoch)
    response = world.ask(request, code=code)
    assert isinstance(response, AllocateProducerIdsResponse)
    return response.error_code, response.producer_id_start, response.producer_id_len


def test_brokers_get_consecutive_blocks() -> None:
    world = ClusterWorld([1, 2])
    one, two = world.processes[1], world.processes[2]
    assert allocate(world, one) == (0, 0, 1000)
    assert allocate(world, two) == (0, 1000, 1000)
    assert allocate(world, one) == (0, 2000, 1000)
    (record,) = world.last_batch
    assert isinstance(record, ProducerIdsRecord)
    assert (record.broker_id, record.broker_epoch, record.next_producer_id) == (1, one.epoch, 3000)


def test_older_process_gets_no_block() -> None:
    world = ClusterWorld([1])
    old = world.processes[1]
    assert allocate(world, old._replace(epoch=old.epoch - 1)) == (STALE_BROKER_EPOCH, -1, 0)
    assert allocate(world, old._replace(node_id=9)) == (STALE_BROKER_EPOCH, -1, 0)
    assert world.image.next_producer_id == 0


def test_uncommitted_block_is_allocated_again() -> None:
    world = ClusterWorld([1])
    assert allocate(world, world.processes[1], code=NOT_CONTROLLER) == (NOT_CONTROLLER, -1, 0)
    assert allocate(world, world.processes[1]) == (0, 0, 1000)


def test_allocation_fails_after_the_last_producer_id() -> None:
    world = ClusterWorld([1])
    world.commit(ProducerIdsRecord(next_producer_id=PRODUCER_ID_MAX - 1000))
    assert allocate(world, world.processes[1]) == (0, PRODUCER_ID_MAX - 1000, 1000)
    assert allocate(world, world.processes[1]) == (UNKNOWN_SERVER_ERROR, -1, 0)
