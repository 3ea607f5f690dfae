//! The offset of the last record of each key, in bounded memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use pykafka_record::{Batch, Limits, Record};
use siphasher::sip128::SipHasher13;

/// Upper bound of the memory for an entry: a slot of 25 bytes in a table that is a little less than
/// half full, and in the table of half the size from which it was moved.
const ENTRY_BYTES: usize = 96;

/// 128 bits, computed with a secret of this process. If two keys of a log had the same hash, a
/// record of one of them would be lost. Without the secret such keys cannot be constructed, and for
/// 10 million keys the probability is 10⁻²⁴.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash(u64, u64);

impl std::hash::Hash for KeyHash {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.0);
    }
}

/// A hasher whose input is already a hash.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a KeyHash writes one u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Stores keys by their hashes, so that an entry has the same size for keys of any length.
#[derive(Debug)]
pub(crate) struct KeyMap {
    hasher: SipHasher13,
    offsets: HashMap<KeyHash, i64, BuildHasherDefault<Hashed>>,
    bytes_max: usize,
}

impl KeyMap {
    pub(crate) fn new(bytes_max: usize) -> KeyMap {
        let secret = || RandomState::new().hash_one(0);
        let hasher = SipHasher13::new_with_keys(secret(), secret());
        KeyMap { hasher, offsets: HashMap::default(), bytes_max }
    }

    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = self.hasher.hash(key);
        KeyHash(hash.h1, hash.h2)
    }

    /// True if no more batches may be added. An empty map accepts a batch of any size.
    pub(crate) fn is_full(&self) -> bool {
        self.offsets.len() * ENTRY_BYTES >= self.bytes_max && !self.offsets.is_empty()
    }

    /// Stores the offset of a record; records must come in offset order.
    pub(crate) fn note(&mut self, key: KeyHash, offset: i64) {
        self.offsets.insert(key, offset);
    }

    /// True if a later record of this key was stored.
    pub(crate) fn has_later(&self, key: KeyHash, offset: i64) -> bool {
        self.offsets.get(&key).is_some_and(|last| *last > offset)
    }
}

/// Number of records whose keys are collected before they are stored. A larger batch is read twice,
/// to save memory.
const NOTED_AT_ONCE: i32 = 8192;

/// Collects the keys of a batch until all of its records have been read.
pub(crate) struct Notes {
    limits: Limits,
    found: Vec<(KeyHash, i64)>,
    scratch: Vec<u8>,
}

impl Notes {
    pub(crate) fn new(limits: Limits) -> Notes {
        Notes { limits, found: Vec::new(), scratch: Vec::new() }
    }

    /// Stores the keys of a batch. An unreadable batch is ignored; the filter keeps it too.
    pub(crate) fn note(&mut self, batch: &Batch<'_>, first_dirty: i64, keys: &mut KeyMap) {
        let Ok(mut records) = batch.records(&mut self.scratch, self.limits) else { return };
        if records.records_left() > NOTED_AT_ONCE && records.clone().any(|record| record.is_err()) {
            return;
        }
        while records.records_left() > 0 {
            self.found.clear();
            for record in records.by_ref().take(NOTED_AT_ONCE as usize) {
                let Ok(Record { key, offset, .. }) = record else { return };
                let noted = key.filter(|_| offset >= first_dirty);
                self.found.extend(noted.map(|key| (keys.hash(key), offset)));
            }
            self.found.iter().for_each(|(key, offset)| keys.note(*key, *offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_of_a_key_counts() {
        let mut keys = KeyMap::new(1000);
        let [a, b, c] = [b"a", b"b", b"c"].map(|key| keys.hash(key));
        keys.note(a, 3);
        keys.note(b, 4);
        keys.note(a, 9);
        assert!(keys.has_later(a, 3) && !keys.has_later(a, 9) && !keys.has_later(b, 4));
        assert!(!keys.has_later(c, 0));
    }

    #[test]
    fn map_without_memory_accepts_one_batch() {
        let mut keys = KeyMap::new(0);
        assert!(!keys.is_full());
        keys.note(keys.hash(b"a"), 3);
        assert!(keys.is_full());
    }

    #[test]
    fn hashes_of_two_maps_differ() {
        assert_ne!(KeyMap::new(0).hash(b"a"), KeyMap::new(0).hash(b"a"));
    }
}
