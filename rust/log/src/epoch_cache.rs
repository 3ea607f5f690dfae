//! Which leader wrote which offsets: the leader epochs of one log, each with its first offset.
//!
//! Epochs and start offsets both strictly increase. A new entry that violates this proves that the
//! last entries describe records that no longer exist, so those are dropped (KIP-101, KIP-279).

use pykafka_record::LeaderEpoch;

/// A leader epoch and the offset of the first record that may have been written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEntry {
    /// ≥ 0.
    pub epoch: LeaderEpoch,
    /// Offset of the first record, ≥ 0.
    pub start_offset: i64,
}

/// The leader epochs of a log, oldest first: the content of `leader-epoch-checkpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochCache {
    entries: Vec<EpochEntry>,
}

impl EpochCache {
    /// A cache of these entries, added in order; an entry is dropped if it conflicts with a later
    /// one.
    pub fn from_entries(entries: impl IntoIterator<Item = EpochEntry>) -> Self {
        let mut cache = EpochCache::default();
        for entry in entries {
            cache.assign(entry.epoch, entry.start_offset);
        }
        cache
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The newest epoch.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.epoch)
    }

    /// Adds that `epoch` starts at `start_offset`, and drops entries that conflict. Ignores
    /// negative numbers.
    ///
    /// Returns true if the cache changed. Then the caller must write its file before the first
    /// append of the epoch.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: i64) -> bool {
        if epoch < LeaderEpoch::ZERO || start_offset < 0 {
            return false;
        }
        let news = self
            .entries
            .last()
            .is_none_or(|last| last.epoch != epoch || start_offset < last.start_offset);
        if news {
            let kept = self
                .entries
                .iter()
                .take_while(|entry| entry.epoch < epoch && entry.start_offset < start_offset)
                .count();
            self.entries.truncate(kept);
            self.entries.push(EpochEntry { epoch, start_offset });
        }
        news
    }

    /// The epoch in which `offset` was written; `None` before the first entry.
    pub fn epoch_for_offset(&self, offset: i64) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        self.entries[..after].last().map(|entry| entry.epoch)
    }

    /// The largest epoch ≤ `epoch`, and its end offset (exclusive).
    ///
    /// The newest epoch ends at `log_end_offset`. For an epoch below the first entry, also a
    /// negative one, returns that epoch and the start offset of the first entry. `None` if `epoch`
    /// is newer than all.
    pub fn end_offset_for(
        &self,
        epoch: LeaderEpoch,
        log_end_offset: i64,
    ) -> Option<(LeaderEpoch, i64)> {
        if self.latest_epoch() == Some(epoch) {
            return Some((epoch, log_end_offset));
        }
        let higher = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let end = self.entries.get(higher)?.start_offset;
        let floor = self.entries[..higher].last().map_or(epoch, |entry| entry.epoch);
        Some((floor, end))
    }

    /// Drops entries below the log start offset: the entry that covers it then starts there.
    /// Returns true if the cache changed.
    pub fn truncate_from_start(&mut self, log_start_offset: i64) -> bool {
        let covered = self.entries.partition_point(|entry| entry.start_offset <= log_start_offset);
        let Some(last_covered) = covered.checked_sub(1) else {
            return false;
        };
        let changed = last_covered > 0 || self.entries[0].start_offset != log_start_offset;
        self.entries.drain(..last_covered);
        self.entries[0].start_offset = log_start_offset;
        changed
    }

    /// Drops epochs that start at or above the log end offset. Returns true if the cache changed.
    pub fn truncate_from_end(&mut self, log_end_offset: i64) -> bool {
        let kept = self.entries.partition_point(|entry| entry.start_offset < log_end_offset);
        let changed = kept < self.entries.len();
        self.entries.truncate(kept);
        changed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cache(entries: &[(i32, i64)]) -> EpochCache {
        EpochCache::from_entries(entries.iter().map(|&(epoch, start_offset)| EpochEntry {
            epoch: LeaderEpoch::new(epoch),
            start_offset,
        }))
    }

    fn pairs(cache: &EpochCache) -> Vec<(i32, i64)> {
        cache.entries().iter().map(|entry| (entry.epoch.get(), entry.start_offset)).collect()
    }

    #[test]
    fn conflicting_last_entries_are_replaced_by_the_new_entry() {
        for (assigned, expected) in [
            ((5, 30), vec![(0, 0), (2, 10), (4, 20), (5, 30)]),
            ((4, 25), vec![(0, 0), (2, 10), (4, 20)]),
            ((4, 15), vec![(0, 0), (2, 10), (4, 15)]),
            ((3, 30), vec![(0, 0), (2, 10), (3, 30)]),
            ((6, 10), vec![(0, 0), (6, 10)]),
            ((0, 0), vec![(0, 0)]),
            ((-1, 50), vec![(0, 0), (2, 10), (4, 20)]),
        ] {
            let mut cache = cache(&[(0, 0), (2, 10), (4, 20)]);
            let changed = cache.assign(LeaderEpoch::new(assigned.0), assigned.1);
            assert_eq!(pairs(&cache), expected, "{assigned:?}");
            assert_eq!(changed, expected != [(0, 0), (2, 10), (4, 20)], "{assigned:?}");
        }
    }

    #[test]
    fn end_offsets_are_those_of_the_largest_epoch_not_above() {
        let cache = cache(&[(2, 10), (4, 20), (7, 30)]);
        for (epoch, expected) in [
            (-5, Some((-5, 10))),
            (0, Some((0, 10))),
            (2, Some((2, 20))),
            (3, Some((2, 20))),
            (4, Some((4, 30))),
            (6, Some((4, 30))),
            (7, Some((7, 99))),
            (8, None),
        ] {
            let found = cache.end_offset_for(LeaderEpoch::new(epoch), 99);
            let found = found.map(|(epoch, end)| (epoch.get(), end));
            assert_eq!(found, expected, "epoch {epoch}");
        }
        assert_eq!(EpochCache::default().end_offset_for(LeaderEpoch::ZERO, 99), None);
    }

    #[test]
    fn epochs_are_found_by_offset() {
        let cache = cache(&[(2, 10), (4, 20)]);
        let found = [9, 10, 19, 20, 1000]
            .map(|offset| cache.epoch_for_offset(offset).map(LeaderEpoch::get));
        assert_eq!(found, [None, Some(2), Some(2), Some(4), Some(4)]);
    }

    #[test]
    fn log_start_moves_the_first_entry_and_log_end_drops_the_last() {
        let full = cache(&[(0, 0), (2, 10), (4, 20)]);
        for (start, expected) in [
            (0, vec![(0, 0), (2, 10), (4, 20)]),
            (5, vec![(0, 5), (2, 10), (4, 20)]),
            (10, vec![(2, 10), (4, 20)]),
            (25, vec![(4, 25)]),
        ] {
            let mut cut = full.clone();
            assert_eq!(cut.truncate_from_start(start), pairs(&full) != expected);
            assert_eq!(pairs(&cut), expected, "start {start}");
        }
        let mut late = cache(&[(3, 10)]);
        assert!(!late.truncate_from_start(5) && pairs(&late) == [(3, 10)]);
        for (end, expected) in [(21, 3), (20, 2), (10, 1), (0, 0)] {
            let mut cut = full.clone();
            assert_eq!(cut.truncate_from_end(end), expected != 3);
            assert_eq!(cut.entries().len(), expected, "end {end}");
        }
    }

    proptest! {
        #[test]
        fn epochs_and_offsets_stay_strictly_increasing(
            steps in prop::collection::vec((0..3u8, -1..8i32, -1..40i64), 0..40)
        ) {
            let mut cache = EpochCache::default();
            for (kind, epoch, offset) in steps {
                match kind {
                    0 => cache.assign(LeaderEpoch::new(epoch), offset),
                    1 => cache.truncate_from_start(offset),
                    _ => cache.truncate_from_end(offset),
                };
                for pair in cache.entries().windows(2) {
                    prop_assert!(pair[0].epoch < pair[1].epoch);
                    prop_assert!(pair[0].start_offset < pair[1].start_offset);
                }
            }
        }
    }
}
