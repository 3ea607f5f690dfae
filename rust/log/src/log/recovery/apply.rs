//! Creates a log from the findings: its state in memory and, if it is writable, its files. No other
//! part of the recovery changes a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use pykafka_forks::Mutex;

use super::recovered::{Changes, Cut, FoundSegment, Recovered};
use crate::checkpoint;
use crate::error::StorageError;
use crate::file_names::{FileKind, SYNC_FAILED_FILE};
use crate::log::Log;
use crate::log::state::{State, Status};
use crate::log::sync::RecoveryPoint;
use crate::log::sync::rounds::Rounds;
use crate::log::sync::unsynced::Unsynced;
use crate::log::types::{LogOptions, Recovery, Shared};
use crate::log::verification::Transactions;
use crate::log::view::View;
use crate::segment::index_storage::store_aborted;
use crate::segment::shorten::shorten;
use crate::segment::withdrawn::Taken;
use crate::segment::{Segment, SegmentFiles};

/// Returns the log. Unless it is damaged or read-only, its files match the findings on return.
pub(crate) fn apply(
    mut found: Recovered,
    options: LogOptions,
) -> Result<(Log, Recovery), StorageError> {
    let recovery = found.verdict.clone();
    let status = match &recovery.damage {
        _ if options.read_only => Status::ReadOnly,
        Some(damage) => Status::Damaged(damage.clone()),
        None => Status::Open,
    };
    let changes = status.check_writable().is_ok().then(|| std::mem::take(&mut found.changes));
    let cuts: Vec<_> = found.segments.iter().map(|segment| segment.cut).collect();
    if changes.is_some() {
        found.segments.iter_mut().for_each(|segment| segment.swapped.clear());
    }
    if !options.read_only {
        // This process replaces files itself, and withdraws the old ones before.
        found.segments.iter_mut().for_each(|segment| segment.ids.clear());
    }
    let (mut state, shared) = state_of(found, options, status);
    if let Some(changes) = &changes {
        state.change_files(&shared, changes, &cuts)?;
    }
    let log = Log {
        view: Mutex::new(View::of(&state)),
        transactions: state.transactions.clone(),
        state: Mutex::new(state),
        shared,
        rounds: Rounds::default(),
        damage: recovery.damage.clone(),
        truncations: Arc::default(),
        compacting: Mutex::default(),
    };
    if let Some(changes) = changes {
        if recovery.segments_recovered > 0 {
            log.flush()?;
        }
        if changes.has_failed_sync {
            let marker = log.shared.dir.join(SYNC_FAILED_FILE);
            let removed = log.shared.disk.remove_file(&marker);
            removed.map_err(|error| StorageError::io("remove", &marker, error))?;
        }
    }
    Ok((log, recovery))
}

fn state_of(found: Recovered, options: LogOptions, status: Status) -> (State, Shared) {
    let shared = Shared {
        dir: options.dir.into(),
        disk: options.disk,
        clock: options.clock,
        buffers: options.buffers,
        identity: options.identity,
    };
    let created_ms = shared.clock.now_ms();
    let segments = found.segments.into_iter();
    let state = State {
        status,
        config: options.config,
        is_on_disk: found.is_on_disk,
        segments: segments.map(|segment| segment.into_segment(&shared, created_ms)).collect(),
        appender: None,
        indexes: None,
        log_start_offset: found.log_start_offset,
        log_end_offset: found.log_end_offset,
        recovery_point: RecoveryPoint::found(found.recovery_point),
        epochs: found.epochs,
        are_epochs_unstored: false,
        aborted_counts: found.aborted_counts,
        transactions: Arc::new(Transactions::of(&found.producers)),
        producers: found.producers,
        high_watermark: 0,
        snapshot_offset: found.snapshot_offset,
        unsynced: Unsynced::default(),
        unsynced_records: 0,
        unsynced_since_ms: None,
        deleted: Vec::new(),
        jitter: options.jitter_seed,
    };
    (state, shared)
}

impl FoundSegment {
    fn into_segment(self, shared: &Shared, created_ms: i64) -> Segment {
        let (dir, disk) = (shared.dir.clone(), shared.disk.clone());
        let files = SegmentFiles::new_found(dir, self.base_offset, disk, self.swapped, self.ids);
        files.expect_aborted(self.aborted_count);
        if let Some((indexes, aborted)) = self.rebuilt {
            files.set_rebuilt(indexes, aborted);
        }
        Segment {
            size: self.size,
            max_timestamp: self.max_timestamp,
            first_timestamp: None,
            created_ms,
            modified_ms: self.modified_ms.unwrap_or(created_ms),
            begun_ns: None,
            files,
        }
    }
}

impl State {
    /// Changes the files of a log without readers to match the findings. `cuts` has the cuts of its
    /// segments.
    ///
    /// Removed segments are deleted before the segment in front of them is shortened: if one
    /// reappeared, the log would have a gap before it. A crash in between is harmless, because the
    /// next open finds the remaining changes.
    fn change_files(
        &mut self,
        shared: &Shared,
        changes: &Changes,
        cuts: &[Option<Cut>],
    ) -> Result<(), StorageError> {
        let Shared { disk, dir, .. } = shared;
        let tidied = changes.leftovers.tidy(&**disk, dir);
        tidied.map_err(|error| StorageError::io("tidy", dir, error))?;
        if let Some(bytes) = &changes.partition_metadata {
            let path = dir.join(checkpoint::PARTITION_METADATA_FILE);
            self.replace_file(shared, path, bytes)?;
        }
        for (offset, bytes) in &changes.snapshots {
            self.write_snapshot(shared, *offset, bytes)?;
        }
        let counts = self.segments.iter().map(|segment| &segment.files);
        let counts: BTreeMap<_, _> =
            counts.map(|files| (files.base_offset(), files.aborted_count())).collect();
        self.lower_aborted_counts(shared, |base| counts.get(&base).copied().unwrap_or(0))?;
        let removed = changes.removed_segments.iter().map(|segment| {
            FoundSegment::new(segment.base_offset, segment.size).into_segment(shared, 0)
        });
        self.mark_deleted(shared, &Taken::of(removed.collect()).before_readers())?;
        for (index, cut) in cuts.iter().enumerate() {
            if let Some(cut) = cut {
                self.cut_file(shared, index, *cut)?;
            }
            self.store_rebuilt(shared, index)?;
        }
        if changes.has_new_epochs {
            self.store_epochs(shared)?;
        }
        for path in changes.removed_files.iter().map(|name| dir.join(name)) {
            let removed = disk.remove_file(&path);
            removed.map_err(|error| StorageError::io("remove", &path, error))?;
        }
        let rewritten = changes.rewritten_from.and_then(|first| self.segments.get(first..));
        for segment in rewritten.unwrap_or_default() {
            shorten(&**disk, &segment.files, segment.size, true)?;
        }
        Ok(())
    }

    /// Shortens the `.log` of a segment to its size.
    fn cut_file(&mut self, shared: &Shared, index: usize, cut: Cut) -> Result<(), StorageError> {
        let segment = &self.segments[index];
        shorten(&*shared.disk, &segment.files, segment.size, cut == Cut::ByCopy)?;
        self.unsynced.add_file(segment.files.path(FileKind::Log));
        Ok(())
    }

    /// Stores the rebuilt indexes of a segment.
    fn store_rebuilt(&mut self, shared: &Shared, index: usize) -> Result<(), StorageError> {
        let files = &self.segments[index].files;
        let Some((indexes, aborted)) = files.take_rebuilt() else { return Ok(()) };
        indexes.store(&*shared.disk, files)?;
        store_aborted(&*shared.disk, files, &aborted)?;
        // Once the recovery point is after them, the indexes of a sealed segment are trusted.
        self.unsynced.add_file(files.path(FileKind::OffsetIndex));
        self.unsynced.add_file(files.path(FileKind::TimeIndex));
        Ok(())
    }
}
