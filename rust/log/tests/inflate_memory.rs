//! What is held while a batch is read that inflates a hundredfold: a window, not the batch.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(unsafe_code, reason = "an allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Bench, LEADER, NOW_MS};
use pykafka_log::{AppendOrigin, Log, LogConfig};
use pykafka_record::{BatchBuilder, BatchOptions, Compression};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// One test measures at a time.
static MEASURING: Mutex<()> = Mutex::new(());

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: `System` allocates; `realloc` and `alloc_zeroed` come down to these two.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above; `pointer` is from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The most that `work` held beyond what was held before.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}

const INFLATED_BYTES: usize = 64 << 20;
/// Two windows of 4 MiB, as one grows by being copied, and what reading a file takes.
const HELD_BYTES_MAX: usize = 16 << 20;

/// A batch of one large record and a small one. Noise keeps the ratio below the limit.
fn bomb(compression: Compression) -> Vec<u8> {
    let mut value = vec![0; INFLATED_BYTES];
    let mut state = 1_u32;
    for byte in &mut value[..100 << 10] {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    let mut builder = BatchBuilder::new(BatchOptions { compression, ..BatchOptions::default() });
    builder.append(NOW_MS, None, Some(&value), &[]).unwrap();
    builder.append(NOW_MS + 1, None, Some(b"last"), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

fn log() -> Log {
    let config =
        LogConfig { segment_bytes: 64 << 20, max_message_bytes: 32 << 20, ..LogConfig::default() };
    Bench { config, ..Bench::default() }.open(true).0
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
