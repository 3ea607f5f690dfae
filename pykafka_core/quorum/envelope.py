"""What replicas say to each other, as Kafka's messages: cluster id, topic, endpoints and versions around ``rpc.py``.

Pure. All messages have a directory id for each replica (KIP-853), so the versions begin there, with those of Apache
Kafka 3.9; a request of an older version is read, and answered as one of a replica that is no voter.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, assert_never

from pykafka_core.errors import InconsistentClusterIdError, InvalidRequestError
from pykafka_core.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
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
from pykafka_core.quorum.batches import cut
from pykafka_core.quorum.rpc import (
    AddVoter,
    AnswerBody,
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    RemoveVoter,
    SnapshotAnswer,
    UpdateVoter,
    VersionsAnswer,
    Vote,
    VoteAnswer,
    VoterAnswer,
    VoterRequest,
)
from pykafka_core.quorum.values import (
    LISTENERS_MAX,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
    VoterEndpoint,
)
from pykafka_core.quorum.voters import reached_at
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_ID

FETCH_BYTES_MAX: Final = 8 << 20
"""Of records in an answer to Fetch, as Kafka's replicas ask for (``KafkaRaftClient.MAX_FETCH_SIZE_BYTES``)."""

EPOCH_MAX: Final = 2**30
"""Believed of others: epochs are raised by one, so none comes here by itself, and what is left has to last."""

AnyT = TypeVar("AnyT")
NamedResponseT = TypeVar(
    "NamedResponseT", VoteResponse, BeginQuorumEpochResponse, EndQuorumEpochResponse
)
VoterRequestMessage = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VoterResponseMessage = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
ReplicaRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
)
"""What names topic and partition."""
QuorumRequest = ReplicaRequest | VoterRequestMessage | ApiVersionsRequest
ReplicaResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
)


QuorumResponse = ReplicaResponse | VoterResponseMessage | ApiVersionsResponse


class Endpoint(NamedTuple):
    """Where a replica is reached by the others."""

    host: str
    port: int


class Envelope(NamedTuple):
    """What a replica puts around all that it says.

    Attributes:
        listeners: Its own, by name: a leader tells them to voters that may not know it.
        names: Of the listeners of controllers, in upper case, the first one first.
    """

    cluster_id: str
    key: ReplicaKey
    listeners: Mapping[str, Endpoint]
    names: tuple[str, ...] = ("CONTROLLER",)


class ApiVersions(NamedTuple):
    """An API and the versions that can carry a request; the highest that the peer has, too, is to be used."""

    api_key: int
    min: int
    max: int


class Heard(NamedTuple):
    """An answer, or None if it says nothing that a replica could use; and where the leader is, if it tells."""

    answer: AnswerBody | None
    leader: Endpoint | None


def api_versions(body: Body) -> ApiVersions:
    """By which API and versions a request goes. A pre-vote needs Vote 2 (KIP-996)."""
    match body:
        case Vote():
            return ApiVersions(52, 2 if body.pre_vote else 1, 2)
        case BeginQuorumEpoch():
            return ApiVersions(53, 1, 1)
        case EndQuorumEpoch():
            return ApiVersions(54, 1, 1)
        case Fetch():
            return ApiVersions(1, 17, 18)
        case FetchSnapshot():
            return ApiVersions(59, 1, 1)
        case AddVoter():
            return ApiVersions(80, 1, 1)
        case RemoveVoter():
            return ApiVersions(81, 0, 0)
        case UpdateVoter():
            return ApiVersions(82, 0, 0)
        case AskVersions():
            # Older versions leave out features of which version 0 is supported (KAFKA-17011).
            return ApiVersions(18, 4, 4)
        case _:
            assert_never(body)


# Requests.


def encode_request(envelope: Envelope, body: Body) -> QuorumRequest:
    """The message of a request."""
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
    """That of the replica that asks, which is said where voters are static, too."""
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
        max_bytes=FETCH_BYTES_MAX,
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
    """What is asked; or the answer, where it is no question to this quorum."""
    assert not isinstance(request, ApiVersionsRequest), "a node answers it by itself"
    if request.cluster_id not in (None, envelope.cluster_id):
        return _refusal(request, InconsistentClusterIdError.code)
    if isinstance(request, VoterRequestMessage):
        return _voter_body(envelope, request)
    asked = _only_partition(request.topics)
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


def _only_partition(topics: Sequence[Any]) -> Any:
    """That of the metadata log; None if another one is there, or none."""
    match topics:
        case [FetchRequest.FetchTopic(topic_id=topic, partitions=[found])]:
            place = topic, found.partition
        case [FetchResponse.FetchableTopicResponse(topic_id=topic, partitions=[found])]:
            place = topic, found.partition_index
        case [FetchSnapshotRequest.TopicSnapshot(name=name, partitions=[found])]:
            place = _id_of(name), found.partition
        case [FetchSnapshotResponse.TopicSnapshot(name=name, partitions=[found])]:
            place = _id_of(name), found.index
        case [object(topic_name=name, partitions=[found])]:
            place = _id_of(name), found.partition_index
        case _:
            return None
    return found if place == (METADATA_TOPIC_ID, 0) else None


def _id_of(topic_name: str) -> bytes:
    return METADATA_TOPIC_ID if topic_name == METADATA_TOPIC else b""


def _vote(key: ReplicaKey, voter_id: int, asked: VoteRequest.PartitionData) -> Vote:
    return Vote(
        ReplicaKey(asked.replica_id, asked.replica_directory_id),
        _voter(key, voter_id, asked.voter_directory_id),
        asked.replica_epoch,
        OffsetAndEpoch(asked.last_offset, asked.last_offset_epoch),
        asked.pre_vote,
    )


def _fetch(request: FetchRequest, asked: FetchRequest.FetchPartition) -> Fetch:
    # The version decides which of them is there; the other is -1.
    node_id = max(request.replica_id, request.replica_state.replica_id)
    return Fetch(
        ReplicaKey(node_id, asked.replica_directory_id),
        asked.current_leader_epoch,
        asked.fetch_offset,
        asked.last_fetched_epoch,
        max(0, asked.high_watermark),
        request.max_wait_ms,
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
    """Whom a request is for; whoever receives it where it does not say (version 0)."""
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


# Answers.


def encode_answer(
    asked: Body, answer: AnswerBody, leader: Endpoint | None, records: bytes = b""
) -> QuorumResponse:
    """The message of an answer.

    Args:
        asked: The request; its kind decides.
        leader: Where the leader is that the answer names, if that is known, on the listener that was asked.
        records: What was read of the log for it.
    """
    match asked, answer:
        case Vote(), VoteAnswer():
            return _named(VoteResponse, answer, leader, vote_granted=answer.granted)
        case BeginQuorumEpoch(), EpochAnswer():
            return _named(BeginQuorumEpochResponse, answer, leader)
        case EndQuorumEpoch(), EpochAnswer():
            return _named(EndQuorumEpochResponse, answer, leader)
        case Fetch(), FetchAnswer():
            return _fetch_response(answer, leader, records)
        case FetchSnapshot(), SnapshotAnswer():
            return _snapshot_response(answer, leader)
        case AddVoter(), VoterAnswer(code, text=text):
            return AddRaftVoterResponse(error_code=code, error_message=text or None)
        case RemoveVoter(), VoterAnswer(code, text=text):
            return RemoveRaftVoterResponse(error_code=code, error_message=text or None)
        case UpdateVoter(), VoterAnswer():
            return _update_response(answer, leader)
        case _:
            raise AssertionError("an answer is of its request's kind")


def _named(
    of: type[NamedResponseT], answer: VoteAnswer | EpochAnswer, leader: Endpoint | None, **more: Any
) -> NamedResponseT:
    message: Any = of
    partition = message.PartitionData(
        error_code=answer.error_code, leader_id=answer.leader_id, leader_epoch=answer.epoch, **more
    )
    topic = message.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return of(topics=[topic], node_endpoints=_endpoints(message.NodeEndpoint, answer, leader))


def _fetch_response(answer: FetchAnswer, leader: Endpoint | None, records: bytes) -> FetchResponse:
    of = FetchResponse
    partition = of.PartitionData(
        error_code=answer.error_code,
        high_watermark=-1 if answer.error_code else answer.high_watermark,
        current_leader=of.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
        records=records,
    )
    if answer.diverging is not None:
        end, epoch = answer.diverging
        partition.diverging_epoch = of.EpochEndOffset(epoch=epoch, end_offset=end)
    if answer.snapshot_id is not None:
        end, epoch = answer.snapshot_id
        partition.snapshot_id = of.SnapshotId(end_offset=end, epoch=epoch)
    topic = of.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return of(responses=[topic], node_endpoints=_endpoints(of.NodeEndpoint, answer, leader))


def _snapshot_response(answer: SnapshotAnswer, leader: Endpoint | None) -> FetchSnapshotResponse:
    of = FetchSnapshotResponse
    partition = of.PartitionSnapshot(
        error_code=answer.error_code,
        current_leader=of.LeaderIdAndEpoch(leader_id=answer.leader_id, leader_epoch=answer.epoch),
        size=answer.size,
        position=answer.position,
        unaligned_records=answer.part,
    )
    if answer.snapshot_id is not None:
        end, epoch = answer.snapshot_id
        partition.snapshot_id = of.SnapshotId(end_offset=end, epoch=epoch)
    topic = of.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return of(topics=[topic], node_endpoints=_endpoints(of.NodeEndpoint, answer, leader))


def _update_response(answer: VoterAnswer, leader: Endpoint | None) -> UpdateRaftVoterResponse:
    of = UpdateRaftVoterResponse
    host, port = leader or ("", 0)
    current = of.CurrentLeader(
        leader_id=answer.leader_id, leader_epoch=answer.epoch, host=host, port=port
    )
    return of(error_code=answer.error_code, current_leader=current)


def _endpoints(of: Callable[..., AnyT], answer: AnswerBody, leader: Endpoint | None) -> list[AnyT]:
    if leader is None or answer.leader_id < 0:
        return []
    return [of(node_id=answer.leader_id, host=leader.host, port=leader.port)]


def is_of_other_cluster(response: QuorumResponse) -> bool:
    """Whether a replica said that it is not of the cluster that the request names."""
    return response.error_code == InconsistentClusterIdError.code


def decode_answer(response: QuorumResponse) -> Heard:
    """What was answered.

    Raises:
        CorruptMessageError: Of records that were fetched.
    """
    match response:
        case ApiVersionsResponse():
            return Heard(VersionsAnswer(response.error_code, versions=_versions(response)), None)
        case AddRaftVoterResponse() | RemoveRaftVoterResponse():
            return Heard(VoterAnswer(response.error_code), None)
        case UpdateRaftVoterResponse():
            return _updated(response)
    topics = response.responses if isinstance(response, FetchResponse) else response.topics
    found = None if response.error_code else _only_partition(topics)
    if found is None:
        return Heard(None, None)
    answer: AnswerBody
    match response:
        case VoteResponse():
            answer = VoteAnswer(
                found.error_code, found.leader_id, found.leader_epoch, found.vote_granted
            )
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            answer = EpochAnswer(found.error_code, found.leader_id, found.leader_epoch)
        case FetchResponse():
            answer = _fetch_answer(found)
        case FetchSnapshotResponse():
            answer = _snapshot_answer(found)
        case _:
            assert_never(response)
    if answer.epoch > EPOCH_MAX:
        return Heard(None, None)
    known = (at for at in response.node_endpoints if at.node_id == answer.leader_id)
    return Heard(answer, next((Endpoint(at.host, at.port) for at in known), None))


def _versions(response: ApiVersionsResponse) -> tuple[int, int] | None:
    """Which ``kraft.version`` a node supports."""
    found = (one for one in response.supported_features if one.name == "kraft.version")
    return next(((one.min_version, one.max_version) for one in found), None)


def _updated(response: UpdateRaftVoterResponse) -> Heard:
    told = response.current_leader
    if told is None or told.leader_epoch > EPOCH_MAX:
        return Heard(VoterAnswer(response.error_code), None)
    answer = VoterAnswer(response.error_code, told.leader_id, told.leader_epoch)
    return Heard(answer, Endpoint(told.host, told.port) if told.host else None)


def _fetch_answer(found: FetchResponse.PartitionData) -> FetchAnswer:
    diverging, snapshot_id = found.diverging_epoch, found.snapshot_id
    return FetchAnswer(
        found.error_code,
        found.current_leader.leader_id,
        found.current_leader.leader_epoch,
        max(0, found.high_watermark),
        _end(diverging.end_offset, diverging.epoch),
        _end(snapshot_id.end_offset, snapshot_id.epoch),
        cut(found.records or b""),
    )


def _snapshot_answer(found: FetchSnapshotResponse.PartitionSnapshot) -> SnapshotAnswer:
    snapshot_id = found.snapshot_id
    return SnapshotAnswer(
        found.error_code,
        found.current_leader.leader_id,
        found.current_leader.leader_epoch,
        None if found.error_code else _end(snapshot_id.end_offset, snapshot_id.epoch),
        found.size,
        found.position,
        found.unaligned_records or b"",
    )


def _end(offset: int, epoch: int) -> OffsetAndEpoch | None:
    """Absent where both are -1."""
    return None if (offset, epoch) == (-1, -1) else OffsetAndEpoch(offset, epoch)
