"""The result of a change of one partition: its leader, ISR, ELR and epochs.

``PartitionChangeBuilder`` in Kafka; KIP-966, KIP-455. All records that change partitions are made
here.

Theory of operation. The caller gives the current partition, the wanted one (another ISR, other
replicas) and the future state of the brokers. `changed` returns the resulting partition:

1. A reassignment completes if all its new replicas are in the wanted ISR.
2. A replica that leaves an ISR smaller than ``min.insync.replicas`` becomes eligible (the ELR):
   no record is committed without it, because the high watermark does not advance below that size.
3. A leader is elected: the current leader if it may lead; else the first live replica of the ISR;
   of the ELR, if the ISR is empty; the last known leader, if both are empty; any live replica if
   unclean elections are allowed.
4. A leader from outside the ISR becomes the only ISR. Unless it was eligible, it may lack committed
   records and recovers.
5. The leader epoch increases if the leader changes or a replica is removed, the partition epoch
   with every change.

`record` returns the difference of the two partitions, so that a record has exactly this result.
"""

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from pykafka_core.errors import EligibleLeadersNotAvailableError
from pykafka_core.metadata.directories import directory_of, is_online
from pykafka_core.metadata.image.image import NO_LEADER, Broker, Partition
from pykafka_core.metadata.reassignments import completed, without
from pykafka_core.protocol.messages import PartitionChangeRecord


class Election(Enum):
    """Replicas that a change may elect."""

    ONLINE = "a replica in sync or eligible; the leader stays if it may"
    PREFERRED = "as ONLINE, but the first replica rather than the leader"
    UNCLEAN = "as ONLINE, and any replica if there is no other"


class Rules(NamedTuple):
    """The rules for a partition change.

    Attributes:
        brokers: State of the brokers after the change is committed.
        min_isr: The topic's ``min.insync.replicas``; limited by the number of replicas.
        elr: Whether eligible leader replicas are enabled (KIP-966).
    """

    brokers: Mapping[int, Broker]
    min_isr: int = 1
    elr: bool = False
    election: Election = Election.ONLINE


class _Elected(NamedTuple):
    leader: int
    is_clean: bool = True


def change_record(
    topic_id: bytes,
    index: int,
    partition: Partition,
    wanted: Partition,
    rules: Rules,
    lost: Collection[int] = (),
) -> PartitionChangeRecord | None:
    """Return the record for the result of `changed`, or None if nothing changes."""
    return record(topic_id, index, partition, changed(partition, wanted, rules, lost))


def changed(
    partition: Partition, wanted: Partition, rules: Rules, lost: Collection[int] = ()
) -> Partition:
    """Return the partition after a change; the same object if nothing changes.

    Args:
        partition: The current partition.
        wanted: The partition with the wanted ISR, replicas, reassignment and recovery state; its
            leader, ELR and epochs are ignored.
        rules: The rules for the change.
        lost: Brokers that may have lost records, as after an unclean shutdown: they do not become
            eligible.
    """
    found = completed(wanted)
    min_isr = min(rules.min_isr, len(found.replicas))
    found = found._replace(elr=_eligible(partition, found, min_isr, rules, lost))
    elected = _elect(partition, found, rules)
    found = _led(partition, found, elected, rules)
    is_complete = bool(found.isr) and (not rules.elr or len(found.isr) >= min_isr)
    found = found._replace(
        elr=() if is_complete else found.elr,
        last_known_elr=_last_known(partition, found),
        leader_epoch=partition.leader_epoch + _begins_leader_epoch(partition, found),
        directories=_directories(partition, found, rules.brokers),
        partition_epoch=partition.partition_epoch,
    )
    if found == partition:
        return partition
    return found._replace(partition_epoch=partition.partition_epoch + 1)


def record(
    topic_id: bytes, index: int, old: Partition, new: Partition
) -> PartitionChangeRecord | None:
    """Return the record that changes one partition into the other, or None if they are equal."""
    if new == old:
        return None
    made = PartitionChangeRecord(topic_id=topic_id, partition_id=index)
    if new.replicas != old.replicas:
        made.replicas = list(new.replicas)
    if new.directories != old.directories:
        made.directories = list(new.directories)
    if new.isr != old.isr:
        made.isr = list(new.isr)
    if new.removing != old.removing:
        made.removing_replicas = list(new.removing)
    if new.adding != old.adding:
        made.adding_replicas = list(new.adding)
    if new.elr != old.elr:
        made.eligible_leader_replicas = list(new.elr)
    if new.last_known_elr != old.last_known_elr:
        made.last_known_elr = list(new.last_known_elr)
    if new.recovering != old.recovering:
        made.leader_recovery_state = int(new.recovering)
    if new.leader_epoch != old.leader_epoch:
        made.leader = new.leader
    return made


def may_lead(partition: Partition, node_id: int, brokers: Mapping[int, Broker]) -> bool:
    """Return whether a broker is active and the directory of its replica is online."""
    broker = brokers.get(node_id)
    if broker is None or not broker.is_active:
        return False
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return node_id not in known or is_online(broker, known[node_id])


def check_resignation(
    partition: Partition, node_id: int, min_isr: int, brokers: Mapping[int, Broker]
) -> None:
    """Check that a member may leave the ISR because its broker cannot write the replica.

    The remaining members that can lead must be at least ``min_isr``, and two if the ISR has two or
    more: otherwise, if replicas fill up one after another, the last one would be the only reachable
    copy.

    Raises:
        EligibleLeadersNotAvailableError: Too few members would remain.
    """
    others = (node for node in partition.isr if node != node_id)
    remaining = sum(may_lead(partition, node, brokers) for node in others)
    needed = max(1, min(2, len(partition.isr)), min(min_isr, len(partition.replicas)))
    if remaining < needed:
        raise EligibleLeadersNotAvailableError


def _eligible(
    partition: Partition, found: Partition, min_isr: int, rules: Rules, lost: Collection[int]
) -> tuple[int, ...]:
    """Return the ELR before the election: members of the ELR or ISR that left the wanted ISR."""
    if len(found.isr) >= min_isr:
        return ()
    before = (*partition.elr, *partition.isr) if rules.elr else partition.elr
    gone = {*found.isr, *lost}
    return tuple(node for node in before if node in found.replicas and node not in gone)


def _elect(partition: Partition, found: Partition, rules: Rules) -> _Elected:
    for node in _candidates(partition, found, rules):
        if may_lead(partition, node, rules.brokers):
            return _Elected(node)
    if not found.isr and not found.elr and len(partition.last_known_elr) == 1:
        last = partition.last_known_elr[0]
        if last in found.replicas and may_lead(partition, last, rules.brokers):
            return _Elected(last, is_clean=False)
    if rules.election is Election.UNCLEAN:
        # A replica that is being added may still be empty.
        for node in sorted(
            found.replicas, key=lambda node: (node not in found.elr, node in found.adding)
        ):
            if may_lead(partition, node, rules.brokers):
                return _Elected(node, is_clean=False)
    return _Elected(NO_LEADER)


def _candidates(partition: Partition, found: Partition, rules: Rules) -> Iterator[int]:
    """Return the replicas that may be elected cleanly if they are alive, best first."""
    first = found.replicas[:1] if rules.election is Election.PREFERRED else ()
    clean = found.isr or found.elr
    return (node for node in (*first, partition.leader, *found.replicas) if node in clean)


def _led(partition: Partition, found: Partition, elected: _Elected, rules: Rules) -> Partition:
    leader = elected.leader
    if not elected.is_clean:
        return found._replace(leader=leader, isr=(leader,), elr=(), recovering=True)
    if leader == NO_LEADER and not found.isr and not rules.elr:
        # Without ELR, the last in-sync replicas stay in the ISR: only they have all records.
        kept = tuple(node for node in partition.isr if node in found.replicas)
        return found._replace(leader=leader, isr=kept)
    if leader == NO_LEADER or leader in found.isr:
        return found._replace(leader=leader)
    return found._replace(leader=leader, isr=(leader,), elr=without(found.elr, (leader,)))


def _last_known(partition: Partition, found: Partition) -> tuple[int, ...]:
    """Return the last leader of a partition whose ISR is empty."""
    if found.leader != NO_LEADER:
        return ()
    if not found.isr and partition.leader != NO_LEADER:
        return (partition.leader,)
    return partition.last_known_elr


def _begins_leader_epoch(partition: Partition, found: Partition) -> bool:
    """Return whether a leader epoch starts: for a new leader, or to fence removed replicas.

    A larger ISR does not start one.
    """
    is_removed = not set(partition.replicas) <= set(found.replicas)
    return is_removed or found.leader != partition.leader


def _directories(
    partition: Partition, found: Partition, brokers: Mapping[int, Broker]
) -> tuple[bytes, ...]:
    if found.replicas == partition.replicas:
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return tuple(known.get(node) or directory_of(brokers.get(node)) for node in found.replicas)
