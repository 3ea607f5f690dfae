"""The leader: serves fetches, tracks the progress of replicas, and commits."""

from pykafka_core.errors import (
    FencedLeaderEpochError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    UnknownLeaderEpochError,
)
from pykafka_core.quorum.events import Advanced, InDoubt, Respond
from pykafka_core.quorum.quorum import Append, Committed, Proposal
from pykafka_core.quorum.raising import raising
from pykafka_core.quorum.roles import NEVER, Leader, Progress, WaitingFetch
from pykafka_core.quorum.rpc import Fetch, FetchReply, FetchSnapshot, SnapshotReply
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.transitions import append, put_in_log, refuse_fetch
from pykafka_core.quorum.values import OffsetAndEpoch, ReplicaKey
from pykafka_core.quorum.voter_changes import end_change

OBSERVER_SESSION_MS = 300_000
"""Time without a Fetch after which an observer is dropped (Kafka's
``LeaderState.OBSERVER_SESSION_TIMEOUT_MS``)."""
OBSERVERS_MAX = 100
"""Observers to track, the most recent ones: any client of the listener can be an observer."""
FASTER = 2
"""A disk is slower than others if an append takes so many times as long."""
STALLS_MAX = 4
"""Number of times that the patience with a slow disk doubles."""
QUICK = 4
"""Part of a fetch timeout in which a quick append ends."""


def on_proposal(transition: Transition, proposal: Proposal) -> None:
    """Append the controller's batch to the log."""
    assert proposal.values, "a batch holds at least one record"
    if proposal.kraft_version is not None and not _raise(transition, proposal.kraft_version):
        transition.outputs.append(InDoubt())
        return
    append(transition, Append(transition.election.epoch, proposal.values), proposal.records)
    respond_to_waiting(transition)


def _raise(transition: Transition, level: int) -> bool:
    """Raise ``kraft.version``; return False if the descriptions are of an earlier epoch."""
    if level <= transition.log.voter_set.kraft_version:
        return True
    command = raising(transition, level)
    if command is not None:
        put_in_log(transition, command)
    return command is not None


# Fetches.


def on_fetch(transition: Transition, number: int, fetch: Fetch) -> None:
    """Respond with records or the point where the logs diverge, now or later."""
    error = fetch_error(transition, fetch)
    if error:
        refuse_fetch(transition, number, error)
        return
    note_contact(transition, fetch.replica)
    if needs_snapshot(transition, fetch):
        _respond(transition, number, snapshot_id=transition.log.newest)
        return
    diverging = diverging_end(transition, fetch)
    if diverging is not None:
        _respond(transition, number, diverging=diverging)
        return
    note_synced(transition, fetch)
    advance(transition)
    if not isinstance(transition.role, Leader):
        # The commit was the removal of this replica from the voter set.
        refuse_fetch(transition, number, NotLeaderOrFollowerError.code)
        return
    wait_ms = min(fetch.wait_ms, transition.config.fetch_wait_ms_max)
    waiting = WaitingFetch(transition.now_ms + wait_ms, number, fetch.offset, fetch.high_watermark)
    if not respond_if_due(transition, waiting):
        role = transition.role
        assert isinstance(role, Leader)
        transition.role = role._replace(waiting=role.waiting + (waiting,))


def fetch_error(transition: Transition, fetch: Fetch) -> int:
    """Return the error for a fetch that cannot be served, or 0."""
    error = leader_error(transition, fetch.epoch)
    if error:
        return error
    if fetch.offset < 0 or not 0 <= fetch.last_epoch <= fetch.epoch:
        return InvalidRequestError.code
    return 0


def leader_error(transition: Transition, epoch: int) -> int:
    """Return the error if this replica does not lead in an epoch, or 0."""
    if epoch < transition.election.epoch:
        return FencedLeaderEpochError.code
    if epoch > transition.election.epoch:
        return UnknownLeaderEpochError.code
    return 0 if isinstance(transition.role, Leader) else NotLeaderOrFollowerError.code


def needs_snapshot(transition: Transition, fetch: Fetch) -> bool:
    """Return whether the log lacks the records after a replica's log, or its last epoch.

    An empty log always gets the newest snapshot, which is smaller than the log that it replaces.
    """
    if fetch.offset == 0 and transition.log.newest is not None:
        return True
    snapshot_id = transition.log.snapshot_id
    if snapshot_id is None:
        return False
    start, epoch = snapshot_id
    if fetch.offset == start:
        return fetch.last_epoch != epoch
    return fetch.offset < start or fetch.last_epoch < epoch


def diverging_end(transition: Transition, fetch: Fetch) -> OffsetAndEpoch | None:
    """Return the latest possible end of the common log; None if the replica's is a prefix."""
    if fetch.offset == transition.log.start == 0:
        return None
    end = transition.log.end_of(fetch.last_epoch)
    return end if end.epoch != fetch.last_epoch or end.offset < fetch.offset else None


def _respond(
    transition: Transition,
    number: int,
    diverging: OffsetAndEpoch | None = None,
    snapshot_id: OffsetAndEpoch | None = None,
    read_from: int | None = None,
) -> None:
    own, epoch = transition.key.node_id, transition.election.epoch
    body = FetchReply(0, own, epoch, told_high_watermark(transition), diverging, snapshot_id)
    transition.emit(Respond(number, body, read_from))


def told_high_watermark(transition: Transition) -> int:
    """Return the high watermark for followers: -1 until the leader commits a record of its epoch.

    Until then followers may have a higher one. Apache Kafka treats a decrease as a fatal error
    (``FollowerState.updateHighWatermark``); its own leaders have no high watermark until then.
    """
    return (
        transition.high_watermark if is_of_own_epoch(transition, transition.high_watermark) else -1
    )


def respond_if_due(transition: Transition, waiting: WaitingFetch) -> bool:
    """Respond to a fetch if there is data for it or it timed out; return whether it did."""
    has_records = waiting.offset < transition.log.end
    is_due = has_records or told_high_watermark(transition) > waiting.high_watermark
    if is_due or transition.now_ms >= waiting.deadline_ms:
        _respond(transition, waiting.number, read_from=waiting.offset if has_records else None)
        return True
    return False


def respond_to_waiting(transition: Transition) -> None:
    """Respond to waiting fetches that have data, or that timed out."""
    role = transition.role
    assert isinstance(role, Leader)
    left = tuple(waiting for waiting in role.waiting if not respond_if_due(transition, waiting))
    if len(left) < len(role.waiting):
        transition.role = role._replace(waiting=left)


# Snapshots.


def on_fetch_snapshot(transition: Transition, number: int, asked: FetchSnapshot) -> None:
    """Respond with a part, which is read when the response is sent."""
    own, epoch = transition.key.node_id, transition.election.epoch
    error = leader_error(transition, asked.epoch)
    if error:
        transition.emit(Respond(number, SnapshotReply(error, transition.leader_id, epoch)))
        return
    note_download(transition, asked)
    transition.emit(Respond(number, SnapshotReply(0, own, epoch, asked.snapshot_id)))


def note_download(transition: Transition, asked: FetchSnapshot) -> None:
    """Count a FetchSnapshot as contact, like a Fetch."""
    note_contact(transition, asked.replica)


# Progress.


def note_contact(transition: Transition, replica: ReplicaKey) -> None:
    """Record the arrival time of a Fetch: a queued one shows that the voter was alive then."""
    known = _progress(transition, replica)
    if known is not None:
        came_ms = max(known.fetched_ms, transition.came_ms)
        _update(transition, known._replace(fetched_ms=came_ms, heard_ms=transition.now_ms))


def note_synced(transition: Transition, fetch: Fetch) -> None:
    """Record the synced end of a replica; a Fetch that arrives late does not decrease it.

    The replica is caught up if it has all records, or all that the leader had at its last fetch.
    """
    known = _progress(transition, fetch.replica)
    if known is None:
        return
    caught_up_ms = known.caught_up_ms
    if fetch.offset >= transition.log.end or 0 <= known.leaders_end <= fetch.offset:
        caught_up_ms = transition.now_ms
    _update(
        transition,
        known._replace(
            synced_end=max(fetch.offset, known.synced_end),
            leaders_end=transition.log.end,
            caught_up_ms=caught_up_ms,
        ),
    )
    note_outpaced(transition)


def _progress(transition: Transition, replica: ReplicaKey) -> Progress | None:
    """Return a replica's progress: empty for a new observer, None for a replica without an id."""
    role = transition.role
    assert isinstance(role, Leader)
    found = (one for one in (*role.voters, *role.observers) if one.replica == replica)
    is_other = replica.node_id >= 0 and replica != transition.key
    return next(found, Progress(replica, -1, transition.came_ms, -1) if is_other else None)


def _update(transition: Transition, changed: Progress) -> None:
    role = transition.role
    assert isinstance(role, Leader)
    if any(voter.replica == changed.replica for voter in role.voters):
        kept = (changed if one.replica == changed.replica else one for one in role.voters)
        transition.role = role._replace(voters=tuple(kept))
        return
    since = transition.now_ms - OBSERVER_SESSION_MS
    others = (one for one in role.observers if one.replica != changed.replica)
    alive = sorted(
        (one for one in others if one.fetched_ms > since), key=lambda one: one.fetched_ms
    )
    transition.role = role._replace(observers=(*alive[1 - OBSERVERS_MAX :], changed))


def own_end(transition: Transition) -> int:
    """Return the leader's own synced end."""
    return transition.log.synced_end


def majority_end(transition: Transition) -> int:
    """Return the highest offset up to which a majority of the voters has synced."""
    role = transition.role
    assert isinstance(role, Leader)
    own = (own_end(transition),) if transition.is_voter else ()
    ends: list[int] = sorted((*own, *(one.synced_end for one in role.voters)), reverse=True)
    return ends[transition.majority - 1]


def is_of_own_epoch(transition: Transition, end: int) -> bool:
    """Return whether the last record before ``end`` is of the leader's epoch.

    Records of earlier epochs are not committed by counting replicas.
    """
    role = transition.role
    return isinstance(role, Leader) and end > role.epoch_start


def advance(transition: Transition) -> None:
    """Commit the records that a majority, including this replica, has synced."""
    end = min(majority_end(transition), own_end(transition))
    if end > transition.high_watermark and is_of_own_epoch(transition, end):
        before, transition.high_watermark = transition.high_watermark, end
        _tell_committed(transition, before)
        respond_to_waiting(transition)
        end_change(transition)


def _tell_committed(transition: Transition, before: int) -> None:
    role = transition.role
    assert isinstance(role, Leader)
    proposed = role.in_flight
    if proposed is None or transition.high_watermark <= proposed.last_offset:
        transition.outputs.append(Advanced(before, transition.high_watermark - 1))
        return
    if before < proposed.first_offset:
        transition.outputs.append(Advanced(before, proposed.first_offset - 1))
    transition.outputs.append(
        Committed(proposed.first_offset, proposed.last_offset, proposed.records)
    )
    transition.role = role._replace(in_flight=None)


# Resignation.


def resigns_at(transition: Transition) -> int:
    """Return when the leader resigns without further events; `NEVER` if it need not."""
    return min(_unheard_at(transition), stalls_at(transition))


def _unheard_at(transition: Transition) -> int:
    """Check quorum: return when a majority will not have fetched for too long."""
    role = transition.role
    assert isinstance(role, Leader)
    needed = transition.majority - (1 if transition.is_voter else 0)
    if not needed:
        return NEVER
    times = sorted((voter.fetched_ms for voter in role.voters), reverse=True)
    return times[needed - 1] + transition.config.fetch_timeout_ms * 3 // 2


def stalls_at(transition: Transition) -> int:
    """Return when the leader resigns because its disk is slower than others; `NEVER` without proof.

    The proof: a majority of other voters has synced the oldest pending append in at most half of
    the time that this disk has taken so far. Otherwise a resignation would only lose time, because
    this replica or one as slow would be elected. In Apache Kafka a leader that waits for its disk
    answers no Fetch, so its followers leave it after a fetch timeout, however fast they are.
    """
    role = transition.role
    assert isinstance(role, Leader)
    if role.outpaced_ms == NEVER:
        return NEVER
    others_ms = role.outpaced_ms - role.appending_since_ms
    patience_ms = transition.config.fetch_timeout_ms << min(transition.stalls, STALLS_MAX)
    return role.appending_since_ms + max(patience_ms, FASTER * others_ms)


def note_stall(transition: Transition) -> None:
    """Count a resignation for a slow disk. The next one takes twice as long.

    One long sync counts as a slow disk, as in Kafka. So where the time of a sync varies much, a
    leader may resign although the other disks are as slow.
    """
    if transition.came_ms >= stalls_at(transition):
        transition.stalls += 1


def note_outpaced(transition: Transition) -> None:
    """Note the time if a majority of other voters has synced the oldest pending append."""
    role, writes = transition.role, transition.log.writes
    assert isinstance(role, Leader)
    if not writes or role.outpaced_ms != NEVER:
        return
    if sum(voter.synced_end >= writes[0].end for voter in role.voters) >= transition.majority:
        transition.role = role._replace(outpaced_ms=transition.came_ms)


def note_appended(transition: Transition) -> None:
    """The oldest append is synced."""
    role = transition.role
    assert isinstance(role, Leader)
    if transition.log.writes:
        transition.role = role._replace(outpaced_ms=NEVER)
        note_outpaced(transition)
        return
    if transition.now_ms - role.appending_since_ms < transition.config.fetch_timeout_ms // QUICK:
        transition.stalls = 0
    transition.role = role._replace(appending_since_ms=NEVER, outpaced_ms=NEVER)
