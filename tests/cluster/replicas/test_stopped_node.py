"""Topics that are created while a node is stopped cleanly have their configured replicas."""

from collections.abc import Iterator

import pytest

from pykafka_core import Cluster
from tests.cluster.clients import produce, read_by_group

pytestmark = pytest.mark.cluster

STOPPED = 2


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two of three nodes; the third one was a leader when it was stopped."""
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 3)
        for partition in range(3):
            cluster.wait_isr("orders", partition)
        cluster.stop(STOPPED)
        yield cluster


def test_internal_topic_has_all_replicas(cluster: Cluster) -> None:
    """A rolling restart is the usual case: the first group commits while a node is down."""
    produce(cluster.bootstrap_servers, "orders", ["a", "b"])
    values = read_by_group(cluster.bootstrap_servers, "readers", "orders", 2)
    assert sorted(values) == [b"a", b"b"]
    cluster.start(STOPPED)
    cluster.wait_isr("__consumer_offsets", isr=3)


def test_new_topic_has_all_replicas(cluster: Cluster) -> None:
    cluster.create_topic("new", 1)
    cluster.start(STOPPED)
    cluster.wait_isr("new", isr=3)
