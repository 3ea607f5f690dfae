"""The commands about transactions, with a broker in this process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from pykafka_core import Broker, _core
from pykafka_core.cli import main, output
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.protocol.messages import DescribeProducersRequest, ProduceRequest
from pykafka_core.types import RESOURCE_BROKER, TRANSACTION_TOPIC
from tests.support.patience import PATIENCE_S
from tests.support.wire import ALTER, Connection, alteration

Capture = pytest.CaptureFixture[str]
TOPIC = "accounts"
PRODUCE, DESCRIBE_PRODUCERS = 0, 61


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with Broker() as broker:
        broker.create_topic(TOPIC, 2)
        monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        yield broker.bootstrap_servers


@pytest.fixture
def unverified(bootstrap: str) -> str:
    """A broker that appends records of transactions without a query to their coordinator."""
    name = "transaction.partition.verification.enable"
    with Connection(bootstrap) as connection:
        response = connection.ask(ALTER, 1, alteration(RESOURCE_BROKER, "", name, "false"))
    assert response.responses[0].error_code == 0
    return bootstrap


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["transactions", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code


def rows(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list)
    return found


def report(capsys: Capture, *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(*arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def begin(bootstrap: str, name: str, partition: int = 0) -> Producer:
    """Return a producer with a record in an open transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"1", partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def test_open_and_ended_transactions_are_listed_and_described(
    bootstrap: str, capsys: Capture
) -> None:
    begin(bootstrap, "ended").commit_transaction(PATIENCE_S)
    kept = begin(bootstrap, "open", partition=1)
    assert [row["transactional_id"] for row in rows(capsys, "list")] == ["ended", "open"]
    (row,) = rows(capsys, "list", "--state", "Ongoing")
    assert (row["transactional_id"], row["state"], row["coordinator"]) == ("open", "Ongoing", 1)
    (described,) = rows(capsys, "describe", "open")
    assert described["partitions"] == [f"{TOPIC}:1"]
    assert described["producer_id"] == row["producer_id"]
    assert 0 <= described["open_ms"] < PATIENCE_S * 1000
    assert run("list") == 0
    assert "CompleteCommit" in capsys.readouterr().out
    kept.abort_transaction(PATIENCE_S)


def hang(bootstrap: str, producer_id: int) -> None:
    """Append a record of a transaction that no coordinator has."""
    batch = _core.build_batch(
        [(None, b"1")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
        timestamp_default=1,
    )
    with Connection(bootstrap) as connection:
        partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
        data = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
        request = ProduceRequest(
            transactional_id="hangs", acks=-1, timeout_ms=5_000, topic_data=[data]
        )
        response = connection.ask(PRODUCE, 9, request)
    assert response.responses[0].partition_responses[0].error_code == 0


def open_starts(bootstrap: str, partition: int) -> list[int]:
    """Return the first offsets of the open transactions in a partition."""
    asked = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[partition])
    with Connection(bootstrap) as connection:
        response = connection.ask(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[asked]))
    producers = response.topics[0].partitions[0].active_producers
    starts = [one.current_txn_start_offset for one in producers]
    return [start for start in starts if start >= 0]


def test_hanging_transaction_is_aborted_in_its_partition(unverified: str, capsys: Capture) -> None:
    hang(unverified, producer_id=7)
    row = report(capsys, "abort", f"{TOPIC}:0", "--yes")
    assert (row["producer_id"], row["hangs"]) == (7, True)
    assert (row["transactional_id"], row["partitions"]) == (None, [f"{TOPIC}:0"])
    assert open_starts(unverified, 0) == []
    assert run("abort", f"{TOPIC}:0", "--yes") == 1
    assert f"no transaction is open in {TOPIC}:0" in capsys.readouterr().err


def test_commit_of_an_aborted_transaction_fails(bootstrap: str, capsys: Capture) -> None:
    """A marker of the command aborted a part of it, but the producer's commit succeeded."""
    producer = begin(bootstrap, "healthy")
    producer.produce(TOPIC, b"2", partition=1)
    assert producer.flush(PATIENCE_S) == 0
    row = report(capsys, "abort", f"{TOPIC}:0", "--yes")
    assert (row["transactional_id"], row["hangs"]) == ("healthy", False)
    assert sorted(row["partitions"]) == [f"{TOPIC}:0", f"{TOPIC}:1"]
    assert 0 <= row["open_ms"] < row["timeout_ms"]
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].fatal(), "it is fenced"
    assert open_starts(bootstrap, 0) == open_starts(bootstrap, 1) == []
    (described,) = rows(capsys, "describe", "healthy")
    assert described["partitions"] == []


def test_nothing_is_aborted_without_consent(
    bootstrap: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = begin(bootstrap, "healthy")
    assert run("abort", f"{TOPIC}:0", "--dry-run") == 0
    out = capsys.readouterr().out
    assert "healthy" in out
    assert "It does not hang" in out
    assert run("abort", f"{TOPIC}:0") == 1
    assert "--yes aborts without asking" in capsys.readouterr().err
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert run("abort", f"{TOPIC}:0") == 1
    assert "nothing was aborted" in capsys.readouterr().err
    assert open_starts(bootstrap, 0) == [0]
    producer.commit_transaction(PATIENCE_S)


def test_transaction_that_changes_before_the_answer_is_not_aborted(
    bootstrap: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ended the transaction that was open when the user answered, not the one shown."""
    producer = begin(bootstrap, "healthy")

    def answer() -> str:
        producer.commit_transaction(PATIENCE_S)
        producer.begin_transaction()
        producer.produce(TOPIC, b"2", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        return "y"

    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    assert run("abort", f"{TOPIC}:0") == 1
    assert "has changed since it was shown" in capsys.readouterr().err
    producer.commit_transaction(PATIENCE_S)


def test_new_producer_of_the_id_is_not_fenced_after_the_answer(
    bootstrap: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(bootstrap, "healthy")
    kept: list[Producer] = []

    def answer() -> str:
        kept.append(begin(bootstrap, "healthy", partition=1))
        return "y"

    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    assert run("abort", f"{TOPIC}:0") == 1
    assert f"no transaction is open in {TOPIC}:0" in capsys.readouterr().err
    kept[0].commit_transaction(PATIENCE_S)


@pytest.fixture
def unloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker with an open transaction whose coordinator cannot be loaded."""
    data, config = tmp_path / "data", {"transaction.state.log.num.partitions": 2}
    with Broker(data, config=config) as broker:
        broker.create_topic(TOPIC, 2)
        begin(broker.bootstrap_servers, "healthy")
    (log,) = data.glob(f"{TRANSACTION_TOPIC}-{coordinator_partition('healthy', 2)}/*.log")
    content = log.read_bytes()
    log.write_bytes(content.replace(b"healthy", b"altered", 1))
    with Broker(data, config=config) as broker:
        monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        yield broker.bootstrap_servers


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_transaction_of_an_unreachable_coordinator_is_not_aborted_as_hanging(
    unloaded: str, capsys: Capture, option: str
) -> None:
    """A marker aborted a part of a transaction, which its producer committed afterwards."""
    assert run("abort", f"{TOPIC}:0", option) == 1
    captured = capsys.readouterr()
    index = coordinator_partition("healthy", 2)
    assert f"{TRANSACTION_TOPIC}:{index}: broker 1: NOT_COORDINATOR" in captured.err
    assert "No coordinator has it" not in captured.out
    assert open_starts(unloaded, 0) == [0]


def test_list_names_the_partitions_it_could_not_read(unloaded: str, capsys: Capture) -> None:
    index = 1 - coordinator_partition("healthy", 2)
    name = next(name for name in "abcdefgh" if coordinator_partition(name, 2) == index)
    begin(unloaded, name, partition=1).commit_transaction(PATIENCE_S)
    assert run("list", "--json") == 1
    captured = capsys.readouterr()
    assert [row["transactional_id"] for row in json.loads(captured.out)] == [name]
    assert "the list is incomplete" in captured.err
    assert f"{TRANSACTION_TOPIC}:{1 - index}: broker 1: NOT_COORDINATOR" in captured.err


def test_one_of_several_transactions_must_be_named_to_be_aborted(
    unverified: str, capsys: Capture
) -> None:
    for producer_id in (7, 8):
        hang(unverified, producer_id)
    assert run("abort", f"{TOPIC}:0", "--yes") == 2
    assert "choose one with --producer-id" in capsys.readouterr().err
    assert run("abort", f"{TOPIC}:0", "--yes", "--producer-id", "7") == 0
    assert open_starts(unverified, 0) == [1]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["describe", "nobody's"], 1, "TRANSACTIONAL_ID_NOT_FOUND"),
        (["list", "--state", "Nonsense"], 2, "no transaction has state Nonsense"),
        (["abort", "nonsense", "--yes"], 2, "'nonsense' is not TOPIC:PARTITION"),
        (["abort", "missing:0", "--yes"], 1, "there is no partition missing:0"),
    ],
)
def test_impossible_request_is_reported(
    bootstrap: str, capsys: Capture, arguments: list[str], code: int, text: str
) -> None:
    kept = begin(bootstrap, "somebody's")
    assert run(*arguments) == code
    assert text in capsys.readouterr().err
    kept.abort_transaction(PATIENCE_S)


def test_empty_list_prints_a_text(bootstrap: str, capsys: Capture) -> None:
    assert run("list") == 0
    assert capsys.readouterr().out == "no transactions\n"
