"""Repeated reports are limited to one a minute for each kind."""

import logging
from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core.broker.core_bridge.log_bridge import drain_into_logging
from pykafka_core.broker.rate_limited_logging import INTERVAL_NS, KINDS_MAX, Notices
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core


def test_kind_is_reported_once_a_minute_with_the_number_of_omitted_reports() -> None:
    now = [0]
    notices = Notices(lambda: now[0])
    assert [notices.admit("a") for _ in range(4)] == [0, None, None, None]
    assert notices.admit("b") == 0
    now[0] = INTERVAL_NS
    assert [notices.admit("a"), notices.admit("a")] == [3, None]


def test_many_kinds_need_bounded_memory() -> None:
    notices = Notices(lambda: 0)
    for number in range(10 * KINDS_MAX):
        assert notices.admit(number) == 0
    assert notices.admit(10 * KINDS_MAX - 1) is None
    assert notices.admit(0) == 0, "it was forgotten"


class RefusingCore(FakeCore):
    """A core that closes a connection for the same reason before each drain."""

    def drain_log(self) -> list[tuple[int, int, str, str]]:
        """Return warnings of two clients, and an error, which is never omitted."""
        warnings = [f"closed the connection from {host}: API 11" for host in ("a", "b", "a")]
        return [(0, logging.WARNING, "broker.connection", text) for text in warnings] + [
            (0, logging.ERROR, "broker.partition", "failed")
        ]


def test_repeated_rejections_of_a_client_log_one_line_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    core = RefusingCore()
    drain = drain_into_logging(cast("Core", core))
    drain()
    drain()
    closed = "closed the connection from {}: API 11"
    assert caplog.messages == [closed.format("a"), closed.format("b"), "failed", "failed"]
    core.clock_ns += INTERVAL_NS
    caplog.clear()
    drain()
    more = " ({} more since the last report)"
    assert caplog.messages == [
        closed.format("a") + more.format(3),
        closed.format("b") + more.format(1),
        "failed",
    ]
