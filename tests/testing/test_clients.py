"""The fixtures of clients, in a separate pytest process as in a user's project."""

from pathlib import Path

import pytest

from pykafka_core.testing.clients import consumer_config
from tests.testing.test_plugin import run

WORKING = """
import pytest

def test_reading_creates_no_internal_topic(kafka_topic, kafka_read_all, kafka_broker):
    assert kafka_read_all(kafka_topic) == []
    assert list(kafka_broker.topics()) == [kafka_topic]

def test_records_come_back(kafka_topic_factory, kafka_producer, kafka_consumer, kafka_read_all):
    topic = kafka_topic_factory(partitions=2, config={"retention.ms": 60_000})
    for number in range(4):
        kafka_producer.produce(topic, str(number).encode(), partition=number % 2)
    expected = [(0, 0, b"0"), (0, 1, b"2"), (1, 0, b"1"), (1, 1, b"3")]
    read = kafka_read_all(topic, count=4)
    assert [(one.partition, one.offset, one.value) for one in read] == expected
    assert kafka_read_all(topic) == read
    consumer = kafka_consumer(topic)
    assert sorted(consumer.poll(60).value() for _ in range(4)) == [b"0", b"1", b"2", b"3"]

def test_each_consumer_has_a_group_of_its_own(kafka_topic, kafka_producer, kafka_consumer):
    kafka_producer.produce(kafka_topic, b"value")
    assert kafka_producer.flush(60) == 0
    for _ in range(2):
        assert kafka_consumer(kafka_topic).poll(60).value() == b"value"

@pytest.fixture
def topics(kafka_broker):
    yield
    assert list(kafka_broker.topics()) in ([], ["__consumer_offsets"])

def test_topics_are_deleted(topics, kafka_topic_factory):
    assert kafka_topic_factory() != kafka_topic_factory()

def test_clients_may_be_closed_by_the_test(kafka_topic, kafka_producer, kafka_consumer):
    kafka_consumer(kafka_topic).close()
    kafka_producer.produce(kafka_topic, b"value")
    kafka_producer.close()

def test_an_empty_topic_has_no_records(kafka_topic, kafka_read_all):
    assert kafka_read_all(kafka_topic) == []
"""

FAILING = """
def test_fails(kafka_topic, kafka_producer, kafka_consumer):
    kafka_producer.produce(kafka_topic, b"value")
    kafka_producer.flush(60)
    consumer = kafka_consumer(kafka_topic, group="workers", config={"client.id": "worker"})
    assert consumer.poll(60) is not None
    consumer.commit(asynchronous=False)
    kafka_producer.produce(kafka_topic, b"one more")
    kafka_producer.flush(60)
    assert False

def test_waits(kafka_topic, kafka_read_all):
    kafka_read_all(kafka_topic, count=1, timeout=0.1)

def test_reads_what_is_not_there(kafka_read_all):
    kafka_read_all("none")

def test_without_a_broker(kafka_broker, kafka_clients):
    kafka_broker.close()
    assert False
"""

UNDELIVERED = """
import pytest

@pytest.fixture
def narrow(kafka_topic_factory):
    return kafka_topic_factory(config={"max.message.bytes": 1000})

def test_too_large(narrow, kafka_producer):
    kafka_producer.produce(narrow, b"x" * 2000)

def test_without_a_key(kafka_topic_factory, kafka_producer):
    topic = kafka_topic_factory(config={"cleanup.policy": "compact"})
    kafka_producer.produce(topic, b"value")

def test_flushed_by_the_test(narrow, kafka_producer):
    kafka_producer.produce(narrow, b"x" * 2000)
    assert kafka_producer.flush(60) == 0

def test_purged(kafka_topic, kafka_producer):
    kafka_producer.produce(kafka_topic, b"value")
    kafka_producer.purge()

def test_with_a_callback(narrow, kafka_producer):
    errors = []
    kafka_producer.produce(narrow, b"x" * 2000, on_delivery=lambda error, _: errors.append(error))
    kafka_producer.flush(60)
    assert errors

def test_to_no_partition(kafka_broker, kafka_producer):
    kafka_producer.produce("created-later", b"value", partition=1)
    kafka_broker.create_topic("created-later")

def test_closed(narrow, kafka_producer):
    kafka_producer.produce(narrow, b"x" * 2000)
    kafka_producer.close()

def test_too_large_in_a_batch(kafka_topic, kafka_producer):
    rows = [{"value": b"x" * 2_000_000}, {"value": b"value"}]
    assert kafka_producer.produce_batch(kafka_topic, rows) == 1

def test_accepted_in_a_second_batch(kafka_topic, kafka_producer):
    rows = [{"value": b"x" * 2_000_000}]
    assert kafka_producer.produce_batch(kafka_topic, rows) == 0
    rows[0]["value"] = b"value"
    assert kafka_producer.produce_batch(kafka_topic, rows) == 1
"""
NO_AUTO_CREATION = """
import pytest

@pytest.fixture(scope="session")
def kafka_broker_options():
    return {"config": {"auto.create.topics.enable": False}}
"""
REFUSED = """
def test_to_no_partition(kafka_topic, kafka_producer):
    kafka_producer.list_topics(kafka_topic)
    kafka_producer.produce(kafka_topic, b"value", partition=1)

def test_larger_than_the_client_allows(kafka_topic, kafka_producer):
    kafka_producer.produce(kafka_topic, b"x" * 2_000_000)

def test_not_bytes(kafka_topic, kafka_producer):
    kafka_producer.produce(kafka_topic, object())

def test_queue_is_full(kafka_topic, kafka_producer, kafka_broker):
    kafka_broker.close()
    for _ in range(100_001):
        kafka_producer.produce(kafka_topic, b"value")
"""
LEFT = """
def test_to_a_deleted_topic(kafka_topic, kafka_producer, kafka_broker):
    kafka_producer.produce(kafka_topic, b"value")
    assert kafka_producer.flush(60) == 0
    kafka_broker.delete_topic(kafka_topic)
    kafka_producer.produce(kafka_topic, b"value", key=b"lost")

def test_to_a_closed_broker(kafka_producer, kafka_broker, kafka_clients):
    kafka_broker.create_topic("topic")
    kafka_broker.close()
    kafka_producer.produce("topic", b"value", key=b"lost")
    while not kafka_clients.errors:
        kafka_producer.poll(1)
"""
SHORT_FLUSH = "from pykafka_core.testing import clients; clients.FLUSH_S = 0.1"
REJOINING = """
def test_a_member_waits_for_another(
    kafka_topic, kafka_producer, kafka_consumer, wait_state
):
    kafka_producer.produce(kafka_topic, b"value")
    shouting = {"log_level": 6}
    first = kafka_consumer(kafka_topic, group="workers", config=shouting)
    assert first.poll(60).value() == b"value"
    second = kafka_consumer(kafka_topic, group="workers", config=shouting)
    wait_state(second, "PreparingRebalance")  # until the first one polls, or leaves

def test_members_of_both_protocols(kafka_topic, kafka_producer, kafka_consumer):
    kafka_producer.produce(kafka_topic, b"value")
    for protocol in "classic", "consumer":
        consumer = kafka_consumer(kafka_topic, config={"group.protocol": protocol})
        assert consumer.poll(60).value() == b"value"
"""
WAIT_STATE = """
import pytest

@pytest.fixture
def wait_state(kafka_broker):
    def wait(consumer, state):
        while kafka_broker.explain_group("workers")["state"] != state:
            assert consumer.poll(0.01) is None
    return wait
"""

ERRORS = (
    *("MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "MSG_SIZE_TOO_LARGE", "_PURGE_"),
    *("_UNKNOWN_PARTITION", "MSG_SIZE_TOO_LARGE", "MSG_SIZE_TOO_LARGE"),
)
"""The errors of `UNDELIVERED`, in order."""


def _run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(text)
    result = run(*arguments, cwd=folder)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.interval
def test_clients_read_records_of_clients_and_are_closed_after_the_test(tmp_path: Path) -> None:
    code, out = _run(tmp_path, WORKING)
    assert code == 0, out
    assert "6 passed" in out


@pytest.mark.interval
def test_failure_report_contains_the_state_of_the_broker(tmp_path: Path) -> None:
    code, out = _run(tmp_path, FAILING)
    assert code == 1, out
    assert "4 failed" in out, out
    assert "error" not in out.splitlines()[-1], out
    failed, waited, missing, closed = out.split("\n____")[1:]
    assert "state of the Kafka broker" in failed
    assert "group workers: Stable, 1 members" in failed
    assert "worker at 127.0.0.1" in failed
    assert "committed 1 of 2, lag 1" in failed
    assert "0 records were read within 0.1 s" in waited
    assert "high watermarks 0: 0" in waited
    assert "kafka_read_all('none'): " in missing
    assert "no more is known" in closed


@pytest.mark.interval
def test_undelivered_record_fails_the_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(NO_AUTO_CREATION)
    code, out = _run(tmp_path, UNDELIVERED)
    assert code == 1, out
    assert "9 passed, 7 errors" in out, out
    reports = out.split("ERROR at teardown of ")[1:]
    for error, report in zip(ERRORS, reports, strict=True):
        assert "1 records were not delivered" in report
        assert f"code={error}" in report, report


@pytest.mark.interval
def test_record_that_the_producer_rejects_fails_the_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SHORT_FLUSH)
    code, out = _run(tmp_path, REFUSED)
    assert code == 1, out
    assert "4 failed" in out, out
    for error in "code=_UNKNOWN_PARTITION", "code=MSG_SIZE_TOO_LARGE", "TypeError", "BufferError":
        assert error in out, out


@pytest.mark.interval
def test_unsent_record_at_the_end_of_a_test_fails_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(NO_AUTO_CREATION + SHORT_FLUSH)
    code, out = _run(tmp_path, LEFT)
    assert code == 1, out
    assert "2 passed, 2 errors" in out, out
    details, _, _ = out.partition("short test summary")
    reports = details.split("ERROR at teardown of ")[1:]
    assert len(reports) == 2, out
    for report in reports:
        assert "1 records were not delivered" in report
        assert "key b'lost': KafkaError{code=_" in report
    assert "last error of producer: KafkaError{code=_" in out


@pytest.mark.interval
def test_closing_consumers_does_not_wait_for_other_members(tmp_path: Path) -> None:
    """LeaveGroup times out after 5 s if it is sent while JoinGroup waits for other members."""
    (tmp_path / "conftest.py").write_text(WAIT_STATE)
    code, out = _run(tmp_path, REJOINING, "--capture=no")
    assert code == 0, out
    assert "2 passed" in out
    assert "Timed out LeaveGroupRequest" not in out


def test_heartbeats_are_fast_where_the_client_decides() -> None:
    interval = "heartbeat.interval.ms"
    assert consumer_config("group", {})[interval] == 50
    assert consumer_config("group", {interval: 70})[interval] == 70
    assert interval not in consumer_config("group", {"group.protocol": "consumer"})


def test_reading_needs_no_part_of_the_command_line(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['typer'] = sys.modules['rich'] = None\n"
    text = "def test_it(kafka_topic, kafka_read_all): kafka_read_all(kafka_topic)\n"
    code, out = _run(tmp_path, blocked + text)
    assert code == 0, out


@pytest.mark.parametrize(
    "fixture", ["kafka_producer", "kafka_consumer", "kafka_read_all", "kafka_clients"]
)
def test_fixture_without_confluent_kafka_names_the_package_to_install(
    tmp_path: Path, fixture: str
) -> None:
    blocked = "import sys; sys.modules['confluent_kafka'] = None\n"
    text = f"def test_it({fixture}): pass\ndef test_topic(kafka_topic_factory): kafka_topic_factory()\n"
    code, out = _run(tmp_path, blocked + text)
    assert code == 1, out
    assert "need confluent-kafka: pip install confluent-kafka" in out
    assert "1 passed, 1 error" in out
