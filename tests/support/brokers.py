"""The brokers for tests of clients: one broker in this process, or a cluster of ``--brokers``
nodes.

A test file starts its broker with the fixture `serve`, so it runs with either: the behaviour for
clients must not depend on it. In a cluster each topic has three replicas, even internal ones, and
`acks=all` waits for two of them. A test that only makes sense with one node is marked
``one_broker``, with the reason.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.types import Durability
from tests.support.patience import eventually


class Brokers(Protocol):
    """The operations of tests on a broker or a cluster, in addition to those of its clients."""

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` of each node, separated by commas."""

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic like `Broker.create_topic`; on return every node's metadata has it."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic like `Broker.delete_topic`; on return no node's metadata has it."""

    def topics(self) -> Mapping[str, int]:
        """Return the result of `Broker.topics`."""

    def statistics(self) -> Mapping[str, int]:
        """Return the result of `Broker.statistics`, summed over the nodes."""

    def close(self) -> None:
        """Close before the end of the context."""


class Serve(Protocol):
    """Serves until the end of the context; the arguments are those of `Broker` and `Cluster`."""

    def __call__(
        self,
        data: str | os.PathLike[str] | None = None,
        /,
        *,
        config: Mapping[str, object] | None = None,
        durability: Durability | None = None,
    ) -> AbstractContextManager[Brokers]: ...


class Several:
    """A cluster with the interface `Brokers`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.bootstrap_servers = cluster.bootstrap_servers
        self.create_topic = cluster.create_topic

    def delete_topic(self, name: str) -> None:
        """See `Brokers`."""
        self._controller.delete_topic(name)
        eventually(lambda: not any(name in one.topics() for one in self._cluster.brokers))

    def topics(self) -> Mapping[str, int]:
        """See `Brokers`."""
        return self._controller.topics()

    def statistics(self) -> Mapping[str, int]:
        """See `Brokers`."""
        total = Counter[str]()
        for broker in self._cluster.brokers:
            total.update(broker.statistics())
        return total

    def close(self) -> None:
        """See `Brokers`."""
        self._cluster.close()

    @property
    def _controller(self) -> Broker:
        return self._cluster.brokers[self._cluster.controller()]


@contextmanager
def serving_by_several(
    count: int,
    data: str | os.PathLike[str] | None = None,
    *,
    config: Mapping[str, object] | None = None,
    durability: Durability | None = None,
) -> Iterator[Brokers]:
    with Cluster(count, data=data, config=config, durability=durability or "os") as cluster:
        yield Several(cluster)


@pytest.fixture(scope="session")
def serve(request: pytest.FixtureRequest) -> Serve:
    """Return a function that starts one broker, or a cluster of ``--brokers`` nodes."""
    count: int = request.config.getoption("--brokers")
    return Broker if count == 1 else partial(serving_by_several, count)
