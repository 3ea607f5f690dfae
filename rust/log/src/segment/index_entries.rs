//! The entries of an index in memory: all of them, or those of the active segment that its file may lack.
//!
//! A segment grows to a gigabyte, and its index with it. So what is stored is dropped, but for the last entry; a look-up
//! that ends before what is left is answered by the file.

/// How many entries wait in memory until they are stored.
pub(crate) const UNSTORED_MAX: usize = 1024;

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
    /// Of the file, before those in memory.
    dropped: usize,
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
        IndexEntries { base_offset, dropped: 0, entries, stored }
    }

    pub(crate) fn push(&mut self, entry: E) {
        self.entries.push(entry);
    }

    /// Gives back the room for entries that will not come.
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Leaves out every other entry, and never the last: a look-up begins twice as far ahead.
    pub(crate) fn thin(&mut self) {
        debug_assert_eq!((self.dropped, self.stored), (0, 0));
        let mut is_kept = self.entries.len().is_multiple_of(2);
        self.entries.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
        self.shrink();
    }

    /// How many there are, in memory and in the file.
    pub(crate) fn count(&self) -> usize {
        self.dropped + self.entries.len()
    }

    /// Those in memory.
    pub(crate) fn entries(&self) -> &[E] {
        &self.entries
    }

    /// How many entries of the file come before those in memory.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped
    }

    /// What `found` makes of the last entry for which `is_before` holds, which it does for a prefix of the entries; `nothing`
    /// where it holds for none, and `None` if that entry is one of those that were dropped.
    pub(crate) fn look_up<T>(
        &self,
        is_before: impl FnMut(&E) -> bool,
        found: impl FnOnce(&E) -> T,
        nothing: T,
    ) -> Option<T> {
        match self.entries[..self.entries.partition_point(is_before)].last() {
            Some(entry) => Some(found(entry)),
            None => (self.dropped == 0).then_some(nothing),
        }
    }

    /// Drops what is not before a cut from an index that is in memory as a whole. The file must follow.
    pub(crate) fn retain(&mut self, is_before: impl FnMut(&E) -> bool) {
        debug_assert_eq!(self.dropped, 0);
        self.entries.retain(is_before);
        self.stored = self.stored.min(self.entries.len());
    }

    /// Bytes not yet in the file, and their position in it.
    pub(crate) fn unstored(&self) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        for entry in &self.entries[self.stored - self.dropped..] {
            entry.encode(self.base_offset, &mut bytes);
        }
        (bytes, (self.stored * E::SIZE) as u64)
    }

    /// Whether so many are not in the file that they should be.
    pub(crate) fn is_storing_due(&self) -> bool {
        self.count() - self.stored >= UNSTORED_MAX
    }

    /// Everything is in the file now.
    pub(crate) fn set_stored(&mut self) {
        self.stored = self.count();
    }

    /// Drops what is stored, but for the last entry of all.
    pub(crate) fn drop_stored(&mut self) {
        let kept_from = self.stored.min(self.count().saturating_sub(1));
        self.entries.drain(..kept_from.saturating_sub(self.dropped));
        self.entries.shrink_to(UNSTORED_MAX);
        self.dropped = self.dropped.max(kept_from);
    }

    /// Length of the file when everything is stored.
    pub(crate) fn size_bytes(&self) -> u64 {
        (self.count() * E::SIZE) as u64
    }
}
