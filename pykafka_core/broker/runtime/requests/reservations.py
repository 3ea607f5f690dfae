"""Memory of large responses, reserved before they are built."""

from functools import partial

from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.requests.fan_in import Respond
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.handlers.outcome import Reserve


class Reservations:
    """Lets requests wait for the memory of their responses.

    Theory of operation. The size of most responses follows from the size of the request, and the
    core reserves their memory before it passes the request on. Other responses grow with a group or
    a log, or with a name that the request repeats. Their memory is reserved here, once their size
    is known and before they are built, and before large results are read from shards
    (`handlers/coordinators/measured.py`). So clients that request large responses and do not read
    them take no more than the memory of all responses
    (`rust/broker/src/network/response_memory.rs`), which the core grants in the order of the
    requests. A request that waits holds no memory of others.

    Args:
        completions: Pending reservations.
        requests: The table of open requests.
        respond: Continues with a response.
    """

    def __init__(self, completions: Completions, requests: OpenRequests, respond: Respond) -> None:
        self._completions = completions
        self._requests = requests
        self._respond = respond

    def begin(self, asked: PendingRequest, reserve: Reserve) -> None:
        """Reserve memory, now or when others release it, and continue with the response."""

        def reserved(_: Completed) -> None:
            self._respond(asked, reserve.then)

        token = self._completions.open(reserved)
        self._requests.when_over(asked, partial(self._completions.cancel, token))
        if not asked.reserve(token, reserve.bytes):
            self._completions.complete(token, Completed(0, -1))
