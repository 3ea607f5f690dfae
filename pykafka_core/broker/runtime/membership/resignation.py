"""Decides which replicas the controller should take for lost, because they cannot be written.

Theory of operation (docs/design/0023). A replica in a lost directory does not lead, is in no ISR
(AssignReplicasToDirs, KIP-858) and does not fetch. This broker names a lost directory for

- the partitions that it leads and for whose files clients wait for too long, until these work;
- all of its replicas, while a probe of the disk is slow or fails, those that it leads first, and
  without those whose leader may await a lost replica, as brokers of Apache Kafka do;
- a replica whose log failed, until a restart;
- a replica that leads and whose log is damaged, until neither ISR nor ELR name this broker: then
  its log is cut at the damage (docs/design/0020).

It does so only if the controller's own rule (`check_resignation`) allows it in the current image:
Apache Kafka's controllers do not check. Afterwards it names the directory that really holds the
replica, which follows. Two changes of a replica are at least `GRACE_NS` apart, unless its log
failed.
"""

from collections.abc import Collection, Iterable
from enum import Enum
from typing import Final, NamedTuple

from pykafka_core.broker.runtime.membership.trust import GRACE_NS, Trust
from pykafka_core.errors import EligibleLeadersNotAvailableError
from pykafka_core.handlers.outcome import Work
from pykafka_core.metadata.directories import LOST, lost_by
from pykafka_core.metadata.health import Replicas, State
from pykafka_core.metadata.image.image import MetadataImage, Partition, Topic
from pykafka_core.metadata.partition_change import check_resignation
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.types import PartitionId

PAUSE_HEARTBEATS_MAX: Final = 16
"""Longest pause after refusals, in heartbeat intervals."""
SLICE_PARTITIONS: Final = 100
"""In a slice of a look at the image: some milliseconds if all fail."""


class Probe(Enum):
    """Result of a probe of the disk."""

    QUICK = "it is fast, and has space if it was full"
    MEDIOCRE = "not fast enough to return to, not slow enough to leave"
    FAILED = "it is slow, full or fails"


class Change(NamedTuple):
    """Another directory for a replica of this broker."""

    topic_id: bytes
    partition: int
    directory: bytes

    @property
    def place(self) -> PartitionId:
        """The partition."""
        return self.topic_id, self.partition


class _LastResponse(NamedTuple):
    """The last response for a partition: when it came, and the pause after a refusal."""

    at_ns: int
    refused_for_ns: int


class Resignation:
    """State of what this broker cannot write, and the changes to ask for. Times are monotonic.

    Args:
        node_id: Of this broker.
        directory: The directory that really holds its replicas.
        heartbeat_ns: The pause after a first refusal; each further one doubles it.
        replicas: The faults of their logs.
    """

    def __init__(
        self, node_id: int, directory: bytes, heartbeat_ns: int, replicas: Replicas
    ) -> None:
        self._node_id = node_id
        self._directory = directory
        self._heartbeat_ns = heartbeat_ns
        self._replicas = replicas
        self._disk = Trust()
        self._is_full = False
        self._stalls: dict[PartitionId, Trust] = {}
        self._last_responses: dict[PartitionId, _LastResponse] = {}

    # Events.

    def note_full(self) -> None:
        """A write found no space. A probe shows whether others find some."""
        self._is_full = True

    def note_stalls(self, now_ns: int, places: Collection[PartitionId]) -> None:
        """Take all partitions for which clients wait for too long now."""
        for place in places:
            self._stalls.setdefault(place, Trust()).failed(now_ns)
        for place in self._stalls.keys() - places:
            trust = self._stalls[place]
            trust.succeeded(now_ns)
            if trust.is_forgettable(now_ns):
                del self._stalls[place]

    def note_probe(self, now_ns: int, probe: Probe) -> bool:
        """Take the result of a probe; whether the trust in the disk has changed."""
        if probe is Probe.QUICK:
            is_changed = self._disk.succeeded(now_ns)
            self._is_full &= not self.trusts_disk
            return is_changed
        if probe is Probe.FAILED or not self.trusts_disk:
            return self._disk.failed(now_ns)
        return False

    def note_response(self, now_ns: int, change: Change, *, is_refused: bool) -> None:
        """The controller has responded for a partition, or its time is over, which is a refusal."""
        pause_ns = 0
        if is_refused:
            before = self._last_responses.get(change.place, _LastResponse(0, 0)).refused_for_ns
            pause_ns = min(
                max(2 * before, self._heartbeat_ns), PAUSE_HEARTBEATS_MAX * self._heartbeat_ns
            )
        self._last_responses[change.place] = _LastResponse(now_ns, pause_ns)

    # State.

    @property
    def trusts_disk(self) -> bool:
        """Whether this broker writes what it leads."""
        return self._disk.failed_ns is None

    @property
    def needs_space(self) -> bool:
        """Whether a probe has to find free space."""
        return self._is_full

    @property
    def wants_probe(self) -> bool:
        """Whether something hints at a disk that fails, or it is not trusted."""
        return self._is_full or not self.trusts_disk or self._is_any_stalled

    @property
    def is_idle(self) -> bool:
        """Whether nothing is wrong, nor was a moment ago."""
        return self._replicas.are_whole and not (self._last_responses or self.wants_probe)

    @property
    def _is_any_stalled(self) -> bool:
        return any(trust.failed_ns is not None for trust in self._stalls.values())

    # Decisions.

    def changes(
        self, now_ns: int, image: MetadataImage, rules: PartitionRules
    ) -> Work[list[Change]]:
        """The changes to ask for now; those of leaders come first."""
        self._forget(now_ns)
        followed: list[Change] = []
        led: list[Change] = []
        looked_at = 0
        for topic in image.topics.by_id.values():
            bounds = _Bounds(topic, image, rules)
            for index, partition in topic.partitions.items():
                place = topic.topic_id, index
                wanted = self._wanted(now_ns, place, partition, bounds)
                if wanted is not None:
                    is_led = partition.leader == self._node_id
                    (led if is_led else followed).append(Change(*place, wanted))
                looked_at += 1
                if looked_at % SLICE_PARTITIONS == 0:
                    yield
        return led + followed

    def still_due(
        self,
        now_ns: int,
        image: MetadataImage,
        rules: PartitionRules,
        changes: Iterable[Change],
    ) -> list[Change]:
        """Return those of ``changes`` that an image, which may be newer, still needs."""
        due = []
        for change in changes:
            topic = image.topics.by_id.get(change.topic_id)
            partition = topic and topic.partitions.get(change.partition)
            if topic is not None and partition is not None:
                bounds = _Bounds(topic, image, rules)
                if self._wanted(now_ns, change.place, partition, bounds) == change.directory:
                    due.append(change)
        return due

    def _wanted(
        self, now_ns: int, place: PartitionId, partition: Partition, bounds: "_Bounds"
    ) -> bytes | None:
        """The directory to ask for; None without a change, or if it has to wait."""
        if self._node_id not in partition.replicas:
            return None
        is_lost = self._node_id in lost_by(partition)
        if self._waits(now_ns, place):
            return None
        if self._can_write(now_ns, place, partition):
            return self._directory if is_lost else None
        is_followed = partition.leader != self._node_id and not is_lost
        if is_followed and bounds.may_await_lost(partition.leader, self._node_id):
            return None
        if self._node_id in partition.isr and bounds.allow(partition, self._node_id):
            # Also a lost one: a fetch that was on its way may have made it join again.
            return LOST
        return None

    def _waits(self, now_ns: int, place: PartitionId) -> bool:
        last = self._last_responses.get(place)
        if last is None:
            return False
        # An accepted change also has to reach the image.
        is_whole = self._replicas.state_of(place) is None
        accepted_for_ns = GRACE_NS if is_whole else self._heartbeat_ns
        return now_ns - last.at_ns < (last.refused_for_ns or accepted_for_ns)

    def _can_write(self, now_ns: int, place: PartitionId, partition: Partition) -> bool:
        is_led = partition.leader == self._node_id
        is_lost = self._node_id in lost_by(partition)
        match self._replicas.state_of(place):
            case State.OFFLINE_REPLICA:
                return False
            case State.READ_ONLY | State.UNREADABLE:
                # A damaged follower leaves the ISR by what it fetches.
                is_electable = self._node_id in (*partition.isr, *partition.elr)
                if is_electable if is_lost else is_led:
                    return False
        stall = self._stalls.get(place)
        if stall is not None and stall.failed_ns is not None and (is_led or is_lost):
            return False
        failed_ns = self._disk.failed_ns
        if failed_ns is None:
            return True
        # Followers take turns: the controller, or the image, has the change of the one before.
        turn = 0 if is_led or is_lost else 1 + partition.replicas.index(self._node_id)
        return now_ns - failed_ns < turn * self._heartbeat_ns // 2

    def _forget(self, now_ns: int) -> None:
        """Forget responses that make nothing wait, and double no pause any more."""
        self._last_responses = {
            place: last
            for place, last in self._last_responses.items()
            if now_ns - last.at_ns < max(GRACE_NS, 2 * last.refused_for_ns)
        }


class _Bounds(NamedTuple):
    """Whether members may leave an ISR."""

    topic: Topic
    image: MetadataImage
    rules: PartitionRules

    def allow(self, partition: Partition, node_id: int) -> bool:
        """Whether the controller's rule lets a broker leave the ISR of this partition."""
        min_isr = self.rules.min_isr(self.topic)
        try:
            check_resignation(partition, node_id, min_isr, self.image.brokers)
        except EligibleLeadersNotAvailableError:
            return False
        return True

    def may_await_lost(self, leader: int, node_id: int) -> bool:
        """Whether a leader may hold the high watermark back for a lost replica that is caught up.

        Leaders of this version do not. Each release of Apache Kafka supports other features.
        """
        own, other = self.image.brokers.get(node_id), self.image.brokers.get(leader)
        return own is None or other is None or own.features != other.features
