"""A subject that failed is trusted again after a while, and later each time."""

from pykafka_core.broker.runtime.membership.health import (
    GRACE_NS,
    GRACE_NS_MAX,
    RELAPSE_NS,
    Health,
)


def recovery_ns(health: Health, now_ns: int) -> int:
    """How long it has to work from now on."""
    begun_ns = now_ns
    while not health.succeeded(now_ns):
        now_ns += GRACE_NS // 4
    return now_ns - begun_ns


def test_it_is_trusted_when_it_has_worked_for_a_while() -> None:
    health = Health()
    assert health.failed(0)
    assert not health.failed(1)
    assert recovery_ns(health, 2) == GRACE_NS
    assert health.failed_ns is None
    assert not health.succeeded(GRACE_NS + 3)


def test_a_failure_in_between_restarts_the_wait() -> None:
    health = Health()
    health.failed(0)
    assert not health.succeeded(1)
    health.failed(GRACE_NS)
    assert not health.succeeded(GRACE_NS + 1)
    assert health.failed_ns == 0


def test_each_relapse_doubles_the_wait_up_to_a_bound() -> None:
    health, now_ns, waits = Health(), 0, []
    for _ in range(8):
        health.failed(now_ns)
        waits.append(recovery_ns(health, now_ns))
        now_ns += waits[-1] + 1
        assert not health.is_forgettable(now_ns)
    assert waits[:3] == [GRACE_NS, 2 * GRACE_NS, 4 * GRACE_NS]
    assert waits[-1] == GRACE_NS_MAX
    assert health.is_forgettable(now_ns + RELAPSE_NS)
    health.failed(now_ns + RELAPSE_NS)
    assert recovery_ns(health, now_ns + RELAPSE_NS) == GRACE_NS
