//! A disk for tests that fails on demand and loses data that was not synced.
//!
//! # Theory of operation
//! Each file has its *live* content, which readers see, and its *durable* content, which the last
//! sync stored. Sectors of 512 bytes that differ are recorded as dirty. Names are also live or
//! durable, with a journal of the changes between both. A power cut creates a new disk with content
//! that might be found afterwards:
//!
//! - any subset of each file's dirty sectors, since write-back stores pages at any time; the file's
//!   length as synced or as last seen;
//! - of the name changes whose directory was not synced, either a prefix, as with journaling file
//!   systems, or any subset, as POSIX allows. A file without a name is lost, even if it was synced.
//!
//! A fault affects the n-th changing operation after the fault was set. After a failed sync the
//! dirty sectors count as clean although they never reached the disk, as on Linux: a later
//! successful sync does not store them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_forks::{Mutex, MutexGuard};

use super::{
    Allocated, DirEntry, Disk, DiskFile, OpenMode, ReadFile, ReadMap, Reserved, Space, Window,
};

mod store;

use store::{NameChange, Store};

/// The effect on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails and changes nothing. Mapped writes cannot fail, so they ignore this fault.
    Error(io::ErrorKind),
    /// Half of a write is done, and it fails; any other operation just fails.
    Torn,
    /// The power fails: half of the operation may be done, and every later one fails.
    PowerCut,
}

/// The operations that are counted until a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// All operations that change files or names, and syncs.
    All,
    /// [`DiskFile::sync_data`] and [`Disk::sync_dir`].
    Syncs,
}

/// A disk in memory. Clones share files and faults.
#[derive(Clone, Default)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    store: Store,
    armed: Option<Armed>,
    powered: bool,
    operations: u64,
    bytes_max: u64,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    left: u64,
    counted: Operations,
    fault: Fault,
}

impl Default for State {
    fn default() -> Self {
        let store = Store::default();
        State { store, armed: None, powered: true, operations: 0, bytes_max: u64::MAX }
    }
}

impl FaultyDisk {
    /// Sets `fault` for the operation after `skipped` counted ones. Replaces an earlier fault.
    pub fn arm(&self, fault: Fault, counted: Operations, skipped: u64) {
        self.state.lock().armed = Some(Armed { left: skipped, counted, fault });
    }

    /// Removes the fault.
    pub fn disarm(&self) {
        self.state.lock().armed = None;
    }

    /// True if a fault is set and has not occurred yet.
    pub fn is_armed(&self) -> bool {
        self.state.lock().armed.is_some()
    }

    /// Number of operations so far, including failed ones.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// Limits the size of all files together to `bytes_max`.
    pub fn set_space(&self, bytes_max: u64) {
        self.state.lock().bytes_max = bytes_max;
    }

    /// Size of all files that have a name.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().store.used_bytes()
    }

    /// A disk with content that might be found if the power failed now. Seed 0 keeps nothing that
    /// was not synced, seed 1 keeps everything; other seeds choose pseudo-randomly.
    #[must_use]
    pub fn after_power_cut(&self, seed: u64) -> FaultyDisk {
        let store = self.state.lock().store.after_power_cut(seed);
        FaultyDisk { state: Arc::new(Mutex::new(State { store, ..State::default() })) }
    }

    /// Counts an operation, and returns the fault that affects it.
    fn begin(&self, kind: Operations) -> io::Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.state.lock();
        state.check_power()?;
        state.operations += 1;
        let fault = state.fault_for(kind);
        if fault == Some(Fault::PowerCut) {
            state.powered = false;
        }
        Ok((state, fault))
    }

    /// Starts an operation that takes effect completely or not at all.
    fn change(&self, kind: Operations) -> io::Result<MutexGuard<'_, State>> {
        let (state, fault) = self.begin(kind)?;
        match fault {
            None => Ok(state),
            Some(fault) => Err(fault.error()),
        }
    }

    fn look(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        state.check_power()?;
        Ok(state)
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { armed, operations, .. } = &*self.state.lock();
        let mut shown = formatter.debug_struct("FaultyDisk");
        shown.field("armed", armed).field("operations", operations).finish()
    }
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Fault::Error(kind) => kind.into(),
            Fault::Torn => io::Error::other("injected fault"),
            Fault::PowerCut => power_is_off(),
        }
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

impl State {
    fn check_power(&self) -> io::Result<()> {
        if self.powered { Ok(()) } else { Err(power_is_off()) }
    }

    fn fault_for(&mut self, kind: Operations) -> Option<Fault> {
        let armed = self.armed.as_mut()?;
        if armed.counted != Operations::All && armed.counted != kind {
            return None;
        }
        if armed.left > 0 {
            armed.left -= 1;
            return None;
        }
        self.armed.take().map(|armed| armed.fault)
    }

    fn check_space(&self, inode: usize, end: u64) -> io::Result<()> {
        let more = end.saturating_sub(self.store.size(inode));
        if more > 0 && self.store.used_bytes().saturating_add(more) > self.bytes_max {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        if mode == OpenMode::New && self.look()?.store.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let found = self.look()?.store.file(path)?;
        let inode = match found {
            Some(inode) => inode,
            None if mode.creates() => self.change(Operations::All)?.store.create(path)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(FaultyFile { disk: self.clone(), inode, writable: mode != OpenMode::Read }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> = {
            let state = self.look()?;
            let missing = path.ancestors().filter(|dir| !state.store.exists(dir));
            missing.map(Path::to_owned).collect()
        };
        for dir in missing.into_iter().rev() {
            self.change(Operations::All)?.store.apply(NameChange::CreateDir(dir))?;
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.look()?.store.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        self.change(Operations::All)?.store.apply(change)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change(Operations::All)?.store.apply(NameChange::Remove(path.to_owned()))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        // Entry by entry, as the operating system does: a power cut leaves some of them.
        for entry in self.list(path)? {
            let child = path.join(&entry.name);
            if entry.is_dir { self.remove_dir_all(&child)? } else { self.remove_file(&child)? }
        }
        self.change(Operations::All)?.store.apply(NameChange::Remove(path.to_owned()))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(Operations::Syncs)?.store.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.look().is_ok_and(|state| state.store.exists(path))
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<Space> {
        let state = self.look()?;
        let total = state.bytes_max;
        Ok(Space { total, usable: total.saturating_sub(state.store.used_bytes()) })
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    inode: usize,
    writable: bool,
}

impl FaultyFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl ReadFile for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        Ok(self.disk.look()?.store.read(self.inode, bytes, position))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.disk.look()?.store.size(self.inode))
    }
}

impl DiskFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.check_writable()?;
        let end = position.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let (mut state, fault) = self.disk.begin(Operations::All)?;
        state.check_space(self.inode, end)?;
        match fault {
            None => state.store.write(self.inode, bytes, position),
            Some(Fault::Error(kind)) => return Err(kind.into()),
            Some(fault) => {
                state.store.write(self.inode, &bytes[..bytes.len() / 2], position);
                return Err(fault.error());
            }
        }
        Ok(())
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        self.check_writable()?;
        let end = position.checked_add(size).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut state = self.disk.change(Operations::All)?;
        state.check_space(self.inode, end)?;
        let file_size = state.store.size(self.inode).max(end);
        state.store.set_len(self.inode, file_size);
        Reserved::granted(position, size)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.disk.change(Operations::All)?;
        state.check_space(self.inode, size)?;
        state.store.set_len(self.inode, size);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut state, fault) = self.disk.begin(Operations::Syncs)?;
        match fault {
            None => state.store.sync(self.inode),
            // `after_power_cut` decides how much was written back before the power failed.
            Some(Fault::PowerCut) => return Err(power_is_off()),
            Some(fault) => {
                state.store.forget_dirty(self.inode);
                return Err(fault.error());
            }
        }
        Ok(())
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        self.check_writable()?;
        let (end, size) = reserved.window(position)?;
        if self.size()? < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Box::new(FaultyWindow { disk: self.disk.clone(), inode: self.inode, position, size }))
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        let mut bytes = vec![0; size];
        if self.read_at(&mut bytes, 0)? < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(ReadMap::copied(bytes))
    }
}

#[derive(Debug)]
struct FaultyWindow {
    disk: FaultyDisk,
    inode: usize,
    position: u64,
    size: usize,
}

impl Window for FaultyWindow {
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (mut state, fault) = self.disk.begin(Operations::All)?;
        let cut = fault == Some(Fault::PowerCut);
        let written = if cut { &bytes[..bytes.len() / 2] } else { bytes };
        if state.store.size(self.inode) < self.position + self.size as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        state.store.write(self.inode, written, self.position + offset as u64);
        if cut { Err(power_is_off()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
