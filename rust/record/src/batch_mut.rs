//! The changes that a broker makes to a batch in place.

use crate::batch::{Batch, BatchError, TimestampType};
use crate::crc::crc32c;
use crate::layout;
use crate::leader_epoch::LeaderEpoch;

/// A whole batch that is changed in place. Its size never changes.
#[derive(Debug)]
pub struct BatchMut<'a> {
    bytes: &'a mut [u8],
}

impl<'a> BatchMut<'a> {
    /// Takes the first batch of `bytes`, checked as [`Batch::split_v2`] does.
    pub fn new(bytes: &'a mut [u8]) -> Result<Self, BatchError> {
        let size = Batch::split_v2(bytes)?.0.size();
        Ok(Self { bytes: &mut bytes[..size] })
    }

    /// A read-only view.
    pub fn as_batch(&self) -> Batch<'_> {
        Batch::split(self.bytes)
            .expect("checked when made, and no setter touches length or magic")
            .0
    }

    /// Sets the offset of the first record, which the CRC does not cover.
    pub fn set_base_offset(&mut self, offset: i64) {
        self.put(layout::BASE_OFFSET, offset.to_be_bytes());
    }

    /// Sets the leader epoch, which the CRC does not cover.
    pub fn set_partition_leader_epoch(&mut self, epoch: LeaderEpoch) {
        self.put(layout::PARTITION_LEADER_EPOCH, epoch.get().to_be_bytes());
    }

    /// Sets max timestamp (ms) and timestamp type, and updates the CRC. The base timestamp stays,
    /// because the records' deltas refer to it. Does nothing if both are already set.
    pub fn set_max_timestamp(&mut self, timestamp: i64, timestamp_type: TimestampType) {
        let batch = self.as_batch();
        if batch.max_timestamp() == timestamp && batch.timestamp_type() == timestamp_type {
            return;
        }
        let attributes = match timestamp_type {
            TimestampType::CreateTime => batch.attributes() & !layout::LOG_APPEND_TIME,
            TimestampType::LogAppendTime => batch.attributes() | layout::LOG_APPEND_TIME,
        };
        self.put(layout::ATTRIBUTES, attributes.to_be_bytes());
        self.put(layout::MAX_TIMESTAMP, timestamp.to_be_bytes());
        self.seal();
    }

    /// Updates the CRC.
    fn seal(&mut self) {
        let crc = crc32c(&self.bytes[layout::ATTRIBUTES..]);
        self.put(layout::CRC, crc.to_be_bytes());
    }

    fn put<const N: usize>(&mut self, at: usize, field: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&field);
    }
}
