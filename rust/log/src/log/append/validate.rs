//! Validation of a client's batch on the leader. It uses only the bytes of the batch, and corrects
//! what Kafka corrects.
//!
//! # Theory of operation
//! A pure function, called without a lock. Offsets are relative (the base offset stays 0) and the
//! leader epoch is not changed: the append sets both, and the checksum does not cover them.
//!
//! All records are always read, because a consumer would fail where this read fails. Only
//! decompression allocates memory, through a window of bounded size. The bytes are then kept
//! unchanged, except for the max timestamp and timestamp type in the header. A new batch is built
//! if
//!
//! - the topic's `compression.type` requires another codec, or
//! - a compressed batch does not number its records 0, 1, 2 …
//!
//! An uncompressed batch with repeated deltas is accepted unchanged, as in Kafka.

use std::fmt;

use pykafka_record::{
    Batch, BatchBuilder, BatchError, BatchMut, BatchOptions, BuildError, Cancellation, Cancelled,
    Compression, CompressionError, HEADER_SIZE, Limits, NO_TIMESTAMP, ProducerId, RecordError,
    RecordHead, RecordIter, TimestampType, UnknownCompression, Window,
};

use crate::log::producer_state::AppendOrigin;

#[cfg(test)]
mod tests;

/// The codec in which a topic stores batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// The producer's codec.
    Producer,
    /// This codec at this level; batches that already use the codec are kept.
    Fixed(Compression, Option<i32>),
}

/// The topic's requirements for its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateRules {
    /// True if each record needs a key (`cleanup.policy` contains `compact`).
    pub topic_compacted: bool,
    /// `compression.type`.
    pub compression: CompressionType,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// `max.message.bytes`, for the batch as sent and as stored.
    pub batch_bytes_max: usize,
    /// Limits of decompression, with `max.decompressed.message.bytes`.
    pub limits: Limits,
    /// The sender; only clients' batches are checked against the rules for produce requests.
    pub origin: AppendOrigin,
    /// If false, a batch that must be rebuilt fails with [`ValidateError::Rebuild`].
    pub rebuilds: bool,
}

/// Buffers that are reused. Keep one object per thread or connection.
#[derive(Debug)]
pub struct Scratch {
    /// The window for decompressed records.
    pub window: Window,
    /// The stored bytes of a batch that was read from a log.
    pub(crate) stored: Vec<u8>,
    builder: BatchBuilder,
}

impl Default for Scratch {
    /// Uses a window that takes every batch as a whole.
    fn default() -> Self {
        Scratch::new(usize::MAX)
    }
}

impl Scratch {
    /// Bytes that the buffers may keep between calls.
    const KEPT_BYTES_MAX: usize = 1 << 20;

    /// Buffers through which batches are decompressed `window_bytes_max` bytes at a time. A batch
    /// that needs more at once, or that has more and must be rewritten, fails with
    /// [`ValidateError::DecompressedTooLarge`].
    #[must_use]
    pub fn new(window_bytes_max: usize) -> Self {
        Scratch {
            window: Window::new(window_bytes_max),
            stored: Vec::new(),
            builder: BatchBuilder::default(),
        }
    }

    /// Releases the memory that a large batch needed.
    pub(crate) fn shrink(&mut self) {
        self.window.shrink(Self::KEPT_BYTES_MAX);
        if self.stored.capacity() > Self::KEPT_BYTES_MAX {
            self.stored = Vec::new();
        }
    }
}

/// A batch that may be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// The new batch if one had to be built; otherwise the batch is the first [`Validated::size`]
    /// bytes of the input.
    pub rewritten: Option<Vec<u8>>,
    /// Size of the first batch in the input. Bytes after it are ignored, as in Kafka.
    pub size: usize,
    /// Size that the batch would have without compression.
    pub uncompressed_size: usize,
    /// Number of records.
    pub records_count: i32,
    /// The new value of the header field.
    pub max_timestamp: i64,
    /// The time that was set for a topic with `LogAppendTime`, otherwise −1.
    pub log_append_time_ms: i64,
}

impl Validated {
    /// Size of the batch in the log.
    #[must_use]
    pub fn stored_size(&self) -> usize {
        self.rewritten.as_ref().map_or(self.size, Vec::len)
    }
}

/// The reason why a batch is rejected. No part of it may be appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// Not a complete batch of a supported format.
    #[error(transparent)]
    Malformed(#[from] BatchError),
    /// The first offset is not 0.
    #[error("the base offset of a batch to append should be 0, but it is {0}")]
    BaseOffset(i64),
    /// Larger than `max.message.bytes`.
    #[error("the batch has {size} bytes, which is more than the maximum of {bytes_max}")]
    TooLarge {
        /// The batch's size in bytes, as sent or as it would be stored.
        size: usize,
        /// The topic's limit.
        bytes_max: usize,
    },
    /// The checksum is wrong.
    #[error("record is corrupt (stored crc = {stored}, computed crc = {computed})")]
    Crc {
        /// The value in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The last offset is below the first.
    #[error("batch has an invalid offset range: last offset delta {0}")]
    OffsetRange(i32),
    /// No records, or a negative number of records.
    #[error("invalid reported count for record batch: {0}")]
    Count(i32),
    /// The number of offsets differs from the number of records.
    #[error("inconsistent batch offset range: {offsets} offsets for {records} records")]
    CountMismatch {
        /// Number of offsets in the range.
        offsets: i64,
        /// Number of records in the header.
        records: i32,
    },
    /// Clients must not write control records.
    #[error("clients are not allowed to write control records")]
    Control,
    /// The first sequence of an idempotent producer's batch is negative.
    #[error("invalid sequence number {sequence} in record batch with producer id {producer_id}")]
    Sequence {
        /// The producer that sent the batch.
        producer_id: ProducerId,
        /// Sequence of the first record.
        sequence: i32,
    },
    /// Records that the topic does not accept, with their indexes.
    #[error("one or more records have been rejected: {} in total, the first: {}", .0.count, First(&.0.listed))]
    Rejected(Rejected),
    /// The records' structure is broken.
    #[error(transparent)]
    Records(RecordError),
    /// The records cannot be decompressed, or not even the first can be read. Kafka has no specific
    /// error for it.
    #[error(transparent)]
    Undecodable(RecordError),
    /// The decompressed records would take too much memory.
    #[error("the records are larger than the bound of decompression: {0}")]
    DecompressedTooLarge(RecordError),
    /// The batch must be rebuilt, which [`ValidateRules::rebuilds`] does not permit.
    #[error("the batch must be rebuilt")]
    Rebuild,
    /// The batch cannot be rebuilt with the topic's codec.
    #[error("the batch cannot be recompressed: {0}")]
    Rewrite(BuildError),
    /// The validation was cancelled; the batch may be valid.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl ValidateError {
    /// True if timestamps are invalid, for which Kafka has a separate error code.
    pub fn is_invalid_timestamp(&self) -> bool {
        matches!(self, ValidateError::Rejected(faults) if faults.invalid_timestamp)
    }

    /// The first invalid records; empty if the error does not concern single records.
    pub fn record_faults(&self) -> &[RecordFault] {
        match self {
            ValidateError::Rejected(faults) => &faults.listed,
            _ => &[],
        }
    }
}

impl From<RecordError> for ValidateError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Compression(
                CompressionError::TooLarge { .. } | CompressionError::Window { .. },
            ) => ValidateError::DecompressedTooLarge(error),
            RecordError::UnknownCompression(_)
            | RecordError::Compression(_)
            | RecordError::Varint(_) => ValidateError::Undecodable(error),
            _ => ValidateError::Records(error),
        }
    }
}

impl From<BuildError> for ValidateError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Stored { size, bytes_max } => ValidateError::TooLarge { size, bytes_max },
            BuildError::Cancelled(cancelled) => ValidateError::Cancelled(cancelled),
            error => ValidateError::Rewrite(error),
        }
    }
}

impl From<UnknownCompression> for ValidateError {
    fn from(error: UnknownCompression) -> Self {
        ValidateError::from(RecordError::from(error))
    }
}

/// The records of a batch that the topic does not accept. Kafka lists all of them; here only the
/// first are listed, because a batch of 100 KB could have millions, each with a text in the
/// response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    listed: Vec<RecordFault>,
    count: usize,
    invalid_timestamp: bool,
}

impl Rejected {
    const LISTED_MAX: usize = 100;

    fn add(&mut self, fault: RecordFault) {
        self.count += 1;
        self.invalid_timestamp |= fault.kind != RecordFaultKind::NullKey;
        if self.listed.len() < Self::LISTED_MAX {
            self.listed.push(fault);
        }
    }
}

/// A record that the topic does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFault {
    /// Its index in the batch, from 0.
    pub batch_index: i32,
    /// The reason for the rejection.
    pub kind: RecordFaultKind,
}

/// The reason why a record is rejected. Its text is the one in Kafka's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFaultKind {
    /// The record has no key, so it cannot be compacted.
    #[error("Compacted topic cannot accept message without key.")]
    NullKey,
    /// The timestamp is too old or too new.
    #[error(
        "Timestamp {timestamp} of message with offset {offset} is out of range. \
         The timestamp should be within [{earliest}, {latest}]"
    )]
    TimestampOutOfRange {
        /// Timestamp of the record.
        timestamp: i64,
        /// Offset of the record, relative to the batch.
        offset: i64,
        /// Lower bound (inclusive).
        earliest: i64,
        /// Upper bound (inclusive).
        latest: i64,
    },
    /// Only the broker may set this timestamp type.
    #[error(
        "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
    )]
    LogAppendTime,
}

struct First<'a>(&'a [RecordFault]);

impl fmt::Display for First<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            Some(fault) => write!(formatter, "record {}: {}", fault.batch_index, fault.kind),
            None => Ok(()),
        }
    }
}

/// Validates the first batch in `bytes`, and corrects its timestamps in place or in a new batch.
///
/// `now_ms` is the broker's time, used as timestamp in topics with `LogAppendTime`.
///
/// # Errors
/// The batch is rejected, and `bytes` is unchanged.
pub fn validate(
    bytes: &mut [u8],
    rules: &ValidateRules,
    now_ms: i64,
    scratch: &mut Scratch,
    cancellation: &Cancellation,
) -> Result<Validated, ValidateError> {
    let (batch, _) = Batch::split_v2(bytes)?;
    check_header(&batch, rules)?;
    let source = batch.compression()?;
    let target = match rules.compression {
        // Markers are kept as the coordinator wrote them.
        _ if batch.is_control() => (source, None),
        CompressionType::Producer => (source, None),
        CompressionType::Fixed(codec, level) => (codec, level),
    };
    let window_bytes_max = scratch.window.bytes_max();
    let mut reader = batch.read(&mut scratch.window, rules.limits)?;
    let window = CompressionError::Window { codec: source, window_bytes_max };
    let needs_larger_window = || RecordError::Compression(window);
    if target.0 != source && reader.whole().is_none() {
        return Err(needs_larger_window().into());
    }
    let (walk, payload_size) = if let Some(records) = reader.whole() {
        let payload_size = records.rest().len();
        let heads = records.map(|record| Ok(record?.head()));
        (walk(&batch, heads, rules, now_ms, cancellation)?, payload_size)
    } else {
        let walk = walk(&batch, reader.by_ref(), rules, now_ms, cancellation)?;
        (walk, reader.bytes_read())
    };
    let stamp = match rules.timestamp_type {
        TimestampType::CreateTime => walk.max_timestamp,
        TimestampType::LogAppendTime => now_ms,
    };
    let as_is = target.0 == source && (walk.consecutive || source == Compression::None);
    let uncompressed_size = batch.size() - batch.payload().len() + payload_size;
    let mut validated = Validated {
        rewritten: None,
        size: batch.size(),
        uncompressed_size,
        records_count: batch.records_count(),
        max_timestamp: stamp,
        log_append_time_ms: match rules.timestamp_type {
            TimestampType::CreateTime => NO_TIMESTAMP,
            TimestampType::LogAppendTime => now_ms,
        },
    };
    if as_is {
        drop(reader);
        BatchMut::new(bytes)?.set_max_timestamp(stamp, rules.timestamp_type);
    } else if !rules.rebuilds {
        return Err(ValidateError::Rebuild);
    } else {
        let records = reader.whole().ok_or_else(needs_larger_window)?;
        let builder = &mut scratch.builder;
        let mut rewritten = rewrite(&batch, records, target, rules, builder, cancellation)?;
        BatchMut::new(&mut rewritten)?.set_max_timestamp(stamp, rules.timestamp_type);
        check_size(rewritten.len(), rules)?;
        validated.rewritten = Some(rewritten);
    }
    Ok(validated)
}

/// Checks of the header, in Kafka's order, so that a batch with two errors gets the same response.
fn check_header(batch: &Batch<'_>, rules: &ValidateRules) -> Result<(), ValidateError> {
    let from_client = rules.origin == AppendOrigin::Client;
    if from_client && batch.base_offset() != 0 {
        return Err(ValidateError::BaseOffset(batch.base_offset()));
    }
    // A marker is small, and its transaction could not end without it.
    if from_client || !batch.is_control() {
        check_size(batch.size(), rules)?;
    }
    if !batch.is_crc_valid() {
        // The checksum covers the bytes after its own field, from the attributes on.
        let covered = batch.bytes().get(21..).unwrap_or_default();
        let computed = pykafka_record::crc32c(covered);
        return Err(ValidateError::Crc { stored: batch.crc(), computed });
    }
    if from_client { check_client_header(batch) } else { Ok(()) }
}

fn check_size(size: usize, rules: &ValidateRules) -> Result<(), ValidateError> {
    let bytes_max = rules.batch_bytes_max;
    if size > bytes_max { Err(ValidateError::TooLarge { size, bytes_max }) } else { Ok(()) }
}

fn check_client_header(batch: &Batch<'_>) -> Result<(), ValidateError> {
    let (delta, records) = (batch.last_offset_delta(), batch.records_count());
    if delta < 0 {
        return Err(ValidateError::OffsetRange(delta));
    }
    if records <= 0 {
        return Err(ValidateError::Count(records));
    }
    let offsets = i64::from(delta) + 1;
    if offsets != i64::from(records) {
        return Err(ValidateError::CountMismatch { offsets, records });
    }
    if batch.is_control() {
        return Err(ValidateError::Control);
    }
    if batch.has_producer_id() && batch.base_sequence() < 0 {
        let (producer_id, sequence) = (batch.producer_id(), batch.base_sequence());
        return Err(ValidateError::Sequence { producer_id, sequence });
    }
    Ok(())
}

/// Results of reading the records.
struct Walk {
    max_timestamp: i64,
    /// True if the records are numbered 0, 1, 2 …
    consecutive: bool,
}

/// Number of records between two checks for a cancellation.
const RECORDS_AT_ONCE: i32 = 4096;

fn walk(
    batch: &Batch<'_>,
    records: impl Iterator<Item = Result<RecordHead, RecordError>>,
    rules: &ValidateRules,
    now_ms: i64,
    cancellation: &Cancellation,
) -> Result<Walk, ValidateError> {
    let judge = RecordJudge::new(batch, rules, now_ms);
    let mut walk = Walk { max_timestamp: NO_TIMESTAMP, consecutive: true };
    let mut faults = Rejected::default();
    for (batch_index, record) in (0..).zip(records) {
        if batch_index % RECORDS_AT_ONCE == 0 {
            cancellation.check()?;
        }
        let record = record?;
        walk.max_timestamp = walk.max_timestamp.max(record.timestamp);
        walk.consecutive &= record.offset == batch.base_offset() + i64::from(batch_index);
        if let Some(kind) = judge.fault(&record) {
            faults.add(RecordFault { batch_index, kind });
        }
    }
    if faults.count == 0 { Ok(walk) } else { Err(ValidateError::Rejected(faults)) }
}

/// The rules for single records, with values that are computed once for a batch.
struct RecordJudge {
    needs_key: bool,
    /// Allowed timestamps (inclusive); `None` if the broker sets them.
    range: Option<(i64, i64)>,
    stamped_by_producer: bool,
}

impl RecordJudge {
    fn new(batch: &Batch<'_>, rules: &ValidateRules, now_ms: i64) -> Self {
        let earliest = now_ms.saturating_sub(rules.before_max_ms);
        let latest = now_ms.saturating_add(rules.after_max_ms);
        let checked = rules.timestamp_type == TimestampType::CreateTime;
        RecordJudge {
            needs_key: rules.topic_compacted && !batch.is_control(),
            range: checked.then_some((earliest, latest)),
            stamped_by_producer: batch.timestamp_type() == TimestampType::LogAppendTime,
        }
    }

    fn fault(&self, record: &RecordHead) -> Option<RecordFaultKind> {
        if self.needs_key && !record.has_key {
            return Some(RecordFaultKind::NullKey);
        }
        match self.range {
            Some((earliest, latest)) if record.timestamp != NO_TIMESTAMP => {
                let (timestamp, offset) = (record.timestamp, record.offset);
                let kind =
                    RecordFaultKind::TimestampOutOfRange { timestamp, offset, earliest, latest };
                (timestamp < earliest || timestamp > latest).then_some(kind)
            }
            _ => self.stamped_by_producer.then_some(RecordFaultKind::LogAppendTime),
        }
    }
}

/// Size of the uncompressed records of a new batch up to which they are collected and compressed at
/// once; larger batches are compressed record by record.
const COMPRESSED_AT_ONCE_BYTES_MAX: usize = 4 << 20;

/// Rebuilds the batch with records numbered from 0.
fn rewrite(
    batch: &Batch<'_>,
    records: RecordIter<'_>,
    (compression, level): (Compression, Option<i32>),
    rules: &ValidateRules,
    builder: &mut BatchBuilder,
    cancellation: &Cancellation,
) -> Result<Vec<u8>, ValidateError> {
    builder.clear();
    *builder.options_mut() = BatchOptions {
        compression,
        level,
        timestamp_type: TimestampType::CreateTime,
        base_offset: 0,
        partition_leader_epoch: batch.partition_leader_epoch(),
        producer_id: batch.producer_id(),
        producer_epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
        transactional: batch.is_transactional(),
        control: batch.is_control(),
    };
    let payload_size = records.rest().len();
    let mut rewritten = Vec::new();
    if payload_size > COMPRESSED_AT_ONCE_BYTES_MAX {
        builder.compress_early(rules.batch_bytes_max, cancellation)?;
    } else {
        rewritten.reserve((payload_size + HEADER_SIZE).min(batch.size() * 2));
    }
    let built = build(records, builder, &mut rewritten);
    builder.shrink(Scratch::KEPT_BYTES_MAX);
    built.map(|()| rewritten)
}

fn build(
    records: RecordIter<'_>,
    builder: &mut BatchBuilder,
    out: &mut Vec<u8>,
) -> Result<(), ValidateError> {
    for record in records {
        builder.append_record(&record?)?;
    }
    builder.build(out)?;
    Ok(())
}
