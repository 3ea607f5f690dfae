"""BrokerRegistration: KIP-631, contract/replication.md#36, #37."""

import pytest

from pykafka_core.handlers.cluster.broker_registration import handle
from pykafka_core.metadata.image.image import Endpoint
from pykafka_core.protocol.messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRequest,
)
from pykafka_core.quorum.values import LISTENERS_MAX
from tests.handlers.cluster_world import (
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    SECOND,
    SESSION_NS,
    ClusterWorld,
    directory,
    registration,
)

INVALID_REQUEST = 42
UNSUPPORTED, DUPLICATE, NOT_REGISTERED, OTHER_CLUSTER, INVALID = 35, 101, 102, 104, 119


def codes(world: ClusterWorld, request: BrokerRegistrationRequest) -> tuple[int, int]:
    response = world.ask(request)
    assert isinstance(response, BrokerRegistrationResponse)
    return response.error_code, response.broker_epoch


@pytest.mark.parametrize("version", range(5))
def test_a_broker_is_registered_fenced_in_every_version(version: int) -> None:
    world = ClusterWorld()
    end = world.end_offset
    assert world.register(1, 7, version=version).broker_epoch == end
    broker = world.image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown) == (end, True, False)
    assert broker.endpoints == (Endpoint("INTERNAL", "b1", 9092),)
    assert (broker.rack, broker.directories) == ("rack1", (directory(1),))


def test_only_the_active_controller_registers() -> None:
    world = ClusterWorld()
    request = registration(1, 7)
    response = world.decide(lambda context: handle(context._replace(active=None), request))
    assert isinstance(response, BrokerRegistrationResponse)
    assert (response.error_code, response.broker_epoch) == (NOT_CONTROLLER, -1)


def test_rule_36_another_process_is_a_duplicate_while_the_session_is_valid() -> None:
    world = ClusterWorld([1])
    before = world.image.brokers[1]
    world.now_ns += SESSION_NS
    assert codes(world, registration(1, 7)) == (DUPLICATE, -1)
    assert world.image.brokers[1] == before
    world.now_ns += 1
    assert codes(world, registration(1, 7))[0] == 0


def test_rule_36_a_new_controller_accepts_the_next_process_of_the_same_directories() -> None:
    """The controller waits for two heartbeats of the registered process, of 2 s each: it may still
    run, and the new process may use a copy of its disk.
    """
    world = ClusterWorld([1])
    world.take_over()
    world.now_ns += 4 * SECOND - 1
    assert codes(world, registration(1, 7)) == (DUPLICATE, -1)
    world.now_ns += 1
    assert codes(world, registration(1, 7))[0] == 0


def test_rule_36_a_new_controller_that_got_a_heartbeat_accepts_no_other_process() -> None:
    world = ClusterWorld([1])
    world.take_over()
    world.heartbeat(world.processes[1])
    world.now_ns += 4 * SECOND
    assert codes(world, registration(1, 7)) == (DUPLICATE, -1)


def test_rule_36_a_new_controller_accepts_no_process_of_other_directories() -> None:
    world = ClusterWorld([1])
    world.take_over()
    request = registration(1, 7)
    request.log_dirs = [directory(9)]
    world.now_ns += SESSION_NS
    assert codes(world, request) == (DUPLICATE, -1)
    world.now_ns += 1
    assert codes(world, request)[0] == 0


def test_rule_36_a_starting_process_counts_as_alive() -> None:
    world = ClusterWorld()
    world.start(1)
    assert codes(world, registration(1, 7)) == (DUPLICATE, -1)


def test_rule_36_after_a_clean_stop_another_process_may_register_at_once() -> None:
    world = ClusterWorld([1, 2])
    assert world.heartbeat(world.processes[1], shut_down=True).should_shut_down
    assert codes(world, registration(1, 7))[0] == 0


def test_rule_36_the_same_process_keeps_its_epoch_and_state() -> None:
    world = ClusterWorld([1])
    process = world.processes[1]
    world.make_topic([1])
    request = registration(1, process.incarnation)
    request.listeners[0].host = "moved"
    assert codes(world, request) == (0, process.epoch)
    broker = world.image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.endpoints[0].host) == (
        process.epoch,
        False,
        "moved",
    )
    assert world.partition().leader == 1
    world.now_ns += SESSION_NS - SECOND
    assert codes(world, request) == (0, process.epoch)
    world.now_ns += SECOND + 1
    assert world.active.sessions.is_valid(world.image.brokers[1], world.now_ns)


def test_rule_36_another_cluster_is_rejected() -> None:
    world = ClusterWorld()
    request = registration(1, 7)
    request.cluster_id = "another"
    assert codes(world, request) == (OTHER_CLUSTER, -1)
    assert world.image.brokers == {}


def test_broker_with_too_many_listeners_is_rejected() -> None:
    request = registration(1, 7)
    of = BrokerRegistrationRequest.Listener
    listeners = [of(name=f"L{number}", host="h", port=1) for number in range(LISTENERS_MAX + 1)]
    request.listeners = listeners
    assert codes(ClusterWorld(), request) == (INVALID_REQUEST, -1)
    request.listeners = listeners[1:]
    assert codes(ClusterWorld(), request)[0] == 0


def test_broker_migrating_from_zookeeper_is_rejected() -> None:
    request = registration(1, 7)
    request.is_migrating_zk_broker = True
    assert codes(ClusterWorld(), request) == (NOT_REGISTERED, -1)


@pytest.mark.parametrize(
    "directories",
    [[], [bytes(16)], [bytes(15) + b"\x63"], [directory(1)] * 2, [directory(1), directory(2)]],
    ids=["none", "reserved", "the last reserved", "twice", "another broker's"],
)
def test_invalid_directories_are_rejected(directories: list[bytes]) -> None:
    world = ClusterWorld([2])
    request = registration(1, 7)
    request.log_dirs = directories
    assert codes(world, request) == (INVALID, -1)
    assert 1 not in world.image.brokers


@pytest.mark.parametrize(
    ("name", "supported"),
    [
        ("metadata.version", (7, 28)),
        ("metadata.version", (30, 31)),
        ("metadata.version", None),
        ("eligible.leader.replicas.version", None),
        ("eligible.leader.replicas.version", (0, 0)),
        ("new.version", (1, 2)),
    ],
)
def test_broker_must_support_every_finalized_level(
    name: str, supported: tuple[int, int] | None
) -> None:
    world = ClusterWorld()
    request = registration(1, 7)
    request.features = [feature for feature in request.features if feature.name != name]
    if supported is not None:
        low, high = supported
        request.features.append(
            BrokerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
        )
    assert codes(world, request) == (UNSUPPORTED, -1)


@pytest.mark.parametrize(("version", "clean"), [(4, True), (3, True), (4, False), (2, True)])
def test_rule_37_an_unclean_process_is_removed_from_every_isr_and_elr_at_registration(
    version: int, clean: bool
) -> None:
    world = ClusterWorld([1, 2, 3], min_isr=3)
    world.make_topic([1, 2, 3], [2, 3, 1])
    world.stop_hearing_of(1)
    epoch = world.processes[1].epoch
    known = clean and version > 2
    response = world.register(1, 7, stopped_in=epoch if known else -1, version=version)
    assert response.error_code == 0
    *changes, registered = world.last_batch
    assert [type(change) for change in changes] == [PartitionChangeRecord] * 2
    assert isinstance(registered, RegisterBrokerRecord)
    assert registered.broker_epoch == world.end_offset - 1
    for index in range(2):
        partition = world.partition(index)
        assert (1 in partition.isr, 1 in partition.elr) == (False, clean)
        assert partition.leader != 1


def test_rule_37_the_last_in_sync_replica_that_lost_records_is_only_the_last_known_leader() -> None:
    world = ClusterWorld([1], min_isr=1)
    world.make_topic([1])
    world.now_ns += SESSION_NS + 1
    world.processes[1] = world.start(1)
    lost = world.partition()
    assert (lost.isr, lost.elr, lost.leader, lost.last_known_elr) == ((), (), -1, (1,))
    world.heartbeat(world.processes[1])
    led = world.partition()
    assert (led.isr, led.leader, led.recovering, led.last_known_elr) == ((1,), 1, True, ())


def test_rule_37_an_unregistered_broker_cannot_prove_a_clean_shutdown() -> None:
    world = ClusterWorld([1, 2], min_isr=2)
    world.make_topic([2, 1])
    epoch = world.processes[1].epoch
    world.ask(UnregisterBrokerRequest(broker_id=1))
    assert world.partition().elr == (1,)
    world.start(1, stopped_in=epoch)
    assert world.partition().elr == ()


def test_uncommitted_registration_starts_no_session() -> None:
    world = ClusterWorld()
    response = world.ask(registration(1, 7), code=NOT_CONTROLLER)
    assert isinstance(response, BrokerRegistrationResponse)
    assert (response.error_code, response.broker_epoch) == (NOT_CONTROLLER, -1)
    assert world.active.sessions.by_id == {}


def test_partition_changes_larger_than_one_batch_are_made_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pykafka_core.handlers.cluster.broker_records.RECORDS_MAX", 2)
    world = ClusterWorld([1, 2])
    world.make_topic(*[[1, 2]] * 5)
    world.stop_hearing_of(1)
    epoch = world.processes[1].epoch
    for _ in range(2):
        assert codes(world, registration(1, 7)) == (REQUEST_TIMED_OUT, -1)
        assert world.image.brokers[1].epoch == epoch
        assert len(world.last_batch) == 2
    assert codes(world, registration(1, 7))[0] == 0
    assert all(1 not in world.partition(index).isr for index in range(5))
