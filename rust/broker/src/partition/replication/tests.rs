//! Examples of single rules, then the invariants over random histories.

use proptest::prelude::*;

use super::*;

fn assignment(leader: i32, leader_epoch: i32, partition_epoch: i32, isr: &[i32]) -> Assignment {
    let leader_epoch = LeaderEpoch::new(leader_epoch);
    let (replicas, isr) = (vec![1, 2, 3], isr.to_vec());
    Assignment {
        leader,
        leader_epoch,
        partition_epoch,
        replicas,
        isr,
        elr: Vec::new(),
        lost: Vec::new(),
    }
}

fn leader_of(isr: &[i32]) -> Replication {
    let mut replication = Replication::new(1);
    assert_eq!(replication.assign(assignment(1, 0, 0, isr), 1), Change::BecameLeader);
    assert!(replication.is_epoch_due());
    replication.begin_leader_epoch(0);
    replication
}

fn ends(log_end_offset: i64) -> LogEnds {
    LogEnds { log_start_offset: 0, log_end_offset, promised_end_offset: log_end_offset }
}

fn fetch(fetch_offset: i64) -> FollowerFetch {
    FollowerFetch { fetch_offset, log_start_offset: 0, broker_epoch: 7, arrived_ns: 5 }
}

const NOBODY: fn(&Follower) -> bool = |_| false;

fn all_eligible() -> EligibleBrokers {
    [(1, 7), (2, 7), (3, 7)].into()
}

/// contract/kafka.md#13.
#[test]
fn effective_min_isr_is_capped_by_the_replica_count() {
    let mut replication = Replication::new(1);
    let alone = Assignment { replicas: vec![1], ..assignment(1, 0, 0, &[1]) };
    replication.assign(alone, 1);
    assert!(replication.has_enough_replicas(2));
    assert!(!leader_of(&[1]).has_enough_replicas(2));
}

#[test]
fn high_watermark_counts_only_synced_records_where_that_is_promised() {
    let mut replication = leader_of(&[1]);
    let unsynced = LogEnds { promised_end_offset: 3, ..ends(8) };
    assert!(replication.advance_high_watermark(unsynced, 1, &NOBODY));
    assert_eq!(replication.high_watermark(), 3);
}

/// contract/replication.md#1.
#[test]
fn pending_add_holds_the_high_watermark_back() {
    let mut replication = leader_of(&[1]);
    replication.advance_high_watermark(ends(4), 1, &NOBODY);
    replication.follower_fetched(2, fetch(4), 4).unwrap();
    let isr = [1, 2].map(|broker_id| BrokerState { broker_id, broker_epoch: 7 }).to_vec();
    let proposal = replication.propose(LeaderEpoch::ZERO, 0, isr, &all_eligible()).unwrap();
    assert!(!replication.advance_high_watermark(ends(9), 1, &NOBODY));
    assert!(replication.settle(proposal, IsrOutcome::Rejected));
    assert!(replication.advance_high_watermark(ends(9), 1, &NOBODY));
}

/// docs/DURABILITY.md.
#[test]
fn an_isr_member_that_lacks_committed_records_is_rejected_and_lags_at_once() {
    let mut replication = leader_of(&[1, 2]);
    replication.follower_fetched(2, fetch(5), 5).unwrap();
    assert!(replication.advance_high_watermark(ends(5), 1, &NOBODY));
    let refused = replication.follower_fetched(2, fetch(4), 5).map(drop);
    assert_eq!(refused, Err(KafkaError::NotLeaderOrFollower));
    let eligible = all_eligible();
    let view = View { log_end_offset: 5, now_ns: 1, lag_ns_max: u64::MAX, eligible: &eligible };
    let news = replication.news(&view, false);
    assert_eq!(news.len(), 1);
    assert_eq!((news[0].1.state, news[0].1.asks), (ReplicaStateKind::Lagging, true));
    replication.assign(assignment(1, 0, 1, &[1]), 1);
    assert_eq!(replication.follower_fetched(2, fetch(4), 5).unwrap().log_end_offset, 4);
}

/// docs/DURABILITY.md.
#[test]
fn a_joining_replica_that_lacks_committed_records_is_rejected() {
    let mut replication = leader_of(&[1]);
    replication.advance_high_watermark(ends(4), 1, &NOBODY);
    replication.follower_fetched(2, fetch(4), 4).unwrap();
    let isr = [1, 2].map(|broker_id| BrokerState { broker_id, broker_epoch: 7 }).to_vec();
    let proposal = replication.propose(LeaderEpoch::ZERO, 0, isr, &all_eligible()).unwrap();
    assert!(replication.follower_fetched(2, fetch(3), 4).is_err());
    assert!(replication.settle(proposal, IsrOutcome::Rejected));
    assert!(replication.follower_fetched(2, fetch(3), 4).is_ok());
}

/// contract/replication.md#2.
#[test]
fn follower_that_could_join_holds_the_high_watermark_back() {
    let mut replication = leader_of(&[1]);
    replication.follower_fetched(2, fetch(0), 0).unwrap();
    assert!(!replication.advance_high_watermark(ends(9), 1, &|follower| follower.broker_id == 2));
    assert!(replication.advance_high_watermark(ends(9), 1, &NOBODY));
}

/// contract/replication.md#3.
#[test]
fn high_watermark_does_not_advance_below_min_isr() {
    let mut replication = leader_of(&[1]);
    assert!(!replication.advance_high_watermark(ends(9), 2, &NOBODY));
    assert!(replication.advance_high_watermark(ends(9), 1, &NOBODY));
}

/// contract/replication.md#8.
#[test]
fn new_epoch_resets_the_progress_of_followers() {
    let mut replication = leader_of(&[1, 2]);
    replication.follower_fetched(2, fetch(5), 5).unwrap();
    assert_eq!(replication.assign(assignment(1, 1, 1, &[1, 2]), 9), Change::BecameLeader);
    assert!(replication.followers().iter().all(|follower| follower.log_end_offset == -1));
    assert_eq!(replication.followers()[0].caught_up_ns, 9);
    assert_eq!(replication.followers()[1].caught_up_ns, 0);
}

/// contract/replication.md#9.
#[test]
fn redelivery_and_older_epochs_change_nothing() {
    let mut replication = leader_of(&[1, 2]);
    replication.follower_fetched(2, fetch(5), 5).unwrap();
    assert_eq!(replication.assign(assignment(1, 0, 0, &[1]), 9), Change::Ignored);
    assert_eq!(replication.assign(assignment(1, 0, 1, &[1]), 9), Change::Updated);
    assert_eq!(replication.followers()[0].log_end_offset, 5);
    assert_eq!(replication.assign(assignment(2, 0, 0, &[2]), 9), Change::Ignored);
}

/// contract/replication.md#11.
#[test]
fn epochs_are_compared_before_leadership() {
    let mut replication = leader_of(&[1]);
    replication.assign(assignment(2, 4, 4, &[2]), 9);
    assert_eq!(
        replication.check_leader(LeaderEpoch::from_wire(3)),
        Err(KafkaError::FencedLeaderEpoch)
    );
    assert_eq!(
        replication.check_leader(LeaderEpoch::from_wire(5)),
        Err(KafkaError::UnknownLeaderEpoch)
    );
    assert_eq!(
        replication.check_leader(LeaderEpoch::from_wire(4)),
        Err(KafkaError::NotLeaderOrFollower)
    );
    assert_eq!(replication.check_leader(None), Err(KafkaError::NotLeaderOrFollower));
}

/// contract/replication.md#25.
#[test]
fn joining_needs_the_high_watermark_and_the_epoch_start() {
    let mut replication = leader_of(&[1]);
    replication.advance_high_watermark(ends(4), 1, &NOBODY);
    replication.begin_leader_epoch(6);
    let joins = |replication: &Replication| {
        replication.may_join(&replication.followers()[0], &all_eligible())
    };
    for (offset, expected) in [(3, false), (4, false), (6, true)] {
        replication.follower_fetched(2, fetch(offset), 6).unwrap();
        assert_eq!(joins(&replication), expected, "{offset}");
    }
    assert!(!replication.may_join(&replication.followers()[0], &[(2, 8)].into()));
}

/// docs/design/0023.
#[test]
fn a_lost_replica_neither_joins_nor_holds_back_the_high_watermark() {
    for (lost, end) in [(vec![], 6), (vec![2], 9)] {
        let mut replication = leader_of(&[1, 3]);
        let left = Assignment { lost, ..assignment(1, 0, 1, &[1, 3]) };
        replication.assign(left.clone(), 2);
        replication.follower_fetched(2, fetch(6), 6).unwrap();
        replication.follower_fetched(3, fetch(9), 9).unwrap();
        let is_second = |follower: &Follower| follower.broker_id == 2;
        assert!(replication.advance_high_watermark(ends(9), 1, &is_second));
        assert_eq!(replication.high_watermark(), end);
        let second = replication.follower(2).unwrap();
        assert_eq!(replication.may_join(second, &all_eligible()), left.lost.is_empty());
    }
}

fn of_the_quorum() -> Replication {
    let mut replication = Replication::new(1).committed_by(CommitRule::Quorum);
    let alone = Assignment { replicas: vec![1], ..assignment(1, 3, 0, &[1]) };
    replication.assign(alone, 1);
    replication.begin_leader_epoch(0);
    replication
}

/// contract/replication.md#K2: records on only this disk commit nothing.
#[test]
fn quorum_sets_the_high_watermark() {
    let mut replication = of_the_quorum();
    assert!(!replication.advance_high_watermark(ends(9), 1, &NOBODY));
    assert!(replication.follow_high_watermark(4, ends(9)));
    assert!(!replication.follow_high_watermark(3, ends(9)));
    assert!(replication.follow_high_watermark(12, ends(9)));
    assert_eq!(replication.high_watermark(), 9);
    replication.truncated(ends(7));
    assert_eq!(replication.high_watermark(), 7);
}

#[test]
fn only_an_epoch_of_the_quorum_can_be_raised_by_an_append() {
    let mut replication = of_the_quorum();
    replication.raise_leader_epoch(LeaderEpoch::new(2));
    assert!(!replication.is_epoch_due());
    replication.raise_leader_epoch(LeaderEpoch::new(5));
    assert!(replication.is_epoch_due());
    assert_eq!(replication.check_leader(LeaderEpoch::from_wire(5)), Ok(()));
    let mut other = leader_of(&[1]);
    other.raise_leader_epoch(LeaderEpoch::new(5));
    assert_eq!(other.check_leader(LeaderEpoch::from_wire(5)), Err(KafkaError::UnknownLeaderEpoch));
}

#[derive(Debug, Clone)]
enum Step {
    Append(i64),
    Sync,
    Fetch { broker: i32, back: i64 },
    Propose(Vec<i32>),
    Settle(IsrOutcome),
    Assign { leader: i32, new_epoch: bool, isr: Vec<i32> },
    DeleteBefore(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let members = || proptest::sample::subsequence(vec![1, 2, 3], 0..=3);
    prop_oneof![
        (1..5_i64).prop_map(Step::Append),
        Just(Step::Sync),
        (2..=3_i32, 0..4_i64).prop_map(|(broker, back)| Step::Fetch { broker, back }),
        members().prop_map(Step::Propose),
        prop_oneof![
            members()
                .prop_map(|isr| Step::Settle(IsrOutcome::Committed { isr, partition_epoch: 0 })),
            Just(Step::Settle(IsrOutcome::Rejected)),
            Just(Step::Settle(IsrOutcome::Unknown)),
        ],
        (1..=2_i32, any::<bool>(), members()).prop_map(|(leader, new_epoch, isr)| Step::Assign {
            leader,
            new_epoch,
            isr
        }),
        (0..20_i64).prop_map(Step::DeleteBefore),
    ]
}

proptest! {
    /// contract/replication.md#1–#5: always log start ≤ HW ≤ log end, the HW never moves back, and
    /// every member of the maximal ISR has all records below it.
    #[test]
    fn high_watermark_stays_within_the_log_and_never_goes_back(
        steps in proptest::collection::vec(step(), 1..60),
        min_isr in 1..=3_i32,
    ) {
        let mut replication = leader_of(&[1, 2]);
        let mut log = ends(0);
        let (mut epoch, mut partition_epoch) = (0, 0);
        for step in steps {
            let before = replication.high_watermark();
            match step {
                Step::Append(count) => log.log_end_offset += count,
                Step::Sync => log.promised_end_offset = log.log_end_offset,
                Step::Fetch { broker, back } => {
                    let offset = (log.log_end_offset - back).max(0);
                    let _ = replication.follower_fetched(broker, fetch(offset), log.log_end_offset);
                }
                Step::Propose(isr) => {
                    let isr = isr.into_iter()
                        .map(|broker_id| BrokerState { broker_id, broker_epoch: 7 }).collect();
                    replication.propose(LeaderEpoch::new(epoch), partition_epoch, isr, &all_eligible());
                }
                Step::Settle(outcome) => {
                    let outcome = match outcome {
                        IsrOutcome::Committed { mut isr, .. } => {
                            isr.push(1);
                            IsrOutcome::Committed { isr, partition_epoch: partition_epoch + 1 }
                        }
                        outcome => outcome,
                    };
                    let is_committed = matches!(outcome, IsrOutcome::Committed { .. });
                    if let Some(proposal) = replication.isr().proposal() {
                        let settled = replication.settle(proposal, outcome);
                        partition_epoch += i32::from(settled && is_committed);
                    }
                }
                Step::Assign { leader, new_epoch, mut isr } => {
                    if !isr.contains(&leader) { isr.push(leader); }
                    epoch += i32::from(new_epoch || replication.assignment().leader != leader);
                    partition_epoch += 1;
                    replication.assign(assignment(leader, epoch, partition_epoch, &isr), 1);
                }
                Step::DeleteBefore(offset) => {
                    log.log_start_offset =
                        log.log_start_offset.max(offset.min(replication.high_watermark()));
                    replication.log_start_advanced(log);
                }
            }
            let moved = replication.advance_high_watermark(log, min_isr, &NOBODY);
            let now = replication.high_watermark();
            prop_assert!(now >= before);
            prop_assert!(log.log_start_offset <= now && now <= log.log_end_offset);
            if moved {
                prop_assert!(now <= log.promised_end_offset);
                for follower in replication.followers() {
                    if replication.isr().maximal_contains(follower.broker_id) {
                        prop_assert!(follower.log_end_offset >= now);
                    }
                }
            }
        }
    }
}
