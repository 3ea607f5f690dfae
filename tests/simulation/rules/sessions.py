"""A member stays in its group for its session timeout after its last accepted request."""

from collections.abc import Callable
from typing import Any

from pykafka_core.errors import UnknownMemberIdError
from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    Message,
)
from tests.simulation.rules.committed import Committed

SESSION_NS = 10_000_000_000
"""The shortest session timeout; rebalance timeouts are longer."""

Member = tuple[str, str]


class Sessions:
    """Tracks members by the arrival times of their requests."""

    def __init__(self, report: Callable[[str, object], None], committed: Committed) -> None:
        self._report = report
        self._committed = committed
        self._heard_ns: dict[Member, int] = {}
        self._static: dict[Member, set[str]] = {}
        """Member ids by group and instance id."""

    def asked(self, request: Message) -> None:
        """End the sessions of leaving members, also by a late request, and of replaced ones."""
        if isinstance(request, LeaveGroupRequest):
            for one in request.members:
                self._heard_ns.pop((request.group_id, one.member_id), None)
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch < 0:
            self._heard_ns.pop((request.group_id, request.member_id), None)
        elif isinstance(request, JoinGroupRequest) and request.group_instance_id is not None:
            known = self._static.get((request.group_id, request.group_instance_id), set())
            for member_id in known - {request.member_id}:
                self._heard_ns.pop((request.group_id, member_id), None)
            known.intersection_update({request.member_id})

    def replied(self, request: Message, response: Any, arrived_ns: int) -> None:
        """Check the response to a request that was not excused."""
        if not isinstance(request, HeartbeatRequest | ConsumerGroupHeartbeatRequest):
            return
        member = request.group_id, request.member_id
        heard_ns = self._heard_ns.get(member)
        if response.error_code == UnknownMemberIdError.code and heard_ns is not None:
            if arrived_ns < heard_ns + SESSION_NS:
                self._report("a live member was forgotten", (request, heard_ns, arrived_ns))
            del self._heard_ns[member]
        is_member = getattr(request, "member_epoch", 0) >= 0
        if member in self._committed.revoking:
            self._heard_ns.pop(member, None)
        elif response.error_code == 0 and is_member:
            self._heard_ns[member] = max(arrived_ns, heard_ns or 0)
            if isinstance(request, HeartbeatRequest) and request.group_instance_id is not None:
                instance = request.group_id, request.group_instance_id
                self._static.setdefault(instance, set()).add(request.member_id)
