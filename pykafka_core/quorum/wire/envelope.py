"""What replicas say to each other, as Kafka's messages: cluster id, topic, endpoints and versions around ``rpc.py``.

Pure. All messages have a directory id for each replica (KIP-853), so the versions begin there, with those of Apache
Kafka 3.9; a request of an older version is read, and answered as one of a replica that is no voter.
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
    AnswerBody,
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RemoveVoter,
    UpdateVoter,
    Vote,
)
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID

EPOCH_MAX: Final = 2**30
"""Believed of others: epochs are raised by one, so none comes here by itself, and what is left has to last."""

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


def only_partition(topics: Sequence[Any]) -> Any:
    """What a message has of the metadata log; None if another one is there, or none."""
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
