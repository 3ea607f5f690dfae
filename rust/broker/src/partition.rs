//! One partition on this broker: its replication state, its log and everyone who waits on it, under one mutex.
//!
//! Theory of operation. Every change (append, sync done, follower fetch, transition) runs under the mutex and ends in
//! `progress`, which recomputes the high watermark from what the change made true and collects whom to wake; they are
//! woken after the mutex is released. Reads take the mutex only to check leadership and to take the offsets; the bytes
//! are read outside of it, bounded by those offsets (contract/replication.md#10).
//!
//! A batch counts for the high watermark, and so for acks=1 as well as acks=all, only when its promise holds: in
//! `fsync` mode when a finished sync covers it, otherwise once it is in the log. So in the other modes every
//! acknowledgement is there when the append returns, and nothing waits.
//!
//! The log is opened by the first call that needs it: an idle partition is this struct and a line in the image.

mod append;
pub mod follower;
mod idle;
pub mod isr;
mod lookup;
pub(crate) mod maintenance;
pub(crate) mod partition_table;
pub(crate) mod purgatory;
mod read;
mod replicate;
pub mod replication;
pub(crate) mod storage;
mod sync;
mod transition;
pub mod waiters;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use pykafka_log::{
    Clock, Log, LogConfig, LogDirectory, LogSurvey, OpenError, Recovery, StorageError, Syncer,
};
use tokio::sync::Notify;

pub use append::{AppendRefusal, Appended};
pub use lookup::{OffsetAnswer, OffsetQuery};
pub use read::{Isolation, Read, ReadRequest};

use self::follower::Follower;
use self::replication::{EligibleBrokers, LogEnds, Replication, Role};
use self::waiters::{Waiters, Wakeups};
use crate::kafka_error::KafkaError;
use crate::seam::event::{DiskStateKind, Event, EventQueue, PartitionStateKind};
use crate::seam::image::TopicId;
use crate::seam::log_ring::{Level, LogRing};
use crate::seam::statistics::AppendStatistics;

const TARGET: &str = "broker.partition";

/// What all partitions of one broker share.
pub struct Host {
    /// This broker.
    pub node_id: i32,
    /// The broker's clock.
    pub clock: Arc<dyn Clock>,
    /// Facts for Python.
    pub events: Arc<EventQueue>,
    /// Opens logs.
    pub directory: LogDirectory,
    /// Whether logs live in memory: then there is nothing to sync.
    pub in_memory: bool,
    /// Brokers that may join an ISR.
    pub eligible: ArcSwap<EligibleBrokers>,
    /// `replica.lag.time.max.ms`: a follower silent for longer does not hold the high watermark back.
    pub replica_lag_ns_max: AtomicU64,
    /// Whether an append last failed for want of space.
    pub is_disk_full: AtomicBool,
    /// Counts what clients append.
    pub appended: AppendStatistics,
    /// Log lines on their way to Python.
    pub log_ring: Arc<LogRing>,
    /// Threads that wait for disks.
    pub syncer: Syncer,
    /// Partitions with unsynced data and a time to sync it by (`flush.ms`).
    pub dirty: Mutex<Vec<Arc<Partition>>>,
    /// Told when one is listed.
    pub dirty_added: Notify,
    /// Partitions whose logs may hold files open, the longest listed first.
    pub listed: Mutex<VecDeque<Weak<Partition>>>,
    /// How many those may be.
    pub listed_max: usize,
}

/// See the module.
pub struct Partition {
    /// Name of the topic.
    pub topic: Arc<str>,
    /// Id of the topic; a recreated topic has another one.
    pub topic_id: TopicId,
    /// Within the topic.
    pub index: i32,
    me: Weak<Partition>,
    host: Arc<Host>,
    /// Whether only the control plane uses it: then every append is synced (replication-contract D1).
    hidden: bool,
    inner: Mutex<Inner>,
}

struct Inner {
    replication: Replication,
    log: LogSlot,
    /// Of an unopened log, once somebody asked.
    survey: Option<Survey>,
    config: Arc<LogConfig>,
    waiters: Waiters,
    sync: sync::SyncRound,
    idleness: idle::Idleness,
    /// Bytes appended and not yet credited to watching fetches.
    uncredited_bytes: i64,
    /// Raised with everything a fetch might be waiting for, so that a watch never misses a change.
    version: u64,
}

/// What is known of a log before it is opened.
#[derive(Debug, Clone, Copy)]
enum Survey {
    /// It was never appended to.
    Nothing,
    /// This, with its log start offset.
    Done(LogSurvey, i64),
    /// Only recovery can tell.
    Unknown,
}

enum LogSlot {
    Unopened,
    Open(Arc<Log>),
    /// An I/O error is final until restart (replication-contract D2).
    Failed,
    /// The topic is deleted.
    Deleted,
}

/// Log start, high watermark, last stable and log end offset: one consistent snapshot. All but the first are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionOffsets {
    /// First offset that can be read.
    pub log_start_offset: i64,
    /// Exclusive end of what is committed.
    pub high_watermark: i64,
    /// Exclusive end of what is committed and belongs to no open transaction.
    pub last_stable_offset: i64,
    /// Exclusive end of the log.
    pub log_end_offset: i64,
    /// The leader epoch they hold in.
    pub leader_epoch: i32,
}

impl Partition {
    /// A partition that no image has assigned yet.
    pub fn new(
        host: Arc<Host>,
        topic: Arc<str>,
        topic_id: TopicId,
        index: i32,
        hidden: bool,
        config: Arc<LogConfig>,
    ) -> Arc<Partition> {
        let inner = Inner {
            replication: Replication::new(host.node_id),
            log: LogSlot::Unopened,
            survey: None,
            config,
            waiters: Waiters::default(),
            sync: sync::SyncRound::default(),
            idleness: idle::Idleness::default(),
            uncredited_bytes: 0,
            version: 0,
        };
        Arc::new_cyclic(|me| Partition {
            topic,
            topic_id,
            index,
            me: me.clone(),
            host,
            hidden,
            inner: Mutex::new(inner),
        })
    }

    /// The offsets, read together.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER`, or `KAFKA_STORAGE_ERROR` if the log cannot be opened.
    pub fn offsets(&self) -> Result<PartitionOffsets, KafkaError> {
        let (inner, log) = self.lock_as_leader(-1)?;
        Ok(offsets_of(&inner, &log))
    }

    /// Exclusive end of what is committed, as far as is known.
    pub fn high_watermark(&self) -> i64 {
        self.inner.lock().replication.high_watermark()
    }

    /// Takes note of an error that upkeep, or sending from a file, met in this partition's log.
    pub fn note_storage_error(&self, error: &StorageError) {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        self.storage_failed(&mut inner, error);
        Self::fail_waiters(&mut inner, &mut wakeups);
        drop(inner);
        wakeups.tell();
    }

    /// The log, if anything has opened it, without opening it.
    pub fn opened_log(&self) -> Option<Arc<Log>> {
        match &self.inner.lock().log {
            LogSlot::Open(log) => Some(log.clone()),
            _ => None,
        }
    }

    /// Bytes of the log; `None` if there is none. One that is closed stays so, unless it needs recovery.
    pub fn size_bytes(&self) -> Option<u64> {
        let mut inner = self.inner.lock();
        match &inner.log {
            LogSlot::Open(log) => Some(log.size_bytes()),
            LogSlot::Unopened => match self.survey(&mut inner) {
                Survey::Done(survey, _) => Some(survey.size_bytes),
                Survey::Nothing => None,
                Survey::Unknown => self.open_log(&mut inner).ok().map(|log| log.size_bytes()),
            },
            LogSlot::Failed | LogSlot::Deleted => None,
        }
    }

    /// Whether retention might have something to do; only then need the log be opened for it.
    pub fn may_expire(&self, now_ms: i64) -> bool {
        let mut inner = self.inner.lock();
        match &inner.log {
            LogSlot::Open(_) => true,
            LogSlot::Unopened => match self.survey(&mut inner) {
                Survey::Done(survey, start) => survey.may_expire(&inner.config, start, now_ms),
                Survey::Nothing => false,
                Survey::Unknown => true,
            },
            LogSlot::Failed | LogSlot::Deleted => false,
        }
    }

    /// What an unopened log has on disk, looked up once: nobody changes it while it is unopened.
    fn survey(&self, inner: &mut Inner) -> Survey {
        if let Some(survey) = inner.survey {
            return survey;
        }
        let directory = &self.host.directory;
        let survey = match directory.survey(&self.topic, self.index) {
            Some((survey, log_start_offset)) => Survey::Done(survey, log_start_offset),
            None if directory.has_partition(&self.topic, self.index) => Survey::Unknown,
            None => Survey::Nothing,
        };
        *inner.survey.insert(survey)
    }

    /// The log, opened.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`, or `UNKNOWN_TOPIC_ID` once deleted.
    pub fn log(&self) -> Result<Arc<Log>, KafkaError> {
        self.open_log(&mut self.inner.lock())
    }

    /// The mutex and the log, for the leader of `current_leader_epoch` (−1 for whichever it is).
    fn lock_as_leader(
        &self,
        current_leader_epoch: i32,
    ) -> Result<(MutexGuard<'_, Inner>, Arc<Log>), KafkaError> {
        let mut inner = self.inner.lock();
        if matches!(inner.log, LogSlot::Deleted) {
            return Err(KafkaError::UnknownTopicId);
        }
        inner.replication.check_leader(current_leader_epoch)?;
        let log = self.open_log(&mut inner)?;
        self.touch(&mut inner);
        Ok((inner, log))
    }

    fn open_log(&self, inner: &mut Inner) -> Result<Arc<Log>, KafkaError> {
        match &inner.log {
            LogSlot::Open(log) => Ok(log.clone()),
            LogSlot::Failed => Err(KafkaError::KafkaStorageError),
            LogSlot::Deleted => Err(KafkaError::UnknownTopicId),
            LogSlot::Unopened => self.open_log_now(inner),
        }
    }

    fn open_log_now(&self, inner: &mut Inner) -> Result<Arc<Log>, KafkaError> {
        let config = inner.config.clone();
        let opened = self.host.directory.open_log(&self.topic, self.index, self.topic_id, config);
        let (log, recovery) = match opened {
            Ok(opened) => opened,
            // Without space for what recovery rebuilds the log stays unopened; the next use tries again.
            Err(OpenError::Storage(error @ StorageError::NoSpace { .. })) => {
                return Err(self.storage_failed(inner, &error));
            }
            Err(error) => return Err(self.fail(inner, &error.to_string())),
        };
        self.report_recovery(&recovery);
        if let Some(offset) = recovery.damaged_at {
            let reason = format!("valid batches follow a damaged one at offset {offset}");
            self.report(inner, PartitionStateKind::ReadOnly, offset, reason);
        }
        inner.log = LogSlot::Open(log.clone());
        // What recovery found was written before; it is synced once, here, so that reading it breaks no promise.
        if recovery.damaged_at.is_none() && self.syncs_every_append(inner) {
            log.flush().map_err(|error| self.fail(inner, &error.to_string()))?;
        }
        if let Some(checkpoint) = self.host.directory.high_watermark(&self.topic, self.index) {
            let ends = self.ends(inner, &log);
            inner.replication.restore_high_watermark(checkpoint, ends);
        } else {
            let ends = self.ends(inner, &log);
            inner.replication.log_start_advanced(ends);
        }
        if inner.replication.role() == Role::Leader {
            self.begin_leader_epoch(inner, &log)?;
        }
        let mut wakeups = Wakeups::default();
        self.progress(inner, &log, &mut wakeups);
        log.on_high_watermark_updated(inner.replication.high_watermark());
        debug_assert!(inner.waiters.is_empty(), "nobody waits on a log that was never opened");
        Ok(log)
    }

    /// Writes the leader epoch at the log end before any append of it (contract/replication.md#8).
    fn begin_leader_epoch(&self, inner: &mut Inner, log: &Log) -> Result<(), KafkaError> {
        let epoch = inner.replication.assignment().leader_epoch;
        let log_end_offset = log.log_end_offset();
        if !log.is_read_only() {
            match log.assign_epoch(epoch, log_end_offset) {
                // It is stored before the first append, which needs space too; until then there is reading to serve.
                Err(error @ StorageError::NoSpace { .. }) => {
                    self.storage_failed(inner, &error);
                }
                assigned => self.stored(inner, assigned)?,
            }
        }
        inner.replication.begin_leader_epoch(log_end_offset);
        Ok(())
    }

    /// Whether an acknowledgement means a finished sync.
    fn syncs_every_append(&self, inner: &Inner) -> bool {
        !self.host.in_memory && (self.hidden || inner.config.syncs_every_append())
    }

    fn ends(&self, inner: &Inner, log: &Log) -> LogEnds {
        let offsets = log.offsets();
        let promised_end_offset = if self.syncs_every_append(inner) && !log.is_read_only() {
            offsets.recovery_point
        } else {
            offsets.log_end_offset
        };
        LogEnds {
            log_start_offset: offsets.log_start_offset,
            log_end_offset: offsets.log_end_offset,
            promised_end_offset,
        }
    }

    /// Recomputes what follows from the log's and the followers' ends, and collects whom that wakes.
    fn progress(&self, inner: &mut Inner, log: &Log, wakeups: &mut Wakeups) -> LogEnds {
        let ends = self.ends(inner, log);
        let moved = {
            let (now_ns, eligible) = (self.host.clock.now_ns(), self.host.eligible.load());
            let lag_ns_max = self.host.replica_lag_ns_max.load(Ordering::Relaxed);
            let replication = &inner.replication;
            let joining: Vec<i32> = (replication.followers().iter())
                .filter(|follower| {
                    eligible.get(&follower.broker_id).copied() == follower.broker_epoch
                        && follower.broker_epoch.is_some()
                        && follower.is_caught_up(ends.log_end_offset, now_ns, lag_ns_max)
                })
                .map(|follower| follower.broker_id)
                .collect();
            let catching_up = |follower: &Follower| joining.contains(&follower.broker_id);
            let min_isr = inner.config.min_insync_replicas;
            inner.replication.advance_high_watermark(ends, min_isr, &catching_up)
        };
        inner.waiters.promised(ends.promised_end_offset, wakeups);
        if moved {
            let high_watermark = inner.replication.high_watermark();
            log.on_high_watermark_updated(high_watermark);
            inner.waiters.committed(high_watermark, Ok(()), wakeups);
            inner.waiters.readable(inner.uncredited_bytes, wakeups);
            if high_watermark == ends.log_end_offset {
                inner.uncredited_bytes = 0;
            }
            inner.version += 1;
        }
        ends
    }

    /// Passes a storage result through; an I/O error takes the partition offline.
    fn stored<T>(
        &self,
        inner: &mut Inner,
        result: Result<T, StorageError>,
    ) -> Result<T, KafkaError> {
        result.map_err(|error| self.storage_failed(inner, &error))
    }

    fn storage_failed(&self, inner: &mut Inner, error: &StorageError) -> KafkaError {
        match error {
            StorageError::NoSpace { .. } => {
                // Once, not for each append that is refused.
                if !self.host.is_disk_full.swap(true, Ordering::Relaxed) {
                    self.report_disk(DiskStateKind::Full, error.to_string());
                }
                KafkaError::KafkaStorageError
            }
            StorageError::Damaged { .. }
            | StorageError::Malformed { .. }
            | StorageError::ReadOnly
            | StorageError::Closed => KafkaError::KafkaStorageError,
            StorageError::Io { .. } | StorageError::Failed { .. } => {
                self.fail(inner, &error.to_string())
            }
        }
    }

    /// Takes the partition offline for good; who waits is told by the caller's wake-ups or by `fail_waiters`.
    fn fail(&self, inner: &mut Inner, reason: &str) -> KafkaError {
        if !matches!(inner.log, LogSlot::Failed | LogSlot::Deleted) {
            inner.log = LogSlot::Failed;
            inner.version += 1;
            let high_watermark = inner.replication.high_watermark();
            self.report(inner, PartitionStateKind::Offline, high_watermark, reason.to_owned());
            self.report_disk(DiskStateKind::Failed, reason.to_owned());
        }
        KafkaError::KafkaStorageError
    }

    /// Fails everyone who waits if the log has failed; to be called before the mutex is released.
    fn fail_waiters(inner: &mut Inner, wakeups: &mut Wakeups) {
        if matches!(inner.log, LogSlot::Failed) {
            inner.waiters.fail(KafkaError::KafkaStorageError, wakeups);
        }
    }

    fn report(&self, inner: &Inner, state: PartitionStateKind, offset: i64, reason: String) {
        self.host.events.push(Event::PartitionState {
            topic_id: self.topic_id,
            partition: self.index,
            state,
            leader_epoch: inner.replication.assignment().leader_epoch,
            offset,
            reason,
        });
    }

    /// Tells what recovery cut off and what it had to make anew: nobody acknowledged it, but somebody may have seen it.
    fn report_recovery(&self, recovery: &Recovery) {
        let (topic, index) = (&self.topic, self.index);
        let warn = |text: String| {
            self.host
                .log_ring
                .log(Level::Warning, TARGET, || format!("{topic}-{index}: recovery {text}"));
        };
        if let (Some(offset), bytes @ 1..) = (recovery.truncated_at, recovery.truncated_bytes) {
            warn(format!("cut a torn tail of {bytes} bytes: the log ends at offset {offset}"));
        }
        for warning in &recovery.warnings {
            warn(format!("found {warning}"));
        }
    }

    /// After an append: the disk is not full any more, if it was.
    fn report_space(&self) {
        let is_full = &self.host.is_disk_full;
        if is_full.load(Ordering::Relaxed) && is_full.swap(false, Ordering::Relaxed) {
            self.report_disk(DiskStateKind::Ok, "space has returned".to_owned());
        }
    }

    fn report_disk(&self, state: DiskStateKind, reason: String) {
        self.host.events.push(Event::DiskState { state, reason });
    }
}

fn offsets_of(inner: &Inner, log: &Log) -> PartitionOffsets {
    let high_watermark = inner.replication.high_watermark();
    let offsets = log.offsets();
    PartitionOffsets {
        log_start_offset: offsets.log_start_offset,
        high_watermark,
        last_stable_offset: (offsets.first_unstable_offset)
            .map_or(high_watermark, |unstable| unstable.min(high_watermark)),
        log_end_offset: offsets.log_end_offset,
        leader_epoch: inner.replication.assignment().leader_epoch,
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partition({}-{})", self.topic, self.index)
    }
}
