//! Large reads that leave the bytes in their file, for transports that can send from files.
//!
//! Such a read needs the start and end of whole batches, but not their content. The offset index
//! has both with the precision of an interval, and from there on the headers are read. So a few
//! kilobytes are read, however many are sent.
//!
//! The number of sent bytes must equal the announced length. The file of a slice stays open, so
//! retention and deletion do not affect it. A truncation may replace the batches by others; after
//! it the slice cannot be sent.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use thiserror::Error;

use crate::disk::DiskFile;
use crate::error::{ReadError, StorageError};
use crate::file_names::FileKind;
use crate::log::Log;
use crate::log::read::{ReadPosition, Request};
use crate::log::snapshot::Snapshot;
use crate::log::types::FetchData;
use crate::segment::SegmentFiles;
use crate::segment::scan::{Header, HeaderScanner, ScanError};
use crate::segment::transaction_index::AbortedTxn;

/// Smaller reads are copied: one `pread` and one `writev` cost less than the system calls for a
/// slice.
const SLICE_BYTES_MIN: u64 = 256 << 10;

/// Result of [`Log::fetch`].
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Whole batches.
    pub records: FetchedRecords,
    /// Where to continue; see [`FetchData::next_offset`].
    pub next_offset: i64,
}

/// Batches in memory or in their file.
#[derive(Debug, Clone)]
pub enum FetchedRecords {
    /// Batches that were copied into memory.
    Read(Bytes),
    /// Batches in a segment's file.
    Slice(RecordsSlice),
}

impl FetchedRecords {
    /// Bytes of all batches.
    pub fn len(&self) -> usize {
        match self {
            FetchedRecords::Read(bytes) => bytes.len(),
            FetchedRecords::Slice(slice) => slice.len(),
        }
    }

    /// True without any batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason why a slice cannot be sent to its end.
#[derive(Debug, Clone, Error)]
pub enum SliceError {
    /// The file may contain other batches by now; the log itself is fine.
    #[error("the log was truncated while its records were sent")]
    Truncated,
    /// The file cannot be read, or is shorter than expected.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Whole batches of a segment, in its file.
#[derive(Debug, Clone)]
pub struct RecordsSlice {
    files: Arc<SegmentFiles>,
    file: Arc<dyn DiskFile>,
    position: u64,
    size: usize,
    truncations: Arc<AtomicU64>,
    truncations_seen: u64,
}

impl RecordsSlice {
    /// Number of remaining bytes.
    pub fn len(&self) -> usize {
        self.size
    }

    /// True if no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Position of the remaining bytes in the file.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The file descriptor, if a transport can send from it.
    ///
    /// # Errors
    /// [`SliceError::Truncated`].
    pub fn descriptor(&self) -> Result<Option<BorrowedFd<'_>>, SliceError> {
        self.check()?;
        Ok(self.file.descriptor())
    }

    /// Copies the first remaining bytes, as many as fit into `bytes`.
    ///
    /// # Errors
    /// Any of [`SliceError`].
    pub fn read(&self, bytes: &mut [u8]) -> Result<(), SliceError> {
        self.check()?;
        let wanted = bytes.len().min(self.size);
        let read = match self.file.read_at(&mut bytes[..wanted], self.position) {
            Ok(read) if read < wanted => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        // After a truncation, the other error does not matter.
        self.check()?;
        Ok(read.map_err(self.files.error("read", FileKind::Log))?)
    }

    /// Removes the first `size` bytes, which were sent.
    pub fn advance(&mut self, size: usize) {
        self.position += size as u64;
        self.size -= size;
    }

    fn check(&self) -> Result<(), SliceError> {
        if self.truncations.load(Ordering::SeqCst) == self.truncations_seen {
            return Ok(());
        }
        Err(SliceError::Truncated)
    }
}

impl Log {
    /// Reads like [`Log::read`], but leaves large results in their file if a transport can send
    /// from it.
    ///
    /// # Errors
    /// Those of [`Log::read`].
    pub fn fetch(
        &self,
        offset: i64,
        bytes_max: usize,
        upto: i64,
        at_least_one: bool,
    ) -> Result<Fetched, ReadError> {
        let request = Request { offset, bytes_max, upto, at_least_one };
        self.undisturbed(|snapshot| self.fetch_in(snapshot, &request))
    }

    /// Reads like [`Log::fetch`], and also returns the aborted transactions with records among the
    /// result.
    ///
    /// Both come from the same segments: records are never returned without the transactions that
    /// hide some of them.
    ///
    /// # Errors
    /// Those of [`Log::read`].
    pub fn fetch_committed(
        &self,
        offset: i64,
        bytes_max: usize,
        upto: i64,
        at_least_one: bool,
    ) -> Result<(Fetched, Vec<AbortedTxn>), ReadError> {
        let request = Request { offset, bytes_max, upto, at_least_one };
        self.undisturbed(|snapshot| {
            let fetched = self.fetch_in(snapshot, &request)?;
            let aborted = snapshot.aborted_transactions(offset..fetched.next_offset)?;
            Ok((fetched, aborted))
        })
    }

    fn fetch_in(&self, snapshot: &Snapshot, request: &Request) -> Result<Fetched, ReadError> {
        if request.bytes_max as u64 >= SLICE_BYTES_MIN
            && let Some(fetched) = self.slice(snapshot, request)?
        {
            return Ok(fetched);
        }
        let FetchData { bytes, next_offset, .. } = self.read_in(snapshot, request)?;
        Ok(Fetched { records: FetchedRecords::Read(bytes), next_offset })
    }

    /// `None` if a plain read is as good, or must report an error.
    fn slice(&self, snapshot: &Snapshot, request: &Request) -> Result<Option<Fetched>, ReadError> {
        let Some(place) = snapshot.place_of(request)? else { return Ok(None) };
        let Some(extent) = place.extent(request)? else { return Ok(None) };
        let slice = RecordsSlice {
            files: place.files,
            file: extent.file,
            position: extent.start,
            size: (extent.end - extent.start) as usize,
            truncations: self.truncations.clone(),
            truncations_seen: snapshot.truncations,
        };
        let records = FetchedRecords::Slice(slice);
        Ok(Some(Fetched { records, next_offset: extent.next_offset }))
    }
}

/// Position of whole batches in a file.
struct Extent {
    file: Arc<dyn DiskFile>,
    start: u64,
    end: u64,
    next_offset: i64,
}

impl ReadPosition {
    /// The batches for `request`; `None` if they are few, or a header is invalid.
    fn extent(&self, request: &Request) -> Result<Option<Extent>, StorageError> {
        let position = self.position(request)?;
        let limit = self.size.min(position.saturating_add(request.bytes_max as u64));
        if limit < position + SLICE_BYTES_MIN {
            return Ok(None);
        }
        let file = self.files.log()?;
        if file.descriptor().is_none() || self.files.are_descriptors_scarce() {
            return Ok(None);
        }
        let boundary = match self.boundary {
            Some(boundary) => boundary,
            None => self.files.boundary(limit, request.upto)?,
        };
        match self.walk(&*file, position, boundary, request) {
            Ok(found) => Ok(found.map(|(start, end, next_offset)| Extent {
                file: file.clone(),
                start,
                end,
                next_offset,
            })),
            Err(ScanError::Bad(_)) => Ok(None),
            Err(ScanError::Io(error)) => Err(self.files.error("read", FileKind::Log)(error)),
        }
    }

    /// Start, end and next offset of the batches for `request`. The first starts at `position` or
    /// after it; a batch starts at `boundary`, which is within the request.
    fn walk(
        &self,
        file: &dyn DiskFile,
        position: u64,
        boundary: u64,
        request: &Request,
    ) -> Result<Option<(u64, u64, i64)>, ScanError> {
        let mut headers = HeaderScanner::new(file, position, self.size);
        let first = loop {
            match headers.next()? {
                // Its first offset is unknown, so the batch must be read.
                Some(header) if header.is_message_set => return Ok(None),
                // It is not a batch of this segment; a plain read reports that.
                Some(header) if header.base_offset < self.offsets().start => return Ok(None),
                // An index entry is wrong; a plain read finds the batch.
                Some(header)
                    if header.position == position
                        && position > 0
                        && header.base_offset > request.offset =>
                {
                    return Ok(None);
                }
                Some(header) if header.last_offset >= request.offset => break header,
                Some(_) => {}
                None => return Ok(None),
            }
        };
        let limit = first.position.saturating_add(request.bytes_max as u64);
        let fits = |header: &Header| header.base_offset < request.upto && header.end() <= limit;
        if !fits(&first) {
            return Ok(None);
        }
        headers.seek(boundary.max(first.end()));
        let mut reached = first.last_offset + 1;
        let next_offset = loop {
            match headers.next()? {
                Some(header) if header.is_message_set => return Ok(None),
                Some(header) if header.base_offset <= first.last_offset => return Ok(None),
                Some(header) if fits(&header) => reached = header.last_offset + 1,
                Some(header) => {
                    headers.seek(header.position);
                    break header.base_offset;
                }
                None => break reached.max(self.end_offset.min(request.upto)),
            }
        };
        let (start, end) = (first.position, headers.position());
        Ok((end >= start + SLICE_BYTES_MIN).then_some((start, end, next_offset)))
    }
}
