//! Tests of a follower whose disk is slow or fails. Its leader listens on 127.0.0.1; the clocks are
//! manual.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use pykafka_client::ClientOptions;
use pykafka_forks::Socket;
use pykafka_log::{Durability, Log, OpenMode, ReadError};
use pykafka_wire::ApiKey;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::assigned::LASTING_ERRORS;
use super::*;
use crate::control_api::event::Event;
use crate::control_api::event::faults::LogFault;
use crate::control_api::image::PartitionEntry;
use crate::control_api::image::delta::{ImageDelta, TopicImage};
use crate::hot_apis::hot_index;
use crate::network::engine::Engine;
use crate::network::fault_injection::GatedTcp;
use crate::network::listener::{self, Audience, Listens};
use crate::testing::gate_disk::{Gate, Op};
use crate::testing::{
    Broker, NODE, REPLICATION, TOPIC, batch, endpoint, pending, poll, replicated, replied,
    request_of, topic,
};

const FOLLOWER: i32 = 2;

/// A leader of `t` in memory, and its follower on a disk that a test can hold.
struct Pair {
    leader: Broker,
    follower: Broker,
    fetchers: Fetchers,
    engine: Arc<Engine>,
    listening: JoinHandle<()>,
}

impl Pair {
    fn new(durability: Durability, partitions: i32) -> Pair {
        Pair::prepared(durability, partitions, |_, _| {})
    }

    /// Creates a pair and prepares both brokers before the follower starts to fetch.
    fn prepared(
        durability: Durability,
        partitions: i32,
        prepare: impl FnOnce(&mut Broker, &mut Broker),
    ) -> Pair {
        Pair::of(durability, &|| of_t(partitions), prepare)
    }

    /// Creates a pair for the topics of `topics`.
    fn of(
        durability: Durability,
        topics: &dyn Fn() -> ImageDelta,
        prepare: impl FnOnce(&mut Broker, &mut Broker),
    ) -> Pair {
        let engine = Engine::shared().unwrap();
        let runtime = engine.handle().clone();
        let mut leader = Broker::in_memory().in_cluster();
        leader.ctx.network.serving.send_replace(true);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (name, audience) = (Arc::from(REPLICATION), Audience::Nodes);
        let listens = Listens { name, audience, controller_apis: None };
        let (network, handler) = leader.served();
        let accepting = listener::accept(network, handler, listens, Socket::new(listener));
        let listening = runtime.spawn(accepting);
        leader.apply(topics());

        let mut follower = Broker::on_disk_of(FOLLOWER, durability).in_cluster();
        prepare(&mut leader, &mut follower);
        let options = ClientOptions {
            client_id: "follower".into(),
            setup_timeout: Duration::from_secs(60),
            backoff_first: Duration::from_millis(1),
            backoff_max: Duration::from_millis(10),
            idle_max: Duration::from_secs(60),
            response_bytes_max: 1 << 24,
            open_max: 100,
            seed: 1,
        };
        let connector = GatedTcp(follower.ctx.network.gates.clone());
        let client = Arc::new(PeerClient::new(connector, options, runtime.clone()));
        let fetchers = Fetchers::new(follower.ctx.clone(), client, runtime);
        let at_port =
            BrokerEndpoint { listener: Arc::from(REPLICATION), port, ..endpoint(NODE, 5) };
        let brokers = Some(vec![at_port, endpoint(FOLLOWER, 5)]);
        let step = follower.step(ImageDelta { brokers, ..topics() });
        let changes = fetchers.changes_of(&step);
        follower.ctx.carry_out(step);
        fetchers.carry_out(changes);
        Pair { leader, follower, fetchers, engine, listening }
    }

    /// Produces to a partition with acks=all and waits for the response.
    fn produce(&self, index: i32) {
        let records = batch(&["a"]);
        let request = request_of(-1, &[(index, Some(&records))]);
        let response = replied(self.leader.produce_request(9, &request));
        let response = pykafka_wire::produce::Response::decode(9, &response).unwrap();
        assert_eq!(response.responses[0].partitions[0].error_code, 0);
    }

    /// Produces to a partition whose ISR is the leader, and waits for the follower.
    fn produce_alone(&self, index: i32) {
        self.produce(index);
        let end = self.leader.ctx.partitions.get(&TOPIC, index).unwrap().high_watermark();
        while self.log(index).log_end_offset() < end {
            thread::yield_now();
        }
    }

    fn log(&self, index: i32) -> Arc<Log> {
        let partition = self.follower.ctx.partitions.get(&TOPIC, index).unwrap();
        loop {
            if let Some(log) = partition.opened_log() {
                return log;
            }
            thread::yield_now();
        }
    }

    /// The follower's log end offset, as its leader knows it.
    fn told(&self, index: i32) -> i64 {
        let led = self.leader.ctx.partitions.get(&TOPIC, index).unwrap();
        led.follower_log_end_offset()
    }

    fn offline(&self) -> Vec<i32> {
        let offline = |event: Event| {
            let is_offline = event.faults()?.any(|fault| fault == LogFault::Offline);
            let Event::PartitionState { partition, .. } = event else { return None };
            is_offline.then_some(partition)
        };
        self.follower.events().into_iter().filter_map(offline).collect()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.follower.gate.open();
        self.listening.abort();
        self.engine.handle().block_on(self.fetchers.close());
    }
}

/// `t`, led by [`NODE`].
fn of_t(partitions: i32) -> ImageDelta {
    let both = [NODE, FOLLOWER];
    let entry = |index| PartitionEntry { index, ..replicated(0, &both, &both) };
    let partitions = (0..partitions).map(entry).collect();
    let topic = TopicImage { partitions, ..topic("t", TOPIC, 0, &[]) };
    ImageDelta { topics: vec![topic], ..ImageDelta::default() }
}

#[test]
fn unsynced_records_of_a_follower_do_not_count_in_fsync_mode() {
    let pair = Pair::new(Durability::Fsync, 1);
    pair.produce(0);
    pair.follower.gate.hold_at(Op::Sync, "/data/t-0");
    let mut waiting = pending(pair.leader.produce(9, -1, &batch(&["b"])));
    pair.follower.gate.until_waiting(1);
    let log = pair.log(0);
    assert_eq!((log.log_end_offset(), log.recovery_point()), (2, 1));
    assert!(poll(&mut waiting).is_none());
    pair.follower.gate.open();
    replied(crate::network::outcome::Outcome::Pending(waiting));
    assert_eq!(log.recovery_point(), 2);
}

/// The follower lacks three batches, which its leader has committed without it, and fetches one at
/// a time.
fn behind(durability: Durability, prepare: impl FnOnce(&Gate)) -> Pair {
    Pair::prepared(durability, 1, |leader, follower| {
        leader.replicate(replicated(1, &[NODE, FOLLOWER], &[NODE]), &[]);
        for value in ["a", "b", "c"] {
            leader.append(&batch(&[value]));
        }
        follower.set(&[("replica.fetch.max.bytes", "1")]);
        prepare(&follower.gate);
    })
}

const SEGMENTS: [&str; 2] =
    ["/data/t-0/00000000000000000000.log", "/data/t-1/00000000000000000000.log"];
const SEGMENT: &str = SEGMENTS[0];

/// Not for the batches that it lacks: the leader has committed them without it.
#[test]
fn a_follower_that_catches_up_waits_only_for_its_last_sync() {
    let pair = behind(Durability::Fsync, |gate| gate.hold_at(Op::Sync, SEGMENT));
    let log = pair.log(0);
    while log.log_end_offset() < 3 {
        thread::yield_now();
    }
    assert_eq!(log.recovery_point(), 0);
    pair.follower.gate.open();
    while log.recovery_point() < 3 {
        thread::yield_now();
    }
}

/// Its leader has committed more than one batch, so this one is not counted.
#[test]
fn a_follower_that_catches_up_fetches_the_next_batch_while_it_writes_one() {
    let pair = behind(Durability::Os, |gate| gate.hold_at(Op::Write, SEGMENT));
    while pair.told(0) < 1 {
        thread::yield_now();
    }
    assert_eq!(pair.log(0).log_end_offset(), 0);
    pair.follower.gate.open();
    while pair.told(0) < 3 {
        thread::yield_now();
    }
    assert_eq!(pair.log(0).log_end_offset(), 3);
}

#[test]
fn records_fetched_after_a_failed_write_are_not_used() {
    let pair = behind(Durability::Os, |gate| gate.refuse_at(Op::Write, SEGMENT));
    let log = pair.log(0);
    let path = Path::new(SEGMENT);
    while pair.follower.gate.count(Op::Write, path) < 3 {
        thread::yield_now();
    }
    assert_eq!(log.log_end_offset(), 0);
    pair.follower.gate.heal();
    while log.log_end_offset() < 3 {
        thread::yield_now();
    }
}

#[test]
fn a_partition_with_a_slow_disk_does_not_block_others() {
    let pair = Pair::new(Durability::Fsync, 2);
    pair.produce(0);
    pair.produce(1);
    pair.follower.gate.hold_at(Op::Sync, "/data/t-0");
    let mut waiting = pending(pair.leader.produce(9, -1, &batch(&["b"])));
    pair.follower.gate.until_waiting(1);
    for _ in 0..3 {
        pair.produce(1);
    }
    assert!(poll(&mut waiting).is_none());
    pair.follower.gate.open();
    replied(crate::network::outcome::Outcome::Pending(waiting));
    pair.produce(0);
}

/// Size in bytes of each of the three records that the follower of `behind_beside` lacks.
const SIZE: usize = 100_000;

/// Like [`behind`], with another partition that is in sync. The disk is held for writes to `t`-0.
fn behind_beside() -> Pair {
    Pair::prepared(Durability::Os, 2, |leader, follower| {
        let mut topics = of_t(2);
        topics.topics[0].partitions[0] = replicated(1, &[NODE, FOLLOWER], &[NODE]);
        leader.apply(topics);
        for value in ["a", "b", "c"] {
            leader.append(&batch(&[&value.repeat(SIZE)]));
        }
        follower.set(&[("replica.fetch.max.bytes", "1")]);
        follower.gate.hold_at(Op::Write, SEGMENT);
    })
}

/// It lags, so there is a fetch-ahead while it writes. The other partition does not wait for it,
/// and discarded records are not fetched repeatedly.
#[test]
fn a_partition_that_catches_up_on_a_blocked_disk_does_not_block_others() {
    let pair = behind_beside();
    for _ in 0..30 {
        pair.produce(1);
    }
    assert_eq!(pair.log(0).log_end_offset(), 0);
    let sent = pair.leader.ctx.network.statistics.bytes_sent.value();
    assert!(sent < 4 * SIZE as u64, "{sent} bytes");
    pair.follower.gate.open();
    while pair.told(0) < 3 {
        thread::yield_now();
    }
}

#[test]
fn a_slow_log_is_not_fetched_ahead_of_while_it_writes_the_next_batch() {
    let pair = behind_beside();
    while pair.told(0) < 1 {
        thread::yield_now();
    }
    // Several responses, so that the records of the fetch-ahead were discarded.
    for _ in 0..3 {
        pair.produce(1);
    }
    while pair.log(0).log_end_offset() < 1 {
        pair.follower.gate.let_one_through();
        // A batch may take more than one write.
        pair.follower.gate.until_waiting(1);
    }
    for _ in 0..3 {
        pair.produce(1);
    }
    assert_eq!(pair.told(0), 1);
    pair.follower.gate.open();
    while pair.told(0) < 3 {
        thread::yield_now();
    }
}

#[test]
fn a_full_disk_is_retried_after_growing_pauses() {
    let pair = behind(Durability::Os, |gate| gate.refuse_at(Op::Write, SEGMENT));
    let tries = || pair.follower.gate.count(Op::Write, Path::new(SEGMENT));
    let begun = Instant::now();
    while tries() < 5 {
        thread::yield_now();
    }
    // 10, 20, 40 and 80 ms between five attempts.
    assert!(begun.elapsed() >= Duration::from_millis(140), "{:?}", begun.elapsed());
    pair.follower.gate.heal();
    while pair.log(0).log_end_offset() < 3 {
        thread::yield_now();
    }
}

/// Followers on a full disk, whose leader has committed batches of `SIZE` without them.
fn on_a_full_disk(partitions: i32, batches: i64) -> Pair {
    let behind = || {
        let mut topics = of_t(partitions);
        for partition in &mut topics.topics[0].partitions {
            partition.isr = [NODE].into();
        }
        topics
    };
    Pair::of(Durability::Os, &behind, |leader, follower| {
        let record = batch(&[&"a".repeat(SIZE)]);
        for (index, segment) in (0..partitions).zip(SEGMENTS) {
            for _ in 0..batches {
                replied(leader.produce_request(9, &request_of(1, &[(index, Some(&record))])));
            }
            follower.gate.refuse_at(Op::Write, segment);
        }
    })
}

#[test]
fn partitions_on_a_full_disk_are_retried_with_one_batch_each() {
    let pair = on_a_full_disk(2, 3);
    let tries = |index: usize| pair.follower.gate.count(Op::Write, Path::new(SEGMENTS[index]));
    while tries(0) < 5 || tries(1) < 5 {
        thread::yield_now();
    }
    let tried = tries(0) + tries(1);
    let sent = pair.leader.ctx.network.statistics.bytes_sent.value() as usize;
    // All three batches of both partitions at first, and one that may be on its way.
    assert!(sent < (tried + 6) * SIZE, "{sent} bytes for {tried} tries");
    pair.follower.gate.heal();
    while pair.told(0) < 3 || pair.told(1) < 3 {
        thread::yield_now();
    }
}

#[test]
fn a_partition_whose_log_writes_again_fetches_many_batches_at_once() {
    const BATCHES: i64 = 30;
    let pair = on_a_full_disk(1, BATCHES);
    while pair.follower.gate.count(Op::Write, Path::new(SEGMENT)) < 3 {
        thread::yield_now();
    }
    let fetch = hot_index(ApiKey::FETCH).unwrap();
    let fetches = || pair.leader.ctx.network.statistics.hot_requests[fetch].value();
    let before = fetches();
    pair.follower.gate.heal();
    while pair.told(0) < BATCHES {
        thread::yield_now();
    }
    let taken = fetches() - before;
    assert!(taken < BATCHES as u64 / 2, "{taken} fetches");
}

#[test]
fn a_failed_log_stops_only_its_partition() {
    let pair = Pair::new(Durability::Fsync, 2);
    pair.produce(0);
    pair.produce(1);
    pair.follower.gate.fail_at(Op::Sync, "/data/t-0");
    let mut waiting = pending(pair.leader.produce(9, -1, &batch(&["b"])));
    assert!(poll(&mut waiting).is_none());
    for _ in 0..3 {
        pair.produce(1);
    }
    while pair.offline() != [0] {
        thread::yield_now();
    }
    pair.produce(1);
    assert!(poll(&mut waiting).is_none());
}

/// docs/DURABILITY.md: the leader has nothing new for it, but is still informed of its missing
/// records.
#[test]
fn a_log_with_an_unreadable_batch_is_examined_before_more_is_fetched() {
    let pair = Pair::new(Durability::Fsync, 2);
    for _ in 0..3 {
        pair.produce(0);
    }
    pair.produce(1);
    let log = pair.log(0);
    let batch_size = log.size_bytes() / 3;
    let disk = pair.follower.ctx.partitions.host().directory.disk();
    let file = disk.open(Path::new(SEGMENT), OpenMode::Write).unwrap();
    // The size field of the second batch.
    file.write_at(&[0x55; 4], batch_size + 8).unwrap();
    let followed = pair.follower.ctx.partitions.get(&TOPIC, 0).unwrap();
    let error = log.read(1, 1 << 20, 2, true).unwrap_err();
    let ReadError::Storage(error) = error else { panic!("{error}") };
    followed.note_storage_error(&error);
    while pair.told(0) > 1 {
        // The leader's clock is stopped: only records end a Fetch that waits there.
        pair.produce(1);
    }
}

#[test]
fn a_log_without_a_descriptor_is_retried() {
    let pair = Pair::new(Durability::Fsync, 1);
    pair.follower.gate.refuse_at(Op::Open, "/data/t-0");
    let mut waiting = pending(pair.leader.produce(9, -1, &batch(&["a"])));
    let is_told = || {
        let lines = pair.follower.ctx.log_ring.drain();
        lines.iter().any(|line| line.text.contains("does not follow node 1 now"))
    };
    while !is_told() {
        thread::yield_now();
    }
    assert!(poll(&mut waiting).is_none());
    pair.follower.gate.heal();
    replied(crate::network::outcome::Outcome::Pending(waiting));
}

/// Regression test: each new topic caused a warning, because its follower may have the image before
/// the leader.
#[test]
fn a_leader_that_lacks_a_topic_is_reported_only_if_the_error_lasts() {
    let pair = Pair::prepared(Durability::Os, 1, |leader, follower| {
        leader.apply(ImageDelta {
            deleted: vec![TOPIC],
            metadata_offset: 9,
            ..ImageDelta::default()
        });
        follower.set(&[("replica.fetch.backoff.ms", "1")]);
    });
    let is_reported = || {
        let lines = pair.follower.ctx.log_ring.drain();
        lines.iter().any(|line| line.text.contains("UNKNOWN_TOPIC_ID"))
    };
    while !is_reported() {
        thread::yield_now();
    }
    let mut counters = String::new();
    pair.leader.ctx.network.statistics.write(&mut counters);
    let count = counters.lines().find_map(|line| line.strip_prefix("requests_fetch ")).unwrap();
    assert!(count.parse::<u32>().unwrap() >= LASTING_ERRORS, "{count} fetches");
}

/// `t`-0 is throttled to nothing on the follower: one response passes, with the first of three
/// batches. Only the leader is in sync.
fn held_back(partitions: i32) -> Pair {
    let topics = || {
        let alone = |index| PartitionEntry { index, ..replicated(0, &[NODE, FOLLOWER], &[NODE]) };
        let partitions = (0..partitions).map(alone).collect();
        let throttled = [("follower.replication.throttled.replicas", "0:2")];
        let topic = TopicImage { partitions, ..topic("t", TOPIC, 0, &throttled) };
        ImageDelta { topics: vec![topic], ..ImageDelta::default() }
    };
    let pair = Pair::of(Durability::Os, &topics, |leader, follower| {
        for _ in 0..3 {
            leader.append(&batch(&["a"]));
        }
        let one_batch = ("replica.fetch.max.bytes", "1");
        follower.set(&[("follower.replication.throttled.rate", "0"), one_batch]);
    });
    let log = pair.log(0);
    while log.log_end_offset() < 1 {
        thread::yield_now();
    }
    pair
}

#[test]
fn a_follower_throttled_to_nothing_continues_after_the_windows() {
    let pair = held_back(2);
    let log = pair.log(0);
    for _ in 0..2 {
        // Other partitions continue in the meantime.
        pair.produce_alone(1);
    }
    assert_eq!(log.log_end_offset(), 1);
    pair.follower.clock.advance_ms(11_000);
    while log.log_end_offset() < 2 {
        // The leader's clock is stopped: only news ends a Fetch that waits there.
        pair.produce_alone(1);
    }
    pair.produce_alone(1);
    assert_eq!(log.log_end_offset(), 2);
}

#[test]
fn a_removed_throttle_frees_the_follower_that_it_held_back() {
    let mut pair = held_back(1);
    assert_eq!(pair.log(0).log_end_offset(), 1);
    pair.follower.set(&[]);
    while pair.log(0).log_end_offset() < 3 {
        thread::yield_now();
    }
}
