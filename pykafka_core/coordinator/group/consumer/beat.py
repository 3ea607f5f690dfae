"""What a member says in a heartbeat."""

from typing import NamedTuple

from pykafka_core.coordinator.group.consumer.member import JOIN_EPOCH, Assignment

NO_TIMEOUT = -1
"""The member says no rebalance timeout: it is as it was."""


class Heartbeat(NamedTuple):
    """What a member says; what is None is as it was.

    Args:
        member_id: Empty if it joins without one.
        member_epoch: `JOIN_EPOCH`, or that of its assignment.
        owned: Partitions it owns.
        session_timeout_ms: Of this group.
        heartbeat_interval_ms: Of this group.
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
        """Whether it says all that a member says when it joins, or after an error."""
        says_topics = self.topic_names is not None or self.topic_regex is not None
        says_all = self.rebalance_timeout_ms != NO_TIMEOUT and says_topics
        return self.member_epoch == JOIN_EPOCH or (says_all and self.owned is not None)
