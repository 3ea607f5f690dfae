//! What a log that is not open has on disk, told by its directory's entries: idle logs stay closed.

use std::io;
use std::path::Path;

use crate::config::LogConfig;
use crate::disk::{Disk, OpenMode};
use crate::segment::time_index::{self, TimeEntry};
use crate::segment::{FileKind, file_name, parse_file_name};

/// A closed log, after a clean stop: only then do files end where their logs end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSurvey {
    /// Bytes of all segments' batches.
    pub size_bytes: u64,
    /// Of the oldest segment.
    oldest_bytes: u64,
    /// The oldest segment's largest timestamp, if its time index has one.
    oldest_timestamp: Option<i64>,
    /// Base offset of the segment after the oldest.
    second_base: Option<i64>,
}

impl LogSurvey {
    /// Looks at the directory of a log; `None` if there is none, or nothing was ever appended.
    pub(crate) fn of(disk: &dyn Disk, dir: &Path) -> io::Result<Option<LogSurvey>> {
        let entries = match disk.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let mut logs: Vec<_> = (entries.iter())
            .filter_map(|entry| match parse_file_name(entry.name.to_str()?)? {
                (base_offset, FileKind::Log) if !entry.is_dir => Some((base_offset, entry.size)),
                _ => None,
            })
            .collect();
        logs.sort_unstable();
        let Some(&(oldest_base, oldest_bytes)) = logs.first() else { return Ok(None) };
        Ok(Some(LogSurvey {
            size_bytes: logs.iter().map(|(_, size)| size).sum(),
            oldest_bytes,
            oldest_timestamp: last_timestamp(disk, dir, oldest_base)?,
            second_base: logs.get(1).map(|(base_offset, _)| *base_offset),
        }))
    }

    /// Whether retention might find something to delete, so that the log has to be opened.
    pub fn may_expire(&self, config: &LogConfig, log_start_offset: i64, now_ms: i64) -> bool {
        let is_old = self.oldest_timestamp.is_some_and(|timestamp| {
            config.retention_ms >= 0 && now_ms.saturating_sub(timestamp) > config.retention_ms
        });
        let bytes_left = i64::try_from(self.size_bytes - self.oldest_bytes).unwrap_or(i64::MAX);
        let is_large = config.retention_bytes >= 0 && bytes_left >= config.retention_bytes;
        self.second_base.is_some_and(|base| base <= log_start_offset)
            || (config.cleanup_policy.delete && (is_old || is_large))
    }
}

/// The last entry of a segment's time index.
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
