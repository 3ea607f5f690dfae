"""Changes of a consumer group that are made together, or not at all.

What a heartbeat does comes in steps that see each other: a member joins, the group's epoch grows, partitions are
assigned, the member gets some. An append that does not fit must leave no trace of them.
"""

from collections.abc import Sequence

from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.replay import apply
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.migration.takeover import take_over
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import KeyValue, Turn


class Draft:
    """A group as it will be. The group itself is copied before its first change.

    Args:
        group: As it is; a new one is in the shard's state from `commit` on.
        first: Records that come before, which are not of this group.
    """

    def __init__(self, group: ConsumerGroup, first: Sequence[KeyValue] = ()) -> None:
        self._origin = self.group = group
        self._records = list(first)
        self._events: list[tuple[What, str]] = []

    def add(self, records: Sequence[KeyValue]) -> None:
        """Change it."""
        if records and self.group is self._origin:
            self.group = self._origin.copy()
        self._records += records
        for record in records:
            apply(self.group, *record)

    def note(self, what: What, text: str) -> None:
        """Have an event in the group's history once the draft is committed."""
        self._events.append((what, text))

    def commit(self, state: GroupState, turn: Turn, last: Sequence[KeyValue] = ()) -> None:
        """Append all records; from now on the group is as drafted, with ``last`` applied to it.

        Raises:
            TurnFullError: They do not fit into one batch; the group is as it was.
        """
        turn.append([*self._records, *last])
        for record in last:
            apply(self.group, *record)
        for what, text in self._events:
            self.group.history.note(what, text, turn.now_ms)
        group_id = self.group.group_id
        if state.consumer_groups.get(group_id) is not self.group:
            classic = state.groups.pop(group_id, None)
            state.consumer_groups[group_id] = self.group
            if classic is not None:
                take_over(state, classic, self.group, turn)
