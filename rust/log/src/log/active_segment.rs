//! The active segment: created by the first append, rolled when it is full or old, closed when
//! idle.

use pykafka_record::{Batch, LeaderEpoch};

use super::Log;
use super::state::State;
use crate::checkpoint;
use crate::disk::OpenMode;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::log::types::Shared;
use crate::segment::appender::{AppendRule, Appender};
use crate::segment::indexes::{ActiveIndexes, Indexes};
use crate::segment::scan::BatchScanner;
use crate::segment::time_index::TimeEntry;
use crate::segment::{Segment, SegmentFiles};

/// A segment that is full within this time fills fast: 1 GiB at 100 MB/s.
const FAST_SEGMENT_NS: u64 = 10_000_000_000;

/// True if a segment was started so recently that it can still fill fast.
fn is_new(shared: &Shared, segment: &Segment) -> bool {
    let age = |begun_ns| shared.clock.now_ns().saturating_sub(begun_ns);
    segment.begun_ns.is_some_and(|begun_ns| age(begun_ns) < FAST_SEGMENT_NS)
}

/// The properties of the batches to append that decide about rolling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) size: u64,
    /// The log end offset or above: a leader's log may have gaps.
    pub(crate) first_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
}

impl Log {
    /// Seals the active segment and starts a new one at the log end offset. Does nothing if the
    /// active segment is empty.
    pub fn roll(&self) -> Result<(), StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        let is_empty = state.segments.last().is_none_or(|segment| segment.size == 0);
        if is_empty {
            return Ok(());
        }
        let log_end_offset = state.log_end_offset;
        state.roll(&self.shared, log_end_offset)
    }
}

impl State {
    /// Prepares the last segment for `incoming`: creates the directory, adds a first or new
    /// segment, opens its writer.
    pub(crate) fn prepare_append(
        &mut self,
        shared: &Shared,
        incoming: Incoming,
    ) -> Result<(), StorageError> {
        if self.segments.is_empty() {
            // Its base offset is the log start offset, as in Kafka. The first batch of a compacted
            // leader may have a higher offset.
            self.begin_first_segment(shared, self.log_end_offset)?;
        }
        self.activate()?;
        if !self.should_roll(shared, incoming)? {
            self.give_back_space(shared)?;
            return self.store_due_entries(shared);
        }
        let segment = self.segments.last().expect("a segment was added before");
        let was_filled_fast = self.is_full(segment, incoming) && is_new(shared, segment);
        self.roll(shared, incoming.first_offset)?;
        if was_filled_fast {
            self.reserve_segment(shared);
        }
        Ok(())
    }

    /// Reserves all of the new active segment if the disk has plenty of space: the segment before
    /// it will be synced soon, and allocating blocks during that sync would have to wait for it.
    fn reserve_segment(&mut self, shared: &Shared) {
        let size = self.config.segment_bytes as u64;
        let is_spare = shared.disk.spare_bytes(&shared.dir).is_ok_and(|spare| spare >= size);
        if let Some(appender) = self.appender.as_mut().filter(|_| is_spare) {
            // The space is not needed yet. If the disk has an error, an append reports it.
            let _ = appender.reserve_up_to(size);
        }
    }

    /// True if space is reserved for a segment that does not fill as fast as the one before it.
    pub(super) fn is_giving_back_due(&self, shared: &Shared) -> bool {
        self.appender.as_ref().is_some_and(Appender::is_far_ahead)
            && self.segments.last().is_some_and(|segment| !is_new(shared, segment))
    }

    pub(super) fn give_back_space(&mut self, shared: &Shared) -> Result<(), StorageError> {
        if !self.is_giving_back_due(shared) {
            return Ok(());
        }
        let (Some(appender), Some(segment)) = (&mut self.appender, self.segments.last()) else {
            return Ok(());
        };
        let given_back = appender.give_back().map_err(segment.files.error("trim", FileKind::Log));
        self.fail(given_back)
    }

    /// Stores index entries when the unstored ones take much memory.
    fn store_due_entries(&mut self, shared: &Shared) -> Result<(), StorageError> {
        match (&self.indexes, self.segments.last()) {
            (Some(indexes), Some(segment)) if indexes.lock().is_storing_due() => {
                let stored = indexes.store(&*shared.disk, &segment.files);
                self.fail(stored)
            }
            _ => Ok(()),
        }
    }

    /// Seals the active segment, stores the producer state and starts a segment at `base_offset`,
    /// which is the log end offset or above. An empty active segment is replaced, unless it is the
    /// first one, which marks the log start offset.
    pub(crate) fn roll(&mut self, shared: &Shared, base_offset: i64) -> Result<(), StorageError> {
        self.deactivate(shared)?;
        if matches!(&self.segments[..], [_, .., last] if last.size == 0) {
            self.remove_empty_segment(shared)?;
        }
        self.store_snapshot_at(shared, base_offset)?;
        self.add_segment(shared, base_offset)?;
        self.activate()
    }

    /// Removes the empty last segment and the snapshot at its base offset: the log continues at
    /// another offset.
    fn remove_empty_segment(&mut self, shared: &Shared) -> Result<(), StorageError> {
        let last = self.segments.len().saturating_sub(1);
        let withdrawn = self.take_segments(last..).while_empty();
        if withdrawn.segments().iter().any(|empty| empty.base_offset() == self.snapshot_offset) {
            self.snapshot_offset = 0;
        }
        self.mark_deleted(shared, &withdrawn)
    }

    /// Creates the directory with its metadata files.
    fn create_dir(&mut self, shared: &Shared) -> Result<(), StorageError> {
        if self.is_on_disk {
            return Ok(());
        }
        let created = shared.disk.create_dir_all(&shared.dir);
        created.map_err(|error| StorageError::io("create", &shared.dir, error))?;
        // Noted before a step that may fail, so that a later append syncs the directory's name in
        // any case.
        if let Some(parent) = shared.dir.parent() {
            self.unsynced.add_dir(parent.to_path_buf());
        }
        if let Some(identity) = shared.identity {
            let path = shared.dir.join(checkpoint::PARTITION_METADATA_FILE);
            self.begin_file(shared, path, &checkpoint::write_partition_metadata(identity))?;
        }
        self.is_on_disk = true;
        let path = shared.dir.join(checkpoint::LEADER_EPOCH_FILE);
        let result =
            self.begin_file(shared, path, &checkpoint::write_epochs(self.epochs.entries()));
        self.are_epochs_unstored = result.is_err();
        self.fail(result)
    }

    /// Adds the first segment of an empty log.
    pub(crate) fn begin_first_segment(
        &mut self,
        shared: &Shared,
        base_offset: i64,
    ) -> Result<(), StorageError> {
        self.create_dir(shared)?;
        self.add_segment(shared, base_offset)
    }

    /// Adds an empty segment and creates its `.log`.
    fn add_segment(&mut self, shared: &Shared, base_offset: i64) -> Result<(), StorageError> {
        let files = SegmentFiles::new(shared.dir.clone(), base_offset, shared.disk.clone());
        let path = files.path(FileKind::Log);
        let made = shared.disk.open(&path, OpenMode::Create).and_then(|file| file.set_len(0));
        self.fail(made.map_err(files.error("create", FileKind::Log)))?;
        let created_ms = shared.clock.now_ms();
        self.segments.push(Segment {
            size: 0,
            max_timestamp: TimeEntry::none(base_offset),
            first_timestamp: None,
            created_ms,
            modified_ms: created_ms,
            begun_ns: Some(shared.clock.now_ns()),
            files,
        });
        self.indexes = Some(ActiveIndexes::new(Indexes::new(base_offset)));
        self.draw_jitter();
        self.unsynced.add_dir(shared.dir.to_path_buf());
        Ok(())
    }

    /// Opens the last segment's writer and loads its indexes.
    fn activate(&mut self) -> Result<(), StorageError> {
        let segment = self.segments.last().expect("a segment was added before it is activated");
        let files = segment.files.clone();
        if self.indexes.is_none() {
            let loaded = Indexes::load(segment);
            let indexes = self.fail(loaded)?;
            let indexes = indexes.unwrap_or_else(|| Indexes::new(files.base_offset()));
            self.indexes = Some(ActiveIndexes::new(indexes));
            files.forget_indexes();
        }
        if self.appender.is_some() {
            return Ok(());
        }
        let size = self.segments.last().map_or(0, |segment| segment.size);
        let rule = AppendRule::new(&self.config);
        let opened = Appender::open(files.active_file(), size, rule);
        let opened = opened.map_err(files.error("open", FileKind::Log));
        self.appender = Some(self.fail(opened)?);
        Ok(())
    }

    /// Trims the active segment's file, closes its writer, and stores its indexes with a last time
    /// entry.
    pub(crate) fn deactivate(&mut self, shared: &Shared) -> Result<(), StorageError> {
        // First, because on a full disk the next steps may have only this space.
        self.trim()?;
        self.store_aborted_counts(shared)?;
        let Some(segment) = self.segments.last() else { return Ok(()) };
        let (files, max_timestamp) = (segment.files.clone(), segment.max_timestamp);
        if let Some(indexes) = &self.indexes {
            indexes.lock().times.append(max_timestamp);
            let stored = indexes.store(&*shared.disk, &files);
            self.fail(stored)?;
            // Not earlier: if the files could not be stored for lack of space, this is the only
            // copy.
            self.indexes = None;
            self.unsynced.add_file(files.path(FileKind::OffsetIndex));
            self.unsynced.add_file(files.path(FileKind::TimeIndex));
            self.unsynced.add_dir(shared.dir.to_path_buf());
        }
        Ok(())
    }

    /// Releases all reserved space of the active segment's file and closes its writer.
    fn trim(&mut self) -> Result<(), StorageError> {
        let (Some(appender), Some(segment)) = (&mut self.appender, self.segments.last()) else {
            return Ok(());
        };
        let files = segment.files.clone();
        let trimmed = appender.trim().map_err(files.error("trim", FileKind::Log));
        self.fail(trimmed)?;
        // Not earlier: if the file cannot be opened now for lack of descriptors, it is trimmed
        // later.
        self.appender = None;
        self.unsynced.add_file(files.path(FileKind::Log));
        Ok(())
    }

    /// True if appending `batch`, which has no offsets yet, only needs a step that `takes_no_more`
    /// allows: nothing else is opened, created or rolled.
    pub(crate) fn only_appends(
        &mut self,
        shared: &Shared,
        batch: &Batch<'_>,
        leader_epoch: LeaderEpoch,
        takes_no_more: fn(&Appender, usize) -> bool,
    ) -> bool {
        let is_ready = self.check_writable().is_ok()
            && !batch.is_control()
            && !self.are_epochs_unstored
            && self.epochs.latest_epoch() == Some(leader_epoch)
            && self.segments.last().is_some_and(|segment| segment.first_timestamp.is_some())
            && (self.appender.as_ref())
                .is_some_and(|appender| takes_no_more(appender, batch.size()))
            && self.indexes.as_ref().is_some_and(|indexes| !indexes.lock().is_storing_due())
            && !self.is_giving_back_due(shared);
        let count = batch.last_offset() - batch.base_offset();
        let incoming = Incoming {
            size: batch.size() as u64,
            first_offset: self.log_end_offset,
            last_offset: self.log_end_offset + count,
            max_timestamp: batch.max_timestamp(),
        };
        is_ready && self.should_roll(shared, incoming).is_ok_and(|rolls| !rolls)
    }

    fn is_full(&self, segment: &Segment, incoming: Incoming) -> bool {
        segment.size + incoming.size > self.config.segment_bytes as u64
    }

    fn should_roll(&mut self, shared: &Shared, incoming: Incoming) -> Result<bool, StorageError> {
        let segment = self.segments.last().expect("a segment was added before");
        let is_out_of_range = incoming.last_offset - segment.base_offset() > i64::from(i32::MAX);
        if segment.size == 0 {
            return Ok(is_out_of_range || segment.base_offset() > incoming.first_offset);
        }
        let is_full = self.is_full(segment, incoming);
        let are_indexes_full =
            self.indexes.as_ref().is_some_and(|indexes| indexes.lock().are_full(&self.config));
        if is_full || is_out_of_range || are_indexes_full {
            return Ok(true);
        }
        let now_ms = shared.clock.now_ms();
        let waited_ms = match self.first_timestamp()? {
            timestamp if timestamp >= 0 => incoming.max_timestamp.saturating_sub(timestamp),
            _ => now_ms - self.segments.last().map_or(now_ms, |segment| segment.created_ms),
        };
        Ok(waited_ms > self.config.segment_ms_max() - self.segment_jitter_ms())
    }

    /// The maximum timestamp of the active segment's first batch; read from the file once.
    fn first_timestamp(&mut self) -> Result<i64, StorageError> {
        let segment = self.segments.last_mut().expect("a segment was added before");
        if let Some(timestamp) = segment.first_timestamp {
            return Ok(timestamp);
        }
        let file = segment.files.log()?;
        let mut scanner = BatchScanner::new(&*file, 0, segment.size);
        let timestamp = match scanner.next() {
            Ok(Some(batch)) => batch.max_timestamp(),
            _ => -1,
        };
        segment.first_timestamp = Some(timestamp);
        Ok(timestamp)
    }

    /// The time that is subtracted from `segment.ms` for the active segment.
    fn segment_jitter_ms(&self) -> i64 {
        let bound = self.config.segment_jitter_ms.min(self.config.segment_ms_max());
        if bound <= 0 { 0 } else { (self.jitter % bound as u64) as i64 }
    }

    /// The next number of a 64-bit xorshift generator.
    fn draw_jitter(&mut self) {
        let mut number = self.jitter.max(1);
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        self.jitter = number;
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use pykafka_record::{BatchBuilder, BatchOptions};

    use super::*;
    use crate::AppendOrigin;
    use crate::clock::ManualClock;
    use crate::disk::{Disk, FileOp, Hook, HookedDisk, MemoryDisk};
    use crate::log::types::{AppendOptions, Checkpointed, LogOptions, OnDamage};

    /// A disk that reports that no descriptors are left.
    #[derive(Debug, Default)]
    struct Exhausted(AtomicBool);

    impl Hook for Exhausted {
        fn before(&self, op: FileOp, _: &Path) -> io::Result<()> {
            match op {
                FileOp::Open if self.0.load(Ordering::SeqCst) => {
                    Err(rustix::io::Errno::MFILE.into())
                }
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn a_file_that_could_not_be_opened_to_be_trimmed_is_trimmed_later() {
        let hook = Arc::new(Exhausted::default());
        let disk = Arc::new(HookedDisk::new(MemoryDisk::default(), hook.clone()));
        let (log, _) = Log::open(LogOptions {
            dir: "/data/topic-0".into(),
            config: Arc::default(),
            disk: disk.clone(),
            clock: Arc::new(ManualClock::new(0)),
            checkpointed: Checkpointed::default(),
            on_damage: OnDamage::Keep,
            clean: true,
            identity: None,
            producer_id_expiration_ms: 1,
            read_only: false,
            jitter_seed: 1,
            buffers: Arc::default(),
        })
        .unwrap();
        let mut batch = Vec::new();
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(0, None, Some(&vec![1; 100_000]), &[]).unwrap();
        builder.build(&mut batch).unwrap();
        let leader = AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Client);
        log.append_as_leader(&mut batch, leader).unwrap();
        for segment in &log.write().segments {
            segment.files.release();
        }
        hook.0.store(true, Ordering::SeqCst);
        assert!(log.release_idle_files().is_err_and(|error| error.is_refusal()));
        hook.0.store(false, Ordering::SeqCst);
        let path = Path::new("/data/topic-0/00000000000000000000.log");
        let size = || disk.open(path, OpenMode::Read).unwrap().size().unwrap();
        assert!(size() > batch.len() as u64, "it is reserved ahead");
        log.release_idle_files().unwrap();
        assert_eq!(size(), batch.len() as u64);
    }
}
