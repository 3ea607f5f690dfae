"""Effective values: the first layer that sets a name wins, and the values of all layers can be
shown.
"""

from pathlib import Path

import pytest

from pykafka_core.config import (
    BrokerConfigs,
    ConfigSource,
    InvalidValueError,
    Setting,
    TopicConfigs,
    canonical_overrides,
    topic_rows,
    topic_settings,
)
from pykafka_core.errors import ConfigurationError, InvalidConfigError
from pykafka_core.types import Durability

NEVER = str(2**63 - 1)


def shown(layers: BrokerConfigs, name: str) -> list[tuple[str, str | None, int]]:
    return [(v.name, v.value, v.source) for v in layers.broker_synonyms(name)]


def test_setting_of_this_broker_beats_cluster_beats_given_beats_default() -> None:
    layers = BrokerConfigs({"log.retention.hours": "1"}).with_dynamic(
        broker={"log.retention.ms": "99"}, cluster_default={"log.retention.ms": "7654321"}
    )
    # As in the response of Apache Kafka 4.2.1.
    assert shown(layers, "log.retention.ms") == [
        ("log.retention.ms", "99", 2),
        ("log.retention.ms", "7654321", 3),
        ("log.retention.hours", "1", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert layers.topic_value("retention.ms", {}) == "99"
    assert layers.topic_value("retention.ms", {"retention.ms": " 5 "}) == "5"


def test_unset_name_shows_no_value_of_its_synonyms() -> None:
    assert shown(BrokerConfigs(), "log.retention.ms") == []
    assert shown(BrokerConfigs(), "log.retention.hours") == [("log.retention.hours", "168", 5)]


def test_topic_defaults_are_converted_from_hours_and_minutes() -> None:
    assert BrokerConfigs().log_defaults()["retention.ms"] == "604800000"
    given = BrokerConfigs(static={"log.retention.minutes": "2", "log.roll.jitter.hours": "1"})
    assert given.log_defaults()["retention.ms"] == "120000"
    assert given.log_defaults()["segment.jitter.ms"] == "3600000"


def test_core_gets_every_topic_default() -> None:
    defaults = BrokerConfigs().log_defaults()
    assert set(defaults) == set(topic_settings()) - {"internal.segment.bytes"}


def test_core_gets_the_maximum_lag_time_of_followers() -> None:
    given = BrokerConfigs({"replica.lag.time.max.ms": "7000"})
    assert given.broker_settings()["replica.lag.time.max.ms"] == "7000"
    assert given.warnings == ()


@pytest.mark.parametrize(
    ("durability", "messages", "ms"),
    [
        ("fsync", "1", NEVER),
        ("interval", NEVER, "100"),
        ("os", NEVER, NEVER),
        ("memory", NEVER, NEVER),
    ],
)
def test_durability_sets_when_logs_are_flushed(
    durability: Durability, messages: str, ms: str
) -> None:
    told = BrokerConfigs().with_durability(durability).log_defaults()
    assert (told["flush.messages"], told["flush.ms"]) == (messages, ms)


def test_given_setting_overrides_the_durability() -> None:
    given = {"log.flush.scheduler.interval.ms": "7", "log.flush.interval.messages": "5"}
    durabilities: list[Durability] = ["fsync", "interval"]
    for durability in durabilities:
        told = BrokerConfigs(static=given).with_durability(durability).log_defaults()
        assert (told["flush.messages"], told["flush.ms"]) == ("5", "7")


def test_core_gets_only_honoured_broker_settings() -> None:
    told = BrokerConfigs().with_dynamic({"message.max.bytes": " 5 "}, {}).broker_settings()
    assert told["message.max.bytes"] == "5"
    assert told["socket.request.max.bytes"] == "104857600"
    assert "num.io.threads" not in told
    assert "broker.rack" not in told


def test_source_of_an_override_is_the_topic() -> None:
    rows = {
        row.name: row for row in topic_rows({"cleanup.policy": "compact, delete"}, BrokerConfigs())
    }
    own, inherited = rows["cleanup.policy"].synonyms
    assert (own.name, own.value) == ("cleanup.policy", "compact,delete")
    assert own.source is ConfigSource.TOPIC_CONFIG
    assert (inherited.name, inherited.source) == ("log.cleanup.policy", ConfigSource.DEFAULT_CONFIG)


def test_unknown_or_invalid_stored_overrides_do_not_reach_the_core() -> None:
    stored = {"retention.ms": " 7", "from.the.future": "1", "segment.bytes": "many"}
    assert canonical_overrides(stored) == {"retention.ms": "7"}


# The error texts of Apache Kafka 4.2.1.
REFUSED = [
    ("retention.ms", "soon", "Not a number of type LONG"),
    ("retention.ms", "", "Not a number of type LONG"),
    ("retention.ms", "-2", "Value must be at least -1"),
    ("segment.bytes", "10", "Value must be at least 1048576"),
    ("max.message.bytes", "9999999999", "Not a number of type INT"),
    ("preallocate", "yes", "Expected value to be either true or false"),
    ("cleanup.policy", "purge", "String must be one of: compact, delete"),
    ("message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
    (
        "compression.type",
        "lzma",
        "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
    ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
]


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED)
def test_bad_topic_setting_is_rejected_in_the_words_of_kafka(
    name: str, value: str, reason: str
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        TopicConfigs.validate({name: value}, BrokerConfigs())
    assert str(caught.value) == f"Invalid value {value} for configuration {name}: {reason}"


def test_error_of_a_number_out_of_bounds_shows_the_number() -> None:
    setting = topic_settings()["min.cleanable.dirty.ratio"]
    with pytest.raises(InvalidValueError, match=r"Invalid value 2\.0 .* must be no more than 1"):
        setting.parse("2")


def test_throttled_replicas_are_pairs_or_a_star() -> None:
    setting = topic_settings()["leader.replication.throttled.replicas"]
    assert setting.canonical("0:1, 1:2") == "0:1,1:2"
    assert setting.canonical("*") == "*"
    with pytest.raises(InvalidValueError, match=r"Invalid value \[1:a\] for"):
        setting.parse("1:a")


def test_unknown_topic_settings_are_rejected() -> None:
    with pytest.raises(InvalidConfigError, match=r"Unknown topic config name: no\.such"):
        TopicConfigs.validate({"no.such": "1"}, BrokerConfigs())


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compacted_topics_can_be_created_and_altered(policy: str) -> None:
    layers, compacted = BrokerConfigs({"log.cleanup.policy": policy}), {"cleanup.policy": policy}
    TopicConfigs.validate(compacted, layers)
    TopicConfigs.validate({**compacted, "retention.ms": "5"}, layers, compacted)


def test_compaction_lags_must_not_cross() -> None:
    with pytest.raises(InvalidConfigError, match=r"\(100\) > max\.compaction\.lag\.ms \(5\)"):
        TopicConfigs.validate(
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "5"}, BrokerConfigs()
        )


def test_tiered_storage_is_rejected() -> None:
    with pytest.raises(InvalidConfigError, match="not built yet"):
        TopicConfigs.validate({"remote.storage.enable": "true"}, BrokerConfigs())
    TopicConfigs.validate({"remote.storage.enable": "false"}, BrokerConfigs())


def test_values_stored_by_another_version_are_ignored() -> None:
    configs = BrokerConfigs().with_dynamic({"log.retention.ms": "soon"}, {"from.the.future": "1"})
    assert configs.log_defaults()["retention.ms"] == "604800000"
    assert configs.broker == {}


@pytest.mark.parametrize("given", ["node.id", "broker.id"])
def test_node_id_and_broker_id_are_one_number(given: str) -> None:
    configs = BrokerConfigs({given: "7"})
    for name in ("node.id", "broker.id"):
        first = configs.broker_synonyms(name)[0]
        assert (first.value, first.source) == ("7", ConfigSource.STATIC_BROKER_CONFIG)


def test_default_below_the_minimum_is_inherited() -> None:
    assert BrokerConfigs({}).topic_value("compression.gzip.level", {}) == "-1"


@pytest.mark.parametrize(
    ("given", "cordoned"),
    [
        ({}, "./data/"),
        ({}, "{0}/data"),
        ({}, "*"),
        ({"log.dirs": "data"}, "data"),
        ({"log.dir": "data"}, "data"),
    ],
)
def test_cordoned_directory_may_be_relative_like_the_log_directory(
    given: dict[str, str], cordoned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configs = BrokerConfigs({**given, "cordoned.log.dirs": cordoned.format(tmp_path)})
    configs = configs.with_identity(1, f"{tmp_path}/data", is_alone=True)
    monkeypatch.chdir("/")
    assert configs.cordons_log_dir
    altered = configs.with_dynamic({}, {"log.retention.ms": "7"})
    assert altered.ignored == ()
    assert altered.string("log.retention.ms") == "7"
    assert not configs.with_dynamic({}, {"cordoned.log.dirs": ""}).cordons_log_dir


def test_cordoned_directory_must_belong_to_the_broker() -> None:
    configs = BrokerConfigs({"cordoned.log.dirs": "/srv/other"})
    with pytest.raises(ConfigurationError, match="Missing entries : /srv/other"):
        configs.with_identity(1, "/srv/data", is_alone=True)


def unusable(setting: Setting) -> str | None:
    """Return a value that the setting rejects; None if it accepts all values."""
    for text in ("sometimes", "-5", "none"):
        try:
            setting.parse(text)
        except InvalidValueError:
            return text
    return None


@pytest.mark.parametrize("name", topic_settings())
def test_unusable_stored_override_is_ignored(name: str) -> None:
    """It made changes of all other settings of its topic fail, and DeleteRecords treated it as a
    policy.
    """
    text = unusable(topic_settings()[name])
    if text is not None:
        stored = {name: text}
        broker = BrokerConfigs()
        TopicConfigs.validate({**stored, "segment.jitter.ms": "5"}, broker, existing=stored)
        assert broker.topic_value(name, stored) == broker.topic_value(name, {})
        assert canonical_overrides(stored) == {}
        values = {row.name: row.value for row in topic_rows(stored, broker)}
        assert values[name] == text, "it is shown, so that it can be found and deleted"
