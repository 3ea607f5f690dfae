//! Seeded histories of brokers that replicate one partition: messages are lost, late and out of order, disks lose what was
//! not synced, logs lose their middle, brokers are fenced and come back, and the controller moves the leadership (contract/replication.md#1–#32).
//!
//! [`Replication`](super::Replication) and `EpochCache` are those that brokers run. Around them logs are lists, and the
//! controller is the part of it that decides about one partition. One seed is one history, step by step, and after each
//! step every invariant of [`world::World::check`] holds. That the histories reach far enough is shown by [`Wrong`] rules:
//! each is found.
//!
//! `make simulate-replication` asks for more seeds; `REPLICATION_SEED=7 REPLICATION_SEEDS=1` tells the steps of one.

mod controller;
mod node;
mod random;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::world::World;

/// A rule of replication that brokers or the controller break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// A new follower gives up what is not committed as far as it knows, in place of what parts from its leader.
    TruncateToHighWatermark,
    /// A fetch does not say of which epoch the follower's last record is.
    ForgetLastFetchedEpoch,
    /// The high watermark counts the ISR that is committed, not whom a proposal adds.
    IgnorePendingAdds,
    /// A follower joins that has not reached the beginning of its leader's epoch.
    ExpandWithoutEpochStart,
    /// Who is to leave the ISR is not waited for while the controller decides.
    AssumeShrink,
    /// A leader counts what its own disk may lose.
    LeaderCountsUnsynced,
    /// A follower asks for more before its disk has what it was given.
    FollowerTellsUnsynced,
    /// A follower asks for more before its log has what it was given, committed or not.
    FetchesAhead,
    /// A follower joins by what an earlier life of it had.
    AcceptStaleBrokerEpoch,
    /// A broker that comes back goes on to lead in the epoch of its earlier life.
    RestartLeadsInOldEpoch,
    /// Whoever is there is elected.
    ElectOutsideOfIsr,
    /// The controller does what a leader asked for before it asked again, and was refused.
    AnswerWhoGaveUp,
    /// A damaged replica gives up what is behind the damage and stays in the ISR.
    DamagedStaysInIsr,
    /// A damaged replica leads by what it can read.
    DamagedLeads,
    /// A damaged replica gives up what is behind the damage once its leader answers, whatever it knows of the ISR.
    DamagedBelievesAnswers,
    /// A replica that is found damaged while it runs gives that up while fetches of before are on their way.
    DamagedForgetsFetches,
}

const WRONG_RULES: [Wrong; 16] = [
    Wrong::TruncateToHighWatermark,
    Wrong::ForgetLastFetchedEpoch,
    Wrong::IgnorePendingAdds,
    Wrong::ExpandWithoutEpochStart,
    Wrong::AssumeShrink,
    Wrong::LeaderCountsUnsynced,
    Wrong::FollowerTellsUnsynced,
    Wrong::FetchesAhead,
    Wrong::AcceptStaleBrokerEpoch,
    Wrong::RestartLeadsInOldEpoch,
    Wrong::ElectOutsideOfIsr,
    Wrong::AnswerWhoGaveUp,
    Wrong::DamagedStaysInIsr,
    Wrong::DamagedLeads,
    Wrong::DamagedBelievesAnswers,
    Wrong::DamagedForgetsFetches,
];
/// Of a history, before all faults end.
const STEPS: usize = 800;
/// In which a wrong rule is found.
const SEEDS_MAX: u64 = 2_000;
/// From where that is; two need more, which few histories have. Of [`Wrong::DamagedBelievesAnswers`] the leader has to be
/// new, and its high watermark behind that of the one before; of [`Wrong::DamagedForgetsFetches`] an old fetch has to arrive late.
fn first_seed(wrong: Wrong) -> u64 {
    match wrong {
        Wrong::DamagedBelievesAnswers => 182_000,
        Wrong::DamagedForgetsFetches => 146_000,
        _ => 0,
    }
}

/// A whole history.
///
/// # Errors
/// What does not hold in it.
fn history(seed: u64, wrong: Option<Wrong>) -> Result<(), String> {
    told_history(&mut World::new(seed, wrong, false))
}

fn told_history(world: &mut World) -> Result<(), String> {
    for _ in 0..STEPS {
        world.step()?;
    }
    world.heal()
}

fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn what_is_committed_survives_in_every_history() {
    let (first, count) = (asked("REPLICATION_SEED", 0), asked("REPLICATION_SEEDS", 2_000));
    for seed in first..first + count {
        let mut world = World::new(seed, None, count == 1);
        let outcome = told_history(&mut world);
        world.told.iter().for_each(|line| println!("{line}"));
        if let Err(broken) = outcome {
            panic!("REPLICATION_SEED={seed} REPLICATION_SEEDS=1: {broken}");
        }
        if seed % 10_000 == 9_999 {
            println!("{} seeds", seed + 1 - first);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let told = |seed| {
        let mut world = World::new(seed, None, true);
        told_history(&mut world).expect("all of it holds");
        world.told
    };
    assert_eq!(told(5), told(5));
    assert_ne!(told(5), told(6));
}

#[test]
fn each_wrong_rule_is_found() {
    for wrong in WRONG_RULES {
        // A debug assertion of the rules themselves finds it as well.
        let breaks = |seed: &u64| {
            let outcome = catch_unwind(AssertUnwindSafe(|| history(*seed, Some(wrong))));
            !matches!(outcome, Ok(Ok(())))
        };
        let first = first_seed(wrong);
        let found = (first..first + SEEDS_MAX).find(breaks);
        println!("{wrong:?}: seed {found:?}");
        assert!(found.is_some(), "{wrong:?} is not found by {SEEDS_MAX} seeds");
    }
}
