//! A real core with a real socket, and a small client.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pykafka_broker::{
    Audience, BrokerEndpoint, Core, CoreOptions, Event, ImageDelta, PartitionEntry, RequestEvent,
    TopicImage,
};
use pykafka_log::{Durability, SystemClock};
use pykafka_wire::ApiKey;
use pykafka_wire::frame::{RequestHeader, decode_response_header};
use socket2::{Domain, Socket, Type};

/// Node id of the broker under test.
pub const NODE: i32 = 1;
/// The cluster id of all brokers in these tests.
pub const CLUSTER: &str = "cluster-of-a-test";
/// Long enough for a slow machine; successful tests do not wait for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A serving core; in memory by default.
pub struct Broker {
    /// The core under test.
    pub core: Arc<Core>,
    /// Port of its listener.
    pub port: u16,
    offset: std::sync::atomic::AtomicI64,
}

impl Broker {
    /// Starts a broker that serves, with these settings.
    pub fn start(settings: &[(&str, &str)]) -> Broker {
        let broker = Broker::bound(settings);
        broker.core.serve();
        broker
    }

    /// Starts a broker that does not serve yet.
    pub fn bound(settings: &[(&str, &str)]) -> Broker {
        Broker::bound_to(None, settings)
    }

    /// Starts a broker that serves, with unsynced logs in `dir`.
    pub fn on_disk(dir: &Path, settings: &[(&str, &str)]) -> Broker {
        let broker = Broker::bound_to(Some(dir.to_owned()), settings);
        broker.core.serve();
        broker
    }

    fn bound_to(data_dir: Option<PathBuf>, settings: &[(&str, &str)]) -> Broker {
        let durability = if data_dir.is_some() { Durability::Os } else { Durability::Memory };
        let core = Core::new(CoreOptions {
            data_dir,
            node_id: NODE,
            cluster_id: CLUSTER.into(),
            durability,
            memory_max: 1 << 28,
            clock: Arc::new(SystemClock::new()),
            seed: 1,
        });
        let core = Arc::new(core.expect("an engine"));
        let port =
            core.listen("PLAINTEXT", "127.0.0.1:0", Audience::Clients, None).expect("a port");
        let broker = Broker { core, port, offset: std::sync::atomic::AtomicI64::new(0) };
        let settings = settings.iter().map(|&(name, value)| (name.into(), value.into()));
        broker.apply(ImageDelta {
            brokers: Some(vec![broker.endpoint()]),
            controller_id: Some(NODE),
            broker_settings: Some(settings.collect()),
            api_versions: Some(BTreeMap::from([(19, (2, 7)), (60, (0, 2))])),
            ..ImageDelta::default()
        });
        broker
    }

    /// Its endpoint in the metadata.
    pub fn endpoint(&self) -> BrokerEndpoint {
        BrokerEndpoint {
            node_id: NODE,
            listener: Arc::from("PLAINTEXT"),
            host: Arc::from("127.0.0.1"),
            port: self.port,
            rack: None,
            broker_epoch: -1,
            fenced: false,
            in_controlled_shutdown: false,
        }
    }

    /// Applies `delta` as the next step.
    pub fn apply(&self, delta: ImageDelta) {
        let metadata_offset = self.offset.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.core.apply(ImageDelta { metadata_offset, ..delta }).expect("a valid step");
    }

    /// Creates a topic whose partitions are led by this broker in epoch 0.
    pub fn create_topic(&self, name: &str, id: [u8; 16], partitions: i32) {
        let partitions = (0..partitions).map(|index| PartitionEntry {
            index,
            leader: NODE,
            replicas: vec![NODE],
            isr: vec![NODE],
            ..PartitionEntry::default()
        });
        let topic = TopicImage {
            name: name.into(),
            topic_id: id,
            partitions: partitions.collect(),
            ..TopicImage::default()
        };
        self.apply(ImageDelta { topics: vec![topic], ..ImageDelta::default() });
    }

    /// Opens another connection.
    pub fn connect(&self) -> Client {
        Client::to(self.port)
    }

    /// The next event of any kind.
    pub fn event(&self) -> Event {
        let deadline_ns = self.core.now_ns() + PATIENCE.as_nanos() as u64;
        self.core.wait(deadline_ns, 1).pop().expect("an event in time")
    }

    /// The next request for Python; other events are skipped.
    pub fn request(&self) -> RequestEvent {
        loop {
            if let Event::Request(request) = self.event() {
                return *request;
            }
        }
    }

    /// The value of a statistic.
    pub fn statistic(&self, name: &str) -> u64 {
        let snapshot = self.core.statistics();
        let mut lines = snapshot.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(line, _)| *line == name).expect("a known name");
        value.parse().expect("a number")
    }

    /// Waits until `name` has `value`.
    pub fn wait_statistic(&self, name: &str, value: u64) {
        let deadline_ns = self.core.now_ns() + PATIENCE.as_nanos() as u64;
        while self.statistic(name) != value {
            assert!(self.core.now_ns() < deadline_ns, "{name} is {}", self.statistic(name));
            std::thread::yield_now();
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.core.stop(0);
    }
}

/// A blocking connection.
pub struct Client {
    /// The socket.
    pub stream: TcpStream,
    correlation_id: i32,
}

impl Clone for Client {
    /// Clones the handle of the same connection, for another thread.
    fn clone(&self) -> Client {
        let stream = self.stream.try_clone().expect("a descriptor");
        Client { stream, correlation_id: self.correlation_id }
    }
}

impl Client {
    /// Connects to a port of this machine.
    pub fn to(port: u16) -> Client {
        Client::from_address("127.0.0.1", port)
    }

    /// Connects from an address of this machine.
    pub fn from_address(address: &str, port: u16) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let at = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
        socket.bind(&at(address, 0).into()).expect("an address of this machine");
        socket.connect(&at("127.0.0.1", port).into()).expect("the broker listens");
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Client { stream, correlation_id: 0 }
    }

    /// Sends raw bytes.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the broker reads");
    }

    /// Sends one request; returns its correlation id.
    pub fn send(&mut self, api_key: ApiKey, api_version: i16, body: &[u8]) -> i32 {
        self.correlation_id += 1;
        let frame = frame(api_key, api_version, self.correlation_id, body);
        self.send_raw(&frame);
        self.correlation_id
    }

    /// The next frame without its size; `None` if the broker closed the connection.
    pub fn receive_frame(&mut self) -> Option<Vec<u8>> {
        let mut prefix = [0; 4];
        if let Err(error) = self.stream.read_exact(&mut prefix) {
            assert!(is_closed(&error), "{error}");
            return None;
        }
        let mut frame = vec![0; u32::from_be_bytes(prefix) as usize];
        self.stream.read_exact(&mut frame).expect("a whole frame");
        Some(frame)
    }

    /// The response to a request of that API: correlation id and body.
    pub fn receive(&mut self, api_key: ApiKey, api_version: i16) -> (i32, Vec<u8>) {
        let frame = self.receive_frame().expect("a response");
        let (id, body) = decode_response_header(api_key, api_version, &frame).expect("a header");
        (id, body.to_vec())
    }

    /// Sends a request and returns the body of its response.
    pub fn ask(&mut self, api_key: ApiKey, api_version: i16, body: &[u8]) -> Vec<u8> {
        let sent = self.send(api_key, api_version, body);
        let (received, body) = self.receive(api_key, api_version);
        assert_eq!(received, sent);
        body
    }

    /// Returns true if the broker closes the connection without sending another byte.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => is_closed(&error),
        }
    }

    /// Closes the sending side.
    pub fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("an open socket");
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionReset | BrokenPipe | ConnectionAborted)
}

/// A request frame with its size.
pub fn frame(api_key: ApiKey, api_version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 4];
    let header = RequestHeader { api_key, api_version, correlation_id, client_id: Some("test") };
    header.encode(&mut frame).expect("a header");
    frame.extend_from_slice(body);
    let size = (frame.len() - 4) as i32;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    frame
}

/// The encoded bytes of a message.
pub fn encoded<E: std::fmt::Debug>(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out).expect("a message of that version");
    out
}
