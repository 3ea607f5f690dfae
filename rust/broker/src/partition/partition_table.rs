//! All partitions of this broker, by topic id and index.
//!
//! Readers load one immutable map. A step of the image replaces it by another one, which shares all
//! unchanged parts. Commands of the control plane are received here: each identifies a partition by
//! its topic id, so that a late command for a deleted topic finds nothing (docs/PLANES.md S3).

pub(crate) mod command;
pub(crate) mod health;
pub(crate) mod markers;
mod metadata_log;
mod proposals;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use pykafka_forks::Mutex;
use pykafka_log::{Clock, LogDirectory};
use tokio::sync::Notify;

use self::proposals::Proposals;
use crate::control_api::cow_collections::{Indexed, Pages, Shards};
use crate::control_api::event::queue::EventQueue;
use crate::control_api::image::step::Changed;
use crate::control_api::image::{Image, PartitionEntry, TopicEntry, TopicId};
use crate::control_api::log_ring::{Level, LogRing};
use crate::control_api::statistics::AppendStatistics;
use crate::kafka_error::KafkaError;
use crate::partition::log::open_log::log_slot::Departure;
use crate::partition::log_starts::moved::LogStarts;
use crate::partition::pending_deletions::Gone;
use crate::partition::pending_deletions::names::PendingDeletions;
use crate::partition::replication::Assignment;
use crate::partition::threads::background::{BackgroundQueue, Urgency};
use crate::partition::threads::disk_latency::DiskLatency;
use crate::partition::threads::pool::Pool;
use crate::partition::{Host, Partition};

/// Parameters of [`PartitionTable::new`].
pub struct PartitionOptions {
    /// Node id of this broker.
    pub node_id: i32,
    /// The broker's clock.
    pub clock: Arc<dyn Clock>,
    /// Events for Python.
    pub events: Arc<EventQueue>,
    /// Log lines for Python.
    pub log_ring: Arc<LogRing>,
    /// Directory of the logs.
    pub directory: LogDirectory,
    /// True if that directory is in memory.
    pub in_memory: bool,
}

/// Maximum number of partitions that a step deletes on its own thread.
pub(in crate::partition) const DELETED_AT_ONCE_MAX: usize = 256;

type Topics = Shards<TopicId, Pages<Arc<Partition>>>;

impl Indexed for Arc<Partition> {
    fn index(&self) -> i32 {
        self.index
    }
}

/// The partitions of a broker.
pub struct PartitionTable {
    host: Arc<Host>,
    topics: ArcSwap<Topics>,
    proposals: Mutex<Proposals>,
    /// Locked during a checkpoint and during the close, so that no checkpoint runs after the
    /// directory is released.
    closed: Mutex<bool>,
}

impl PartitionTable {
    /// Creates an empty table; opens none of the directory's logs.
    pub fn new(options: PartitionOptions) -> PartitionTable {
        for warning in options.directory.warnings() {
            options.log_ring.report(Level::Warning, "broker.storage", warning);
        }
        let host = Host {
            node_id: options.node_id,
            clock: options.clock,
            events: options.events,
            in_memory: options.in_memory,
            eligible: ArcSwap::default(),
            replica_lag_ns_max: AtomicU64::default(),
            doubts: AtomicU64::default(),
            appended: AppendStatistics::default(),
            log_ring: options.log_ring,
            is_disk_full: AtomicBool::default(),
            syncer: Pool::default(),
            checkpointers: Pool::default(),
            probers: Pool::default(),
            writers: Pool::default(),
            large: Arc::default(),
            disk_latency: DiskLatency::default(),
            workers: Pool::default(),
            background: BackgroundQueue::default(),
            pending_deletions: PendingDeletions::default(),
            log_starts: LogStarts::default(),
            directory: options.directory,
            dirty: Mutex::default(),
            upkeep_changed: Notify::new(),
            replicated: Mutex::default(),
            listed: Mutex::default(),
        };
        PartitionTable {
            host: Arc::new(host),
            topics: ArcSwap::default(),
            proposals: Mutex::default(),
            closed: Mutex::default(),
        }
    }

    /// The partition, if this broker has it.
    pub fn get(&self, topic_id: &TopicId, index: i32) -> Option<Arc<Partition>> {
        self.topics.load().get(topic_id)?.get(index).cloned()
    }

    /// The partition of a topic in the image.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION` if the topic has no such partition, `NOT_LEADER_OR_FOLLOWER` if
    /// it is on other brokers.
    pub fn find(&self, topic: &TopicEntry, index: i32) -> Result<Arc<Partition>, KafkaError> {
        self.get(&topic.id, index).ok_or_else(|| match topic.partition(index) {
            Some(_) => KafkaError::NotLeaderOrFollower,
            None => KafkaError::UnknownTopicOrPartition,
        })
    }

    /// All partitions of this broker.
    pub fn all(&self) -> Vec<Arc<Partition>> {
        self.topics.load().values().flat_map(|partitions| partitions.iter().cloned()).collect()
    }

    /// Applies a step of the image, before requests see it: deletions first, then followers, then
    /// leaders. Idempotent, because partitions ignore states that are not newer. Called by one
    /// thread at a time; never waits for a disk.
    pub fn apply(&self, image: &Image, changed: &[Changed], deleted: &[Arc<TopicEntry>]) {
        let eligible = (image.registrations.iter())
            .filter(|(_, registration)| registration.is_eligible)
            .map(|(node_id, registration)| (*node_id, registration.broker_epoch));
        self.host.eligible.store(Arc::new(eligible.collect()));
        let lag_ns_max = image.settings.replica_lag_ms_max.saturating_mul(1_000_000);
        self.host.replica_lag_ns_max.store(lag_ns_max, Ordering::Relaxed);
        let expiration_ms = image.settings.producer_id_expiration_ms;
        self.host.directory.set_producer_id_expiration_ms(expiration_ms);
        let mut topics = Topics::clone(&self.topics.load());
        let gone = deleted.iter().filter_map(|topic| Some((topic.id, topics.remove(&topic.id)?)));
        self.host.delete(Departure::Deleted, gone.collect());
        let moved = changed.iter().filter_map(|change| self.give_up(&mut topics, change));
        self.host.delete(Departure::Moved, moved.collect());
        if !deleted.is_empty() {
            let is_deleted = |id: &TopicId| deleted.iter().any(|topic| topic.id == *id);
            self.proposals.lock().forget(is_deleted);
        }
        for change in changed {
            let topic = &change.topic;
            let mut partitions = topics.get(&topic.id).cloned().unwrap_or_default();
            for entry in change.entries() {
                let holds = entry.replicas.contains(&self.host.node_id);
                if holds && partitions.get(entry.index).is_none() {
                    partitions.insert(self.new_partition(topic, entry.index));
                }
            }
            topics.insert(topic.id, partitions);
        }
        for leads in [false, true] {
            for change in changed {
                self.assign(change, topics.get(&change.topic.id), leads);
            }
        }
        self.topics.store(Arc::new(topics));
    }

    /// Removes partitions from the table if this broker is not a replica any more, as after a
    /// reassignment: waiting requests fail, and the files are removed.
    fn give_up(&self, topics: &mut Topics, change: &Changed) -> Option<Gone> {
        let topic = &change.topic;
        let mut kept = topics.get(&topic.id)?.clone();
        let mut given_up = Pages::default();
        for entry in change.entries() {
            if entry.replicas.contains(&self.host.node_id) {
                continue;
            }
            if let Some(partition) = kept.get(entry.index).cloned() {
                partition.assign(assignment_of(entry), &topic.config);
                kept.remove(entry.index);
                given_up.insert(partition);
            }
        }
        if given_up.is_empty() {
            return None;
        }
        topics.insert(topic.id, kept);
        Some((topic.id, given_up))
    }

    /// Frees topics that no image contains any more, on the background queue: a topic may have had
    /// 100,000 partitions.
    pub(crate) fn free(&self, topics: Vec<Arc<TopicEntry>>) {
        if !topics.is_empty() {
            self.host.background.push(Urgency::Background, move |_| drop(topics));
        }
    }

    /// Applies the new assignments to the changed partitions: only to those that lead, or only to
    /// the others.
    fn assign(&self, change: &Changed, partitions: Option<&Pages<Arc<Partition>>>, leads: bool) {
        let Some(partitions) = partitions else { return };
        let entries = change.entries();
        for entry in entries.filter(|entry| (entry.leader == self.host.node_id) == leads) {
            if let Some(partition) = partitions.get(entry.index) {
                partition.assign(assignment_of(entry), &change.topic.config);
            }
        }
    }

    fn new_partition(&self, topic: &TopicEntry, index: i32) -> Arc<Partition> {
        let (host, config) = (self.host.clone(), topic.config.clone());
        let partition =
            Partition::new(host, topic.name.clone(), topic.id, index, topic.hidden, config);
        self.host.pending_deletions.enter(&partition);
        partition
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }
}

fn assignment_of(entry: &PartitionEntry) -> Assignment {
    Assignment {
        leader: entry.leader,
        leader_epoch: entry.leader_epoch,
        partition_epoch: entry.partition_epoch,
        replicas: entry.replicas.clone(),
        isr: entry.isr.clone(),
        elr: entry.elr.clone(),
        lost: entry.lost.clone(),
    }
}
