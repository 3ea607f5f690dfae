//! The `.snapshot` file: the last batch of each producer (docs/FORMAT.md; Kafka's
//! `ProducerSnapshot`).

use pykafka_record::{NO_SEQUENCE, ProducerEpoch, ProducerId, crc32c};

use super::{BatchMetadata, ProducerEntry, ProducerStateManager, is_expired};

const VERSION: i16 = 1;
/// Version, checksum, number of entries.
const HEADER_BYTES: usize = 2 + 4 + 4;
/// Where the bytes that the checksum covers start.
const CRC_START: usize = 6;
const ENTRY_BYTES: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;

/// The reason why a snapshot cannot be used. The state is then rebuilt from an older one, or from
/// the log alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Shorter than its header.
    #[error("producer snapshot of {0} bytes is cut off")]
    Incomplete(usize),
    /// A version other than 1.
    #[error("producer snapshot has unknown version {0}")]
    Version(i16),
    /// The content is damaged.
    #[error("producer snapshot has checksum {found:#010x} instead of {expected:#010x}")]
    Crc {
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// The number of entries does not match the size.
    #[error("producer snapshot declares {declared} entries in {size} bytes")]
    Count {
        /// The stored number.
        declared: i32,
        /// Size of the file in bytes.
        size: usize,
    },
}

impl ProducerStateManager {
    /// The content of a snapshot file of this state, sorted by producer id.
    pub fn snapshot_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.producers.len() * ENTRY_BYTES);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(self.producers.len() as i32).to_be_bytes());
        for entry in self.active_producers() {
            write_entry(&entry, &mut bytes);
        }
        let crc = crc32c(&bytes[CRC_START..]);
        bytes[2..CRC_START].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Replaces the state by that of a snapshot taken at `offset` (exclusive; part of the file's
    /// name).
    ///
    /// Skips producers that have expired by `now_ms`. On error nothing changes.
    pub fn load_snapshot(
        &mut self,
        bytes: &[u8],
        offset: i64,
        now_ms: i64,
    ) -> Result<(), SnapshotError> {
        let entries = read_snapshot(bytes)?;
        self.truncate_fully_and_start_at(offset);
        for entry in entries {
            if is_expired(&entry, now_ms, self.expiration_ms) {
                continue;
            }
            if let Some(first_offset) = entry.current_txn_first_offset {
                self.ongoing.insert(first_offset, entry.producer_id);
            }
            self.producers.insert(entry.producer_id, entry);
        }
        Ok(())
    }
}

/// The producers in a snapshot file, in its order.
fn read_snapshot(bytes: &[u8]) -> Result<Vec<ProducerEntry>, SnapshotError> {
    let incomplete = SnapshotError::Incomplete(bytes.len());
    let mut fields = Fields(bytes);
    let version = i16::from_be_bytes(fields.take().ok_or(incomplete)?);
    let expected = u32::from_be_bytes(fields.take().ok_or(incomplete)?);
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let found = crc32c(fields.0);
    if found != expected {
        return Err(SnapshotError::Crc { expected, found });
    }
    let declared = i32::from_be_bytes(fields.take().ok_or(incomplete)?);
    let count_error = SnapshotError::Count { declared, size: bytes.len() };
    if usize::try_from(declared).ok().and_then(|count| count.checked_mul(ENTRY_BYTES))
        != Some(fields.0.len())
    {
        return Err(count_error);
    }
    let mut entries = Vec::with_capacity(fields.0.len() / ENTRY_BYTES);
    while !fields.0.is_empty() {
        entries.push(read_entry(&mut fields).ok_or(count_error)?);
    }
    Ok(entries)
}

fn write_entry(entry: &ProducerEntry, out: &mut Vec<u8>) {
    let last = entry.batches.last();
    out.extend_from_slice(&entry.producer_id.get().to_be_bytes());
    out.extend_from_slice(&entry.producer_epoch.get().to_be_bytes());
    out.extend_from_slice(&entry.last_sequence().to_be_bytes());
    out.extend_from_slice(&entry.last_data_offset().to_be_bytes());
    out.extend_from_slice(&last.map_or(0, |batch| batch.offset_delta).to_be_bytes());
    out.extend_from_slice(&entry.last_timestamp.to_be_bytes());
    out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
    out.extend_from_slice(&entry.current_txn_first_offset.unwrap_or(-1).to_be_bytes());
}

fn read_entry(fields: &mut Fields<'_>) -> Option<ProducerEntry> {
    let mut entry = ProducerEntry::new(ProducerId::new(i64::from_be_bytes(fields.take()?)));
    entry.producer_epoch = ProducerEpoch::new(i16::from_be_bytes(fields.take()?));
    let last_sequence = i32::from_be_bytes(fields.take()?);
    let last_offset = i64::from_be_bytes(fields.take()?);
    let offset_delta = i32::from_be_bytes(fields.take()?);
    entry.last_timestamp = i64::from_be_bytes(fields.take()?);
    entry.coordinator_epoch = i32::from_be_bytes(fields.take()?);
    entry.current_txn_first_offset = Some(i64::from_be_bytes(fields.take()?)).filter(|o| *o >= 0);
    // Without a data batch there was only a marker in this epoch.
    if last_offset >= 0 && last_sequence != NO_SEQUENCE {
        let timestamp = entry.last_timestamp;
        let batch = BatchMetadata { last_sequence, last_offset, offset_delta, timestamp };
        entry.batches.push(batch);
    }
    Some(entry)
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const SIZE: usize>(&mut self) -> Option<[u8; SIZE]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}
