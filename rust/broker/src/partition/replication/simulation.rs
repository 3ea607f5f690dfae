//! Seeded histories of brokers that replicate one partition: messages are lost, late and out of
//! order, disks lose unsynced records, logs lose records in the middle, brokers are fenced and
//! return, and the controller moves the leadership (contract/replication.md#1–#32).
//!
//! The simulation uses the [`Replication`](super::Replication) and `EpochCache` of real brokers.
//! Logs are lists, and the controller is reduced to its decisions about one partition. A seed
//! determines a history, step by step, and after each step every invariant of
//! [`world::World::check`] holds. [`Wrong`] rules show that the histories reach far enough: the
//! histories detect each of them. The ordinary tests run only the recorded seed of each rule
//! (`simulation/seeds.toml`) and a sample of seeds without a wrong rule; ignored tests search for
//! the rules again and run many seeds.
//!
//! `make simulate-replication` runs more seeds; `REPLICATION_SEED=7 REPLICATION_SEEDS=1` prints the
//! steps of one seed.

mod controller;
mod node;
mod random;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::world::World;

/// A replication rule that brokers or the controller violate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    /// A new follower truncates to its high watermark, not to where its log diverges from the
    /// leader's.
    TruncateToHighWatermark,
    /// A fetch does not contain the epoch of the follower's last record.
    ForgetLastFetchedEpoch,
    /// The high watermark depends on the committed ISR only, not on members that a proposal adds.
    IgnorePendingAdds,
    /// A follower joins the ISR before it has reached the start of the leader epoch.
    ExpandWithoutEpochStart,
    /// A member that a proposal removes does not count while the controller decides.
    AssumeShrink,
    /// A leader counts records that its own disk may lose.
    LeaderCountsUnsynced,
    /// A follower fetches the next records before its disk has synced the previous ones.
    FollowerTellsUnsynced,
    /// A follower fetches the next records before its log has the previous ones, committed or not.
    FetchesAhead,
    /// A follower joins the ISR because of the records of its previous run.
    AcceptStaleBrokerEpoch,
    /// A restarted broker continues to lead in the epoch of its previous run.
    RestartLeadsInOldEpoch,
    /// Any live replica is elected.
    ElectOutsideOfIsr,
    /// The controller executes a request that its leader has repeated since, although the
    /// repetition was refused.
    AnswerWhoGaveUp,
    /// A damaged replica truncates at the damage and stays in the ISR.
    DamagedStaysInIsr,
    /// A damaged replica leads with its readable records.
    DamagedLeads,
    /// A damaged replica truncates at the damage once its leader responds, whatever ISR it knows.
    DamagedBelievesAnswers,
    /// A replica that is found damaged while it runs truncates while earlier fetches are still on
    /// their way.
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
/// Number of steps of a history before all faults end.
const STEPS: usize = 800;
/// Number of seeds that the ordinary tests run without a wrong rule.
const SAMPLE: u64 = 200;
/// Number of seeds that a search tries for a wrong rule.
const SEEDS_MAX: u64 = 2_000;
/// A line `Rule = seed` for each wrong rule. With `REPLICATION_RECORD=1` the search writes it.
const RECORDED: &str = include_str!("simulation/seeds.toml");
const RECORDED_FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/src/partition/replication/simulation/seeds.toml");
const RECORD: &str = "make record-seeds";

/// The first seed of a search. Two rules need rare histories: for [`Wrong::DamagedBelievesAnswers`]
/// the leader must be new, with a lower high watermark than its predecessor; for
/// [`Wrong::DamagedForgetsFetches`] an old fetch must arrive late.
fn first_seed(wrong: Wrong) -> u64 {
    match wrong {
        Wrong::DamagedBelievesAnswers => 182_000,
        Wrong::DamagedForgetsFetches => 146_000,
        _ => 0,
    }
}

fn recorded_seed(wrong: Wrong) -> Option<u64> {
    let name = format!("{wrong:?}");
    let mut rules = RECORDED.lines().filter_map(|line| line.split_once(" = "));
    let (_, seed) = rules.find(|(rule, _)| *rule == name)?;
    Some(seed.parse().expect("a recorded seed is a number"))
}

/// True if the seed's history breaks an invariant, or a debug assertion of the replication rules.
fn finds(seed: u64, wrong: Wrong) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| history(seed, Some(wrong))));
    !matches!(outcome, Ok(Ok(())))
}

/// Runs a whole history.
///
/// # Errors
/// The violated invariant.
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

/// Runs `count` seeds without a wrong rule; prints the steps if there is only one.
fn run_seeds(first: u64, count: u64) {
    for seed in first..first + count {
        let mut world = World::new(seed, None, count == 1);
        let outcome = told_history(&mut world);
        world.told.iter().for_each(|line| println!("{line}"));
        if let Err(broken) = outcome {
            panic!(
                "REPLICATION_SEED={seed} REPLICATION_SEEDS=1 make simulate-replication: {broken}"
            );
        }
        if seed % 10_000 == 9_999 {
            println!("{} seeds", seed + 1 - first);
        }
    }
}

#[test]
fn committed_records_survive_in_a_sample_of_histories() {
    run_seeds(0, SAMPLE);
}

#[test]
#[ignore = "campaign: 2,000 seeds, or REPLICATION_SEEDS from REPLICATION_SEED on"]
fn committed_records_survive_in_many_histories() {
    run_seeds(asked("REPLICATION_SEED", 0), asked("REPLICATION_SEEDS", 2_000));
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
fn the_recorded_seed_finds_each_wrong_rule() {
    for wrong in WRONG_RULES {
        let seed = recorded_seed(wrong);
        let seed = seed.unwrap_or_else(|| panic!("{wrong:?} has no recorded seed: {RECORD}"));
        if let Err(broken) = history(seed, None) {
            panic!("seed {seed} of {wrong:?} fails without the wrong rule: {broken}");
        }
        assert!(finds(seed, wrong), "seed {seed} does not find {wrong:?} any more: {RECORD}");
    }
}

#[test]
#[ignore = "campaign: up to 2,000 seeds for each wrong rule; REPLICATION_RECORD=1 records what it finds"]
fn a_search_finds_each_wrong_rule() {
    let mut found = Vec::new();
    for wrong in WRONG_RULES {
        let first = first_seed(wrong);
        let seed = (first..first + SEEDS_MAX).find(|seed| finds(*seed, wrong));
        let seed = seed.unwrap_or_else(|| panic!("{SEEDS_MAX} seeds do not find {wrong:?}"));
        println!("{wrong:?}: seed {seed}");
        found.push(format!("{wrong:?} = {seed}\n"));
    }
    if asked("REPLICATION_RECORD", 0) == 1 {
        let header =
            format!("# Written by `{RECORD}`: the seed whose history finds each wrong rule.\n");
        std::fs::write(RECORDED_FILE, header + &found.concat()).expect("a writable checkout");
    }
}
