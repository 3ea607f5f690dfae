//! Helpers for tests: logs on a memory disk, with a clock that only the test advances.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

pub mod watched_disk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_log::{
    AppendError, AppendInfo, AppendOptions, AppendOrigin, BufferPool, Checkpointed,
    DirectoryOptions, Disk, Log, LogConfig, LogDirectory, LogOptions, ManualClock, MemoryDisk,
    OnDamage, PartitionIdentity, Recovery, TransactionRule,
};
use pykafka_record::{
    Batch, BatchBuilder, BatchOptions, EndTransactionMarker, LeaderEpoch, NO_SEQUENCE,
    ProducerEpoch, ProducerId, batches,
};

pub const NOW_MS: i64 = 1_700_000_000_000;

/// The arguments with which a test opens a log, any number of times.
pub struct Bench {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<ManualClock>,
    pub config: LogConfig,
    pub dir: PathBuf,
}

impl Default for Bench {
    fn default() -> Self {
        Bench {
            disk: Arc::new(MemoryDisk::default()),
            clock: Arc::new(ManualClock::new(NOW_MS)),
            config: LogConfig {
                segment_bytes: 2000,
                index_interval_bytes: 300,
                ..LogConfig::default()
            },
            dir: PathBuf::from("/data/topic-0"),
        }
    }
}

impl Bench {
    pub fn options(&self, clean: bool) -> LogOptions {
        LogOptions {
            dir: self.dir.clone(),
            config: Arc::new(self.config.clone()),
            disk: self.disk.clone(),
            clock: self.clock.clone(),
            checkpointed: Checkpointed::default(),
            on_damage: OnDamage::Keep,
            clean,
            identity: Some(PartitionIdentity { topic_id: [7; 16], partition: None }),
            producer_id_expiration_ms: 86_400_000,
            read_only: false,
            jitter_seed: 1,
            buffers: Arc::new(BufferPool::default()),
        }
    }

    pub fn open(&self, clean: bool) -> (Log, Recovery) {
        Log::open(self.options(clean)).unwrap()
    }

    /// All files of the log's directory, by name.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let entries = self.disk.list(&self.dir).unwrap();
        let files = entries.into_iter().filter(|entry| !entry.is_dir);
        let names = files.map(|entry| entry.name.into_string().unwrap());
        names.map(|name| (name.clone(), self.disk.read(&self.dir.join(name)).unwrap())).collect()
    }

    /// A disk with a copy of the log's current files, as after a kill.
    pub fn copied_disk(&self) -> Arc<dyn Disk> {
        let disk = MemoryDisk::default();
        disk.create_dir_all(&self.dir).unwrap();
        for (name, bytes) in self.files() {
            let file = disk.create_anew(&self.dir.join(name)).unwrap();
            file.write_at(&bytes, 0).unwrap();
        }
        Arc::new(disk)
    }

    pub fn file(&self, name: &str) -> Vec<u8> {
        self.disk.read(&self.dir.join(name)).unwrap()
    }

    pub fn file_names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, _)| name).collect()
    }
}

/// Opens `topic-0` of the data directory `/data`.
pub fn open_directory(
    disk: Arc<dyn Disk>,
    config: Arc<LogConfig>,
) -> (LogDirectory, Arc<Log>, Recovery) {
    let options = DirectoryOptions {
        dir: Path::new("/data"),
        disk,
        lock: None,
        producer_id_expiration_ms: i64::MAX,
        random_seed: 1,
        buffers: Arc::default(),
    };
    let directory = LogDirectory::open(options, Arc::new(ManualClock::new(NOW_MS))).unwrap();
    let (log, recovery) = directory.open_log("topic", 0, [7; 16], config).unwrap();
    (directory, log, recovery)
}

pub const LEADER: AppendOptions = AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Client);

/// A batch of `count` records with values of `size` bytes.
pub fn batch(count: usize, size: usize, timestamp: i64) -> Vec<u8> {
    batch_with(BatchOptions::default(), count, size, timestamp)
}

pub fn batch_with(options: BatchOptions, count: usize, size: usize, timestamp: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    for index in 0..count {
        let value = vec![index as u8; size];
        builder.append(timestamp + index as i64, Some(b"key"), Some(&value), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

pub fn append(log: &Log, count: usize, timestamp: i64) -> AppendInfo {
    log.append_as_leader(&mut batch(count, 50, timestamp), LEADER).unwrap()
}

/// Ends a transaction of the first version.
pub fn end_transaction(
    log: &Log,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    marker: EndTransactionMarker,
    leader_epoch: LeaderEpoch,
) -> Result<AppendInfo, AppendError> {
    let options = AppendOptions {
        transaction: TransactionRule::Marker(1),
        ..AppendOptions::new(leader_epoch, AppendOrigin::Coordinator)
    };
    append_marker(log, producer_id, producer_epoch, marker, options)
}

/// Appends a marker, as a broker does.
pub fn append_marker(
    log: &Log,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    marker: EndTransactionMarker,
    options: AppendOptions,
) -> Result<AppendInfo, AppendError> {
    let mut builder = BatchBuilder::new(BatchOptions {
        producer_id,
        producer_epoch,
        base_sequence: NO_SEQUENCE,
        transactional: true,
        control: true,
        ..BatchOptions::default()
    });
    builder.append(NOW_MS, Some(&marker.key()), Some(&marker.value()), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    log.append_as_leader(&mut bytes, options)
}

/// Base and last offset of each batch from `from` to the log end.
pub fn batch_offsets(log: &Log, from: i64) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    let mut offset = from;
    while offset < log.log_end_offset() {
        let data = log.read(offset, 700, log.log_end_offset(), true).unwrap();
        if data.bytes.is_empty() {
            break;
        }
        found.extend(
            all(&data.bytes).iter().map(|batch| (batch.base_offset(), batch.last_offset())),
        );
        offset = data.next_offset;
    }
    found
}

pub fn all(bytes: &[u8]) -> Vec<Batch<'_>> {
    batches(bytes).map(Result::unwrap).collect()
}
