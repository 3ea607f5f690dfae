"""The states of replicas by the core's levels, and of partitions as in Kafka's metrics."""

import pytest

from pykafka_core.metadata.health import (
    SHOWN_MAX,
    Directory,
    Health,
    NodeRole,
    Replicas,
    State,
    assess,
    health_of,
    judge_isr,
    named,
    problems,
)
from pykafka_core.metadata.image.image import MetadataImage, Partition, Topic, Topics
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID

HERE, TOPIC_ID = 1, bytes(15) + b"\x09"
AT = TOPIC_ID, 0
NAME = "orders-0"


def test_a_replica_has_the_states_of_its_last_level() -> None:
    replicas = Replicas()
    replicas.note(AT, ["read_only"])
    replicas.note(AT, ["offline", "unreadable"])
    assert replicas.broken() == {AT: [State.OFFLINE_REPLICA, State.UNREADABLE]}
    assert replicas.state_of(AT) is State.OFFLINE_REPLICA
    replicas.note(AT, [])
    assert replicas.broken() == {}
    assert replicas.state_of(AT) is None


def test_log_that_cannot_be_compacted_serves_all_its_records() -> None:
    replicas = Replicas()
    replicas.note(AT, ["uncleanable"])
    assert replicas.broken() == {AT: [State.UNCLEANABLE]}
    assert replicas.state_of(AT) is None
    assert replicas.are_whole


def test_replica_has_the_state_of_its_log_and_of_its_coordinator() -> None:
    replicas = Replicas()
    replicas.note(AT, ["read_only"])
    replicas.coordinator_failed(AT)
    assert replicas.broken() == {AT: [State.READ_ONLY, State.UNLOADED_COORDINATOR]}
    replicas.note(AT, [])
    assert replicas.broken() == {AT: [State.UNLOADED_COORDINATOR]}
    replicas.coordinator_closed(AT)
    assert replicas.broken() == {}


@pytest.mark.parametrize(
    ("levels", "left"),
    [
        ("full ok", "ok"),
        ("full failed", "failed"),
        ("failed ok", "failed"),
        ("failed full", "failed"),
    ],
)
def test_a_failed_directory_stays_failed(levels: str, left: str) -> None:
    replicas = Replicas()
    for level in levels.split():
        replicas.note_directory(Directory(level))
    assert replicas.directory == left


def health(partition: Partition, replicas: Replicas, node: NodeRole | None = None) -> Health:
    topic = Topic("orders", TOPIC_ID, {0: partition})
    image = MetadataImage(topics=Topics({TOPIC_ID: topic}, {"orders": topic}))
    return assess(image, replicas, lambda _: 2, node or NodeRole(HERE, "/data", False))


def partition(*isr: int, leader: int = HERE, adding: tuple[int, ...] = ()) -> Partition:
    return Partition((1, 2, 3), isr, leader, 0, 0, adding=adding)


@pytest.mark.parametrize(
    ("judged", "states"),
    [
        (partition(1, 2, 3), []),
        (partition(1, 2), [State.UNDER_REPLICATED]),
        (partition(1), [State.UNDER_REPLICATED, State.UNDER_MIN_ISR]),
        (partition(1, leader=2), []),
        (partition(1, 2, adding=(3,)), []),
        (partition(1, adding=(2, 3)), []),
        (partition(1, leader=-1), []),
    ],
)
def test_a_leader_counts_missing_followers(judged: Partition, states: list[State]) -> None:
    assert health(judged, Replicas()) == health_of((state, NAME) for state in states)


def test_the_controller_counts_partitions_without_a_leader() -> None:
    found = health(partition(2, leader=-1), Replicas(), NodeRole(HERE, "/data", True))
    assert found == health_of([(State.OFFLINE, NAME)])


def test_a_node_reports_its_own_logs_and_its_directory() -> None:
    replicas = Replicas()
    replicas.note(AT, ["read_only"])
    replicas.note_directory(Directory.FULL)
    whole = partition(1, 2, 3)
    full = (State.FULL_DIRECTORY, "/data")
    assert health(whole, replicas) == health_of([(State.READ_ONLY, NAME), full])
    elsewhere = health(whole, replicas, NodeRole(4, "/data", False))
    assert elsewhere == health_of([full])


def test_a_node_reports_its_metadata_log() -> None:
    """Images do not contain the topic of the metadata log."""
    replicas = Replicas()
    replicas.note((METADATA_TOPIC_ID, 0), ["read_only"])
    found = health(partition(1, 2, 3), replicas)
    assert found == health_of([(State.READ_ONLY, f"{METADATA_TOPIC}-0")])


@pytest.mark.parametrize(
    ("in_sync", "replicas", "min_isr", "states"),
    [
        (1, 1, 2, []),
        (1, 3, 1, [State.UNDER_REPLICATED]),
        (1, 3, 5, [State.UNDER_REPLICATED, State.UNDER_MIN_ISR]),
    ],
)
def test_min_isr_is_capped_by_the_replica_count(
    in_sync: int, replicas: int, min_isr: int, states: list[State]
) -> None:
    assert list(judge_isr(in_sync, replicas, min_isr)) == states


def test_line_names_a_bounded_number_of_partitions() -> None:
    many = [f"t-{index}" for index in range(SHOWN_MAX + 1234)]
    (line,) = problems(health_of((State.OFFLINE, name) for name in many))
    assert line == f"without a leader: {', '.join(many[:SHOWN_MAX])} and 1,234 more"
    assert named([]) == "none"
