"""Commands that send requests to a broker, with a broker in this process."""

import json
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from typer import Typer

from pykafka_core import Broker
from pykafka_core import cli as command
from pykafka_core._core import crc32c
from pykafka_core.cli.app import CLIENT, app
from pykafka_core.cli.client import clients, configs, topics
from pykafka_core.cli.client.produce import Interrupt
from pykafka_core.config.table import topic_settings
from pykafka_core.protocol.messages import ProduceRequest
from tests.support.cli import run
from tests.support.patience import PATIENCE_MS, PATIENCE_S
from tests.support.wire import Connection

T = TypeVar("T")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def address(bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYKAFKA_BOOTSTRAP_SERVERS", bootstrap)
    return bootstrap


@pytest.fixture
def topic(address: str, kafka_topic_name: str, capsys: Capture) -> str:
    assert run("topics", "create", kafka_topic_name, "--partitions", "2") == 0
    assert capsys.readouterr().out == f"created {kafka_topic_name}\n"
    return kafka_topic_name


@pytest.fixture
def kafka_topic_name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", str(request.node.name))


def produced(topic: str, tmp_path: Path, *options: str, lines: str = "a:1\nb:2\na:3\n") -> None:
    file = tmp_path / "lines.txt"
    file.write_text(lines)
    assert run("produce", topic, str(file), "--key-separator", ":", *options) == 0


def consumed(capsys: Capture, topic: str, *options: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert run("consume", topic, "--json", *options) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_produced_lines_are_consumed_as_records(
    topic: str, tmp_path: Path, capsys: Capture
) -> None:
    produced(topic, tmp_path, "--header", "from=test", "--compression", "lz4")
    assert capsys.readouterr().out == f"produced 3 records to {topic}\n"
    rows = consumed(capsys, topic)
    assert sorted((row["key"], row["value"]) for row in rows) == [
        ("a", "1"),
        ("a", "3"),
        ("b", "2"),
    ]
    assert all(row["headers"] == [["from", "test"]] for row in rows)
    of_a = [row["value"] for row in rows if row["key"] == "a"]
    assert of_a == ["1", "3"]


def test_consume_starts_at_the_given_position(topic: str, tmp_path: Path, capsys: Capture) -> None:
    produced(topic, tmp_path, "--partition", "1")
    assert [r["offset"] for r in consumed(capsys, topic, "--from", "2", "--partition", "1")] == [2]
    assert consumed(capsys, topic, "--from", "end") == []
    assert consumed(capsys, topic, "--from", "@99999999999999") == []
    assert len(consumed(capsys, topic, "--from", "2001-01-01")) == 3
    assert len(consumed(capsys, topic, "--max", "2")) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["consume", "orders"],
        ["consume", "orders", "--from", "2001-01-01", "--partition", "0"],
        ["groups", "describe", "none"],
        ["groups", "lag", "none"],
        ["groups", "reset-offsets", "none", "--topic", "orders", "--to-earliest", "--dry-run"],
        ["transactions", "describe", "none"],
    ],
)
def test_reading_creates_no_internal_topic(command: list[str], tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        run(*command, "-b", broker.bootstrap_servers)
        assert broker.topics() == {"orders": 1}


def test_consume_prints_no_record_of_an_aborted_transaction(
    topic: str, bootstrap: str, capsys: Capture
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for end in ("commit", "abort", "abort", "commit"):
        producer.begin_transaction()
        for number in range(2):
            producer.produce(topic, f"{end} {number}".encode(), partition=0)
            assert producer.flush(PATIENCE_S) == 0
        getattr(producer, f"{end}_transaction")(PATIENCE_S)
    rows = consumed(capsys, topic)
    assert [row["value"] for row in rows] == ["commit 0", "commit 1"] * 2
    assert [row["value"] for row in consumed(capsys, topic, "--max", "3")] == [
        "commit 0",
        "commit 1",
        "commit 0",
    ]


def test_keys_and_headers_are_printed_on_request(
    topic: str, tmp_path: Path, capsys: Capture
) -> None:
    produced(topic, tmp_path, "--header", "h=1", lines="k:v\n")
    capsys.readouterr()
    assert run("consume", topic, "--keys", "--headers") == 0
    assert capsys.readouterr().out == "h=1\tk\tv\n"


@pytest.mark.parametrize("options", [[], ["--group", "shipping"]], ids=["alone", "group"])
def test_a_header_name_that_is_not_utf8_is_printed(
    topic: str, bootstrap: str, options: list[str], capsys: Capture
) -> None:
    """The client library raises an error for such a name, after it has read the record."""
    produce_header(bootstrap, topic, b"\xffname")
    (row,) = consumed(capsys, topic, *options)
    assert (row["value"], row["headers"]) == ("v", [["\ufffdname", "x"]])


def produce_header(bootstrap: str, topic: str, name: bytes) -> None:
    """Produce a record to partition 0 with the value ``v`` and one header with the value ``x``."""
    header = bytes([2, 2 * len(name)]) + name + b"\x02x"
    record = b"\0\0\0\x01\x02v" + header  # attributes, two deltas, a null key, a value
    rest = struct.pack(">hiqqqhii", 0, 0, 1000, 1000, -1, -1, -1, 1)
    rest += bytes([2 * len(record)]) + record
    batch = struct.pack(">qiibI", 0, len(rest) + 9, -1, 2, crc32c(rest)) + rest
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    named = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    with Connection(bootstrap) as connection:
        request = ProduceRequest(acks=-1, timeout_ms=PATIENCE_MS, topic_data=[named])
        response = connection.ask(0, 9, request)
    assert response.responses[0].partition_responses[0].error_code == 0


def test_topics_are_described_and_deleted(topic: str, tmp_path: Path, capsys: Capture) -> None:
    produced(topic, tmp_path, "--partition", "0")
    capsys.readouterr()
    assert run("topics", "describe", topic, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(r["log_start_offset"], r["high_watermark"]) for r in rows] == [(0, 3), (0, 0)]
    assert run("topics", "list") == 0
    assert topic in capsys.readouterr().out
    assert run("topics", "delete", topic) == 0
    assert run("topics", "describe", topic) == 1


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_deletions_are_confirmed_at_a_terminal(
    topic: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda: answer)
    assert run("topics", "delete", topic, "--json") == (answer != "y")
    assert f"Delete {topic} and all their records? [y/N] " in capsys.readouterr().err
    assert run("topics", "describe", topic) == (answer == "y")
    capsys.readouterr()
    assert run("groups", "delete", "none") == 1
    assert "Delete none and all their committed offsets? [y/N] " in capsys.readouterr().err
    assert run("groups", "delete", "none", "--yes") == 1
    assert "[y/N]" not in capsys.readouterr().err


def test_settings_are_altered_and_described(topic: str, capsys: Capture) -> None:
    assert run("configs", "alter", "topic", topic, "--set", "retention.ms=60000") == 0
    capsys.readouterr()
    assert run("configs", "describe", "topic", topic, "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["retention.ms"]["value"] == "60000"
    assert rows["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert run("configs", "alter", "topic", topic, "--delete", "retention.ms") == 0
    capsys.readouterr()
    assert run("configs", "describe", "topic", topic, "--json") == 0
    assert "retention.ms" not in capsys.readouterr().out
    assert run("configs", "describe", "topic", topic, "--all", "--json") == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    assert names == sorted(name for name, row in topic_settings().items() if not row.internal)


def test_successes_are_printed_along_with_failures(topic: str, capsys: Capture) -> None:
    assert run("topics", "create", f"{topic}-1", topic, f"{topic}-2") == 1
    out, errors = capsys.readouterr()
    assert out == f"created {topic}-1, {topic}-2\n"
    assert f"cannot create {topic}" in errors
    assert run("topics", "delete", f"{topic}-1", "none", "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"deleted": [f"{topic}-1"]}


def process(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pykafka_core.cli", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_closed_output_is_not_a_failure(
    topic: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    produced(topic, tmp_path, "--partition", "0", lines="k:a value that fills a pipe\n" * 20_000)
    with process("consume", topic, *options) as consume:
        assert consume.stdout is not None
        assert consume.stderr is not None
        assert "a value" in consume.stdout.readline()
        consume.stdout.close()
        assert (consume.wait(PATIENCE_S), consume.stderr.read()) == (0, "")


def test_closed_output_is_not_reported_as_a_damaged_file(tmp_path: Path) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t")
        assert run("produce", "t", __file__, "-b", broker.bootstrap_servers) == 0
    arguments = "--deep-iteration", "--print-data-log", *[str(tmp_path / "t-0")] * 20
    with process("dump-log", *arguments) as dump:
        assert dump.stdout is not None
        assert dump.stderr is not None
        assert dump.stdout.readline().startswith("Dumping")
        dump.stdout.close()
        assert (dump.wait(PATIENCE_S), dump.stderr.read()) == (0, "")


def test_ctrl_c_ends_produce_after_the_lines_it_has_read(topic: str, capsys: Capture) -> None:
    def end_of_partition_0() -> int:
        capsys.readouterr()
        assert run("topics", "describe", topic, "--json") == 0
        return int(json.loads(capsys.readouterr().out)[0]["high_watermark"])

    with process("produce", topic, "--partition", "0") as produce:
        assert produce.stdin is not None
        produce.stdin.write("a\nb\n")
        produce.stdin.flush()
        deadline = time.monotonic() + PATIENCE_S
        while end_of_partition_0() < 2:
            assert time.monotonic() < deadline, "the lines were not sent"
        produce.send_signal(signal.SIGINT)
        out, errors = produce.communicate(timeout=PATIENCE_S)
    assert (produce.returncode, out) == (130, f"produced 2 records to {topic}\n")
    assert "interrupted" in errors
    assert "Traceback" not in errors


FIRST_LINES = "".join(f"{number}:value\n" for number in range(5000))
BEFORE = "the 5,000 lines before it were stored"
FAILING = {
    "no-separator": (
        ["A"],
        "none\n",
        2,
        f"line 5001 of A: there is no ':' between key and value\n  {BEFORE}",
    ),
    "too-large": (["A"], f":{'x' * 2_000_000}", 1, f"message size too large\n  {BEFORE}"),
    "no-file": (["A", "B"], "", 2, f"cannot read B: No such file or directory\n  {BEFORE}"),
    "not-delivered": (
        ["A"],
        "none\n",
        2,
        "0 of the 5,000 lines before it were stored, the rest was not delivered: Broker: Message size too large",
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_lines_before_a_failed_one_are_stored_and_counted(
    case: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """They were dropped silently."""
    arguments, last, code, text = FAILING[case]
    monkeypatch.chdir(tmp_path)
    Path("A").write_text(FIRST_LINES + last)
    if case == "not-delivered":
        assert run("configs", "alter", "topic", topic, "--set", "max.message.bytes=50") == 0
        capsys.readouterr()
    assert run("produce", topic, "--key-separator", ":", *arguments) == code
    out, errors = capsys.readouterr()
    assert (out, errors.lower().count(text.lower())) == ("", 1), errors
    assert len(consumed(capsys, topic)) == (0 if case == "not-delivered" else 5000)


def test_ctrl_c_during_delivery_waits_for_the_records() -> None:
    with Interrupt() as interrupt:
        interrupt.is_reading = False
        signal.raise_signal(signal.SIGINT)
        assert interrupt.is_noted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_before_a_command_starts_is_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_run", interrupted)
    assert run("serve") == 130
    assert capsys.readouterr().err == ""


LARGE = "99999999999"
SURROGATE = "\udcff"
"""An argument that is not UTF-8, as Python represents it."""

USAGE_OF_COMMANDS = [
    (["topics", "create", "t", "--partitions", LARGE], "less than or equal to"),
    (["topics", "create", "t", "--config", f"a{SURROGATE}=b"], "is not UTF-8"),
    (["topics", "delete", ""], "name a topic"),
    (["produce", "TOPIC", __file__, "--partition", LARGE], "less than or equal to"),
    (["produce", "TOPIC", __file__, "--header", f"a{SURROGATE}=b"], "is not UTF-8"),
    (["produce", "TOPIC", __file__, "--header", f"a={SURROGATE}"], "is not UTF-8"),
    (["produce", SURROGATE, __file__], "is not UTF-8"),
    (["produce", "TOPIC", __file__, "--key-separator", ""], "it is empty"),
    (["consume", "TOPIC", "--from", LARGE * 2], "@MILLISECONDS"),
    (["consume", "TOPIC", "--from", f"@{LARGE * 2}"], "@MILLISECONDS"),
    (["configs", "describe", "topic", ""], "name a topic, or a broker by its id"),
    (["configs", "describe", "broker", ""], "name a topic, or a broker by its id"),
]


@pytest.mark.parametrize(("arguments", "text"), USAGE_OF_COMMANDS)
def test_wrong_usage_is_reported_with_advice(
    arguments: list[str], text: str, topic: str, capsys: Capture
) -> None:
    assert run(*(topic if one == "TOPIC" else one for one in arguments)) == 2
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("shell", "code", "text"),
    [
        ("topics list > /dev/full", 1, "No space left on device"),
        ("topics list --json > /dev/full", 1, "No space left on device"),
        ("topics list >&-", 0, ""),
        ("produce t <&-", 2, "stdin is closed\n  name files, or pipe lines into it"),
    ],
)
@pytest.mark.usefixtures("address")
def test_unusable_streams_and_paths_end_a_command_with_one_line(
    shell: str, code: int, text: str
) -> None:
    command_line = f'"{sys.executable}" -m pykafka_core.cli {shell}'
    ran = subprocess.run(
        ["sh", "-c", command_line], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (ran.returncode, ran.stdout) == (code, "")
    assert ran.stderr.count("pykafka-core: ") == bool(text)
    assert text in ran.stderr
    assert "Traceback" not in ran.stderr


REFUSED_BY_THE_CLIENT = {
    "topics list": [["-b", "127.0.0.1:1"]],
    "topics create": [["t", "--partitions", LARGE], ["t", "--partitions", "2147483647"]]
    + [["t", "--replication-factor", "70000"], [SURROGATE], [""]],
    "topics describe": [[""], [SURROGATE]],
    "topics delete": [[""], [SURROGATE], ["none", "none"]],
    "topics elect": [[""], [SURROGATE], ["none"]],
    "topics reassign": [[], ["", "--to", "1"], [SURROGATE, "--to", "1"], ["--to", LARGE]]
    + [["--to", SURROGATE], ["--plan", __file__], ["none", "--replication-factor", LARGE]],
    "groups list": [["-b", "127.0.0.1:1"]],
    "groups describe": [[""], [SURROGATE]],
    "groups members": [[""], [SURROGATE]],
    "groups lag": [[""], [SURROGATE]],
    "groups why": [[""], [SURROGATE], ["g", "--metrics", "127.0.0.1:1"], ["g", "--metrics", "x"]],
    "groups reset-offsets": [["none", "--all-topics", "--to-offset", LARGE * 2]]
    + [["", "--all-topics", "--to-latest"], [SURROGATE, "--all-topics", "--to-latest"]]
    + [["none", "--topic", SURROGATE, "--to-latest"]],
    "groups delete": [[""], [SURROGATE]],
    "transactions list": [["-b", "127.0.0.1:1"], ["-b", "localhost"]],
    "transactions describe": [["none", "-b", "127.0.0.1:1"]],
    "transactions abort": [["none", "-b", "127.0.0.1:1"]],
    "configs describe": [["broker", "99"], ["broker", ""], ["broker", "x"], ["topic", ""]]
    + [["topic", SURROGATE]],
    "configs alter": [["broker", "99", "--set", "a=b"], ["topic", "", "--set", "a=b"]]
    + [["topic", "t", "--set", f"retention.ms={SURROGATE}"]],
    "produce": [["TOPIC", __file__, "--partition", LARGE], [SURROGATE, __file__], ["", __file__]]
    + [["TOPIC", __file__, "--header", f"a={SURROGATE}"]],
    "consume": [["TOPIC", "--from", LARGE * 2], ["TOPIC", "--from", f"@{LARGE * 2}"], [SURROGATE]]
    + [["TOPIC", "--group", ""], ["TOPIC", "--group", SURROGATE]],
    "perf produce": [[SURROGATE], ["none"], ["TOPIC", "--size", LARGE]],
    "perf consume": [[SURROGATE], ["none"]],
    "perf latency": [[SURROGATE], ["none"], ["TOPIC", "--records", "0"]],
    "status": [["-b", "127.0.0.1:1"], ["-b", "localhost"]],
}


def test_every_client_command_has_arguments_that_the_client_rejects() -> None:
    groups = {
        str(group.name): group.typer_instance or Typer()
        for group in app.registered_groups
        if group.rich_help_panel == CLIENT
    }
    commands = {
        f"{name} {command.name or command.callback.__name__}"
        for name, group in groups.items()
        for command in group.registered_commands
        if command.callback is not None
    }
    alone = {
        str(command.name or command.callback.__name__)
        for command in app.registered_commands
        if command.callback is not None and command.rich_help_panel == CLIENT
    }
    assert {"produce", "consume", "status"} == alone
    assert commands | alone == REFUSED_BY_THE_CLIENT.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        [*name.split(), *given]
        for name, all_given in REFUSED_BY_THE_CLIENT.items()
        for given in all_given
    ],
)
def test_error_of_the_client_is_one_plain_line(
    arguments: list[str], topic: str, capsys: Capture
) -> None:
    assert run(*(topic if one == "TOPIC" else one for one in arguments)) in (1, 2)
    out, errors = capsys.readouterr()
    assert errors.startswith(("pykafka-core: ", "Usage: "))
    assert out == ""


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("create_topics", ["topics", "create", "t"]),
        ("delete_topics", ["topics", "delete", "t"]),
        ("list_offsets", ["topics", "describe", "TOPIC"]),
        ("describe_configs", ["configs", "describe", "topic", "t"]),
        ("incremental_alter_configs", ["configs", "alter", "topic", "t", "--set", "a=b"]),
    ],
)
def test_missing_reply_is_reported_in_plain_words(
    method: str,
    arguments: list[str],
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    def never(_client: object, asked: Iterable[T], **_: object) -> dict[T, Future[None]]:
        return {one: Future() for one in asked}

    monkeypatch.setattr(AdminClient, method, never)
    monkeypatch.setattr(clients, "result", lambda future: future.result(0))
    for module in (topics, configs):
        monkeypatch.setattr(module, "result", clients.result)
    assert run(*(topic if one == "TOPIC" else one for one in arguments)) == 1
    assert "no response within" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["consume", "none"], 1, "there is no topic none"),
        (["topics", "describe", "none"], 1, "there is no topic none"),
        (["topics", "create", "a b"], 1, "cannot create a b"),
        (["configs", "alter", "topic", "none", "--set", "x"], 2, "not NAME=VALUE"),
        (["configs", "alter", "topic", "none"], 2, "nothing to alter"),
        (["configs", "describe", "topic", "none"], 1, "cannot describe"),
        (["configs", "describe", "broker", "99"], 1, "there is no broker 99\n  brokers are: 1"),
        (["configs", "alter", "broker", "99", "--set", "a=b"], 1, "there is no broker 99"),
        (
            ["topics", "create", "t", "--replication-factor", "70000"],
            2,
            "replication_factor out of",
        ),
        (["produce", "t", "/no/such/file"], 2, "cannot read /no/such/file"),
        (["topics", "list", "-b", "127.0.0.1:1"], 1, "no broker answers at 127.0.0.1:1"),
        (["topics", "list", "-b", "localhost"], 2, "'localhost' is not HOST:PORT"),
        (["status", "-b", "localhost"], 2, "'localhost' is not HOST:PORT"),
        (["cluster", "status", "-b", "localhost"], 2, "'localhost' is not HOST:PORT"),
    ],
)
@pytest.mark.usefixtures("address")
def test_errors_name_the_problem(
    arguments: list[str], code: int, text: str, capsys: Capture
) -> None:
    assert run(*arguments) == code
    assert text in capsys.readouterr().err
