"""What coordinators have in memory beside what a fresh replay of their logs comes to."""

from collections.abc import Iterator
from typing import Any

from pykafka_core._records import RecordBatchReader
from pykafka_core.broker.runtime.shard_host import ShardHost, _replay_one
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.transaction.transaction import NO_EPOCH
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.testing.simulated_broker import SimulatedBroker

_SETTLED = (ClassicGroupState.EMPTY, ClassicGroupState.STABLE)


def differences(broker: SimulatedBroker) -> Iterator[tuple[str, object, object]]:
    """Of all shards that have nothing in flight."""
    coordinators = broker.dispatcher._coordinators
    for shards in (coordinators._groups, coordinators._transactions):
        for host in shards._hosts.values():
            if host.machine is None:
                yield "not loaded", str(host.place), None
            elif host._in_flight is None and not host._gathered:
                yield from _compare(broker, host)


def waiting_offsets(broker: SimulatedBroker) -> Iterator[object]:
    """Offsets of transactions that have not ended."""
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
        if found != want[kind]:
            yield f"{host.place} {kind}", found, want[kind]


def _said(machine: GroupShard | TransactionShard | None) -> dict[str, object]:
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
