//! A record's fields, and how they are read from the bytes of a batch.

use super::error::RecordError;
use crate::batch::{Batch, TimestampType, sequence_after};
use crate::compression::{Compression, Limits};
use crate::varint::{self, VarintError};

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

/// The start of a record, without its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHead {
    /// See [`Record::offset`].
    pub offset: i64,
    /// See [`Record::timestamp`].
    pub timestamp: i64,
    /// Whether its key is not null.
    pub has_key: bool,
}

/// Fields of the batch header that records depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) base_offset: i64,
    pub(super) last_offset_delta: i32,
    pub(super) base_timestamp: i64,
    pub(super) log_append_time: Option<i64>,
    pub(super) base_sequence: i32,
    pub(super) record_bytes_max: usize,
}

impl Context {
    pub(super) fn of(batch: &Batch<'_>, limits: Limits) -> Self {
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
            record_bytes_max: match batch.compression() {
                Ok(Compression::None) => usize::MAX,
                _ => limits.record_bytes_max,
            },
        }
    }

    #[inline]
    pub(super) fn check_size(&self, size: usize) -> Result<(), Fault> {
        let bytes_max = self.record_bytes_max;
        if size > bytes_max { Err(Fault::TooLarge { size, bytes_max }) } else { Ok(()) }
    }
}

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
    pub(super) fn at(self, index: i32) -> RecordError {
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
pub(super) struct Beginning {
    attributes: i8,
    pub(super) timestamp: i64,
    offset_delta: i32,
    pub(super) offset: i64,
}

#[inline]
pub(super) fn read_beginning(body: &mut impl Body, context: &Context) -> Result<Beginning, Fault> {
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
pub(super) fn read_record<'a>(rest: &mut &'a [u8], context: &Context) -> Result<Record<'a>, Fault> {
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
