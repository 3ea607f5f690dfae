//! A table whose keys have a generation: the key of a removed entry is never reused for another
//! entry.

use pykafka_forks::Mutex;

struct Entries<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Entries<T> {
    fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        // 31 bits keep the keys positive as signed numbers.
        entry.0 = (entry.0 + 1) & 0x7fff_ffff;
        entry.1 = Some(value);
        u64::from(entry.0) << 32 | u64::from(index)
    }

    fn count(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

/// A concurrent table; no call blocks for long.
pub(crate) struct Slots<T> {
    inner: Mutex<Entries<T>>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots::new()
    }
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        Slots { inner: Mutex::new(Entries { entries: Vec::new(), free: Vec::new() }) }
    }

    /// Returns the key: the generation in its upper half, the index in its lower half; never 0.
    pub(crate) fn insert(&self, value: T) -> u64 {
        self.inner.lock().insert(value)
    }

    /// Like `insert`; returns `None` if there are `count_max` entries.
    pub(crate) fn insert_below(&self, count_max: usize, value: T) -> Option<u64> {
        let mut inner = self.inner.lock();
        (inner.count() < count_max).then(|| inner.insert(value))
    }

    pub(crate) fn remove(&self, key: u64) -> Option<T> {
        let mut inner = self.inner.lock();
        let index = key as u32;
        let entry = inner.entries.get_mut(index as usize)?;
        if u64::from(entry.0) != key >> 32 {
            return None;
        }
        let value = entry.1.take()?;
        inner.free.push(index);
        Some(value)
    }

    /// Replaces the value of a key, and returns the old one; drops `value` if there is none.
    pub(crate) fn replace(&self, key: u64, value: T) -> Option<T> {
        let mut inner = self.inner.lock();
        let entry = inner.entries.get_mut(key as u32 as usize)?;
        if u64::from(entry.0) != key >> 32 {
            return None;
        }
        entry.1.as_mut().map(|old| std::mem::replace(old, value))
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        let mut inner = self.inner.lock();
        let Entries { entries, free } = &mut *inner;
        for (index, (_, value)) in entries.iter_mut().enumerate() {
            if value.take().is_some() {
                free.push(index as u32);
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.inner.lock().count()
    }
}

impl<T: Clone> Slots<T> {
    pub(crate) fn get(&self, key: u64) -> Option<T> {
        let inner = self.inner.lock();
        let entry = inner.entries.get(key as u32 as usize)?;
        if u64::from(entry.0) == key >> 32 { entry.1.clone() } else { None }
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.inner.lock().entries.iter().filter_map(|(_, value)| value.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_key_never_refers_to_the_next_entry_in_its_slot() {
        let slots = Slots::new();
        let first = slots.insert("first");
        assert_eq!(slots.replace(first, "a"), Some("first"));
        assert_eq!(slots.remove(first), Some("a"));
        let second = slots.insert("b");
        assert_eq!(slots.replace(first, "c"), None);
        assert_eq!((first as u32, first == second), (second as u32, false));
        assert_eq!(
            (slots.get(first), slots.remove(first), slots.get(second)),
            (None, None, Some("b"))
        );
        assert_eq!((slots.count(), slots.all()), (1, vec!["b"]));
    }
}
