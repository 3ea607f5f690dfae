//! Reads whole batches from a snapshot of the segments, without a lock.

mod check;
pub(crate) mod lookup;
pub(crate) mod slice;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::{Batch, BatchError, BatchHeader, HEADER_SIZE};

use super::Log;
use super::snapshot::Snapshot;
use crate::error::{ReadError, StorageError};
use crate::file_names::FileKind;
use crate::log::types::FetchData;
use crate::segment::SegmentFiles;
use crate::segment::scan::{is_batch, peek_offsets};

/// Bytes that are read in addition to the requested size, because an index entry may be up to an
/// interval before the wanted batch.
const SLACK_BYTES: u64 = 8 << 10;

/// The segment that contains an offset, and positions in it.
pub(super) struct ReadPosition {
    pub(super) files: Arc<SegmentFiles>,
    /// Bytes of whole batches, as published.
    pub(super) size: u64,
    /// From the index in memory, for the end of the active segment.
    position: Option<u64>,
    /// The start of a batch near the end of the requested bytes, also from the index in memory.
    pub(super) boundary: Option<u64>,
    /// The next segment's base offset, or the log end offset: compaction may leave no batch up to
    /// there.
    pub(super) end_offset: i64,
}

impl Log {
    /// Reads whole batches from the one that contains `offset` on.
    ///
    /// Returns batches of at most `bytes_max` in total, all of which start below `upto` (exclusive:
    /// high watermark, last stable offset or log end offset). With `at_least_one` the first batch
    /// is returned whole even if larger. Empty at `upto`, and if no batch fits.
    ///
    /// # Errors
    /// `offset` is below the log start offset or above the log end offset; or the log cannot be
    /// read.
    pub fn read(
        &self,
        offset: i64,
        bytes_max: usize,
        upto: i64,
        at_least_one: bool,
    ) -> Result<FetchData, ReadError> {
        let request = Request { offset, bytes_max, upto, at_least_one };
        self.undisturbed(|snapshot| self.read_in(snapshot, &request))
    }

    /// The offsets from `start` to `end` (exclusive). The defaults are the log start offset and the
    /// log end offset, which is also the maximum of `end`.
    ///
    /// # Errors
    /// `start` is below the log start offset or above the log end offset; or the log is closed.
    pub fn range(&self, start: Option<i64>, end: Option<i64>) -> Result<Range<i64>, ReadError> {
        let snapshot = self.snapshot()?;
        let start = start.unwrap_or(snapshot.log_start_offset);
        snapshot.check_in_range(start)?;
        let end = end.unwrap_or(i64::MAX).min(snapshot.log_end_offset);
        Ok(start..end.max(start))
    }

    /// True if another batch follows the last one, as after an append by another process, or if its
    /// file cannot be read. A torn tail does not count: it stays until an open for writing.
    pub(crate) fn has_batch_after_end(&self) -> bool {
        let Ok(snapshot) = self.snapshot() else { return false };
        let Some(last) = snapshot.segments.last() else { return false };
        let found = last.files.log().map(|file| is_batch(&*file, last.size));
        !matches!(found, Ok(Ok(false)))
    }

    fn read_in(&self, snapshot: &Snapshot, request: &Request) -> Result<FetchData, ReadError> {
        let offset = request.offset;
        let empty = FetchData { bytes: Bytes::new(), base_offset: offset, next_offset: offset };
        let mut place = snapshot.place_of(request)?;
        while let Some(found) = place {
            match self.read_segment(&found, request)? {
                Outcome::Data(data) => return Ok(data),
                Outcome::Nothing => return Ok(empty),
                // Compaction may leave no batch from `offset` to the segment's end.
                Outcome::NextSegment | Outcome::PastOffset => {
                    place = snapshot.place_after(found.files.base_offset());
                }
            }
        }
        Ok(empty)
    }

    fn read_segment(
        &self,
        place: &ReadPosition,
        request: &Request,
    ) -> Result<Outcome, StorageError> {
        let position = place.position(request)?;
        match self.read_from(place, request, position) {
            // An index entry is wrong: read all batches.
            Ok(Outcome::PastOffset) | Err(StorageError::Malformed { .. }) if position > 0 => {
                self.read_from(place, request, 0)
            }
            outcome => outcome,
        }
    }

    fn read_from(
        &self,
        place: &ReadPosition,
        request: &Request,
        start: u64,
    ) -> Result<Outcome, StorageError> {
        let mut position = start;
        if position >= place.size {
            return Ok(if start > 0 { Outcome::PastOffset } else { Outcome::NextSegment });
        }
        let file = place.files.log()?;
        let mut wanted = (request.bytes_max as u64).saturating_add(SLACK_BYTES);
        while position < place.size {
            let size = wanted.min(place.size - position) as usize;
            let mut buffer = self.shared.buffers.take(size);
            let read = file.read_at(buffer.as_mut_slice(), position);
            let read = read.map_err(place.files.error("read", FileKind::Log))?;
            buffer.truncate(read);
            let base_offset = peek_offsets(buffer.as_ref()).map(|(base_offset, _)| base_offset);
            if position == start
                && start > 0
                && base_offset.is_none_or(|base| base > request.offset)
            {
                return Ok(Outcome::PastOffset);
            }
            match select(buffer.as_ref(), request, place.offsets())
                .map_err(|error| place.malformed(position, &error))?
            {
                Selection::Batches { start, end, base_offset, next_offset } => {
                    let bytes = buffer.into_bytes().slice(start..end);
                    let is_rest = position + end as u64 == place.size;
                    let end_offset = if is_rest { place.end_offset.min(request.upto) } else { 0 };
                    let next_offset = next_offset.max(end_offset);
                    return Ok(Outcome::Data(FetchData { bytes, base_offset, next_offset }));
                }
                Selection::Nothing => return Ok(Outcome::Nothing),
                Selection::Larger { size, .. }
                    if size > request.bytes_max && !request.at_least_one =>
                {
                    return Ok(Outcome::Nothing);
                }
                Selection::Larger { start, size } if (size as u64) <= place.size - position => {
                    position += start as u64;
                    wanted = wanted.max(size as u64);
                }
                // A length that ends beyond the segment is wrong, and would skip the batches after
                // it.
                Selection::Further { skip } if skip > 0 && skip as u64 <= place.size - position => {
                    position += skip as u64;
                }
                _ => {
                    let error = BatchError::Incomplete { needed: HEADER_SIZE, have: read };
                    return Err(place.malformed(position, &error.into()));
                }
            }
        }
        Ok(Outcome::NextSegment)
    }
}

impl Snapshot {
    fn check_in_range(&self, offset: i64) -> Result<(), ReadError> {
        let Snapshot { log_start_offset, log_end_offset, .. } = *self;
        if (log_start_offset..=log_end_offset).contains(&offset) {
            return Ok(());
        }
        Err(ReadError::OffsetOutOfRange { offset, log_start_offset, log_end_offset })
    }

    /// The segment with the requested offset; `None` at the log end offset.
    fn place_of(&self, request: &Request) -> Result<Option<ReadPosition>, ReadError> {
        let Request { offset, bytes_max, upto, .. } = *request;
        self.check_in_range(offset)?;
        if offset == self.log_end_offset {
            return Ok(None);
        }
        Ok(self.segments.index_of(offset).and_then(|index| {
            let indexes = self.indexes_of(index).map(|indexes| indexes.lock());
            let position = indexes.as_ref().and_then(|indexes| indexes.offsets.position_of(offset));
            let boundary = indexes.zip(position).and_then(|(indexes, position)| {
                indexes.offsets.boundary(position.saturating_add(bytes_max as u64), upto)
            });
            self.place(index, position, boundary)
        }))
    }

    /// The start of the segment after the one at `base_offset`.
    fn place_after(&self, base_offset: i64) -> Option<ReadPosition> {
        let index = self.segments.iter().position(|next| next.base_offset() > base_offset)?;
        self.place(index, Some(0), None)
    }

    fn place(
        &self,
        index: usize,
        position: Option<u64>,
        boundary: Option<u64>,
    ) -> Option<ReadPosition> {
        let segment = self.segments.get(index)?;
        Some(ReadPosition {
            files: segment.files.clone(),
            size: segment.size,
            position,
            boundary,
            end_offset: self.end_of(index),
        })
    }
}

impl ReadPosition {
    /// The position where reading starts.
    pub(super) fn position(&self, request: &Request) -> Result<u64, StorageError> {
        match self.position {
            Some(position) => Ok(position),
            None => self.files.position_of(request.offset),
        }
    }

    /// The range of offsets that its batches may have.
    fn offsets(&self) -> Range<i64> {
        self.files.base_offset()..self.end_offset
    }

    fn malformed(&self, position: u64, error: &SelectError) -> StorageError {
        let path = self.files.path(FileKind::Log);
        StorageError::Malformed { path, position, reason: error.to_string() }
    }
}

pub(super) struct Request {
    pub(super) offset: i64,
    pub(super) bytes_max: usize,
    pub(super) upto: i64,
    pub(super) at_least_one: bool,
}

enum Outcome {
    Data(FetchData),
    Nothing,
    NextSegment,
    /// The first batch at an index entry's position starts above the requested offset, or does not
    /// exist.
    PastOffset,
}

/// The part of a segment's bytes that a request gets.
#[derive(Debug, PartialEq, Eq)]
enum Selection {
    /// The batches in this range of bytes.
    Batches { start: usize, end: usize, base_offset: i64, next_offset: i64 },
    /// There is no batch below the bound, or none fits.
    Nothing,
    /// The first batch starts at `start` and is larger than the bytes that were read.
    Larger { start: usize, size: usize },
    /// The first batch starts at `skip` or after it.
    Further { skip: usize },
}

/// The reason why bytes of a segment are not batches of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum SelectError {
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The CRC does not cover base offsets: a wrong one only shows by comparison with the
    /// neighbours.
    #[error("offset {found} does not lie between {at_least} and the end {end} of its segment")]
    Offset { found: i64, at_least: i64, end: i64 },
}

/// Selects the batches for a request from `bytes`. `offsets` is the range of the segment.
fn select(bytes: &[u8], request: &Request, offsets: Range<i64>) -> Result<Selection, SelectError> {
    let Range { start: mut reached, end: end_offset } = offsets;
    let mut start = 0;
    loop {
        let header = match BatchHeader::read(&bytes[start..]) {
            Ok(header) => header,
            Err(BatchError::Incomplete { .. }) => return Ok(Selection::Further { skip: start }),
            Err(error) => return Err(error.into()),
        };
        let (base_offset, last_offset) = (header.base_offset(), header.last_offset());
        let size = header.size();
        if base_offset < reached || last_offset < base_offset || last_offset >= end_offset {
            let (found, at_least, end) = (base_offset, reached, end_offset);
            return Err(SelectError::Offset { found, at_least, end });
        }
        let first_offset = header.first_offset_min(reached);
        reached = last_offset.saturating_add(1);
        if last_offset >= request.offset {
            if first_offset >= request.upto {
                return Ok(Selection::Nothing);
            }
            if start + size > bytes.len() {
                return Ok(Selection::Larger { start, size });
            }
            return extend(bytes, (start, first_offset), size, request, end_offset);
        }
        start += size;
        if start >= bytes.len() {
            return Ok(Selection::Further { skip: start });
        }
    }
}

/// Adds further batches to the first one, which starts at `start` with an offset of `base_offset`
/// or above.
fn extend(
    bytes: &[u8],
    (start, base_offset): (usize, i64),
    first_size: usize,
    request: &Request,
    end_offset: i64,
) -> Result<Selection, SelectError> {
    if first_size > request.bytes_max && !request.at_least_one {
        return Ok(Selection::Nothing);
    }
    let (first, mut rest) = Batch::split(&bytes[start..])?;
    let (mut end, mut last) = (start + first_size, first);
    while let Ok((batch, after)) = Batch::split(rest) {
        let (found, at_least) = (batch.base_offset(), last.next_offset());
        if found < at_least || batch.last_offset() < found {
            return Err(SelectError::Offset { found, at_least, end: end_offset });
        }
        let is_beyond =
            batch.first_offset_min(at_least) >= request.upto || batch.last_offset() >= end_offset;
        if is_beyond || end - start + batch.size() > request.bytes_max {
            break;
        }
        end += batch.size();
        last = batch;
        rest = after;
    }
    Ok(Selection::Batches { start, end, base_offset, next_offset: last.next_offset() })
}
