//! The small files next to the segments, byte for byte as Kafka writes them (docs/FORMAT.md).
//!
//! These functions only convert between bytes and values. Callers write the bytes with
//! [`crate::Disk::write_atomically`], so that a reader finds the old content or the new one, never
//! a mix. Doubtful content is an error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use pykafka_record::LeaderEpoch;

use crate::disk::{DirEntry, Disk};
use crate::epoch_cache::EpochEntry;
use crate::error::{OpenError, StorageError};
use crate::file_names::{FileKind, parse_file_name};

mod error;
mod properties;

pub use error::CheckpointError;
pub use properties::{CleanShutdown, MetaProperties, parse_topic_id, write_topic_id};

/// Offsets by topic and partition.
pub type PartitionOffsets = BTreeMap<(String, i32), i64>;

/// The topic of the metadata log.
pub(crate) const METADATA_TOPIC: &str = "__cluster_metadata";
/// The offset up to which each log was synced; recovery starts there.
pub const RECOVERY_POINT_FILE: &str = "recovery-point-offset-checkpoint";
/// Log start offset of each log.
pub const LOG_START_OFFSET_FILE: &str = "log-start-offset-checkpoint";
/// High watermark of each replica.
pub const REPLICATION_OFFSET_FILE: &str = "replication-offset-checkpoint";
/// The offset up to which each log was compacted.
pub const CLEANER_OFFSET_FILE: &str = "cleaner-offset-checkpoint";
/// For each log, the last segment in which a read met bytes that are not a batch. Kafka does not
/// have this file and ignores it.
pub const UNREADABLE_SEGMENT_FILE: &str = "unreadable-segment-checkpoint";
/// The last half of the topic id of each log, as a number. Kafka does not have this file, and
/// ignores it.
pub const TOPIC_ID_FILE: &str = "topic-id-checkpoint";
/// Leader epochs of one partition.
pub const LEADER_EPOCH_FILE: &str = "leader-epoch-checkpoint";
/// Numbers of aborted transactions in the indexes of one partition. Kafka does not have this file
/// and ignores it.
pub const TRANSACTION_INDEX_FILE: &str = "transaction-index-checkpoint";
/// Topic id of one partition.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";
/// Marker that a clean stop writes and the next start removes.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
/// Identity of the directory.
pub const META_PROPERTIES_FILE: &str = "meta.properties";

/// Reads an offset checkpoint. If a partition occurs twice, its last offset counts.
///
/// An empty file has no entries: Apache Kafka creates such files at its first start. The topic may
/// contain spaces, because a library's log is named after its directory.
pub fn read_offsets(bytes: &[u8]) -> Result<PartitionOffsets, CheckpointError> {
    read_rows(bytes, |offset| offset >= 0)
}

/// Reads the checkpoint of topic ids, which may be negative numbers, as [`read_offsets`] does.
pub fn read_topic_ids(bytes: &[u8]) -> Result<PartitionOffsets, CheckpointError> {
    read_rows(bytes, |_| true)
}

fn read_rows(
    bytes: &[u8],
    is_valid: impl Fn(i64) -> bool,
) -> Result<PartitionOffsets, CheckpointError> {
    if bytes.is_empty() {
        return Ok(PartitionOffsets::new());
    }
    let entry = |line: &str| {
        let mut fields = line.rsplitn(3, ' ');
        let (offset, partition, topic) = (fields.next()?, fields.next()?, fields.next()?);
        let partition = partition.parse().ok().filter(|index: &i32| *index >= 0)?;
        let offset = offset.parse().ok().filter(|offset| is_valid(*offset))?;
        let is_name = !topic.is_empty();
        is_name.then_some(((topic.to_owned(), partition), offset))
    };
    Ok(read_entries(bytes, entry)?.into_iter().collect())
}

/// Writes an offset checkpoint, sorted by topic and partition.
pub fn write_offsets(offsets: &PartitionOffsets) -> Vec<u8> {
    let mut text = head(offsets.len());
    for ((topic, partition), offset) in offsets {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{topic} {partition} {offset}");
    }
    text.into_bytes()
}

/// Reads `leader-epoch-checkpoint`.
pub fn read_epochs(bytes: &[u8]) -> Result<Vec<EpochEntry>, CheckpointError> {
    read_entries(bytes, |line| {
        let mut fields = line.split_ascii_whitespace();
        let epoch = fields.next()?.parse().ok().filter(|epoch: &i32| *epoch >= 0)?;
        let start_offset = fields.next()?.parse().ok().filter(|offset: &i64| *offset >= 0)?;
        fields
            .next()
            .is_none()
            .then_some(EpochEntry { epoch: LeaderEpoch::new(epoch), start_offset })
    })
}

/// Writes `leader-epoch-checkpoint`.
pub fn write_epochs(entries: &[EpochEntry]) -> Vec<u8> {
    let mut text = head(entries.len());
    for entry in entries {
        let _ = writeln!(text, "{} {}", entry.epoch, entry.start_offset);
    }
    text.into_bytes()
}

/// Reads `transaction-index-checkpoint`: counts by the base offset of the segment.
pub fn read_transaction_indexes(bytes: &[u8]) -> Result<BTreeMap<i64, usize>, CheckpointError> {
    let entry = |line: &str| {
        let (base_offset, count) = line.split_once(' ')?;
        Some((base_offset.parse().ok()?, count.parse().ok()?))
    };
    Ok(read_entries(bytes, entry)?.into_iter().collect())
}

/// Writes `transaction-index-checkpoint`.
pub fn write_transaction_indexes(counts: &BTreeMap<i64, usize>) -> Vec<u8> {
    let mut text = head(counts.len());
    for (base_offset, count) in counts {
        let _ = writeln!(text, "{base_offset} {count}");
    }
    text.into_bytes()
}

/// The partition of a directory, as stored in `partition.metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionIdentity {
    /// Differs when a topic is created again under the same name.
    pub topic_id: [u8; 16],
    /// Its index in the topic; `None` in a file of Apache Kafka, which does not write this line.
    pub partition: Option<i32>,
}

impl PartitionIdentity {
    /// True unless the topic or the partition differs.
    pub(crate) fn may_equal(&self, other: &PartitionIdentity) -> bool {
        self.topic_id == other.topic_id
            && self.partition.zip(other.partition).is_none_or(|(this, that)| this == that)
    }
}

/// The content of `partition.metadata` in a partition's directory; `None` without the file, or if a
/// power cut left it blank.
///
/// # Errors
/// The file cannot be read, or has other content: it may be that of any topic.
pub(crate) fn identity_in(
    disk: &dyn Disk,
    dir: &Path,
) -> Result<Option<PartitionIdentity>, OpenError> {
    let path = dir.join(PARTITION_METADATA_FILE);
    let bytes = match disk.read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(|error| StorageError::io("read", &path, error))?,
    };
    match read_partition_metadata(&bytes) {
        Ok(identity) => Ok(Some(identity)),
        Err(_) if is_blank(&bytes) => Ok(None),
        Err(error) => Err(OpenError::Malformed { path, reason: error.to_string() }),
    }
}

/// True if a `.log` among the files of a partition has bytes: its `partition.metadata` was complete
/// before.
pub(crate) fn has_records(entries: &[DirEntry]) -> bool {
    entries.iter().filter(|entry| entry.size > 0).any(|entry| {
        let parsed = entry.name.to_str().and_then(parse_file_name);
        parsed.is_some_and(|(_, kind)| kind == FileKind::Log)
    })
}

/// True for a file that a power cut left without content: it is empty, or has only zeros.
pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// True if a power cut may have left these `bytes` of a file that should contain `written`, in a
/// directory without records.
pub(crate) fn is_incomplete(bytes: &[u8], written: &[u8], entries: &[DirEntry]) -> bool {
    bytes.len() < written.len() && written.starts_with(bytes) && !has_records(entries)
}

/// Reads `partition.metadata`. Kafka writes two lines and ignores any others.
pub fn read_partition_metadata(bytes: &[u8]) -> Result<PartitionIdentity, CheckpointError> {
    let text = std::str::from_utf8(bytes).map_err(|_| CheckpointError::Encoding)?;
    let mut lines = text.lines();
    let version = lines.next().unwrap_or_default();
    if version != "version: 0" {
        return Err(CheckpointError::Version(version.chars().take(100).collect()));
    }
    let topic_id = (lines.next())
        .and_then(|line| line.strip_prefix("topic_id: "))
        .and_then(parse_topic_id)
        .ok_or(CheckpointError::Field("topic_id"))?;
    let partition = match lines.next().and_then(|line| line.strip_prefix("partition: ")) {
        Some(text) => Some(text.parse().map_err(|_| CheckpointError::Field("partition"))?),
        None => None,
    };
    Ok(PartitionIdentity { topic_id, partition })
}

/// Writes `partition.metadata`.
pub fn write_partition_metadata(identity: PartitionIdentity) -> Vec<u8> {
    let mut text = format!("version: 0\ntopic_id: {}", write_topic_id(identity.topic_id));
    if let Some(partition) = identity.partition {
        let _ = write!(text, "\npartition: {partition}");
    }
    text.into_bytes()
}

fn head(count: usize) -> String {
    format!("0\n{count}\n")
}

fn read_entries<T>(
    bytes: &[u8],
    entry: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, CheckpointError> {
    let text = std::str::from_utf8(bytes).map_err(|_| CheckpointError::Encoding)?;
    let mut lines = text.lines();
    let version = lines.next().unwrap_or_default();
    if version != "0" {
        return Err(CheckpointError::Version(version.chars().take(100).collect()));
    }
    if !text.ends_with('\n') {
        let line = text.lines().last().unwrap_or_default();
        return Err(CheckpointError::Cut(line.chars().take(100).collect()));
    }
    let declared = lines.next().unwrap_or_default();
    let entries = lines
        .enumerate()
        .map(|(index, line)| entry(line).ok_or_else(|| CheckpointError::line(index + 3, line)))
        .collect::<Result<Vec<T>, _>>()?;
    if declared.parse() == Ok(entries.len()) {
        return Ok(entries);
    }
    Err(CheckpointError::Count {
        declared: declared.chars().take(100).collect(),
        found: entries.len(),
    })
}

#[cfg(test)]
mod tests;
