//! Tests of transactions at the produce handler: when the coordinator is asked, and the outcome of
//! the batch.

use pykafka_record::{BatchOptions, EndTransactionMarker, ProducerEpoch, ProducerId};
use pykafka_wire::fetch;
use pykafka_wire::produce::Response;

use super::*;
use crate::network::outcome::PendingOutcome;
use crate::partition::partition_table::markers::Marker;
use crate::testing::{
    Broker, TOPIC, batch, batch_with, pending, poll, replied, request_of, settled,
};

const PRODUCER: ProducerId = ProducerId::new(9);
/// A version whose clients verify partitions, and one whose clients add them.
const VERSIONS: [i16; 2] = [11, 12];

fn broker() -> Broker {
    let broker = Broker::in_memory().with_topic(3, &[]);
    broker.events();
    broker
}

fn records(epoch: i16, base_sequence: i32) -> Vec<u8> {
    let options = BatchOptions {
        producer_id: PRODUCER,
        producer_epoch: ProducerEpoch::new(epoch),
        base_sequence,
        transactional: true,
        ..BatchOptions::default()
    };
    batch_with(options, &["a"])
}

/// Produces to these partitions of `t` with a transactional id.
fn produce(broker: &Broker, version: i16, partitions: &[(i32, &[u8])]) -> Outcome {
    let partitions: Vec<_> =
        partitions.iter().map(|(index, records)| (*index, Some(*records))).collect();
    let mut request = request_of(-1, &partitions);
    request.transactional_id = Some("tx");
    broker.produce_request(version, &request)
}

fn codes_of(outcome: Outcome, version: i16) -> Vec<i16> {
    let bytes = replied(outcome);
    let response = Response::decode(version, &bytes).unwrap();
    response.responses[0].partitions.iter().map(|partition| partition.error_code).collect()
}

fn questions(broker: &Broker) -> Vec<VerifyTransaction> {
    let questions = broker.events().into_iter().filter_map(|event| match event {
        Event::VerifyTransaction(question) => Some(*question),
        _ => None,
    });
    questions.collect()
}

fn question(broker: &Broker) -> VerifyTransaction {
    let [question] = &questions(broker)[..] else { panic!("there is one question") };
    question.clone()
}

fn held(outcome: Outcome) -> PendingOutcome {
    assert!(matches!(outcome, Outcome::Held(_)), "{outcome:?}");
    let mut held = pending(outcome);
    assert!(poll(&mut held).is_none());
    held
}

/// Starts a transaction in partition 0.
fn begin(broker: &Broker, version: i16, epoch: i16) {
    let waiting = held(produce(broker, version, &[(0, &records(epoch, 0))]));
    broker.ctx.verifications.settle(question(broker).token, vec![0]);
    assert_eq!(codes_of(Outcome::Held(waiting), version), [0]);
}

/// Writes a marker to partition 0 and returns its error code.
fn mark(broker: &Broker, epoch: i16, transaction_version: i16) -> i16 {
    let marker = Marker {
        partition: (TOPIC, 0),
        producer_id: PRODUCER,
        producer_epoch: ProducerEpoch::new(epoch),
        marker: EndTransactionMarker { committed: false, coordinator_epoch: 3 },
        transaction_version,
    };
    broker.ctx.partitions.write_markers(5, &[marker]);
    broker.wait_idle();
    match &broker.events()[..] {
        [Event::MarkersWritten { token: 5, error_codes }] => error_codes[0],
        events => panic!("{events:?}"),
    }
}

#[test]
fn a_batch_that_starts_a_transaction_is_appended_once_its_coordinator_allows_it() {
    for version in VERSIONS {
        let broker = broker();
        let waiting = held(produce(&broker, version, &[(0, &records(0, 0)), (1, &records(0, 0))]));
        let question = question(&broker);
        assert_eq!(&*question.transactional_id, "tx");
        assert_eq!((question.producer_id, question.producer_epoch.get()), (PRODUCER, 0));
        assert_eq!(question.partitions, [(TOPIC, 0), (TOPIC, 1)]);
        assert_eq!(question.add, version == 12);
        assert_eq!(broker.offsets().log_end_offset, 0, "nothing before the response");
        broker.ctx.verifications.settle(question.token, vec![0, 48]);
        assert_eq!(codes_of(Outcome::Held(waiting), version), [0, 48]);
        assert_eq!(broker.offsets().log_end_offset, 1);
        assert_eq!(broker.ctx.purgatory.parked_count(), 0);
    }
}

#[test]
fn an_open_transaction_is_not_verified() {
    for version in VERSIONS {
        let broker = broker();
        begin(&broker, version, 0);
        assert_eq!(codes_of(produce(&broker, version, &[(0, &records(0, 1))]), version), [0]);
        assert!(questions(&broker).is_empty());
    }
}

#[test]
fn only_batches_that_start_a_transaction_wait_for_verification() {
    let broker = broker();
    begin(&broker, 11, 0);
    let (open, plain) = (records(0, 1), batch(&["b"]));
    let request = [(0, &open[..]), (1, &records(0, 0)[..]), (2, &plain[..])];
    let waiting = held(produce(&broker, 11, &request));
    assert_eq!(broker.offsets().log_end_offset, 2);
    let question = question(&broker);
    assert_eq!(question.partitions, [(TOPIC, 1)]);
    broker.ctx.verifications.settle(question.token, vec![49]);
    assert_eq!(codes_of(Outcome::Held(waiting), 11), [0, 49, 0]);
}

#[test]
fn a_marker_written_during_verification_prevents_the_append() {
    for (version, marker_epoch) in [(11, 0), (12, 1)] {
        let broker = broker();
        let waiting = held(produce(&broker, version, &[(0, &records(0, 0))]));
        let question = question(&broker);
        assert_eq!(mark(&broker, marker_epoch, version - 10), 0);
        broker.ctx.verifications.settle(question.token, vec![0]);
        let refused = if version == 12 { 47 } else { 48 };
        assert_eq!(codes_of(Outcome::Held(waiting), version), [refused]);
        let offsets = broker.offsets();
        assert_eq!((offsets.log_end_offset, offsets.last_stable_offset), (1, 1));
    }
}

#[test]
fn the_verification_of_one_transaction_does_not_apply_to_the_next() {
    let broker = broker();
    let late = held(produce(&broker, 11, &[(0, &records(0, 0))]));
    let first = question(&broker);
    assert_eq!(mark(&broker, 0, 1), 0);
    let next = held(produce(&broker, 11, &[(0, &records(0, 0))]));
    let second = question(&broker);
    broker.ctx.verifications.settle(first.token, vec![0]);
    assert_eq!(codes_of(Outcome::Held(late), 11), [48]);
    broker.ctx.verifications.settle(second.token, vec![0]);
    assert_eq!(codes_of(Outcome::Held(next), 11), [0]);
}

/// contract/replication.md#T7.
#[test]
fn a_higher_sequence_is_not_appended_before_the_lowest_one_seen() {
    let broker = broker();
    let first = held(produce(&broker, 11, &[(0, &records(0, 0))]));
    broker.ctx.verifications.settle(question(&broker).token, vec![16]);
    assert_eq!(codes_of(Outcome::Held(first), 11), [19]);
    let second = held(produce(&broker, 11, &[(0, &records(0, 1))]));
    broker.ctx.verifications.settle(question(&broker).token, vec![0]);
    assert_eq!(codes_of(Outcome::Held(second), 11), [45]);
    begin(&broker, 11, 0);
}

/// contract/kafka.md#16.
#[test]
fn a_producer_without_state_starts_at_sequence_0_if_each_transaction_has_a_new_epoch() {
    for (version, code) in [(11, 0), (12, 45)] {
        let broker = broker();
        let waiting = held(produce(&broker, version, &[(0, &records(0, 7))]));
        broker.ctx.verifications.settle(question(&broker).token, vec![0]);
        assert_eq!(codes_of(Outcome::Held(waiting), version), [code]);
    }
}

/// contract/kafka.md#20.
#[test]
fn each_rejection_has_an_error_that_the_version_knows() {
    for (told, expected) in [
        (90, [47, 47, 47]),
        (47, [47, 47, 47]),
        (120, [48, 120, 120]),
        (48, [48, 48, 48]),
        (51, [19, 19, 51]),
        (13, [19, 19, 19]),
        (14, [19, 19, 19]),
        (15, [19, 19, 19]),
        (16, [19, 19, 19]),
        (49, [49, 49, 49]),
        (53, [53, 53, 53]),
        (-1, [-1, -1, -1]),
    ] {
        for (version, expected) in [10, 11, 12].into_iter().zip(expected) {
            let error = KafkaError::from_code(told).unwrap();
            let refused = refusal(error, version).unwrap();
            assert_eq!(refused.error.code(), expected, "{told} in version {version}");
        }
    }
}

#[test]
fn a_coordinator_that_does_not_reply_in_time_is_reported_as_not_enough_replicas() {
    let broker = broker();
    let mut waiting = held(produce(&broker, 11, &[(0, &records(0, 0))]));
    broker.clock.advance_ms(999);
    broker.expire();
    assert!(poll(&mut waiting).is_none());
    broker.clock.advance_ms(1);
    broker.expire();
    assert_eq!(codes_of(Outcome::Held(waiting), 11), [19]);
    assert!(questions(&broker).is_empty(), "the question is withdrawn");
    assert_eq!(broker.offsets().log_end_offset, 0);
}

#[test]
fn a_closed_request_withdraws_its_verification() {
    let broker = broker();
    drop(held(produce(&broker, 11, &[(0, &records(0, 0))])));
    assert!(questions(&broker).is_empty());
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
    let taken = held(produce(&broker, 11, &[(0, &records(0, 0))]));
    let token = question(&broker).token;
    drop(taken);
    broker.ctx.verifications.settle(token, vec![0]);
    assert_eq!(broker.offsets().log_end_offset, 0);
}

#[test]
fn a_stop_completes_pending_verifications() {
    let broker = broker();
    let waiting = held(produce(&broker, 11, &[(0, &records(0, 0))]));
    broker.ctx.network.stopping.store(true, std::sync::atomic::Ordering::Release);
    broker.ctx.verifications.refuse_all();
    assert_eq!(codes_of(Outcome::Held(waiting), 11), [19]);
    assert_eq!(codes_of(produce(&broker, 11, &[(0, &records(0, 0))]), 11), [19]);
}

#[test]
fn batches_of_two_producers_are_rejected_as_a_whole() {
    let broker = broker();
    let outcome = produce(&broker, 11, &[(0, &records(0, 0)), (1, &records(1, 0))]);
    assert_eq!(codes_of(outcome, 11), [49, 49]);
    assert!(questions(&broker).is_empty());
}

#[test]
fn without_verification_only_requests_that_add_partitions_are_verified() {
    let mut broker = broker();
    broker.apply(crate::control_api::image::delta::ImageDelta {
        broker_settings: Some(
            [("transaction.partition.verification.enable".into(), "false".into())].into(),
        ),
        ..Default::default()
    });
    assert_eq!(codes_of(produce(&broker, 11, &[(0, &records(0, 0))]), 11), [0]);
    let waiting = held(produce(&broker, 12, &[(1, &records(0, 0))]));
    broker.ctx.verifications.settle(question(&broker).token, vec![0]);
    assert_eq!(codes_of(Outcome::Held(waiting), 12), [0]);
}

/// KAFKA-19999.
#[test]
fn a_marker_of_the_same_epoch_is_late_while_a_transaction_is_open_and_a_retry_when_none_is() {
    let broker = broker();
    begin(&broker, 12, 0);
    assert_eq!(mark(&broker, 0, 2), 47);
    assert_eq!(mark(&broker, 1, 2), 0);
    assert_eq!(mark(&broker, 1, 2), 0);
    begin(&broker, 12, 1);
    assert_eq!(mark(&broker, 1, 2), 47);
    assert_eq!(mark(&broker, 0, 1), 47);
    assert_eq!(mark(&broker, 1, 1), 0);
}

#[test]
fn marker_results_are_in_order_with_an_error_code_each() {
    let broker = broker();
    begin(&broker, 11, 2);
    let marker = |partition, epoch| Marker {
        partition,
        producer_id: PRODUCER,
        producer_epoch: ProducerEpoch::new(epoch),
        marker: EndTransactionMarker { committed: true, coordinator_epoch: 0 },
        transaction_version: 1,
    };
    let markers = [
        marker((TOPIC, 0), 1),
        marker(([9; 16], 0), 2),
        marker((TOPIC, 0), 2),
        marker((TOPIC, 2), 2),
    ];
    broker.ctx.partitions.write_markers(8, &markers);
    broker.ctx.partitions.write_markers(9, &[]);
    broker.wait_idle();
    let mut written: Vec<_> = broker
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::MarkersWritten { token, error_codes } => Some((token, error_codes)),
            _ => None,
        })
        .collect();
    written.sort();
    assert_eq!(written, [(8, vec![47, 100, 0, 0]), (9, vec![])]);
}

#[test]
fn a_marker_is_written_unchanged_whatever_the_topic_settings() {
    let overrides =
        [("compression.type", "gzip"), ("max.message.bytes", "70"), ("cleanup.policy", "compact")];
    let broker = Broker::in_memory().with_topic(1, &overrides);
    broker.events();
    assert_eq!(mark(&broker, 0, 1), 0);
    assert_eq!(broker.offsets().log_end_offset, 1);
}

/// A long poll for committed records of partition 0.
fn stable_poll(broker: &Broker, bytes_min: i32) -> PendingOutcome {
    let partition = fetch::Partition {
        partition: 0,
        fetch_offset: 0,
        partition_max_bytes: 1 << 20,
        ..fetch::Partition::default()
    };
    let request = fetch::Request {
        max_bytes: 1 << 20,
        min_bytes: bytes_min,
        max_wait_ms: 60_000,
        isolation_level: 1,
        session_epoch: -1,
        topics: vec![fetch::Topic { topic: "t", topic_id: TOPIC, partitions: vec![partition] }],
        ..fetch::Request::default()
    };
    pending(broker.fetch(12, &request))
}

#[test]
fn a_poll_of_stable_records_is_answered_by_the_marker_that_made_them_stable() {
    let broker = broker();
    begin(&broker, 11, 0);
    // More bytes than the marker has; only the marker is appended while the poll waits.
    let mut waiting = stable_poll(&broker, 100);
    assert!(poll(&mut waiting).is_none());
    assert_eq!(mark(&broker, 0, 1), 0);
    let answered = poll(&mut waiting).expect("the marker answers it");
    assert!(matches!(settled(answered), Outcome::Reply(_)));
}

#[test]
fn records_of_an_open_transaction_do_not_count_for_a_poll_of_stable_records() {
    let broker = broker();
    begin(&broker, 11, 0);
    let mut waiting = stable_poll(&broker, 1);
    for sequence in 1..4 {
        let appended = produce(&broker, 11, &[(0, &records(0, sequence))]);
        assert_eq!(codes_of(appended, 11), [0]);
        assert!(poll(&mut waiting).is_none());
    }
    assert_eq!(mark(&broker, 0, 1), 0);
    assert!(poll(&mut waiting).is_some());
}

#[test]
fn an_unopened_log_is_opened_before_the_verification() {
    let broker = Broker::on_disk(pykafka_log::Durability::Os).with_topic(1, &[]);
    let outcome = produce(&broker, 12, &[(0, &records(0, 0))]);
    assert!(matches!(outcome, Outcome::Held(_)));
    broker.wait_idle();
    let mut waiting = pending(outcome);
    let opened = poll(&mut waiting).expect("the log is open");
    let waiting = held(opened);
    broker.ctx.verifications.settle(question(&broker).token, vec![0]);
    assert_eq!(codes_of(Outcome::Held(waiting), 12), [0]);
}
