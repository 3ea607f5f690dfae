"""Followers and observers: fetch, append, truncate by epoch, and advance the high watermark.

If the leader's log starts after the end of the own log, a snapshot is downloaded instead of
records, in parts, and installed once it is complete (contract/replication.md#K6).
"""

from pykafka_core.errors import (
    PositionOutOfRangeError,
    SnapshotNotFoundError,
    UnknownServerError,
)
from pykafka_core.quorum.events import (
    Advanced,
    AppendFetched,
    InstallSnapshot,
    StorePart,
    Truncate,
)
from pykafka_core.quorum.log.state import LogState
from pykafka_core.quorum.roles import Download, Follower, Unattached
from pykafka_core.quorum.rpc import Fetch, FetchReply, FetchSnapshot, SnapshotReply
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.transitions import hear_of, to_unattached
from pykafka_core.quorum.values import SNAPSHOT_BYTES_MAX, Batch, OffsetAndEpoch, VoterSet

OFFSET_MAX = 2**62
"""Limit for offsets from a leader, which leaves enough offsets for later records."""


def fetch(transition: Transition, node_id: int) -> None:
    """Request the next records, once all earlier ones are on disk."""
    if transition.log.writes or transition.installing:
        return
    end, last_epoch = transition.log.last
    config = transition.config
    body = Fetch(
        transition.key,
        transition.election.epoch,
        end,
        last_epoch,
        transition.high_watermark,
        config.fetch_wait_ms_max,
        config.fetch_bytes_max,
    )
    transition.send(node_id, body)


def on_fetch_reply(transition: Transition, node_id: int, reply: FetchReply) -> None:
    """Handle the leader's response."""
    role = _heard_of_leader(transition, node_id, reply)
    if role is None:
        return
    if reply.diverging is not None:
        _truncate(transition, node_id, reply.diverging)
    elif reply.snapshot_id is not None:
        _fetch_snapshot(transition, node_id, reply.snapshot_id)
    else:
        transition.role = role._replace(leader_high_watermark=reply.high_watermark)
        _append(transition, node_id, reply.batches)
        follow_high_watermark(transition)


def _heard_of_leader(
    transition: Transition,
    node_id: int,
    reply: FetchReply | SnapshotReply,
    expected: tuple[int, ...] = (),
) -> Follower | None:
    """Return the follower's role if its leader responded without an unexpected error.

    Otherwise send no requests to the node for a while.
    """
    before = transition.election
    hear_of(transition, reply.leader_id, reply.epoch)
    is_error = reply.error_code and reply.error_code not in expected
    if is_error and transition.election != before:
        return None
    role = transition.role
    is_leaders = isinstance(role, Follower) and role.leader_id == node_id
    if is_error or not is_leaders or reply.epoch != transition.election.epoch:
        transition.back_off(node_id)
        return None
    assert isinstance(role, Follower)
    transition.role = role = role._replace(
        deadline_ms=transition.now_ms + transition.config.fetch_timeout_ms,
        has_fetched=True,
        is_in_turn=False,
    )
    return role


def _append(transition: Transition, node_id: int, batches: tuple[Batch, ...]) -> None:
    if not _continues(transition, batches):
        transition.back_off(node_id)
    elif batches:
        transition.log = transition.log.appending(batches)
        transition.emit(AppendFetched(batches))


def _continues(transition: Transition, batches: tuple[Batch, ...]) -> bool:
    """Return whether batches continue the log, in epochs from its last up to the current one."""
    end, epoch = transition.log.last
    for batch in batches:
        if batch.base_offset != end or not epoch <= batch.leader_epoch <= transition.election.epoch:
            return False
        if batch.records_count < 1:
            return False
        end, epoch = batch.end_offset, batch.leader_epoch
    return True


def truncation_point(transition: Transition, diverging: OffsetAndEpoch) -> int:
    """Return the end of the certainly common log (KIP-279)."""
    own = transition.log.end_of(diverging.epoch)
    return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset


def _truncate(transition: Transition, node_id: int, diverging: OffsetAndEpoch) -> None:
    end = truncation_point(transition, diverging)
    if end < transition.high_watermark:
        transition.fail(UnknownServerError.code)
    elif end < transition.log.end:
        transition.log = transition.log.truncating(end)
        transition.emit(Truncate(end))
    else:
        transition.back_off(node_id)


# Snapshots.


def may_install(transition: Transition, snapshot_id: OffsetAndEpoch) -> bool:
    """Return whether a snapshot is valid for this replica and contains all committed records."""
    is_possible = 0 <= snapshot_id.epoch <= transition.election.epoch
    return is_possible and max(1, transition.high_watermark) <= snapshot_id.offset <= OFFSET_MAX


def _fetch_snapshot(transition: Transition, node_id: int, snapshot_id: OffsetAndEpoch) -> None:
    role = transition.role
    if isinstance(role, Follower) and may_install(transition, snapshot_id):
        transition.role = role._replace(download=Download(snapshot_id))
    else:
        transition.back_off(node_id)


def fetch_part(transition: Transition, node_id: int, download: Download) -> None:
    """Request the next part of a snapshot."""
    epoch, bytes_max = transition.election.epoch, transition.config.snapshot_bytes_max
    body = FetchSnapshot(transition.key, epoch, download.snapshot_id, download.position, bytes_max)
    transition.send(node_id, body)


def on_snapshot_reply(transition: Transition, node_id: int, reply: SnapshotReply) -> None:
    """Store a part; after the last one, install the snapshot."""
    gone = SnapshotNotFoundError.code, PositionOutOfRangeError.code
    role = _heard_of_leader(transition, node_id, reply, gone)
    if role is None or role.download is None:
        return
    download = role.download
    if reply.error_code or not _is_next_part(download, reply):
        # The leader has another snapshot now, which its next Fetch response names.
        transition.role = role._replace(download=None)
        transition.back_off(node_id)
        return
    end = download.position + len(reply.part)
    transition.emit(StorePart(download.snapshot_id, download.position, reply.part))
    if end < reply.size:
        transition.role = role._replace(download=download._replace(position=end, size=reply.size))
    else:
        transition.role = role._replace(download=None)
        transition.installing = True
        transition.emit(InstallSnapshot(download.snapshot_id))


def _is_next_part(download: Download, reply: SnapshotReply) -> bool:
    end = reply.position + len(reply.part)
    return (
        reply.snapshot_id == download.snapshot_id
        and reply.position == download.position
        and reply.position < end <= reply.size <= SNAPSHOT_BYTES_MAX
        and download.size in (None, reply.size)
    )


def on_installed(
    transition: Transition, snapshot_id: OffsetAndEpoch | None, voters: VoterSet | None
) -> None:
    """Handle an installed snapshot, or fetch it again later if the installation failed.

    ``voters`` is None if the snapshot contains none: they are static.
    """
    transition.installing = False
    role = transition.role
    if snapshot_id is not None:
        transition.log = LogState.of_snapshot(snapshot_id, voters or transition.log.voter_sets[0])
        transition.high_watermark = snapshot_id.offset
    elif isinstance(role, Follower):
        transition.back_off(role.leader_id, transition.config.fetch_timeout_ms // 2)
    if isinstance(role, Follower):
        transition.role = role._replace(download=None)
        if not role.is_in_turn:
            deadline_ms = transition.now_ms + transition.config.fetch_timeout_ms
            transition.role = transition.role._replace(deadline_ms=deadline_ms)
    elif isinstance(role, Unattached):
        # The snapshot may have made this replica a voter, which waits for a leader, or removed it.
        to_unattached(transition, transition.election.epoch)


# High watermark.


def follow_high_watermark(transition: Transition) -> None:
    """Advance the high watermark up to the leader's, limited by the own synced records."""
    role = transition.role
    if not isinstance(role, Follower):
        return
    end = min(role.leader_high_watermark, transition.log.synced_end)
    if end > transition.high_watermark:
        before, transition.high_watermark = transition.high_watermark, end
        transition.outputs.append(Advanced(before, end - 1))
