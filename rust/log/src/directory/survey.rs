//! Statistics of a log that is not open, from the entries of its directory, so that idle logs stay
//! closed.

use std::io;
use std::path::Path;

use crate::config::LogConfig;
use crate::disk::{DirEntry, Disk, OpenMode};
use crate::file_names::{FileKind, file_name, is_left_over, parse_file_name};
use crate::log::compaction::{Dirtiness, first_timestamp};
use crate::log::types::Checkpointed;
use crate::segment::time_index::{self, TimeEntry};

/// A closed log after a clean stop: only then do the files end where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSurvey {
    /// Bytes of the batches of all segments.
    pub size_bytes: u64,
    /// Size of the oldest segment.
    oldest_bytes: u64,
    /// The oldest segment's largest timestamp, if its time index has one.
    oldest_timestamp: Option<i64>,
    /// Base offset of the segment after the oldest.
    second_base: Option<i64>,
    /// True if there are files that the next open removes.
    has_leftovers: bool,
}

impl LogSurvey {
    /// Reads the directory of a log; `None` if it does not exist, or nothing was ever appended.
    pub(crate) fn of(disk: &dyn Disk, dir: &Path) -> io::Result<Option<LogSurvey>> {
        let entries = match disk.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let logs = segments(&entries);
        let Some(&(oldest_base, oldest_bytes)) = logs.first() else { return Ok(None) };
        Ok(Some(LogSurvey {
            size_bytes: logs.iter().map(|(_, size)| size).sum(),
            oldest_bytes,
            oldest_timestamp: last_timestamp(disk, dir, oldest_base)?,
            second_base: logs.get(1).map(|(base_offset, _)| *base_offset),
            has_leftovers: entries.iter().filter_map(|entry| entry.name.to_str()).any(is_left_over),
        }))
    }

    /// True if an open or retention might delete something, so that the log must be opened. If no
    /// index contains a record time, the age of the records starts with the first open.
    pub fn may_expire(&self, config: &LogConfig, log_start_offset: i64, now_ms: i64) -> bool {
        let is_old = config.retention_ms >= 0
            && self.oldest_bytes > 0
            && self
                .oldest_timestamp
                .is_none_or(|timestamp| now_ms.saturating_sub(timestamp) > config.retention_ms);
        let bytes_left = i64::try_from(self.size_bytes - self.oldest_bytes).unwrap_or(i64::MAX);
        let is_large = config.retention_bytes >= 0 && bytes_left >= config.retention_bytes;
        self.has_leftovers
            || self.second_base.is_some_and(|base| base <= log_start_offset)
            || (config.cleanup_policy.delete && (is_old || is_large))
    }
}

/// How much of a closed log a compaction might clean. [`crate::Log::dirtiness`] returns less if
/// some records are not stable or too young.
///
/// `checkpointed` must come from a clean stop. Timestamps are read only if the settings need them.
pub(crate) fn dirtiness(
    disk: &dyn Disk,
    dir: &Path,
    checkpointed: &Checkpointed,
    config: &LogConfig,
) -> io::Result<Dirtiness> {
    let logs = segments(&disk.list(dir)?);
    let clean_offset = checkpointed.cleaner_offset;
    let start = checkpointed.log_start_offset.unwrap_or(0);
    let is_known = (start..=checkpointed.recovery_point).contains(&clean_offset);
    let mut found = Dirtiness::default();
    for pair in logs.windows(2) {
        let &[(base_offset, size), (next_base, _)] = pair else { continue };
        if is_known && next_base <= clean_offset {
            found.clean_bytes += size;
            continue;
        }
        found.dirty_bytes += size;
        if config.max_compaction_lag_ms == i64::MAX {
            continue;
        }
        let path = dir.join(file_name(base_offset, FileKind::Log));
        let timestamp = first_timestamp(&*disk.open(&path, OpenMode::Read)?, size);
        found.first_dirty_timestamp =
            found.first_dirty_timestamp.into_iter().chain(timestamp).min();
    }
    Ok(found)
}

/// Base offsets and sizes of the `.log` files, in order.
fn segments(entries: &[DirEntry]) -> Vec<(i64, u64)> {
    let mut logs: Vec<_> = (entries.iter())
        .filter_map(|entry| match parse_file_name(entry.name.to_str()?)? {
            (base_offset, FileKind::Log) if !entry.is_dir => Some((base_offset, entry.size)),
            _ => None,
        })
        .collect();
    logs.sort_unstable();
    logs
}

/// The timestamp of the last entry of a segment's time index.
fn last_timestamp(disk: &dyn Disk, dir: &Path, base_offset: i64) -> io::Result<Option<i64>> {
    let path = dir.join(file_name(base_offset, FileKind::TimeIndex));
    let file = match disk.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut entry = [0; time_index::ENTRY_SIZE];
    let Some(position) = file.size()?.checked_sub(time_index::ENTRY_SIZE as u64) else {
        return Ok(None);
    };
    let read = file.read_at(&mut entry, position)?;
    Ok((read == entry.len()).then(|| TimeEntry::decode(&entry, base_offset).timestamp))
}
