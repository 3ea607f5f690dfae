"""All accepted requests until their end: each is completed, refused or abandoned once.

Theory of operation. A request may wait for minutes: for its turn, a batch, a log. Other components
hold references to it, but only this table decides whether it is still open. A closed connection, or
the stop of the broker, ends requests in this table; later results for them are ignored. So no other
component keeps a list of pending requests.

The size of most responses follows from the size of the request, and the core reserves their memory
before it passes the request on. Other responses grow with a group or a log, or with a name that the
request repeats. Their memory is reserved here, once their size is known and before they are built,
and before large results are read from shards (`handlers/coordinators/measured.py`). So clients that
request large responses and do not read them take no more than the memory of all responses
(`rust/broker/src/network/response_memory.rs`), which the core grants in the order of the requests.
A request that waits holds no memory of others.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar, cast

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests.fan_in import Respond
from pykafka_core.broker.runtime.requests.pending_request import (
    PendingRequest,
    RemoteRequest,
    Replies,
)
from pykafka_core.broker.safe_logging import SURVIVED
from pykafka_core.errors import UnknownServerError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import OUTCOMES, Made, Outcome, Reply, Reserve, Work, run_to_end
from pykafka_core.protocol import ProtocolError
from pykafka_core.protocol.messages import Message

T = TypeVar("T")


class OpenRequests:
    """The table. A fault in ending a request only closes its connection.

    Args:
        core: Sends the responses.
        faults: Records faults of single items.
        completions: Pending reservations of memory for responses.
        replies: Responses to clients' requests, until `send_replies`.
    """

    def __init__(
        self, core: Core, faults: Faults, completions: Completions, replies: Replies
    ) -> None:
        self._core = core
        self._faults = faults
        self._completions = completions
        self._replies = replies
        self._open: dict[Hashable, PendingRequest] = {}
        self._when_over: dict[Hashable, list[Callable[[], object]]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, request: PendingRequest) -> None:
        """Add a request."""
        self._open[request.key] = request

    def is_open(self, request: PendingRequest) -> bool:
        """Return whether a response is still expected."""
        return request.key in self._open

    def when_over(self, request: PendingRequest, action: Callable[[], object]) -> None:
        """Call ``action`` when a request ends, or now if it has ended, to cancel what it waits
        for.
        """
        if request.key in self._open:
            self._when_over.setdefault(request.key, []).append(action)
        else:
            action()

    def decide(
        self, request: PendingRequest, context: Callable[[], Context]
    ) -> Work[Outcome | None]:
        """Call a request's handler; None if it raised, which ends the request, or if no response is
        expected.
        """
        try:
            work = request.decide(context())
            if isinstance(work, OUTCOMES):
                return work
            while request.key in self._open:
                try:
                    next(work)
                except StopIteration as end:
                    return cast("Outcome", end.value)
                yield
        except ProtocolError as error:
            self.refuse(request, f"malformed request: {error}")
        except SURVIVED as fault:
            self._faults.caught(f"the handler of {request.name}", fault)
            self.abandon(request, UnknownServerError.code)
        return None

    def made(self, request: PendingRequest, make: Callable[[], T]) -> T | None:
        """Return the result of ``make``; an exception ends the request."""
        try:
            return make()
        except SURVIVED as fault:
            self._fail(request, fault)
            return None

    def respond(
        self, request: PendingRequest, response: Message | Work[Made]
    ) -> Work[Reserve | None]:
        """Create a response and send it, while one is expected; an exception closes the connection.

        Returns the memory that a response needs first: it is not sent, and needs `reserve`.
        """
        try:
            work = _sending(request, response)
            while request.key in self._open:
                try:
                    next(work)
                except StopIteration as end:
                    if end.value is None:
                        self._close(request)
                    return cast("Reserve | None", end.value)
                yield
        except SURVIVED as fault:
            self._fail(request, fault)
        return None

    def respond_at_once(self, request: PendingRequest, message: Message) -> None:
        """Encode a response in one step and send it, once it has memory."""
        reserve = run_to_end(self.respond(request, message))
        if reserve is not None:
            self.reserve(request, reserve, self._respond_again)

    def reserve(self, request: PendingRequest, reserve: Reserve, respond: Respond) -> None:
        """Reserve memory, now or when others release it, and continue with the response; an
        exception closes the connection.

        Args:
            request: The request.
            reserve: Its response, and the memory that this needs.
            respond: Continues.
        """

        def reserved(_: Completed) -> None:
            respond(request, reserve.then)

        token = self._completions.open(reserved)
        self.when_over(request, partial(self._completions.cancel, token))
        try:
            if not request.reserve(token, reserve.bytes):
                self._completions.complete(token, Completed(0, -1))
        except SURVIVED as fault:
            self._fail(request, fault)

    def _respond_again(self, request: PendingRequest, make: Callable[[], Reply]) -> None:
        made = make()
        assert isinstance(made, Message), "a finished response only waited for its memory"
        self.respond_at_once(request, made)

    def respond_encoded(self, request: RemoteRequest, body: bytes) -> None:
        """Send a response that another node has created, if one is expected."""
        if request.key in self._open:
            request.respond_encoded(body)
            self._close(request)

    def _fail(self, request: PendingRequest, fault: BaseException) -> None:
        self._faults.caught(f"the response to {request.name}", fault)
        self._close(request)
        self._abandon(request, UnknownServerError.code)

    def refuse(self, request: PendingRequest, reason: str) -> None:
        """Close the connection of an invalid request."""
        if self._close(request):
            self._faults.guard("a refusal", lambda: request.refuse(reason))

    def abandon(self, request: PendingRequest, error_code: int) -> None:
        """End a request that the broker cannot complete."""
        if self._close(request):
            self._abandon(request, error_code)

    def cancel(self, request_id: int) -> None:
        """End a request without a response, because the client's connection was closed.

        Records that it has already proposed may still be committed.
        """
        request = self._open.get(request_id)
        if request is not None:
            self._close(request)
            request.unreserve()

    def fail_all(self, error_code: int) -> None:
        """Abandon every request when the broker stops."""
        for request in list(self._open.values()):
            self.abandon(request, error_code)

    def send_replies(self) -> None:
        """Send all responses so far in one call of the core."""
        if self._replies:
            replies = self._replies.copy()
            self._replies.clear()
            if not self._faults.guard("a response", lambda: self._core.respond(replies)):
                for reply in replies:
                    self._faults.guard("a response", partial(self._core.respond, [reply]))

    def _close(self, request: PendingRequest) -> bool:
        """Remove the request; return whether it was open."""
        was_open = self._open.pop(request.key, None) is not None
        if was_open:
            request.release()
        if self._when_over:
            for action in self._when_over.pop(request.key, ()):
                action()
        return was_open

    def _abandon(self, request: PendingRequest, error_code: int) -> None:
        self._faults.guard("the end of a request", lambda: request.abandon(error_code))


def _sending(request: PendingRequest, response: Message | Work[Made]) -> Work[Reserve | None]:
    made = response if isinstance(response, Message) else (yield from response)
    if isinstance(made, Reserve):
        return made
    work = request.respond(made)
    return None if work is None else (yield from work)
