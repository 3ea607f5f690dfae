//! Incremental fetch sessions (KIP-227, contract/kafka.md#27, #63).
//!
//! A session remembers what a consumer fetches, so that a request names only what changed and an answer only what is
//! new. [`FetchSession`] is a value: partitions in the order they are served, the next epoch, and what the client was
//! last told. Partitions that had data move to the back, so that under a size limit none starves.
//!
//! [`FetchSessions`] holds them under random ids, at most `slots` of them. A new session may push out one that was not
//! used for [`EVICTION_NS`], or one that is as old and smaller. A client that is granted none gets id 0 and keeps
//! sending full requests. All sessions together hold a bounded number of partitions: one that would grow beyond it ends,
//! and its client begins again with a full request.
//!
//! Sessions of followers are privileged, as in Kafka's `FetchSessionCache`: a client's session pushes none of them out that
//! is in use, and theirs push out a client's, however young and large it is, for its slot or for its memory. A session is
//! its owner's: for others there is none of that id.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pykafka_forks::Mutex;
use pykafka_record::LeaderEpoch;

use crate::kafka_error::KafkaError;
use crate::network::memory::budget::{Budget, Share};
use crate::seam::image::TopicId;

/// `min.incremental.fetch.session.eviction.ms`, Kafka's default: a session is safe from others for so long.
const EVICTION_NS: u64 = 120_000_000_000;

/// What a partition of a session costs in memory: its key twice, its place, and what was last told.
const PARTITION_BYTES: usize = 320;

/// Session epoch that opens a session.
pub const EPOCH_INITIAL: i32 = 0;
/// Session epoch that closes it, or asks for none.
pub const EPOCH_FINAL: i32 = -1;
/// "No session".
pub const SESSION_NONE: i32 = 0;

/// A topic as the request names it: by name up to version 12, by id from 13 on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// Versions 4 to 12.
    Name(Arc<str>),
    /// Version 13 on.
    Id(TopicId),
}

/// A partition as the request names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// Its topic.
    pub topic: TopicKey,
    /// Within the topic.
    pub index: i32,
}

/// What a client wants of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchSpec {
    /// First offset wanted.
    pub fetch_offset: i64,
    /// Soft limit; negative is answered with an error.
    pub bytes_max: i32,
    /// Compared with ours, if the client knows it.
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// Of the last record that the client has, if it can tell.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// A follower's own log start offset.
    pub log_start_offset: i64,
}

/// What the answer to one partition says, as far as a session cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedState {
    /// Exclusive end of what is committed, −1 with an error.
    pub high_watermark: i64,
    /// First offset, −1 with an error.
    pub log_start_offset: i64,
    /// Whether there are records.
    pub has_records: bool,
    /// An error or a diverging epoch: always told.
    pub must_tell: bool,
}

#[derive(Debug, Clone)]
struct CachedPartition {
    key: PartitionKey,
    spec: FetchSpec,
    /// As last told; −1 makes the next answer tell.
    high_watermark: i64,
    log_start_offset: i64,
    /// Whether its topic was found once: from then on its loss is code 3, not 100 (contract/kafka.md#63).
    resolved: bool,
}

/// Whose session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Some client's: who it is is not known.
    Client,
    /// That of the follower with this node id: privileged.
    Follower(i32),
}

impl Owner {
    fn is_privileged(self) -> bool {
        self != Owner::Client
    }
}

/// One client's session.
#[derive(Debug)]
pub struct FetchSession {
    owner: Owner,
    /// What it holds of the memory for sessions, once it is kept.
    share: Option<Share>,
    uses_topic_ids: bool,
    next_epoch: i32,
    /// By place in the order of service.
    partitions: BTreeMap<u64, CachedPartition>,
    places: HashMap<PartitionKey, u64>,
    next_place: u64,
}

/// The epoch after `epoch`; it wraps to 1, as 0 would open a session.
fn epoch_after(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl FetchSession {
    /// A session on what a full request names, expecting epoch 1 next.
    pub fn new(owner: Owner, uses_topic_ids: bool) -> FetchSession {
        FetchSession {
            owner,
            share: None,
            uses_topic_ids,
            next_epoch: epoch_after(EPOCH_INITIAL),
            partitions: BTreeMap::new(),
            places: HashMap::new(),
            next_place: 0,
        }
    }

    /// Partitions in it.
    pub fn count(&self) -> usize {
        self.partitions.len()
    }

    /// Checks an incremental request's epoch and kind, and takes the epoch.
    ///
    /// # Errors
    /// `INVALID_FETCH_SESSION_EPOCH`, `FETCH_SESSION_TOPIC_ID_ERROR`; nothing changes.
    pub fn begin(&mut self, epoch: i32, uses_topic_ids: bool) -> Result<(), KafkaError> {
        if epoch != self.next_epoch {
            return Err(KafkaError::InvalidFetchSessionEpoch);
        }
        if uses_topic_ids != self.uses_topic_ids {
            return Err(KafkaError::FetchSessionTopicIdError);
        }
        self.next_epoch = epoch_after(epoch);
        Ok(())
    }

    /// Adds a partition, or changes what is wanted of one that is there already, which keeps its place.
    pub fn upsert(&mut self, key: PartitionKey, spec: FetchSpec) {
        if let Some(cached) = self.places.get(&key).and_then(|place| self.partitions.get_mut(place))
        {
            cached.spec = spec;
            return;
        }
        self.places.insert(key.clone(), self.next_place);
        let cached = CachedPartition {
            key,
            spec,
            high_watermark: -1,
            log_start_offset: -1,
            resolved: false,
        };
        self.partitions.insert(self.next_place, cached);
        self.next_place += 1;
    }

    /// Drops a partition.
    pub fn forget(&mut self, key: &PartitionKey) {
        if let Some(place) = self.places.remove(key) {
            self.partitions.remove(&place);
        }
    }

    /// What to fetch, in the order of service.
    pub fn specs(&self) -> impl Iterator<Item = (&PartitionKey, FetchSpec)> {
        self.partitions.values().map(|cached| (&cached.key, cached.spec))
    }

    /// Notes that the partition's topic exists; whether it was ever known to.
    pub fn resolve(&mut self, key: &PartitionKey, exists: bool) -> bool {
        let cached = self.places.get(key).and_then(|place| self.partitions.get_mut(place));
        cached.is_some_and(|cached| {
            cached.resolved |= exists;
            cached.resolved
        })
    }

    /// Takes what is about to be answered for a partition; whether an incremental answer must name it.
    pub fn answer(&mut self, key: &PartitionKey, state: FetchedState) -> bool {
        let Some(place) = self.places.get(key).copied() else { return true };
        let Some(cached) = self.partitions.get_mut(&place) else { return true };
        let changed = cached.high_watermark != state.high_watermark
            || cached.log_start_offset != state.log_start_offset;
        cached.high_watermark = if state.must_tell { -1 } else { state.high_watermark };
        cached.log_start_offset = state.log_start_offset;
        if state.has_records {
            self.move_to_back(place);
        }
        state.has_records || state.must_tell || changed
    }

    fn move_to_back(&mut self, place: u64) {
        if let Some(cached) = self.partitions.remove(&place) {
            self.places.insert(cached.key.clone(), self.next_place);
            self.partitions.insert(self.next_place, cached);
            self.next_place += 1;
        }
    }
}

/// A session in the cache; its client's requests come one after the other, so the lock is never contended.
pub type SharedSession = Arc<Mutex<FetchSession>>;

struct Slot {
    owner: Owner,
    session: SharedSession,
    count: usize,
    created_ns: u64,
    used_ns: u64,
}

struct Cache {
    slots: HashMap<i32, Slot>,
    random: u64,
}

/// All sessions of a broker.
pub struct FetchSessions {
    cache: Mutex<Cache>,
    budget: Arc<Budget>,
}

impl FetchSessions {
    /// An empty cache whose sessions hold what `budget` has; `seed` makes session ids that a stranger does not guess by counting.
    pub(crate) fn new(seed: u64, budget: Arc<Budget>) -> FetchSessions {
        let cache = Mutex::new(Cache { slots: HashMap::new(), random: seed });
        FetchSessions { cache, budget }
    }

    /// The session `id` of `owner`, used now.
    ///
    /// # Errors
    /// `FETCH_SESSION_ID_NOT_FOUND`.
    pub fn get(&self, id: i32, owner: Owner, now_ns: u64) -> Result<SharedSession, KafkaError> {
        let mut cache = self.cache.lock();
        let slot = cache.slots.get_mut(&id).filter(|slot| slot.owner == owner);
        let slot = slot.ok_or(KafkaError::FetchSessionIdNotFound)?;
        slot.used_ns = now_ns;
        Ok(slot.session.clone())
    }

    /// Partitions in the session `id`; 0 if there is none.
    pub fn count(&self, id: i32) -> usize {
        self.cache.lock().slots.get(&id).map_or(0, |slot| slot.count)
    }

    /// Ends the session `id` of `owner`.
    pub fn remove(&self, id: i32, owner: Owner) {
        let mut cache = self.cache.lock();
        if cache.slots.get(&id).is_some_and(|slot| slot.owner == owner) {
            cache.slots.remove(&id);
        }
    }

    /// Keeps `session` if there is a slot for it, or one to be had; its id, 0 if none.
    pub fn insert(&self, mut session: FetchSession, slots_max: usize, now_ns: u64) -> i32 {
        let mut cache = self.cache.lock();
        let (owner, count) = (session.owner, session.count());
        let mut share = self.budget.share();
        if !cache.make_memory(&mut share, count * PARTITION_BYTES, owner)
            || !cache.make_room(slots_max, owner, count, now_ns)
        {
            return SESSION_NONE;
        }
        session.share = Some(share);
        let id = cache.free_id();
        let session = Arc::new(Mutex::new(session));
        let (created_ns, used_ns) = (now_ns, now_ns);
        cache.slots.insert(id, Slot { owner, session, count, created_ns, used_ns });
        id
    }

    /// Takes what `session` holds by now.
    ///
    /// # Errors
    /// `FETCH_SESSION_ID_NOT_FOUND`: it was pushed out meanwhile, or it has become too large and ends.
    pub fn resized(&self, id: i32, session: &mut FetchSession) -> Result<(), KafkaError> {
        let mut cache = self.cache.lock();
        let slot = cache.slots.get_mut(&id).ok_or(KafkaError::FetchSessionIdNotFound)?;
        slot.count = session.count();
        let bytes = slot.count * PARTITION_BYTES;
        let fits = session.share.as_mut().is_some_and(|share| {
            share.shrink_to(bytes);
            let more = bytes - share.bytes();
            cache.make_memory(share, more, session.owner)
        });
        if !fits {
            cache.slots.remove(&id);
            return Err(KafkaError::FetchSessionIdNotFound);
        }
        Ok(())
    }

    /// Sessions and the partitions in them.
    pub fn counts(&self) -> (usize, usize) {
        let cache = self.cache.lock();
        (cache.slots.len(), cache.slots.values().map(|slot| slot.count).sum())
    }
}

impl Cache {
    fn make_room(&mut self, slots_max: usize, owner: Owner, count: usize, now_ns: u64) -> bool {
        while self.slots.len() >= slots_max.max(1) {
            let Some(victim) = self.victim(owner, count, now_ns) else { return false };
            self.slots.remove(&victim);
        }
        slots_max > 0
    }

    /// The longest unused session if it is stale; else the least valuable one that has had its time, or is a client's where a
    /// follower wants its place, if it is worth less: privileged ones are worth more, then larger ones.
    fn victim(&self, owner: Owner, count: usize, now_ns: u64) -> Option<i32> {
        let past = |since_ns: u64| now_ns.saturating_sub(since_ns) > EVICTION_NS;
        let (oldest, slot) = self.slots.iter().min_by_key(|(id, slot)| (slot.used_ns, **id))?;
        if past(slot.used_ns) {
            return Some(*oldest);
        }
        let may_go = |slot: &Slot| {
            past(slot.created_ns) || (owner.is_privileged() && !slot.owner.is_privileged())
        };
        let worth = |slot: &Slot| (slot.owner.is_privileged(), slot.count);
        self.slots
            .iter()
            .filter(|(_, slot)| may_go(slot) && worth(slot) < (owner.is_privileged(), count))
            .min_by_key(|(id, slot)| (worth(slot), **id))
            .map(|(id, _)| *id)
    }

    /// Takes `more` bytes into `share` if there are so many; for a follower also those that clients' sessions hold, the
    /// largest first, so that few of them end, and none if they would not suffice.
    fn make_memory(&mut self, share: &mut Share, more: usize, owner: Owner) -> bool {
        if share.try_within(more) {
            return true;
        }
        let is_client = |slot: &Slot| !slot.owner.is_privileged();
        let bytes_of = |slot: &Slot| slot.count * PARTITION_BYTES;
        let theirs: usize = self.slots.values().filter(|slot| is_client(slot)).map(bytes_of).sum();
        let before = share.bytes();
        if !owner.is_privileged() || !share.try_within(more.saturating_sub(theirs)) {
            return false;
        }
        share.shrink_to(before);
        while !share.try_within(more) {
            let clients = self.slots.iter().filter(|(_, slot)| is_client(slot));
            let largest = clients.max_by_key(|(id, slot)| (slot.count, **id)).map(|(id, _)| *id);
            let Some(largest) = largest else { return false };
            self.slots.remove(&largest);
        }
        true
    }

    fn free_id(&mut self) -> i32 {
        loop {
            // SplitMix64: the increments walk all values, the mixing hides the order.
            self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.random;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let id = (mixed >> 33) as i32;
            if id > SESSION_NONE && !self.slots.contains_key(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests;
