"""The content of a member's heartbeat."""

from typing import NamedTuple

from pykafka_core.coordinator.group.consumer.member import JOIN_EPOCH, Assignment

NO_TIMEOUT = -1
"""The heartbeat has no rebalance timeout; the previous one remains."""


class Heartbeat(NamedTuple):
    """A heartbeat. A field that is None has not changed since the previous heartbeat.

    Args:
        member_id: Empty if the member joins without an id.
        member_epoch: `JOIN_EPOCH`, or the epoch of its assignment.
        owned: Partitions that the member owns.
        session_timeout_ms: The group's setting.
        heartbeat_interval_ms: The group's setting.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topic_names: frozenset[str] | None
    topic_regex: str | None
    server_assignor: str | None
    owned: Assignment | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    heartbeat_interval_ms: int

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, as after an error, or joins the group."""
        says_topics = self.topic_names is not None or self.topic_regex is not None
        says_all = self.rebalance_timeout_ms != NO_TIMEOUT and says_topics
        return self.member_epoch == JOIN_EPOCH or (says_all and self.owned is not None)
