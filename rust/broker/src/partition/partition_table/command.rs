//! Commands of the control plane to partitions. Commands with a token complete exactly once
//! (docs/PLANES.md S4).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pykafka_forks::Mutex;
use pykafka_log::{AppendOrigin, ProducerEntry, TransactionRule};
use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch, ProducerEpoch, ProducerId};

use super::PartitionTable;
use crate::control_api::cow_collections::Pages;
use crate::control_api::event::queue::EventQueue;
use crate::control_api::event::{Event, RecordsRead, Token};
use crate::control_api::image::PartitionId;
use crate::kafka_error::KafkaError;
use crate::partition::append::outcome::{AppendOutcome, AppendRefusal};
use crate::partition::append::queued::Append;
use crate::partition::log::describe::LogSizes;
use crate::partition::replication::isr::{BrokerState, IsrOutcome};
use crate::partition::threads::background::Urgency;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::waiters::{AckWaiter, Promise};
use crate::partition::{Host, Partition, PartitionOffsets};

/// Key and value, encoded by the control plane.
pub type KeyValue = (Option<Bytes>, Option<Bytes>);

/// Reports the outcome of an append to Python.
pub(super) struct TokenWaiter {
    pub(super) events: Arc<EventQueue>,
    pub(super) token: Token,
}

impl AckWaiter for TokenWaiter {
    fn acknowledged(&self, _: usize, outcome: AppendOutcome) {
        let offset = outcome.as_ref().map_or(-1, |info| info.first_offset);
        let error_code = code_of(&outcome);
        self.events.push(Event::Appended { token: self.token, error_code, offset });
    }
}

pub(super) fn code_of(outcome: &AppendOutcome) -> i16 {
    match outcome {
        Ok(_) => 0,
        Err(AppendRefusal::Partition(error)) => error.code(),
        Err(AppendRefusal::Log(error)) => KafkaError::from(error).code(),
    }
}

/// The kind of a batch of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    /// Plain records.
    Data,
    /// Control records of the log itself.
    Control,
    /// Records of a producer's transaction.
    Transactional(ProducerId, ProducerEpoch),
}

impl BatchKind {
    pub(super) fn options(self) -> BatchOptions {
        let options = BatchOptions::default();
        match self {
            BatchKind::Data => options,
            BatchKind::Control => BatchOptions { control: true, ..options },
            BatchKind::Transactional(producer_id, producer_epoch) => {
                BatchOptions { producer_id, producer_epoch, transactional: true, ..options }
            }
        }
    }
}

/// Completes a round of retention when the last reference is dropped.
struct RetentionRound {
    events: Arc<EventQueue>,
    token: Token,
}

impl Drop for RetentionRound {
    fn drop(&mut self) {
        self.events.push(Event::Maintained { token: self.token, error_code: 0, offset: -1 });
    }
}

impl Host {
    /// Total and usable bytes of the directory's file system; −1 for logs in memory.
    fn disk_space(&self, _: &MayWait) -> (i64, i64) {
        if self.in_memory {
            return (-1, -1);
        }
        let space = self.directory.disk().available_bytes(self.directory.path());
        space.map_or((-1, -1), |space| (space.total as i64, space.usable as i64))
    }
}

impl PartitionTable {
    pub(super) fn partition(&self, id: &PartitionId) -> Result<Arc<Partition>, KafkaError> {
        self.get(&id.0, id.1).ok_or(KafkaError::UnknownTopicId)
    }

    /// Appends `records` as one batch in `leader_epoch`. `Appended` follows when the high watermark
    /// has passed the batch, or with the error. In the metadata log it follows when the batch is
    /// synced: the quorum counts that, and commits.
    pub fn append(
        &self,
        token: Token,
        id: &PartitionId,
        leader_epoch: Option<LeaderEpoch>,
        records: &[KeyValue],
        kind: BatchKind,
    ) {
        let waiter = Arc::new(TokenWaiter { events: self.host().events.clone(), token });
        let append = || {
            let partition = self.partition(id)?;
            let batch = encoded(records, kind, self.host().clock.now_ms())?;
            let promise = if partition.hidden { Promise::Durable } else { Promise::Committed };
            Ok(partition.append(Append {
                batch: BytesMut::from(&batch[..]),
                origin: AppendOrigin::Coordinator,
                connection: 0,
                transaction: TransactionRule::Vouched,
                needs_isr: true,
                leader_epoch,
                promise,
                waiter: waiter.clone(),
                slot: 0,
            }))
        };
        match append() {
            Ok(None) => {}
            Ok(Some(outcome)) => waiter.acknowledged(0, outcome),
            Err(error) => waiter.acknowledged(0, Err(AppendRefusal::Partition(error))),
        }
    }

    /// Reads whole batches from `offset` on, up to the log end offset (for a load) or the high
    /// watermark.
    ///
    /// # Errors
    /// The errors of a client's read; `UNKNOWN_TOPIC_ID` if there is no such partition.
    pub(crate) fn read(
        &self,
        may_wait: &MayWait,
        id: &PartitionId,
        offset: i64,
        bytes_max: usize,
        upto_log_end: bool,
    ) -> Result<Bytes, KafkaError> {
        self.partition(id)?.read_upto(may_wait, offset, bytes_max, upto_log_end)
    }

    /// Returns a consistent snapshot of the offsets.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_ID`, or an error of the partition.
    pub(crate) fn offsets(
        &self,
        may_wait: &MayWait,
        id: &PartitionId,
    ) -> Result<PartitionOffsets, KafkaError> {
        self.partition(id)?.offsets(may_wait)
    }

    /// Makes an ISR pending. Returns an id for `settle_isr`; `None` if it is not possible now.
    pub fn propose_isr(
        &self,
        id: &PartitionId,
        leader_epoch: LeaderEpoch,
        partition_epoch: i32,
        isr: Vec<BrokerState>,
    ) -> Option<u64> {
        let partition = self.partition(id).ok()?;
        let proposal = partition.propose_isr(leader_epoch, partition_epoch, isr)?;
        Some(self.proposals.lock().open(&partition, proposal))
    }

    /// Applies the controller's response, unless the proposal was replaced. Another response may
    /// follow after `Unknown`.
    pub fn settle_isr(&self, id: u64, outcome: IsrOutcome) {
        let Some((partition, proposal)) = self.proposals.lock().find(id) else { return };
        if !partition.settle_isr(proposal, outcome) {
            self.proposals.lock().close(id);
        }
    }

    /// Returns a function that reports an offset or an error as `Maintained`.
    pub(super) fn maintained(
        &self,
        token: Token,
    ) -> impl FnOnce(Result<i64, KafkaError>) + Send + 'static {
        let events = self.host().events.clone();
        move |done| {
            let (error_code, offset) = match done {
                Ok(offset) => (0, offset),
                Err(error) => (error.code(), -1),
            };
            events.push(Event::Maintained { token, error_code, offset });
        }
    }

    /// Handles `DeleteRecords`. `Maintained` has the low watermark, once every live replica has
    /// deleted the records.
    pub fn delete_before(&self, token: Token, id: &PartitionId, offset: i64) {
        let tell = self.maintained(token);
        let partition = match self.partition(id) {
            Ok(partition) => partition,
            Err(error) => return tell(Err(error)),
        };
        partition.command(Urgency::Asked, move |partition, writer| {
            let moved = writer.and_then(|writer| partition.delete_before(offset, writer));
            let (log, log_start_offset) = match moved {
                Ok(moved) => moved,
                Err(error) => return tell(Err(error)),
            };
            partition.when_log_start_is_durable(
                &log,
                Urgency::Asked,
                move |partition, recorded| {
                    let mut guard = partition.lock();
                    match (guard.stored(recorded), guard.opened()) {
                        (Ok(()), Some(log)) => {
                            guard.when_low(&log, log_start_offset, Box::new(tell));
                        }
                        (Ok(()), None) => tell(Err(guard.unopened())),
                        (Err(error), _) => tell(Err(error)),
                    }
                },
            );
        });
    }

    /// Deletes the segments of all logs beyond their topics' limits, and expires idle producers.
    /// Opens a closed log if some of its segments may have to be deleted; failures are reported as
    /// partition states.
    ///
    /// `Maintained` follows when all partitions were checked. A busy partition is not awaited: its
    /// working thread checks it.
    pub fn enforce_retention(&self, token: Token) {
        let round = Arc::new(RetentionRound { events: self.host().events.clone(), token });
        let topics = self.topics.load_full();
        let host = self.host().clone();
        self.host().background.push(Urgency::Background, move |_| {
            for partition in topics.values().flat_map(Pages::iter) {
                if partition.ask_for_retention() {
                    let (partition, round) = (partition.clone(), round.clone());
                    host.background.push(Urgency::Background, move |may_wait| {
                        partition.work(may_wait);
                        drop(round);
                    });
                }
            }
        });
    }

    /// Sizes of those of `ids` whose logs exist, and the space of their disk; completes as
    /// `LogDirs`.
    ///
    /// Uses cached sizes; only logs that were never inspected are read from disk.
    pub fn describe_log_dirs(&self, token: Token, ids: &[PartitionId]) {
        let partitions: Vec<_> = ids.iter().filter_map(|id| self.partition(id).ok()).collect();
        let host = self.host().clone();
        self.host().background.push(Urgency::Asked, move |may_wait| {
            let (events, space) = (host.events.clone(), host.disk_space(may_wait));
            let sizes = Arc::new(LogSizes { events, token, space, sizes: Mutex::default() });
            for partition in partitions {
                partition.tell_size(&sizes);
            }
        });
    }

    /// The state of each idempotent producer of a partition; completes as `Producers`.
    pub fn describe_producers(&self, token: Token, id: &PartitionId) {
        let events = self.host().events.clone();
        let tell = move |described: Result<Vec<ProducerEntry>, KafkaError>| {
            let error_code = described.as_ref().err().map_or(0, |error| error.code());
            let producers = described.unwrap_or_default();
            events.push(Event::Producers { token, error_code, producers });
        };
        match self.partition(id) {
            Ok(partition) => partition.command(Urgency::Asked, move |partition, writer| {
                tell(writer.and_then(|writer| partition.producers(writer)));
            }),
            Err(error) => tell(Err(error)),
        }
    }

    /// Reads whole batches up to the log end offset; completes as `RecordsRead`.
    pub fn read_records(&self, token: Token, id: &PartitionId, offset: i64, bytes_max: usize) {
        let events = self.host().events.clone();
        let tell = move |read: Result<RecordsRead, KafkaError>| {
            let read = read.map_err(KafkaError::code);
            events.push(Event::RecordsRead { token, read });
        };
        match self.partition(id) {
            Ok(partition) => partition.command(Urgency::Asked, move |partition, writer| {
                tell(writer.and_then(|writer| partition.read_to_load(writer, offset, bytes_max)));
            }),
            Err(error) => tell(Err(error)),
        }
    }
}

/// Encodes `records` as one batch with the current time.
fn encoded(records: &[KeyValue], kind: BatchKind, now_ms: i64) -> Result<Vec<u8>, KafkaError> {
    let mut builder = BatchBuilder::new(kind.options());
    let mut batch = Vec::new();
    for (key, value) in records {
        let (key, value) = (key.as_deref(), value.as_deref());
        builder.append(now_ms, key, value, &[]).map_err(|_| KafkaError::InvalidRecord)?;
    }
    builder.build(&mut batch).map_err(|_| KafkaError::InvalidRecord)?;
    Ok(batch)
}
