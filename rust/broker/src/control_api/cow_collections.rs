//! Collections whose copies share unchanged parts: the cost of a step of the image depends on the
//! size of the change.

use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

const PAGE_BITS: u32 = 6;
const SHARDS: usize = 64;

/// An item with an index within its topic.
pub trait Indexed {
    /// Never negative in metadata of Kafka.
    fn index(&self) -> i32;
}

/// Items by ascending index, in pages of at most 64. A copy shares the pages; a change copies one
/// page.
#[derive(Debug, Clone)]
pub struct Pages<T>(BTreeMap<i32, Arc<Vec<T>>>);

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages(BTreeMap::new())
    }
}

impl<T: Indexed + Clone> Pages<T> {
    /// The item of an index.
    #[inline]
    pub fn get(&self, index: i32) -> Option<&T> {
        let page = self.0.get(&(index >> PAGE_BITS))?;
        // In a page without gaps, the position of each item follows from its index.
        match page.get((index & ((1 << PAGE_BITS) - 1)) as usize) {
            Some(item) if item.index() == index => Some(item),
            _ => page.iter().find(|item| item.index() == index),
        }
    }

    /// Adds an item, or replaces the item with its index.
    pub fn insert(&mut self, item: T) {
        let page = self.0.entry(item.index() >> PAGE_BITS).or_default();
        let page = Arc::make_mut(page);
        match page.binary_search_by_key(&item.index(), Indexed::index) {
            Ok(at) => {
                if let Some(old) = page.get_mut(at) {
                    *old = item;
                }
            }
            Err(at) => page.insert(at, item),
        }
    }

    /// Removes the item of an index.
    pub fn remove(&mut self, index: i32) {
        let number = index >> PAGE_BITS;
        let Some(page) = self.0.get_mut(&number) else { return };
        Arc::make_mut(page).retain(|item| item.index() != index);
        if page.is_empty() {
            self.0.remove(&number);
        }
    }

    /// All items, by ascending index.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        self.0.values().flat_map(|page| page.iter())
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.0.values().map(|page| page.len()).sum()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Indexed + Clone> FromIterator<T> for Pages<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut pages = Pages::default();
        items.into_iter().for_each(|item| pages.insert(item));
        pages
    }
}

/// A hash map in 64 parts. A copy shares the parts; a change copies one part.
#[derive(Debug, Clone)]
pub struct Shards<K, V> {
    hasher: RandomState,
    shards: Vec<Arc<HashMap<K, V>>>,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| Arc::default()).collect();
        Shards { hasher: RandomState::new(), shards }
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Shards<K, V> {
    fn at<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }

    /// The value of a key.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shards.get(self.at(key))?.get(key)
    }

    /// Adds a key, or replaces its value.
    pub fn insert(&mut self, key: K, value: V) {
        let at = self.at(&key);
        if let Some(shard) = self.shards.get_mut(at) {
            Arc::make_mut(shard).insert(key, value);
        }
    }

    /// Removes a key; if it is missing, no part is copied.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let at = self.at(key);
        let shard = self.shards.get_mut(at)?;
        if !shard.contains_key(key) {
            return None;
        }
        Arc::make_mut(shard).remove(key)
    }

    /// All values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.shards.iter().flat_map(|shard| shard.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Indexed for (i32, &'static str) {
        fn index(&self) -> i32 {
            self.0
        }
    }

    #[test]
    fn pages_find_each_item_by_its_index_with_gaps_and_in_any_order() {
        let indexes = [3, 0, 200, 64, 1, 63, i32::MAX];
        let pages: Pages<_> = indexes.into_iter().map(|index| (index, "a")).collect();
        assert!(indexes.iter().all(|&index| pages.get(index) == Some(&(index, "a"))));
        assert!([2, 65, -1].iter().all(|&index| pages.get(index).is_none()));
        let found: Vec<i32> = pages.iter().map(|item| item.0).collect();
        assert_eq!(found, [0, 1, 3, 63, 64, 200, i32::MAX]);
        assert_eq!(pages.len(), 7);
    }

    #[test]
    fn pages_without_items_are_empty_and_the_others_keep_theirs() {
        let mut pages: Pages<_> = (0..100).map(|index| (index, "a")).collect();
        let whole = pages.clone();
        (0..64).chain([70, 1000]).for_each(|index| pages.remove(index));
        assert_eq!((pages.0.len(), pages.len(), whole.len()), (1, 35, 100));
        assert!([0, 70].iter().all(|&index| pages.get(index).is_none()));
        assert_eq!(pages.get(99), Some(&(99, "a")));
        (64..100).for_each(|index| pages.remove(index));
        assert!(pages.is_empty());
    }

    #[test]
    fn a_changed_copy_shares_the_other_pages_and_does_not_change_the_original() {
        let first: Pages<_> = (0..1000).map(|index| (index, "a")).collect();
        let mut second = first.clone();
        second.insert((500, "b"));
        assert_eq!((first.get(500), second.get(500)), (Some(&(500, "a")), Some(&(500, "b"))));
        let shared = first.0.values().zip(second.0.values()).filter(|(a, b)| Arc::ptr_eq(a, b));
        assert_eq!(shared.count(), first.0.len() - 1);
    }

    #[test]
    fn a_changed_map_shares_the_other_shards() {
        let mut first = Shards::default();
        (0..1000).for_each(|key| first.insert(key, key));
        let mut second = first.clone();
        second.insert(7, 0);
        assert_eq!((second.remove(&8), second.remove(&5000)), (Some(8), None));
        assert_eq!((first.get(&7), first.get(&8)), (Some(&7), Some(&8)));
        assert_eq!((second.get(&7), second.get(&8)), (Some(&0), None));
        let shared = first.shards.iter().zip(&second.shards).filter(|(a, b)| Arc::ptr_eq(a, b));
        assert!(shared.count() >= SHARDS - 2);
    }
}
