"""Changes of a consumer group that are made together or not at all.

A heartbeat changes the group in several steps, each of which sees the previous ones: a member
joins, the group's epoch increases, partitions are assigned, the member gets some of them. If the
records do not fit into a batch, all these changes are undone.
"""

from collections.abc import Sequence

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.rebalance import refuse_sync, respond_to_join
from pykafka_core.coordinator.group.classic.session import drop_pending_member
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.replay import apply
from pykafka_core.coordinator.group.consumer.timers.session import touch
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, KeyValue
from pykafka_core.errors import RebalanceInProgressError
from pykafka_core.protocol.messages import JoinGroupResponse


class Draft:
    """The changed group. The original is copied before the first change.

    Args:
        group: The original; `commit` adds a new group to the shard's state.
        first: Records to append first, which are not records of this group.
    """

    def __init__(self, group: ConsumerGroup, first: Sequence[KeyValue] = ()) -> None:
        self._origin = self.group = group
        self._records = list(first)
        self._events: list[tuple[What, str]] = []

    def add(self, records: Sequence[KeyValue]) -> None:
        """Apply records to the draft."""
        if records and self.group is self._origin:
            self.group = self._origin.copy()
        self._records += records
        for record in records:
            apply(self.group, *record)

    def note(self, what: What, text: str) -> None:
        """Add an event to the group's history when the draft is committed."""
        self._events.append((what, text))

    def commit(
        self, state: GroupState, result: CoordinatorResult, last: Sequence[KeyValue] = ()
    ) -> None:
        """Append all records, and replace the group by the draft with ``last`` applied to it.

        Raises:
            BatchFullError: They do not fit into one batch; the group has not changed.
        """
        result.append([*self._records, *last])
        for record in last:
            apply(self.group, *record)
        for what, text in self._events:
            self.group.history.note(what, text, result.now_ms)
        group_id = self.group.group_id
        if state.consumer_groups.get(group_id) is not self.group:
            classic = state.groups.pop(group_id, None)
            state.consumer_groups[group_id] = self.group
            if classic is not None:
                _take_over(state, classic, result)


def _take_over(state: GroupState, classic: ClassicGroup, result: CoordinatorResult) -> None:
    """Fail the pending requests of a classic group that was replaced, and set its members'
    deadlines in the new group.

    Pending members join the new group with their member ids.
    """
    refusal = RebalanceInProgressError.code
    for key in (classic.join_key, classic.sync_key):
        state.deadlines.cancel(key)
    for member_id in list(classic.pending_members):
        drop_pending_member(state, classic, member_id)
    for member in classic.members.values():
        state.deadlines.cancel(member.session_key)
        respond_to_join(classic, member, JoinGroupResponse(error_code=refusal), result)
        refuse_sync(member, refusal, result)
        timeout_ms = member.session_timeout_ms
        touch(state, classic.group_id, member.member_id, result.now_ns, timeout_ms)
