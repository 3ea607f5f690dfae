//! A memory disk whose operations wait for a gate, or fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use pykafka_log::{
    Allocated, DirEntry, Disk, DiskFile, MemoryDisk, OpenMode, ReadMap, Reserved, Space, Window,
};

/// What the gate can hold or fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Opening or creating a file.
    Open,
    Read,
    /// Writing and reserving.
    Write,
    /// Syncing data.
    Sync,
}

#[derive(Debug, Default)]
struct State {
    held: Vec<(Op, PathBuf)>,
    failing: Vec<(Op, PathBuf)>,
    waiting: usize,
    synced: usize,
}

impl State {
    fn applies(rules: &[(Op, PathBuf)], op: Op, path: &Path) -> bool {
        rules.iter().any(|(ruled, dir)| *ruled == op && path.starts_with(dir))
    }
}

/// Decides what becomes of operations on files.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Syncs wait from now on.
    pub(crate) fn hold(&self) {
        self.hold_at(Op::Sync, "/data");
    }

    /// Operations below `dir` wait from now on.
    pub(crate) fn hold_at(&self, op: Op, dir: impl Into<PathBuf>) {
        self.state.lock().held.push((op, dir.into()));
    }

    /// What waits goes on, and nothing waits any more.
    pub(crate) fn open(&self) {
        self.state.lock().held.clear();
        self.changed.notify_all();
    }

    /// Syncs fail from now on.
    pub(crate) fn fail(&self) {
        self.fail_at(Op::Sync, "/data");
    }

    /// Operations below `dir` fail from now on.
    pub(crate) fn fail_at(&self, op: Op, dir: impl Into<PathBuf>) {
        self.state.lock().failing.push((op, dir.into()));
    }

    /// Nothing fails any more.
    pub(crate) fn heal(&self) {
        self.state.lock().failing.clear();
    }

    /// Blocks until `count` operations wait at the gate.
    pub(crate) fn until_waiting(&self, count: usize) {
        let mut state = self.state.lock();
        while state.waiting < count {
            self.changed.wait(&mut state);
        }
    }

    /// Syncs that succeeded.
    pub(crate) fn synced(&self) -> usize {
        self.state.lock().synced
    }

    fn pass(&self, op: Op, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.waiting += 1;
        self.changed.notify_all();
        while State::applies(&state.held, op, path) {
            self.changed.wait(&mut state);
        }
        state.waiting -= 1;
        if State::applies(&state.failing, op, path) {
            return Err(io::Error::other("the gate fails it"));
        }
        state.synced += usize::from(op == Op::Sync);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct GateDisk {
    disk: MemoryDisk,
    gate: Arc<Gate>,
}

impl GateDisk {
    pub(crate) fn new(gate: Arc<Gate>) -> GateDisk {
        GateDisk { disk: MemoryDisk::default(), gate }
    }
}

impl Disk for GateDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.gate.pass(Op::Open, path)?;
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(GateFile { file, path: path.to_owned(), gate: self.gate.clone() }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.disk.exists(path)
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<Space> {
        self.disk.available_bytes(dir)
    }
}

#[derive(Debug)]
struct GateFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    gate: Arc<Gate>,
}

impl DiskFile for GateFile {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        self.gate.pass(Op::Read, &self.path)?;
        self.file.read_at(bytes, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.gate.pass(Op::Write, &self.path)?;
        self.file.write_at(bytes, position)
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        self.gate.pass(Op::Write, &self.path)?;
        self.file.allocate(position, size)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass(Op::Sync, &self.path)?;
        self.file.sync_data()
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        self.file.map_window(reserved, position)
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        self.file.map_read(size)
    }
}
