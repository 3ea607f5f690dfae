"""What a change of one partition does to it: who leads, who is in sync and eligible, which epochs begin.

``PartitionChangeBuilder`` in Kafka; KIP-966, KIP-455. Every record that changes a partition is made here.

Theory of operation. A caller gives the partition as it is, as it is wanted (another ISR, other replicas) and the
brokers as they will be. `changed` gives the partition that comes of it:

1. A reassignment ends if all its new replicas are in the wanted ISR.
2. Who leaves the ISR while that is smaller than ``min.insync.replicas`` becomes eligible (the ELR): nothing is
   committed without it, for the high watermark stands still below that size.
3. Somebody is elected: the leader stays if it may; else the first replica of the ISR that is alive; of the ELR, if the
   ISR is empty; the last known leader, if both are; any replica that is alive, where unclean elections are allowed.
4. A leader from outside the ISR is the whole ISR. Unless it was eligible, it may lack committed records and recovers.
5. The leader epoch grows when the leader changes or a replica is removed, the partition epoch with every change.

`record` is the difference of the two partitions, so that what a record does is what was decided.
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
    """Whom a change may make the leader."""

    ONLINE = "a replica in sync or eligible; the leader stays if it may"
    PREFERRED = "as ONLINE, but the first replica rather than the leader"
    UNCLEAN = "as ONLINE, and any replica rather than nobody"


class Rules(NamedTuple):
    """What a change of a partition is judged by.

    Attributes:
        brokers: As they will be once the change is committed.
        min_isr: The topic's ``min.insync.replicas``; a partition with fewer replicas needs all of them.
        elr: Whether eligible leader replicas are kept (KIP-966).
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
    """The record that makes of a partition what `changed` says, or None when nothing changes."""
    return record(topic_id, index, partition, changed(partition, wanted, rules, lost))


def changed(
    partition: Partition, wanted: Partition, rules: Rules, lost: Collection[int] = ()
) -> Partition:
    """The partition that comes of a change; the same one if nothing does.

    Args:
        partition: As it is.
        wanted: With the ISR, replicas, reassignment and recovery state that it is to have; its leader, ELR and
            epochs are not looked at.
        rules: See there.
        lost: Brokers that may have lost records, as after an unclean shutdown: they are not eligible.
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
    """The record that changes one partition into the other, or None when they are equal."""
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
    """Whether a broker is active, and the directory of its replica online."""
    broker = brokers.get(node_id)
    if broker is None or not broker.is_active:
        return False
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return node_id not in known or is_online(broker, known[node_id])


def check_resignation(
    partition: Partition, node_id: int, min_isr: int, brokers: Mapping[int, Broker]
) -> None:
    """Refuse that a member of the ISR leaves it because its broker cannot write the replica.

    The members that can lead must be at least ``min_isr``, and two if the ISR has two: replicas
    that fill up one after another otherwise leave one behind, with the only reachable copy.

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
    """The ELR before the election: replicas that were in it or in the ISR, and are not in the wanted ISR."""
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
        # A replica that is being added may have nothing yet.
        for node in sorted(
            found.replicas, key=lambda node: (node not in found.elr, node in found.adding)
        ):
            if may_lead(partition, node, rules.brokers):
                return _Elected(node, is_clean=False)
    return _Elected(NO_LEADER)


def _candidates(partition: Partition, found: Partition, rules: Rules) -> Iterator[int]:
    """Who may be elected cleanly if it is alive, best first."""
    first = found.replicas[:1] if rules.election is Election.PREFERRED else ()
    clean = found.isr or found.elr
    return (node for node in (*first, partition.leader, *found.replicas) if node in clean)


def _led(partition: Partition, found: Partition, elected: _Elected, rules: Rules) -> Partition:
    leader = elected.leader
    if not elected.is_clean:
        return found._replace(leader=leader, isr=(leader,), elr=(), recovering=True)
    if leader == NO_LEADER and not found.isr and not rules.elr:
        # Without an ELR the last replicas in sync stay in the ISR: only they have all records.
        kept = tuple(node for node in partition.isr if node in found.replicas)
        return found._replace(leader=leader, isr=kept)
    if leader == NO_LEADER or leader in found.isr:
        return found._replace(leader=leader)
    return found._replace(leader=leader, isr=(leader,), elr=without(found.elr, (leader,)))


def _last_known(partition: Partition, found: Partition) -> tuple[int, ...]:
    """The last leader of a partition whose ISR is empty."""
    if found.leader != NO_LEADER:
        return ()
    if not found.isr and partition.leader != NO_LEADER:
        return (partition.leader,)
    return partition.last_known_elr


def _begins_leader_epoch(partition: Partition, found: Partition) -> bool:
    """A removed replica must not follow this leader any longer, so a removal begins an epoch; a larger ISR does not."""
    is_removed = not set(partition.replicas) <= set(found.replicas)
    return is_removed or found.leader != partition.leader


def _directories(
    partition: Partition, found: Partition, brokers: Mapping[int, Broker]
) -> tuple[bytes, ...]:
    if found.replicas == partition.replicas:
        return partition.directories
    known = dict(zip(partition.replicas, partition.directories, strict=False))
    return tuple(known.get(node) or directory_of(brokers.get(node)) for node in found.replicas)
