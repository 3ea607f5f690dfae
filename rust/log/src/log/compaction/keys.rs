//! The offset of the last record of each key, in bounded memory.

use std::collections::HashMap;

/// What an entry takes beside its key: the slot at the table's lowest load, the allocation's own bytes.
const ENTRY_BYTES: usize = 96;

/// Keys are kept whole: two of the same hash would take a record of one of them from the log.
#[derive(Debug)]
pub(crate) struct KeyMap {
    offsets: HashMap<Box<[u8]>, i64>,
    bytes: usize,
    bytes_max: usize,
}

impl KeyMap {
    pub(crate) fn new(bytes_max: usize) -> KeyMap {
        KeyMap { offsets: HashMap::new(), bytes: 0, bytes_max }
    }

    /// Whether no further batch may be noted. An empty map takes one, however large.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max && !self.offsets.is_empty()
    }

    /// Notes a record; they come in the order of their offsets.
    pub(crate) fn note(&mut self, key: &[u8], offset: i64) {
        if let Some(last) = self.offsets.get_mut(key) {
            *last = offset;
            return;
        }
        self.bytes += key.len() + ENTRY_BYTES;
        self.offsets.insert(key.into(), offset);
    }

    /// Whether a later record of this key was noted.
    pub(crate) fn has_later(&self, key: &[u8], offset: i64) -> bool {
        self.offsets.get(key).is_some_and(|last| *last > offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_of_a_key_counts() {
        let mut keys = KeyMap::new(1000);
        keys.note(b"a", 3);
        keys.note(b"b", 4);
        keys.note(b"a", 9);
        assert!(keys.has_later(b"a", 3) && !keys.has_later(b"a", 9) && !keys.has_later(b"b", 4));
        assert!(!keys.has_later(b"c", 0));
    }

    #[test]
    fn a_map_without_room_takes_one_batch() {
        let mut keys = KeyMap::new(0);
        assert!(!keys.is_full());
        keys.note(b"a", 3);
        assert!(keys.is_full());
    }
}
