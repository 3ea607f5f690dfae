"""Consumers of read_committed, and background deletion and compaction."""

from typing import Any

from pykafka_core.protocol.messages import DeleteRecordsRequest
from tests.simulation.clients.script import Ask, Script, Wait
from tests.simulation.prepared import PARTITIONS, TOPIC
from tests.simulation.rules.ledger import DataView, read_batch
from tests.simulation.world import World


def reader(world: World, name: str) -> Script:
    """Poll occasionally, starting at the log start after retention."""
    positions = [0] * PARTITIONS
    while not world.is_calm:
        yield Wait(world.random.choice((1, 100, 700, 3_000)))
        index = world.random.randrange(PARTITIONS)
        view = world.invariants.views.get(world.partition(index), DataView())
        start = max(positions[index], world.core.logs[world.partition(index)].start)
        world.invariants.recorder.read(name, index, view.visible(start))
        positions[index] = view.last_stable_offset


def deleter(world: World) -> Script:
    """Delete records, and compact superseded ones."""
    while not world.is_calm:
        yield Wait(world.random.choice((50, 1_000, 5_000)))
        if world.chance(0.5):
            yield Ask(_deletion(world), 2)
        else:
            compact(world)


def _deletion(world: World) -> DeleteRecordsRequest:
    index = world.random.randrange(PARTITIONS)
    offset = world.core.offsets(world.partition(index)).last_stable_offset
    partition = DeleteRecordsRequest.DeleteRecordsPartition(
        partition_index=index, offset=world.random.randrange(offset + 1)
    )
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name=TOPIC, partitions=[partition])
    return DeleteRecordsRequest(topics=[topic], timeout_ms=1_000)


def compact(world: World) -> None:
    """Drop batches of the coordinators' logs all of whose keys occur again later."""
    for topic_id in world.invariants.coordinators_ids:
        for partition, log in world.core.logs.items():
            if partition[0] == topic_id:
                log.batches = _compacted(log)


def _compacted(log: Any) -> list[tuple[int, int, bytes]]:
    stop, later, kept = log.last_stable_offset, set[bytes | None](), []
    for base, next_offset, data in reversed(log.batches):
        batch = read_batch(data)
        keys = {key for key, _ in batch.records}
        is_plain = not batch.is_transactional and not batch.is_control
        if next_offset > stop or not is_plain:
            kept.append((base, next_offset, data))
        elif not keys <= later:
            kept.append((base, next_offset, data))
            later |= keys
    return kept[::-1]
