//! The facts and settings with which a log's files are compared when it is opened.

use std::collections::BTreeSet;
use std::io;

use crate::checkpoint::PartitionIdentity;
use crate::error::Damage;
use crate::log::types::{Checkpointed, LogOptions, OnDamage};
use crate::segment::scan::StoredBatch;

/// 16 MiB in memory, for 2 to 4 GiB of batches.
const REBUILT_ENTRIES_MAX: usize = 1 << 20;

const SNAPSHOT_BYTES_MAX: usize = 16 << 20;

/// Which files are trusted, and how damage is treated.
#[derive(Debug, Clone)]
pub(crate) struct RecoveryInput {
    /// True if segments are trusted without reading them, also beyond the recovery point.
    pub(super) clean: bool,
    /// Segments that end below are trusted.
    pub(super) recovery_point: i64,
    /// A log that ends below lacks synced records.
    pub(super) synced_end: i64,
    /// The recovery point that a damaged log keeps.
    pub(super) kept_recovery_point: i64,
    /// The log end offset at the clean stop. If the log ends after it, its end is read again,
    /// because no CRC covers base offsets.
    pub(super) end_max: i64,
    /// Offsets below may be missing because of compaction.
    pub(super) cleaner_offset: i64,
    /// The checkpointed log start offset, if there is one.
    pub(super) log_start_offset: Option<i64>,
    /// The checkpointed high watermark.
    pub(super) high_watermark: i64,
    pub(super) on_damage: OnDamage,
    /// True if batches were acknowledged only after all previous ones were synced, whatever a
    /// checkpoint contains.
    pub(super) syncs_every_append: bool,
    /// Value of [`Checkpointed::is_copy`].
    pub(super) is_copy: bool,
    /// The expected content of `partition.metadata`.
    pub(super) identity: Option<PartitionIdentity>,
    pub(super) index_interval_bytes: u64,
    /// Limit of the index entries that are rebuilt before they are stored. Above it, the indexes
    /// get sparser.
    pub(super) rebuilt_entries_max: usize,
    /// Limit of the bytes of new producer snapshots before they are stored. Above it, the oldest
    /// are dropped.
    pub(super) snapshot_bytes_max: usize,
    pub(super) producer_id_expiration_ms: i64,
    pub(super) now_ms: i64,
    /// Segments of which only index files exist.
    pub(super) lost_segments: BTreeSet<i64>,
    /// True if the log is opened read-only.
    pub(super) is_read_only: bool,
    /// Segments whose `.log` was renamed to be deleted.
    pub(super) replaced: BTreeSet<i64>,
    /// The segment that a compaction is writing. The segments before it are compacted.
    pub(super) compacting: Option<i64>,
    /// Segments whose transaction index is incomplete and must be rebuilt from the batches.
    pub(super) lost_aborted: BTreeSet<i64>,
}

impl RecoveryInput {
    pub(crate) fn of(options: &LogOptions) -> RecoveryInput {
        let Checkpointed {
            recovery_point,
            high_watermark,
            log_start_offset,
            cleaner_offset,
            is_copy,
        } = options.checkpointed;
        let clean = options.clean;
        // A clean stop syncs everything.
        let synced_end = recovery_point.max(if clean { high_watermark } else { 0 });
        // Deleted records cannot be missing.
        let is_deleted = synced_end <= log_start_offset.unwrap_or(0);
        let is_end_known = clean && recovery_point > 0;
        let is_compacted = options.config.cleanup_policy.compact;
        RecoveryInput {
            clean,
            recovery_point,
            synced_end: if is_deleted { 0 } else { synced_end },
            kept_recovery_point: synced_end,
            cleaner_offset: if is_compacted { i64::MAX } else { cleaner_offset },
            log_start_offset,
            end_max: if is_end_known { recovery_point } else { i64::MAX },
            high_watermark,
            on_damage: options.on_damage,
            syncs_every_append: options.config.syncs_every_append(),
            is_copy,
            identity: options.identity,
            index_interval_bytes: options.config.index_interval_bytes as u64,
            rebuilt_entries_max: REBUILT_ENTRIES_MAX,
            snapshot_bytes_max: SNAPSHOT_BYTES_MAX,
            producer_id_expiration_ms: options.producer_id_expiration_ms,
            now_ms: options.clock.now_ms(),
            lost_segments: BTreeSet::new(),
            is_read_only: options.read_only,
            replaced: BTreeSet::new(),
            compacting: None,
            lost_aborted: BTreeSet::new(),
        }
    }

    /// Makes an input that reads every batch, whether synced or not.
    pub(crate) fn checking_all(self) -> RecoveryInput {
        RecoveryInput { clean: false, recovery_point: 0, ..self }
    }

    /// True if damage is kept when the log ends at `end`.
    pub(super) fn keeps_damage(&self, end: i64) -> bool {
        match self.on_damage {
            OnDamage::Keep => true,
            OnDamage::CutUnsynced => end < self.synced_end,
            OnDamage::Cut => false,
        }
    }

    /// True if a batch at `base_offset` after `end` skips all synced records from there on, which
    /// only compaction causes.
    fn skips_synced(&self, end: i64, base_offset: i64) -> bool {
        end < self.synced_end && base_offset >= self.synced_end.max(self.cleaner_offset)
    }

    /// True if `batch` is valid and may follow a log that ends at `log_end_offset`, in a segment
    /// that ends at or below `end_max`. In a compacted segment, it may skip synced records.
    pub(super) fn accepts(
        &self,
        batch: &StoredBatch<'_>,
        log_end_offset: i64,
        end_max: i64,
        is_compacted: bool,
    ) -> io::Result<bool> {
        let first_offset = batch.first_offset_min(log_end_offset);
        let may_follow = batch.has_valid_offsets()
            && (is_compacted || !self.skips_synced(log_end_offset, first_offset))
            && batch.base_offset() >= log_end_offset
            && batch.next_offset() <= end_max;
        Ok(may_follow && batch.is_crc_valid()?)
    }

    /// True if everything below `offset` was deleted according to the checkpoint.
    pub(super) fn is_deleted(&self, offset: i64) -> bool {
        self.log_start_offset.is_some_and(|start| offset <= start)
    }

    /// Synced records that are missing before the first segment.
    pub(super) fn loss_before(&self, first_base: i64) -> Option<Damage> {
        let start = self.log_start_offset?;
        let is_lost = start < first_base.min(self.synced_end) && self.on_damage != OnDamage::Cut;
        is_lost.then_some(Damage::Beginning { offset: start, last_offset: first_base - 1 })
    }

    /// Synced records that are missing if the log ends at `end`.
    pub(super) fn loss(&self, end: i64) -> Option<Damage> {
        let synced_end = self.synced_end;
        (end < synced_end).then_some(Damage::Lost { offset: end, synced_end })
    }
}
