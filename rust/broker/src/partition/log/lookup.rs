//! Looks up offsets by time and by epoch, for `ListOffsets` and `OffsetForLeaderEpoch`.

use pykafka_log::{Log, LookupError, TimestampOffset};
use pykafka_record::LeaderEpoch;

use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::append::large_batches::LargeBatchPermit;
use crate::partition::log::read::Isolation;

/// The queries of `ListOffsets` (contract/kafka.md#31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetQuery {
    /// End of the records that the reader may see.
    Latest,
    /// Log start offset; without tiered storage, the local log start offset is the same.
    Earliest,
    /// First record with the largest timestamp.
    MaxTimestamp,
    /// Last tiered record, or last record to be tiered: there is no tiered storage.
    Tiered,
    /// First record, by offset, with at least this timestamp.
    Timestamp(i64),
}

/// The result of a query; −1 for values that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundOffset {
    /// Offset of the record, or the end or start that was requested.
    pub offset: i64,
    /// Timestamp of the record; −1 if no record was looked up.
    pub timestamp: i64,
    /// Leader epoch of the record.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl FoundOffset {
    /// The result if nothing was found.
    pub const UNKNOWN: FoundOffset = FoundOffset { offset: -1, timestamp: -1, leader_epoch: None };

    fn of(found: Option<TimestampOffset>, bound: i64) -> FoundOffset {
        match found {
            Some(found) if found.offset < bound => FoundOffset {
                offset: found.offset,
                timestamp: found.timestamp,
                leader_epoch: found.leader_epoch,
            },
            _ => FoundOffset::UNKNOWN,
        }
    }
}

/// The batches that a look-up by time may read.
#[derive(Clone, Copy)]
pub enum LookUp<'a> {
    /// Those that may be decompressed concurrently with others.
    Small,
    /// Large batches too.
    Large(&'a LargeBatchPermit),
}

impl LookUp<'_> {
    fn offset_for_timestamp(
        self,
        log: &Log,
        timestamp: i64,
        upto: i64,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        match self {
            LookUp::Small => log.offset_for_timestamp_small(timestamp, upto),
            LookUp::Large(_) => Ok(log.offset_for_timestamp(timestamp, upto)?),
        }
    }

    fn offset_of_max_timestamp(self, log: &Log) -> Result<Option<TimestampOffset>, LookupError> {
        match self {
            LookUp::Small => log.offset_of_max_timestamp_small(),
            LookUp::Large(_) => Ok(log.offset_of_max_timestamp()?),
        }
    }
}

impl Partition {
    /// Answers one `ListOffsets` query within the records that the reader may see. Returns
    /// `None` if a large batch must be read, and `look_up` does not permit it.
    ///
    /// # Errors
    /// The epoch errors, `NOT_LEADER_OR_FOLLOWER`, `KAFKA_STORAGE_ERROR`. `OFFSET_NOT_AVAILABLE`
    /// while the high watermark has not reached the start of this leader epoch, because results
    /// could go backwards.
    pub fn find_offset(
        &self,
        query: OffsetQuery,
        look_up: LookUp<'_>,
        isolation: Isolation,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<FoundOffset>, KafkaError> {
        let (guard, log) = self.lock_as_leader(current_leader_epoch)?;
        let offsets = guard.offsets(&log);
        // A follower's bound is never lower than the start of this epoch.
        let is_replica = matches!(isolation, Isolation::Replica(_));
        let lags = !is_replica && guard.replication.high_watermark_lags();
        drop(guard);
        let bound = isolation.bound(&offsets);
        let plain = |offset, leader_epoch| FoundOffset { offset, timestamp: -1, leader_epoch };
        let found = match query {
            OffsetQuery::Earliest => {
                let start = offsets.log_start_offset;
                return Ok(Some(plain(start, log.epoch_at(start))));
            }
            OffsetQuery::Tiered => return Ok(Some(FoundOffset::UNKNOWN)),
            OffsetQuery::Latest => Ok(plain(bound, Some(offsets.leader_epoch))),
            OffsetQuery::MaxTimestamp => {
                look_up.offset_of_max_timestamp(&log).map(|found| FoundOffset::of(found, bound))
            }
            OffsetQuery::Timestamp(timestamp) => (look_up)
                .offset_for_timestamp(&log, timestamp, bound)
                .map(|found| FoundOffset::of(found, bound)),
        };
        match found {
            Err(LookupError::Large) => Ok(None),
            Err(LookupError::Storage(error)) => Err(self.lock().storage_failed(&error)),
            Ok(_) if lags => Err(KafkaError::OffsetNotAvailable),
            Ok(response) => Ok(Some(response)),
        }
    }

    /// The largest epoch that is not above `epoch`, and its exclusive end, if there is one
    /// (contract/kafka.md#30).
    ///
    /// # Errors
    /// The epoch errors, `NOT_LEADER_OR_FOLLOWER`, `KAFKA_STORAGE_ERROR`.
    pub fn end_offset_for_epoch(
        &self,
        epoch: Option<LeaderEpoch>,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<Option<(LeaderEpoch, i64)>, KafkaError> {
        let (_, log) = self.lock_as_leader(current_leader_epoch)?;
        Ok(epoch.and_then(|epoch| log.end_offset_for_epoch(epoch)))
    }
}
