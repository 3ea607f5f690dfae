//! The memory for reading a batch that decompresses a hundredfold: a window, not the whole batch.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(unsafe_code, reason = "an allocator that counts")]

mod common;
#[path = "../../fuzz/random.rs"]
mod random;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Bench, LEADER, NOW_MS, append};
use pykafka_log::{AppendOrigin, CompressionType, Log, LogConfig, LookupError};
use pykafka_record::{BatchBuilder, BatchOptions, Compression};
use random::Random;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// One test measures at a time.
static MEASURING: Mutex<()> = Mutex::new(());

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: `System` allocates; the default `alloc_zeroed` calls `alloc`.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: see `alloc`; `pointer` is from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    /// Counts as if no bytes were copied: large allocations are moved by remapping their pages.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        PEAK.fetch_max(HELD.fetch_add(size, Ordering::Relaxed) + size, Ordering::Relaxed);
        // SAFETY: see `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The maximum of the memory that `work` allocated.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}

const INFLATED_BYTES: usize = 64 << 20;
/// Two windows of 4 MiB, because one is copied when it grows, and the buffers for reading a file.
const HELD_BYTES_MAX: usize = 16 << 20;

fn noise(size: usize) -> Vec<u8> {
    Random::new(1).noise(size)
}

/// A batch of one large record and a small one.
fn batch_of(compression: Compression, value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions { compression, ..BatchOptions::default() });
    builder.append(NOW_MS, None, Some(value), &[]).unwrap();
    builder.append(NOW_MS + 1, None, Some(b"last"), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

/// A batch of zeros with some noise, which keeps the ratio below the limit.
fn bomb(compression: Compression) -> Vec<u8> {
    let mut value = noise(100 << 10);
    value.resize(INFLATED_BYTES, 0);
    batch_of(compression, &value)
}

fn bench() -> Bench {
    let config =
        LogConfig { segment_bytes: 64 << 20, max_message_bytes: 32 << 20, ..LogConfig::default() };
    Bench { config, ..Bench::default() }
}

fn log() -> Log {
    bench().open(true).0
}

const CODECS: [Compression; 4] =
    [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

#[test]
fn validation_holds_a_window_of_a_large_batch() {
    let _alone = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let log = log();
    for codec in CODECS {
        let mut bytes = bomb(codec);
        let held = peak_of(|| {
            let validated = log.validate(&mut bytes, AppendOrigin::Client).unwrap();
            assert_eq!((validated.records_count, validated.max_timestamp), (2, NOW_MS + 1));
            assert!(validated.uncompressed_size > INFLATED_BYTES);
        });
        assert!(held <= HELD_BYTES_MAX, "{codec:?}: {held} bytes");
    }
}

/// The new records and their compressed form were in memory together with the old ones, and the
/// size was only checked at the end.
#[test]
fn a_rewrite_holds_no_second_copy_of_a_large_batch() {
    let _alone = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for codec in CODECS {
        let other = if codec == Compression::Lz4 { Compression::Zstd } else { Compression::Lz4 };
        let mut bench = bench();
        bench.config.compression_type = CompressionType::Codec(codec);
        let log = bench.open(true).0;
        let mut bytes = bomb(other);
        let held = peak_of(|| {
            let validated = log.validate(&mut bytes, AppendOrigin::Client).unwrap();
            assert_eq!((validated.records_count, validated.max_timestamp), (2, NOW_MS + 1));
        });
        // Twice, because the buffer for the decompressed bytes grows by doubling.
        assert!(held <= 2 * INFLATED_BYTES + HELD_BYTES_MAX, "{codec:?}: {held} bytes");
    }
}

#[test]
fn look_ups_by_time_hold_a_window_of_a_large_batch() {
    let _alone = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for codec in CODECS {
        let log = log();
        log.append_as_leader(&mut bomb(codec), LEADER).unwrap();
        let held = peak_of(|| {
            let found = log.offset_for_timestamp(NOW_MS + 1, i64::MAX).unwrap().unwrap();
            assert_eq!(found.offset, 1);
            let newest = log.offset_of_max_timestamp().unwrap().unwrap();
            assert_eq!(newest.offset, 1);
        });
        assert!(held <= HELD_BYTES_MAX, "{codec:?}: {held} bytes");
    }
}

const STORED_BYTES: usize = 24 << 20;
/// Memory of a scan of batches, with a margin: a chunk of 128 KiB, another for a CRC, 1 MiB to
/// search for torn batches.
const WALK_BYTES_MAX: usize = 4 << 20;

/// Every look-up had its batch in memory, whatever the size.
#[test]
fn concurrent_look_ups_hold_no_large_stored_batch() {
    let _alone = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for codec in [Compression::None, Compression::Lz4] {
        let log = log();
        log.append_as_leader(&mut batch_of(codec, &noise(STORED_BYTES)), LEADER).unwrap();
        append(&log, 1, NOW_MS + 5);
        let held = peak_of(|| {
            let refused = log.offset_for_timestamp_small(NOW_MS + 1, i64::MAX);
            assert!(matches!(refused, Err(LookupError::Large)), "{refused:?}");
            // The header shows that the batch has no record that late.
            let found = log.offset_for_timestamp_small(NOW_MS + 5, i64::MAX).unwrap().unwrap();
            assert_eq!(found.offset, 2);
            assert_eq!(log.offset_of_max_timestamp_small().unwrap().unwrap().offset, 2);
        });
        assert!(held <= WALK_BYTES_MAX, "{codec:?}: {held} bytes");
        let found = log.offset_for_timestamp(NOW_MS + 1, i64::MAX).unwrap().unwrap();
        assert_eq!(found.offset, 1);
    }
}

#[test]
fn stored_and_decompressed_bytes_of_a_batch_count_together() {
    for (size, is_small) in [(1 << 20, true), (3 << 20, false)] {
        let log = log();
        log.append_as_leader(&mut batch_of(Compression::Lz4, &noise(size)), LEADER).unwrap();
        let found = log.offset_for_timestamp_small(NOW_MS + 1, i64::MAX);
        assert_eq!(found.is_ok(), is_small, "{size}: {found:?}");
    }
}

#[test]
fn recovery_holds_a_chunk_of_a_large_batch() {
    let _alone = MEASURING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, 1, NOW_MS);
    log.append_as_leader(&mut batch_of(Compression::None, &noise(STORED_BYTES)), LEADER).unwrap();
    append(&log, 1, NOW_MS);
    log.flush().unwrap();
    drop(log);
    let held = peak_of(|| {
        let (log, recovery) = bench.open(false);
        assert_eq!((log.log_end_offset(), recovery.truncated_at), (4, None));
    });
    assert!(held <= WALK_BYTES_MAX, "{held} bytes");
}
