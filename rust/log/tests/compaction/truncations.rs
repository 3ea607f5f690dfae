//! Truncations of logs with holes, as a compaction leaves them: whatever offset a log is truncated
//! to, and however the process ends, the next open finds the same log and no damage. The same for
//! logs without holes, in which every gap is damage.

use std::sync::Arc;

use proptest::prelude::*;
use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{CompactionOptions, Log, LogConfig, LogDirectory};
use pykafka_record::{BatchMut, LeaderEpoch};

use crate::common::{LEADER, NOW_MS, batch, batch_offsets, open_directory};

#[derive(Debug, Clone)]
enum Step {
    Append {
        count: usize,
    },
    /// Appends a batch after a hole.
    Follow {
        gap: i64,
    },
    Roll,
    Flush,
    /// Checkpoints a high watermark in this part of the log.
    Checkpoint {
        percent: i64,
    },
    Compact,
    Delete {
        percent: i64,
    },
    Retain,
    /// Truncates to an offset between 0 and beyond the log end. The process is killed after a
    /// number of changes of the disk, if it has made so many.
    Truncate {
        percent: i64,
        killed_after: Option<u64>,
    },
    /// Empties the log, which then starts at this part of it.
    Restart {
        percent: i64,
        killed_after: Option<u64>,
    },
    Stop,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    let killed = || prop::option::weighted(0.3, 0..40_u64);
    prop_oneof![
        6 => (1..5usize).prop_map(|count| Step::Append { count }),
        4 => (1..30i64).prop_map(|gap| Step::Follow { gap }),
        2 => Just(Step::Roll),
        2 => Just(Step::Flush),
        2 => (0..=100i64).prop_map(|percent| Step::Checkpoint { percent }),
        2 => Just(Step::Compact),
        1 => (0..=100i64).prop_map(|percent| Step::Delete { percent }),
        1 => Just(Step::Retain),
        4 => (0..=110i64, killed())
            .prop_map(|(percent, killed_after)| Step::Truncate { percent, killed_after }),
        1 => (0..=110i64, killed())
            .prop_map(|(percent, killed_after)| Step::Restart { percent, killed_after }),
        2 => Just(Step::Stop),
        3 => Just(Step::Kill),
    ]
}

/// The log start offset, the log end offset, and the batches that can be read.
type Content = (i64, i64, Vec<(i64, i64)>);

#[derive(Debug, Clone, Copy)]
struct Settings {
    is_compacted: bool,
    syncs_every_append: bool,
}

struct Bench {
    disk: FaultyDisk,
    settings: Settings,
    directory: LogDirectory,
    log: Arc<Log>,
}

impl Bench {
    fn open(disk: FaultyDisk, settings: Settings) -> Bench {
        let mut config = LogConfig {
            segment_bytes: 600,
            index_interval_bytes: 100,
            retention_ms: -1,
            flush_messages: if settings.syncs_every_append { 1 } else { i64::MAX },
            ..LogConfig::default()
        };
        config.cleanup_policy.compact = settings.is_compacted;
        let (directory, log, recovery) = open_directory(Arc::new(disk.clone()), Arc::new(config));
        assert_eq!((recovery.damage, recovery.truncated_at), (None, None));
        Bench { disk, settings, directory, log }
    }

    /// Opens the log that this one leaves.
    fn reopened(self) -> Bench {
        Bench::open(self.disk.after_power_cut(1), self.settings)
    }

    fn content(&self) -> Content {
        let (start, end) = (self.log.log_start_offset(), self.log.log_end_offset());
        (start, end, batch_offsets(&self.log, start))
    }

    fn offset(&self, percent: i64) -> i64 {
        self.log.log_end_offset() * percent / 100
    }

    fn take(self, step: &Step) -> Bench {
        let (directory, log) = (&self.directory, &*self.log);
        match step {
            Step::Append { count } => {
                log.append_as_leader(&mut batch(*count, 50, NOW_MS), LEADER).unwrap();
            }
            Step::Follow { gap } => {
                let mut bytes = batch(2, 50, NOW_MS);
                let mut stamped = BatchMut::new(&mut bytes).unwrap();
                let gap = if self.settings.is_compacted { *gap } else { 0 };
                stamped.set_base_offset(log.log_end_offset() + gap);
                log.append_as_follower(&bytes, LeaderEpoch::ZERO).unwrap();
            }
            Step::Roll => log.roll().unwrap(),
            Step::Flush => log.flush().unwrap(),
            Step::Checkpoint { percent } => {
                let start = log.log_start_offset();
                let high_watermark = start.max(self.offset(*percent));
                directory.checkpoint(&[("topic".to_owned(), 0, high_watermark)]).unwrap();
            }
            Step::Compact if !self.settings.is_compacted => {}
            Step::Compact => {
                directory.compact(log, &CompactionOptions::default(), NOW_MS).unwrap();
            }
            Step::Delete { percent } => {
                directory.delete_before(log, self.offset(*percent)).unwrap();
            }
            Step::Retain => {
                directory.enforce_retention(log, log.log_end_offset()).unwrap();
            }
            Step::Truncate { percent, killed_after } => {
                let offset = self.offset(*percent);
                return self.truncated(offset, *killed_after);
            }
            Step::Restart { percent, killed_after } => {
                let offset = self.offset(*percent);
                return self.killed_after(*killed_after, |bench| {
                    bench.directory.restart_log(&bench.log, offset)
                });
            }
            Step::Stop => return self.reopened_as_it_was(true),
            Step::Kill => return self.reopened_as_it_was(false),
        }
        self
    }

    fn reopened_as_it_was(self, clean: bool) -> Bench {
        let content = self.content();
        if clean {
            self.directory.close(true).unwrap();
        }
        let reopened = self.reopened();
        assert_eq!(reopened.content(), content);
        reopened
    }

    /// Checks that only records from `offset` on are removed.
    fn truncated(self, offset: i64, killed_after: Option<u64>) -> Bench {
        let (start, _, before) = self.content();
        let is_kept = |(_, last): &&(i64, i64)| *last < offset;
        let kept: Vec<_> = before.iter().filter(is_kept).copied().collect();
        let truncated = self
            .killed_after(killed_after, |bench| bench.directory.truncate_log(&bench.log, offset));
        let (_, _, after) = truncated.content();
        let readable = after.iter().filter(|(_, last)| *last >= start).copied();
        let readable: Vec<_> = readable.collect();
        match killed_after {
            None => assert_eq!(readable, kept),
            Some(_) => {
                assert!(readable.starts_with(&kept) && before.starts_with(&readable));
            }
        }
        truncated
    }

    fn killed_after(
        self,
        changes: Option<u64>,
        act: impl Fn(&Bench) -> Result<(), pykafka_log::StorageError>,
    ) -> Bench {
        let Some(changes) = changes else {
            act(&self).unwrap();
            return self;
        };
        self.disk.arm(Fault::PowerCut, Operations::All, changes);
        let acted = act(&self);
        if self.disk.is_armed() {
            acted.unwrap();
            self.disk.disarm();
            return self;
        }
        self.reopened()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn truncated_logs_with_holes_are_found_as_they_were(
        steps in prop::collection::vec(step(), 1..60),
        is_compacted in prop::bool::weighted(0.7),
        syncs_every_append in any::<bool>(),
    ) {
        let settings = Settings { is_compacted, syncs_every_append };
        let mut bench = Bench::open(FaultyDisk::default(), settings);
        for step in &steps {
            bench = bench.take(step);
        }
        bench.reopened_as_it_was(false).take(&Step::Append { count: 1 }).take(&Step::Stop);
    }
}
