//! Reads for clients and followers, up to the high watermark, the last stable offset or the log end
//! offset, after a check of the leader epoch.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_log::{AbortedTxn, FetchedRecords, Log, ReadError};
use pykafka_record::LeaderEpoch;

use crate::control_api::event::RecordsRead;
use crate::kafka_error::KafkaError;
use crate::partition::guard::PartitionGuard;
use crate::partition::purgatory::Parked;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::write_queue::queue::WriterToken;
use crate::partition::{Partition, PartitionOffsets, Survey};

/// The records that a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Up to the high watermark.
    ReadUncommitted,
    /// Up to the last stable offset, with the list of aborted transactions.
    ReadCommitted,
    /// All appended records, for the follower with this node id.
    Replica(i32),
}

impl Isolation {
    /// Converts the value of a request; `None` for a level that Kafka does not have.
    pub fn from_id(id: i8) -> Option<Isolation> {
        match id {
            0 => Some(Isolation::ReadUncommitted),
            1 => Some(Isolation::ReadCommitted),
            _ => None,
        }
    }

    /// The exclusive upper bound of a read.
    pub fn bound(self, offsets: &PartitionOffsets) -> i64 {
        match self {
            Isolation::ReadUncommitted => offsets.high_watermark,
            Isolation::ReadCommitted => offsets.last_stable_offset,
            Isolation::Replica(_) => offsets.log_end_offset,
        }
    }
}

/// The parameters of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest<'a> {
    /// First offset to read.
    pub fetch_offset: i64,
    /// Soft limit; a negative one is an error (contract/kafka.md#62).
    pub bytes_max: i64,
    /// Return the first batch whole even if it is larger (contract/kafka.md#25).
    pub at_least_one: bool,
    /// The leader epoch that the reader knows, compared with ours.
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// Leader epoch of the reader's last record, if it sends one.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// Determines the upper bound.
    pub isolation: Isolation,
    /// True if a follower may serve the read, up to the high watermark that it knows (KIP-392).
    pub any_replica: bool,
    /// Brokers near the reader: the reader should read from one of them that follows and has the
    /// records.
    pub nearby: &'a [i32],
}

/// The result of a read.
#[derive(Debug, Clone)]
pub struct Read {
    /// Whole batches; the first may start before the requested offset.
    pub records: FetchedRecords,
    /// The offsets before the read.
    pub offsets: PartitionOffsets,
    /// Only for [`Isolation::ReadCommitted`].
    pub aborted: Option<Vec<AbortedTxn>>,
    /// The divergence of the reader's log: the largest epoch that both logs may share, and its end
    /// offset here. There are no records then.
    pub diverging: Option<(LeaderEpoch, i64)>,
    /// True if there are more batches for this reader, which did not fit.
    pub has_more: bool,
    /// The broker that the reader should read from instead. There are no records then.
    pub preferred_replica: Option<i32>,
    /// Input of [`Partition::watch`].
    pub version: u64,
}

impl Partition {
    /// Reads whole batches from `fetch_offset` on.
    ///
    /// # Errors
    /// The epoch errors and `NOT_LEADER_OR_FOLLOWER`; `UNKNOWN_LEADER_EPOCH` for a follower outside
    /// the assignment; `OFFSET_OUT_OF_RANGE` outside [log start, log end], and if the last fetched
    /// epoch is unknown; `UNKNOWN_SERVER_ERROR` for a negative size; `KAFKA_STORAGE_ERROR`.
    pub fn read(&self, request: &ReadRequest<'_>) -> Result<Read, KafkaError> {
        let (guard, log) = self.turn_to_read(request)?;
        if let Isolation::Replica(broker_id) = request.isolation {
            guard.replication.follower(broker_id)?;
        }
        let fetch_offset = request.fetch_offset;
        let preferred_replica = guard.replication.preferred_replica(request.nearby, fetch_offset);
        let (offsets, version) = (guard.offsets(&log), guard.version);
        drop(guard);
        let nothing = FetchedRecords::Read(Bytes::new());
        let nothing = Read {
            records: nothing,
            offsets,
            aborted: None,
            diverging: None,
            has_more: false,
            preferred_replica,
            version,
        };
        if preferred_replica.is_some() {
            return Ok(nothing);
        }
        let diverging = diverging_epoch(&log, &offsets, request)?;
        if diverging.is_some() {
            return Ok(Read { diverging, ..nothing });
        }
        let Ok(bytes_max) = usize::try_from(request.bytes_max) else {
            return Err(KafkaError::UnknownServerError);
        };
        let read_committed = request.isolation == Isolation::ReadCommitted;
        let upto = request.isolation.bound(&offsets);
        if fetch_offset >= upto {
            return Ok(Read { aborted: read_committed.then(Vec::new), ..nothing });
        }
        let at_least_one = request.at_least_one;
        let fetched = if read_committed {
            log.fetch_committed(fetch_offset, bytes_max, upto, at_least_one)
                .map(|(data, aborted)| (data, Some(aborted)))
        } else {
            log.fetch(fetch_offset, bytes_max, upto, at_least_one).map(|data| (data, None))
        };
        let (data, aborted) = fetched.map_err(|error| self.read_failed(&error))?;
        // If the first batch was allowed at any size and none was returned, there is none.
        let has_more = data.next_offset < upto && !(at_least_one && data.records.is_empty());
        Ok(Read { records: data.records, aborted, has_more, ..nothing })
    }

    /// Like `lock_as_leader`, for a read that a follower may serve too.
    fn turn_to_read(
        &self,
        request: &ReadRequest<'_>,
    ) -> Result<(PartitionGuard<'_>, Arc<Log>), KafkaError> {
        let guard = self.lock();
        if request.any_replica {
            guard.check_replica(request.current_leader_epoch)?;
        } else {
            guard.check_leader(request.current_leader_epoch)?;
        }
        guard.with_log()
    }

    /// Reads whole batches for the control plane, up to the log end offset (for a load) or the high
    /// watermark.
    ///
    /// # Errors
    /// See [`Partition::read`].
    pub(crate) fn read_upto(
        &self,
        may_wait: &MayWait,
        offset: i64,
        bytes_max: usize,
        upto_log_end: bool,
    ) -> Result<Bytes, KafkaError> {
        self.log(may_wait)?;
        let (guard, log) = self.lock_as_leader(None)?;
        let offsets = guard.offsets(&log);
        drop(guard);
        let upto = if upto_log_end { offsets.log_end_offset } else { offsets.high_watermark };
        if (offsets.log_start_offset..=offsets.log_end_offset).contains(&offset) && offset >= upto {
            return Ok(Bytes::new());
        }
        let data = log.read(offset, bytes_max, upto, true);
        Ok(data.map_err(|error| self.read_failed(&error))?.bytes)
    }

    /// Reads whole batches for a load: from `offset` or the log start offset, whichever is larger,
    /// to the log end offset.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER`, `KAFKA_STORAGE_ERROR`.
    pub(in crate::partition) fn read_to_load(
        &self,
        writer: &WriterToken,
        offset: i64,
        bytes_max: usize,
    ) -> Result<RecordsRead, KafkaError> {
        // A new coordinator topic has 50 partitions; no files are created for those that never get
        // a record.
        if matches!(self.unopened(writer), Some(Survey::Nothing)) {
            let records = Bytes::new();
            return Ok(RecordsRead { records, offset: 0, next_offset: 0, log_end_offset: 0 });
        }
        self.open_log(writer)?;
        let (guard, log) = self.lock_as_leader(None)?;
        let PartitionOffsets { log_start_offset, log_end_offset, .. } = guard.offsets(&log);
        drop(guard);
        let offset = offset.max(log_start_offset);
        if offset >= log_end_offset {
            let records = Bytes::new();
            return Ok(RecordsRead { records, offset, next_offset: offset, log_end_offset });
        }
        let read = log.read(offset, bytes_max, log_end_offset, true);
        let read = read.map_err(|error| self.read_failed(&error))?;
        let (records, next_offset) = (read.bytes, read.next_offset);
        Ok(RecordsRead { records, offset, next_offset, log_end_offset })
    }

    fn read_failed(&self, error: &ReadError) -> KafkaError {
        match error {
            ReadError::OffsetOutOfRange { .. } => KafkaError::OffsetOutOfRange,
            ReadError::Storage(error) => self.lock().storage_failed(error),
        }
    }

    /// Makes a fetch watch for bytes that it may read. Returns false if something changed since
    /// `read`, so that the fetch must read again.
    pub fn watch(&self, fetch: &Arc<Parked>, isolation: Isolation, read: &Read) -> bool {
        let mut guard = self.lock();
        let Isolation::Replica(_) = isolation else {
            guard.waiters.watch(fetch);
            return guard.version == read.version;
        };
        guard.waiters.watch_log_end(fetch);
        let log_end_offset = guard.opened().map(|log| log.log_end_offset());
        guard.version == read.version && log_end_offset == Some(read.offsets.log_end_offset)
    }

    /// True if a request waits on this partition.
    pub fn is_waited_on(&self) -> bool {
        !self.lock().waiters.is_empty()
    }

    /// Removes a watch.
    pub fn unwatch(&self, fetch: &Arc<Parked>) {
        self.lock().waiters.unwatch(fetch);
    }
}

/// Returns where the reader's log diverges from ours: compares its offset with our log bounds, and
/// the epoch of its last record with our epochs (contract/kafka.md#30, contract/replication.md#12).
///
/// # Errors
/// `OFFSET_OUT_OF_RANGE`: before the log start offset, whatever the epochs are; after the log end
/// offset without a divergence.
pub(in crate::partition) fn diverging_epoch(
    log: &Log,
    offsets: &PartitionOffsets,
    request: &ReadRequest<'_>,
) -> Result<Option<(LeaderEpoch, i64)>, KafkaError> {
    let fetch_offset = request.fetch_offset;
    if fetch_offset < offsets.log_start_offset {
        return Err(KafkaError::OffsetOutOfRange);
    }
    if let Some(last_fetched) = request.last_fetched_epoch {
        let (epoch, end_offset) =
            log.end_offset_for_epoch(last_fetched).ok_or(KafkaError::OffsetOutOfRange)?;
        if epoch < last_fetched || end_offset < fetch_offset {
            return Ok(Some((epoch, end_offset)));
        }
    }
    // Checked after the epochs: a reader past our end gets the divergence, if it sent an epoch.
    if fetch_offset > offsets.log_end_offset {
        return Err(KafkaError::OffsetOutOfRange);
    }
    Ok(None)
}
