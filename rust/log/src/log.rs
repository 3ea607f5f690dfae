//! One partition's log.
//!
//! # Theory of operation
//! A log is a list of segments. Only the last one, the *active* segment, grows. One mutex guards
//! the state of the log ([`state::State`]); a change holds it while it writes. Readers use a copy
//! of the facts ([`view::View`]), which is published when a change ends, so they never wait for a
//! writer's disk access. Records are read by `pread` without a lock, from the segments of one
//! moment ([`snapshot`], docs/design/0006): bytes below the log end offset that a reader saw change
//! only by truncation, after which it looks again.
//!
//! The `.log` files are the only source of truth. Indexes, epochs, producer state and checkpoints
//! are derived and can be rebuilt from them. So they are written without a sync, and checked or
//! rebuilt when a log is opened that was not closed cleanly. Three orders hold: a leader epoch is
//! stored before its first batch, data is synced before the recovery point moves, and a file is
//! synced before its name.
//!
//! Nothing is on disk before the first append. While the active segment is written, its indexes are
//! in memory; [`Log::release_idle_files`] stores them and closes all descriptors.
//!
//! After the first I/O error the log refuses all writes until it is reopened. A full disk is not
//! such an error, because space is reserved before anything is written.

mod active_segment;
pub(crate) mod append;
pub(crate) mod compaction;
pub(crate) mod interrupted_swaps;
mod open;
pub(crate) mod producer_state;
mod producers;
pub(crate) mod read;
pub(crate) mod recovery;
pub(crate) mod retention;
mod snapshot;
mod state;
pub(crate) mod sync;
pub(crate) mod truncate;
pub(crate) mod types;
pub(crate) mod verification;
mod view;
mod writing;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pykafka_forks::Mutex;
use pykafka_record::{LeaderEpoch, ProducerId};

use self::state::{State, Status};
use self::sync::rounds::Rounds;
use self::types::{LogOffsets, Shared};
use self::verification::{FirstBatch, Transactions, VerificationGuard};
use self::view::View;
use crate::config::LogConfig;
use crate::epoch_cache::EpochEntry;
use crate::error::{Damage, StorageError};
use crate::file_names::FileKind;
use crate::log::producer_state::ProducerEntry;
use crate::segment::Segment;
use crate::segment::withdrawn::Taken;

/// One partition's log; see the module documentation. All methods may be called from any thread.
pub struct Log {
    shared: Shared,
    /// Held by a change, also while the disk works; see [`writing::Writing`].
    state: Mutex<State>,
    /// The copy for readers, never locked while the disk works.
    view: Mutex<View>,
    rounds: Rounds,
    /// Shared with the state.
    transactions: Arc<Transactions>,
    /// Damage that was found at the open and not cut.
    damage: Option<Damage>,
    /// Number of truncations: bytes that were read before one may no longer be in the log.
    truncations: Arc<AtomicU64>,
    /// Held by a compaction, so that only one runs at a time.
    compacting: Mutex<()>,
}

impl Log {
    /// The partition's directory.
    pub fn dir(&self) -> &Path {
        &self.shared.dir
    }

    /// The id of its topic, if it was opened with one.
    pub(crate) fn topic_id(&self) -> Option<[u8; 16]> {
        self.shared.identity.map(|identity| identity.topic_id)
    }

    /// First offset that can be read (inclusive).
    pub fn log_start_offset(&self) -> i64 {
        self.view.lock().log_start_offset
    }

    /// Exclusive end: the offset of the next record.
    pub fn log_end_offset(&self) -> i64 {
        self.view.lock().log_end_offset
    }

    /// All offsets at one moment.
    pub fn offsets(&self) -> LogOffsets {
        let view = self.view.lock();
        LogOffsets {
            log_start_offset: view.log_start_offset,
            log_end_offset: view.log_end_offset,
            first_unstable_offset: view.first_unstable_offset,
            recovery_point: view.recovery_point,
            latest_epoch: view.epochs.latest_epoch(),
        }
    }

    /// The current settings.
    pub fn config(&self) -> Arc<LogConfig> {
        self.view.lock().config.clone()
    }

    /// Bytes of the batches of all segments, without reserved space.
    pub fn size_bytes(&self) -> u64 {
        self.view.lock().segments.iter().map(|segment| segment.size).sum()
    }

    /// The number of segments; 0 before the first append.
    pub fn segments_count(&self) -> usize {
        self.view.lock().segments.len()
    }

    /// Base offset of the segment that appends go to; `None` before the first append.
    pub fn active_base_offset(&self) -> Option<i64> {
        self.view.lock().segments.last().map(Segment::base_offset)
    }

    /// Base offset and logical size of every segment, oldest first.
    pub fn segments(&self) -> Vec<(i64, u64)> {
        let view = self.view.lock();
        view.segments.iter().map(|segment| (segment.base_offset(), segment.size)).collect()
    }

    /// True if this log refuses writes: it was opened read-only, is damaged, has failed or is
    /// closed.
    pub fn is_read_only(&self) -> bool {
        self.write_error().is_some()
    }

    /// The reason why this log refuses writes; `None` if it accepts them.
    pub fn write_error(&self) -> Option<StorageError> {
        self.view.lock().check_writable().err()
    }

    /// The damage that was found at the open and not cut.
    pub fn damage(&self) -> Option<Damage> {
        self.damage.clone()
    }

    /// The latest leader epoch.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.view.lock().epochs.latest_epoch()
    }

    /// The leader epoch of the batch at `offset`.
    pub fn epoch_at(&self, offset: i64) -> Option<LeaderEpoch> {
        self.view.lock().epochs.epoch_for_offset(offset)
    }

    /// All leader epochs with their first offsets.
    pub fn epoch_entries(&self) -> Vec<EpochEntry> {
        self.view.lock().epochs.entries().to_vec()
    }

    /// The largest known epoch that is at most `epoch`, and its end (exclusive); `None` if there is
    /// no such epoch.
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        let view = self.view.lock();
        view.epochs.end_offset_for(epoch, view.log_end_offset)
    }

    /// Records that `epoch` starts at `start_offset`; durable on return if the log is on disk.
    ///
    /// A leader calls this before its first append, with the log end offset.
    pub fn assign_epoch(&self, epoch: LeaderEpoch, start_offset: i64) -> Result<(), StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        state.assign_epoch(&self.shared, Some(epoch), start_offset)
    }

    /// First offset of the oldest transaction without a marker below `high_watermark`.
    pub fn first_unstable_offset(&self, high_watermark: i64) -> Option<i64> {
        let mut state = self.write();
        state.take_high_watermark(high_watermark);
        state.first_unstable_offset()
    }

    /// The exclusive upper bound for `read_committed`.
    pub fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        let unstable = self.first_unstable_offset(high_watermark);
        unstable.map_or(high_watermark, |offset| offset.min(high_watermark))
    }

    /// The state of each idempotent producer.
    pub fn active_producers(&self) -> Vec<ProducerEntry> {
        self.state.lock().producers.active_producers()
    }

    /// The guard for verifying the transaction that `batch` starts; `None` if the transaction is
    /// open already.
    ///
    /// Never waits for the disk. The guard is valid until a batch or a marker of the producer is
    /// appended, or until the state of an idle producer expires.
    pub fn begin_verification(&self, batch: &FirstBatch) -> Option<VerificationGuard> {
        self.transactions.begin(batch, self.shared.clock.now_ms())
    }

    /// Releases a guard because the coordinator does not have the producer, so that no append
    /// follows.
    pub fn abandon_verification(&self, producer_id: ProducerId, guard: VerificationGuard) {
        self.transactions.abandon(producer_id, guard);
    }

    /// Sets the expiration time, and removes producers that were idle for longer and have no open
    /// transaction.
    pub fn expire_producers(&self, expiration_ms: i64) {
        let now_ms = self.shared.clock.now_ms();
        let mut state = self.write();
        state.producers.set_expiration_ms(expiration_ms);
        state.producers.expire(now_ms);
        self.transactions.expire(now_ms, expiration_ms);
    }

    /// Stores and syncs everything and refuses all further use. A failed or damaged log is not
    /// changed.
    ///
    /// # Errors
    /// The error of the first step that failed. The log is closed anyway, and needs recovery at the
    /// next open.
    pub fn close(&self) -> Result<(), StorageError> {
        let result = self.close_open_state();
        self.discard();
        result
    }

    /// Refuses all further use and stores nothing: for a log that will not be opened again from
    /// this disk.
    pub fn discard(&self) {
        let mut state = self.write();
        state.status = Status::Closed;
        state.release();
    }

    fn close_open_state(&self) -> Result<(), StorageError> {
        {
            let mut state = self.write();
            if state.check_writable().is_err() {
                return Ok(());
            }
            state.delete_expired_files(&self.shared, i64::MAX)?;
            state.deactivate(&self.shared)?;
            state.store_snapshot(&self.shared)?;
            if state.are_epochs_unstored {
                state.store_epochs(&self.shared)?;
            }
        }
        self.flush()
    }

    /// Stores the active segment's indexes, trims its file and releases all descriptors and
    /// buffers.
    ///
    /// For idle logs; the next append opens the files again.
    pub fn release_idle_files(&self) -> Result<(), StorageError> {
        let mut state = self.write();
        if state.check_writable().is_ok() {
            state.deactivate(&self.shared)?;
        }
        for segment in &state.segments {
            segment.files.release();
        }
        Ok(())
    }

    /// True if another process seems to have removed or renamed the active segment's file, or a
    /// directory above it. A concurrent change of this log may look the same: [`Log::check_place`]
    /// decides. Waits for the disk.
    pub fn may_be_displaced(&self) -> bool {
        let active = self.view.lock().segments.last().map(|segment| segment.files.clone());
        active.is_some_and(|files| matches!(files.is_in_place(), Ok(false)))
    }

    /// Marks a log as failed if another process removed or renamed its active file, because the
    /// next start would not find the appended records.
    ///
    /// # Errors
    /// The file was removed or renamed, or cannot be looked up.
    pub fn check_place(&self) -> Result<(), StorageError> {
        let mut state = self.write();
        let Some(segment) = state.segments.last().filter(|_| state.check_writable().is_ok()) else {
            return Ok(());
        };
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it was removed or renamed");
        let checked = match segment.files.is_in_place() {
            Ok(true) => Ok(()),
            Ok(false) => Err(gone()),
            Err(error) => Err(error),
        };
        let checked = checked.map_err(segment.files.error("find", FileKind::Log));
        state.fail(checked)
    }

    /// True if reserved space will not be used soon; `false` while another change is running.
    pub fn has_space_to_give_back(&self) -> bool {
        self.try_write().is_some_and(|state| state.is_giving_back_due(&self.shared))
    }

    /// Releases reserved space that will not be used soon. Waits for the disk, up to the time for
    /// syncing a segment.
    ///
    /// # Errors
    /// The file could not be shortened. The log then refuses writes.
    pub fn give_back_space(&self) -> Result<(), StorageError> {
        let mut state = self.write();
        if state.check_writable().is_ok() { state.give_back_space(&self.shared) } else { Ok(()) }
    }

    /// Closes the log and moves its directory to `deleted_dir`, where its files may be removed
    /// later. Durable once the parent directory is synced.
    ///
    /// # Errors
    /// The directory could not be renamed.
    pub fn delete(&self, deleted_dir: &Path) -> Result<(), StorageError> {
        let mut state = self.write();
        state.status = Status::Closed;
        // Readers that fail from here on return the error that the log is closed.
        let taken = Taken::of(state.segments.clone());
        let _withdrawn = state.withdraw(taken);
        state.release();
        // A directory may exist before it is used, if its metadata files could not be written for
        // lack of space.
        if !state.is_on_disk && !self.shared.disk.exists(&self.shared.dir) {
            return Ok(());
        }
        state.is_on_disk = false;
        let Shared { disk, dir, .. } = &self.shared;
        disk.rename(dir, deleted_dir).map_err(|error| StorageError::io("rename", dir, error))
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("dir", &self.shared.dir)
            .field("offsets", &self.offsets())
            .finish_non_exhaustive()
    }
}
