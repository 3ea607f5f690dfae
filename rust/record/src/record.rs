//! Records of a batch, iterated without allocation and checked on the way.
//!
//! Checked is what Kafka checks while reading: each record's size against the bytes left and
//! against what its fields take, header counts against the bytes left, the number of records
//! against the header, and that nothing is left over. Stricter than Kafka, whose readers would
//! pass nonsense on: lengths below −1, offsets outside the batch and timestamps that overflow
//! are errors.

use crate::batch::{Batch, TimestampType, sequence_after};
use crate::compression::{self, Compression, CompressionError, Limits, UnknownCompression};
use crate::varint::{self, VarintError};

/// Why the records of a batch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The attributes name no codec.
    #[error(transparent)]
    UnknownCompression(#[from] UnknownCompression),
    /// The payload cannot be decompressed, or not within the limits.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// The header tells a negative number of records.
    #[error("negative records count {0}")]
    NegativeCount(i32),
    /// The payload ends before the last record that the header tells.
    #[error("batch ends after {found} of {expected} records")]
    TooFew {
        /// The header's count.
        expected: i32,
        /// Records there.
        found: i32,
    },
    /// Bytes are left behind the last record that the header tells.
    #[error("{0} bytes are left behind the last record")]
    LeftOver(usize),
    /// A variable-length integer is cut off or too long.
    #[error("malformed varint in record {0}")]
    Varint(i32),
    /// A record's size is negative, beyond the payload, or not that of its fields.
    #[error("record {0} has a size that does not fit")]
    Size(i32),
    /// The length of a key, a value, a header's key or value is below −1 or beyond the record.
    #[error("record {0} has a field whose length does not fit")]
    FieldLength(i32),
    /// A header count is negative or more than the bytes left.
    #[error("record {0} has a header count that does not fit")]
    HeaderCount(i32),
    /// An offset delta is negative or beyond the batch's last offset.
    #[error("record {0} has an offset outside of its batch")]
    OffsetDelta(i32),
    /// Base timestamp and delta overflow 64 bits.
    #[error("record {0} has a timestamp that overflows")]
    Timestamp(i32),
}

/// A record, borrowed from a batch or from the scratch space it was decompressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Unused by Kafka; 0.
    pub attributes: i8,
    /// Its offset: the batch's base offset and its own delta.
    pub offset: i64,
    /// Milliseconds since 1970; −1 for none.
    pub timestamp: i64,
    /// Sequence of an idempotent producer; −1 for none.
    pub sequence: i32,
    /// `None` is null, which differs from empty.
    pub key: Option<&'a [u8]>,
    /// `None` is null: a tombstone in compacted topics.
    pub value: Option<&'a [u8]>,
    /// In the order they were written; keys may repeat.
    pub headers: Headers<'a>,
}

/// The headers of a record; they were checked with it, so iterating cannot fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// One header: its key, UTF-8 by contract but not checked, and its value, which may be null.
pub type Header<'a> = (&'a [u8], Option<&'a [u8]>);

impl<'a> Headers<'a> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The headers as stored, without their count.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Each header in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Header<'a>> + use<'a> {
        let mut rest = self.bytes;
        (0..self.count).map(move |_| {
            read_header(&mut rest).expect("headers were read once when the record was")
        })
    }
}

impl<'a> Batch<'a> {
    /// Iterate the records.
    ///
    /// `scratch` takes the decompressed bytes, and is left alone where there is no compression.
    /// Keep it between calls: its capacity is reused. The iterator ends after its first error.
    pub fn records<'s>(
        &self,
        scratch: &'s mut Vec<u8>,
        limits: Limits,
    ) -> Result<RecordIter<'s>, RecordError>
    where
        'a: 's,
    {
        let compression = self.compression()?;
        if self.records_count() < 0 {
            return Err(RecordError::NegativeCount(self.records_count()));
        }
        if compression == Compression::None {
            return Ok(RecordIter::new(*self, self.payload()));
        }
        compression::decompress(compression, self.payload(), scratch, limits)?;
        Ok(RecordIter::new(*self, scratch))
    }
}

/// See [`Batch::records`].
#[derive(Debug, Clone)]
pub struct RecordIter<'a> {
    rest: &'a [u8],
    context: Context,
    index: i32,
    count: i32,
}

/// What a record takes from its batch's header.
#[derive(Debug, Clone, Copy)]
struct Context {
    base_offset: i64,
    last_offset_delta: i32,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    base_sequence: i32,
}

impl<'a> RecordIter<'a> {
    /// Iterate `payload`, the records of `batch` without compression.
    fn new(batch: Batch<'_>, payload: &'a [u8]) -> Self {
        let log_append_time = match batch.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(batch.max_timestamp()),
        };
        let context = Context {
            base_offset: batch.base_offset(),
            last_offset_delta: batch.last_offset_delta(),
            base_timestamp: batch.base_timestamp(),
            log_append_time,
            base_sequence: batch.base_sequence(),
        };
        Self { rest: payload, context, index: 0, count: batch.records_count() }
    }

    /// The bytes not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn step(&mut self) -> Result<Option<Record<'a>>, RecordError> {
        if self.index == self.count {
            let left = self.rest.len();
            return if left == 0 { Ok(None) } else { Err(RecordError::LeftOver(left)) };
        }
        if self.rest.is_empty() {
            return Err(RecordError::TooFew { expected: self.count, found: self.index });
        }
        let record =
            read_record(&mut self.rest, &self.context).map_err(|fault| fault.at(self.index))?;
        self.index += 1;
        Ok(Some(record))
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // Nothing behind a fault can be trusted: be over, also for the left-over check.
            self.rest = &[];
            self.index = self.count;
        }
        step.transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A record takes 7 bytes at least, and a fault may end it before: the count is a claim.
        let left = (self.count - self.index) as usize;
        (0, Some(left.min(self.rest.len() / 7).saturating_add(1)))
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}

/// What is wrong with a record, before its index is known.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Varint,
    Size,
    FieldLength,
    HeaderCount,
    OffsetDelta,
    Timestamp,
}

impl Fault {
    fn at(self, index: i32) -> RecordError {
        match self {
            Self::Varint => RecordError::Varint(index),
            Self::Size => RecordError::Size(index),
            Self::FieldLength => RecordError::FieldLength(index),
            Self::HeaderCount => RecordError::HeaderCount(index),
            Self::OffsetDelta => RecordError::OffsetDelta(index),
            Self::Timestamp => RecordError::Timestamp(index),
        }
    }
}

impl From<VarintError> for Fault {
    fn from(_: VarintError) -> Self {
        Self::Varint
    }
}

/// Take a record off the front of `rest`.
#[inline]
fn read_record<'a>(rest: &mut &'a [u8], context: &Context) -> Result<Record<'a>, Fault> {
    let mut body = read_sized(rest).map_err(|fault| match fault {
        Fault::FieldLength => Fault::Size,
        other => other,
    })?;
    let (attributes, fields) = body.split_first().ok_or(Fault::Size)?;
    body = fields;
    let timestamp_delta = varint::read_i64(&mut body)?;
    let offset_delta = varint::read_i32(&mut body)?;
    if offset_delta < 0 || offset_delta > context.last_offset_delta {
        return Err(Fault::OffsetDelta);
    }
    Ok(Record {
        attributes: *attributes as i8,
        offset: context
            .base_offset
            .checked_add(i64::from(offset_delta))
            .ok_or(Fault::OffsetDelta)?,
        timestamp: timestamp(context, timestamp_delta).ok_or(Fault::Timestamp)?,
        sequence: sequence_after(context.base_sequence, offset_delta),
        key: read_nullable(&mut body)?,
        value: read_nullable(&mut body)?,
        headers: read_headers(body)?,
    })
}

fn timestamp(context: &Context, delta: i64) -> Option<i64> {
    match context.log_append_time {
        Some(timestamp) => Some(timestamp),
        None => context.base_timestamp.checked_add(delta),
    }
}

/// Check the headers, which take the whole rest of a record.
#[inline]
fn read_headers(body: &[u8]) -> Result<Headers<'_>, Fault> {
    if body == [0] {
        return Ok(Headers::default());
    }
    let mut rest = body;
    let count = varint::read_i32(&mut rest)?;
    let count = usize::try_from(count).map_err(|_| Fault::HeaderCount)?;
    if count > rest.len() {
        return Err(Fault::HeaderCount);
    }
    let bytes = rest;
    for _ in 0..count {
        read_header(&mut rest)?;
    }
    if rest.is_empty() { Ok(Headers { bytes, count }) } else { Err(Fault::Size) }
}

fn read_header<'a>(rest: &mut &'a [u8]) -> Result<Header<'a>, Fault> {
    Ok((read_sized(rest)?, read_nullable(rest)?))
}

/// Take a length and so many bytes; −1 is null.
#[inline]
fn read_nullable<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Fault> {
    match varint::read_i32(rest)? {
        -1 => Ok(None),
        length => take(rest, length).map(Some),
    }
}

/// Take a length and so many bytes; null is a fault.
#[inline]
fn read_sized<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Fault> {
    let length = varint::read_i32(rest)?;
    take(rest, length)
}

#[inline]
fn take<'a>(rest: &mut &'a [u8], length: i32) -> Result<&'a [u8], Fault> {
    let length = usize::try_from(length).map_err(|_| Fault::FieldLength)?;
    rest.split_off(..length).ok_or(Fault::FieldLength)
}
