"""The fixtures. They import the broker when first used, so that pytest starts fast."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from .names import name_of

if TYPE_CHECKING:
    from pykafka_core import Broker, Cluster

_numbers = count(1)


@pytest.fixture(scope="session")
def kafka_broker_options() -> Mapping[str, Any]:
    """Keyword arguments of the session's broker; override it in a ``conftest.py``."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_broker_options: Mapping[str, Any]) -> Iterator["Broker"]:
    """A broker that serves until the session ends.

    Its logs are in memory, unless `kafka_broker_options` names a directory.
    """
    from pykafka_core import Broker

    with Broker(**kafka_broker_options) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_broker: "Broker") -> str:
    """``HOST:PORT`` of the session's broker, for ``bootstrap.servers`` of clients."""
    return kafka_broker.bootstrap_servers


@pytest.fixture
def kafka_topic(kafka_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new topic, named after the test and deleted after it.

    It has ``num.partitions`` partitions: 1, unless `kafka_broker_options` gives another number.
    """
    name = name_of(request.node.name, next(_numbers))
    kafka_broker.create_topic(name)
    yield name
    if name in kafka_broker.topics():
        kafka_broker.delete_topic(name)


@pytest.fixture(scope="session")
def kafka_cluster_options() -> Mapping[str, Any]:
    """Keyword arguments of `pykafka_core.Cluster`; override it in a ``conftest.py``, a test module
    or a class.
    """
    return {}


@pytest.fixture
def kafka_cluster(kafka_cluster_options: Mapping[str, Any]) -> Iterator["Cluster"]:
    """A cluster only for this test, which may kill, pause and isolate its brokers.

    It has three brokers, unless `kafka_cluster_options` gives another number.
    """
    from pykafka_core import Cluster

    with Cluster(**kafka_cluster_options) as cluster:
        yield cluster
