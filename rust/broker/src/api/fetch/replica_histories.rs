//! Random histories of a leader with followers. The logs of the two followers are lists. Invariant:
//! the log of every member of the committed ISR has all records below the high watermark
//! (`StrongIsr` of Kafka's TLA+ model, as far as a leader decides it).
//!
//! Followers fetch by requests, and responses may be lost. Between two epochs of this leader
//! another broker may lead, remove uncommitted records from followers, and give them records that
//! this leader does not have. The controller commits a proposal at once; its response arrives
//! later, or never.

use proptest::prelude::*;
use pykafka_record::{LeaderEpoch, batches};
use pykafka_wire::Records;
use pykafka_wire::fetch::{Partition, PartitionResponse, ReplicaState, Request, Response, Topic};

use crate::control_api::image::PartitionEntry;
use crate::partition::replication::isr::{BrokerState, IsrOutcome};
use crate::testing::{Broker, NODE, REPLICATION, TOPIC, batch, replicated, replied};

const FENCED_LEADER_EPOCH: i16 = 74;

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    Fetch { follower: usize, arrives: bool },
    FetchOfAnOldEpoch { follower: usize },
    Lead { of_another: [Gap; 2] },
    Propose { isr: Vec<i32>, accepts: bool },
    Response { arrives: bool },
    Image,
    Pass { ms: u64 },
}

/// The changes that another leader makes to a follower's log.
#[derive(Debug, Clone, Copy)]
struct Gap {
    lost: usize,
    gained: usize,
}

fn gap() -> impl Strategy<Value = Gap> {
    (0..4_usize, 0..3_usize).prop_map(|(lost, gained)| Gap { lost, gained })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_usize).prop_map(Step::Append),
        8 => (0..2_usize, prop::bool::weighted(0.8))
            .prop_map(|(follower, arrives)| Step::Fetch { follower, arrives }),
        1 => (0..2_usize).prop_map(|follower| Step::FetchOfAnOldEpoch { follower }),
        1 => [gap(), gap()].prop_map(|of_another| Step::Lead { of_another }),
        3 => (prop::sample::subsequence(vec![2, 3], 0..=2), prop::bool::weighted(0.8))
            .prop_map(|(isr, accepts)| Step::Propose { isr, accepts }),
        2 => any::<bool>().prop_map(|arrives| Step::Response { arrives }),
        1 => Just(Step::Image),
        1 => (1..40_000_u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// The state that the controller has committed.
struct Committed {
    leader_epoch: i32,
    partition_epoch: i32,
    isr: Vec<i32>,
}

/// The leader epochs of a log's records.
type Epochs = Vec<i32>;

struct World {
    broker: Broker,
    min_isr: String,
    log: Epochs,
    followers: [Epochs; 2],
    controller: Committed,
    /// The latest partition epoch that the leader has received.
    known: i32,
    responses: Vec<(u64, IsrOutcome)>,
}

impl World {
    fn new(min_isr: i32) -> World {
        let broker = Broker::in_memory().in_cluster();
        let controller = Committed { leader_epoch: 0, partition_epoch: 0, isr: vec![NODE, 2, 3] };
        let (min_isr, log, followers) = (min_isr.to_string(), Vec::new(), Default::default());
        let responses = Vec::new();
        let mut world = World { broker, min_isr, log, followers, controller, known: 0, responses };
        world.image();
        world
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Append(count) => self.append(count),
            Step::Fetch { follower, arrives } => {
                let response = self.fetch(follower, self.controller.leader_epoch);
                assert_eq!(response.error_code, 0, "{response:?}");
                if arrives {
                    follow(&mut self.followers[follower], &response);
                }
            }
            Step::FetchOfAnOldEpoch { follower } => {
                if self.controller.leader_epoch > 0 {
                    let response = self.fetch(follower, self.controller.leader_epoch - 1);
                    assert_eq!(response.error_code, FENCED_LEADER_EPOCH);
                }
            }
            Step::Lead { of_another } => self.lead(of_another),
            Step::Propose { isr, accepts } => self.propose(isr, accepts),
            Step::Response { arrives } => self.respond(arrives),
            Step::Image => self.image(),
            Step::Pass { ms } => {
                self.broker.clock.advance_ms(ms);
                self.broker.ctx.partitions.scan_followers();
                self.broker.wait_idle();
            }
        }
    }

    fn append(&mut self, count: usize) {
        // One record per batch, so that a log may end at any offset.
        (0..count).for_each(|_| self.broker.append_waiting_for_nobody(&batch(&["v"])));
        self.log.extend(vec![self.controller.leader_epoch; count]);
    }

    fn fetch(&self, follower: usize, current_leader_epoch: i32) -> PartitionResponse {
        let log = &self.followers[follower];
        let partition = Partition {
            fetch_offset: log.len() as i64,
            current_leader_epoch,
            last_fetched_epoch: log.last().copied().unwrap_or(-1),
            log_start_offset: 0,
            partition_max_bytes: 200,
            ..Partition::default()
        };
        let request = Request {
            replica_state: ReplicaState { replica_id: follower as i32 + 2, replica_epoch: 5 },
            topics: vec![Topic { topic: "", topic_id: TOPIC, partitions: vec![partition] }],
            ..Request::default()
        };
        let bytes = replied(self.broker.fetch_on(REPLICATION, 17, &request));
        let response = Response::decode_shared(17, &bytes).unwrap();
        response.responses.into_iter().next().unwrap().partitions.remove(0)
    }

    /// Another broker leads for an epoch, and this one leads in the next. The other broker's log
    /// has all committed records too.
    fn lead(&mut self, of_another: [Gap; 2]) {
        let high_watermark = self.broker.offsets().high_watermark as usize;
        for (log, Gap { lost, gained }) in self.followers.iter_mut().zip(of_another) {
            log.truncate(log.len().saturating_sub(lost).max(high_watermark));
            log.extend(vec![self.controller.leader_epoch + 1; gained]);
        }
        self.controller.leader_epoch += 2;
        self.controller.partition_epoch += 1;
        self.image();
    }

    fn image(&mut self) {
        let Committed { leader_epoch, partition_epoch, isr } = &self.controller;
        let entry = PartitionEntry {
            leader_epoch: LeaderEpoch::new(*leader_epoch),
            ..replicated(*partition_epoch, &[NODE, 2, 3], isr)
        };
        self.known = *partition_epoch;
        self.broker.replicate(entry, &[("min.insync.replicas", &self.min_isr)]);
        self.broker.wait_idle();
    }

    fn propose(&mut self, followers: Vec<i32>, accepts: bool) {
        let isr: Vec<i32> = [NODE].into_iter().chain(followers).collect();
        let states = isr.iter().map(|&broker_id| BrokerState { broker_id, broker_epoch: 5 });
        let leader_epoch = LeaderEpoch::new(self.controller.leader_epoch);
        let partitions = &self.broker.ctx.partitions;
        let proposed =
            partitions.propose_isr(&(TOPIC, 0), leader_epoch, self.known, states.collect());
        let Some(proposal) = proposed else { return };
        let outcome = if accepts && self.known == self.controller.partition_epoch {
            self.controller.partition_epoch += 1;
            self.controller.isr.clone_from(&isr);
            IsrOutcome::Committed { isr, partition_epoch: self.controller.partition_epoch }
        } else {
            IsrOutcome::Rejected
        };
        self.responses.push((proposal, outcome));
    }

    fn respond(&mut self, arrives: bool) {
        let Some((proposal, outcome)) = self.responses.pop() else { return };
        if !arrives {
            self.broker.ctx.partitions.settle_isr(proposal, IsrOutcome::Unknown);
            return self.responses.insert(0, (proposal, outcome));
        }
        if let IsrOutcome::Committed { partition_epoch, .. } = outcome {
            self.known = self.known.max(partition_epoch);
        }
        self.broker.ctx.partitions.settle_isr(proposal, outcome);
    }

    fn check(&self, high_watermark_before: i64) -> i64 {
        let offsets = self.broker.offsets();
        assert_eq!(offsets.log_end_offset, self.log.len() as i64);
        assert!(offsets.high_watermark >= high_watermark_before);
        assert!(offsets.high_watermark <= offsets.log_end_offset);
        let committed = &self.log[..offsets.high_watermark as usize];
        for member in self.controller.isr.iter().filter(|member| **member != NODE) {
            let log = &self.followers[*member as usize - 2];
            assert!(
                log.starts_with(committed),
                "{member} is in the ISR and has {log:?}, not {committed:?}"
            );
        }
        offsets.high_watermark
    }
}

/// Truncates as a follower does (contract/replication.md#14), or appends.
fn follow(log: &mut Epochs, response: &PartitionResponse) {
    let diverging = &response.diverging_epoch;
    if diverging.epoch != -1 {
        let own_end = log.partition_point(|epoch| *epoch <= diverging.epoch);
        return log.truncate(own_end.min(diverging.end_offset as usize));
    }
    let Some(Records::Bytes(records)) = &response.records else { panic!("{response:?}") };
    for batch in batches(records).flatten() {
        assert_eq!(batch.base_offset(), log.len() as i64);
        let epoch = batch.partition_leader_epoch().map_or(-1, LeaderEpoch::get);
        log.extend(vec![epoch; batch.records_count() as usize]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_isr_member_has_the_records_below_the_high_watermark(
        steps in prop::collection::vec(step(), 1..80),
        min_isr in 1..=2_i32,
    ) {
        let mut world = World::new(min_isr);
        let mut high_watermark = 0;
        for step in steps {
            world.take(step);
            high_watermark = world.check(high_watermark);
        }
        // Without losses, both followers get all records, and all records are committed.
        while !world.responses.is_empty() {
            world.take(Step::Response { arrives: true });
        }
        world.image();
        for _ in 0..400 {
            world.take(Step::Fetch { follower: 0, arrives: true });
            world.take(Step::Fetch { follower: 1, arrives: true });
            high_watermark = world.check(high_watermark);
        }
        prop_assert_eq!(&world.followers[0], &world.log);
        prop_assert_eq!(&world.followers[1], &world.log);
        let is_enough = world.controller.isr.len() >= min_isr as usize;
        prop_assert!(!is_enough || high_watermark == world.log.len() as i64);
    }
}
