"""Requests at work. A handler whose work grows with its request works in slices; between them others do."""

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import cast

from pykafka_core.broker.runtime.contexts import Contexts
from pykafka_core.broker.runtime.maintenance import Maintenance
from pykafka_core.broker.runtime.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests import Asked
from pykafka_core.broker.seam.core import Core
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Maintain, Outcome, Propose, Steps

SLICE_NS = 10_000_000
"""How long a request may be worked on before other requests get their turn."""


class Job:
    """A request and its handler's progress. `outcome` is there once `run` has returned True.

    Args:
        asked: The request.
        context: Makes what its handler knows, when it begins.
    """

    __slots__ = "_context", "_steps", "asked", "outcome"

    def __init__(self, asked: Asked, context: Callable[[], Context]) -> None:
        self.asked = asked
        self.outcome: Outcome
        self._context = context
        self._steps: Steps | None = None

    def run(self, core: Core, deadline_ns: int) -> bool:
        """Work until the outcome, then True, or until the deadline, then False. Raises what the handler raises."""
        if self._steps is None:
            begun = self.asked.decide(self._context())
            if not isinstance(begun, Generator):
                self.outcome = begun
                return True
            self._steps = begun
        try:
            next(self._steps)
            while core.now_ns() < deadline_ns:
                next(self._steps)
        except StopIteration as end:
            self.outcome = cast("Outcome", end.value)
            return True
        return False


class Jobs:
    """Requests that are answered from the committed image, or by this node's logs: they take turns.

    Args:
        core: Its clock.
        contexts: What the handlers know.
        requests: Where each job ends.
        maintenance: Has logs maintained for them.
    """

    def __init__(
        self, core: Core, contexts: Contexts, requests: OpenRequests, maintenance: Maintenance
    ) -> None:
        self._core = core
        self._contexts = contexts
        self._requests = requests
        self._maintenance = maintenance
        self._jobs: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def take(self, asked: Asked) -> None:
        """Begin at once: most requests need no second slice."""
        self._jobs.append(Job(asked, partial(self._contexts.committed, asked)))
        self.run(self._core.now_ns() + SLICE_NS)

    def run(self, deadline_ns: int) -> None:
        """Carry on with one after the other, until the deadline."""
        while self._jobs and self._core.now_ns() < deadline_ns:
            job = self._jobs[0]
            finished: bool | None = None
            if self._requests.is_open(job.asked):
                finished = self._requests.handle(
                    job.asked, partial(job.run, self._core, deadline_ns)
                )
            if finished is False:
                self._jobs.rotate(-1)  # the others get the next slices
                return
            self._jobs.popleft()
            if finished:
                self._end(job)

    def drop_all(self) -> None:
        """The broker stops."""
        self._jobs.clear()

    def _end(self, job: Job) -> None:
        outcome = job.outcome
        assert not isinstance(outcome, Propose), "only a row of the controller may propose"
        if isinstance(outcome, Maintain):
            self._maintenance.begin(job.asked, outcome)
        else:
            self._requests.answer(job.asked, lambda: outcome)
