"""Wrong rules: each changes a rule of the quorum, and its name describes it. Seeds must find all.

A wrong rule replaces the right one in the modules that use it, while the patch lasts.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from pykafka_core.quorum import (
    election,
    follower,
    leader,
    replica,
    timeouts,
    transitions,
    voter_changes,
)
from pykafka_core.quorum.events import Command
from pykafka_core.quorum.leader import fetch_error
from pykafka_core.quorum.log import state as log_state
from pykafka_core.quorum.log import voters
from pykafka_core.quorum.log.state import NO_VOTERS, LogState
from pykafka_core.quorum.roles import NEVER, Candidate, Follower, Leader, Unattached
from pykafka_core.quorum.rpc import Fetch
from pykafka_core.quorum.transition import Transition
from pykafka_core.quorum.values import ElectionState, OffsetAndEpoch, ReplicaKey, Voter, VoterSet
from tests.simulation.quorum import world
from tests.simulation.quorum.world import run_seed
from tests.support.wrong_rules import Recorded, WrongRules, seeds_violating

SEEDS_MAX: Final = 2_000
"""Maximum number of seeds in a search."""

MUTANTS: Final = WrongRules()
wrong_rule = MUTANTS.add


def _run(_rule: str, seed: int) -> None:
    run_seed(seed)


RECORDED: Final = Recorded[int](
    rules=MUTANTS,
    run=_run,
    finding=lambda _: seeds_violating(run_seed, range(1, SEEDS_MAX + 1)),
    file=Path(__file__).with_name("seeds.toml"),
    module="tests.simulation.quorum.mutants",
)


# Votes.


@wrong_rule
def a_pre_vote_does_not_compare_the_logs(patch: pytest.MonkeyPatch) -> None:
    right = election.would_vote
    patch.setattr(
        election,
        "would_vote",
        lambda transition, vote: right(
            transition, vote._replace(last=vote.last._replace(epoch=2**31))
        ),
    )


@wrong_rule
def a_vote_does_not_compare_the_logs(patch: pytest.MonkeyPatch) -> None:
    right = election.may_vote
    patch.setattr(
        election,
        "may_vote",
        lambda transition, vote: right(
            transition, vote._replace(last=vote.last._replace(epoch=2**31))
        ),
    )


@wrong_rule
def logs_are_compared_by_their_length(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        election, "is_up_to_date", lambda transition, last: last.offset >= transition.log.end
    )


@wrong_rule
def replies_do_not_wait_for_quorum_state(patch: pytest.MonkeyPatch) -> None:
    def emit(transition: Transition, command: Command) -> None:
        transition.outputs.append(command)

    patch.setattr(Transition, "emit", emit)


@wrong_rule
def a_vote_is_forgotten_by_a_restart(patch: pytest.MonkeyPatch) -> None:
    _begin_with(patch, lambda state: state._replace(voted=None))


@wrong_rule
def the_epoch_goes_back_by_a_restart(patch: pytest.MonkeyPatch) -> None:
    _begin_with(patch, lambda state: ElectionState(0))


def _begin_with(
    patch: pytest.MonkeyPatch, remembered: Callable[[ElectionState], ElectionState]
) -> None:
    right = replica.begin

    def begin(
        key: ReplicaKey, voters: Any, state: ElectionState, log: LogState, **rest: Any
    ) -> Any:
        return right(key, voters, remembered(state), log, **rest)

    patch.setattr(world, "begin", begin)


@wrong_rule
def a_restart_goes_on_as_the_leader_of_its_epoch(patch: pytest.MonkeyPatch) -> None:
    right = replica._start

    def start(transition: Transition) -> None:
        right(transition)
        if transition.election.leader_id == transition.key.node_id:
            transitions.to_leader(transition, frozenset((transition.key.node_id,)))

    patch.setattr(replica, "_start", start)


@wrong_rule
def a_restart_goes_on_as_the_candidate_of_its_epoch(patch: pytest.MonkeyPatch) -> None:
    right = replica._start

    def start(transition: Transition) -> None:
        right(transition)
        if transition.election.voted == transition.key and isinstance(transition.role, Unattached):
            own = frozenset((transition.key.node_id,))
            transition.role = Candidate(transition.election_deadline(), own, frozenset(), 0)

    patch.setattr(replica, "_start", start)


@wrong_rule
def a_replaced_disk_keeps_the_vote(patch: pytest.MonkeyPatch) -> None:
    """Voters are identified only by their node ids."""
    patch.setattr(
        Transition,
        "is_voter",
        property(
            lambda transition: any(
                transition.key.node_id == voter.node_id for voter in transition.voters
            )
        ),
    )
    right = election._vote_error
    patch.setattr(
        election,
        "_vote_error",
        lambda transition, vote: right(transition, vote._replace(voter=transition.key)),
    )


# Leaders.


@wrong_rule
def a_leader_counts_what_it_has_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "own_end", lambda transition: transition.log.end)


@wrong_rule
def records_of_older_epochs_are_committed_by_counting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "is_of_own_epoch", lambda transition, end: True)


@wrong_rule
def a_majority_is_half_of_the_voters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Transition, "majority", property(lambda transition: max(1, len(transition.voters) // 2))
    )


@wrong_rule
def a_leader_alone_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "_unheard_at", lambda transition: NEVER)


@wrong_rule
def a_leader_whose_disk_hangs_leads_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "stalls_at", lambda transition: NEVER)


@wrong_rule
def a_replica_stands_for_election_while_its_disk_hangs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timeouts, "waits_for_disk", lambda transition: transition.installing)


@wrong_rule
def a_replica_stands_for_election_while_quorum_state_is_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        timeouts,
        "waits_for_disk",
        lambda transition: transition.installing or bool(transition.log.writes),
    )


@wrong_rule
def a_leader_whose_disk_is_slow_leaves_voters_that_are_as_slow(patch: pytest.MonkeyPatch) -> None:
    """They only have to have its records: where all disks are slow, no leader stays."""
    patch.setattr(leader, "FASTER", 1)


@wrong_rule
def a_leader_whose_disk_is_slow_leaves_voters_that_only_fetch(patch: pytest.MonkeyPatch) -> None:
    def note_outpaced(transition: Transition) -> None:
        role = transition.role
        if isinstance(role, Leader) and transition.log.writes and role.outpaced_ms == NEVER:
            transition.role = role._replace(outpaced_ms=transition.came_ms)

    patch.setattr(leader, "note_outpaced", note_outpaced)


@wrong_rule
def a_leader_whose_disk_is_slow_leaves_one_faster_voter(patch: pytest.MonkeyPatch) -> None:
    right = leader.note_outpaced

    def note_outpaced(transition: Transition) -> None:
        role, writes = transition.role, transition.log.writes
        assert isinstance(role, Leader)
        if writes and any(voter.synced_end >= writes[0].end for voter in role.voters):
            transition.role = role._replace(outpaced_ms=min(role.outpaced_ms, transition.came_ms))
        else:
            right(transition)

    patch.setattr(leader, "note_outpaced", note_outpaced)


@wrong_rule
def the_age_of_an_append_begins_at_an_earlier_event(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replica.Replica, "at", lambda self, now_ms: self)


@wrong_rule
def fetch_of_another_epoch_gets_records(patch: pytest.MonkeyPatch) -> None:
    def error(transition: Transition, fetch: Fetch) -> int:
        if isinstance(transition.role, Leader):
            return fetch_error(transition, fetch._replace(epoch=transition.election.epoch))
        return fetch_error(transition, fetch)

    patch.setattr(leader, "fetch_error", error)


@wrong_rule
def the_last_fetched_epoch_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "diverging_end", lambda transition, fetch: None)


@wrong_rule
def a_log_that_begins_later_is_read_from_its_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "needs_snapshot", lambda transition, fetch: False)


@wrong_rule
def a_new_leader_tells_the_high_watermark_that_it_knew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "told_high_watermark", lambda transition: transition.high_watermark)


# Followers.


@wrong_rule
def a_follower_truncates_to_its_high_watermark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        follower, "truncation_point", lambda transition, diverging: transition.high_watermark
    )


@wrong_rule
def a_follower_truncates_to_the_leaders_end_of_another_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        follower,
        "truncation_point",
        lambda transition, diverging: min(diverging.offset, transition.log.end),
    )


@wrong_rule
def a_high_watermark_is_the_leaders(patch: pytest.MonkeyPatch) -> None:
    def follow(transition: Transition) -> None:
        role = transition.role
        if isinstance(role, Follower):
            transition.high_watermark = max(transition.high_watermark, role.leader_high_watermark)

    patch.setattr(follower, "follow_high_watermark", follow)
    patch.setattr(replica, "follow_high_watermark", follow)


@wrong_rule
def a_follower_reports_what_it_has_not_synced(patch: pytest.MonkeyPatch) -> None:
    def fetch(transition: Transition, node_id: int) -> None:
        end, last_epoch = transition.log.last
        wait_ms = transition.config.fetch_wait_ms_max
        body = Fetch(
            transition.key,
            transition.election.epoch,
            end,
            last_epoch,
            transition.high_watermark,
            wait_ms,
        )
        transition.send(node_id, body)

    patch.setattr(timeouts, "fetch", fetch)


# Snapshots.


@wrong_rule
def a_voter_that_downloads_a_snapshot_is_taken_for_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "note_download", lambda transition, asked: None)


@wrong_rule
def a_snapshot_is_served_in_another_epoch(patch: pytest.MonkeyPatch) -> None:
    right = leader.leader_error

    def error(transition: Transition, epoch: int) -> int:
        asked = isinstance(transition.role, Leader) and epoch < transition.election.epoch
        return 0 if asked else right(transition, epoch)

    patch.setattr(leader, "leader_error", error)


@wrong_rule
def a_snapshot_leaves_the_epochs_of_the_log_it_replaces(patch: pytest.MonkeyPatch) -> None:
    right = follower.on_installed

    def installed(
        transition: Transition, snapshot_id: OffsetAndEpoch | None, voters: VoterSet | None
    ) -> None:
        epochs = transition.log.epochs
        right(transition, snapshot_id, voters)
        if snapshot_id is not None and epochs:
            transition.log = transition.log._replace(epochs=epochs)

    patch.setattr(replica, "on_installed", installed)


@wrong_rule
def a_start_keeps_a_log_that_a_snapshot_was_to_replace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_state, "_has", lambda *_: True)


@wrong_rule
def the_epoch_of_a_snapshot_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    def needed(transition: Transition, fetch: Fetch) -> bool:
        return fetch.offset < transition.log.start

    patch.setattr(leader, "needs_snapshot", needed)


@wrong_rule
def a_start_forgets_what_its_newest_snapshot_has_committed(patch: pytest.MonkeyPatch) -> None:
    right = LogState.loaded
    patch.setattr(
        LogState,
        "loaded",
        lambda end, epochs, first=None, newest=None, voter_sets=(NO_VOTERS,): right(
            end, epochs, first, first, voter_sets
        ),
    )


# Voters.


@wrong_rule
def two_changes_of_the_voters_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(voter_changes, "is_change_pending", lambda transition: False)
    _append_changes_at_once(patch)


def _append_changes_at_once(patch: pytest.MonkeyPatch) -> None:
    """Append after a batch in flight: the wait for it is a second guard of both rules."""
    right = voter_changes.go_on_with_change

    def go_on(transition: Transition) -> None:
        role = transition.role
        if isinstance(role, Leader) and role.change is not None and role.change.voters is not None:
            transition.role = role._replace(in_flight=None)
        right(transition)

    patch.setattr(timeouts, "go_on_with_change", go_on)


@wrong_rule
def two_voters_are_removed_at_once(patch: pytest.MonkeyPatch) -> None:
    right = voters.without

    def without(known: tuple[Voter, ...], key: ReplicaKey) -> tuple[Voter, ...]:
        left = right(known, key)
        return left[1:] or left

    patch.setattr(voter_changes, "without", without)


@wrong_rule
def voters_are_changed_before_the_epoch_has_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(voter_changes, "has_committed_in_epoch", lambda transition: True)
    # Records of a change in an earlier epoch are not committed either.
    patch.setattr(voter_changes, "is_change_pending", lambda transition: False)
    _append_changes_at_once(patch)


@wrong_rule
def a_voter_set_counts_once_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Transition,
        "voters",
        property(lambda transition: transition.log.voter_set_at(transition.high_watermark).keys),
    )


@wrong_rule
def a_voter_set_that_is_truncated_still_counts(patch: pytest.MonkeyPatch) -> None:
    right = LogState.truncating

    def truncating(self: LogState, end: int) -> LogState:
        return right(self, end)._replace(voter_sets=self.voter_sets)

    patch.setattr(LogState, "truncating", truncating)


@wrong_rule
def a_removed_leader_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(voter_changes, "is_removed", lambda transition: False)


@wrong_rule
def a_leader_that_was_removed_counts_itself(patch: pytest.MonkeyPatch) -> None:
    def majority_end(transition: Transition) -> int:
        assert isinstance(transition.role, Leader)
        own = leader.own_end(transition)
        ends = sorted((own, *(voter.synced_end for voter in transition.role.voters)), reverse=True)
        return ends[transition.majority - 1]

    patch.setattr(leader, "majority_end", majority_end)


@wrong_rule
def a_leader_that_may_be_removed_does_not_stand_for_election(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transition, "stands", property(lambda transition: transition.is_voter))


@wrong_rule
def a_voter_that_lags_is_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(voter_changes, "is_caught_up", lambda transition, replica: True)


@wrong_rule
def a_snapshot_has_the_newest_voter_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogState, "voter_set_at", lambda self, end: self.voter_sets[-1])


if __name__ == "__main__":
    sys.exit(RECORDED.main())
