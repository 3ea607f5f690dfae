//! Findings from the file names and small files in a log's directory.

use std::collections::{BTreeMap, BTreeSet};

use super::dir_view::DirView;
use super::input::RecoveryInput;
use super::inspection::Inspection;
use super::recovered::FoundSegment;
use crate::checkpoint::{self, PartitionIdentity};
use crate::disk::{DirEntry, FileId};
use crate::error::{Damage, OpenError, StorageError};
use crate::file_names::{
    CLEANED_SUFFIX, DELETED_SUFFIX, FileKind, SWAP_SUFFIX, file_name, parse_file_name,
};
use crate::log::interrupted_swaps::{Leftovers, next_offset};
use crate::segment::transaction_index;

/// Base offsets and kinds of the files of segments.
fn segment_files(entries: &[DirEntry]) -> impl Iterator<Item = (i64, FileKind, &DirEntry)> {
    entries.iter().filter_map(|entry| {
        let (base_offset, kind) = parse_file_name(entry.name.to_str()?)?;
        Some((base_offset, kind, entry))
    })
}

/// A segment for each `.log`, by base offset.
pub(super) fn segments(entries: &[DirEntry], leftovers: &Leftovers) -> Vec<FoundSegment> {
    let is_swapped =
        |base_offset, kind: &FileKind| leftovers.is_swapped(&file_name(base_offset, *kind));
    let mut ids: BTreeMap<i64, Vec<(FileKind, FileId)>> = BTreeMap::new();
    for (base_offset, kind, entry) in segment_files(entries) {
        ids.entry(base_offset).or_default().extend(entry.id.map(|id| (kind, id)));
    }
    let logs = segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::Log);
    let mut segments: Vec<_> = logs
        .map(|(base_offset, _, entry)| {
            let ids = ids.remove(&base_offset).unwrap_or_default();
            let kinds = FileKind::SEGMENT.into_iter();
            let swapped = kinds.filter(|kind| is_swapped(base_offset, kind)).collect();
            let found = FoundSegment::new(base_offset, entry.size);
            FoundSegment { swapped, modified_ms: entry.modified_ms, ids, ..found }
        })
        .collect();
    segments.sort_by_key(|segment| segment.base_offset);
    segments
}

/// Offsets of the producer snapshots.
pub(in crate::log) fn snapshots(entries: &[DirEntry]) -> BTreeSet<i64> {
    let snapshots = segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::Snapshot);
    snapshots.map(|(offset, ..)| offset).collect()
}

/// Names of index files without a `.log`.
pub(super) fn orphans(entries: &[DirEntry]) -> Vec<String> {
    let logs = segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::Log);
    let bases: BTreeSet<_> = logs.map(|(base_offset, ..)| base_offset).collect();
    segment_files(entries)
        .filter(|(base_offset, kind, _)| {
            *kind != FileKind::Snapshot && !bases.contains(base_offset)
        })
        .map(|(base_offset, kind, _)| file_name(base_offset, kind))
        .collect()
}

/// Base offsets of segments that have index files but no `.log`, and that were not being deleted.
pub(super) fn lost_segments(entries: &[DirEntry]) -> BTreeSet<i64> {
    let is_index = |kind: FileKind| !matches!(kind, FileKind::Log | FileKind::Snapshot);
    let indexes = segment_files(entries).filter(|(_, kind, _)| is_index(*kind));
    let mut lost: BTreeSet<i64> = indexes.map(|(base_offset, ..)| base_offset).collect();
    let logs = segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::Log);
    let there = logs.map(|(base_offset, ..)| base_offset);
    for base_offset in entries.iter().filter_map(leaving_log).chain(there) {
        lost.remove(&base_offset);
    }
    lost
}

/// Base offsets of segments whose `.log` was renamed to be deleted.
pub(super) fn replaced(entries: &[DirEntry]) -> BTreeSet<i64> {
    entries.iter().filter_map(|entry| log_with_suffix(entry, DELETED_SUFFIX)).collect()
}

/// The base offset of the segment that a compaction is writing, if not all of its files are renamed
/// yet.
///
/// The last segment is not compacted: a `.cleaned` file of it is a copy from a truncation by an
/// earlier version.
pub(super) fn compacting(entries: &[DirEntry]) -> Option<i64> {
    let last = segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::Log);
    let last = last.map(|(base_offset, ..)| base_offset).max()?;
    let made = entries.iter().filter_map(|entry| {
        let name = entry.name.to_str()?;
        let plain = name.strip_suffix(CLEANED_SUFFIX).or_else(|| name.strip_suffix(SWAP_SUFFIX))?;
        Some(parse_file_name(plain)?.0)
    });
    made.filter(|base_offset| *base_offset < last).max()
}

/// The damage of missing records before the first segment. When the disk is full, retention works
/// without a checkpoint, so records of segments that it renamed for deletion do not count if these
/// reach up to the first segment.
pub(super) fn loss_before(
    dir: &DirView<'_>,
    entries: &[DirEntry],
    input: &RecoveryInput,
) -> Result<Option<Damage>, StorageError> {
    let logs = segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::Log);
    let swapped = entries.iter().filter_map(|entry| log_with_suffix(entry, SWAP_SUFFIX));
    let first_base = logs.map(|(base_offset, ..)| base_offset).chain(swapped).min();
    let Some((first_base, damage)) =
        first_base.and_then(|base| Some((base, input.loss_before(base)?)))
    else {
        return Ok(None);
    };
    // A segment's `.log` is renamed last.
    let has_index: BTreeSet<_> =
        segment_files(entries).map(|(base_offset, ..)| base_offset).collect();
    for entry in entries {
        let Some(base_offset) = log_with_suffix(entry, DELETED_SUFFIX) else { continue };
        if base_offset < first_base && !has_index.contains(&base_offset) {
            let name = file_name(base_offset, FileKind::Log) + DELETED_SUFFIX;
            if next_offset(dir, &name)? == first_base || first_base <= input.cleaner_offset {
                return Ok(None);
            }
        }
    }
    Ok(Some(damage))
}

/// The base offset of a `.log` whose name shows that it will be deleted or put in place.
fn leaving_log(entry: &DirEntry) -> Option<i64> {
    log_with_suffix(entry, DELETED_SUFFIX).or_else(|| log_with_suffix(entry, SWAP_SUFFIX))
}

/// The base offset of a `.log` with `suffix` after its name.
fn log_with_suffix(entry: &DirEntry, suffix: &str) -> Option<i64> {
    let (base_offset, kind) = parse_file_name(entry.name.to_str()?.strip_suffix(suffix)?)?;
    (kind == FileKind::Log).then_some(base_offset)
}

impl Inspection<'_> {
    /// Compares `partition.metadata` with the expected identity. A missing file is written. One
    /// that a power cut left blank, or incomplete before the first record, is written again. Any
    /// other unreadable file is refused, as in Kafka: it may be of a later version, or the
    /// beginning of another topic's. A file without a partition, as Kafka writes it, matches any
    /// partition.
    pub(super) fn check_identity(&mut self, entries: &[DirEntry]) -> Result<(), OpenError> {
        let Some(wanted) = self.input.identity else { return Ok(()) };
        let name = checkpoint::PARTITION_METADATA_FILE;
        let written = checkpoint::write_partition_metadata(wanted);
        if let Some(bytes) = self.dir.read_if_there(name)? {
            let is_incomplete = checkpoint::is_incomplete(&bytes, &written, entries);
            let warning = match checkpoint::read_partition_metadata(&bytes) {
                Ok(found) if found.topic_id != wanted.topic_id => {
                    return Err(OpenError::TopicIdMismatch { path: self.dir.dir().to_owned() });
                }
                // Digits of the partition are missing.
                Ok(PartitionIdentity { partition: Some(_), .. }) if is_incomplete => {
                    "incomplete".to_owned()
                }
                Ok(PartitionIdentity { partition: Some(found), .. })
                    if wanted.partition.is_some_and(|partition| partition != found) =>
                {
                    return Err(OpenError::OtherPartition {
                        path: self.dir.dir().to_owned(),
                        found,
                    });
                }
                Ok(_) => return Ok(()),
                Err(error) if checkpoint::is_blank(&bytes) || is_incomplete => error.to_string(),
                Err(error) => {
                    let (path, reason) = (self.dir.path(name), error.to_string());
                    return Err(OpenError::Malformed { path, reason });
                }
            };
            self.warn(name, &format!("{warning}; written again with the id of the topic"));
        }
        self.found.changes.partition_metadata = Some(written);
        Ok(())
    }

    /// Compares transaction indexes with `transaction-index-checkpoint`. Returns the base offsets
    /// of segments that had more entries. Segments that are read anyway are ignored, because a
    /// power cut may have removed entries.
    pub(super) fn lost_aborted(
        &mut self,
        entries: &[DirEntry],
    ) -> Result<BTreeSet<i64>, OpenError> {
        let name = checkpoint::TRANSACTION_INDEX_FILE;
        let bytes = self.dir.read_if_there(name)?;
        match bytes.map(|bytes| checkpoint::read_transaction_indexes(&bytes)).transpose() {
            Ok(counts) => self.found.aborted_counts = counts.unwrap_or_default(),
            Err(error) => self.warn(name, &format!("{error}; transaction indexes are believed")),
        }
        let indexes =
            segment_files(entries).filter(|(_, kind, _)| *kind == FileKind::TransactionIndex);
        let sizes: BTreeMap<_, _> =
            indexes.map(|(base_offset, _, entry)| (base_offset, entry.size)).collect();
        let first_unsynced = self.first_unsynced();
        let (mut lost, mut warnings) = (BTreeSet::new(), Vec::new());
        for (index, segment) in self.found.segments.iter_mut().enumerate() {
            let size = sizes.get(&segment.base_offset).copied().unwrap_or(0);
            let count = size as usize / transaction_index::ENTRY_SIZE;
            let expected =
                self.found.aborted_counts.get(&segment.base_offset).copied().unwrap_or(0);
            segment.aborted_count = count;
            let is_ragged = size % transaction_index::ENTRY_SIZE as u64 != 0;
            if index < first_unsynced && (count < expected || is_ragged) {
                let name = segment.name(FileKind::TransactionIndex);
                warnings.push((name, format!("{count} of {expected} entries; rebuilt")));
                lost.insert(segment.base_offset);
            }
        }
        for (name, warning) in &warnings {
            self.warn(name, warning);
        }
        Ok(lost)
    }
}
