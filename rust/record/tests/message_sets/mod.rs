//! Messages of format 0 and 1, written as brokers before Kafka 0.11 stored them.
#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use pykafka_record::{Compression, compress, crc32};

/// A record of a message set. Format 0 drops the timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
}

impl Row {
    pub fn new(offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Row {
        Row { offset, timestamp, key: key.map(<[u8]>::to_vec), value: value.map(<[u8]>::to_vec) }
    }
}

/// How a set is written.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub magic: i8,
    pub codec: Compression,
    /// The timestamp of all records, with `LogAppendTime`.
    pub log_append_time: Option<i64>,
}

const LOG_APPEND_TIME: u8 = 8;

/// One message for each row, or one compressed message for all of them.
pub fn message_set(style: Style, rows: &[Row]) -> Vec<u8> {
    let stamped = style.log_append_time.map_or(0, |_| LOG_APPEND_TIME);
    let mut set = Vec::new();
    let first = rows[0].offset;
    for row in rows {
        let is_relative = style.magic == 1 && style.codec != Compression::None;
        let offset = if is_relative { row.offset - first } else { row.offset };
        let timestamp = style.log_append_time.unwrap_or(row.timestamp);
        let fields = (row.key.as_deref(), row.value.as_deref());
        put_message(&mut set, style.magic, offset, stamped, timestamp, fields);
    }
    if style.codec == Compression::None {
        return set;
    }
    let mut compressed = Vec::new();
    compress(style.codec, None, &set, &mut compressed).unwrap();
    if style.magic == 0 && style.codec == Compression::Lz4 {
        // Writers of format 0 calculated the header checksum over the wrong bytes (KAFKA-3160).
        compressed[6] ^= 0xff;
    }
    let max = rows.iter().map(|row| row.timestamp).max().unwrap();
    let (last, timestamp) = (rows.last().unwrap().offset, style.log_append_time.unwrap_or(max));
    let attributes = stamped | style.codec.id() as u8;
    let mut wrapper = Vec::new();
    put_message(&mut wrapper, style.magic, last, attributes, timestamp, (None, Some(&compressed)));
    wrapper
}

/// Appends one message.
pub fn put_message(
    out: &mut Vec<u8>,
    magic: i8,
    offset: i64,
    attributes: u8,
    timestamp: i64,
    (key, value): (Option<&[u8]>, Option<&[u8]>),
) {
    let mut body = vec![magic as u8, attributes];
    if magic == 1 {
        body.extend(timestamp.to_be_bytes());
    }
    for field in [key, value] {
        body.extend(field.map_or(-1, |field| field.len() as i32).to_be_bytes());
        body.extend(field.unwrap_or_default());
    }
    out.extend(offset.to_be_bytes());
    out.extend((body.len() as i32 + 4).to_be_bytes());
    out.extend(crc32(&body).to_be_bytes());
    out.extend(body);
}
