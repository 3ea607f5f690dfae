"""The commands about consumer groups, with a broker in this process."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pykafka_core import Broker
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.types import GROUP_TOPIC
from tests.support.cli import run
from tests.support.patience import POLL_S

Capture = pytest.CaptureFixture[str]
RECORDS = 9


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def group(
    request: pytest.FixtureRequest,
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: Capture,
) -> str:
    """A group that has read all records of a topic with the same name and three partitions."""
    monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", bootstrap)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", str(request.node.name))
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"k{number}:{number}\n" for number in range(RECORDS)))
    assert run("topics", "create", name, "--partitions", "3") == 0
    assert run("produce", name, str(lines), "--key-separator", ":") == 0
    assert run("consume", name, "--group", name, "--from", "beginning", "--max", str(RECORDS)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + RECORDS
    return name


def rows(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run("groups", *arguments, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list)
    return found


def lag(capsys: Capture, group: str) -> int:
    return sum(row["lag"] for row in rows(capsys, "lag", group))


def test_a_group_is_listed_and_described(group: str, capsys: Capture) -> None:
    assert {"group": group, "state": "Empty", "type": "Classic"} in rows(capsys, "list")
    (described,) = rows(capsys, "describe", group)
    assert (described["state"], described["members"], described["lag"]) == ("Empty", 0, 0)
    assert lag(capsys, group) == 0


def test_group_continues_at_its_offset(group: str, capsys: Capture, tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text("k:more\n")
    assert run("produce", group, str(more), "--key-separator", ":") == 0
    assert lag(capsys, group) == 1
    assert run("consume", group, "--group", group, "--max", "1") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("more")
    assert lag(capsys, group) == 0


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (("--to-earliest",), RECORDS),
        (("--to-latest",), 0),
        (("--shift-by", "-1"), 3),
        (("--to-offset", "0"), RECORDS),
        (("--to-datetime", "2000-01-01T00:00:00Z"), RECORDS),
    ],
)
def test_offsets_are_reset(
    group: str, capsys: Capture, where: tuple[str, ...], expected: int
) -> None:
    command = ("groups", "reset-offsets", group, "--all-topics", *where)
    assert run(*command, "--dry-run") == 0
    assert lag(capsys, group) == 0
    assert run(*command, "--yes") == 0
    assert lag(capsys, group) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_offsets_are_reset_from_a_file(
    group: str, capsys: Capture, tmp_path: Path, encoding: str
) -> None:
    """Spreadsheets start a file with a byte order mark, which became a part of the first topic."""
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{group},0,0\n{group},1,0\n{group},2,0\n", encoding=encoding)
    assert run("groups", "reset-offsets", group, "--from-file", str(plan), "--yes") == 0
    assert lag(capsys, group) == RECORDS


def test_a_group_with_members_is_neither_reset_nor_deleted(
    group: str, capsys: Capture, bootstrap: str
) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": "worker"})
    consumer.subscribe([group])
    try:
        while not consumer.assignment():
            consumer.poll(POLL_S)
        assert [row["client_id"] for row in rows(capsys, "members", group)] == ["worker"]
        reset = ("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--yes")
        assert run(*reset) == 1
        assert "worker" in capsys.readouterr().err
        assert run("groups", "delete", group) == 1
    finally:
        consumer.close()
    assert lag(capsys, group) == 0


def test_a_group_is_deleted_with_its_offsets(group: str, capsys: Capture) -> None:
    assert run("groups", "delete", group) == 0
    assert group not in {row["group"] for row in rows(capsys, "list")}
    assert run("groups", "describe", group) == 1
    assert f"there is no group {group}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["list", "describe"])
def test_list_names_the_partitions_it_could_not_read(
    tmp_path: Path, capsys: Capture, command: str
) -> None:
    """Groups of coordinators that are not loaded were missing, and the exit code was 0."""
    config = {"offsets.topic.num.partitions": 2}
    with Broker(tmp_path, config=config) as broker:
        broker.create_topic("orders")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "lacking"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        consumer.close()
    index = coordinator_partition("lacking", 2)
    (log,) = tmp_path.glob(f"{GROUP_TOPIC}-{index}/*.log")
    log.write_bytes(log.read_bytes().replace(b"lacking", b"altered", 1))
    with Broker(tmp_path, config=config) as broker:
        assert run("groups", command, "--json", "-b", broker.bootstrap_servers) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert f"{GROUP_TOPIC}:{index}: broker 1: NOT_COORDINATOR" in captured.err
