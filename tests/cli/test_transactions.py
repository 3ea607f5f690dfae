"""The commands about transactions, against a broker in this process."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.cli import main
from tests.support.patience import PATIENCE_S

Capture = pytest.CaptureFixture[str]
TOPIC = "accounts"


@pytest.fixture
def bootstrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with Broker() as broker:
        broker.create_topic(TOPIC, 2)
        monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        yield broker.bootstrap_servers


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


def begin(bootstrap: str, name: str, partition: int = 0) -> Producer:
    """A producer with a record in an open transaction."""
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


def test_a_transaction_that_hangs_is_aborted(bootstrap: str, capsys: Capture) -> None:
    kept = begin(bootstrap, "hanging")
    assert run("abort", f"{TOPIC}:0", "--yes") == 0
    assert "aborted the transaction of producer" in capsys.readouterr().out
    assert run("abort", f"{TOPIC}:0", "--yes") == 1
    assert f"no transaction is open in {TOPIC}:0" in capsys.readouterr().err
    del kept


def test_which_of_many_is_aborted_has_to_be_said(bootstrap: str, capsys: Capture) -> None:
    kept = [begin(bootstrap, name) for name in ("a", "b")]
    assert run("abort", f"{TOPIC}:0", "--yes") == 2
    assert "say whose with --producer-id" in capsys.readouterr().err
    (of_a,) = rows(capsys, "describe", "a")
    producer_id = str(of_a["producer_id"])
    assert run("abort", f"{TOPIC}:0", "--yes", "--producer-id", producer_id) == 0
    for producer in kept[1:]:
        producer.abort_transaction(PATIENCE_S)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["describe", "nobody's"], 1, "TRANSACTIONAL_ID_NOT_FOUND"),
        (["list", "--state", "Nonsense"], 2, "no transaction has state Nonsense"),
        (["abort", "nonsense", "--yes"], 2, "'nonsense' is not TOPIC:PARTITION"),
        (["abort", "missing:0", "--yes"], 1, "there is no partition missing:0"),
    ],
)
def test_what_cannot_be_done_is_said(
    bootstrap: str, capsys: Capture, arguments: list[str], code: int, text: str
) -> None:
    kept = begin(bootstrap, "somebody's")
    assert run(*arguments) == code
    assert text in capsys.readouterr().err
    kept.abort_transaction(PATIENCE_S)


def test_without_any_there_is_nothing_to_list(bootstrap: str, capsys: Capture) -> None:
    assert run("list") == 0
    assert capsys.readouterr().out == "no transactions\n"
