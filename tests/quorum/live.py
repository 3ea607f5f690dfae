"""A replica of the quorum without the other parts of a node, with sockets, and a log on disk."""

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pykafka_core import _core
from pykafka_core.broker.core_bridge.core_types import CoreTypes
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.core_bridge.projection import metadata_log
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.metadata.quorum_port import Replaced
from pykafka_core.broker.runtime.quorum.driver import ReplicaDriver
from pykafka_core.broker.runtime.quorum.raft_transport import Exchange, RepliedTo
from pykafka_core.broker.runtime.requests.pending_request import RemoteRequest
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.broker.start.quorum_log import log_state
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.snapshot_parts import SnapshotParts
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.registry import QUORUM_ROWS
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.codec import decode_batches, encode
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.metadata.records.snapshot import (
    NO_QUORUM_RECORDS,
    encode_snapshot,
    records_of,
)
from pykafka_core.protocol.messages import Message
from pykafka_core.quorum import replica
from pykafka_core.quorum.events import LogCleaned, Send, SnapshotTaken
from pykafka_core.quorum.quorum import Committed, Proposal
from pykafka_core.quorum.replica import Replica
from pykafka_core.quorum.rpc import Vote
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch, QuorumConfig, ReplicaKey
from pykafka_core.quorum.wire.envelope import Endpoint, Envelope
from tests.support.patience import PATIENCE_S

ROWS = {row.api_key: row for row in QUORUM_ROWS}
SERVED = {row.api_key: row.versions for row in QUORUM_ROWS}
READ_BYTES = 1 << 20


class Abstaining(Exchange):
    """The exchange of a replica that is never elected: its requests for votes are not sent."""

    def send(self, sent: Send, replied: RepliedTo) -> None:
        if isinstance(sent.body, Vote):
            replied(sent.correlation, None, False)
        else:
            super().send(sent, replied)


class LiveReplica:
    """A replica that its own thread runs within a ``with`` block.

    Args:
        folder: Its data directory, which an earlier replica may have used.
        peers: The addresses of the other voters by node id.
        is_candidate: False if it must not request votes in elections.
        config: Its timeouts, and the sizes that it requests.
    """

    def __init__(
        self,
        key: ReplicaKey,
        voters: tuple[ReplicaKey, ...],
        cluster_id: str,
        peers: Mapping[int, Endpoint],
        folder: Path,
        port: int = 0,
        is_candidate: bool = True,
        config: QuorumConfig = QuorumConfig(),  # noqa: B008
    ) -> None:
        self._core = core = _core.Core(
            _core.CoreOptions(
                data_dir=str(folder), node_id=key.node_id, cluster_id=cluster_id, durability="os"
            )
        )
        self.directory = DataDirectory(folder)
        parts = SnapshotParts(self.directory)
        self.votes: dict[int, ReplicaKey] = {}
        """The candidates for which it has voted, by epoch."""
        self.port = core.listen("CONTROLLER", f"127.0.0.1:{port}", SERVED)
        own = {"CONTROLLER": Endpoint("127.0.0.1", self.port)}
        types = cast("CoreTypes", _core)
        core.apply(metadata_log(types, key.node_id, BrokerConfigs({}), 0, on_disk=True))
        services = create_services(core)
        self._completions, self._timers = services.completions, services.timers
        self._requests, self._replies = services.requests, services.replies
        self._driver = ReplicaDriver(
            services,
            exchange=(Exchange if is_candidate else Abstaining)(
                services,
                envelope=Envelope(cluster_id, key, own),
                voters={**peers, key.node_id: own["CONTROLLER"]},
                parts=parts,
                refused=_refused,
            ),
            initial=replica.begin(
                key,
                voters,
                self.directory.election(),
                log_state(core, self.directory.snapshots()),
                now_ms=core.now_ns() // 1_000_000,
                seed=int.from_bytes(os.urandom(8), "big"),
                config=config,
            ),
            persist=self._write_election,
            parts=parts,
            make_way=lambda: False,
        )
        self.published: list[Committed] = []
        self.replaced: list[Replaced] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._drive)
        self._is_over = False
        self._proposals: deque[Proposal] = deque()
        self._asked: deque[Callable[[], object]] = deque()
        self.failure: BaseException | None = None

    def __enter__(self) -> "LiveReplica":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def replica(self) -> Replica:
        return self._driver.quorum

    @property
    def leads(self) -> bool:
        """Whether it can propose: it has committed in its epoch and knows all committed records."""
        return self._driver.can_propose

    def stop(self) -> None:
        """Stop at once, and close all connections."""
        self._is_over = True
        self._core.wake()
        self._thread.join()
        self._driver.finish()
        self._core.stop(0)

    def propose(self, records: Sequence[Message]) -> None:
        """Append records as one batch; the replica must be the leader."""
        self._proposals.append(Proposal(records, [encode(record) for record in records]))
        self._core.wake()

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until the condition is true.

        Raises:
            AssertionError: The condition was not true in time, or the replica failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.failure or condition(), PATIENCE_S)
        assert self.failure is None, f"{self.failure!r}"
        assert condition(), f"{what}: {self.replica}"

    def wait_until_committed(self, end: int) -> None:
        """Wait until all records before ``end`` are committed."""
        self.wait_for(lambda: self.replica.high_watermark >= end, f"{end} is committed")

    def take_snapshot(self, quorum: QuorumRecords = NO_QUORUM_RECORDS) -> OffsetAndEpoch:
        """Write a snapshot of all committed records, and delete the log before its end."""
        taken: list[OffsetAndEpoch] = []
        self._asked.append(lambda: taken.append(self._take_snapshot(quorum)))
        self._core.wake()
        self.wait_for(lambda: taken and self.log_start == taken[0].offset, "the log begins there")
        return taken[0]

    def _take_snapshot(self, quorum: QuorumRecords) -> OffsetAndEpoch:
        replay = Replay()
        for batch in self.published:
            replay.apply_batch(batch.first_offset, batch.last_offset, batch.records)
        end = replay.image().offset + 1
        snapshot_id = self._driver.snapshot_id(end)
        assert snapshot_id is not None
        content = encode_snapshot(records_of(replay.image()), snapshot_id.epoch, 1000, quorum)
        self.directory.write_snapshot(end, snapshot_id.epoch, content)
        self._driver.tell(SnapshotTaken(snapshot_id))
        token = self._completions.open(lambda _: self._driver.tell(LogCleaned(snapshot_id)))
        self._core.delete_before(token, METADATA_PARTITION, end)
        return snapshot_id

    @property
    def quorum_records(self) -> QuorumRecords:
        """The newest records of the quorum that it has read."""
        return self._driver.quorum_records(self.replica.high_watermark)

    @property
    def log_start(self) -> int:
        """The start offset of its log."""
        return self.replica.log.start

    @property
    def committed(self) -> bytes:
        """Batches up to the high watermark."""
        parts, at = [], self._core.offsets(METADATA_PARTITION).log_start_offset
        while data := self._core.read(METADATA_PARTITION, at, READ_BYTES, "high_watermark"):
            parts.append(data)
            at = decode_batches(data).next_offset
        return b"".join(parts)

    # The thread.

    def _write_election(self, state: ElectionState, static_voters: tuple[int, ...]) -> None:
        self.directory.write_election(state, static_voters)
        if state.voted is not None:
            self.votes[state.epoch] = state.voted

    def _drive(self) -> None:
        try:
            self._driver.begin()
            while not self._is_over:
                self._turn()
        except BaseException as error:
            self.failure = error
        with self._changed:
            self._changed.notify_all()

    def _turn(self) -> None:
        for event in self._core.wait(self._timers.next_due_ns()):
            self._take(event)
        self._timers.run(self._core.horizon_ns())
        self._driver.advance()
        while (batch := self._driver.committed.take()) is not None:
            if isinstance(batch, Replaced):
                self.replaced.append(batch)
            else:
                self.published.append(batch)
        while self._asked:
            self._asked.popleft()()
        if self._proposals and self._driver.can_propose:
            self._driver.handle(self._proposals.popleft())
        self._requests.send_replies()
        with self._changed:
            self._changed.notify_all()

    def _take(self, event: "_core.Event") -> None:
        match event:
            case _core.Request():
                asked = RemoteRequest(event, ROWS[event.api_key], self._core, self._replies)
                self._requests.begin(asked)
                self._driver.take(asked)
            case _core.Cancelled():
                self._requests.cancel(event.id)
            case _core.Appended() | _core.Maintained():
                self._completions.complete(event.token, Completed(event.error_code, event.offset))
            case _core.Replied() | _core.RecordsRead():
                self._completions.complete(event.token, Completed(event.error_code, -1, event))
            case _:
                pass


def _refused(reason: str) -> None:
    raise AssertionError(reason)
