"""ListPartitionReassignments (46): KIP-455.

``ReplicationControlManager.listPartitionReassignments`` in Kafka.
"""

from collections.abc import Iterable

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work
from pykafka_core.metadata.image.image import Topic
from pykafka_core.metadata.reassignments import in_progress
from pykafka_core.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
_Partition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def handle(
    context: Context, request: ListPartitionReassignmentsRequest
) -> Work[ListPartitionReassignmentsResponse]:
    """List the requested partitions with a reassignment in progress; unknown ones are skipped."""
    by_name = context.image.topics.by_name
    found = []
    if request.topics is None:
        for topic in by_name.values():
            found += yield from _ongoing(topic, topic.partitions)
    else:
        for asked in request.topics:
            yield
            if asked.name in by_name:
                found += yield from _ongoing(by_name[asked.name], asked.partition_indexes)
    return ListPartitionReassignmentsResponse(error_message=None, topics=found)


def _ongoing(topic: Topic, indexes: Iterable[int]) -> Work[list[_Topic]]:
    """Return an empty list, or one topic."""
    ongoing = []
    for index in indexes:
        yield
        partition = topic.partitions.get(index)
        if partition is not None and in_progress(partition):
            ongoing.append(
                _Partition(
                    partition_index=index,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding),
                    removing_replicas=list(partition.removing),
                )
            )
    return [_Topic(name=topic.name, partitions=ongoing)] if ongoing else []
