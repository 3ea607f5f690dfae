//! The health of the disk: partitions whose clients wait for it, and probes.

use std::io;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use super::PartitionTable;
use crate::control_api::event::{DiskStateKind, Event, Token};
use crate::control_api::image::PartitionId;
use crate::kafka_error::KafkaError;
use crate::partition::Host;
use crate::partition::threads::may_wait::MayWait;

/// Unlinked before it is written, so that a crash leaves no file.
const PROBE_FILE: &str = "disk.probe";
const PROBE_BYTES: usize = 4096;
/// A full disk is usable again when a hundredth of it is free, within these bounds.
const FREE_BYTES_MIN: u64 = 4 << 20;
const FREE_BYTES_MAX: u64 = 1 << 30;

/// The conditions for a successful probe, in addition to a writable disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProbeNeeds {
    /// None: the probe measures the speed of the disk.
    Nothing,
    /// Free space, because the disk was full.
    Space,
}

impl PartitionTable {
    /// Partitions whose clients have waited for the disk for longer than this; excludes the
    /// metadata log.
    pub(crate) fn stalled(&self, wait_ns_min: u64) -> Vec<PartitionId> {
        let host = self.host();
        if host.in_memory {
            return Vec::new();
        }
        let listed = host.listed.lock().clone();
        let used = listed.iter().filter_map(Weak::upgrade).filter(|partition| !partition.hidden);
        used.filter(|partition| partition.stalled_ns() > wait_ns_min)
            .map(|partition| (partition.topic_id, partition.index))
            .collect()
    }

    /// Writes to the disk and syncs it. Completes as `Maintained`, whose offset is the duration in
    /// milliseconds. Success with free space ends the state of a full disk.
    pub(crate) fn probe_disk(&self, token: Token, needs: ProbeNeeds) {
        let host = self.host().clone();
        self.host().probers.submit(move |may_wait| {
            let begun_ns = host.clock.now_ns();
            let probed = host.probe(needs, may_wait);
            let duration_ms = host.clock.now_ns().saturating_sub(begun_ns) / 1_000_000;
            let (error_code, offset) = match probed {
                Ok(()) => (0, duration_ms.cast_signed()),
                Err(_) => (KafkaError::KafkaStorageError.code(), -1),
            };
            host.events.push(Event::Maintained { token, error_code, offset });
        });
    }
}

impl Host {
    /// Called after an append. Only free space ends the state of a full disk: a small append also
    /// succeeds on a disk that refuses larger ones.
    pub(in crate::partition) fn note_append(&self) {
        if self.is_disk_full.load(Ordering::Relaxed) && self.is_low().is_ok_and(|is_low| !is_low) {
            self.report_space();
        }
    }

    fn is_low(&self) -> io::Result<bool> {
        let space = self.directory.disk().available_bytes(self.directory.path())?;
        Ok(space.usable < (space.total / 100).clamp(FREE_BYTES_MIN, FREE_BYTES_MAX))
    }

    fn report_space(&self) {
        if self.is_disk_full.swap(false, Ordering::Relaxed) {
            let reason = "space has returned".to_owned();
            self.events.push(Event::DiskState { state: DiskStateKind::Ok, reason });
        }
    }

    fn probe(&self, needs: ProbeNeeds, _: &MayWait) -> io::Result<()> {
        let (disk, dir) = (self.directory.disk(), self.directory.path());
        let is_low = self.is_low()?;
        if is_low && needs == ProbeNeeds::Space {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let path = dir.join(PROBE_FILE);
        let file = disk.create_anew(&path)?;
        disk.remove_file(&path)?;
        file.write_at(&[0; PROBE_BYTES], 0)?;
        file.sync_data()?;
        if !is_low {
            self.report_space();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pykafka_log::Durability;

    use super::{FREE_BYTES_MIN, ProbeNeeds};
    use crate::control_api::event::{DiskStateKind, Event};
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, batch, pending};

    #[test]
    fn a_client_that_waits_for_a_sync_is_stalled_as_long_as_it_waits() {
        let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        let partitions = &broker.ctx.partitions;
        broker.append_waiting(&batch(&["opens the log"]));
        broker.wait_idle();
        assert!(partitions.stalled(0).is_empty());
        broker.gate.hold_at(Op::Sync, "/data/t-0");
        let waiting = pending(broker.produce(9, -1, &batch(&["a"])));
        broker.gate.until_waiting(1);
        broker.clock.advance_ms(5_000);
        assert_eq!(partitions.stalled(4_999_999_999).len(), 1);
        assert!(partitions.stalled(5_000_000_000).is_empty());
        broker.gate.open();
        broker.wait_idle();
        assert!(partitions.stalled(0).is_empty());
        drop(waiting);
    }

    fn probed(broker: &Broker, needs: ProbeNeeds) -> (i16, i64) {
        broker.ctx.partitions.probe_disk(7, needs);
        loop {
            let found = broker.events().into_iter().find_map(|event| match event {
                Event::Maintained { token: 7, error_code, offset } => Some((error_code, offset)),
                _ => None,
            });
            if let Some(found) = found {
                return found;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_probe_measures_the_disk_and_leaves_no_file() {
        let broker = Broker::on_disk(Durability::Os);
        assert_eq!(probed(&broker, ProbeNeeds::Space), (0, 0));
        let disk = broker.ctx.partitions.host().directory.disk();
        assert!(!disk.exists(std::path::Path::new("/data/disk.probe")));
    }

    /// Regression test: a small append ended the state although larger appends still failed.
    #[test]
    fn a_small_append_on_a_disk_without_free_space_leaves_it_full() {
        let broker = Broker::on_disk_of_bytes(FREE_BYTES_MIN - 1).with_topic(1, &[]);
        let large = batch(&[&"x".repeat(1 << 19)]);
        while broker.append_code(&large) == 0 {}
        assert_eq!(broker.disk_states(), [DiskStateKind::Full]);
        assert_eq!(broker.append_code(&batch(&["small"])), 0);
        assert_eq!(broker.disk_states(), []);
    }

    #[test]
    fn a_file_that_hangs_does_not_delay_a_probe() {
        let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.gate.hold_at(Op::Sync, "/data/t-0");
        let waiting = pending(broker.produce(9, -1, &batch(&["a"])));
        broker.gate.until_waiting(1);
        assert_eq!(probed(&broker, ProbeNeeds::Nothing), (0, 0));
        broker.gate.open();
        broker.wait_idle();
        drop(waiting);
    }
}
