"""Batched requests: at most one is in flight per node; new items are sent in the next request."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.interbroker.broker_channel import (
    BrokerApi,
    BrokerChannel,
    BrokerResponse,
)
from pykafka_core.broker.runtime.interbroker.outbox import Outbox
from pykafka_core.protocol.messages import Message

T = TypeVar("T")


class BatchedRequests(Generic[T]):
    """Sends items of one kind to nodes. Used only by the control thread.

    Args:
        channel: Sends requests to other brokers.
        faults: Records an error in a response handler.
        api: The API of the requests.
        outbox: The queued items.
        request: Creates the message for the items of one request.
        on_response: Called with the items of a request, which are complete, and the response.
    """

    def __init__(
        self,
        channel: BrokerChannel,
        faults: Faults,
        *,
        api: BrokerApi,
        outbox: Outbox[T],
        request: Callable[[Sequence[T]], Message],
        on_response: Callable[[Sequence[T], BrokerResponse], object],
    ) -> None:
        self._channel = channel
        self._faults = faults
        self._api = api
        self._outbox = outbox
        self._request = request
        self._on_response = on_response

    def put(self, node_id: int, item: T) -> None:
        """Queue an item for a node; the next `advance` sends it."""
        self._outbox.put(node_id, item)

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to send."""
        return bool(self._outbox.ready())

    def advance(self) -> None:
        """Send the queued items to each node without a request in flight."""
        for node_id in self._outbox.ready():
            items = self._outbox.take(node_id)
            if not items:
                continue
            on_response = partial(self._complete, node_id, items)
            self._channel.ask(self._api, node_id, self._request(items), on_response)

    def drop_all(self) -> None:
        """Drop all items when the broker stops."""
        self._outbox.clear()

    def _complete(self, node_id: int, items: Sequence[T], response: BrokerResponse) -> None:
        self._outbox.over(node_id)
        name = f"a response of node {node_id} to API {self._api.key}"
        self._faults.guard(name, lambda: self._on_response(items, response))
