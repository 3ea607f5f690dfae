//! Sockets: listeners, connections, requests and responses, and bounds for the memory that peers
//! can occupy.

pub(crate) mod blocking_handoff;
mod connection;
pub(crate) mod connections;
pub(crate) mod descriptors;
pub(crate) mod engine;
pub(crate) mod fault_injection;
mod input;
pub(crate) mod known_nodes;
pub(crate) mod listener;
pub(crate) mod memory;
pub(crate) mod outcome;
pub(crate) mod output;
mod platform;
pub(crate) mod reply;
pub(crate) mod response_memory;
mod time_slice;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::BytesMut;
use pykafka_log::Clock;
use tokio::sync::watch;

use self::connections::Connections;
use self::fault_injection::Gates;
use self::known_nodes::{Hosts, KnownNodes};
use self::memory::Memory;
use self::outcome::Outcome;
use crate::control_api::log_ring::LogRing;
use crate::control_api::settings::Settings;
use crate::control_api::statistics::Statistics;
use crate::request::{ConnectionInfo, Header};

/// Handles the requests of all connections.
pub(crate) trait Handler: Send + Sync {
    /// Handles one request.
    fn handle(&self, conn: &ConnectionInfo, header: &Header, body: BytesMut) -> Outcome;
}

/// The state that the listeners and connections of one broker share.
pub struct Network {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) log_ring: Arc<LogRing>,
    /// The settings of the current image.
    pub(crate) settings: ArcSwap<Settings>,
    /// Counters of the network and the requests.
    pub statistics: Statistics,
    pub(crate) memory: Memory,
    pub(crate) connections: Connections,
    pub(crate) known_nodes: Arc<KnownNodes>,
    pub(crate) gates: Arc<Gates>,
    pub(crate) serving: watch::Sender<bool>,
    pub(crate) stopping: AtomicBool,
}

impl Network {
    /// Creates the state of a broker that serves nothing yet.
    pub(crate) fn new(
        node_id: i32,
        memory_max: u64,
        clock: Arc<dyn Clock>,
        log_ring: Arc<LogRing>,
        settings: Arc<Settings>,
    ) -> Network {
        Network {
            clock,
            log_ring,
            settings: ArcSwap::new(settings),
            statistics: Statistics::default(),
            memory: Memory::new(memory_max),
            connections: Connections::new(),
            known_nodes: Arc::new(KnownNodes::new(node_id)),
            gates: Arc::new(Gates::new()),
            serving: watch::Sender::new(false),
            stopping: AtomicBool::new(false),
        }
    }

    /// Applies the settings and the addresses of the nodes of a new image.
    pub(crate) fn update(&self, settings: &Arc<Settings>, hosts: &Arc<Hosts>) {
        self.memory.set(settings);
        self.known_nodes.set(hosts);
        self.settings.store(settings.clone());
        self.connections.limit_changed();
    }

    /// True once `stop` has started: new work is refused.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Network").finish_non_exhaustive()
    }
}
