"""What clients are tested against: one broker in this process, or a cluster of as many as ``--brokers`` says.

A file of tests starts its broker by the fixture `serve`, and so runs on either: what a client sees must not depend on
it. In a cluster each topic has three replicas, internal ones too, and `acks=all` waits for two of them. A test
that is about one node by its nature is marked ``one_broker``, with the reason.
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
    """What tests do with a broker or a cluster, beside what its clients do."""

    @property
    def bootstrap_servers(self) -> str:
        """``HOST:PORT`` of each node, as clients take them."""

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """As `Broker.create_topic`; every node knows it on return."""

    def delete_topic(self, name: str) -> None:
        """As `Broker.delete_topic`; no node knows it on return."""

    def topics(self) -> Mapping[str, int]:
        """As `Broker.topics`."""

    def statistics(self) -> Mapping[str, int]:
        """As `Broker.statistics`, summed over the nodes."""

    def close(self) -> None:
        """End before the context does."""


class Serve(Protocol):
    """Serves while the context lasts; the arguments are those of `Broker` and `Cluster`."""

    def __call__(
        self,
        data: str | os.PathLike[str] | None = None,
        /,
        *,
        config: Mapping[str, object] | None = None,
        durability: Durability | None = None,
    ) -> AbstractContextManager[Brokers]: ...


class Several:
    """A cluster with what a `Broker` can do."""

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
    """Starts what ``--brokers`` says."""
    count: int = request.config.getoption("--brokers")
    return Broker if count == 1 else partial(serving_by_several, count)
