"""The table of settings is that of Apache Kafka 4.2.1, plus settings of later releases."""

import json
from pathlib import Path

import pytest

from pykafka_core.config import Scope, Setting, Support, settings

GOLDEN = json.loads(
    (Path(__file__).parent / "golden" / "kafka-4.2.1-settings.json").read_text(encoding="utf-8")
)


# Kafka checks their format when it uses them, and has no validator for them.
CHECKED_IN_USE = frozenset({"max.connections.per.ip.overrides"})


def _kafka_validator(setting: Setting) -> str | None:
    if setting.validator is None or setting.name in CHECKED_IN_USE:
        return None
    return str(setting.validator)


def facts(setting: Setting) -> dict[str, object]:
    return {
        "name": setting.name,
        "type": setting.type.name,
        "default": "__NONE__" if setting.required else setting.default,
        "validator": _kafka_validator(setting),
        "importance": setting.importance.upper(),
        "internal": setting.internal,
        "mode": "" if setting.update_mode is None else setting.update_mode.value,
    }


OWN = {"internal.frame.max.ms", "internal.gone.broker.fencing.enable", "internal.parked.max.bytes"}
"""Kafka does not have these settings; like its internal ones, they are listed only if they are
set."""
ALTERED_ONLY = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Not in `KafkaConfig`: Kafka's brokers only read them as altered settings (`QuotaConfig`); listed
once set."""
LATER = {
    (Scope.TOPIC, "max.decompressed.message.bytes"): (
        *("INT", "2147483639", "[1,...,2147483639]", "MEDIUM", False, ""),
    ),
    (Scope.BROKER, "controller.quorum.fetch.max.bytes"): (
        *("INT", "1048576", "[1,...]", "LOW", False, "read-only"),
    ),
    (Scope.BROKER, "controller.quorum.fetch.snapshot.max.bytes"): (
        *("INT", "1048576", "[1,...]", "LOW", False, "read-only"),
    ),
    (Scope.BROKER, "cordoned.log.dirs"): (*("LIST", "", "", "MEDIUM", False, "per-broker"),),
    (Scope.BROKER, "group.consumer.assignment.interval.ms"): (
        *("INT", "1000", "[0,...]", "MEDIUM", False, "cluster-wide"),
    ),
    (Scope.BROKER, "group.consumer.assignor.offload.enable"): (
        *("BOOLEAN", "true", None, "MEDIUM", True, "cluster-wide"),
    ),
    (Scope.BROKER, "group.consumer.max.assignment.interval.ms"): (
        *("INT", "15000", "[0,...]", "MEDIUM", False, "read-only"),
    ),
    (Scope.BROKER, "group.consumer.min.assignment.interval.ms"): (
        *("INT", "0", "[0,...]", "MEDIUM", False, "read-only"),
    ),
    (Scope.BROKER, "max.decompressed.message.bytes"): (
        *("INT", "2147483639", "[1,...,2147483639]", "MEDIUM", False, "cluster-wide"),
    ),
    (Scope.GROUP, "consumer.assignment.interval.ms"): (
        *("INT", "1000", "[0,...]", "MEDIUM", False, ""),
    ),
    (Scope.GROUP, "consumer.assignor.offload.enable"): (
        *("BOOLEAN", "true", None, "MEDIUM", True, ""),
    ),
}
"""Settings of Kafka 4.3 and 4.4: type, default, bounds, importance, whether internal, and mode."""


@pytest.mark.parametrize("scope", list(Scope))
def test_names_types_defaults_bounds_and_modes_are_those_of_kafka(scope: Scope) -> None:
    ours = [
        setting
        for setting in settings(scope).values()
        if setting.name not in OWN | ALTERED_ONLY and (scope, setting.name) not in LATER
    ]
    assert [facts(setting) for setting in ours] == GOLDEN[scope.value]


def test_settings_unknown_to_kafka_are_internal() -> None:
    unlisted = OWN | ALTERED_ONLY
    assert {name for name in unlisted if settings(Scope.BROKER)[name].internal} == unlisted


def test_synonyms_of_topic_settings_are_those_of_kafka() -> None:
    # The golden list has the result of the value 7 for each synonym.
    ours = {
        setting.name: [[s.name, str(7 * s.factor)] for s in setting.synonyms]
        for setting in settings(Scope.TOPIC).values()
        if setting.synonyms and (Scope.TOPIC, setting.name) not in LATER
    }
    assert ours == GOLDEN["synonyms"]


@pytest.mark.parametrize(("scope", "name"), LATER)
def test_settings_of_later_releases_are_those_of_kafka(scope: Scope, name: str) -> None:
    assert tuple(facts(settings(scope)[name]).values()) == (name, *LATER[scope, name])


def test_every_default_is_a_valid_value() -> None:
    for scope in Scope:
        for setting in settings(scope).values():
            if setting.default is not None:
                setting.parse(setting.default)


def test_every_setting_has_documentation() -> None:
    for scope in Scope:
        for setting in settings(scope).values():
            assert setting.documentation.endswith("."), setting.name


HONOURED = """
node.id broker.rack listeners advertised.listeners log.dirs compression.type compression.gzip.level
compression.lz4.level compression.zstd.level auto.create.topics.enable num.partitions
default.replication.factor delete.topic.enable message.max.bytes socket.request.max.bytes
fetch.max.bytes connections.max.idle.ms max.connections max.connections.per.ip
max.connections.per.ip.overrides max.connection.creation.rate max.incremental.fetch.session.cache.slots
producer.id.expiration.ms log.retention.check.interval.ms log.retention.ms log.retention.minutes
log.retention.hours log.retention.bytes log.segment.bytes log.roll.ms log.roll.hours
log.roll.jitter.ms log.roll.jitter.hours log.index.interval.bytes log.index.size.max.bytes
log.flush.interval.messages log.flush.interval.ms log.segment.delete.delay.ms log.cleanup.policy
log.message.timestamp.type log.message.timestamp.before.max.ms
log.message.timestamp.after.max.ms min.insync.replicas
"""
HONOURED_OF_TOPICS = """
compression.type compression.gzip.level compression.lz4.level compression.zstd.level
file.delete.delay.ms flush.messages flush.ms index.interval.bytes internal.segment.bytes
max.message.bytes max.decompressed.message.bytes message.timestamp.type message.timestamp.before.max.ms
message.timestamp.after.max.ms min.insync.replicas retention.bytes retention.ms cleanup.policy
segment.bytes segment.index.bytes segment.jitter.ms segment.ms
"""


@pytest.mark.parametrize(
    ("scope", "names"), [(Scope.BROKER, HONOURED), (Scope.TOPIC, HONOURED_OF_TOPICS)]
)
def test_settings_that_users_rely_on_are_honoured(scope: Scope, names: str) -> None:
    table = settings(scope)
    assert {n for n in names.split() if table[n].support is not Support.HONOURED} == set()


def test_settings_of_unsupported_features_are_stored() -> None:
    prefixes = ("group.share.", "group.streams.", "transaction.two.phase.")
    named = [s for n, s in settings(Scope.BROKER).items() if n.startswith(prefixes)]
    unmoved = {s.name for s in named if s.support not in (Support.STORED, Support.NO_MEANING)}
    assert unmoved == set()


def test_group_settings_without_effect_are_few() -> None:
    named = [s for n, s in settings(Scope.BROKER).items() if n.startswith(("group.", "offsets."))]
    meaningless = {s.name for s in named if s.support is Support.NO_MEANING}
    assert meaningless == {
        "group.consumer.assignor.offload.enable",  # partitions are assigned at the heartbeat
        "group.consumer.regex.refresh.interval.ms",  # patterns are matched when topics are created
        "group.coordinator.append.linger.ms",  # a batch grows while the last one is written
        "group.coordinator.threads",
        "offsets.commit.timeout.ms",
        "offsets.load.buffer.size",
    }


def test_broker_synonyms_have_the_support_of_their_topic_settings() -> None:
    brokers = settings(Scope.BROKER)
    for setting in settings(Scope.TOPIC).values():
        for synonym in setting.synonyms:
            assert brokers[synonym.name].support is setting.support, synonym.name
