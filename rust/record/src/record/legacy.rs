//! Reads messages of formats 0 and 1 as records of format 2.
//!
//! | bytes | field | |
//! |---|---|---|
//! | 8 | offset | for a compressed message that of its last record |
//! | 4 | length | of the following bytes |
//! | 4 | CRC-32 | of the following bytes |
//! | 1 | magic | 0 or 1 |
//! | 1 | attributes | codec, and the timestamp type of format 1 |
//! | 8 | timestamp | only in format 1 |
//! | 4 + n, 4 + n | key, value | a length of −1 means null |
//!
//! The value of a compressed message is a set of uncompressed messages. Their offsets are absolute
//! in format 0. In format 1 they are relative to each other: the last one has the offset of the
//! compressed message (KIP-31). `LogAppendTime` of the compressed message applies to all of them
//! (KIP-32). As in Kafka's `AbstractLegacyRecordBatch`, checksums of inner messages are not
//! verified.

use super::error::RecordError;
use super::fields::{Headers, Record};
use crate::batch::{Batch, TimestampType};
use crate::compression::{Compression, Limits, Source, decompress_from};
use crate::layout::{self, MessageFormat};
use crate::varint;

/// Offsets and count of the records that [`read_payload`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) base_offset: i64,
    pub(crate) last_offset_delta: i32,
    pub(crate) records_count: i32,
}

/// Replaces `out` by the records of a batch of format 0 or 1, as an uncompressed payload of format
/// 2 with timestamps relative to 0.
pub(crate) fn read_payload(
    batch: &Batch<'_>,
    limits: Limits,
    out: &mut Vec<u8>,
) -> Result<Contents, RecordError> {
    out.clear();
    let outer = read_message(batch)?;
    let codec = batch.compression()?;
    if codec == Compression::None {
        put_relative(out, &outer, 0)?;
        return Ok(Contents { base_offset: outer.offset, last_offset_delta: 0, records_count: 1 });
    }
    let compressed = outer.value.ok_or(malformed("a compressed message has no value"))?;
    let source = match batch.format() {
        MessageFormat::V0 => Source::Format0,
        _ => Source::Other,
    };
    let mut set = Vec::new();
    decompress_from(source, codec, compressed, &mut set, limits)?;
    put_set(batch, &set, out)
}

fn put_set(batch: &Batch<'_>, set: &[u8], out: &mut Vec<u8>) -> Result<Contents, RecordError> {
    let (first, last, records_count) = bounds(batch, set)?;
    let shift = match batch.format() {
        MessageFormat::V1 => batch.last_offset().checked_sub(last).filter(|shift| *shift >= 0),
        _ => Some(0),
    };
    let shift = shift.ok_or(malformed("a compressed message ends before its last message"))?;
    let base_offset = first.checked_add(shift).ok_or(malformed("an offset overflows"))?;
    let mut rest = set;
    while !rest.is_empty() {
        let message = split_inner(batch, &mut rest)?;
        let delta = message.offset.checked_sub(first).and_then(|delta| i32::try_from(delta).ok());
        let delta = delta.filter(|delta| *delta >= 0);
        put_relative(out, &message, delta.ok_or(malformed("offsets of messages do not grow"))?)?;
    }
    let last_offset_delta = last.checked_sub(first).and_then(|delta| i32::try_from(delta).ok());
    let last_offset_delta = last_offset_delta.ok_or(malformed("offsets are too far apart"))?;
    Ok(Contents { base_offset, last_offset_delta, records_count })
}

/// The first and last offset in a set of messages, and the number of messages.
fn bounds(batch: &Batch<'_>, set: &[u8]) -> Result<(i64, i64, i32), RecordError> {
    let (mut rest, mut first, mut last, mut count) = (set, None, 0, 0_i32);
    while !rest.is_empty() {
        last = split_inner(batch, &mut rest)?.offset;
        first.get_or_insert(last);
        count = count.saturating_add(1);
    }
    let first = first.ok_or(malformed("a compressed message holds no messages"))?;
    Ok((first, last, count))
}

/// Takes a message off a decompressed set.
fn split_inner<'s>(batch: &Batch<'_>, rest: &mut &'s [u8]) -> Result<Record<'s>, RecordError> {
    let (inner, behind) =
        Batch::split(rest).map_err(|_| malformed("a set of messages ends inside of a message"))?;
    *rest = behind;
    if inner.format() != batch.format() {
        return Err(malformed("a message in a compressed message has another format"));
    }
    if inner.compression()? != Compression::None {
        return Err(malformed("a message in a compressed message is compressed"));
    }
    let mut message = read_message(&inner)?;
    if batch.timestamp_type() == TimestampType::LogAppendTime {
        message.timestamp = batch.max_timestamp();
    }
    Ok(message)
}

/// The message itself, compressed or not, with its stored offset.
fn read_message<'a>(message: &Batch<'a>) -> Result<Record<'a>, RecordError> {
    let mut rest = message.payload();
    let (key, value) = (take_nullable(&mut rest)?, take_nullable(&mut rest)?);
    if !rest.is_empty() {
        return Err(malformed("bytes are left behind the value of a message"));
    }
    Ok(Record {
        attributes: 0,
        offset: message.last_offset(),
        timestamp: message.max_timestamp(),
        sequence: layout::NO_SEQUENCE,
        key,
        value,
        headers: Headers::default(),
    })
}

fn take_nullable<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, RecordError> {
    let misfit = || malformed("the length of a key or value does not fit");
    let (length, behind) = rest.split_first_chunk().ok_or_else(misfit)?;
    *rest = behind;
    match i32::from_be_bytes(*length) {
        -1 => Ok(None),
        length => {
            let size = usize::try_from(length).map_err(|_| misfit())?;
            rest.split_off(..size).map(Some).ok_or_else(misfit)
        }
    }
}

fn put_relative(out: &mut Vec<u8>, message: &Record<'_>, delta: i32) -> Result<(), RecordError> {
    let is_put = put_record(out, message, message.timestamp, i64::from(delta));
    if is_put { Ok(()) } else { Err(malformed("its records do not fit into a batch")) }
}

fn malformed(reason: &'static str) -> RecordError {
    RecordError::MessageSet(reason)
}

/// Appends a record of format 2 to `out`, with timestamp and offset relative to its batch; `false`
/// if a batch cannot hold it.
pub(crate) fn put_record(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    timestamp_delta: i64,
    offset_delta: i64,
) -> bool {
    let headers_count = record.headers.count() as i64;
    let size = 1
        + varint::size(timestamp_delta)
        + varint::size(offset_delta)
        + nullable_size(record.key)
        + nullable_size(record.value)
        + varint::size(headers_count)
        + record.headers.bytes().len();
    if out.len().saturating_add(size) > i32::MAX as usize - layout::HEADER_SIZE - 5 {
        return false;
    }
    varint::put(out, size as i64);
    out.push(record.attributes as u8);
    varint::put(out, timestamp_delta);
    varint::put(out, offset_delta);
    put_nullable(out, record.key);
    put_nullable(out, record.value);
    varint::put(out, headers_count);
    out.extend_from_slice(record.headers.bytes());
    true
}

fn nullable_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::size(bytes.len() as i64) + bytes.len())
}

fn put_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::put(out, -1),
        Some(bytes) => {
            varint::put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
