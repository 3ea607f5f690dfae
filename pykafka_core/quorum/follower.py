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
from pykafka_core.quorum.transitions import hear_of, to_unattached
from pykafka_core.quorum.turn import Turn
from pykafka_core.quorum.values import SNAPSHOT_BYTES_MAX, Batch, OffsetAndEpoch, VoterSet

OFFSET_MAX = 2**62
"""Limit for offsets from a leader, which leaves enough offsets for later records."""


def fetch(turn: Turn, node_id: int) -> None:
    """Request the next records, once all earlier ones are on disk."""
    if turn.log.writes or turn.installing:
        return
    end, last_epoch = turn.log.last
    config = turn.config
    body = Fetch(
        turn.key,
        turn.election.epoch,
        end,
        last_epoch,
        turn.high_watermark,
        config.fetch_wait_ms_max,
        config.fetch_bytes_max,
    )
    turn.send(node_id, body)


def on_fetch_reply(turn: Turn, node_id: int, reply: FetchReply) -> None:
    """Handle the leader's response."""
    role = _heard_of_leader(turn, node_id, reply)
    if role is None:
        return
    if reply.diverging is not None:
        _truncate(turn, node_id, reply.diverging)
    elif reply.snapshot_id is not None:
        _fetch_snapshot(turn, node_id, reply.snapshot_id)
    else:
        turn.role = role._replace(leader_high_watermark=reply.high_watermark)
        _append(turn, node_id, reply.batches)
        follow_high_watermark(turn)


def _heard_of_leader(
    turn: Turn, node_id: int, reply: FetchReply | SnapshotReply, expected: tuple[int, ...] = ()
) -> Follower | None:
    """Return the follower's role if its leader responded without an unexpected error.

    Otherwise send no requests to the node for a while.
    """
    before = turn.election
    hear_of(turn, reply.leader_id, reply.epoch)
    is_error = reply.error_code and reply.error_code not in expected
    if is_error and turn.election != before:
        return None
    role = turn.role
    is_leaders = isinstance(role, Follower) and role.leader_id == node_id
    if is_error or not is_leaders or reply.epoch != turn.election.epoch:
        turn.back_off(node_id)
        return None
    assert isinstance(role, Follower)
    turn.role = role = role._replace(
        deadline_ms=turn.now_ms + turn.config.fetch_timeout_ms, has_fetched=True, is_in_turn=False
    )
    return role


def _append(turn: Turn, node_id: int, batches: tuple[Batch, ...]) -> None:
    if not _continues(turn, batches):
        turn.back_off(node_id)
    elif batches:
        turn.log = turn.log.appending(batches)
        turn.emit(AppendFetched(batches))


def _continues(turn: Turn, batches: tuple[Batch, ...]) -> bool:
    """Return whether batches continue the log, in epochs from its last up to the current one."""
    end, epoch = turn.log.last
    for batch in batches:
        if batch.base_offset != end or not epoch <= batch.leader_epoch <= turn.election.epoch:
            return False
        if batch.records_count < 1:
            return False
        end, epoch = batch.end_offset, batch.leader_epoch
    return True


def truncation_point(turn: Turn, diverging: OffsetAndEpoch) -> int:
    """Return the end of the certainly common log (KIP-279)."""
    own = turn.log.end_of(diverging.epoch)
    return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset


def _truncate(turn: Turn, node_id: int, diverging: OffsetAndEpoch) -> None:
    end = truncation_point(turn, diverging)
    if end < turn.high_watermark:
        turn.fail(UnknownServerError.code)
    elif end < turn.log.end:
        turn.log = turn.log.truncating(end)
        turn.emit(Truncate(end))
    else:
        turn.back_off(node_id)


# Snapshots.


def may_install(turn: Turn, snapshot_id: OffsetAndEpoch) -> bool:
    """Return whether a snapshot is valid for this replica and contains all committed records."""
    is_possible = 0 <= snapshot_id.epoch <= turn.election.epoch
    return is_possible and max(1, turn.high_watermark) <= snapshot_id.offset <= OFFSET_MAX


def _fetch_snapshot(turn: Turn, node_id: int, snapshot_id: OffsetAndEpoch) -> None:
    role = turn.role
    if isinstance(role, Follower) and may_install(turn, snapshot_id):
        turn.role = role._replace(download=Download(snapshot_id))
    else:
        turn.back_off(node_id)


def fetch_part(turn: Turn, node_id: int, download: Download) -> None:
    """Request the next part of a snapshot."""
    epoch, bytes_max = turn.election.epoch, turn.config.snapshot_bytes_max
    body = FetchSnapshot(turn.key, epoch, download.snapshot_id, download.position, bytes_max)
    turn.send(node_id, body)


def on_snapshot_reply(turn: Turn, node_id: int, reply: SnapshotReply) -> None:
    """Store a part; after the last one, install the snapshot."""
    gone = SnapshotNotFoundError.code, PositionOutOfRangeError.code
    role = _heard_of_leader(turn, node_id, reply, gone)
    if role is None or role.download is None:
        return
    download = role.download
    if reply.error_code or not _is_next_part(download, reply):
        # The leader has another snapshot now, which its next Fetch response names.
        turn.role = role._replace(download=None)
        turn.back_off(node_id)
        return
    end = download.position + len(reply.part)
    turn.emit(StorePart(download.snapshot_id, download.position, reply.part))
    if end < reply.size:
        turn.role = role._replace(download=download._replace(position=end, size=reply.size))
    else:
        turn.role = role._replace(download=None)
        turn.installing = True
        turn.emit(InstallSnapshot(download.snapshot_id))


def _is_next_part(download: Download, reply: SnapshotReply) -> bool:
    end = reply.position + len(reply.part)
    return (
        reply.snapshot_id == download.snapshot_id
        and reply.position == download.position
        and reply.position < end <= reply.size <= SNAPSHOT_BYTES_MAX
        and download.size in (None, reply.size)
    )


def on_installed(turn: Turn, snapshot_id: OffsetAndEpoch | None, voters: VoterSet | None) -> None:
    """Handle an installed snapshot, or fetch it again later if the installation failed.

    ``voters`` is None if the snapshot contains none: they are static.
    """
    turn.installing = False
    role = turn.role
    if snapshot_id is not None:
        turn.log = LogState.of_snapshot(snapshot_id, voters or turn.log.voter_sets[0])
        turn.high_watermark = snapshot_id.offset
    elif isinstance(role, Follower):
        turn.back_off(role.leader_id, turn.config.fetch_timeout_ms // 2)
    if isinstance(role, Follower):
        turn.role = role._replace(download=None)
        if not role.is_in_turn:
            deadline_ms = turn.now_ms + turn.config.fetch_timeout_ms
            turn.role = turn.role._replace(deadline_ms=deadline_ms)
    elif isinstance(role, Unattached):
        # The snapshot may have made this replica a voter, which waits for a leader, or removed it.
        to_unattached(turn, turn.election.epoch)


# High watermark.


def follow_high_watermark(turn: Turn) -> None:
    """Advance the high watermark up to the leader's, limited by the own synced records."""
    role = turn.role
    if not isinstance(role, Follower):
        return
    end = min(role.leader_high_watermark, turn.log.synced_end)
    if end > turn.high_watermark:
        before, turn.high_watermark = turn.high_watermark, end
        turn.outputs.append(Advanced(before, end - 1))
