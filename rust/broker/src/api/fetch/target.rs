//! The partitions that a fetch reads: those of the request or of its session, looked up in the
//! image.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use pykafka_log::FetchedRecords;
use pykafka_record::LeaderEpoch;
use pykafka_wire::fetch::Request;

use super::limits::Limits;
use crate::api::fetch_session::{
    EPOCH_FINAL, EPOCH_INITIAL, FetchSession, FetchSpec, Owner, PartitionKey, SESSION_NONE,
    SharedSession, TopicKey,
};
use crate::context::Context;
use crate::control_api::image::{Image, TopicEntry, TopicId};
use crate::control_api::settings::Side;
use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::follower_fetch::Replica;
use crate::partition::log::read::{Isolation, Read, ReadRequest};
use crate::partition::purgatory::Parked;

/// First version that identifies topics by id.
const TOPIC_ID_VERSION_MIN: i16 = 13;

/// The result of reading one partition.
pub(super) type Fetched = Result<Read, KafkaError>;

/// The results of all partitions.
pub(super) struct Found {
    pub(super) fetched: Vec<Fetched>,
    /// Bytes that count towards `min_bytes`. A partition with more records than fit counts with all
    /// the bytes that the request wanted of it: Kafka fills the rest with the start of the next
    /// batch, and responds (`DelayedFetch`).
    bytes: i64,
}

impl Found {
    /// True if the results justify a response now (contract/kafka.md#26).
    pub(super) fn is_enough(&self, bytes_min: i64) -> bool {
        let urgent = |fetched: &Fetched| match fetched {
            Err(_) => true,
            Ok(read) => read.diverging.is_some() || read.preferred_replica.is_some(),
        };
        self.fetched.is_empty() || self.fetched.iter().any(urgent) || self.bytes >= bytes_min
    }

    /// Adds the bytes of the results to the count of `parked`.
    pub(super) fn credit(&self, parked: &Parked) {
        parked.credit(self.bytes);
    }
}

/// The session of a request (KIP-227).
pub(super) enum SessionUse {
    /// No session.
    None,
    /// A new session, which the response grants.
    New(Box<FetchSession>),
    /// An existing session, which continues.
    Continued(i32, SharedSession),
}

/// A request after the look-up of its session.
pub(super) struct Opened {
    pub(super) session: SessionUse,
    pub(super) specs: Vec<(PartitionKey, FetchSpec)>,
}

impl Opened {
    /// Finds, creates or closes the session of the request.
    pub(super) fn of(
        ctx: &Context,
        image: &Image,
        version: i16,
        owner: Owner,
        request: &Request<'_>,
    ) -> Result<Opened, KafkaError> {
        let uses_topic_ids = version >= TOPIC_ID_VERSION_MIN;
        let now_ns = ctx.clock.now_ns();
        let epoch = request.session_epoch;
        if epoch != EPOCH_INITIAL && epoch != EPOCH_FINAL {
            let session = ctx.fetch_sessions.get(request.session_id, owner, now_ns)?;
            return Opened::continued(ctx, image, uses_topic_ids, owner, request, session);
        }
        if request.session_id != SESSION_NONE {
            ctx.fetch_sessions.remove(request.session_id, owner);
        }
        if epoch == EPOCH_FINAL {
            let specs = last_of_each(wanted(image, uses_topic_ids, request).collect());
            return Ok(Opened { session: SessionUse::None, specs });
        }
        let mut session = FetchSession::new(owner, uses_topic_ids);
        wanted(image, uses_topic_ids, request).for_each(|(key, spec)| session.upsert(key, spec));
        let specs = session.specs().map(|(key, spec)| (key.clone(), spec)).collect();
        Ok(Opened { session: SessionUse::New(Box::new(session)), specs })
    }

    fn continued(
        ctx: &Context,
        image: &Image,
        uses_topic_ids: bool,
        owner: Owner,
        request: &Request<'_>,
        shared: SharedSession,
    ) -> Result<Opened, KafkaError> {
        let id = request.session_id;
        let mut session = shared.lock();
        session.begin(request.session_epoch, uses_topic_ids)?;
        wanted(image, uses_topic_ids, request).for_each(|(key, spec)| session.upsert(key, spec));
        for topic in &request.forgotten_topics_data {
            let key = topic_key(image, uses_topic_ids, topic.topic, topic.topic_id);
            for index in &topic.partitions {
                session.forget(&PartitionKey { topic: key.clone(), index: *index });
            }
        }
        if session.count() == 0 {
            ctx.fetch_sessions.remove(id, owner);
            return Ok(Opened { session: SessionUse::None, specs: Vec::new() });
        }
        ctx.fetch_sessions.resized(id, &mut session)?;
        let specs = session.specs().map(|(key, spec)| (key.clone(), spec)).collect();
        drop(session);
        Ok(Opened { session: SessionUse::Continued(id, shared), specs })
    }
}

/// The partitions that the request itself names, in its order.
fn wanted<'a>(
    image: &'a Image,
    uses_topic_ids: bool,
    request: &'a Request<'_>,
) -> impl Iterator<Item = (PartitionKey, FetchSpec)> + 'a {
    request.topics.iter().flat_map(move |topic| {
        let key = topic_key(image, uses_topic_ids, topic.topic, topic.topic_id);
        topic.partitions.iter().map(move |partition| {
            let key = PartitionKey { topic: key.clone(), index: partition.partition };
            let spec = FetchSpec {
                fetch_offset: partition.fetch_offset,
                bytes_max: partition.partition_max_bytes,
                // Kafka treats every negative epoch as "none" here, though not in ListOffsets.
                current_leader_epoch: LeaderEpoch::from_wire(
                    partition.current_leader_epoch.max(-1),
                ),
                last_fetched_epoch: LeaderEpoch::from_wire(partition.last_fetched_epoch.max(-1)),
                log_start_offset: partition.log_start_offset,
            };
            (key, spec)
        })
    })
}

/// A partition named twice is read once, with its last parameters; sessions do the same.
fn last_of_each(specs: Vec<(PartitionKey, FetchSpec)>) -> Vec<(PartitionKey, FetchSpec)> {
    if specs.len() < 2 {
        return specs;
    }
    let mut places: HashMap<PartitionKey, usize> = HashMap::with_capacity(specs.len());
    let mut kept: Vec<(PartitionKey, FetchSpec)> = Vec::with_capacity(specs.len());
    for (key, spec) in specs {
        match places.entry(key.clone()) {
            Entry::Occupied(place) => kept[*place.get()].1 = spec,
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push((key, spec));
            }
        }
    }
    kept
}

/// Shares the name of the image if the topic exists.
fn topic_key(image: &Image, uses_topic_ids: bool, name: &str, id: TopicId) -> TopicKey {
    if uses_topic_ids {
        return TopicKey::Id(id);
    }
    TopicKey::Name(image.topic(name).map_or_else(|| name.into(), |entry| entry.name.clone()))
}

/// One partition to read.
pub(super) struct Target {
    pub(super) key: PartitionKey,
    pub(super) spec: FetchSpec,
    pub(super) topic_id: TopicId,
    pub(super) partition: Result<Arc<Partition>, KafkaError>,
    /// True if this broker, as the leader, throttles it; false without a limit.
    is_throttled: bool,
    /// Error for this client if the partition is deleted.
    deleted_as: KafkaError,
}

/// All partitions to read, in the order of service, and their session.
pub(super) struct Targets {
    pub(super) session: SessionUse,
    pub(super) list: Vec<Target>,
    /// The brokers in the client's rack, if it may read from followers.
    nearby: Vec<i32>,
    /// True if a target is throttled.
    pub(super) has_throttled: bool,
}

impl Targets {
    /// Looks up every partition.
    pub(super) fn resolve(ctx: &Context, image: &Image, opened: Opened) -> Targets {
        let Opened { mut session, specs } = opened;
        let throttles = image.settings.replication_throttle.limit(Side::Leader).is_some();
        let mut has_throttled = false;
        let mut list = Vec::with_capacity(specs.len());
        for (key, spec) in specs {
            let entry = find_topic(image, &key.topic);
            let was_known = match &mut session {
                SessionUse::None => entry.is_some(),
                SessionUse::New(session) => session.resolve(&key, entry.is_some()),
                SessionUse::Continued(_, session) => session.lock().resolve(&key, entry.is_some()),
            };
            // For topic ids: 100 if the topic was never known, 3 if this session knew it
            // (contract/kafka.md#63).
            let deleted_as = match key.topic {
                TopicKey::Id(_) if !was_known => KafkaError::UnknownTopicId,
                _ => KafkaError::UnknownTopicOrPartition,
            };
            let partition =
                entry.ok_or(deleted_as).and_then(|entry| ctx.partitions.find(entry, key.index));
            let topic_id = entry.map_or([0; 16], |entry| entry.id);
            let is_throttled = throttles
                && entry
                    .is_some_and(|entry| entry.throttled.leader.contains(key.index, ctx.node_id));
            has_throttled |= is_throttled;
            list.push(Target { key, spec, topic_id, partition, is_throttled, deleted_as });
        }
        Targets { session, list, nearby: Vec::new(), has_throttled }
    }

    /// Sets the brokers whose replicas the client should prefer.
    pub(super) fn near(self, nearby: Vec<i32>) -> Targets {
        Targets { nearby, ..self }
    }

    /// The targets' partitions that are on this broker.
    pub(super) fn partitions(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.list.iter().filter_map(|target| target.partition.as_ref().ok())
    }

    /// Bytes of `fetched` records of throttled partitions.
    pub(super) fn throttled_bytes(&self, fetched: &[Fetched]) -> usize {
        let throttled = self.list.iter().zip(fetched).filter(|(target, _)| target.is_throttled);
        throttled
            .filter_map(|(_, fetched)| fetched.as_ref().ok())
            .map(|read| read.records.len())
            .sum()
    }

    /// Records the progress of `replica` in the leaders.
    pub(super) fn book(&mut self, limits: &Limits, replica: &Replica) {
        self.list.iter_mut().for_each(|target| target.book(limits, replica));
    }

    /// Reads all targets within the limits: the first partition with data returns at least one
    /// batch, later ones at most the remaining bytes. Records in memory take `memory_max` bytes
    /// together; only the last of them may exceed it. If `holds_back` is true, throttled partitions
    /// return nothing, unless the follower is in sync.
    pub(super) fn read(&self, limits: &Limits, memory_max: usize, holds_back: bool) -> Found {
        let mut bytes_left = limits.bytes_max;
        let mut memory_left = memory_max as i64;
        let mut is_first = true;
        let mut bytes = 0;
        let mut fetched = Vec::with_capacity(self.list.len());
        for target in &self.list {
            let bytes_max = target.in_memory(bytes_left, memory_left);
            let read = if holds_back && target.is_held_back(limits.isolation) {
                target.read_nothing(limits)
            } else {
                target.read(limits, &self.nearby, bytes_max, is_first)
            };
            bytes += target.counted(&read, bytes_left);
            if let Ok(read) = &read
                && !read.records.is_empty()
            {
                is_first = false;
                bytes_left = (bytes_left - read.records.len() as i64).max(0);
                if let FetchedRecords::Read(bytes) = &read.records {
                    memory_left = (memory_left - bytes.len() as i64).max(0);
                }
            }
            fetched.push(read);
        }
        Found { fetched, bytes }
    }
}

impl Target {
    /// Limits `bytes` to `memory_left` for a log in memory. Records of logs on disk are sent from
    /// their files, except small amounts.
    fn in_memory(&self, bytes: i64, memory_left: i64) -> i64 {
        match &self.partition {
            Ok(partition) if partition.is_in_memory() => bytes.min(memory_left),
            _ if memory_left > 0 => bytes,
            _ => bytes.min(0),
        }
    }

    /// The bytes of `fetched` that count towards `min_bytes`; the request wanted at most
    /// `bytes_left`.
    fn counted(&self, fetched: &Fetched, bytes_left: i64) -> i64 {
        let Ok(read) = fetched else { return 0 };
        let wanted = bytes_left.min(i64::from(self.spec.bytes_max));
        let size = read.records.len() as i64;
        if read.has_more { size.max(wanted) } else { size }
    }

    fn read(
        &self,
        limits: &Limits,
        nearby: &[i32],
        bytes_left: i64,
        at_least_one: bool,
    ) -> Fetched {
        let partition = self.partition.as_ref().map_err(|error| *error)?;
        let request = ReadRequest { at_least_one, nearby, ..self.request(limits, bytes_left) };
        partition.read(&request).map_err(|error| self.named(error))
    }

    /// True if a throttle holds back records from this follower.
    fn is_held_back(&self, isolation: Isolation) -> bool {
        let (Isolation::Replica(broker_id), Ok(partition)) = (isolation, &self.partition) else {
            return false;
        };
        self.is_throttled && !partition.is_in_sync(broker_id)
    }

    /// Reads no records, only the other fields of a partition's response. Records that exist do not
    /// justify a response.
    fn read_nothing(&self, limits: &Limits) -> Fetched {
        let read = self.read(limits, &[], 0, false)?;
        Ok(Read { has_more: false, ..read })
    }

    fn request(&self, limits: &Limits, bytes_left: i64) -> ReadRequest<'static> {
        ReadRequest {
            fetch_offset: self.spec.fetch_offset,
            bytes_max: bytes_left.min(i64::from(self.spec.bytes_max)),
            at_least_one: false,
            current_leader_epoch: self.spec.current_leader_epoch,
            last_fetched_epoch: self.spec.last_fetched_epoch,
            isolation: limits.isolation,
            any_replica: limits.any_replica,
            nearby: &[],
        }
    }

    /// Records the progress of `replica` in the leader. If that fails, the target fails too and is
    /// not read.
    fn book(&mut self, limits: &Limits, replica: &Replica) {
        let Ok(partition) = &self.partition else { return };
        let request = self.request(limits, 0);
        let booked = partition.follower_fetched(replica, &request, self.spec.log_start_offset);
        if let Err(error) = booked {
            self.partition = Err(self.named(error));
        }
    }

    /// Maps the partition's `error` to the one for this client.
    fn named(&self, error: KafkaError) -> KafkaError {
        match error {
            KafkaError::UnknownTopicId => self.deleted_as,
            error => error,
        }
    }
}

/// Hidden topics belong to the control plane and cannot be fetched.
fn find_topic<'a>(image: &'a Image, key: &TopicKey) -> Option<&'a Arc<TopicEntry>> {
    let entry = match key {
        TopicKey::Name(name) => image.topic(name),
        TopicKey::Id(id) => image.topic_by_id(id),
    };
    entry.filter(|entry| !entry.hidden)
}
