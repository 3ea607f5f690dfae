"""DescribeQuorum (55): KIP-595, KIP-836, KIP-853."""

from collections.abc import Iterator, Sequence

from pykafka_core.errors import UnknownTopicOrPartitionError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from pykafka_core.quorum.quorum import VoterState
from pykafka_core.types import METADATA_TOPIC

VERSION_WITH_TIMES = 1
VERSION_WITH_NODES = 2
"""From this version on voters have directory ids, and the response has their endpoints."""

_Topic = DescribeQuorumResponse.TopicData
_Partition = DescribeQuorumResponse.PartitionData


def handle(context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the quorum; only the active controller, which leads it, serves this.

    For any other partition the response has an error.
    """
    if not _asks_for_metadata(request):
        return _unknown(request)
    quorum = context.quorum
    end = quorum.log_end_offset
    own = VoterState(quorum.leader_id, context.node.directory_id, end, 0, caught_up_ago_ms=0)
    # A leader that is being removed is no longer a voter.
    voters = [own, *quorum.other_voters] if quorum.is_voter else list(quorum.other_voters)
    observers = quorum.observers if quorum.is_voter else (own, *quorum.observers)
    partition = _Partition(
        partition_index=0,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_voter(context, voter) for voter in voters],
        observers=[_voter(context, observer) for observer in observers],
    )
    return DescribeQuorumResponse(
        error_message=None,
        topics=[_Topic(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[*_nodes(context, voters)]
        if context.caller.api_version >= VERSION_WITH_NODES
        else [],
    )


def _voter(context: Context, voter: VoterState) -> DescribeQuorumResponse.ReplicaState:
    """Return the state of a replica, which may be the leader."""
    state = DescribeQuorumResponse.ReplicaState(replica_id=voter.node_id, log_end_offset=voter.end)
    if context.caller.api_version >= VERSION_WITH_TIMES:
        state.last_fetch_timestamp = context.now_ms - voter.fetched_ago_ms
        if voter.end >= context.quorum.log_end_offset:
            state.last_caught_up_timestamp = context.now_ms
        elif voter.caught_up_ago_ms is not None:
            state.last_caught_up_timestamp = context.now_ms - voter.caught_up_ago_ms
    if context.caller.api_version >= VERSION_WITH_NODES:
        state.replica_directory_id = voter.directory_id
    return state


def _asks_for_metadata(request: DescribeQuorumRequest) -> bool:
    return [
        (topic.topic_name, [p.partition_index for p in topic.partitions])
        for topic in request.topics
    ] == [(METADATA_TOPIC, [0])]


def _nodes(context: Context, voters: Sequence[VoterState]) -> Iterator[DescribeQuorumResponse.Node]:
    """Yield the endpoints of voters.

    They are controller listeners, or a broker's endpoints if the log has no controller listeners.
    """
    of, known = DescribeQuorumResponse, context.quorum.voter_endpoints
    for node_id in (voter.node_id for voter in voters):
        if node_id in known:
            listeners = [
                of.Listener(name=name, host=host, port=port) for name, host, port in known[node_id]
            ]
        elif node_id in context.image.brokers:
            endpoints = context.image.brokers[node_id].endpoints
            listeners = [of.Listener(name=e.name, host=e.host, port=e.port) for e in endpoints]
        else:
            continue
        yield of.Node(node_id=node_id, listeners=listeners)


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    topics = [
        _Topic(
            topic_name=topic.topic_name,
            partitions=[
                _Partition(
                    partition_index=partition.partition_index,
                    error_code=UnknownTopicOrPartitionError.code,
                    error_message=UnknownTopicOrPartitionError.text,
                    current_voters=[],
                    observers=[],
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(error_message=None, topics=topics)
