//! What a leader accepts from a client: one batch, judged by its bytes alone and corrected where Kafka corrects.
//!
//! # Theory of operation
//! A pure function, outside of any lock: offsets are relative (the base offset stays 0) and the leader epoch is
//! left alone; whoever appends stamps both, which the checksum does not cover.
//!
//! Records are always walked, since a consumer would stumble where the walk does. Nothing is allocated on the way
//! except to decompress, through a window of bounded size. The bytes are then kept as they are, save for max timestamp and timestamp type in the
//! header, unless
//! - the topic's `compression.type` asks for another codec, or
//! - a compressed batch numbers its records other than 0, 1, 2 …
//!
//! when a new batch is built. An uncompressed batch with repeated deltas passes as it is: Kafka lets it pass too.

use std::fmt;

use pykafka_record::{
    Batch, BatchBuilder, BatchError, BatchMut, BatchOptions, BuildError, Cancellation, Cancelled,
    Compression, CompressionError, HEADER_SIZE, Limits, NO_TIMESTAMP, ProducerId, RecordError,
    RecordHead, RecordIter, TimestampType, UnknownCompression, Window,
};

use crate::log::producer_state::AppendOrigin;

#[cfg(test)]
mod tests;

/// The codec a topic stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// Whatever the producer chose.
    Producer,
    /// This one, at this level; batches that come in it stay as they are.
    Fixed(Compression, Option<i32>),
}

/// What a topic asks of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateRules {
    /// Whether each record needs a key (`cleanup.policy` has `compact`).
    pub topic_compacted: bool,
    /// `compression.type`.
    pub compression: CompressionType,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// `max.message.bytes`: of the batch as it comes and as it is stored.
    pub batch_bytes_max: usize,
    /// Bounds of decompression, with `max.decompressed.message.bytes`.
    pub limits: Limits,
    /// Who sent it; only clients are held to the form of a produce request.
    pub origin: AppendOrigin,
}

/// Buffers that outlive a call. Keep one per thread or connection; its capacity is reused.
#[derive(Debug)]
pub struct Scratch {
    /// Where records are decompressed to.
    pub window: Window,
    /// A batch as it is stored, if it is read for this.
    pub(crate) stored: Vec<u8>,
    builder: BatchBuilder,
}

impl Default for Scratch {
    /// With a window that takes every batch as a whole.
    fn default() -> Self {
        Scratch::new(usize::MAX)
    }
}

impl Scratch {
    /// Bytes that the buffers may hold on to between calls.
    const KEPT_BYTES_MAX: usize = 1 << 20;

    /// Buffers through which batches are decompressed `window_bytes_max` bytes at a time. What needs more at once, and
    /// what has more and is rewritten, is refused as [`ValidateError::DecompressedTooLarge`].
    #[must_use]
    pub fn new(window_bytes_max: usize) -> Self {
        Scratch {
            window: Window::new(window_bytes_max),
            stored: Vec::new(),
            builder: BatchBuilder::default(),
        }
    }

    /// Gives back what a large batch took.
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
    /// The new batch, where one had to be built; else the first [`Validated::size`] bytes of the input are it.
    pub rewritten: Option<Vec<u8>>,
    /// Bytes of the first batch in the input. What follows it is ignored, as Kafka does.
    pub size: usize,
    /// What the batch would have without compression.
    pub uncompressed_size: usize,
    /// Number of records.
    pub records_count: i32,
    /// As now in the header.
    pub max_timestamp: i64,
    /// The stamp of a topic with `LogAppendTime`, else −1.
    pub log_append_time_ms: i64,
}

impl Validated {
    /// Bytes that the batch takes in the log.
    #[must_use]
    pub fn stored_size(&self) -> usize {
        self.rewritten.as_ref().map_or(self.size, Vec::len)
    }
}

/// Why a batch is refused. Nothing of it may be appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// Not a whole batch of a known format.
    #[error(transparent)]
    Malformed(#[from] BatchError),
    /// The first offset is not 0.
    #[error("the base offset of a batch to append should be 0, but it is {0}")]
    BaseOffset(i64),
    /// Larger than `max.message.bytes`.
    #[error("the batch has {size} bytes, which is more than the maximum of {bytes_max}")]
    TooLarge {
        /// Its size in bytes, as sent or as it would be stored.
        size: usize,
        /// The topic's bound.
        bytes_max: usize,
    },
    /// The checksum is wrong.
    #[error("record is corrupt (stored crc = {stored}, computed crc = {computed})")]
    Crc {
        /// In the header.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// The last offset lies before the first.
    #[error("batch has an invalid offset range: last offset delta {0}")]
    OffsetRange(i32),
    /// No records, or a negative number.
    #[error("invalid reported count for record batch: {0}")]
    Count(i32),
    /// As many offsets as records are needed.
    #[error("inconsistent batch offset range: {offsets} offsets for {records} records")]
    CountMismatch {
        /// Offsets in the range.
        offsets: i64,
        /// Records told.
        records: i32,
    },
    /// Clients do not write control records.
    #[error("clients are not allowed to write control records")]
    Control,
    /// An idempotent producer counts from 0 up.
    #[error("invalid sequence number {sequence} in record batch with producer id {producer_id}")]
    Sequence {
        /// Of the producer.
        producer_id: ProducerId,
        /// Of the first record.
        sequence: i32,
    },
    /// Records that the topic does not take, each by its index.
    #[error("one or more records have been rejected: {} in total, the first: {}", .0.count, First(&.0.listed))]
    Rejected(Rejected),
    /// The records' structure is broken.
    #[error(transparent)]
    Records(RecordError),
    /// The records cannot be decompressed or not even begun to be read. Kafka has no name for it.
    #[error(transparent)]
    Undecodable(RecordError),
    /// The records would take too much memory.
    #[error("the records are larger than the bound of decompression: {0}")]
    DecompressedTooLarge(RecordError),
    /// The batch that the topic's codec asks for cannot be built.
    #[error("the batch cannot be recompressed: {0}")]
    Rewrite(BuildError),
    /// No fault of the batch.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl ValidateError {
    /// Whether the fault lies in timestamps, for which Kafka has a code of its own.
    pub fn is_invalid_timestamp(&self) -> bool {
        matches!(self, ValidateError::Rejected(faults) if faults.invalid_timestamp)
    }

    /// The records at fault, if single records are: the first of them.
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

/// The records of a batch that the topic does not take. Kafka lists all of them; here a batch of 100 KB could have
/// millions, each with a text in the answer.
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

/// A record that the topic does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFault {
    /// Its index in the batch, from 0.
    pub batch_index: i32,
    /// What is wrong.
    pub kind: RecordFaultKind,
}

/// What is wrong with a record. Its text is what Kafka's answer carries for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFaultKind {
    /// Without a key a record cannot be compacted.
    #[error("Compacted topic cannot accept message without key.")]
    NullKey,
    /// Too old or too new.
    #[error(
        "Timestamp {timestamp} of message with offset {offset} is out of range. \
         The timestamp should be within [{earliest}, {latest}]"
    )]
    TimestampOutOfRange {
        /// Of the record.
        timestamp: i64,
        /// Of the record, relative to the batch.
        offset: i64,
        /// Bounds, inclusive.
        earliest: i64,
        /// Bounds, inclusive.
        latest: i64,
    },
    /// Stamping is the broker's.
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

/// Judges the first batch in `bytes`, and corrects its timestamps there or in a new batch.
///
/// `now_ms` is the broker's time, the stamp of topics with `LogAppendTime`.
///
/// # Errors
/// Then `bytes` is as before.
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
        // Markers stay as the coordinator wrote them.
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

/// What the header alone tells, in Kafka's order, so that a batch with two faults gets the same answer.
fn check_header(batch: &Batch<'_>, rules: &ValidateRules) -> Result<(), ValidateError> {
    let from_client = rules.origin == AppendOrigin::Client;
    if from_client && batch.base_offset() != 0 {
        return Err(ValidateError::BaseOffset(batch.base_offset()));
    }
    // A marker is small, and the transaction could not end without it.
    if from_client || !batch.is_control() {
        check_size(batch.size(), rules)?;
    }
    if !batch.is_crc_valid() {
        // The checksum begins behind its own field, whose end is at the attributes.
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

/// What the records told.
struct Walk {
    max_timestamp: i64,
    /// Whether they are numbered 0, 1, 2 …
    consecutive: bool,
}

/// Records that are judged between two looks whether anybody waits.
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

/// The rules for single records, with what does not change from one to the next worked out.
struct RecordJudge {
    needs_key: bool,
    /// Times between which a record's must lie; `None` where the broker stamps.
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

/// Records of a new batch that are held until it is compressed: a larger one is compressed as they come.
const COMPRESSED_AT_ONCE_BYTES_MAX: usize = 4 << 20;

/// Rebuilds the batch, records numbered from 0.
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
