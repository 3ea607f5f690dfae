use proptest::prelude::*;

use super::*;

const DAY_MS: i64 = 86_400_000;

/// Snapshots that Apache Kafka 4.2.1 wrote: name, offset, hex.
const GOLDEN: [(&str, i64, &str); 4] = [
    (
        "only markers seen, and a batch",
        127,
        "00010c85d10c0000000300000000000000020007ffffffffffffffffffffffff00000000000001a1fbbbdbb1\
         00000000ffffffffffffffff00000000000000030005ffffffffffffffffffffffff00000000000001a1fbbb\
         db2000000000ffffffffffffffff0000000000000008000000000008000000000000007d00000002000001a1\
         fbbc0a8300000000ffffffffffffffff",
    ),
    (
        "a wrapped sequence's producer in its next epoch",
        17,
        "00013dbeff64000000010000000000001267000400000002000000000000000800000002000001a1fbbc10e6\
         ffffffffffffffffffffffff",
    ),
    (
        "an open transaction",
        16,
        "00012f0cf9320000000200000000000007d1000100000003000000000000000a00000003000001a1fbbf1c5b\
         00000004000000000000000700000000000007d20001ffffffffffffffffffffffff00000000000001a1fbbf\
         1d4d00000004ffffffffffffffff",
    ),
    ("nobody", 0, "000148674bc700000000"),
];

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn batch(producer_epoch: i16, base_sequence: i32, count: i32, first_offset: i64) -> BatchSummary {
    BatchSummary {
        producer_id: NINE,
        producer_epoch: ProducerEpoch::new(producer_epoch),
        base_sequence,
        last_sequence: ((i64::from(base_sequence) + i64::from(count) - 1) % (1 << 31)) as i32,
        first_offset,
        last_offset: first_offset + i64::from(count) - 1,
        max_timestamp: 1000 + first_offset,
        transactional: false,
    }
}

fn transactional(producer_id: i64, sequence: i32, offset: i64) -> BatchSummary {
    let producer_id = ProducerId::new(producer_id);
    BatchSummary { producer_id, transactional: true, ..batch(0, sequence, 1, offset) }
}

const NINE: ProducerId = ProducerId::new(9);
const COMMIT: EndTransactionMarker = EndTransactionMarker { committed: true, coordinator_epoch: 0 };
const ABORT: EndTransactionMarker = EndTransactionMarker { committed: false, coordinator_epoch: 0 };

/// A marker in producer epoch 0.
fn marker(producer_id: i64, marker: EndTransactionMarker, offset: i64) -> AppendedMarker {
    AppendedMarker {
        producer_id: ProducerId::new(producer_id),
        producer_epoch: ProducerEpoch::new(0),
        marker,
        offset,
        timestamp: 5,
    }
}

/// A manager after seven batches of ten records in epoch 3, sequences 0..70.
fn seven_batches() -> ProducerStateManager {
    let mut state = ProducerStateManager::new(DAY_MS);
    for n in 0..7 {
        let next = batch(3, n * 10, 10, i64::from(n) * 10);
        assert_eq!(state.check(&next, AppendOrigin::Client), Ok(Check::Accepted));
        state.update(&next);
    }
    state
}

#[test]
fn the_last_five_batches_are_duplicates_with_their_original_offsets() {
    let state = seven_batches();
    for n in 2..7 {
        let again = batch(3, n * 10, 10, 999);
        let Ok(Check::Duplicate(known)) = state.check(&again, AppendOrigin::Client) else {
            panic!("batch {n} is no duplicate");
        };
        assert_eq!(
            (known.first_offset(), known.last_offset),
            (i64::from(n) * 10, i64::from(n) * 10 + 9)
        );
        assert_eq!(known.timestamp, 1000 + i64::from(n) * 10);
    }
}

#[test]
fn older_partial_and_late_batches_are_out_of_order() {
    let state = seven_batches();
    for (sequence, count) in [(0, 10), (10, 10), (60, 5), (65, 5), (65, 10), (71, 10), (80, 1)] {
        let verdict = state.check(&batch(3, sequence, count, 0), AppendOrigin::Client);
        let Err(ProducerError::OutOfOrderSequence { found, expected, .. }) = verdict else {
            panic!("sequence {sequence} was {verdict:?}");
        };
        assert_eq!((found, expected), (sequence, 70));
    }
}

#[test]
fn a_new_epoch_starts_at_zero_and_fences_the_old_one() {
    let mut state = seven_batches();
    let late = state.check(&batch(4, 70, 1, 0), AppendOrigin::Client);
    assert!(matches!(late, Err(ProducerError::OutOfOrderSequence { expected: 0, .. })));
    state.update(&batch(4, 0, 1, 70));
    let fenced = state.check(&batch(3, 70, 1, 0), AppendOrigin::Client);
    let expected = ProducerError::InvalidProducerEpoch {
        producer_id: NINE,
        found: ProducerEpoch::new(3),
        current: ProducerEpoch::new(4),
    };
    assert_eq!(fenced, Err(expected));
    assert_eq!(state.check(&batch(3, 70, 1, 0), AppendOrigin::Replication), Ok(Check::Accepted));
}

#[test]
fn sequences_wrap_to_zero() {
    let mut state = ProducerStateManager::new(DAY_MS);
    let wrapping = batch(0, i32::MAX - 1, 3, 0);
    assert_eq!(wrapping.last_sequence, 0);
    state.update(&wrapping);
    assert!(matches!(state.check(&wrapping, AppendOrigin::Client), Ok(Check::Duplicate(_))));
    assert_eq!(state.check(&batch(0, 1, 1, 3), AppendOrigin::Client), Ok(Check::Accepted));
    state.update(&batch(0, 1, i32::MAX, 3));
    assert_eq!(state.check(&batch(0, 0, 1, 9), AppendOrigin::Client), Ok(Check::Accepted));
}

#[test]
fn an_unknown_or_expired_producer_may_begin_anywhere() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.update(&batch(0, 500, 5, 0));
    state.expire(1000 + DAY_MS - 1);
    assert!(state.get(NINE).is_some());
    state.expire(1000 + DAY_MS);
    assert!(state.is_empty());
    assert_eq!(state.check(&batch(0, 77, 1, 5), AppendOrigin::Client), Ok(Check::Accepted));
}

#[test]
fn deleting_records_keeps_producer_state() {
    let mut state = seven_batches();
    state.on_log_start_offset_updated(70);
    assert!(matches!(
        state.check(&batch(3, 60, 10, 0), AppendOrigin::Client),
        Ok(Check::Duplicate(_))
    ));
    assert!(state.check(&batch(3, 99, 1, 0), AppendOrigin::Client).is_err());
}

#[test]
fn a_marker_without_data_makes_the_next_batch_begin_at_zero() {
    let mut state = ProducerStateManager::new(DAY_MS);
    let ended = AppendedMarker { producer_epoch: ProducerEpoch::new(2), ..marker(9, COMMIT, 0) };
    assert_eq!(state.update_marker(&ended), None);
    assert!(state.check(&batch(2, 3, 1, 1), AppendOrigin::Client).is_err());
    assert_eq!(state.check(&batch(2, 0, 1, 1), AppendOrigin::Client), Ok(Check::Accepted));
}

#[test]
fn plain_writes_inside_a_transaction_are_refused() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.update(&transactional(9, 0, 0));
    let plain = state.check(&batch(0, 1, 1, 1), AppendOrigin::Client);
    assert_eq!(plain, Err(ProducerError::InvalidTxnState { producer_id: NINE }));
}

#[test]
fn markers_of_an_older_epoch_or_coordinator_are_refused() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.update(&transactional(9, 0, 0));
    let first = ProducerEpoch::new(1);
    state.update_marker(&AppendedMarker {
        producer_epoch: first,
        ..marker(9, EndTransactionMarker { committed: true, coordinator_epoch: 5 }, 1)
    });
    assert!(matches!(
        state.check_marker(NINE, ProducerEpoch::new(0), 5, 1),
        Err(ProducerError::InvalidProducerEpoch { current, .. }) if current == first
    ));
    assert!(matches!(
        state.check_marker(NINE, first, 4, 1),
        Err(ProducerError::TransactionCoordinatorFenced { found: 4, current: 5, .. })
    ));
    assert_eq!(state.check_marker(NINE, first, 5, 1), Ok(()));
}

#[test]
fn the_first_unstable_offset_waits_for_markers_to_be_replicated() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.update(&transactional(1, 0, 10));
    state.update(&transactional(2, 0, 11));
    state.update(&transactional(1, 1, 12));
    assert_eq!(state.first_unstable_offset(), Some(10));
    let first = state.update_marker(&marker(1, ABORT, 13)).unwrap();
    assert_eq!(
        first,
        CompletedTxn {
            producer_id: ProducerId::new(1),
            first_offset: 10,
            last_offset: 13,
            aborted: true
        }
    );
    assert_eq!(state.last_stable_offset_with(&first), 11);
    state.complete(&first);
    assert_eq!(state.first_unstable_offset(), Some(10));
    state.on_high_watermark_updated(13);
    assert_eq!(state.first_unstable_offset(), Some(10));
    state.on_high_watermark_updated(14);
    assert_eq!(state.first_unstable_offset(), Some(11));
    let second = state.update_marker(&marker(2, COMMIT, 14)).unwrap();
    assert_eq!(state.last_stable_offset_with(&second), 15);
    state.complete(&second);
    state.on_high_watermark_updated(15);
    assert_eq!(state.first_unstable_offset(), None);
}

#[test]
fn open_transactions_do_not_expire() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.update(&transactional(9, 0, 0));
    state.expire(i64::MAX);
    assert_eq!(state.first_unstable_offset(), Some(0));
    assert!(state.get(NINE).is_some());
}

#[test]
fn kafkas_snapshots_are_read_and_written_alike() {
    for (name, offset, hex) in GOLDEN {
        let bytes = bytes_of(hex);
        let mut state = ProducerStateManager::new(DAY_MS);
        state.load_snapshot(&bytes, offset, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(state.map_end_offset(), offset);
        assert_eq!(state.snapshot_bytes(), bytes, "{name}");
    }
}

#[test]
fn a_snapshot_restores_the_last_batch_and_open_transactions() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.load_snapshot(&bytes_of(GOLDEN[2].2), 16, 0).unwrap();
    assert_eq!(state.first_unstable_offset(), Some(7));
    let again = BatchSummary {
        producer_id: ProducerId::new(2001),
        transactional: true,
        ..batch(1, 0, 4, 0)
    };
    let Ok(Check::Duplicate(known)) = state.check(&again, AppendOrigin::Client) else {
        panic!("the last batch is not known");
    };
    assert_eq!((known.first_offset(), known.last_offset), (7, 10));
}

#[test]
fn expired_producers_are_not_loaded() {
    let mut state = ProducerStateManager::new(DAY_MS);
    state.load_snapshot(&bytes_of(GOLDEN[2].2), 16, i64::MAX).unwrap();
    let ids: Vec<i64> =
        state.active_producers().iter().map(|entry| entry.producer_id.get()).collect();
    assert_eq!(ids, [2001], "only the one with an open transaction is left");
}

#[test]
fn damaged_snapshots_are_errors_and_change_nothing() {
    let good = bytes_of(GOLDEN[0].2);
    let mut state = seven_batches();
    let before = state.active_producers();
    for size in 0..good.len() {
        assert!(state.load_snapshot(&good[..size], 5, 0).is_err(), "cut at {size}");
    }
    for position in 0..good.len() {
        let mut bad = good.clone();
        bad[position] ^= 0x10;
        assert!(state.load_snapshot(&bad, 5, 0).is_err(), "bit flipped at {position}");
    }
    assert_eq!(state.active_producers(), before);
}

proptest! {
    #[test]
    fn snapshots_round_trip_the_last_batch_of_each_producer(
        steps in prop::collection::vec((0..4i64, 0..3i16, 0..100i32, 1..5i32, any::<bool>()), 0..30)
    ) {
        let mut state = ProducerStateManager::new(i64::MAX);
        let mut offset = 0;
        for (producer_id, epoch, sequence, count, transactional) in steps {
            let producer_id = ProducerId::new(producer_id);
            let next = BatchSummary { producer_id, transactional, ..batch(epoch, sequence, count, offset) };
            state.update(&next);
            offset = next.last_offset + 1;
        }
        let mut loaded = ProducerStateManager::new(i64::MAX);
        loaded.load_snapshot(&state.snapshot_bytes(), offset, 0).unwrap();
        prop_assert_eq!(loaded.snapshot_bytes(), state.snapshot_bytes());
        prop_assert_eq!(loaded.first_unstable_offset(), state.first_unstable_offset());
        for (left, right) in loaded.active_producers().iter().zip(state.active_producers()) {
            prop_assert_eq!(left.batches().last(), right.batches().last());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut state = ProducerStateManager::new(DAY_MS);
        let _ = state.load_snapshot(&bytes, 0, 0);
    }
}
