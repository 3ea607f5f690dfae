"""Settings at the start: all problems are reported at once; the three config classes; files."""

from pathlib import Path

import pytest

from pykafka_core.config import (
    BrokerConfigs,
    Listener,
    SettingsFileError,
    parse_properties,
    read_settings,
    validate,
)
from pykafka_core.config.setting import to_text
from pykafka_core.errors import ConfigurationError

STOCK = Path(__file__).parent / "golden" / "server.properties"


def test_stock_server_properties_are_valid() -> None:
    configs = BrokerConfigs(read_settings(STOCK))
    assert configs.int("num.partitions") == 1
    start = configs.start
    assert start.node_id == 1
    assert start.log_dir == "/tmp/kraft-combined-logs"
    assert start.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert start.advertised_listeners == (Listener("PLAINTEXT", "localhost", 9092),)


def test_settings_without_effect_give_one_warning_that_names_them() -> None:
    (warning,) = BrokerConfigs(read_settings(STOCK)).warnings
    assert "\n" not in warning
    for name in ("num.network.threads", "num.io.threads"):
        assert name in warning
    assert "log.segment.bytes" not in warning
    assert BrokerConfigs({}).warnings == ()


def test_setting_that_rejects_all_clients_is_named_at_the_start() -> None:
    """Kafka also starts with it, and rejects it in requests of clients."""
    for name in ("max.connections", "max.connection.creation.rate", "message.max.bytes"):
        (warning,) = BrokerConfigs({name: "0"}).warnings
        assert warning.startswith(f"{name}=0: no ")
        assert BrokerConfigs({name: "1"}).warnings == ()


def test_empty_settings_are_valid() -> None:
    configs = BrokerConfigs({})
    assert (configs.start.node_id, configs.start.log_dir, configs.start.listeners) == (
        None,
        None,
        (),
    )
    assert configs.boolean("auto.create.topics.enable")
    assert configs.int("log.retention.check.interval.ms") == 300_000
    assert configs.string("broker.rack") is None


CONTROLLER_ONLY = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
}


def test_every_problem_is_reported_at_once() -> None:
    given = {
        "log.retention.ms": "soon",
        "num.partition": "3",
        "authorizer.class.name": "kafka.X",
        "log.segment.bytes": "10",
        "log.cleanup.policy": "shrink",
        "zookeeper.connect": "localhost",
    }
    assert [problem.name for problem in validate(given)] == list(given)
    with pytest.raises(ConfigurationError) as caught:
        BrokerConfigs(given)
    assert len(caught.value.problems) == len(given)
    text = str(caught.value)
    assert "did you mean num.partitions?" in text
    assert "authorizer.class.name is not built yet: remove it" in text
    assert "Value must be at least 1048576" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.keystore.location", "/k.jks"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("remote.log.storage.system.enable", "true"),
        ("config.providers", "file"),
        ("listener.name.internal.ssl.key.password", "x"),
        ("security.inter.broker.protocol", "SSL"),
    ],
)
def test_unsupported_setting_that_changes_behaviour_is_rejected_by_name(
    name: str, value: str
) -> None:
    (problem,) = validate({name: value})
    assert problem.name == name
    assert f"{name} is not built yet" in problem.text


def test_unsupported_setting_may_be_set_to_its_default() -> None:
    assert (
        validate({"security.inter.broker.protocol": "PLAINTEXT", "authorizer.class.name": ""}) == ()
    )


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"listeners": "PLAINTEXT://localhost"}, "listeners"),
        ({"listeners": "PLAINTEXT://:70000"}, "listeners"),
        ({"listeners": "SSL://:9093"}, "listeners"),
        ({"listeners": "INSIDE://:9092"}, "listeners"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "listeners"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners"),
        ({"log.dirs": "/a,/b"}, "log.dirs"),
        ({"process.roles": "controller", "controller.listener.names": "C"}, "node.id"),
        ({"process.roles": "controller", "node.id": "1"}, "controller.listener.names"),
        (CONTROLLER_ONLY | {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}, "listeners"),
        (CONTROLLER_ONLY | {"advertised.listeners": "PLAINTEXT://a:9092"}, "advertised.listeners"),
        ({"controller.quorum.voters": "1@a:9093,2@b:9093"}, "node.id"),
        ({"node.id": "3", "controller.quorum.voters": "1@a:1,2@b:2"}, "controller.quorum.voters"),
        (
            {"controller.quorum.bootstrap.servers": "a:9093,b"},
            "controller.quorum.bootstrap.servers",
        ),
        *(
            ({"controller.quorum.bootstrap.servers": server}, "controller.quorum.bootstrap.servers")
            for server in ("a:0", "a:65536", "a@b:9093", "@b:9093", "1@a:9093")
        ),
        *(
            ({"node.id": "1", "controller.quorum.voters": voter}, "controller.quorum.voters")
            for voter in ("1@a:0", "1@a:65536", "1@a@b:9093", "1@a:1,-2@b:1")
        ),
        ({"process.roles": "broker", "node.id": "2"}, "controller.quorum.bootstrap.servers"),
        (
            {"process.roles": "broker", "controller.quorum.voters": "1@a:9093"},
            "node.id",
        ),
        (
            {
                "process.roles": "broker",
                "node.id": "1",
                "controller.quorum.voters": "1@a:9093,2@b:9093",
            },
            "controller.quorum.voters",
        ),
        ({"node.id": "1", "broker.id": "2"}, "broker.id"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"node.id": "-3"}, "node.id"),
        ({"num.partitions": "99999999999"}, "num.partitions"),
    ],
)
def test_bad_setting_is_named(given: dict[str, str], name: str) -> None:
    assert [problem.name for problem in validate(given)] == [name]
    assert all(problem.advice for problem in validate(given))


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "# comment\n! comment\n\nlog.dirs = /a b \\\n    /c\nnum.partitions:3\nbroker.rack left\n"
        "empty=\nbare\nkey\\=x=\\u0041\\tB\nnum.partitions=4\n"
    )
    assert parse_properties(text) == {
        "log.dirs": "/a b /c",
        "num.partitions": "4",
        "broker.rack": "left",
        "empty": "",
        "bare": "",
        "key=x": "A\tB",
    }


def test_toml_tables_are_parts_of_names(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        'listeners = ["PLAINTEXT://127.0.0.1:9092"]\nauto.create.topics.enable = false\n'
        '"num.partitions" = 3\n[log]\ndirs = "data"\nretention = { ms = 5000 }\n'
    )
    assert read_settings(file) == {
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "auto.create.topics.enable": "false",
        "num.partitions": "3",
        "log.dirs": "data",
        "log.retention.ms": "5000",
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.toml", b"x ="), ("b.toml", b"x = 1979-05-27"), ("c.properties", b"\xff\xfe")],
)
def test_unreadable_files_are_rejected_with_their_name(
    tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(SettingsFileError, match=name):
        read_settings(file)


@pytest.mark.parametrize(("name", "content"), [("a.toml", "x.y = 1"), ("b.properties", "x.y=1")])
def test_a_byte_order_mark_is_not_part_of_a_setting(
    tmp_path: Path, name: str, content: str
) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8-sig")
    assert read_settings(file) == {"x.y": "1"}


def test_missing_file_is_rejected_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsFileError, match=r"gone\.properties"):
        read_settings(tmp_path / "gone.properties")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.00025, "2.5E-4"),
        (1e7, "1.0E7"),
        (1234567.0, "1234567.0"),
        (-3e-9, "-3.0E-9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert to_text(value) == text
