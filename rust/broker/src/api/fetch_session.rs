//! Incremental fetch sessions (KIP-227, contract/kafka.md#27, #63).
//!
//! A session stores the partitions that a consumer fetches, so that a request names only changed
//! partitions and a response only new data. [`FetchSession`] is a value: the partitions in the
//! order of service, the next epoch, and the last state in a response. Partitions that had data
//! move to the back, so that none starves under a size limit.
//!
//! [`FetchSessions`] stores at most `slots` sessions under random ids. A new session may evict a
//! session that was not used for [`EVICTION_NS`], or a smaller one that is that old. A client
//! without a slot gets id 0 and continues to send full requests. The number of partitions in all
//! sessions is bounded: a session that would exceed the bound ends, and its client starts again
//! with a full request.
//!
//! Sessions of followers are privileged, as in Kafka's `FetchSessionCache`: a client's session
//! never evicts one that is in use. A follower's session evicts clients' sessions of any age and
//! size, for their slot or their memory. Only the owner can use a session; for others its id does
//! not exist.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pykafka_forks::Mutex;
use pykafka_record::LeaderEpoch;

use crate::control_api::image::TopicId;
use crate::kafka_error::KafkaError;
use crate::network::memory::budget::{Budget, Share};

/// `min.incremental.fetch.session.eviction.ms`, Kafka's default: a session cannot be evicted before
/// this time.
const EVICTION_NS: u64 = 120_000_000_000;

/// Memory of a partition in a session: its key twice, its place, and its last state in a response.
const PARTITION_BYTES: usize = 320;

/// Session epoch that requests a new session.
pub const EPOCH_INITIAL: i32 = 0;
/// Session epoch that closes a session, or requests none.
pub const EPOCH_FINAL: i32 = -1;
/// Session id that means "no session".
pub const SESSION_NONE: i32 = 0;

/// A topic as in the request: by name up to version 12, by id from version 13 on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// In versions 4 to 12.
    Name(Arc<str>),
    /// From version 13 on.
    Id(TopicId),
}

/// A partition as in the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey {
    /// The partition's topic, by name or id.
    pub topic: TopicKey,
    /// Index of the partition in the topic.
    pub index: i32,
}

/// The parameters of one partition of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchSpec {
    /// First offset to fetch.
    pub fetch_offset: i64,
    /// Soft limit in bytes; a negative one is an error.
    pub bytes_max: i32,
    /// The leader epoch that the client knows, compared with ours.
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// Leader epoch of the last record that the client has, if it sends one.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// A follower's own log start offset.
    pub log_start_offset: i64,
}

/// The parts of a partition's response that matter to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedState {
    /// High watermark (exclusive), −1 with an error.
    pub high_watermark: i64,
    /// Log start offset, −1 with an error.
    pub log_start_offset: i64,
    /// True if there are records.
    pub has_records: bool,
    /// True for an error, a diverging epoch or a preferred replica, which are always part of the
    /// response.
    pub must_tell: bool,
}

#[derive(Debug, Clone)]
struct CachedPartition {
    key: PartitionKey,
    spec: FetchSpec,
    /// The value in the last response; −1 forces the partition into the next response.
    high_watermark: i64,
    log_start_offset: i64,
    /// True after its topic was found once; from then on a missing topic is error 3, not 100
    /// (contract/kafka.md#63).
    resolved: bool,
}

/// The owner of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// A client; its identity is not known.
    Client,
    /// The follower with this node id; privileged.
    Follower(i32),
}

impl Owner {
    fn is_privileged(self) -> bool {
        self != Owner::Client
    }
}

/// A session of one client.
#[derive(Debug)]
pub struct FetchSession {
    owner: Owner,
    /// The session's share of the memory budget, once it is stored.
    share: Option<Share>,
    uses_topic_ids: bool,
    next_epoch: i32,
    /// Key: place in the order of service.
    partitions: BTreeMap<u64, CachedPartition>,
    places: HashMap<PartitionKey, u64>,
    next_place: u64,
}

/// The epoch after `epoch`. It wraps to 1, because 0 requests a new session.
fn epoch_after(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

impl FetchSession {
    /// Creates a session that expects epoch 1 next.
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

    /// Number of partitions.
    pub fn count(&self) -> usize {
        self.partitions.len()
    }

    /// Checks the epoch and the kind of an incremental request, and advances the epoch.
    ///
    /// # Errors
    /// `INVALID_FETCH_SESSION_EPOCH`, `FETCH_SESSION_TOPIC_ID_ERROR`; the session is unchanged.
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

    /// Adds a partition, or replaces the parameters of an existing one, which keeps its place.
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

    /// Removes a partition.
    pub fn forget(&mut self, key: &PartitionKey) {
        if let Some(place) = self.places.remove(key) {
            self.partitions.remove(&place);
        }
    }

    /// The partitions to fetch, in the order of service.
    pub fn specs(&self) -> impl Iterator<Item = (&PartitionKey, FetchSpec)> {
        self.partitions.values().map(|cached| (&cached.key, cached.spec))
    }

    /// Records whether the partition's topic exists. Returns true if it exists or existed before.
    pub fn resolve(&mut self, key: &PartitionKey, exists: bool) -> bool {
        let cached = self.places.get(key).and_then(|place| self.partitions.get_mut(place));
        cached.is_some_and(|cached| {
            cached.resolved |= exists;
            cached.resolved
        })
    }

    /// Records the state of a partition in the response. Returns true if an incremental response
    /// must include it.
    pub fn record(&mut self, key: &PartitionKey, state: FetchedState) -> bool {
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

/// A session in the cache. A client sends its requests one after the other, so the lock is never
/// contended.
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
    /// Creates an empty cache whose sessions share `budget`. `seed` makes the session ids hard to
    /// guess.
    pub(crate) fn new(seed: u64, budget: Arc<Budget>) -> FetchSessions {
        let cache = Mutex::new(Cache { slots: HashMap::new(), random: seed });
        FetchSessions { cache, budget }
    }

    /// Returns the session `id` of `owner` and records the use.
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

    /// Number of partitions in the session `id`; 0 if there is no such session.
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

    /// Stores `session` if there is a free slot or one that it may take. Returns its id, or 0 if it
    /// is not stored.
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

    /// Adjusts the reserved memory to the size of `session`.
    ///
    /// # Errors
    /// `FETCH_SESSION_ID_NOT_FOUND`: it was evicted in the meantime, or has become too large and
    /// ends.
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

    /// Returns the number of sessions, and of the partitions in them.
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

    /// Selects the session to evict: the least recently used one if it was unused for longer than
    /// [`EVICTION_NS`]. Otherwise the least valuable one of those that are older than that or, for
    /// a follower, belong to clients, if it is less valuable than the new session. Sessions of
    /// followers are more valuable than those of clients, larger ones more than smaller ones.
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

    /// Adds `more` bytes to `share` if the budget permits it. For a follower, ends clients'
    /// sessions to free memory: the largest first, so that few of them end, and none if all of them
    /// would not suffice.
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
            // SplitMix64: the increments visit all values, the mixing hides their order.
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
