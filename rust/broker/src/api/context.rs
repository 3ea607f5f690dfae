//! What every hot handler is given, and the one shape of its answer.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use pykafka_log::{Clock, LogConfig, LogDirectory};
use pykafka_wire::ApiKey;
use tokio::sync::watch;

use crate::api::fetch_session::FetchSessions;
use crate::api::quota::{Mute, Rates};
use crate::api::replication_throttle::ReplicationThrottles;
use crate::api::reply::Reply;
use crate::network::connections::{Connections, Standing};
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
use crate::seam::requests::ParkedRequests;
use crate::seam::statistics::Statistics;
use crate::seam::verifications::Verifications;

/// What the parts of one broker share. A handler loads the image once per request.
pub struct Context {
    /// This broker.
    pub node_id: i32,
    /// As in meta.properties; named by Metadata.
    pub cluster_id: Arc<str>,
    /// The only clock of this broker.
    pub clock: Arc<dyn Clock>,
    /// The projection of the metadata, swapped whole.
    pub image: ArcSwap<Image>,
    /// Facts and requests on their way to Python.
    pub events: Arc<EventQueue>,
    /// Log lines on their way to Python.
    pub log_ring: Arc<LogRing>,
    /// Counters of the network and the requests.
    pub statistics: Statistics,
    /// The partitions of this broker.
    pub partitions: PartitionTable,
    /// Requests that wait.
    pub purgatory: Purgatory,
    /// Sessions of consumers.
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

/// What a context is made of.
pub struct ContextOptions {
    /// This broker.
    pub node_id: i32,
    /// As in meta.properties.
    pub cluster_id: String,
    /// The only clock.
    pub clock: Arc<dyn Clock>,
    /// Hold until the first step brings others.
    pub log_defaults: LogConfig,
    /// Where logs are.
    pub directory: LogDirectory,
    /// Whether that is memory.
    pub in_memory: bool,
    /// Bytes that requests and answers on their way may take, beside logs and the page cache.
    pub memory_max: u64,
    /// Draws ids that strangers should not guess.
    pub seed: u64,
}

impl Context {
    /// A broker that serves nothing yet; without sockets and threads.
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
            requests: ParkedRequests::new(memory.requests.clone()),
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

    /// Makes the image after a delta the one that is seen, partitions first.
    pub(crate) fn carry_out(&self, step: Step) {
        self.partitions.apply(&step.image, &step.changed, &step.deleted);
        self.known_nodes.set(&step.image.hosts);
        self.image.store(Arc::new(step.image));
        self.partitions.host().upkeep_changed.notify_one();
        self.partitions.free(step.deleted);
    }

    /// Whether `stop` has begun: new work is refused.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Context").field("node_id", &self.node_id).finish_non_exhaustive()
    }
}

/// What does not change while a connection lives (until there is authentication).
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// Generation-tagged, so never that of another connection.
    pub id: u64,
    /// Name of the listener that accepted it; Metadata answers with the endpoints of that listener.
    pub listener: Arc<str>,
    /// The peer's address without its port.
    pub client_host: Arc<str>,
    /// `User:ANONYMOUS` until there is authentication.
    pub principal: Arc<str>,
    /// By its quota.
    pub mute: Arc<Mute>,
    /// Whether it may be closed for another one.
    pub standing: Arc<Standing>,
    /// On a listener of controllers: the APIs that are served there, all by Python, and their versions.
    pub controller_apis: Option<Arc<ControllerApis>>,
}

/// Versions by API key.
pub type ControllerApis = BTreeMap<i16, (i16, i16)>;

/// A request's header, owned, so that the frame belongs to the handler.
#[derive(Debug, Clone)]
pub struct Header {
    /// Which API.
    pub api_key: ApiKey,
    /// Within the range that we serve.
    pub api_version: i16,
    /// Echoed in the answer.
    pub correlation_id: i32,
    /// `""` for null, as Kafka has it (contract/kafka.md#2).
    pub client_id: Arc<str>,
    /// Of the whole request, without the size in front of it.
    pub bytes: usize,
    /// Monotonic time at which the frame was complete.
    pub received_ns: u64,
    /// Wall clock of the same moment.
    pub received_ms: i64,
}

/// An answer that is not there yet. Dropping it cancels the request: its connection went away.
pub type PendingOutcome = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// How a request ends.
pub enum Outcome {
    /// This is the answer.
    Reply(Reply),
    /// Nothing is sent: produce with `acks=0`.
    NoReply,
    /// The connection is closed without an answer; the reason goes to the log.
    Close(String),
    /// Decided later, polled by the connection's own task. Only further produce requests are begun until then, behind a
    /// produce request: a handler must have queued its appends when it returns, or they would not be in the order of the
    /// requests. The answers behind it wait for it, and it is polled only once those before it are decided.
    Pending(PendingOutcome),
    /// As `Pending`, of a produce request that has not queued its appends: nothing is begun behind it until it becomes another
    /// outcome.
    Held(PendingOutcome),
}

impl Outcome {
    /// The same with `room` attached to the answer, now or later.
    pub(crate) fn in_room(self, room: Share) -> Outcome {
        match self {
            Outcome::Reply(reply) => Outcome::Reply(reply.in_room(room)),
            Outcome::Pending(pending) => {
                Outcome::Pending(Box::pin(async move { pending.await.in_room(room) }))
            }
            Outcome::Held(held) => Outcome::Held(Box::pin(async move { held.await.in_room(room) })),
            outcome @ (Outcome::NoReply | Outcome::Close(_)) => outcome,
        }
    }

    /// Has another thread answer than those of the network.
    pub(crate) fn elsewhere(
        host: &Host,
        answer: impl FnOnce() -> Outcome + Send + 'static,
    ) -> Outcome {
        let answered = host.work(|_| answer());
        Outcome::Pending(Box::pin(async move { answered.await.unwrap_or_else(Outcome::failed) }))
    }

    /// A thread that was to answer panicked.
    pub(crate) fn failed() -> Outcome {
        Outcome::Close("the request failed on another thread".into())
    }

    /// A request that does not parse closes its connection, as in Kafka.
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
            Outcome::Held(_) => formatter.write_str("Held"),
        }
    }
}
