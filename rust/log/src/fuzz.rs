//! Fuzz targets as plain functions: run by `cargo test` on a corpus, its mutations and random
//! bytes, and by cargo-fuzz. They must return for any input.

use std::path::Path;
use std::sync::Arc;

use pykafka_record::{
    BatchBuilder, BatchOptions, Cancellation, LeaderEpoch, Limits, TimestampType,
};

use crate::checkpoint::{self, CleanShutdown, MetaProperties};
use crate::disk::{Disk, MemoryDisk, OpenMode};
use crate::log::append::validate::{CompressionType, Scratch, ValidateRules, validate};
use crate::{
    AppendOptions, AppendOrigin, BufferPool, Log, LogConfig, LogOptions, ManualClock,
    ProducerStateManager,
};

const NOW_MS: i64 = 1_700_000_000_000;

/// Read `data` as each of the small files. A value that was read must be equal after it was written
/// and read again.
pub fn fuzz_checkpoints(data: &[u8]) {
    if let Ok(offsets) = checkpoint::read_offsets(data) {
        let written = checkpoint::write_offsets(&offsets);
        assert_eq!(checkpoint::read_offsets(&written), Ok(offsets));
    }
    if let Ok(epochs) = checkpoint::read_epochs(data) {
        assert_eq!(checkpoint::read_epochs(&checkpoint::write_epochs(&epochs)), Ok(epochs));
    }
    if let Ok(id) = checkpoint::read_partition_metadata(data) {
        let written = checkpoint::write_partition_metadata(id);
        assert_eq!(checkpoint::read_partition_metadata(&written), Ok(id));
    }
    if let Ok(properties) = MetaProperties::read(data) {
        assert_eq!(MetaProperties::read(&properties.write()), Ok(properties));
    }
    if let Ok(marker) = CleanShutdown::read(data) {
        assert_eq!(CleanShutdown::read(&marker.write()), Ok(marker));
    }
}

/// Read `data` as a producer snapshot. A state that was read must be equal after it was written and
/// read again.
pub fn fuzz_producer_snapshot(data: &[u8]) {
    let mut state = ProducerStateManager::new(i64::MAX);
    if state.load_snapshot(data, 0, NOW_MS).is_ok() {
        let written = state.snapshot_bytes();
        let mut again = ProducerStateManager::new(i64::MAX);
        again.load_snapshot(&written, 0, NOW_MS).expect("it was just written");
        assert_eq!(again.snapshot_bytes(), written);
    }
}

/// Validate a client's batch under settings that the first byte of `data` selects; the rest is the
/// batch. An accepted batch must be accepted again unchanged, and a rejected one must not be
/// modified.
pub fn fuzz_validate(data: &[u8]) {
    let Some((choice, batch)) = data.split_first() else { return };
    let codecs = pykafka_record::Compression::ALL;
    let codec = codecs.get(usize::from(choice & 7)).copied();
    let rules = ValidateRules {
        topic_compacted: choice & 8 != 0,
        compression: codec.map_or(CompressionType::Producer, |c| CompressionType::Fixed(c, None)),
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        batch_bytes_max: 1 << 20,
        limits: Limits { bytes_max: 1 << 20, ratio_max: 1000, ..Limits::NONE },
        origin: AppendOrigin::Client,
        rebuilds: true,
    };
    let mut bytes = batch.to_vec();
    let mut scratch = Scratch::default();
    match validate(&mut bytes, &rules, NOW_MS, &mut scratch, &Cancellation::default()) {
        Err(_) => assert_eq!(bytes, batch),
        Ok(validated) => {
            bytes.truncate(validated.size);
            let mut stored = validated.rewritten.unwrap_or(bytes);
            let before = stored.clone();
            let again =
                validate(&mut stored, &rules, NOW_MS, &mut scratch, &Cancellation::default());
            let again = again.expect("a stored batch may be sent again");
            assert_eq!((stored, again.rewritten), (before, None));
        }
    }
}

/// Files of a partition's directory that [`fuzz_directory`] replaces.
const FILES: [&str; 8] = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000006.log",
    "00000000000000000006.snapshot",
    "leader-epoch-checkpoint",
    "partition.metadata",
];

/// Replace the file that the first byte selects with the rest of `data`, open the log and read all
/// of it. If the log can be written, append, close and open again.
pub fn fuzz_directory(data: &[u8]) {
    let Some((choice, content)) = data.split_first() else { return };
    let disk = MemoryDisk::default();
    let options = options(&disk, choice & 0x80 != 0);
    write_log(&options);
    let path = options.dir.join(FILES[usize::from(*choice) % FILES.len()]);
    let file = disk.open(&path, OpenMode::Create).expect("the directory is there");
    file.set_len(0).and_then(|()| file.write_at(content, 0)).expect("memory does not fail");
    let Ok((log, _)) = Log::open(options.clone()) else { return };
    read_all(&log);
    if log.append_as_leader(&mut batch(), LEADER).is_ok() {
        let end = log.log_end_offset();
        log.close().expect("memory does not fail");
        let (log, _) = Log::open(options).expect("it was closed cleanly");
        assert_eq!(log.log_end_offset(), end);
    }
}

const LEADER: AppendOptions = AppendOptions::new(LeaderEpoch::new(3), AppendOrigin::Client);

fn options(disk: &MemoryDisk, clean: bool) -> LogOptions {
    LogOptions {
        dir: Path::new("/data/topic-0").to_owned(),
        config: Arc::new(LogConfig {
            segment_bytes: 600,
            index_interval_bytes: 100,
            ..LogConfig::default()
        }),
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(NOW_MS)),
        checkpointed: crate::Checkpointed::default(),
        on_damage: crate::OnDamage::Keep,
        clean,
        identity: Some(crate::PartitionIdentity { topic_id: [7; 16], partition: None }),
        producer_id_expiration_ms: i64::MAX,
        read_only: false,
        jitter_seed: 1,
        buffers: Arc::new(BufferPool::default()),
    }
}

fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for value in [[1; 60], [2; 60]] {
        builder.append(NOW_MS, Some(b"key"), Some(&value), &[]).expect("it is small");
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).expect("it is small");
    bytes
}

/// Five batches of two records, three of them in the first segment.
fn write_log(options: &LogOptions) {
    let parent = options.dir.parent().expect("the path has two parts");
    options.disk.create_dir_all(parent).expect("memory does not fail");
    let (log, _) = Log::open(options.clone()).expect("there is nothing yet");
    for number in 0..5 {
        log.append_as_leader(&mut batch(), LEADER).expect("the batch is good");
        if number == 2 {
            log.roll().expect("memory does not fail");
        }
    }
    log.close().expect("memory does not fail");
}

fn read_all(log: &Log) {
    let (mut next, end) = (log.log_start_offset(), log.log_end_offset());
    while next < end {
        match log.read(next, 4096, end, true) {
            Ok(data) if data.next_offset > next => next = data.next_offset,
            _ => return,
        }
    }
}
