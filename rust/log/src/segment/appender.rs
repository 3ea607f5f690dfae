//! The writer of a segment file: two ways to write, and a rule that selects one of them.
//!
//! # Theory of operation
//! The first 64 KiB of a file are written without reserving or mapping anything: most of a thousand
//! new topics never get more, and a reservation costs more than the rest of a first append. After
//! that, space is reserved ahead of the file's logical end, in steps of 1 MiB that double up to 32
//! MiB, so that a full disk is noticed before anything is written and a mapped write never needs a
//! new block. A batch is then
//!
//! - *mapped*: copied into a shared window over the reserved space. This needs no system call; the
//!   bytes are in the page cache at once and survive the process. It is the cheapest way if many
//!   batches share a page. It requires that the file system reserved the space and returned a
//!   [`Reserved`].
//! - *written*: `pwrite` to the same position. A mapped page costs a page fault, is zeroed first
//!   and is dirtied alone, but the call fills many pages at a time: at 64 KiB it costs a third.
//!   During an fdatasync, mapped pages block their writer, so logs that sync each append write
//!   batches of all sizes this way.
//!
//! Both write the same bytes to the same positions, so each batch can use either.
//!
//! A reservation may wait for the disk: the file system reads which blocks are free, and that read
//! waits for all running writes, for example the sync of a rolled segment. So a file that will soon
//! be full is reserved completely at its start ([`Appender::reserve_up_to`]);
//! [`Appender::give_back`] releases the surplus.
//!
//! The bytes after the logical end are zeros. [`Appender::trim`] removes them (roll, idle, close);
//! after a crash recovery cuts them. The window is dropped before the file is shortened (see
//! `disk::map`).

use std::io;
use std::sync::Arc;

use crate::config::LogConfig;
use crate::disk::{Allocated, DiskFile, Reserved, Window};

/// Largest batch that is copied into the window. For larger ones a page fault for every page costs
/// more than `pwrite` on another thread, or keeps the connection's thread from reading the next
/// batch (`bench/log/test_ways.py` measures both ways separately).
pub const MAPPED_BATCH_BYTES_MAX: usize = 32 * 1024;

/// Up to this size a file grows batch by batch, in small segments up to a 16th of their size.
const UNRESERVED_BYTES_MAX: u64 = 64 * 1024;
const UNRESERVED_SEGMENT_PART: u64 = 16;

/// The first reservation of a file; each further one is twice as large.
const STEP_BYTES_MIN: u64 = 1 << 20;
const STEP_BYTES_MAX: u64 = 32 << 20;

/// Bytes of a file that are mapped at once: mapped pages count as memory of the process.
const WINDOW_BYTES_MAX: u64 = STEP_BYTES_MAX;

// A mapped batch fits into a window, and a window never reaches beyond the space that `give_back`
// keeps.
const _: () = assert!(MAPPED_BATCH_BYTES_MAX as u64 <= WINDOW_BYTES_MAX);
const _: () = assert!(WINDOW_BYTES_MAX <= STEP_BYTES_MAX);
// A file with reserved space is never treated as a young one.
const _: () = assert!(UNRESERVED_BYTES_MAX < STEP_BYTES_MIN);

/// Writes by copying into a window of the reserved space that starts at the logical end.
#[derive(Debug, Default)]
struct MappedAppend {
    window: Option<OpenWindow>,
}

#[derive(Debug)]
struct OpenWindow {
    window: Box<dyn Window>,
    start: u64,
    end: u64,
}

impl MappedAppend {
    /// Writes `bytes` at `position`; they must fit into `reserved`.
    fn append(
        &mut self,
        file: &dyn DiskFile,
        reserved: &Reserved,
        bytes: &[u8],
        position: u64,
    ) -> io::Result<()> {
        let end = position + bytes.len() as u64;
        let open = match &mut self.window {
            Some(open) if open.start <= position && end <= open.end => open,
            slot => {
                // One window at a time: the old one is unmapped before the new one is mapped.
                *slot = None;
                let part = reserved.part(position, WINDOW_BYTES_MAX);
                let window = file.map_window(&part, position)?;
                slot.insert(OpenWindow { window, start: position, end: part.end() })
            }
        };
        open.window.write_at((position - open.start) as usize, bytes)
    }
}

/// Selects the batches that are copied into the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendRule {
    mapped_batch_bytes_max: usize,
    unreserved_bytes_max: u64,
}

impl AppendRule {
    /// The rule for files of a log with `config`.
    pub fn new(config: &LogConfig) -> Self {
        let may_map = !config.syncs_every_append();
        AppendRule {
            mapped_batch_bytes_max: if may_map { MAPPED_BATCH_BYTES_MAX } else { 0 },
            unreserved_bytes_max: (config.segment_bytes as u64 / UNRESERVED_SEGMENT_PART)
                .min(UNRESERVED_BYTES_MAX),
        }
    }

    /// Writes every batch with `pwrite`, into reserved space.
    pub const WRITTEN: AppendRule =
        AppendRule { mapped_batch_bytes_max: 0, unreserved_bytes_max: 0 };
}

/// The writer of one file.
#[derive(Debug)]
pub struct Appender {
    file: Arc<dyn DiskFile>,
    position: u64,
    reserved_end: u64,
    step: u64,
    rule: AppendRule,
    /// From the logical end or before it to `reserved_end`; `None` if the file system cannot
    /// reserve space.
    reserved: Option<Reserved>,
    mapped: MappedAppend,
}

impl Appender {
    /// A writer that continues at `position`, the logical size. Bytes after it are cut off, so the
    /// file must not be mapped for reading.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter than `position`; otherwise the error of the disk.
    pub fn open(file: Arc<dyn DiskFile>, position: u64, rule: AppendRule) -> io::Result<Self> {
        let size = file.size()?;
        if size < position {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if size > position {
            file.set_len(position)?;
        }
        Ok(Appender {
            position,
            reserved_end: position,
            step: STEP_BYTES_MIN,
            rule,
            reserved: None,
            mapped: MappedAppend::default(),
            file,
        })
    }

    /// The file that is written.
    pub fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    /// The logical size, which is the position of the next batch.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// End of the file's space, at least [`Appender::position`].
    pub fn reserved_end(&self) -> u64 {
        self.reserved_end
    }

    /// True if [`Appender::append`] of `size` bytes is only a copy into the window.
    pub fn only_copies(&self, size: usize) -> bool {
        let (start, end) = (self.position, self.position.saturating_add(size as u64));
        size <= self.rule.mapped_batch_bytes_max
            && (self.mapped.window.as_ref())
                .is_some_and(|open| open.start <= start && end <= open.end)
    }

    /// True if [`Appender::append`] of `size` bytes is only one write, or a copy, to reserved
    /// space.
    pub fn only_writes(&self, size: usize) -> bool {
        self.position.saturating_add(size as u64) <= self.reserved_end
    }

    /// Writes `bytes` at the logical end and returns their position.
    ///
    /// # Errors
    /// `StorageFull` if there is not enough space: nothing was appended, and a later call may
    /// succeed. After any other error the content after [`Appender::position`] is unknown.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let position = self.position;
        let end = position.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let is_young = end <= self.rule.unreserved_bytes_max && self.reserved_end == position;
        if is_young {
            self.reserved_end = end;
        } else {
            self.reserve(end)?;
        }
        let mapped = match &self.reserved {
            Some(reserved) if bytes.len() <= self.rule.mapped_batch_bytes_max => {
                Some(self.mapped.append(&*self.file, reserved, bytes, position))
            }
            _ => None,
        };
        let appended = match mapped {
            Some(Ok(())) => Ok(()),
            // The number of maps of a process is limited, and the file does not need one.
            Some(Err(error)) if error.kind() != io::ErrorKind::OutOfMemory => Err(error),
            _ => self.file.write_at(bytes, position),
        };
        if let Err(error) = appended {
            self.take_back();
            return Err(error);
        }
        self.position = end;
        Ok(position)
    }

    /// Cuts the file at `position`, which must not be beyond the logical end.
    pub fn truncate(&mut self, position: u64) -> io::Result<()> {
        self.release();
        self.position = self.position.min(position);
        self.trim()
    }

    /// Releases the reserved space: the file ends at the logical end. Appends can continue.
    pub fn trim(&mut self) -> io::Result<()> {
        self.release();
        self.reserved = None;
        self.reserved_end = self.position;
        self.step = STEP_BYTES_MIN;
        if self.file.size()? == self.position { Ok(()) } else { self.file.set_len(self.position) }
    }

    /// Drops the window; the next small batch maps it again. For idle partitions.
    pub fn release(&mut self) {
        self.mapped.window = None;
    }

    /// Reserves the file up to `end` before it is needed.
    ///
    /// # Errors
    /// The error of the reservation, after the reserved part was released; or the error of that
    /// release.
    pub fn reserve_up_to(&mut self, end: u64) -> io::Result<()> {
        let before = self.reserved_end;
        if end <= before {
            return Ok(());
        }
        let reserved = self.extend(end - before);
        if reserved.is_err() {
            self.file.set_len(before)?;
        }
        reserved
    }

    /// True if more than a step is reserved, because of [`Appender::reserve_up_to`].
    pub fn is_far_ahead(&self) -> bool {
        self.reserved_end - self.position > STEP_BYTES_MAX
    }

    /// Releases reserved space beyond a step.
    pub fn give_back(&mut self) -> io::Result<()> {
        let end = self.reserved_end.min(self.position + STEP_BYTES_MAX);
        self.release();
        self.file.set_len(end)?;
        self.reserved_end = end;
        let kept = |reserved: Reserved| reserved.part(self.position, STEP_BYTES_MAX);
        self.reserved = self.reserved.take().map(kept);
        Ok(())
    }

    fn reserve(&mut self, end: u64) -> io::Result<()> {
        if end <= self.reserved_end {
            return Ok(());
        }
        let needed = end - self.reserved_end;
        let generous = needed.max(self.step);
        match self.extend(generous) {
            Ok(()) => {
                // Not while the disk is full: otherwise the next successful append would reserve
                // all of the freed space.
                self.step = (self.step * 2).min(STEP_BYTES_MAX);
                Ok(())
            }
            // The last free space is for records, not for reservations.
            Err(full) if full.kind() == io::ErrorKind::StorageFull && needed < generous => {
                self.extend(needed)
            }
            Err(error) => Err(error),
        }
    }

    /// Reserves `size` more bytes.
    fn extend(&mut self, size: u64) -> io::Result<()> {
        let allocated = self.file.allocate(self.reserved_end, size)?;
        self.reserved_end += size;
        self.reserved = match (self.reserved.take(), allocated) {
            (_, Allocated::Grown) => None,
            (None, Allocated::Reserved(reserved)) => Some(reserved),
            (Some(before), Allocated::Reserved(reserved)) => Some(before.join(reserved)),
        };
        Ok(())
    }

    /// After a failed write: a part of a batch after the logical end must not look like records
    /// later.
    fn take_back(&mut self) {
        // The caller gets the error of the write; if this fails too, recovery cuts the tail.
        let _ = self.trim();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::disk::{Disk, MemoryDisk, OpenMode, ReadFile, RealDisk};

    /// The cases of the tests, for both ways to write: name, disk, rule, directory guard.
    fn cases() -> Vec<(&'static str, Arc<dyn Disk>, AppendRule, tempfile::TempDir)> {
        let mapped =
            AppendRule { mapped_batch_bytes_max: MAPPED_BATCH_BYTES_MAX, unreserved_bytes_max: 0 };
        let mut cases: Vec<(_, Arc<dyn Disk>, _, _)> = Vec::new();
        for (name, rule) in [("mapped", mapped), ("written", AppendRule::WRITTEN)] {
            let dir = tempfile::tempdir().unwrap();
            let memory = MemoryDisk::default();
            memory.create_dir_all(dir.path()).unwrap();
            cases.push((name, Arc::new(memory), rule, tempfile::tempdir().unwrap()));
            cases.push((name, Arc::new(RealDisk), rule, dir));
        }
        for (_, disk, _, dir) in &cases {
            disk.create_dir_all(dir.path()).unwrap();
        }
        cases
    }

    #[test]
    fn batches_of_all_sizes_are_read_back_as_written() {
        for (name, disk, rule, dir) in cases() {
            let file = disk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
            let mut appender = Appender::open(Arc::clone(&file), 0, rule).unwrap();
            let mut expected = Vec::new();
            for (n, size) in [1, 100, 4096, 32_768, 32_769, 65_537, 3_000_000, 61, 0, 700]
                .into_iter()
                .enumerate()
            {
                let batch = vec![n as u8 + 1; size];
                assert_eq!(appender.append(&batch).unwrap(), expected.len() as u64, "{name}");
                expected.extend_from_slice(&batch);
                assert!(appender.reserved_end() >= appender.position());
            }
            let mut read = vec![0; expected.len()];
            assert_eq!(file.read_at(&mut read, 0).unwrap(), expected.len());
            assert!(read == expected, "{name} {disk:?}");
            assert!(file.size().unwrap() > expected.len() as u64, "space is reserved ahead");
            appender.trim().unwrap();
            assert_eq!(file.size().unwrap(), expected.len() as u64, "{name}");
        }
    }

    #[test]
    fn truncated_file_continues_at_the_cut_with_zeros_after_it() {
        for (name, disk, rule, dir) in cases() {
            let file = disk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
            let mut appender = Appender::open(Arc::clone(&file), 0, rule).unwrap();
            appender.append(&[1; 5000]).unwrap();
            appender.truncate(100).unwrap();
            assert_eq!((appender.position(), file.size().unwrap()), (100, 100), "{name}");
            assert_eq!(appender.append(&[2; 50]).unwrap(), 100);
            let mut tail = [9; 200];
            file.read_at(&mut tail, 100).unwrap();
            assert!(tail[..50] == [2; 50] && tail[50..] == [0; 150], "{name} {disk:?}");
        }
    }

    #[test]
    fn opening_cuts_bytes_after_the_logical_end() {
        for (name, disk, rule, dir) in cases() {
            let file = disk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
            file.write_at(&[1; 300], 0).unwrap();
            assert!(Appender::open(Arc::clone(&file), 301, rule).is_err(), "{name}");
            let appender = Appender::open(Arc::clone(&file), 200, rule).unwrap();
            assert_eq!((appender.position(), file.size().unwrap()), (200, 200), "{name}");
        }
    }

    #[test]
    fn truncation_by_another_process_fails_the_append_or_is_filled() {
        for (name, disk, rule, dir) in cases() {
            let path = dir.path().join("log");
            let file = disk.open(&path, OpenMode::Create).unwrap();
            let mut appender = Appender::open(file, 0, rule).unwrap();
            appender.append(&[1; 500]).unwrap();
            disk.open(&path, OpenMode::Write).unwrap().set_len(0).unwrap();
            let mapped = rule != AppendRule::WRITTEN;
            assert_eq!(appender.append(&[1; 500]).is_err(), mapped, "{name} {disk:?}");
        }
    }

    #[test]
    fn a_full_disk_appends_nothing_and_resumes_when_space_returns() {
        let disk = MemoryDisk::new(64 * 1024);
        let file = disk.open(Path::new("/log"), OpenMode::Create).unwrap();
        let other = disk.open(Path::new("/other"), OpenMode::Create).unwrap();
        other.write_at(&vec![1; 32 * 1024], 0).unwrap();
        let mut appender = Appender::open(Arc::clone(&file), 0, AppendRule::WRITTEN).unwrap();
        appender.append(&[1; 16 * 1024]).unwrap();
        let error = appender.append(&vec![2; 32 * 1024]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!((appender.position(), file.size().unwrap()), (16 * 1024, 16 * 1024));
        other.set_len(0).unwrap();
        assert_eq!(appender.append(&vec![2; 32 * 1024]).unwrap(), 16 * 1024);
    }

    #[test]
    fn young_file_is_not_reserved_and_an_older_one_is_reserved_ahead() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
        let rule = AppendRule::new(&config(i64::MAX));
        let mut appender = Appender::open(Arc::clone(&file), 0, rule).unwrap();
        let mut expected = Vec::new();
        for (n, size) in [100, 1, 65_435, 1, 700, 65_537].into_iter().enumerate() {
            let batch = vec![n as u8 + 1; size];
            assert_eq!(appender.append(&batch).unwrap(), expected.len() as u64);
            expected.extend_from_slice(&batch);
            let is_young = expected.len() as u64 <= UNRESERVED_BYTES_MAX;
            assert_eq!(file.size().unwrap() == expected.len() as u64, is_young);
        }
        appender.truncate(200).unwrap();
        expected.truncate(200);
        appender.append(&[9; 50]).unwrap();
        expected.extend_from_slice(&[9; 50]);
        assert_eq!(file.size().unwrap(), 250, "young again");
        let mut read = vec![0; 251];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), 250);
        assert!(read[..250] == expected);
    }

    fn config(flush_messages: i64) -> LogConfig {
        LogConfig { flush_messages, ..LogConfig::default() }
    }

    #[test]
    fn the_rule_maps_nothing_that_is_synced_with_each_append() {
        let mapped_max =
            |flush_messages| AppendRule::new(&config(flush_messages)).mapped_batch_bytes_max;
        assert_eq!(mapped_max(1), 0);
        assert_eq!(mapped_max(i64::MAX), MAPPED_BATCH_BYTES_MAX);
    }

    /// On ext2 and ext3 the file grew without blocks and was still mapped: SIGBUS once the disk was
    /// full.
    #[test]
    fn a_file_that_could_not_be_reserved_is_written_and_never_mapped() {
        let file = Arc::new(OtherFile::new(|file, position, size| {
            file.allocate(position, size).map(|_| Allocated::Grown)
        }));
        let rule = AppendRule::new(&config(i64::MAX));
        let mut appender = Appender::open(file.clone(), 0, rule).unwrap();
        let mut expected = Vec::new();
        for n in 0..300u32 {
            appender.append(&[n as u8; 1000]).unwrap();
            expected.extend([n as u8; 1000]);
        }
        assert!(file.size().unwrap() > expected.len() as u64, "it grows ahead");
        let mut read = vec![0; expected.len()];
        file.read_at(&mut read, 0).unwrap();
        assert!(read == expected);
    }

    /// How a file on another file system reserves space.
    type Allocate = fn(&dyn DiskFile, u64, u64) -> io::Result<Allocated>;

    /// A file that cannot be mapped for writing.
    #[derive(Debug)]
    struct OtherFile(Arc<dyn DiskFile>, Allocate);

    impl OtherFile {
        fn new(allocate: Allocate) -> Self {
            let opened = MemoryDisk::default().open(Path::new("/log"), OpenMode::Create);
            OtherFile(opened.unwrap(), allocate)
        }
    }

    impl ReadFile for OtherFile {
        fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
            self.0.read_at(bytes, position)
        }

        fn size(&self) -> io::Result<u64> {
            self.0.size()
        }
    }

    impl DiskFile for OtherFile {
        fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
            self.0.write_at(bytes, position)
        }
        fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
            (self.1)(&*self.0, position, size)
        }
        fn set_len(&self, size: u64) -> io::Result<()> {
            self.0.set_len(size)
        }
        fn sync_data(&self) -> io::Result<()> {
            self.0.sync_data()
        }
        fn map_window(&self, _: &Reserved, _: u64) -> io::Result<Box<dyn Window>> {
            panic!("mapped without a reservation")
        }
        fn map_read(&self, size: usize) -> io::Result<crate::disk::ReadMap> {
            self.0.map_read(size)
        }
    }

    #[test]
    fn space_that_is_only_grown_after_reserved_space_is_not_mapped() {
        let file = Arc::new(OtherFile::new(|file, position, size| {
            let allocated = file.allocate(position, size)?;
            Ok(if position == 0 { allocated } else { Allocated::Grown })
        }));
        let rule = AppendRule::new(&config(i64::MAX));
        let mut appender = Appender::open(file, 0, rule).unwrap();
        appender.append(&vec![1; STEP_BYTES_MIN as usize]).unwrap();
        assert_eq!(appender.append(&[2; 100]).unwrap(), STEP_BYTES_MIN);
    }

    #[test]
    fn completely_reserved_file_is_mapped_in_windows_and_accepts_every_batch() {
        const WHOLE: u64 = 80 << 20;
        for (name, disk, rule, dir) in cases() {
            let file = disk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
            let mut appender = Appender::open(Arc::clone(&file), 0, rule).unwrap();
            appender.reserve_up_to(WHOLE).unwrap();
            assert!(appender.is_far_ahead());
            let batch = |n: u64| vec![n as u8; MAPPED_BATCH_BYTES_MAX - 100];
            let (mut count, mut new_windows) = (0, 0);
            while appender.only_writes(MAPPED_BATCH_BYTES_MAX) {
                new_windows += u32::from(!appender.only_copies(MAPPED_BATCH_BYTES_MAX));
                let appended = appender.append(&batch(count));
                assert_eq!(appended.unwrap(), count * batch(0).len() as u64, "{name}");
                count += 1;
            }
            assert_eq!(file.size().unwrap(), WHOLE, "{name} {disk:?}: it has what it needs");
            if rule != AppendRule::WRITTEN {
                assert_eq!(new_windows, 3, "{name} {disk:?}");
            }
            for n in (0..count).step_by(97) {
                let mut read = vec![0; batch(0).len()];
                file.read_at(&mut read, n * batch(0).len() as u64).unwrap();
                assert!(read == batch(n), "{name} {disk:?} batch {n}");
            }
        }
    }

    #[test]
    fn give_back_keeps_a_step_and_appends_continue() {
        for (name, disk, rule, dir) in cases() {
            let file = disk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
            let mut appender = Appender::open(Arc::clone(&file), 0, rule).unwrap();
            appender.reserve_up_to(100 << 20).unwrap();
            appender.append(&[1; 1000]).unwrap();
            appender.give_back().unwrap();
            assert!(!appender.is_far_ahead(), "{name}");
            assert_eq!(file.size().unwrap(), 1000 + STEP_BYTES_MAX, "{name} {disk:?}");
            assert_eq!(appender.reserved_end(), file.size().unwrap(), "{name}");
            for _ in 0..1100 {
                appender.append(&vec![2; 32_000]).unwrap();
            }
            let mut read = vec![0; 1001];
            file.read_at(&mut read, 35_000_000).unwrap();
            assert!(read.iter().all(|byte| *byte == 2), "{name} {disk:?}");
        }
    }

    #[test]
    fn failed_reservation_of_a_whole_file_keeps_no_part_of_it() {
        let file = Arc::new(OtherFile::new(|file, position, size| {
            file.set_len(position + size.min(8192))?;
            if size > 8192 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(Allocated::Grown) }
        }));
        let mut appender = Appender::open(file.clone(), 0, AppendRule::WRITTEN).unwrap();
        let refused = appender.reserve_up_to(2 << 20).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert_eq!((appender.reserved_end(), file.size().unwrap()), (0, 0));
        assert_eq!(appender.append(&[1; 5000]).unwrap(), 0, "no more than it needs");
    }

    #[test]
    fn only_an_append_to_reserved_space_only_writes() {
        for (name, disk, rule, dir) in cases() {
            let file = disk.open(&dir.path().join("log"), OpenMode::Create).unwrap();
            let mut appender = Appender::open(file, 0, rule).unwrap();
            assert!(!appender.only_writes(1), "{name}");
            appender.append(&[1; 100]).unwrap();
            let left = (appender.reserved_end() - appender.position()) as usize;
            assert!(appender.only_writes(left) && !appender.only_writes(left + 1), "{name}");
        }
    }

    #[test]
    fn a_small_segment_is_reserved_early() {
        let config = LogConfig { segment_bytes: 4000, ..LogConfig::default() };
        let rule = AppendRule::new(&config);
        assert_eq!(rule.unreserved_bytes_max, 250);
    }
}
