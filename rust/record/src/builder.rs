//! Builds a batch: encodes records and compresses them at the end, or in pieces if it is large.

use crate::batch::TimestampType;
use crate::cancellation::{Cancellation, Cancelled};
use crate::compression::{self, Compression, CompressionError, Encoder};
use crate::crc::crc32c;
use crate::layout;
use crate::leader_epoch::LeaderEpoch;
use crate::producer::{ProducerEpoch, ProducerId};
use crate::record::{Header, Headers, Record};
use crate::varint;

/// Fields of a new batch's header that do not depend on its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// The codec.
    pub compression: Compression,
    /// Its level; the codec's default if `None`.
    pub level: Option<i32>,
    /// The source of timestamps; with `LogAppendTime` the appender sets the timestamp afterwards
    /// ([`crate::BatchMut::set_max_timestamp`]).
    pub timestamp_type: TimestampType,
    /// Offset of the first record; 0 in produce requests.
    pub base_offset: i64,
    /// The leader epoch; `None` in produce requests.
    pub partition_leader_epoch: Option<LeaderEpoch>,
    /// Id of the idempotent producer.
    pub producer_id: ProducerId,
    /// Its epoch; −1 without a producer id.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record; −1 without one.
    pub base_sequence: i32,
    /// Whether it is part of a transaction.
    pub transactional: bool,
    /// Whether it is a control batch.
    pub control: bool,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            compression: Compression::None,
            level: None,
            timestamp_type: TimestampType::CreateTime,
            base_offset: 0,
            partition_leader_epoch: None,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: layout::NO_SEQUENCE,
            transactional: false,
            control: false,
        }
    }
}

/// Why a batch cannot be built. A failed append leaves the builder as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// There is no record; only compaction writes empty batches.
    #[error("a batch needs a record")]
    Empty,
    /// A size or count exceeds 32 bits.
    #[error("batch or record is too large")]
    TooLarge,
    /// The difference to the first record's timestamp exceeds 64 bits.
    #[error("timestamp delta overflows")]
    Timestamp,
    /// The compressed batch already has `size` bytes, which is above its limit.
    #[error("the batch has {size} bytes, which is more than the maximum of {bytes_max}")]
    Stored {
        /// Bytes so far.
        size: usize,
        /// The limit given to [`BatchBuilder::compress_early`].
        bytes_max: usize,
    },
    /// The payload cannot be compressed.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// Cancelled during early compression.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Collects records for a batch. Reuse it: its buffers are kept from batch to batch.
#[derive(Debug, Default)]
pub struct BatchBuilder {
    options: BatchOptions,
    payload: Vec<u8>,
    early: Option<Early>,
    records_count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

/// State of early compression, while records are appended.
#[derive(Debug)]
struct Early {
    encoder: Encoder,
    /// The batch: space for its header, and the compressed output.
    batch: Vec<u8>,
    /// Bytes of the payload that were compressed and removed from it.
    consumed: usize,
    bytes_max: usize,
    cancellation: Cancellation,
}

impl Early {
    /// Adds `bytes` to `payload`, and compresses complete pieces so that less than one remains.
    fn put(&mut self, payload: &mut Vec<u8>, bytes: &[u8]) -> Result<(), BuildError> {
        bytes.chunks(Encoder::PIECE_BYTES).try_for_each(|chunk| {
            payload.extend_from_slice(chunk);
            self.compress_piece(payload)
        })
    }

    /// Compresses the first piece of `payload` if it is complete.
    fn compress_piece(&mut self, payload: &mut Vec<u8>) -> Result<(), BuildError> {
        let Some(piece) = payload.get(..Encoder::PIECE_BYTES) else { return Ok(()) };
        self.cancellation.check()?;
        self.encoder.write(piece, &mut self.batch)?;
        payload.drain(..Encoder::PIECE_BYTES);
        self.consumed += Encoder::PIECE_BYTES;
        self.check_size()
    }

    fn check_size(&self) -> Result<(), BuildError> {
        let (size, bytes_max) = (self.batch.len(), self.bytes_max);
        if size > bytes_max { Err(BuildError::Stored { size, bytes_max }) } else { Ok(()) }
    }

    fn finish(mut self, payload: &[u8]) -> Result<Vec<u8>, BuildError> {
        self.encoder.finish(payload, &mut self.batch)?;
        Ok(self.batch)
    }
}

impl BatchBuilder {
    /// An empty builder.
    pub fn new(options: BatchOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The header options.
    pub fn options(&self) -> &BatchOptions {
        &self.options
    }

    /// The header options, which may be changed until [`Self::build`].
    pub fn options_mut(&mut self) -> &mut BatchOptions {
        &mut self.options
    }

    /// Records appended since the last build.
    pub fn records_count(&self) -> i32 {
        self.records_count
    }

    /// Size of the batch if it were built now, before compression.
    pub fn size_estimate(&self) -> usize {
        let consumed = self.early.as_ref().map_or(0, |early| early.consumed);
        layout::HEADER_SIZE + consumed + self.payload.len()
    }

    /// Clears the builder, and compresses the records of the next batch as they are appended. So
    /// little more than the compressed batch, of at most `bytes_max` bytes, is held in memory. The
    /// result may be larger than with compression at the end. Appends fail once it is cancelled.
    ///
    /// Until the build or [`Self::clear`], options must not be changed. A failed append
    /// invalidates the batch.
    ///
    /// # Errors
    /// The codec does not have the level.
    pub fn compress_early(
        &mut self,
        bytes_max: usize,
        cancellation: &Cancellation,
    ) -> Result<(), BuildError> {
        self.clear();
        let mut batch = vec![0; layout::HEADER_SIZE];
        let BatchOptions { compression, level, .. } = self.options;
        let encoder = Encoder::new(compression, level, &mut batch)?;
        let cancellation = cancellation.clone();
        self.early = Some(Early { encoder, batch, consumed: 0, bytes_max, cancellation });
        Ok(())
    }

    /// Append a record; `timestamp` in ms, or −1 without one.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header<'_>],
    ) -> Result<(), BuildError> {
        let headers_size = headers.iter().map(|(key, value)| sized(key) + nullable(*value)).sum();
        self.append_parts(timestamp, key, value, (headers.len(), headers_size), |builder| {
            headers.iter().try_for_each(|(key, value)| {
                builder.put_sized(key)?;
                builder.put_nullable(*value)
            })
        })
    }

    /// Append a copy of `record` with its timestamp; its offset and sequence are determined by its
    /// new position.
    pub fn append_record(&mut self, record: &Record<'_>) -> Result<(), BuildError> {
        let Record { timestamp, key, value, headers, .. } = *record;
        self.append_with_headers(timestamp, key, value, headers)
    }

    /// Append a record with headers that were read from another record.
    pub fn append_with_headers(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: Headers<'_>,
    ) -> Result<(), BuildError> {
        let size = headers.bytes().len();
        self.append_parts(timestamp, key, value, (headers.count(), size), |builder| {
            builder.put(headers.bytes())
        })
    }

    /// Append a record; `put_headers` writes the headers with this count and size.
    fn append_parts(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: (usize, usize),
        put_headers: impl FnOnce(&mut Self) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let (headers_count, headers_size) = headers;
        let first = self.records_count == 0;
        let base_timestamp = if first { timestamp } else { self.base_timestamp };
        let delta = timestamp.checked_sub(base_timestamp).ok_or(BuildError::Timestamp)?;
        let headers_count = i32::try_from(headers_count).map_err(|_| BuildError::TooLarge)?;
        let size = 1
            + varint::size(delta)
            + varint::size(i64::from(self.records_count))
            + nullable(key)
            + nullable(value)
            + varint::size(i64::from(headers_count))
            + headers_size;
        // The length of the whole batch, including 5 bytes for this record's size, is an i32.
        if self.size_estimate().saturating_add(size).saturating_add(5) > i32::MAX as usize {
            return Err(BuildError::TooLarge);
        }
        let out = &mut self.payload;
        varint::put(out, size as i64);
        out.push(0);
        varint::put(out, delta);
        varint::put(out, i64::from(self.records_count));
        self.put_nullable(key)?;
        self.put_nullable(value)?;
        varint::put(&mut self.payload, i64::from(headers_count));
        put_headers(self)?;
        if let Some(early) = &mut self.early {
            early.compress_piece(&mut self.payload)?;
        }
        self.max_timestamp = if first { timestamp } else { self.max_timestamp.max(timestamp) };
        self.base_timestamp = base_timestamp;
        self.records_count += 1;
        Ok(())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        if let Some(early) = &mut self.early {
            early.put(&mut self.payload, bytes)
        } else {
            self.payload.extend_from_slice(bytes);
            Ok(())
        }
    }

    #[inline]
    fn put_sized(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        varint::put(&mut self.payload, bytes.len() as i64);
        self.put(bytes)
    }

    #[inline]
    fn put_nullable(&mut self, bytes: Option<&[u8]>) -> Result<(), BuildError> {
        if let Some(bytes) = bytes {
            self.put_sized(bytes)
        } else {
            varint::put(&mut self.payload, -1);
            Ok(())
        }
    }

    /// Append the batch to `out` and clear the builder, except its options. Returns the size.
    ///
    /// On error `out` is unchanged, and so is the builder, unless it compresses early.
    pub fn build(&mut self, out: &mut Vec<u8>) -> Result<usize, BuildError> {
        if self.records_count == 0 {
            return Err(BuildError::Empty);
        }
        let start = out.len();
        let compressed = self.compress(out);
        if let Err(error) = compressed.and_then(|()| self.write_header(&mut out[start..])) {
            out.truncate(start);
            return Err(error);
        }
        self.clear();
        Ok(out.len() - start)
    }

    /// Append the compressed batch to `out`, with space for the header.
    fn compress(&mut self, out: &mut Vec<u8>) -> Result<(), BuildError> {
        if let Some(early) = self.early.take() {
            let mut batch = early.finish(&self.payload)?;
            // The batch is large, so avoid a copy.
            if out.is_empty() {
                *out = batch;
            } else {
                out.append(&mut batch);
            }
            return Ok(());
        }
        out.resize(out.len() + layout::HEADER_SIZE, 0);
        let BatchOptions { compression, level, .. } = self.options;
        Ok(compression::compress(compression, level, &self.payload, out)?)
    }

    /// Remove all records; keep options and buffers.
    pub fn clear(&mut self) {
        self.early = None;
        self.payload.clear();
        self.records_count = 0;
    }

    /// Remove all records; keep options, and buffers of at most `kept_bytes_max` bytes.
    pub fn shrink(&mut self, kept_bytes_max: usize) {
        self.clear();
        if self.payload.capacity() > kept_bytes_max {
            self.payload = Vec::new();
        }
    }

    fn write_header(&self, batch: &mut [u8]) -> Result<(), BuildError> {
        let length =
            i32::try_from(batch.len() - layout::LOG_OVERHEAD).map_err(|_| BuildError::TooLarge)?;
        let options = &self.options;
        put(batch, layout::BASE_OFFSET, options.base_offset.to_be_bytes());
        put(batch, layout::LENGTH, length.to_be_bytes());
        let leader_epoch = LeaderEpoch::to_wire(options.partition_leader_epoch);
        put(batch, layout::PARTITION_LEADER_EPOCH, leader_epoch.to_be_bytes());
        put(batch, layout::MAGIC, layout::MessageFormat::V2.magic().to_be_bytes());
        put(batch, layout::ATTRIBUTES, attributes(options).to_be_bytes());
        put(batch, layout::LAST_OFFSET_DELTA, (self.records_count - 1).to_be_bytes());
        put(batch, layout::BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(batch, layout::MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(batch, layout::PRODUCER_ID, options.producer_id.get().to_be_bytes());
        put(batch, layout::PRODUCER_EPOCH, options.producer_epoch.get().to_be_bytes());
        put(batch, layout::BASE_SEQUENCE, options.base_sequence.to_be_bytes());
        put(batch, layout::RECORDS_COUNT, self.records_count.to_be_bytes());
        let crc = crc32c(&batch[layout::ATTRIBUTES..]);
        put(batch, layout::CRC, crc.to_be_bytes());
        Ok(())
    }
}

fn attributes(options: &BatchOptions) -> i16 {
    let bit = |set: bool, mask: i16| if set { mask } else { 0 };
    options.compression.id()
        | bit(options.timestamp_type == TimestampType::LogAppendTime, layout::LOG_APPEND_TIME)
        | bit(options.transactional, layout::TRANSACTIONAL)
        | bit(options.control, layout::CONTROL)
}

fn put<const N: usize>(batch: &mut [u8], at: usize, field: [u8; N]) {
    batch[at..at + N].copy_from_slice(&field);
}

/// Size of `bytes` with its length prefix.
fn sized(bytes: &[u8]) -> usize {
    varint::size(bytes.len() as i64) + bytes.len()
}

/// Size of nullable bytes with the length prefix; null is a length of −1.
fn nullable(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, sized)
}
