"""Conversion of replicas' responses to and from Kafka's messages."""

from collections.abc import Callable
from typing import Any, TypeVar, assert_never

from pykafka_core.errors import InconsistentClusterIdError
from pykafka_core.protocol.messages import (
    AddRaftVoterResponse,
    ApiVersionsResponse,
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    FetchResponse,
    FetchSnapshotResponse,
    RemoveRaftVoterResponse,
    UpdateRaftVoterResponse,
    VoteResponse,
)
from pykafka_core.quorum.log.batches import cut
from pykafka_core.quorum.rpc import (
    AddVoter,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    EpochReply,
    Fetch,
    FetchReply,
    FetchSnapshot,
    RemoveVoter,
    ReplyBody,
    SnapshotReply,
    UpdateVoter,
    VersionsReply,
    Vote,
    VoteReply,
    VoterReply,
)
from pykafka_core.quorum.values import OffsetAndEpoch
from pykafka_core.quorum.wire.envelope import (
    EPOCH_MAX,
    AnyT,
    Endpoint,
    Heard,
    QuorumResponse,
    only_partition,
)
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID

NamedResponseT = TypeVar(
    "NamedResponseT", VoteResponse, BeginQuorumEpochResponse, EndQuorumEpochResponse
)


def encode_reply(
    asked: Body, reply: ReplyBody, leader: Endpoint | None, records: bytes = b""
) -> QuorumResponse:
    """Return the message of a response.

    Args:
        asked: The request, which determines the message.
        leader: Endpoint of the leader that the response names, on the listener of the request;
            None if it is unknown.
        records: Records that were read from the log for it.
    """
    match asked, reply:
        case Vote(), VoteReply():
            return _named(VoteResponse, reply, leader, vote_granted=reply.granted)
        case BeginQuorumEpoch(), EpochReply():
            return _named(BeginQuorumEpochResponse, reply, leader)
        case EndQuorumEpoch(), EpochReply():
            return _named(EndQuorumEpochResponse, reply, leader)
        case Fetch(), FetchReply():
            return _fetch_response(reply, leader, records)
        case FetchSnapshot(), SnapshotReply():
            return _snapshot_response(reply, leader)
        case AddVoter(), VoterReply(code, text=text):
            return AddRaftVoterResponse(error_code=code, error_message=text or None)
        case RemoveVoter(), VoterReply(code, text=text):
            return RemoveRaftVoterResponse(error_code=code, error_message=text or None)
        case UpdateVoter(), VoterReply():
            return _update_response(reply, leader)
        case _:
            raise AssertionError("a response is of its request's kind")


def _named(
    of: type[NamedResponseT], reply: VoteReply | EpochReply, leader: Endpoint | None, **more: Any
) -> NamedResponseT:
    message: Any = of
    partition = message.PartitionData(
        error_code=reply.error_code, leader_id=reply.leader_id, leader_epoch=reply.epoch, **more
    )
    topic = message.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return of(topics=[topic], node_endpoints=_endpoints(message.NodeEndpoint, reply, leader))


def _fetch_response(reply: FetchReply, leader: Endpoint | None, records: bytes) -> FetchResponse:
    of = FetchResponse
    partition = of.PartitionData(
        error_code=reply.error_code,
        high_watermark=-1 if reply.error_code else reply.high_watermark,
        current_leader=of.LeaderIdAndEpoch(leader_id=reply.leader_id, leader_epoch=reply.epoch),
        records=records,
    )
    if reply.diverging is not None:
        end, epoch = reply.diverging
        partition.diverging_epoch = of.EpochEndOffset(epoch=epoch, end_offset=end)
    if reply.snapshot_id is not None:
        end, epoch = reply.snapshot_id
        partition.snapshot_id = of.SnapshotId(end_offset=end, epoch=epoch)
    topic = of.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return of(responses=[topic], node_endpoints=_endpoints(of.NodeEndpoint, reply, leader))


def _snapshot_response(reply: SnapshotReply, leader: Endpoint | None) -> FetchSnapshotResponse:
    of = FetchSnapshotResponse
    partition = of.PartitionSnapshot(
        error_code=reply.error_code,
        current_leader=of.LeaderIdAndEpoch(leader_id=reply.leader_id, leader_epoch=reply.epoch),
        size=reply.size,
        position=reply.position,
        unaligned_records=reply.part,
    )
    if reply.snapshot_id is not None:
        end, epoch = reply.snapshot_id
        partition.snapshot_id = of.SnapshotId(end_offset=end, epoch=epoch)
    topic = of.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return of(topics=[topic], node_endpoints=_endpoints(of.NodeEndpoint, reply, leader))


def _update_response(reply: VoterReply, leader: Endpoint | None) -> UpdateRaftVoterResponse:
    of = UpdateRaftVoterResponse
    host, port = leader or ("", 0)
    current = of.CurrentLeader(
        leader_id=reply.leader_id, leader_epoch=reply.epoch, host=host, port=port
    )
    return of(error_code=reply.error_code, current_leader=current)


def _endpoints(of: Callable[..., AnyT], reply: ReplyBody, leader: Endpoint | None) -> list[AnyT]:
    if leader is None or reply.leader_id < 0:
        return []
    return [of(node_id=reply.leader_id, host=leader.host, port=leader.port)]


def is_of_other_cluster(response: QuorumResponse) -> bool:
    """Return whether a replica rejected the request's cluster id."""
    return response.error_code == InconsistentClusterIdError.code


def decode_reply(response: QuorumResponse) -> Heard:
    """Return the content of a response.

    Raises:
        CorruptMessageError: Fetched records are corrupt.
    """
    match response:
        case ApiVersionsResponse():
            return Heard(VersionsReply(response.error_code, versions=_versions(response)), None)
        case AddRaftVoterResponse() | RemoveRaftVoterResponse():
            return Heard(VoterReply(response.error_code), None)
        case UpdateRaftVoterResponse():
            return _updated(response)
    topics = response.responses if isinstance(response, FetchResponse) else response.topics
    found = None if response.error_code else only_partition(topics)
    if found is None:
        return Heard(None, None)
    reply: ReplyBody
    match response:
        case VoteResponse():
            reply = VoteReply(
                found.error_code, found.leader_id, found.leader_epoch, found.vote_granted
            )
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            reply = EpochReply(found.error_code, found.leader_id, found.leader_epoch)
        case FetchResponse():
            reply = _fetch_reply(found)
        case FetchSnapshotResponse():
            reply = _snapshot_reply(found)
        case _:
            assert_never(response)
    if reply.epoch > EPOCH_MAX:
        return Heard(None, None)
    known = (at for at in response.node_endpoints if at.node_id == reply.leader_id)
    return Heard(reply, next((Endpoint(at.host, at.port) for at in known), None))


def _versions(response: ApiVersionsResponse) -> tuple[int, int] | None:
    """Return the range of ``kraft.version`` that a node supports."""
    found = (one for one in response.supported_features if one.name == "kraft.version")
    return next(((one.min_version, one.max_version) for one in found), None)


def _updated(response: UpdateRaftVoterResponse) -> Heard:
    leader = response.current_leader
    if leader is None or leader.leader_epoch > EPOCH_MAX:
        return Heard(VoterReply(response.error_code), None)
    reply = VoterReply(response.error_code, leader.leader_id, leader.leader_epoch)
    return Heard(reply, Endpoint(leader.host, leader.port) if leader.host else None)


def _fetch_reply(found: FetchResponse.PartitionData) -> FetchReply:
    diverging, snapshot_id = found.diverging_epoch, found.snapshot_id
    return FetchReply(
        found.error_code,
        found.current_leader.leader_id,
        found.current_leader.leader_epoch,
        max(0, found.high_watermark),
        _end(diverging.end_offset, diverging.epoch),
        _end(snapshot_id.end_offset, snapshot_id.epoch),
        cut(found.records or b""),
    )


def _snapshot_reply(found: FetchSnapshotResponse.PartitionSnapshot) -> SnapshotReply:
    snapshot_id = found.snapshot_id
    return SnapshotReply(
        found.error_code,
        found.current_leader.leader_id,
        found.current_leader.leader_epoch,
        None if found.error_code else _end(snapshot_id.end_offset, snapshot_id.epoch),
        found.size,
        found.position,
        found.unaligned_records or b"",
    )


def _end(offset: int, epoch: int) -> OffsetAndEpoch | None:
    """Return None if both are -1."""
    return None if (offset, epoch) == (-1, -1) else OffsetAndEpoch(offset, epoch)
