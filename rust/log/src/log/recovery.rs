//! Recovery: what was not synced, or is not believed, is read batch by batch and its derived files made anew.
//!
//! # Theory of operation
//! A segment is *dirty* if it reaches beyond the recovery point of a log that was not closed in good order, or
//! if its indexes are missing or garbage. Dirty segments are read from the first byte: CRC, sizes and offsets
//! of each batch, building indexes, epochs, producer state and aborted transactions. Producer state starts from
//! the newest snapshot at or below the first dirty segment.
//!
//! The first batch that does not hold ends the log. What stands behind it decides what it is:
//! - nothing but zeros (space reserved ahead) or bytes that form no batch: a *torn tail*. It is cut.
//! - a valid batch, or the end lies below the recovery point: *damage*. What follows was once acknowledged, so
//!   nothing is touched; readers get the part before, and `repair` may cut.

use pykafka_record::{Batch, HEADER_SIZE};

use super::load::{Damage, read_if_there};
use super::state::{State, Status};
use super::truncate::shorten;
use super::{OpenError, Recovery, Shared, StorageError, producers};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::indexes::Indexes;
use crate::offset_index::{self, OffsetEntry};
use crate::scan::{BatchScanner, ScanError, peek_offsets};
use crate::segment::{FileKind, Segment, SegmentFiles, parse_file_name};
use crate::time_index::{self, TimeEntry};
use crate::transaction_index::AbortedTxn;

/// What to believe, and what to do with damage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) clean: bool,
    pub(crate) recovery_point: i64,
    pub(crate) damage: Damage,
}

/// Sums up the listed segments in `state`, recovering those that are dirty.
pub(crate) fn recover(
    state: &mut State,
    shared: &Shared,
    plan: Plan,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    if let Some(first) = state.segments.first() {
        state.log_end_offset = first.base_offset();
    }
    let mut dirty = dirty_segments(state, shared, plan)?;
    if dirty.last() == Some(&false) && !trust_last(state, shared)? {
        *dirty.last_mut().expect("there is a last one") = true;
    }
    let trusted_end = (dirty.last() == Some(&false)).then_some(state.log_end_offset);
    let first_dirty = dirty.iter().position(|is_dirty| *is_dirty);
    let limit = first_dirty.map_or(state.log_end_offset, |i| state.segments[i].base_offset());
    load_producers(state, shared, limit, &mut recovery.warnings)?;
    let mut is_changed = false;
    let from = state.segment_of(state.producers.map_end_offset()).unwrap_or(0);
    for (index, is_dirty) in dirty.iter().enumerate().skip(from) {
        if !is_dirty {
            let segment = state.segments[index].clone();
            replay(state, &segment)?;
            continue;
        }
        is_changed = true;
        recovery.segments_recovered += 1;
        let follows_recovered = index.checked_sub(1).is_some_and(|before| dirty[before]);
        let end_before = if follows_recovered { state.log_end_offset } else { 0 };
        state.log_end_offset = state.segments[index].base_offset().max(end_before);
        store_boundary_snapshot(state, shared)?;
        let position = recover_segment(state, shared, index)?;
        let is_cut_off = position < state.segments[index].size;
        if is_followed_by_gap(state, plan, index)
            || (is_cut_off && !is_untrimmed(state, shared, index, position)?)
        {
            end_log(state, shared, plan, index, position, recovery)?;
            return finish(state, shared, is_changed).map_err(OpenError::from);
        }
        if is_cut_off {
            cut_file(state, shared, index, position, false)?;
        }
        store_recovered(state, shared, index)?;
    }
    if let Some(trusted_end) = trusted_end {
        state.log_end_offset = trusted_end;
    }
    finish(state, shared, is_changed)?;
    Ok(())
}

/// Which segments must be read batch by batch; the others get their largest timestamp from their index.
fn dirty_segments(
    state: &mut State,
    shared: &Shared,
    plan: Plan,
) -> Result<Vec<bool>, StorageError> {
    let count = state.segments.len();
    // The segment that ends at the recovery point is dirty too: its last sync was before it was trimmed.
    let first = match state.segment_of(plan.recovery_point.saturating_sub(1)) {
        Some(index) if !plan.clean => index,
        _ => count,
    };
    let mut dirty = vec![true; count];
    for (index, segment) in state.segments.iter_mut().enumerate().take(first) {
        match sealed_max_timestamp(&*shared.disk, segment)? {
            Some(max) => {
                segment.max_timestamp = max;
                dirty[index] = false;
            }
            // The last one is looked at whole in any case.
            None => dirty[index] = index + 1 < count,
        }
    }
    Ok(dirty)
}

/// The largest timestamp of a sealed segment by its time index; `None` if its indexes are not to be believed.
fn sealed_max_timestamp(
    disk: &dyn Disk,
    segment: &Segment,
) -> Result<Option<TimeEntry>, StorageError> {
    let (files, base) = (&segment.files, segment.base_offset());
    let offsets = last_entry::<{ offset_index::ENTRY_SIZE }>(disk, files, FileKind::OffsetIndex)?;
    let times = last_entry::<{ time_index::ENTRY_SIZE }>(disk, files, FileKind::TimeIndex)?;
    let is_good = match offsets {
        LastEntry::NoIndex => return Ok(None),
        LastEntry::NoEntry => true,
        LastEntry::Entry(entry) => {
            let entry = OffsetEntry::decode(entry, base);
            entry.position > 0 && entry.position < segment.size && entry.offset > base
        }
    };
    let max = match times {
        LastEntry::NoEntry => TimeEntry::none(base),
        LastEntry::NoIndex | LastEntry::Entry([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) => {
            return Ok(None);
        }
        LastEntry::Entry(entry) => TimeEntry::decode(&entry, base),
    };
    Ok(is_good.then_some(max))
}

/// The end of an index file.
enum LastEntry<const SIZE: usize> {
    /// There is no file, or its length is ragged.
    NoIndex,
    /// It is empty.
    NoEntry,
    Entry([u8; SIZE]),
}

fn last_entry<const SIZE: usize>(
    disk: &dyn Disk,
    files: &SegmentFiles,
    kind: FileKind,
) -> Result<LastEntry<SIZE>, StorageError> {
    let read = || {
        let file = disk.open(&files.path(kind), OpenMode::Read)?;
        let size = file.size()?;
        if size % SIZE as u64 != 0 {
            return Ok(LastEntry::NoIndex);
        }
        let mut entry = [0; SIZE];
        match size.checked_sub(SIZE as u64) {
            None => Ok(LastEntry::NoEntry),
            Some(position) => {
                let read = file.read_at(&mut entry, position)?;
                Ok(if read == SIZE { LastEntry::Entry(entry) } else { LastEntry::NoIndex })
            }
        }
    };
    let result: std::io::Result<_> = read();
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(LastEntry::NoIndex),
        result => result.map_err(files.error("read", kind)),
    }
}

/// Finds the log end of a log closed in good order from the last index entry on; `false` if that fails.
fn trust_last(state: &mut State, shared: &Shared) -> Result<bool, StorageError> {
    let segment = state.segments.last_mut().expect("the caller has looked");
    let Some(indexes) = Indexes::load(&*shared.disk, segment)? else { return Ok(false) };
    segment.max_timestamp = indexes.times.last();
    let start = indexes.offsets.last().map_or(0, |entry| entry.position);
    let file = segment.files.log()?;
    let mut scanner = BatchScanner::new(&*file, start, segment.size);
    let mut log_end_offset = segment.base_offset();
    loop {
        match scanner.next() {
            Ok(Some((_, batch))) => {
                log_end_offset = batch.next_offset();
                note_max_timestamp(&mut segment.max_timestamp, &batch);
            }
            Ok(None) => break,
            Err(ScanError::Io(error)) => {
                return Err(segment.files.error("read", FileKind::Log)(error));
            }
            Err(ScanError::Bad(_)) => {
                let position = scanner.position();
                if last_non_zero(&*file, position, segment.size)
                    .map_err(segment.files.error("read", FileKind::Log))?
                    .is_some()
                {
                    return Ok(false);
                }
                segment.size = position;
                break;
            }
        }
    }
    segment.files.release();
    state.log_end_offset = log_end_offset;
    Ok(true)
}

fn note_max_timestamp(max: &mut TimeEntry, batch: &Batch<'_>) {
    if batch.max_timestamp() > max.timestamp {
        *max = TimeEntry { timestamp: batch.max_timestamp(), offset: batch.last_offset() };
    }
}

/// Loads the newest readable snapshot at or below `limit`; without one, producers begin with the first segment.
fn load_producers(
    state: &mut State,
    shared: &Shared,
    limit: i64,
    warnings: &mut Vec<String>,
) -> Result<(), StorageError> {
    let first = state.segments.first().map_or(limit, Segment::base_offset);
    let now_ms = shared.clock.now_ms();
    let mut offsets = snapshot_offsets(shared)?;
    while let Some(offset) = offsets.pop() {
        if offset > limit || offset < first {
            continue;
        }
        let path = State::snapshot_path(shared, offset);
        let Some(bytes) = read_if_there(&*shared.disk, &path)? else { continue };
        match state.producers.load_snapshot(&bytes, offset, now_ms) {
            Ok(()) => {
                state.producers.set_map_end_offset(offset);
                state.snapshot_offset = offset;
                return Ok(());
            }
            Err(error) => {
                warnings.push(format!("{}: {error}; producers are rebuilt", path.display()));
                remove_snapshot(state, shared, offset)?;
            }
        }
    }
    state.producers.truncate_fully_and_start_at(first);
    state.snapshot_offset = 0;
    Ok(())
}

/// Producer state at the log end, after a truncation.
pub(crate) fn reload_producers(state: &mut State, shared: &Shared) -> Result<(), StorageError> {
    load_producers(state, shared, state.log_end_offset, &mut Vec::new())?;
    let from = state.segment_of(state.producers.map_end_offset()).unwrap_or(0);
    for segment in state.segments.get(from..).unwrap_or_default().to_vec() {
        replay(state, &segment)?;
    }
    Ok(())
}

/// Offsets of the snapshots on disk, growing.
fn snapshot_offsets(shared: &Shared) -> Result<Vec<i64>, StorageError> {
    let entries = shared.disk.list(&shared.dir);
    let entries = entries.map_err(|error| StorageError::io("list", &shared.dir, error))?;
    let mut offsets: Vec<_> = entries
        .iter()
        .filter_map(|entry| parse_file_name(entry.name.to_str()?))
        .filter_map(|(offset, kind)| (kind == FileKind::Snapshot).then_some(offset))
        .collect();
    offsets.sort_unstable();
    Ok(offsets)
}

/// Updates the producers with a segment that is believed, from where their state ends.
fn replay(state: &mut State, segment: &Segment) -> Result<(), StorageError> {
    let map_end_offset = state.producers.map_end_offset();
    let files = &segment.files;
    let file = files.log()?;
    let mut scanner = BatchScanner::new(&*file, files.position_of(map_end_offset)?, segment.size);
    loop {
        match scanner.next() {
            Ok(Some((_, batch))) => {
                if batch.base_offset() >= map_end_offset {
                    producers::note_batch(&mut state.producers, &batch);
                }
            }
            Ok(None) => return Ok(()),
            Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
            Err(ScanError::Bad(error)) => {
                let (path, position) = (files.path(FileKind::Log), scanner.position());
                return Err(StorageError::Malformed { path, position, reason: error.to_string() });
            }
        }
    }
}

/// Writes the snapshot that a roll at the log end would have written, if it is lost.
fn store_boundary_snapshot(state: &mut State, shared: &Shared) -> Result<(), StorageError> {
    if state.check_writable().is_err() || state.producers.map_end_offset() < state.log_end_offset {
        return Ok(());
    }
    let is_first = state.segments.first().map(Segment::base_offset) == Some(state.log_end_offset);
    if is_first { Ok(()) } else { state.store_snapshot(shared) }
}

/// Reads a segment whole, building what is derived from it; returns where the valid batches end.
fn recover_segment(state: &mut State, shared: &Shared, index: usize) -> Result<u64, StorageError> {
    let interval = state.config.index_interval_bytes as u64;
    let (files, size) = (state.segments[index].files.clone(), state.segments[index].size);
    let base_offset = files.base_offset();
    let mut indexes = Indexes::new(base_offset);
    let mut max = TimeEntry::none(base_offset);
    let mut aborted = Vec::new();
    let file = shared
        .disk
        .open(&files.path(FileKind::Log), OpenMode::Read)
        .map_err(files.error("open", FileKind::Log))?;
    let mut scanner = BatchScanner::new(&*file, 0, size);
    let end = loop {
        let valid_end = scanner.position();
        match scanner.next() {
            Ok(Some((position, batch))) => {
                if !is_valid(&batch, state.log_end_offset, base_offset) {
                    break valid_end;
                }
                note_max_timestamp(&mut max, &batch);
                indexes.note(&batch, position, max, interval);
                let epoch = batch.partition_leader_epoch();
                if epoch >= 0 && state.epochs.latest_epoch().is_none_or(|latest| epoch > latest) {
                    state.epochs.assign(epoch, batch.base_offset());
                }
                if batch.base_offset() >= state.producers.map_end_offset() {
                    aborted.extend(producers::note_batch(&mut state.producers, &batch));
                }
                state.log_end_offset = batch.next_offset();
            }
            Ok(None) | Err(ScanError::Bad(_)) => break valid_end,
            Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
        }
    };
    indexes.times.append(max);
    state.segments[index].max_timestamp = max;
    files.set_rebuilt(indexes, aborted.into());
    Ok(end)
}

/// Whether a batch may follow what was read, whole and undamaged.
fn is_valid(batch: &Batch<'_>, log_end_offset: i64, base_offset: i64) -> bool {
    batch.has_valid_offsets()
        && batch.base_offset() >= log_end_offset
        && batch.last_offset() - base_offset <= i64::from(i32::MAX)
        && batch.is_crc_valid()
}

/// The log ends at `position` of segment `index`, before the end of its file.
fn end_log(
    state: &mut State,
    shared: &Shared,
    plan: Plan,
    index: usize,
    position: u64,
    recovery: &mut Recovery,
) -> Result<(), StorageError> {
    let tail = look_behind(state, shared, index, position)?;
    let is_lost = tail.bytes > 0 && state.log_end_offset < plan.recovery_point;
    state.segments[index].size = position;
    if (tail.has_batch || is_lost) && plan.damage == Damage::Keep {
        recovery.damaged_at = Some(state.log_end_offset);
        if state.check_writable().is_ok() {
            state.status = Status::Damaged(state.log_end_offset);
        }
        state.segments.truncate(index + 1);
        return Ok(());
    }
    if tail.bytes > 0 {
        recovery.truncated_bytes = tail.bytes;
        recovery.truncated_at = Some(state.log_end_offset);
    }
    if state.check_writable().is_err() {
        state.segments.truncate(index + 1);
        return Ok(());
    }
    let count = state.segments.len();
    state.remove_segments(shared, index + 1..count)?;
    cut_file(state, shared, index, position, index + 1 < count)?;
    store_recovered(state, shared, index)
}

/// Whether records are missing between a segment, just read, and the next: its file never grew on disk, but the
/// next one's name was kept. Compaction leaves such gaps too, and Apache Kafka where it truncates inside of a
/// batch: one that was synced on both sides lost nothing.
fn is_followed_by_gap(state: &State, plan: Plan, index: usize) -> bool {
    let next = state.segments.get(index + 1).map(Segment::base_offset);
    let is_gap = next.is_some_and(|next| next > state.log_end_offset && next > plan.recovery_point);
    is_gap && !state.config.cleanup_policy.compact
}

/// Whether a segment is sealed and whole, and only lost its trimming to the crash: all that stands behind its
/// last batch is zeros, and that batch ends where the next segment begins.
fn is_untrimmed(
    state: &State,
    shared: &Shared,
    index: usize,
    position: u64,
) -> Result<bool, StorageError> {
    let segment = &state.segments[index];
    let next = state.segments.get(index + 1).map(Segment::base_offset);
    if next != Some(state.log_end_offset) {
        return Ok(false);
    }
    let last = shared
        .disk
        .open(&segment.files.path(FileKind::Log), OpenMode::Read)
        .and_then(|file| last_non_zero(&*file, position, segment.size));
    Ok(last.map_err(segment.files.error("read", FileKind::Log))?.is_none())
}

/// Ends a segment at `position`, in its file too if anything may be written; `into_sealed` if that was sealed, and
/// loses batches.
fn cut_file(
    state: &mut State,
    shared: &Shared,
    index: usize,
    position: u64,
    into_sealed: bool,
) -> Result<(), StorageError> {
    state.segments[index].size = position;
    if state.check_writable().is_err() {
        return Ok(());
    }
    let files = state.segments[index].files.clone();
    let cut = shorten(shared, &files, position, into_sealed);
    state.fail(cut)?;
    state.unsynced.add_file(files.path(FileKind::Log));
    Ok(())
}

/// What stands behind the end of the valid batches.
struct Tail {
    /// Bytes up to the last that is not zero, in all segments.
    bytes: u64,
    /// Whether a valid batch is among them.
    has_batch: bool,
}

fn look_behind(
    state: &State,
    shared: &Shared,
    index: usize,
    position: u64,
) -> Result<Tail, StorageError> {
    let mut tail = Tail { bytes: 0, has_batch: false };
    for (offset, segment) in state.segments[index..].iter().enumerate() {
        let start = if offset == 0 { position } else { 0 };
        let files = &segment.files;
        let look = || {
            let file = shared.disk.open(&files.path(FileKind::Log), OpenMode::Read)?;
            let last = last_non_zero(&*file, start, segment.size)?;
            let base_offset = state.log_end_offset.max(segment.base_offset());
            let has_batch = match last {
                Some(_) if !tail.has_batch => has_batch(&*file, start, segment.size, base_offset)?,
                _ => false,
            };
            std::io::Result::Ok((last.map_or(0, |last| last + 1 - start), has_batch))
        };
        let (bytes, has_batch) = look().map_err(files.error("read", FileKind::Log))?;
        tail.bytes += bytes;
        tail.has_batch |= has_batch;
    }
    Ok(tail)
}

/// Bytes looked at in one piece.
const LOOK_BYTES: usize = 1 << 20;
/// CRCs are calculated over no more than this while looking for batches in garbage.
const LOOK_CRC_BYTES_MAX: usize = 256 << 20;

/// Position of the last byte in `start..end` that is not zero.
fn last_non_zero(file: &dyn DiskFile, start: u64, end: u64) -> std::io::Result<Option<u64>> {
    let mut buffer = vec![0; LOOK_BYTES.min(end.saturating_sub(start) as usize)];
    let (mut position, mut last) = (start, None);
    while position < end {
        let wanted = buffer.len().min((end - position) as usize);
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read == 0 {
            break;
        }
        if let Some(at) = buffer[..read].iter().rposition(|byte| *byte != 0) {
            last = Some(position + at as u64);
        }
        position += read as u64;
    }
    Ok(last)
}

/// Whether a batch of offset `offset_min` or later begins anywhere in `start..end`.
fn has_batch(file: &dyn DiskFile, start: u64, end: u64, offset_min: i64) -> std::io::Result<bool> {
    let mut buffer = vec![0; LOOK_BYTES.min(end.saturating_sub(start) as usize)];
    let mut crc_bytes_left = LOOK_CRC_BYTES_MAX;
    let mut position = start;
    while position + HEADER_SIZE as u64 <= end {
        let wanted = buffer.len().min((end - position) as usize);
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read < HEADER_SIZE {
            break;
        }
        for at in 0..=read - HEADER_SIZE {
            let left = end - position - at as u64;
            let Some(size) = plausible_size(&buffer[at..read], left, offset_min) else { continue };
            if size > crc_bytes_left {
                return Ok(false);
            }
            crc_bytes_left -= size;
            if is_batch(file, position + at as u64, size)? {
                return Ok(true);
            }
        }
        position += (read - HEADER_SIZE + 1) as u64;
    }
    Ok(false)
}

/// The size of a batch whose header `bytes` seem to begin with.
fn plausible_size(bytes: &[u8], left: u64, offset_min: i64) -> Option<usize> {
    let size = Batch::size_in(bytes).ok()?;
    let (base_offset, last_offset) = peek_offsets(bytes)?;
    let is_plausible = size as u64 <= left
        && base_offset >= offset_min
        && last_offset >= base_offset
        && last_offset - offset_min <= i64::from(i32::MAX);
    is_plausible.then_some(size)
}

fn is_batch(file: &dyn DiskFile, position: u64, size: usize) -> std::io::Result<bool> {
    let mut bytes = vec![0; size];
    let read = file.read_at(&mut bytes, position)?;
    Ok(Batch::split(&bytes[..read]).is_ok_and(|(batch, _)| batch.is_crc_valid()))
}

/// Stores what was rebuilt of a segment, if anything may be written; else readers use it from memory.
fn store_recovered(state: &mut State, shared: &Shared, index: usize) -> Result<(), StorageError> {
    if state.check_writable().is_err() {
        return Ok(());
    }
    let files = state.segments[index].files.clone();
    let Some((mut indexes, aborted)) = files.take_rebuilt() else { return Ok(()) };
    let result =
        indexes.store(&*shared.disk, &files).and_then(|()| store_aborted(shared, &files, &aborted));
    state.fail(result)
}

/// Writes a segment's transaction index; without aborted transactions there is none.
pub(crate) fn store_aborted(
    shared: &Shared,
    files: &SegmentFiles,
    aborted: &[AbortedTxn],
) -> Result<(), StorageError> {
    let path = files.path(FileKind::TransactionIndex);
    let store = || {
        if aborted.is_empty() {
            return match shared.disk.remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let bytes: Vec<u8> = aborted.iter().flat_map(|txn| txn.encode()).collect();
        let file = shared.disk.open(&path, OpenMode::Create)?;
        file.write_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)
    };
    store().map_err(files.error("write", FileKind::TransactionIndex))?;
    files.set_aborted(aborted.into());
    Ok(())
}

/// What follows once the log end is known.
fn finish(state: &mut State, shared: &Shared, is_changed: bool) -> Result<(), StorageError> {
    state.recovery_point = state.log_end_offset;
    state.producers.expire(shared.clock.now_ms());
    if state.segments.is_empty() {
        return Ok(());
    }
    // An epoch may have begun at the log end, without a batch yet.
    let is_cut = state.epochs.truncate_from_end(state.log_end_offset.saturating_add(1));
    if state.check_writable().is_err() {
        return Ok(());
    }
    if is_changed || is_cut {
        state.store_epochs(shared)?;
    }
    if is_changed {
        // What was recovered was not synced before the crash.
        let first = state.segments.first().map_or(0, Segment::base_offset);
        state.recovery_point = first.min(state.log_end_offset);
    }
    let bases: Vec<_> = state.segments.iter().map(Segment::base_offset).collect();
    let newest = state.snapshot_offset;
    for offset in snapshot_offsets(shared)? {
        let is_stray = offset != newest && !bases.contains(&offset);
        if is_stray || offset > state.log_end_offset {
            remove_snapshot(state, shared, offset)?;
        }
    }
    Ok(())
}

fn remove_snapshot(state: &mut State, shared: &Shared, offset: i64) -> Result<(), StorageError> {
    if state.check_writable().is_err() {
        return Ok(());
    }
    let path = State::snapshot_path(shared, offset);
    shared.disk.remove_file(&path).map_err(|error| StorageError::io("remove", &path, error))
}

impl State {
    /// Removes snapshots behind `offset`.
    pub(crate) fn remove_snapshots(
        &mut self,
        shared: &Shared,
        offset: i64,
    ) -> Result<(), StorageError> {
        for found in snapshot_offsets(shared)? {
            if found > offset {
                remove_snapshot(self, shared, found)?;
            }
        }
        Ok(())
    }
}
