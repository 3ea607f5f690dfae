//! Files and names of the faulty disk, each with a live and a durable state.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::DirEntry;

/// Bytes that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

type Names = BTreeMap<PathBuf, Node>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(usize),
}

/// An atomic change of names.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    CreateDir(PathBuf),
    CreateFile(PathBuf, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors of `live` that write-back may or may not have stored.
    dirty: BTreeSet<usize>,
}

/// A change that is not, or not completely, durable.
#[derive(Clone, Debug)]
struct Pending {
    change: NameChange,
    /// True if its directory was synced; the change becomes durable with the directory's own name.
    synced: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    inodes: Vec<Inode>,
    names: Names,
    durable_names: Names,
    /// Changes from `durable_names` to `names`, in order.
    journal: Vec<Pending>,
}

impl Store {
    pub fn exists(&self, path: &Path) -> bool {
        is_root(path) || self.names.contains_key(path)
    }

    /// The file with this name; `None` if the name does not exist.
    pub fn file(&self, path: &Path) -> io::Result<Option<usize>> {
        match self.names.get(path) {
            None => Ok(None),
            Some(Node::File(inode)) => Ok(Some(*inode)),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub fn create(&mut self, path: &Path) -> io::Result<usize> {
        let inode = self.inodes.len();
        self.inodes.push(Inode::default());
        self.apply(NameChange::CreateFile(path.to_owned(), inode))?;
        Ok(inode)
    }

    pub fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        if !is_root(dir) && self.names.get(dir) != Some(&Node::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let children = self.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        let entry = |(path, node): (&PathBuf, &Node)| DirEntry {
            name: path.file_name().unwrap_or_default().to_owned(),
            is_dir: *node == Node::Directory,
            size: match node {
                Node::Directory => 0,
                Node::File(inode) => self.size(*inode),
            },
            modified_ms: None,
            id: None,
        };
        Ok(children.map(entry).collect())
    }

    /// Changes the live names.
    pub fn apply(&mut self, change: NameChange) -> io::Result<()> {
        apply(&mut self.names, &change)?;
        self.journal.push(Pending { change, synced: false });
        Ok(())
    }

    /// Makes the changes in `dir` durable, if `dir` itself is durable.
    pub fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        if !self.exists(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let journal = std::mem::take(&mut self.journal);
        for mut pending in journal {
            pending.synced |= pending.change.touches(dir);
            let durable = pending.synced && apply(&mut self.durable_names, &pending.change).is_ok();
            if !durable {
                self.journal.push(pending);
            }
        }
        Ok(())
    }

    pub fn used_bytes(&self) -> u64 {
        let sizes = self.names.values().map(|node| match node {
            Node::Directory => 0,
            Node::File(inode) => self.size(*inode),
        });
        sizes.sum()
    }

    pub fn size(&self, inode: usize) -> u64 {
        self.inodes[inode].live.len() as u64
    }

    pub fn read(&self, inode: usize, bytes: &mut [u8], position: u64) -> usize {
        let live = &self.inodes[inode].live;
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(live.len());
        let count = bytes.len().min(live.len() - from);
        bytes[..count].copy_from_slice(&live[from..from + count]);
        count
    }

    pub fn write(&mut self, inode: usize, bytes: &[u8], position: u64) {
        let file = &mut self.inodes[inode];
        let start = position as usize;
        let end = start + bytes.len();
        if file.live.len() < end {
            file.live.resize(end, 0);
        }
        file.live[start..end].copy_from_slice(bytes);
        if !bytes.is_empty() {
            file.dirty.extend(start / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
        }
    }

    pub fn set_len(&mut self, inode: usize, size: u64) {
        let file = &mut self.inodes[inode];
        let (old, new) = (file.live.len(), size as usize);
        file.live.resize(new, 0);
        // Bytes that were cut off and are now zeros differ from those on the disk.
        if new < old {
            file.dirty.extend(new / SECTOR_BYTES..=(old - 1) / SECTOR_BYTES);
        }
    }

    pub fn sync(&mut self, inode: usize) {
        let file = &mut self.inodes[inode];
        let dirty = std::mem::take(&mut file.dirty);
        file.durable.resize(file.live.len(), 0);
        for sector in dirty {
            copy_sector(&file.live, &mut file.durable, sector);
        }
    }

    pub fn forget_dirty(&mut self, inode: usize) {
        self.inodes[inode].dirty.clear();
    }

    pub fn after_power_cut(&self, seed: u64) -> Store {
        let mut chance = Chance::new(seed);
        let mut names = self.durable_names.clone();
        let kept = chance.below(self.journal.len() + 1);
        let by_prefix = chance.is_kept();
        for (index, Pending { change, synced }) in self.journal.iter().enumerate() {
            let by_chance =
                if by_prefix { chance.in_prefix(index, kept) } else { chance.is_kept() };
            if *synced || by_chance {
                // A change that depends on a lost one is lost too.
                let _ = apply(&mut names, change);
            }
        }
        let inodes = self.inodes.iter().map(|file| file.after_power_cut(&mut chance)).collect();
        Store { inodes, durable_names: names.clone(), names, journal: Vec::new() }
    }
}

impl Inode {
    fn after_power_cut(&self, chance: &mut Chance) -> Inode {
        let size = if chance.is_kept() { self.live.len() } else { self.durable.len() };
        let mut content = self.durable.clone();
        content.resize(content.len().max(self.live.len()), 0);
        for sector in &self.dirty {
            if chance.is_kept() {
                copy_sector(&self.live, &mut content, *sector);
            }
        }
        content.resize(size, 0);
        Inode { live: content.clone(), durable: content, dirty: BTreeSet::new() }
    }
}

/// Copies the part of a sector that exists in both.
fn copy_sector(from: &[u8], to: &mut [u8], sector: usize) {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(from.len()).min(to.len());
    if start < end {
        to[start..end].copy_from_slice(&from[start..end]);
    }
}

impl NameChange {
    fn touches(&self, dir: &Path) -> bool {
        let inside = |path: &Path| path.parent() == Some(dir);
        match self {
            NameChange::CreateDir(path)
            | NameChange::CreateFile(path, _)
            | NameChange::Remove(path) => inside(path),
            NameChange::Rename(from, to) => inside(from) || inside(to),
        }
    }
}

fn apply(names: &mut Names, change: &NameChange) -> io::Result<()> {
    let check_parent = |names: &Names, path: &Path| match path.parent() {
        Some(dir) if is_root(dir) || names.get(dir) == Some(&Node::Directory) => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    match change {
        NameChange::CreateDir(path) => {
            check_parent(names, path)?;
            names.insert(path.clone(), Node::Directory);
        }
        NameChange::CreateFile(path, inode) => {
            check_parent(names, path)?;
            names.insert(path.clone(), Node::File(*inode));
        }
        NameChange::Rename(from, to) => {
            check_parent(names, to)?;
            if !names.contains_key(from) {
                return Err(io::ErrorKind::NotFound.into());
            }
            let moved: Vec<PathBuf> =
                names.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                if let (Some(node), Ok(rest)) = (names.remove(&path), path.strip_prefix(from)) {
                    let inside = !rest.as_os_str().is_empty();
                    names.insert(if inside { to.join(rest) } else { to.clone() }, node);
                }
            }
        }
        NameChange::Remove(path) => {
            if names.remove(path).is_none() {
                return Err(io::ErrorKind::NotFound.into());
            }
            names.retain(|name, _| !name.starts_with(path));
        }
    }
    Ok(())
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/")
}

/// Pseudo-random decisions of a seed: 0 keeps nothing, 1 keeps everything.
struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    fn new(seed: u64) -> Self {
        Chance { seed, state: seed }
    }

    fn is_kept(&mut self) -> bool {
        match self.seed {
            0 => false,
            1 => true,
            _ => self.next() & 1 == 1,
        }
    }

    fn in_prefix(&self, index: usize, kept: usize) -> bool {
        if self.seed == 1 { true } else { index < kept }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// The generator `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
