//! One partition's log.
//!
//! # Theory of operation
//! A log is a list of segments, of which only the last, the *active* one, grows. One mutex guards what is known
//! of them ([`state::State`]); a change holds it while it writes. Readers look at a copy of the facts
//! ([`view::View`]), which is published when a change ends, and never wait for the disk on a writer's behalf.
//! Reading itself is `pread` without a lock, on the segments of one moment ([`snapshot`], docs/design/0006): bytes
//! below the log end that a reader saw never change, except by truncation, after which it looks again.
//!
//! Truth is in the `.log` files. All else (indexes, epochs, producer state, checkpoints) is derived and can be
//! rebuilt from them, so it is written without sync, and checked or rebuilt when a log is opened that was not
//! closed cleanly. Order of truth: a leader epoch is noted before its first batch, data is synced before
//! the recovery point moves, a file is synced before its name is.
//!
//! Nothing is on disk before the first append. The active segment's indexes live in memory while it is written
//! to; [`Log::release_idle_files`] stores them and gives every descriptor back.
//!
//! After the first I/O error the log refuses all writes until it is reopened; a full disk is no such error,
//! since space is reserved before anything is written.

mod active;
pub(crate) mod append;
pub(crate) mod compaction;
pub(crate) mod epoch_cache;
mod error;
pub(crate) mod producer_state;
mod producers;
mod read;
mod recovery;
mod retention;
mod snapshot;
mod state;
pub(crate) mod swap;
pub(crate) mod sync;
mod truncate;
mod types;
pub(crate) mod verification;
mod view;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pykafka_forks::Mutex;
use pykafka_record::{LeaderEpoch, ProducerId};

pub use compaction::{CompactionOptions, CompactionReport, Dirtiness};
pub use error::{AppendError, Damage, OpenError, ReadError, StorageError};
pub use read::lookup::{LookupError, SegmentEntries};
pub use read::slice::{Fetched, FetchedRecords, RecordsSlice, SliceError};
pub use retention::Expired;
pub use types::{
    AppendInfo, AppendOptions, Checkpointed, FetchData, LogOffsets, LogOptions, OnDamage, Recovery,
    TimestampOffset,
};

use crate::buffer_pool::BufferPool;
use crate::clock::Clock;
use crate::config::LogConfig;
use crate::directory::checkpoint::PartitionIdentity;
use crate::disk::Disk;
use crate::log::epoch_cache::EpochEntry;
use crate::log::producer_state::ProducerEntry;
use crate::segment::{FileKind, Segment};
use recovery::dir_view::DirView;
pub(crate) use recovery::plan::Plan;
use recovery::recovered::Recovered;
use snapshot::Taken;
use state::{State, Status};
use sync::Rounds;
use verification::{FirstBatch, Transactions, VerificationGuard};
use view::View;

/// One partition's log; see the module's head. All methods may be called from any thread.
pub struct Log {
    shared: Shared,
    /// Held by a change, for as long as the disk takes; see [`view::Writing`].
    state: Mutex<State>,
    /// What readers see, never locked while the disk works.
    view: Mutex<View>,
    rounds: Rounds,
    /// The state's own.
    transactions: Arc<Transactions>,
    /// What was found damaged when it was opened, and left so.
    damage: Option<Damage>,
    /// Counts truncations: what was read before one may stand in the log no more.
    truncations: Arc<AtomicU64>,
    /// Held by a compaction: there is one at a time.
    compacting: Mutex<()>,
}

/// What never changes while a log is open.
pub(crate) struct Shared {
    pub(crate) dir: Arc<Path>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) buffers: Arc<BufferPool>,
    pub(crate) identity: Option<PartitionIdentity>,
}

impl Log {
    /// Opens the log in a directory, which need not exist: it appears with the first append.
    ///
    /// Without a clean stop, segments that reach beyond the recovery point are checked batch by batch and their
    /// indexes rebuilt; a torn tail is cut and reported. Damage is treated as [`LogOptions::on_damage`] tells.
    ///
    /// # Errors
    /// Files that cannot be read or written, or that belong to another topic id.
    pub fn open(options: LogOptions) -> Result<(Log, Recovery), OpenError> {
        let plan = Plan::of(&options);
        Log::open_by(options, plan)
    }

    /// What an open would find. Nothing is changed.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub(crate) fn look(options: &LogOptions, plan: Plan) -> Result<Recovered, OpenError> {
        recovery::look(&DirView::new(&*options.disk, &options.dir), plan)
    }

    fn open_by(options: LogOptions, plan: Plan) -> Result<(Log, Recovery), OpenError> {
        let found = Log::look(&options, plan)?;
        Ok(recovery::apply::apply(found, options)?)
    }

    /// Checks every batch of a closed log and cuts it where damage begins, with all that follows.
    ///
    /// This is what Apache Kafka does when it starts. `dir` must not be open.
    pub fn repair(options: LogOptions) -> Result<Recovery, OpenError> {
        let options = LogOptions { on_damage: OnDamage::Cut, ..options };
        let plan = Plan::of(&options).checking_all();
        let (log, recovery) = Log::open_by(options, plan)?;
        log.close()?;
        Ok(recovery)
    }

    /// Opens a log again of which this process may still have files mapped, and checks every batch. With [`OnDamage::Cut`] it
    /// does what [`Log::repair`] does.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub(crate) fn reopen(
        options: LogOptions,
        on_damage: OnDamage,
    ) -> Result<(Log, Recovery), OpenError> {
        let options = LogOptions { on_damage, ..options };
        let plan = Plan::of(&options).checking_all();
        let found = Log::look(&options, plan)?.cut_by_copy().told_by_recovery_point();
        Ok(recovery::apply::apply(found, options)?)
    }

    /// The partition's directory.
    pub fn dir(&self) -> &Path {
        &self.shared.dir
    }

    /// First offset that can be read.
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

    /// The settings in force.
    pub fn config(&self) -> Arc<LogConfig> {
        self.view.lock().config.clone()
    }

    /// Logical bytes of all segments' batches.
    pub fn size_bytes(&self) -> u64 {
        self.view.lock().segments.iter().map(|segment| segment.size).sum()
    }

    /// How many segments there are; none before the first append.
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

    /// Whether this log refuses writes: opened so, damaged, failed or closed.
    pub fn is_read_only(&self) -> bool {
        self.write_error().is_some()
    }

    /// Why this log refuses writes, if it does.
    pub fn write_error(&self) -> Option<StorageError> {
        self.view.lock().check_writable().err()
    }

    /// The damage with which the log was opened, if nothing was cut.
    pub fn damage(&self) -> Option<Damage> {
        self.damage.clone()
    }

    /// The latest leader epoch noted.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.view.lock().epochs.latest_epoch()
    }

    /// The leader epoch of the batch at `offset`.
    pub fn epoch_at(&self, offset: i64) -> Option<LeaderEpoch> {
        self.view.lock().epochs.epoch_for_offset(offset)
    }

    /// All leader epochs and their first offsets.
    pub fn epoch_entries(&self) -> Vec<EpochEntry> {
        self.view.lock().epochs.entries().to_vec()
    }

    /// The largest known epoch not above `epoch`, and where it ends (exclusive); `None` if there is no answer.
    pub fn end_offset_for_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, i64)> {
        let view = self.view.lock();
        view.epochs.end_offset_for(epoch, view.log_end_offset)
    }

    /// Notes that `epoch` begins at `start_offset`; on return it is on disk, if the log is.
    ///
    /// A leader calls it before its first append, with the log end.
    pub fn assign_epoch(&self, epoch: LeaderEpoch, start_offset: i64) -> Result<(), StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        state.assign_epoch(&self.shared, Some(epoch), start_offset)
    }

    /// First offset of the oldest transaction not decided below `high_watermark`.
    pub fn first_unstable_offset(&self, high_watermark: i64) -> Option<i64> {
        let mut state = self.write();
        state.take_high_watermark(high_watermark);
        state.first_unstable_offset()
    }

    /// The exclusive bound for `read_committed`.
    pub fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        let unstable = self.first_unstable_offset(high_watermark);
        unstable.map_or(high_watermark, |offset| offset.min(high_watermark))
    }

    /// What is known of each idempotent producer.
    pub fn active_producers(&self) -> Vec<ProducerEntry> {
        self.state.lock().producers.active_producers()
    }

    /// The guard under which the transaction that `batch` begins has to be verified; `None` if it is open already.
    ///
    /// Never waits for the disk. The guard holds until a batch or a marker of the producer is appended, or as long as an
    /// idle producer is remembered.
    pub fn begin_verification(&self, batch: &FirstBatch) -> Option<VerificationGuard> {
        self.transactions.begin(batch, self.shared.clock.now_ms())
    }

    /// Lets go of a guard: the coordinator does not know the producer, so that nothing comes of it.
    pub fn abandon_verification(&self, producer_id: ProducerId, guard: VerificationGuard) {
        self.transactions.abandon(producer_id, guard);
    }

    /// Forgets producers that were silent for `expiration_ms`, which is in force from now on, and have no open transaction.
    pub fn expire_producers(&self, expiration_ms: i64) {
        let now_ms = self.shared.clock.now_ms();
        let mut state = self.write();
        state.producers.set_expiration_ms(expiration_ms);
        state.producers.expire(now_ms);
        self.transactions.expire(now_ms, expiration_ms);
    }

    /// Stores and syncs everything and refuses all further use. A log that failed or is damaged is left as it is.
    ///
    /// # Errors
    /// What could not be stored; the log is closed all the same, and needs recovery when opened again.
    pub fn close(&self) -> Result<(), StorageError> {
        let result = self.close_open_state();
        self.discard();
        result
    }

    /// Refuses all further use and stores nothing: for a log whose disk goes with it.
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

    /// Stores the active segment's indexes, trims it and gives every descriptor and buffer back.
    ///
    /// For logs that were not used for a while; the next append opens them again.
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

    /// Whether others have removed or renamed the file that appends go to, or a directory above it.
    /// A concurrent change of this log may make it look so: [`Log::check_place`] decides.
    /// Waits for the disk.
    pub fn may_be_displaced(&self) -> bool {
        let active = self.view.lock().segments.last().map(|segment| segment.files.clone());
        active.is_some_and(|files| matches!(files.is_in_place(), Ok(false)))
    }

    /// Makes a log fail whose file was removed or renamed by others: no start would find what it
    /// takes.
    ///
    /// # Errors
    /// It was, or cannot be looked up.
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

    /// Whether space is reserved that will not be used soon; `false` while another change is under way.
    pub fn has_space_to_give_back(&self) -> bool {
        self.try_write().is_some_and(|state| state.is_giving_back_due(&self.shared))
    }

    /// Gives back space that will not be used soon. Waits for the disk, for as long as it takes to sync a segment.
    ///
    /// # Errors
    /// The file could not be shortened; the log takes no more writes then.
    pub fn give_back_space(&self) -> Result<(), StorageError> {
        let mut state = self.write();
        if state.check_writable().is_ok() { state.give_back_space(&self.shared) } else { Ok(()) }
    }

    /// Closes the log and moves its directory to `deleted_dir`, from where its files may be removed at leisure. Durable once
    /// the parent directory is synced.
    ///
    /// # Errors
    /// The directory could not be renamed.
    pub fn delete(&self, deleted_dir: &Path) -> Result<(), StorageError> {
        let mut state = self.write();
        state.status = Status::Closed;
        // Readers that fail from here on are told that the log is closed.
        let taken = Taken::of(state.segments.clone());
        let _withdrawn = state.withdraw(taken);
        state.release();
        // Without space for its metadata there may be a directory that is not used yet.
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
