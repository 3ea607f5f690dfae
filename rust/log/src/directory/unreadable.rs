//! Segments in which a read met bytes that are not a batch, and their checkpoint: a clean start
//! does not read every batch, so only the next read would find them.

use std::collections::btree_map::Entry;
use std::path::Path;

use pykafka_record::Cancellation;

use super::LogDirectory;
use crate::directory_names::{PartitionKey, partition_key};
use crate::error::StorageError;
use crate::file_names::parse_file_name;
use crate::log::Log;

impl LogDirectory {
    /// Records that a read met bytes that are not a batch in `file`, a file of a segment of `log`.
    /// The next checkpoint makes this durable. If there are several such segments, the last one is
    /// kept, because the log start offset passes it last.
    pub fn note_unreadable(&self, log: &Log, file: &Path) {
        let name = file.file_name().and_then(|name| name.to_str());
        let Some((base_offset, _)) = name.and_then(parse_file_name) else { return };
        let offsets = &mut self.state.lock().offsets;
        let noted = offsets.unreadable_segments.entry(partition_key(log.dir())).or_default();
        *noted = base_offset.max(*noted);
    }

    /// True if a read, in this run or an earlier one, met such bytes and no later check read them
    /// successfully.
    pub fn is_unreadable(&self, topic: &str, partition: i32) -> bool {
        let key = (topic.to_owned(), partition);
        self.state.lock().offsets.unreadable_segments.contains_key(&key)
    }

    /// Reads the noted segment of `log` from the log start offset on, and removes the note if all
    /// of it consists of batches.
    ///
    /// # Errors
    /// [`StorageError::Malformed`] if it does not; the log cannot be read, or the check was
    /// cancelled.
    pub fn check_unreadable(
        &self,
        log: &Log,
        cancellation: &Cancellation,
    ) -> Result<(), StorageError> {
        let key = partition_key(log.dir());
        let noted = self.state.lock().offsets.unreadable_segments.get(&key).copied();
        let Some(base_offset) = noted else { return Ok(()) };
        log.check_segment(base_offset, cancellation)?;
        let offsets = &mut self.state.lock().offsets;
        if let Entry::Occupied(entry) = offsets.unreadable_segments.entry(key)
            && *entry.get() == base_offset
        {
            entry.remove();
        }
        Ok(())
    }

    /// Removes the note of a log whose every batch was read.
    pub(super) fn forget_unreadable(&self, key: &PartitionKey) {
        self.state.lock().offsets.unreadable_segments.remove(key);
    }
}
