//! The small files beside the segments, byte for byte as Kafka writes them (docs/FORMAT.md).
//!
//! Functions from bytes to values and back. Who writes them uses [`crate::Disk::write_atomically`], so that
//! a reader finds one content or another, never a mix; any doubt about a content is an error.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pykafka_record::LeaderEpoch;

use crate::log::epoch_cache::EpochEntry;

mod properties;

pub use properties::{CleanShutdown, MetaProperties, parse_topic_id, write_topic_id};

/// Offsets by topic and partition.
pub type PartitionOffsets = BTreeMap<(String, i32), i64>;

/// The topic of the metadata log.
pub(crate) const METADATA_TOPIC: &str = "__cluster_metadata";
/// Up to which offset each log was synced; recovery begins there.
pub const RECOVERY_POINT_FILE: &str = "recovery-point-offset-checkpoint";
/// First offset of each log whose start lies inside a segment.
pub const LOG_START_OFFSET_FILE: &str = "log-start-offset-checkpoint";
/// High watermark of each replica.
pub const REPLICATION_OFFSET_FILE: &str = "replication-offset-checkpoint";
/// Up to which offset each log was compacted.
pub const CLEANER_OFFSET_FILE: &str = "cleaner-offset-checkpoint";
/// The last segment of each log in which a read met bytes that are not a batch. Kafka has no such
/// file and ignores it.
pub const UNREADABLE_SEGMENT_FILE: &str = "unreadable-segment-checkpoint";
/// Leader epochs of one partition.
pub const LEADER_EPOCH_FILE: &str = "leader-epoch-checkpoint";
/// How many aborted transactions the indexes of one partition hold. Kafka has no such file and ignores it.
pub const TRANSACTION_INDEX_FILE: &str = "transaction-index-checkpoint";
/// Topic id of one partition.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";
/// Left by a clean stop, removed at the start.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
/// Identity of the directory.
pub const META_PROPERTIES_FILE: &str = "meta.properties";

/// Why a checkpoint cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not text.
    #[error("the file is not UTF-8")]
    Encoding,
    /// Its version is not the one that is known.
    #[error("unknown version {0:?}")]
    Version(String),
    /// A line cannot be read; lines count from 1.
    #[error("line {number} cannot be read: {line:?}")]
    Line {
        /// Number of the line.
        number: usize,
        /// Its beginning.
        line: String,
    },
    /// The number of lines is not the declared one.
    #[error("{found} entries instead of {declared}")]
    Count {
        /// As the file has it.
        declared: String,
        /// As there are.
        found: usize,
    },
    /// Its last line has no end: the number in it may have lost digits.
    #[error("the last line is cut: {0:?}")]
    Cut(String),
    /// There are no bytes, where a file was written before.
    #[error("it is empty")]
    Empty,
    /// A field that must be there is not.
    #[error("field {0} is missing or malformed")]
    Field(&'static str),
}

impl CheckpointError {
    fn line(number: usize, line: &str) -> Self {
        CheckpointError::Line { number, line: line.chars().take(100).collect() }
    }
}

/// Reads an offset checkpoint. A partition told twice has its last offset.
///
/// An empty file has no entries: Apache Kafka makes such files at its first start. The topic may
/// hold spaces: a library's log is named by its directory.
pub fn read_offsets(bytes: &[u8]) -> Result<PartitionOffsets, CheckpointError> {
    if bytes.is_empty() {
        return Ok(PartitionOffsets::new());
    }
    let entry = |line: &str| {
        let mut fields = line.rsplitn(3, ' ');
        let (offset, partition, topic) = (fields.next()?, fields.next()?, fields.next()?);
        let partition = partition.parse().ok().filter(|index: &i32| *index >= 0)?;
        let is_name = !topic.is_empty();
        is_name.then_some(((topic.to_owned(), partition), offset.parse().ok()?))
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

/// Reads `transaction-index-checkpoint`: entries by the base offset of their segment.
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

/// The partition a directory belongs to, as `partition.metadata` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionIdentity {
    /// A topic that was created again under the same name has another one.
    pub topic_id: [u8; 16],
    /// Its index in the topic; `None` in a file of Apache Kafka, which has no such line.
    pub partition: Option<i32>,
}

/// Reads `partition.metadata`. Kafka writes two lines and reads no more.
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
