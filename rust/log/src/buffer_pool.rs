//! Reused read buffers, so that a fetch neither allocates nor clears a megabyte, and a limit on the
//! memory for decompressed batches.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_forks::{Condvar, Mutex};
use pykafka_record::Limits;

use crate::log::append::validate::{Scratch, ValidateError};

/// Smaller buffers are not kept.
const KEPT_BYTES_MIN: usize = 16 << 10;

/// Decompressed size up to which batches may be processed concurrently: four times the size of a
/// batch that producers send by default. It is also the window through which a larger batch is
/// read: LZ4 blocks are not larger.
const SMALL_BYTES_MAX: usize = 4 << 20;

/// A bounded pool of initialised buffers, and of the memory that validation needs.
#[derive(Debug)]
pub struct BufferPool {
    free: Mutex<Free>,
    scratches: Mutex<Scratches>,
    returned: Condvar,
    /// Used by look-ups only: appends do not wait for them, however many there are.
    stored: Mutex<Scratch>,
    /// Held while a large batch is decompressed.
    large: Mutex<()>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Free {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// Buffers for the validation of batches, allocated when they are needed.
#[derive(Debug)]
struct Scratches {
    kept: Vec<Scratch>,
    /// Number of buffers that may still be lent; each may become as large as [`SMALL_BYTES_MAX`].
    left: usize,
}

/// A scratch that returns to the pool when it is dropped.
struct Lent<'a> {
    pool: &'a BufferPool,
    scratch: Scratch,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.scratch.shrink();
        let mut scratches = self.pool.scratches.lock();
        scratches.kept.push(std::mem::take(&mut self.scratch));
        scratches.left += 1;
        drop(scratches);
        self.pool.returned.notify_one();
    }
}

impl BufferPool {
    /// A pool that keeps at most `bytes_max` of free buffers, and in which batches decompress to at
    /// most `inflated_bytes_max` together.
    ///
    /// One batch at a time may exceed that limit: a batch larger than [`SMALL_BYTES_MAX`] whose
    /// codec needs more than this at once, or that is rewritten, or that is read from a log.
    pub fn new(bytes_max: usize, inflated_bytes_max: usize) -> BufferPool {
        // One share is the window of a large batch, another is for look-ups.
        let left = (inflated_bytes_max / SMALL_BYTES_MAX).saturating_sub(2).max(1);
        BufferPool {
            free: Mutex::default(),
            scratches: Mutex::new(Scratches { kept: Vec::new(), left }),
            returned: Condvar::new(),
            stored: Mutex::default(),
            large: Mutex::default(),
            bytes_max,
        }
    }

    /// Calls `work` with a scratch of the pool. Blocks while all of them are in use, which is never
    /// long.
    ///
    /// Returns `None` for a batch that decompresses to more than [`SMALL_BYTES_MAX`]: the caller
    /// starts again with [`BufferPool::inflate_large`].
    pub(crate) fn inflate_small<T>(
        &self,
        limits: Limits,
        work: impl FnOnce(Limits, &mut Scratch) -> Result<T, ValidateError>,
    ) -> Result<Option<T>, ValidateError> {
        inflate_within(SMALL_BYTES_MAX, limits, |small| work(small, &mut self.lend().scratch))
    }

    /// Does the same without blocking. Returns `None` for a batch that decompresses to more than
    /// `bytes_max`, or while all scratches are in use.
    pub(crate) fn inflate_briefly<T>(
        &self,
        limits: Limits,
        bytes_max: usize,
        work: impl FnOnce(Limits, &mut Scratch) -> Result<T, ValidateError>,
    ) -> Result<Option<T>, ValidateError> {
        let Some(mut lent) = self.try_lend() else { return Ok(None) };
        inflate_within(bytes_max, limits, |brief| work(brief, &mut lent.scratch))
    }

    /// Does the same as [`BufferPool::inflate_small`] for a look-up in a stored batch, whose
    /// `bytes_to_read` stored bytes `work` reads into its scratch and which therefore count too.
    /// Only one look-up decompresses at a time.
    pub(crate) fn inflate_small_stored<T>(
        &self,
        limits: Limits,
        bytes_to_read: usize,
        work: impl FnOnce(Limits, &mut Scratch) -> Result<T, ValidateError>,
    ) -> Result<Option<T>, ValidateError> {
        let Some(room) = SMALL_BYTES_MAX.checked_sub(bytes_to_read) else { return Ok(None) };
        inflate_within(room, limits, |small| {
            let mut scratch = self.stored.lock();
            let result = work(small, &mut scratch);
            scratch.shrink();
            result
        })
    }

    /// Decompresses a batch to as much as `limits` allow: through a window, or as a whole if its
    /// codec needs that.
    ///
    /// Only one thread at a time runs this; a second caller blocks. Callers that must not block
    /// must not run two of these calls concurrently.
    pub(crate) fn inflate_large<T>(
        &self,
        limits: Limits,
        mut work: impl FnMut(Limits, &mut Scratch) -> Result<T, ValidateError>,
    ) -> Result<T, ValidateError> {
        let _alone = self.large.lock();
        // This scratch is dropped before the second one is allocated.
        let through_a_window = work(limits, &mut Scratch::new(SMALL_BYTES_MAX));
        match through_a_window {
            Err(ValidateError::DecompressedTooLarge(error)) if error.needs_larger_window() => {
                let bytes_max = limits.bytes_max.min(Limits::default().bytes_max);
                work(Limits { bytes_max, ..limits }, &mut Scratch::new(usize::MAX))
            }
            result => result,
        }
    }

    fn lend(&self) -> Lent<'_> {
        let mut scratches = self.scratches.lock();
        scratches = self.returned.wait_while(scratches, |scratches| scratches.left == 0);
        self.lent(&mut scratches)
    }

    fn try_lend(&self) -> Option<Lent<'_>> {
        let mut scratches = self.scratches.lock();
        (scratches.left > 0).then(|| self.lent(&mut scratches))
    }

    fn lent(&self, scratches: &mut Scratches) -> Lent<'_> {
        scratches.left -= 1;
        Lent { pool: self, scratch: scratches.kept.pop().unwrap_or_default() }
    }

    /// A buffer of at least `size` initialised bytes, whose content is arbitrary.
    pub(crate) fn take(self: &Arc<Self>, size: usize) -> PooledBuffer {
        let bytes = self.take_free(size).unwrap_or_else(|| vec![0; size.next_power_of_two()]);
        PooledBuffer { bytes, size, pool: self.clone() }
    }

    /// The smallest free buffer that is large enough, but less than about four times as large as
    /// needed.
    fn take_free(&self, size: usize) -> Option<Vec<u8>> {
        let mut free = self.free.lock();
        let fits = |buffer: &&Vec<u8>| buffer.len() >= size && buffer.len() / 4 <= size;
        let smallest = free.buffers.iter().filter(fits).map(Vec::len).min()?;
        let index = free.buffers.iter().position(|buffer| buffer.len() == smallest)?;
        free.bytes -= smallest;
        Some(free.buffers.swap_remove(index))
    }

    fn give_back(&self, buffer: Vec<u8>) {
        let mut free = self.free.lock();
        if buffer.len() >= KEPT_BYTES_MIN && free.bytes + buffer.len() <= self.bytes_max {
            free.bytes += buffer.len();
            free.buffers.push(buffer);
        }
    }
}

fn inflate_within<T>(
    bytes_max: usize,
    limits: Limits,
    work: impl FnOnce(Limits) -> Result<T, ValidateError>,
) -> Result<Option<T>, ValidateError> {
    let small = Limits { bytes_max: limits.bytes_max.min(bytes_max), ..limits };
    match work(small) {
        Err(ValidateError::DecompressedTooLarge(_)) if small != limits => Ok(None),
        result => result.map(Some),
    }
}

impl Default for BufferPool {
    fn default() -> Self {
        BufferPool::new(32 << 20, 64 << 20)
    }
}

/// A buffer that returns to its pool when dropped.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    bytes: Vec<u8>,
    size: usize,
    pool: Arc<BufferPool>,
}

impl PooledBuffer {
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.size]
    }

    pub(crate) fn truncate(&mut self, size: usize) {
        self.size = self.size.min(size);
    }

    /// The bytes, shared; the buffer returns to the pool with the last of them.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use pykafka_record::{BatchBuilder, BatchOptions};

    use super::*;
    use crate::clock::ManualClock;
    use crate::disk::MemoryDisk;
    use crate::log::Log;
    use crate::log::producer_state::AppendOrigin;
    use crate::log::types::{Checkpointed, LogOptions, OnDamage};

    #[test]
    fn buffer_returns_with_the_last_of_its_bytes_and_is_reused() {
        let pool = Arc::new(BufferPool::new(1 << 20, 0));
        let bytes = pool.take(100_000).into_bytes();
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(pool.free.lock().bytes, 0);
        drop(slice);
        assert_eq!(pool.free.lock().bytes, 131_072);
        let again = pool.take(120_000);
        assert_eq!((again.as_ref().len(), pool.free.lock().bytes), (120_000, 0));
    }

    #[test]
    fn concurrent_decompression_is_limited_by_memory() {
        let pool = BufferPool::new(0, 4 * SMALL_BYTES_MAX);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let validate = || {
            let _ = pool.inflate_small(Limits::default(), |_, _| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            });
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..200).for_each(|_| validate()));
            }
        });
        assert!(most.into_inner() <= 2);
    }

    #[test]
    fn brief_decompression_does_not_wait_for_a_buffer() {
        let pool = BufferPool::new(0, 0);
        let briefly = || pool.inflate_briefly(Limits::default(), 1, |_, _| Ok(()));
        let nested = pool.inflate_small(Limits::default(), |_, _| briefly());
        assert_eq!(nested, Ok(Some(None)));
        assert_eq!(briefly(), Ok(Some(())));
    }

    #[test]
    fn appends_do_not_wait_for_look_ups() {
        let pool = BufferPool::new(0, 0);
        let nested = pool.inflate_small_stored(Limits::default(), 0, |_, _| {
            pool.inflate_small(Limits::default(), |_, _| Ok(()))
        });
        assert_eq!(nested, Ok(Some(Some(()))));
    }

    #[test]
    fn plain_batches_are_validated_without_waiting() {
        let pool = Arc::new(BufferPool::new(0, 0));
        let (log, _) = Log::open(LogOptions {
            dir: "/data/topic-0".into(),
            config: Arc::default(),
            disk: Arc::new(MemoryDisk::default()),
            clock: Arc::new(ManualClock::new(0)),
            checkpointed: Checkpointed::default(),
            on_damage: OnDamage::Keep,
            clean: false,
            identity: None,
            producer_id_expiration_ms: i64::MAX,
            read_only: false,
            jitter_seed: 1,
            buffers: pool.clone(),
        })
        .unwrap();
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(0, None, Some(&vec![b'v'; 900_000]), &[]).unwrap();
        let mut batch = Vec::new();
        builder.build(&mut batch).unwrap();
        let validated = pool.inflate_small(Limits::default(), |_, _| {
            Ok(log.validate(&mut batch, AppendOrigin::Client).unwrap().size)
        });
        assert_eq!(validated, Ok(Some(batch.len())));
    }

    #[test]
    fn pool_keeps_no_more_than_its_bound() {
        let pool = Arc::new(BufferPool::new(40_000, 0));
        let (first, second) = (pool.take(32_768), pool.take(32_768));
        drop((first, second));
        assert_eq!(pool.free.lock().bytes, 32_768);
    }
}
