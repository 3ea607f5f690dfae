//! The shared state of the Rust handlers.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use pykafka_log::{Clock, LogConfig, LogDirectory};

use crate::api::fetch_session::FetchSessions;
use crate::api::quota::rates::Rates;
use crate::api::replication_throttle::rates::ReplicationThrottles;
use crate::control_api::event::queue::EventQueue;
use crate::control_api::image::Image;
use crate::control_api::image::step::Step;
use crate::control_api::log_ring::LogRing;
use crate::control_api::requests::ParkedRequests;
use crate::control_api::verifications::Verifications;
use crate::network::Network;
use crate::partition::partition_table::{PartitionOptions, PartitionTable};
use crate::partition::purgatory::Purgatory;

/// State that is shared by the parts of one broker. A handler loads the image once per request.
pub struct Context {
    /// Node id of this broker.
    pub node_id: i32,
    /// Cluster id of meta.properties; part of Metadata responses.
    pub cluster_id: Arc<str>,
    /// The only clock of this broker.
    pub clock: Arc<dyn Clock>,
    /// The projection of the metadata; each change replaces the whole image.
    pub image: ArcSwap<Image>,
    /// Events and requests for Python.
    pub events: Arc<EventQueue>,
    /// Log lines for Python.
    pub log_ring: Arc<LogRing>,
    /// The state of the sockets.
    pub network: Arc<Network>,
    /// The partitions of this broker.
    pub partitions: PartitionTable,
    /// Requests that wait for a condition or a deadline.
    pub purgatory: Purgatory,
    /// Fetch sessions of consumers.
    pub fetch_sessions: FetchSessions,
    pub(crate) rates: Rates,
    pub(crate) replication_throttles: ReplicationThrottles,
    pub(crate) requests: ParkedRequests,
    pub(crate) verifications: Verifications,
}

/// Parameters of [`Context::new`].
pub struct ContextOptions {
    /// Node id of this broker.
    pub node_id: i32,
    /// Cluster id of meta.properties.
    pub cluster_id: String,
    /// The only clock.
    pub clock: Arc<dyn Clock>,
    /// Log settings until the first step replaces them.
    pub log_defaults: LogConfig,
    /// Directory of the logs.
    pub directory: LogDirectory,
    /// True if that directory is in memory.
    pub in_memory: bool,
    /// Maximum bytes of requests and responses in progress, apart from logs and the page cache.
    pub memory_max: u64,
    /// Seed of ids that strangers should not guess.
    pub seed: u64,
}

impl Context {
    /// Creates a broker that serves nothing yet, without sockets and threads.
    pub fn new(options: ContextOptions) -> Context {
        let image = Image::empty(options.log_defaults);
        let events = Arc::new(EventQueue::new(options.clock.clone()));
        let log_ring = Arc::new(LogRing::new(options.clock.clone()));
        let network = Arc::new(Network::new(
            options.node_id,
            options.memory_max,
            options.clock.clone(),
            log_ring.clone(),
            image.settings.clone(),
        ));
        let partitions = PartitionTable::new(PartitionOptions {
            node_id: options.node_id,
            clock: options.clock.clone(),
            events: events.clone(),
            log_ring: log_ring.clone(),
            directory: options.directory,
            in_memory: options.in_memory,
        });
        Context {
            node_id: options.node_id,
            cluster_id: Arc::from(options.cluster_id),
            events,
            partitions,
            purgatory: Purgatory::new(options.clock.clone(), network.memory.parked.clone()),
            fetch_sessions: FetchSessions::new(options.seed, network.memory.sessions.clone()),
            log_ring,
            clock: options.clock,
            rates: Rates::default(),
            replication_throttles: ReplicationThrottles::default(),
            requests: ParkedRequests::default(),
            verifications: Verifications::new(),
            network,
            image: ArcSwap::from_pointee(image),
        }
    }

    /// Applies a step: updates the partitions, then publishes the new image.
    pub(crate) fn carry_out(&self, step: Step) {
        self.partitions.apply(&step.image, &step.changed, &step.deleted);
        self.network.update(&step.image.settings, &step.image.hosts);
        self.image.store(Arc::new(step.image));
        self.partitions.host().upkeep_changed.notify_one();
        self.partitions.free(step.deleted);
    }

    /// True once `stop` has started: new work is refused.
    pub fn is_stopping(&self) -> bool {
        self.network.is_stopping()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Context").field("node_id", &self.node_id).finish_non_exhaustive()
    }
}
