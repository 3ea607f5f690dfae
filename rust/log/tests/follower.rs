//! A follower's log equals its leader's responses byte for byte, wherever these were cut.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, NOW_MS, all, batch, batch_offsets};
use proptest::prelude::*;
use pykafka_log::{
    AppendError, AppendOptions, AppendOrigin, Checkpointed, Log, LogConfig, LogOptions, OpenMode,
    Recovery,
};
use pykafka_record::{BatchMut, LeaderEpoch};

/// Number of offsets that the index entries of a segment can represent.
const RANGE: i64 = 1 << 31;

/// A batch as a leader stores it.
fn stored(base_offset: i64, epoch: i32, count: usize, size: usize) -> Vec<u8> {
    let mut bytes = batch(count, size, NOW_MS);
    let mut stamped = BatchMut::new(&mut bytes).unwrap();
    stamped.set_base_offset(base_offset);
    stamped.set_partition_leader_epoch(LeaderEpoch::new(epoch));
    bytes
}

fn bench(segment_bytes: i32) -> Bench {
    let config = LogConfig { segment_bytes, index_interval_bytes: 100, ..LogConfig::default() };
    Bench { config, ..Bench::default() }
}

/// All bytes of a log.
fn content(log: &Log) -> Vec<u8> {
    let (mut bytes, mut offset) = (Vec::new(), log.log_start_offset());
    while offset < log.log_end_offset() {
        let data = log.read(offset, 700, log.log_end_offset(), true).unwrap();
        bytes.extend_from_slice(&data.bytes);
        offset = data.next_offset;
    }
    bytes
}

/// Fetches from `leader`, whose batches have epochs up to `epoch`, in responses that are cut after
/// these numbers of bytes.
fn follow(log: &Log, leader: &[u8], epoch: i32, cuts: &[usize]) {
    let mut cuts = cuts.iter().cycle();
    let mut taken = 0;
    while taken < leader.len() {
        // At least one whole batch, as a leader sends.
        let first = all(&leader[taken..])[0].size();
        let size = (first + cuts.next().unwrap()).min(leader.len() - taken);
        log.append_as_follower(&leader[taken..taken + size], LeaderEpoch::new(epoch)).unwrap();
        let whole: usize = pykafka_record::batches(&leader[taken..taken + size])
            .map_while(Result::ok)
            .map(|batch| batch.size())
            .sum();
        taken += whole;
    }
}

/// The batches of a leader: the gap before each, the increase of its epoch, the number of records,
/// and their size.
fn batches_of_a_leader() -> impl Strategy<Value = Vec<(i64, i32, usize, usize)>> {
    let gap = prop_oneof![8 => Just(0), 2 => 1..50i64, 1 => RANGE - 50..3 * RANGE];
    let step = prop_oneof![6 => Just(0), 1 => 1..3i32];
    prop::collection::vec((gap, step, 1..5usize, 0..200usize), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_follower_equals_its_leader_byte_for_byte(
        batches in batches_of_a_leader(),
        cuts in prop::collection::vec(0..1500usize, 1..20),
        segment_bytes in 500..5000i32,
        clean in any::<bool>(),
    ) {
        let (mut leader, mut offset, mut epoch) = (Vec::new(), 0, 0);
        for (gap, step, count, size) in batches {
            (offset, epoch) = (offset + gap, epoch + step);
            leader.extend_from_slice(&stored(offset, epoch, count, size));
            offset += count as i64;
        }
        let bench = bench(segment_bytes);
        let (log, _) = bench.open(true);
        follow(&log, &leader, epoch, &cuts);
        prop_assert!(content(&log) == leader);
        let batches = batch_offsets(&log, 0);
        let bases: Vec<_> = log.segments().iter().map(|(base, _)| *base).collect();
        prop_assert_eq!(bases[0], 0, "the first segment begins at the log start");
        for (index, base) in bases.iter().enumerate() {
            let is_first_batch = batches.iter().any(|(first, _)| first == base);
            prop_assert!(index == 0 || is_first_batch, "{base} of {bases:?}");
            let next = bases.get(index + 1).copied().unwrap_or(i64::MAX);
            let last = batches.iter().rev().find(|(first, _)| *first < next);
            prop_assert!(last.is_none_or(|(_, last)| last - base < RANGE));
        }
        let synced_end = log.log_end_offset();
        log.close().unwrap();
        // A copy of a compacted log has gaps, also at its start.
        let mut bench = bench;
        bench.config.cleanup_policy.compact = true;
        let after_stop = Checkpointed {
            recovery_point: synced_end,
            log_start_offset: Some(0),
            ..Checkpointed::default()
        };
        for checkpointed in [Checkpointed::default(), after_stop] {
            let options = LogOptions { checkpointed, ..bench.options(clean) };
            let (log, Recovery { truncated_bytes, damage, .. }) = Log::open(options).unwrap();
            prop_assert_eq!((truncated_bytes, damage), (0, None));
            prop_assert_eq!(log.log_start_offset(), 0);
            prop_assert!(content(&log) == leader);
            log.close().unwrap();
        }
    }

    #[test]
    fn a_follower_of_a_log_equals_it(
        sizes in prop::collection::vec((1..5usize, 0..300usize), 1..40),
        cuts in prop::collection::vec(0..3000usize, 1..20),
        (leader_segment_bytes, segment_bytes) in (2000..5000i32, 700..5000i32),
    ) {
        let (leader, _) = bench(leader_segment_bytes).open(true);
        for (n, (count, size)) in sizes.into_iter().enumerate() {
            let leader_epoch = LeaderEpoch::new(n as i32 / 5);
            let options = AppendOptions::new(leader_epoch, AppendOrigin::Client);
            leader.append_as_leader(&mut batch(count, size, NOW_MS + n as i64), options).unwrap();
        }
        let (log, _) = bench(segment_bytes).open(true);
        follow(&log, &content(&leader), 100, &cuts);
        prop_assert!(content(&log) == content(&leader));
        prop_assert_eq!(log.epoch_entries(), leader.epoch_entries());
    }
}

#[test]
fn batch_beyond_the_offsets_of_the_active_segment_starts_a_segment_at_its_offset() {
    for first in [0, 7] {
        let bench = bench(1 << 20);
        let (log, _) = bench.open(true);
        if first > 0 {
            log.append_as_follower(&stored(0, 0, first, 10), LeaderEpoch::ZERO).unwrap();
        }
        let info = log.append_as_follower(&stored(RANGE + 7, 0, 1, 10), LeaderEpoch::ZERO).unwrap();
        assert_eq!((info.first_offset, info.log_end_offset), (RANGE + 7, RANGE + 8));
        let bases: Vec<_> = log.segments().iter().map(|(base, _)| *base).collect();
        assert_eq!(bases, [0, RANGE + 7]);
        log.close().unwrap();
        let (log, recovery) = bench.open(false);
        assert_eq!((recovery.truncated_bytes, recovery.damage), (0, None));
        assert_eq!(
            batch_offsets(&log, log.log_start_offset()).last(),
            Some(&(RANGE + 7, RANGE + 7))
        );
    }
}

#[test]
fn a_partial_batch_at_the_end_of_a_response_is_left_out() {
    let (log, _) = bench(1 << 20).open(true);
    let first = stored(0, 0, 2, 10);
    for cut in [1, 20, 70] {
        let info = log.append_as_follower(&stored(0, 0, 2, 10)[..cut], LeaderEpoch::ZERO).unwrap();
        assert_eq!((info.records_count, info.log_end_offset), (0, 0));
    }
    let response = [&first[..], &stored(2, 0, 1, 100)[..90]].concat();
    assert_eq!(log.append_as_follower(&response, LeaderEpoch::ZERO).unwrap().log_end_offset, 2);
    assert_eq!(content(&log), first);
}

#[test]
fn batches_from_a_later_epoch_on_are_ignored() {
    let (log, _) = bench(1 << 20).open(true);
    let epochs = [(0, 1), (1, 2), (2, 3), (3, 2)];
    let batches = epochs.map(|(offset, epoch)| stored(offset, epoch, 1, 10));
    let info = log.append_as_follower(&batches.concat(), LeaderEpoch::new(2)).unwrap();
    assert_eq!((info.first_offset, info.last_offset, info.log_end_offset), (0, 1, 2));
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch::new(2)));
    assert_eq!(log.append_as_follower(&batches[2], LeaderEpoch::new(2)).unwrap().records_count, 0);
    assert_eq!(log.append_as_follower(&batches[2], LeaderEpoch::new(3)).unwrap().log_end_offset, 3);
}

#[test]
fn response_with_a_corrupt_batch_is_rejected_completely() {
    let (log, _) = bench(1 << 20).open(true);
    let mut corrupt = stored(1, 0, 1, 10);
    *corrupt.last_mut().unwrap() ^= 1;
    let error = log
        .append_as_follower(&[stored(0, 0, 1, 10), corrupt].concat(), LeaderEpoch::ZERO)
        .unwrap_err();
    assert!(matches!(error, AppendError::Corrupt { offset: 1 }));
    assert_eq!(log.log_end_offset(), 0);
}

#[test]
fn an_empty_first_segment_takes_a_later_batch() {
    let bench = bench(1 << 20);
    let (log, _) = bench.open(true);
    log.append_as_follower(&stored(0, 0, 1, 10), LeaderEpoch::ZERO).unwrap();
    log.truncate_fully_and_start_at(RANGE).unwrap();
    log.append_as_follower(&stored(RANGE, 0, 1, 10), LeaderEpoch::ZERO).unwrap();
    log.truncate_to(RANGE).unwrap();
    assert_eq!(log.segments(), [(RANGE, 0)]);
    log.append_as_follower(&stored(RANGE + 5, 1, 1, 10), LeaderEpoch::new(1)).unwrap();
    assert_eq!(log.segments().iter().map(|(base, _)| *base).collect::<Vec<_>>(), [RANGE]);
    log.close().unwrap();
    let (log, recovery) = bench.open(true);
    assert_eq!((recovery.truncated_bytes, recovery.damage), (0, None));
    assert_eq!(log.log_end_offset(), RANGE + 6);
}

/// `DeleteRecords` may move the leader's log start offset into a batch.
#[test]
fn log_that_starts_inside_a_batch_accepts_it() {
    let bench = bench(1 << 20);
    let (log, _) = bench.open(true);
    log.truncate_fully_and_start_at(5).unwrap();
    let bytes = stored(0, 0, 10, 10);
    log.append_as_follower(&bytes, LeaderEpoch::ZERO).unwrap();
    let bounds = |log: &Log| (log.log_start_offset(), log.log_end_offset());
    assert_eq!(bounds(&log), (5, 10));
    assert_eq!(log.segments().iter().map(|(base, _)| *base).collect::<Vec<_>>(), [0]);
    log.close().unwrap();

    let checkpointed =
        Checkpointed { recovery_point: 5, log_start_offset: Some(5), ..Checkpointed::default() };
    let killed = || LogOptions { checkpointed, ..bench.options(false) };
    let (log, recovery) = Log::open(killed()).unwrap();
    assert_eq!((recovery.damage, bounds(&log)), (None, (5, 10)));
    assert!(content(&log) == bytes);
    log.close().unwrap();

    // A crash tears the batch.
    let path = bench.dir.join("00000000000000000000.log");
    bench.disk.open(&path, OpenMode::Write).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
    let (log, recovery) = Log::open(killed()).unwrap();
    assert_eq!((recovery.damage, bounds(&log)), (None, (5, 5)));
    log.append_as_follower(&bytes, LeaderEpoch::ZERO).unwrap();
    assert_eq!(bounds(&log), (5, 10));
}

#[test]
fn a_batch_below_the_log_start_offset_is_refused() {
    let (log, _) = bench(1 << 20).open(true);
    log.truncate_fully_and_start_at(10).unwrap();
    let refused = log.append_as_follower(&stored(0, 0, 10, 10), LeaderEpoch::ZERO);
    assert!(matches!(refused, Err(AppendError::UnexpectedOffset { expected: 10, found: 0 })));
}
