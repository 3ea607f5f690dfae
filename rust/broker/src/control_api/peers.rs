//! Requests of this broker to other nodes: `Core::send`, and Kafka's error codes for failed
//! requests.

use std::sync::Arc;
use std::time::Duration;

use pykafka_client::{Client, ClientOptions, Destination, Request, SendError};
use tokio::runtime::Handle;

use crate::control_api::event::queue::EventQueue;
use crate::control_api::event::{Event, Token};
use crate::kafka_error::KafkaError;
use crate::network::fault_injection::{GatedTcp, Gates};

/// Same as between Kafka's nodes (`socket.connection.setup.timeout.ms`).
const SETUP_TIMEOUT: Duration = Duration::from_secs(10);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Same as `connections.max.idle.ms` between Kafka's nodes.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Same as a broker's limit for requests of clients (`socket.request.max.bytes`).
const RESPONSE_BYTES_MAX: usize = 100 << 20;
const OPEN_MAX: usize = 10_000;

/// The client for requests to other nodes.
pub(crate) type PeerClient = Client<GatedTcp>;

/// Sends requests and queues their results as events.
pub(crate) struct Peers {
    client: Arc<PeerClient>,
    events: Arc<EventQueue>,
}

impl Peers {
    pub(crate) fn new(
        node_id: i32,
        seed: u64,
        events: Arc<EventQueue>,
        gates: Arc<Gates>,
        runtime: Handle,
    ) -> Peers {
        let options = ClientOptions {
            client_id: format!("broker-{node_id}").into(),
            setup_timeout: SETUP_TIMEOUT,
            backoff_first: BACKOFF_FIRST,
            backoff_max: BACKOFF_MAX,
            idle_max: IDLE_MAX,
            response_bytes_max: RESPONSE_BYTES_MAX,
            open_max: OPEN_MAX,
            seed,
        };
        Peers { client: Arc::new(Client::new(GatedTcp(gates), options, runtime)), events }
    }

    /// The client, for components of the data plane that send requests themselves.
    pub(crate) fn client(&self) -> &Arc<PeerClient> {
        &self.client
    }

    /// Sends a request; `Replied` is queued once.
    pub(crate) fn send(&self, token: Token, to: &Destination, request: Request) {
        let events = self.events.clone();
        self.client
            .send(to, request, move |replied| events.push(Event::Replied { token, replied }));
    }

    /// Watches a connection; `Replied` is queued once, with the error that ended it, or a timeout
    /// if it stays open.
    pub(crate) fn watch(&self, token: Token, to: &Destination, timeout: Duration) {
        let events = self.events.clone();
        self.client
            .watch(to, timeout, move |replied| events.push(Event::Replied { token, replied }));
    }

    /// Closes the connection to a destination; its requests fail.
    pub(crate) fn disconnect(&self, to: &Destination) {
        self.client.disconnect(to);
    }

    /// Ends all requests; returns when their events are queued.
    pub(crate) async fn close(&self) {
        self.client.close();
        self.client.wait_none().await;
    }
}

/// Kafka's code for a request without a response.
pub fn code_of(error: &SendError) -> KafkaError {
    match error {
        SendError::Refused(_) => KafkaError::ListenerNotFound,
        SendError::Disconnected(_) => KafkaError::NetworkException,
        SendError::TimedOut => KafkaError::RequestTimedOut,
        SendError::UnsupportedVersion { .. } => KafkaError::UnsupportedVersion,
        SendError::Full(_) | SendError::Closed => KafkaError::BrokerNotAvailable,
    }
}
