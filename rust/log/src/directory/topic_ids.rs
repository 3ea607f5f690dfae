//! The topics to which the rows of the checkpoints belong.
//!
//! If the directory of a partition is missing, or another topic's directory is in its place, the
//! rows distinguish two cases: if they belong to the partition's topic, its records are lost;
//! otherwise they belong to a deleted topic of the same name, and the partition is new.

use std::collections::BTreeSet;
use std::path::Path;

use super::LogDirectory;
use super::checkpoints::Checkpoints;
use super::operations::lower;
use crate::checkpoint::{self, PartitionIdentity};
use crate::directory_names::{self, PartitionKey};
use crate::disk::Disk;
use crate::error::{OpenError, StorageError};
use crate::log::types::Checkpointed;

/// No topic has this id.
const ZERO: [u8; 16] = [0; 16];

impl Checkpoints {
    /// Adds the topic ids in the directories to rows without one, which an earlier version or
    /// Apache Kafka wrote.
    pub(super) fn adopt_topic_ids(&mut self, disk: &dyn Disk, dir: &Path) {
        let rows = self.all_mut();
        let keys: BTreeSet<_> = rows.iter().flat_map(|rows| rows.keys().cloned()).collect();
        for key in keys {
            if self.topic_ids.contains_key(&key) {
                continue;
            }
            let path = dir.join(directory_names::partition_dir(&key));
            let found = checkpoint::identity_in(disk, &path).ok().flatten();
            if let Some(found) = found.filter(|found| found.topic_id != ZERO) {
                self.note_topic_id(&key, found.topic_id);
            }
        }
    }

    /// Notes that the rows of a partition belong to a topic.
    pub(super) fn note_topic_id(&mut self, key: &PartitionKey, topic_id: [u8; 16]) {
        self.topic_ids.insert(key.clone(), row_of(topic_id));
    }

    /// Assigns the rows of a partition to a topic that another program created again, and for which
    /// it wrote them. The high watermark may still be that of the deleted topic: after a deletion
    /// Kafka writes the recovery points and log starts at once, and the high watermarks later.
    fn take_over(&mut self, key: &PartitionKey, topic_id: [u8; 16]) {
        self.note_topic_id(key, topic_id);
        let recovery_point = self.recovery_points.get(key).copied().unwrap_or(0);
        lower(&mut self.high_watermarks, key, recovery_point);
    }

    /// True if the rows of a partition belong to a topic with another id.
    pub(super) fn are_of_other_topic(&self, key: &PartitionKey, topic_id: [u8; 16]) -> bool {
        self.topic_ids.get(key).is_some_and(|row| *row != row_of(topic_id))
    }
}

impl LogDirectory {
    /// Corrects the topic ids of the rows of these partitions. If another program deleted a topic
    /// and created it again, it wrote all checkpoints except that of the topic ids, and the
    /// directory has the id of the new topic. Must be called at each start, for all partitions:
    /// once the directory is lost, a partition with the id of the deleted topic would start empty.
    pub fn correct_topic_ids<'a>(
        &self,
        partitions: impl IntoIterator<Item = (&'a str, i32, [u8; 16])>,
    ) -> Result<(), StorageError> {
        let mut is_corrected = false;
        for (topic, partition, topic_id) in partitions {
            let key = (topic.to_owned(), partition);
            if !self.state.lock().offsets.are_of_other_topic(&key, topic_id) {
                continue;
            }
            let found =
                checkpoint::identity_in(&*self.disk, &self.partition_path(topic, partition));
            if found.is_ok_and(|found| found.is_some_and(|found| found.topic_id == topic_id)) {
                self.state.lock().offsets.take_over(&key, topic_id);
                is_corrected = true;
            }
        }
        if is_corrected { self.checkpoint(&[]) } else { Ok(()) }
    }

    /// Renames the directory of another topic that is in the place of a partition. It is kept for
    /// an administrator. The rows of the partition are kept too: they show whether its records are
    /// missing.
    pub fn mark_stray(&self, topic: &str, partition: i32) -> Result<(), StorageError> {
        let key = (topic.to_owned(), partition);
        self.rename_partition(&key, directory_names::STRAY)?;
        self.state.lock().logs.remove(&key);
        Ok(())
    }

    /// Drops the rows of a deleted topic with the same name, unless the directory has no topic id,
    /// or that of the new topic. In the first case its records become those of the new topic, and
    /// deleted records must not reappear. In the second case another program, which does not write
    /// topic ids, wrote the rows.
    pub(super) fn forget_earlier_topic(
        &self,
        key: &PartitionKey,
        topic_id: [u8; 16],
    ) -> Result<(), OpenError> {
        if !self.state.lock().offsets.are_of_other_topic(key, topic_id) {
            return Ok(());
        }
        if !self.may_be_of(key, topic_id)? {
            self.state.lock().offsets.forget(key);
            return Ok(());
        }
        // Written before the directory gets the id.
        self.state.lock().offsets.take_over(key, topic_id);
        Ok(self.checkpoint(&[])?)
    }

    /// The rows of a partition that an open uses.
    pub(super) fn rows_of(
        &self,
        key: &PartitionKey,
        topic_id: Option<[u8; 16]>,
    ) -> Result<Checkpointed, OpenError> {
        let other = {
            let offsets = &self.state.lock().offsets;
            topic_id.filter(|id| offsets.are_of_other_topic(key, *id))
        };
        match other {
            Some(topic_id) if !self.may_be_of(key, topic_id)? => Ok(Checkpointed::default()),
            _ => Ok(self.state.lock().offsets.of(key)),
        }
    }

    /// True if the directory of a partition exists and belongs to no other topic.
    fn may_be_of(&self, key: &PartitionKey, topic_id: [u8; 16]) -> Result<bool, OpenError> {
        let path = self.partition_path(&key.0, key.1);
        match checkpoint::identity_in(&*self.disk, &path) {
            // The open writes it again.
            Err(OpenError::Malformed { .. }) => Ok(self.is_incomplete(&path, key.1, topic_id)?),
            found => {
                let is_of_other = found?.is_some_and(|found| found.topic_id != topic_id);
                Ok(!is_of_other && self.disk.exists(&path))
            }
        }
    }

    /// True if a power cut left an incomplete `partition.metadata` in a new directory.
    fn is_incomplete(
        &self,
        path: &Path,
        partition: i32,
        topic_id: [u8; 16],
    ) -> Result<bool, OpenError> {
        let metadata = path.join(checkpoint::PARTITION_METADATA_FILE);
        let bytes = self.disk.read(&metadata);
        let bytes = bytes.map_err(|error| StorageError::io("read", &metadata, error))?;
        let entries = self.disk.list(path);
        let entries = entries.map_err(|error| StorageError::io("list", path, error))?;
        let identity = PartitionIdentity { topic_id, partition: Some(partition) };
        let written = checkpoint::write_partition_metadata(identity);
        if checkpoint::is_incomplete(&bytes, &written, &entries) {
            return Ok(true);
        }
        let reason = "it is not the beginning of the expected content".to_owned();
        Err(OpenError::Malformed { path: metadata, reason })
    }
}

/// The last half of a topic id, which has 62 random bits, so that a row looks like one of Kafka's
/// checkpoints.
fn row_of(topic_id: [u8; 16]) -> i64 {
    u128::from_be_bytes(topic_id) as i64
}
