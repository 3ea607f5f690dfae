"""DescribeConfigs, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.config import BrokerConfigs, Scope, settings
from pykafka_core.handlers.configs import describe_configs
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from tests.handlers.configs.config_world import new_context

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
Result = DescribeConfigsResponse.DescribeConfigsResult
Config = DescribeConfigsResponse.DescribeConfigsResourceResult


def describe(
    context: Context,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    *,
    documentation: bool = False,
) -> Result:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
        ],
        include_synonyms=True,
        include_documentation=documentation,
    )
    (result,) = run_to_end(describe_configs.handle(context, request)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    assert isinstance(result, Result)
    return result


def by_name(result: Result) -> dict[str, Config]:
    return {config.name: config for config in result.configs}


def synonyms(config: Config) -> list[tuple[str, str | None, int]]:
    return [(s.name, s.value, s.source) for s in config.synonyms]


@pytest.mark.parametrize("kind", [TOPIC, GROUP, METRICS])
def test_a_value_that_many_resources_have_is_described_once(kind: int) -> None:
    setting = {TOPIC: "retention.ms", GROUP: "consumer.session.timeout.ms", METRICS: "interval.ms"}
    names = [f"r{n}" for n in range(100)]
    context = new_context({(kind, name): {setting[kind]: "50000"} for name in names})
    topic = context.image.topics.by_name["t"]
    context.image.topics.by_name.update(dict.fromkeys(names, topic))
    asked = [
        DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name)
        for name in names
    ]
    request = DescribeConfigsRequest(resources=asked, include_synonyms=True)
    results = run_to_end(describe_configs.handle(context, request)).results
    made = {id(config) for result in results for config in result.configs}
    assert len(made) == len(results[0].configs) > 0
    for result in results:
        assert by_name(result)[setting[kind]].value == "50000"


def test_every_topic_setting_is_described() -> None:
    context = new_context({(TOPIC, "t"): {"retention.ms": "1234"}})
    rows = by_name(describe(context, TOPIC, "t"))
    assert set(rows) == set(settings(Scope.TOPIC)) - {"internal.segment.bytes"}
    own = rows["retention.ms"]
    assert (own.value, own.config_source, own.config_type, own.read_only) == ("1234", 1, 5, False)
    assert synonyms(own) == [("retention.ms", "1234", 1)]
    assert synonyms(rows["segment.bytes"]) == [("log.segment.bytes", "1073741824", 5)]
    assert synonyms(rows["flush.ms"]) == []
    assert rows["flush.ms"].value == "9223372036854775807"
    assert rows["segment.ms"].value == "604800000"
    assert rows["segment.ms"].documentation is None


def test_broker_settings_are_synonyms_of_a_topic_setting() -> None:
    configs = BrokerConfigs().with_dynamic(
        {"log.retention.ms": "7654321"}, {"log.retention.ms": "99"}
    )
    row = by_name(describe(new_context(settings=configs), TOPIC, "t"))["retention.ms"]
    assert (row.value, row.config_source) == ("99", 2)
    assert synonyms(row) == [
        ("log.retention.ms", "99", 2),
        ("log.retention.ms", "7654321", 3),
        ("log.retention.hours", "168", 5),
    ]


def test_every_broker_setting_is_described() -> None:
    configs = BrokerConfigs({"num.partitions": "4", "node.id": "1"})
    rows = by_name(describe(new_context(settings=configs), BROKER, "1"))
    table = settings(Scope.BROKER)
    assert set(rows) == {name for name, setting in table.items() if not setting.internal}
    assert synonyms(rows["num.partitions"]) == [
        ("num.partitions", "4", 4),
        ("num.partitions", "1", 5),
    ]
    assert rows["num.partitions"].read_only
    assert not rows["log.retention.ms"].read_only
    assert rows["log.retention.ms"].value is None
    secret = rows["ssl.key.password"]
    assert (secret.value, secret.is_sensitive, secret.config_type) == (None, True, 9)


def test_a_required_setting_has_no_default_among_its_synonyms() -> None:
    configs = BrokerConfigs({"node.id": "1"}).with_identity(1, None, is_alone=True)
    rows = by_name(describe(new_context(settings=configs), BROKER, "1"))
    assert synonyms(rows["node.id"]) == [("node.id", "1", 4)]
    assert (rows["process.roles"].value, synonyms(rows["process.roles"])) == (
        "broker,controller",
        [],
    )


def test_empty_broker_name_describes_the_defaults_altered_for_all_brokers() -> None:
    configs = BrokerConfigs().with_dynamic({"log.retention.ms": "7654321", "no.such": "1"}, {})
    rows = by_name(describe(new_context(settings=configs), BROKER, ""))
    assert set(rows) == {"log.retention.ms"}
    assert synonyms(rows["log.retention.ms"]) == [("log.retention.ms", "7654321", 3)]


def test_groups_and_subscriptions_show_their_settings_and_the_defaults() -> None:
    context = new_context(
        {
            (GROUP, "g"): {"consumer.session.timeout.ms": "50001"},
            (METRICS, "m"): {"interval.ms": "5000"},
        }
    )
    group = by_name(describe(context, GROUP, "g"))
    assert set(group) == set(settings(Scope.GROUP))
    assert (
        group["consumer.session.timeout.ms"].value,
        group["consumer.session.timeout.ms"].config_source,
    ) == ("50001", 8)
    assert synonyms(group["consumer.session.timeout.ms"]) == [
        ("consumer.session.timeout.ms", "50001", 8),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]
    default = "group.share.session.timeout.ms", "45000", 5
    assert synonyms(group["share.session.timeout.ms"]) == [default]
    default = "share.auto.offset.reset", "latest", 5
    assert synonyms(group["share.auto.offset.reset"]) == [default]
    metrics = by_name(describe(context, METRICS, "m"))
    assert synonyms(metrics["interval.ms"]) == [("interval.ms", "5000", 7)]
    assert (metrics["match"].value, synonyms(metrics["match"])) == ("", [])


def test_broker_setting_for_all_groups_is_the_source_of_the_setting_of_each_group() -> None:
    """In Kafka 4.2 it was a default of the group (5); since 4.3 it has the broker's source."""
    configs = BrokerConfigs({"group.consumer.heartbeat.interval.ms": "6000"})
    context = new_context(
        {(GROUP, "own"): {"consumer.heartbeat.interval.ms": "7000"}}, settings=configs
    )
    inherited = [
        ("group.consumer.heartbeat.interval.ms", "6000", 4),
        ("group.consumer.heartbeat.interval.ms", "5000", 5),
    ]
    row = by_name(describe(context, GROUP, "g"))["consumer.heartbeat.interval.ms"]
    assert (row.value, row.config_source, synonyms(row)) == ("6000", 4, inherited)
    own = by_name(describe(context, GROUP, "own"))["consumer.heartbeat.interval.ms"]
    own_synonyms = [("consumer.heartbeat.interval.ms", "7000", 8), *inherited]
    assert (own.value, own.config_source, synonyms(own)) == ("7000", 8, own_synonyms)


def test_requested_keys_are_described_and_none_means_all() -> None:
    result = describe(new_context(), TOPIC, "t", ["retention.ms", "no.such"])
    assert list(by_name(result)) == ["retention.ms"]
    assert len(describe(new_context(), TOPIC, "t", []).configs) == 34


def test_documentation_is_returned_on_request() -> None:
    result = describe(new_context(), TOPIC, "t", ["retention.ms"], documentation=True)
    assert "Age at which" in (result.configs[0].documentation or "")


@pytest.mark.parametrize(
    ("kind", "name", "code", "text"),
    [
        (TOPIC, "none", 3, None),
        (TOPIC, "a b", 17, None),
        (TOPIC, "", 17, None),
        (BROKER, "999", 42, "Unexpected broker id, expected 1 or empty string, but received 999"),
        (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
        (99, "x", 42, None),
        (0, "x", 42, None),
        (LOGGER, "999", 42, "Unexpected broker id, expected 1 but received 999"),
        (LOGGER, "", 42, "Broker id must not be empty"),
        (METRICS, "", 42, "Client metrics subscription name must not be empty"),
        (GROUP, "", 42, "Group name must not be empty"),
    ],
)
def test_unknown_resource_returns_an_error(
    kind: int, name: str, code: int, text: str | None
) -> None:
    result = describe(new_context(), kind, name)
    assert (result.error_code, list(result.configs)) == (code, [])
    assert result.error_message == text or text is None
