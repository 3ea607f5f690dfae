//! Appends by the leader: checked and queued in the order of the calls, written by one thread at a time.
//!
//! An append that only copies into memory happens at once, on the caller's thread. Any other one waits in the
//! partition's queue until a thread of the pool for writes drains it: it takes all that is queued, writes it with no
//! mutex held but the partition's right to write (`Partition::writer`), and tells the outcomes in one turn. What comes
//! meanwhile is queued for its next round. Who leads, in which epoch, changes only under that right too, so what was
//! checked before a write still holds when it becomes visible (docs/SEAM.md S3).

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::MutexGuard;
use pykafka_log::{AppendError, AppendInfo, AppendOptions, AppendOrigin, Log, Validated};
use tokio::sync::oneshot;

use super::turn::Turn;
use super::waiters::{Ack, AckWaiter, Promise};
use super::{LogSlot, Partition};
use crate::kafka_error::KafkaError;

/// An uncompressed batch up to this size is validated by the thread that brings it.
const VALIDATED_AT_ONCE_BYTES_MAX: usize = 1 << 20;
/// What is written between two turns.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// A batch to append, and who is told what becomes of it.
pub struct Append {
    /// Stamped in place with its offsets and leader epoch.
    pub batch: BytesMut,
    /// Who sends it.
    pub origin: AppendOrigin,
    /// Whether it is refused with fewer in-sync replicas than `min.insync.replicas`.
    pub needs_isr: bool,
    /// −1 for any.
    pub leader_epoch: i32,
    /// What must hold before it is acknowledged.
    pub promise: Promise,
    /// Who is told, unless the outcome is known at once.
    pub waiter: Arc<dyn AckWaiter>,
    /// Passed back to the waiter.
    pub slot: usize,
}

/// What became of an append: acknowledged as it was promised, or an error, after which it may all the same be in the log.
pub type AppendOutcome = Result<AppendInfo, AppendRefusal>;

/// Why an append is not acknowledged.
#[derive(Debug)]
pub enum AppendRefusal {
    /// The partition refused.
    Partition(KafkaError),
    /// The log refused the batch.
    Log(AppendError),
}

impl From<KafkaError> for AppendRefusal {
    fn from(error: KafkaError) -> Self {
        AppendRefusal::Partition(error)
    }
}

/// An append on its way, judged already if that was quick.
pub(super) struct Queued {
    append: Append,
    validated: Option<Validated>,
    is_quick: bool,
}

/// What the next drain does, in order: open the log, then write.
#[derive(Default)]
pub(super) struct AppendQueue {
    entries: VecDeque<Queued>,
    /// Who waits for the log to be opened.
    openers: Vec<oneshot::Sender<()>>,
    /// Whether a thread drains it, or is about to.
    is_draining: bool,
}

impl AppendQueue {
    /// Whether an append may go ahead of it.
    fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.is_draining
    }

    /// Whether nothing in it takes long but the disk.
    pub(super) fn is_quick(&self) -> bool {
        self.entries.iter().all(|queued| queued.is_quick)
    }

    /// What is written between two turns; at least one, if there is any.
    fn take_round(&mut self) -> Vec<Queued> {
        let mut bytes = 0;
        let within = self.entries.iter().take_while(|queued| {
            let is_within = bytes < ROUND_BYTES_MAX;
            bytes += queued.append.batch.len();
            is_within
        });
        let count = within.count();
        self.entries.drain(..count).collect()
    }

    /// Takes all out, to be told that they are refused.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Append> {
        std::mem::take(&mut self.entries).into_iter().map(|queued| queued.append)
    }

    fn forget(&mut self, waiter: &Arc<dyn AckWaiter>) {
        self.entries.retain(|queued| !Arc::ptr_eq(&queued.append.waiter, waiter));
    }
}

impl Partition {
    /// Appends one batch, behind all that was given before, stamped in place with its offsets and leader epoch.
    ///
    /// Returns the outcome if it is known at once; otherwise the waiter is told exactly once, unless it is forgotten.
    /// Never waits for the disk.
    pub fn append(&self, append: Append) -> Option<AppendOutcome> {
        match self.try_append(append) {
            Ok(outcome) => outcome,
            Err(refusal) => Some(Err(refusal)),
        }
    }

    fn try_append(&self, mut append: Append) -> Result<Option<AppendOutcome>, AppendRefusal> {
        let (log, config) = {
            let turn = self.turn();
            turn.check_append(&append)?;
            (turn.opened(), turn.config.clone())
        };
        let is_quick = append.batch.len() <= VALIDATED_AT_ONCE_BYTES_MAX
            && config.validates_in_place(&append.batch);
        let validated = match &log {
            Some(log) if is_quick => {
                let validated = log.validate(&mut append.batch, append.origin);
                Some(validated.map_err(AppendRefusal::Log)?)
            }
            _ => None,
        };
        let mut queued = Queued { append, validated, is_quick };
        let mut turn = self.turn();
        turn.check_append(&queued.append)?;
        turn.touch();
        if turn.queue.is_idle()
            && let Some(log) = turn.opened()
            && let Some(appended) = turn.append_at_once(&log, &mut queued)
        {
            return Ok(turn.appended(&log, vec![(queued, appended)]).pop().map(|(_, told)| told));
        }
        turn.queue.entries.push_back(queued);
        turn.drain_after();
        Ok(None)
    }

    /// Takes a waiter out: it timed out, or its connection went away. What is not yet being written is not appended.
    pub fn forget_acks(&self, waiter: &Arc<dyn AckWaiter>) {
        let mut turn = self.turn();
        turn.waiters.forget_acks(waiter);
        turn.queue.forget(waiter);
    }

    /// Waits until the log has been opened, or cannot be; `None` if there is nothing to wait for.
    pub fn opening(&self) -> Option<oneshot::Receiver<()>> {
        let mut turn = self.turn();
        if !matches!(turn.log, LogSlot::Unopened) || turn.check_leader(-1).is_err() {
            return None;
        }
        let (opened, mut opening) = oneshot::channel();
        turn.queue.openers.push(opened);
        turn.drain_after();
        drop(turn);
        let is_due = matches!(opening.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        is_due.then_some(opening)
    }

    /// Writes what is queued, and what comes meanwhile. May wait for the disk.
    pub(super) fn drain(&self) {
        let mut begun = None;
        {
            let mut writer = self.writer.lock();
            while let Some((round, openers)) = self.next_round() {
                // A queue that never empties must not keep retention, deletion or a new epoch waiting.
                MutexGuard::bump(&mut writer);
                if let Some(begun) = begun.take() {
                    self.run_sync(begun);
                }
                let opened = self.open_log(&writer);
                drop(openers);
                let written = round.into_iter().map(|queued| self.write(&opened, queued)).collect();
                let mut turn = self.turn();
                let told = match &opened {
                    Ok(log) => turn.appended(log, written),
                    Err(_) => refused(written),
                };
                // Waiters of this sync are served by this thread; a background sync has a thread of its own.
                if turn.syncs_every_append() {
                    begun = turn.take_begun();
                }
                for (append, outcome) in told {
                    turn.tell_after(append, outcome);
                }
            }
        }
        if let Some(begun) = begun {
            self.sync(&begun);
        }
    }

    /// Ends the drain if there is nothing left to do.
    fn next_round(&self) -> Option<(Vec<Queued>, Vec<oneshot::Sender<()>>)> {
        let mut turn = self.turn();
        let round = turn.queue.take_round();
        let openers = std::mem::take(&mut turn.queue.openers);
        turn.queue.is_draining = !round.is_empty() || !openers.is_empty();
        turn.queue.is_draining.then_some((round, openers))
    }

    fn write(&self, log: &Result<Arc<Log>, KafkaError>, mut queued: Queued) -> Written {
        let appended = self.write_to(log, &mut queued);
        (queued, appended)
    }

    fn write_to(
        &self,
        log: &Result<Arc<Log>, KafkaError>,
        queued: &mut Queued,
    ) -> Result<AppendInfo, AppendRefusal> {
        let log = log.as_ref().map_err(|error| *error)?;
        let append = &mut queued.append;
        let leader_epoch = self.turn().check_append(append)?;
        let validated = match queued.validated.take() {
            Some(validated) => validated,
            None => log.validate(&mut append.batch, append.origin).map_err(AppendRefusal::Log)?,
        };
        let options = AppendOptions { leader_epoch, origin: append.origin };
        let uncompressed_size = validated.uncompressed_size;
        let stored_size = validated.stored_size();
        let appended = log.append_validated(&mut append.batch, validated, options);
        let info = appended.map_err(AppendRefusal::Log)?;
        self.count(&info, stored_size, uncompressed_size);
        Ok(info)
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

/// As [`Turn::appended`] where there is no log.
fn refused(written: Vec<Written>) -> Vec<(Append, AppendOutcome)> {
    written.into_iter().map(|(queued, result)| (queued.append, result)).collect()
}

type Written = (Queued, Result<AppendInfo, AppendRefusal>);

impl Turn<'_> {
    /// Whether `append` may happen now; the leader epoch that it gets.
    fn check_append(&self, append: &Append) -> Result<i32, KafkaError> {
        self.check_leader(append.leader_epoch)?;
        let has_enough = self.replication.has_enough_replicas(self.config.min_insync_replicas);
        if append.needs_isr && !has_enough {
            return Err(KafkaError::NotEnoughReplicas);
        }
        Ok(self.replication.assignment().leader_epoch)
    }

    /// `None` if it takes more than copying into memory.
    fn append_at_once(
        &mut self,
        log: &Log,
        queued: &mut Queued,
    ) -> Option<Result<AppendInfo, AppendRefusal>> {
        let Queued { append, validated, .. } = queued;
        let leader_epoch = self.replication.assignment().leader_epoch;
        let options = AppendOptions { leader_epoch, origin: append.origin };
        let judged = validated.as_mut()?;
        let (stored_size, uncompressed_size) = (judged.stored_size(), judged.uncompressed_size);
        let appended = if self.partition().host.in_memory {
            log.append_validated(&mut append.batch, validated.take()?, options)
        } else {
            log.try_append_validated(&mut append.batch, judged, options)?
        };
        if let Ok(info) = &appended {
            self.partition().count(info, stored_size, uncompressed_size);
        }
        Some(appended.map_err(AppendRefusal::Log))
    }

    /// Lets what was written have its consequences; returns the outcomes that are known, the other appends wait.
    fn appended(&mut self, log: &Arc<Log>, written: Vec<Written>) -> Vec<(Append, AppendOutcome)> {
        let mut results = Vec::with_capacity(written.len());
        let mut has_appended = false;
        for (Queued { append, .. }, result) in written {
            let result = result.map_err(|refusal| self.storage_refusal(refusal));
            if let Ok(info) = &result {
                self.report_space();
                has_appended |= !info.duplicate;
                self.uncredited_bytes += if info.duplicate { 0 } else { append.batch.len() as i64 };
            }
            results.push((append, result));
        }
        if has_appended {
            self.sync_after_append(log);
        }
        self.progress(log);
        let told = |(append, result)| self.acknowledge(log, append, result);
        results.into_iter().filter_map(told).collect()
    }

    /// An I/O error takes the partition offline.
    fn storage_refusal(&mut self, refusal: AppendRefusal) -> AppendRefusal {
        match refusal {
            AppendRefusal::Log(AppendError::Storage(error)) => self.storage_failed(&error).into(),
            refusal => refusal,
        }
    }

    /// The outcome, if it is known; else the append waits for what it was promised.
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
                self.waiters.wait_ack(promise, Ack { info, waiter, slot });
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
        // It may have been deleted, or have failed, while it was written.
        self.check_leader(-1)?;
        let has_enough = self.replication.has_enough_replicas(self.config.min_insync_replicas);
        match promise {
            Promise::Appended => Ok(true),
            Promise::Durable => Ok(self.ends(log).promised_end_offset >= end_offset),
            Promise::Committed if self.replication.high_watermark() >= end_offset => Ok(true),
            Promise::Committed if has_enough => Ok(false),
            Promise::Committed => Err(KafkaError::NotEnoughReplicasAfterAppend),
        }
    }

    /// Has the queue drained after this turn, unless somebody is at it.
    fn drain_after(&mut self) {
        if !std::mem::replace(&mut self.queue.is_draining, true) {
            self.begin_drain();
        }
    }
}
