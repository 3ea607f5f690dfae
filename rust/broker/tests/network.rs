//! Frames, order and limits over real sockets (contract/kafka.md#1–#5, docs/SEAM.md S7).

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};

use common::{Broker, Client, PATIENCE, encoded, frame};
use pykafka_broker::{Event, ImageDelta};
use pykafka_wire::{ApiKey, api_versions, metadata};

fn api_versions_body(version: i16) -> Vec<u8> {
    let request =
        api_versions::Request { client_software_name: "test", client_software_version: "1.0" };
    encoded(|out| request.encode(version, out))
}

fn metadata_body(version: i16) -> Vec<u8> {
    encoded(|out| metadata::Request::default().encode(version, out))
}

/// `CreateTopics` v2 for nothing: what Python answers.
const CONTROL: ApiKey = ApiKey(19);
const CONTROL_VERSION: i16 = 2;
const CONTROL_BODY: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Long enough for a request to follow its connection on a busy machine.
const IDLE: &[(&str, &str)] = &[("connections.max.idle.ms", "1000")];

fn send_control(client: &mut Client) -> i32 {
    client.send(CONTROL, CONTROL_VERSION, CONTROL_BODY)
}

#[test]
fn api_versions_lists_hot_keys_and_those_of_python_in_every_version() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for version in 0..=4 {
        let body = client.ask(ApiKey::API_VERSIONS, version, &api_versions_body(version));
        let response = api_versions::Response::decode(version, &body).expect("an answer");
        assert_eq!(response.error_code, 0);
        let keys: Vec<_> = response.api_keys.iter().map(|api| api.api_key).collect();
        assert_eq!(keys, [0, 1, 2, 3, 18, 19, 23, 60, 75]);
        let produce = &response.api_keys[0];
        assert_eq!((produce.min_version, produce.max_version), (0, 13));
    }
}

#[test]
fn unknown_api_versions_version_is_answered_in_version_0_and_the_connection_lives() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for version in [5, 99, -1] {
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
        let request =
            api_versions::Request { client_software_name: name, client_software_version: "1" };
        let body = encoded(|out| request.encode(3, out));
        let body = client.ask(ApiKey::API_VERSIONS, 3, &body);
        let response = api_versions::Response::decode(3, &body).expect("an answer");
        assert_eq!(response.error_code, 42, "{name}");
    }
}

#[test]
fn unknown_keys_and_versions_close_the_connection() {
    let broker = Broker::start(&[]);
    for (key, version) in [(3, 14), (3, -1), (0, 2), (4, 0), (999, 0), (-1, 0), (19, 1), (60, 3)] {
        let mut client = broker.connect();
        client.send(ApiKey(key), version, &[0; 64]);
        assert!(client.is_closed(), "{key} {version}");
    }
    broker.wait_statistic("connections_open", 0);
    assert_eq!(broker.statistic("connections_killed"), 8);
}

#[test]
fn bad_sizes_close_the_connection_at_once() {
    let broker = Broker::start(&[("socket.request.max.bytes", "1000")]);
    for size in [0, -1, i32::MIN, 1001, i32::MAX] {
        let mut client = broker.connect();
        client.send_raw(&size.to_be_bytes());
        assert!(client.is_closed(), "{size}");
    }
    let mut client = broker.connect();
    client.ask(ApiKey::METADATA, 1, &metadata_body(1));
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

/// Lets this process have as many, where the soft limit is what forbids it.
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
fn a_frame_that_does_not_arrive_in_time_closes_the_connection() {
    let broker = Broker::start(&[("internal.frame.max.ms", "50")]);
    let mut client = broker.connect();
    client.send_raw(&[0, 0]);
    assert!(client.is_closed());
    let mut client = broker.connect();
    client.send_raw(&frame(ApiKey::METADATA, 9, 1, &metadata_body(9))[..12]);
    assert!(client.is_closed());
    let lines = broker.core.drain_log();
    assert!(lines.iter().any(|line| line.text.contains("took longer")), "{lines:?}");
}

#[test]
fn an_idle_connection_is_closed_after_its_time() {
    let broker = Broker::start(IDLE);
    let mut client = broker.connect();
    client.ask(ApiKey::METADATA, 9, &metadata_body(9));
    assert!(client.is_closed());
}

#[test]
fn connections_beyond_the_maximum_wait_for_their_turn_and_nobody_is_closed_for_them() {
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
    // Who waits is served in the order of coming.
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

#[test]
fn stop_does_not_wait_for_connections_that_wait_for_their_turn() {
    let broker = Broker::start(&[("max.connections", "1")]);
    let _kept = broker.connect();
    let mut waiting = broker.connect();
    broker.wait_statistic("connections_delayed", 1);
    broker.core.stop(1_000);
    assert!(waiting.is_closed());
}

#[test]
fn pipelined_requests_are_answered_in_order_whoever_answers_them() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let sent = send_mixed(&mut client);
    let mut received = vec![client.receive(ApiKey::METADATA, 9).0];
    for _ in 0..2 {
        let request = broker.request();
        broker.core.respond([(request.id, vec![1, 2, 3].into())]);
        let (id, body) = client.receive(CONTROL, CONTROL_VERSION);
        assert_eq!(body, [1, 2, 3]);
        received.push(id);
        if received.len() == 2 {
            received.push(client.receive(ApiKey::API_VERSIONS, 3).0);
        }
    }
    assert_eq!(received, sent);
}

#[test]
fn one_request_of_a_connection_is_with_python_at_a_time() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    for _ in 0..100 {
        send_control(&mut client);
    }
    for _ in 0..100 {
        let request = broker.request();
        assert_eq!(broker.statistic("requests_parked"), 1);
        assert_eq!(broker.statistic("events_waiting"), 0);
        assert_eq!(
            (request.header.api_key, request.header.api_version),
            (CONTROL, CONTROL_VERSION)
        );
        assert_eq!((&request.body[..], &*request.header.client_id), (CONTROL_BODY, "test"));
        assert_eq!(
            (&*request.connection.client_host, &*request.connection.listener),
            ("127.0.0.1", "PLAINTEXT")
        );
        broker.core.respond([(request.id, vec![].into()), (request.id, vec![9].into())]);
        assert_eq!(client.receive(CONTROL, CONTROL_VERSION).1, []);
    }
}

#[test]
fn a_request_counts_from_its_arrival_however_long_the_one_before_it_takes() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let both: Vec<u8> =
        (0..2).flat_map(|id| frame(CONTROL, CONTROL_VERSION, id, CONTROL_BODY)).collect();
    client.send_raw(&both);
    let first = broker.request();
    broker.wait_statistic("bytes_received", both.len() as u64);
    let answered_ns = broker.core.now_ns();
    broker.core.respond([(first.id, vec![].into())]);
    let second = broker.request();
    assert!(second.header.received_ns < answered_ns);
    assert!(second.header.received_ns >= first.header.received_ns);
}

#[test]
fn a_hundred_thousand_requests_without_reading_are_held_back_and_then_all_answered() {
    const REQUESTS: i32 = 100_000;
    let broker = Broker::start(&[]);
    let mut reader = broker.connect();
    let mut writer = reader.clone();
    let sending = std::thread::spawn(move || {
        let body = metadata_body(9);
        let many: Vec<u8> =
            (0..REQUESTS).flat_map(|id| frame(ApiKey::METADATA, 9, id, &body)).collect();
        writer.send_raw(&many);
    });
    // Others are served while this one does not read.
    broker.connect().ask(ApiKey::METADATA, 9, &metadata_body(9));
    for expected in 0..REQUESTS {
        assert_eq!(reader.receive(ApiKey::METADATA, 9).0, expected);
    }
    sending.join().expect("all was sent");
}

#[test]
fn a_peer_that_ended_its_side_gets_every_answer_and_then_the_end() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let sent = send_mixed(&mut client);
    client.send_raw(&frame(ApiKey::METADATA, 9, 9, &metadata_body(9))[..10]);
    client.finish();
    let mut received = vec![client.receive(ApiKey::METADATA, 9).0];
    respond_next(&broker);
    received.push(client.receive(CONTROL, CONTROL_VERSION).0);
    received.push(client.receive(ApiKey::API_VERSIONS, 3).0);
    respond_next(&broker);
    received.push(client.receive(CONTROL, CONTROL_VERSION).0);
    assert_eq!(received, sent);
    assert!(client.is_closed());
    broker.wait_statistic("connections_open", 0);
}

/// Requests that Rust and Python answer in turn.
fn send_mixed(client: &mut Client) -> [i32; 4] {
    [
        client.send(ApiKey::METADATA, 9, &metadata_body(9)),
        send_control(client),
        client.send(ApiKey::API_VERSIONS, 3, &api_versions_body(3)),
        send_control(client),
    ]
}

fn respond_next(broker: &Broker) {
    broker.core.respond([(broker.request().id, vec![].into())]);
}

#[test]
fn a_connection_that_was_reset_cancels_its_request_and_frees_everything() {
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

#[test]
fn a_request_of_a_peer_that_went_away_quietly_lives_no_longer_than_an_idle_connection() {
    let broker = Broker::start(IDLE);
    let mut client = broker.connect();
    send_control(&mut client);
    let request = broker.request();
    drop(client);
    assert_cancelled(&broker, request.id);
}

fn assert_cancelled(broker: &Broker, request: u64) {
    let Event::Cancelled { id } = broker.event() else { panic!("not cancelled") };
    assert_eq!(id, request);
    broker.core.respond([(request, vec![1].into())]);
    broker.wait_statistic("connections_open", 0);
    assert_eq!(broker.statistic("requests_parked"), 0);
}

#[test]
fn connections_cut_in_the_middle_leave_no_descriptor_behind() {
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
    // Other tests of this program open sockets too, but not for ever.
    let deadline_ns = broker.core.now_ns() + PATIENCE.as_nanos() as u64;
    while descriptors() >= before + 600 {
        assert!(broker.core.now_ns() < deadline_ns, "{before} then {}", descriptors());
        std::thread::yield_now();
    }
}

#[test]
fn parked_bytes_beyond_the_cap_mute_further_connections() {
    let broker = Broker::start(&[("internal.parked.max.bytes", "1000")]);
    let body = vec![7; 600];
    let mut clients: Vec<_> = (0..3).map(|_| broker.connect()).collect();
    for client in &mut clients {
        client.send(CONTROL, CONTROL_VERSION, &body);
    }
    // One goes beyond the cap, and the next waits for it.
    for (parked, bytes) in [(2, 1_200), (2, 1_200), (1, 600)] {
        let request = broker.request();
        broker.wait_statistic("requests_parked", parked);
        assert_eq!(broker.statistic("requests_parked_bytes"), bytes);
        broker.core.respond([(request.id, vec![].into())]);
    }
    for client in &mut clients {
        client.receive(CONTROL, CONTROL_VERSION);
    }
}

#[test]
fn a_frame_that_stands_still_in_the_memory_of_others_is_closed_and_they_go_on() {
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
    sending.join().expect("all was sent");
    waiting.receive(CONTROL, CONTROL_VERSION);
    assert!(still.is_closed());
    let lines = broker.core.drain_log();
    assert!(lines.iter().any(|line| line.text.contains("stood still")), "{lines:?}");
    broker.wait_statistic("input_held_bytes", 0);
}

#[test]
fn a_frame_that_stands_still_in_nobodys_way_may() {
    let broker = Broker::start(&[("internal.frame.max.ms", "20")]);
    let mut client = broker.connect();
    let whole = frame(CONTROL, CONTROL_VERSION, 1, &vec![0; 3 << 20]);
    client.send_raw(&whole[..2 << 20]);
    let since_ns = broker.core.now_ns();
    // Events are none: this waits five times as long as a frame in the way may stand still.
    assert!(broker.core.wait(since_ns + 100_000_000, 1).is_empty());
    client.send_raw(&whole[2 << 20..]);
    broker.request();
}

#[test]
fn a_peer_that_takes_its_answers_too_slowly_is_closed_however_often_it_takes_a_little() {
    // Their answers are more than the sockets hold.
    const REQUESTS: usize = 1_000;
    let broker = Broker::start(&[("connections.max.idle.ms", "200")]);
    broker.create_topic("t", [9; 16], 1_000);
    let mut client = broker.connect();
    let mut writer = client.clone();
    // No names are all topics in version 0.
    let many = frame(ApiKey::METADATA, 0, 1, &[0; 4]).repeat(REQUESTS);
    // It ends with an error once the broker has closed the connection.
    let sending = std::thread::spawn(move || writer.stream.write_all(&many).is_ok());
    let mut taken = vec![0; 1_000];
    while broker.statistic("connections_killed") == 0 {
        let now_ns = broker.core.now_ns();
        // Less than half of the minimal rate, once the partitions' events are taken.
        broker.core.wait(now_ns + 40_000_000, usize::MAX);
        if matches!(client.stream.read(&mut taken), Ok(0) | Err(_)) {
            break;
        }
    }
    broker.wait_statistic("connections_killed", 1);
    let lines = broker.core.drain_log();
    assert!(lines.iter().any(|line| line.text.contains("too slowly")), "{lines:?}");
    drop(client);
    sending.join().expect("a thread");
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
fn stop_closes_connections_refuses_new_ones_and_ends_wait() {
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
    assert!(broker.core.listen("OTHER", "127.0.0.1:0").is_err());
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

#[test]
fn client_text_in_log_lines_is_escaped_and_cut() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    client.send_raw(b"\0\0\0\x05\r\n\x1b[3");
    assert!(client.is_closed());
    broker.wait_statistic("connections_open", 0);
    for line in broker.core.drain_log() {
        assert!(line.text.chars().all(|character| !character.is_control()), "{line:?}");
    }
}
