//! A batch without some of its records, as a cleaner leaves it.
//!
//! Offsets, leader epoch, producer and sequences of the batch stay, those of the records too: a consumer sees gaps, and a
//! producer is remembered by its last batch although none of its records is left.

use crate::batch::{BatchHeader, TimestampType};
use crate::builder::BuildError;
use crate::compression::{self, Compression};
use crate::crc::crc32c;
use crate::layout;
use crate::record::Record;
use crate::varint;

/// What becomes of a batch beside its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// From when on (ms) its tombstones, or its marker, may go; a batch that has a horizon keeps it.
    pub delete_horizon_ms: Option<i64>,
    /// The level to compress with; the codec's default if `None`.
    pub level: Option<i32>,
}

/// Writes batches again. Keep it: its buffer is reused from batch to batch.
#[derive(Debug, Default)]
pub struct BatchRewriter {
    payload: Vec<u8>,
    count: i32,
    max_timestamp: i64,
    base_timestamp: i64,
}

impl BatchRewriter {
    /// Begins with `batch`, without records.
    pub fn begin(&mut self, batch: &BatchHeader<'_>, retention: Retention) {
        self.payload.clear();
        self.count = 0;
        self.max_timestamp = layout::NO_TIMESTAMP;
        self.base_timestamp = horizon_of(batch, retention).unwrap_or(batch.base_timestamp());
    }

    /// Appends a record that the batch has, in its order.
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
        let headers_count = record.headers.count() as i64;
        let size = 1
            + varint::size(delta)
            + varint::size(offset_delta)
            + nullable_size(record.key)
            + nullable_size(record.value)
            + varint::size(headers_count)
            + record.headers.bytes().len();
        if self.payload.len().saturating_add(size) > i32::MAX as usize - layout::HEADER_SIZE - 5 {
            return Err(BuildError::TooLarge);
        }
        let out = &mut self.payload;
        varint::put(out, size as i64);
        out.push(record.attributes as u8);
        varint::put(out, delta);
        varint::put(out, offset_delta);
        put_nullable(out, record.key);
        put_nullable(out, record.value);
        varint::put(out, headers_count);
        out.extend_from_slice(record.headers.bytes());
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
    /// The codec is not known, or cannot compress it; `out` is as before.
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

/// Appends `batch` without any record to `out`: it only tells of its producer.
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

/// What a batch says that was written again.
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
    fn what_is_kept_keeps_offsets_and_fields_in_every_codec() {
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
    fn a_horizon_takes_the_base_timestamp_and_stays() {
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
    fn an_empty_batch_tells_of_its_producer_only() {
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
