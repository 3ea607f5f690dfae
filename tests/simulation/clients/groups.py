"""Members of groups of both protocols, and committers without a group."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from pykafka_core.errors import (
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnstableOffsetCommitError,
)
from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from tests.faults.history import Owned
from tests.simulation.clients.producers import RETRIED, code_of
from tests.simulation.clients.script import Ask, Script, Wait
from tests.simulation.prepared import PARTITIONS, TOPIC
from tests.simulation.world import World

SESSION_MS, REBALANCE_MS = 10_000, 20_000
FOREVER = 1e18
TRIES = 6

Step = Generator[Ask | Wait, Any, Any]


def commit_request(
    world: World, group: str, indexes: list[int], generation: int = -1, member: str = ""
) -> OffsetCommitRequest:
    """Return a commit of unique offsets with unique texts."""
    rows = []
    for index in indexes:
        offset = next(world.names)
        rows.append(
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=f"m{offset}"
            )
        )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=rows)
    return OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=[topic]
    )


def fetch_request(group: str, indexes: list[int]) -> OffsetFetchRequest:
    """Return a request for stable offsets."""
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=indexes)
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
    return OffsetFetchRequest(groups=[wanted], require_stable=True)


def committer(world: World, group: str, *, is_writing: bool) -> Script:
    """Commit and fetch, with or without concurrent transactions."""
    for _ in range(world.random.randrange(3, 12)):
        indexes = world.random.sample(range(PARTITIONS), world.random.randrange(1, PARTITIONS + 1))
        if is_writing and world.chance(0.6):
            yield Ask(commit_request(world, group, indexes), 9)
        else:
            yield Ask(fetch_request(group, indexes), 9)
        yield Wait(world.random.choice((0, 5, 300)))
    yield from settled_fetch(world, group)


def settled_fetch(world: World, group: str) -> Step:
    """Fetch the offsets at the end, without faults."""
    while not world.is_calm:
        yield Wait(3_000)
    for _ in range(50):
        response = yield Ask(fetch_request(group, list(range(PARTITIONS))), 9)
        if response is not None and response.groups[0].error_code == 0:
            rows = response.groups[0].topics[0].partitions
            if all(row.error_code != UnstableOffsetCommitError.code for row in rows):
                return
        yield Wait(1_000)


@dataclass(slots=True)
class ClassicMember:
    """One member of a classic group; it may rejoin under another id."""

    world: World
    group: str
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1

    def script(self) -> Script:
        """Join and act as a member, several times."""
        world = self.world
        yield Wait(world.random.choice((0, 0, 200, 3_000)))
        for _ in range(world.random.randrange(2, 6)):
            if world.is_calm:
                break
            owned = yield from self._join()
            if owned is not None:
                yield from self._live(owned)
        if self.member_id and world.chance(0.5):
            member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
            yield Ask(LeaveGroupRequest(group_id=self.group, members=[member]), 3)

    def _join_request(self) -> JoinGroupRequest:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m")
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[protocol],
        )

    def _join(self) -> Step:
        for _ in range(TRIES):
            response = yield Ask(
                self._join_request(), 5 if self.instance_id else self.world.random.choice((3, 5))
            )
            code = code_of(response)
            if code == 0:
                self.member_id, self.generation = response.member_id, response.generation_id
                return (yield from self._sync(response))
            if code == MemberIdRequiredError.code:
                self.member_id = response.member_id
            elif code not in RETRIED and code != RebalanceInProgressError.code:
                self.member_id = ""
            yield Wait(self.world.random.choice((1, 50)))
        return None

    def _sync(self, joined: Any) -> Step:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            assignments=self._assignments(joined),
        )
        response = yield Ask(request, 3)
        if code_of(response) != 0:
            return None
        return list(response.assignment)

    def _assignments(self, joined: Any) -> list[Any]:
        if joined.leader != self.member_id:
            return []
        members = [member.member_id for member in joined.members]
        self.world.random.shuffle(members)
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member, assignment=bytes(range(place, PARTITIONS, len(members)))
            )
            for place, member in enumerate(members)
        ]

    def _live(self, owned: list[int]) -> Step:
        world = self.world
        recorder, since = world.invariants.recorder, world.now()
        for index in owned:
            recorder.owned[self.group].append(
                Owned(self.instance_id or self.member_id, self.generation, index, since, FOREVER)
            )
        for _ in range(world.random.randrange(1, 8)):
            yield Wait(world.random.choice((10, 1_000, 3_000)))
            response = yield self._ask(owned)
            code = code_of(response)
            if code == RebalanceInProgressError.code and world.chance(0.7):
                return
            if code not in RETRIED and code not in (0, RebalanceInProgressError.code):
                if code != IllegalGenerationError.code or world.chance(0.5):
                    self.member_id = ""
                return
            if world.chance(0.05):
                yield Wait(SESSION_MS + 2_000)  # like a pause of the process
            if world.chance(0.1):
                yield Ask(self._join_request(), 5)  # and ignore the response

    def _ask(self, owned: list[int]) -> Ask:
        choice = self.world.random.random()
        if choice < 0.4 or not owned:
            beat = HeartbeatRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
            )
            return Ask(beat, 3)
        if choice < 0.8:
            commit = commit_request(self.world, self.group, owned, self.generation, self.member_id)
            commit.group_instance_id = self.instance_id
            return Ask(commit, 7)
        return Ask(fetch_request(self.group, owned), 9)


@dataclass(slots=True)
class ConsumerMember:
    """One member of a consumer group (KIP-848)."""

    world: World
    group: str
    member_id: str
    epoch: int = 0
    owned: frozenset[int] = frozenset()

    def script(self) -> Script:
        """Send heartbeats and commits, leave or disappear."""
        world = self.world
        yield Wait(world.random.choice((0, 0, 200, 3_000)))
        for _ in range(world.random.randrange(4, 20)):
            if world.is_calm:
                break
            yield from self._beat()
            if self.owned and world.chance(0.4):
                indexes = sorted(self.owned)
                request = commit_request(world, self.group, indexes, self.epoch, self.member_id)
                yield Ask(request, 9)
            if world.chance(0.05):
                yield Wait(world.random.choice((20_000, 50_000)))
            yield Wait(world.random.choice((1, 500, 4_000)))
        if world.chance(0.5):
            yield Ask(self._request(-1), 1)

    def _beat(self) -> Step:
        response = yield Ask(self._request(self.epoch), 1)
        code = code_of(response)
        if code in RETRIED:
            return
        if code != 0:
            self.epoch, self.owned = 0, frozenset()
            return
        self.epoch = response.member_epoch
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            self.owned = frozenset(index for row in rows for index in row.partitions)
            held = self.world.invariants.committed.held.get((self.group, self.member_id), set())
            if not self.owned <= {index for _, index in held}:
                self._check_late(response)

    def _check_late(self, response: Any) -> None:
        """Check an assignment; if the response is old, a later epoch is committed."""
        key = self.group, self.member_id
        epochs = self.world.invariants.committed.epochs
        if epochs.get(key, -1) == response.member_epoch:
            self.world.invariants.report("an assignment is not committed", (key, response))

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch
        )
        if epoch == 0:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = [TOPIC]
            request.topic_partitions = []
        elif epoch > 0:
            rows = ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.world.topic_id, partitions=sorted(self.owned)
            )
            request.topic_partitions = [rows] if self.owned else []
        return request


def groups(world: World) -> dict[str, Script]:
    """Return some clients of each kind."""
    scripts: dict[str, Script] = {}
    for number in range(world.random.choice((0, 1, 2))):
        scripts[f"committer{number}"] = committer(world, f"s{number}", is_writing=True)
    if world.chance(0.7):
        for number in range(world.random.randrange(1, 4)):
            # Two may have the same instance id: the later one replaces the earlier one.
            instance_id = world.random.choice((None, None, "i0", "i1"))
            scripts[f"classic{number}"] = ClassicMember(world, "classic", instance_id).script()
    if world.chance(0.5):
        for number in range(world.random.randrange(1, 4)):
            scripts[f"consumer{number}"] = ConsumerMember(world, "consumer", f"c{number}").script()
    return scripts
