//! Compaction: of each key the last record stays.
//!
//! # Theory of operation
//! Sealed segments below the last stable offset are cleaned, from the first one on. Two walks:
//! 1. over the dirty ones, those behind where the last compaction ended: the offset of the last committed record of each
//!    key is noted ([`keys`]), until the map is full;
//! 2. over all up to there: each batch is passed through a [`filter`] and written to a new segment ([`output`]), one for
//!    each group of segments ([`plan`]), which then takes the place of its group ([`replace`]).
//!
//! Neither walk holds the log's lock; the replacement does, and gives up if the log was truncated or lost the segments
//! meanwhile. What a removed record was removed for is durable before: everything that is cleaned is synced first.
//! Groups are replaced in their order, and durably, so that a tombstone never goes before what it deletes.
//!
//! A tombstone gets its delete horizon when it is first cleaned, so that no older record of its key is left. One that was
//! never noted, as an offset in `cleaner-offset-checkpoint` that somebody else wrote may leave it, stays.

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
use self::plan::Plan;
use self::transactions::Aborted;
use super::snapshot::Snapshot;
use super::{Log, StorageError};
use crate::config::LogConfig;
use crate::disk::ReadFile;
use crate::segment::scan::{BatchScanner, ScanError, StoredBatch};
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{FileKind, Segment, SegmentFiles};

/// What a compaction is told.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// Where the last compaction ended ([`CompactionReport::clean_offset`]), as far as is known; 0 for nowhere.
    pub clean_offset: i64,
    /// Nothing at or above it is touched.
    pub high_watermark: i64,
    /// What the map of keys may take. One batch more than fits is noted.
    pub key_bytes_max: usize,
    /// Bytes that are written at once; a larger batch is written whole.
    pub write_bytes: usize,
    /// What is read and written in a second, on average.
    pub bytes_per_second_max: f64,
    /// Asked between batches, and while it waits for its pace; what was replaced by then stays replaced.
    pub cancellation: Cancellation,
}

impl Default for CompactionOptions {
    /// Everything, at once, in Kafka's `log.cleaner.dedupe.buffer.size` and `log.cleaner.io.buffer.size`.
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

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Everything below is clean: the next compaction begins there.
    pub clean_offset: i64,
    /// Whether it came to its end. A truncation, retention or a cancellation ends it before; what it did by then is done, and
    /// `clean_offset` is the one that was given.
    pub is_complete: bool,
    /// Segments that were replaced, and how many replaced them.
    pub segments_before: usize,
    /// See `segments_before`.
    pub segments_after: usize,
    /// Bytes of those that were replaced.
    pub bytes_before: u64,
    /// Bytes of what replaced them.
    pub bytes_after: u64,
    /// Records that went.
    pub records_removed: u64,
    /// Which truncation it saw last.
    truncations: u64,
}

/// How much of a log a compaction would clean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dirtiness {
    /// Bytes of segments that were cleaned before.
    pub clean_bytes: u64,
    /// Bytes of segments that may be cleaned now.
    pub dirty_bytes: u64,
    /// The smallest timestamp (ms) that a sealed segment behind the clean ones begins with; `None` without one.
    pub first_dirty_timestamp: Option<i64>,
}

impl Dirtiness {
    /// What Kafka compares with `min.cleanable.dirty.ratio`.
    pub fn ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 { 0.0 } else { self.dirty_bytes as f64 / all as f64 }
    }

    /// Whether a log must be compacted, by its share of dirty bytes or by the age of the oldest.
    pub fn is_due(&self, config: &LogConfig, now_ms: i64) -> bool {
        let oldest_ms = now_ms.saturating_sub(config.max_compaction_lag_ms);
        let is_late = self.first_dirty_timestamp.is_some_and(|time| time < oldest_ms);
        self.dirty_bytes > 0 && (self.ratio() > config.min_cleanable_dirty_ratio || is_late)
    }
}

/// Why a compaction ended before its end.
enum Stopped {
    /// Nothing is wrong: it was cancelled, or the log was changed by others.
    Early,
    Failed(StorageError),
}

impl From<StorageError> for Stopped {
    fn from(error: StorageError) -> Self {
        Stopped::Failed(error)
    }
}

impl Log {
    /// Removes the records of which a later one has the same key, and what Kafka removes with them. Blocks; appends and
    /// readers go on beside it.
    ///
    /// # Errors
    /// A segment cannot be read, or has a damaged batch: the log stays as it is, and later compactions fail too. Or the
    /// log cannot be written.
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
        let plan = Plan::of(&snapshot, &config, options.clean_offset, last_stable_offset, now_ms);
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
        // A record goes for the sake of a later one, which must not be lost then.
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
        plan: &Plan,
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

    /// Writes what is left of a group of segments; `None` if nothing would change.
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
                // Written again, with another level, batches may be larger than they were.
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

    /// How much a compaction would clean, by the sizes of segments.
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
            let plan = Plan::of(snapshot, &config, clean_offset, last_stable_offset, now_ms);
            let bytes = |segments: &mut dyn Iterator<Item = &Segment>| {
                segments.map(|segment| segment.size).sum::<u64>()
            };
            let dirty_bytes = bytes(&mut plan.dirty());
            let first_dirty_timestamp = first_dirty_timestamp(snapshot, plan.first_dirty)?;
            let clean_bytes = bytes(&mut plan.segments.iter()) - dirty_bytes;
            Ok(Dirtiness { clean_bytes, dirty_bytes, first_dirty_timestamp })
        })
    }

    /// Whether what a compaction reported still holds: no truncation came since.
    pub(crate) fn is_current(&self, report: &CompactionReport) -> bool {
        self.truncations.load(std::sync::atomic::Ordering::SeqCst) == report.truncations
    }
}

/// An error of reading segments that left the log meanwhile is none.
fn excused<T>(segments: &[Segment], result: Result<T, Stopped>) -> Result<T, Stopped> {
    let has_left = || segments.iter().any(|segment| segment.files.is_withdrawn());
    match result {
        Err(Stopped::Failed(_)) if has_left() => Err(Stopped::Early),
        result => result,
    }
}

/// The smallest timestamp with which a sealed segment begins that reaches behind `first_dirty`.
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

/// The timestamp (ms) with which a segment's file of `size` bytes begins, if it has one.
pub(crate) fn first_timestamp(file: &dyn ReadFile, size: u64) -> Option<i64> {
    let mut scanner = BatchScanner::new(file, 0, size);
    let timestamp = scanner.next().ok().flatten().map(|batch| batch.max_timestamp());
    timestamp.filter(|timestamp| *timestamp >= 0)
}

/// Notes the last offset of each key in the dirty segments; returns where it ended (exclusive).
fn note_keys(
    plan: &Plan,
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

/// Calls `see` for each batch from a position on, until it returns `false`. Each has a valid CRC.
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
