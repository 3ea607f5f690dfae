"""Members of groups as raw connections: each request is a frame, each response is checked."""

from typing import Any

from bench.client import Connection, frame
from pykafka_core.errors import CoordinatorLoadInProgressError
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    Message,
    OffsetCommitRequest,
    SyncGroupRequest,
)

OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP = (8, 7), (10, 2), (11, 3)
HEARTBEAT, SYNC_GROUP, LIST_GROUPS = (12, 3), (14, 3), (16, 2)
"""(API key, version): the last version without flexible headers; JoinGroup needs one round only."""
SESSION_TIMEOUT_MS = 60_000


class Member:
    """A member of a group, with its own connection."""

    def __init__(
        self, bootstrap_servers: str, group_id: str, session_timeout_ms: int = SESSION_TIMEOUT_MS
    ) -> None:
        self.connection = Connection(bootstrap_servers)
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.member_id, self.leader, self.generation_id = "", "", -1
        self.others: list[str] = []

    def send(self, api: tuple[int, int], request: Message) -> None:
        self.connection.send_frame(frame(api, request))

    def receive(self, api: tuple[int, int]) -> Any:
        response: Any = decode_response(*api, self.connection.receive_body())
        assert response.error_code == 0, response
        return response

    def join(self, metadata: bytes = b"m" * 20) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
        request = JoinGroupRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.send(JOIN_GROUP, request)

    def joined(self) -> None:
        response = self.receive(JOIN_GROUP)
        self.member_id, self.leader = response.member_id, response.leader
        self.generation_id = response.generation_id
        self.others = [member.member_id for member in response.members]

    def sync(self) -> None:
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            assignments=[assignment(member_id=name, assignment=b"a" * 20) for name in self.others],
        )
        self.send(SYNC_GROUP, request)

    def heartbeat(self) -> bytes:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id
        )
        return frame(HEARTBEAT, request)

    def commit(self, partitions: int) -> bytes:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name="topic",
            partitions=[
                partition(partition_index=index, committed_offset=7, committed_metadata="")
                for index in range(partitions)
            ],
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            topics=[topic],
        )
        return frame(OFFSET_COMMIT, request)


def join(members: list[Member]) -> None:
    """Join all members at the same time."""
    for member in members:
        member.join()
    for member in members:
        member.joined()
    for member in members:
        member.sync()
    for member in members:
        member.receive(SYNC_GROUP)


def find_coordinator(bootstrap_servers: str) -> None:
    """Cause the broker to create the topic of the groups and to load its partitions."""
    with Connection(bootstrap_servers) as connection:
        request = frame(FIND_COORDINATOR, FindCoordinatorRequest(key="group", key_type=0))
        assert error_of(FIND_COORDINATOR, connection.exchange(request)) == 0
        request = frame(LIST_GROUPS, ListGroupsRequest())
        while (
            error_of(LIST_GROUPS, connection.exchange(request))
            == CoordinatorLoadInProgressError.code
        ):
            pass


def error_of(api: tuple[int, int], body: bytes) -> int:
    """Return the error code of a response that has one."""
    response: Any = decode_response(*api, body)
    return int(response.error_code)
