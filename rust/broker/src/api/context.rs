//! The shared state of the Rust handlers, and their result type.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use pykafka_log::{Clock, LogConfig, LogDirectory};
use tokio::sync::watch;

use crate::api::fetch_session::FetchSessions;
use crate::api::quota::rates::Rates;
use crate::api::replication_throttle::rates::ReplicationThrottles;
use crate::api::reply::Reply;
use crate::network::connections::Connections;
use crate::network::gate::Gates;
use crate::network::known_nodes::KnownNodes;
use crate::network::memory::Memory;
use crate::network::memory::budget::Share;
use crate::partition::Host;
use crate::partition::partition_table::{PartitionOptions, PartitionTable};
use crate::partition::purgatory::Purgatory;
use crate::seam::event::queue::EventQueue;
use crate::seam::image::Image;
use crate::seam::image::step::Step;
use crate::seam::log_ring::LogRing;
use crate::seam::requests::{ParkedRequests, Room};
use crate::seam::statistics::Statistics;
use crate::seam::verifications::Verifications;

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
    /// Counters of the network and the requests.
    pub statistics: Statistics,
    /// The partitions of this broker.
    pub partitions: PartitionTable,
    /// Requests that wait for a condition or a deadline.
    pub purgatory: Purgatory,
    /// Fetch sessions of consumers.
    pub fetch_sessions: FetchSessions,
    pub(crate) memory: Memory,
    pub(crate) rates: Rates,
    pub(crate) replication_throttles: ReplicationThrottles,
    pub(crate) requests: ParkedRequests,
    pub(crate) verifications: Verifications,
    pub(crate) connections: Connections,
    pub(crate) known_nodes: Arc<KnownNodes>,
    pub(crate) gates: Arc<Gates>,
    pub(crate) serving: watch::Sender<bool>,
    pub(crate) stopping: AtomicBool,
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
        let memory = Memory::new(options.memory_max);
        let events = Arc::new(EventQueue::new(options.clock.clone()));
        let log_ring = Arc::new(LogRing::new(options.clock.clone()));
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
            purgatory: Purgatory::new(options.clock.clone(), memory.parked.clone()),
            fetch_sessions: FetchSessions::new(options.seed, memory.sessions.clone()),
            log_ring,
            clock: options.clock,
            statistics: Statistics::default(),
            rates: Rates::default(),
            replication_throttles: ReplicationThrottles::default(),
            requests: ParkedRequests::default(),
            verifications: Verifications::new(),
            memory,
            image: ArcSwap::from_pointee(image),
            connections: Connections::new(),
            known_nodes: Arc::new(KnownNodes::new(options.node_id)),
            gates: Arc::new(Gates::new()),
            serving: watch::Sender::new(false),
            stopping: AtomicBool::new(false),
        }
    }

    /// Applies a step: updates the partitions, then publishes the new image.
    pub(crate) fn carry_out(&self, step: Step) {
        self.partitions.apply(&step.image, &step.changed, &step.deleted);
        self.known_nodes.set(&step.image.hosts);
        self.image.store(Arc::new(step.image));
        self.partitions.host().upkeep_changed.notify_one();
        self.partitions.free(step.deleted);
    }

    /// True once `stop` has started: new work is refused.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Context").field("node_id", &self.node_id).finish_non_exhaustive()
    }
}

/// A response that is not decided yet. Dropping it cancels the request, because its connection
/// closed.
pub type PendingOutcome = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The result of a request.
pub enum Outcome {
    /// Send this response.
    Reply(Reply),
    /// Send nothing: produce with `acks=0`.
    NoReply,
    /// Close the connection without a response; the reason is logged.
    Close(String),
    /// Decided later. The connection's task polls it after all earlier responses are decided; later
    /// responses wait for it. Until then, the connection starts only produce requests, and only if
    /// this is one too: so a produce handler must have queued its appends when it returns, or they
    /// would not be in the order of the requests.
    Pending(PendingOutcome),
    /// Like `Pending`, for a request that Python handles; it holds its frame's share of the input
    /// memory until Python releases it.
    Parked(PendingOutcome, Room),
    /// Like `Pending`, for a produce request that has not queued its appends: no later request
    /// starts until this becomes another outcome.
    Held(PendingOutcome),
}

impl Outcome {
    /// Attaches `room` to the response, now or when it is decided.
    pub(crate) fn in_room(self, room: Share) -> Outcome {
        match self {
            Outcome::Reply(reply) => Outcome::Reply(reply.in_room(room)),
            Outcome::Pending(pending) => {
                Outcome::Pending(Box::pin(async move { pending.await.in_room(room) }))
            }
            Outcome::Held(held) => Outcome::Held(Box::pin(async move { held.await.in_room(room) })),
            outcome @ (Outcome::NoReply | Outcome::Close(_) | Outcome::Parked(..)) => outcome,
        }
    }

    /// Runs `answer` on another thread than the network threads.
    pub(crate) fn elsewhere(
        host: &Host,
        answer: impl FnOnce() -> Outcome + Send + 'static,
    ) -> Outcome {
        let answered = host.work(|_| answer());
        Outcome::Pending(Box::pin(async move { answered.await.unwrap_or_else(Outcome::failed) }))
    }

    /// The outcome if the thread that ran the request panicked.
    pub(crate) fn failed() -> Outcome {
        Outcome::Close("the request failed on another thread".into())
    }

    /// A request that cannot be parsed closes its connection, as in Kafka.
    pub fn malformed(error: impl fmt::Display) -> Outcome {
        Outcome::Close(format!("malformed request: {error}"))
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Reply(reply) => formatter.debug_tuple("Reply").field(reply).finish(),
            Outcome::NoReply => formatter.write_str("NoReply"),
            Outcome::Close(reason) => formatter.debug_tuple("Close").field(reason).finish(),
            Outcome::Pending(_) => formatter.write_str("Pending"),
            Outcome::Parked(..) => formatter.write_str("Parked"),
            Outcome::Held(_) => formatter.write_str("Held"),
        }
    }
}
