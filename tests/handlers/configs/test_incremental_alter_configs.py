"""IncrementalAlterConfigs, with the responses of Apache Kafka 4.2.1."""

from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from pykafka_core.broker.runtime.requests.pending_request import Call
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.configs import incremental_alter_configs
from pykafka_core.handlers.configs.changes import Operation, plan_all
from pykafka_core.handlers.configs.checks import UNKNOWN_NAMES_MAX
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import RECORDS_MAX, run_to_end
from pykafka_core.metadata.image.features import CORDONED_DIRECTORIES_LEVEL, METADATA_VERSION
from pykafka_core.protocol.messages import (
    ConfigRecord,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.handlers.cluster_world import ClusterWorld
from tests.handlers.configs.config_world import new_context

Row = tuple[str, int, str | None]
CORDONED = "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = range(4)
TOO_LONG = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def alter(
    context: Context, *rows: Row, kind: int = TOPIC, name: str = "t", validate: bool = False
) -> tuple[list[tuple[str, str | None]], int, str | None]:
    """Alter configs; return the records as pairs of name and value, the error code and text."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in rows
                ],
            )
        ],
        validate_only=validate,
    )
    proposal = run_to_end(incremental_alter_configs.handle(context, request))
    reply = run_to_end(proposal.reply(0))
    assert isinstance(reply, IncrementalAlterConfigsResponse)
    (response,) = reply.responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    changes = []
    for record in proposal.records:
        assert isinstance(record, ConfigRecord)
        assert (record.resource_type, record.resource_name) == (kind, name)
        changes.append((record.name, record.value))
    return changes, response.error_code, response.error_message


def test_set_and_delete_become_records() -> None:
    existing = {(TOPIC, "t"): {"retention.ms": "5"}}
    context = new_context(existing)
    assert alter(context, ("segment.ms", SET, "7")) == ([("segment.ms", "7")], 0, None)
    assert alter(context, ("retention.ms", DELETE, None)) == ([("retention.ms", None)], 0, None)
    assert alter(context, ("retention.ms", SET, "5")) == ([], 0, None)
    assert alter(context, ("no.such", DELETE, None)) == ([], 0, None)


def test_validate_only_proposes_nothing() -> None:
    assert alter(new_context(), ("retention.ms", SET, "99"), validate=True) == ([], 0, None)


def test_list_settings_accept_append_and_subtract() -> None:
    name = "leader.replication.throttled.replicas"
    context = new_context({(TOPIC, "t"): {name: "0:1,1:1"}})
    assert alter(context, (name, APPEND, "1:1,2:1"))[0] == [(name, "0:1,1:1,2:1")]
    assert alter(context, (name, SUBTRACT, "0:1"))[0] == [(name, "1:1")]
    assert alter(context, (name, SUBTRACT, "0:1,1:1"))[0] == [(name, "")]
    # A config without a value starts from the default.
    assert alter(new_context(), ("cleanup.policy", APPEND, "delete"))[0] == [
        ("cleanup.policy", "delete")
    ]


REFUSED: list[tuple[int, str, list[Row], int, str | None]] = [
    (
        TOPIC,
        "t",
        [("retention.ms", APPEND, "7")],
        40,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    (
        TOPIC,
        "t",
        [("retention.ms", SUBTRACT, "7")],
        40,
        "Can't SUBTRACT to key retention.ms because its type is not LIST.",
    ),
    (TOPIC, "t", [("retention.ms", SET, None)], 42, "Null value not supported for : retention.ms"),
    (
        TOPIC,
        "t",
        [("retention.ms", SET, "soon")],
        40,
        "Invalid value soon for configuration retention.ms: Not a number of type LONG",
    ),
    (TOPIC, "t", [("no.such", SET, "1")], 40, "Unknown topic config name: no.such"),
    (
        TOPIC,
        "t",
        [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
        42,
        "Error due to duplicate config keys",
    ),
    (TOPIC, "t", [("retention.ms", 9, "1")], -1, None),
    (TOPIC, "none", [("retention.ms", SET, "1")], 3, "The topic 'none' does not exist."),
    (TOPIC, "a b", [("retention.ms", SET, "1")], 17, None),
    (TOPIC, "", [("retention.ms", SET, "1")], 42, "Default topic resources are not allowed."),
    (77, "t", [("retention.ms", SET, "1")], 42, "Unknown resource type 77"),
    (
        BROKER,
        "999",
        [("log.retention.ms", SET, "1")],
        42,
        "Unexpected broker id, expected 1, but received 999",
    ),
    (
        BROKER,
        "",
        [("leader.replication.throttled.rate", SET, "-1")],
        42,
        "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0",
    ),
    (
        BROKER,
        "1",
        [("follower.replication.throttled.rate", SET, str(2**63))],
        42,
        f"Invalid value {2**63} for configuration follower.replication.throttled.rate: Not a number of type LONG",
    ),
    (
        BROKER,
        "x",
        [("log.retention.ms", SET, "1")],
        42,
        "Node id must be an integer, but it is: x",
    ),
    (
        BROKER,
        "",
        [("node.id", SET, "7")],
        42,
        "Cannot update these configs dynamically: Set(node.id)",
    ),
    (
        BROKER,
        "",
        [("log.retention.ms", SET, "x")],
        42,
        "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
    ),
    (
        BROKER,
        "",
        [("principal.builder.class", SET, "x")],
        42,
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "Set(principal.builder.class)",
    ),
    (
        BROKER,
        "1",
        [("message.max.bytes", APPEND, "1")],
        40,
        "Config value append is not allowed for config key: message.max.bytes",
    ),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "localhost:1")], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "::1:-1")], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "127.0.0.1:" + "9" * 5_000)], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "127.0.0.1:4294967296")], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "[[::1]]:5")], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "[::1:5")], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "fe80::1%eth0:5")], 42, None),
    (BROKER, "", [("max.connections.per.ip.overrides", SET, "127.0.0.1:\u0665")], 42, None),
    (BROKER, "1", [("log.cleanup.policy", SET, "shrink")], 42, None),
    (BROKER, "1", [("listeners", SET, "PLAINTEXT://:1")], 42, None),
    (LOGGER, "1", [("kafka.x", SET, "INFO")], 40, "Logger kafka.x does not exist!"),
    (LOGGER, "", [("root", SET, "INFO")], 42, "Node id must be an integer, but it is: "),
    (
        LOGGER,
        "7",
        [("root", SET, "INFO")],
        42,
        "Unexpected node id. Expected 1, but received 7",
    ),
    (
        METRICS,
        "m",
        [("interval.ms", SET, "5")],
        42,
        "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
    ),
    (METRICS, "m", [("x", SET, "5")], 42, "Unknown client metrics configuration: x"),
    (METRICS, "m", [("match", SET, "foo=x")], 40, "Illegal client matching pattern: foo=x"),
    (
        METRICS,
        "m",
        [("match", SET, "client_id=(")],
        40,
        "Illegal client matching pattern: client_id=(",
    ),
    (METRICS, "m", [("match", SET, "client_id=a{99999999999}")], 40, None),
    (METRICS, "m", [("match", SET, "client_id=" + "(" * 3_000)], 40, None),
    (METRICS, "m", [("match", SET, "client_id=a=b")], 40, None),
    (METRICS, "m", [("match", SET, "client_id=")], 40, None),
    (METRICS, "m", [("match", SET, "client_id")], 40, None),
    (METRICS, "", [("metrics", SET, "a")], 42, "Subscription name can't be empty"),
    (BROKER, "", [("no.such.setting", SET, "x" * 32_768)], 40, TOO_LONG),
    (BROKER, "", [("no.such.setting", SET, "😀" * 16_384)], 40, TOO_LONG),
    (METRICS, "m", [("metrics", SET, "," * 1_000_000)], 40, TOO_LONG),
    (TOPIC, "t", [("retention.ms", SET, " " * 32_767 + "1")], 40, TOO_LONG),
    (GROUP, "g", [("x", SET, "x")], 40, "Unknown group config name: x"),
    (
        GROUP,
        "g",
        [("consumer.session.timeout.ms", SET, "5")],
        40,
        "consumer.session.timeout.ms must be greater than or equal to "
        "group.consumer.min.session.timeout.ms",
    ),
    (
        GROUP,
        "g",
        [("consumer.heartbeat.interval.ms", SET, "50000")],
        40,
        "consumer.heartbeat.interval.ms must be less than or equal to "
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        GROUP,
        "g",
        [("consumer.assignment.interval.ms", SET, "15001")],
        40,
        "consumer.assignment.interval.ms must be less than or equal to "
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        GROUP,
        "",
        [("consumer.session.timeout.ms", SET, "50000")],
        42,
        "Default group resources are not allowed.",
    ),
]


@pytest.mark.parametrize(("kind", "name", "rows", "code", "text"), REFUSED)
def test_invalid_change_is_rejected_and_writes_nothing(
    kind: int, name: str, rows: list[Row], code: int, text: str | None
) -> None:
    records, error_code, message = alter(new_context(), *rows, kind=kind, name=name)
    assert (records, error_code) == ([], code)
    assert message == text or text is None


@pytest.mark.parametrize(
    ("kind", "name", "row"),
    [
        (BROKER, "1", ("log.retention.ms", SET, "1234567")),
        (BROKER, "", ("log.retention.ms", SET, "7654321")),
        (BROKER, "", ("max.connections.per.ip.overrides", SET, "[::1]:2147483647, 127.0.0.1: 005")),
        (BROKER, "1", ("node.id", DELETE, None)),
        (BROKER, "", ("no.such.setting", SET, "1")),
        (BROKER, "", ("no.such.setting", SET, "x" * 32_767)),
        (METRICS, "m", ("match", SET, "client_id=x.*")),
        (METRICS, "m", ("match", SET, "client_id=(?i:" + "[\x01-\uffff]" * 4_000 + ")")),
        (METRICS, "m", ("match", SET, r"client_id=\p{Alpha}++, client_source_port=90[0-9&&[^3]]=")),
        (GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
        (GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:PT1H")),
    ],
)
def test_other_resources_can_be_altered(kind: int, name: str, row: Row) -> None:
    records, code, _ = alter(new_context(), row, kind=kind, name=name)
    assert code == 0
    assert records == ([] if row[1] == DELETE else [(row[0], row[2])])


def test_resource_named_twice_is_rejected_both_times() -> None:
    one = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(
                name="retention.ms", config_operation=SET, value="1"
            )
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[one, one])
    proposal = run_to_end(incremental_alter_configs.handle(new_context(), request))
    assert list(proposal.records) == []
    reply = run_to_end(proposal.reply(0))
    assert isinstance(reply, IncrementalAlterConfigsResponse)
    assert [response.error_code for response in reply.responses] == [42, 42]


def test_a_message_fits_into_every_version_of_the_answer() -> None:
    """A message with 9,000 settings could not be encoded, and the connection was closed."""
    _, code, text = alter(new_context(), *[(f"😀{n}", SET, None) for n in range(9_000)])
    assert code == 42
    assert len((text or "").encode()) <= 32_767


class NotLookedThrough(dict[str, str]):
    """Settings that can be looked up, but not iterated."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all that a resource has is looked through")

    keys = items = values = __iter__  # type: ignore[assignment]


@pytest.mark.parametrize("name", ["", "1"])
def test_altering_a_broker_does_not_read_all_of_its_settings(name: str) -> None:
    """With 120,000 unknown names, altering `log.retention.ms` took 2.7 s."""
    held = NotLookedThrough({f"unknown.{n}": "v" for n in range(5_000)})
    context = new_context({(BROKER, name): held})
    row = ("log.retention.ms", SET, "1234567")
    assert alter(context, row, kind=BROKER, name=name) == (
        [("log.retention.ms", "1234567")],
        0,
        None,
    )


def unknown(count: int) -> dict[str, str]:
    return {f"unknown.{n}": "v" for n in range(count)}


def test_number_of_unknown_settings_of_a_broker_is_bounded() -> None:
    context = new_context(
        {(BROKER, ""): {**unknown(UNKNOWN_NAMES_MAX - 1), "log.retention.ms": "5"}}
    )
    new = [("new.1", SET, "v"), ("new.2", SET, "v"), ("log.roll.ms", SET, "9")]
    text = "The broker resource would have 1001 settings of unknown names; it may have 1000."
    assert alter(context, *new, kind=BROKER, name="") == ([], 44, text)
    assert len(alter(context, *new[1:], kind=BROKER, name="")[0]) == 2


def test_a_broker_with_too_many_unknown_settings_can_still_be_altered() -> None:
    """Another version, or Apache Kafka, may have stored them."""
    context = new_context({(BROKER, ""): unknown(2 * UNKNOWN_NAMES_MAX)})
    for row in [
        ("unknown.7", SET, "w"),
        ("unknown.7", DELETE, None),
        ("log.retention.ms", SET, "9"),
    ]:
        records, code, _ = alter(context, row, kind=BROKER, name="")
        assert (records, code) == ([(row[0], row[2])], 0)


@pytest.mark.parametrize("kind", [BROKER, METRICS, GROUP])
def test_settings_of_one_resource_are_checked_in_slices(kind: int) -> None:
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=f"x{n}", config_operation=DELETE)
        for n in range(RECORDS_MAX)
    ]
    one = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name="1", configs=configs
    )
    work = plan_all(
        new_context(),
        [one],
        lambda c: Operation(c.name, c.config_operation, c.value),
        replace=False,
    )
    assert sum(1 for _ in work) > 3 * RECORDS_MAX


class Unread:
    """A resource whose settings must not be read."""

    resource_type, resource_name = TOPIC, "t"

    @property
    def configs(self) -> list[str]:
        raise AssertionError("the settings of the request are read")


def test_too_many_resources_are_rejected_before_their_settings_are_read() -> None:
    work = plan_all(new_context(), [Unread()] * (RECORDS_MAX + 1), Mock(), replace=False)
    assert {plan.outcome(0).error_code for plan in run_to_end(work)} == {44}


def altered_brokers(*names: str) -> tuple[list[str], list[int]]:
    """Return the names of the brokers in the records, and the error codes."""
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(
            name="log.retention.ms", config_operation=SET, value="1"
        )
    ]
    resources = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=BROKER, resource_name=name, configs=configs
        )
        for name in names
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    proposal = run_to_end(incremental_alter_configs.handle(new_context(), request))
    reply = run_to_end(proposal.reply(0))
    assert isinstance(reply, IncrementalAlterConfigsResponse)
    records = [record for record in proposal.records if isinstance(record, ConfigRecord)]
    return [r.resource_name for r in records], [response.error_code for response in reply.responses]


@pytest.mark.parametrize("name", ["1", "01", "+1", "0000000001"])
def test_broker_is_stored_by_its_number_in_canonical_form(name: str) -> None:
    """`01` was stored under a name that no broker reads."""
    assert altered_brokers(name) == (["1"], [0])


def test_one_broker_written_in_two_ways_is_one_resource() -> None:
    assert altered_brokers("1", "01") == ([], [42, 42])


@pytest.mark.parametrize("name", [" 1", "1_0", "١", "9" * 30, "2", "-1"])
def test_invalid_or_foreign_broker_id_is_rejected(name: str) -> None:
    assert altered_brokers(name) == ([], [42])


def test_controller_accepts_forwarded_changes_for_every_registered_node() -> None:
    """Kafka's tools alter a broker's settings at that broker; the controller rejected this."""
    context = new_context(settings=BrokerConfigs({"controller.listener.names": "CONTROLLER"}))
    context = context._replace(node=context.node._replace(node_id=9))
    row = ("log.retention.ms", SET, "1")
    refused = alter(context, row, kind=BROKER, name="1")
    assert refused == ([], 42, "Unexpected broker id, expected 9, but received 1")
    sent_on = context._replace(caller=Call(1, listener="CONTROLLER"))
    assert alter(sent_on, row, kind=BROKER, name="1") == ([("log.retention.ms", "1")], 0, None)
    unknown = alter(sent_on, row, kind=BROKER, name="2")
    assert unknown == ([], 102, "No node with id 2 found.")


NO_SUBSET = (
    "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the "
    "current configuration value."
)


@pytest.mark.parametrize(
    ("stored", "value", "is_subset"),
    [
        (None, "*", False),
        (None, "/b", False),
        (None, "/b,/b", False),
        (None, "", True),
        ("/a", None, True),
        ("/a", " /a ", True),
        ("/a", "*", False),
        ("/a, /b", "/b", True),
        ("*", "/a", False),
        ("*", "*", True),
    ],
)
def test_client_of_the_controller_cannot_cordon_more_directories(
    stored: str | None, value: str | None, is_subset: bool
) -> None:
    """As in Kafka 4.4.0: only a broker can check which directories it has."""
    settings = BrokerConfigs({"controller.listener.names": "CONTROLLER"})
    configs = {(BROKER, "1"): {} if stored is None else {CORDONED: stored}}
    context = new_context(configs, settings=settings)
    context.image.features[METADATA_VERSION] = CORDONED_DIRECTORIES_LEVEL
    direct = context._replace(
        node=context.node._replace(node_id=9),
        caller=Call(1, listener="CONTROLLER"),
    )
    row = (CORDONED, SET if value is not None else DELETE, value)
    response = alter(direct, row, kind=BROKER, name="1")[1:]
    assert response == ((0, None) if is_subset else (40, NO_SUBSET))
    sent_on = direct._replace(is_forwarded=True)
    assert alter(sent_on, row, kind=BROKER, name="1")[2] != NO_SUBSET


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "orders"), (BROKER, "")])
@pytest.mark.parametrize("elr", [True, False])
def test_rule_42_a_change_of_the_minimum_clears_the_eligible_replicas(
    kind: int, name: str, elr: bool
) -> None:
    world = ClusterWorld([1, 2], min_isr=2, elr=elr)
    world.make_topic([1, 2])
    world.alter_isr(world.processes[1], [1])
    assert world.partition().elr == ((2,) if elr else ())
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="min.insync.replicas", value="1")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    world.ask(request)
    kinds = [type(record).__name__ for record in world.last_batch]
    assert kinds == ["ConfigRecord", "ClearElrRecord"][: 1 + elr]
    assert world.partition().elr == ()
    config.value = "2"
    world.ask(request)
    assert [type(record).__name__ for record in world.last_batch] == ["ConfigRecord"]
