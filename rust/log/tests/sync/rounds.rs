//! Threads that append to one log and wait for its syncs, in every order in which the disk may
//! finish them.
//!
//! Each sync of the disk waits until a scheduler releases it; a seed decides the order. After each
//! append the power is cut: its records must be on the disk, and so must everything below the log's
//! recovery point.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::common::{Bench, LEADER, NOW_MS, batch};
use pykafka_log::disk::{FaultyDisk, FileOp, Hook, HookedDisk};
use pykafka_log::{Checkpointed, DirectoryOptions, Disk, Log, LogConfig, LogDirectory, LogOptions};

const THREADS: usize = 4;
const APPENDS: usize = 3;

/// Releases syncs one at a time.
#[derive(Debug, Default)]
struct Scheduler {
    state: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    /// Tickets of the waiting syncs; true if a sync was released.
    syncs: BTreeMap<u64, bool>,
    threads_left: usize,
}

impl Scheduler {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        if state.threads_left == 0 {
            return;
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.syncs.insert(ticket, false);
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |state| !state.syncs[&ticket]).unwrap();
        state.syncs.remove(&ticket);
    }

    fn thread_ended(&self) {
        self.state.lock().unwrap().threads_left -= 1;
        self.changed.notify_all();
    }

    /// Releases one sync after the other until all threads have ended.
    fn run(&self, mut choice: u64) {
        let mut state = self.state.lock().unwrap();
        loop {
            let is_quiet = |state: &mut Waiting| {
                state.threads_left > 0 && state.syncs.values().all(|may_go| *may_go)
            };
            state = self.changed.wait_while(state, is_quiet).unwrap();
            if state.threads_left == 0 {
                return;
            }
            let waiting: Vec<_> = state.syncs.iter().filter(|(_, go)| !**go).collect();
            choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let ticket = *waiting[(choice >> 33) as usize % waiting.len()].0;
            state.syncs.insert(ticket, true);
            self.changed.notify_all();
            // Other syncs may arrive while it runs.
            drop(state);
            thread::yield_now();
            state = self.state.lock().unwrap();
        }
    }
}

/// A disk that loses unsynced data, and whose syncs the scheduler orders.
type ScheduledDisk = HookedDisk<FaultyDisk, Scheduler>;

impl Hook for Scheduler {
    fn before(&self, op: FileOp, _path: &Path) -> io::Result<()> {
        if matches!(op, FileOp::Sync | FileOp::SyncDir) {
            self.pass();
        }
        Ok(())
    }
}

/// A log of small segments on a separate disk.
struct Place {
    disk: ScheduledDisk,
    bench: Bench,
}

impl Place {
    fn new(flush_messages: i64) -> Place {
        let disk = FaultyDisk::default();
        disk.create_dir_all(Path::new("/data")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let disk = ScheduledDisk::new(disk, Arc::default());
        let bench = Bench { disk: Arc::new(disk.clone()), ..Bench::default() };
        let config = LogConfig { segment_bytes: 600, flush_messages, ..bench.config.clone() };
        Place { disk, bench: Bench { config, ..bench } }
    }

    /// Opens the log after a power cut that loses everything that was not synced.
    fn end_after_power_cut(&self, recovery_point: i64) -> (i64, Option<i64>) {
        let disk: Arc<dyn Disk> = Arc::new(self.disk.disk().after_power_cut(0));
        let checkpointed = Checkpointed { recovery_point, ..Checkpointed::default() };
        let options = LogOptions { disk, checkpointed, ..self.bench.options(false) };
        let (log, recovery) = Log::open(options).unwrap();
        (log.log_end_offset(), recovery.damaged_at())
    }

    fn open_directory(&self, disk: Arc<dyn Disk>) -> (LogDirectory, Arc<Log>, Option<i64>) {
        let options = DirectoryOptions {
            dir: Path::new("/data"),
            disk,
            lock: None,
            producer_id_expiration_ms: 86_400_000,
            random_seed: 1,
            buffers: Arc::default(),
        };
        let directory = LogDirectory::open(options, self.bench.clock.clone()).unwrap();
        let config = Arc::new(self.bench.config.clone());
        let (log, recovery) = directory.open_log("topic", 0, [7; 16], config).unwrap();
        let damaged_at = recovery.damaged_at();
        (directory, log, damaged_at)
    }

    /// Runs `work` on each of the threads, with the syncs in the order that the seed selects.
    fn run(&self, seed: u64, work: impl Fn(usize) + Sync) {
        let scheduler = self.disk.hook();
        scheduler.state.lock().unwrap().threads_left = THREADS;
        thread::scope(|scope| {
            for index in 0..THREADS {
                let work = &work;
                scope.spawn(move || {
                    let _ended = Ended(scheduler);
                    work(index);
                });
            }
            scheduler.run(seed);
        });
    }
}

/// Removes a thread from the count when it returns or panics.
struct Ended<'a>(&'a Scheduler);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.thread_ended();
    }
}

fn append_durably(log: &Log, count: usize) -> i64 {
    let info = log.append_as_leader(&mut batch(count, 100, NOW_MS), LEADER).unwrap();
    assert!(log.sync_appended(info.log_end_offset).unwrap());
    info.last_offset + 1
}

#[test]
fn an_append_that_syncs_returns_after_a_sync_that_covers_it() {
    for seed in 0..20 {
        let place = Place::new(1);
        let (log, _) = place.bench.open(true);
        place.run(seed, |index| {
            for _ in 0..APPENDS {
                let end = append_durably(&log, 1 + index % 2);
                let recovery_point = log.recovery_point();
                assert!(recovery_point >= end, "seed {seed}: {recovery_point} < {end}");
                let after = place.end_after_power_cut(recovery_point);
                assert_eq!(after.1, None, "seed {seed}: the recovery point was ahead of the disk");
                assert!(after.0 >= end, "seed {seed}: {} < {end}", after.0);
            }
        });
    }
}

#[test]
fn recovery_point_of_overlapping_flushes_holds_after_a_power_cut() {
    for seed in 0..20 {
        let place = Place::new(i64::MAX);
        let (log, _) = place.bench.open(true);
        place.run(seed, |_| {
            for _ in 0..APPENDS {
                let info = log.append_as_leader(&mut batch(2, 100, NOW_MS), LEADER).unwrap();
                log.flush().unwrap();
                let recovery_point = log.recovery_point();
                assert!(recovery_point > info.last_offset, "seed {seed}");
                let (end, damage) = place.end_after_power_cut(recovery_point);
                assert!(end >= recovery_point && damage.is_none(), "seed {seed}: {end} {damage:?}");
            }
        });
    }
}

/// A running round raised the recovery point that the truncation had lowered, and a checkpoint
/// stored it.
#[test]
fn recovery_point_is_not_raised_during_a_truncation() {
    for seed in 0..20 {
        let place = Place::new(i64::MAX);
        let (directory, log, _) = place.open_directory(place.bench.disk.clone());
        place.run(seed, |index| {
            for _ in 0..APPENDS {
                log.append_as_leader(&mut batch(2, 100, NOW_MS), LEADER).unwrap();
                if index == 0 {
                    let offset = (log.log_end_offset() - 5).max(0);
                    directory.truncate_log(&log, offset).unwrap();
                } else {
                    log.flush().unwrap();
                    directory.checkpoint(&[]).unwrap();
                }
                let disk = Arc::new(place.disk.disk().after_power_cut(seed % 8));
                let (_, log, damaged_at) = place.open_directory(disk);
                assert_eq!(damaged_at, None, "seed {seed}: {log:?}");
            }
        });
    }
}
