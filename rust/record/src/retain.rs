//! Rewrites a batch without some of its records, for compaction, or from an old format to format 2.
//!
//! Offsets, leader epoch, producer and sequences of the batch stay, and so do the records' offsets:
//! consumers see gaps, and the last batch of a producer keeps its state even without records.

use crate::batch::{Batch, BatchHeader, TimestampType};
use crate::builder::BuildError;
use crate::compression::{self, Compression, Limits};
use crate::crc::crc32c;
use crate::layout::{self, MessageFormat};
use crate::producer::{ProducerEpoch, ProducerId};
use crate::record::{Contents, Record, RecordError, RecordIter, put_record, read_payload};

/// Why a batch of format 0 or 1 cannot be written in format 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// Its records cannot be read.
    #[error(transparent)]
    Read(#[from] RecordError),
    /// Its records do not fit into a batch of format 2.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Options for a batch in addition to its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Time (ms) from which its tombstones, or its marker, may be removed; an existing one stays.
    pub delete_horizon_ms: Option<i64>,
    /// Compression level; the codec's default if `None`.
    pub level: Option<i32>,
}

/// Rewrites batches of format 2. Reuse it: its buffer is kept from batch to batch.
#[derive(Debug, Default)]
pub struct BatchRewriter {
    payload: Vec<u8>,
    count: i32,
    max_timestamp: i64,
    base_timestamp: i64,
}

impl BatchRewriter {
    /// Starts a copy of `batch` without records.
    pub fn begin(&mut self, batch: &BatchHeader<'_>, retention: Retention) {
        self.payload.clear();
        self.count = 0;
        self.max_timestamp = layout::NO_TIMESTAMP;
        self.base_timestamp = horizon_of(batch, retention).unwrap_or(batch.base_timestamp());
    }

    /// Appends a record of the batch, in the batch's order.
    ///
    /// # Errors
    /// Its timestamp is too far from the horizon, or the batch would be too large.
    pub fn append(
        &mut self,
        batch: &BatchHeader<'_>,
        record: &Record<'_>,
    ) -> Result<(), BuildError> {
        let timestamp = record.timestamp;
        let delta = timestamp.checked_sub(self.base_timestamp).ok_or(BuildError::Timestamp)?;
        let offset_delta = record.offset - batch.base_offset();
        if !put_record(&mut self.payload, record, delta, offset_delta) {
            return Err(BuildError::TooLarge);
        }
        self.max_timestamp =
            if self.count == 0 { timestamp } else { self.max_timestamp.max(timestamp) };
        self.count += 1;
        Ok(())
    }

    /// Records since [`Self::begin`].
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Appends the batch to `out`, with a new CRC.
    ///
    /// # Errors
    /// The codec is unknown or fails; `out` is unchanged.
    pub fn finish(
        &mut self,
        batch: &BatchHeader<'_>,
        retention: Retention,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        let codec = batch.compression().map_err(|_| BuildError::Empty)?;
        let horizon = horizon_of(batch, retention).map_or(0, |_| layout::DELETE_HORIZON);
        let start = out.len();
        out.extend_from_slice(batch.bytes());
        if let Err(error) = compression::compress(codec, retention.level, &self.payload, out) {
            out.truncate(start);
            return Err(error.into());
        }
        let max_timestamp = match batch.timestamp_type() {
            TimestampType::CreateTime => self.max_timestamp,
            TimestampType::LogAppendTime => batch.max_timestamp(),
        };
        let changed = Changed {
            attributes: batch.attributes() | horizon,
            base_timestamp: self.base_timestamp,
            max_timestamp,
            count: self.count,
        };
        changed.seal(&mut out[start..]).inspect_err(|_| out.truncate(start))
    }
}

/// Appends `batch`, of format 2, without records to `out`: only its producer state remains.
pub fn write_empty(batch: &BatchHeader<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(batch.bytes());
    let changed = Changed {
        attributes: batch.attributes() & !(layout::COMPRESSION_MASK | layout::DELETE_HORIZON)
            | Compression::None.id(),
        base_timestamp: layout::NO_TIMESTAMP,
        max_timestamp: batch.max_timestamp(),
        count: 0,
    };
    changed.seal(&mut out[start..]).expect("a header is small");
}

/// Appends to `out` a batch of format 2 with the records of one of format 0 or 1.
///
/// # Errors
/// The records cannot be read or written; `out` is unchanged.
pub fn upgrade(
    batch: &Batch<'_>,
    codec: Compression,
    limits: Limits,
    out: &mut Vec<u8>,
) -> Result<(), UpgradeError> {
    let mut payload = Vec::new();
    let contents = read_payload(batch, limits, &mut payload)?;
    let header = header_of(batch, contents, codec);
    let header = BatchHeader::of_v2(&header);
    let mut rewriter = BatchRewriter::default();
    rewriter.begin(&header, Retention::default());
    for record in RecordIter::of_legacy(batch, contents, &payload) {
        rewriter.append(&header, &record?)?;
    }
    Ok(rewriter.finish(&header, Retention::default(), out)?)
}

/// The header of an empty batch of format 2, with the fields of `batch`.
fn header_of(
    batch: &Batch<'_>,
    contents: Contents,
    codec: Compression,
) -> [u8; layout::HEADER_SIZE] {
    let mut header = [0; layout::HEADER_SIZE];
    let stamped = match batch.timestamp_type() {
        TimestampType::CreateTime => 0,
        TimestampType::LogAppendTime => layout::LOG_APPEND_TIME,
    };
    let length = (layout::HEADER_SIZE - layout::LOG_OVERHEAD) as i32;
    put(&mut header, layout::BASE_OFFSET, contents.base_offset.to_be_bytes());
    put(&mut header, layout::LENGTH, length.to_be_bytes());
    put(&mut header, layout::PARTITION_LEADER_EPOCH, (-1_i32).to_be_bytes());
    put(&mut header, layout::MAGIC, MessageFormat::V2.magic().to_be_bytes());
    put(&mut header, layout::ATTRIBUTES, (codec.id() | stamped).to_be_bytes());
    put(&mut header, layout::LAST_OFFSET_DELTA, contents.last_offset_delta.to_be_bytes());
    put(&mut header, layout::BASE_TIMESTAMP, batch.max_timestamp().to_be_bytes());
    put(&mut header, layout::MAX_TIMESTAMP, batch.max_timestamp().to_be_bytes());
    put(&mut header, layout::PRODUCER_ID, ProducerId::NONE.get().to_be_bytes());
    put(&mut header, layout::PRODUCER_EPOCH, ProducerEpoch::NONE.get().to_be_bytes());
    put(&mut header, layout::BASE_SEQUENCE, layout::NO_SEQUENCE.to_be_bytes());
    put(&mut header, layout::RECORDS_COUNT, contents.records_count.to_be_bytes());
    header
}

/// Header fields that change in a rewritten batch.
struct Changed {
    attributes: i16,
    base_timestamp: i64,
    max_timestamp: i64,
    count: i32,
}

impl Changed {
    fn seal(&self, bytes: &mut [u8]) -> Result<(), BuildError> {
        let length =
            i32::try_from(bytes.len() - layout::LOG_OVERHEAD).map_err(|_| BuildError::TooLarge)?;
        put(bytes, layout::LENGTH, length.to_be_bytes());
        put(bytes, layout::ATTRIBUTES, self.attributes.to_be_bytes());
        put(bytes, layout::BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(bytes, layout::MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(bytes, layout::RECORDS_COUNT, self.count.to_be_bytes());
        let crc = crc32c(&bytes[layout::ATTRIBUTES..]);
        put(bytes, layout::CRC, crc.to_be_bytes());
        Ok(())
    }
}

fn horizon_of(batch: &BatchHeader<'_>, retention: Retention) -> Option<i64> {
    batch.delete_horizon_ms().or(retention.delete_horizon_ms)
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::builder::{BatchBuilder, BatchOptions};
    use crate::compression::Limits;
    use crate::leader_epoch::LeaderEpoch;
    use crate::producer::{ProducerEpoch, ProducerId};

    type Row = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>, usize);

    fn batch_of(compression: Compression) -> Vec<u8> {
        let mut builder = BatchBuilder::new(BatchOptions {
            compression,
            base_offset: 100,
            partition_leader_epoch: Some(LeaderEpoch::ZERO),
            producer_id: ProducerId::new(7),
            producer_epoch: ProducerEpoch::new(3),
            base_sequence: 40,
            transactional: true,
            ..BatchOptions::default()
        });
        let values = [Some(b"one".as_slice()), None, Some(b"three".as_slice()), None];
        for (index, value) in values.into_iter().enumerate() {
            let headers = [("h".as_bytes(), Some(b"v".as_slice()))];
            let key = [b'a' + index as u8];
            builder.append(1000 - index as i64 * 10, Some(&key), value, &headers).unwrap();
        }
        let mut bytes = Vec::new();
        builder.build(&mut bytes).unwrap();
        bytes
    }

    fn rows(batch: &Batch<'_>) -> Vec<Row> {
        let mut scratch = Vec::new();
        let records = batch.records(&mut scratch, Limits::default()).unwrap();
        let row = |record: Record<'_>| {
            let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
            (record.offset, record.timestamp, key, value, record.headers.count())
        };
        records.map(|record| row(record.unwrap())).collect()
    }

    fn retained(bytes: &[u8], retention: Retention, is_kept: fn(i64) -> bool) -> Vec<u8> {
        let (batch, _) = Batch::split(bytes).unwrap();
        let mut rewriter = BatchRewriter::default();
        let (mut scratch, mut out) = (Vec::new(), Vec::new());
        rewriter.begin(&batch, retention);
        let records = batch.records(&mut scratch, Limits::default()).unwrap().map(Result::unwrap);
        for record in records.filter(|record| is_kept(record.offset)) {
            rewriter.append(&batch, &record).unwrap();
        }
        rewriter.finish(&batch, retention, &mut out).unwrap();
        out
    }

    #[test]
    fn retained_records_keep_offsets_and_fields_in_every_codec() {
        for codec in Compression::ALL {
            let bytes = batch_of(codec);
            let (before, _) = Batch::split(&bytes).unwrap();
            let out = retained(&bytes, Retention::default(), |offset| offset % 2 == 1);
            let (after, rest) = Batch::split(&out).unwrap();
            assert!(rest.is_empty() && after.is_crc_valid());
            assert_eq!((after.base_offset(), after.last_offset()), (100, 103));
            assert_eq!((after.base_sequence(), after.last_sequence()), (40, 43));
            assert_eq!(after.compression(), Ok(codec));
            assert_eq!((after.max_timestamp(), after.records_count()), (990, 2));
            assert_eq!(after.delete_horizon_ms(), None);
            let kept: Vec<_> = rows(&before).into_iter().filter(|row| row.0 % 2 == 1).collect();
            assert_eq!(rows(&after), kept);
        }
    }

    #[test]
    fn a_horizon_replaces_the_base_timestamp_and_stays() {
        let bytes = batch_of(Compression::None);
        let (before, _) = Batch::split(&bytes).unwrap();
        let horizon = |ms| Retention { delete_horizon_ms: Some(ms), level: None };
        let out = retained(&bytes, horizon(5_000_000), |_| true);
        let again = retained(&out, horizon(9_000_000), |_| true);
        assert_eq!(out, again);
        let (after, _) = Batch::split(&out).unwrap();
        assert!(after.is_crc_valid());
        assert_eq!(after.delete_horizon_ms(), Some(5_000_000));
        assert_eq!((after.max_timestamp(), rows(&after)), (1000, rows(&before)));
    }

    #[test]
    fn an_empty_batch_keeps_only_its_producer_and_offsets() {
        for codec in Compression::ALL {
            let bytes = retained(
                &batch_of(codec),
                Retention { delete_horizon_ms: Some(1), level: None },
                |_| true,
            );
            let mut out = Vec::new();
            write_empty(&Batch::split(&bytes).unwrap().0, &mut out);
            let (after, _) = Batch::split(&out).unwrap();
            assert!(after.is_crc_valid() && after.is_transactional());
            assert_eq!((after.size(), after.records_count()), (layout::HEADER_SIZE, 0));
            assert_eq!((after.base_offset(), after.last_offset()), (100, 103));
            assert_eq!((after.producer_id().get(), after.last_sequence()), (7, 43));
            assert_eq!((after.max_timestamp(), after.delete_horizon_ms()), (1000, None));
            assert!(rows(&after).is_empty());
        }
    }
}
