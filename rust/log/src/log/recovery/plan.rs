//! What a log's files are compared with when it is opened.

use std::collections::BTreeSet;

use crate::directory::checkpoint::PartitionIdentity;
use crate::log::{Checkpointed, Damage, LogOptions, OnDamage};

/// 16 MiB in memory, from 2 to 4 GiB of batches.
const REBUILT_ENTRIES_MAX: usize = 1 << 20;

const SNAPSHOT_BYTES_MAX: usize = 16 << 20;

/// What to believe, and what to do about damage.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Whether segments are believed without reading them, beyond the recovery point too.
    pub(super) clean: bool,
    /// Segments that end below it are believed.
    pub(super) recovery_point: i64,
    /// A log that ends below it lacks records that were synced.
    pub(super) synced_end: i64,
    /// The recovery point that a damaged log keeps.
    pub(super) kept_recovery_point: i64,
    /// Where the log ended when it was closed cleanly. One that ends behind it is read: no CRC covers base offsets.
    pub(super) end_max: i64,
    /// Offsets below it may be missing: they were compacted away.
    pub(super) cleaner_offset: i64,
    /// Where the log begins, as far as that was checkpointed.
    pub(super) log_start_offset: Option<i64>,
    /// The high watermark that was checkpointed.
    pub(super) high_watermark: i64,
    pub(super) on_damage: OnDamage,
    /// Whether batches were acknowledged only once everything before them was synced, whatever a checkpoint tells.
    pub(super) syncs_every_append: bool,
    /// Value of [`Checkpointed::is_copy`].
    pub(super) is_copy: bool,
    /// What `partition.metadata` has to hold.
    pub(super) identity: Option<PartitionIdentity>,
    pub(super) index_interval_bytes: u64,
    /// Index entries that may be made before they are stored. Where there are more, they get sparser.
    pub(super) rebuilt_entries_max: usize,
    /// Bytes of producer snapshots that may be made before they are stored. Where there are more, the oldest are not made.
    pub(super) snapshot_bytes_max: usize,
    pub(super) producer_id_expiration_ms: i64,
    pub(super) now_ms: i64,
    /// Segments of which only indexes are left.
    pub(super) lost_segments: BTreeSet<i64>,
    /// Whether the log is opened for reading only.
    pub(super) is_read_only: bool,
    /// Segments whose `.log` was renamed to be deleted.
    pub(super) replaced: BTreeSet<i64>,
    /// The segment that a compaction makes. Segments before it are compacted.
    pub(super) compacting: Option<i64>,
    /// Segments whose transaction index is not whole: their batches tell what it held.
    pub(super) lost_aborted: BTreeSet<i64>,
}

impl Plan {
    pub(crate) fn of(options: &LogOptions) -> Plan {
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
        // Nobody misses what was deleted.
        let is_deleted = synced_end <= log_start_offset.unwrap_or(0);
        let is_end_known = clean && recovery_point > 0;
        let is_compacted = options.config.cleanup_policy.compact;
        Plan {
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

    /// The same, and every batch is read, whatever was synced.
    pub(crate) fn checking_all(self) -> Plan {
        Plan { clean: false, recovery_point: 0, ..self }
    }

    /// Whether damage where the log ends at `end` is left as it is.
    pub(super) fn keeps_damage(&self, end: i64) -> bool {
        match self.on_damage {
            OnDamage::Keep => true,
            OnDamage::CutUnsynced => end < self.synced_end,
            OnDamage::Cut => false,
        }
    }

    /// Whether a batch at `base_offset` behind `end` leaves out all that was synced from there on. Only compaction does.
    pub(super) fn skips_synced(&self, end: i64, base_offset: i64) -> bool {
        end < self.synced_end && base_offset >= self.synced_end.max(self.cleaner_offset)
    }

    /// Whether everything below `offset` was deleted, as a checkpoint tells.
    pub(super) fn is_deleted(&self, offset: i64) -> bool {
        self.log_start_offset.is_some_and(|start| offset <= start)
    }

    /// Records that were synced and are missing before the first segment.
    pub(super) fn loss_before(&self, first_base: i64) -> Option<Damage> {
        let start = self.log_start_offset?;
        let is_lost = start < first_base.min(self.synced_end) && self.on_damage != OnDamage::Cut;
        is_lost.then_some(Damage::Beginning { offset: start, last_offset: first_base - 1 })
    }

    /// Records that were synced and are missing, where the log ends at `end`.
    pub(super) fn loss(&self, end: i64) -> Option<Damage> {
        let synced_end = self.synced_end;
        (end < synced_end).then_some(Damage::Lost { offset: end, synced_end })
    }
}
