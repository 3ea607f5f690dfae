"""AlterPartition (56): KIP-497, KIP-704, KIP-841, KIP-903.

``ReplicationControlManager.alterPartition`` in Kafka.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pykafka_core.errors import (
    FencedLeaderEpochError,
    IneligibleReplicaError,
    InvalidRequestError,
    InvalidUpdateVersionError,
    KafkaError,
    NewLeaderElectedError,
    NotControllerError,
    RequestTimedOutError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.cluster.broker_records import registered_broker
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work
from pykafka_core.metadata.directories import lost_by
from pykafka_core.metadata.image.image import Broker, Partition, Topic
from pykafka_core.metadata.partition_change import changed, record
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    Message,
)

VERSION_WITH_EPOCHS = 3
"""From this version on a leader sends the broker epoch of each member (KIP-903)."""

ANY_EPOCH = -1
"""The broker epoch if the leader does not send one."""

RECOVERED, RECOVERING = 0, 1

_Wanted = AlterPartitionRequest.PartitionData
_Topic = AlterPartitionResponse.TopicData
_Partition = AlterPartitionResponse.PartitionData


class _Member(NamedTuple):
    node_id: int
    broker_epoch: int


def handle(context: Context, request: AlterPartitionRequest) -> Work[Outcome]:
    """Change ISRs at the request of their leaders; an error of one does not affect the others.

    A change may end a reassignment and make another broker the leader: the change is made, and the
    response has NEW_LEADER_ELECTED.
    """
    try:
        registered_broker(context, request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return AlterPartitionResponse(error_code=error.code)
    caller = context.caller
    if context.controller().has_given_up(
        request.broker_id, request.broker_epoch, caller.correlation_id
    ):
        return AlterPartitionResponse(error_code=RequestTimedOutError.code)
    alterations = _Alterations(context, request)
    for topic in request.topics:
        result = _Topic(topic_id=topic.topic_id, partitions=[])
        alterations.results.append(result)
        for wanted in topic.partitions:
            yield
            result.partitions.append(alterations.result(topic.topic_id, wanted))
    return MetadataWrite(alterations.records, alterations.reply)


class _Alterations:
    """The changes of one request: their records, and a result for each partition."""

    def __init__(self, context: Context, request: AlterPartitionRequest) -> None:
        self._image = context.image
        self._rules = PartitionRules(context.image, context.settings)
        self._leader = request.broker_id
        self._has_epochs = context.caller.api_version >= VERSION_WITH_EPOCHS
        self._altered: set[tuple[bytes, int]] = set()
        self.records: list[Message] = []
        self.results: list[_Topic] = []

    def reply(self, code: int) -> AlterPartitionResponse:
        """Return the results, or the error of the commit."""
        if code:
            return AlterPartitionResponse(error_code=code)
        return AlterPartitionResponse(topics=self.results)

    def result(self, topic_id: bytes, wanted: _Wanted) -> _Partition:
        """Plan the change of one partition, and return its result."""
        index = wanted.partition_index
        try:
            found = self._alter(topic_id, wanted)
        except KafkaError as error:
            return _Partition(partition_index=index, error_code=error.code)
        return _Partition(
            partition_index=index,
            leader_id=found.leader,
            leader_epoch=found.leader_epoch,
            isr=list(found.isr),
            leader_recovery_state=int(found.recovering),
            partition_epoch=found.partition_epoch,
        )

    def _alter(self, topic_id: bytes, wanted: _Wanted) -> Partition:
        topic, partition = self._find(topic_id, wanted.partition_index)
        check_epochs(partition, self._leader, wanted)
        members = self._members(wanted)
        check_isr(partition, [member.node_id for member in members], wanted)
        if not all(is_eligible(self._image.brokers, member) for member in members):
            raise IneligibleReplicaError
        joining = {member.node_id for member in members} - set(partition.isr)
        if joining & set(lost_by(partition)):
            # the broker fetched before it reported the replica as lost
            raise IneligibleReplicaError
        isr = tuple(member.node_id for member in members)
        target = partition._replace(isr=isr, recovering=wanted.leader_recovery_state == RECOVERING)
        found = changed(partition, target, self._rules.of(topic))
        made = record(topic_id, wanted.partition_index, partition, found)
        if made is not None:
            self._altered.add((topic_id, wanted.partition_index))
            self.records.append(made)
        if found.leader != self._leader:
            raise NewLeaderElectedError
        return found

    def _find(self, topic_id: bytes, index: int) -> tuple[Topic, Partition]:
        topic = self._image.topics.by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicIdError
        partition = topic.partitions.get(index)
        if partition is None:
            raise UnknownTopicOrPartitionError
        if (topic_id, index) in self._altered:
            # the partition is named twice, and its epoch has changed
            raise InvalidUpdateVersionError
        return topic, partition

    def _members(self, wanted: _Wanted) -> list[_Member]:
        if not self._has_epochs:
            return [_Member(node, ANY_EPOCH) for node in wanted.new_isr]
        return [
            _Member(state.broker_id, state.broker_epoch) for state in wanted.new_isr_with_epochs
        ]


def check_epochs(partition: Partition, leader: int, wanted: _Wanted) -> None:
    """Refuse a change that is not based on the committed state of the partition.

    Raises:
        NotControllerError: The leader has a newer state than this controller, which is no longer
            the active one.
        FencedLeaderEpochError: There is a newer leader.
        InvalidRequestError: Another broker is the leader.
        InvalidUpdateVersionError: The partition has changed since.
    """
    is_ahead = wanted.leader_epoch > partition.leader_epoch
    if is_ahead or wanted.partition_epoch > partition.partition_epoch:
        raise NotControllerError
    if wanted.leader_epoch < partition.leader_epoch:
        raise FencedLeaderEpochError
    if leader != partition.leader:
        raise InvalidRequestError
    if wanted.partition_epoch < partition.partition_epoch:
        raise InvalidUpdateVersionError


def check_isr(partition: Partition, isr: list[int], wanted: _Wanted) -> None:
    """Refuse an invalid ISR.

    Raises:
        InvalidRequestError: It is not a set of replicas with the leader, or the leader recovers and
            is not alone.
    """
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        raise InvalidRequestError
    if partition.leader not in isr:
        raise InvalidRequestError
    state = wanted.leader_recovery_state
    if state not in (RECOVERED, RECOVERING):
        raise InvalidRequestError
    if state == RECOVERING and (len(isr) > 1 or not partition.recovering):
        raise InvalidRequestError


def is_eligible(brokers: Mapping[int, Broker], member: _Member) -> bool:
    """Return whether a broker may be in the ISR.

    It must be active (KIP-841), and still be the process that caught up (KIP-903).
    """
    broker = brokers.get(member.node_id)
    if broker is None or not broker.is_active:
        return False
    return member.broker_epoch in (ANY_EPOCH, broker.epoch)
