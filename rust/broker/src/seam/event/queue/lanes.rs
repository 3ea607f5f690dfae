//! Requests that wait for Python, in lanes that take turns.
//!
//! All requests about one group have a lane, and so have all others of one address. Of each lane
//! [`LANE_TAKES`] items leave in turn, so a burst of one group delays only that group. Each lane
//! keeps the order of arrival.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use pykafka_wire::{ApiKey, Reader, is_flexible};

/// Items that leave a lane before the turn of the next lane.
const LANE_TAKES: usize = 4;

const OFFSET_FETCH: i16 = 9;
/// From here on one request may name several groups.
const OFFSET_FETCH_GROUPS: i16 = 8;
const TXN_OFFSET_COMMIT: i16 = 28;
/// APIs whose body begins with a group id: `OffsetCommit`, `OffsetFetch`, `JoinGroup`, `Heartbeat`,
/// `LeaveGroup`, `SyncGroup`, `OffsetDelete` and `ConsumerGroupHeartbeat`.
const OF_A_GROUP: [i16; 8] = [8, OFFSET_FETCH, 11, 12, 13, 14, 47, 68];

/// Identifies a lane. Two groups with equal keys share a lane, which is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LaneKey(u64);

/// Makes keys that a client cannot predict.
#[derive(Default)]
pub(super) struct LaneKeys(RandomState);

impl LaneKeys {
    /// The lane for requests about a group.
    pub(super) fn of_group(&self, group_id: &str) -> LaneKey {
        LaneKey(self.0.hash_one(group_id))
    }

    /// The lane for all other requests of an address.
    pub(super) fn of_address(&self, listener: &str, client_host: &str) -> LaneKey {
        LaneKey(self.0.hash_one((listener, client_host)))
    }

    /// The one lane of questions about transactions.
    pub(super) fn of_verifications(&self) -> LaneKey {
        LaneKey(self.0.hash_one(()))
    }
}

/// The one group that a request is about; `None` without one, or if the id cannot be read.
pub(super) fn group_id(api_key: ApiKey, version: i16, body: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(body, version, is_flexible(api_key, version));
    let ApiKey(key) = api_key;
    if key == TXN_OFFSET_COMMIT {
        reader.string().ok()?; // the transactional id
    } else if !OF_A_GROUP.contains(&key) || (key == OFFSET_FETCH && version >= OFFSET_FETCH_GROUPS)
    {
        return None;
    }
    reader.string().ok()?
}

/// Where an item waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    lane: LaneKey,
    number: u64,
}

struct Lane<T> {
    /// Its place in the rotation.
    turn: u64,
    /// Items taken since its turn began.
    taken: usize,
    /// By the order in which they came.
    items: BTreeMap<u64, T>,
}

/// Lanes with items; there are no empty ones.
pub(super) struct Lanes<T> {
    last: u64,
    count: usize,
    by_key: HashMap<LaneKey, Lane<T>>,
    rotation: BTreeMap<u64, LaneKey>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Lanes { last: 0, count: 0, by_key: HashMap::new(), rotation: BTreeMap::new() }
    }
}

impl<T> Lanes<T> {
    /// Items that wait.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Queues an item at the end of its lane. A lane that was empty gets the last turn.
    pub(super) fn push(&mut self, key: LaneKey, item: T) -> Place {
        self.last += 1;
        self.count += 1;
        let number = self.last;
        let lane = self.by_key.entry(key).or_insert_with(|| {
            self.rotation.insert(number, key);
            Lane { turn: number, taken: 0, items: BTreeMap::new() }
        });
        lane.items.insert(number, item);
        Place { lane: key, number }
    }

    /// The first item of the lane whose turn it is.
    pub(super) fn take(&mut self) -> Option<T> {
        let key = *self.rotation.first_key_value()?.1;
        let lane = self.by_key.get_mut(&key)?;
        let (_, item) = lane.items.pop_first()?;
        lane.taken += 1;
        self.count -= 1;
        if lane.items.is_empty() {
            self.end(key);
        } else if lane.taken == LANE_TAKES {
            self.last += 1;
            self.rotation.remove(&lane.turn);
            self.rotation.insert(self.last, key);
            (lane.turn, lane.taken) = (self.last, 0);
        }
        Some(item)
    }

    /// Takes an item out of turn, if it still waits there.
    pub(super) fn withdraw(&mut self, place: Place) -> Option<T> {
        let lane = self.by_key.get_mut(&place.lane)?;
        let item = lane.items.remove(&place.number)?;
        self.count -= 1;
        if lane.items.is_empty() {
            self.end(place.lane);
        }
        Some(item)
    }

    fn end(&mut self, key: LaneKey) {
        if let Some(lane) = self.by_key.remove(&key) {
            self.rotation.remove(&lane.turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lanes: &mut Lanes<u64>) -> Vec<u64> {
        std::iter::from_fn(|| lanes.take()).collect()
    }

    #[test]
    fn lanes_take_turns_and_each_keeps_its_order() {
        let mut lanes = Lanes::default();
        for item in (0..10).chain(20..22) {
            lanes.push(LaneKey(item / 20), item);
        }
        assert_eq!(taken(&mut lanes), [0, 1, 2, 3, 20, 21, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_withdrawn_item_leaves_no_empty_lane() {
        let mut lanes = Lanes::default();
        let places: Vec<Place> = (0..3).map(|item| lanes.push(LaneKey(item % 2), item)).collect();
        assert_eq!(lanes.withdraw(places[1]), Some(1));
        assert_eq!(lanes.withdraw(places[1]), None);
        assert_eq!((lanes.count(), lanes.by_key.len(), lanes.rotation.len()), (2, 1, 1));
        assert_eq!(taken(&mut lanes), [0, 2]);
        assert_eq!((lanes.count(), lanes.by_key.len(), lanes.rotation.len()), (0, 0, 0));
    }
}
