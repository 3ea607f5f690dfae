//! A partition's directory with the name of another partition.

use std::path::Path;

use crate::checkpoint::{PARTITION_METADATA_FILE, PartitionIdentity};
use crate::directory_names::parse_partition_dir;
use crate::error::OpenError;

/// Compares the partition in a directory's `partition.metadata`, its `identity`, with its name.
///
/// Outside of a data directory a log may have any name, for example that of a backup with a date.
/// There a difference is only a warning, which is returned. A `partition.metadata` without a
/// partition, as Kafka writes it, or that cannot be read, is not compared.
///
/// # Errors
/// [`OpenError::OtherPartition`] in a data directory (`container`).
pub(super) fn check_name(
    identity: Option<PartitionIdentity>,
    container: &Path,
    path: &Path,
) -> Result<Option<String>, OpenError> {
    let name = path.file_name().and_then(|name| parse_partition_dir(name.to_str()?));
    let (Some(found), Some((_, named))) = (identity.and_then(|it| it.partition), name) else {
        return Ok(None);
    };
    if found == named {
        return Ok(None);
    }
    if container != path {
        return Err(OpenError::OtherPartition { path: path.to_owned(), found });
    }
    let path = path.display();
    Ok(Some(format!(
        "{path} has the files of partition {found} of its topic, and not of partition {named}: if it was renamed or \
         copied on purpose, remove the third line of {PARTITION_METADATA_FILE}"
    )))
}
