"""Conversion of replicas' requests to and from Kafka's messages."""

from collections.abc import Callable
from typing import Any, assert_never

from pykafka_core.errors import InconsistentClusterIdError, InvalidRequestError
from pykafka_core.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from pykafka_core.quorum.log.voters import reached_at
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RemoveVoter,
    UpdateVoter,
    Vote,
    VoterRequest,
)
from pykafka_core.quorum.values import (
    LISTENERS_MAX,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
    VoterEndpoint,
)
from pykafka_core.quorum.wire.envelope import (
    EPOCH_MAX,
    AnyT,
    Envelope,
    QuorumRequest,
    QuorumResponse,
    ReplicaRequest,
    VoterRequestMessage,
    only_partition,
)
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_ID


def encode_request(envelope: Envelope, body: Body) -> QuorumRequest:
    """Return the message of a request."""
    match body:
        case Vote():
            return _vote_request(envelope, body)
        case BeginQuorumEpoch():
            return _begin_request(envelope, body)
        case EndQuorumEpoch():
            return _end_request(envelope, body)
        case Fetch():
            return _fetch_request(envelope, body)
        case FetchSnapshot():
            return _snapshot_request(envelope, body)
        case AddVoter() | RemoveVoter() | UpdateVoter():
            return _voter_request(envelope.cluster_id, body)
        case AskVersions():
            return ApiVersionsRequest(
                client_software_name="pykafka-core", client_software_version="1"
            )
        case _:
            assert_never(body)


def _voter_request(cluster_id: str, body: VoterRequest) -> VoterRequestMessage:
    match body:
        case AddVoter(voter, timeout_ms, acks_when_committed):
            return AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=timeout_ms,
                voter_id=voter.key.node_id,
                voter_directory_id=voter.key.directory_id,
                listeners=_told(AddRaftVoterRequest.Listener, voter),
                ack_when_committed=acks_when_committed,
            )
        case RemoveVoter(replica):
            return RemoveRaftVoterRequest(
                cluster_id=cluster_id,
                voter_id=replica.node_id,
                voter_directory_id=replica.directory_id,
            )
        case UpdateVoter(voter, epoch):
            lowest, highest = voter.kraft_versions
            return UpdateRaftVoterRequest(
                cluster_id=cluster_id,
                current_leader_epoch=epoch,
                voter_id=voter.key.node_id,
                voter_directory_id=voter.key.directory_id,
                listeners=_told(UpdateRaftVoterRequest.Listener, voter),
                k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
                    min_supported_version=lowest, max_supported_version=highest
                ),
            )
        case _:
            assert_never(body)


def _told(of: Callable[..., AnyT], voter: Voter) -> list[AnyT]:
    return [of(name=name, host=host, port=port) for name, host, port in voter.endpoints]


def _own_directory(envelope: Envelope, own: ReplicaKey) -> bytes:
    """Return the directory id of the sender, which is also sent by static voters."""
    return envelope.key.directory_id if own.directory_id == ZERO_ID else own.directory_id


def _vote_request(envelope: Envelope, vote: Vote) -> VoteRequest:
    partition = VoteRequest.PartitionData(
        replica_epoch=vote.epoch,
        replica_id=vote.candidate.node_id,
        replica_directory_id=_own_directory(envelope, vote.candidate),
        voter_directory_id=vote.voter.directory_id,
        last_offset_epoch=vote.last.epoch,
        last_offset=vote.last.offset,
        pre_vote=vote.pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=envelope.cluster_id, voter_id=vote.voter.node_id, topics=[topic])


def _begin_request(envelope: Envelope, begin: BeginQuorumEpoch) -> BeginQuorumEpochRequest:
    of = BeginQuorumEpochRequest
    partition = of.PartitionData(
        voter_directory_id=begin.voter.directory_id,
        leader_id=begin.leader_id,
        leader_epoch=begin.epoch,
    )
    return of(
        cluster_id=envelope.cluster_id,
        voter_id=begin.voter.node_id,
        topics=[of.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=_listeners(of.LeaderEndpoint, envelope),
    )


def _end_request(envelope: Envelope, end: EndQuorumEpoch) -> EndQuorumEpochRequest:
    of = EndQuorumEpochRequest
    partition = of.PartitionData(
        leader_id=end.leader_id,
        leader_epoch=end.epoch,
        preferred_candidates=[
            of.ReplicaInfo(candidate_id=node_id, candidate_directory_id=directory_id)
            for node_id, directory_id in end.preferred
        ],
    )
    return of(
        cluster_id=envelope.cluster_id,
        topics=[of.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=_listeners(of.LeaderEndpoint, envelope),
    )


def _listeners(of: Callable[..., AnyT], envelope: Envelope) -> list[AnyT]:
    return [of(name=name, host=at.host, port=at.port) for name, at in envelope.listeners.items()]


def _fetch_request(envelope: Envelope, fetch: Fetch) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        current_leader_epoch=fetch.epoch,
        fetch_offset=fetch.offset,
        last_fetched_epoch=fetch.last_epoch,
        replica_directory_id=_own_directory(envelope, fetch.replica),
        high_watermark=fetch.high_watermark,
    )
    topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return FetchRequest(
        cluster_id=envelope.cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=fetch.replica.node_id),
        max_wait_ms=fetch.wait_ms,
        max_bytes=fetch.bytes_max,
        topics=[topic],
    )


def _snapshot_request(envelope: Envelope, fetch: FetchSnapshot) -> FetchSnapshotRequest:
    of = FetchSnapshotRequest
    end, epoch = fetch.snapshot_id
    partition = of.PartitionSnapshot(
        current_leader_epoch=fetch.epoch,
        snapshot_id=of.SnapshotId(end_offset=end, epoch=epoch),
        position=fetch.position,
        replica_directory_id=_own_directory(envelope, fetch.replica),
    )
    return of(
        cluster_id=envelope.cluster_id,
        replica_id=fetch.replica.node_id,
        max_bytes=fetch.bytes_max,
        topics=[of.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def decode_request(envelope: Envelope, request: QuorumRequest) -> Body | QuorumResponse:
    """Return the content of a request, or an error response if it is not for this quorum."""
    assert not isinstance(request, ApiVersionsRequest), "a node answers it by itself"
    if request.cluster_id not in (None, envelope.cluster_id):
        return _refusal(request, InconsistentClusterIdError.code)
    if isinstance(request, VoterRequestMessage):
        return _voter_body(envelope, request)
    asked = only_partition(request.topics)
    if asked is None or _epoch(request, asked) > EPOCH_MAX:
        return _refusal(request, InvalidRequestError.code)
    match request:
        case VoteRequest():
            return _vote(envelope.key, request.voter_id, asked)
        case BeginQuorumEpochRequest():
            voter = _voter(envelope.key, request.voter_id, asked.voter_directory_id)
            return BeginQuorumEpoch(asked.leader_id, voter, asked.leader_epoch)
        case EndQuorumEpochRequest():
            preferred = (
                ReplicaKey(info.candidate_id, info.candidate_directory_id)
                for info in asked.preferred_candidates
            )
            return EndQuorumEpoch(asked.leader_id, asked.leader_epoch, tuple(preferred))
        case FetchRequest():
            if request.max_wait_ms < 0:
                return _refusal(request, InvalidRequestError.code)
            return _fetch(request, asked)
        case FetchSnapshotRequest():
            if request.max_bytes < 0:
                return _refusal(request, InvalidRequestError.code)
            return _fetch_snapshot(request, asked)
        case _:
            assert_never(request)


def _voter_body(envelope: Envelope, request: VoterRequestMessage) -> Body | QuorumResponse:
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.node_id < 0:
        return _refusal(request, InvalidRequestError.code, "a voter has a node id")
    if isinstance(request, RemoveRaftVoterRequest):
        return RemoveVoter(key)
    if len(request.listeners) > LISTENERS_MAX:
        text = f"a voter has at most {LISTENERS_MAX} listeners"
        return _refusal(request, InvalidRequestError.code, text)
    endpoints = tuple(VoterEndpoint(at.name, at.host, at.port) for at in request.listeners)
    voter = Voter(key, endpoints)
    if reached_at(voter, envelope.names[:1]) is None:
        text = f"the voter has no listener {', '.join(envelope.names[:1])}"
        return _refusal(request, InvalidRequestError.code, text)
    if isinstance(request, AddRaftVoterRequest):
        return AddVoter(voter, request.timeout_ms, request.ack_when_committed)
    of = request.k_raft_version_feature
    versions = of.min_supported_version, of.max_supported_version
    return UpdateVoter(voter._replace(kraft_versions=versions), request.current_leader_epoch)


def _epoch(request: ReplicaRequest, asked: Any) -> int:
    match request:
        case VoteRequest():
            return int(asked.replica_epoch)
        case FetchRequest() | FetchSnapshotRequest():
            return int(asked.current_leader_epoch)
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return int(asked.leader_epoch)
        case _:
            assert_never(request)


def _vote(key: ReplicaKey, voter_id: int, asked: VoteRequest.PartitionData) -> Vote:
    return Vote(
        ReplicaKey(asked.replica_id, asked.replica_directory_id),
        _voter(key, voter_id, asked.voter_directory_id),
        asked.replica_epoch,
        OffsetAndEpoch(asked.last_offset, asked.last_offset_epoch),
        asked.pre_vote,
    )


def _fetch(request: FetchRequest, asked: FetchRequest.FetchPartition) -> Fetch:
    # The version determines which one is set; the other is -1.
    node_id = max(request.replica_id, request.replica_state.replica_id)
    return Fetch(
        ReplicaKey(node_id, asked.replica_directory_id),
        asked.current_leader_epoch,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        max(0, asked.high_watermark),
        request.max_wait_ms,
        request.max_bytes,
    )


def _fetch_snapshot(
    request: FetchSnapshotRequest, asked: FetchSnapshotRequest.PartitionSnapshot
) -> FetchSnapshot:
    return FetchSnapshot(
        ReplicaKey(request.replica_id, asked.replica_directory_id),
        asked.current_leader_epoch,
        OffsetAndEpoch(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        asked.position,
        request.max_bytes,
    )


def _voter(key: ReplicaKey, node_id: int, directory_id: bytes) -> ReplicaKey:
    """Return the target of a request; version 0 does not contain it, so it is this replica."""
    return key if node_id < 0 else ReplicaKey(node_id, directory_id)


def _refusal(
    request: ReplicaRequest | VoterRequestMessage, error_code: int, text: str | None = None
) -> QuorumResponse:
    match request:
        case AddRaftVoterRequest():
            return AddRaftVoterResponse(error_code=error_code, error_message=text)
        case RemoveRaftVoterRequest():
            return RemoveRaftVoterResponse(error_code=error_code, error_message=text)
        case UpdateRaftVoterRequest():
            return UpdateRaftVoterResponse(error_code=error_code)
        case VoteRequest():
            return VoteResponse(error_code=error_code)
        case BeginQuorumEpochRequest():
            return BeginQuorumEpochResponse(error_code=error_code)
        case EndQuorumEpochRequest():
            return EndQuorumEpochResponse(error_code=error_code)
        case FetchRequest():
            return FetchResponse(error_code=error_code)
        case FetchSnapshotRequest():
            return FetchSnapshotResponse(error_code=error_code)
        case _:
            assert_never(request)
