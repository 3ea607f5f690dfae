//! The entries of the active segment's index, in memory; what is not stored yet is appended to its file lazily.

/// What an index holds.
pub(crate) trait Entry: Copy {
    /// Bytes of one in the file.
    const SIZE: usize;

    /// Appends it as stored.
    fn encode(self, base_offset: i64, out: &mut Vec<u8>);
}

/// Entries in order. How they are searched is told where they are defined.
#[derive(Debug, PartialEq)]
pub(crate) struct IndexEntries<E> {
    pub(crate) base_offset: i64,
    entries: Vec<E>,
    stored: usize,
}

impl<E: Entry> IndexEntries<E> {
    /// An index without entries, and with nothing in its file.
    pub(crate) fn new(base_offset: i64) -> Self {
        IndexEntries::of_file(base_offset, Vec::new())
    }

    /// What the file holds.
    pub(crate) fn of_file(base_offset: i64, entries: Vec<E>) -> Self {
        let stored = entries.len();
        IndexEntries { base_offset, entries, stored }
    }

    pub(crate) fn push(&mut self, entry: E) {
        self.entries.push(entry);
    }

    /// Gives back the room for entries that will not come.
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries(&self) -> &[E] {
        &self.entries
    }

    /// The last entry for which `is_before` holds; it holds for a prefix of the entries.
    pub(crate) fn last_where(&self, is_before: impl FnMut(&E) -> bool) -> Option<E> {
        self.entries[..self.entries.partition_point(is_before)].last().copied()
    }

    /// Drops what is not before a cut. The file must follow.
    pub(crate) fn retain(&mut self, is_before: impl FnMut(&E) -> bool) {
        self.entries.retain(is_before);
        self.stored = self.stored.min(self.entries.len());
    }

    /// Bytes not yet in the file, and their position in it.
    pub(crate) fn unstored(&self) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        for entry in &self.entries[self.stored..] {
            entry.encode(self.base_offset, &mut bytes);
        }
        (bytes, (self.stored * E::SIZE) as u64)
    }

    /// Everything is in the file now.
    pub(crate) fn set_stored(&mut self) {
        self.stored = self.entries.len();
    }

    /// Length of the file when everything is stored.
    pub(crate) fn size_bytes(&self) -> u64 {
        (self.entries.len() * E::SIZE) as u64
    }
}
