//! Connections over real sockets (contract/kafka.md#1–#5): their cost, their limits, and how they
//! start and end. Frames, order and deadlines are tested in memory
//! (`src/network/connection/tests.rs`).

mod common;

use std::collections::BTreeMap;

use common::{Broker, CLUSTER, Client, NODE, PATIENCE, encoded, frame};
use pykafka_broker::{Audience, BrokerEndpoint, Event, ImageDelta};
use pykafka_wire::{ApiKey, api_versions, metadata};

const SOFTWARE: api_versions::Request<'_> = api_versions::Request {
    client_software_name: "test",
    client_software_version: "1.0",
    cluster_id: None,
    node_id: -1,
};

fn api_versions_body(version: i16) -> Vec<u8> {
    encoded(|out| SOFTWARE.encode(version, out))
}

fn metadata_body(version: i16) -> Vec<u8> {
    encoded(|out| metadata::Request::default().encode(version, out))
}

/// An empty `CreateTopics` request in version 2; Python handles it.
const CONTROL: ApiKey = ApiKey(19);
const CONTROL_VERSION: i16 = 2;
const CONTROL_BODY: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0];

fn send_control(client: &mut Client) -> i32 {
    client.send(CONTROL, CONTROL_VERSION, CONTROL_BODY)
}

#[test]
fn api_versions_lists_hot_keys_and_those_of_python_in_every_version() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for version in 0..=5 {
        let body = client.ask(ApiKey::API_VERSIONS, version, &api_versions_body(version));
        let response = api_versions::Response::decode(version, &body).expect("a response");
        assert_eq!(response.error_code, 0);
        let keys: Vec<_> = response.api_keys.iter().map(|api| api.api_key).collect();
        assert_eq!(keys, [0, 1, 2, 3, 18, 19, 23, 60, 75]);
        let produce = &response.api_keys[0];
        assert_eq!((produce.min_version, produce.max_version), (0, 13));
    }
}

#[test]
fn unknown_api_versions_version_is_answered_in_version_0_and_the_connection_stays_open() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for version in [6, 99, -1] {
        let id = client.send(ApiKey::API_VERSIONS, version, &[0xff; 9]);
        let (received, body) = client.receive(ApiKey::API_VERSIONS, 0);
        let response = api_versions::Response::decode(0, &body).expect("version 0");
        assert_eq!((received, response.error_code), (id, 35));
        assert_eq!(response.api_keys.len(), 1);
    }
    client.ask(ApiKey::METADATA, 9, &metadata_body(9));
}

#[test]
fn software_names_outside_the_rule_are_invalid_requests() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for name in ["", "a_b", "-a"] {
        let request = api_versions::Request { client_software_name: name, ..SOFTWARE };
        let body = encoded(|out| request.encode(3, out));
        let body = client.ask(ApiKey::API_VERSIONS, 3, &body);
        let response = api_versions::Response::decode(3, &body).expect("a response");
        assert_eq!(response.error_code, 42, "{name}");
    }
}

#[test]
fn a_client_that_reached_the_wrong_node_is_sent_back_to_bootstrap() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for (cluster_id, node_id, error_code) in [
        (Some(CLUSTER), NODE, 0),
        (None, -1, 0),
        (Some(CLUSTER), NODE + 1, 129),
        (Some("another"), NODE, 129),
        (Some(""), NODE, 129),
        (Some(CLUSTER), -1, 42),
        (None, NODE, 42),
    ] {
        let request = api_versions::Request { cluster_id, node_id, ..SOFTWARE };
        let body = encoded(|out| request.encode(5, out));
        let body = client.ask(ApiKey::API_VERSIONS, 5, &body);
        let response = api_versions::Response::decode(5, &body).expect("a response");
        assert_eq!(response.error_code, error_code, "{cluster_id:?} {node_id}");
        assert_eq!(response.api_keys.is_empty(), error_code != 0);
    }
}

#[test]
fn a_prefix_followed_by_silence_costs_no_memory_and_no_other_client() {
    const SILENT: u64 = 1_000;
    // Both ends of each connection are in this process.
    raise_descriptors_to(2 * SILENT + 500);
    let broker = Broker::start(&[]);
    let before = resident_bytes();
    let silent: Vec<_> = (0..SILENT)
        .map(|_| {
            let mut client = broker.connect();
            client.send_raw(&(100_i32 << 20).to_be_bytes());
            client
        })
        .collect();
    broker.wait_statistic("bytes_received", 4 * SILENT);
    broker.connect().ask(ApiKey::METADATA, 9, &metadata_body(9));
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown}");
    drop(silent);
    broker.wait_statistic("connections_open", 0);
}

/// Raises the soft limit of file descriptors of this process to `count`, if it is lower.
fn raise_descriptors_to(count: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < count) {
        limit.current = Some(count);
        setrlimit(Resource::Nofile, limit).expect("a hard limit of so many descriptors");
    }
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

#[test]
fn connections_beyond_the_maximum_wait_and_close_no_others() {
    let broker = Broker::start(&[("max.connections", "2")]);
    let body = metadata_body(9);
    let mut kept = [broker.connect(), broker.connect()];
    broker.wait_statistic("connections_open", 2);
    let mut waiting = [broker.connect(), broker.connect()];
    let sent = waiting.each_mut().map(|client| client.send(ApiKey::METADATA, 9, &body));
    broker.wait_statistic("connections_delayed", 1);
    for client in &mut kept {
        client.ask(ApiKey::METADATA, 9, &body);
    }
    assert_eq!(broker.statistic("requests_metadata"), 2);
    // Waiting connections are served in the order of arrival.
    let [first, _second] = kept;
    drop(first);
    assert_eq!(waiting[0].receive(ApiKey::METADATA, 9).0, sent[0]);
    broker.wait_statistic("connections_delayed", 2);
    assert_eq!(broker.statistic("connections_open"), 2);
    broker.apply(ImageDelta {
        broker_settings: Some(BTreeMap::from([("max.connections".into(), "3".into())])),
        ..ImageDelta::default()
    });
    assert_eq!(waiting[1].receive(ApiKey::METADATA, 9).0, sent[1]);
}

/// Creates a listener that clients share with a node at 127.0.0.1; returns its port.
fn shared_listener(broker: &Broker) -> u16 {
    let other = BrokerEndpoint { node_id: NODE + 1, fenced: true, ..broker.endpoint() };
    broker.apply(ImageDelta {
        brokers: Some(vec![broker.endpoint(), other]),
        ..ImageDelta::default()
    });
    broker.core.listen("SHARED", "127.0.0.1:0", Audience::Both, None).expect("a port")
}

#[test]
fn a_known_node_connects_before_waiting_clients_of_the_same_listener() {
    let broker = Broker::start(&[("max.connections", "1")]);
    let body = metadata_body(9);
    let mut kept = broker.connect();
    kept.ask(ApiKey::METADATA, 9, &body);
    let port = shared_listener(&broker);
    // 127.0.0.2 is not the address of a node.
    let mut waiting =
        [Client::from_address("127.0.0.2", port), Client::from_address("127.0.0.2", port)];
    broker.wait_statistic("connections_delayed", 1);
    // The client is busy: up to twice the limit both stay.
    let mut node = Client::to(port);
    node.ask(ApiKey::METADATA, 9, &body);
    Client::to(port).ask(ApiKey::METADATA, 9, &body);
    assert!(kept.is_closed() && node.is_closed());
    // The node has disconnected.
    waiting[0].ask(ApiKey::METADATA, 9, &body);
    let [first, mut second] = waiting;
    drop(first);
    second.ask(ApiKey::METADATA, 9, &body);
    assert_eq!(broker.statistic("connections_displaced"), 2);
}

#[test]
fn an_address_counts_as_a_client_before_the_metadata_names_it() {
    let broker = Broker::start(&[("max.connections", "1")]);
    let port = broker.core.listen("SHARED", "127.0.0.1:0", Audience::Both, None).expect("a port");
    let kept = Client::to(port);
    broker.wait_statistic("connections_open", 1);
    let mut waiting = Client::to(port);
    broker.wait_statistic("connections_delayed", 1);
    drop(kept);
    waiting.ask(ApiKey::METADATA, 9, &metadata_body(9));
}

#[test]
fn stop_does_not_wait_for_delayed_connections() {
    let broker = Broker::start(&[("max.connections", "1")]);
    let _kept = broker.connect();
    let mut waiting = broker.connect();
    broker.wait_statistic("connections_delayed", 1);
    broker.core.stop(1_000);
    assert!(waiting.is_closed());
}

#[test]
fn a_reset_connection_cancels_its_request_and_frees_everything() {
    let broker = Broker::start(&[]);
    for half in [false, true] {
        let mut client = broker.connect();
        send_control(&mut client);
        let request = broker.request();
        if half {
            client.finish();
        }
        let socket = socket2::SockRef::from(&client.stream);
        socket.set_linger(Some(std::time::Duration::ZERO)).expect("a socket");
        drop(client);
        assert_cancelled(&broker, request.id);
    }
}

fn assert_cancelled(broker: &Broker, request: u64) {
    let Event::Cancelled { id } = broker.event() else { panic!("not cancelled") };
    assert_eq!(id, request);
    broker.core.respond([(request, vec![1].into())]);
    broker.wait_statistic("connections_open", 0);
    assert_eq!(broker.statistic("requests_parked"), 0);
}

#[test]
fn connections_cut_in_the_middle_of_a_frame_leak_no_descriptor() {
    let broker = Broker::start(&[]);
    let whole = frame(ApiKey::METADATA, 9, 1, &metadata_body(9));
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("procfs").count();
    broker.connect().ask(ApiKey::METADATA, 9, &metadata_body(9));
    broker.wait_statistic("connections_open", 0);
    let before = descriptors();
    for round in 0..1_000 {
        let mut client = broker.connect();
        client.send_raw(&whole[..round % whole.len()]);
        socket2::SockRef::from(&client.stream)
            .set_linger((round % 2 == 0).then_some(std::time::Duration::ZERO))
            .expect("a socket");
    }
    broker.wait_statistic("connections_open", 0);
    // Other tests of this program open sockets too, but only for a limited time.
    let deadline_ns = broker.core.now_ns() + PATIENCE.as_nanos() as u64;
    while descriptors() >= before + 600 {
        assert!(broker.core.now_ns() < deadline_ns, "{before} then {}", descriptors());
        std::thread::yield_now();
    }
}

#[test]
fn a_stalled_frame_that_blocks_others_is_closed_and_they_continue() {
    let settings = [("queued.max.request.bytes", "1000000"), ("internal.frame.max.ms", "300")];
    let broker = Broker::start(&settings);
    let mut still = broker.connect();
    still.send_raw(&(64_i32 << 20).to_be_bytes());
    still.send_raw(&vec![0; 4 << 20]);
    broker.wait_statistic("bytes_received", (4 << 20) + 4);
    assert!(broker.statistic("input_held_bytes") > 4 << 20, "one frame goes beyond the bound");
    let mut waiting = broker.connect();
    let mut sender = waiting.clone();
    let body = vec![0; 3 << 20];
    let sending = std::thread::spawn(move || sender.send(CONTROL, CONTROL_VERSION, &body));
    let request = broker.request();
    broker.core.respond([(request.id, vec![].into())]);
    drop(request);
    sending.join().expect("all was sent");
    waiting.receive(CONTROL, CONTROL_VERSION);
    assert!(still.is_closed());
    let lines = broker.core.drain_log();
    assert!(lines.iter().any(|line| line.text.contains("got no bytes")), "{lines:?}");
    broker.wait_statistic("input_held_bytes", 0);
}

#[test]
fn nothing_is_answered_before_serve() {
    let broker = Broker::bound(&[]);
    let mut client = broker.connect();
    let id = client.send(ApiKey::METADATA, 9, &metadata_body(9));
    broker.wait_statistic("connections_open", 1);
    assert_eq!(broker.statistic("requests_metadata"), 0);
    broker.core.serve();
    assert_eq!(client.receive(ApiKey::METADATA, 9).0, id);
}

#[test]
fn stop_closes_connections_rejects_new_ones_and_ends_wait() {
    let broker = Broker::start(&[]);
    let mut idle = broker.connect();
    idle.ask(ApiKey::METADATA, 9, &metadata_body(9));
    let mut parked = broker.connect();
    send_control(&mut parked);
    let request = broker.request();
    broker.core.stop(1_000);
    broker.core.stop(1_000);
    assert!(idle.is_closed() && parked.is_closed());
    let Event::Cancelled { id } = broker.core.wait(u64::MAX, 1).remove(0) else { panic!() };
    assert_eq!(id, request.id);
    assert!(broker.core.wait(u64::MAX, 1).is_empty());
    assert!(std::net::TcpStream::connect(("127.0.0.1", broker.port)).is_err());
    assert!(broker.core.listen("OTHER", "127.0.0.1:0", Audience::Clients, None).is_err());
}

#[test]
fn python_may_close_a_connection_by_its_id() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    send_control(&mut client);
    let request = broker.request();
    broker.core.close_connection(request.connection.id, "enough");
    assert!(client.is_closed());
    broker.core.close_connection(request.connection.id, "again");
}
