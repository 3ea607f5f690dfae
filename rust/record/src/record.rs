//! Records of a batch, iterated without allocation and checked on the way.
//!
//! The checks are those of Kafka's readers: each record's size against the remaining bytes and the
//! sizes of its fields, header counts against the remaining bytes, the number of records against
//! the header, and that no bytes remain. Stricter than in Kafka, lengths below −1, offsets outside
//! the batch and timestamps that overflow are errors.

mod legacy;
mod reader;

pub(crate) use self::legacy::{Contents, put_record, read_payload};
pub use self::reader::{RecordHead, RecordReader, Window};

use crate::batch::{Batch, TimestampType, sequence_after};
use crate::compression::{self, Compression, CompressionError, Limits, UnknownCompression};
use crate::varint::{self, VarintError};

/// Why the records of a batch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The attributes contain an unknown codec.
    #[error(transparent)]
    UnknownCompression(#[from] UnknownCompression),
    /// The payload cannot be decompressed within the limits.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// The number of records in the header is negative.
    #[error("negative records count {0}")]
    NegativeCount(i32),
    /// The payload ends before the last record.
    #[error("batch ends after {found} of {expected} records")]
    TooFew {
        /// Number of records in the header.
        expected: i32,
        /// Number of records in the payload.
        found: i32,
    },
    /// Bytes remain after the last record.
    #[error("{0} bytes are left behind the last record")]
    LeftOver(usize),
    /// A variable-length integer is truncated or too long.
    #[error("malformed varint in record {0}")]
    Varint(i32),
    /// A record is larger than [`RecordReader::with_record_bytes_max`] allows.
    #[error("record {index} has {size} bytes, which is more than the maximum of {bytes_max}")]
    TooLarge {
        /// Its index in the batch, from 0.
        index: i32,
        /// Its size in bytes, without the varint of the size.
        size: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A record's size is negative, exceeds the payload, or differs from that of its fields.
    #[error("record {0} has a size that does not fit")]
    Size(i32),
    /// The length of a key, a value, a header's key or value is below −1 or exceeds the record.
    #[error("record {0} has a field whose length does not fit")]
    FieldLength(i32),
    /// A header count is negative or exceeds the remaining bytes.
    #[error("record {0} has a header count that does not fit")]
    HeaderCount(i32),
    /// An offset delta is negative or exceeds the batch's last offset.
    #[error("record {0} has an offset outside of its batch")]
    OffsetDelta(i32),
    /// Base timestamp and delta overflow 64 bits.
    #[error("record {0} has a timestamp that overflows")]
    Timestamp(i32),
    /// A message of format 0 or 1 is malformed.
    #[error("malformed message set: {0}")]
    MessageSet(&'static str),
}

impl RecordError {
    /// Whether the read would succeed with a larger window ([`Batch::read`]).
    pub fn needs_larger_window(&self) -> bool {
        matches!(self, Self::Compression(CompressionError::Window { .. }))
    }
}

/// A record, borrowed from a batch or from the scratch space with its decompressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// 0; Kafka does not use it.
    pub attributes: i8,
    /// Base offset of the batch plus the record's delta.
    pub offset: i64,
    /// Milliseconds since 1970; −1 without a timestamp.
    pub timestamp: i64,
    /// Sequence of an idempotent producer; −1 without one.
    pub sequence: i32,
    /// `None` is null, which differs from an empty key.
    pub key: Option<&'a [u8]>,
    /// `None` is null: a tombstone in compacted topics.
    pub value: Option<&'a [u8]>,
    /// In the order they were written; keys may repeat.
    pub headers: Headers<'a>,
}

impl Record<'_> {
    /// The record without key, value and headers.
    #[inline]
    pub fn head(&self) -> RecordHead {
        let (offset, timestamp) = (self.offset, self.timestamp);
        RecordHead { offset, timestamp, has_key: self.key.is_some() }
    }
}

/// The headers of a record; they were checked with it, so iteration cannot fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// One header: its key, UTF-8 by contract but not checked, and its value, which may be null.
pub type Header<'a> = (&'a [u8], Option<&'a [u8]>);

impl<'a> Headers<'a> {
    /// Number of headers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The stored bytes, without the count.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The headers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Header<'a>> + use<'a> {
        let mut rest = self.bytes;
        (0..self.count)
            .map(move |_| rest.header().expect("headers were read once when the record was"))
    }
}

impl<'a> Batch<'a> {
    /// Iterate the records.
    ///
    /// `scratch` receives the decompressed bytes, or the records of format 0 or 1 converted to
    /// format 2; it is unused if [`crate::BatchHeader::is_plain`]. Keep it between calls, because
    /// its capacity is reused. The iterator ends after its first error.
    pub fn records<'s>(
        &self,
        scratch: &'s mut Vec<u8>,
        limits: Limits,
    ) -> Result<RecordIter<'s>, RecordError>
    where
        'a: 's,
    {
        if self.is_legacy() {
            let contents = read_payload(self, limits, scratch)?;
            return Ok(RecordIter::of_legacy(self, contents, scratch));
        }
        let compression = self.readable_compression()?;
        if compression == Compression::None {
            return Ok(RecordIter::new(*self, self.payload()));
        }
        compression::decompress(compression, self.payload(), scratch, limits)?;
        Ok(RecordIter::new(*self, scratch))
    }

    /// The codec, if the header is valid.
    fn readable_compression(&self) -> Result<Compression, RecordError> {
        let compression = self.compression()?;
        if self.records_count() < 0 {
            return Err(RecordError::NegativeCount(self.records_count()));
        }
        Ok(compression)
    }
}

/// Iterator of [`Batch::records`].
#[derive(Debug, Clone)]
pub struct RecordIter<'a> {
    rest: &'a [u8],
    context: Context,
    index: i32,
    count: i32,
}

/// Fields of the batch header that records depend on.
#[derive(Debug, Clone, Copy)]
struct Context {
    base_offset: i64,
    last_offset_delta: i32,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    base_sequence: i32,
    record_bytes_max: usize,
}

impl Context {
    fn of(batch: &Batch<'_>) -> Self {
        let log_append_time = match batch.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(batch.max_timestamp()),
        };
        Self {
            base_offset: batch.base_offset(),
            last_offset_delta: batch.last_offset_delta(),
            base_timestamp: batch.base_timestamp(),
            log_append_time,
            base_sequence: batch.base_sequence(),
            record_bytes_max: usize::MAX,
        }
    }

    #[inline]
    fn check_size(&self, size: usize) -> Result<(), Fault> {
        let bytes_max = self.record_bytes_max;
        if size > bytes_max { Err(Fault::TooLarge { size, bytes_max }) } else { Ok(()) }
    }
}

impl<'a> RecordIter<'a> {
    /// Iterate `payload`, the uncompressed records of `batch`.
    fn new(batch: Batch<'_>, payload: &'a [u8]) -> Self {
        let context = Context::of(&batch);
        Self { rest: payload, context, index: 0, count: batch.records_count() }
    }

    /// Iterate `payload`, which [`read_payload`] wrote.
    pub(crate) fn of_legacy(batch: &Batch<'_>, contents: Contents, payload: &'a [u8]) -> Self {
        let context = Context {
            base_offset: contents.base_offset,
            last_offset_delta: contents.last_offset_delta,
            base_timestamp: 0,
            // The records already contain it.
            log_append_time: None,
            base_sequence: batch.base_sequence(),
            record_bytes_max: usize::MAX,
        };
        Self { rest: payload, context, index: 0, count: contents.records_count }
    }

    /// Number of expected records that remain.
    pub fn records_left(&self) -> i32 {
        self.count - self.index
    }

    /// The remaining bytes.
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
            // Bytes after a fault cannot be trusted: end, and skip the check for remaining bytes.
            self.rest = &[];
            self.index = self.count;
        }
        step.transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A record has at least 7 bytes, and a fault may end iteration: the count is untrusted.
        let left = (self.count - self.index) as usize;
        (0, Some(left.min(self.rest.len() / 7).saturating_add(1)))
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}

/// A fault in a record, without the record's index.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Varint,
    Size,
    TooLarge { size: usize, bytes_max: usize },
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
            Self::TooLarge { size, bytes_max } => RecordError::TooLarge { index, size, bytes_max },
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

/// The bytes of a record, read from front to back, from a slice or during decompression.
pub(super) trait Body {
    /// The bytes of a field, or nothing if they are skipped.
    type Field;

    fn left(&self) -> usize;
    fn byte(&mut self) -> Result<u8, Fault>;
    fn i32(&mut self) -> Result<i32, Fault>;
    fn i64(&mut self) -> Result<i64, Fault>;
    /// The next `size` bytes; the caller has checked that they exist.
    fn field(&mut self, size: usize) -> Result<Self::Field, Fault>;

    /// Take `length` bytes.
    #[inline]
    fn take(&mut self, length: i32) -> Result<Self::Field, Fault> {
        match usize::try_from(length) {
            Ok(size) if size <= self.left() => self.field(size),
            _ => Err(Fault::FieldLength),
        }
    }

    /// Take a length and that many bytes; null is a fault.
    #[inline]
    fn sized(&mut self) -> Result<Self::Field, Fault> {
        let length = self.i32()?;
        self.take(length)
    }

    /// Take a length and that many bytes; −1 is null.
    #[inline]
    fn nullable(&mut self) -> Result<Option<Self::Field>, Fault> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.take(length).map(Some),
        }
    }

    /// Take the number of headers, each of which has at least one byte.
    #[inline]
    fn headers_count(&mut self) -> Result<usize, Fault> {
        match usize::try_from(self.i32()?) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(Fault::HeaderCount),
        }
    }

    #[inline]
    fn header(&mut self) -> Result<(Self::Field, Option<Self::Field>), Fault> {
        Ok((self.sized()?, self.nullable()?))
    }

    /// Take that many headers, which must fill the rest of the record.
    #[inline]
    fn headers(&mut self, count: usize) -> Result<(), Fault> {
        for _ in 0..count {
            self.header()?;
        }
        if self.left() == 0 { Ok(()) } else { Err(Fault::Size) }
    }
}

impl<'a> Body for &'a [u8] {
    type Field = &'a [u8];

    #[inline]
    fn left(&self) -> usize {
        self.len()
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Fault> {
        self.split_off_first().copied().ok_or(Fault::Size)
    }

    #[inline]
    fn i32(&mut self) -> Result<i32, Fault> {
        Ok(varint::read_i32(self)?)
    }

    #[inline]
    fn i64(&mut self) -> Result<i64, Fault> {
        Ok(varint::read_i64(self)?)
    }

    #[inline]
    fn field(&mut self, size: usize) -> Result<&'a [u8], Fault> {
        self.split_off(..size).ok_or(Fault::FieldLength)
    }
}

/// The fields of a record before its key.
struct Beginning {
    attributes: i8,
    timestamp: i64,
    offset_delta: i32,
    offset: i64,
}

#[inline]
fn read_beginning(body: &mut impl Body, context: &Context) -> Result<Beginning, Fault> {
    let attributes = body.byte()? as i8;
    let timestamp_delta = body.i64()?;
    let offset_delta = body.i32()?;
    if offset_delta < 0 || offset_delta > context.last_offset_delta {
        return Err(Fault::OffsetDelta);
    }
    let offset = context.base_offset.checked_add(i64::from(offset_delta));
    let offset = offset.ok_or(Fault::OffsetDelta)?;
    let timestamp = timestamp(context, timestamp_delta).ok_or(Fault::Timestamp)?;
    Ok(Beginning { attributes, timestamp, offset_delta, offset })
}

/// Take a record off the front of `rest`.
#[inline]
fn read_record<'a>(rest: &mut &'a [u8], context: &Context) -> Result<Record<'a>, Fault> {
    let mut body = rest.sized().map_err(|fault| match fault {
        Fault::FieldLength => Fault::Size,
        other => other,
    })?;
    context.check_size(body.len())?;
    let beginning = read_beginning(&mut body, context)?;
    Ok(Record {
        attributes: beginning.attributes,
        offset: beginning.offset,
        timestamp: beginning.timestamp,
        sequence: sequence_after(context.base_sequence, beginning.offset_delta),
        key: body.nullable()?,
        value: body.nullable()?,
        headers: read_headers(body)?,
    })
}

fn timestamp(context: &Context, delta: i64) -> Option<i64> {
    match context.log_append_time {
        Some(timestamp) => Some(timestamp),
        None => context.base_timestamp.checked_add(delta),
    }
}

/// Check the headers, which must fill the rest of a record.
#[inline]
fn read_headers(mut body: &[u8]) -> Result<Headers<'_>, Fault> {
    if body == [0] {
        return Ok(Headers::default());
    }
    let count = body.headers_count()?;
    let bytes = body;
    body.headers(count)?;
    Ok(Headers { bytes, count })
}
