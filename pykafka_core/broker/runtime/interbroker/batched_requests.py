"""Requests that many ask at once: one to a node is under way, and what comes meanwhile goes with the next."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.interbroker.broker_channel import Answer, BrokerApi, BrokerChannel
from pykafka_core.broker.runtime.interbroker.outbox import Outbox
from pykafka_core.protocol.messages import Message

T = TypeVar("T")


class BatchedRequests(Generic[T]):
    """Asks nodes for items of one kind. Belongs to the control thread.

    Args:
        channel: To other brokers.
        faults: Takes note of an answer that fails alone.
        api: What is asked.
        outbox: What waits.
        request: Makes the message of the items of one request.
        answered: Gets those items, all of which are over, with their answer.
    """

    def __init__(
        self,
        channel: BrokerChannel,
        faults: Faults,
        *,
        api: BrokerApi,
        outbox: Outbox[T],
        request: Callable[[Sequence[T]], Message],
        answered: Callable[[Sequence[T], Answer], object],
    ) -> None:
        self._channel = channel
        self._faults = faults
        self._api = api
        self._outbox = outbox
        self._request = request
        self._answered = answered

    def put(self, node_id: int, item: T) -> None:
        """Have an item asked of a node, with the next `advance`."""
        self._outbox.put(node_id, item)

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to send."""
        return bool(self._outbox.ready())

    def advance(self) -> None:
        """Send what waits to each node to which nothing is under way."""
        for node_id in self._outbox.ready():
            items = self._outbox.take(node_id)
            if not items:
                continue
            answered = partial(self._on_answered, node_id, items)
            self._channel.ask(self._api, node_id, self._request(items), answered)

    def drop_all(self) -> None:
        """The broker stops."""
        self._outbox.clear()

    def _on_answered(self, node_id: int, items: Sequence[T], answer: Answer) -> None:
        self._outbox.over(node_id)
        name = f"an answer of node {node_id} to API {self._api.key}"
        self._faults.guard(name, lambda: self._answered(items, answer))
