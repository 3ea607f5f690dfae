"""Group members with random behaviour: they join, commit, leave, pause, and lose their connections.

A life is a loop of one member, in its own thread, with raw requests. Any request may be the last
one of its connection. The member then continues on a new one, as a client does. Responses are
recorded for the checker.
"""

import random
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Event, Lock
from typing import Any

from pykafka_core.protocol import messages as m
from tests.faults.history import Anomaly, OffsetCommitted, OffsetFetched, Owned
from tests.faults.raw import LOADING, NONE, Keys
from tests.support.patience import exactly
from tests.support.wire import Connection

UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION = 25, 22
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH = 110, 113
SESSION_MS, REBALANCE_MS = 1_000, 2_000
BEAT_S = exactly(0.05, "the interval of heartbeats")
SUBSCRIPTION = struct.pack(">hih6si", 0, 1, 6, b"orders", -1)


class GoneError(Exception):
    """The connection ended; its last request may have had its effect."""


class Noted:
    """Responses to all lives of one group. Committed offsets are unique."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.owned: list[Owned] = []
        self.commits: list[OffsetCommitted] = []
        self.fetches: list[OffsetFetched] = []
        self.responses = 0
        self._lock, self._offset = Lock(), 0

    def next_offset(self) -> int:
        with self._lock:
            self._offset += 1
            return self._offset


class Line:
    """A connection that can end at any time, before a response is read or with its broker."""

    def __init__(self, address: str, choice: random.Random, cuts: float) -> None:
        self._address, self._choice, self._cuts = address, choice, cuts
        self._connection: Connection | None = None

    def open(self) -> Connection:
        """Return a new connection to the right node."""
        return Connection(self._address)

    def ask(self, api_key: int, version: int, request: Any) -> Any:
        try:
            if self._connection is None:
                self._connection = self.open()
            if self._choice.random() < self._cuts:
                self._connection.send(api_key, version, request)
                time.sleep(self._choice.choice((0.0, 0.0, 0.001, 0.02)))
                raise GoneError
            return self._connection.ask(api_key, version, request)
        except (OSError, ConnectionError) as error:
            raise GoneError from error

    def cut(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Life(ABC):
    """One member, from its first request until `stopping` is set.

    Args:
        cuts: Probability that a request is the last one of its connection.
        line: Factory of its connections.
    """

    def __init__(
        self,
        address: str,
        noted: Noted,
        seed: int,
        cuts: float,
        line: Callable[[str, random.Random, float], Line] = Line,
    ) -> None:
        self._noted = noted
        self._choice = random.Random(seed)
        self._line = line(address, self._choice, cuts)
        self._name = f"{noted.group}-{seed}"
        self.member_id, self.generation = "", -1
        self.partitions: list[int] = []
        self.is_calm = Event()
        """While it is set, the member only sends the requests that keep it in its group."""

    def run(self, stopping: Event) -> None:
        while not stopping.is_set():
            try:
                self._live(stopping)
            except GoneError:
                self._line.cut()
                time.sleep(0.01)
        self._line.cut()

    def cut(self) -> None:
        """Close its connection; the next request opens a new one."""
        self._line.cut()

    def _live(self, stopping: Event) -> None:
        while not stopping.is_set():
            self._join(stopping)
            while not stopping.is_set() and self._beat():
                if not self.is_calm.is_set():
                    self._do_something()
                stopping.wait(BEAT_S)

    def _do_something(self) -> None:
        act = self._choice.random()
        if act < 0.4:
            self._commit()
        elif act < 0.5:
            self.fetch()
        elif act < 0.53:
            self._leave()
        elif act < 0.56:
            time.sleep(self._choice.choice((0.3, 1.5 * SESSION_MS / 1000)))
        elif act < 0.6:
            self._line.cut()

    def _ask(self, api_key: int, version: int, request: Any) -> Any:
        while True:
            response = self._line.ask(api_key, version, request)
            self._noted.responses += 1
            if getattr(response, "error_code", NONE) not in LOADING:
                return response
            time.sleep(0.01)

    def _commit(self) -> None:
        if not self.partitions:
            return
        partition, offset = self._choice.choice(self.partitions), self._noted.next_offset()
        row = m.OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset
        )
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[row])
        request = m.OffsetCommitRequest(
            group_id=self._noted.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[topic],
        )
        code = None
        try:
            response = self._line.ask(Keys.OFFSET_COMMIT, 9, request)
            code = response.topics[0].partitions[0].error_code
        finally:
            if code is None or code == NONE:
                done = OffsetCommitted(partition, offset, code == NONE, time.monotonic())
                self._noted.commits.append(done)

    def fetch(self) -> None:
        """Fetch the committed offsets of the group, and record them."""
        wanted = m.OffsetFetchRequest.OffsetFetchRequestTopics(
            name="orders", partition_indexes=[0, 1, 2, 3, 4, 5]
        )
        asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self._noted.group, topics=[wanted]
        )
        began = time.monotonic()
        response = self._line.ask(Keys.OFFSET_FETCH, 9, m.OffsetFetchRequest(groups=[asked]))
        if response.groups[0].error_code == NONE:
            self._noted.fetches.extend(
                OffsetFetched(row.partition_index, row.committed_offset, began)
                for row in response.groups[0].topics[0].partitions
            )

    @abstractmethod
    def _join(self, stopping: Event) -> None: ...

    @abstractmethod
    def _beat(self) -> bool:
        """Return whether it is still in the group, in this generation."""

    @abstractmethod
    def _leave(self) -> None: ...


class ClassicLife(Life):
    """A member that joins, syncs and sends heartbeats. The leader assigns the six partitions."""

    def _join(self, stopping: Event) -> None:
        self.partitions = []
        while not stopping.is_set():
            joined = self._ask(Keys.JOIN_GROUP, 9, self._join_request())
            if joined.error_code == MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
            elif joined.error_code == UNKNOWN_MEMBER_ID:
                self.member_id = ""
            elif joined.error_code == NONE:
                self.member_id, self.generation = joined.member_id, joined.generation_id
                if self._sync(joined):
                    return
            else:
                assert joined.error_code == REBALANCE_IN_PROGRESS, joined

    def _join_request(self) -> Any:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        return m.JoinGroupRequest(
            group_id=self._noted.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )

    def _sync(self, joined: Any) -> bool:
        part = m.SyncGroupRequest.SyncGroupRequestAssignment
        given = [
            part(member_id=one.member_id, assignment=bytes(range(n, 6, len(joined.members))))
            for n, one in enumerate(joined.members)
        ]
        request = m.SyncGroupRequest(
            group_id=self._noted.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        response = self._ask(Keys.SYNC_GROUP, 5, request)
        if response.error_code == UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if response.error_code != NONE:
            assert response.error_code in (
                UNKNOWN_MEMBER_ID,
                ILLEGAL_GENERATION,
                REBALANCE_IN_PROGRESS,
            ), response
            return False
        self.partitions = list(response.assignment)
        now = time.monotonic()
        self._noted.owned.extend(
            Owned(self.member_id, self.generation, partition, now, now)
            for partition in self.partitions
        )
        return True

    def _beat(self) -> bool:
        request = m.HeartbeatRequest(
            group_id=self._noted.group,
            generation_id=self.generation,
            member_id=self.member_id,
        )
        code = self._ask(Keys.HEARTBEAT, 4, request).error_code
        if code == UNKNOWN_MEMBER_ID:
            self.member_id = ""
        assert code in (NONE, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS), code
        return bool(code == NONE)

    def _leave(self) -> None:
        self.partitions = []
        member = m.LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        request = m.LeaveGroupRequest(group_id=self._noted.group, members=[member])
        self._ask(Keys.LEAVE_GROUP, 5, request)


class ConsumerLife(Life):
    """A KIP-848 member. It returns revoked partitions, and owns none once it may be fenced."""

    def __init__(
        self,
        address: str,
        noted: Noted,
        seed: int,
        cuts: float,
        line: Callable[[str, random.Random, float], Line] = Line,
    ) -> None:
        super().__init__(address, noted, seed, cuts, line)
        self.member_id = self._name
        self._since: dict[int, float] = {}
        self._topic_id = bytes(16)
        self._heard = 0.0

    def _join(self, stopping: Event) -> None:
        self._give_up(list(self._since), self._heard)
        self.generation = 0
        while not stopping.is_set() and not self._exchange(subscribes=True):
            self.generation = 0

    def _beat(self) -> bool:
        return self._exchange(subscribes=False)

    def _exchange(self, *, subscribes: bool) -> bool:
        sent = time.monotonic()
        response = self._ask(Keys.CONSUMER_GROUP_HEARTBEAT, 1, self._request(subscribes=subscribes))
        if response.error_code != NONE:
            fenced = (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH)
            assert response.error_code in fenced, response
            self._give_up(list(self._since), self._heard)
            return False
        self._heard = sent
        self.generation = response.member_epoch
        if response.assignment is not None:
            self._take(response.assignment.topic_partitions)
        return True

    def _take(self, assigned: list[Any]) -> None:
        partitions = {index for one in assigned for index in one.partitions}
        for one in assigned:
            self._topic_id = one.topic_id
        now = time.monotonic()
        # The next heartbeat returns them.
        self._give_up([index for index in self._since if index not in partitions], now)
        for index in partitions:
            self._since.setdefault(index, now)
        self.partitions = sorted(self._since)

    def _give_up(self, partitions: list[int], until: float) -> None:
        for index in partitions:
            since = self._since.pop(index)
            self._noted.owned.append(Owned(self.member_id, 0, index, since, max(since, until)))
        self.partitions = sorted(self._since)

    def _request(self, *, subscribes: bool) -> Any:
        own = m.ConsumerGroupHeartbeatRequest.TopicPartitions
        owned = [own(topic_id=self._topic_id, partitions=self.partitions)]
        return m.ConsumerGroupHeartbeatRequest(
            group_id=self._noted.group,
            member_id=self.member_id,
            member_epoch=self.generation,
            rebalance_timeout_ms=REBALANCE_MS if subscribes else -1,
            subscribed_topic_names=["orders"] if subscribes else None,
            topic_partitions=owned if self.partitions else [],
        )

    def _leave(self) -> None:
        self._give_up(list(self._since), time.monotonic())
        self.generation = -1
        self._ask(Keys.CONSUMER_GROUP_HEARTBEAT, 1, self._request(subscribes=False))


def overlaps(owned: list[Owned]) -> list[Anomaly]:
    """Return the partitions that two members owned at the same time."""
    found = []
    by_partition: dict[int, list[Owned]] = {}
    for one in owned:
        by_partition.setdefault(one.partition, []).append(one)
    for partition, spans in by_partition.items():
        spans.sort(key=lambda one: one.since)
        for n, one in enumerate(spans):
            for other in spans[n + 1 :]:
                if other.since >= one.until:
                    break
                if other.member != one.member:
                    detail = f"{partition}: {one} and {other}"
                    found.append(Anomaly("two owners at one time", detail))
    return found


Kind = Callable[..., Life]
