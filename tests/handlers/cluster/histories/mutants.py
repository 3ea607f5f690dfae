"""Wrong rules of the controller: each changes one rule, and its name describes the change.

The machine must detect all of them.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from pykafka_core.handlers.cluster import assign_replicas_to_dirs, broker_registration
from pykafka_core.handlers.configs import incremental_alter_configs
from pykafka_core.handlers.outcome import Work
from pykafka_core.handlers.topics import alter_partition
from pykafka_core.metadata import broker_changes, partition_change
from pykafka_core.metadata.broker_sessions import BrokerSessions
from pykafka_core.metadata.image.image import NO_LEADER, Broker, Partition
from pykafka_core.metadata.partition_change import Rules
from pykafka_core.metadata.partition_rules import PartitionRules
from pykafka_core.protocol.messages import Message
from tests.handlers.cluster.histories.machine import ClusterMachine
from tests.handlers.cluster.histories.replay import replay, shortest, steps_of
from tests.support.wrong_rules import Recorded, WrongRules

MUTANTS: Final = WrongRules()
wrong_rule = MUTANTS.add

SEARCH: Final = settings(
    max_examples=2000,
    stateful_step_count=50,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""Limits of a search.

Each run tries the same histories; `shortest` replaces Hypothesis's shrinking.
"""


def _run(_rule: str, steps: Sequence[str]) -> None:
    replay(steps)


def _finding(_rule: str) -> Iterator[list[str]]:
    try:
        run_state_machine_as_test(ClusterMachine, settings=SEARCH)
    except AssertionError as error:
        yield shortest(steps_of(error))


RECORDED: Final = Recorded[list[str]](
    rules=MUTANTS,
    run=_run,
    finding=_finding,
    file=Path(__file__).with_name("histories.toml"),
    module="tests.handlers.cluster.histories.mutants",
)


# Replicas that may be in sync.


@wrong_rule
def the_process_before_it_joins_the_isr(patch: pytest.MonkeyPatch) -> None:
    right = alter_partition.is_eligible
    patch.setattr(
        alter_partition,
        "is_eligible",
        lambda brokers, member: right(brokers, member._replace(broker_epoch=-1)),
    )


@wrong_rule
def a_fenced_broker_joins_the_isr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        alter_partition,
        "is_eligible",
        lambda brokers, member: (
            member.node_id in brokers and member.broker_epoch in (-1, brokers[member.node_id].epoch)
        ),
    )


@wrong_rule
def a_fenced_broker_stays_in_the_isr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(broker_changes, "without", lambda nodes, _gone: tuple(nodes))


@wrong_rule
def a_change_of_an_older_state_is_made(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alter_partition, "check_epochs", lambda _partition, _leader, _wanted: None)


@wrong_rule
def members_are_lost_until_one_is_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(assign_replicas_to_dirs, "check_resignation", lambda *_: None)


@wrong_rule
def a_lost_replica_joins_the_isr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alter_partition, "lost_by", lambda _partition: ())


# The choice of leaders.


@wrong_rule
def a_fenced_broker_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        partition_change, "may_lead", lambda _partition, node_id, brokers: node_id in brokers
    )


@wrong_rule
def the_last_known_leader_need_not_be_alive(patch: pytest.MonkeyPatch) -> None:
    right = partition_change._elect

    def wrong(partition: Partition, found: Partition, rules: Rules) -> Any:
        elected = right(partition, found, rules)
        complete = found.isr or found.elr
        if elected.leader == NO_LEADER and not complete and len(partition.last_known_elr) == 1:
            return elected._replace(leader=partition.last_known_elr[0], is_clean=False)
        return elected

    patch.setattr(partition_change, "_elect", wrong)


@wrong_rule
def unclean_elections_are_allowed_everywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionRules, "allows_unclean", lambda _self, _topic: True)


@wrong_rule
def an_unclean_leader_is_taken_for_a_clean_one(patch: pytest.MonkeyPatch) -> None:
    right = partition_change._led

    def wrong(partition: Partition, found: Partition, elected: Any, rules: Rules) -> Partition:
        led = right(partition, found, elected, rules)
        return led if elected.is_clean else led._replace(recovering=found.recovering)

    patch.setattr(partition_change, "_led", wrong)


# Eligible leader replicas.


@wrong_rule
def who_may_have_lost_records_stays_eligible(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(broker_registration, "_stopped_cleanly", lambda _context, _request, _old: True)


@wrong_rule
def the_eligible_stay_so_beside_a_sufficient_isr(patch: pytest.MonkeyPatch) -> None:
    right = partition_change.changed

    def wrong(partition: Partition, wanted: Partition, rules: Rules) -> Partition:
        found = right(partition, wanted, rules)
        kept = tuple(node for node in partition.elr if node not in found.isr)
        return found._replace(elr=found.elr or kept)

    patch.setattr(alter_partition, "changed", wrong)


@wrong_rule
def the_eligible_stay_so_under_another_minimum(patch: pytest.MonkeyPatch) -> None:
    def wrong(_context: Any, plans: Any) -> Work[list[Message]]:
        yield
        return [record for plan in plans for record in plan.records]

    patch.setattr(incremental_alter_configs, "records_of", wrong)


# Epochs and reassignments.


@wrong_rule
def a_removed_replica_begins_no_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        partition_change,
        "_begins_leader_epoch",
        lambda partition, found: partition.leader != found.leader,
    )


@wrong_rule
def a_reassignment_ends_with_one_replica_in_sync(patch: pytest.MonkeyPatch) -> None:
    def wrong(partition: Partition) -> Partition:
        replicas = tuple(node for node in partition.replicas if node not in partition.removing)
        isr = tuple(node for node in partition.isr if node in replicas)
        if not (partition.removing or partition.adding) or not isr:
            return partition
        return partition._replace(replicas=replicas, isr=isr, removing=(), adding=())

    patch.setattr(partition_change, "completed", wrong)


# Sessions.


@wrong_rule
def another_process_may_have_the_id_of_one_that_is_alive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerSessions, "is_valid", lambda _self, _broker, _now_ns: False)


@wrong_rule
def a_new_controller_begins_no_session_again(patch: pytest.MonkeyPatch) -> None:
    right = BrokerSessions._contact_ns

    def wrong(self: BrokerSessions, broker: Broker) -> int | None:
        return right(self._replace(began_ns=0), broker)

    patch.setattr(BrokerSessions, "_contact_ns", wrong)


@wrong_rule
def a_broker_stops_before_the_others_know(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerSessions, "has_applied", lambda _self, _brokers, _offset: True)


@wrong_rule
def all_brokers_are_stale_when_one_is(patch: pytest.MonkeyPatch) -> None:
    right = BrokerSessions.stale

    def wrong(self: BrokerSessions, brokers: Any, now_ns: int) -> Broker | None:
        found = [broker for broker in brokers if not broker.fenced]
        return found[-1] if right(self, brokers, now_ns) else None

    patch.setattr(BrokerSessions, "stale", wrong)


if __name__ == "__main__":
    sys.exit(RECORDED.main())
