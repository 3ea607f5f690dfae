//! Names of partition directories, including those renamed for deletion or as strays.

use std::ffi::OsStr;
use std::path::Path;

/// A partition's topic and index.
pub type PartitionKey = (String, i32);

/// Suffix of directories that will be removed.
pub(crate) const DELETE: &str = "delete";
/// Suffix of directories whose partition is not in the metadata.
pub(crate) const STRAY: &str = "stray";
/// Limit of file systems.
const NAME_BYTES_MAX: usize = 255;
const UNIQUE_ID_DIGITS: usize = 32;

/// Returns the directory name of a partition.
pub(crate) fn partition_dir((topic, partition): &PartitionKey) -> String {
    format!("{topic}-{partition}")
}

/// The topic and partition in the name of a directory.
pub(crate) fn parse_partition_dir(name: &str) -> Option<(&str, i32)> {
    let (topic, partition) = name.rsplit_once('-')?;
    let is_number = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
    let partition = partition.parse().ok().filter(|_| is_number)?;
    (!topic.is_empty()).then_some((topic, partition))
}

/// Topic and partition from the directory's name; any other name is a topic with partition 0. Line
/// breaks, which a line of a checkpoint cannot contain, are replaced.
pub(crate) fn partition_key(path: &Path) -> (String, i32) {
    let name = path.file_name().unwrap_or(OsStr::new("_")).to_string_lossy();
    let name = name.replace(['\n', '\r'], "_");
    match parse_partition_dir(&name) {
        Some((topic, partition)) => (topic.to_owned(), partition),
        None => (name, 0),
    }
}

/// A name for a directory that is renamed. As in Kafka's `UnifiedLog.logDeleteDirName`, a long
/// topic is shortened and the partition is kept: Kafka does not start with a name that has no
/// partition.
pub(crate) fn renamed((topic, partition): &PartitionKey, unique_id: u128, suffix: &str) -> String {
    let tail = format!("-{partition}.{unique_id:0UNIQUE_ID_DIGITS$x}-{suffix}");
    let end = topic.len().min(NAME_BYTES_MAX - tail.len());
    format!("{}{tail}", topic.get(..end).unwrap_or(topic))
}

/// The part before the unique id in the name of a directory that was renamed for deletion; `None`
/// for all others.
///
/// The topic in it may be shortened. So to find the directory's partition, compare this with
/// [`deleted_stem_of`] of each partition.
pub(crate) fn deleted_stem(name: &str) -> Option<&str> {
    let (stem, unique_id) = name.strip_suffix(DELETE)?.strip_suffix('-')?.rsplit_once('.')?;
    let is_id = unique_id.len() == UNIQUE_ID_DIGITS;
    (is_id && unique_id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(stem)
}

/// The [`deleted_stem`] that the directory of a partition has after its deletion.
pub(crate) fn deleted_stem_of(key: &PartitionKey) -> String {
    let name = renamed(key, 0, DELETE);
    deleted_stem(&name).unwrap_or_default().to_owned()
}
