"""Replaces a classic group by a consumer group: pending requests fail, deadlines are set for the
new group.
"""

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.rebalance import answer_join, refuse_sync
from pykafka_core.coordinator.group.classic.session import drop_pending_member
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.timers.session import touch
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn
from pykafka_core.errors import RebalanceInProgressError
from pykafka_core.protocol.messages import JoinGroupResponse


def take_over(state: GroupState, classic: ClassicGroup, group: ConsumerGroup, turn: Turn) -> None:
    """Replace ``classic`` by ``group``.

    Pending members join the new group with their member ids.
    """
    refusal = RebalanceInProgressError.code
    for key in (classic.join_key, classic.sync_key):
        state.deadlines.cancel(key)
    for member_id in list(classic.pending_members):
        drop_pending_member(state, classic, member_id)
    for member in classic.members.values():
        state.deadlines.cancel(member.session_key)
        answer_join(classic, member, JoinGroupResponse(error_code=refusal), turn)
        refuse_sync(member, refusal, turn)
        timeout_ms = member.session_timeout_ms
        touch(state, group.group_id, member.member_id, turn.now_ns, timeout_ms)
