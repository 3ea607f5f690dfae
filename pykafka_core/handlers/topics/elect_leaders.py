"""ElectLeaders (43): KIP-183, KIP-460; ``ReplicationControlManager.electLeaders`` in Kafka."""

from collections.abc import Iterable

from pykafka_core.errors import (
    NONE,
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    InvalidRequestError,
    KafkaError,
    PreferredLeaderNotAvailableError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Outcome, Work, check_record_limit, collect
from pykafka_core.metadata.elections import elected
from pykafka_core.metadata.image.image import NO_LEADER
from pykafka_core.metadata.partition_change import Election
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    Message,
)

VERSION_WITH_ERROR = 1
"""From this version on a response has a top-level error code, and a request an election type."""

PREFERRED = 0
UNCLEAN = 1

_Topic = ElectLeadersResponse.ReplicaElectionResult
_Partition = ElectLeadersResponse.PartitionResult


def handle(context: Context, request: ElectLeadersRequest) -> Work[Outcome]:
    """Elect partition by partition; an error of one does not affect the others."""
    asked = request.topic_partitions
    if asked is not None and not asked:
        return ElectLeadersResponse(replica_election_results=[])
    if request.timeout_ms <= 0:
        return (yield from _refused(context, request, RequestTimedOutError.code, None))
    if request.election_type not in (PREFERRED, UNCLEAN):
        text = f"Unknown election type {request.election_type}"
        return (yield from _refused(context, request, InvalidRequestError.code, text))
    elections = _Elections(context, request.election_type)
    if asked is None:
        for name, topic in context.image.topics.by_name.items():
            yield from elections.of_topic(name, topic.partitions.keys())
        elections.leave_out_unneeded()
    else:
        for named in asked:
            yield from elections.of_topic(named.topic, named.partitions)
    return MetadataWrite(elections.records, elections.reply)


class _Elections:
    """The elections of one request: their records, and a result for each partition."""

    def __init__(self, context: Context, election_type: int) -> None:
        self._image = context.image
        self._rules = PartitionRules(context.image, context.settings)
        self._is_unclean = election_type == UNCLEAN
        self._elected: set[tuple[bytes, int]] = set()
        self.records: list[Message] = []
        self.results: list[_Topic] = []

    def of_topic(self, name: str, indexes: Iterable[int]) -> Work[None]:
        """Elect the leaders of partitions of one topic."""
        result = _Topic(topic=name, partition_result=[])
        self.results.append(result)
        for index in indexes:
            yield
            result.partition_result.append(self._result(name, index))

    def leave_out_unneeded(self) -> None:
        """Remove results of needless elections; used if the request covers all partitions."""
        for result in self.results:
            result.partition_result = [
                partition
                for partition in result.partition_result
                if partition.error_code != ElectionNotNeededError.code
            ]

    def reply(self, code: int) -> Work[ElectLeadersResponse]:
        """Return the results; with an error code, each election has that error."""
        if code:
            for topic in self.results:
                for partition in topic.partition_result:
                    yield
                    if partition.error_code == NONE:
                        partition.error_code = code
                        partition.error_message = str(error_of(code)())
        return ElectLeadersResponse(replica_election_results=self.results)

    def _result(self, name: str, index: int) -> _Partition:
        try:
            self._elect(name, index)
        except KafkaError as error:
            return _failed(index, error.code, str(error))
        return _Partition(partition_id=index, error_message=None)

    def _elect(self, name: str, index: int) -> None:
        topic = self._image.topics.by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"No such topic as {name}")
        partition = topic.partitions.get(index)
        if partition is None:
            raise UnknownTopicOrPartitionError(f"No such partition as {name}-{index}")
        led = partition.leader != NO_LEADER
        if led and (self._is_unclean or partition.leader == partition.replicas[0]):
            raise ElectionNotNeededError("Leader election not needed for topic partition.")
        if (topic.topic_id, index) in self._elected:
            return  # the partition is named twice
        election = Election.UNCLEAN if self._is_unclean else Election.PREFERRED
        record = elected(topic, index, self._rules, election)
        if record is None:
            raise _not_available(is_unclean=self._is_unclean)
        check_record_limit(len(self.records) + 1)
        self._elected.add((topic.topic_id, index))
        self.records.append(record)


def _not_available(*, is_unclean: bool) -> KafkaError:
    return EligibleLeadersNotAvailableError() if is_unclean else PreferredLeaderNotAvailableError()


def _refused(
    context: Context, request: ElectLeadersRequest, code: int, text: str | None
) -> Work[ElectLeadersResponse]:
    results = []
    for topic in request.topic_partitions or ():
        partitions = yield from collect(_failed(index, code, text) for index in topic.partitions)
        results.append(_Topic(topic=topic.topic, partition_result=partitions))
    response = ElectLeadersResponse(replica_election_results=results)
    if context.caller.api_version >= VERSION_WITH_ERROR:
        response.error_code = code
    return response


def _failed(index: int, code: int, text: str | None) -> _Partition:
    return _Partition(partition_id=index, error_code=code, error_message=text)
