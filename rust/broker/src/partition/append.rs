//! Appends by the leader: checked and queued in the order of the calls, written by one thread at a
//! time.
//!
//! An append that only copies into memory happens at once, on the caller's thread. So does one that
//! is a single write, if the thread has a [`BlockingPermit`] and the disk is fast. With a permit,
//! the caller's thread also decompresses small batches to validate them. Any other append
//! waits in the partition's queue until a thread of the write pool has the writer token
//! ([`super::write_queue`]). That thread takes all queued appends, writes them without holding a
//! mutex, and reports the outcomes in one critical section. Appends that arrive in the meantime are
//! queued for its next round. A new leader epoch starts under the same token, between two appends,
//! so a batch that was checked in an epoch is written in it (docs/PLANES.md S3). A batch that
//! decompresses to megabytes waits in the queue for a permit ([`self::large_batches`]).

pub(crate) mod large_batches;
#[cfg(test)]
mod large_batches_tests;
pub(crate) mod outcome;
pub(crate) mod queued;
pub(in crate::partition) mod retry_order;
mod verification;

use std::mem;
use std::sync::Arc;

use pykafka_log::{AppendError, AppendInfo, AppendOptions, Log, Validated};
use pykafka_record::{Cancellation, LeaderEpoch};

use self::large_batches::LargeBatchPermit;
use self::outcome::{AppendOutcome, AppendRefusal};
use self::queued::{Append, Queued};
use self::retry_order::FirstRejected;
use super::Partition;
use super::guard::PartitionGuard;
use super::threads::may_wait::MayWait;
use super::waiters::{Ack, AckWaiter, Promise};
use crate::kafka_error::KafkaError;
use crate::network::blocking_handoff::BlockingPermit;
use crate::partition::log::sync::round::Begun;
use crate::partition::write_queue::queue::WriterToken;

/// The connection's thread writes a batch up to this size itself, if the disk is fast. Another
/// thread writes a larger one while this thread receives the next.
const WRITTEN_AT_ONCE_BYTES_MAX: usize = 96 << 10;

/// Decompressed bytes of one request whose batches the connection's thread validates itself, which
/// takes about a millisecond. Another thread validates the others while this thread serves other
/// connections.
pub(crate) const INFLATED_AT_ONCE_BYTES_MAX: usize = 256 << 10;

/// A smaller batch counts as this many bytes.
const INFLATED_BYTES_MIN: usize = INFLATED_AT_ONCE_BYTES_MAX / 8;

impl Append {
    fn options(&self, leader_epoch: LeaderEpoch, first: Option<FirstRejected>) -> AppendOptions {
        AppendOptions {
            leader_epoch,
            origin: self.origin,
            transaction: self.transaction,
            refused_sequence: first.map(|first| first.base_sequence),
        }
    }
}

impl Partition {
    /// Appends one batch after all earlier ones; stamps it in place with its offsets and leader
    /// epoch.
    ///
    /// Returns the outcome if it is known at once. Otherwise the waiter is notified exactly once,
    /// unless it is removed. Never waits for the disk.
    pub fn append(&self, append: Append) -> Option<AppendOutcome> {
        self.append_within(append, &mut 0)
    }

    /// Appends as [`Partition::append`] does, and may decompress up to `inflatable` bytes on this
    /// thread, which are deducted.
    pub(crate) fn append_within(
        &self,
        append: Append,
        inflatable: &mut usize,
    ) -> Option<AppendOutcome> {
        match self.try_append(append, inflatable) {
            Ok(outcome) => outcome,
            Err(refusal) => Some(Err(refusal)),
        }
    }

    fn try_append(
        &self,
        mut append: Append,
        inflatable: &mut usize,
    ) -> Result<Option<AppendOutcome>, AppendRefusal> {
        let (log, config, is_idle) = {
            let mut guard = self.lock();
            guard.raise_leader_epoch(append.leader_epoch);
            guard.admit(&append)?;
            (guard.opened(), guard.config.clone(), guard.queue.is_idle())
        };
        let is_plain = config.validates_in_place(&append.batch);
        let validated = match &log {
            Some(log) if is_plain => Some(log.validate(&mut append.batch, append.origin)),
            Some(log) if is_idle && *inflatable > 0 && config.validates_briefly(&append.batch) => {
                inflate_here(log, &mut append, inflatable)
            }
            _ => None,
        };
        let validated = validated.transpose().map_err(AppendRefusal::Log)?;
        let is_quick = is_plain || validated.is_some();
        let mut queued = Queued { append, validated, is_quick, is_large: false, since_ns: 0 };
        let mut guard = self.lock();
        guard.admit(&queued.append)?;
        guard.touch();
        if guard.queue.is_idle()
            && let Some(log) = guard.opened()
        {
            if let Some(appended) = guard.append_at_once(&log, &mut queued) {
                return Ok(guard
                    .appended(&log, vec![(queued, appended)])
                    .pop()
                    .map(|(_, told)| told));
            }
            if let Some((validated, writer, moment)) = guard.begin_write(&log, &mut queued) {
                guard.queue.begin_work(self.host.clock.now_ns());
                drop(guard);
                return Ok(self.write_here(&log, queued, validated, writer, moment));
            }
        }
        queued.since_ns = self.host.clock.now_ns();
        guard.queue.push(queued);
        guard.drain_after();
        Ok(None)
    }

    /// Removes a waiter that timed out or whose connection closed. Its appends whose write has not
    /// started are not appended.
    pub fn forget_acks(&self, waiter: &Arc<dyn AckWaiter>) {
        let mut guard = self.lock();
        guard.waiters.forget_acks(waiter);
        guard.queue.forget(waiter, |append| self.note_forgotten(append));
        // Appends that waited for a large one can continue.
        guard.ask_for_room();
        guard.drain_after();
    }

    /// Writes appends and processes the results. Returns the sync that was started, if clients wait
    /// for it.
    ///
    /// The first append that turns out to be large, and those after it, are put back and wait for
    /// the permit.
    pub(super) fn append_round(
        &self,
        opened: &Result<Arc<Log>, KafkaError>,
        appends: Vec<Queued>,
        mut room: Option<LargeBatchPermit>,
        writer: &WriterToken,
    ) -> Option<Begun> {
        let mut appends = appends.into_iter();
        let (mut written, mut waiting) = (Vec::with_capacity(appends.len()), Vec::new());
        while let Some(mut queued) = appends.next() {
            if queued.append.waiter.is_gone() {
                self.note_forgotten(&queued.append);
                continue;
            }
            let log = opened.as_ref().map_err(|error| {
                self.note_refused(&queued.append, *error);
                AppendRefusal::from(*error)
            });
            let result = log.and_then(|log| self.write(log, &mut queued, &mut room, writer));
            if result.is_err() && queued.append.waiter.is_gone() {
                self.note_forgotten(&queued.append);
            }
            let Some(result) = result.transpose() else {
                waiting.push(queued);
                waiting.extend(appends);
                break;
            };
            written.push((queued, result));
        }
        // It must not be dropped within a critical section.
        drop(room);
        let mut guard = self.lock();
        guard.queue.end_work();
        guard.wait_for_room(waiting);
        let told = match opened {
            Ok(log) => guard.appended(log, written),
            Err(_) => refused(written),
        };
        for (append, outcome) in told {
            guard.tell_after(append, outcome);
        }
        // This thread runs a sync that clients wait for; a background sync runs on another thread.
        if guard.syncs_every_append() { guard.take_begun() } else { None }
    }

    /// Writes one append on the thread of its connection.
    fn write_here(
        &self,
        log: &Arc<Log>,
        mut queued: Queued,
        validated: Validated,
        writer: WriterToken,
        moment: BlockingPermit,
    ) -> Option<AppendOutcome> {
        let write = |_: &MayWait| {
            let leader_epoch = self.begun_epoch(log, &queued.append, &writer)?;
            self.write_batch(log, &mut queued.append, validated, leader_epoch, &writer)
        };
        let result = self.host.writers.run_here(moment, write);
        let mut guard = self.lock();
        guard.queue.end_work();
        let reported = guard.appended(log, vec![(queued, result)]).pop();
        guard.give_token_back(writer);
        reported.map(|(_, outcome)| outcome)
    }

    /// Returns `None` if it is large and has no permit; otherwise frees the permit.
    fn write(
        &self,
        log: &Log,
        queued: &mut Queued,
        room: &mut Option<LargeBatchPermit>,
        writer: &WriterToken,
    ) -> Result<Option<AppendInfo>, AppendRefusal> {
        let leader_epoch = self.begun_epoch(log, &queued.append, writer)?;
        let Queued { append, validated, is_large, .. } = queued;
        let waiter = append.waiter.clone();
        let cancellation = Cancellation::when(move || waiter.is_gone());
        // Kept until the decompressed batch is written.
        let room = room.take();
        let validated = match (validated.take(), &room) {
            (Some(validated), _) => Some(validated),
            (None, Some(_)) if *is_large => {
                let validated = log.validate_large(&mut append.batch, append.origin, &cancellation);
                Some(validated.map_err(AppendRefusal::Log)?)
            }
            (None, _) => {
                let validated = log.validate_small(&mut append.batch, append.origin, &cancellation);
                validated.map_err(AppendRefusal::Log)?
            }
        };
        let Some(validated) = validated else {
            *is_large = true;
            return Ok(None);
        };
        self.write_batch(log, append, validated, leader_epoch, writer).map(Some)
    }

    /// Writes a validated append in the leader epoch that has started.
    fn write_batch(
        &self,
        log: &Log,
        append: &mut Append,
        validated: Validated,
        leader_epoch: LeaderEpoch,
        _: &WriterToken,
    ) -> Result<AppendInfo, AppendRefusal> {
        let clock = &*self.host.clock;
        let first = self.retry_order.first(append, clock);
        let options = append.options(leader_epoch, first);
        let uncompressed_size = validated.uncompressed_size;
        let stored_size = validated.stored_size();
        let begun_ns = clock.now_ns();
        let appended = log.append_validated(&mut append.batch, validated, options);
        self.host.disk_latency.wrote_for(clock.now_ns().saturating_sub(begun_ns));
        let info = self.retry_order.judged(append, first, appended, clock)?;
        self.count(&info, stored_size, uncompressed_size);
        Ok(info)
    }

    /// Returns the leader epoch to write `append` in. A new epoch starts first, after the batches
    /// of the old one.
    fn begun_epoch(
        &self,
        log: &Log,
        append: &Append,
        writer: &WriterToken,
    ) -> Result<LeaderEpoch, KafkaError> {
        loop {
            let guard = self.lock();
            let leader_epoch = guard.admit(append)?;
            if !guard.is_epoch_due() {
                return Ok(leader_epoch);
            }
            drop(guard);
            self.begin_leader_epoch(log, writer)?;
        }
    }

    /// Records an append that is refused before it reaches the log, and the error for its client.
    pub(super) fn note_refused(&self, append: &Append, error: KafkaError) {
        self.retry_order.note(append, error, &*self.host.clock);
    }

    /// Records an append whose waiter was removed: later batches of the producer fail with
    /// `NOT_ENOUGH_REPLICAS`, so that they are retried in order.
    fn note_forgotten(&self, append: &Append) {
        self.note_refused(append, KafkaError::NotEnoughReplicas);
    }

    fn count(&self, info: &AppendInfo, stored_size: usize, uncompressed_size: usize) {
        if !info.duplicate && !self.hidden {
            let appended = &self.host.appended;
            appended.batches.add(1);
            appended.records.add(info.records_count as u64);
            appended.bytes.add(stored_size as u64);
            appended.bytes_uncompressed.add(uncompressed_size as u64);
        }
    }
}

/// Validates a small compressed batch on the thread of its connection, which costs less than
/// another thread does. `None` if that may take long, or if the thread may not wait.
///
/// Deducts the size from `inflatable`, the bytes that the request may still decompress here: all of
/// them if the batch is not valid or not small.
fn inflate_here(
    log: &Log,
    append: &mut Append,
    inflatable: &mut usize,
) -> Option<Result<Validated, AppendError>> {
    let moment = BlockingPermit::take()?;
    let bytes_max = mem::take(inflatable);
    let validated = moment
        .wait(|| log.validate_briefly(&mut append.batch, append.origin, bytes_max))
        .transpose()?;
    if let Ok(validated) = &validated {
        let used = validated.uncompressed_size.max(INFLATED_BYTES_MIN);
        *inflatable = bytes_max.saturating_sub(used);
    }
    Some(validated)
}

/// Like [`PartitionGuard::appended`], without a log.
fn refused(written: Vec<Written>) -> Vec<(Append, AppendOutcome)> {
    written.into_iter().map(|(queued, result)| (queued.append, result)).collect()
}

pub(super) type Written = (Queued, Result<AppendInfo, AppendRefusal>);

impl PartitionGuard<'_> {
    /// Puts back appends of which the first is large. Fails those that are not permitted any more.
    fn wait_for_room(&mut self, appends: Vec<Queued>) {
        let mut waiting = Vec::with_capacity(appends.len());
        for queued in appends {
            // The waiter was removed after the append was taken out of the queue.
            if queued.append.waiter.is_gone() {
                self.partition().note_forgotten(&queued.append);
                continue;
            }
            match self.admit(&queued.append) {
                Ok(_) => waiting.push(queued),
                Err(error) => self.tell_after(queued.append, Err(error.into())),
            }
        }
        self.queue.put_back(waiting);
        self.ask_for_room();
    }

    /// Returns the leader epoch of `append` if it is permitted now; otherwise records the refusal.
    fn admit(&self, append: &Append) -> Result<LeaderEpoch, KafkaError> {
        let admitted = self.check_append(append);
        if let Err(error) = admitted {
            self.partition().note_refused(append, error);
        }
        admitted
    }

    fn check_append(&self, append: &Append) -> Result<LeaderEpoch, KafkaError> {
        self.check_leader(append.leader_epoch)?;
        let has_enough = self.replication.has_enough_replicas(self.config.min_insync_replicas);
        if append.needs_isr && !has_enough {
            return Err(KafkaError::NotEnoughReplicas);
        }
        Ok(self.replication.assignment().leader_epoch)
    }

    /// Returns `None` if the append takes more than copying into memory.
    fn append_at_once(
        &mut self,
        log: &Log,
        queued: &mut Queued,
    ) -> Option<Result<AppendInfo, AppendRefusal>> {
        let Queued { append, validated, .. } = queued;
        let partition = self.partition();
        let (retry_order, clock) = (&partition.retry_order, &*partition.host.clock);
        let first = retry_order.first(append, clock);
        let options = append.options(self.replication.assignment().leader_epoch, first);
        let judged = validated.as_mut()?;
        let (stored_size, uncompressed_size) = (judged.stored_size(), judged.uncompressed_size);
        let appended = if partition.host.in_memory {
            log.append_validated(&mut append.batch, validated.take()?, options)
        } else {
            log.try_append_validated(&mut append.batch, judged, options)?
        };
        let appended = retry_order.judged(append, first, appended, clock);
        if let Ok(info) = &appended {
            partition.count(info, stored_size, uncompressed_size);
        }
        Some(appended)
    }

    /// Prepares a write by the current thread, if it may block for a short time and the write
    /// should be short.
    fn begin_write(
        &mut self,
        log: &Log,
        queued: &mut Queued,
    ) -> Option<(Validated, WriterToken, BlockingPermit)> {
        let host = &self.partition().host;
        let validated = queued.validated.as_ref()?;
        // Only the first append of a request: many short writes would block the thread as long as
        // one long write, and the spares would not detect it.
        let is_ready = !host.in_memory
            && queued.append.slot == 0
            && validated.stored_size() <= WRITTEN_AT_ONCE_BYTES_MAX
            && host.disk_latency.is_quick()
            && !self.syncs_every_append()
            && log.only_writes(
                &queued.append.batch,
                validated,
                self.replication.assignment().leader_epoch,
            );
        if !is_ready {
            return None;
        }
        let moment = BlockingPermit::take()?;
        let writer = self.take_token_at_once()?;
        queued.validated.take().map(|validated| (validated, writer, moment))
    }

    /// Processes the results of writes. Returns the outcomes that are known; the other appends
    /// wait.
    pub(super) fn appended(
        &mut self,
        log: &Arc<Log>,
        written: Vec<Written>,
    ) -> Vec<(Append, AppendOutcome)> {
        let mut results = Vec::with_capacity(written.len());
        let (mut has_appended, mut appended_bytes) = (false, 0);
        for (Queued { append, .. }, result) in written {
            let result = result.map_err(|refusal| self.storage_refusal(refusal));
            if let Ok(info) = &result {
                self.partition().host.note_append();
                has_appended |= !info.duplicate;
                appended_bytes += if info.duplicate { 0 } else { append.batch.len() as i64 };
            }
            results.push((append, result));
        }
        if has_appended {
            self.credit_appended(appended_bytes);
            self.sync_after_append(log);
        }
        self.progress(log);
        let told = |(append, result)| self.acknowledge(log, append, result);
        results.into_iter().filter_map(told).collect()
    }

    /// Takes the partition offline after an I/O error.
    fn storage_refusal(&mut self, refusal: AppendRefusal) -> AppendRefusal {
        match refusal {
            AppendRefusal::Log(AppendError::Storage(error)) => self.storage_failed(&error).into(),
            refusal => refusal,
        }
    }

    /// Returns the outcome if it is known; otherwise the append waits for its promise.
    fn acknowledge(
        &mut self,
        log: &Log,
        append: Append,
        result: Result<AppendInfo, AppendRefusal>,
    ) -> Option<(Append, AppendOutcome)> {
        let info = match result {
            Ok(info) => info,
            Err(refusal) => return Some((append, Err(refusal))),
        };
        match self.promise_holds(log, info.last_offset + 1, append.promise) {
            Ok(true) => Some((append, Ok(info))),
            Ok(false) => {
                let Append { promise, waiter, slot, .. } = append;
                self.wait_ack(log, promise, Ack { info, waiter, slot });
                None
            }
            Err(error) => Some((append, Err(error.into()))),
        }
    }

    fn promise_holds(
        &self,
        log: &Log,
        end_offset: i64,
        promise: Promise,
    ) -> Result<bool, KafkaError> {
        // The partition may have been deleted, or have failed, during the write.
        self.check_leader(None)?;
        let has_enough = self.replication.has_enough_replicas(self.config.min_insync_replicas);
        match promise {
            Promise::Appended => Ok(true),
            Promise::Durable => Ok(self.ends(log).promised_end_offset >= end_offset),
            Promise::Committed if self.replication.high_watermark() >= end_offset => Ok(true),
            Promise::Committed if has_enough => Ok(false),
            Promise::Committed => Err(KafkaError::NotEnoughReplicasAfterAppend),
        }
    }
}
