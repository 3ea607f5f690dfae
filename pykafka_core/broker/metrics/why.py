"""Why a group rebalances or waits, as JSON: the coordinator's view, and the lag from the logs."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pykafka_core.coordinator.group.explain import GroupView, OffsetView, explain
from pykafka_core.errors import KafkaError, LocalError

from .collect import Sources
from .questions import ask_group


def why(sources: Sources, group_id: str) -> dict[str, object] | None:
    """Return a description of a group; None if it does not exist.

    Raises:
        KafkaError: This node does not coordinate it, or has not loaded it yet.
        ClosedError: The broker stopped.
    """
    view = ask_group(sources.ask, group_id)
    return None if view is None else _as_json(sources, view)


def _as_json(sources: Sources, view: GroupView) -> dict[str, object]:
    return {
        "group": view.group_id,
        "state": view.state,
        "state_since_ms": view.state_since_ms,
        "generation": view.generation_id,
        "protocol": view.protocol_name,
        "explanation": explain(view),
        "waits_for": [one.member_id for one in view.members if one.is_waited_for],
        "pending_members": view.pending_members,
        "goes_on_in_ms": view.due_in_ms,
        "members": [
            {
                "member_id": one.member_id,
                "instance_id": one.group_instance_id,
                "client_id": one.client_id,
                "host": one.client_host,
                "is_leader": one.is_leader,
                "is_waited_for": one.is_waited_for,
                "join_reason": one.reason,
            }
            for one in view.members
        ],
        "history": [
            {"time": _time(one.time_ms), "what": one.what.value, "text": one.text}
            for one in view.history
        ],
        "lag": _lags(sources, view.offsets),
        "is_whole": view.is_whole,
    }


def _lags(sources: Sources, offsets: Sequence[OffsetView]) -> list[dict[str, object]]:
    topics = sources.image().topics.by_name
    found: list[dict[str, object]] = []
    for one in sorted(offsets):
        end = None
        if one.topic in topics:
            end = _high_watermark(sources, topics[one.topic].topic_id, one.partition)
        found.append(
            {
                "topic": one.topic,
                "partition": one.partition,
                "current_offset": one.offset,
                "high_watermark": end,
                "lag": None if end is None else max(0, end - one.offset),
                "committed_at": _time(one.commit_timestamp_ms),
            }
        )
    return found


def _high_watermark(sources: Sources, topic_id: bytes, partition: int) -> int | None:
    """Return the high watermark; None if this node does not lead the partition."""
    try:
        return sources.core.offsets((topic_id, partition)).high_watermark
    except (KafkaError, LocalError):
        return None


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
