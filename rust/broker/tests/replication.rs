//! Brokers that follow each other, over real sockets on 127.0.0.1; the test is the controller
//! (contract/replication.md#11, #16, #22, #23).

mod cluster;
mod common;

use std::thread;

use cluster::{Cluster, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, REFUSED_FOR_TIME};
use pykafka_log::{Clock, EpochEntry, SystemClock};
use pykafka_record::{Limits, batches};

/// The values of all records of a log, in order.
fn values(log: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    let mut scratch = Vec::new();
    for batch in batches(log) {
        let batch = batch.expect("a whole batch");
        for record in batch.records(&mut scratch, Limits::default()).expect("no compression") {
            let value = record.expect("a record").value.unwrap_or_default();
            values.push(String::from_utf8(value.to_vec()).expect("text"));
        }
    }
    values
}

#[test]
fn logs_of_followers_equal_that_of_the_leader_byte_for_byte() {
    let mut cluster = Cluster::in_memory(3, &[]);
    cluster.create_topic(&[1, 2, 3], 1);
    for number in 0..100 {
        assert_eq!(cluster.produce(1, -1, &[&number.to_string()]), (0, number));
    }
    cluster.wait_equal(&[1, 2, 3]);
    assert_eq!(values(&cluster.bytes(3)).len(), 100);
    cluster.wait_high_watermark(&[1, 2, 3], 100);
}

#[test]
fn acks_all_waits_for_every_in_sync_replica() {
    let mut cluster = Cluster::in_memory(3, &[]);
    cluster.create_topic_on(&[1, 2], &[1, 2, 3], 1);
    assert_eq!(cluster.produce_for(1, -1, &["a"], 200).0, REFUSED_FOR_TIME);
    assert_eq!(cluster.produce(1, 1, &["b"]), (0, 1));
    cluster.tell(&[3]);
    assert_eq!(cluster.produce(1, -1, &["c"]), (0, 2));
    cluster.wait_equal(&[1, 2, 3]);
}

#[test]
fn partitions_of_many_topics_and_fetchers_are_all_followed() {
    let mut cluster = Cluster::in_memory(2, &[("num.replica.fetchers", "3")]);
    cluster.create_partitions(&[1, 2], 1, 40);
    for index in 0..40 {
        assert_eq!(cluster.produce_to(1, index, -1, &["a"], 10_000).0, 0);
    }
    // With another number of tasks, all partitions are assigned again.
    cluster.set("num.replica.fetchers", "1");
    for index in 0..40 {
        assert_eq!(cluster.produce_to(1, index, -1, &["b"], 10_000), (0, 1));
    }
}

#[test]
fn a_fetch_that_waits_at_the_leader_is_cancelled_for_another_partition() {
    let longer_than_a_produce = ("replica.fetch.wait.max.ms", "25000");
    let mut cluster = Cluster::in_memory(2, &[longer_than_a_produce]);
    cluster.create_topic(&[1, 2], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    for _ in 0..3 {
        // A new epoch must be fetched in, too.
        cluster.change(|entry| entry.lead(1));
        assert_eq!(cluster.produce(1, -1, &["b"]).0, 0);
    }
    cluster.create_other_topic(&[1, 2], 1);
    assert_eq!(cluster.produce_to_other(1, &["c"]).0, 0);
}

/// A Fetch is cancelled at most twice a second; the leader must not keep the Fetches in between.
#[test]
fn consecutive_changes_do_not_wait_for_waiting_fetches() {
    let mut cluster = Cluster::in_memory(2, &[("replica.fetch.wait.max.ms", "25000")]);
    cluster.create_topic(&[1, 2], 1);
    let clock = SystemClock::new();
    let begun_ns = clock.now_ns();
    for _ in 0..40 {
        cluster.change(|entry| entry.lead(1));
        assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    }
    // Half of the time that two cancelled Fetches per second would take.
    assert!(clock.now_ns() - begun_ns < 10_000_000_000);
}

#[test]
fn an_empty_follower_gets_all_records() {
    let mut cluster = Cluster::on_disk(2, &[("replica.fetch.max.bytes", "10000")]);
    cluster.create_topic(&[1], 1);
    for number in 0..300 {
        let value = format!("{number}-{}", "x".repeat(300));
        assert_eq!(cluster.produce(1, 1, &[&value, &value]).0, 0);
    }
    cluster.change(|entry| entry.replicas = vec![1, 2]);
    cluster.wait_equal(&[1, 2]);
    assert_eq!(values(&cluster.bytes(2)).len(), 600);
}

/// A partition that is removed from this broker and returns, before or after its directory is gone,
/// starts with an empty log.
#[test]
fn a_removed_replica_is_deleted_with_its_files_and_can_return() {
    let mut cluster = Cluster::on_disk(3, &[]);
    cluster.create_topic(&[1, 2, 3], 1);
    for round in 0..4 {
        assert_eq!(cluster.produce(1, -1, &["a", "b"]), (0, 6 * round));
        cluster.wait_equal(&[1, 2, 3]);
        cluster.change(|entry| {
            (entry.replicas, entry.isr) = (vec![2, 3], vec![2, 3]);
            entry.lead(2);
        });
        assert!(cluster.log(1).is_none());
        assert_eq!(cluster.produce(1, -1, &["nobody's"]).0, NOT_LEADER_OR_FOLLOWER);
        assert_eq!(cluster.produce(2, -1, &["c", "d"]), (0, 6 * round + 2));
        if round % 2 == 0 {
            cluster.wait("a directory that is gone", || !cluster.has_directory(1));
        }
        cluster.change(|entry| (entry.replicas, entry.isr) = (vec![1, 2, 3], vec![2, 3]));
        cluster.wait_equal(&[1, 2, 3]);
        cluster.change(|entry| {
            (entry.replicas, entry.isr) = (vec![1, 3], vec![1, 3]);
            entry.lead(1);
        });
        // Removed and added again twice during the deletion.
        cluster.change(|entry| (entry.replicas, entry.isr) = (vec![1, 2, 3], vec![1, 3]));
        cluster.change(|entry| (entry.replicas, entry.isr) = (vec![1, 3], vec![1, 3]));
        cluster.change(|entry| (entry.replicas, entry.isr) = (vec![1, 2, 3], vec![1, 3]));
        cluster.wait_equal(&[1, 2, 3]);
        cluster.change(|entry| entry.isr = vec![1, 2, 3]);
        assert_eq!(cluster.produce(1, -1, &["e", "f"]), (0, 6 * round + 4));
    }
    assert_eq!(values(&cluster.bytes(2)).len(), 24);
}

#[test]
fn a_waiting_produce_fails_when_its_partition_moves_to_other_brokers() {
    let mut cluster = Cluster::on_disk(3, &[]);
    cluster.create_topic_on(&[1, 2], &[1, 2, 3], 1);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| cluster.produce(1, -1, &["a"]));
        cluster.wait("an append", || !cluster.bytes(1).is_empty());
        cluster.tell_taken_away(1);
        assert_eq!(waiting.join().expect("a response").0, NOT_LEADER_OR_FOLLOWER);
    });
}

/// KIP-392, contract/replication.md#48.
#[test]
fn a_follower_serves_consumers_up_to_its_high_watermark() {
    let mut cluster = Cluster::on_disk(3, &[]);
    cluster.create_topic(&[1, 2], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]), (0, 0));
    cluster.wait_equal(&[1, 2]);
    cluster.wait_high_watermark(&[2], 1);
    let anywhere = (11, "");
    assert_eq!(values(&cluster.consume(2, anywhere, 0, 0).records), ["a"]);
    assert_eq!(cluster.consume(2, (10, ""), 0, 0).error_code, NOT_LEADER_OR_FOLLOWER);
    assert_eq!(cluster.consume(3, anywhere, 0, 0).error_code, NOT_LEADER_OR_FOLLOWER);
    assert_eq!(cluster.consume(2, anywhere, 2, 0).error_code, OFFSET_OUT_OF_RANGE);
    // A waiting fetch is woken by the leader's high watermark.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| cluster.consume(2, anywhere, 1, 30_000));
        assert_eq!(cluster.produce(1, -1, &["b"]), (0, 1));
        assert_eq!(values(&waiting.join().expect("a response").records), ["b"]);
    });
    // Uncommitted records are in the log, but not readable.
    cluster.decide(|entry| (entry.replicas, entry.isr) = (vec![1, 2, 3], vec![1, 2, 3]));
    cluster.tell(&[1, 2]);
    assert_eq!(cluster.produce(1, 1, &["c"]), (0, 2));
    cluster.wait("the follower's log", || values(&cluster.bytes(2)).len() == 3);
    assert_eq!(cluster.consume(2, anywhere, 2, 0).records, Vec::<u8>::new());
    assert_eq!(cluster.consume(2, anywhere, 2, 0).error_code, 0);
}

#[test]
fn a_consumer_is_sent_to_an_in_sync_replica_in_its_rack() {
    let selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector";
    let mut cluster = Cluster::on_disk(3, &[("replica.selector.class", selector)]);
    cluster.create_topic(&[1, 2, 3], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]), (0, 0));
    cluster.wait_equal(&[1, 2, 3]);
    let sent_to = |cluster: &Cluster, rack: &str, offset: i64| {
        let consumed = cluster.consume(1, (11, rack), offset, 30_000);
        assert_eq!(consumed.error_code, 0);
        assert_eq!(consumed.records.is_empty(), consumed.preferred_read_replica != -1);
        consumed.preferred_read_replica
    };
    cluster.wait("the follower's fetch", || sent_to(&cluster, "rack2", 0) == 2);
    assert_eq!(sent_to(&cluster, "rack3", 1), 3);
    for rack in ["rack1", "elsewhere", ""] {
        assert_eq!(sent_to(&cluster, rack, 0), -1);
    }
    assert_eq!(values(&cluster.consume(2, (11, "rack2"), 0, 30_000).records), ["a"]);
    assert_eq!(cluster.consume(2, (11, "rack3"), 0, 0).preferred_read_replica, -1);
    cluster.change(|entry| entry.isr = vec![1, 3]);
    assert_eq!(sent_to(&cluster, "rack2", 0), -1);
    cluster.set("replica.selector.class", "");
    assert_eq!(sent_to(&cluster, "rack3", 0), -1);
}

/// The new leader gets each change first, the old leader and the third node get it last, in
/// alternating order. Late nodes continue with the old leader in the meantime, and records that it
/// appends then are lost.
#[test]
fn logs_are_equal_after_leaders_have_changed_under_writes() {
    let mut cluster = Cluster::on_disk(3, &[]);
    cluster.create_topic(&[1, 2, 3], 1);
    let mut acknowledged = Vec::new();
    for round in 0..20 {
        let old = cluster.leader();
        for number in 0..3 {
            let value = format!("{round}.{number}");
            assert_eq!(cluster.produce(old, -1, &[&value]).0, 0);
            acknowledged.push(value);
        }
        let new = old % 3 + 1;
        let third = new % 3 + 1;
        cluster.decide(|entry| entry.lead(new));
        cluster.tell(&[new]);
        for number in 0..=round % 3 {
            assert_eq!(cluster.produce(old, 1, &[&format!("lost {round}.{number}")]).0, 0);
        }
        if round % 2 == 0 {
            // The third node may or may not have the records that are truncated.
            cluster.tell(&[third, old]);
        } else {
            assert_eq!(cluster.produce(new, 1, &[&format!("{round} new")]).0, 0);
            acknowledged.push(format!("{round} new"));
            cluster.tell(&[old, third]);
        }
    }
    let leader = cluster.leader();
    assert_eq!(cluster.produce(leader, -1, &["last"]).0, 0);
    acknowledged.push("last".to_owned());
    cluster.wait_equal(&[1, 2, 3]);
    assert_eq!(values(&cluster.bytes(1)), acknowledged);
    let epochs =
        |node: i32| -> Vec<EpochEntry> { cluster.log(node).expect("an open log").epoch_entries() };
    assert_eq!(epochs(1), epochs(2));
    assert_eq!(epochs(1), epochs(3));
}

#[test]
fn a_follower_below_the_log_start_of_its_leader_starts_again_there() {
    let mut cluster = Cluster::on_disk(2, &[]);
    cluster.create_topic(&[1, 2], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    cluster.wait_equal(&[1, 2]);
    cluster.decide(|entry| entry.isr = vec![1]);
    cluster.stop_and_fence(2);
    for value in ["b", "c", "d"] {
        assert_eq!(cluster.produce(1, -1, &[value]).0, 0);
    }
    cluster.delete_before(1, 3);
    cluster.start(2);
    cluster.wait_equal(&[1, 2]);
    let log = cluster.log(2).expect("an open log");
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (3, 4));
    assert_eq!(values(&cluster.bytes(2)), ["d"]);
    // Its log after that is recovered.
    cluster.stop(2);
    cluster.start(2);
    assert_eq!(cluster.produce(1, -1, &["e"]).0, 0);
    cluster.wait_equal(&[1, 2]);
}

#[test]
fn the_log_start_of_a_follower_follows_that_of_the_leader() {
    let mut cluster = Cluster::on_disk(2, &[]);
    cluster.create_topic(&[1, 2], 1);
    for value in ["a", "b", "c"] {
        assert_eq!(cluster.produce(1, -1, &[value]).0, 0);
    }
    cluster.wait_high_watermark(&[1, 2], 3);
    cluster.delete_before(1, 2);
    let log = cluster.log(2).expect("an open log");
    cluster.wait("the log start", || log.log_start_offset() == 2);
}

#[test]
fn a_follower_ahead_of_an_unclean_leader_is_truncated() {
    let mut cluster = Cluster::on_disk(2, &[]);
    cluster.create_topic(&[1, 2], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    cluster.wait_high_watermark(&[1, 2], 1);
    cluster.decide(|entry| entry.isr = vec![1]);
    cluster.stop_and_fence(2);
    assert_eq!(cluster.produce(1, -1, &["b"]).0, 0);
    cluster.decide(|entry| {
        entry.isr = vec![2];
        entry.lead(2);
    });
    cluster.start(2);
    cluster.tell(&[1]);
    cluster.wait_equal(&[1, 2]);
    assert_eq!(values(&cluster.bytes(1)), ["a"]);
    assert_eq!(cluster.produce(2, 1, &["c"]), (0, 1));
    cluster.wait_equal(&[1, 2]);
}

#[test]
fn another_node_takes_over_when_a_leader_stops() {
    let mut cluster = Cluster::on_disk(3, &[]);
    cluster.create_topic(&[1, 2, 3], 1);
    let mut expected = Vec::new();
    for round in 0..3 {
        let leader = cluster.leader();
        let value = format!("by {leader} in {round}");
        assert_eq!(cluster.produce(leader, -1, &[&value]).0, 0);
        expected.push(value);
        cluster.stop(leader);
        let next = leader % 3 + 1;
        let others: Vec<i32> = (1..=3).filter(|node| *node != leader).collect();
        cluster.decide(|entry| {
            entry.isr.clone_from(&others);
            entry.lead(next);
        });
        cluster.tell(&others);
        let value = format!("by {next} in {round}");
        assert_eq!(cluster.produce(next, -1, &[&value]).0, 0);
        expected.push(value);
        cluster.start(leader);
        cluster.wait_equal(&[1, 2, 3]);
        cluster.change(|entry| entry.isr = vec![1, 2, 3]);
    }
    assert_eq!(values(&cluster.bytes(3)), expected);
}

/// Versions with topic names, and versions with the replica id in another place.
#[test]
fn a_leader_of_an_older_version_is_fetched_from_in_that_version() {
    for newest in [12, 14, 17] {
        let mut cluster = Cluster::in_memory(2, &[]);
        cluster.limit_fetch(newest);
        cluster.create_partitions(&[1, 2], 1, 3);
        for index in [0, 2, 1, 0] {
            assert_eq!(cluster.produce_to(1, index, -1, &["a"], 10_000).0, 0);
        }
    }
}

#[test]
fn a_removed_or_deleted_partition_is_no_longer_fetched() {
    let mut cluster = Cluster::in_memory(2, &[]);
    cluster.create_topic(&[1, 2], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    cluster.wait_equal(&[1, 2]);
    cluster.decide(|entry| {
        entry.replicas = vec![1];
        entry.isr = vec![1];
        entry.lead(1);
    });
    // The leader gets it last, so it would continue to respond.
    cluster.tell(&[2]);
    assert_eq!(cluster.produce(1, 1, &["b"]).0, 0);
    cluster.create_other_topic(&[1, 2], 1);
    assert_eq!(cluster.produce_to_other(1, &["sent after"]).0, 0);
    assert!(cluster.log(2).is_none());
    cluster.delete_topic();
    assert_eq!(cluster.produce_to_other(1, &["and after that"]).0, 0);
}

#[test]
fn a_leader_that_starts_later_is_found() {
    let mut cluster = Cluster::on_disk(2, &[]);
    cluster.stop(1);
    cluster.create_topic_on(&[2], &[1, 2], 1);
    thread::yield_now();
    cluster.start(1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    cluster.wait_equal(&[1, 2]);
}

/// Number of histories; `PYKAFKA_HISTORIES` raises it.
const HISTORIES: u64 = 8;

/// `SplitMix64` (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn of(&mut self, nodes: &[i32]) -> i32 {
        nodes[self.below(nodes.len())]
    }
}

/// A history of three nodes: leaders change, nodes get changes late or stop, and clients write at
/// the same time.
struct History {
    cluster: Cluster,
    random: Random,
    running: Vec<i32>,
    /// The nodes that do not have the last decision.
    late: Vec<i32>,
    acknowledged: Vec<String>,
    strays: usize,
}

impl History {
    fn begin(seed: u64) -> History {
        let mut cluster = Cluster::on_disk(3, &[]);
        cluster.create_topic(&[1, 2, 3], 1);
        let (running, late, random) = (vec![1, 2, 3], Vec::new(), Random(seed));
        let mut history =
            History { cluster, random, running, late, acknowledged: Vec::new(), strays: 0 };
        history.write();
        history
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0..=2 => self.write(),
            3..=5 => self.stray(),
            6 | 7 => self.change_leader(),
            8 => self.tell(),
            _ if self.running.len() == 3 => self.stop(),
            _ => self.start(),
        }
    }

    /// All nodes get the last decision, and the records written after it reach all logs.
    fn write(&mut self) {
        self.cluster.tell(&std::mem::take(&mut self.late));
        let value = self.acknowledged.len().to_string();
        let leader = self.cluster.leader();
        assert_eq!(self.cluster.produce(leader, -1, &[&value]).0, 0);
        self.acknowledged.push(value);
    }

    /// Produces to a random node; a node that believes to be the leader appends it, and it may be
    /// lost.
    fn stray(&mut self) {
        let node = self.random.of(&self.running);
        self.strays += 1;
        self.cluster.produce(node, 1, &[&format!("stray {}", self.strays)]);
    }

    fn change_leader(&mut self) {
        let leader = self.random.of(&self.running);
        self.cluster.decide(|entry| entry.lead(leader));
        self.late.clone_from(&self.running);
        self.tell();
    }

    fn tell(&mut self) {
        if !self.late.is_empty() {
            let index = self.random.below(self.late.len());
            self.cluster.tell(&[self.late.swap_remove(index)]);
        }
    }

    fn stop(&mut self) {
        let node = self.random.of(&self.running);
        self.running.retain(|running| *running != node);
        let leader = self.random.of(&self.running);
        let isr = self.running.clone();
        self.cluster.decide(|entry| {
            entry.isr = isr;
            entry.lead(leader);
        });
        self.cluster.stop_and_fence(node);
        self.late.clear();
    }

    fn start(&mut self) {
        let is_stopped = |node: &i32| !self.running.contains(node);
        let node = (1..=3).find(is_stopped).expect("one has ended");
        self.cluster.start(node);
        self.running = vec![1, 2, 3];
        self.late.clear();
        self.cluster.wait_equal(&[1, 2, 3]);
        self.cluster.change(|entry| entry.isr = vec![1, 2, 3]);
    }

    /// Checks that all acknowledged records are in every log, once and in order.
    fn end(mut self) {
        if self.running.len() < 3 {
            self.start();
        }
        self.write();
        self.cluster.wait_equal(&[1, 2, 3]);
        let values = values(&self.cluster.bytes(1));
        let kept: Vec<_> = values.iter().filter(|value| !value.starts_with("stray")).collect();
        assert_eq!(kept, self.acknowledged.iter().collect::<Vec<_>>());
        let epochs = |node| self.cluster.log(node).expect("an open log").epoch_entries();
        assert_eq!((epochs(1), epochs(2)), (epochs(2), epochs(3)));
    }
}

#[test]
fn nothing_acknowledged_is_lost_in_seeded_histories() {
    let count = std::env::var("PYKAFKA_HISTORIES").map_or(HISTORIES, |text| text.parse().unwrap());
    for seed in 0..count {
        eprintln!("seed {seed}");
        let mut history = History::begin(seed);
        for _ in 0..60 {
            history.step();
        }
        history.end();
    }
}
