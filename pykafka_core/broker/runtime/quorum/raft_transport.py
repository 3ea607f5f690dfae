"""Requests and responses between replicas of the metadata quorum, over this core's sockets."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.quorum.cluster_id_mismatch import OtherClusters
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.broker.runtime.services import Services
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.broker.storage.snapshot_parts import Part, SnapshotParts
from pykafka_core.errors import (
    CorruptMessageError,
    KafkaStorageError,
    ListenerNotFoundError,
    PositionOutOfRangeError,
    SnapshotNotFoundError,
    StorageError,
)
from pykafka_core.protocol import ProtocolError, decode_response, encode_message
from pykafka_core.protocol.messages import BeginQuorumEpochRequest, Message
from pykafka_core.quorum.events import Respond, Send
from pykafka_core.quorum.log.voters import reached_at
from pykafka_core.quorum.rpc import (
    AskVersions,
    BeginQuorumEpoch,
    Body,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    ReplyBody,
    SnapshotReply,
    VersionsReply,
    Vote,
)
from pykafka_core.quorum.values import PART_BYTES_MAX, Voter
from pykafka_core.quorum.wire.envelope import EPOCH_MAX, Endpoint, Envelope, api_versions
from pykafka_core.quorum.wire.replies import decode_reply, encode_reply, is_of_other_cluster
from pykafka_core.quorum.wire.requests import decode_request, encode_request

if TYPE_CHECKING:
    from pykafka_core._core import RecordsRead, Replied

READ_BYTES = 1 << 20
"""Maximum bytes of records in a Fetch response, or one batch."""
PURPOSE = "quorum"
VOTES = "votes"
"""Connections of Vote: a node with a slow disk answers it late, and has to hear of the leader."""

RepliedTo = Callable[[int, ReplyBody | None, bool], object]
"""Called with the correlation, the response or None, and whether the other process has ended."""

_log = GuardedLogger(__name__)


class AskedQuorum(PendingRequest, Protocol):
    """A request whose message this module decodes itself."""

    def decode(self) -> Message:
        """Return the message.

        Raises:
            ProtocolError: It cannot be decoded.
        """


class Heard(NamedTuple):
    """A request of another replica: its arrival time, a number that identifies it, and its content.

    BeginQuorumEpoch also has the leader's address.
    """

    received_ns: int
    number: int
    body: Body
    leader_at: Endpoint | None = None


class Exchange:
    """Sends a replica's requests and responses.

    Args:
        services: Has the sockets, the log for Fetch responses, and the open requests.
        envelope: Common fields of all messages.
        voters: Initial addresses by node id. Addresses of voters are also learned from the log,
            that of the leader from responses and from its BeginQuorumEpoch.
        parts: Parts of this node's snapshots.
        refused: Called with the reason if the others belong to another cluster: the node must stop.
    """

    def __init__(
        self,
        services: Services,
        *,
        envelope: Envelope,
        voters: Mapping[int, Endpoint],
        parts: SnapshotParts,
        refused: Callable[[str], object],
    ) -> None:
        self._core = services.core
        self._completions = services.completions
        self._requests = services.requests
        self._envelope = envelope
        self._endpoints = dict(voters)
        self._parts = parts
        self._clusters = OtherClusters(envelope.cluster_id, self._peers, refused)
        self._numbers = count(1)
        self._open: dict[int, tuple[AskedQuorum, Body]] = {}

    def endpoint(self, node_id: int) -> Endpoint | None:
        """Return the address of a replica, if known."""
        return self._endpoints.get(node_id)

    def _peers(self) -> set[Endpoint]:
        """Return the known addresses of other replicas."""
        own = self._envelope.key.node_id
        return {at for node_id, at in self._endpoints.items() if node_id != own}

    def know(self, voters: Iterable[Voter]) -> None:
        """Add the addresses of the voters in the log."""
        for voter in voters:
            at = self._reached_at(voter)
            if at is not None:
                self._endpoints[voter.key.node_id] = at

    def _reached_at(self, voter: Voter) -> Endpoint | None:
        at = reached_at(voter, self._envelope.names)
        return None if at is None else Endpoint(at.host, at.port)

    # Requests of others.

    def hear(self, request: AskedQuorum) -> Heard | None:
        """Decode a request; None if it already has a response, because it is invalid for this
        quorum.
        """
        try:
            message = cast("Any", request.decode())
        except ProtocolError as error:
            self._requests.refuse(request, f"malformed request: {error}")
            return None
        body = decode_request(self._envelope, message)
        if not isinstance(body, Body):
            self._respond(request, body)
            return None
        leader_at = None
        if isinstance(body, BeginQuorumEpoch) and (leader_at := self._address_in(message)):
            # Used until a voter set in the own log has its address.
            self._endpoints.setdefault(body.leader_id, leader_at)
        number = next(self._numbers)
        self._open[number] = request, body
        self._requests.when_over(request, partial(self._open.pop, number, None))
        return Heard(request.caller.received_ns, number, body, leader_at)

    def learn(self, leader_id: int, at: Endpoint) -> None:
        """Set the address of the leader that this replica follows; it may have changed."""
        self._endpoints[leader_id] = at

    def _address_in(self, message: BeginQuorumEpochRequest) -> Endpoint | None:
        at = {one.name.upper(): Endpoint(one.host, one.port) for one in message.leader_endpoints}
        return next((at[name] for name in self._envelope.names if name in at), None)

    def respond(self, reply: Respond, is_current: Callable[[], bool]) -> None:
        """Respond to a request if it is still open.

        Args:
            reply: The response.
            is_current: Returns whether the records, once read, still belong to this response.
        """
        if reply.number not in self._open:
            return
        if reply.read_from is None:
            self._send_reply(reply, b"")
            return
        on_read = partial(self._on_read, reply, is_current)
        token = self._completions.open(on_read)
        bytes_max = self._bytes_max(reply.number)
        self._core.read_records(token, METADATA_PARTITION, reply.read_from, bytes_max)

    def _bytes_max(self, number: int) -> int:
        _, body = self._open[number]
        assert isinstance(body, Fetch), "only a response to Fetch has records"
        return max(0, min(body.bytes_max, READ_BYTES))

    def _on_read(
        self, reply: Respond, is_current: Callable[[], bool], completed: Completed
    ) -> None:
        records = b""
        if not completed.error_code and is_current():
            read = cast("RecordsRead", completed.value)
            records = read.records if read.offset == reply.read_from else b""
        self._send_reply(reply, records)

    def _send_reply(self, reply: Respond, records: bytes) -> None:
        if reply.number in self._open:
            request, body = self._open[reply.number]
            leader = self._endpoints.get(reply.body.leader_id)
            content = reply.body
            if isinstance(body, FetchSnapshot) and isinstance(content, SnapshotReply):
                content = self._with_part(body, content)
            self._respond(request, encode_reply(body, content, leader, records))

    def _with_part(self, request: FetchSnapshot, reply: SnapshotReply) -> SnapshotReply:
        """Add the requested part of a snapshot.

        Kafka never serves the snapshot of the formatted directory either.
        """
        if reply.error_code:
            return reply
        error, part = 0, None
        if request.snapshot_id.offset <= 0 or not 0 <= request.snapshot_id.epoch <= EPOCH_MAX:
            error = SnapshotNotFoundError.code
        elif request.position < 0:
            error = PositionOutOfRangeError.code
        else:
            part, error = self._read_part(request)
        if part is None:
            return reply._replace(error_code=error, snapshot_id=None)
        return reply._replace(size=part.size, position=request.position, part=part.data)

    def _read_part(self, request: FetchSnapshot) -> tuple[Part | None, int]:
        bytes_max = min(request.bytes_max, PART_BYTES_MAX)
        try:
            part = self._parts.read(request.snapshot_id, request.position, bytes_max)
        except StorageError as error:
            _log.error("a metadata snapshot cannot be given to another node: %s", error)
            return None, KafkaStorageError.code
        if part is None:
            return None, SnapshotNotFoundError.code
        if request.position >= part.size:
            return None, PositionOutOfRangeError.code
        return part, 0

    def _respond(self, request: AskedQuorum, message: Message) -> None:
        self._requests.respond_at_once(request, message)

    # Requests to others.

    def send(self, sent: Send, replied: RepliedTo) -> None:
        """Send a request to a node; ``replied`` is called once."""
        body = sent.body
        at = (
            self._reached_at(body.voter)
            if isinstance(body, AskVersions)
            else self._endpoints.get(sent.node_id)
        )
        if at is None:
            replied(sent.correlation, None, False)
            return
        versions = api_versions(sent.body)
        message = encode_message(encode_request(self._envelope, sent.body), versions.max)
        token = self._completions.open(partial(self._on_replied, sent, at, replied))
        purpose = VOTES if isinstance(body, Vote) else PURPOSE
        peer = purpose, at.host, at.port
        self._core.send(token, peer, versions.api_key, versions.max, message, sent.timeout_ms)

    def _on_replied(
        self,
        sent: Send,
        at: Endpoint,
        replied: RepliedTo,
        completed: Completed,
    ) -> None:
        reply = None
        if not completed.error_code:
            versions = api_versions(sent.body)
            body = cast("Replied", completed.value).body
            try:
                message = decode_response(versions.api_key, versions.max, body)
                if is_of_other_cluster(cast("Any", message)):
                    self._clusters.is_other(at, is_begun=_is_of_begun_cluster(sent.body))
                heard = decode_reply(cast("Any", message))
            except (ProtocolError, CorruptMessageError):
                pass  # treated as a missing response: the request is retried
            else:
                reply = heard.reply
                if reply is not None and not isinstance(reply, VersionsReply):
                    self._clusters.is_own()
                if reply is not None and heard.leader is not None:
                    self._endpoints[reply.leader_id] = heard.leader
        is_gone = completed.error_code == ListenerNotFoundError.code
        replied(sent.correlation, reply, is_gone)


def _is_of_begun_cluster(body: Body) -> bool:
    """Return whether the sender was elected, or has records of an elected leader; then the voter's
    address is wrong.
    """
    if isinstance(body, Vote):
        return body.last.epoch > 0
    return isinstance(body, BeginQuorumEpoch | EndQuorumEpoch)
