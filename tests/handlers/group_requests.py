"""Requests about groups, on a broker that has a coordinator."""

from collections.abc import Mapping

from pykafka_core.protocol.messages import (
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore


def pass_ms(broker: SimulatedBroker, duration_ms: int) -> None:
    """Let time pass, and run the timers that are due."""
    broker.core.clock_ns += duration_ms * 1_000_000
    broker.control.timers.run(broker.core.clock_ns)
    broker.run()


def broker_with_coordinator(
    config: Mapping[str, str] | None = None, core: FakeCore | None = None
) -> SimulatedBroker:
    quick = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}
    broker = SimulatedBroker(quick | dict(config or {}), core)
    broker.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
    return broker


def join_request(
    member_id: str = "", metadata: bytes = b"m", **changes: object
) -> JoinGroupRequest:
    fields: dict[str, object] = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
        **changes,
    }
    return JoinGroupRequest(**fields)  # type: ignore[arg-type]


def joined(broker: SimulatedBroker, group_id: str = "g", metadata: bytes = b"m") -> str:
    """Join one member, whose group becomes stable; return its id."""
    response = broker.ask(join_request(group_id=group_id, metadata=metadata), 3)
    assert isinstance(response, JoinGroupResponse)
    assert response.error_code == 0
    part = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=response.member_id, assignment=b"a"
    )
    broker.ask(
        SyncGroupRequest(
            group_id=group_id,
            generation_id=response.generation_id,
            member_id=response.member_id,
            assignments=[part],
        ),
        3,
    )
    return response.member_id
