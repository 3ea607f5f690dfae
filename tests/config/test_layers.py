"""Effective values: the first layer that sets a name wins, and all of them can be shown."""

import pytest

from pykafka_core.config import (
    ConfigLayers,
    ConfigSource,
    InvalidTopicConfigError,
    InvalidValueError,
    canonical_overrides,
    topic_settings,
    validate_topic_config,
)


def shown(layers: ConfigLayers, name: str) -> list[tuple[str, str, int]]:
    return [(v.name, v.value, v.source) for v in layers.broker_synonyms(name)]


def test_altered_for_this_broker_beats_cluster_beats_given_beats_default() -> None:
    layers = ConfigLayers(
        per_broker={"log.retention.ms": "99"},
        cluster={"log.retention.ms": "7654321"},
        static={"log.retention.hours": "1"},
    )
    # As Apache Kafka 4.2.1 answers.
    assert shown(layers, "log.retention.ms") == [
        ("log.retention.ms", "99", 2),
        ("log.retention.ms", "7654321", 3),
        ("log.retention.hours", "1", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert layers.topic_value("retention.ms", {}) == "99"
    assert layers.topic_value("retention.ms", {"retention.ms": " 5 "}) == "5"


def test_a_name_that_nobody_set_shows_no_value_of_its_relatives() -> None:
    assert shown(ConfigLayers(), "log.retention.ms") == []
    assert shown(ConfigLayers(), "log.retention.hours") == [("log.retention.hours", "168", 5)]


def test_topic_defaults_are_converted_from_hours_and_minutes() -> None:
    assert ConfigLayers().log_defaults()["retention.ms"] == "604800000"
    given = ConfigLayers(static={"log.retention.minutes": "2", "log.roll.jitter.hours": "1"})
    assert given.log_defaults()["retention.ms"] == "120000"
    assert given.log_defaults()["segment.jitter.ms"] == "3600000"


def test_core_is_told_every_topic_default_but_flushing_left_to_durability() -> None:
    defaults = ConfigLayers().log_defaults()
    silent = {"flush.messages", "flush.ms", "internal.segment.bytes"}
    assert set(defaults) == set(topic_settings()) - silent
    told = ConfigLayers(static={"log.flush.scheduler.interval.ms": "7"}).log_defaults()
    assert told["flush.ms"] == "7"
    assert "flush.messages" not in told


def test_core_is_told_honoured_broker_settings_only() -> None:
    told = ConfigLayers(cluster={"message.max.bytes": " 5 "}).core_settings()
    assert told["message.max.bytes"] == "5"
    assert told["socket.request.max.bytes"] == "104857600"
    assert "num.io.threads" not in told
    assert "broker.rack" not in told


def test_source_of_an_override_is_the_topic() -> None:
    setting = topic_settings()["cleanup.policy"]
    own, inherited = ConfigLayers().topic_synonyms(setting, {"cleanup.policy": "compact, delete"})
    assert (own.name, own.value) == ("cleanup.policy", "compact,delete")
    assert own.source is ConfigSource.TOPIC_CONFIG
    assert (inherited.name, inherited.source) == ("log.cleanup.policy", ConfigSource.DEFAULT_CONFIG)


def test_stored_overrides_that_are_unknown_or_bad_do_not_reach_the_core() -> None:
    stored = {"retention.ms": " 7", "from.the.future": "1", "segment.bytes": "many"}
    assert canonical_overrides(stored) == {"retention.ms": "7"}


# Each text is what Apache Kafka 4.2.1 answers.
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
def test_a_bad_topic_setting_is_refused_in_kafkas_words(name: str, value: str, reason: str) -> None:
    with pytest.raises(InvalidTopicConfigError) as caught:
        validate_topic_config({name: value}, layers=ConfigLayers())
    assert str(caught.value) == f"Invalid value {value} for configuration {name}: {reason}"


def test_numbers_out_of_bounds_are_shown_as_numbers() -> None:
    setting = topic_settings()["min.cleanable.dirty.ratio"]
    with pytest.raises(InvalidValueError, match=r"Invalid value 2\.0 .* must be no more than 1"):
        setting.parse("2")


def test_throttled_replicas_are_pairs_or_a_star() -> None:
    setting = topic_settings()["leader.replication.throttled.replicas"]
    assert setting.canonical("0:1, 1:2") == "0:1,1:2"
    assert setting.canonical("*") == "*"
    with pytest.raises(InvalidValueError, match=r"Invalid value \[1:a\] for"):
        setting.parse("1:a")


def test_unknown_topic_settings_are_refused() -> None:
    with pytest.raises(InvalidTopicConfigError, match=r"Unknown topic config name: no\.such"):
        validate_topic_config({"no.such": "1"}, layers=ConfigLayers())


def test_compacted_topics_cannot_be_made_but_stay_alterable() -> None:
    layers, compacted = ConfigLayers(), {"cleanup.policy": "compact"}
    with pytest.raises(InvalidTopicConfigError, match="until the group coordinators exist"):
        validate_topic_config(compacted, layers=layers)
    validate_topic_config({**compacted, "retention.ms": "5"}, layers=layers, existing=compacted)


def test_compaction_lags_must_not_cross() -> None:
    with pytest.raises(InvalidTopicConfigError, match=r"\(100\) > max\.compaction\.lag\.ms \(5\)"):
        validate_topic_config(
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "5"}, layers=ConfigLayers()
        )


def test_tiered_storage_is_refused() -> None:
    with pytest.raises(InvalidTopicConfigError, match="not built yet"):
        validate_topic_config({"remote.storage.enable": "true"}, layers=ConfigLayers())
    validate_topic_config({"remote.storage.enable": "false"}, layers=ConfigLayers())
