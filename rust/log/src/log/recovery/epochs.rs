//! Checks that `leader-epoch-checkpoint` agrees with the batches.
//!
//! Leader epochs never decrease from one batch to the next. So the file is correct if it has the
//! epochs of the first and the last batch of the log, and of the batches on both sides of each
//! start offset. Only the headers of these batches are read, and only for the newest entries. If
//! the file contradicts one of them, it is corrected from the headers of all batches.
//!
//! An epoch is stored before its first append, and no CRC covers the epoch of a batch. So an epoch
//! that only one batch has is not added to a file that no other batch contradicts.
//!
//! If the epochs of the batches decrease, as after a topic was created again, or if a batch has no
//! epoch, the file is trusted.
//!
//! A trim removes entries before the log start offset is checkpointed. A log without a checkpointed
//! start is compared from the first entry on. In any other log, missing entries are added to a file
//! that starts too late. The file of the metadata log is never corrected.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::Path;

use pykafka_record::LeaderEpoch;

use super::inspection::Inspection;
use super::recovered::FoundSegment;
use super::stored_indexes::position_of;
use crate::checkpoint;
use crate::directory_names::parse_partition_dir;
use crate::epoch_cache::{EpochCache, EpochEntry};
use crate::error::{OpenError, StorageError};
use crate::file_names::FileKind;
use crate::segment::scan::{Header, HeaderScanner, ScanError};

/// Number of entries that are compared with the batches at each open.
const ENTRIES_MAX: usize = 32;

impl Inspection<'_> {
    /// Reads `leader-epoch-checkpoint`; `false` if it is missing or unreadable, so that all batches
    /// must be read.
    pub(super) fn load_epochs(&mut self) -> Result<bool, OpenError> {
        let name = checkpoint::LEADER_EPOCH_FILE;
        let Some(bytes) = self.dir.read_if_there(name)? else { return Ok(false) };
        match checkpoint::read_epochs(&bytes) {
            Ok(entries) => {
                self.found.epochs = EpochCache::from_entries(entries);
                self.correct_epochs()?;
                Ok(true)
            }
            Err(error) => {
                self.warn(name, &format!("{error}; rebuilt"));
                Ok(false)
            }
        }
    }

    /// Corrects the epochs from all headers if one of the compared headers contradicts them.
    fn correct_epochs(&mut self) -> Result<(), StorageError> {
        let Some(start) = self.compared_from() else { return Ok(()) };
        let headers = self.headers_beside_entries(start)?;
        let mut contradictions =
            headers.iter().filter_map(|header| self.contradiction(header, start));
        let Some(contradiction) = contradictions.next() else { return Ok(()) };
        let mut looked_up = Growing::from(start);
        if !headers.iter().all(|header| looked_up.take(header)) {
            return Ok(());
        }
        let mut all = Growing::from(start);
        let first = self.found.segment_of(start).unwrap_or(0);
        for segment in &self.found.segments[first..] {
            let name = segment.name(FileKind::Log);
            let file = self.dir.open(&name)?;
            let mut scanner = HeaderScanner::new(&*file, 0, segment.size);
            let walked = walk(&mut scanner, |header| all.take(header));
            walked.map_err(self.dir.error("read", &name))?;
        }
        let Some(corrected) = all.corrected(&self.found.epochs) else { return Ok(()) };
        self.found.epochs = corrected;
        self.found.changes.has_new_epochs = true;
        self.warn(checkpoint::LEADER_EPOCH_FILE, &format!("{contradiction}; corrected"));
        Ok(())
    }

    /// The first offset whose epoch is compared; `None` if nothing can be compared.
    fn compared_from(&self) -> Option<i64> {
        if is_metadata_log(self.dir.dir()) {
            return None;
        }
        let first = self.found.segments.first()?.base_offset;
        let first_entry = || Some(self.found.epochs.entries().first()?.start_offset);
        Some(self.input.log_start_offset.or_else(first_entry)?.max(first))
    }

    /// Headers of the batches on both sides of the newest start offsets, and of the first and last
    /// batch from `start` on.
    fn headers_beside_entries(&self, start: i64) -> Result<Vec<Header>, StorageError> {
        let entries = self.found.epochs.entries();
        let newest = entries.iter().rev().take(ENTRIES_MAX).map(|entry| entry.start_offset);
        let sides = newest.flat_map(|offset| [offset - 1, offset]).filter(|offset| *offset > start);
        let offsets: BTreeSet<i64> = sides.chain([start, i64::MAX]).collect();
        let mut headers = Vec::new();
        let mut segments = self.found.segments.iter().filter(|segment| segment.size > 0).peekable();
        while let Some(segment) = segments.next() {
            let end = segments.peek().map_or(Unbounded, |next| Excluded(next.base_offset));
            let within = offsets.range((Included(segment.base_offset), end));
            headers.extend(self.last_headers(segment, within)?);
        }
        headers.retain(|header| header.last_offset >= start);
        Ok(headers)
    }

    /// For each of the increasing `offsets`, the last batch of a segment that starts at or before
    /// it. A single pass finds all of them, because without an index it starts at the beginning of
    /// the segment.
    fn last_headers<'b>(
        &self,
        segment: &FoundSegment,
        offsets: impl Iterator<Item = &'b i64>,
    ) -> Result<Vec<Header>, StorageError> {
        let name = segment.name(FileKind::Log);
        let mut offsets = offsets.peekable();
        if offsets.peek().is_none() {
            return Ok(Vec::new());
        }
        let file = self.dir.open(&name)?;
        let mut scanner = HeaderScanner::new(&*file, 0, segment.size);
        let (mut last, mut headers) = (None, Vec::new());
        for offset in offsets {
            let position = position_of(&self.dir, segment.base_offset, *offset)?;
            scanner.seek(position.max(scanner.position()));
            let walked = walk(&mut scanner, |header| {
                let is_before = header.base_offset <= *offset;
                last = if is_before { Some(*header) } else { last };
                is_before
            });
            walked.map_err(self.dir.error("read", &name))?;
            headers.extend(last);
        }
        headers.dedup();
        Ok(headers)
    }

    /// Describes a batch for which the file has another epoch.
    fn contradiction(&self, header: &Header, start: i64) -> Option<String> {
        let epoch = header.leader_epoch?;
        let offsets = [header.base_offset.max(start), header.last_offset];
        let named = offsets.map(|offset| (offset, self.found.epochs.epoch_for_offset(offset)));
        let (offset, named) = named.into_iter().find(|(_, named)| *named != Some(epoch))?;
        let named = named.map_or("no epoch".to_owned(), |named| format!("epoch {named}"));
        Some(format!("it has {named} for offset {offset}, and the batch there has {epoch}"))
    }
}

/// True for the directory of the metadata log.
fn is_metadata_log(dir: &Path) -> bool {
    let partition = dir.file_name().and_then(OsStr::to_str).and_then(parse_partition_dir);
    partition.is_some_and(|(topic, _)| topic == checkpoint::METADATA_TOPIC)
}

/// Consecutive batches of one epoch.
#[derive(Debug, Clone, Copy)]
struct Run {
    epoch: LeaderEpoch,
    base_offset: i64,
    last_offset: i64,
    batches: u64,
}

impl Run {
    /// True if only a single batch has its epoch, and the file has another epoch there.
    fn is_doubtful(&self, file: &EpochCache) -> bool {
        let is_named = file.entries().iter().any(|entry| entry.epoch == self.epoch);
        self.batches == 1 && !is_named && file.epoch_for_offset(self.base_offset).is_some()
    }
}

/// The epochs of batches, as long as they do not decrease.
struct Growing {
    start: i64,
    runs: Vec<Run>,
    grows: bool,
}

impl Growing {
    /// Starts with the first batch that reaches `start`.
    fn from(start: i64) -> Growing {
        Growing { start, runs: Vec::new(), grows: true }
    }

    /// Adds the next batch; `false` if an epoch decreases or is missing.
    fn take(&mut self, header: &Header) -> bool {
        if header.last_offset < self.start {
            return self.grows;
        }
        let latest = self.runs.last_mut();
        let least = latest.as_ref().map_or(LeaderEpoch::ZERO, |run| run.epoch);
        let Some(epoch) = header.leader_epoch.filter(|epoch| *epoch >= least) else {
            self.grows = false;
            return false;
        };
        let last_offset = header.last_offset;
        if let Some(run) = latest.filter(|run| run.epoch == epoch) {
            run.last_offset = last_offset;
            run.batches += 1;
        } else {
            let base_offset = header.base_offset.max(self.start);
            self.runs.push(Run { epoch, base_offset, last_offset, batches: 1 });
        }
        self.grows
    }

    /// A file with the epochs of these batches; `None` if the file is correct, or if the epochs
    /// decrease.
    fn corrected(&self, file: &EpochCache) -> Option<EpochCache> {
        let sure: Vec<Run> =
            self.runs.iter().filter(|run| !run.is_doubtful(file)).copied().collect();
        let is_wrong = self.grows && merged(file, &sure) != *file;
        is_wrong.then(|| merged(file, &self.runs))
    }
}

/// The entries of the file that no batch contradicts, and entries for the missing epochs.
fn merged(file: &EpochCache, runs: &[Run]) -> EpochCache {
    let is_contradicted = |entry: &EpochEntry| {
        let (before, after) = runs.split_at(runs.partition_point(|run| run.epoch < entry.epoch));
        before.last().is_some_and(|run| run.last_offset >= entry.start_offset)
            || after.first().is_some_and(|run| run.base_offset < entry.start_offset)
    };
    let kept = file.entries().iter().filter(|entry| !is_contradicted(entry)).copied();
    let mut entries: Vec<EpochEntry> = kept.collect();
    let named: BTreeSet<LeaderEpoch> = entries.iter().map(|entry| entry.epoch).collect();
    let lacking = runs.iter().filter(|run| !named.contains(&run.epoch));
    entries
        .extend(lacking.map(|run| EpochEntry { epoch: run.epoch, start_offset: run.base_offset }));
    entries.sort_by_key(|entry| entry.epoch);
    EpochCache::from_entries(entries)
}

/// Calls `see` for the header of each batch before a bad one, while it returns `true`. The next
/// pass starts with the header for which it returned `false`.
fn walk(
    headers: &mut HeaderScanner<'_>,
    mut see: impl FnMut(&Header) -> bool,
) -> std::io::Result<()> {
    loop {
        let position = headers.position();
        match headers.next() {
            Ok(Some(header)) if see(&header) => {}
            Ok(_) | Err(ScanError::Bad(_)) => {
                headers.seek(position);
                return Ok(());
            }
            Err(ScanError::Io(error)) => return Err(error),
        }
    }
}
