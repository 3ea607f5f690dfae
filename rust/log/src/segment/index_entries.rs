//! The entries of an index in memory: all of them, or those of the active segment that its file may
//! lack.
//!
//! A segment grows to a gigabyte, and its index with it. So entries are dropped from memory once
//! they are written to the file, except the last one. Look-ups below the entries in memory use the
//! file.

/// Number of unstored entries at which they are written to the file.
pub(crate) const UNSTORED_MAX: usize = 1024;

/// One entry of an index.
pub(crate) trait Entry: Copy {
    /// Bytes of an entry in the file.
    const SIZE: usize;

    /// Appends the entry in its stored form.
    fn encode(self, base_offset: i64, out: &mut Vec<u8>);
}

/// Entries in order. The modules of the indexes define how they are searched.
#[derive(Debug, PartialEq)]
pub(crate) struct IndexEntries<E> {
    pub(crate) base_offset: i64,
    /// Number of entries in the file before those in memory.
    dropped: usize,
    entries: Vec<E>,
    stored: usize,
}

impl<E: Entry> IndexEntries<E> {
    /// An index without entries, also in its file.
    pub(crate) fn new(base_offset: i64) -> Self {
        IndexEntries::of_file(base_offset, Vec::new())
    }

    /// An index with the entries of its file.
    pub(crate) fn of_file(base_offset: i64, entries: Vec<E>) -> Self {
        let stored = entries.len();
        IndexEntries { base_offset, dropped: 0, entries, stored }
    }

    pub(crate) fn push(&mut self, entry: E) {
        self.entries.push(entry);
    }

    /// Releases memory for further entries, because none will be added.
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Removes every other entry, but never the last one. A look-up then starts up to twice as far
    /// before its target.
    pub(crate) fn thin(&mut self) {
        debug_assert_eq!((self.dropped, self.stored), (0, 0));
        let mut is_kept = self.entries.len().is_multiple_of(2);
        self.entries.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
        self.shrink();
    }

    /// Number of entries in memory and in the file.
    pub(crate) fn count(&self) -> usize {
        self.dropped + self.entries.len()
    }

    /// The entries in memory.
    pub(crate) fn entries(&self) -> &[E] {
        &self.entries
    }

    /// Number of entries in the file before those in memory.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped
    }

    /// The result of `found` for the last entry for which `is_before` holds. `is_before` must hold
    /// for a prefix of the entries. Returns `nothing` if it holds for no entry, and `None` if that
    /// entry was dropped from memory.
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

    /// Drops entries after a cut; all entries must be in memory. The file must be updated.
    pub(crate) fn retain(&mut self, is_before: impl FnMut(&E) -> bool) {
        debug_assert_eq!(self.dropped, 0);
        self.entries.retain(is_before);
        self.stored = self.stored.min(self.entries.len());
    }

    /// Bytes that are not in the file yet, and their position in it.
    pub(crate) fn unstored(&self) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        for entry in &self.entries[self.stored - self.dropped..] {
            entry.encode(self.base_offset, &mut bytes);
        }
        (bytes, (self.stored * E::SIZE) as u64)
    }

    /// True if there are enough unstored entries to write them to the file.
    pub(crate) fn is_storing_due(&self) -> bool {
        self.count() - self.stored >= UNSTORED_MAX
    }

    /// Notes that all entries are in the file.
    pub(crate) fn set_stored(&mut self) {
        self.stored = self.count();
    }

    /// Drops stored entries, except the last entry of all.
    pub(crate) fn drop_stored(&mut self) {
        let kept_from = self.stored.min(self.count().saturating_sub(1));
        self.entries.drain(..kept_from.saturating_sub(self.dropped));
        self.entries.shrink_to(UNSTORED_MAX);
        self.dropped = self.dropped.max(kept_from);
    }

    /// Length of the file once all entries are stored.
    pub(crate) fn size_bytes(&self) -> u64 {
        (self.count() * E::SIZE) as u64
    }
}
