"""Work in slices: what grows with a request yields again and again, and between that others get their turn."""

from collections import deque
from collections.abc import Callable
from functools import partial

from pykafka_core._core import Core
from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.coordinators.coordinators import Coordinators
from pykafka_core.broker.runtime.requests.maintenance import Maintenance
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.requests import Asked
from pykafka_core.broker.runtime.turns import advanced
from pykafka_core.handlers.outcome import Coordinate, Maintain, Propose, Reply, Slices

SLICE_NS = 2_000_000
"""How long one job may go on before another one gets its turn."""


class Jobs:
    """Requests that take turns: those that read, and the answers of all.

    Theory of operation. A job that has not had a slice yet and one that has had some are served in turn. So a
    short request waits for the first slices of others, however many long ones there are, and long ones advance,
    however many short ones come. A connection has one request at a time, so connections share alike.

    Args:
        core: Its clock.
        contexts: What the handlers know.
        requests: Where each job ends.
        maintenance: Has logs maintained for them.
        coordinators: Have shards decide for them.
    """

    def __init__(
        self,
        *,
        core: Core,
        contexts: Contexts,
        requests: OpenRequests,
        maintenance: Maintenance,
        coordinators: Coordinators,
    ) -> None:
        self._core = core
        self._contexts = contexts
        self._requests = requests
        self._maintenance = maintenance
        self._coordinators = coordinators
        self._answers: deque[Slices[None]] = deque()
        self._new: deque[Slices[None]] = deque()
        self._begun: deque[Slices[None]] = deque()
        self._was_new = False
        self.propose: Callable[[Asked, Propose], object] = _refuse_to_propose
        """Has the active controller, on another node, decide what a request needs first."""

    def __len__(self) -> int:
        return len(self._answers) + len(self._new) + len(self._begun)

    def take(self, asked: Asked) -> None:
        """Queue a request that reads."""
        self._new.append(self._read(asked))

    def answer(self, asked: Asked, make: Callable[[], Reply]) -> None:
        """Queue an answer before all other new jobs, for its work is done; or what else has to be done for it.

        ``make`` is called at once, also if nobody waits for it any more.
        """
        made = self._requests.made(asked, make)
        if isinstance(made, Coordinate):
            self._answers.append(self._coordinators.begin(asked, made, self.answer))
        elif isinstance(made, Maintain):
            self._answers.append(self._maintenance.begin(asked, made, self.answer))
        elif made is not None:
            self._answers.append(self._requests.answer(asked, made))

    def run(self, deadline_ns: int) -> None:
        """Carry on with one after the other, until the deadline."""
        while (now_ns := self._core.now_ns()) < deadline_ns and (job := self._next()) is not None:
            if not advanced(job, self._core, min(now_ns + SLICE_NS, deadline_ns)):
                self._begun.append(job)

    def drop_all(self) -> None:
        """The broker stops."""
        self._answers.clear()
        self._new.clear()
        self._begun.clear()

    def _next(self) -> Slices[None] | None:
        new = self._answers or self._new
        self._was_new = bool(new) and not (self._was_new and self._begun)
        queue = new if self._was_new else self._begun
        return queue.popleft() if queue else None

    def _read(self, asked: Asked) -> Slices[None]:
        context = partial(self._contexts.committed, asked)
        outcome = yield from self._requests.decide(asked, context)
        if outcome is None:
            return
        if isinstance(outcome, Propose):
            self.propose(asked, outcome)
        elif isinstance(outcome, Maintain):
            yield from self._maintenance.begin(asked, outcome, self.answer)
        elif isinstance(outcome, Coordinate):
            yield from self._coordinators.begin(asked, outcome, self.answer)
        else:
            yield from self._requests.answer(asked, outcome)


def _refuse_to_propose(asked: Asked, _outcome: Propose) -> None:
    raise AssertionError(f"{asked.name} may not propose: its row is not the controller's")
