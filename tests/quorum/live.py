"""A replica of the quorum on a core's sockets: what a node will do, with log and quorum-state in memory."""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from pykafka_core import _core
from pykafka_core.protocol import (
    decode_request,
    decode_response,
    encode_message,
    encode_metadata_record,
)
from pykafka_core.protocol.messages import Message
from pykafka_core.quorum import events, replica
from pykafka_core.quorum.envelope import (
    Endpoint,
    Envelope,
    api_versions,
    decode_answer,
    encode_answer,
    encode_request,
)
from pykafka_core.quorum.envelope import decode_request as decode_body
from pykafka_core.quorum.log_state import LogState
from pykafka_core.quorum.quorum import Append, Appended, Committed, Proposal
from pykafka_core.quorum.roles import NEVER
from pykafka_core.quorum.rpc import Body, Vote
from pykafka_core.quorum.values import Batch, ElectionState, ReplicaKey

FETCH, VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH = 1, 52, 53, 54
SERVED = {FETCH: (4, 18), VOTE: (0, 2), BEGIN_QUORUM_EPOCH: (0, 1), END_QUORUM_EPOCH: (0, 1)}
NS_PER_MS = 1_000_000
PATIENCE_S = 100


class LiveReplica:
    """Driven by a thread of its own, within a ``with`` block.

    Args:
        peers: Where other voters are, by node id.
        stands: For election: whether it asks for votes.
    """

    def __init__(
        self,
        key: ReplicaKey,
        voters: tuple[ReplicaKey, ...],
        cluster_id: str,
        peers: Mapping[int, Endpoint],
        port: int = 0,
        stands: bool = True,
    ) -> None:
        self._core = _core.Core(
            _core.CoreOptions(
                data_dir=None, node_id=key.node_id, cluster_id=cluster_id, durability="memory"
            )
        )
        self.port = self._core.listen("CONTROLLER", f"127.0.0.1:{port}", SERVED)
        own = {"CONTROLLER": Endpoint("127.0.0.1", self.port)}
        self._envelope = Envelope(cluster_id, key, own)
        self._endpoints = {**peers, key.node_id: own["CONTROLLER"]}
        self._open: dict[int, tuple[_core.Request, Body]] = {}
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._drive)
        self._is_over, self._stands = False, stands
        self._proposals: deque[Proposal] = deque()
        self.failure: BaseException | None = None
        self.batches: list[Batch] = []
        self.state = ElectionState(0)
        self.votes: dict[int, ReplicaKey] = {}
        """That it gave, by epoch."""
        self.replica, outputs = replica.begin(
            key,
            voters,
            self.state,
            LogState(),
            now_ms=self._now_ms(),
            seed=int.from_bytes(os.urandom(8), "big"),
        )
        self._carry_out(outputs)

    def __enter__(self) -> "LiveReplica":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """From one moment to the next, with all its connections."""
        self._is_over = True
        self._core.wake()
        self._thread.join()
        self._core.stop(0)

    def propose(self, records: Sequence[Message]) -> None:
        """Have the replica, which leads, append records as one batch."""
        values = [encode_metadata_record(record, 0) for record in records]
        self._proposals.append(Proposal(records, values))
        self._core.wake()

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Until it is true.

        Raises:
            AssertionError: It is not in time, or the replica failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.failure or condition(), PATIENCE_S)
        assert self.failure is None, f"{self.failure!r}"
        assert condition(), f"{what}: {self.replica}"

    def wait_until_committed(self, end: int) -> None:
        """All before ``end``."""
        self.wait_for(lambda: self.replica.high_watermark >= end, f"{end} is committed")

    @property
    def committed(self) -> bytes:
        """Batches up to the high watermark."""
        end = self.replica.high_watermark
        return b"".join(batch.data for batch in self.batches if batch.end_offset <= end)

    # The thread.

    def _now_ms(self) -> int:
        return self._core.now_ns() // NS_PER_MS

    def _drive(self) -> None:
        try:
            while not self._is_over:
                self._turn()
        except BaseException as error:
            self.failure = error
        with self._changed:
            self._changed.notify_all()

    def _turn(self) -> None:
        deadline_ms = min(self.replica.deadline_ms, self._now_ms() + 1000)
        assert deadline_ms < NEVER
        for event in self._core.wait(deadline_ms * NS_PER_MS):
            match event:
                case _core.Request():
                    self._on_request(event)
                case _core.Replied():
                    self._on_replied(event)
                case _core.Cancelled():
                    self._open.pop(event.id, None)
                case _:
                    pass
        while self._proposals and self.replica.can_propose:
            self._handle(self._proposals.popleft())
        if self._now_ms() >= self.replica.deadline_ms:
            self._handle(events.Tick(self._now_ms()))
        with self._changed:
            self._changed.notify_all()

    def _on_request(self, event: _core.Request) -> None:
        message: Any = decode_request(event.api_key, event.api_version, event.body)
        for at in getattr(message, "leader_endpoints", ()):
            self._endpoints[message.topics[0].partitions[0].leader_id] = Endpoint(at.host, at.port)
        body = decode_body(self._envelope, message)
        if not isinstance(body, tuple):
            self._respond(event, body)
            return
        self._open[event.id] = event, body
        self._handle(events.Request(event.received_ns // NS_PER_MS, event.id, body))

    def _on_replied(self, event: _core.Replied) -> None:
        sent = {correlation: body for correlation, _, body in self.replica.sent}
        body = sent.get(event.token)
        answer = None
        if body is not None and not event.error_code:
            api_key, _, version = api_versions(body)
            message: Any = decode_response(api_key, version, event.body)
            answer = decode_answer(message).answer
        self._handle(events.Replied(self._now_ms(), event.token, answer))

    def _handle(self, event: events.ReplicaEvent) -> None:
        self.replica, outputs = self.replica.handle(event)
        self._carry_out(outputs)

    def _carry_out(self, outputs: list[events.ReplicaOutput]) -> None:
        for output in outputs:
            match output:
                case events.Persist(state):
                    self.state = state
                    if state.voted is not None:
                        self.votes[state.epoch] = state.voted
                    self._handle(events.Persisted())
                case events.Send():
                    self._send(output)
                case events.Answer():
                    self._answer(output)
                case events.AppendFetched(batches):
                    self.batches += batches
                    self._handle(Appended(0, batches[0].base_offset))
                case events.Truncate(end_offset):
                    self.batches = [one for one in self.batches if one.end_offset <= end_offset]
                    self._handle(events.Truncated())
                case Append():
                    self._append(output)
                case events.FetchSnapshot() | events.Failed():
                    raise AssertionError(f"nobody asks for that here: {output}")
                case events.Advanced() | events.InDoubt() | events.LeaderChanged() | Committed():
                    pass
                case _:
                    assert_never(output)

    def _send(self, sent: events.Send) -> None:
        if isinstance(sent.body, Vote) and not self._stands:
            self._handle(events.Replied(self._now_ms(), sent.correlation, None))
            return
        api_key, _, version = api_versions(sent.body)
        at = self._endpoints[sent.node_id]
        body = encode_message(encode_request(self._envelope, sent.body), version)
        peer = ("quorum", at.host, at.port)
        self._core.send(sent.correlation, peer, api_key, version, body, sent.timeout_ms)

    def _append(self, append: Append) -> None:
        begin = self.batches[-1].end_offset if self.batches else 0
        records = [(append.key, value) for value in append.values]
        data = _core.build_batch(
            records,
            base_offset=begin,
            leader_epoch=append.leader_epoch,
            timestamp_default=self._core.time_ms(),
            control=append.control is not None,
        )
        self.batches.append(Batch(begin, append.leader_epoch, len(records), data))
        self._handle(Appended(0, begin))

    def _answer(self, answer: events.Answer) -> None:
        if answer.number not in self._open:
            return
        event, body = self._open.pop(answer.number)
        leader = self._endpoints.get(answer.body.leader_id)
        begin = answer.read_from
        records = b"" if begin is None else self._read(begin)
        self._respond(event, encode_answer(body, answer.body, leader, records))

    def _read(self, begin: int) -> bytes:
        return b"".join(batch.data for batch in self.batches if batch.base_offset >= begin)

    def _respond(self, event: _core.Request, message: Any) -> None:
        self._core.respond([(event.id, encode_message(message, event.api_version))])
