//! Records of a batch, checked during decompression: a window bounds the memory, whatever the
//! decompressed size.
//!
//! Errors are those of [`RecordIter`], which has the whole payload: a payload that cannot be fully
//! decompressed takes precedence over faults of records, and a record that exceeds the payload over
//! faults inside of it.

use super::error::RecordError;
use super::fields::{Body, Context, Fault, RecordHead, read_beginning};
use super::iter::RecordIter;
use super::legacy::read_payload;
use crate::batch::Batch;
use crate::compression::{Compression, CompressionError, Inflater, Limits};
use crate::varint;

/// The buffer for decompressed pieces.
#[derive(Debug)]
pub struct Window {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Window {
    /// Creates a window of at most `bytes_max` bytes. It grows as needed and keeps its capacity.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max }
    }

    /// Maximum size.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Release memory if it holds more than `kept_bytes_max`.
    pub fn shrink(&mut self, kept_bytes_max: usize) {
        if self.bytes.capacity() > kept_bytes_max {
            self.bytes = Vec::new();
        }
    }
}

impl<'a> Batch<'a> {
    /// Read the records through `window`, which is unused without compression.
    ///
    /// # Errors
    /// The first piece cannot be decompressed; [`CompressionError::Window`] for a small window.
    pub fn read<'w>(
        &self,
        window: &'w mut Window,
        limits: Limits,
    ) -> Result<RecordReader<'w>, RecordError>
    where
        'a: 'w,
    {
        if self.is_legacy() {
            return RecordReader::of_legacy(self, window, limits);
        }
        let codec = self.readable_compression()?;
        let pieces = match codec {
            Compression::None => Pieces::Whole(self.payload()),
            _ => Pieces::inflated(codec, self.payload(), window, limits)?,
        };
        Ok(RecordReader::new(self, pieces, limits))
    }
}

/// The payload, in pieces.
enum Pieces<'w> {
    Whole(&'w [u8]),
    Inflated {
        inflater: Inflater<'w>,
        window: &'w mut Vec<u8>,
        /// Why the payload ended early.
        failed: Option<CompressionError>,
    },
}

impl<'w> Pieces<'w> {
    fn inflated(
        codec: Compression,
        payload: &'w [u8],
        window: &'w mut Window,
        limits: Limits,
    ) -> Result<Self, CompressionError> {
        let mut inflater = Inflater::new(codec, payload, limits, window.bytes_max);
        let window = &mut window.bytes;
        window.clear();
        inflater.next(window)?;
        Ok(if inflater.is_over() {
            Self::Whole(window)
        } else {
            Self::Inflated { inflater, window, failed: None }
        })
    }

    fn piece(&self) -> &[u8] {
        match self {
            Self::Whole(payload) => payload,
            Self::Inflated { window, .. } => window,
        }
    }

    fn has_next(&self) -> bool {
        matches!(self, Self::Inflated { inflater, .. } if !inflater.is_over())
    }

    /// Replace the piece by the next one.
    fn next(&mut self) {
        if let Self::Inflated { inflater, window, failed } = self
            && let Err(error) = inflater.next(window)
        {
            window.clear();
            *failed = Some(error);
        }
    }

    fn failed(&mut self) -> Option<CompressionError> {
        match self {
            Self::Whole(_) => None,
            Self::Inflated { failed, .. } => failed.take(),
        }
    }
}

/// Iterates the heads of a batch's records; see [`Batch::read`]. It ends after its first error.
pub struct RecordReader<'w> {
    pieces: Pieces<'w>,
    /// Number of bytes read from the current piece.
    read: usize,
    /// Size of the pieces before it.
    read_before: usize,
    context: Context,
    index: i32,
    count: i32,
    is_over: bool,
}

impl<'w> RecordReader<'w> {
    fn new(batch: &Batch<'_>, pieces: Pieces<'w>, limits: Limits) -> Self {
        let (context, count) = (Context::of(batch, limits), batch.records_count());
        Self { pieces, read: 0, read_before: 0, context, index: 0, count, is_over: false }
    }

    /// Reads a batch of format 0 or 1, which must fit into the window as a whole: half of it is for
    /// the decompressed messages.
    fn of_legacy(
        batch: &Batch<'_>,
        window: &'w mut Window,
        limits: Limits,
    ) -> Result<Self, RecordError> {
        let window_bytes_max = window.bytes_max;
        let half = window_bytes_max / 2;
        let in_window = Limits { bytes_max: limits.bytes_max.min(half), ..limits };
        let contents = read_payload(batch, in_window, &mut window.bytes);
        let contents = contents.map_err(|error| match error {
            RecordError::Compression(CompressionError::TooLarge { codec, bytes_max })
                if bytes_max == half =>
            {
                CompressionError::Window { codec, window_bytes_max }.into()
            }
            error => error,
        })?;
        let RecordIter { rest, context, count, .. } =
            RecordIter::of_legacy(batch, contents, &window.bytes);
        let pieces = Pieces::Whole(rest);
        Ok(Self { pieces, read: 0, read_before: 0, context, index: 0, count, is_over: false })
    }

    /// All records, if the whole payload is available.
    pub fn whole(&self) -> Option<RecordIter<'w>> {
        let Pieces::Whole(payload) = self.pieces else { return None };
        Some(RecordIter { rest: payload, context: self.context, index: 0, count: self.count })
    }

    /// Number of uncompressed payload bytes read; after the last record, all of them.
    pub fn bytes_read(&self) -> usize {
        self.read_before + self.read
    }

    /// The rest of the current piece, or the next one; empty at the end of the payload.
    #[inline]
    fn rest(&mut self) -> &[u8] {
        while self.read == self.pieces.piece().len() && self.pieces.has_next() {
            self.read_before += self.read;
            self.read = 0;
            self.pieces.next();
        }
        &self.pieces.piece()[self.read..]
    }

    /// Skip the rest of the payload; return its size.
    fn drain(&mut self) -> Result<usize, RecordError> {
        let mut left = 0;
        loop {
            let size = self.rest().len();
            if size == 0 {
                break;
            }
            left += size;
            self.read += size;
        }
        match self.pieces.failed() {
            Some(error) => Err(error.into()),
            None => Ok(left),
        }
    }

    fn step(&mut self) -> Result<Option<RecordHead>, RecordError> {
        if self.index == self.count {
            let left = self.drain()?;
            return if left == 0 { Ok(None) } else { Err(RecordError::LeftOver(left)) };
        }
        let context = self.context;
        let rest = self.rest();
        let mut behind = rest;
        let read = match behind.sized() {
            Ok(mut body) => {
                let size = rest.len() - behind.len();
                let head =
                    context.check_size(body.len()).and_then(|()| read_head(&mut body, &context));
                self.read += size;
                head.map_err(|fault| (fault, 0))
            }
            Err(_) if rest.is_empty() => {
                self.drain()?;
                return Err(RecordError::TooFew { expected: self.count, found: self.index });
            }
            Err(_) => self.read_spanning(),
        };
        let head = read.map_err(|(fault, left)| self.error(fault, left))?;
        self.index += 1;
        Ok(Some(head))
    }

    /// Read a record that does not end in the current piece, or does not end at all.
    ///
    /// A fault includes the number of bytes that the record should still have.
    fn read_spanning(&mut self) -> Result<RecordHead, (Fault, usize)> {
        let context = self.context;
        let mut body = Spanning { reader: self, left: usize::MAX };
        let size = body.i32().map_err(|fault| (fault, 0))?;
        body.left = usize::try_from(size).map_err(|_| (Fault::Size, 0))?;
        let checked = context.check_size(body.left);
        checked.and_then(|()| read_head(&mut body, &context)).map_err(|fault| (fault, body.left))
    }

    /// The error for a fault, which depends on the rest of the payload.
    fn error(&mut self, fault: Fault, left: usize) -> RecordError {
        match self.drain() {
            Ok(there) if there < left => Fault::Size.at(self.index),
            Ok(_) => fault.at(self.index),
            Err(error) => error,
        }
    }
}

impl Iterator for RecordReader<'_> {
    type Item = Result<RecordHead, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let step = self.step().transpose();
        self.is_over = !matches!(step, Some(Ok(_)));
        step
    }
}

impl std::iter::FusedIterator for RecordReader<'_> {}

#[inline]
fn read_head(body: &mut impl Body, context: &Context) -> Result<RecordHead, Fault> {
    let beginning = read_beginning(body, context)?;
    let has_key = body.nullable()?.is_some();
    let _value = body.nullable()?;
    let count = body.headers_count()?;
    body.headers(count)?;
    Ok(RecordHead { offset: beginning.offset, timestamp: beginning.timestamp, has_key })
}

/// A record that spans several pieces.
struct Spanning<'r, 'w> {
    reader: &'r mut RecordReader<'w>,
    /// Bytes of the record that were not read yet.
    left: usize,
}

impl Spanning<'_, '_> {
    /// Take the bytes of a variable-length integer, at most `N`.
    fn varint<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        for taken in &mut bytes {
            *taken = self.byte().map_err(|_| Fault::Varint)?;
            if *taken & 0x80 == 0 {
                break;
            }
        }
        Ok(bytes)
    }
}

impl Body for Spanning<'_, '_> {
    type Field = ();

    fn left(&self) -> usize {
        self.left
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let byte = match self.reader.rest() {
            [byte, ..] if self.left > 0 => *byte,
            _ => return Err(Fault::Size),
        };
        self.field(1)?;
        Ok(byte)
    }

    fn i32(&mut self) -> Result<i32, Fault> {
        Ok(varint::read_i32(&mut &self.varint::<5>()?[..])?)
    }

    fn i64(&mut self) -> Result<i64, Fault> {
        Ok(varint::read_i64(&mut &self.varint::<10>()?[..])?)
    }

    fn field(&mut self, size: usize) -> Result<(), Fault> {
        let mut wanted = size;
        while wanted > 0 {
            let size = self.reader.rest().len().min(wanted);
            if size == 0 {
                return Err(Fault::Size);
            }
            self.reader.read += size;
            self.left -= size;
            wanted -= size;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
