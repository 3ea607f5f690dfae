//! Reads the batches of a segment file, in any message format, in chunks. A length is only used
//! after it was compared with the size of the file.
//!
//! A scan has only one chunk in memory, whatever the size of a batch. Of a larger batch it has only
//! the header. Callers that need the records read them ([`StoredBatch::read`]) and account for
//! their size.

use std::io;
use std::ops::Deref;

use pykafka_record::{Batch, BatchError, BatchHeader, HEADER_SIZE, LeaderEpoch};

use crate::disk::ReadFile;
use crate::segment::time_index::TimeEntry;

/// Size of the first read: about the distance between two index entries. Each further read is twice
/// as large.
const CHUNK_BYTES_MIN: usize = 8 << 10;
/// Maximum size of a read. A larger batch is not read by the scan.
pub(crate) const CHUNK_BYTES_MAX: usize = 128 << 10;

/// The reason why a scan stopped before the end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// No whole batch starts at the scan's position.
    #[error("{0}")]
    Bad(#[from] BatchError),
}

/// A batch in a segment file: its header, and access to its records.
pub(crate) struct StoredBatch<'s> {
    position: u64,
    header: BatchHeader<'s>,
    /// The bytes from the header on that the scan has read.
    read: &'s [u8],
    file: &'s dyn ReadFile,
}

impl<'s> Deref for StoredBatch<'s> {
    type Target = BatchHeader<'s>;

    fn deref(&self) -> &BatchHeader<'s> {
        &self.header
    }
}

impl<'s> StoredBatch<'s> {
    /// Position of its first byte.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The whole batch, if the scan has read it, which is the case up to a size of
    /// [`CHUNK_BYTES_MAX`].
    pub(crate) fn whole(&self) -> Option<Batch<'s>> {
        Batch::split(self.read).ok().map(|(batch, _)| batch)
    }

    /// Size of the buffer that [`StoredBatch::read`] needs.
    pub(crate) fn bytes_to_read(&self) -> usize {
        if self.whole().is_some() { 0 } else { self.size() }
    }

    /// The whole batch, read into `buffer` unless the scan has it.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> Result<Batch<'b>, ScanError>
    where
        's: 'b,
    {
        if let Some(batch) = self.whole() {
            return Ok(batch);
        }
        buffer.clear();
        let is_out_of_memory = buffer.try_reserve_exact(self.size()).is_err();
        if is_out_of_memory {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory).into());
        }
        buffer.resize(self.size(), 0);
        let read = self.file.read_at(buffer, self.position)?;
        Ok(Batch::split(&buffer[..read])?.0)
    }

    /// True if the stored CRC matches the bytes that it covers.
    pub(crate) fn is_crc_valid(&self) -> io::Result<bool> {
        match self.whole() {
            Some(batch) => Ok(batch.is_crc_valid()),
            None => is_crc_valid(self.file, self.position, &self.header),
        }
    }
}

/// True if a batch with a valid CRC starts at `position`.
pub(crate) fn is_batch(file: &dyn ReadFile, position: u64) -> io::Result<bool> {
    let mut header = [0; HEADER_SIZE];
    let read = file.read_at(&mut header, position)?;
    match BatchHeader::read(&header[..read]) {
        Ok(header) => is_crc_valid(file, position, &header),
        Err(_) => Ok(false),
    }
}

/// True if the batch at `position` matches the CRC in `header`. Reads the batch in chunks.
pub(crate) fn is_crc_valid(
    file: &dyn ReadFile,
    position: u64,
    header: &BatchHeader<'_>,
) -> io::Result<bool> {
    let mut crc = header.begin_crc();
    let header_size = header.format().header_size();
    let mut left = header.size() - header_size;
    let mut position = position + header_size as u64;
    let mut buffer = vec![0; left.min(CHUNK_BYTES_MAX)];
    while left > 0 {
        let wanted = left.min(buffer.len());
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read == 0 {
            return Ok(false);
        }
        crc.update(&buffer[..read]);
        left -= read;
        position += read as u64;
    }
    Ok(crc.value() == header.crc())
}

/// A scan of `position..end` of a file. Checks sizes and magic; the caller must check CRCs and
/// offsets.
#[derive(Debug)]
pub(crate) struct BatchScanner<'a> {
    file: &'a dyn ReadFile,
    position: u64,
    end: u64,
    buffer: Vec<u8>,
    buffer_position: u64,
    buffer_size: usize,
    chunk_bytes: usize,
}

impl<'a> BatchScanner<'a> {
    pub(crate) fn new(file: &'a dyn ReadFile, position: u64, end: u64) -> BatchScanner<'a> {
        BatchScanner {
            file,
            position,
            end,
            buffer: Vec::new(),
            buffer_position: position,
            buffer_size: 0,
            chunk_bytes: CHUNK_BYTES_MIN,
        }
    }

    /// Position of the next batch; after an error, of the bad one.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<StoredBatch<'_>>, ScanError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let start = self.fill(HEADER_SIZE)?;
        let size = Batch::size_in(&self.buffer[start..self.buffer_size])?;
        let wanted = if size <= CHUNK_BYTES_MAX { size } else { HEADER_SIZE };
        let start = self.fill(wanted)?;
        let read = &self.buffer[start..self.buffer_size];
        let (position, left) = (self.position, self.end - self.position);
        if read.len() < wanted || size as u64 > left {
            let have = read.len().min(left as usize);
            return Err(BatchError::Incomplete { needed: size, have }.into());
        }
        let header = BatchHeader::read(read)?;
        self.position += size as u64;
        Ok(Some(StoredBatch { position, header, read, file: self.file }))
    }

    /// Fills the buffer with `wanted` bytes from the position on, or all that exist; returns where
    /// they start in the buffer.
    fn fill(&mut self, wanted: usize) -> std::io::Result<usize> {
        let start = (self.position - self.buffer_position) as usize;
        if start + wanted <= self.buffer_size {
            return Ok(start);
        }
        let left = self.end - self.position;
        if start < self.buffer_size && (self.buffer_size - start) as u64 == left {
            return Ok(start);
        }
        let size = left.min(self.chunk_bytes.max(wanted) as u64) as usize;
        self.chunk_bytes = CHUNK_BYTES_MAX.min(2 * self.chunk_bytes);
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        self.buffer_position = self.position;
        self.buffer_size = self.file.read_at(&mut self.buffer[..size], self.position)?;
        Ok(0)
    }
}

/// Size of a read in a scan of headers: about the distance between two index entries.
const HEADERS_BYTES: usize = 4 << 10;

/// The header fields of a batch in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) position: u64,
    pub(crate) size: u64,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    /// Epoch of the leader that appended it.
    pub(crate) leader_epoch: Option<LeaderEpoch>,
    /// True if its first offset is unknown ([`BatchHeader::is_message_set`]).
    pub(crate) is_message_set: bool,
}

impl Header {
    /// End of the batch (exclusive).
    pub(crate) fn end(&self) -> u64 {
        self.position + self.size
    }
}

/// A scan of the batch headers in `position..end` of a file, which skips the records.
#[derive(Debug)]
pub(crate) struct HeaderScanner<'a> {
    file: &'a dyn ReadFile,
    position: u64,
    end: u64,
    buffer: [u8; HEADERS_BYTES],
    buffer_position: u64,
    buffer_size: usize,
}

impl<'a> HeaderScanner<'a> {
    pub(crate) fn new(file: &'a dyn ReadFile, position: u64, end: u64) -> HeaderScanner<'a> {
        let buffer = [0; HEADERS_BYTES];
        HeaderScanner { file, position, end, buffer, buffer_position: position, buffer_size: 0 }
    }

    /// Position of the next batch.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Continues at `position`.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// The next batch; `None` at the end. A batch that reaches beyond the end is bad.
    pub(crate) fn next(&mut self) -> Result<Option<Header>, ScanError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let position = self.position;
        let found = BatchHeader::read(self.fill()?)?;
        let header = Header {
            position,
            size: found.size() as u64,
            base_offset: found.base_offset(),
            last_offset: found.last_offset(),
            max_timestamp: found.max_timestamp(),
            leader_epoch: found.partition_leader_epoch(),
            is_message_set: found.is_message_set(),
        };
        if header.end() > self.end {
            let have = (self.end - self.position) as usize;
            return Err(BatchError::Incomplete { needed: header.size as usize, have }.into());
        }
        self.position = header.end();
        Ok(Some(header))
    }

    /// The bytes at the position: enough for a header of any format, unless the file ends before.
    fn fill(&mut self) -> std::io::Result<&[u8]> {
        let has_header = (self.position.checked_sub(self.buffer_position))
            .is_some_and(|start| start + HEADER_SIZE as u64 <= self.buffer_size as u64);
        if !has_header {
            let size = (self.end - self.position).min(HEADERS_BYTES as u64) as usize;
            self.buffer_position = self.position;
            self.buffer_size = self.file.read_at(&mut self.buffer[..size], self.position)?;
        }
        let start = (self.position - self.buffer_position) as usize;
        Ok(&self.buffer[start..self.buffer_size])
    }
}

/// True if a time entry belongs to the segment that `headers` scans: the batch that contains the
/// entry's offset must have its timestamp. `headers` must start at or before that batch.
pub(crate) fn names_a_batch(
    headers: &mut HeaderScanner<'_>,
    entry: TimeEntry,
) -> std::io::Result<bool> {
    loop {
        match headers.next() {
            Ok(Some(header)) if header.last_offset < entry.offset => {}
            Ok(Some(header)) => {
                let has_offset = header.base_offset <= entry.offset;
                return Ok(has_offset && header.max_timestamp == entry.timestamp);
            }
            Ok(None) | Err(ScanError::Bad(_)) => return Ok(false),
            Err(ScanError::Io(error)) => return Err(error),
        }
    }
}

/// Base and last offset in the batch header at the start of `bytes`; `None` without a whole header.
///
/// A batch that is larger than the bytes that were read cannot be used as a [`Batch`] yet, but can
/// be skipped.
pub(crate) fn peek_offsets(bytes: &[u8]) -> Option<(i64, i64)> {
    let header = BatchHeader::read(bytes).ok()?;
    Some((header.base_offset(), header.last_offset()))
}
