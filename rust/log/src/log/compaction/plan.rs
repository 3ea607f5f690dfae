//! Selects the segments that may be cleaned, and groups those that become one segment.

use std::ops::Range;

use pykafka_record::MessageFormat;

use crate::config::LogConfig;
use crate::log::snapshot::Snapshot;
use crate::segment::{Segment, offset_index, time_index};

/// Size of the smallest batch in any format.
const BATCH_BYTES_MIN: u64 = MessageFormat::V0.size_min() as u64;

/// The segments that a compaction may change.
#[derive(Debug, Clone)]
pub(crate) struct CompactionPlan {
    /// Whole segments from the first one on; all are below the records that are not stable or too
    /// young.
    pub(crate) segments: Vec<Segment>,
    /// The end of the segments (exclusive).
    pub(crate) upper: i64,
    /// Everything below was cleaned before.
    pub(crate) first_dirty: i64,
}

impl CompactionPlan {
    /// `clean_offset` is the checkpointed end of the last compaction.
    pub(crate) fn of(
        snapshot: &Snapshot,
        config: &LogConfig,
        clean_offset: i64,
        last_stable_offset: i64,
        now_ms: i64,
    ) -> CompactionPlan {
        let first_dirty = first_dirty(snapshot, clean_offset);
        let mut segments = Vec::new();
        let mut upper = snapshot.segments.get(0).map_or(0, Segment::base_offset);
        let sealed = snapshot.segments.len().saturating_sub(1);
        for (index, segment) in snapshot.segments.iter().take(sealed).enumerate() {
            let end = snapshot.end_of(index);
            let is_young = config.min_compaction_lag_ms > 0
                && end > first_dirty
                && segment.retention_timestamp()
                    > now_ms.saturating_sub(config.min_compaction_lag_ms);
            if end > last_stable_offset || is_young {
                break;
            }
            segments.push(segment.clone());
            upper = end;
        }
        CompactionPlan { segments, upper, first_dirty }
    }

    /// The end of the segment at `index` (exclusive).
    pub(crate) fn end_of(&self, index: usize) -> i64 {
        self.segments.get(index + 1).map_or(self.upper, Segment::base_offset)
    }

    /// Segments that contain offsets from `first_dirty` on.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = &Segment> {
        let dirty = self.segments.iter().enumerate();
        dirty
            .filter(|(index, _)| self.end_of(*index) > self.first_dirty)
            .map(|(_, segment)| segment)
    }

    /// Ranges of segments with offsets below `end` that become one segment: their bytes do not
    /// exceed the size of a segment, and their offsets can be stored in index entries. Empty
    /// segments are not in a group.
    pub(crate) fn groups(&self, config: &LogConfig, end: i64) -> Vec<Range<usize>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut size = 0;
        let count = self.segments.partition_point(|segment| segment.base_offset() < end);
        for (index, segment) in self.segments[..count].iter().enumerate() {
            if segment.size == 0 {
                continue;
            }
            let fits = groups.last().is_some_and(|group| {
                let base_offset = self.segments[group.start].base_offset();
                let size = size + segment.size;
                group.end == index
                    && size <= config.segment_bytes as u64
                    && index_bytes_max(config, size) <= config.segment_index_bytes as u64
                    && self.end_of(index) - 1 - base_offset <= i64::from(i32::MAX)
            });
            if let Some(group) = groups.last_mut().filter(|_| fits) {
                group.end = index + 1;
                size += segment.size;
            } else {
                groups.push(index..index + 1);
                size = segment.size;
            }
        }
        groups
    }
}

/// Where the dirty part starts. A checkpoint with an offset outside the log is ignored.
pub(crate) fn first_dirty(snapshot: &Snapshot, clean_offset: i64) -> i64 {
    let start = snapshot.log_start_offset;
    let first = snapshot.segments.get(0).map_or(start, Segment::base_offset);
    if (start..=snapshot.log_end_offset).contains(&clean_offset) { clean_offset } else { first }
}

/// Upper bound of the size of the larger index of a segment of `size` bytes.
fn index_bytes_max(config: &LogConfig, size: u64) -> u64 {
    let interval = (config.index_interval_bytes as u64 + 1).max(BATCH_BYTES_MIN);
    let entry = time_index::ENTRY_SIZE.max(offset_index::ENTRY_SIZE) as u64;
    // One more for the last timestamp.
    (size / interval + 1) * entry
}
