//! Replicas of a compacted log that are copied, wiped and killed do not lose records.
//!
//! `PYKAFKA_COPIES` sets the number of histories (`make copies`: 20,000).

use std::collections::BTreeMap;

use crate::common::{Bench, NOW_MS, all};
use proptest::prelude::*;
use pykafka_log::{AppendOptions, AppendOrigin, Checkpointed, CompactionOptions, Log, LogOptions};
use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch, Limits};

const REPLICAS: usize = 3;
const KEYS: u8 = 6;
const HISTORIES: u32 = 256;

/// One event; replicas are numbered from 0.
#[derive(Debug, Clone)]
enum Step {
    Append {
        keys: Vec<u8>,
    },
    Roll {
        replica: usize,
    },
    Compact {
        replica: usize,
    },
    /// `DeleteRecords` up to a part of the leader's log, which `cleanup.policy=compact,delete`
    /// allows.
    Delete {
        percent: i64,
    },
    /// Removes segments below the log start offset.
    Retain {
        replica: usize,
    },
    /// A follower fetches once.
    Fetch {
        replica: usize,
        bytes: usize,
    },
    /// A replica fetches all of the leader's log and becomes the leader.
    Lead {
        replica: usize,
    },
    /// A follower gets an empty disk.
    Wipe {
        replica: usize,
    },
    /// The broker writes its checkpoints.
    Checkpoint {
        replica: usize,
    },
    Stop {
        replica: usize,
    },
    /// The process ends without a stop; its files and the last checkpoints remain.
    Kill {
        replica: usize,
    },
    KillAll,
}

fn step() -> impl Strategy<Value = Step> {
    let replica = || 0..REPLICAS;
    prop_oneof![
        8 => prop::collection::vec(0..KEYS, 1..5).prop_map(|keys| Step::Append { keys }),
        3 => replica().prop_map(|replica| Step::Roll { replica }),
        4 => replica().prop_map(|replica| Step::Compact { replica }),
        1 => (0..=100i64).prop_map(|percent| Step::Delete { percent }),
        2 => replica().prop_map(|replica| Step::Retain { replica }),
        6 => (replica(), 0..600usize).prop_map(|(replica, bytes)| Step::Fetch { replica, bytes }),
        2 => replica().prop_map(|replica| Step::Lead { replica }),
        2 => replica().prop_map(|replica| Step::Wipe { replica }),
        1 => replica().prop_map(|replica| Step::Checkpoint { replica }),
        2 => replica().prop_map(|replica| Step::Stop { replica }),
        2 => replica().prop_map(|replica| Step::Kill { replica }),
        1 => Just(Step::KillAll),
    ]
}

struct Replica {
    bench: Bench,
    log: Log,
    checkpointed: Checkpointed,
    clean_offset: i64,
}

impl Replica {
    fn new() -> Replica {
        let mut bench = Bench::default();
        bench.config.cleanup_policy.compact = true;
        bench.config.segment_bytes = 500;
        let (log, _) = bench.open(true);
        Replica { bench, log, checkpointed: Checkpointed::default(), clean_offset: 0 }
    }

    fn checkpoint(&mut self) {
        self.log.flush().unwrap();
        self.checkpointed = Checkpointed {
            recovery_point: self.log.recovery_point(),
            high_watermark: self.log.log_end_offset(),
            log_start_offset: Some(self.log.log_start_offset()),
            cleaner_offset: self.clean_offset,
            is_copy: false,
        };
    }

    fn compact(&mut self) {
        let options = CompactionOptions {
            clean_offset: self.clean_offset,
            high_watermark: self.log.log_end_offset(),
            ..CompactionOptions::default()
        };
        self.clean_offset = self.log.compact(&options, NOW_MS).unwrap().clean_offset;
    }

    fn stop(&mut self) {
        self.checkpoint();
        self.log.close().unwrap();
        self.open(true);
    }

    fn kill(&mut self) {
        if self.bench.disk.exists(&self.bench.dir) {
            self.bench.disk = self.bench.copied_disk();
        }
        self.open(false);
    }

    fn open(&mut self, clean: bool) {
        let before = self.log.offsets();
        let checkpointed = self.checkpointed;
        let (log, recovery) =
            Log::open(LogOptions { checkpointed, ..self.bench.options(clean) }).unwrap();
        assert_eq!((recovery.damage, recovery.truncated_bytes), (None, 0));
        assert_eq!(recovery.warnings, Vec::<String>::new());
        self.log = log;
        assert_eq!(self.log.log_end_offset(), before.log_end_offset);
        // `DeleteRecords` is only acknowledged after a checkpoint, and so is `Delete`.
        assert_eq!(self.log.log_start_offset(), before.log_start_offset);
    }

    fn values(&self) -> BTreeMap<i64, (u8, String)> {
        let (mut next, end) = (self.log.log_start_offset(), self.log.log_end_offset());
        let mut found = BTreeMap::new();
        while next < end {
            let data = self.log.read(next, 1 << 16, end, true).unwrap();
            assert!(data.next_offset > next, "nothing to read at {next} of {end}");
            for batch in all(&data.bytes) {
                let mut scratch = Vec::new();
                for record in batch.records(&mut scratch, Limits::default()).unwrap() {
                    let record = record.unwrap();
                    let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                    if record.offset >= self.log.log_start_offset() {
                        found.insert(record.offset, (record.key.unwrap()[0], value));
                    }
                }
            }
            next = data.next_offset;
        }
        found
    }
}

struct World {
    replicas: Vec<Replica>,
    leader: usize,
    epoch: i32,
    /// Key and value of every offset.
    written: Vec<(u8, String)>,
}

impl World {
    fn new() -> World {
        let replicas = (0..REPLICAS).map(|_| Replica::new()).collect();
        World { replicas, leader: 0, epoch: 0, written: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Append { ref keys } => self.append(keys),
            Step::Roll { replica } => self.replicas[replica].log.roll().unwrap(),
            Step::Compact { replica } => self.replicas[replica].compact(),
            Step::Delete { percent } => {
                let leader = &mut self.replicas[self.leader];
                let (start, end) = (leader.log.log_start_offset(), leader.log.log_end_offset());
                leader.log.delete_before(start + (end - start) * percent / 100).unwrap();
                leader.checkpoint();
            }
            Step::Retain { replica } => {
                let log = &self.replicas[replica].log;
                log.enforce_retention(log.log_end_offset()).unwrap();
            }
            Step::Fetch { replica, bytes } => self.fetch(replica, bytes),
            Step::Lead { replica } => self.lead(replica),
            Step::Wipe { replica } if replica != self.leader => {
                self.replicas[replica] = Replica::new();
            }
            Step::Wipe { .. } => {}
            Step::Checkpoint { replica } => self.replicas[replica].checkpoint(),
            Step::Stop { replica } => self.replicas[replica].stop(),
            Step::Kill { replica } => self.replicas[replica].kill(),
            Step::KillAll => self.replicas.iter_mut().for_each(Replica::kill),
        }
    }

    fn append(&mut self, keys: &[u8]) {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for key in keys {
            let value = format!("value of {}", self.written.len());
            builder.append(NOW_MS, Some(&[*key]), Some(value.as_bytes()), &[]).unwrap();
            self.written.push((*key, value));
        }
        let mut bytes = Vec::new();
        builder.build(&mut bytes).unwrap();
        let options = AppendOptions::new(LeaderEpoch::new(self.epoch), AppendOrigin::Client);
        self.replicas[self.leader].log.append_as_leader(&mut bytes, options).unwrap();
    }

    /// Appends a response of the leader and applies its log start offset, as a follower does.
    fn fetch(&mut self, replica: usize, bytes: usize) {
        if replica == self.leader {
            return;
        }
        let both = self.replicas.get_disjoint_mut([self.leader, replica]);
        let [Replica { log: leader, .. }, follower] = both.unwrap();
        let (start, end) = (leader.log_start_offset(), leader.log_end_offset());
        let epoch = LeaderEpoch::new(self.epoch);
        if follower.log.log_end_offset() < start {
            follower.log.truncate_fully_and_start_at(start).unwrap();
            follower.checkpoint();
        }
        let data = leader.read(follower.log.log_end_offset(), bytes, end, true).unwrap();
        follower.log.append_as_follower(&data.bytes, epoch).unwrap();
        if follower.log.log_start_offset() < start {
            follower.log.delete_before(start).unwrap();
            follower.checkpoint();
        }
    }

    fn lead(&mut self, replica: usize) {
        let end = self.written.len() as i64;
        while self.replicas[replica].log.log_end_offset() < end {
            self.fetch(replica, 1 << 16);
        }
        if self.replicas[replica].log.log_start_offset() == self.start() {
            self.leader = replica;
            self.epoch += 1;
        }
    }

    fn start(&self) -> i64 {
        self.replicas[self.leader].log.log_start_offset()
    }

    /// Checks that each replica has the last value of each key up to its log end offset, and no
    /// record that was not written. Earlier values may be removed from the leader before they are
    /// fetched.
    fn check(&self) {
        for replica in &self.replicas {
            let (start, end) = (replica.log.log_start_offset(), replica.log.log_end_offset());
            let found = replica.values();
            for (offset, record) in &found {
                assert_eq!(record, &self.written[*offset as usize]);
            }
            for key in 0..KEYS {
                let last = self.written.iter().rposition(|(other, _)| *other == key);
                let last = last.map(|offset| offset as i64);
                if let Some(offset) = last.filter(|offset| (start..end).contains(offset)) {
                    assert!(found.contains_key(&offset), "key {key} is gone");
                }
            }
            let first = replica.log.segments().first().map_or(start, |(base, _)| *base);
            assert!(first <= start, "a segment at {first} begins a log that begins at {start}");
        }
    }
}

fn histories() -> u32 {
    std::env::var("PYKAFKA_COPIES").map_or(HISTORIES, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: histories(), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn copies_of_a_compacted_log_keep_every_last_value(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            world.check();
        }
        for replica in 0..REPLICAS {
            world.lead(replica);
            world.replicas[replica].stop();
            world.check();
        }
    }
}
