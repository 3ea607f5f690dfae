//! Compaction: keeps the last record of each key.
//!
//! # Theory of operation
//! Compaction cleans sealed segments below the last stable offset, starting with the first one. It
//! reads them twice:
//!
//! 1. The dirty segments, which end above the clean offset of the last compaction: [`keys`] stores
//!    the offset of the last committed record of each key, until the map is full.
//! 2. All segments up to there: each batch passes through a [`filter`] and is written to a new
//!    segment ([`output`]), one for each group of segments ([`plan`]), which then replaces the
//!    group ([`replace`]).
//!
//! Neither pass holds the log's lock. The replacement does, and is abandoned if the log was
//! truncated or the segments were removed since. Everything that is cleaned is synced first, so
//! that the record for which an older one is removed is durable before. Groups are replaced in
//! order, and durably, so that a tombstone is never removed before the records that it deletes.
//!
//! A tombstone gets its delete horizon when it is first cleaned, because then no older record of
//! its key is left. A tombstone below the clean offset without a horizon is kept; it exists if
//! another program wrote `cleaner-offset-checkpoint`.

mod filter;
mod keys;
mod output;
mod pace;
mod plan;
mod replace;
mod transactions;

use std::sync::Arc;

use pykafka_record::{Batch, Cancellation, Limits};

use self::filter::{Fate, Filter, LastBatches, Rules};
use self::keys::{KeyMap, Notes};
use self::output::Output;
use self::pace::Pace;
use self::plan::CompactionPlan;
use self::transactions::Aborted;
use super::Log;
use super::snapshot::Snapshot;
use crate::config::LogConfig;
use crate::disk::ReadFile;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::segment::scan::{BatchScanner, ScanError, StoredBatch};
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{Segment, SegmentFiles};

/// Settings of one compaction.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// Where the last compaction ended ([`CompactionReport::clean_offset`]), if known, otherwise 0.
    pub clean_offset: i64,
    /// Records at or above this offset are not changed.
    pub high_watermark: i64,
    /// Memory for the map of keys. The last batch may exceed it.
    pub key_bytes_max: usize,
    /// Size of a write; a larger batch is written whole.
    pub write_bytes: usize,
    /// Maximum of the bytes read and written per second, on average.
    pub bytes_per_second_max: f64,
    /// Checked between batches, and during waits for the pace. Groups that were replaced before
    /// stay replaced.
    pub cancellation: Cancellation,
}

impl Default for CompactionOptions {
    /// Cleans everything without delay, with the sizes of Kafka's `log.cleaner.dedupe.buffer.size`
    /// and `log.cleaner.io.buffer.size`.
    fn default() -> Self {
        CompactionOptions {
            clean_offset: 0,
            high_watermark: i64::MAX,
            key_bytes_max: 128 << 20,
            write_bytes: 512 << 10,
            bytes_per_second_max: f64::INFINITY,
            cancellation: Cancellation::default(),
        }
    }
}

/// Results of a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Everything below is clean: the next compaction starts here.
    pub clean_offset: i64,
    /// False if a truncation, retention or a cancellation ended it early. Groups that were replaced
    /// by then stay replaced, and `clean_offset` is the given one.
    pub is_complete: bool,
    /// Number of replaced segments.
    pub segments_before: usize,
    /// Number of segments that replaced them.
    pub segments_after: usize,
    /// Bytes of the replaced segments.
    pub bytes_before: u64,
    /// Bytes of the segments that replaced them.
    pub bytes_after: u64,
    /// Number of removed records.
    pub records_removed: u64,
    /// Number of the log's truncations when it started.
    truncations: u64,
}

/// How much of a log a compaction would clean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dirtiness {
    /// Bytes of segments that were cleaned before.
    pub clean_bytes: u64,
    /// Bytes of segments that may be cleaned now.
    pub dirty_bytes: u64,
    /// The smallest timestamp (ms) at the start of a sealed segment after the clean ones; `None`
    /// without such a segment or timestamp.
    pub first_dirty_timestamp: Option<i64>,
}

impl Dirtiness {
    /// The ratio that Kafka compares with `min.cleanable.dirty.ratio`.
    pub fn ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 { 0.0 } else { self.dirty_bytes as f64 / all as f64 }
    }

    /// True if a log must be compacted because of its dirty ratio or the age of its oldest dirty
    /// record.
    pub fn is_due(&self, config: &LogConfig, now_ms: i64) -> bool {
        let oldest_ms = now_ms.saturating_sub(config.max_compaction_lag_ms);
        let is_late = self.first_dirty_timestamp.is_some_and(|time| time < oldest_ms);
        self.dirty_bytes > 0 && (self.ratio() > config.min_cleanable_dirty_ratio || is_late)
    }
}

/// The reason why a compaction ended early.
enum Stopped {
    /// Not an error: it was cancelled, or another operation changed the log.
    Early,
    Failed(StorageError),
}

impl From<StorageError> for Stopped {
    fn from(error: StorageError) -> Self {
        Stopped::Failed(error)
    }
}

impl Log {
    /// Removes the records that have a later one with the same key, and everything else that Kafka
    /// removes. Blocks, but appends and reads continue concurrently.
    ///
    /// # Errors
    /// A segment cannot be read or has a damaged batch: the log stays unchanged, and later
    /// compactions fail too. Or the log cannot be written.
    pub fn compact(
        &self,
        options: &CompactionOptions,
        now_ms: i64,
    ) -> Result<CompactionReport, StorageError> {
        let _alone = self.compacting.lock();
        let last_stable_offset = self.last_stable_offset(options.high_watermark);
        self.view.lock().check_writable()?;
        let last_batches = LastBatches::of(&self.active_producers());
        let snapshot = self.snapshot()?;
        let config = self.config();
        let plan = CompactionPlan::of(
            &snapshot,
            &config,
            options.clean_offset,
            last_stable_offset,
            now_ms,
        );
        let mut report = CompactionReport {
            clean_offset: options.clean_offset,
            truncations: snapshot.truncations,
            ..CompactionReport::default()
        };
        if plan.segments.is_empty() {
            report.is_complete = true;
            return Ok(report);
        }
        output::remove_leftovers(&self.shared)?;
        // A record is removed in favour of a later one, which must be durable first.
        if self.recovery_point() < plan.upper {
            self.flush()?;
        }
        match self.compact_planned(&snapshot, &plan, &last_batches, options, now_ms, &mut report) {
            Ok(()) | Err(Stopped::Early) => Ok(report),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }

    fn compact_planned(
        &self,
        snapshot: &Snapshot,
        plan: &CompactionPlan,
        last_batches: &LastBatches,
        options: &CompactionOptions,
        now_ms: i64,
        report: &mut CompactionReport,
    ) -> Result<(), Stopped> {
        let first = plan.segments.first().map_or(0, Segment::base_offset);
        let mut keys = KeyMap::new(options.key_bytes_max);
        let pace =
            Pace::new(options.bytes_per_second_max, &options.cancellation, &*self.shared.clock);
        let config = self.config();
        let limits = config.limits(Limits::default());
        let mut look = || {
            let aborted = Aborted::of(&snapshot.aborted_transactions(first..plan.upper)?);
            let end = note_keys(plan, &aborted, limits, &mut keys, &pace)?;
            Ok((aborted, end))
        };
        let (aborted, end) = excused(&plan.segments, look())?;
        let rules = Rules {
            keys: &keys,
            aborted: &aborted,
            last_batches,
            config: &config,
            first_dirty: plan.first_dirty,
            end,
            now_ms,
        };
        let mut filter = Filter::default();
        for group in plan.groups(&config, end) {
            let sources = &plan.segments[group];
            let records_gone = filter.records_gone;
            let cleaned = self.clean(sources, &rules, &mut filter, options.write_bytes, &pace);
            let Some(cleaned) = excused(sources, cleaned)? else { continue };
            let (size, gone) = (cleaned.size, filter.last_marker_gone);
            if !self.replace(sources, cleaned, report.truncations, gone)? {
                return Err(Stopped::Early);
            }
            report.segments_before += sources.len();
            report.segments_after += 1;
            report.bytes_before += sources.iter().map(|source| source.size).sum::<u64>();
            report.bytes_after += size;
            report.records_removed += filter.records_gone - records_gone;
        }
        report.clean_offset = end;
        report.is_complete = true;
        Ok(())
    }

    /// Writes the remaining records of a group of segments; `None` if nothing would change.
    fn clean(
        &self,
        sources: &[Segment],
        rules: &Rules<'_>,
        filter: &mut Filter,
        write_bytes: usize,
        pace: &Pace<'_>,
    ) -> Result<Option<Segment>, Stopped> {
        let (Some(first), Some(last)) = (sources.first(), sources.last()) else { return Ok(None) };
        let interval = rules.config.index_interval_bytes as u64;
        let mut output = Output::create(&self.shared, first.base_offset(), interval, write_bytes)?;
        let mut is_changed = sources.len() > 1;
        let mut has_room = true;
        for source in sources {
            let aborted = source.files.aborted()?;
            let is_last_source = Arc::ptr_eq(&source.files, &last.files);
            walk(source, 0, pace, |stored, batch| {
                if !has_room {
                    output.buffer.clear();
                }
                let is_last =
                    is_last_source && stored.position() + batch.size() as u64 == source.size;
                let start = output.buffer.len();
                let fate = filter.pass(rules, batch, is_last, &mut output.buffer);
                is_changed |= matches!(fate, Fate::Changed | Fate::Gone);
                if fate == Fate::KeptWithData {
                    let of_marker = |txn: &&AbortedTxn| txn.last_offset == batch.base_offset();
                    aborted.iter().filter(of_marker).for_each(|txn| output.note_aborted(*txn));
                }
                if fate == Fate::Gone {
                    return Ok(true);
                }
                // Written again at another level, batches may become larger.
                has_room &= i32::try_from(output.size()).is_ok();
                if has_room {
                    pace.spend(output.buffer.len() - start);
                    output.note(start)?;
                }
                Ok(true)
            })?;
        }
        if !is_changed || !has_room {
            filter.keeps_tombstones |= !has_room;
            output.discard()?;
            return Ok(None);
        }
        Ok(Some(output.finish(last)?))
    }

    /// Returns how much a compaction would clean, by the sizes of the segments.
    ///
    /// # Errors
    /// A segment that may be cleaned cannot be read.
    pub fn dirtiness(
        &self,
        clean_offset: i64,
        high_watermark: i64,
        now_ms: i64,
    ) -> Result<Dirtiness, StorageError> {
        let last_stable_offset = self.last_stable_offset(high_watermark);
        let config = self.config();
        self.undisturbed(|snapshot| {
            let plan =
                CompactionPlan::of(snapshot, &config, clean_offset, last_stable_offset, now_ms);
            let bytes = |segments: &mut dyn Iterator<Item = &Segment>| {
                segments.map(|segment| segment.size).sum::<u64>()
            };
            let dirty_bytes = bytes(&mut plan.dirty());
            let first_dirty_timestamp = first_dirty_timestamp(snapshot, plan.first_dirty)?;
            let clean_bytes = bytes(&mut plan.segments.iter()) - dirty_bytes;
            Ok(Dirtiness { clean_bytes, dirty_bytes, first_dirty_timestamp })
        })
    }

    /// True if a report is still valid, because the log was not truncated since.
    pub(crate) fn is_current(&self, report: &CompactionReport) -> bool {
        self.truncations.load(std::sync::atomic::Ordering::SeqCst) == report.truncations
    }
}

/// Ignores an error of reading segments that were removed from the log in between.
fn excused<T>(segments: &[Segment], result: Result<T, Stopped>) -> Result<T, Stopped> {
    let has_left = || segments.iter().any(|segment| segment.files.is_withdrawn());
    match result {
        Err(Stopped::Failed(_)) if has_left() => Err(Stopped::Early),
        result => result,
    }
}

/// The smallest first timestamp of the sealed segments that end above `first_dirty`.
fn first_dirty_timestamp(
    snapshot: &Snapshot,
    first_dirty: i64,
) -> Result<Option<i64>, StorageError> {
    let sealed = snapshot.segments.len().saturating_sub(1);
    let mut smallest = None;
    for (index, segment) in snapshot.segments.iter().take(sealed).enumerate() {
        if snapshot.end_of(index) <= first_dirty || segment.size == 0 {
            continue;
        }
        let timestamp = first_timestamp(&*segment.files.log()?, segment.size);
        smallest = smallest.into_iter().chain(timestamp).min();
    }
    Ok(smallest)
}

/// The first timestamp (ms) in a segment file of `size` bytes, if there is one.
pub(crate) fn first_timestamp(file: &dyn ReadFile, size: u64) -> Option<i64> {
    let mut scanner = BatchScanner::new(file, 0, size);
    let timestamp = scanner.next().ok().flatten().map(|batch| batch.max_timestamp());
    timestamp.filter(|timestamp| *timestamp >= 0)
}

/// Stores the last offset of each key in the dirty segments; returns where it ended (exclusive).
fn note_keys(
    plan: &CompactionPlan,
    aborted: &Aborted,
    limits: Limits,
    keys: &mut KeyMap,
    pace: &Pace<'_>,
) -> Result<i64, Stopped> {
    let (mut end, mut reached) = (None, plan.first_dirty);
    let mut notes = Notes::new(limits);
    for segment in plan.dirty() {
        let position = segment.files.position_of(plan.first_dirty)?;
        walk(segment, position, pace, |_, batch| {
            if batch.last_offset() < plan.first_dirty {
                return Ok(true);
            }
            if keys.is_full() {
                end = Some(batch.first_offset_min(reached));
                return Ok(false);
            }
            reached = batch.next_offset();
            if !batch.is_control() && !aborted.has(batch) {
                notes.note(batch, plan.first_dirty, keys);
            }
            Ok(true)
        })?;
        if end.is_some() {
            break;
        }
    }
    Ok(end.unwrap_or(plan.upper))
}

/// Calls `see` for each batch from a position on, until it returns `false`. Checks each CRC.
fn walk(
    segment: &Segment,
    position: u64,
    pace: &Pace<'_>,
    mut see: impl FnMut(&StoredBatch<'_>, &Batch<'_>) -> Result<bool, StorageError>,
) -> Result<(), Stopped> {
    let files = &*segment.files;
    let file = files.log()?;
    let mut scanner = BatchScanner::new(&*file, position, segment.size);
    let mut buffer = Vec::new();
    loop {
        pace.keep().map_err(|_| Stopped::Early)?;
        let at = scanner.position();
        let stored = match scanner.next() {
            Ok(Some(stored)) => stored,
            Ok(None) => return Ok(()),
            Err(error) => return Err(unreadable(files, at, error).into()),
        };
        let batch = stored.read(&mut buffer).map_err(|error| unreadable(files, at, error))?;
        pace.spend(batch.size());
        if !batch.is_crc_valid() {
            return Err(malformed(files, at, "its checksum is wrong".to_owned()).into());
        }
        if !see(&stored, &batch)? {
            return Ok(());
        }
    }
}

pub(in crate::log) fn unreadable(
    files: &SegmentFiles,
    position: u64,
    error: ScanError,
) -> StorageError {
    match error {
        ScanError::Io(error) => files.error("read", FileKind::Log)(error),
        ScanError::Bad(error) => malformed(files, position, error.to_string()),
    }
}

pub(in crate::log) fn malformed(
    files: &SegmentFiles,
    position: u64,
    reason: String,
) -> StorageError {
    StorageError::Malformed { path: files.path(FileKind::Log), position, reason }
}
