//! The log of a follower, and its changes by responses of the leader.
//!
//! Each change has the leader epoch of its fetch (docs/PLANES.md S3). The epoch is checked under
//! the writer token, under which this node's own leader epochs start too. So a response of an older
//! epoch changes nothing, and records that were appended before a transition precede the start of
//! the next epoch (contract/replication.md#8, #16, #23).
//!
//! The log alone determines the offset of the next fetch: every change returns its [`Position`].
//!
//! # A damaged log
//! A damaged log is fetched from its first unreadable record on, and the fetched records are not
//! written. From these fetches the leader sees which records this replica lacks, and removes it
//! from the ISR. Once neither the ISR nor the ELR contains this broker, and the leader has
//! responded to a fetch from there, the log is truncated at the damage and fetched again
//! ([`Partition::give_up_damage`]). Until then it stays unchanged, so that a broker that is elected
//! from the ISR does not lead with fewer records: a leader with a damaged log serves no followers.
//!
//! If the damage is found while the replica follows, fetches for later offsets may still be in
//! flight, and from them the leader would conclude that this replica has the records before these
//! offsets. So the log is only truncated in a later leader epoch, or after a restart, which changes
//! the broker epoch.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_log::{AppendError, Damage, Log, OpenError, Recovery, StorageError};
use pykafka_record::{Batch, LeaderEpoch};

use crate::control_api::event::faults::Faults;
use crate::control_api::log_ring::Level;
use crate::kafka_error::KafkaError;
use crate::partition::guard::PartitionGuard;
use crate::partition::log::open_log::log_slot::LogSlot;
use crate::partition::replication::Role;
use crate::partition::threads::background::Urgency;
use crate::partition::write_queue::queue::WriterToken;
use crate::partition::{Partition, Survey, TARGET};

/// The offsets and the epoch that the next fetch of a follower contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// First readable offset.
    pub(crate) log_start_offset: i64,
    /// Log end offset (exclusive), where the next fetch starts.
    pub(crate) log_end_offset: i64,
    /// The latest epoch in the log, even if no record of it was fetched
    /// (contract/replication.md#17); `None` for an empty log.
    pub(crate) latest_epoch: Option<LeaderEpoch>,
}

impl Position {
    /// The position of a log that was never appended to.
    const NOTHING: Position =
        Position { log_start_offset: 0, log_end_offset: 0, latest_epoch: None };

    fn of(log: &Log) -> Position {
        let offsets = log.offsets();
        let damaged_at = log.damage().map_or(i64::MAX, |damage| damage.offset());
        if damaged_at < offsets.log_start_offset {
            return Position {
                log_start_offset: damaged_at,
                log_end_offset: damaged_at,
                latest_epoch: None,
            };
        }
        Position {
            log_start_offset: offsets.log_start_offset,
            log_end_offset: offsets.log_end_offset,
            latest_epoch: log.latest_epoch(),
        }
    }
}

/// A leader's response to a fetch, without an error and without a divergence.
#[derive(Debug, Clone)]
pub(crate) struct FetchedRecords {
    /// The log end offset of the follower when it sent the fetch.
    pub(crate) fetch_offset: i64,
    /// Whole batches; the last one may be cut off.
    pub(crate) records: Bytes,
    /// High watermark of the leader.
    pub(crate) high_watermark: i64,
    /// Log start offset of the leader.
    pub(crate) log_start_offset: i64,
}

/// The reason why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FollowError {
    /// The replica does not follow in this leader epoch any more, or was deleted. Nothing was
    /// changed.
    #[error("it does not follow in this leader epoch any more")]
    Superseded,
    /// The log is not written again without intervention.
    #[error("its log is not written any more: {0}")]
    Failed(String),
    /// The next attempt may succeed.
    #[error("{0}")]
    Refused(String),
}

impl Partition {
    /// Returns the position of a log that starts to follow in `leader_epoch`. Opens and recovers
    /// the log, unless it never had a record.
    ///
    /// # Errors
    /// All variants of [`FollowError`].
    pub(crate) fn begin_to_follow(
        &self,
        leader_epoch: LeaderEpoch,
        writer: &WriterToken,
    ) -> Result<Position, FollowError> {
        self.lock().check_follower(leader_epoch)?;
        if matches!(self.unopened(writer), Some(Survey::Nothing)) {
            return Ok(Position::NOTHING);
        }
        let log = self.log_to_follow(writer)?;
        if log.damage().is_none() {
            self.give_up_later_epochs(&log, leader_epoch)?;
            self.sync_as_promised(&log)?;
        }
        Ok(Position::of(&log))
    }

    /// Removes epochs later than the leader's, because the leader rejects each fetch with such an
    /// epoch. They come from a damaged `leader-epoch-checkpoint`, or from a batch with a damaged
    /// epoch, which no CRC covers.
    ///
    /// Records of such an epoch are truncated, like records after damage: if they were assigned to
    /// an earlier epoch, a divergence from the leader would not be detected.
    fn give_up_later_epochs(
        &self,
        log: &Arc<Log>,
        leader_epoch: LeaderEpoch,
    ) -> Result<(), FollowError> {
        let entries = log.epoch_entries();
        let Some(later) = entries.iter().find(|entry| entry.epoch > leader_epoch) else {
            return Ok(());
        };
        let (epoch, offset) = (later.epoch, later.start_offset.min(log.log_end_offset()));
        let text = format!("epoch {epoch}, later than {leader_epoch}, from offset {offset} on");
        if offset < log.log_end_offset()
            && let Some(event) = self.gives_up_records()
        {
            let text = format!("its log has {text}, and is fetched again {event}");
            return Err(FollowError::Refused(text));
        }
        self.note(Level::Warning, || format!("gives up {text}"));
        self.truncate_follower_to(log, offset).map(|_| ())
    }

    /// Returns the undamaged log, for a change by a response of the leader.
    fn log_to_change(&self, writer: &WriterToken) -> Result<Arc<Log>, FollowError> {
        let was_suspect = self.lock().suspect_in.is_some();
        let log = self.log_to_follow(writer)?;
        match log.damage() {
            None => Ok(log),
            // The response belongs to a fetch from another position.
            Some(damage) if was_suspect => Err(FollowError::Refused(damage.to_string())),
            Some(damage) => self.give_up_damage(&log, &damage, writer),
        }
    }

    /// Truncates the log at the damage, if this broker cannot be elected because of its records.
    /// The leader has responded to a fetch from there; a leader with this broker in its ISR would
    /// have refused it.
    fn give_up_damage(
        &self,
        log: &Log,
        damage: &Damage,
        writer: &WriterToken,
    ) -> Result<Arc<Log>, FollowError> {
        if let Some(event) = self.gives_up_records() {
            let text = format!("its log is damaged ({damage}), and is fetched again {event}");
            return Err(FollowError::Refused(text));
        }
        let given_up = self.host.directory.give_up_damage(log, self.topic_id);
        let (left, recovery) = self.replace_log(given_up, writer)?;
        let (end, bytes) = (left.log_end_offset(), recovery.truncated_bytes);
        self.note(Level::Warning, || {
            format!(
                "removes {bytes} bytes and continues at {end}, as its log was damaged: {damage}"
            )
        });
        Ok(left)
    }

    /// The event after which records may be truncated although a leader or a controller may count
    /// on them; `None` if they may be truncated now.
    fn gives_up_records(&self) -> Option<&'static str> {
        let guard = self.lock();
        let assignment = guard.replication.assignment();
        if assignment.may_elect(self.host.node_id) {
            Some("once this node is in neither ISR nor ELR")
        } else if guard.damaged_in == Some(assignment.leader_epoch) {
            Some("after a restart, or with the next leader epoch")
        } else {
            None
        }
    }

    /// Checks all of a log that has an unreadable batch.
    fn look_again(&self, log: &Log, writer: &WriterToken) -> Result<Arc<Log>, FollowError> {
        let found = self.host.directory.look_again(log, self.topic_id);
        let (log, recovery) = self.replace_log(found, writer)?;
        let mut guard = self.lock();
        let suspect_in = guard.suspect_in.take();
        let gives_up_records = log.damage().is_some() || log.latest_epoch() > suspect_in;
        guard.damaged_in = suspect_in.filter(|_| gives_up_records).or(guard.damaged_in);
        drop(guard);
        self.report_recovery(&recovery);
        Ok(log)
    }

    /// Replaces the closed log by another one.
    fn replace_log(
        &self,
        opened: Result<(Arc<Log>, Recovery), OpenError>,
        _writer: &WriterToken,
    ) -> Result<(Arc<Log>, Recovery), FollowError> {
        let mut guard = self.lock();
        let (log, recovery) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let text = error.to_string();
                guard.fail(&text);
                return Err(guard.failed_or_refused(text));
            }
        };
        if !matches!(guard.log, LogSlot::Open(_)) {
            log.discard();
            return Err(guard.failed_or_refused("it was closed".to_owned()));
        }
        guard.log = LogSlot::Open(log.clone());
        log.update_config(guard.config.clone());
        let ends = guard.ends(&log);
        guard.replication.truncated(ends);
        guard.version += 1;
        guard.change_faults(|faults| {
            *faults = Faults::default();
            faults.opened(recovery.damage.as_ref().map(ToString::to_string));
        });
        Ok((log, recovery))
    }

    /// Appends the records of the response unchanged, and applies the leader's high watermark and
    /// log start offset as far as the log reaches (contract/replication.md#16, #18, #19). A
    /// response to a fetch from another offset than the log end offset changes nothing.
    ///
    /// On return the records are as durable as the topic requires, so that the leader may count
    /// them after the next fetch. Records below the leader's high watermark are not counted any
    /// more, so a sync that was started is enough: a follower catches up as fast as it can write.
    ///
    /// # Errors
    /// All variants of [`FollowError`]; after an error of the log, some of the batches may have
    /// been appended.
    pub(crate) fn append_as_follower(
        &self,
        leader_epoch: LeaderEpoch,
        fetched: &FetchedRecords,
        writer: &WriterToken,
    ) -> Result<Position, FollowError> {
        self.lock().check_follower(leader_epoch)?;
        let log = self.log_to_change(writer)?;
        if log.log_end_offset() != fetched.fetch_offset {
            return Ok(Position::of(&log));
        }
        if !fetched.records.is_empty() {
            self.append_records(&log, leader_epoch, fetched)?;
        }
        let high_watermark = {
            let mut guard = self.lock();
            guard.check_follower(leader_epoch)?;
            guard.follow_high_watermark(&log, fetched.high_watermark);
            guard.replication.high_watermark()
        };
        self.follow_log_start(&log, fetched.log_start_offset.min(high_watermark))?;
        Ok(Position::of(&log))
    }

    fn append_records(
        &self,
        log: &Arc<Log>,
        leader_epoch: LeaderEpoch,
        fetched: &FetchedRecords,
    ) -> Result<(), FollowError> {
        let before = log.log_end_offset();
        let appended = log.append_as_follower(&fetched.records, leader_epoch);
        let mut guard = self.lock();
        guard.touch();
        let end = log.log_end_offset();
        let waits_for_sync = guard.syncs_every_append() && end >= fetched.high_watermark;
        if end > before {
            self.host.note_append();
            guard.credit_appended(fetched.records.len() as i64);
            if !waits_for_sync {
                guard.sync_after_append(log);
            }
        }
        if let Err(error) = appended {
            return Err(guard.append_refused(error));
        }
        drop(guard);
        // If the log appends none of the whole batches, their leader epoch has not started here.
        if end == before && Batch::split(&fetched.records).is_ok() {
            let reason = "the leader sends batches of a later leader epoch";
            return Err(FollowError::Refused(reason.into()));
        }
        if waits_for_sync { self.stored(log.flush()) } else { Ok(()) }
    }

    /// Makes the records that a fetch will report as durable as the topic requires.
    fn sync_as_promised(&self, log: &Log) -> Result<(), FollowError> {
        if self.lock().syncs_every_append() { self.stored(log.flush()) } else { Ok(()) }
    }

    /// True if the log is or may be damaged; then it is not enough to apply a high watermark.
    pub(crate) fn is_doubtful(&self) -> bool {
        let guard = self.lock();
        guard.suspect_in.is_some() || guard.opened().is_some_and(|log| log.damage().is_some())
    }

    /// Applies a high watermark of a response without records.
    pub(crate) fn follow_leader(&self, leader_epoch: LeaderEpoch, high_watermark: i64) {
        let mut guard = self.lock();
        if guard.check_follower(leader_epoch).is_ok()
            && let Some(log) = guard.opened()
        {
            guard.follow_high_watermark(&log, high_watermark);
        }
    }

    /// Raises the log start offset to that of the leader.
    fn follow_log_start(&self, log: &Arc<Log>, offset: i64) -> Result<(), FollowError> {
        if offset <= log.log_start_offset() {
            return Ok(());
        }
        let moved = self.move_log_start(log, || log.delete_before(offset));
        moved.map_err(|error| self.failed_or_refused(error))?;
        self.when_log_start_is_durable(log, Urgency::Background, |partition, recorded| {
            // The error was reported where it occurred; readers see the new log start offset
            // anyway.
            let _ = partition.lock().stored(recorded);
        });
        Ok(())
    }

    /// Truncates records that the leader does not have: the logs diverge in `epoch`, which ends at
    /// `end_offset` on the leader (contract/replication.md#13–#15). If this log does not know the
    /// epoch, it is truncated a part of the way, and the next fetch continues.
    ///
    /// # Errors
    /// All variants of [`FollowError`].
    pub(crate) fn truncate_as_follower(
        &self,
        leader_epoch: LeaderEpoch,
        (epoch, end_offset): (LeaderEpoch, i64),
        writer: &WriterToken,
    ) -> Result<Position, FollowError> {
        self.lock().check_follower(leader_epoch)?;
        let log = self.log_to_change(writer)?;
        let log_end_offset = log.log_end_offset();
        let own_end = log.end_offset_for_epoch(epoch).map_or(log_end_offset, |(_, end)| end);
        self.truncate_follower_to(&log, own_end.min(end_offset).min(log_end_offset))
    }

    /// Moves the log into the offset range of the leader's log, which does not contain this log's
    /// end (contract/replication.md#22): records after the leader's log end offset are truncated;
    /// if the leader's log starts after this log's end, all records are removed.
    ///
    /// # Errors
    /// All variants of [`FollowError`].
    pub(crate) fn go_to_leader(
        &self,
        leader_epoch: LeaderEpoch,
        (log_start_offset, log_end_offset): (i64, i64),
        writer: &WriterToken,
    ) -> Result<Position, FollowError> {
        self.lock().check_follower(leader_epoch)?;
        let log = self.log_to_change(writer)?;
        let own_end = log.log_end_offset();
        if log_end_offset < own_end {
            return self.truncate_follower_to(&log, log_end_offset);
        }
        if log_start_offset <= own_end {
            return Ok(Position::of(&log));
        }
        let text = || {
            format!(
                "removes its log up to {own_end} and continues at {log_start_offset}, the log start of its leader"
            )
        };
        self.note(Level::Warning, text);
        let restarted = self.host.directory.restart_log(&log, log_start_offset);
        self.truncated_as_follower(&log, restarted)
    }

    fn truncate_follower_to(&self, log: &Arc<Log>, offset: i64) -> Result<Position, FollowError> {
        let high_watermark = self.high_watermark();
        let own_end = log.log_end_offset();
        if offset < high_watermark {
            let text =
                || format!("truncates to {offset}, below its high watermark {high_watermark}");
            self.note(Level::Warning, text);
        } else if offset < own_end {
            self.note(Level::Info, || format!("truncates from {own_end} to {offset}"));
        }
        let truncated = self.host.directory.truncate_log(log, offset);
        self.truncated_as_follower(log, truncated)
    }

    fn truncated_as_follower(
        &self,
        log: &Arc<Log>,
        truncated: Result<(), StorageError>,
    ) -> Result<Position, FollowError> {
        self.stored(truncated)?;
        let mut guard = self.lock();
        let ends = guard.ends(log);
        guard.replication.truncated(ends);
        guard.version += 1;
        guard.check_unreadable();
        drop(guard);
        Ok(Position::of(log))
    }

    fn log_to_follow(&self, writer: &WriterToken) -> Result<Arc<Log>, FollowError> {
        let log = self.open_log(writer).map_err(|error| self.failed_or_refused(error))?;
        if self.lock().suspect_in.is_some() { self.look_again(&log, writer) } else { Ok(log) }
    }

    fn stored(&self, result: Result<(), StorageError>) -> Result<(), FollowError> {
        let Err(error) = result else { return Ok(()) };
        Err(self.lock().storage_refused(&error))
    }

    fn failed_or_refused(&self, error: KafkaError) -> FollowError {
        self.lock().failed_or_refused(error.name().to_owned())
    }

    fn note(&self, level: Level, text: impl FnOnce() -> String) {
        let (topic, index) = (&self.topic, self.index);
        self.host.log_ring.log(level, TARGET, || format!("{topic}-{index}: follower {}", text()));
    }
}

impl PartitionGuard<'_> {
    /// Checks that this broker follows in `leader_epoch`, and may write to its log.
    pub(in crate::partition) fn check_follower(
        &self,
        leader_epoch: LeaderEpoch,
    ) -> Result<(), FollowError> {
        let follows = self.replication.role() == Role::Follower;
        if !follows || self.replication.assignment().leader_epoch != leader_epoch {
            return Err(FollowError::Superseded);
        }
        match self.log {
            LogSlot::Left(_) => Err(FollowError::Superseded),
            LogSlot::Failed => Err(FollowError::Failed("an I/O error".to_owned())),
            LogSlot::Open(_) | LogSlot::Unopened => Ok(()),
        }
    }

    fn append_refused(&mut self, error: AppendError) -> FollowError {
        match error {
            AppendError::Storage(error) => self.storage_refused(&error),
            error => FollowError::Refused(error.to_string()),
        }
    }

    fn storage_refused(&mut self, error: &StorageError) -> FollowError {
        self.storage_failed(error);
        let is_read_only = matches!(error, StorageError::Damaged(_) | StorageError::ReadOnly);
        if is_read_only {
            return FollowError::Failed(error.to_string());
        }
        self.failed_or_refused(error.to_string())
    }

    fn failed_or_refused(&self, text: String) -> FollowError {
        match self.log {
            LogSlot::Left(_) => FollowError::Superseded,
            LogSlot::Failed => FollowError::Failed(text),
            LogSlot::Open(_) | LogSlot::Unopened => FollowError::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use pykafka_log::{Durability, OpenMode};
    use pykafka_record::{BatchMut, write_empty};

    use super::*;
    use crate::control_api::event::Event;
    use crate::control_api::event::faults::LogFault;
    use crate::control_api::image::PartitionEntry;
    use crate::partition::threads::may_wait::MayWait;
    use crate::testing::{Broker, NODE, TOPIC, batch, replicated};

    const OTHER: i32 = 2;
    const EPOCH: LeaderEpoch = LeaderEpoch::new(3);

    /// `t`-0 as a follower of node 2 in epoch 3.
    fn follower() -> (Broker, Arc<Partition>) {
        let mut broker = Broker::on_disk(Durability::Os).in_cluster();
        assigned(&mut broker, OTHER, EPOCH.get());
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        (broker, partition)
    }

    fn assigned(broker: &mut Broker, leader: i32, leader_epoch: i32) {
        let both = [NODE, OTHER];
        let leader_epoch = LeaderEpoch::new(leader_epoch);
        let partition_epoch = leader_epoch.get();
        let entry = replicated(partition_epoch, &both, &both);
        broker.replicate(PartitionEntry { leader, leader_epoch, ..entry }, &[]);
    }

    fn writing(
        partition: &Partition,
        work: impl FnOnce(&Partition, &WriterToken) -> Result<Position, FollowError> + Send + 'static,
    ) -> Result<Position, FollowError> {
        let may_wait = MayWait::as_documented();
        let work = |partition: &Partition, writer: &WriterToken| Ok(work(partition, writer));
        partition.with_writer(&may_wait, work).unwrap()
    }

    fn begin(partition: &Partition, leader_epoch: i32) -> Result<Position, FollowError> {
        let leader_epoch = LeaderEpoch::new(leader_epoch);
        writing(partition, move |partition, writer| partition.begin_to_follow(leader_epoch, writer))
    }

    /// Appends a batch of one record, written in `batch_epoch`, from a response in `leader_epoch`.
    fn append(
        partition: &Partition,
        leader_epoch: i32,
        (fetch_offset, batch_epoch): (i64, i32),
        high_watermark: i64,
    ) -> Result<Position, FollowError> {
        let mut records = batch(&["a"]);
        let mut stamped = BatchMut::new(&mut records).unwrap();
        stamped.set_base_offset(fetch_offset);
        stamped.set_partition_leader_epoch(LeaderEpoch::new(batch_epoch));
        append_bytes(partition, leader_epoch, fetch_offset, records, high_watermark)
    }

    fn append_bytes(
        partition: &Partition,
        leader_epoch: i32,
        fetch_offset: i64,
        records: Vec<u8>,
        high_watermark: i64,
    ) -> Result<Position, FollowError> {
        let (leader_epoch, records) = (LeaderEpoch::new(leader_epoch), Bytes::from(records));
        let fetched = FetchedRecords { fetch_offset, records, high_watermark, log_start_offset: 0 };
        writing(partition, move |partition, writer| {
            partition.append_as_follower(leader_epoch, &fetched, writer)
        })
    }

    fn at(log_end_offset: i64, latest_epoch: i32) -> Position {
        let latest_epoch = Some(LeaderEpoch::new(latest_epoch));
        Position { log_start_offset: 0, log_end_offset, latest_epoch }
    }

    #[test]
    fn a_log_that_never_had_a_record_is_not_opened_for_following() {
        let (_broker, partition) = follower();
        assert_eq!(begin(&partition, 3), Ok(Position::NOTHING));
        assert!(partition.opened_log().is_none());
    }

    /// contract/replication.md#18, #19.
    #[test]
    fn records_are_appended_unchanged_and_the_high_watermark_follows_the_leader() {
        let (_broker, partition) = follower();
        assert_eq!(append(&partition, 3, (0, 2), 5), Ok(at(1, 2)));
        assert_eq!(partition.high_watermark(), 1);
        assert_eq!(append(&partition, 3, (1, 3), 1), Ok(at(2, 3)));
        assert_eq!(partition.high_watermark(), 1);
        partition.follow_leader(EPOCH, 2);
        assert_eq!(partition.high_watermark(), 2);
    }

    /// A compacted log keeps the last batch of each producer without its records.
    #[test]
    fn a_batch_without_records_is_appended() {
        let (_broker, partition) = follower();
        let of_one = batch(&["a"]);
        let (of_one, _) = Batch::split(&of_one).unwrap();
        let mut records = Vec::new();
        write_empty(&of_one, &mut records);
        BatchMut::new(&mut records).unwrap().set_partition_leader_epoch(EPOCH);
        assert_eq!(append_bytes(&partition, 3, 0, records, 1), Ok(at(1, 3)));
        assert_eq!(partition.high_watermark(), 1);
    }

    /// A follower of epoch 3 with these offsets and epochs of batches, and an epoch 50 from
    /// `start_offset` on.
    fn follower_with_later_epoch(
        batches: &[(i64, i32)],
        start_offset: i64,
    ) -> (Broker, Arc<Partition>) {
        let (broker, partition) = follower();
        for batch in batches {
            append(&partition, 3, *batch, 0).unwrap();
        }
        let later = LeaderEpoch::new(50);
        partition.opened_log().unwrap().assign_epoch(later, start_offset).unwrap();
        (broker, partition)
    }

    /// The leader would reject each fetch with this epoch.
    #[test]
    fn later_epoch_without_records_is_forgotten() {
        let (_broker, partition) = follower_with_later_epoch(&[(0, 2)], 1);
        assert_eq!(begin(&partition, 3), Ok(at(1, 2)));
        assert_eq!(append(&partition, 3, (1, 3), 0), Ok(at(2, 3)));
    }

    /// The records may differ from the leader's, which would not be detected under an earlier
    /// epoch.
    #[test]
    fn records_of_a_later_epoch_are_kept_while_isr_or_elr_name_their_broker() {
        for (isr, elr) in [(vec![NODE, OTHER], vec![]), (vec![OTHER], vec![NODE])] {
            let (mut broker, partition) = follower_with_later_epoch(&[(0, 2), (1, 2)], 1);
            let entry = replicated(9, &[NODE, OTHER], &isr);
            let (leader, leader_epoch) = (OTHER, EPOCH);
            broker.replicate(PartitionEntry { leader, leader_epoch, elr, ..entry }, &[]);
            let refused = begin(&partition, 3);
            assert!(matches!(refused, Err(FollowError::Refused(_))), "{refused:?}");
            let log = partition.opened_log().unwrap();
            assert_eq!(log.log_end_offset(), 2);
            assert_eq!(log.latest_epoch(), Some(LeaderEpoch::new(50)));
        }
    }

    #[test]
    fn records_of_a_later_epoch_are_truncated_outside_of_isr_and_elr() {
        let (mut broker, partition) = follower_with_later_epoch(&[(0, 2), (1, 2), (2, 3)], 1);
        let entry = replicated(9, &[NODE, OTHER], &[OTHER]);
        broker.replicate(PartitionEntry { leader: OTHER, leader_epoch: EPOCH, ..entry }, &[]);
        assert_eq!(begin(&partition, 3), Ok(at(1, 2)));
        assert_eq!(append(&partition, 3, (1, 3), 2), Ok(at(2, 3)));
    }

    /// The leader of this epoch cannot have such batches. The next fetch follows after a pause.
    #[test]
    fn batches_of_a_later_leader_epoch_are_rejected() {
        let (_broker, partition) = follower();
        assert_eq!(append(&partition, 3, (0, 3), 0), Ok(at(1, 3)));
        assert!(matches!(append(&partition, 3, (1, 4), 2), Err(FollowError::Refused(_))));
        assert_eq!(begin(&partition, 3), Ok(at(1, 3)));
    }

    /// docs/PLANES.md S3.
    #[test]
    fn data_of_an_older_leader_epoch_changes_nothing() {
        let (mut broker, partition) = follower();
        assert_eq!(append(&partition, 3, (0, 3), 0), Ok(at(1, 3)));
        assigned(&mut broker, OTHER, 4);
        assert_eq!(append(&partition, 3, (1, 3), 2), Err(FollowError::Superseded));
        assert_eq!(begin(&partition, 3), Err(FollowError::Superseded));
        let truncated = writing(&partition, |partition, writer| {
            partition.truncate_as_follower(EPOCH, (EPOCH, 0), writer)
        });
        assert_eq!(truncated, Err(FollowError::Superseded));
        let moved =
            writing(&partition, |partition, writer| partition.go_to_leader(EPOCH, (9, 9), writer));
        assert_eq!(moved, Err(FollowError::Superseded));
        partition.follow_leader(EPOCH, 1);
        assert_eq!(begin(&partition, 4), Ok(at(1, 3)));
        assert_eq!(partition.high_watermark(), 0);
    }

    /// contract/replication.md#16.
    #[test]
    fn a_reply_to_a_fetch_that_started_elsewhere_changes_nothing() {
        let (_broker, partition) = follower();
        assert_eq!(append(&partition, 3, (0, 3), 0), Ok(at(1, 3)));
        assert_eq!(append(&partition, 3, (0, 3), 1), Ok(at(1, 3)));
        assert_eq!(append(&partition, 3, (2, 3), 1), Ok(at(1, 3)));
        assert_eq!(partition.high_watermark(), 0);
    }

    #[test]
    fn a_batch_with_a_wrong_checksum_is_rejected_and_can_be_fetched_again() {
        let (_broker, partition) = follower();
        let mut torn = batch(&["a"]);
        *torn.last_mut().unwrap() ^= 1;
        let refused = append_bytes(&partition, 3, 0, torn, 0);
        assert!(matches!(refused, Err(FollowError::Refused(_))), "{refused:?}");
        assert_eq!(append(&partition, 3, (0, 3), 1), Ok(at(1, 3)));
    }

    /// contract/replication.md#14, #15: both logs have epoch 1; after it, this one has epoch 2, and
    /// the leader has epoch 3.
    #[test]
    fn a_log_is_truncated_where_it_diverges_from_the_leader() {
        let (_broker, partition) = follower();
        for (offset, epoch) in [(0, 1), (1, 1), (2, 2), (3, 2)] {
            append(&partition, 3, (offset, epoch), 3).unwrap();
        }
        let truncate = |epoch: i32, end_offset: i64| {
            let parting = (LeaderEpoch::new(epoch), end_offset);
            writing(&partition, move |partition, writer| {
                partition.truncate_as_follower(EPOCH, parting, writer)
            })
        };
        assert_eq!(truncate(1, 9), Ok(at(2, 1)));
        assert_eq!(partition.high_watermark(), 2);
        assert_eq!(truncate(1, 1), Ok(at(1, 1)));
        assert_eq!(append(&partition, 3, (1, 3), 2), Ok(at(2, 3)));
    }

    /// A damaged log with the records 0 to 4, of which 2 cannot be read; it follows in epoch 3
    /// again.
    fn damaged_follower(isr: &[i32], elr: &[i32]) -> (Broker, Arc<Partition>) {
        let mut broker = Broker::on_disk(Durability::Fsync).in_cluster();
        assigned(&mut broker, OTHER, EPOCH.get());
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        for offset in 0..5 {
            append(&partition, 3, (offset, 3), offset).unwrap();
        }
        let size = partition.opened_log().unwrap().size_bytes() / 5;
        drop(partition);
        let directory = &broker.ctx.partitions.host().directory;
        let path = directory.path().join("t-0").join(format!("{:020}.log", 0));
        let file = directory.disk().open(&path, OpenMode::Write).unwrap();
        file.write_at(&[0x55; 4], 3 * size - 4).unwrap();
        let mut broker = broker.killed_and_restarted(Durability::Fsync).in_cluster();
        let entry = replicated(3, &[NODE, OTHER], isr);
        let (leader, leader_epoch, elr) = (OTHER, EPOCH, elr.to_vec());
        broker.replicate(PartitionEntry { leader, leader_epoch, elr, ..entry }, &[]);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert_eq!(begin(&partition, 3), Ok(at(2, 3)));
        (broker, partition)
    }

    /// docs/DURABILITY.md.
    #[test]
    fn a_damaged_log_is_kept_while_the_isr_or_elr_contain_its_broker() {
        for (isr, elr) in [(&[NODE, OTHER][..], &[][..]), (&[OTHER], &[NODE])] {
            let (_broker, partition) = damaged_follower(isr, elr);
            let refused = append(&partition, 3, (2, 3), 5);
            assert!(matches!(refused, Err(FollowError::Refused(_))), "{refused:?}");
            assert!(partition.opened_log().unwrap().damage().is_some());
        }
    }

    /// Their fetches fail, but they may have all committed records.
    #[test]
    fn a_damaged_leader_removes_no_follower_from_the_isr() {
        let (mut broker, _partition) = damaged_follower(&[NODE, OTHER], &[]);
        assigned(&mut broker, NODE, 4);
        broker.events();
        broker.clock.advance_ms(3_600_000);
        broker.ctx.partitions.scan_followers();
        broker.wait_idle();
        let told = broker.events();
        assert!(!told.iter().any(|event| matches!(event, Event::Replica { .. })), "{told:?}");
    }

    /// docs/DURABILITY.md.
    #[test]
    fn a_damaged_log_is_truncated_at_the_damage_and_continues_there() {
        let (broker, partition) = damaged_follower(&[OTHER], &[]);
        for offset in 2..6 {
            assert_eq!(append(&partition, 3, (offset, 3), 5), Ok(at(offset + 1, 3)));
        }
        assert_eq!(partition.high_watermark(), 5);
        drop(partition);
        let mut broker = broker.killed_and_restarted(Durability::Fsync).in_cluster();
        assigned(&mut broker, OTHER, 4);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert_eq!(begin(&partition, 4), Ok(at(6, 3)));
        assert_eq!(partition.opened_log().unwrap().damage(), None);
    }

    #[test]
    fn the_end_of_damage_is_reported() {
        let (broker, partition) = damaged_follower(&[OTHER], &[]);
        assert_eq!(broker.faults(), [vec![LogFault::ReadOnly]]);
        assert_eq!(append(&partition, 3, (2, 3), 5), Ok(at(3, 3)));
        assert_eq!(broker.faults(), [vec![]]);
    }

    #[test]
    fn a_damaged_log_that_starts_a_leader_epoch_is_reported_as_damaged() {
        let (mut broker, partition) = damaged_follower(&[NODE, OTHER], &[]);
        assigned(&mut broker, NODE, 4);
        broker.wait_idle();
        assert!(partition.opened_log().unwrap().damage().is_some());
        assert_eq!(broker.faults(), [vec![LogFault::ReadOnly]]);
    }

    /// docs/DURABILITY.md.
    #[test]
    fn an_unreadable_batch_causes_a_check_of_the_whole_log() {
        let (mut broker, partition) = follower();
        for offset in 0..5 {
            append(&partition, 3, (offset, 3), offset).unwrap();
        }
        let log = partition.opened_log().unwrap();
        log.flush().unwrap();
        let path = log.dir().join(format!("{:020}.log", 0));
        let file =
            broker.ctx.partitions.host().directory.disk().open(&path, OpenMode::Write).unwrap();
        // The size field of the third batch.
        file.write_at(&[0x55; 4], 2 * log.size_bytes() / 5 + 8).unwrap();
        let truncated = writing(&partition, |partition, writer| {
            partition.truncate_as_follower(EPOCH, (EPOCH, 4), writer)
        });
        assert!(matches!(truncated, Err(FollowError::Refused(_))), "{truncated:?}");
        assert!(partition.is_doubtful());
        assert_eq!(begin(&partition, 3), Ok(at(2, 3)));
        assert_eq!(log.write_error().map(|error| error.to_string()), Some("log is closed".into()));
        let refused = append(&partition, 3, (2, 3), 5);
        assert!(matches!(refused, Err(FollowError::Refused(_))), "{refused:?}");
        let entry = replicated(9, &[NODE, OTHER], &[OTHER]);
        broker.replicate(PartitionEntry { leader: OTHER, leader_epoch: EPOCH, ..entry }, &[]);
        let refused = append(&partition, 3, (2, 3), 5);
        assert!(matches!(refused, Err(FollowError::Refused(_))), "{refused:?}");
        let (entry, leader_epoch) = (replicated(10, &[NODE, OTHER], &[OTHER]), LeaderEpoch::new(4));
        broker.replicate(PartitionEntry { leader: OTHER, leader_epoch, ..entry }, &[]);
        assert_eq!(begin(&partition, 4), Ok(at(2, 3)));
        assert_eq!(append(&partition, 4, (2, 3), 5), Ok(at(3, 3)));
    }

    /// contract/replication.md#8.
    #[test]
    fn a_follower_that_becomes_leader_starts_its_epoch_at_its_log_end() {
        let (mut broker, partition) = follower();
        append(&partition, 3, (0, 3), 1).unwrap();
        assigned(&mut broker, NODE, 4);
        assert_eq!(append(&partition, 3, (1, 3), 2), Err(FollowError::Superseded));
        broker.append_waiting_for_nobody(&batch(&["b"]));
        let log = partition.opened_log().unwrap();
        let entries: Vec<_> = log
            .epoch_entries()
            .iter()
            .map(|entry| (entry.epoch.get(), entry.start_offset))
            .collect();
        assert_eq!(entries, [(3, 0), (4, 1)]);
        assert_eq!(log.log_end_offset(), 2);
    }
}
