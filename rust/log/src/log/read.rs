//! Reading whole batches, on a snapshot of the segments and without a lock.

mod check;
pub(super) mod lookup;
pub(super) mod slice;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::{Batch, BatchError, BatchHeader, HEADER_SIZE};

use super::snapshot::Snapshot;
use super::{FetchData, Log, ReadError, StorageError};
use crate::segment::scan::peek_offsets;
use crate::segment::{FileKind, SegmentFiles};

/// Read beyond the size asked for, since the index points up to an interval before the batch wanted.
const SLACK_BYTES: u64 = 8 << 10;

/// Where to look for an offset.
pub(super) struct Place {
    pub(super) files: Arc<SegmentFiles>,
    /// Bytes of whole batches, as published.
    pub(super) size: u64,
    /// By the index in memory, for the end of the active segment.
    position: Option<u64>,
    /// Where a batch begins near the end of what is wanted, likewise.
    pub(super) boundary: Option<u64>,
    /// Where the next segment begins, or the log end: compaction may leave none up to there.
    pub(super) end_offset: i64,
}

impl Log {
    /// Reads whole batches that hold `offset` and what follows it.
    ///
    /// Returns batches up to `bytes_max` in all, none of which begins at or behind `upto` (exclusive: high
    /// watermark, last stable or log end offset). With `at_least_one` the first comes whole even if larger.
    /// Empty at `upto`, and where nothing fits.
    ///
    /// # Errors
    /// `offset` lies before the log start or behind the log end; or the log cannot be read.
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

    /// The offsets from `start` to `end` (exclusive), by default from the log start to the log end, behind which there are
    /// none to read.
    ///
    /// # Errors
    /// `start` lies before the log start or behind the log end; or the log is closed.
    pub fn range(&self, start: Option<i64>, end: Option<i64>) -> Result<Range<i64>, ReadError> {
        let snapshot = self.snapshot()?;
        let start = start.unwrap_or(snapshot.log_start_offset);
        snapshot.check_in_range(start)?;
        let end = end.unwrap_or(i64::MAX).min(snapshot.log_end_offset);
        Ok(start..end.max(start))
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

    fn read_segment(&self, place: &Place, request: &Request) -> Result<Outcome, StorageError> {
        let position = place.position(request)?;
        match self.read_from(place, request, position) {
            // An index entry is wrong: the batches tell.
            Ok(Outcome::PastOffset) | Err(StorageError::Malformed { .. }) if position > 0 => {
                self.read_from(place, request, 0)
            }
            outcome => outcome,
        }
    }

    fn read_from(
        &self,
        place: &Place,
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
                // A length that leads beyond the segment is wrong: what follows would be passed over.
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

    /// The segment for the offset wanted; `None` at the log end.
    fn place_of(&self, request: &Request) -> Result<Option<Place>, ReadError> {
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

    /// The segment after the one at `base_offset`, from its beginning.
    fn place_after(&self, base_offset: i64) -> Option<Place> {
        let index = self.segments.iter().position(|next| next.base_offset() > base_offset)?;
        self.place(index, Some(0), None)
    }

    fn place(&self, index: usize, position: Option<u64>, boundary: Option<u64>) -> Option<Place> {
        let segment = self.segments.get(index)?;
        Some(Place {
            files: segment.files.clone(),
            size: segment.size,
            position,
            boundary,
            end_offset: self.end_of(index),
        })
    }
}

impl Place {
    /// Where to begin to look.
    pub(super) fn position(&self, request: &Request) -> Result<u64, StorageError> {
        match self.position {
            Some(position) => Ok(position),
            None => self.files.position_of(request.offset),
        }
    }

    /// Those that its batches may have.
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
    /// The first batch looked at, by an index entry, begins behind the offset wanted, or there is none.
    PastOffset,
}

/// What part of some bytes of a segment answers a request.
#[derive(Debug, PartialEq, Eq)]
enum Selection {
    /// These bytes.
    Batches { start: usize, end: usize, base_offset: i64, next_offset: i64 },
    /// No batch below the bound, or none that fits.
    Nothing,
    /// The first batch begins at `start` and is larger than what was read.
    Larger { start: usize, size: usize },
    /// The first batch begins at or behind `skip`.
    Further { skip: usize },
}

/// Why bytes of a segment are no batches of it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum SelectError {
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Base offsets are not covered by the CRC: a wrong one shows by its neighbours only.
    #[error("offset {found} does not lie between {at_least} and the end {end} of its segment")]
    Offset { found: i64, at_least: i64, end: i64 },
}

/// `offsets` are those of the segment.
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

/// Adds what fits to the first batch, which begins at `start` with an offset of `base_offset` or
/// later.
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
