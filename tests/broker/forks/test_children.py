"""Forked children create their own brokers, and do not affect those of their parent."""

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.errors import ForkedError, StorageLockedError
from pykafka_core.log import Log
from tests.broker.forks.children import exit_code, living_child
from tests.broker.forks.records import fetch, produce
from tests.support.wire import Connection

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

CHILDREN = int(os.environ.get("PYKAFKA_FORKS", "12"))
WRITERS = 3


def work_with_an_own_broker(data: Path | None = None) -> None:
    with Broker(data) as broker:
        broker.create_topic("own", partitions=1)
        with Connection(broker.bootstrap_servers) as connection:
            assert [produce(connection, "own", b"value") for _ in range(3)] == [0, 1, 2]
            assert fetch(connection, "own").count(b"value") == 3


@contextmanager
def writing(broker: Broker, topic: str) -> Iterator[list[int]]:
    """Append records on threads during the block; at its end each adds its count to the list."""
    stop, written = threading.Event(), list[int]()

    def write() -> None:
        count = 0
        with Connection(broker.bootstrap_servers) as connection:
            while not stop.is_set():
                produce(connection, topic, b"of the parent")
                count += 1
        written.append(count)

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield written
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_child_produces_and_fetches_with_its_own_broker(tmp_path: Path, on_disk: bool) -> None:
    with Broker(tmp_path / "parent" if on_disk else None) as broker:
        broker.create_topic("orders", partitions=1)
        own = tmp_path / "child" if on_disk else None
        assert exit_code(lambda: work_with_an_own_broker(own)) == 0
        with Connection(broker.bootstrap_servers) as connection:
            assert produce(connection, "orders", b"value") == 0


def test_child_cannot_use_the_broker_of_its_parent() -> None:
    with Broker() as broker:
        uses: list[Callable[[], object]] = [
            lambda: broker.create_topic("orders"),
            lambda: broker.bootstrap_servers,
            broker.topics,
            broker.statistics,
            broker.metrics,
            broker.health,
            lambda: broker.explain_group("shipping"),
            broker.__enter__,
        ]
        assert exit_code(lambda: refuse_each(uses)) == 0
        assert exit_code(lambda: not_healthy(broker)) == 0
        assert broker.healthy


def refuse_each(uses: list[Callable[[], object]]) -> None:
    for use in uses:
        with pytest.raises(ForkedError, match=r"parent|fork"):
            use()


def not_healthy(broker: Broker) -> None:
    assert not broker.healthy


def test_child_cannot_use_the_log_of_its_parent(tmp_path: Path) -> None:
    with Log.open(tmp_path / "orders-0") as log:
        log.append([(None, b"value")])
        uses: list[Callable[[], object]] = [
            lambda: log.append([(None, b"value")]),
            lambda: list(log),
            log.flush,
            log.statistics,
        ]
        assert exit_code(lambda: refuse_each(uses)) == 0
        assert len(list(log)) == 1


def refuse_to_open(data: Path) -> None:
    with pytest.raises(StorageLockedError):
        Broker(data)


def test_child_cannot_open_the_directory_of_its_parent(tmp_path: Path) -> None:
    with Broker(tmp_path):
        assert exit_code(lambda: refuse_to_open(tmp_path)) == 0
        assert exit_code(lambda: refuse_to_open(tmp_path)) == 0, "the first child released nothing"


def test_directory_is_free_after_a_close_while_a_child_lives(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    with living_child():
        broker.close()
        Broker(tmp_path).close()


@pytest.mark.cluster
def test_child_cannot_use_the_cluster_of_its_parent() -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", partitions=1)
        folder = cluster.brokers[0].data_dir
        uses: list[Callable[[], object]] = [
            lambda: cluster.create_topic("more"),
            lambda: cluster.leader("orders"),
            lambda: cluster.kill(0),
            lambda: cluster.stop(0),
            lambda: cluster.pause(0),
            lambda: cluster.isolate(0),
            cluster.heal,
            cluster.controller,
            cluster.__enter__,
        ]
        assert exit_code(lambda: refuse_each(uses)) == 0
        assert exit_code(cluster.close) == 0
        assert folder is not None
        assert folder.exists()
        cluster.kill(0)
        assert cluster.wait_leader("orders", other_than=0) != 0


def test_children_of_a_busy_broker_do_not_hang(tmp_path: Path) -> None:
    """``PYKAFKA_FORKS=300`` creates 300 children; each does one of these tasks."""
    with Broker(tmp_path / "data", durability="os") as broker:
        broker.create_topic("orders", partitions=1)
        log = Log.open(tmp_path / "log-0")

        def forget() -> None:
            nonlocal broker, log
            del broker, log
            gc.collect()

        actions: list[Callable[[], object]] = [
            lambda: None,
            broker.close,
            forget,
            lambda: refuse_each([broker.topics, log.flush]),
            work_with_an_own_broker,
            lambda: work_with_an_own_broker(tmp_path / str(os.getpid())),
        ]
        with writing(broker, "orders") as written:
            codes = [exit_code(action) for action in islice(cycle(actions), CHILDREN)]
        assert codes == [0] * CHILDREN
        with Connection(broker.bootstrap_servers) as connection:
            assert produce(connection, "orders", b"last") == sum(written)
        log.close()
