"""Changes of a partition: contract/replication.md#41, #42, #43, #44."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.metadata.directories import LOST, MIGRATING, UNASSIGNED
from pykafka_core.metadata.image.image import MetadataImage, Partition, Topic, Topics
from pykafka_core.metadata.image.mutators import draft_of
from pykafka_core.metadata.partition_change import (
    Election,
    Rules,
    change_record,
    changed,
    may_lead,
)
from pykafka_core.metadata.reassignments import assigned, completed, loses_records, reverted
from tests.metadata.partitions import TOPIC_ID, broker, directory, partition, rules

ELECTIONS = list(Election)


def without(old: Partition, *nodes: int) -> Partition:
    return old._replace(isr=tuple(node for node in old.isr if node not in nodes))


# contract/replication.md#41: the leader.


def test_rule_41_the_leader_stays_if_it_may_lead() -> None:
    old = partition((1, 2, 3), leader=2)
    assert changed(old, without(old, 3), rules((1, 2), fenced=(3,))).leader == 2


def test_rule_41_the_first_living_replica_in_sync_leads_in_assignment_order() -> None:
    old = partition((3, 1, 2), isr=(2, 1, 3), leader=3)
    assert changed(old, without(old, 3), rules((1, 2), fenced=(3,))).leader == 1
    assert changed(old, without(old, 3), rules((2,), fenced=(1, 3))).leader == 2


@pytest.mark.parametrize("election", ELECTIONS)
def test_rule_41_an_eligible_replica_leads_only_when_the_isr_is_empty(election: Election) -> None:
    old = partition((1, 2, 3), isr=(), elr=(2,), leader=-1, last_known_elr=(1,))
    found = changed(old, old, rules((2, 3), fenced=(1,), election=election))
    assert (found.leader, found.isr, found.elr, found.recovering) == (2, (2,), (), False)
    in_sync = old._replace(isr=(1,))
    assert changed(in_sync, in_sync, rules((2, 3), fenced=(1,))).leader == -1


@pytest.mark.parametrize("election", ELECTIONS)
def test_rule_41_the_live_last_known_leader_leads_if_isr_and_elr_are_empty(
    election: Election,
) -> None:
    old = partition((1, 2, 3), isr=(), leader=-1, last_known_elr=(2,))
    found = changed(old, old, rules((1, 2, 3), election=election))
    assert (found.leader, found.isr, found.last_known_elr) == (2, (2,), ())
    assert found.recovering
    if election is not Election.UNCLEAN:
        assert changed(old, old, rules((1, 3), fenced=(2,), election=election)) == old


def test_rule_41_any_living_replica_leads_where_unclean_elections_are_allowed() -> None:
    old = partition((1, 2, 3), isr=(1,), elr=(3,))
    gone = old._replace(isr=())
    unclean = rules((2, 3), fenced=(1,), elr=False, election=Election.UNCLEAN)
    assert changed(partition((1, 2)), partition((1, 2), isr=()), unclean).recovering
    found = changed(old._replace(elr=()), gone._replace(elr=()), unclean)
    assert (found.leader, found.isr, found.elr, found.recovering) == (2, (2,), (), True)


def test_rule_41_an_unclean_election_prefers_an_eligible_replica() -> None:
    old = partition((1, 2, 3), isr=(1,), elr=(3,))
    found = changed(old, old, rules((2, 3), fenced=(1,), election=Election.UNCLEAN))
    assert (found.leader, found.isr, found.recovering) == (3, (3,), True)


def test_rule_41_an_unclean_election_elects_a_replica_being_added_last() -> None:
    old = partition((4, 2, 1), isr=(1,), adding=(4,), removing=(1,), leader=1)
    unclean = rules((2, 4), fenced=(1,), elr=False, election=Election.UNCLEAN)
    assert changed(old, old._replace(isr=()), unclean).leader == 2


def test_rule_41_a_partition_without_an_eligible_leader_stays_leaderless() -> None:
    old = partition((1, 2))
    found = changed(old, without(old, 1, 2), rules((3,), fenced=(1, 2)))
    assert (found.leader, found.isr, found.elr) == (-1, (), (1, 2))
    assert found.last_known_elr == (1,)


def test_preferred_election_elects_the_first_replica_or_keeps_the_leader() -> None:
    old = partition((1, 2, 3), leader=3)
    preferred = rules((1, 2, 3), election=Election.PREFERRED)
    assert changed(old, old, preferred).leader == 1
    assert changed(old, old, rules((1, 2, 3))).leader == 3
    behind = old._replace(isr=(2, 3))
    assert changed(behind, behind, preferred) == behind


@pytest.mark.parametrize("state", ["fenced", "in_controlled_shutdown"])
def test_fenced_or_stopping_broker_may_not_lead(state: str) -> None:
    brokers = {1: broker(1, **{state: True}), 2: broker(2)}
    assert not may_lead(partition((1, 2)), 1, brokers)
    assert may_lead(partition((1, 2)), 2, brokers)
    assert not may_lead(partition((1, 2, 3)), 3, brokers)


@pytest.mark.parametrize(
    ("held", "online"),
    [(directory(1), True), (directory(9), False), (LOST, False), (UNASSIGNED, True), (MIGRATING, True)],
    ids=["its own", "another", "lost", "unassigned", "migrating"],
)  # fmt: skip
def test_broker_without_the_directory_may_not_lead(held: bytes, online: bool) -> None:
    assert may_lead(partition((1,), directories=(held,)), 1, {1: broker(1)}) is online


# contract/replication.md#42: eligible leader replicas.


def test_rule_42_replicas_removed_below_the_minimum_isr_are_eligible() -> None:
    old = partition((1, 2, 3))
    enough = changed(old, without(old, 3), rules((1, 2), fenced=(3,)))
    assert (enough.isr, enough.elr) == ((1, 2), ())
    few = changed(enough, without(enough, 2), rules((1,), fenced=(2, 3)))
    assert (few.isr, few.elr) == ((1,), (2,))
    none = changed(few, without(few, 1), rules((), fenced=(1, 2, 3)))
    assert (none.isr, none.elr, none.leader, none.last_known_elr) == ((), (2, 1), -1, (1,))


def test_rule_42_replicas_that_may_have_lost_records_are_not_eligible() -> None:
    old = partition((1, 2, 3), isr=(1,), elr=(2,))
    lost = changed(old, old, rules((1,), fenced=(2, 3)), lost=(2,))
    assert (lost.isr, lost.elr) == ((1,), ())
    last = changed(old, without(old, 1), rules((), fenced=(1, 2, 3)), lost=(1,))
    assert (last.isr, last.elr, last.last_known_elr) == ((), (2,), (1,))


def test_rule_42_a_sufficient_isr_clears_the_eligible_replicas() -> None:
    old = partition((1, 2, 3), isr=(1,), elr=(2, 3))
    assert changed(old, old._replace(isr=(1, 2)), rules((1, 2, 3))).elr == ()


def test_rule_42_an_unclean_election_ends_eligibility() -> None:
    old = partition((1, 2, 3), isr=(), elr=(1,), leader=-1)
    found = changed(old, old, rules((2,), fenced=(1, 3), election=Election.UNCLEAN))
    assert (found.leader, found.isr, found.elr) == (2, (2,), ())


def test_a_partition_with_fewer_replicas_than_the_minimum_needs_all_of_them() -> None:
    old = partition((1, 2))
    assert changed(old, without(old, 2), rules((1,), min_isr=3)).elr == (2,)
    assert changed(old, old._replace(elr=()), rules((1, 2), min_isr=3)) == old


def test_a_removed_replica_is_not_eligible() -> None:
    old = partition((1, 2, 3))
    found = changed(old, assigned(old, (1,)), rules((1, 2, 3), min_isr=3))
    assert (found.replicas, found.isr, found.elr) == ((1,), (1,), ())


def test_without_eligible_replicas_the_last_one_stays_in_the_isr() -> None:
    old = partition((1, 2), isr=(1,))
    found = changed(old, without(old, 1), rules((2,), fenced=(1,), elr=False))
    assert (found.isr, found.elr, found.leader, found.leader_epoch) == ((1,), (), -1, 5)


def test_eligible_replicas_are_cleared_once_the_feature_is_off_and_there_is_a_leader() -> None:
    old = partition((1, 2), isr=(1,), elr=(2,))
    assert changed(old, old, rules((1, 2), elr=False)).elr == ()
    alone = partition((1, 2), isr=(), elr=(2,), leader=-1)
    assert changed(alone, alone, rules((), elr=False)) == alone


# contract/replication.md#43: epochs.


def test_rule_43_a_larger_isr_starts_no_leader_epoch() -> None:
    old = partition((1, 2, 3), isr=(1,))
    found = changed(old, old._replace(isr=(1, 2)), rules((1, 2, 3)))
    assert (found.leader_epoch, found.partition_epoch) == (4, 7)


def test_rule_43_a_smaller_isr_starts_no_leader_epoch() -> None:
    old = partition((1, 2, 3))
    found = changed(old, without(old, 3), rules((1, 2, 3)))
    assert (found.leader_epoch, found.partition_epoch) == (4, 7)


def test_rule_43_another_leader_and_a_removed_replica_start_a_leader_epoch() -> None:
    old = partition((1, 2, 3))
    assert changed(old, without(old, 1), rules((2, 3), fenced=(1,))).leader_epoch == 5
    removed = changed(old, assigned(old, (1, 2)), rules((1, 2, 3)))
    assert (removed.leader, removed.leader_epoch) == (1, 5)
    added = changed(old, assigned(old, (1, 2, 3, 4)), rules((1, 2, 3, 4)))
    assert (added.leader_epoch, added.partition_epoch) == (4, 7)


def test_unchanged_partition_has_no_record_and_no_new_epoch() -> None:
    old = partition((1, 2, 3))
    assert changed(old, old, rules((1, 2, 3))) is old
    assert change_record(TOPIC_ID, 0, old, old, rules((1, 2, 3))) is None


# contract/replication.md#44: reassignments.


def test_rule_44_a_reassignment_ends_only_with_all_targets_in_sync() -> None:
    old = partition((1, 2))
    begun = changed(old, assigned(old, (3, 4)), rules((1, 2, 3, 4)))
    assert (begun.replicas, begun.removing, begun.adding) == ((3, 4, 1, 2), (1, 2), (3, 4))
    assert begun.directories == tuple(directory(node) for node in (3, 4, 1, 2))
    half = changed(begun, begun._replace(isr=(1, 2, 3)), rules((1, 2, 3, 4)))
    assert (half.replicas, half.leader, half.leader_epoch) == ((3, 4, 1, 2), 1, 4)
    whole = changed(half, half._replace(isr=(1, 2, 3, 4)), rules((1, 2, 3, 4)))
    assert (whole.replicas, whole.isr, whole.removing, whole.adding) == ((3, 4), (3, 4), (), ())
    assert (whole.leader, whole.leader_epoch) == (3, 5)


def test_rule_44_a_reassignment_that_only_removes_waits_for_the_remaining_replicas() -> None:
    old = partition((1, 2, 3), isr=(1, 3))
    begun = assigned(old, (1, 2))
    assert (begun.replicas, begun.removing) == ((1, 2, 3), (3,))
    assert completed(begun) == begun
    assert completed(begun._replace(isr=(1, 2, 3))).replicas == (1, 2)


def test_replica_being_removed_stays_if_a_new_reassignment_names_it() -> None:
    begun = assigned(partition((1, 2, 3), isr=(1, 2)), (2, 3))
    assert (begun.replicas, begun.removing) == ((2, 3, 1), (1,))
    back = assigned(begun, (1, 2, 3))
    assert (back.replicas, back.removing, back.adding) == ((1, 2, 3), (), ())
    assert completed(back._replace(isr=(1, 2, 3))).replicas == (1, 2, 3)


def test_repeated_reassignment_keeps_the_replicas_being_added() -> None:
    begun = assigned(partition((1, 2)), (1, 3))
    again = assigned(begun, (1, 3))
    assert (again.replicas, again.removing, again.adding) == ((1, 3, 2), (2,), (3,))
    other = assigned(begun, (3, 2))
    assert (other.replicas, other.removing, other.adding) == ((3, 2, 1), (1,), (3,))
    assert set(reverted(other).replicas) == {1, 2}
    back = assigned(begun, (1, 2))
    assert (back.replicas, back.removing, back.adding) == ((1, 2, 3), (3,), ())
    assert completed(back).replicas == (1, 2)
    both = assigned(begun, (1, 2, 3))
    assert (both.removing, both.adding) == ((), (3,))
    assert completed(both) == both


def test_cancelling_loses_records_if_only_new_replicas_are_complete() -> None:
    begun = partition((3, 1), isr=(3,), removing=(1,), adding=(3,), leader=3)
    assert loses_records(begun, reverted(begun))
    assert not loses_records(begun._replace(isr=(3, 1)), reverted(begun))
    eligible = begun._replace(isr=(), elr=(1,), leader=-1)
    assert not loses_records(eligible, reverted(eligible))


# The records match the decision.

NODES = range(1, 6)
subsets = st.sets(st.sampled_from(NODES))


@st.composite
def changes(draw: st.DrawFn) -> tuple[Partition, Partition, Rules, set[int]]:
    """Return a partition, the requested partition, rules, and the replicas that lost records."""
    replicas = tuple(draw(st.permutations(NODES))[: draw(st.integers(1, 5))])
    isr = tuple(node for node in replicas if node in draw(subsets))
    rest = [node for node in replicas if node not in isr]
    old = partition(
        replicas,
        isr=isr,
        leader=draw(st.sampled_from((*isr, -1))),
        elr=tuple(node for node in rest if node in draw(subsets)),
        last_known_elr=tuple(draw(st.sets(st.sampled_from(replicas), max_size=1))),
        recovering=draw(st.booleans()),
    )
    if draw(st.booleans()):
        wanted = assigned(old, draw(st.permutations(NODES))[: draw(st.integers(1, 5))])
        if draw(st.booleans()):
            wanted = wanted._replace(isr=wanted.replicas)
    else:
        wanted = old._replace(isr=tuple(node for node in replicas if node in draw(subsets)))
    alive = draw(subsets)
    made = rules(
        alive,
        fenced=set(NODES) - alive,
        min_isr=draw(st.integers(1, 3)),
        elr=draw(st.booleans()),
        election=draw(st.sampled_from(ELECTIONS)),
    )
    return old, wanted, made, draw(subsets)


def image_of(held: Partition) -> MetadataImage:
    topic = Topic("orders", TOPIC_ID, {0: held})
    return MetadataImage(topics=Topics({TOPIC_ID: topic}, {"orders": topic}))


@given(changes())
def test_applied_record_gives_the_decided_partition(
    case: tuple[Partition, Partition, Rules, set[int]],
) -> None:
    old, wanted, made, lost = case
    found = changed(old, wanted, made, lost)
    record = change_record(TOPIC_ID, 0, old, wanted, made, lost)
    records = [] if record is None else [record]
    image = draft_of(image_of(old), records).image
    assert image.topics.by_id[TOPIC_ID].partitions[0] == found


@given(changes())
def test_every_change_keeps_the_invariants(
    case: tuple[Partition, Partition, Rules, set[int]],
) -> None:
    old, wanted, made, lost = case
    found = changed(old, wanted, made, lost)
    assert found.leader == -1 or (
        found.leader in found.isr and made.brokers[found.leader].is_active
    )
    assert set(found.isr) | set(found.elr) <= set(found.replicas)
    assert not set(found.isr) & set(found.elr)
    assert not set(found.elr) & lost
    assert found.leader_epoch - old.leader_epoch in (0, 1)
    assert found.partition_epoch == old.partition_epoch + (found != old)
    assert (found.leader == old.leader) or found.leader_epoch > old.leader_epoch
