//! Names of partitions' directories, also of those that were renamed for deletion or as strays.

use crate::directory::PartitionKey;

/// What a directory that is going away ends with.
pub(super) const DELETE: &str = "delete";
/// What a directory ends with that no metadata knows.
pub(super) const STRAY: &str = "stray";
/// What file systems take.
const NAME_BYTES_MAX: usize = 255;
const UNIQUE_ID_DIGITS: usize = 32;

/// The name of a partition's directory.
pub(super) fn partition_dir((topic, partition): &PartitionKey) -> String {
    format!("{topic}-{partition}")
}

/// The topic and partition that a directory's name tells.
pub(crate) fn parse_partition_dir(name: &str) -> Option<(&str, i32)> {
    let (topic, partition) = name.rsplit_once('-')?;
    let is_number = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
    let partition = partition.parse().ok().filter(|_| is_number)?;
    (!topic.is_empty()).then_some((topic, partition))
}

/// A name for a directory that is renamed. A long topic is cut and the partition kept, as by Kafka's
/// `UnifiedLog.logDeleteDirName`: Kafka does not start with one that has no partition.
pub(super) fn renamed((topic, partition): &PartitionKey, unique_id: u128, suffix: &str) -> String {
    let tail = format!("-{partition}.{unique_id:0UNIQUE_ID_DIGITS$x}-{suffix}");
    let end = topic.len().min(NAME_BYTES_MAX - tail.len());
    format!("{}{tail}", topic.get(..end).unwrap_or(topic))
}

/// What stands before the unique id in the name of a directory that was renamed for deletion; `None` for all others.
///
/// The topic may be cut in it. So whose directory it was is asked the other way round, by [`deleted_stem_of`].
pub(super) fn deleted_stem(name: &str) -> Option<&str> {
    let (stem, unique_id) = name.strip_suffix(DELETE)?.strip_suffix('-')?.rsplit_once('.')?;
    let is_id = unique_id.len() == UNIQUE_ID_DIGITS;
    (is_id && unique_id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(stem)
}

/// The [`deleted_stem`] of a partition's directory once it is renamed for deletion.
pub(super) fn deleted_stem_of(key: &PartitionKey) -> String {
    let name = renamed(key, 0, DELETE);
    deleted_stem(&name).unwrap_or_default().to_owned()
}
