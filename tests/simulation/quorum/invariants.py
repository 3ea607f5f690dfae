"""Invariants after every step, with their names in Kafka's tests and in the published models."""

from bisect import bisect_left
from typing import NamedTuple

from pykafka_core.quorum.events import (
    AppendFetched,
    Failed,
    InDoubt,
    ReplicaOutput,
    Request,
    Respond,
    Send,
    Tick,
    Truncate,
)
from pykafka_core.quorum.log.state import UnderWay
from pykafka_core.quorum.log.voters import after as after_change
from pykafka_core.quorum.quorum import Append, Committed
from pykafka_core.quorum.replica import Replica
from pykafka_core.quorum.roles import NEVER, Candidate, Leader, Prospective
from pykafka_core.quorum.rpc import (
    Fetch,
    FetchReply,
    FetchSnapshot,
    SnapshotReply,
    Vote,
    VoteReply,
)
from pykafka_core.quorum.values import Batch, OffsetAndEpoch, ReplicaKey, VoterSet
from tests.simulation.quorum.disk import Snapshot, digest_of
from tests.simulation.quorum.node import Node


class Violation(AssertionError):
    """An invariant does not hold."""


def _require(holds: bool, invariant: str, *what: object) -> None:
    if not holds:
        raise Violation(f"{invariant}: {' '.join(map(str, what))}")


class _Appended(NamedTuple):
    """The contents of a batch with a known end and epoch."""

    base_offset: int
    epoch_before: int
    data: bytes


class _Writing(NamedTuple):
    """Pending writes of a log: the oldest one, since when there are any, and its time elsewhere.

    Attributes:
        others_ms: When a majority of other voters had synced the oldest one, as it leads.
    """

    oldest: UnderWay
    since_ms: int
    others_ms: int


class Invariants:
    """Observes every step of every node.

    Attributes:
        committed: Batches from offset 0 on that any replica has reported as committed.
    """

    def __init__(self, formatted: VoterSet, nodes: list[Node]) -> None:
        self.formatted = formatted
        self.nodes = nodes
        self.committed: list[Batch] = []
        self._epochs: list[int] = []
        """For each committed batch: the epoch in which it was first seen to be committed."""
        self.ends: dict[int, int] = {0: 0}
        """For ends of committed batches: the number of batches up to this offset."""
        self._leaders: dict[int, tuple[ReplicaKey, int]] = {}
        self._sets: dict[ReplicaKey, tuple[ReplicaKey, ...]] = {}
        """The voter set that each replica uses, after its last step."""
        self._appended: dict[tuple[int, int], _Appended] = {}
        self._contacts: dict[tuple[ReplicaKey, int, int], dict[ReplicaKey, int]] = {}
        self._writing: dict[ReplicaKey, _Writing] = {}
        self._stalls: dict[tuple[ReplicaKey, int], int] = {}
        """Resignations for a slow disk since a quick append, by node and life."""
        self.wiped: set[ReplicaKey] = set()
        """Replicas whose disks were lost."""

    @property
    def committed_end(self) -> int:
        return self.committed[-1].end_offset if self.committed else 0

    # Starts.

    def started(self, node: Node, replica: Replica) -> None:
        """Check MonotonicEpoch, across crashes."""
        epoch, said = replica.leader_epoch, node.promises.epoch
        _require(epoch >= said, "MonotonicEpoch", node.key, "said", said, "starts with", epoch)

    # Steps.

    def stepped(
        self,
        node: Node,
        before: Replica,
        event: object,
        outputs: list[ReplicaOutput],
        now_ms: int,
    ) -> None:
        """After a replica's turn at the node's ``now_ms``, its commands not yet carried out."""
        after = node.replica
        assert after is not None
        self._monotonic(node, before, after)
        self._snapshots(node, after)
        if after.high_watermark > before.high_watermark:
            self._advanced(node, before, after)
        self._note_writes(node, before, after, event, now_ms)
        role = after.role
        if isinstance(role, Leader):
            self._votes_still(node, after)
        self._changes(node, before, after)
        self._stands(node, before, after)
        if isinstance(role, Leader) and not isinstance(before.role, Leader):
            self._elected(node, after)
        elif isinstance(before.role, Leader) and isinstance(event, Tick):
            self._check_quorum(node, before, after, event.now_ms)
        for output in outputs:
            self._put_out(node, after, output)

    def _note_writes(
        self, node: Node, before: Replica, after: Replica, event: object, now_ms: int
    ) -> None:
        known, writes = self._writing.pop(node.key, None), after.log.writes
        is_same = known is not None and writes[:1] == (known.oldest,)
        if known is not None and not is_same and len(before.log.writes) == 1:
            is_quick = now_ms - known.since_ms < after.config.fetch_timeout_ms // 4
            if is_quick and isinstance(before.role, Leader):
                self._stalls.pop((node.key, node.life), None)
            known = None
        if not writes:
            return
        others_ms = known.others_ms if known is not None and is_same else NEVER
        having = sum(voter.end >= writes[0].end for voter in after.other_voters)
        if others_ms == NEVER and having > len(after.voters) // 2:
            others_ms = event.now_ms if isinstance(event, Request) else now_ms
        since_ms = now_ms if known is None else known.since_ms
        self._writing[node.key] = _Writing(writes[0], since_ms, others_ms)

    def _monotonic(self, node: Node, before: Replica, after: Replica) -> None:
        _require(
            after.leader_epoch >= before.leader_epoch,
            "MonotonicEpoch",
            node.key,
            before.leader_epoch,
            "then",
            after.leader_epoch,
        )
        _require(
            after.high_watermark >= before.high_watermark,
            "MonotonicHighWatermark",
            node.key,
            before.high_watermark,
            "then",
            after.high_watermark,
        )

    def _elected(self, node: Node, after: Replica) -> None:
        """Check ElectionSafety and LeaderCompleteness: a leader has the earlier epochs' commits."""
        epoch, who = after.leader_epoch, (node.key, node.life)
        first = self._leaders.setdefault(epoch, who)
        _require(first == who, "ElectionSafety", epoch, "is led by", first, "and", who)
        others = (voter for voter in after.voters if voter != node.key)
        self._contacts[node.key, node.life, epoch] = dict.fromkeys(others, after.now_ms)
        self._has_committed(node, self.committed[: bisect_left(self._epochs, epoch)])

    def _has_committed(self, node: Node, committed: list[Batch]) -> None:
        disk, name = node.disk, "LeaderCompleteness"
        _require(disk.start in self.ends, name, node.key, "begins within a batch")
        for place, batch in enumerate(committed[self.ends[disk.start] :]):
            own = disk.batches[place] if place < len(disk.batches) else None
            _require(own == batch, name, node.key, "has", own, "not", batch)

    def _check_quorum(self, node: Node, before: Replica, after: Replica, now_ms: int) -> None:
        """CheckQuorum: a leader resigns if no majority fetches, or if a majority syncs faster."""
        voters = after.voters
        contacts = self._contacts[node.key, node.life, after.leader_epoch]
        others = [contacts[one] for one in voters if one != node.key]
        majority = len(voters) // 2 + 1
        needed = majority - (node.key in voters)
        timeout_ms = after.config.fetch_timeout_ms
        due_ms = [NEVER]
        if needed:
            due_ms.append(sorted(others, reverse=True)[needed - 1] + timeout_ms * 3 // 2)
        stall_ms = self._stalls_at(node, timeout_ms)
        leads, late_ms = isinstance(after.role, Leader), now_ms - min(*due_ms, stall_ms)
        if not leads and now_ms >= stall_ms:
            place = node.key, node.life
            self._stalls[place] = self._stalls.get(place, 0) + 1
        what = "leads on" if leads else "resigns", "ms after it has to:"
        _require(leads == (late_ms < 0), "CheckQuorum", node.key, *what, late_ms)

    def _stalls_at(self, node: Node, timeout_ms: int) -> int:
        writing = self._writing.get(node.key)
        if writing is None or writing.others_ms == NEVER:
            return NEVER
        doubled = min(self._stalls.get((node.key, node.life), 0), 4)
        others_ms = writing.others_ms - writing.since_ms
        return writing.since_ms + max(timeout_ms << doubled, 2 * others_ms)

    def _stands(self, node: Node, before: Replica, after: Replica) -> None:
        """SyncedCandidate: a replica stands for election once its disk has all that it wrote."""
        stands = isinstance(after.role, Prospective | Candidate)
        if stands and not isinstance(before.role, type(after.role)):
            is_synced = not node.disk.states and not node.disk.writes
            _require(is_synced, "SyncedCandidate", node.key, "waits for its disk")

    def fetched(self, node: Node, fetch: Fetch | FetchSnapshot, now_ms: int) -> None:
        """Record a Fetch or FetchSnapshot of the leader's epoch that has arrived."""
        contacts = self._contacts.get((node.key, node.life, fetch.epoch))
        if contacts is not None:
            contacts[fetch.replica] = max(contacts.get(fetch.replica, now_ms), now_ms)

    # Outputs.

    def _put_out(self, node: Node, after: Replica, output: ReplicaOutput) -> None:
        match output:
            case Send(body=body):
                self._promised(node, body.epoch)
                if isinstance(body, Vote) and not body.pre_vote:
                    self._voted(node, body.epoch, node.key)
            case Respond(number, body):
                self._promised(node, body.epoch)
                self._on_response(node, number, body)
            case Truncate(end_offset):
                self._truncated(node, after.leader_epoch, end_offset)
            case Append(leader_epoch=epoch):
                first = self._leaders.get(epoch)
                _require(first == (node.key, node.life), "ElectionSafety", "only leaders append")
            case Failed(error_code=-1):
                raise Violation(
                    f"CommittedDataSurvives: {node.key} was asked to cut what it committed"
                )
            case Committed() | InDoubt():
                self._decided(node, output)

    def _promised(self, node: Node, epoch: int) -> None:
        node.promises.epoch = max(node.promises.epoch, epoch)

    def _voted(self, node: Node, epoch: int, candidate: ReplicaKey) -> None:
        """Check VoteOnce, across crashes."""
        first = node.promises.votes.setdefault(epoch, candidate)
        what = node.key, "in epoch", epoch, "voted for", first, "and", candidate
        _require(first == candidate, "VoteOnce", *what)

    def _on_response(self, node: Node, number: int, body: object) -> None:
        asked = node.open[number].body
        match asked, body:
            case Vote(pre_vote=False), VoteReply(granted=True):
                self._voted(node, asked.epoch, asked.candidate)
                _require(asked.voter == node.key, "VoterSet", node.key, "votes as", asked.voter)
            case Vote(), VoteReply(granted=True):
                own, other = node.disk.last.recency, asked.last.recency
                what = node.key, "at", own, "encourages", asked.candidate, "at", other
                _require(other >= own, "PreVoteOfNewerLog", *what)
            case Fetch(), FetchReply(error_code=0):
                _require(asked.epoch == body.epoch, "SameEpochFetch", asked, body)
                self._told(node, body)
            case FetchSnapshot(), SnapshotReply(error_code=0):
                _require(asked.epoch == body.epoch, "SameEpochFetch", asked, body)

    def _told(self, node: Node, reply: FetchReply) -> None:
        """Check MonotonicHighWatermark: a response is not below what earlier leaders committed."""
        earlier = bisect_left(self._epochs, reply.epoch)
        end, told = self.committed[earlier - 1].end_offset if earlier else 0, reply.high_watermark
        _require(told >= end or told == -1, "MonotonicHighWatermark", node.key, "tells", told, end)

    def _truncated(self, node: Node, epoch: int, end_offset: int) -> None:
        """Check CommittedDataSurvives: a disk keeps records committed up to the leader's epoch.

        A deposed leader that is not yet aware of it may make its followers truncate records that a
        later leader has committed on a majority without them.
        """
        for batch in reversed(node.disk.batches):
            if batch.base_offset < end_offset:
                break
            _require(
                not self._is_committed(batch, epoch),
                "CommittedDataSurvives",
                node.key,
                "cuts",
                batch,
            )

    def _is_committed(self, batch: Batch, epoch: int) -> bool:
        place = self.ends.get(batch.end_offset, 0) - 1
        return place >= 0 and self.committed[place] == batch and self._epochs[place] <= epoch

    def _decided(self, node: Node, notice: Committed | InDoubt) -> None:
        """Check OneDecision: each proposal ends once, and its records are at the reported place."""
        if isinstance(notice, Committed) and not notice.records:
            return
        proposal = node.proposal
        _require(proposal is not None, "OneDecision", node.key, "decides what is not proposed")
        assert proposal is not None
        node.proposal = None
        if isinstance(notice, Committed):
            batch = self.committed[self.ends[notice.last_offset + 1] - 1]
            is_it = batch.data == b"".join(proposal.values)
            _require(is_it, "OneDecision", batch, "is not", proposal.values)

    # Logs.

    def appended(self, node: Node, command: AppendFetched) -> None:
        """Check LogMatching: batches with equal end and epoch are equal, and all before them."""
        before = node.disk.last
        for batch in command.batches:
            _require(
                batch.base_offset == before.offset,
                "LogMatching",
                node.key,
                "has",
                batch,
                "behind",
                before,
            )
            seen = _Appended(batch.base_offset, before.epoch, batch.data)
            place = batch.end_offset, batch.leader_epoch
            first = self._appended.setdefault(place, seen)
            _require(first == seen, "LogMatching", place, first, "and", seen)
            before = before._replace(offset=batch.end_offset, epoch=batch.leader_epoch)

    # Snapshots.

    def _snapshots(self, node: Node, after: Replica) -> None:
        """Check SnapshotAtLogStart: a snapshot covers the records before the log.

        The replica's values for it and for the newest snapshot are right.
        """
        log, disk = after.log, node.disk
        _require(log.start == disk.start, "SnapshotAtLogStart", node.key, log.start, disk.start)
        known = log.snapshot_id, log.newest
        for snapshot_id in known:
            is_there = snapshot_id is None or snapshot_id in disk.snapshots
            _require(is_there, "SnapshotAtLogStart", node.key, snapshot_id, "is not there")
        is_named = known[0] is None if not log.start else known[0] == disk.snapshot_at(log.start)
        _require(is_named, "SnapshotAtLogStart", node.key, log.start, "is the end of", known[0])

    def installed(self, node: Node, snapshot_id: OffsetAndEpoch, content: bytes) -> None:
        """Check SnapshotContent: an installed snapshot has all committed records up to its end."""
        replica, end = node.replica, snapshot_id.offset
        _require(end in self.ends, "SnapshotContent", snapshot_id, "ends within a batch")
        committed = self.committed[: self.ends[end]]
        is_it = Snapshot.digest(content) == digest_of(committed)
        _require(is_it, "SnapshotContent", node.key, snapshot_id, "is not what was committed")
        is_last = committed[-1].leader_epoch == snapshot_id.epoch
        _require(is_last, "SnapshotContent", snapshot_id, "is of", committed[-1])
        assert replica is not None
        is_ahead = replica.high_watermark <= end
        _require(is_ahead, "CommittedDataSurvives", node.key, replica.high_watermark, snapshot_id)

    def _advanced(self, node: Node, before: Replica, after: Replica) -> None:
        """Check Synced and CommittedDataSurvives when a high watermark has moved."""
        end, disk = after.high_watermark, node.disk
        _require(end <= disk.synced_end, "Synced", node.key, end, "beyond", disk.synced_end)
        first = before.high_watermark
        news = [batch for batch in disk.synced if first <= batch.base_offset < end]
        for batch in news:
            self._commit(node, batch, after.leader_epoch)
        _require(end in self.ends, "CommittedDataSurvives", node.key, end, "splits a batch")
        if isinstance(before.role, Leader):
            self._committed_by(node, before, news[-1])

    def _committed_by(self, node: Node, leader: Replica, last: Batch) -> None:
        """Check OwnEpoch and MajorityReachedHighWatermark; wiped voters count as having them.

        The voter set is that of the leader's log before this step: records that the leader appends
        after the commit are not in it yet.
        """
        is_own = last.leader_epoch == leader.leader_epoch
        _require(is_own, "OwnEpoch", node.key, "commits", last, "in", leader.leader_epoch)
        voters = self._sets[node.key]
        having = {other.key for other in self.nodes if self._has(other, last)} | self.wiped
        is_majority = len(having & set(voters)) > len(voters) // 2
        _require(is_majority, "MajorityReachedHighWatermark", having, "of", voters, "have", last)

    def _has(self, node: Node, batch: Batch) -> bool:
        disk = node.disk
        return disk.start >= batch.end_offset or batch in reversed(disk.synced)

    # Voter sets.

    def voter_set_at(self, end: int) -> VoterSet:
        """Return the voter set according to the committed records before ``end``."""
        known = self.formatted
        for batch in self.committed[: self.ends[end]]:
            if batch.change is not None:
                known = after_change(known, batch.change, batch.end_offset)
        return known

    def snapshot_taken(self, node: Node, known: VoterSet, right: VoterSet) -> None:
        """Check SnapshotVoters: a snapshot holds the voter set at its end."""
        _require(known.voters == right.voters, "SnapshotVoters", node.key, known, "not", right)

    def carried_out(self, node: Node, replica: Replica) -> None:
        """Check VotersOfLog: the newest voter set in the log counts, committed or not."""
        right = node.disk.voter_sets(node.disk.batches)[-1].keys
        known = self._sets[node.key] = replica.voters
        if not replica.installing and not replica.held:
            _require(known == right, "VotersOfLog", node.key, "goes by", known, "not", right)

    def _votes_still(self, node: Node, leader: Replica) -> None:
        """Check RemovedLeader: a leader whose removal is committed does not lead."""
        is_committed = leader.log.voter_set.end <= leader.high_watermark
        is_removed = is_committed and node.key not in leader.voters
        _require(not is_removed, "RemovedLeader", node.key, "leads", leader.voters)

    def _changes(self, node: Node, before: Replica, after: Replica) -> None:
        """Check OneChange: a leader adds or removes one voter, in its own epoch.

        Everything before must be committed. CaughtUp: an added voter has fetched from this leader.
        """
        if not isinstance(before.role, Leader) or not isinstance(after.role, Leader):
            return
        old, new = set(before.voters), set(after.voters)
        if before.leader_epoch != after.leader_epoch or old == new:
            return
        _require(len(old ^ new) == 1, "OneChange", node.key, old, "then", new)
        contacts = self._contacts[node.key, node.life, after.leader_epoch]
        _require(new - old <= contacts.keys(), "CaughtUp", node.key, "adds", new - old)
        committed = after.high_watermark
        is_done = before.log.voter_set.end <= committed
        _require(is_done, "OneChange", node.key, "changes", before.log.voter_set)
        is_begun = committed > before.role.epoch_start
        _require(is_begun, "OneChange", node.key, "has not committed in its epoch")

    def _commit(self, node: Node, batch: Batch, epoch: int) -> None:
        place = self.ends.get(batch.base_offset)
        _require(place is not None, "CommittedDataSurvives", batch, "splits a batch")
        assert place is not None
        if place == len(self.committed):
            self.committed.append(batch)
            self._epochs.append(epoch)
            self.ends[batch.end_offset] = len(self.committed)
        same = self.committed[place]
        what = node.key, "commits", batch, "that was", same
        _require(same == batch, "CommittedDataSurvives", *what)
