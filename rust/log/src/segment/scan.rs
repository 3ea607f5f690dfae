//! Walking the batches of a segment file, in chunks, without believing a length before it was compared with the file.

use pykafka_record::{Batch, BatchError, HEADER_SIZE, PREFIX_SIZE};

use crate::disk::ReadFile;

/// Bytes read at first: about what an index leaves to be searched. Each further read takes twice as many.
const CHUNK_BYTES_MIN: u64 = 8 << 10;
/// Bytes read at once; a larger batch makes the buffer grow to its size, once.
const CHUNK_BYTES_MAX: u64 = 128 << 10;

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

/// A walk over `position..end` of a file. Checks sizes and magic; CRC and offsets are the caller's.
#[derive(Debug)]
pub(crate) struct BatchScanner<'a> {
    file: &'a dyn ReadFile,
    position: u64,
    end: u64,
    buffer: Vec<u8>,
    buffer_position: u64,
    buffer_size: usize,
    chunk_bytes: u64,
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

    /// The next batch and its position; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Batch<'_>)>, ScanError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let prefix = self.fill(PREFIX_SIZE)?;
        let size = Batch::size_in(&self.buffer[prefix..self.buffer_size])?;
        let start = self.fill(size)?;
        let (batch, _) = Batch::split(&self.buffer[start..self.buffer_size])?;
        let position = self.position;
        self.position += size as u64;
        Ok(Some((position, batch)))
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
        let size = left.min(self.chunk_bytes.max(wanted as u64)) as usize;
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
        let bytes = self.fill()?;
        let incomplete = BatchError::Incomplete { needed: HEADER_SIZE, have: bytes.len() };
        let (base_offset, last_offset) = peek_offsets(bytes).ok_or(incomplete)?;
        let size = Batch::size_in(bytes)? as u64;
        let header = Header { position: self.position, size, base_offset, last_offset };
        if header.end() > self.end {
            let have = (self.end - self.position) as usize;
            return Err(BatchError::Incomplete { needed: size as usize, have }.into());
        }
        self.position = header.end();
        Ok(Some(header))
    }

    /// The bytes at the position: a header, unless the file ends before.
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

/// Base and last offset of the batch whose header `bytes` begin with; `None` without a whole header.
///
/// A batch that is larger than what was read cannot be viewed as a [`Batch`] yet, but can be skipped.
pub(crate) fn peek_offsets(bytes: &[u8]) -> Option<(i64, i64)> {
    const LAST_OFFSET_DELTA: usize = 23;
    let header = bytes.first_chunk::<HEADER_SIZE>()?;
    let base_offset = i64::from_be_bytes(*header.first_chunk()?);
    let delta = i32::from_be_bytes(*header[LAST_OFFSET_DELTA..].first_chunk()?);
    Some((base_offset, base_offset.saturating_add(i64::from(delta))))
}
