"""The common parts of messages between replicas: cluster id, topic, endpoints and versions.

Pure. All messages contain directory ids of replicas (KIP-853), so the versions start there, with
those of Apache Kafka 3.9. A request of an older version is decoded and handled like that of a
replica that is not a voter.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, assert_never

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
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RemoveVoter,
    ReplyBody,
    UpdateVoter,
    Vote,
)
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID

EPOCH_MAX: Final = 2**30
"""Highest accepted epoch: epochs increase by one, so a higher one is invalid."""

AnyT = TypeVar("AnyT")
VoterRequestMessage = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VoterResponseMessage = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
ReplicaRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
)
"""Requests that contain topic and partition."""
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
    """Address of a replica for other replicas."""

    host: str
    port: int


class Envelope(NamedTuple):
    """Common content of all messages that a replica sends.

    Attributes:
        listeners: Its own listeners by name, which a leader sends to voters that may not know them.
        names: Names of controller listeners, in upper case, in order of preference.
    """

    cluster_id: str
    key: ReplicaKey
    listeners: Mapping[str, Endpoint]
    names: tuple[str, ...] = ("CONTROLLER",)


class ApiVersions(NamedTuple):
    """An API and the versions that can carry a request; use the highest that the peer supports."""

    api_key: int
    min: int
    max: int


class Heard(NamedTuple):
    """A response, or None if it is not usable; and the leader's endpoint, if it is included."""

    reply: ReplyBody | None
    leader: Endpoint | None


def api_versions(body: Body) -> ApiVersions:
    """Return the API and versions for a request. A pre-vote needs Vote 2 (KIP-996)."""
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
            # Older versions omit features whose lowest version is 0 (KAFKA-17011).
            return ApiVersions(18, 4, 4)
        case _:
            assert_never(body)


def only_partition(topics: Sequence[Any]) -> Any:
    """Return the metadata partition of a message; None if it has none, or other partitions."""
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
