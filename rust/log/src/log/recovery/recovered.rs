//! The result of an inspection of a log's directory.

use std::collections::BTreeMap;

use super::input::RecoveryInput;
use crate::disk::FileId;
use crate::epoch_cache::EpochCache;
use crate::error::Damage;
use crate::file_names::{FileKind, file_name};
use crate::log::interrupted_swaps::Leftovers;
use crate::log::producer_state::ProducerStateManager;
use crate::log::types::Recovery;
use crate::segment::Rebuilt;
use crate::segment::time_index::TimeEntry;

/// A log as its files describe it. It is complete before any file is changed.
#[derive(Debug, PartialEq)]
pub(crate) struct Recovered {
    /// True if the directory exists.
    pub(crate) is_on_disk: bool,
    /// Sorted by base offset, up to the log end.
    pub(crate) segments: Vec<FoundSegment>,
    pub(crate) epochs: EpochCache,
    pub(crate) producers: ProducerStateManager,
    pub(crate) log_start_offset: i64,
    pub(crate) log_end_offset: i64,
    /// Data from this offset on must be synced. For a damaged log: the recovery point with which it
    /// was opened.
    pub(crate) recovery_point: i64,
    /// Offset of the newest producer snapshot; 0 without one.
    pub(crate) snapshot_offset: i64,
    /// The counts in `transaction-index-checkpoint`, by the base offset of the segment.
    pub(crate) aborted_counts: BTreeMap<i64, usize>,
    pub(crate) verdict: Recovery,
    pub(crate) changes: Changes,
}

/// A segment with an existing `.log`.
#[derive(Debug, PartialEq)]
pub(crate) struct FoundSegment {
    pub(crate) base_offset: i64,
    /// Bytes of batches; after the inspection, up to the log end.
    pub(crate) size: u64,
    pub(crate) max_timestamp: TimeEntry,
    /// Last modification of its `.log`; `None` if the disk does not store it.
    pub(crate) modified_ms: Option<i64>,
    /// Ids of its files, if the disk has ids.
    pub(crate) ids: Vec<(FileKind, FileId)>,
    /// Number of entries in the transaction index.
    pub(crate) aborted_count: usize,
    /// Kinds of files that still have the suffix [`crate::file_names::SWAP_SUFFIX`].
    pub(crate) swapped: Vec<FileKind>,
    /// Indexes from its batches, if the stored ones are not trusted.
    pub(crate) rebuilt: Option<Rebuilt>,
    /// How its `.log` must be shortened to `size`; `None` if it need not be.
    pub(crate) cut: Option<Cut>,
}

/// The way in which a `.log` is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    InPlace,
    /// The segment was sealed, so its file may be mapped for reading.
    ByCopy,
}

/// Changes that make the files match the findings, in addition to the cuts of segments. Empty for a
/// damaged log, so that each open finds the same damage.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) leftovers: Leftovers,
    /// New content of `partition.metadata`.
    pub(crate) partition_metadata: Option<Vec<u8>>,
    /// New producer snapshots, by offset.
    pub(crate) snapshots: BTreeMap<i64, Vec<u8>>,
    /// Segments that are removed from the log.
    pub(crate) removed_segments: Vec<FoundSegment>,
    /// True if `leader-epoch-checkpoint` has other epochs.
    pub(crate) has_new_epochs: bool,
    /// Producer snapshots for offsets outside the log, and index files without a segment.
    pub(crate) removed_files: Vec<String>,
    /// Index of the first segment that is written to a new file because a sync of it has failed.
    pub(crate) rewritten_from: Option<usize>,
    /// True if the marker of a failed sync exists. The marker is removed.
    pub(crate) has_failed_sync: bool,
}

impl FoundSegment {
    pub(crate) fn new(base_offset: i64, size: u64) -> FoundSegment {
        FoundSegment {
            base_offset,
            size,
            max_timestamp: TimeEntry::none(base_offset),
            modified_ms: None,
            ids: Vec::new(),
            aborted_count: 0,
            swapped: Vec::new(),
            rebuilt: None,
            cut: None,
        }
    }

    /// True if the names of the files show that a compaction without a checkpoint wrote it.
    ///
    /// Only an open for reading uses the names, because another program may be running.
    pub(super) fn is_compacted(&self, input: &RecoveryInput) -> bool {
        let base_offset = self.base_offset;
        let is_before = input.compacting.is_some_and(|compacting| base_offset < compacting);
        let is_result = self.swapped.contains(&FileKind::Log);
        input.is_read_only && (is_before || is_result || input.replaced.contains(&base_offset))
    }

    /// Ends the segment at `position`, also in its file.
    pub(super) fn end_at(&mut self, position: u64, cut: Cut) {
        self.size = position;
        self.cut = Some(cut);
    }

    /// The plain name of one of its files.
    pub(crate) fn name(&self, kind: FileKind) -> String {
        file_name(self.base_offset, kind)
    }
}

impl Recovered {
    /// A log without files.
    pub(super) fn nothing(input: &RecoveryInput) -> Recovered {
        let start = input.log_start_offset.unwrap_or(0);
        let mut producers = ProducerStateManager::new(input.producer_id_expiration_ms);
        producers.truncate_fully_and_start_at(start);
        Recovered {
            is_on_disk: false,
            segments: Vec::new(),
            epochs: EpochCache::default(),
            producers,
            log_start_offset: start,
            log_end_offset: start,
            recovery_point: start,
            snapshot_offset: 0,
            aborted_counts: BTreeMap::new(),
            verdict: Recovery::default(),
            changes: Changes::default(),
        }
    }

    /// The segment in which the valid batches end, even if it is removed because all records were
    /// deleted.
    pub(crate) fn last_segment(&self) -> Option<&FoundSegment> {
        self.segments.last().or(self.changes.removed_segments.last())
    }

    /// Index of the segment that contains `offset`; otherwise 0; `None` without segments.
    pub(super) fn segment_of(&self, offset: i64) -> Option<usize> {
        let after = self.segments.partition_point(|segment| segment.base_offset <= offset);
        if self.segments.is_empty() { None } else { Some(after.saturating_sub(1)) }
    }

    /// The upper bound (exclusive) of a segment's offsets: the next segment's base offset, or the
    /// range of index entries.
    pub(super) fn end_max(&self, index: usize) -> i64 {
        let indexed_max = self.segments[index].base_offset.saturating_add(1 << 31);
        let next = self.segments.get(index + 1).map(|next| next.base_offset);
        next.map_or(indexed_max, |next| next.min(indexed_max))
    }

    /// Makes this an empty log that starts at `start`, and removes all segments.
    pub(super) fn begin_empty(&mut self, start: i64) {
        self.log_start_offset = start;
        self.log_end_offset = start;
        self.recovery_point = start;
        self.snapshot_offset = 0;
        self.producers.truncate_fully_and_start_at(start);
        self.epochs.truncate_from_end(i64::MIN);
        self.changes.has_new_epochs = true;
        self.changes.removed_segments.append(&mut self.segments);
    }

    /// Makes all cuts by copy, so that no file is shortened in place.
    pub(crate) fn cut_by_copy(mut self) -> Recovered {
        for segment in &mut self.segments {
            segment.cut = segment.cut.and(Some(Cut::ByCopy));
        }
        self
    }

    /// Lowers the recovery point to a damaged batch, so that the next open reads that batch again
    /// even if it would otherwise be trusted.
    pub(crate) fn described_by_recovery_point(mut self) -> Recovered {
        if let Some(Damage::Batch { offset }) = self.verdict.damage {
            self.recovery_point = offset.min(self.recovery_point);
        }
        self
    }

    /// Keeps a damaged log unchanged, with the recovery point with which it was opened, so that the
    /// next open finds the damage too.
    pub(super) fn keep_damage(&mut self, input: &RecoveryInput, damage: Damage) {
        self.recovery_point = input.kept_recovery_point;
        self.verdict.damage.get_or_insert(damage);
    }

    /// Completes the findings: a damaged log gets no changes.
    pub(super) fn finished(mut self) -> Recovered {
        if self.verdict.damage.is_some() {
            self.changes = Changes::default();
            // Each open looks for the damage. Checkpointing a later gap would hide it.
            self.verdict.gaps_below = None;
            self.segments.iter_mut().for_each(|segment| segment.cut = None);
        }
        self
    }
}
