"""The active controller of a cluster without its brokers: records that handlers propose are
committed at once.

Brokers exist only as their requests. After every batch, the image from the records is compared with
a replay of the log.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from pykafka_core.broker.runtime.requests.pending_request import Call
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.context import ActiveController, Context, Node, ProducerIds
from pykafka_core.handlers.outcome import HandlerWork, MetadataWrite, Outcome, run_to_end
from pykafka_core.handlers.registry import CONTROLLER_ROWS, handler_of
from pykafka_core.metadata.broker_sessions import BrokerSessions
from pykafka_core.metadata.health import Replicas
from pykafka_core.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS,
    METADATA_VERSION,
    METADATA_VERSION_LEVEL,
    SUPPORTED_FEATURES,
)
from pykafka_core.metadata.image.image import MetadataImage, Partition
from pykafka_core.metadata.image.proposed import ProposedImage
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ConfigRecord,
    FeatureLevelRecord,
    HeartbeatResponse,
    Message,
    PartitionRecord,
    TopicRecord,
)
from pykafka_core.quorum.single_voter import SingleVoter
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC

SECOND: Final = 1_000_000_000
SESSION_NS: Final = 9 * SECOND
CONTROLLER: Final = 100
CLUSTER_ID: Final = "cluster"
TOPIC_ID: Final = b"0123456789abcdef"
REQUEST_TIMED_OUT, NOT_CONTROLLER, STALE_BROKER_EPOCH = 7, 41, 77

_ROWS = {f"{row.name.title().replace('_', '')}Request": row for row in CONTROLLER_ROWS}


class Process(NamedTuple):
    """A registered process of a broker."""

    node_id: int
    incarnation: int
    epoch: int


class ClusterWorld:
    """The controller and its committed metadata.

    Args:
        brokers: Ids of brokers that are registered and unfenced.
        min_isr: The default ``min.insync.replicas`` of the cluster.
        elr: Whether eligible leader replicas are enabled.
        settings: Settings of the controller.
    """

    def __init__(
        self,
        brokers: Collection[int] = (),
        *,
        min_isr: int = 2,
        elr: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.now_ns = SECOND
        self.settings = BrokerConfigs(settings or {})
        self.image = MetadataImage()
        self.end_offset = 0
        self._replay = Replay()
        self._ids = 1000
        self.last_batch: Sequence[Message] = ()
        self.take_over()
        features = {METADATA_VERSION: METADATA_VERSION_LEVEL, ELIGIBLE_LEADER_REPLICAS: int(elr)}
        self.commit(
            *(FeatureLevelRecord(name=n, feature_level=level) for n, level in features.items()),
            ConfigRecord(
                resource_type=RESOURCE_BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(min_isr),
            ),
        )
        self.processes = {node: self.start(node) for node in brokers}
        for process in self.processes.values():
            assert self.heartbeat(process).is_fenced is False

    # The controller.

    def take_over(self) -> None:
        """Make another controller the active one: it has the log and the time, but no sessions."""
        self.correlation_id = 0
        self.active = ActiveController(BrokerSessions(SESSION_NS, self.now_ns))

    def decide(
        self, decision: Callable[[Context], Outcome | HandlerWork], version: int = 0, code: int = 0
    ) -> Message:
        """Run a handler, commit its records or reject them with ``code``; return the response."""
        outcome = run_to_end(decision(self.context(version)))
        self.last_batch = ()
        if not isinstance(outcome, MetadataWrite):
            assert isinstance(outcome, Message), "a controller's row returns no other outcome"
            return outcome
        if outcome.records and not code:
            self._commit(outcome.records)
        response = run_to_end(outcome.reply(code if outcome.records else 0))
        assert isinstance(response, Message)
        return response

    def ask(self, request: Message, version: int | None = None, code: int = 0) -> Message:
        """Handle a request of a broker or client; see `decide`."""
        row = _ROWS[type(request).__name__]
        version = row.versions[1] if version is None else version
        return self.decide(lambda context: handler_of(row.api_key)(context, request), version, code)

    def context(self, version: int = 0) -> Context:
        """Return the present context of a handler."""
        return Context(
            image=self.image,
            settings=self.settings,
            quorum=SingleVoter(CONTROLLER, 1, 0),
            producer_ids=ProducerIds(),
            node=Node(CONTROLLER, CLUSTER_ID, bytes(16), "memory", self._new_id),
            broker_epoch=-1,
            next_offset=self.end_offset,
            now_ms=self.now_ns // 1_000_000,
            caller=Call(version, received_ns=self.now_ns, correlation_id=self.correlation_id),
            replicas=Replicas(),
            active=self.active,
            now_ns=self.now_ns,
        )

    def commit(self, *records: Message) -> None:
        """Commit records without a handler."""
        self.decide(lambda _context: MetadataWrite(records, lambda _code: HeartbeatResponse()))

    def _commit(self, records: Sequence[Message]) -> None:
        proposed = ProposedImage(self.image)
        run_to_end(proposed.add(records))
        last_offset = self.end_offset + len(records) - 1
        self._replay.apply_batch(self.end_offset, last_offset, records)
        self.image, _ = self._replay.take()
        assert proposed.image.topics == self.image.topics
        assert proposed.image.brokers == self.image.brokers
        self.end_offset += len(records)
        self.last_batch = records

    def _new_id(self) -> bytes:
        self._ids += 1
        return self._ids.to_bytes(16, "big")

    # Brokers.

    def start(self, node_id: int, *, stopped_in: int = -1) -> Process:
        """Register a new process, which must not be rejected."""
        incarnation = int.from_bytes(self._new_id(), "big")
        response = self.register(node_id, incarnation, stopped_in=stopped_in)
        assert response.error_code == 0
        return Process(node_id, incarnation, response.broker_epoch)

    def register(
        self, node_id: int, incarnation: int, *, stopped_in: int = -1, version: int = 4
    ) -> BrokerRegistrationResponse:
        """Request a registration."""
        response = self.ask(registration(node_id, incarnation, stopped_in=stopped_in), version)
        assert isinstance(response, BrokerRegistrationResponse)
        return response

    def heartbeat(
        self,
        process: Process,
        *,
        offset: int | None = None,
        fence: bool = False,
        shut_down: bool = False,
        offline: Sequence[bytes] = (),
        cordoned: Sequence[bytes] | None = None,
        code: int = 0,
    ) -> BrokerHeartbeatResponse:
        """Send a heartbeat; by default of a broker that has applied all metadata."""
        request = BrokerHeartbeatRequest(
            broker_id=process.node_id,
            broker_epoch=process.epoch,
            current_metadata_offset=self.end_offset - 1 if offset is None else offset,
            want_fence=fence,
            want_shut_down=shut_down,
            offline_log_dirs=list(offline),
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )
        response = self.ask(request, code=code)
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    def alter_isr(
        self,
        process: Process,
        isr: Sequence[int],
        *,
        index: int = 0,
        epochs: Mapping[int, int] | None = None,
        changes: Mapping[str, int] | None = None,
        version: int = 3,
    ) -> AlterPartitionResponse.PartitionData:
        """Request another ISR, with the committed epochs except for ``changes``; return the
        result.
        """
        changes = changes or {}
        partition = self.partition(index)
        known = {node: broker.epoch for node, broker in self.image.brokers.items()}
        known |= epochs or {}
        wanted = AlterPartitionRequest.PartitionData(
            partition_index=index,
            leader_epoch=changes.get("leader_epoch", partition.leader_epoch),
            partition_epoch=changes.get("partition_epoch", partition.partition_epoch),
            leader_recovery_state=changes.get("recovery_state", 0),
        )
        if version < 3:
            wanted.new_isr = list(isr)
        else:
            wanted.new_isr_with_epochs = [
                AlterPartitionRequest.BrokerState(broker_id=node, broker_epoch=known.get(node, -1))
                for node in isr
            ]
        response = self.ask(alter_request(process, wanted), version)
        assert isinstance(response, AlterPartitionResponse)
        assert response.error_code == 0
        return response.topics[0].partitions[0]

    def assign(
        self, process: Process, found_in: bytes, *indexes: int, topic_id: bytes = TOPIC_ID
    ) -> AssignReplicasToDirsResponse:
        """Report the directory of a broker's replicas; by default the one of partition 0."""
        of = AssignReplicasToDirsRequest
        partitions = [of.PartitionData(partition_index=index) for index in indexes or (0,)]
        topic = of.TopicData(topic_id=topic_id, partitions=partitions)
        response = self.ask(
            of(
                broker_id=process.node_id,
                broker_epoch=process.epoch,
                directories=[of.DirectoryData(id=found_in, topics=[topic])],
            )
        )
        assert isinstance(response, AssignReplicasToDirsResponse)
        return response

    # Topics and partitions.

    def make_topic(self, *assignments: Sequence[int], topic_id: bytes = TOPIC_ID) -> None:
        """Create a topic ``orders`` whose partitions have these replicas: all are in sync, and the
        first one leads.
        """
        name = "orders" if topic_id == TOPIC_ID else topic_id.hex()
        records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
        records += [
            PartitionRecord(
                topic_id=topic_id,
                partition_id=index,
                replicas=list(replicas),
                isr=list(replicas),
                leader=replicas[0],
                leader_epoch=4,
                partition_epoch=0,
                directories=[directory(node) for node in replicas],
            )
            for index, replicas in enumerate(assignments)
        ]
        self.commit(*records)

    def set_topic(self, name: str, value: str) -> None:
        """Change a setting of ``orders``."""
        record = ConfigRecord(
            resource_type=RESOURCE_TOPIC, resource_name="orders", name=name, value=value
        )
        self.commit(record)

    def partition(self, index: int = 0) -> Partition:
        """Return the committed state of a partition of ``orders``."""
        return self.image.topics.by_id[TOPIC_ID].partitions[index]

    def stop_hearing_of(self, *nodes: int) -> None:
        """Pass the session timeout of these brokers, while the others send heartbeats."""
        for _ in range(2):
            self.now_ns += SESSION_NS * 2 // 3
            for node, process in self.processes.items():
                if node not in nodes:
                    self.heartbeat(process)


def directory(node_id: int) -> bytes:
    """Return the directory id of a broker."""
    return (500 + node_id).to_bytes(16, "big")


def registration(
    node_id: int, incarnation: int, *, stopped_in: int = -1
) -> BrokerRegistrationRequest:
    """Return the registration request of a broker of this version."""
    listener = BrokerRegistrationRequest.Listener(name="INTERNAL", host=f"b{node_id}", port=9092)
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=incarnation.to_bytes(16, "big"),
        listeners=[listener],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=f"rack{node_id}",
        log_dirs=[directory(node_id)],
        previous_broker_epoch=stopped_in,
    )


def alter_request(
    process: Process, *partitions: AlterPartitionRequest.PartitionData, topic_id: bytes = TOPIC_ID
) -> AlterPartitionRequest:
    """Return the AlterPartition request of a leader."""
    topic = AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=list(partitions))
    return AlterPartitionRequest(
        broker_id=process.node_id, broker_epoch=process.epoch, topics=[topic]
    )
