"""Differences between the memory of coordinators and a replay of their logs."""

from collections.abc import Iterator, Mapping
from typing import Any

from pykafka_core._records import RecordBatchReader
from pykafka_core.broker.runtime.coordinators.shard_host import ShardHost, _replay_one
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.transaction.transaction import NO_EPOCH
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from tests.simulation.rules.offsets import OffsetsModel
from tests.support.simulated.broker import SimulatedBroker

_SETTLED = (ClassicGroupState.EMPTY, ClassicGroupState.STABLE)


def differences(broker: SimulatedBroker) -> Iterator[tuple[str, object, object]]:
    """Yield the differences of all loaded shards without appends in flight."""
    for host in _quiet_hosts(broker):
        yield from _compare(broker, host)


def unloaded(broker: SimulatedBroker) -> Iterator[str]:
    """Yield the shards that are not loaded."""
    return (str(host.place) for host in _hosts(broker) if host.machine is None)


def _hosts(broker: SimulatedBroker) -> Iterator[ShardHost[Any]]:
    coordinators = broker.dispatcher._coordinators
    yield from coordinators._groups._hosts.values()
    yield from coordinators._transactions._hosts.values()


def _quiet_hosts(broker: SimulatedBroker) -> Iterator[ShardHost[Any]]:
    for host in _hosts(broker):
        if host.machine is not None and host._in_flight is None and not host._gathered:
            yield host


def other_offsets(
    broker: SimulatedBroker, models: Mapping[int, OffsetsModel]
) -> Iterator[tuple[str, object, object]]:
    """Yield committed offsets that differ from those of a model of the log."""
    for host in _quiet_hosts(broker):
        machine, model = host.machine, models.get(host.place.partition)
        if isinstance(machine, GroupShard) and model is not None:
            have = {
                (group, topic, partition): committed.offset
                for group, topics in machine.offsets._groups.items()
                for topic, partitions in topics.items()
                for partition, committed in partitions.items()
            }
            if have != model.counting():
                yield str(host.place), have, model.counting()


def waiting_offsets(broker: SimulatedBroker) -> Iterator[object]:
    """Yield the offsets of transactions that have not ended."""
    for host in broker.dispatcher._coordinators._groups._hosts.values():
        machine = host.machine
        if machine is not None and machine.offsets._writers:
            yield machine.offsets._writers


def _compare(broker: SimulatedBroker, host: ShardHost[Any]) -> Iterator[tuple[str, object, object]]:
    log = broker.core.logs[host.place.topic_id, host.place.partition]
    fresh = host._make()
    for base, _, data in log.batches:
        for record in RecordBatchReader(data, start=base, control=True):
            _replay_one(fresh, record)
    have, want = _said(host.machine), _said(fresh)
    for kind, found in have.items():
        expected = want[kind]
        if kind == "classic":
            # A group may be in a rebalance, which is not in the log.
            expected = {name: expected.get(name) for name in found}
        if found != expected:
            yield f"{host.place} {kind}", found, expected


def _said(machine: GroupShard | TransactionShard | None) -> dict[str, dict[Any, Any]]:
    if isinstance(machine, TransactionShard):
        by_id = machine.by_id.items()
        return {"by_id": {key: one._replace(last_producer_epoch=NO_EPOCH) for key, one in by_id}}
    assert isinstance(machine, GroupShard)
    offsets = machine.offsets
    return {
        "offsets": {name: topics for name, topics in offsets._groups.items() if topics},
        "pending": {
            (producer_id, group): sorted(places)
            for producer_id, groups in offsets._pending.items()
            for group, places in groups.items()
            if places
        },
        "classic": {
            name: (group.generation_id, sorted(group.members), group.leader_id)
            for name, group in machine.groups.items()
            if group.state in _SETTLED and group.protocol_type
        },
        "consumer": {
            name: (group.epoch, group.assignment_epoch, group.members, group.targets)
            for name, group in machine.consumer_groups.items()
        },
    }
