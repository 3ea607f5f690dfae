"""Short and long requests get equal shares of the control thread's time, on a virtual clock."""

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafka_core.broker.runtime.requests.jobs import JOBS_NS, Jobs
from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane
from pykafka_core.handlers.outcome import Work
from pykafka_core.types import GROUP_TOPIC

STEP_NS = 50_000
SHORT, MEDIUM, LONG = 1, 38, 10**9
"""Numbers of steps."""
A, B = ((GROUP_TOPIC, name) for name in (b"a", b"b"))


class Clients:
    """Jobs of clients that send the next request after each response.

    Attributes:
        used: Steps by length of the request.
        has_memory: Whether a medium request may start.
    """

    def __init__(self) -> None:
        self.clock_ns = 0
        self.used = Counter[int]()
        self.has_memory = True
        self._numbers = 0
        ignored = SimpleNamespace(
            add=lambda *_: None, remove=lambda *_: None, committed=lambda _: None
        )
        parts: Any = {
            "core": SimpleNamespace(now_ns=lambda: self.clock_ns),
            "requests": SimpleNamespace(decide=lambda asked, _: self._work(asked)),
            "contexts": ignored,
            "unread": ignored,
            "maintenance": None,
            "coordinate": None,
            "propose": None,
        }
        self.jobs = Jobs(**parts)

    def add(self, steps: int, lane: Lane = NO_LANE, count: int = 1) -> None:
        """Add clients with requests of this length."""
        for _ in range(count):
            self._numbers += 1
            asked = SimpleNamespace(
                key=self._numbers,
                lane=lane,
                steps=steps,
                admit=lambda: steps != MEDIUM or self.has_memory,
            )
            self.jobs.take(cast("Any", asked))

    def _work(self, asked: Any) -> Work[None]:
        for _ in range(asked.steps):
            self.clock_ns += STEP_NS
            self.used[asked.steps] += 1
            yield
        self.add(asked.steps, asked.lane)

    def run(self, turns: int = 200) -> None:
        for _ in range(turns):
            self.jobs.run(self.clock_ns + JOBS_NS)

    def share(self, steps: int) -> float:
        return self.used[steps] / self.used.total()


@pytest.mark.parametrize("lanes", [(NO_LANE, NO_LANE), (A, B), (A, A), (NO_LANE, A), (A, NO_LANE)])
@pytest.mark.parametrize("steps", [MEDIUM, LONG])
@pytest.mark.parametrize("count", [1, 20])
def test_long_requests_leave_half_of_the_time_to_short_ones(
    lanes: tuple[Lane, Lane], steps: int, count: int
) -> None:
    """One long request reduced the rate of short ones to a 17th."""
    clients = Clients()
    clients.add(SHORT, lanes[0])
    clients.add(steps, lanes[1], count)
    clients.run()
    assert clients.share(SHORT) == pytest.approx(0.5, abs=0.07)


def test_long_requests_get_half_of_the_time_next_to_many_short_ones() -> None:
    clients = Clients()
    clients.add(LONG)
    clients.add(SHORT, count=1_000)
    clients.run()
    assert clients.share(LONG) == pytest.approx(0.5, abs=0.02)


def test_time_without_requests_gives_no_claim_to_more_than_half() -> None:
    clients = Clients()
    clients.add(LONG)
    clients.run()
    clients.used.clear()
    clients.add(SHORT)
    clients.run(20)
    assert clients.share(SHORT) == pytest.approx(0.5, abs=0.05)


def test_requests_that_waited_for_memory_leave_shares_of_the_time_to_others() -> None:
    """They ran one after the other, and all others waited for the last one."""
    clients = Clients()
    clients.has_memory = False
    clients.add(MEDIUM, count=10_000)
    clients.run(1)
    assert clients.used == {}
    clients.has_memory = True
    clients.add(SHORT)
    clients.run(20)
    assert clients.share(SHORT) == pytest.approx(1 / 3, abs=0.05)
