"""Every request that was taken in and is not over: answered, refused or abandoned, once.

Theory of operation. A request may wait for minutes: for its turn, a batch, a log. Whoever works on it
holds it, but whether it is still open is decided here alone. A connection that closes, and a broker that
stops, end requests in this table; what comes for them later finds them over and does nothing. So no
other part has a list of who waits.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar, cast

from pykafka_core._core import Core
from pykafka_core.broker.guarded_log import SURVIVED
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests.requests import Asked, RemoteRequest, Replies
from pykafka_core.errors import UnknownServerError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import OUTCOMES, Outcome, Slices
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import Message

T = TypeVar("T")


class OpenRequests:
    """The table. A fault in ending a request costs its connection, and nothing else.

    Args:
        core: Sends the answers.
        faults: Takes note of what failed alone.
        replies: Answers of clients' requests, until `send_replies`.
    """

    def __init__(self, core: Core, faults: Faults, replies: Replies) -> None:
        self._core = core
        self._faults = faults
        self._replies = replies
        self._open: dict[Hashable, Asked] = {}
        self._when_over: dict[Hashable, list[Callable[[], object]]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, asked: Asked) -> None:
        """Take in a request."""
        self._open[asked.key] = asked

    def is_open(self, asked: Asked) -> bool:
        """Whether somebody still waits for its answer."""
        return asked.key in self._open

    def when_over(self, asked: Asked, action: Callable[[], object]) -> None:
        """Call ``action`` when a request is over, or now if it is: what it waits for is not needed any more."""
        if asked.key in self._open:
            self._when_over.setdefault(asked.key, []).append(action)
        else:
            action()

    def decide(self, asked: Asked, context: Callable[[], Context]) -> Slices[Outcome | None]:
        """Ask a request's handler; None when it raised, which ends the request, or nobody waits any more."""
        try:
            work = asked.decide(context())
            if isinstance(work, OUTCOMES):
                return work
            while asked.key in self._open:
                try:
                    next(work)
                except StopIteration as end:
                    return cast("Outcome", end.value)
                yield
        except ProtocolError as error:
            self.refuse(asked, f"malformed request: {error}")
        except SURVIVED as fault:
            self._faults.caught(f"the handler of {asked.name}", fault)
            self.abandon(asked, UnknownServerError.code)
        return None

    def made(self, asked: Asked, make: Callable[[], T]) -> T | None:
        """What ``make`` returns; a bug in it ends the request."""
        try:
            return make()
        except SURVIVED as fault:
            self._fail(asked, fault)
            return None

    def answer(self, asked: Asked, answer: Message | Slices[Message]) -> Slices[None]:
        """Make an answer and send it, as long as somebody waits for it; a bug in it costs the connection."""
        if asked.key not in self._open:
            return
        try:
            work = asked.answer(answer) if isinstance(answer, Message) else _send(asked, answer)
            while work is not None:
                try:
                    next(work)
                except StopIteration:
                    break
                yield
                if asked.key not in self._open:
                    return
            self._close(asked)
        except SURVIVED as fault:
            self._fail(asked, fault)

    def answer_encoded(self, asked: RemoteRequest, body: bytes) -> None:
        """Send an answer that another node has made, if somebody waits for it."""
        if asked.key in self._open:
            asked.answer_encoded(body)
            self._close(asked)

    def _fail(self, asked: Asked, fault: BaseException) -> None:
        self._faults.caught(f"the answer to {asked.name}", fault)
        self._close(asked)
        self._abandon(asked, UnknownServerError.code)

    def refuse(self, asked: Asked, reason: str) -> None:
        """There is no answer to such a request."""
        if self._close(asked):
            self._faults.guard("a refusal", lambda: asked.refuse(reason))

    def abandon(self, asked: Asked, error_code: int) -> None:
        """The broker cannot answer."""
        if self._close(asked):
            self._abandon(asked, error_code)

    def cancel(self, request_id: int) -> None:
        """A client's connection went away: its request is over, without an answer.

        What it proposed already may be committed all the same.
        """
        asked = self._open.get(request_id)
        if asked is not None:
            self._close(asked)

    def fail_all(self, error_code: int) -> None:
        """Abandon every request: the broker stops."""
        for asked in list(self._open.values()):
            self.abandon(asked, error_code)

    def send_replies(self) -> None:
        """Let the answers so far leave, as one call of the core."""
        if self._replies:
            replies = self._replies.copy()
            self._replies.clear()
            if not self._faults.guard("an answer", lambda: self._core.respond(replies)):
                for reply in replies:
                    self._faults.guard("an answer", partial(self._core.respond, [reply]))

    def _close(self, asked: Asked) -> bool:
        """Whether it was open."""
        was_open = self._open.pop(asked.key, None) is not None
        if was_open:
            asked.release()
        if self._when_over:
            for action in self._when_over.pop(asked.key, ()):
                action()
        return was_open

    def _abandon(self, asked: Asked, error_code: int) -> None:
        self._faults.guard("the end of a request", lambda: asked.abandon(error_code))


def _send(asked: Asked, answer: Slices[Message]) -> Slices[None]:
    work = asked.answer((yield from answer))
    if work is not None:
        yield from work
