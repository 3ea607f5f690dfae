//! Walking the batches of a segment file, of every message format, in chunks, without believing a
//! length before it was compared with the file.
//!
//! A walk holds one chunk, whatever the size of a batch. Of a larger batch it has the header alone.
//! Callers that need the records read them ([`StoredBatch::read`]) and account for their size.

use std::io;
use std::ops::Deref;

use pykafka_record::{Batch, BatchError, BatchHeader, HEADER_SIZE, LeaderEpoch};

use crate::disk::ReadFile;
use crate::segment::time_index::TimeEntry;

/// Bytes read at first: about what an index leaves to be searched. Each further read takes twice as many.
const CHUNK_BYTES_MIN: usize = 8 << 10;
/// Bytes read at once. A larger batch is not read by the walk.
pub(crate) const CHUNK_BYTES_MAX: usize = 128 << 10;

/// Why a walk stopped before the end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// No whole batch begins at the walk's position.
    #[error("{0}")]
    Bad(#[from] BatchError),
}

/// A batch of a segment file: its header, and the way to its records.
pub(crate) struct StoredBatch<'s> {
    position: u64,
    header: BatchHeader<'s>,
    /// From the header on, as far as the walk has read.
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
    /// Where it begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The whole batch, if the walk has read it: it has unless it is larger than [`CHUNK_BYTES_MAX`].
    pub(crate) fn whole(&self) -> Option<Batch<'s>> {
        Batch::split(self.read).ok().map(|(batch, _)| batch)
    }

    /// Bytes that [`StoredBatch::read`] needs.
    pub(crate) fn bytes_to_read(&self) -> usize {
        if self.whole().is_some() { 0 } else { self.size() }
    }

    /// The whole batch, read into `buffer` unless the walk has it.
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

    /// Whether the stored CRC is that of the bytes it covers.
    pub(crate) fn is_crc_valid(&self) -> io::Result<bool> {
        match self.whole() {
            Some(batch) => Ok(batch.is_crc_valid()),
            None => is_crc_valid(self.file, self.position, &self.header),
        }
    }
}

/// Whether the batch at `position`, which has this header, has the CRC that the header says. Reads it in chunks.
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

/// A walk over `position..end` of a file. Checks sizes and magic; CRC and offsets are the caller's.
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

    /// Where the next batch begins; after an error, where the bad one does.
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

    /// Makes the buffer hold `wanted` bytes from the position on, or all there are; returns where they begin.
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

/// Bytes read at once by a walk over headers: what an index leaves open is about as much.
const HEADERS_BYTES: usize = 4 << 10;

/// A batch as its header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) position: u64,
    pub(crate) size: u64,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp: i64,
    /// Epoch of the leader that appended it.
    pub(crate) leader_epoch: Option<LeaderEpoch>,
    /// Whether its first offset is not known ([`BatchHeader::is_message_set`]).
    pub(crate) is_message_set: bool,
}

impl Header {
    /// Where the batch ends, exclusive.
    pub(crate) fn end(&self) -> u64 {
        self.position + self.size
    }
}

/// A walk over the headers of the batches in `position..end` of a file, past what they hold.
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

    /// Where the next batch begins.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Goes on at `position`.
    pub(crate) fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// The next batch; `None` at the end. A batch that goes past the end is bad.
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

    /// The bytes at the position: a header of any format, unless the file ends before.
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

/// Whether a time entry is one of the segment that `headers` walks, which begins at or before the entry's batch: the batch that
/// holds its offset has its timestamp.
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

/// Base and last offset of the batch whose header `bytes` begin with; `None` without a whole header.
///
/// A batch that is larger than what was read cannot be viewed as a [`Batch`] yet, but can be skipped.
pub(crate) fn peek_offsets(bytes: &[u8]) -> Option<(i64, i64)> {
    let header = BatchHeader::read(bytes).ok()?;
    Some((header.base_offset(), header.last_offset()))
}
