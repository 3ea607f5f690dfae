//! Brokers that follow each other, on real sockets of 127.0.0.1; the test is the controller (contract/replication.md#11–#24).

mod cluster;
mod common;

use std::thread;

use cluster::{Cluster, REFUSED_FOR_TIME};
use pykafka_log::EpochEntry;
use pykafka_record::{Limits, batches};

/// Values of all records of a log, in order.
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
fn followers_logs_are_the_leaders_byte_for_byte() {
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
    // Another number of tasks: all partitions are given out again.
    cluster.set("num.replica.fetchers", "1");
    for index in 0..40 {
        assert_eq!(cluster.produce_to(1, index, -1, &["b"], 10_000), (0, 1));
    }
}

#[test]
fn an_empty_follower_gets_all_there_is() {
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

/// Each change is heard by the new leader first, the old one and the third node last, in turn, and those that are late go on
/// with the old leader meanwhile: what it takes then is nobody's.
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
            // The third node may have what is given up, or not yet.
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
fn a_follower_behind_the_log_start_of_its_leader_begins_again_there() {
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
    // And what it has then is found again.
    cluster.stop(2);
    cluster.start(2);
    assert_eq!(cluster.produce(1, -1, &["e"]).0, 0);
    cluster.wait_equal(&[1, 2]);
}

#[test]
fn a_followers_log_start_follows_its_leaders() {
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
fn a_follower_that_is_ahead_of_an_unclean_leader_gives_its_end_up() {
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
fn another_node_takes_over_when_a_leader_ends() {
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

/// Versions that name topics, and those that say otherwise who fetches.
#[test]
fn a_leader_of_an_older_version_is_fetched_from_by_its_own() {
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
fn a_partition_that_is_taken_away_or_deleted_is_not_fetched_any_more() {
    let mut cluster = Cluster::in_memory(2, &[]);
    cluster.create_topic(&[1, 2], 1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    cluster.wait_equal(&[1, 2]);
    cluster.decide(|entry| {
        entry.replicas = vec![1];
        entry.isr = vec![1];
        entry.lead(1);
    });
    // The leader hears it last: it would go on to answer.
    cluster.tell(&[2]);
    assert_eq!(cluster.produce(1, 1, &["b"]).0, 0);
    cluster.create_other_topic(&[1, 2], 1);
    assert_eq!(cluster.produce_to_other(1, &["sent after"]).0, 0);
    assert_eq!(values(&cluster.bytes(2)), ["a"]);
    cluster.delete_topic();
    assert_eq!(cluster.produce_to_other(1, &["and after that"]).0, 0);
}

#[test]
fn a_leader_that_is_not_there_yet_is_found_once_it_is() {
    let mut cluster = Cluster::on_disk(2, &[]);
    cluster.stop(1);
    cluster.create_topic_on(&[2], &[1, 2], 1);
    thread::yield_now();
    cluster.start(1);
    assert_eq!(cluster.produce(1, -1, &["a"]).0, 0);
    cluster.wait_equal(&[1, 2]);
}
