"""The health of partitions, replicas and log directories: one value, which every surface renders.

A new state is a member of `State` with its row in `MEASURES`: metrics, health checks and commands
are made of these rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from pykafka_core.metadata.image.image import NO_LEADER, MetadataImage, Partition, Topic
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID, PartitionId


class State(StrEnum):
    """A fault. JSON and DescribeLogDirs use these names."""

    OFFLINE = "offline"
    UNDER_REPLICATED = "under_replicated"
    UNDER_MIN_ISR = "under_min_isr"
    OFFLINE_REPLICA = "offline_replica"
    READ_ONLY = "read_only"
    UNREADABLE = "unreadable"
    UNCLEANABLE = "uncleanable"
    UNLOADED_COORDINATOR = "unloaded_coordinator"
    FAILED_DIRECTORY = "failed_directory"
    FULL_DIRECTORY = "full_directory"
    NO_CONTROLLER = "no_controller"


class Measure(NamedTuple):
    """The names of a state.

    Attributes:
        label: For people, before a list of partitions or directories.
        metric: Kafka's name, where Kafka measures this state.
        text: The description of the metric.
    """

    label: str
    metric: str
    text: str


MEASURES: Mapping[State, Measure] = {
    State.OFFLINE: Measure(
        "without a leader",
        "offline_partitions_count",
        "partitions without a leader, on the active controller (KafkaController)",
    ),
    State.UNDER_REPLICATED: Measure(
        "under-replicated",
        "under_replicated_partitions",
        "partitions that this node leads with replicas out of sync (ReplicaManager)",
    ),
    State.UNDER_MIN_ISR: Measure(
        "below min.insync.replicas",
        "under_min_isr_partition_count",
        "partitions that this node leads below min.insync.replicas (ReplicaManager)",
    ),
    State.OFFLINE_REPLICA: Measure(
        "failed replica",
        "offline_replica_count",
        "replicas of this node whose log failed (ReplicaManager)",
    ),
    State.READ_ONLY: Measure(
        "damaged and read-only",
        "read_only_partition_count",
        "replicas of this node that are damaged and refuse records",
    ),
    State.UNREADABLE: Measure(
        "with an unreadable batch",
        "unreadable_partition_count",
        "replicas of this node in which a read met bytes that are not a batch",
    ),
    State.UNCLEANABLE: Measure(
        "that cannot be compacted",
        "uncleanable_partitions_count",
        "replicas of this node whose log cannot be compacted (LogCleanerManager)",
    ),
    State.UNLOADED_COORDINATOR: Measure(
        "of a coordinator that cannot be loaded",
        "coordinator_num_partitions_failed",
        "partitions of groups or transactions that this node leads and cannot load"
        " (group-coordinator-metrics)",
    ),
    State.FAILED_DIRECTORY: Measure(
        "failed log directory",
        "offline_log_directory_count",
        "log directories with an I/O error since the start (LogManager)",
    ),
    State.FULL_DIRECTORY: Measure(
        "full log directory", "full_log_directory_count", "log directories without space"
    ),
    State.NO_CONTROLLER: Measure(
        "without a controller",
        "no_controller",
        "1 if no controller has answered this broker for a session",
    ),
}

Health = Mapping[State, Sequence[str]]
"""``TOPIC-PARTITION``, directories or nodes by state. Every state is a key."""


def name_of_node(node_id: int) -> str:
    """A node as a part of the health."""
    return f"node {node_id}"


def health_of(found: Iterable[tuple[State, str]]) -> Health:
    """Gather names by state, in the order in which they come."""
    health: dict[State, list[str]] = {state: [] for state in State}
    for state, name in found:
        health[state].append(name)
    return health


class Directory(StrEnum):
    """The state of a data directory, as the core reports it."""

    OK = "ok"
    FULL = "full"
    FAILED = "failed"

    @property
    def state(self) -> State | None:
        """The state in the health; None if the directory is ok."""
        return {Directory.FULL: State.FULL_DIRECTORY, Directory.FAILED: State.FAILED_DIRECTORY}.get(
            self
        )


_OF_LOGS: Mapping[str, State] = {"offline": State.OFFLINE_REPLICA}
"""The core's names of faults that differ from names of states."""


class Replicas:
    """The states of this node, its replicas and its directory. Only the control thread writes them.

    Attributes:
        directory: `FAILED` until the restart; `FULL` until a write finds free space.
        lacks_controller: No controller has answered this broker's requests for a session timeout.
    """

    def __init__(self) -> None:
        self._logs: dict[PartitionId, Sequence[State]] = {}
        self._unloaded: set[PartitionId] = set()
        self.directory = Directory.OK
        self.lacks_controller = False

    def note(self, partition: PartitionId, faults: Iterable[str]) -> None:
        """Record the faults of a log as reported by the core, most severe first."""
        states = [_OF_LOGS.get(fault) or State(fault) for fault in faults]
        if states:
            self._logs[partition] = states
        else:
            self._logs.pop(partition, None)

    def coordinator_failed(self, partition: PartitionId) -> None:
        """Record that the coordinator of this partition cannot be loaded."""
        self._unloaded.add(partition)

    def coordinator_closed(self, partition: PartitionId) -> None:
        """Record that this node no longer coordinates this partition."""
        self._unloaded.discard(partition)

    def note_directory(self, state: Directory) -> None:
        """Record the state that the core reported. A failed directory stays failed."""
        if self.directory is not Directory.FAILED:
            self.directory = state

    def state_of(self, partition: PartitionId) -> State | None:
        """Return the most severe fault of a replica's log, None if it serves all its records."""
        states = self._logs.get(partition, ())
        return next((state for state in states if state is not State.UNCLEANABLE), None)

    @property
    def are_whole(self) -> bool:
        """Whether all logs serve all their records."""
        return all(self.state_of(partition) is None for partition in self._logs)

    def broken(self) -> Mapping[PartitionId, Sequence[State]]:
        """Return a copy, for any thread: the faults of replicas that have any."""
        found = {partition: [*states] for partition, states in self._logs.copy().items()}
        for partition in self._unloaded.copy():
            found.setdefault(partition, []).append(State.UNLOADED_COORDINATOR)
        return found


class NodeRole(NamedTuple):
    """The assessed node.

    Attributes:
        is_controller: Whether it is the active controller, or the only node.
    """

    node_id: int
    log_dir: str
    is_controller: bool


def assess(
    image: MetadataImage, replicas: Replicas, min_isr: Callable[[Topic], int], node: NodeRole
) -> Health:
    """Assess a node like Kafka's metrics: leaders count followers, the controller counts leaders.

    Args:
        image: The node's image.
        replicas: The node's replicas.
        min_isr: The ``min.insync.replicas`` by which this node rejects records of a topic.
        node: The node to assess.
    """
    return health_of(_found(image, replicas, min_isr, node))


def _found(
    image: MetadataImage, replicas: Replicas, min_isr: Callable[[Topic], int], node: NodeRole
) -> Iterator[tuple[State, str]]:
    broken = replicas.broken()
    for state in broken.get((METADATA_TOPIC_ID, 0), ()):
        yield state, f"{METADATA_TOPIC}-0"
    for topic_name, topic in sorted(image.topics.by_name.items()):
        for index, one in sorted(topic.partitions.items()):
            name = f"{topic_name}-{index}"
            for state in _of_partition(one, node, topic, min_isr):
                yield state, name
            if node.node_id in one.replicas:
                for state in broken.get((topic.topic_id, index), ()):
                    yield state, name
    directory = replicas.directory.state
    if directory is not None:
        yield directory, node.log_dir
    if replicas.lacks_controller:
        yield State.NO_CONTROLLER, name_of_node(node.node_id)


def _of_partition(
    partition: Partition, node: NodeRole, topic: Topic, min_isr: Callable[[Topic], int]
) -> Iterator[State]:
    if partition.leader == NO_LEADER and node.is_controller:
        yield State.OFFLINE
    # A replica that a reassignment adds is not missing, as in Kafka.
    count = len(partition.replicas) - len(partition.adding)
    if partition.leader == node.node_id and len(partition.isr) < count:
        yield from judge_isr(len(partition.isr), count, min_isr(topic))


def judge_isr(in_sync: int, replicas: int, min_isr: int) -> Iterator[State]:
    """Assess the ISR of a partition with a leader, by counts."""
    if in_sync < replicas:
        yield State.UNDER_REPLICATED
    if in_sync < min(min_isr, replicas):
        yield State.UNDER_MIN_ISR


SHOWN_MAX = 20
"""Maximum number of names of one state in a line of text."""


def named(names: Sequence[str]) -> str:
    """Return names for display, at most `SHOWN_MAX`; the text ``none`` if there are no names."""
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + f" and {more:,} more" * (more > 0) or "none"


def problems(health: Health) -> list[str]:
    """Return a line for each state with entries."""
    return [f"{MEASURES[state].label}: {named(names)}" for state, names in health.items() if names]
