"""``/metrics``, ``/healthz`` and ``/groups/GROUP``: they show the broker's state."""

import json
import os
import re
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from pykafka_core import Broker
from pykafka_core.broker.metrics import collect, questions, server
from pykafka_core.broker.metrics.collect import LEVELS
from pykafka_core.broker.metrics.exposition import Family, Sample, lines
from pykafka_core.broker.metrics.server import MetricsServer
from pykafka_core.errors import RequestTimedOutError
from tests.support.patience import PATIENCE_S, POLL_S

RECORDS = 30
LINE = re.compile(r"pykafka_core_(\w+)(?:\{(.*)\})? (-?[0-9.e+-]+)")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def group(broker: Broker) -> str:
    """Create a group whose member has left after it committed one record; return the group's id."""
    broker.create_topic("t", 3)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce("t", b"x", partition=number % 3)
    producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": 'a "group"\\',
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["t"])
    message = None
    while message is None:
        message = consumer.poll(POLL_S)
    consumer.commit(message, asynchronous=False)
    consumer.close()
    return 'a "group"\\'


def metrics(text: str) -> dict[tuple[str, str], float]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match is not None, line
            found[match[1], match[2] or ""] = float(match[3])
    return found


def get(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    host, _, port = address.rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=PATIENCE_S)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def test_metrics_of_partitions_and_groups_match_their_use(broker: Broker, group: str) -> None:
    found = metrics(broker.metrics())
    for partition in range(3):
        label = f'topic="t",partition="{partition}"'
        assert found["partition_log_start_offset", label] == 0
        assert found["partition_high_watermark", label] == RECORDS / 3
        assert found["partition_log_end_offset", label] == RECORDS / 3
        assert found["partition_size_bytes", label] > 0
    assert found["groups", 'state="Empty"'] == 1
    assert found["groups", 'state="Reconciling"'] == 0, "a state of consumer groups alone"
    lags = {label: lag for (name, label), lag in found.items() if name == "group_lag"}
    ((label, lag),) = lags.items()
    assert label.startswith('group="a \\"group\\"\\\\",topic="t",partition=')
    assert 0 < lag < RECORDS / 3


def test_every_counter_of_the_broker_has_its_metric_type(broker: Broker, group: str) -> None:
    text = broker.metrics()
    found = metrics(text)
    for name in broker.statistics():
        if name.startswith("control."):
            continue
        if name in LEVELS:
            assert (name, "") in found
        elif name.startswith("requests_"):
            assert ("requests_total", f'api="{name.removeprefix("requests_")}"') in found
        else:
            assert (f"{name}_total", "") in found
    assert found["records_appended_total", ""] >= RECORDS
    assert found["control_waits_total", ""] > 0
    assert found["control_wait_seconds_total", ""] > 0
    assert set(broker.statistics()) >= LEVELS
    types = re.findall(r"# TYPE pykafka_core_(\w+) (\w+)", text)
    assert all((kind == "counter") == name.endswith("_total") for name, kind in types)
    assert len(types) == len(dict(types)), "a family is declared once"


def test_a_broker_without_topics_and_groups_has_metrics(broker: Broker) -> None:
    assert metrics(broker.metrics())["partitions", ""] == 0


def test_partitions_that_were_never_written_to_have_metrics_and_get_no_files(
    tmp_path: Path,
) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t", 20)
        assert (
            metrics(broker.metrics())["partition_high_watermark", 'topic="t",partition="19"'] == 0
        )
        assert not list(tmp_path.glob("t-*/*.log"))


def test_metrics_of_unopened_logs_take_no_descriptors(tmp_path: Path) -> None:
    """Otherwise a broker with many partitions would have none left for clients."""
    count = 50
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t", count)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for partition in range(count):
            producer.produce("t", b"x", partition=partition)
        producer.flush()
        del producer
    with Broker(tmp_path, durability="os") as broker:
        before = len(os.listdir("/proc/self/fd"))
        ends = [end for (name, _), end in metrics(broker.metrics()).items() if "log_end" in name]
        assert ends == [1] * count
        assert len(os.listdir("/proc/self/fd")) < before + count / 2


def test_advanced_log_start_is_shown(broker: Broker, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition("t", 0, 10)]).values():
        future.result(PATIENCE_S)
    found = metrics(broker.metrics())
    assert found["partition_log_start_offset", 'topic="t",partition="0"'] == 10


def test_a_group_is_explained_with_its_lag_and_history(broker: Broker, group: str) -> None:
    found: Any = broker.explain_group(group)
    assert (found["group"], found["state"]) == (group, "Empty")
    assert [one["what"] for one in found["history"]][:3] == ["rebalance", "generation", "assigned"]
    assert (
        sum(one["lag"] for one in found["lag"]) == RECORDS / 3 - found["lag"][0]["current_offset"]
    )
    assert json.loads(json.dumps(found)) == found
    assert broker.explain_group("none") is None


def test_unused_group_has_no_explanation(broker: Broker) -> None:
    assert broker.explain_group("g") is None


def test_pages_of_the_http_port(broker: Broker, group: str) -> None:
    served = MetricsServer(broker, "", 0)
    assert served.address.startswith("127.0.0.1:")
    assert get(served.address, "/healthz") == (200, "ok\n")
    assert metrics(get(served.address, "/metrics")[1])["groups", 'state="Empty"'] == 1
    status, text = get(served.address, "/groups/a%20%22group%22%5C")
    assert (status, json.loads(text)["group"]) == (200, group)
    assert get(served.address, "/groups/none")[0] == 404
    assert get(served.address, "/")[0] == 404
    assert get(served.address, "/metrics", "POST")[0] == 501
    broker.close()
    assert get(served.address, "/healthz") == (503, "the broker has stopped\n")
    assert get(served.address, "/groups/g")[0] == 503
    served.close()
    with pytest.raises(ConnectionRefusedError):
        get(served.address, "/healthz")


def test_concurrent_scrapes_share_one_reading(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "FRESH_S", 1_000_000)
    served = MetricsServer(broker, "", 0)
    before = get(served.address, "/metrics")
    broker.create_topic("t")
    assert get(served.address, "/metrics") == before
    served.close()


def test_idle_connections_are_bounded(broker: Broker) -> None:
    served = MetricsServer(broker, "", 0)
    host, _, port = served.address.rpartition(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(server.CONNECTIONS_MAX)]
    with socket.create_connection((host, int(port)), PATIENCE_S) as one_more:
        assert one_more.recv(1) == b""
    for one in idle:
        one.close()
    served.close()


def test_unanswered_question_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PATIENCE_S", 0.0)
    question = questions.Question(lambda _: questions._DONE)
    with pytest.raises(RequestTimedOutError):
        question.wait()


def test_labels_and_help_are_escaped() -> None:
    family = Family("x", "gauge", "a\nb\\", [Sample({"l": 'a"\n\\\udcff'}, 1), Sample({}, 0.5)])
    assert list(lines([family])) == [
        "# HELP pykafka_core_x a\\nb\\\\\n",
        "# TYPE pykafka_core_x gauge\n",
        'pykafka_core_x{l="a\\"\\n\\\\?"} 1\n',
        "pykafka_core_x 0.5\n",
    ]
    assert list(lines([Family("x", "gauge", "none", [])])) == []


def test_metric_with_too_many_series_is_truncated_and_the_rest_is_counted(
    broker: Broker, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients can create groups: a page with a million series took seconds and 65 MB."""
    found = metrics(broker.metrics())
    assert found["series_omitted", 'metric="group_lag"'] == 0
    monkeypatch.setattr(collect, "SERIES_MAX", 2)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for name in ("b", "c"):
        offsets = [TopicPartition("t", number, 0) for number in range(3)]
        request = ConsumerGroupTopicPartitions(name, offsets)
        admin.alter_consumer_group_offsets([request])[name].result(PATIENCE_S)
    found = metrics(broker.metrics())
    for name, whole in (("group_lag", 7), ("group_members", 3), ("partition_size_bytes", None)):
        shown = [value for (one, _), value in found.items() if one == name]
        assert len(shown) == 2
        if whole is not None:
            assert found["series_omitted", f'metric="{name}"'] == whole - 2
    assert found["groups", 'state="Empty"'] == 3
