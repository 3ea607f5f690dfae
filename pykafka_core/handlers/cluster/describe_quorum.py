"""DescribeQuorum (55): KIP-595, KIP-836, KIP-853."""

from pykafka_core.errors import UnknownTopicOrPartitionError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from pykafka_core.quorum.quorum import VoterState
from pykafka_core.types import METADATA_TOPIC

VERSION_WITH_TIMES = 1
VERSION_WITH_NODES = 2
"""Since then voters have directory ids, and the answer says where to find them."""

_Topic = DescribeQuorumResponse.TopicData
_Partition = DescribeQuorumResponse.PartitionData


def handle(context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """By the active controller, which leads the quorum; about any other partition there is an error for each."""
    if not _asks_for_metadata(request):
        return _unknown(request)
    quorum = context.quorum
    own = VoterState(quorum.leader_id, context.node.directory_id, quorum.log_end_offset, 0)
    voters = [own, *quorum.other_voters]
    partition = _Partition(
        partition_index=0,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[_voter(context, voter) for voter in voters],
        observers=[],
    )
    return DescribeQuorumResponse(
        error_message=None,
        topics=[_Topic(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[
            _node(context, voter.node_id)
            for voter in voters
            if voter.node_id in context.image.brokers
        ]
        if context.caller.api_version >= VERSION_WITH_NODES
        else [],
    )


def _voter(context: Context, voter: VoterState) -> DescribeQuorumResponse.ReplicaState:
    """One of the voters, the leader among them. When it was caught up is known where it is now."""
    state = DescribeQuorumResponse.ReplicaState(replica_id=voter.node_id, log_end_offset=voter.end)
    if context.caller.api_version >= VERSION_WITH_TIMES:
        state.last_fetch_timestamp = context.now_ms - voter.fetched_ago_ms
        if voter.end >= context.quorum.log_end_offset:
            state.last_caught_up_timestamp = context.now_ms
    if context.caller.api_version >= VERSION_WITH_NODES:
        state.replica_directory_id = voter.directory_id
    return state


def _asks_for_metadata(request: DescribeQuorumRequest) -> bool:
    return [
        (topic.topic_name, [p.partition_index for p in topic.partitions])
        for topic in request.topics
    ] == [(METADATA_TOPIC, [0])]


def _node(context: Context, node_id: int) -> DescribeQuorumResponse.Node:
    listeners = [
        DescribeQuorumResponse.Listener(name=e.name, host=e.host, port=e.port)
        for e in context.image.brokers[node_id].endpoints
    ]
    return DescribeQuorumResponse.Node(node_id=node_id, listeners=listeners)


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
