"""A subject that failed is trusted again after a while, and later each time."""

from pykafka_core.broker.runtime.membership.trust import (
    GRACE_NS,
    GRACE_NS_MAX,
    RELAPSE_NS,
    Trust,
)


def recovery_ns(trust: Trust, now_ns: int) -> int:
    """How long it has to work from now on."""
    begun_ns = now_ns
    while not trust.succeeded(now_ns):
        now_ns += GRACE_NS // 4
    return now_ns - begun_ns


def test_disk_is_trusted_after_a_grace_period_without_failures() -> None:
    trust = Trust()
    assert trust.failed(0)
    assert not trust.failed(1)
    assert recovery_ns(trust, 2) == GRACE_NS
    assert trust.failed_ns is None
    assert not trust.succeeded(GRACE_NS + 3)


def test_a_failure_in_between_restarts_the_wait() -> None:
    trust = Trust()
    trust.failed(0)
    assert not trust.succeeded(1)
    trust.failed(GRACE_NS)
    assert not trust.succeeded(GRACE_NS + 1)
    assert trust.failed_ns == 0


def test_each_relapse_doubles_the_wait_up_to_a_bound() -> None:
    trust, now_ns, waits = Trust(), 0, []
    for _ in range(8):
        trust.failed(now_ns)
        waits.append(recovery_ns(trust, now_ns))
        now_ns += waits[-1] + 1
        assert not trust.is_forgettable(now_ns)
    assert waits[:3] == [GRACE_NS, 2 * GRACE_NS, 4 * GRACE_NS]
    assert waits[-1] == GRACE_NS_MAX
    assert trust.is_forgettable(now_ns + RELAPSE_NS)
    trust.failed(now_ns + RELAPSE_NS)
    assert recovery_ns(trust, now_ns + RELAPSE_NS) == GRACE_NS
