//! A whole batch, borrowed: header getters, CRC, and iteration over concatenated batches.
//!
//! A message of format 0 or 1 (before Kafka 0.11) counts as a batch: a plain one holds one record,
//! a compressed one a set of messages. The offset in its header is that of its last record. The
//! first offset of a compressed message is known only after decompression.

use std::ops::Deref;

use crate::compression::{Compression, UnknownCompression};
use crate::crc::{Checksum, ChecksumAlgorithm, crc32, crc32c};
use crate::layout::{self, MessageFormat, legacy};
use crate::leader_epoch::LeaderEpoch;
use crate::producer::{ProducerEpoch, ProducerId};

/// The source of a batch's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer sets each record's timestamp.
    #[default]
    CreateTime,
    /// The broker sets one at append: every record has the batch's max timestamp.
    LogAppendTime,
}

impl TimestampType {
    /// Kafka's name, a value of `message.timestamp.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }
}

/// Why bytes do not start with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the batch does; normal at the end of a file or of a fetch response.
    #[error("batch is incomplete: {needed} bytes needed, {have} there")]
    Incomplete {
        /// Size of the whole batch; [`crate::PREFIX_SIZE`] if it is not known yet.
        needed: usize,
        /// Number of available bytes.
        have: usize,
    },
    /// The length is less than that of an empty batch, so the following position is unknown.
    #[error("batch length {0} is less than that of a header")]
    Size(i32),
    /// The format is not supported.
    #[error("magic {0} is not supported")]
    Magic(i8),
}

/// The header of a batch, borrowed, without access to its records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader<'a> {
    /// Its length is [`MessageFormat::header_size`].
    bytes: &'a [u8],
    size: usize,
    format: MessageFormat,
}

impl<'a> BatchHeader<'a> {
    /// Reads the header at the start of `bytes`, which may be followed by anything.
    ///
    /// Checks length and magic only, as [`Batch::split`] does.
    pub fn read(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let (format, size) = format_and_size(bytes)?;
        let have = bytes.len();
        let bytes = bytes.get(..format.header_size());
        let bytes = bytes.ok_or(BatchError::Incomplete { needed: size, have })?;
        Ok(Self { bytes, size, format })
    }

    /// Wraps the header of a batch of format 2 without records.
    pub(crate) fn of_v2(bytes: &'a [u8; layout::HEADER_SIZE]) -> Self {
        Self { bytes, size: layout::HEADER_SIZE, format: MessageFormat::V2 }
    }

    /// All bytes of the header.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Size in bytes of the whole batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Format of its bytes.
    pub fn format(&self) -> MessageFormat {
        self.format
    }

    /// Offset of the first record that the producer wrote; compaction may have removed it. For
    /// formats 0 and 1, the offset of the last record.
    pub fn base_offset(&self) -> i64 {
        i64::from_be_bytes(field(self.bytes, layout::BASE_OFFSET))
    }

    /// Offset of the last record that the producer wrote (inclusive). Saturates for invalid
    /// headers: check untrusted ones with [`Self::has_valid_offsets`].
    pub fn last_offset(&self) -> i64 {
        self.base_offset().saturating_add(i64::from(self.last_offset_delta()))
    }

    /// The offset after [`Self::last_offset`]; saturates.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// `last_offset - base_offset`; 0 in formats 0 and 1.
    pub fn last_offset_delta(&self) -> i32 {
        self.modern().map_or(0, |bytes| i32::from_be_bytes(field(bytes, layout::LAST_OFFSET_DELTA)))
    }

    /// Whether a log may contain the offsets: 0 ≤ base ≤ last, and last is not the maximum.
    pub fn has_valid_offsets(&self) -> bool {
        self.base_offset() >= 0 && self.last_offset_delta() >= 0 && self.last_offset() < i64::MAX
    }

    /// Epoch of the leader that appended it; `None` in batches from clients.
    pub fn partition_leader_epoch(&self) -> Option<LeaderEpoch> {
        let epoch = field(self.modern()?, layout::PARTITION_LEADER_EPOCH);
        LeaderEpoch::from_wire(i32::from_be_bytes(epoch))
    }

    /// Number of its format.
    pub fn magic(&self) -> i8 {
        self.format.magic()
    }

    /// The stored CRC.
    pub fn crc(&self) -> u32 {
        let at = if self.is_legacy() { legacy::CRC } else { layout::CRC };
        u32::from_be_bytes(field(self.bytes, at))
    }

    /// Starts the CRC with the part of the header that it covers. Continue it over the rest of the
    /// batch and compare the result with [`Self::crc`].
    pub fn begin_crc(&self) -> Checksum {
        let (algorithm, from) = if self.is_legacy() {
            (ChecksumAlgorithm::Crc32, layout::MAGIC)
        } else {
            (ChecksumAlgorithm::Crc32c, layout::ATTRIBUTES)
        };
        let mut crc = Checksum::new(algorithm);
        crc.update(&self.bytes[from..]);
        crc
    }

    /// The raw attribute bits.
    pub fn attributes(&self) -> i16 {
        match self.modern() {
            Some(bytes) => i16::from_be_bytes(field(bytes, layout::ATTRIBUTES)),
            None => i16::from(self.bytes[legacy::ATTRIBUTES]),
        }
    }

    /// The codec of the payload; an error for the unassigned ids 5 to 7.
    pub fn compression(&self) -> Result<Compression, UnknownCompression> {
        Compression::try_from(self.attributes() & layout::COMPRESSION_MASK)
    }

    /// Whether its records can be read in place: format 2, not compressed.
    pub fn is_plain(&self) -> bool {
        !self.is_legacy() && self.compression() == Ok(Compression::None)
    }

    /// The source of the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.format != MessageFormat::V0 && self.attributes() & layout::LOG_APPEND_TIME != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        }
    }

    /// Whether it belongs to a transaction; also true for markers.
    pub fn is_transactional(&self) -> bool {
        self.has(layout::TRANSACTIONAL)
    }

    /// Whether it is a control batch, which is never returned to users.
    pub fn is_control(&self) -> bool {
        self.has(layout::CONTROL)
    }

    /// Time (ms) from which its tombstones and markers may be removed; set by the first compaction.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.has(layout::DELETE_HORIZON).then(|| self.base_timestamp())
    }

    /// The timestamp (ms) that the records' deltas are relative to.
    pub fn base_timestamp(&self) -> i64 {
        match self.modern() {
            Some(bytes) => i64::from_be_bytes(field(bytes, layout::BASE_TIMESTAMP)),
            None => self.max_timestamp(),
        }
    }

    /// The largest timestamp (ms) of its records, with `LogAppendTime` that of all records. −1 in
    /// format 0.
    pub fn max_timestamp(&self) -> i64 {
        match self.format {
            MessageFormat::V0 => layout::NO_TIMESTAMP,
            MessageFormat::V1 => i64::from_be_bytes(field(self.bytes, legacy::TIMESTAMP)),
            MessageFormat::V2 => i64::from_be_bytes(field(self.bytes, layout::MAX_TIMESTAMP)),
        }
    }

    /// Id of the idempotent producer.
    pub fn producer_id(&self) -> ProducerId {
        let id =
            self.modern().map_or(-1, |bytes| i64::from_be_bytes(field(bytes, layout::PRODUCER_ID)));
        ProducerId::new(id)
    }

    /// Whether the producer is idempotent.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id().is_some()
    }

    /// Epoch of the producer; −1 without one.
    pub fn producer_epoch(&self) -> ProducerEpoch {
        let epoch = self
            .modern()
            .map_or(-1, |bytes| i16::from_be_bytes(field(bytes, layout::PRODUCER_EPOCH)));
        ProducerEpoch::new(epoch)
    }

    /// Sequence of the first record; −1 without one.
    pub fn base_sequence(&self) -> i32 {
        self.modern().map_or(layout::NO_SEQUENCE, |bytes| {
            i32::from_be_bytes(field(bytes, layout::BASE_SEQUENCE))
        })
    }

    /// Sequence of the last record (inclusive); −1 without one. 2³¹−1 is followed by 0.
    pub fn last_sequence(&self) -> i32 {
        sequence_after(self.base_sequence(), self.last_offset_delta())
    }

    /// Number of records in the header; untrusted until they are iterated, may be negative. 1 in
    /// formats 0 and 1, even for a compressed message with more records.
    pub fn records_count(&self) -> i32 {
        self.modern().map_or(1, |bytes| i32::from_be_bytes(field(bytes, layout::RECORDS_COUNT)))
    }

    /// Whether it is a compressed message of format 0 or 1, whose first offset is only known after
    /// decompression.
    pub fn is_message_set(&self) -> bool {
        self.is_legacy() && self.attributes() & layout::COMPRESSION_MASK != 0
    }

    /// A lower bound of its first offset if the batches before it end at `reached` (exclusive).
    /// Exact unless [`Self::is_message_set`].
    pub fn first_offset_min(&self, reached: i64) -> i64 {
        if self.is_message_set() { reached.min(self.base_offset()) } else { self.base_offset() }
    }

    /// Whether it is a message of format 0 or 1.
    pub fn is_legacy(&self) -> bool {
        self.format != MessageFormat::V2
    }

    /// The header if the batch has format 2.
    fn modern(&self) -> Option<&'a [u8; layout::HEADER_SIZE]> {
        self.bytes.first_chunk()
    }

    fn has(&self, attribute: i16) -> bool {
        !self.is_legacy() && self.attributes() & attribute != 0
    }
}

/// A whole batch: `bytes` has the size in its header. Bytes after the header are only checked by
/// the methods that use them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    header: BatchHeader<'a>,
    bytes: &'a [u8],
}

impl<'a> Deref for Batch<'a> {
    type Target = BatchHeader<'a>;

    fn deref(&self) -> &BatchHeader<'a> {
        &self.header
    }
}

impl<'a> Batch<'a> {
    /// Split the first batch off `bytes`, and return it with the rest.
    ///
    /// Checks length and magic only: CRC and records are the caller's next steps.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        let header = BatchHeader::read(bytes)?;
        match bytes.split_at_checked(header.size()) {
            Some((bytes, rest)) => Ok((Self { header, bytes }, rest)),
            None => Err(BatchError::Incomplete { needed: header.size(), have: bytes.len() }),
        }
    }

    /// Split the first batch off `bytes`; it must have format 2, as required of producers.
    ///
    /// # Errors
    /// [`BatchError::Magic`] also for a batch of format 0 or 1.
    pub fn split_v2(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        match bytes.get(layout::MAGIC) {
            Some(0 | 1) => Err(BatchError::Magic(bytes[layout::MAGIC] as i8)),
            _ => Self::split(bytes),
        }
    }

    /// Size in bytes of the batch that starts with `header`, which must have at least the first
    /// [`crate::PREFIX_SIZE`] bytes.
    pub fn size_in(header: &[u8]) -> Result<usize, BatchError> {
        format_and_size(header).map(|(_, size)| size)
    }

    /// The header, which can be used without the records.
    pub fn header(&self) -> BatchHeader<'a> {
        self.header
    }

    /// All bytes, header included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes after the header: in format 2 the records, compressed with [`Self::compression`].
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.format.header_size()..]
    }

    /// Whether the stored CRC matches the bytes that it covers.
    pub fn is_crc_valid(&self) -> bool {
        let computed = if self.is_legacy() {
            crc32(&self.bytes[layout::MAGIC..])
        } else {
            crc32c(&self.bytes[layout::ATTRIBUTES..])
        };
        self.crc() == computed
    }
}

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("base_offset", &self.base_offset())
            .field("last_offset_delta", &self.last_offset_delta())
            .field("partition_leader_epoch", &self.partition_leader_epoch())
            .field("attributes", &self.attributes())
            .field("max_timestamp", &self.max_timestamp())
            .field("producer_id", &self.producer_id())
            .field("producer_epoch", &self.producer_epoch())
            .field("base_sequence", &self.base_sequence())
            .field("records_count", &self.records_count())
            .field("size", &self.size())
            .finish()
    }
}

/// Format and size in bytes of the batch that starts with `header`.
fn format_and_size(header: &[u8]) -> Result<(MessageFormat, usize), BatchError> {
    let Some(prefix) = header.first_chunk::<{ layout::PREFIX_SIZE }>() else {
        return Err(BatchError::Incomplete { needed: layout::PREFIX_SIZE, have: header.len() });
    };
    let magic = prefix[layout::MAGIC] as i8;
    let format = MessageFormat::from_magic(magic).ok_or(BatchError::Magic(magic))?;
    let length = i32::from_be_bytes(field(prefix, layout::LENGTH));
    match usize::try_from(length) {
        Ok(size) if size + layout::LOG_OVERHEAD >= format.size_min() => {
            Ok((format, size + layout::LOG_OVERHEAD))
        }
        _ => Err(BatchError::Size(length)),
    }
}

/// The sequence `delta` records after `sequence`; −1 stays −1, and 2³¹−1 is followed by 0.
pub(crate) fn sequence_after(sequence: i32, delta: i32) -> i32 {
    if sequence < 0 {
        return layout::NO_SEQUENCE;
    }
    (i64::from(sequence) + i64::from(delta)).rem_euclid(1 << 31) as i32
}

/// The `N` bytes of a header field. `bytes` is a whole header, or a prefix that contains the field.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("a field lies inside the header")
}

/// The batches of concatenated bytes, in order.
///
/// Iteration ends at an incomplete batch, because Kafka's fetch responses may be cut anywhere;
/// [`Batches::rest`] then returns the remaining bytes. It also ends after an error.
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { rest: bytes, over: false }
}

/// Iterator of [`batches`].
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
    over: bool,
}

impl<'a> Batches<'a> {
    /// The bytes after the last returned batch.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        match Batch::split(self.rest) {
            Ok((batch, rest)) => {
                self.rest = rest;
                Some(Ok(batch))
            }
            Err(BatchError::Incomplete { .. }) => {
                self.over = true;
                None
            }
            Err(error) => {
                self.over = true;
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Batches<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: i32, magic: u8) -> Vec<u8> {
        let mut bytes = vec![0; layout::HEADER_SIZE];
        bytes[layout::LENGTH..layout::LENGTH + 4].copy_from_slice(&length.to_be_bytes());
        bytes[layout::MAGIC] = magic;
        bytes
    }

    #[test]
    fn impossible_lengths_of_a_batch_are_rejected() {
        for length in [i32::MIN, -1, 0, 48] {
            assert_eq!(Batch::split(&header(length, 2)), Err(BatchError::Size(length)));
        }
        assert!(Batch::split(&header(49, 2)).is_ok());
    }

    #[test]
    fn unknown_formats_are_rejected() {
        for magic in [3, 4, 127, 255] {
            let error = BatchError::Magic(magic as i8);
            assert_eq!(Batch::split(&header(49, magic)), Err(error));
        }
    }

    #[test]
    fn incomplete_batch_error_contains_the_needed_bytes() {
        let bytes = header(100, 2);
        let error = BatchError::Incomplete { needed: 112, have: 61 };
        assert_eq!(Batch::split(&bytes), Err(error));
        let error = BatchError::Incomplete { needed: 17, have: 16 };
        assert_eq!(Batch::split(&bytes[..16]), Err(error));
        let huge = BatchError::Incomplete { needed: 12 + 0x7fff_ffff, have: 61 };
        assert_eq!(Batch::split(&header(i32::MAX, 2)), Err(huge));
    }

    #[test]
    fn walk_ends_at_an_incomplete_tail_and_at_the_first_error() {
        let mut bytes = header(49, 2);
        bytes.extend(header(49, 2));
        bytes.extend(&header(49, 2)[..30]);
        let mut walk = batches(&bytes);
        assert_eq!(walk.by_ref().flatten().count(), 2);
        assert_eq!(walk.rest().len(), 30);
        let mut bytes = header(49, 2);
        bytes.extend(header(49, 3));
        let found: Vec<_> = batches(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], Err(BatchError::Magic(3)));
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_after(i32::MAX - 1, 1), i32::MAX);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX, 3), 2);
        assert_eq!(sequence_after(-1, 5), -1);
    }
}
