//! Sorted entries of a fixed size in a file: binary search by `pread`, with one cached block.
//!
//! Sealed offset and time indexes are never mapped and rarely used. A sequential reader stays
//! within one block of 4 KiB, and an idle log caches nothing.

use std::io;
use std::sync::Arc;

use pykafka_forks::Mutex;

use crate::disk::ReadFile;

/// Entries per block: about one page.
fn block_entries(entry_size: usize) -> u64 {
    (4096 / entry_size) as u64
}

/// A sealed index, `SIZE` bytes an entry.
#[derive(Debug)]
pub(crate) struct IndexFile<const SIZE: usize> {
    file: Arc<dyn ReadFile>,
    count: u64,
    block: Mutex<Option<Block<SIZE>>>,
}

#[derive(Debug)]
struct Block<const SIZE: usize> {
    number: u64,
    entries: Vec<[u8; SIZE]>,
}

impl<const SIZE: usize> IndexFile<SIZE> {
    /// The entries of `file`, which must not be written any more. Bytes after the last whole entry
    /// are ignored.
    pub(crate) fn new(file: Arc<dyn ReadFile>) -> io::Result<Self> {
        let count = file.size()? / SIZE as u64;
        Ok(IndexFile { file, count, block: Mutex::new(None) })
    }

    /// The last entry for which `is_before` holds; it must hold for a prefix of the entries.
    pub(crate) fn last_where(
        &self,
        is_before: impl Fn(&[u8; SIZE]) -> bool,
    ) -> io::Result<Option<[u8; SIZE]>> {
        let mut kept = self.block.lock();
        if let Some(found) = kept.as_ref().and_then(|block| self.last_within(block, &is_before)) {
            return Ok(Some(found));
        }
        let Some(number) = self.block_of_last(&is_before)? else { return Ok(None) };
        let block = self.read_block(number)?;
        let found = block.entries.partition_point(&is_before).checked_sub(1);
        let entry = found.map(|index| block.entries[index]);
        *kept = Some(block);
        Ok(entry)
    }

    /// The result, if it is certainly in the cached block.
    fn last_within(
        &self,
        block: &Block<SIZE>,
        is_before: &impl Fn(&[u8; SIZE]) -> bool,
    ) -> Option<[u8; SIZE]> {
        let index = block.entries.partition_point(is_before);
        let ends_file = (block.number + 1) * block_entries(SIZE) >= self.count;
        let is_sure = index > 0 && (index < block.entries.len() || ends_file);
        is_sure.then(|| block.entries[index - 1])
    }

    /// The number of the last block for whose first entry `is_before` holds.
    fn block_of_last(&self, is_before: &impl Fn(&[u8; SIZE]) -> bool) -> io::Result<Option<u64>> {
        let (mut low, mut high) = (0, self.count.div_ceil(block_entries(SIZE)));
        while low < high {
            let middle = u64::midpoint(low, high);
            if is_before(&self.read_entry(middle * block_entries(SIZE))?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1))
    }

    fn read_entry(&self, index: u64) -> io::Result<[u8; SIZE]> {
        let mut entry = [0; SIZE];
        read_exact(&*self.file, &mut entry, index * SIZE as u64)?;
        Ok(entry)
    }

    fn read_block(&self, number: u64) -> io::Result<Block<SIZE>> {
        let first = number * block_entries(SIZE);
        let count = block_entries(SIZE).min(self.count - first) as usize;
        let mut bytes = vec![0; count * SIZE];
        read_exact(&*self.file, &mut bytes, first * SIZE as u64)?;
        let entries = bytes.as_chunks::<SIZE>().0.to_vec();
        Ok(Block { number, entries })
    }
}

fn read_exact(file: &dyn ReadFile, bytes: &mut [u8], position: u64) -> io::Result<()> {
    if file.read_at(bytes, position)? == bytes.len() {
        return Ok(());
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::{Disk, MemoryDisk, OpenMode};

    fn index_of(count: u64) -> IndexFile<8> {
        let disk = MemoryDisk::default();
        let file = disk.open(Path::new("/index"), OpenMode::Create).unwrap();
        let bytes: Vec<u8> = (0..count).flat_map(|n| (n * 10).to_be_bytes()).collect();
        file.write_at(&bytes, 0).unwrap();
        IndexFile::new(file).unwrap()
    }

    #[test]
    fn search_finds_the_same_as_a_plain_scan_in_any_order() {
        let entries = |entry: &[u8; 8]| u64::from_be_bytes(*entry);
        for count in [0, 1, 2, 511, 512, 513, 1500] {
            let index = index_of(count);
            for step in 0..400u64 {
                let wanted = (step * 7919) % (count * 10 + 20);
                let found = index.last_where(|entry| entries(entry) <= wanted).unwrap();
                let expected = (0..count).map(|n| n * 10).take_while(|&n| n <= wanted).last();
                assert_eq!(found.map(|entry| entries(&entry)), expected, "{wanted} of {count}");
            }
        }
    }
}
