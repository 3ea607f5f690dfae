"""Attacks that make a broker use memory. Each ends when the broker has handled it."""

import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from pykafka_core.protocol import decode_response, encode_message
from pykafka_core.protocol.connection import encode_frame, encode_header
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    SyncGroupRequest,
)

from .batches import (
    MIB,
    NOW_MS,
    batch_of,
    empty_records,
    gzip_bomb,
    snappy_bomb,
    stored_bomb,
    zstd_bomb,
)

PATIENCE_S = 60
WHOLE_MIB = 128
"""Maximum size of a batch after inflation; only one is inflated as a whole at a time."""
PRODUCE, FETCH, LIST_OFFSETS, METADATA, CREATE_TOPICS, DESCRIBE_CONFIGS = 0, 1, 2, 3, 19, 32
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
JOIN_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 11, 14, 15, 16


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    """Open a connection that ends with a reset, which the broker detects immediately."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        yield connection


def receive(connection: socket.socket, api_key: int, version: int) -> Any:
    """Return the next response."""
    return decode_response(api_key, version, _body(connection))


def _body(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, size)[5:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), MIB))
        assert part, "the broker closed the connection"
        data += part
    return bytes(data)


def _serves(address: str) -> None:
    """Check that the broker responds to an honest client."""
    with connected(address) as connection:
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
        connection.sendall(encode_frame(METADATA, 12, request))
        (topic,) = receive(connection, METADATA, 12).topics
        assert topic.error_code == 0


def create_topics_and_reset(address: str, count: int = 1_000) -> None:
    """Send requests of 1 MB for Python, and reset each connection immediately afterwards."""
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=f"{number:0240}", num_partitions=1, replication_factor=1
        )
        for number in range(4_200)
    ]
    creating = CreateTopicsRequest(topics=topics, timeout_ms=1_000, validate_only=True)
    request = encode_frame(CREATE_TOPICS, 7, creating)
    for _ in range(count):
        with connected(address) as connection:
            connection.sendall(request)
    _serves(address)


def describe_tiny_resources(address: str, count: int = 20, resources: int = 100_000) -> None:
    """Send requests with elements of 4 bytes, which become Python objects of some hundred bytes."""
    topic_without_name = b"\x02\x01\0\0"
    length = resources + 1
    size = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
    head = encode_header(DESCRIBE_CONFIGS, 4, 1, "test")
    body = head + size + topic_without_name * resources + bytes(3)
    with ExitStack() as stack:
        for _ in range(count):
            peer = stack.enter_context(connected(address))
            peer.sendall(struct.pack(">i", len(body)) + body)
        _serves(address)
    _serves(address)


def grow_fetch_session(address: str, requests: int = 12, partitions: int = 20_000) -> None:
    """Grow one fetch session with each incremental request."""
    with connected(address) as connection:
        session_id, epoch = 0, 0
        for number in range(requests):
            topic = FetchRequest.FetchTopic(topic_id=number.to_bytes(16, "big"))
            topic.partitions = [
                FetchRequest.FetchPartition(partition=index, partition_max_bytes=1)
                for index in range(partitions)
            ]
            request = FetchRequest(
                max_bytes=1, session_id=session_id, session_epoch=epoch, topics=[topic]
            )
            connection.sendall(encode_frame(FETCH, 13, request))
            # The response contains every partition, because none exists; only its head is decoded.
            _, error_code, session_id = struct.unpack_from(">ihi", _body(connection))
            epoch += 1
            if error_code or not session_id:
                session_id, epoch = 0, 0
    _serves(address)


def produce_request(topic: str, records: bytes, acks: int = 1, partition: int = 0) -> bytes:
    """Return a request with one batch."""
    data = ProduceRequest.TopicProduceData(name=topic)
    data.partition_data = [ProduceRequest.PartitionProduceData(index=partition, records=records)]
    return encode_frame(
        PRODUCE, 12, ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[data])
    )


def fetch_request(topic: str, offset: int, bytes_max: int, wait_ms: int) -> bytes:
    """Return a fetch of partition 0 from ``offset`` on, without a session."""
    wanted = FetchRequest.FetchTopic(topic=topic)
    wanted.partitions = [
        FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    ]
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=bytes_max, session_epoch=-1, topics=[wanted]
    )
    return encode_frame(FETCH, 12, request)


def inflate_bombs(address: str) -> None:
    """Send batches that grow a thousandfold, which are inflated through a window."""
    _produce_again(address, gzip_bomb(120 * MIB))


def inflate_zstd_bombs(address: str) -> None:
    """Send batches of zstd whose window needs all their output at once."""
    _produce_again(address, zstd_bomb(120 * MIB))


def inflate_snappy_bombs(address: str) -> None:
    """Send batches with one Snappy block, as large as possible for a batch of 1 MB."""
    _produce_again(address, snappy_bomb(20 * MIB))


def rewrite_bombs(address: str) -> None:
    """Send batches of empty records: 21 MB, 30 MB after the rewrite; each takes a second or two."""
    _produce_again(address, empty_records(3_000_000), connections=2, rounds=1)


def _produce_again(address: str, batch: bytes, connections: int = 6, rounds: int = 2) -> None:
    request = produce_request("orders", batch)
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        for _ in range(rounds):
            for peer in peers:
                peer.sendall(request)
            for peer in peers:
                receive(peer, PRODUCE, 12)
    _serves(address)


def look_up_large_batches(address: str, connections: int = 6, partitions: int = 4) -> None:
    """Look up a time in stored batches that are inflated as a whole, on several connections."""
    topic = ListOffsetsRequest.ListOffsetsTopic(name="wide-1")
    topic.partitions = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=NOW_MS)
        for index in range(partitions)
    ]
    look_up = encode_frame(LIST_OFFSETS, 7, ListOffsetsRequest(topics=[topic]))
    bomb = stored_bomb(110 * MIB)
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        for index in range(partitions):
            peers[0].sendall(produce_request("wide-1", bomb, partition=index))
            (stored,) = receive(peers[0], PRODUCE, 12).responses
            assert stored.partition_responses[0].error_code == 0, stored
        for peer in peers:
            peer.sendall(look_up)
        for peer in peers:
            (found,) = receive(peer, LIST_OFFSETS, 7).topics
            assert {one.error_code for one in found.partitions} == {0}, found
    _serves(address)


def leave_responses(address: str, connections: int = 100, seconds: float = 3) -> None:
    """Request large responses on many connections repeatedly, and read none."""
    request = encode_frame(METADATA, 12, MetadataRequest(topics=None))
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        for peer in peers:
            peer.sendall(request * 20)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            _serves(address)


def leave_offsets(address: str, connections: int = 40, repeated: int = 60) -> None:
    """Request the offsets of one group many times per request, and read no response."""
    of = OffsetCommitRequest
    offsets = [
        of.OffsetCommitRequestPartition(partition_index=index, committed_offset=index)
        for index in range(3_000)
    ]
    topic = of.OffsetCommitRequestTopic(name="wide-2", partitions=offsets)
    committing = of(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    fetching = encode_frame(OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group] * repeated))
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        _commit(peers[0], encode_frame(OFFSET_COMMIT, 9, committing))
        for peer in peers:
            peer.sendall(fetching)
        _serves(address)
        (response,) = [receive(peers[-1], OFFSET_FETCH, 9)]
        assert [len(group.topics[0].partitions) for group in response.groups] == [3_000] * repeated


def leave_descriptions(address: str, connections: int = 30, groups: int = 8) -> None:
    """Request the description of groups with large metadata, and read no response."""
    names = [f"described-{number}" for number in range(groups)]
    describing = encode_frame(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=names))
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        _find_coordinator(peers[0])
        # The first rebalance of each group waits for further members.
        with ThreadPoolExecutor(groups) as threads:
            list(threads.map(partial(_join, metadata=bytes(900_000)), peers, names))
        for peer in peers:
            peer.sendall(describing)
        _serves(address)
        response = receive(peers[-1], DESCRIBE_GROUPS, 5)
        assert [len(group.members[0].member_metadata) for group in response.groups] == [
            900_000
        ] * groups


def leave_lists(address: str, connections: int = 200, groups: int = 10_000) -> None:
    """Request the list of many groups on many connections, and read no response."""
    listing = encode_frame(LIST_GROUPS, 5, ListGroupsRequest())
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        _commit(peers[0], _commit_of("listed-0"))
        for first in range(1, groups, 1_000):
            numbers = range(first, min(first + 1_000, groups))
            peers[0].sendall(b"".join(_commit_of(f"listed-{number}") for number in numbers))
            for _ in numbers:
                receive(peers[0], OFFSET_COMMIT, 9)
        for peer in peers:
            peer.sendall(listing)
        _serves(address)
        listed = receive(peers[-1], LIST_GROUPS, 5).groups
        assert sum(group.group_id.startswith("listed-") for group in listed) == groups


def leave_offsets_of_groups(address: str, connections: int = 30, groups: int = 8) -> None:
    """Request all offsets of groups with 30,000 each, and read no response."""
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    names = [f"large-{number}" for number in range(groups)]
    request = OffsetFetchRequest(groups=[of(group_id=name, topics=None) for name in names])
    fetching = encode_frame(OFFSET_FETCH, 9, request)
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        for name in names:
            for number in range(10):
                _commit(peers[0], _commit_of(name, f"wide-{number}", 3_000))
        for peer in peers:
            peer.sendall(fetching)
        _serves(address)
        found = receive(peers[0], OFFSET_FETCH, 9).groups
        # The last groups are beyond the limit of a response.
        counts = [sum(len(topic.partitions) for topic in group.topics) for group in found]
        assert counts[0] == 30_000
        assert set(counts) <= {30_000, 0}


def _commit_of(group_id: str, topic: str = "orders", partitions: int = 1) -> bytes:
    """Return a request that commits offsets of a group, which need not exist."""
    of = OffsetCommitRequest
    offsets = [
        of.OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
        for index in range(partitions)
    ]
    of_topic = of.OffsetCommitRequestTopic(name=topic, partitions=offsets)
    committing = of(group_id=group_id, generation_id_or_member_epoch=-1, topics=[of_topic])
    return encode_frame(OFFSET_COMMIT, 9, committing)


def _join(connection: socket.socket, name: str, metadata: bytes) -> None:
    """Join the only member of a group, which becomes stable."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    joining = JoinGroupRequest(
        group_id=name,
        group_instance_id="member",
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    deadline = time.monotonic() + PATIENCE_S
    code = -1
    while code:
        assert time.monotonic() < deadline, code
        connection.sendall(encode_frame(JOIN_GROUP, 7, joining))
        joined = receive(connection, JOIN_GROUP, 7)
        code = joined.error_code
    assigned = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id)
    syncing = SyncGroupRequest(
        group_id=name,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="member",
        assignments=[assigned],
    )
    connection.sendall(encode_frame(SYNC_GROUP, 4, syncing))
    assert receive(connection, SYNC_GROUP, 4).error_code == 0


def end_requests_with_an_error(address: str, connections: int = 60, topics: int = 99_000) -> None:
    """Send requests that are many times larger once decoded, and invalid at their end."""
    valid = bytes(encode_message(OffsetCommitRequest(topics=[_NO_PARTITIONS] * topics), 9))
    frame = encode_header(OFFSET_COMMIT, 9, 1, "test") + valid[:-1]
    with ExitStack() as stack:
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        _find_coordinator(peers[0])
        for peer in peers:
            peer.sendall(struct.pack(">i", len(frame)) + frame)
        for peer in peers:
            assert peer.recv(1) == b"", "the broker closes the connection"
    _serves(address)


_NO_PARTITIONS = OffsetCommitRequest.OffsetCommitRequestTopic(name="", partitions=[])


def _commit(connection: socket.socket, request: bytes) -> None:
    """Commit offsets once the coordinator is loaded."""
    _find_coordinator(connection)
    deadline = time.monotonic() + PATIENCE_S
    code = -1
    while code:
        assert time.monotonic() < deadline, code
        connection.sendall(request)
        code = receive(connection, OFFSET_COMMIT, 9).topics[0].partitions[0].error_code


def _find_coordinator(connection: socket.socket) -> None:
    connection.sendall(
        encode_frame(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
    )
    receive(connection, FIND_COORDINATOR, 4)


def leave_records(address: str, connections: int = 60, batches: int = 8) -> None:
    """Fetch megabytes of records from a log in memory on many connections, and read none."""
    topic, fetched = "wide-0", fetch_request("wide-0", 0, 8 * MIB, 0)
    with ExitStack() as stack:
        filler = stack.enter_context(connected(address))
        filler.sendall(fetched)
        (response,) = receive(filler, FETCH, 12).responses
        for _ in range(batches if response.partitions[0].high_watermark == 0 else 0):
            filler.sendall(produce_request(topic, batch_of(bytes(900_000))))
            receive(filler, PRODUCE, 12)
        peers = [stack.enter_context(connected(address)) for _ in range(connections)]
        for peer in peers:
            peer.sendall(fetched)
        _serves(address)
    _serves(address)


ATTACKS: dict[str, Callable[[str], None]] = {
    attack.__name__: attack
    for attack in (
        create_topics_and_reset,
        describe_tiny_resources,
        grow_fetch_session,
        inflate_bombs,
        inflate_zstd_bombs,
        inflate_snappy_bombs,
        rewrite_bombs,
        look_up_large_batches,
        leave_responses,
        leave_offsets,
        leave_descriptions,
        leave_lists,
        leave_offsets_of_groups,
        end_requests_with_an_error,
        leave_records,
    )
}
INFLATED_WHOLE = frozenset(
    attack.__name__
    for attack in (inflate_zstd_bombs, inflate_snappy_bombs, rewrite_bombs, look_up_large_batches)
)
"""These attacks cause batches to be inflated as a whole, one at a time: `WHOLE_MIB`."""
