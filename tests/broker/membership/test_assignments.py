"""A broker that cannot write names a lost directory for partitions that another can lead."""

import itertools
from typing import TYPE_CHECKING

import pytest

from pykafka_core.broker.runtime.membership.assignments import REVIEW_MS
from pykafka_core.broker.runtime.membership.resignation import (
    PAUSE_HEARTBEATS_MAX,
    SLICE_PARTITIONS,
    Probe,
    Resignation,
)
from pykafka_core.broker.runtime.membership.trust import GRACE_NS
from pykafka_core.broker.runtime.time_slice import TIME_SLICE_NS
from pykafka_core.errors import EligibleLeadersNotAvailableError
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.metadata.directories import LOST
from pykafka_core.metadata.health import Replicas
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    Message,
)
from tests.broker.membership.failing_broker import (
    HEARTBEAT_MS,
    HEARTBEAT_NS,
    OWN,
    SECOND,
    SESSION_MS,
    THIRD,
    FailingBroker,
)
from tests.handlers.cluster_world import directory

if TYPE_CHECKING:
    from pykafka_core._core import LogFault

GRACE_HEARTBEATS = GRACE_NS // HEARTBEAT_NS + 1


def test_another_member_leads_if_the_disk_is_full() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.fill_disk()
    assert broker.has_lost()
    assert broker.leader() == SECOND


@pytest.mark.parametrize("replicas", [(SECOND, OWN, THIRD), (SECOND, THIRD, OWN)])
def test_followers_with_a_full_disk_leave_the_isr_one_by_one(replicas: tuple[int, ...]) -> None:
    """Leaders come first, as the controller lets few members leave."""
    broker = FailingBroker(replicas)
    broker.fill_disk()
    broker.pass_looks(replicas.index(OWN))
    assert not broker.has_lost()
    broker.pass_looks(1)
    assert broker.world.partition().isr == (SECOND, THIRD)


def test_leaders_resign_before_followers() -> None:
    """A request has a bound, and the controller lets few members leave."""
    world = FailingBroker((SECOND, OWN, THIRD), (OWN, SECOND, THIRD)).world
    resignation = Resignation(OWN, directory(OWN), HEARTBEAT_NS, Replicas())
    resignation.note_probe(0, Probe.FAILED)
    rules = PartitionRules(world.image)
    changes = run_to_end(resignation.changes(3 * HEARTBEAT_NS, world.image, rules))
    assert [change.partition for change in changes] == [1, 0]


def test_a_write_without_space_on_a_disk_with_space_changes_nothing() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.note_disk("full")
    broker.pass_heartbeats()
    assert broker.core.needed_space
    assert not broker.has_lost()


def test_error_of_one_file_does_not_mark_the_disk_as_failed() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.note_disk("failed")
    broker.pass_heartbeats()
    assert not broker.has_lost()


@pytest.mark.parametrize("replicas", [(OWN,), (OWN, SECOND)])
def test_leader_with_too_few_others_in_sync_does_not_resign(
    replicas: tuple[int, ...],
) -> None:
    broker = FailingBroker(replicas)
    broker.fill_disk()
    broker.note_partition("offline")
    broker.core.waits_ms = {0: SESSION_MS}
    broker.pass_heartbeats(10)
    assert broker.leader() == OWN
    assert not broker.requests


def test_min_insync_replicas_limits_resignations() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD), min_isr=3)
    broker.fill_disk()
    broker.pass_heartbeats(10)
    assert broker.leader() == OWN
    assert not broker.requests


def test_a_leader_resigns_once_a_second_other_member_returns() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.world.heartbeat(broker.world.processes[THIRD], fence=True)
    broker.fill_disk()
    assert broker.leader() == OWN
    broker.world.heartbeat(broker.world.processes[THIRD])
    broker.world.alter_isr(broker.world.processes[OWN], [OWN, SECOND, THIRD])
    broker.pass_heartbeats()
    assert broker.leader() == SECOND


def test_replica_stays_in_the_isr_of_a_leader_that_may_wait_for_it() -> None:
    """A broker of Apache Kafka awaits replicas that are caught up, whether in the ISR or not."""
    image = FailingBroker((SECOND, OWN, THIRD)).world.image
    features = {**image.brokers[SECOND].features, "share.version": (0, 1)}
    foreign = image.brokers[SECOND]._replace(features=features)
    image.brokers = {**image.brokers, SECOND: foreign}
    resignation = Resignation(OWN, directory(OWN), HEARTBEAT_NS, Replicas())
    resignation.note_probe(0, Probe.FAILED)
    assert run_to_end(resignation.changes(3 * HEARTBEAT_NS, image, PartitionRules(image))) == []


def test_replica_that_is_lost_after_its_broker_is_idle_returns() -> None:
    """A request without a response may be committed later, by a quorum that was away."""
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.decides = lambda _: None
    broker.fill_disk()
    broker.free_disk()
    broker.pass_heartbeats(3 * GRACE_HEARTBEATS)
    broker.world.ask(broker.requests[-1])
    broker.decides = broker.world.ask
    assert broker.has_lost()
    broker.pass_heartbeats(GRACE_HEARTBEATS + 2 * REVIEW_MS // HEARTBEAT_MS)
    assert not broker.has_lost()


@pytest.mark.parametrize(("faults", "has_lost"), [(["read_only"], True), ([], False)])
def test_resolved_fault_has_no_consequence(faults: "list[LogFault]", has_lost: bool) -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.decides = lambda _: None
    broker.note_partition("read_only")
    broker.note_partition(*faults)
    broker.decides = broker.world.ask
    broker.pass_looks(1)
    broker.pass_heartbeats()
    assert any(isinstance(one, AssignReplicasToDirsRequest) for one in broker.requests[1:]) is (
        has_lost
    )


def test_a_disk_is_used_again_after_a_while_of_fast_probes() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.fill_disk()
    broker.pass_heartbeats(5)
    assert broker.has_lost()
    broker.core.probe = (0, SESSION_MS)
    broker.pass_heartbeats(5)
    assert broker.has_lost(), "it is slow"
    broker.free_disk()
    broker.pass_heartbeats(2)
    assert broker.has_lost(), "for a moment only"
    assert broker.core.needed_space
    broker.pass_heartbeats(GRACE_HEARTBEATS)
    found_at = broker.world.partition().directories[0]
    assert (found_at, broker.leader()) == (directory(OWN), SECOND)


@pytest.mark.parametrize("wait_ms", [4000, 6000])
def test_only_the_partition_whose_clients_wait_resigns(wait_ms: int) -> None:
    broker = FailingBroker((OWN, SECOND, THIRD), (OWN, SECOND, THIRD), (SECOND, OWN, THIRD))
    broker.core.waits_ms = {1: wait_ms, 2: wait_ms}
    broker.pass_heartbeats(5)
    is_slow = wait_ms > SESSION_MS - 2 * HEARTBEAT_MS
    assert [broker.has_lost(index) for index in range(3)] == [False, is_slow, False]
    broker.core.waits_ms = {}
    broker.pass_heartbeats(GRACE_HEARTBEATS + 1)
    assert not broker.has_lost(1)


@pytest.mark.parametrize("probe", [(0, SESSION_MS), None], ids=["slow", "hangs"])
def test_all_partitions_resign_if_a_probe_is_slow_too(probe: tuple[int, int] | None) -> None:
    broker = FailingBroker((OWN, SECOND, THIRD), (OWN, SECOND, THIRD), (OWN, SECOND))
    broker.core.waits_ms, broker.core.probe = {1: SESSION_MS}, probe
    broker.pass_heartbeats(5)
    assert [broker.leader(index) for index in range(3)] == [SECOND, SECOND, OWN]


def test_disks_are_compared_once_while_a_client_waits_and_again_after_twice_the_time() -> None:
    """A controller without appends stayed on a disk that hung."""
    broker = FailingBroker((OWN, SECOND, THIRD))
    for wait_ms, comparisons in ((600, 0), (700, 1), (1200, 1), (1300, 2), (0, 2), (700, 3)):
        broker.core.waits_ms = {0: wait_ms}
        broker.pass_looks(3)
        assert broker.comparisons_count == comparisons
    assert not broker.requests


def test_disks_are_not_compared_in_a_cluster_that_cannot_move_leaderships() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD), level=1)
    broker.core.waits_ms = {0: 700}
    broker.pass_looks(3)
    assert broker.comparisons_count == 0


def test_single_slow_probe_is_ignored() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.core.probe = (0, SESSION_MS)
    broker.pass_heartbeats(5)
    assert not broker.has_lost()


def refusing(_: Message) -> Message:
    """A controller that refuses each partition."""
    of = AssignReplicasToDirsResponse
    code = EligibleLeadersNotAvailableError.code
    partition = of.PartitionData(partition_index=0, error_code=code)
    topic = of.TopicData(topic_id=bytes(16), partitions=[partition])
    return of(directories=[of.DirectoryData(id=LOST, topics=[topic])])


def test_pauses_after_rejections_double_up_to_a_bound() -> None:
    for response in (refusing, lambda _: None):
        broker = FailingBroker((OWN, SECOND, THIRD))
        broker.decides = response
        broker.fill_disk()
        times: list[int] = []
        for _ in range(60):
            before = len(broker.requests)
            broker.pass_heartbeats()
            times += [broker.core.now_ns()] * (len(broker.requests) - before)
        gaps = [later - time for time, later in itertools.pairwise(times)]
        assert gaps == sorted(gaps)
        assert gaps[-1] >= PAUSE_HEARTBEATS_MAX * HEARTBEAT_NS
        assert min(gaps) >= HEARTBEAT_NS


def test_a_failed_log_is_lost_until_a_restart() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD), (OWN, SECOND, THIRD))
    broker.note_partition("offline")
    assert (broker.has_lost(0), broker.has_lost(1)) == (True, False)
    broker.world.heartbeat(broker.world.processes[SECOND], fence=True)
    broker.world.heartbeat(broker.world.processes[THIRD], fence=True)
    broker.pass_heartbeats(20)
    assert broker.has_lost(), "it cannot be read"


def test_an_unreadable_batch_of_a_failed_log_changes_nothing() -> None:
    """It made the failed log a damaged one, which follows again."""
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.note_partition("offline", "unreadable")
    broker.pass_heartbeats(GRACE_HEARTBEATS)
    assert broker.has_lost()


@pytest.mark.parametrize("fault", ["read_only", "unreadable"])
def test_a_damaged_leader_follows_when_it_is_not_electable(fault: "LogFault") -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.note_partition(fault)
    assert broker.has_lost()
    broker.pass_heartbeats(2)
    found_now = broker.world.partition()
    assert (found_now.leader, found_now.isr, found_now.elr) == (SECOND, (SECOND, THIRD), ())
    assert not broker.has_lost()


def test_a_damaged_follower_is_not_reported() -> None:
    broker = FailingBroker((SECOND, OWN, THIRD))
    broker.note_partition("read_only")
    broker.pass_heartbeats(2)
    assert not broker.requests


def test_new_process_restores_lost_replicas() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD))
    broker.world.assign(broker.world.processes[OWN], LOST)
    broker.begin()
    assert not broker.has_lost()


def test_an_older_cluster_gets_no_request() -> None:
    broker = FailingBroker((OWN, SECOND, THIRD), level=16)
    broker.fill_disk()
    broker.pass_heartbeats(3)
    assert not broker.requests


def test_many_failed_logs_are_examined_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each went through all partitions of the image before."""
    broker, looks = FailingBroker(*[(OWN, SECOND, THIRD)] * 50), []
    changes = Resignation.changes

    def counted(self: Resignation, *arguments: object) -> object:
        looks.append(arguments)
        return changes(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Resignation, "changes", counted)
    for index in range(50):
        broker.note_partition_only(index, "offline")
    broker.settle()
    assert all(broker.has_lost(index) for index in range(50))
    assert len(looks) <= 3


def looking_broker() -> FailingBroker:
    """A look takes four turns, as a slice takes one, and asks for a change."""
    broker = FailingBroker(*[(OWN, SECOND, THIRD)] * (3 * SLICE_PARTITIONS + 1))
    broker.core.tick_ns = TIME_SLICE_NS
    broker.note_partition_only(0, "offline")
    return broker


def test_examination_of_many_partitions_yields_the_control_thread_after_each_turn() -> None:
    """20,000 failing partitions kept it for half a second."""
    broker, asked = looking_broker(), []
    for _ in range(4):
        broker.turn()
        asked.append(len(broker.asked))
    assert asked == [0, 0, 0, 1]


def test_hint_during_an_examination_starts_another_one() -> None:
    broker = looking_broker()
    broker.turn()
    broker.turn()
    broker.note_partition_only(1, "offline")
    broker.note_partition_only(2 * SLICE_PARTITIONS, "offline")
    broker.core.tick_ns = 0
    broker.pass_looks(1)
    assert all(broker.has_lost(index) for index in (0, 1, 2 * SLICE_PARTITIONS))


def test_change_is_requested_only_if_the_newest_image_allows_it() -> None:
    """The look was at an older one, and controllers of Apache Kafka do not check."""
    broker = looking_broker()
    broker.turn()
    broker.world.heartbeat(broker.world.processes[THIRD], fence=True)
    for _ in range(9):
        broker.turn()
    assert not broker.asked
