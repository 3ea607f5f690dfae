//! Removes whole segments from the start of the log: by age, by size, and below the log start
//! offset.

use std::io;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

use super::Log;
use super::state::State;
use crate::error::StorageError;
use crate::file_names::{FileKind, file_name};
use crate::log::types::Shared;
use crate::segment::Segment;
use crate::segment::withdrawn::{Taken, Withdrawn};

impl Log {
    /// Raises the log start offset to `offset`, but at most to the log end offset, and never lowers
    /// it; returns it.
    ///
    /// The next [`Log::enforce_retention`] removes segments that end below it.
    pub fn delete_before(&self, offset: i64) -> Result<i64, StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        let offset = offset.min(state.log_end_offset);
        if offset > state.log_start_offset {
            state.log_start_offset = offset;
            state.drop_epochs_below_start(&self.shared)?;
        }
        Ok(state.log_start_offset)
    }

    /// Removes the segments up to `high_watermark` that the settings allow to be removed; returns
    /// their number.
    ///
    /// For a log without checkpoints; a log in a data directory needs
    /// [`crate::LogDirectory::enforce_retention`].
    pub fn enforce_retention(&self, high_watermark: i64) -> Result<usize, StorageError> {
        let expired = self.expire_segments(high_watermark)?;
        expired.map_or(Ok(0), |expired| self.remove_expired(expired))
    }

    /// Raises the log start offset to the end of the segments up to `high_watermark` that the
    /// settings allow to be removed; `None` if no segment can be removed.
    pub fn expire_segments(&self, high_watermark: i64) -> Result<Option<Expired>, StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        let count = state.deletable_count(high_watermark, self.shared.clock.now_ms());
        if count > 0 && count == state.segments.len() {
            let log_end_offset = state.log_end_offset;
            state.roll(&self.shared, log_end_offset)?;
        }
        if let Some(first) = state.segments.get(count) {
            state.log_start_offset = state.log_start_offset.max(first.base_offset());
        }
        Ok((count > 0).then_some(Expired { log_start_offset: state.log_start_offset }))
    }

    /// Removes the segments that end at or below the log start offset in `expired`. The caller must
    /// have made it durable, because a log that starts above its recorded start is treated as
    /// damaged.
    ///
    /// Files are renamed to `.deleted`, and removed `file.delete.delay.ms` later by
    /// [`Log::delete_expired_files`]. Returns the number of removed segments.
    pub fn remove_expired(&self, expired: Expired) -> Result<usize, StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        let start = expired.log_start_offset;
        let next = state.segments.iter().skip(1).take_while(|next| next.base_offset() <= start);
        let count = next.count();
        if count == 0 {
            return Ok(0);
        }
        let taken = state.take_segments(0..count);
        let withdrawn = state.withdraw(taken);
        state.mark_deleted(&self.shared, &withdrawn)?;
        state.drop_epochs_below_start(&self.shared)?;
        Ok(count)
    }

    /// Removes renamed files whose delay has ended at `now_ms`; returns how many are left.
    ///
    /// Does nothing while another change is running, and does not wait for it: this is called
    /// periodically.
    pub fn delete_expired_files(&self, now_ms: i64) -> Result<usize, StorageError> {
        let Some(mut state) = self.try_write() else { return Ok(0) };
        state.delete_expired_files(&self.shared, now_ms)?;
        Ok(state.deleted.len())
    }
}

/// The log start offset after segments that may be removed. The log's own may be higher by now, and
/// not durable yet.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Expired {
    log_start_offset: i64,
}

impl State {
    /// The number of oldest segments that may be removed.
    fn deletable_count(&self, high_watermark: i64, now_ms: i64) -> usize {
        let mut size_left: i64 = self.segments.iter().map(|segment| segment.size as i64).sum();
        let mut count = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            let next_base = self.segments.get(index + 1).map(Segment::base_offset);
            let end = next_base.unwrap_or(self.log_end_offset);
            let is_empty_tail = next_base.is_none() && segment.size == 0;
            size_left -= segment.size as i64;
            let may_go = next_base.is_some_and(|base| base <= self.log_start_offset)
                || self.is_expired(segment, size_left, now_ms);
            if is_empty_tail || end > high_watermark || !may_go {
                break;
            }
            count += 1;
        }
        count
    }

    fn is_expired(&self, segment: &Segment, size_left: i64, now_ms: i64) -> bool {
        let config = &self.config;
        let age_ms = now_ms.saturating_sub(segment.retention_timestamp());
        config.cleanup_policy.delete
            && ((config.retention_ms >= 0 && age_ms > config.retention_ms)
                || (config.retention_bytes >= 0 && size_left >= config.retention_bytes))
    }

    /// Drops the epochs without records.
    pub(super) fn drop_epochs_below_start(&mut self, shared: &Shared) -> Result<(), StorageError> {
        if !self.epochs.truncate_from_start(self.log_start_offset) {
            return Ok(());
        }
        match self.store_epochs(shared) {
            // Extra epochs in the file are harmless. An operation that frees space must not need
            // space.
            Err(error) if error.is_refusal() => Ok(()),
            stored => stored,
        }
    }

    /// Removes segments from the state; readers can still see them.
    pub(crate) fn take_segments(&mut self, range: impl RangeBounds<usize>) -> Taken {
        Taken::of(self.segments.drain(range).collect())
    }

    /// Renames the files of segments, and the snapshots at their base offsets, to `.deleted`.
    pub(crate) fn mark_deleted(
        &mut self,
        shared: &Shared,
        withdrawn: &Withdrawn,
    ) -> Result<(), StorageError> {
        for segment in withdrawn.segments() {
            self.mark_segment_deleted(shared, segment)?;
            self.mark_file_deleted(shared, &segment.files.path(FileKind::Snapshot))?;
        }
        Ok(())
    }

    /// Renames the files of segments to `.deleted`, but not their snapshots.
    pub(crate) fn mark_segments_deleted(
        &mut self,
        shared: &Shared,
        withdrawn: &Withdrawn,
    ) -> Result<(), StorageError> {
        withdrawn
            .segments()
            .iter()
            .try_for_each(|segment| self.mark_segment_deleted(shared, segment))
    }

    /// Renames the producer snapshot at an offset to `.deleted`.
    pub(crate) fn mark_snapshot_deleted(
        &mut self,
        shared: &Shared,
        offset: i64,
    ) -> Result<(), StorageError> {
        self.mark_file_deleted(shared, &shared.dir.join(file_name(offset, FileKind::Snapshot)))?;
        self.forget_snapshot(offset);
        Ok(())
    }

    /// Notes that the snapshot at an offset was removed.
    pub(crate) fn forget_snapshot(&mut self, offset: i64) {
        if self.snapshot_offset == offset {
            self.snapshot_offset = 0;
        }
    }

    pub(crate) fn mark_segment_deleted(
        &mut self,
        shared: &Shared,
        segment: &Segment,
    ) -> Result<(), StorageError> {
        let mut kinds = FileKind::SEGMENT.into_iter();
        kinds.try_for_each(|kind| self.mark_file_deleted(shared, &segment.files.path(kind)))
    }

    fn mark_file_deleted(&mut self, shared: &Shared, path: &Path) -> Result<(), StorageError> {
        let expiry_ms = shared.clock.now_ms().saturating_add(self.config.file_delete_delay_ms);
        let renamed =
            mark_deleted(shared, path).map_err(|error| StorageError::io("rename", path, error));
        if let Some(path) = self.fail(renamed)? {
            self.deleted.push((expiry_ms, path));
        }
        Ok(())
    }

    /// Removes renamed files whose delay has ended. All are tried, and those that remain are tried
    /// again by the next call.
    pub(crate) fn delete_expired_files(
        &mut self,
        shared: &Shared,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let is_expired = |(expiry, _): &mut (i64, PathBuf)| *expiry <= now_ms;
        let expired: Vec<_> = self.deleted.extract_if(.., is_expired).collect();
        let mut result = Ok(());
        for (expiry, path) in expired {
            match shared.disk.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    result = result.and(Err(StorageError::io("remove", &path, error)));
                    self.deleted.push((expiry, path));
                }
                _ => {}
            }
        }
        result
    }
}

/// Renames `path` to `path` + `.deleted`; `None` if the file does not exist.
fn mark_deleted(shared: &Shared, path: &Path) -> io::Result<Option<PathBuf>> {
    let mut deleted = path.as_os_str().to_owned();
    deleted.push(".deleted");
    let deleted = PathBuf::from(deleted);
    match shared.disk.rename(path, &deleted) {
        Ok(()) => Ok(Some(deleted)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
