//! Tests of the produce handler on in-memory logs: the rules of the contract.

use std::thread;

use pykafka_log::Durability;
use pykafka_record::{BatchOptions, Compression, LeaderEpoch, ProducerEpoch, ProducerId};
use pykafka_wire::produce::{PartitionResponse, Response};

use crate::control_api::event::Event;
use crate::control_api::event::faults::LogFault;
use crate::control_api::image::delta::ImageDelta;
use crate::kafka_error::KafkaError;
use crate::network::outcome::{Outcome, PendingOutcome};
use crate::partition::partition_table::command::BatchKind;
use crate::testing::gate_disk::Op;
use crate::testing::{
    Broker, TOPIC, batch, batch_with, led_here, pending, poll, replied, request_of, topic,
};

/// Returns the error code, base offset and message of the only partition.
fn outcome_of(outcome: Outcome, version: i16) -> (i16, i64, Option<String>) {
    let bytes = replied(outcome);
    let response = Response::decode(version, &bytes).unwrap();
    let partition: &PartitionResponse<'_> = &response.responses[0].partitions[0];
    (partition.error_code, partition.base_offset, partition.error_message.map(str::to_owned))
}

fn code_of(outcome: Outcome, version: i16) -> i16 {
    outcome_of(outcome, version).0
}

fn broker() -> Broker {
    Broker::in_memory().with_topic(2, &[])
}

#[test]
fn offsets_follow_each_other_for_every_acks() {
    let broker = broker();
    assert_eq!(outcome_of(broker.produce(9, 1, &batch(&["a", "b"])), 9), (0, 0, None));
    assert!(matches!(broker.produce(9, 0, &batch(&["c"])), Outcome::NoReply));
    assert_eq!(outcome_of(broker.produce(9, -1, &batch(&["d"])), 9), (0, 3, None));
}

#[test]
fn every_version_is_answered() {
    let broker = broker();
    for version in 3..=13 {
        let expected = i64::from(version - 3);
        assert_eq!(outcome_of(broker.produce(version, -1, &batch(&["a"])), version).1, expected);
    }
}

/// contract/kafka.md#4.
#[test]
fn acks_0_with_an_error_closes_and_unknown_acks_are_rejected() {
    let broker = broker();
    let mut corrupt = batch(&["a"]);
    corrupt[65] ^= 1;
    assert!(matches!(broker.produce(9, 0, &corrupt), Outcome::Close(_)));
    assert_eq!(code_of(broker.produce(9, 2, &batch(&["a"])), 9), 21);
    assert_eq!(broker.append(&batch(&["a"])), 0, "nothing was appended");
}

/// contract/kafka.md#6.
#[test]
fn unknown_topics_are_rejected_by_name_and_by_id() {
    let broker = Broker::in_memory();
    assert_eq!(code_of(broker.produce(12, -1, &batch(&["a"])), 12), 3);
    assert_eq!(code_of(broker.produce(13, -1, &batch(&["a"])), 13), 100);
    let broker = broker.with_topic(1, &[]);
    let request_to_7 = [batch(&["a"])];
    let request = request_of(-1, &[(7, Some(&request_to_7[0]))]);
    assert_eq!(code_of(broker.produce_request(12, &request), 12), 3);
}

/// contract/kafka.md#6.
#[test]
fn only_one_batch_of_magic_2_is_accepted_per_partition() {
    let broker = broker();
    let one = batch(&["a"]);
    let two = [one.clone(), one.clone()].concat();
    let mut magic_1 = one.clone();
    magic_1[16] = 1;
    let mut magic_3 = one.clone();
    magic_3[16] = 3;
    for (records, code) in [(&two[..], 87), (&magic_1, 87), (&magic_3, 2), (&[], 87)] {
        let (error_code, _, message) = outcome_of(broker.produce(9, -1, records), 9);
        assert_eq!(error_code, code);
        assert!(message.is_some());
    }
    assert_eq!(broker.append(&one), 0);
}

/// contract/kafka.md#6.
#[test]
fn zstd_needs_version_7() {
    let broker = broker();
    let options = BatchOptions { compression: Compression::Zstd, ..BatchOptions::default() };
    let zstd = batch_with(options, &["a"]);
    assert_eq!(code_of(broker.produce(6, -1, &zstd), 6), 76);
    assert_eq!(code_of(broker.produce(7, -1, &zstd), 7), 0);
}

/// contract/kafka.md#58.
#[test]
fn bytes_after_the_batch_are_ignored() {
    let broker = broker();
    let one = batch(&["a"]);
    let and_a_half = [&one[..], &one[..30]].concat();
    assert_eq!(code_of(broker.produce(9, -1, &and_a_half), 9), 0);
}

/// contract/kafka.md#59.
#[test]
fn null_records_are_an_invalid_record() {
    let broker = broker();
    let request = request_of(-1, &[(0, None)]);
    assert_eq!(code_of(broker.produce_request(9, &request), 9), 87);
}

/// contract/kafka.md#61.
#[test]
fn partition_named_twice_is_appended_and_answered_once() {
    let broker = broker();
    let (first, second) = (batch(&["a"]), batch(&["b", "c"]));
    let request = request_of(-1, &[(0, Some(&first)), (0, Some(&second))]);
    let bytes = replied(broker.produce_request(9, &request));
    let response = Response::decode(9, &bytes).unwrap();
    assert_eq!(response.responses[0].partitions.len(), 1);
    assert_eq!(broker.append(&batch(&["d"])), 2);
}

/// contract/kafka.md#61.
#[test]
fn topic_named_twice_is_answered_once_and_one_without_partitions_not_at_all() {
    let broker = broker();
    let (first, second) = (batch(&["a"]), batch(&["b", "c"]));
    let mut request = request_of(-1, &[(0, Some(&first)), (1, Some(&first))]);
    request.topics.extend(request_of(-1, &[(0, Some(&second))]).topics);
    let mut empty = request_of(-1, &[]).topics;
    empty[0].name = "empty";
    request.topics.extend(empty);
    let bytes = replied(broker.produce_request(9, &request));
    let response = Response::decode(9, &bytes).unwrap();
    let told: Vec<Vec<i32>> = (response.responses.iter())
        .map(|topic| topic.partitions.iter().map(|partition| partition.index).collect())
        .collect();
    assert_eq!(told, [[0, 1]]);
    assert_eq!(broker.append(&batch(&["d"])), 2, "the later records of partition 0");
}

#[test]
fn rejections_by_the_log_contain_the_log_start_as_in_kafka() {
    let broker = broker();
    let mut corrupt = batch(&["a"]);
    corrupt[65] ^= 1;
    let mut two_of_one = batch(&["a"]);
    two_of_one[60] = 2;
    let crc = pykafka_record::crc32c(&two_of_one[21..]);
    two_of_one[17..21].copy_from_slice(&crc.to_be_bytes());
    for (records, expected) in [(&corrupt, (2, -1)), (&two_of_one, (87, 0))] {
        let bytes = replied(broker.produce(9, -1, records));
        let response = Response::decode(9, &bytes).unwrap();
        let partition = &response.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.log_start_offset), expected);
    }
}

/// contract/kafka.md#61.
#[test]
fn a_transactional_batch_without_a_transactional_id_is_rejected_and_appends_nothing() {
    let broker = broker();
    let options = BatchOptions {
        producer_id: ProducerId::new(1),
        producer_epoch: ProducerEpoch::new(0),
        base_sequence: 0,
        transactional: true,
        ..BatchOptions::default()
    };
    let transactional = batch_with(options, &["a"]);
    assert_eq!(code_of(broker.produce(9, -1, &transactional), 9), 53);
    assert_eq!(broker.append(&batch(&["b"])), 0);
}

/// contract/kafka.md#7, contract/replication.md#attack-9–#attack-12.
#[test]
fn rejected_batches_do_not_change_the_log() {
    let broker = broker();
    let good = batch(&["aaaa", "bbbb"]);
    let patched = |at: usize, bytes: &[u8]| {
        let mut batch = good.clone();
        batch[at..at + bytes.len()].copy_from_slice(bytes);
        batch
    };
    let resealed = |at: usize, bytes: &[u8]| {
        let mut batch = patched(at, bytes);
        let crc = pykafka_record::crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        batch
    };
    let cases = [
        ("base offset other than 0", patched(7, &[1]), 87),
        ("length below a header", patched(8, &[0, 0, 0, 3]), 2),
        ("wrong crc", patched(17, &[1, 2, 3, 4]), 2),
        ("control batch", resealed(21, &[0, 0x20]), 87),
        ("negative last offset delta", resealed(23, &[0xff, 0xff, 0xff, 0xff]), 87),
        ("count 2^31-1", resealed(57, &[0x7f, 0xff, 0xff, 0xff]), 87),
        ("negative count", resealed(57, &[0x80, 0, 0, 0]), 87),
        ("unknown codec", resealed(21, &[0, 5]), -1),
    ];
    for (what, records, code) in cases {
        assert_eq!(code_of(broker.produce(9, -1, &records), 9), code, "{what}");
    }
    let length_past_the_end = patched(8, &[0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(code_of(broker.produce(9, -1, &length_past_the_end), 9), 87);
    assert_eq!(broker.append(&good), 0);
}

/// contract/kafka.md#8.
#[test]
fn stamped_topics_return_the_stamp() {
    let broker = Broker::in_memory().with_topic(1, &[("message.timestamp.type", "LogAppendTime")]);
    let bytes = replied(broker.produce(9, -1, &batch(&["a"])));
    let response = Response::decode(9, &bytes).unwrap();
    let stamp = response.responses[0].partitions[0].log_append_time_ms;
    assert_eq!(stamp, crate::testing::START_MS);
}

/// contract/kafka.md#10.
#[test]
fn record_errors_name_the_records() {
    let broker = Broker::in_memory().with_topic(1, &[("message.timestamp.after.max.ms", "5")]);
    broker.clock.advance_ms(0);
    let mut builder = pykafka_record::BatchBuilder::new(BatchOptions::default());
    for timestamp in [crate::testing::START_MS, crate::testing::START_MS + 1_000] {
        builder.append(timestamp, None, Some(b"v"), &[]).unwrap();
    }
    let mut records = Vec::new();
    builder.build(&mut records).unwrap();
    let bytes = replied(broker.produce(9, -1, &records));
    let response = Response::decode(9, &bytes).unwrap();
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, 32);
    assert_eq!(partition.record_errors.len(), 1);
    assert_eq!(partition.record_errors[0].batch_index, 1);
    assert!(partition.error_message.is_some());
}

/// contract/kafka.md#10.
#[test]
fn too_large_batches_are_rejected() {
    let broker = Broker::in_memory().with_topic(1, &[("max.message.bytes", "100")]);
    let large = "x".repeat(200);
    assert_eq!(code_of(broker.produce(9, -1, &batch(&[&large])), 9), 10);
}

#[test]
fn too_large_records_of_compressed_batches_are_rejected() {
    let broker = Broker::in_memory().with_topic(1, &[("max.decompressed.message.bytes", "100")]);
    let large = "x".repeat(200);
    let options = BatchOptions { compression: Compression::Lz4, ..BatchOptions::default() };
    assert_eq!(code_of(broker.produce(9, -1, &batch_with(options, &[&large])), 9), 87);
    assert_eq!(code_of(broker.produce(9, -1, &batch(&[&large])), 9), 0);
}

/// contract/kafka.md#11.
#[test]
fn internal_topics_accept_only_the_admin_client() {
    let mut broker = Broker::in_memory();
    let mut internal = topic("t", TOPIC, 1, &[]);
    internal.internal = true;
    broker.apply(ImageDelta { topics: vec![internal], ..ImageDelta::default() });
    let records = batch(&["a"]);
    let request = request_of(-1, &[(0, Some(&records))]);
    assert_eq!(code_of(broker.produce_request(9, &request), 9), 17);
    assert_eq!(code_of(broker.produce_as("__admin_client", 9, &request), 9), 0);
}

/// contract/kafka.md#13.
#[test]
fn acks_all_needs_min_insync_replicas_before_the_append() {
    let mut broker = Broker::in_memory();
    let mut lonely = topic("t", TOPIC, 1, &[("min.insync.replicas", "2")]);
    lonely.partitions[0].replicas = vec![1, 2];
    broker.apply(ImageDelta { topics: vec![lonely], ..ImageDelta::default() });
    assert_eq!(code_of(broker.produce(9, -1, &batch(&["a"])), 9), 19);
    assert_eq!(outcome_of(broker.produce(9, 1, &batch(&["a"])), 9), (0, 0, None));
    let alone = Broker::in_memory().with_topic(1, &[("min.insync.replicas", "2")]);
    assert_eq!(alone.append(&batch(&["a"])), 0, "one replica cannot be asked for two");
}

/// contract/kafka.md#15, #60.
#[test]
fn duplicate_returns_the_original_offset() {
    let broker = broker();
    let options = BatchOptions {
        producer_id: ProducerId::new(4),
        producer_epoch: ProducerEpoch::new(0),
        base_sequence: 0,
        ..BatchOptions::default()
    };
    let first = batch_with(options, &["a"]);
    assert_eq!(broker.append(&first), 0);
    assert_eq!(broker.append(&first), 0);
    let gap = batch_with(BatchOptions { base_sequence: 5, ..options }, &["b"]);
    assert_eq!(code_of(broker.produce(9, -1, &gap), 9), 45);
    let next = batch_with(BatchOptions { base_sequence: 1, ..options }, &["b"]);
    assert_eq!(broker.append(&next), 1);
}

/// A broker that is not the leader of its partition: node 2 is.
fn not_leading(replicas: &[i32]) -> Broker {
    let mut broker = Broker::in_memory();
    let mut moved = topic("t", TOPIC, 1, &[]);
    moved.partitions[0].leader = 2;
    moved.partitions[0].replicas = replicas.to_vec();
    moved.partitions[0].isr = replicas.to_vec();
    broker.apply(ImageDelta { topics: vec![moved], ..ImageDelta::default() });
    broker
}

/// contract/kafka.md#6.
#[test]
fn an_invalid_batch_is_reported_before_a_wrong_leader() {
    for replicas in [&[2, 1][..], &[2]] {
        let broker = not_leading(replicas);
        assert_eq!(code_of(broker.produce(9, -1, &[]), 9), 87);
        assert_eq!(code_of(broker.produce(9, -1, &batch(&["a"])), 9), 6);
    }
}

/// contract/kafka.md#14.
#[test]
fn wrong_leader_error_contains_the_right_leader() {
    let broker = not_leading(&[2, 1]);
    let bytes = replied(broker.produce(10, -1, &batch(&["a"])));
    let response = Response::decode(10, &bytes).unwrap();
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, KafkaError::NotLeaderOrFollower.code());
    assert_eq!(partition.current_leader.leader_id, 2);
}

#[test]
fn fsync_mode_acknowledges_only_records_of_a_finished_sync() {
    let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    broker.gate.hold();
    let mut first = pending(broker.produce(9, 1, &batch(&["a"])));
    broker.gate.until_waiting(1);
    let mut second = pending(broker.produce(9, -1, &batch(&["b"])));
    assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
    assert_eq!(broker.offsets().high_watermark, 1);
    broker.gate.open();
    assert_eq!(outcome_of(block_on(first), 9), (0, 1, None));
    assert_eq!(outcome_of(block_on(second), 9), (0, 2, None));
    assert_eq!(broker.offsets().high_watermark, 3);
}

#[test]
fn group_commit_syncs_once_for_all_appends_during_a_sync() {
    let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    broker.gate.hold();
    let before = broker.gate.synced();
    let first = pending(broker.produce(9, 1, &batch(&["0"])));
    broker.gate.until_waiting(1);
    let rest: Vec<_> = (0..20).map(|_| pending(broker.produce(9, 1, &batch(&["n"])))).collect();
    // An append that finds the log locked is queued; another thread writes it.
    while broker.offsets().log_end_offset < 22 {
        thread::yield_now();
    }
    broker.gate.open();
    block_on(first);
    for future in rest {
        drop(block_on(future));
    }
    assert_eq!(broker.gate.synced() - before, 2);
}

#[test]
fn failed_sync_fails_waiting_and_later_produces() {
    let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    broker.gate.fail();
    let outcome = broker.produce(9, -1, &batch(&["a"]));
    let outcome = match outcome {
        Outcome::Pending(future) => block_on(future),
        done => done,
    };
    assert_eq!(code_of(outcome, 9), 56);
    assert_eq!(code_of(broker.produce(9, 1, &batch(&["b"])), 9), 56);
    assert_eq!(broker.faults(), [vec![LogFault::Offline]]);
}

/// A broker whose partition has a second replica, which does not fetch.
fn replicated(durability: Durability) -> Broker {
    let mut broker = Broker::on_disk(durability).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    let mut replicated = topic("t", TOPIC, 1, &[]);
    replicated.partitions[0] = led_here(0, 0, 1);
    replicated.partitions[0].replicas = vec![1, 2];
    replicated.partitions[0].isr = vec![1, 2];
    broker.apply(ImageDelta { topics: vec![replicated], ..ImageDelta::default() });
    broker
}

fn is_unanswered_after(broker: &Broker, ms: u64, waiting: &mut PendingOutcome) -> bool {
    broker.clock.advance_ms(ms);
    broker.expire();
    poll(waiting).is_none()
}

#[test]
fn replicas_that_do_not_follow_in_time_are_request_timed_out() {
    let broker = replicated(Durability::Os);
    let mut waiting = pending(broker.produce(9, -1, &batch(&["a"])));
    broker.wait_idle();
    assert!(is_unanswered_after(&broker, 0, &mut waiting));
    assert!(is_unanswered_after(&broker, 999, &mut waiting));
    broker.clock.advance_ms(1);
    broker.expire();
    assert_eq!(code_of(Outcome::Pending(waiting), 9), 7);
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
}

#[test]
fn acks_all_that_is_synced_after_the_timeout_is_acknowledged() {
    let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    broker.gate.hold();
    let mut waiting = pending(broker.produce(9, -1, &batch(&["a"])));
    broker.gate.until_waiting(1); // the batch is written, but not synced
    assert!(is_unanswered_after(&broker, 0, &mut waiting));
    assert!(is_unanswered_after(&broker, 1_000_000, &mut waiting));
    broker.gate.open();
    assert_eq!(outcome_of(Outcome::Pending(waiting), 9), (0, 1, None));
}

#[test]
fn the_replication_timeout_starts_when_the_leader_has_written_and_synced() {
    for (durability, op) in [(Durability::Os, Op::Write), (Durability::Fsync, Op::Sync)] {
        let broker = replicated(durability);
        broker.gate.hold_at(op, "/data/t-0");
        let mut waiting = pending(broker.produce(9, -1, &batch(&["a"])));
        broker.gate.until_waiting(1);
        assert!(is_unanswered_after(&broker, 1_000_000, &mut waiting), "{durability:?}");
        broker.gate.open();
        broker.wait_idle();
        assert!(is_unanswered_after(&broker, 0, &mut waiting), "{durability:?}");
        assert!(is_unanswered_after(&broker, 999, &mut waiting), "{durability:?}");
        broker.clock.advance_ms(1);
        broker.expire();
        assert_eq!(code_of(Outcome::Pending(waiting), 9), 7, "{durability:?}");
    }
}

#[test]
fn the_replication_timeout_starts_with_the_last_partition_even_if_it_has_none() {
    let mut broker = Broker::on_disk(Durability::Os).with_topic(2, &[]);
    let mut replicated = topic("t", TOPIC, 2, &[]);
    replicated.partitions[0] = led_here(0, 0, 1);
    replicated.partitions[0].replicas = vec![1, 2];
    replicated.partitions[0].isr = vec![1, 2];
    broker.apply(ImageDelta { topics: vec![replicated], ..ImageDelta::default() });
    broker.gate.hold_at(Op::Write, "/data/t-1");
    let one = batch(&["a"]);
    let request = request_of(-1, &[(0, Some(&one)), (1, Some(&one))]);
    let mut waiting = pending(broker.produce_request(9, &request));
    broker.gate.until_waiting(1);
    assert!(is_unanswered_after(&broker, 1_000_000, &mut waiting));
    broker.gate.open();
    broker.wait_idle();
    assert!(is_unanswered_after(&broker, 0, &mut waiting));
    broker.clock.advance_ms(1_000);
    broker.expire();
    let bytes = replied(Outcome::Pending(waiting));
    let response = Response::decode(9, &bytes).unwrap();
    let codes: Vec<i16> =
        response.responses[0].partitions.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [7, 0]);
}

#[test]
fn only_acks_all_has_a_timeout() {
    let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    broker.gate.hold();
    let mut waiting = pending(broker.produce(9, 1, &batch(&["a"])));
    assert!(poll(&mut waiting).is_none());
    broker.clock.advance_ms(1_000_000);
    broker.expire();
    assert!(poll(&mut waiting).is_none(), "Kafka writes before it begins to wait");
    broker.gate.open();
    assert_eq!(code_of(Outcome::Pending(waiting), 9), 0);
}

#[test]
fn an_append_that_waits_for_the_disk_does_not_time_out_and_then_succeed() {
    for acks in [-1, 1] {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        broker.append_waiting(&batch(&["warm"]));
        broker.gate.hold_at(Op::Write, "/data/t-0");
        let mut waiting = pending(broker.produce(9, acks, &batch(&["a"])));
        broker.gate.until_waiting(1);
        let mut behind = pending(broker.produce(9, acks, &batch(&["b"])));
        broker.clock.advance_ms(1_000_000);
        broker.expire();
        assert!(poll(&mut waiting).is_none() && poll(&mut behind).is_none());
        broker.gate.open();
        assert_eq!(code_of(Outcome::Pending(waiting), 9), 0);
        assert_eq!(code_of(Outcome::Pending(behind), 9), 0);
        assert_eq!(broker.offsets().high_watermark, 3);
    }
}

#[test]
fn a_topic_whose_log_failed_can_be_deleted_and_created_again() {
    for durability in [Durability::Os, Durability::Fsync] {
        let mut broker = Broker::on_disk(durability).with_topic(1, &[]);
        broker.append_waiting(&batch(&["a"]));
        for op in [Op::Write, Op::Sync] {
            broker.gate.fail_at(op, "/data/t-0");
        }
        let large = "v".repeat(100_000);
        assert_eq!(code_of(broker.produce(9, -1, &batch(&[&large])), 9), 56);
        assert_eq!(code_of(broker.produce(9, -1, &batch(&["b"])), 9), 56, "offline");
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        assert_eq!(code_of(broker.produce(9, -1, &batch(&["c"])), 9), 3);
        broker.gate.heal();
        let again = topic("t", [8; 16], 1, &[]);
        broker.apply(ImageDelta { topics: vec![again], ..ImageDelta::default() });
        assert_eq!(code_of(broker.produce(9, -1, &batch(&["d"])), 9), 0);
        let again = broker.ctx.partitions.get(&[8; 16], 0).unwrap().opened_log().unwrap();
        assert_eq!(again.log_end_offset(), 1, "nothing of its predecessor");
    }
}

#[test]
fn deleted_topic_and_lost_leadership_complete_waiting_produces() {
    for (deleted, version, code) in [(true, 9, 3), (true, 13, 100), (false, 9, 6)] {
        let mut broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["warm"]));
        broker.gate.hold();
        let waiting = pending(broker.produce(version, -1, &batch(&["a"])));
        let mut moved = topic("t", TOPIC, 1, &[]);
        moved.partitions[0].leader = 2;
        moved.partitions[0].leader_epoch = LeaderEpoch::new(1);
        moved.partitions[0].partition_epoch = 1;
        broker.apply(if deleted {
            ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() }
        } else {
            ImageDelta { topics: vec![moved], ..ImageDelta::default() }
        });
        assert_eq!(code_of(block_on(waiting), version), code);
        broker.gate.open();
    }
}

#[test]
fn closed_connection_leaves_no_parked_produce() {
    let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
    broker.append_waiting(&batch(&["warm"]));
    broker.gate.hold();
    drop(pending(broker.produce(9, -1, &batch(&["a"]))));
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
    broker.gate.open();
}

#[test]
fn token_of_a_control_append_completes_once() {
    let broker = broker();
    broker.events();
    let records = [(None, Some(bytes::Bytes::from_static(b"v")))];
    broker.ctx.partitions.append(
        5,
        &(TOPIC, 0),
        LeaderEpoch::from_wire(0),
        &records,
        BatchKind::Data,
    );
    broker.ctx.partitions.append(
        6,
        &(TOPIC, 0),
        LeaderEpoch::from_wire(9),
        &records,
        BatchKind::Data,
    );
    broker.ctx.partitions.append(
        7,
        &([9; 16], 0),
        LeaderEpoch::from_wire(0),
        &records,
        BatchKind::Data,
    );
    let completions: Vec<(u64, i16, i64)> = (broker.events().iter())
        .filter_map(|event| match event {
            Event::Appended { token, error_code, offset } => Some((*token, *error_code, *offset)),
            _ => None,
        })
        .collect();
    assert_eq!(completions, [(5, 0, 0), (6, 75, -1), (7, 100, -1)]);
}

fn block_on(future: PendingOutcome) -> Outcome {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
