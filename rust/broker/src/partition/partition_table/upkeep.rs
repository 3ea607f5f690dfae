//! What the clock asks of partitions, and the end of them all.

use pykafka_log::StorageError;

use super::PartitionTable;
use crate::partition::Host;
use crate::partition::pool::MayWait;
use crate::seam::event::{DiskStateKind, Event};
use crate::seam::log_ring::Level;

const TARGET: &str = "broker.partition";

impl PartitionTable {
    /// Starts the syncs whose `flush.ms` has come; those with nothing left to sync leave the dirty list.
    pub fn sync_due(&self) {
        let now_ms = self.host.clock.now_ms();
        let dirty = std::mem::take(&mut *self.host.dirty.lock());
        let mut still_dirty: Vec<_> =
            dirty.into_iter().filter(|partition| partition.sync_if_due(now_ms)).collect();
        self.host.dirty.lock().append(&mut still_dirty);
    }

    /// One tick towards giving back the files of partitions that nobody uses.
    pub fn release_idle(&self) {
        let listed = std::mem::take(&mut *self.host.listed.lock());
        let mut kept: Vec<_> = (listed.into_iter())
            .filter(|partition| partition.upgrade().is_some_and(|partition| partition.tick()))
            .collect();
        let mut listed = self.host.listed.lock();
        kept.append(&mut listed);
        *listed = kept;
    }

    /// Writes recovery points, log starts and high watermarks, and removes files whose delay has passed.
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
        // In this order: on a full disk the checkpoints need the space of what was deleted.
        let removed = directory.remove_deleted(now_ms);
        let written = directory.checkpoint(&self.high_watermarks());
        for error in [removed, written].iter().filter_map(|result| result.as_ref().err()) {
            self.host.report_failed(error);
        }
    }

    /// Ends every partition: who waits is told, logs are stored and synced, the directory is marked clean and
    /// unlocked. A log that failed leaves the directory unclean, so that the next start recovers it.
    pub(crate) fn close(&self, may_wait: &MayWait) {
        let mut closed = self.closed.lock();
        if std::mem::replace(&mut *closed, true) {
            return;
        }
        self.host.dirty.lock().clear();
        let (partitions, high_watermarks) = (self.all(), self.high_watermarks());
        for partition in &partitions {
            partition.close();
        }
        // No new round begins from here on; those that run end before their files are somebody else's.
        self.host.lane.wait_idle(may_wait);
        self.host.writers.wait_idle(may_wait);
        self.host.syncer.wait_idle(may_wait);
        let directory = &self.host.directory;
        let closed = directory.checkpoint(&high_watermarks).and_then(|()| directory.close(true));
        if let Err(error) = closed {
            self.host.report_failed(&error);
        }
    }

    /// Of partitions whose log is open.
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
    /// Reports an error of the directory itself.
    pub(in crate::partition) fn report_failed(&self, error: &StorageError) {
        let state = match error {
            StorageError::NoSpace { .. } => DiskStateKind::Full,
            // The disk is as it was; upkeep comes again.
            StorageError::Exhausted { .. } => {
                return self.log_ring.log(Level::Warning, TARGET, || error.to_string());
            }
            _ => DiskStateKind::Failed,
        };
        self.events.push(Event::DiskState { state, reason: error.to_string() });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pykafka_log::Durability;

    use crate::partition::pool::MayWait;
    use crate::seam::image::ImageDelta;
    use crate::testing::{Broker, TOPIC, batch};

    #[test]
    fn checkpoint_that_comes_after_the_end_writes_nothing() {
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
    fn deleted_directories_go_even_where_no_checkpoint_can_be_written() {
        let mut broker =
            Broker::on_disk(Durability::Os).with_topic(1, &[("file.delete.delay.ms", "0")]);
        assert_eq!(broker.append(&batch(&["a"])), 0);
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        broker.gate.fail();
        let (partitions, may_wait) = (&broker.ctx.partitions, MayWait::as_documented());
        partitions.host().lane.wait_idle(&may_wait);
        let deleted = || {
            let entries = partitions.host().directory.disk().list(Path::new("/data")).unwrap();
            entries.iter().filter(|entry| entry.is_dir).count()
        };
        assert_eq!(deleted(), 1);
        partitions.checkpoint(&may_wait);
        assert_eq!(deleted(), 0);
    }
}
