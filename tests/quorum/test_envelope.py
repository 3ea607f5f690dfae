"""Requests and replies of the quorum are Kafka's messages, and round-trip through their bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core._core import crc32c
from pykafka_core.broker.storage.voters import quorum_records_of
from pykafka_core.errors import CorruptMessageError, InconsistentClusterIdError, InvalidRequestError
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.protocol import decode_request as decode_request_bytes
from pykafka_core.protocol import decode_response as decode_response_bytes
from pykafka_core.protocol import encode_message
from pykafka_core.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from pykafka_core.quorum.log.batches import cut
from pykafka_core.quorum.rpc import (
    AddVoter,
    AskVersions,
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
from pykafka_core.quorum.values import (
    LISTENERS_MAX,
    Batch,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
    VoterEndpoint,
    VoterSet,
    VoterSetChange,
)
from pykafka_core.quorum.wire.envelope import (
    EPOCH_MAX,
    Endpoint,
    Envelope,
    Heard,
    QuorumRequest,
    QuorumResponse,
    api_versions,
)
from pykafka_core.quorum.wire.replies import decode_reply, encode_reply
from pykafka_core.quorum.wire.requests import decode_request, encode_request

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
OWN = ReplicaKey(1, bytes(range(16)))
LEADER = Endpoint("127.0.0.1", 9093)
ENVELOPE = Envelope(CLUSTER_ID, OWN, {"CONTROLLER": LEADER})

node_ids = st.integers(0, 2**31 - 1)
epochs = st.integers(0, EPOCH_MAX)
offsets = st.integers(0, 2**63 - 1)
keys = st.builds(ReplicaKey, node_ids, st.binary(min_size=16, max_size=16).filter(any))
ends = st.builds(OffsetAndEpoch, offsets, epochs)
waits = st.integers(0, 2**31 - 1)

endpoints = st.builds(
    VoterEndpoint, st.just("CONTROLLER"), st.text(max_size=20), st.integers(0, 65535)
)
new_voters = st.builds(Voter, keys, st.tuples(endpoints), st.just((0, 1)))
updated_voters = st.builds(
    Voter, keys, st.tuples(endpoints), st.tuples(st.integers(0, 9), st.integers(0, 9))
)
requests = st.one_of(
    st.builds(Vote, keys, keys, epochs, ends, st.booleans()),
    st.builds(BeginQuorumEpoch, node_ids, keys, epochs),
    st.builds(EndQuorumEpoch, node_ids, epochs, st.lists(keys, max_size=7).map(tuple)),
    st.builds(Fetch, keys, epochs, offsets, epochs, offsets, waits, waits),
    st.builds(FetchSnapshot, keys, epochs, ends, offsets, waits),
)
voter_requests = st.one_of(
    st.builds(AddVoter, new_voters, waits, st.booleans(), st.just(0)),
    st.builds(RemoveVoter, keys, st.just(0)),
    st.builds(UpdateVoter, updated_voters, epochs),
)
codes = st.integers(-1, 200)
leaders = st.integers(-1, 2**31 - 1)


def batch(base_offset: int, epoch: int, count: int, body: bytes = b"records") -> bytes:
    """A record batch with a valid header; the bytes of its records can be invalid."""
    rest = struct.pack(">hiqqqhii", 0, count - 1, 0, 0, -1, -1, -1, count) + body
    head = struct.pack(">qiibI", base_offset, len(rest) + 9, epoch, 2, crc32c(rest))
    return head + rest


batches = st.lists(st.builds(batch, offsets, epochs, st.integers(1, 1000), st.binary(max_size=50)))


def in_version(body: Body, request: QuorumRequest, version: int) -> QuorumRequest:
    """Return the request after it was encoded and decoded in a version."""
    wire = bytes(encode_message(request, version))
    message = decode_request_bytes(api_versions(body).api_key, version, wire)
    assert isinstance(
        message,
        VoteRequest
        | BeginQuorumEpochRequest
        | EndQuorumEpochRequest
        | FetchRequest
        | FetchSnapshotRequest
        | AddRaftVoterRequest
        | RemoveRaftVoterRequest
        | UpdateRaftVoterRequest,
    )
    return message


def on_response(body: Body, response: QuorumResponse, version: int) -> Heard:
    wire = bytes(encode_message(response, version))
    message = decode_response_bytes(api_versions(body).api_key, version, wire)
    assert type(message) is type(response)
    return decode_reply(message)


@given(requests, st.data())
def test_request_round_trips(body: Body, data: st.DataObject) -> None:
    _, lowest, highest = api_versions(body)
    version = data.draw(st.integers(lowest, highest))
    message = in_version(body, encode_request(ENVELOPE, body), version)
    if isinstance(body, Fetch) and version < 18:
        body = body._replace(high_watermark=2**63 - 1)  # Kafka's default for a missing field
    assert decode_request(ENVELOPE, message) == body


@given(requests, st.data())
def test_reply_round_trips(body: Body, data: st.DataObject) -> None:
    reply: ReplyBody
    records = b""
    if isinstance(body, Vote):
        reply = data.draw(st.builds(VoteReply, codes, leaders, epochs, st.booleans()))
    elif isinstance(body, Fetch):
        end = st.none() | ends
        reply = data.draw(st.builds(FetchReply, st.just(0), leaders, epochs, offsets, end, end))
        records = b"".join(data.draw(batches))
    elif isinstance(body, FetchSnapshot):
        parts = st.binary(max_size=50)
        reply = data.draw(
            st.builds(SnapshotReply, st.just(0), leaders, epochs, ends, offsets, offsets, parts)
        )
    else:
        reply = data.draw(st.builds(EpochReply, codes, leaders, epochs))
    leader = data.draw(st.none() | st.just(LEADER))
    response = encode_reply(body, reply, leader, records)
    heard = on_response(body, response, data.draw(st.integers(*api_versions(body)[1:])))
    if isinstance(reply, FetchReply):
        reply = reply._replace(batches=cut(records))
    assert heard == Heard(reply, leader if reply.leader_id >= 0 else None)


FETCH = Fetch(OWN, 5, 10, 4, 9)
VOTE = Vote(OWN, OWN, 5, OffsetAndEpoch(10, 4), pre_vote=False)


@pytest.mark.parametrize("error_code", [6, 74, 76])
def test_rejected_fetch_contains_only_leader_and_epoch(error_code: int) -> None:
    reply = FetchReply(error_code, 2, 7)
    response = encode_reply(FETCH, reply, LEADER)
    assert on_response(FETCH, response, 17) == Heard(reply, LEADER)


@pytest.mark.parametrize(
    "body",
    [
        VOTE,
        FETCH,
        BeginQuorumEpoch(1, OWN, 5),
        EndQuorumEpoch(1, 5, ()),
        FetchSnapshot(OWN, 5, OffsetAndEpoch(10, 4), 0),
    ],
)
def test_request_of_another_cluster_is_rejected(body: Body) -> None:
    stranger = ENVELOPE._replace(cluster_id="another")
    refusal = decode_request(ENVELOPE, encode_request(stranger, body))
    assert getattr(refusal, "error_code", None) == InconsistentClusterIdError.code


def other_topic() -> VoteRequest:
    request = encode_request(ENVELOPE, VOTE)
    assert isinstance(request, VoteRequest)
    request.topics[0].topic_name = "orders"
    return request


def other_partition() -> VoteRequest:
    request = encode_request(ENVELOPE, VOTE)
    assert isinstance(request, VoteRequest)
    request.topics[0].partitions[0].partition_index = 1
    return request


def two_partitions() -> VoteRequest:
    request = encode_request(ENVELOPE, VOTE)
    assert isinstance(request, VoteRequest)
    request.topics[0].partitions *= 2
    return request


def no_time() -> FetchRequest:
    request = encode_request(ENVELOPE, FETCH)
    assert isinstance(request, FetchRequest)
    request.max_wait_ms = -1
    return request


def consumer() -> FetchRequest:
    """A Fetch of a consumer for another topic."""
    topic = FetchRequest.FetchTopic(
        topic_id=bytes(16), partitions=[FetchRequest.FetchPartition(partition=0)]
    )
    return FetchRequest(topics=[topic])


@pytest.mark.parametrize(
    "request_",
    [other_topic(), other_partition(), two_partitions(), no_time(), consumer(), VoteRequest()],
)
def test_request_about_another_topic_is_rejected(request_: QuorumRequest) -> None:
    refusal = decode_request(ENVELOPE, request_)
    assert getattr(refusal, "error_code", None) == InvalidRequestError.code


def test_vote_of_version_0_is_for_its_receiver_and_from_a_replica_without_a_directory() -> None:
    message = in_version(VOTE, VoteRequest(topics=other_topic().topics), 0)
    assert isinstance(message, VoteRequest)
    message.topics[0].topic_name = "__cluster_metadata"
    asked = decode_request(ENVELOPE, message)
    assert isinstance(asked, Vote)
    assert (asked.candidate, asked.voter) == (ReplicaKey(OWN.node_id, bytes(16)), OWN)


@pytest.mark.parametrize("response", [VoteResponse(error_code=8), FetchResponse(), VoteResponse()])
def test_reply_without_content_is_dropped(response: QuorumResponse) -> None:
    assert decode_reply(response) == Heard(None, None)


def test_batches_are_cut_where_they_end() -> None:
    first, second = batch(10, 4, 3), batch(13, 5, 1)
    assert cut(first + second) == (Batch(10, 4, 3, first), Batch(13, 5, 1, second))


@pytest.mark.parametrize("left", [1, 11, 12, 60, 67])
def test_incomplete_batch_at_the_end_is_skipped(left: int) -> None:
    assert [one.base_offset for one in cut(batch(10, 4, 3) + batch(13, 5, 1)[:left])] == [10]


@pytest.mark.parametrize("at", range(8, 68))
def test_a_damaged_batch_is_not_used(at: int) -> None:
    good = batch(13, 5, 1)
    damaged = bytearray(good)
    damaged[at] ^= 0x40
    try:
        found = cut(batch(10, 4, 3) + bytes(damaged))
    except CorruptMessageError:
        return
    # Either the damaged length exceeds the data, so the batch seems incomplete; or the epoch is
    # wrong, which the checksum does not cover.
    assert len(found) == 1 if at < 12 else found[1].leader_epoch != 5


@pytest.mark.parametrize("epoch", [EPOCH_MAX + 1, 2**31 - 1])
def test_epoch_without_a_successor_is_rejected(epoch: int) -> None:
    """Such a frame would have stopped all elections: the next epoch must fit into 32 bits."""
    begin = BeginQuorumEpoch(1, ENVELOPE.key, epoch)
    refused = decode_request(ENVELOPE, encode_request(ENVELOPE, begin))
    assert isinstance(refused, BeginQuorumEpochResponse)
    assert refused.error_code == InvalidRequestError.code
    reply = EpochReply(0, 1, epoch)
    assert decode_reply(encode_reply(begin, reply, None)).reply is None


@given(voter_requests)
def test_change_of_the_voters_round_trips(body: Body) -> None:
    message = in_version(body, encode_request(ENVELOPE, body), api_versions(body).max)
    assert decode_request(ENVELOPE, message) == body


VOTER = Voter(OWN, (VoterEndpoint("CONTROLLER", "h", 1),))


@pytest.mark.parametrize("body", [AddVoter(VOTER, 10), RemoveVoter(OWN), UpdateVoter(VOTER, 5)])
def test_changes_of_the_voters_of_another_cluster_are_rejected(body: Body) -> None:
    stranger = ENVELOPE._replace(cluster_id="another")
    refusal = decode_request(ENVELOPE, encode_request(stranger, body))
    assert getattr(refusal, "error_code", None) == InconsistentClusterIdError.code


@pytest.mark.parametrize(
    "body",
    [
        AddVoter(VOTER._replace(endpoints=(VoterEndpoint("OTHER", "h", 1),)), 10),
        UpdateVoter(VOTER._replace(endpoints=()), 5),
        RemoveVoter(ReplicaKey(-1, bytes(16))),
        AddVoter(VOTER._replace(endpoints=VOTER.endpoints * 10_000), 10),
        UpdateVoter(VOTER._replace(endpoints=VOTER.endpoints * (LISTENERS_MAX + 1)), 5),
    ],
)
def test_voter_without_a_reachable_listener_or_with_too_many_is_rejected(body: Body) -> None:
    refusal = decode_request(ENVELOPE, encode_request(ENVELOPE, body))
    assert getattr(refusal, "error_code", None) == InvalidRequestError.code


@pytest.mark.parametrize("body", [AddVoter(VOTER, 10), RemoveVoter(OWN), UpdateVoter(VOTER, 5)])
def test_reply_to_a_change_contains_its_error(body: Body) -> None:
    leader = (2, 7) if isinstance(body, UpdateVoter) else (-1, -1)
    response = encode_reply(body, VoterReply(7, 2, 7, "why"), LEADER)
    heard = on_response(body, response, api_versions(body).max)
    assert heard.reply == VoterReply(7, *leader)
    assert heard.leader == (LEADER if isinstance(body, UpdateVoter) else None)


def test_reply_contains_the_supported_kraft_versions() -> None:
    feature = ApiVersionsResponse.SupportedFeatureKey(
        name="kraft.version", min_version=0, max_version=1
    )
    asked = AskVersions(VOTER, 5)
    versions = ApiVersionsResponse(api_keys=[], supported_features=[feature])
    assert on_response(asked, versions, 4).reply == VersionsReply(0, versions=(0, 1))
    assert on_response(asked, ApiVersionsResponse(api_keys=[]), 4).reply == VersionsReply(0)


def test_batch_of_control_records_contains_the_voters() -> None:
    records = quorum_records_of(VoterSet(0, (VOTER,), 1))
    content = encode_snapshot((), 3, 1000, records)
    changes = [one.change for one in cut(content) if one.change is not None]
    assert changes == [VoterSetChange((VOTER,), 1)]
