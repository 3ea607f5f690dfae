use pykafka_log::Durability;
use pykafka_record::{BatchOptions, LeaderEpoch};
use pykafka_wire::produce::Response;

use super::*;
use crate::control_api::image::PartitionEntry;
use crate::network::outcome::Outcome;
use crate::testing::gate_disk::Op;
use crate::testing::{self, Broker, NODE, batch_with, pending, poll, replicated, replied};

mod pipelining;

const FOLLOWER: i32 = 2;
const HOLDS_MS: u64 = HOLDS_NS / 1_000_000;
const BOTH: [i32; 2] = [NODE, FOLLOWER];
const TOO_FEW: [KafkaError; 2] = [KafkaError::NotEnoughReplicas; 2];

/// A batch of one record of the same producer.
fn in_epoch(epoch: i16, base_sequence: i32) -> Vec<u8> {
    let options = BatchOptions {
        producer_id: ProducerId::new(1),
        producer_epoch: ProducerEpoch::new(epoch),
        base_sequence,
        ..BatchOptions::default()
    };
    batch_with(options, &["a"])
}

fn told(outcome: Outcome) -> Option<KafkaError> {
    let response = replied(outcome);
    let response = Response::decode(9, &response).unwrap();
    let error = KafkaError::from_code(response.responses[0].partitions[0].error_code);
    error.filter(|error| *error != KafkaError::None)
}

/// Produces the batch with this sequence, without waiting for replicas. Returns its error; `None`
/// if it was appended.
fn sent(broker: &Broker, base_sequence: i32) -> Option<KafkaError> {
    sent_on(broker, testing::connection().id, base_sequence)
}

/// Produces with acks=all a batch that is rejected; returns its error.
fn refused(broker: &Broker, base_sequence: i32) -> KafkaError {
    told(broker.produce(9, -1, &in_epoch(0, base_sequence))).unwrap()
}

/// Produces the batch with this sequence on the connection with this id; returns its error.
fn sent_on(broker: &Broker, connection: u64, base_sequence: i32) -> Option<KafkaError> {
    told(broker.produce_on(connection, 9, 1, &in_epoch(0, base_sequence)))
}

/// Checks that the first batch is awaited, even with six batches: a broker remembers the last five
/// of a producer.
fn the_first_is_waited_for(broker: &Broker) {
    for sequence in 1..6 {
        assert_eq!(sent(broker, sequence), Some(KafkaError::NotEnoughReplicas));
    }
    assert_eq!([0, 1, 2, 3, 4, 5].map(|sequence| sent(broker, sequence)), [None; 6]);
}

/// Sets the ISR, with `min.insync.replicas` 2.
fn in_sync(broker: &mut Broker, partition_epoch: i32, isr: &[i32]) {
    let entry = replicated(partition_epoch, &BOTH, isr);
    broker.replicate(entry, &[("min.insync.replicas", "2")]);
}

fn with_too_few() -> Broker {
    let mut broker = Broker::in_memory().in_cluster();
    in_sync(&mut broker, 1, &[NODE]);
    broker
}

/// A broker that has appended the batch with sequence 0 and rejected the one with sequence 1
/// because of too few replicas, which have returned since.
fn with_too_few_for_a_moment() -> Broker {
    let mut broker = with_too_few();
    assert_eq!(sent(&broker, 0), None);
    assert_eq!(refused(&broker, 1), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 2, &BOTH);
    broker
}

#[test]
fn batches_after_one_that_lacked_replicas_get_the_same_error() {
    let broker = with_too_few_for_a_moment();
    assert_eq!([2, 3].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    assert_eq!([1, 2, 3].map(|sequence| sent(&broker, sequence)), [None; 3]);
    assert_eq!(sent(&broker, 9), Some(KafkaError::OutOfOrderSequenceNumber));
}

#[test]
fn batches_after_an_abandoned_one_are_out_of_order_after_a_while() {
    let broker = with_too_few_for_a_moment();
    broker.clock.advance_ms(HOLDS_MS - 1);
    assert_eq!(sent(&broker, 2), Some(KafkaError::NotEnoughReplicas));
    broker.clock.advance_ms(1);
    assert_eq!(sent(&broker, 3), Some(KafkaError::OutOfOrderSequenceNumber));
}

#[test]
fn another_rejection_extends_the_wait_of_later_batches() {
    let mut broker = with_too_few_for_a_moment();
    broker.clock.advance_ms(HOLDS_MS - 1);
    in_sync(&mut broker, 3, &[NODE]);
    assert_eq!(refused(&broker, 1), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 4, &BOTH);
    broker.clock.advance_ms(HOLDS_MS - 1);
    assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
    assert_eq!([1, 2].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn a_rejected_retry_after_a_lost_reply_delays_later_batches() {
    let mut broker = with_too_few();
    assert_eq!(sent(&broker, 0), None);
    assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 2, &BOTH);
    the_first_is_waited_for(&broker);
}

/// Holds for any number of rejected batches.
#[test]
fn an_abandoned_batch_blocks_nothing_after_a_second_try() {
    let mut broker = with_too_few();
    for sequence in 0..2 * REJECTED_MAX as i32 {
        assert_eq!(refused(&broker, sequence), KafkaError::NotEnoughReplicas);
    }
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!(sent(&broker, 100), Some(KafkaError::NotEnoughReplicas));
    assert_eq!(sent(&broker, 100), None);
}

/// The client then resends the batch after it.
#[test]
fn a_client_that_abandoned_a_batch_gets_out_of_order_at_most_once() {
    let broker = with_too_few_for_a_moment();
    assert_eq!([2, 3].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    assert_eq!(sent(&broker, 2), Some(KafkaError::OutOfOrderSequenceNumber));
    assert_eq!(sent(&broker, 4), Some(KafkaError::OutOfOrderSequenceNumber));
    assert_eq!(sent(&broker, 1), None);
}

/// In Apache Kafka, too, the first batch of an unknown producer may have any sequence.
#[test]
fn a_producer_that_abandoned_its_first_batch_starts_with_the_next_one() {
    let mut broker = with_too_few();
    assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!(sent(&broker, 1), Some(KafkaError::NotEnoughReplicas));
    assert_eq!([1, 2].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn the_second_rejected_batch_delays_later_ones_after_the_first_arrived() {
    let mut broker = with_too_few();
    assert_eq!(sent(&broker, 0), None);
    assert_eq!([1, 2].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!(sent(&broker, 1), None);
    assert_eq!(sent(&broker, 3), Some(KafkaError::NotEnoughReplicas));
    assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
    assert_eq!(sent(&broker, 9), Some(KafkaError::OutOfOrderSequenceNumber));
}

/// The first batch arrives while later ones are rejected.
#[test]
fn a_batch_rejected_because_of_an_earlier_one_delays_later_ones_too() {
    let broker = with_too_few_for_a_moment();
    assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
    assert_eq!(sent(&broker, 1), None);
    assert_eq!(refused(&broker, 3), KafkaError::NotEnoughReplicas);
    assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn a_batch_that_was_never_rejected_does_not_show_that_the_first_is_abandoned() {
    let mut broker = with_too_few();
    assert_eq!([0, 1].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!([2, 1].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    assert_eq!([0, 1, 2].map(|sequence| sent(&broker, sequence)), [None; 3]);
}

#[test]
fn a_batch_of_a_closed_connection_does_not_show_that_the_first_is_abandoned() {
    let mut broker = with_too_few();
    assert_eq!([0, 1].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    in_sync(&mut broker, 2, &BOTH);
    let ended = testing::connection().id + 1;
    assert_eq!(sent_on(&broker, ended, 1), Some(KafkaError::NotEnoughReplicas));
    assert_eq!([0, 1].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn a_rejected_batch_of_a_closed_connection_delays_later_ones() {
    let mut broker = with_too_few();
    assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 2, &BOTH);
    let ended = testing::connection().id + 1;
    assert_eq!(sent_on(&broker, ended, 0), None);
    the_first_is_waited_for(&broker);
}

/// A batch that was appended long ago.
#[test]
fn an_out_of_order_batch_of_a_closed_connection_keeps_the_record_of_rejections() {
    let mut broker = with_too_few();
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|sequence| sent(&broker, sequence)), [None; 8]);
    let ended = [1, 2].map(|nth| testing::connection().id + nth);
    let late = told(broker.produce_on(ended[0], 9, -1, &in_epoch(0, 0)));
    assert_eq!(late, Some(KafkaError::NotEnoughReplicas));
    assert_eq!([8, 9].map(|sequence| refused(&broker, sequence)), TOO_FEW);
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!(sent_on(&broker, ended[1], 0), Some(KafkaError::OutOfOrderSequenceNumber));
    assert_eq!(sent(&broker, 10), Some(KafkaError::NotEnoughReplicas));
    assert_eq!([8, 9, 10].map(|sequence| sent(&broker, sequence)), [None; 3]);
}

/// As behind some proxies: its connection never shows that the batches of another one are complete.
#[test]
fn each_batch_of_a_client_that_always_reconnects_is_appended_at_the_second_try() {
    let broker = with_too_few_for_a_moment();
    let mut next = (testing::connection().id + 1)..;
    let mut sent = |sequence| sent_on(&broker, next.next().unwrap(), sequence);
    assert_eq!(sent(1), None);
    for sequence in 2..10 {
        let tries = [sequence; 2].map(&mut sent);
        assert_eq!(tries, [Some(KafkaError::NotEnoughReplicas), None]);
    }
}

/// The batches after the first one need another round.
#[test]
fn a_batch_rejected_on_a_closed_connection_delays_the_next_one_once() {
    let broker = with_too_few_for_a_moment();
    let next = testing::connection().id + 1;
    assert_eq!(sent_on(&broker, next, 1), None);
    assert_eq!(sent_on(&broker, next, 2), Some(KafkaError::NotEnoughReplicas));
    assert_eq!([2, 3].map(|sequence| sent_on(&broker, next, sequence)), [None; 2]);
}

#[test]
fn batches_after_one_that_is_rejected_again_are_retried_once_more() {
    let mut broker = with_too_few_for_a_moment();
    assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 3, &[NODE]);
    assert_eq!(refused(&broker, 1), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 4, &BOTH);
    assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
    assert_eq!([1, 2].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

/// Regression test: the last of them was treated as the first.
#[test]
fn batches_after_an_abandoned_one_stay_in_order_if_any_of_them_was_rejected() {
    let mut broker = with_too_few();
    assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!(refused(&broker, 1), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 3, &[NODE]);
    assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
    in_sync(&mut broker, 4, &BOTH);
    assert_eq!(refused(&broker, 3), KafkaError::NotEnoughReplicas);
    assert_eq!([1, 2, 3].map(|sequence| sent(&broker, sequence)), [None; 3]);
}

#[test]
fn a_rejected_batch_of_an_older_epoch_does_not_replace_a_newer_one() {
    let mut broker = with_too_few();
    let told_of =
        |broker: &Broker, epoch, sequence| told(broker.produce(9, -1, &in_epoch(epoch, sequence)));
    let too_few = Some(KafkaError::NotEnoughReplicas);
    assert_eq!([1, 0].map(|epoch| told_of(&broker, epoch, 0)), [too_few; 2]);
    in_sync(&mut broker, 2, &BOTH);
    assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 1))), too_few);
    assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 0))), None);
}

#[test]
fn the_next_epoch_of_a_producer_waits_for_nothing() {
    let broker = with_too_few_for_a_moment();
    assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 0))), None);
    assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 1))), None);
    let gap = told(broker.produce(9, 1, &in_epoch(1, 5)));
    assert_eq!(gap, Some(KafkaError::OutOfOrderSequenceNumber));
}

/// A log that does not know a producer yet cannot tell that an earlier batch is missing.
#[test]
fn the_first_batches_of_a_producer_stay_in_order_at_a_new_leader() {
    let mut broker = Broker::in_memory().in_cluster();
    let led_elsewhere = replicated(1, &BOTH, &BOTH);
    broker.replicate(PartitionEntry { leader: FOLLOWER, ..led_elsewhere }, &[]);
    assert_eq!(sent(&broker, 0), Some(KafkaError::NotLeaderOrFollower));
    let leader_epoch = LeaderEpoch::new(1);
    broker.replicate(PartitionEntry { leader_epoch, ..replicated(2, &BOTH, &BOTH) }, &[]);
    assert_eq!(sent(&broker, 1), Some(KafkaError::NotLeaderOrFollower));
    assert_eq!([0, 1].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn batches_after_one_that_the_disk_rejected_get_the_same_error() {
    let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
    broker.gate.refuse_at(Op::Write, "/data/t-0");
    assert_eq!(sent(&broker, 0), Some(KafkaError::KafkaStorageError));
    broker.gate.heal();
    assert_eq!(sent(&broker, 1), Some(KafkaError::KafkaStorageError));
    assert_eq!([0, 1, 2].map(|sequence| sent(&broker, sequence)), [None; 3]);
}

#[test]
fn batches_after_one_whose_log_could_not_be_opened_get_the_same_error() {
    let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
    broker.gate.refuse_at(Op::Open, "/data/t-0");
    let error = sent(&broker, 0);
    assert_eq!(error, Some(KafkaError::KafkaStorageError));
    broker.gate.heal();
    assert_eq!(sent(&broker, 1), error);
    assert_eq!([0, 1].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn batches_after_one_that_was_queued_during_a_change_of_the_leader_get_the_same_error() {
    let mut broker = Broker::on_disk(Durability::Os).in_cluster();
    let led_here = replicated(1, &BOTH, &BOTH);
    broker.replicate(led_here.clone(), &[]);
    assert_eq!(sent(&broker, 0), None);
    broker.gate.hold_at(Op::Write, "/data/t-0");
    let written = pending(broker.produce(9, 1, &in_epoch(0, 1)));
    broker.gate.until_waiting(1);
    let queued = pending(broker.produce(9, 1, &in_epoch(0, 2)));
    let led_by = |leader, leader_epoch| PartitionEntry {
        leader,
        leader_epoch: LeaderEpoch::new(leader_epoch),
        partition_epoch: 1 + leader_epoch,
        ..led_here.clone()
    };
    broker.replicate(led_by(FOLLOWER, 1), &[]);
    let not_leader = Some(KafkaError::NotLeaderOrFollower);
    assert_eq!(told(Outcome::Pending(queued)), not_leader);
    broker.replicate(led_by(NODE, 2), &[]);
    broker.gate.open();
    assert_eq!(told(Outcome::Pending(written)), None);
    assert_eq!(sent(&broker, 3), not_leader);
    assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn a_batch_after_one_that_timed_out_in_the_queue_is_rejected() {
    let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
    assert_eq!(sent(&broker, 0), None);
    broker.gate.hold_at(Op::Write, "/data/t-0");
    let written = pending(broker.produce(9, 1, &in_epoch(0, 1)));
    broker.gate.until_waiting(1);
    let mut forgotten = pending(broker.produce(9, 1, &in_epoch(0, 2)));
    let behind = pending(broker.produce(9, 1, &in_epoch(0, 3)));
    assert!(poll(&mut forgotten).is_none());
    drop(forgotten);
    broker.gate.open();
    assert_eq!(told(Outcome::Pending(written)), None);
    assert_eq!(told(Outcome::Pending(behind)), Some(KafkaError::NotEnoughReplicas));
    assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
}

#[test]
fn sequences_wrap() {
    assert!(is_before(i32::MAX, 3) && is_before(2, 3));
    assert!(!is_before(3, i32::MAX) && !is_before(3, 3) && !is_before(3, 2));
}
