//! What a look at a log's directory finds, as a value.

use std::collections::BTreeMap;

use super::plan::Plan;
use crate::log::epoch_cache::EpochCache;
use crate::log::producer_state::ProducerStateManager;
use crate::log::swap::Leftovers;
use crate::log::{Damage, Recovery};
use crate::segment::time_index::TimeEntry;
use crate::segment::{FileKind, Rebuilt, file_name};

/// A log as its files tell it. It is complete before any of them is changed.
#[derive(Debug, PartialEq)]
pub(crate) struct Recovered {
    /// Whether there is a directory.
    pub(crate) is_on_disk: bool,
    /// By base offset, up to the log end.
    pub(crate) segments: Vec<FoundSegment>,
    pub(crate) epochs: EpochCache,
    pub(crate) producers: ProducerStateManager,
    pub(crate) log_start_offset: i64,
    pub(crate) log_end_offset: i64,
    /// What is behind it has to be synced; of a damaged log, what was synced before.
    pub(crate) recovery_point: i64,
    /// Offset of the newest producer snapshot; 0 for none.
    pub(crate) snapshot_offset: i64,
    /// What `transaction-index-checkpoint` tells, by the base offset of a segment.
    pub(crate) aborted_counts: BTreeMap<i64, usize>,
    pub(crate) verdict: Recovery,
    pub(crate) changes: Changes,
}

/// A segment whose `.log` is there.
#[derive(Debug, PartialEq)]
pub(crate) struct FoundSegment {
    pub(crate) base_offset: i64,
    /// Bytes of batches; once it was looked at, up to the log end.
    pub(crate) size: u64,
    pub(crate) max_timestamp: TimeEntry,
    /// When its `.log` was last written; `None` if the disk keeps no times.
    pub(crate) modified_ms: Option<i64>,
    /// Entries of the transaction index.
    pub(crate) aborted_count: usize,
    /// Kinds of files that have [`crate::segment::SWAP_SUFFIX`] behind their names.
    pub(crate) swapped: Vec<FileKind>,
    /// Indexes from its batches, where the stored ones are not believed.
    pub(crate) rebuilt: Option<Rebuilt>,
    /// How its `.log` is brought to `size`, if it has to be.
    pub(crate) cut: Option<Cut>,
}

/// How a `.log` is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    InPlace,
    /// It was sealed, and may be mapped for reading.
    ByCopy,
}

/// What has to be done so that the files tell what was found, besides what segments say of themselves. There is nothing to
/// do for a damaged log: each open finds the same.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) leftovers: Leftovers,
    /// New content of `partition.metadata`.
    pub(crate) partition_metadata: Option<Vec<u8>>,
    /// New producer snapshots, by offset.
    pub(crate) snapshots: BTreeMap<i64, Vec<u8>>,
    /// Segments that leave the log.
    pub(crate) removed_segments: Vec<FoundSegment>,
    /// Whether `leader-epoch-checkpoint` tells something else.
    pub(crate) has_new_epochs: bool,
    /// Producer snapshots that tell of nothing in the log, and index files without their segment.
    pub(crate) removed_files: Vec<String>,
    /// Index of the first segment that is written to a new file, since a sync of it has failed.
    pub(crate) rewritten_from: Option<usize>,
    /// Whether a sync has failed, as a file says that goes with it.
    pub(crate) has_failed_sync: bool,
}

impl FoundSegment {
    pub(crate) fn new(base_offset: i64, size: u64) -> FoundSegment {
        FoundSegment {
            base_offset,
            size,
            max_timestamp: TimeEntry::none(base_offset),
            modified_ms: None,
            aborted_count: 0,
            swapped: Vec::new(),
            rebuilt: None,
            cut: None,
        }
    }

    /// Ends it at `position`, in its file too.
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
    /// A log with nothing on disk.
    pub(super) fn nothing(plan: &Plan) -> Recovered {
        let start = plan.log_start_offset.unwrap_or(0);
        let mut producers = ProducerStateManager::new(plan.producer_id_expiration_ms);
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

    /// The segment in which the valid batches end, also where none of them stays since all were deleted.
    pub(crate) fn last_segment(&self) -> Option<&FoundSegment> {
        self.segments.last().or(self.changes.removed_segments.last())
    }

    /// Index of the segment that holds `offset`, or of the first one.
    pub(super) fn segment_of(&self, offset: i64) -> Option<usize> {
        let after = self.segments.partition_point(|segment| segment.base_offset <= offset);
        if self.segments.is_empty() { None } else { Some(after.saturating_sub(1)) }
    }

    /// The end (exclusive) that the offsets of a segment cannot pass: the next segment begins there, or no index entry could
    /// tell of them.
    pub(super) fn end_max(&self, index: usize) -> i64 {
        let indexed_max = self.segments[index].base_offset.saturating_add(1 << 31);
        let next = self.segments.get(index + 1).map(|next| next.base_offset);
        next.map_or(indexed_max, |next| next.min(indexed_max))
    }

    /// Makes it an empty log that begins at `start`: all segments go.
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

    /// The same, and no file is shortened in place.
    pub(crate) fn cut_by_copy(mut self) -> Recovered {
        for segment in &mut self.segments {
            segment.cut = segment.cut.and(Some(Cut::ByCopy));
        }
        self
    }

    /// The same; where a batch is damaged that is believed at other opens, the recovery point has it read at the next one.
    pub(crate) fn told_by_recovery_point(mut self) -> Recovered {
        if let Some(Damage::Batch { offset }) = self.verdict.damage {
            self.recovery_point = offset.min(self.recovery_point);
        }
        self
    }

    /// Leaves a damaged log as it is, with the recovery point it was opened with: the next open finds the damage too.
    pub(super) fn keep_damage(&mut self, plan: &Plan, damage: Damage) {
        self.recovery_point = plan.kept_recovery_point;
        self.verdict.damage.get_or_insert(damage);
    }

    /// Ends what was found: a damaged log is not changed.
    pub(super) fn finished(mut self) -> Recovered {
        if self.verdict.damage.is_some() {
            self.changes = Changes::default();
            // Each open looks for the damage. A checkpoint of a later gap would hide it.
            self.verdict.gaps_below = None;
            self.segments.iter_mut().for_each(|segment| segment.cut = None);
        }
        self
    }
}
