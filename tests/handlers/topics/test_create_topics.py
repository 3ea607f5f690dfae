"""CreateTopics: contract/kafka.md#37, #66, contract/replication.md#attack-8, #attack-19."""

from collections.abc import Mapping, Sequence

import pytest

from pykafka_core.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from pykafka_core.types import RESOURCE_TOPIC
from tests.support.simulated.broker import SimulatedBroker

Topic = CreateTopicsRequest.CreatableTopic
Result = CreateTopicsResponse.CreatableTopicResult


def topic(
    name: str = "orders",
    partitions: int = 1,
    factor: int = 1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> Topic:
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
            for key, value in (configs or {}).items()
        ],
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(
                partition_index=index, broker_ids=list(brokers)
            )
            for index, brokers in (assignments or {}).items()
        ],
    )


def create(
    broker: SimulatedBroker, *topics: Topic, version: int = 7, validate_only: bool = False
) -> dict[str, Result]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    response = broker.ask(request, version)
    assert isinstance(response, CreateTopicsResponse)
    results = {result.name: result for result in response.topics}
    assert len(results) == len(response.topics)
    return results


@pytest.mark.parametrize("version", range(2, 8))
def test_topic_is_created_in_every_version(broker: SimulatedBroker, version: int) -> None:
    result = create(broker, topic(partitions=3), version=version)["orders"]
    assert result.error_code == 0
    assert result.error_message is None
    made = broker.image.topics.by_name["orders"]
    assert sorted(made.partitions) == [0, 1, 2]
    assert {p.leader for p in made.partitions.values()} == {broker.identity.node_id}
    assert {p.directories for p in made.partitions.values()} == {(broker.identity.directory_id,)}
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert result.configs
    if version >= 7:
        assert result.topic_id == made.topic_id


def test_topic_is_in_the_core_before_the_reply(broker: SimulatedBroker) -> None:
    create(broker, topic(configs={"retention.ms": "1000"}))
    made = broker.image.topics.by_name["orders"]
    assert broker.core.topics[made.topic_id].overrides == {"retention.ms": "1000"}


def test_minus_one_means_the_broker_default() -> None:
    broker = SimulatedBroker({"num.partitions": "4"})
    result = create(broker, topic(partitions=-1, factor=-1))["orders"]
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_settings_are_echoed_with_their_source(broker: SimulatedBroker) -> None:
    result = create(broker, topic(configs={"retention.ms": "1000"}))["orders"]
    rows = {row.name: row for row in result.configs or []}
    assert (rows["retention.ms"].value, rows["retention.ms"].config_source) == ("1000", 1)
    assert rows["cleanup.policy"].config_source == 5
    assert rows["min.insync.replicas"].config_source == 3
    assert broker.image.configs.of(RESOURCE_TOPIC, "orders") == {"retention.ms": "1000"}


def test_validate_only_gets_the_same_reply_and_creates_nothing(broker: SimulatedBroker) -> None:
    before = broker.image.offset
    result = create(broker, topic(partitions=3), validate_only=True)["orders"]
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert broker.image.topics.by_name == {}
    assert broker.image.offset == before


REFUSED = [
    ("partitions 0", topic(partitions=0), 37),
    ("partitions -2", topic(partitions=-2), 37),
    ("replication factor 0", topic(factor=0), 38),
    ("replication factor -2", topic(factor=-2), 38),
    ("more replicas than brokers", topic(factor=2), 38),
    ("replication factor 32767", topic(factor=32767), 38),
    ("unknown setting", topic(configs={"retention.years": "1"}), 40),
    ("bad value", topic(configs={"retention.ms": "soon"}), 40),
    ("null value", topic(configs={"retention.ms": None}), 40),
    ("bad cleanup policy", topic(configs={"cleanup.policy": "shrink"}), 40),
    ("empty name", topic(""), 17),
    ("dot", topic("."), 17),
    ("dot dot", topic(".."), 17),
    ("slash", topic("../etc"), 17),
    ("NUL", topic("a\0b"), 17),
    ("new line", topic("orders\n"), 17),
    ("not ASCII", topic("größe"), 17),
    ("250 characters", topic("x" * 250), 17),
    ("metadata topic", topic("__cluster_metadata"), 42),
    ("assignment and partitions", topic(partitions=1, factor=-1, assignments={0: [1]}), 42),
    ("assignment and factor", topic(partitions=-1, factor=1, assignments={0: [1]}), 42),
    ("unknown broker", topic(partitions=-1, factor=-1, assignments={0: [7]}), 39),
    ("broker twice", topic(partitions=-1, factor=-1, assignments={0: [1, 1]}), 39),
    ("no replicas", topic(partitions=-1, factor=-1, assignments={0: []}), 39),
    ("gap", topic(partitions=-1, factor=-1, assignments={0: [1], 2: [1]}), 39),
]


@pytest.mark.parametrize(("asked", "code"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_invalid_topic_is_rejected_and_not_created(
    broker: SimulatedBroker, asked: Topic, code: int
) -> None:
    result = create(broker, asked)[asked.name]
    assert result.error_code == code
    assert result.error_message
    assert broker.image.topics.by_name == {}


def test_a_name_of_249_characters_is_allowed(broker: SimulatedBroker) -> None:
    assert create(broker, topic("x" * 249))["x" * 249].error_code == 0


def test_manual_assignment_is_accepted(broker: SimulatedBroker) -> None:
    asked = topic(partitions=-1, factor=-1, assignments={1: [1], 0: [1]})
    assert create(broker, asked)["orders"].num_partitions == 2


def test_existing_topic_is_rejected(broker: SimulatedBroker) -> None:
    create(broker, topic())
    result = create(broker, topic())["orders"]
    assert (result.error_code, result.error_message) == (36, "Topic 'orders' already exists.")


def test_duplicate_in_one_request_is_rejected_in_one_row(broker: SimulatedBroker) -> None:
    results = create(broker, topic(), topic(), topic("other"))
    assert {name: result.error_code for name, result in results.items()} == {
        "orders": 42,
        "other": 0,
    }


def test_names_that_differ_in_dot_and_underscore_collide(broker: SimulatedBroker) -> None:
    create(broker, topic("a.b.c"))
    result = create(broker, topic("a_b.c"))["a_b.c"]
    assert (result.error_code, result.error_message) == (
        17,
        "Topic 'a_b.c' collides with existing topic: a.b.c",
    )
    assert create(broker, topic("abc"))["abc"].error_code == 0


def test_names_of_one_request_collide_too(broker: SimulatedBroker) -> None:
    results = create(broker, topic("x.y"), topic("x_y"))
    assert (results["x.y"].error_code, results["x_y"].error_code) == (0, 17)


def test_failed_topics_do_not_affect_the_others(broker: SimulatedBroker) -> None:
    results = create(broker, topic("bad", partitions=0), topic("good"))
    assert (results["bad"].error_code, results["good"].error_code) == (37, 0)
    assert list(broker.image.topics.by_name) == ["good"]


@pytest.mark.parametrize(
    "asked",
    [
        [topic(partitions=1_000_000)],
        [topic(partitions=2**31 - 1)],
        [topic(f"t{i}") for i in range(10_001)],
    ],
    ids=["one million partitions", "2^31-1 partitions", "ten thousand topics"],
)
def test_excessive_requests_violate_the_policy(broker: SimulatedBroker, asked: list[Topic]) -> None:
    results = create(broker, *asked)
    assert {result.error_code for result in results.values()} == {44}
    assert len(results) == len(asked)
    assert broker.image.topics.by_name == {}


def test_later_requests_of_a_batch_see_the_changes_of_earlier_ones(broker: SimulatedBroker) -> None:
    request = CreateTopicsRequest(topics=[topic()])
    first, second = broker.send(request), broker.send(request)
    broker.run()
    codes = []
    for request_id in (first, second):
        response = broker.response(request_id)
        assert isinstance(response, CreateTopicsResponse)
        codes.append(response.topics[0].error_code)
    assert codes == [0, 36]
