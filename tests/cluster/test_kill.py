"""Three processes: acknowledged records exist once, in order, whichever node is killed."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cluster.clients import consume, create_replicated, isr_of, leaders_of
from tests.cluster.nodes import Processes, has_isr, processes
from tests.support.patience import PATIENCE_MS, PATIENCE_S, eventually, exactly

pytestmark = [pytest.mark.cluster, pytest.mark.kill]

ALL = [1, 2, 3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as cluster:
        cluster.start(*ALL)
        yield cluster


class Stream:
    """Produces numbers to one partition as fast as they are acknowledged, until its end."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        self._is_over = False
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: list[str] = []
        self.failed: list[object] = []

    def __enter__(self) -> "Stream":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._is_over:
            self._producer.produce(self._topic, str(number), on_delivery=self._told)
            number += 1
            self._producer.poll(exactly(0.001, "the pause between two records"))
        assert self._producer.flush(PATIENCE_S) == 0

    def _told(self, error: object, message: object) -> None:
        if error:
            self.failed.append(error)
        else:
            self.acknowledged.append(message.value().decode())  # type: ignore[attr-defined]

    def wait_for_more(self, count: int = 100) -> None:
        wanted = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= wanted)


def test_killed_leader_loses_no_acknowledged_records(cluster: Processes) -> None:
    create_replicated(cluster.bootstrap, "orders", partitions=1)
    everywhere = cluster.bootstrap
    with Stream(everywhere, "orders") as stream:
        for _ in ALL:
            stream.wait_for_more()
            leader = leaders_of(cluster.bootstrap, "orders")[0]
            cluster.kill(leader)
            stream.wait_for_more()
            cluster.start(leader)
            eventually(lambda: isr_of(cluster.bootstrap, "orders") == [ALL])
    assert stream.failed == []
    acknowledged = sorted(stream.acknowledged)
    assert consume(cluster.bootstrap, "orders", len(acknowledged)) == acknowledged
    logs = [cluster.logs(node, "orders") for node in ALL]
    assert logs[0] == logs[1] == logs[2]


def has_leaders(cluster: Processes, expected: list[int]) -> bool:
    """Return whether these nodes lead all partitions, in the view of one node."""
    return set(leaders_of(cluster.bootstrap, "orders")) <= set(expected)


def test_stopped_process_is_fenced_before_its_session_ends(tmp_path: Path) -> None:
    """The active controller is killed, too; each node has restarted before its session expires."""
    with processes(tmp_path) as cluster:
        cluster.settings["broker.session.timeout.ms"] = 5 * PATIENCE_MS
        cluster.start(*ALL)
        create_replicated(cluster.bootstrap, "orders")
        for node in ALL:
            cluster.kill(node)
            others = [other for other in ALL if other != node]
            eventually(partial(has_isr, cluster, others))
            eventually(partial(has_leaders, cluster, others))
            cluster.start(node)
            eventually(partial(has_isr, cluster, ALL))


def test_nodes_that_are_killed_together_recover_all_acknowledged_records(
    cluster: Processes,
) -> None:
    create_replicated(cluster.bootstrap, "orders", partitions=1)
    with Stream(cluster.bootstrap, "orders") as stream:
        stream.wait_for_more(300)
        cluster.kill(*ALL)
        cluster.start(*ALL)
        stream.wait_for_more()
    assert stream.failed == []
    acknowledged = sorted(stream.acknowledged)
    assert consume(cluster.bootstrap, "orders", len(acknowledged)) == acknowledged
