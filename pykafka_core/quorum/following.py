"""What a follower or an observer does: fetches, appends, truncates by epoch, and learns what is committed."""

from pykafka_core.errors import UnknownServerError
from pykafka_core.quorum.events import Advanced, AppendFetched, FetchSnapshot, Truncate
from pykafka_core.quorum.roles import Follower
from pykafka_core.quorum.rpc import Fetch, FetchAnswer
from pykafka_core.quorum.transitions import hear_of
from pykafka_core.quorum.turn import Turn
from pykafka_core.quorum.values import Batch, OffsetAndEpoch


def fetch(turn: Turn, node_id: int) -> None:
    """Ask for what comes next, once all that came before is on the disk."""
    if turn.log.writes or turn.installing:
        return
    end, last_epoch = turn.log.last
    wait_ms = turn.config.fetch_wait_ms_max
    body = Fetch(turn.key, turn.election.epoch, end, last_epoch, turn.high_watermark, wait_ms)
    turn.send(node_id, body)


def on_fetch_answer(turn: Turn, node_id: int, answer: FetchAnswer) -> None:
    """Do what the leader says."""
    before = turn.election
    hear_of(turn, answer.leader_id, answer.epoch)
    if answer.error_code and turn.election != before:
        return
    role = turn.role
    is_leaders = isinstance(role, Follower) and role.leader_id == node_id
    if answer.error_code or not is_leaders or answer.epoch != turn.election.epoch:
        turn.back_off(node_id)
        return
    assert isinstance(role, Follower)
    turn.role = role = role._replace(
        deadline_ms=turn.now_ms + turn.config.fetch_timeout_ms, has_fetched=True
    )
    if answer.diverging is not None:
        _truncate(turn, node_id, answer.diverging)
    elif answer.snapshot_id is not None:
        _fetch_snapshot(turn, node_id, answer.snapshot_id)
    else:
        turn.role = role._replace(leader_high_watermark=answer.high_watermark)
        _append(turn, node_id, answer.batches)
        follow_high_watermark(turn)


def _append(turn: Turn, node_id: int, batches: tuple[Batch, ...]) -> None:
    if not _continues(turn, batches):
        turn.back_off(node_id)
    elif batches:
        turn.log = turn.log.appending(batches)
        turn.emit(AppendFetched(batches))


def _continues(turn: Turn, batches: tuple[Batch, ...]) -> bool:
    """Whether batches follow the log and each other, in epochs that do not go back nor beyond the current one."""
    end, epoch = turn.log.last
    for batch in batches:
        if batch.base_offset != end or not epoch <= batch.leader_epoch <= turn.election.epoch:
            return False
        if batch.records_count < 1:
            return False
        end, epoch = batch.end_offset, batch.leader_epoch
    return True


def truncation_point(turn: Turn, diverging: OffsetAndEpoch) -> int:
    """Where the own log surely agrees with the leader's, or parts from it at the earliest (KIP-279)."""
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


def _fetch_snapshot(turn: Turn, node_id: int, snapshot_id: OffsetAndEpoch) -> None:
    if snapshot_id.offset < turn.high_watermark:
        turn.back_off(node_id)
    else:
        turn.installing = True
        turn.emit(FetchSnapshot(node_id, snapshot_id))


def follow_high_watermark(turn: Turn) -> None:
    """What the leader has committed and this replica's disk has is committed here."""
    role = turn.role
    if not isinstance(role, Follower):
        return
    end = min(role.leader_high_watermark, turn.log.synced_end)
    if end > turn.high_watermark:
        before, turn.high_watermark = turn.high_watermark, end
        turn.outputs.append(Advanced(before, end - 1))
