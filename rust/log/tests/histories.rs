//! Random histories of a log and damage to its files, compared with a model of the promises.
//!
//! A history appends, rolls, syncs, truncates, deletes and reopens. Then one kind of damage
//! happens: one file of the partition is cut (also between two batches), emptied, zeroed, deleted,
//! or loses a bit; a segment is deleted with all its files, or all files are; a wrong log start
//! offset is checkpointed; an empty file has the name of a later segment; a file within the offsets
//! of a segment is empty or a copy; two segments are exchanged, or one has the content of another.
//! Then the log is opened three times. In every case a missing synced record must be reported, no
//! offset may be assigned twice, and each open must find what the previous one found.
//!
//! `PYKAFKA_HISTORIES` sets the number of histories (`make histories` runs 2,000).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "../../fuzz/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{LEADER, NOW_MS, all, batch};
use pykafka_log::{
    AppendError, DirectoryOptions, Disk, Log, LogConfig, LogDirectory, ManualClock, MemoryDisk,
    OpenMode, Recovery,
};
use random::Random;

const HISTORIES: u64 = 200;
const DIR: &str = "/data";

/// A log, its expected content, and the records that must not be lost.
struct History {
    random: Random,
    disk: Arc<dyn Disk>,
    flush_messages: i64,
    open: Option<(LogDirectory, Arc<Log>)>,
    /// Batches in the log, by base offset.
    content: BTreeMap<i64, Vec<u8>>,
    /// Everything below was deleted, and this is checkpointed.
    start: i64,
    /// Everything below was synced, and this is checkpointed.
    synced_end: i64,
    told: Vec<String>,
}

impl History {
    fn new(seed: u64) -> History {
        let mut random = Random::new(seed);
        let flush_messages = if random.below(2) == 0 { 1 } else { i64::MAX };
        History {
            random,
            disk: Arc::new(MemoryDisk::default()),
            flush_messages,
            open: None,
            content: BTreeMap::new(),
            start: 0,
            synced_end: 0,
            told: vec![format!("seed {seed}")],
        }
    }

    fn open_log(&self) -> (LogDirectory, Arc<Log>, Recovery) {
        let options = DirectoryOptions {
            dir: Path::new(DIR),
            disk: self.disk.clone(),
            lock: None,
            producer_id_expiration_ms: 86_400_000,
            random_seed: 1,
            buffers: Arc::default(),
        };
        let clock = Arc::new(ManualClock::new(NOW_MS));
        let directory = LogDirectory::open(options, clock).unwrap();
        let config = LogConfig {
            segment_bytes: 1500,
            index_interval_bytes: 200,
            file_delete_delay_ms: 0,
            retention_ms: -1,
            flush_messages: self.flush_messages,
            ..LogConfig::default()
        };
        let opened = directory.open_log("t", 0, [7; 16], Arc::new(config));
        let (log, recovery) = opened.unwrap_or_else(|error| panic!("{:?}: {error}", self.told));
        (directory, log, recovery)
    }

    fn with_log<T>(&mut self, act: impl FnOnce(&mut History, &LogDirectory, &Log) -> T) -> T {
        let (directory, log) = self.open.take().unwrap_or_else(|| {
            let (directory, log, recovery) = self.open_log();
            assert_eq!(recovery.damage, None, "{:?}", self.told);
            (directory, log)
        });
        let result = act(self, &directory, &log);
        self.open = Some((directory, log));
        result
    }

    fn append(&mut self) {
        let count = 1 + self.random.below(4) as usize;
        let size = self.random.below(250) as usize;
        let timestamp = NOW_MS + self.random.below(1000) as i64;
        self.with_log(|history, _, log| {
            let mut bytes = batch(count, size, timestamp);
            let info = log.append_as_leader(&mut bytes, LEADER).unwrap();
            history.content.insert(info.first_offset, bytes);
        });
    }

    fn checkpoint(&mut self) {
        self.with_log(|history, directory, log| {
            log.flush().unwrap();
            let high_watermark = log.log_end_offset();
            directory.checkpoint(&[("t".to_owned(), 0, high_watermark)]).unwrap();
            history.synced_end = high_watermark;
        });
    }

    fn truncate(&mut self) {
        let back = self.random.below(6) as i64;
        self.with_log(|history, directory, log| {
            let offset = (log.log_end_offset() - back).max(log.log_start_offset());
            directory.truncate_log(log, offset).unwrap();
            let end = log.log_end_offset();
            // A batch that reaches below the log start offset is removed as a whole.
            history.content.retain(|_, bytes| all(bytes)[0].next_offset() <= end);
            history.synced_end = history.synced_end.min(end);
        });
    }

    fn delete(&mut self) {
        let part = self.random.below(4) as i64;
        self.with_log(|_, directory, log| {
            let (start, end) = (log.log_start_offset(), log.log_end_offset());
            directory.delete_before(log, start + (end - start) * part / 8).unwrap();
            directory.enforce_retention(log, end).unwrap();
            log.delete_expired_files(NOW_MS + 1).unwrap();
            directory.checkpoint(&[]).unwrap();
        });
        self.with_log(|history, _, log| {
            history.start = log.log_start_offset();
            history.synced_end = history.synced_end.max(log.recovery_point());
        });
    }

    fn close(&mut self, clean: bool) {
        self.told.push(format!("close, clean: {clean}"));
        if let Some((directory, _)) = self.open.take()
            && clean
        {
            let end = self.content.last_key_value().map(|(_, bytes)| all(bytes)[0].next_offset());
            directory.close(true).unwrap();
            self.synced_end = end.unwrap_or(0);
        }
    }

    fn live(&mut self) {
        let steps = 10 + self.random.below(40);
        for _ in 0..steps {
            match self.random.below(20) {
                0 => self.checkpoint(),
                1 => self.with_log(|_, _, log| log.roll().unwrap()),
                2 => self.truncate(),
                3 => self.delete(),
                4 => self.close(true),
                5 => self.close(false),
                6 => self.with_log(|_, _, log| log.release_idle_files().unwrap()),
                _ => self.append(),
            }
        }
        let clean = self.random.below(2) == 0;
        self.with_log(|_, _, _| ());
        self.close(clean);
    }

    fn partition() -> PathBuf {
        Path::new(DIR).join("t-0")
    }

    fn remove(&self, names: &[OsString]) {
        for name in names {
            self.disk.remove_file(&History::partition().join(name)).unwrap();
        }
    }

    /// Moves or copies whole files to wrong places; describes what it did.
    fn misplace(&mut self, logs: &[OsString]) -> String {
        let at = |name: &OsString| History::partition().join(name);
        let [one, other] = [(); 2].map(|()| &logs[self.random.below(logs.len() as u64) as usize]);
        let [of_one, of_other] = [one, other].map(|name| self.disk.read(&at(name)).unwrap());
        let write = |path: &Path, bytes: &[u8]| {
            let file = self.disk.open(path, OpenMode::Create).unwrap();
            file.set_len(0).unwrap();
            file.write_at(bytes, 0).unwrap();
        };
        match self.random.below(4) {
            0 => {
                write(&at(one), &of_other);
                write(&at(other), &of_one);
                format!("{} and {} were exchanged", one.display(), other.display())
            }
            1 => {
                write(&at(one), &of_other);
                format!("{} got the content of {}", one.display(), other.display())
            }
            kind => {
                let ends: Vec<i64> = self.content.keys().copied().collect();
                let some = ends.get(self.random.below(ends.len().max(1) as u64) as usize);
                let name = format!("{:020}.log", some.copied().unwrap_or(0) + 1);
                if logs.iter().any(|log| *log == *name) {
                    return "nothing".to_owned();
                }
                let bytes = if kind == 2 { &[][..] } else { &of_one };
                write(&History::partition().join(&name), bytes);
                format!("{name} was made, with {} bytes of {}", bytes.len(), one.display())
            }
        }
    }

    /// Damages one file, or removes the directory; describes what it did.
    fn hurt(&mut self) -> String {
        let names: Vec<_> = match self.disk.list(&History::partition()) {
            // Another topic id makes the open fail, which reports the damage.
            Ok(entries) => (entries.into_iter().map(|entry| entry.name))
                .filter(|name| name != "partition.metadata")
                .collect(),
            Err(_) => return "nothing".to_owned(),
        };
        if self.random.below(30) == 0 {
            self.disk.remove_dir_all(&History::partition()).unwrap();
            return "the directory was removed".to_owned();
        }
        if self.random.below(20) == 0 {
            return self.raise_log_start();
        }
        if self.random.below(20) == 0 {
            let base_offset =
                [1000, 100_000, i64::MAX - 1, i64::MAX][self.random.below(4) as usize];
            let name = format!("{base_offset:020}.log");
            self.disk.create_anew(&History::partition().join(&name)).unwrap();
            return format!("{name} was made, empty");
        }
        let logs = names.iter().filter(|name| name.to_string_lossy().ends_with(".log"));
        let logs: Vec<_> = logs.cloned().collect();
        if self.random.below(20) == 0 && !logs.is_empty() {
            return self.rename_one(&logs);
        }
        if self.random.below(8) == 0 && !logs.is_empty() {
            return self.misplace(&logs);
        }
        match self.random.below(12) {
            0 => {
                self.remove(&names);
                return "all files were deleted".to_owned();
            }
            part @ 1..4 if !logs.is_empty() => {
                // The first segment or any one, with or without its other files.
                let last = if part == 1 { 1 } else { logs.len() as u64 };
                let log = &logs[self.random.below(last) as usize];
                let stem = log.to_string_lossy().replace(".log", "");
                let of_segment =
                    names.iter().filter(|name| name.to_string_lossy().starts_with(&stem));
                self.remove(&of_segment.cloned().collect::<Vec<_>>());
                return format!("segment {stem} was deleted with all its files");
            }
            _ => {}
        }
        let from = if self.random.below(4) == 0 || logs.is_empty() { &names } else { &logs };
        let Some(name) = from.get(self.random.below(from.len().max(1) as u64) as usize) else {
            return "nothing".to_owned();
        };
        self.change_one(name)
    }

    /// Checkpoints a log start offset above every log end offset of a history: within the log a
    /// wrong start looks like a deletion.
    fn raise_log_start(&mut self) -> String {
        let start = 1000 + self.random.below(1000) as i64;
        let path = Path::new(DIR).join("log-start-offset-checkpoint");
        let file = self.disk.open(&path, OpenMode::Create).unwrap();
        let row = format!("0\n1\nt 0 {start}\n");
        file.set_len(0).unwrap();
        file.write_at(row.as_bytes(), 0).unwrap();
        format!("log start {start} was checkpointed")
    }

    /// Adds a suffix to the name of one of the files.
    fn rename_one(&mut self, logs: &[OsString]) -> String {
        let log = &logs[self.random.below(logs.len() as u64) as usize];
        let suffixes = [".bak", ".tmp", ".cleaned", ".deleted"];
        let suffix = suffixes[self.random.below(4) as usize];
        let renamed = format!("{}{suffix}", log.to_string_lossy());
        let at = |name: &str| History::partition().join(name);
        self.disk.rename(&at(&log.to_string_lossy()), &at(&renamed)).unwrap();
        format!("{} got the suffix {suffix}", log.display())
    }

    /// Changes the content of a file, or deletes it.
    fn change_one(&mut self, name: &OsStr) -> String {
        let path = History::partition().join(name);
        let mut bytes = self.disk.read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let at = self.random.below(used.max(1) as u64) as usize;
        let kind = self.random.below(7);
        let what = match kind {
            0 => {
                self.disk.remove_file(&path).unwrap();
                return format!("{} was deleted", name.display());
            }
            1 => {
                bytes.clear();
                "emptied".to_owned()
            }
            2 => {
                let end = (at + 1 + self.random.below(200) as usize).min(used);
                bytes[at.min(end)..end].fill(0);
                format!("zeroed from {at} to {end}")
            }
            3 => {
                bytes.truncate(at);
                format!("cut at {at}")
            }
            4 | 5 => {
                let sizes = pykafka_record::batches(&bytes).map_while(Result::ok);
                let ends = sizes.scan(0, |end, batch| {
                    *end += batch.size();
                    Some(*end)
                });
                let ends: Vec<usize> = [0].into_iter().chain(ends).collect();
                let end = ends[self.random.below(ends.len() as u64) as usize];
                bytes.truncate(end);
                format!("cut between batches at {end}")
            }
            _ if used == 0 => return "nothing".to_owned(),
            _ => {
                let bit = self.random.below(8);
                bytes[at] ^= 1 << bit;
                format!("bit {bit} of byte {at} flipped")
            }
        };
        let file = self.disk.open(&path, OpenMode::Write).unwrap();
        file.set_len(0).unwrap();
        file.write_at(&bytes, 0).unwrap();
        format!("{}: {what}", name.display())
    }

    /// Opens the damaged log and compares it with the promises.
    fn judge(&mut self) {
        let mut first: Option<(i64, Option<i64>)> = None;
        for open in 0..3 {
            let (directory, log, recovery) = self.open_log();
            let told = format!("{:?}, open {open}: {recovery:?}", self.told);
            let (start, end) = (log.log_start_offset(), log.log_end_offset());
            let seen = (end, recovery.damaged_at());
            match first {
                // A cleanly closed log is trusted without being read, so a later open may find more
                // damage.
                Some((end_before, None)) if recovery.damage.is_some() => {
                    assert!(end <= end_before, "{told}");
                }
                Some(first) => assert_eq!(seen, first, "{told}"),
                None => self.check_named(&log, &recovery, &told),
            }
            first = Some(seen);
            assert!(start <= end, "{told}");
            let high_watermark = ("t".to_owned(), 0, end);
            directory.checkpoint(&[high_watermark]).unwrap();
            directory.close(self.random.below(2) == 0).unwrap();
        }
        let (_, log, recovery) = self.open_log();
        let next = log.append_as_leader(&mut batch(1, 10, NOW_MS), LEADER);
        let told = format!("{:?}: {recovery:?}", self.told);
        match next {
            Ok(info) => assert!(info.first_offset >= self.synced_end, "{told}: given twice"),
            // A changed leader epoch may be later than the appender's epoch, which this error
            // reports.
            Err(AppendError::StaleLeaderEpoch { .. }) => {}
            Err(_) => assert!(recovery.damage.is_some(), "{told}: refuses without a reason"),
        }
    }

    /// Checks that synced records exist or their loss is reported, and that existing records were
    /// written.
    fn check_named(&self, log: &Log, recovery: &Recovery, told: &str) {
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        assert!(end >= self.synced_end || recovery.damage.is_some(), "{told}: lost silently");
        let has_beginning = start <= self.start || self.start >= self.synced_end;
        assert!(has_beginning || recovery.damage.is_some(), "{told}: begins later, silently");
        let is_named = recovery.damage.is_some();
        for (base_offset, bytes) in self.content.range(start..self.synced_end.min(end).max(start)) {
            let read = log.read(*base_offset, 1, end, true);
            // No CRC covers the leader epoch (bytes 12 to 15), and a wrong one does not mean that a
            // record is missing.
            let is_same = |found: &[u8]| found[..12] == bytes[..12] && found[16..] == bytes[16..];
            let found = read.as_ref().map(|data| data.bytes.len() >= 16 && is_same(&data.bytes));
            // Trusted segments are not read at the open: the reader gets an error or a batch with a
            // wrong CRC.
            let is_told = match &read {
                Err(_) => true,
                Ok(data) => all(&data.bytes).iter().any(|batch| !batch.is_crc_valid()),
            };
            let is_there = found.is_ok_and(|is_same| is_same);
            assert!(is_there || is_told || is_named, "{told}: {base_offset} is missing");
        }
    }
}

#[test]
fn synced_records_are_not_lost_silently_and_no_offset_is_assigned_twice() {
    let count = std::env::var("PYKAFKA_HISTORIES").map_or(HISTORIES, |text| text.parse().unwrap());
    let (mut damaged, mut cut) = (0, 0);
    for seed in 0..count {
        let mut history = History::new(seed);
        history.live();
        let what = history.hurt();
        let synced_end = history.synced_end;
        history.told.push(format!("{what}; synced to {synced_end}"));
        history.judge();
        let (_, log, _) = history.open_log();
        damaged += u32::from(log.damage().is_some());
        cut += u32::from(log.damage().is_none());
    }
    eprintln!("{count} histories: {damaged} left damaged, {cut} open");
    assert!(damaged > 0 && cut > 0);
}
