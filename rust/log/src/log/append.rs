//! Appends: a leader validates and stamps batches, a follower stores them unchanged.

mod append_batches;
pub(crate) mod error;
pub mod validate;

use std::sync::Arc;

use pykafka_record::{Batch, BatchMut, Cancellation, Compression, LeaderEpoch, Limits, batches};

use self::validate::{Scratch, ValidateError, ValidateRules, Validated};
use super::Log;
use super::active_segment::Incoming;
use super::state::State;
use super::verification::TransactionRule;
use crate::config::{CompressionType, LogConfig, MessageTimestampType};
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::log::append::error::AppendError;
use crate::log::producer_state::batches::coordinator_epoch;
use crate::log::producer_state::{AppendOrigin, BatchMetadata, BatchSummary, Check, ProducerError};
use crate::log::types::{AppendInfo, AppendOptions, Shared};
use crate::segment::appender::Appender;
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;

impl Log {
    /// Appends the first batch in `bytes` at the log end, with the leader's epoch.
    ///
    /// `bytes` is one partition's part of a produce request and is changed in place. On return the
    /// batch is in the page cache and visible to readers.
    ///
    /// # Errors
    /// Nothing was appended. A duplicate is not an error: see [`AppendInfo::duplicate`].
    pub fn append_as_leader(
        &self,
        bytes: &mut [u8],
        options: AppendOptions,
    ) -> Result<AppendInfo, AppendError> {
        let validated = self.validate(bytes, options.origin)?;
        self.append_validated(bytes, validated, options)
    }

    /// Validates the first batch in `bytes` on its own, which is the first step of
    /// [`Log::append_as_leader`].
    ///
    /// A separate step, so that callers that hold a lock while they append need not hold it during
    /// checksums and decompression.
    ///
    /// # Errors
    /// The batch must not be appended.
    pub fn validate(
        &self,
        bytes: &mut [u8],
        origin: AppendOrigin,
    ) -> Result<Validated, AppendError> {
        let never = Cancellation::default();
        match self.validate_small(bytes, origin, &never)? {
            Some(validated) => Ok(validated),
            None => self.validate_large(bytes, origin, &never),
        }
    }

    /// Validates as [`Log::validate`] does, but returns `None` for a batch that decompresses to
    /// more than is allowed concurrently. Then `bytes` is unchanged, and [`Log::validate_large`]
    /// can validate it.
    ///
    /// # Errors
    /// Those of [`Log::validate`].
    pub fn validate_small(
        &self,
        bytes: &mut [u8],
        origin: AppendOrigin,
        cancellation: &Cancellation,
    ) -> Result<Option<Validated>, AppendError> {
        let config = self.config();
        let rules = validate_rules(&config, origin);
        let now_ms = self.shared.clock.now_ms();
        if config.validates_in_place(bytes) {
            let alone = &mut Scratch::default();
            let validated = validate::validate(bytes, &rules, now_ms, alone, cancellation)?;
            return self.check_fits_segment(validated).map(Some);
        }
        let validated = self.shared.buffers.inflate_small(rules.limits, |limits, scratch| {
            let rules = ValidateRules { limits, ..rules };
            validate::validate(bytes, &rules, now_ms, scratch, cancellation)
        })?;
        validated.map(|validated| self.check_fits_segment(validated)).transpose()
    }

    /// Validates as [`Log::validate`] does, but returns `None` for a batch that decompresses to
    /// more than `inflated_bytes_max` or must be rebuilt, or if other threads use all buffers. Then
    /// `bytes` is unchanged. Takes about a millisecond for 256 KiB.
    ///
    /// # Errors
    /// Those of [`Log::validate`].
    pub fn validate_briefly(
        &self,
        bytes: &mut [u8],
        origin: AppendOrigin,
        inflated_bytes_max: usize,
    ) -> Result<Option<Validated>, AppendError> {
        let rules = validate_rules(&self.config(), origin);
        let now_ms = self.shared.clock.now_ms();
        let validate = |limits, scratch: &mut Scratch| {
            let rules = ValidateRules { limits, rebuilds: false, ..rules };
            validate::validate(bytes, &rules, now_ms, scratch, &Cancellation::default())
        };
        let buffers = &self.shared.buffers;
        let validated = match buffers.inflate_briefly(rules.limits, inflated_bytes_max, validate) {
            // It takes longer, and the new batch may be many times larger than the one in `bytes`.
            Err(ValidateError::Rebuild) => None,
            validated => validated?,
        };
        validated.map(|validated| self.check_fits_segment(validated)).transpose()
    }

    /// Validates a batch for which [`Log::validate_small`] returned `None`. Only one thread at a
    /// time runs this; a second caller blocks. Callers that must not block must not call it
    /// concurrently.
    ///
    /// # Errors
    /// Those of [`Log::validate`]; [`ValidateError::Cancelled`].
    pub fn validate_large(
        &self,
        bytes: &mut [u8],
        origin: AppendOrigin,
        cancellation: &Cancellation,
    ) -> Result<Validated, AppendError> {
        let rules = validate_rules(&self.config(), origin);
        let now_ms = self.shared.clock.now_ms();
        let validated = self.shared.buffers.inflate_large(rules.limits, |limits, scratch| {
            let rules = ValidateRules { limits, ..rules };
            validate::validate(bytes, &rules, now_ms, scratch, cancellation)
        })?;
        self.check_fits_segment(validated)
    }

    fn check_fits_segment(&self, validated: Validated) -> Result<Validated, AppendError> {
        let (size, segment_bytes) = (validated.stored_size(), self.config().segment_bytes);
        if size > segment_bytes as usize {
            return Err(AppendError::LargerThanSegment { size, segment_bytes });
        }
        Ok(validated)
    }

    /// Appends the result of [`Log::validate`] for the same `bytes`.
    ///
    /// # Errors
    /// Those of [`Log::append_as_leader`].
    pub fn append_validated(
        &self,
        bytes: &mut [u8],
        mut validated: Validated,
        options: AppendOptions,
    ) -> Result<AppendInfo, AppendError> {
        let batch = match &mut validated.rewritten {
            Some(rewritten) => &mut rewritten[..],
            None => &mut bytes[..validated.size],
        };
        let mut state = self.write();
        state.append_stamped(&self.shared, batch, options, validated.log_append_time_ms)
    }

    /// Appends as [`Log::append_validated`] does, but only if it just copies the batch into memory;
    /// otherwise returns `None` and changes nothing. Never waits for the disk, nor for a thread
    /// that does.
    ///
    /// # Errors
    /// Those of [`Log::append_as_leader`].
    pub fn try_append_validated(
        &self,
        bytes: &mut [u8],
        validated: &mut Validated,
        options: AppendOptions,
    ) -> Option<Result<AppendInfo, AppendError>> {
        let batch = match &mut validated.rewritten {
            Some(rewritten) => &mut rewritten[..],
            None => &mut bytes[..validated.size],
        };
        let mut state = self.try_write()?;
        let is_copied = Batch::split(batch).is_ok_and(|(batch, _)| {
            state.only_appends(&self.shared, &batch, options.leader_epoch, Appender::only_copies)
        });
        let log_append_time_ms = validated.log_append_time_ms;
        is_copied.then(|| state.append_stamped(&self.shared, batch, options, log_append_time_ms))
    }

    /// True if [`Log::append_validated`] of `bytes` in `leader_epoch` is at most one write to
    /// reserved space: it creates and opens no file, and rolls no segment. `false` while another
    /// change is running.
    pub fn only_writes(
        &self,
        bytes: &[u8],
        validated: &Validated,
        leader_epoch: LeaderEpoch,
    ) -> bool {
        let batch = match &validated.rewritten {
            Some(rewritten) => &rewritten[..],
            None => &bytes[..validated.size],
        };
        let (Some(mut state), Ok((batch, _))) = (self.try_write(), Batch::split(batch)) else {
            return false;
        };
        state.only_appends(&self.shared, &batch, leader_epoch, Appender::only_writes)
    }

    /// Appends a leader's response to a fetch: batches with final offsets, at the log end offset or
    /// above.
    ///
    /// As in Kafka, it takes the whole batches with epochs up to `leader_epoch`: a response may end
    /// within a batch, and a leader that loses its leadership during the fetch may send batches of
    /// a later epoch (KAFKA-18723). The rest is fetched again from the log end offset. A batch that
    /// does not fit into the active segment starts a new one at its own offset.
    ///
    /// An empty log also takes a batch that starts below its log start offset and ends above it:
    /// `DeleteRecords` may have moved the leader's log start offset into that batch.
    ///
    /// # Errors
    /// A batch fails its CRC, is malformed, or does not follow the previous one: nothing was
    /// appended. If the log cannot be written, the batches before the failed one are in the log.
    pub fn append_as_follower(
        &self,
        bytes: &[u8],
        leader_epoch: LeaderEpoch,
    ) -> Result<AppendInfo, AppendError> {
        let mut state = self.write();
        state.check_writable()?;
        let valid_size = state.check_followed(bytes, leader_epoch)?;
        let bytes = &bytes[..valid_size];
        match batches(bytes).flatten().next() {
            Some(first) if state.begins_inside(&first) => {
                state.append_across_start(&self.shared, first.base_offset(), bytes)
            }
            _ => state.append_each(&self.shared, bytes),
        }
    }
}

/// Uncompressed batches up to this size are validated by the calling thread.
const QUICK_BYTES_MAX: usize = 1 << 20;

/// Compressed batches up to this size may be validated by the calling thread.
const BRIEF_BYTES_MAX: usize = 64 << 10;

impl LogConfig {
    /// True if [`Log::validate`] of `bytes` only walks and checks the records, and quickly: it does
    /// not compress or decompress, and does not block.
    pub fn validates_in_place(&self, bytes: &[u8]) -> bool {
        let keeps = matches!(self.compression_type, CompressionType::Producer);
        let codec = Batch::split(bytes).map(|(batch, _)| batch.compression());
        let is_plain = matches!(codec, Ok(Ok(Compression::None)) | Err(_));
        keeps && is_plain && bytes.len() <= QUICK_BYTES_MAX
    }

    /// True if [`Log::validate_briefly`] of the compressed batch in `bytes` can succeed: the batch
    /// is small and keeps its codec.
    pub fn validates_briefly(&self, bytes: &[u8]) -> bool {
        let Ok((batch, _)) = Batch::split(bytes) else { return false };
        let is_kept = match self.compression_type {
            CompressionType::Producer => true,
            CompressionType::Codec(codec) => batch.compression() == Ok(codec),
        };
        is_kept && batch.size() <= BRIEF_BYTES_MAX
    }
}

fn validate_rules(config: &LogConfig, origin: AppendOrigin) -> ValidateRules {
    let compression = match config.compression_type {
        CompressionType::Producer => validate::CompressionType::Producer,
        CompressionType::Codec(codec) => {
            validate::CompressionType::Fixed(codec, config.compression_level(codec))
        }
    };
    let timestamp_type = match config.message_timestamp_type {
        MessageTimestampType::CreateTime => pykafka_record::TimestampType::CreateTime,
        MessageTimestampType::LogAppendTime => pykafka_record::TimestampType::LogAppendTime,
    };
    ValidateRules {
        topic_compacted: config.cleanup_policy.compact,
        compression,
        timestamp_type,
        before_max_ms: config.message_timestamp_before_max_ms,
        after_max_ms: config.message_timestamp_after_max_ms,
        batch_bytes_max: config.max_message_bytes as usize,
        limits: config.limits(Limits::default()),
        origin,
        rebuilds: true,
    }
}

impl State {
    /// Sets a validated batch's offset and epoch and appends it, unless it is a duplicate.
    fn append_stamped(
        &mut self,
        shared: &Shared,
        bytes: &mut [u8],
        options: AppendOptions,
        log_append_time_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        self.check_writable()?;
        self.check_epoch(options.leader_epoch)?;
        let mut batch = BatchMut::new(bytes).map_err(ValidateError::from)?;
        batch.set_base_offset(self.log_end_offset);
        batch.set_partition_leader_epoch(options.leader_epoch);
        let batch = batch.as_batch();
        let data =
            (batch.has_producer_id() && !batch.is_control()).then(|| BatchSummary::of(&batch));
        if let Some(summary) = &data {
            let expected = self.transactions.expected(summary, options.transaction);
            let check = self.producers.check_expected(summary, options.origin, &expected);
            if Self::is_behind_refused(summary, &check, options.refused_sequence) {
                return Err(AppendError::BehindRefused);
            }
            match check? {
                Check::Accepted => {}
                Check::Duplicate(original) => {
                    return Ok(self.appended_before(&original, &original, batch.records_count()));
                }
            }
        }
        if let TransactionRule::Marker(transaction_version) = options.transaction {
            self.check_marker(&batch, transaction_version)?;
        }
        let info = self.write_all(shared, bytes)?;
        Ok(AppendInfo { log_append_time_ms, ..info })
    }

    /// True if, by `verdict`, a batch must follow the one with `refused_sequence`. It may still be
    /// in sequence: an unknown producer may start at any sequence, and a retry may already be in
    /// the log if it is older than the five batches that are cached.
    fn is_behind_refused(
        batch: &BatchSummary,
        verdict: &Result<Check, ProducerError>,
        refused_sequence: Option<i32>,
    ) -> bool {
        let is_other = refused_sequence.is_some_and(|refused| batch.base_sequence != refused);
        let is_new =
            matches!(verdict, Ok(Check::Accepted) | Err(ProducerError::OutOfOrderSequence { .. }));
        is_other && is_new
    }

    /// Checks a marker before it is appended.
    fn check_marker(&self, batch: &Batch<'_>, transaction_version: i16) -> Result<(), AppendError> {
        let coordinator_epoch = coordinator_epoch(batch).ok_or(ValidateError::Control)?;
        let (producer_id, producer_epoch) = (batch.producer_id(), batch.producer_epoch());
        let producers = &self.producers;
        producers.check_marker(
            producer_id,
            producer_epoch,
            coordinator_epoch,
            transaction_version,
        )?;
        Ok(())
    }

    /// The result for batches that were appended before, from `first` to `last`.
    pub(super) fn appended_before(
        &self,
        first: &BatchMetadata,
        last: &BatchMetadata,
        records_count: i32,
    ) -> AppendInfo {
        AppendInfo {
            first_offset: first.first_offset(),
            last_offset: last.last_offset,
            max_timestamp: last.timestamp,
            log_append_time_ms: last.timestamp,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            records_count,
            duplicate: true,
        }
    }

    pub(super) fn check_epoch(&self, leader_epoch: LeaderEpoch) -> Result<(), AppendError> {
        match self.epochs.latest_epoch() {
            Some(current) if leader_epoch < current => {
                Err(AppendError::StaleLeaderEpoch { current, given: leader_epoch })
            }
            _ => Ok(()),
        }
    }

    /// Checks batches from a leader: their CRCs, and that their offsets increase from the log end
    /// offset. Returns the size of the whole batches with epochs up to `leader_epoch`; batches
    /// after them are not checked.
    fn check_followed(
        &self,
        bytes: &[u8],
        leader_epoch: LeaderEpoch,
    ) -> Result<usize, AppendError> {
        let (mut size, mut expected) = (0, self.log_end_offset);
        for batch in batches(bytes) {
            let batch = batch.map_err(ValidateError::from)?;
            if batch.partition_leader_epoch() > Some(leader_epoch) {
                break;
            }
            let found = batch.base_offset();
            if size == 0 && self.begins_inside(&batch) {
                expected = found;
            }
            // A compacted leader has gaps between batches, but never sends an offset below those it
            // sent before.
            if found < expected || !batch.has_valid_offsets() {
                return Err(AppendError::UnexpectedOffset { expected, found });
            }
            if !batch.is_crc_valid() {
                return Err(AppendError::Corrupt { offset: found });
            }
            expected = batch.next_offset();
            size += batch.size();
        }
        Ok(size)
    }

    /// True for a log without records whose start is inside `batch`.
    fn begins_inside(&self, batch: &Batch<'_>) -> bool {
        let start = self.log_start_offset;
        start == self.log_end_offset && batch.base_offset() < start && start < batch.next_offset()
    }

    /// Appends batches unchanged, each to a segment that has space for it.
    pub(super) fn append_each(
        &mut self,
        shared: &Shared,
        bytes: &[u8],
    ) -> Result<AppendInfo, AppendError> {
        let mut info = self.nothing_appended();
        for batch in batches(bytes).flatten() {
            info = info.followed_by(self.write_all(shared, batch.bytes())?);
        }
        Ok(info)
    }

    /// Writes whole batches with final offsets to one segment and updates the state for each.
    pub(super) fn write_all(
        &mut self,
        shared: &Shared,
        bytes: &[u8],
    ) -> Result<AppendInfo, StorageError> {
        let summary = Summary::of(bytes, self.log_end_offset);
        let Some(summary) = summary else { return Ok(self.nothing_appended()) };
        self.prepare_append(shared, summary.incoming(bytes.len()))?;
        for batch in batches(bytes).flatten() {
            self.assign_epoch(shared, batch.partition_leader_epoch(), batch.base_offset())?;
        }
        let mut reserved = self.reserve_aborted(shared, bytes)?;
        let written = self.write(bytes);
        if written.is_err() && reserved.is_some() {
            self.release_aborted(shared);
        }
        let position = written?;
        let mut next_position = position;
        for batch in batches(bytes).flatten() {
            self.note_batch(shared, &batch, next_position, reserved.take())?;
            next_position += batch.size() as u64;
        }
        self.note_unsynced(shared, summary.records_count);
        Ok(AppendInfo {
            first_offset: summary.first_offset,
            last_offset: summary.last_offset,
            max_timestamp: summary.max_timestamp,
            log_append_time_ms: -1,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            records_count: summary.records_count,
            duplicate: false,
        })
    }

    fn nothing_appended(&self) -> AppendInfo {
        AppendInfo {
            first_offset: self.log_end_offset,
            last_offset: self.log_end_offset - 1,
            max_timestamp: -1,
            log_append_time_ms: -1,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            records_count: 0,
            duplicate: false,
        }
    }

    /// Writes to the active segment and returns the position. Without space nothing changes.
    fn write(&mut self, bytes: &[u8]) -> Result<u64, StorageError> {
        let appender = self.appender.as_mut().expect("the active segment was prepared");
        let files = &self.segments.last().expect("the active segment was prepared").files;
        let written = appender.append(bytes).map_err(files.error("append to", FileKind::Log));
        self.fail(written)
    }

    /// Updates the state after a batch was written at `position` of the active segment. `reserved`
    /// has the entries that the transaction index got for it.
    fn note_batch(
        &mut self,
        shared: &Shared,
        batch: &Batch<'_>,
        position: u64,
        reserved: Option<Arc<[AbortedTxn]>>,
    ) -> Result<(), StorageError> {
        let segment = self.segments.last_mut().expect("the active segment was prepared");
        segment.first_timestamp.get_or_insert(batch.max_timestamp());
        if batch.max_timestamp() > segment.max_timestamp.timestamp {
            segment.max_timestamp =
                TimeEntry { timestamp: batch.max_timestamp(), offset: batch.last_offset() };
        }
        if segment.max_timestamp.timestamp < 0 {
            segment.modified_ms = shared.clock.now_ms();
        }
        let (max, interval) = (segment.max_timestamp, self.config.index_interval_bytes as u64);
        let indexes = self.indexes.as_ref().expect("the active segment was prepared");
        indexes.lock().note(batch, position, max, interval);
        segment.size = position + batch.size() as u64;
        self.log_end_offset = batch.next_offset();
        let aborted = self.note_producer(batch);
        match aborted {
            Some(aborted) => self.append_aborted(shared, aborted, reserved),
            None => Ok(()),
        }
    }

    fn note_unsynced(&mut self, shared: &Shared, records_count: i32) {
        self.unsynced_records += i64::from(records_count);
        self.unsynced_since_ms.get_or_insert_with(|| shared.clock.now_ms());
    }
}

/// Summary of the batches of one append.
struct Summary {
    first_offset: i64,
    last_offset: i64,
    max_timestamp: i64,
    records_count: i32,
}

impl Summary {
    /// `None` without batches. They start at `log_end_offset` or above.
    fn of(bytes: &[u8], log_end_offset: i64) -> Option<Summary> {
        let mut walk = batches(bytes).flatten();
        let first = walk.next()?;
        let mut summary = Summary {
            first_offset: first.first_offset_min(log_end_offset),
            last_offset: first.last_offset(),
            max_timestamp: first.max_timestamp(),
            records_count: first.records_count(),
        };
        for batch in walk {
            summary.last_offset = batch.last_offset();
            summary.max_timestamp = summary.max_timestamp.max(batch.max_timestamp());
            summary.records_count = summary.records_count.saturating_add(batch.records_count());
        }
        Some(summary)
    }

    fn incoming(&self, size: usize) -> Incoming {
        Incoming {
            size: size as u64,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            max_timestamp: self.max_timestamp,
        }
    }
}
