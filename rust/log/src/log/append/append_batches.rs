//! Appends several batches from another log: all of them or none.

use pykafka_record::{BatchMut, batches};

use crate::log::Log;
use crate::log::append::error::AppendError;
use crate::log::append::validate::ValidateError;
use crate::log::producer_state::{AppendOrigin, BatchMetadata, BatchSummary, Check};
use crate::log::state::State;
use crate::log::types::{AppendInfo, AppendOptions, Shared};

impl Log {
    /// Appends every batch in `bytes` in order at the log end, whatever offsets they had.
    ///
    /// Each batch is validated, stamped and, if the settings require it, rebuilt as
    /// [`Log::append_as_leader`] does; `bytes` is changed in place. All go to one segment, so that
    /// a full disk rejects all of them.
    ///
    /// # Errors
    /// Nothing was appended: a batch is invalid or incomplete, some but not all batches were
    /// appended before, or the batches together are larger than a segment.
    pub fn append_all_as_leader(
        &self,
        bytes: &mut [u8],
        options: AppendOptions,
    ) -> Result<AppendInfo, AppendError> {
        let mut validated = self.validate_all(bytes, options.origin)?;
        let stored = match &mut validated.rewritten {
            Some(rewritten) => &mut rewritten[..],
            None => bytes,
        };
        let segment_bytes = self.config().segment_bytes;
        if stored.len() > segment_bytes as usize || validated.records_count > i64::from(i32::MAX) {
            return Err(AppendError::LargerThanSegment { size: stored.len(), segment_bytes });
        }
        let mut state = self.write();
        state.append_all_stamped(&self.shared, stored, options, validated.log_append_time_ms)
    }

    fn validate_all(
        &self,
        bytes: &mut [u8],
        origin: AppendOrigin,
    ) -> Result<ValidatedAll, AppendError> {
        let mut all = ValidatedAll { rewritten: None, records_count: 0, log_append_time_ms: -1 };
        let mut position = 0;
        loop {
            let rest = &mut bytes[position..];
            // The source log set its offset, which the checksum does not cover.
            BatchMut::new(rest).map_err(ValidateError::from)?.set_base_offset(0);
            let validated = self.validate(rest, origin)?;
            let end = position + validated.size;
            match (&mut all.rewritten, validated.rewritten) {
                (None, None) => {}
                (None, Some(batch)) => all.rewritten = Some([&bytes[..position], &batch].concat()),
                (Some(stored), Some(batch)) => stored.extend_from_slice(&batch),
                (Some(stored), None) => stored.extend_from_slice(&bytes[position..end]),
            }
            all.records_count += i64::from(validated.records_count);
            all.log_append_time_ms = validated.log_append_time_ms;
            position = end;
            if position == bytes.len() {
                return Ok(all);
            }
        }
    }
}

/// Batches that passed the checks of their bytes.
struct ValidatedAll {
    /// All batches, if at least one had to be rebuilt.
    rewritten: Option<Vec<u8>>,
    records_count: i64,
    log_append_time_ms: i64,
}

impl State {
    fn append_all_stamped(
        &mut self,
        shared: &Shared,
        bytes: &mut [u8],
        options: AppendOptions,
        log_append_time_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        self.check_writable()?;
        self.check_epoch(options.leader_epoch)?;
        let (mut position, mut next_offset) = (0, self.log_end_offset);
        while position < bytes.len() {
            let mut batch = BatchMut::new(&mut bytes[position..]).map_err(ValidateError::from)?;
            batch.set_base_offset(next_offset);
            batch.set_partition_leader_epoch(options.leader_epoch);
            next_offset = batch.as_batch().next_offset();
            position += batch.as_batch().size();
        }
        if let Some((first, last)) = self.find_duplicates(bytes, options.origin)? {
            let records_count = batches(bytes).flatten().map(|batch| batch.records_count()).sum();
            return Ok(self.appended_before(&first, &last, records_count));
        }
        Ok(AppendInfo { log_append_time_ms, ..self.write_all(shared, bytes)? })
    }

    /// The first and the last batch as appended before; `None` if all batches are new.
    fn find_duplicates(
        &self,
        bytes: &[u8],
        origin: AppendOrigin,
    ) -> Result<Option<(BatchMetadata, BatchMetadata)>, AppendError> {
        let summaries = || {
            let data = batches(bytes).flatten().filter(|batch| !batch.is_control());
            data.map(|batch| BatchSummary::of(&batch))
        };
        // Each batch is checked against the state after the batches before it.
        let mut ahead = self.producers.excerpt(summaries().map(|batch| batch.producer_id));
        let mut found: Vec<BatchMetadata> = Vec::new();
        let mut count = 0;
        for summary in summaries() {
            count += 1;
            match ahead.check(&summary, origin)? {
                Check::Accepted => ahead.update(&summary),
                Check::Duplicate(original) => found.push(original),
            }
        }
        match found[..] {
            [] => Ok(None),
            [first, .., last] if found.len() == count => Ok(Some((first, last))),
            [only] if count == 1 => Ok(Some((only, only))),
            _ => Err(AppendError::PartlyDuplicate { duplicates: found.len(), count }),
        }
    }
}
