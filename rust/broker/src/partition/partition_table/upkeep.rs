//! Periodic work on all partitions, and their end.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pykafka_log::{LogDirectory, StorageError};

use super::{DELETED_AT_ONCE_MAX, PartitionTable};
use crate::control_api::event::{DiskStateKind, Event};
use crate::control_api::log_ring::Level;
use crate::partition::log::open_log::log_slot::Departure;
use crate::partition::pending_deletions::{Deletions, Gone};
use crate::partition::threads::background::Urgency;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::{Host, Partition};

const TARGET: &str = "broker.partition";

impl PartitionTable {
    /// Called at the start, after all partitions are known: corrects the topic ids of their
    /// checkpoints, renames the directories of unknown partitions to strays, as Kafka's
    /// `LogManager` does, and reports them.
    pub(crate) fn settle_directories(&self, _: &MayWait) {
        let all = self.all();
        let ids = all.iter().map(|one| (&*one.topic, one.index, one.topic_id));
        if let Err(error) = self.host.directory.correct_topic_ids(ids) {
            self.host.report_failed(&error);
        }
        let known: HashSet<_> =
            all.iter().map(|partition| (partition.topic.clone(), partition.index)).collect();
        let is_known = |topic: &str, index| known.contains(&(Arc::from(topic), index));
        for ((topic, index), renamed) in self.host.directory.mark_strays(is_known) {
            match renamed {
                Ok(()) => self.host.report_stray(&topic, index),
                Err(error) => self.host.report_failed(&error),
            }
        }
    }

    /// Starts the syncs whose `flush.ms` has passed; removes fully synced partitions from the dirty
    /// list.
    pub fn sync_due(&self) {
        let now_ms = self.host.clock.now_ms();
        let dirty = std::mem::take(&mut *self.host.dirty.lock());
        let mut still_dirty: Vec<_> =
            dirty.into_iter().filter(|partition| partition.sync_if_due(now_ms)).collect();
        self.host.dirty.lock().append(&mut still_dirty);
    }

    /// Scans the followers of all partitions that are led here, on a maintenance thread: a follower
    /// that has stopped is only detected in this way.
    pub(crate) fn scan_followers(&self) {
        let host = self.host.clone();
        self.host.background.push(Urgency::Background, move |_| host.scan_followers());
    }

    /// Runs a tick for partitions in use, which closes the files of idle ones.
    pub fn release_idle(&self) {
        let listed = std::mem::take(&mut *self.host.listed.lock());
        let mut kept: Vec<_> = (listed.into_iter())
            .filter(|partition| partition.upgrade().is_some_and(|partition| partition.tick()))
            .collect();
        let mut listed = self.host.listed.lock();
        kept.append(&mut listed);
        *listed = kept;
    }

    /// Writes recovery points, log start offsets and high watermarks, and removes files whose delay
    /// has passed.
    pub(crate) fn checkpoint(&self, _: &MayWait) {
        let closed = self.closed.lock();
        if *closed {
            return;
        }
        let now_ms = self.host.clock.now_ms();
        for partition in self.all() {
            let Some(log) = partition.opened_log() else { continue };
            if let Err(error) = log.delete_expired_files(now_ms) {
                partition.note_storage_error(&error);
            }
        }
        self.release_idle();
        let directory = &self.host.directory;
        // In this order, because on a full disk the checkpoints need the freed space.
        let removed = directory.remove_deleted(now_ms);
        let written = directory.checkpoint(&self.high_watermarks());
        for error in [removed, written].iter().filter_map(|result| result.as_ref().err()) {
            self.host.report_failed(error);
        }
    }

    /// Closes all partitions: waiting requests fail, logs are stored and synced, and the directory
    /// is marked clean and unlocked. A failed log leaves the directory unclean, so that the next
    /// start recovers it. The threads of all pools end, even while this broker is still referenced.
    pub(crate) fn close(&self, may_wait: &MayWait) {
        let high_watermarks = self.high_watermarks();
        self.end(may_wait, |directory| {
            directory.checkpoint(&high_watermarks).and_then(|()| directory.close(true))
        });
    }

    /// Ends all partitions as a crash of the process would: nothing is stored, synced or marked.
    pub(crate) fn abandon(&self, may_wait: &MayWait) {
        self.end(may_wait, |directory| {
            directory.abandon();
            Ok(())
        });
    }

    fn end(&self, may_wait: &MayWait, end: impl FnOnce(&LogDirectory) -> Result<(), StorageError>) {
        let mut closed = self.closed.lock();
        if std::mem::replace(&mut *closed, true) {
            return;
        }
        self.host.dirty.lock().clear();
        for partition in &self.all() {
            partition.close();
        }
        // No new round starts from here on; running rounds end before the files may belong to
        // another process.
        self.host.wait_idle(may_wait);
        if let Err(error) = end(&self.host.directory) {
            self.host.report_failed(&error);
        }
        let Host { syncer, checkpointers, writers, workers, .. } = &*self.host;
        for pool in [syncer, checkpointers, writers, workers] {
            pool.close();
        }
    }

    /// The high watermarks of partitions with an open log.
    fn high_watermarks(&self) -> Vec<(String, i32, i64)> {
        (self.all().iter())
            .filter(|partition| partition.opened_log().is_some())
            .map(|partition| {
                (partition.topic.to_string(), partition.index, partition.high_watermark())
            })
            .collect()
    }
}

impl Host {
    fn scan_followers(&self) {
        let listed = std::mem::take(&mut *self.replicated.lock());
        let mut kept: Vec<_> = (listed.into_iter())
            .filter(|partition| partition.upgrade().is_some_and(|one| one.scan_followers()))
            .collect();
        self.replicated.lock().append(&mut kept);
    }

    /// Deletes partitions that were removed from the table. Those beyond [`DELETED_AT_ONCE_MAX`]
    /// are deleted on the background queue, so that the time of a step does not grow with the
    /// topic. A new partition with one of their names waits until they are gone.
    pub(super) fn delete(self: &Arc<Host>, departure: Departure, topics: Vec<Gone>) {
        if topics.is_empty() {
            return;
        }
        self.pending_deletions.begin(&topics);
        let deletions = Arc::new(Deletions(self.clone()));
        for partition in partitions_of(&topics).take(DELETED_AT_ONCE_MAX) {
            partition.delete(departure, &deletions);
        }
        if partitions_of(&topics).nth(DELETED_AT_ONCE_MAX).is_some() {
            self.background.push(Urgency::Asked, move |_| {
                for partition in partitions_of(&topics).skip(DELETED_AT_ONCE_MAX) {
                    partition.delete(departure, &deletions);
                }
            });
        }
    }

    /// Waits until no thread works for the partitions and none is about to: a task of one pool may
    /// queue one in another pool.
    pub(crate) fn wait_idle(&self, may_wait: &MayWait) {
        let begun = || self.background.begun() + self.writers.begun() + self.syncer.begun();
        let mut seen = begun();
        loop {
            self.background.wait_idle(may_wait);
            self.writers.wait_idle(may_wait);
            self.syncer.wait_idle(may_wait);
            match begun() {
                same if same == seen => return,
                more => seen = more,
            }
        }
    }

    /// Reports a directory that does not belong to a topic.
    pub(in crate::partition) fn report_stray(&self, topic: &str, index: i32) {
        self.log_ring.log(Level::Warning, TARGET, || {
            format!(
                "the directory {topic}-{index} is of a deleted topic, of another topic, or of one that the metadata \
                 lost: it is kept with all its records, and its name ends in -stray now; to serve them again create \
                 the topic, stop the broker, remove partition.metadata from that directory and rename it to \
                 {topic}-{index}"
            )
        });
    }

    /// Reports an error of the directory itself.
    pub(in crate::partition) fn report_failed(&self, error: &StorageError) {
        let state = match error {
            // The next append or probe that finds free space reports the end of this state.
            StorageError::NoSpace { .. } if self.is_disk_full.swap(true, Ordering::Relaxed) => {
                return;
            }
            StorageError::NoSpace { .. } => DiskStateKind::Full,
            // The disk is unchanged; the next upkeep retries.
            StorageError::Exhausted { .. } => {
                return self.log_ring.log(Level::Warning, TARGET, || error.to_string());
            }
            _ => DiskStateKind::Failed,
        };
        self.events.push(Event::DiskState { state, reason: error.to_string() });
    }
}

fn partitions_of(topics: &[Gone]) -> impl Iterator<Item = &Arc<Partition>> {
    topics.iter().flat_map(|(_, partitions)| partitions.iter())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use pykafka_forks::Mutex;
    use pykafka_log::Durability;

    use crate::control_api::event::DiskStateKind;
    use crate::control_api::event::faults::LogFault;
    use crate::control_api::image::delta::ImageDelta;
    use crate::maintenance;
    use crate::partition::log::open_log::log_slot::LogSlot;
    use crate::partition::partition_table::DELETED_AT_ONCE_MAX;
    use crate::partition::threads::background::Urgency;
    use crate::partition::threads::may_wait::MayWait;
    use crate::partition::{Host, Partition};
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, TOPIC, batch, pending, replied, request_of, topic};

    #[test]
    fn a_stop_does_not_deadlock_with_a_checkpoint() {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        let host = broker.ctx.partitions.host();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock();
        let writing = gate.clone();
        host.writers.submit(move |_| drop(writing.lock()));
        thread::scope(|scope| {
            let stop = scope.spawn(|| broker.ctx.partitions.close(&MayWait::as_documented()));
            while broker.ctx.partitions.closed.try_lock().is_some() {
                thread::yield_now();
            }
            let begun = || host.checkpointers.begun() + host.syncer.begun();
            let before = begun();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            broker.ctx.network.serving.send_replace(true);
            let checkpoint = runtime.spawn(maintenance::begin(broker.ctx.clone()));
            while begun() == before {
                runtime.block_on(tokio::task::yield_now());
            }
            drop(held);
            stop.join().unwrap();
            runtime.block_on(checkpoint).unwrap();
        });
    }

    #[test]
    fn checkpoint_after_the_end_writes_nothing() {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        assert_eq!(broker.append(&batch(&["a"])), 0);
        let partitions = &broker.ctx.partitions;
        partitions.close(&MayWait::as_documented());
        let path = Path::new("/data/recovery-point-offset-checkpoint");
        let disk = partitions.host().directory.disk();
        assert_eq!(disk.read(path).unwrap(), b"0\n1\nt 0 1\n");
        disk.remove_file(path).unwrap();
        partitions.checkpoint(&MayWait::as_documented());
        assert!(!disk.exists(path));
    }

    #[test]
    fn deleted_directories_are_removed_even_if_no_checkpoint_can_be_written() {
        let mut broker =
            Broker::on_disk(Durability::Os).with_topic(1, &[("file.delete.delay.ms", "0")]);
        assert_eq!(broker.append(&batch(&["a"])), 0);
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        broker.gate.fail();
        let (partitions, may_wait) = (&broker.ctx.partitions, MayWait::as_documented());
        partitions.host().wait_idle(&may_wait);
        let deleted = || {
            let entries = partitions.host().directory.disk().list(Path::new("/data")).unwrap();
            entries.iter().filter(|entry| entry.is_dir).count()
        };
        assert_eq!(deleted(), 1);
        partitions.checkpoint(&may_wait);
        assert_eq!(deleted(), 0);
    }

    #[test]
    fn a_disk_too_full_for_checkpoints_is_reported_once_until_an_append_succeeds() {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        assert_eq!(broker.append(&batch(&["a"])), 0);
        broker.events();
        broker.gate.fill_at(Op::Write, "/data");
        broker.ctx.partitions.checkpoint(&MayWait::as_documented());
        assert_eq!(broker.disk_states(), [DiskStateKind::Full]);
        broker.ctx.partitions.checkpoint(&MayWait::as_documented());
        assert_eq!(broker.disk_states(), []);
        broker.gate.heal();
        assert_eq!(broker.append(&batch(&["b"])), 1);
        assert_eq!(broker.disk_states(), [DiskStateKind::Ok]);
    }

    #[test]
    fn a_step_deletes_a_bounded_number_of_partitions_and_leaves_the_others_to_the_lane() {
        let partitions = 4 * DELETED_AT_ONCE_MAX;
        let mut broker = Broker::on_disk(Durability::Os).with_topic(partitions as i32, &[]);
        broker.events();
        let led = broker.ctx.partitions.all();
        let deleted = || {
            let is_deleted = |one: &&Arc<Partition>| matches!(one.lock().log, LogSlot::Left(_));
            led.iter().filter(is_deleted).count()
        };
        let is_free = Arc::new(Mutex::new(()));
        let held = is_free.lock();
        for _ in 0..32 {
            let is_free = is_free.clone();
            broker
                .ctx
                .partitions
                .host()
                .background
                .push(Urgency::Asked, move |_| drop(is_free.lock()));
        }
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        assert_eq!(deleted(), DELETED_AT_ONCE_MAX);
        assert!(broker.ctx.partitions.get(&TOPIC, partitions as i32 - 1).is_none());
        let again = topic("t", [8; 16], partitions as i32, &[]);
        broker.apply(ImageDelta { topics: vec![again], ..ImageDelta::default() });
        let last = broker.ctx.partitions.get(&[8; 16], partitions as i32 - 1).unwrap();
        let mut opening = last.opening().expect("its predecessor is not gone");
        assert!(opening.try_recv().is_err());
        drop(held);
        let _ = opening.blocking_recv();
        assert!(last.opened_log().is_some());
        broker.wait_idle();
        assert_eq!(deleted(), partitions);
    }

    /// Number of syncs of the data directory when a topic with this many logs is deleted. One sync
    /// per log would take seconds for a thousand logs.
    fn directory_syncs_of_a_deletion(partitions: i32) -> usize {
        let mut broker = Broker::on_disk(Durability::Os).with_topic(partitions, &[]);
        for partition in 0..partitions {
            let records = batch(&["a"]);
            let produced =
                broker.produce_request(9, &request_of(1, &[(partition, Some(&records))]));
            replied(produced);
        }
        broker.ctx.partitions.checkpoint(&MayWait::as_documented());
        broker.wait_idle();
        let syncs = |broker: &Broker| broker.gate.count(Op::SyncDir, Path::new("/data"));
        let before = syncs(&broker);
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        broker.wait_idle();
        syncs(&broker) - before
    }

    #[test]
    fn a_step_of_deletions_syncs_the_directory_as_often_for_forty_logs_as_for_one() {
        assert_eq!(directory_syncs_of_a_deletion(40), directory_syncs_of_a_deletion(1));
    }

    #[test]
    fn a_deleted_topic_is_freed_by_maintenance_threads() {
        let mut broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        let topic = Arc::downgrade(broker.ctx.image.load().topic("t").unwrap());
        let is_free = Arc::new(Mutex::new(()));
        let held = is_free.lock();
        for _ in 0..32 {
            let is_free = is_free.clone();
            let threads = &broker.ctx.partitions.host().background;
            threads.push(Urgency::Asked, move |_| drop(is_free.lock()));
        }
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        assert!(topic.upgrade().is_some(), "the caller of the step freed it");
        drop(held);
        broker.wait_idle();
        assert!(topic.upgrade().is_none());
    }

    #[test]
    fn a_recreated_topic_lacks_no_records_of_its_predecessor() {
        let mut broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["old"]));
        broker.ctx.partitions.checkpoint(&MayWait::as_documented());
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        let again = || topic("t", [8; 16], 1, &[]);
        broker.apply(ImageDelta { topics: vec![again()], ..ImageDelta::default() });
        broker.wait_idle();
        // Killed before anything is appended; then the renamed directory is removed.
        let disk = broker.ctx.partitions.host().directory.disk().clone();
        for name in names(&broker) {
            disk.remove_dir_all(&Path::new("/data").join(name)).unwrap();
        }
        let mut broker = broker.killed_and_restarted(Durability::Fsync);
        broker.apply(ImageDelta { topics: vec![again()], ..ImageDelta::default() });
        broker.append_waiting(&batch(&["new"]));
        let log = broker.ctx.partitions.get(&[8; 16], 0).unwrap().opened_log().unwrap();
        assert_eq!((log.log_end_offset(), log.damage()), (1, None));
    }

    fn recovery_points(broker: &Broker) -> String {
        let disk = broker.ctx.partitions.host().directory.disk();
        let path = Path::new("/data/recovery-point-offset-checkpoint");
        String::from_utf8(disk.read(path).unwrap()).unwrap()
    }

    #[test]
    fn a_deletion_that_waits_for_a_write_is_made_durable_after_it() {
        let mut broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["old"]));
        broker.ctx.partitions.checkpoint(&MayWait::as_documented());
        assert_eq!(recovery_points(&broker), "0\n1\nt 0 1\n");
        broker.wait_idle();
        broker.gate.hold_at(Op::Write, "/data/t-0");
        let written = pending(broker.produce(9, -1, &batch(&["more"])));
        broker.gate.until_waiting(1);
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        broker.ctx.partitions.host().background.wait_idle(&MayWait::as_documented());
        broker.gate.open();
        drop(written);
        broker.wait_idle();
        assert_eq!(recovery_points(&broker), "0\n0\n");
    }

    /// Each command of one pool queues another one in another pool.
    fn hop(host: &Arc<Host>, left: usize, ended: Arc<AtomicBool>) {
        let Some(left) = left.checked_sub(1) else { return ended.store(true, Ordering::Relaxed) };
        let next = host.clone();
        match left % 3 {
            0 => host.background.push(Urgency::Background, move |_| hop(&next, left, ended)),
            1 => host.writers.submit(move |_| hop(&next, left, ended)),
            _ => host.syncer.submit(move |_| hop(&next, left, ended)),
        }
    }

    #[test]
    fn idle_means_that_no_work_is_queued_elsewhere() {
        let broker = Broker::on_disk(Durability::Os);
        let (host, ended) = (broker.ctx.partitions.host(), Arc::new(AtomicBool::default()));
        hop(host, 300, ended.clone());
        broker.wait_idle();
        assert!(ended.load(Ordering::Relaxed));
    }

    /// Apache Kafka deleted the topic and created it again, which does not change the topic ids of
    /// the checkpoints. The log was not opened afterwards, and then its directory was lost: the
    /// partition was empty, without a fault.
    #[test]
    fn loss_of_a_topic_that_another_program_created_again_is_a_fault() {
        let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["a"]));
        let disk = broker.ctx.partitions.host().directory.disk().clone();
        broker.ctx.partitions.close(&MayWait::as_documented());
        let topic_ids = Path::new("/data/topic-id-checkpoint");
        disk.write_atomically(topic_ids, b"0\n1\nt 0 12345\n").unwrap();
        let broker = broker.killed_and_restarted(Durability::Fsync).with_topic(1, &[]);
        broker.ctx.partitions.settle_directories(&MayWait::as_documented());
        disk.remove_dir_all(Path::new("/data/t-0")).unwrap();
        let broker = broker.killed_and_restarted(Durability::Fsync).with_topic(1, &[]);
        broker.ctx.partitions.get(&TOPIC, 0).unwrap().inspect(&MayWait::as_documented());
        assert_eq!(broker.faults(), [vec![LogFault::ReadOnly]]);
    }

    /// A topic is deleted, and a power failure undoes the renaming of its directory.
    fn with_a_returned_directory() -> Broker {
        let mut broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["old"]));
        broker.ctx.partitions.checkpoint(&MayWait::as_documented());
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        broker.wait_idle();
        let disk = broker.ctx.partitions.host().directory.disk().clone();
        let renamed = disk.list(Path::new("/data")).unwrap().into_iter().find(|entry| entry.is_dir);
        let renamed = Path::new("/data").join(renamed.unwrap().name);
        disk.rename(&renamed, Path::new("/data/t-0")).unwrap();
        broker.killed_and_restarted(Durability::Fsync)
    }

    fn names(broker: &Broker) -> Vec<String> {
        let disk = broker.ctx.partitions.host().directory.disk();
        let entries = disk.list(Path::new("/data")).unwrap().into_iter();
        let dirs = entries.filter(|entry| entry.is_dir);
        dirs.map(|entry| entry.name.to_str().unwrap().to_owned()).collect()
    }

    fn reports(broker: &Broker) -> usize {
        let lines = broker.ctx.log_ring.drain();
        lines.iter().filter(|line| line.text.contains("t-0 is of a deleted topic")).count()
    }

    #[test]
    fn a_directory_restored_by_a_power_cut_is_a_stray_at_the_start() {
        let broker = with_a_returned_directory();
        broker.ctx.partitions.settle_directories(&MayWait::as_documented());
        let [name] = &names(&broker)[..] else { panic!("{:?}", names(&broker)) };
        assert!(name.starts_with("t-0.") && name.ends_with("-stray"), "{name}");
        assert_eq!(reports(&broker), 1);
        let mut broker = broker;
        let again = topic("t", [8; 16], 1, &[]);
        broker.apply(ImageDelta { topics: vec![again], ..ImageDelta::default() });
        broker.append_waiting(&batch(&["new"]));
        let log = broker.ctx.partitions.get(&[8; 16], 0).unwrap().opened_log().unwrap();
        assert_eq!((log.log_end_offset(), log.damage()), (1, None));
    }

    #[test]
    fn a_directory_restored_by_a_power_cut_is_replaced_by_a_topic_of_its_name() {
        let mut broker = with_a_returned_directory();
        let again = topic("t", [8; 16], 1, &[]);
        broker.apply(ImageDelta { topics: vec![again], ..ImageDelta::default() });
        broker.ctx.partitions.settle_directories(&MayWait::as_documented());
        broker.append_waiting(&batch(&["new"]));
        let log = broker.ctx.partitions.get(&[8; 16], 0).unwrap().opened_log().unwrap();
        assert_eq!((log.log_end_offset(), log.damage()), (1, None));
        assert_eq!(names(&broker).len(), 2, "{:?}", names(&broker));
        assert_eq!(reports(&broker), 1);
    }
}
