//! Tests of connections on in-memory transports: frames, order, slices and deadlines.
//!
//! One thread runs everything, and time passes only when nothing else can happen, so all runs are
//! equal.

use std::collections::BTreeMap;
use std::future;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use pykafka_forks::Mutex;
use pykafka_wire::frame::{RequestHeader, decode_response_header};
use pykafka_wire::{ApiKey, Chunks, api_versions, metadata, produce};
use tokio::io::{Interest, Ready};
use tokio::task;

use super::*;
use crate::control_api::event::{Event, RequestEvent};
use crate::control_api::image::client_quotas::{ClientQuota, Metered, Named};
use crate::control_api::image::delta::ImageDelta;
use crate::control_api::settings::Settings;
use crate::network::connections::{Opened, Rank};
use crate::network::time_slice::SLICE_FRAMES_MAX;
use crate::network::transport::memory::{Files, Peer, connected};
use crate::testing;

/// An empty `CreateTopics` request in version 2; Python handles it.
const CONTROL: ApiKey = ApiKey(19);
const CONTROL_VERSION: i16 = 2;
const CONTROL_BODY: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0];
const METADATA_VERSION: i16 = 9;
/// More polls than any connection here needs.
const TURNS: usize = 1_000;

/// More polls than any connection here needs.
const POLLS_MAX: usize = 1_000_000;

/// A broker that serves in-memory connections.
struct Broker(testing::Broker);

impl Broker {
    /// Must be called on a runtime with paused time; the broker's clock follows it.
    fn start(settings: &[(&str, &str)]) -> Broker {
        let mut broker = testing::Broker::in_memory().with_topic(100, &[]);
        let settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        broker.apply(ImageDelta {
            broker_settings: Some(settings.collect()),
            api_versions: Some(BTreeMap::from([(CONTROL.0, (2, 7)), (60, (0, 2))])),
            ..ImageDelta::default()
        });
        broker.events();
        broker.ctx.network.serving.send_replace(true);
        let clock = broker.clock.clone();
        tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                clock.advance_ms(1);
            }
        });
        Broker(broker)
    }

    /// Connects a client with unlimited space for responses.
    fn connect(&self) -> Client {
        self.connect_with_room(usize::MAX)
    }

    /// Connects a client with space for `bytes` of responses.
    fn connect_with_room(&self, bytes: usize) -> Client {
        let (transport, peer) = connected(bytes, Files::Unsupported);
        let (info, closing) = self.accepted();
        let (network, handler) = self.0.served();
        tokio::spawn(in_bounded_polls(run(network, handler, transport, info, closing)));
        Client { peer, correlation_id: 0 }
    }

    fn accepted(&self) -> (ConnectionInfo, Arc<Closing>) {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (ctx, limits) = (&self.0.ctx, Settings::default());
        let opened =
            ctx.network.connections.open(address, Rank::Client, &limits, ctx.clock.now_ns());
        let Opened { id, closing, standing, .. } = opened.unwrap();
        (ConnectionInfo { id, standing, ..testing::connection() }, closing)
    }

    /// Returns the next event, which must arrive without another request and before any time
    /// passes.
    async fn event(&self) -> Event {
        for _ in 0..TURNS {
            if let Some(event) = self.0.ctx.events.wait(0, 1).pop() {
                return event;
            }
            task::yield_now().await;
        }
        panic!("no event")
    }

    async fn request(&self) -> RequestEvent {
        match self.event().await {
            Event::Request(request) => *request,
            other => panic!("no request: {other:?}"),
        }
    }

    fn respond(&self, request: &RequestEvent, body: &'static [u8]) {
        self.0.ctx.requests.respond(request.id, Bytes::from_static(body));
    }

    async fn respond_next(&self) {
        let request = self.request().await;
        self.respond(&request, &[]);
    }

    fn connections_killed(&self) -> u64 {
        self.0.ctx.network.statistics.connections_killed.value()
    }

    fn assert_logged(&self, text: &str) {
        let lines = self.0.ctx.log_ring.drain();
        assert!(lines.iter().any(|line| line.text.contains(text)), "{lines:?}");
    }
}

/// Fails if the connection is polled without end; such a connection would keep time from passing,
/// and its test would never end.
async fn in_bounded_polls(connection: impl Future<Output = ()>) {
    let (mut connection, mut polls) = (pin!(connection), 0);
    future::poll_fn(|context| {
        polls += 1;
        assert!(polls < POLLS_MAX, "the connection never waits");
        connection.as_mut().poll(context)
    })
    .await;
}

/// Runs all connections as far as they get without further input and before any time passes.
async fn settle() {
    for _ in 0..TURNS {
        task::yield_now().await;
    }
}

/// Milliseconds until `waiting` is done, and its output.
async fn elapsed_ms<T>(waiting: impl Future<Output = T>) -> (u128, T) {
    let since = tokio::time::Instant::now();
    let output = waiting.await;
    (since.elapsed().as_millis(), output)
}

struct Client {
    peer: Peer,
    correlation_id: i32,
}

impl Client {
    fn send(&mut self, api_key: ApiKey, api_version: i16, body: &[u8]) -> i32 {
        self.correlation_id += 1;
        self.peer.send(&frame(api_key, api_version, self.correlation_id, body));
        self.correlation_id
    }

    fn send_control(&mut self) -> i32 {
        self.send(CONTROL, CONTROL_VERSION, CONTROL_BODY)
    }

    fn send_metadata(&mut self) -> i32 {
        self.send(ApiKey::METADATA, METADATA_VERSION, &metadata_body())
    }

    /// Sends requests that Rust and Python handle alternately.
    fn send_mixed(&mut self) -> [i32; 4] {
        let api_versions = encoded(|out| api_versions::Request::default().encode(0, out));
        [
            self.send_metadata(),
            self.send_control(),
            self.send(ApiKey::API_VERSIONS, 0, &api_versions),
            self.send_control(),
        ]
    }

    /// The next response without its size.
    async fn receive_frame(&self) -> Vec<u8> {
        let prefix = self.peer.receive(PREFIX_SIZE).await.expect("a response");
        let size = u32::from_be_bytes(prefix.try_into().unwrap()) as usize;
        self.peer.receive(size).await.expect("a whole response")
    }

    /// Correlation id and body of the next response.
    async fn receive(&self, api_key: ApiKey, api_version: i16) -> (i32, Vec<u8>) {
        let frame = self.receive_frame().await;
        let (id, body) = decode_response_header(api_key, api_version, &frame).unwrap();
        (id, body.to_vec())
    }

    async fn receive_metadata(&self) -> i32 {
        self.receive(ApiKey::METADATA, METADATA_VERSION).await.0
    }

    async fn receive_control(&self) -> (i32, Vec<u8>) {
        self.receive(CONTROL, CONTROL_VERSION).await
    }

    async fn ask_metadata(&mut self) {
        let sent = self.send_metadata();
        assert_eq!(self.receive_metadata().await, sent);
    }
}

fn frame(api_key: ApiKey, api_version: i16, correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; PREFIX_SIZE];
    let header = RequestHeader { api_key, api_version, correlation_id, client_id: Some("test") };
    header.encode(&mut frame).unwrap();
    frame.extend_from_slice(body);
    let size = (frame.len() - PREFIX_SIZE) as i32;
    frame[..PREFIX_SIZE].copy_from_slice(&size.to_be_bytes());
    frame
}

fn encoded<E: std::fmt::Debug>(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out).unwrap();
    out
}

/// A request for no topics.
fn metadata_body() -> Vec<u8> {
    let request = metadata::Request { topics: Some(Vec::new()), ..Default::default() };
    encoded(|out| request.encode(METADATA_VERSION, out))
}

#[tokio::test(start_paused = true)]
async fn unknown_keys_and_versions_close_the_connection() {
    let broker = Broker::start(&[]);
    let refused = [(3, 14), (3, -1), (0, 2), (4, 0), (999, 0), (-1, 0), (CONTROL.0, 1), (60, 3)];
    for (key, version) in refused {
        let mut client = broker.connect();
        client.send(ApiKey(key), version, &[0; 64]);
        assert!(client.peer.is_closed().await, "{key} {version}");
    }
    assert_eq!(broker.connections_killed(), 8);
}

#[tokio::test(start_paused = true)]
async fn bad_sizes_close_the_connection_at_once() {
    let broker = Broker::start(&[("socket.request.max.bytes", "1000")]);
    for size in [0, -1, i32::MIN, 1001, i32::MAX] {
        let client = broker.connect();
        client.peer.send(&size.to_be_bytes());
        assert_eq!(elapsed_ms(client.peer.is_closed()).await, (0, true), "{size}");
    }
    broker.connect().ask_metadata().await;
}

#[tokio::test(start_paused = true)]
async fn client_text_in_log_lines_is_escaped() {
    let broker = Broker::start(&[]);
    let client = broker.connect();
    client.peer.send(b"\0\0\0\x05\r\n\x1b[3");
    assert!(client.peer.is_closed().await);
    let lines = broker.0.ctx.log_ring.drain();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line.text.chars().all(|character| !character.is_control()), "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_does_not_arrive_in_time_closes_the_connection() {
    let broker = Broker::start(&[("internal.frame.max.ms", "50")]);
    for begun in [&[0, 0][..], &frame(ApiKey::METADATA, METADATA_VERSION, 1, &[0; 9])[..12]] {
        let client = broker.connect();
        client.peer.send(begun);
        let (waited_ms, is_closed) = elapsed_ms(client.peer.is_closed()).await;
        assert!(is_closed && (50..60).contains(&waited_ms), "{waited_ms}");
        broker.assert_logged("took longer");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_frame_that_blocks_no_other_may_stay() {
    let broker = Broker::start(&[("internal.frame.max.ms", "20")]);
    let client = broker.connect();
    // At the minimum rate it may take 156 ms longer than any frame.
    let whole = frame(CONTROL, CONTROL_VERSION, 1, &[0; 10_000]);
    client.peer.send(&whole[..5_000]);
    sleep(Duration::from_millis(100)).await;
    client.peer.send(&whole[5_000..]);
    broker.request().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_its_time() {
    let broker = Broker::start(&[("connections.max.idle.ms", "1000")]);
    let mut client = broker.connect();
    client.ask_metadata().await;
    let (waited_ms, is_closed) = elapsed_ms(client.peer.is_closed()).await;
    assert!(is_closed && (1_000..1_010).contains(&waited_ms), "{waited_ms}");
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_half_closed_connection_ends_after_the_idle_time() {
    let broker = Broker::start(&[("connections.max.idle.ms", "1000")]);
    let mut client = broker.connect();
    client.send_control();
    let request = broker.request().await;
    client.peer.finish();
    let (waited_ms, is_closed) = elapsed_ms(client.peer.is_closed()).await;
    assert!(is_closed && (1_000..1_010).contains(&waited_ms), "{waited_ms}");
    let Event::Cancelled { id } = broker.event().await else { panic!("not cancelled") };
    assert_eq!((id, broker.0.ctx.requests.count()), (request.id, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_a_waiting_request_at_once() {
    let broker = Broker::start(&[]);
    for has_finished in [false, true] {
        let mut client = broker.connect();
        client.send_control();
        let request = broker.request().await;
        if has_finished {
            client.peer.finish();
            settle().await;
        }
        client.peer.reset();
        let Event::Cancelled { id } = broker.event().await else { panic!("not cancelled") };
        assert_eq!((id, broker.0.ctx.requests.count()), (request.id, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order_by_rust_and_python() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let [metadata, first, api_versions, second] = client.send_mixed();
    assert_eq!(client.receive_metadata().await, metadata);
    let request = broker.request().await;
    broker.respond(&request, &[1, 2, 3]);
    assert_eq!(client.receive_control().await, (first, vec![1, 2, 3]));
    assert_eq!(client.receive(ApiKey::API_VERSIONS, 0).await.0, api_versions);
    broker.respond_next().await;
    assert_eq!(client.receive_control().await.0, second);
}

#[tokio::test(start_paused = true)]
async fn python_handles_one_request_of_a_connection_at_a_time() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    (0..100).for_each(|_| _ = client.send_control());
    for _ in 0..100 {
        let request = broker.request().await;
        settle().await;
        assert_eq!((broker.0.ctx.requests.count(), broker.0.ctx.events.count()), (1, 0));
        let header = &request.header;
        assert_eq!((header.api_key, header.api_version), (CONTROL, CONTROL_VERSION));
        assert_eq!((&request.body[..], &*header.client_id), (CONTROL_BODY, "test"));
        broker.respond(&request, &[]);
        broker.respond(&request, &[9]);
        assert_eq!(client.receive_control().await.1, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_timed_from_its_arrival_even_after_a_slow_one() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    client.send_control();
    client.send_control();
    let first = broker.request().await;
    sleep(Duration::from_millis(100)).await;
    broker.respond(&first, &[]);
    assert_eq!(broker.request().await.header.received_ns, first.header.received_ns);
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_of_running_ones_reach_python_and_hold_no_memory() {
    // The smallest body that counts; larger ones are measured on another thread.
    const BYTES: usize = 16 << 10;
    let broker = Broker::start(&[("internal.parked.max.bytes", "20000")]);
    let mut clients: Vec<_> = (0..3).map(|_| broker.connect()).collect();
    let mut requests = Vec::new();
    for client in &mut clients {
        // Bytes after the end of a message are ignored.
        client.send(CONTROL, CONTROL_VERSION, &[CONTROL_BODY, &[0; BYTES]].concat()[..BYTES]);
        requests.push(broker.request().await);
    }
    let memory = &broker.0.ctx.network.memory;
    assert_eq!(memory.requests.held(), 0);
    // The last request may exceed the limit; the next one waits for it.
    let admitted: Vec<_> = requests.iter().map(|request| request.room.try_decode()).collect();
    assert_eq!(admitted, [true, true, false]);
    let now_ns = broker.0.ctx.clock.now_ns();
    assert_eq!(broker.0.ctx.events.horizon_ns(), now_ns, "none holds back the timers");
    for request in &requests {
        request.room.unreserve();
        request.room.release();
    }
    assert_eq!((memory.requests.held(), memory.responses.bytes()), (0, 0));
    for (request, client) in requests.iter().zip(&clients) {
        broker.respond(request, &[]);
        client.receive_control().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_request_closes_its_connection_and_never_reaches_python() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let first = client.send_control();
    client.send(CONTROL, CONTROL_VERSION, &CONTROL_BODY[1..]);
    broker.respond_next().await;
    assert_eq!(client.receive_control().await.0, first);
    assert_eq!(client.peer.receive(1).await, None);
    assert_eq!((broker.0.ctx.requests.count(), broker.0.ctx.events.count()), (0, 0));
    assert_eq!(broker.connections_killed(), 1);
    broker.assert_logged("malformed request: ");
}

#[tokio::test(start_paused = true)]
async fn a_large_response_waits_for_memory_before_python_builds_it() {
    const BYTES: usize = 64 << 10;
    let broker = Broker::start(&[]);
    let (mut client, mut closed) = (broker.connect(), broker.connect());
    let mut requests = Vec::new();
    for client in [&mut client, &mut closed] {
        client.send(CONTROL, CONTROL_VERSION, CONTROL_BODY);
        requests.push(broker.request().await);
    }
    let ctx = &broker.0.ctx;
    let responses = &ctx.network.memory.responses;
    let others: Vec<_> = std::iter::from_fn(|| responses.try_room(BYTES)).collect();
    for (token, request) in (7..).zip(&requests) {
        ctx.requests.reserve(request.id, token, BYTES);
    }
    closed.peer.reset();
    assert!(matches!(broker.event().await, Event::Cancelled { id } if id == requests[1].id));
    assert_eq!(requests[0].room.reserved(), 0, "others hold all of the memory");

    drop(others);
    assert!(matches!(broker.event().await, Event::Maintained { token: 7, error_code: 0, .. }));
    assert_eq!((requests[0].room.reserved(), responses.bytes()), (BYTES, BYTES));
    broker.respond(&requests[0], &[]);
    client.receive_control().await;
    assert_eq!(responses.bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_connection_gets_every_reply_and_then_the_end() {
    let broker = Broker::start(&[]);
    let mut client = broker.connect();
    let [metadata, first, api_versions, second] = client.send_mixed();
    client.peer.send(&frame(ApiKey::METADATA, METADATA_VERSION, 9, &metadata_body())[..10]);
    client.peer.finish();
    assert_eq!(client.receive_metadata().await, metadata);
    broker.respond_next().await;
    assert_eq!(client.receive_control().await.0, first);
    assert_eq!(client.receive(ApiKey::API_VERSIONS, 0).await.0, api_versions);
    broker.respond_next().await;
    assert_eq!(client.receive_control().await.0, second);
    assert!(client.peer.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_no_replies_is_not_read_from_until_it_does() {
    const REQUESTS: i32 = 100_000;
    let broker = Broker::start(&[]);
    let mut client = broker.connect_with_room(64 << 10);
    (0..REQUESTS).for_each(|_| _ = client.send_metadata());
    let sent = client.peer.unread();
    settle().await;
    let read = sent - client.peer.unread();
    assert!(read < 2 * SLICE_BYTES_MAX, "{read} of {sent} were read");
    broker.connect().ask_metadata().await;
    assert_eq!(client.peer.unread(), sent - read, "nothing more is read");
    for expected in 1..=REQUESTS {
        assert_eq!(client.receive_metadata().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_endless_input_gets_one_slice_between_two_of_another() {
    let broker = Broker::start(&[]);
    let mut endless = broker.connect();
    (0..100_000).for_each(|_| _ = endless.send_metadata());
    let response_bytes = PREFIX_SIZE + endless.receive_frame().await.len();
    let mut probe = broker.connect();
    probe.ask_metadata().await;
    for _ in 0..50 {
        let before = endless.peer.take().len();
        assert!(before > 0, "it has its slices");
        probe.ask_metadata().await;
        let answered = endless.peer.untaken() / response_bytes;
        assert!(answered < 4 * SLICE_FRAMES_MAX, "{answered} answers between two of the other");
    }
    assert!(endless.peer.unread() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_too_slowly_is_closed_even_if_it_reads_often() {
    let broker = Broker::start(&[("connections.max.idle.ms", "200")]);
    let mut client = broker.connect_with_room(64 << 10);
    // In version 0, no names means all topics.
    (0..1_000).for_each(|_| _ = client.send(ApiKey::METADATA, 0, &[0; 4]));
    while broker.connections_killed() == 0 {
        // Less than half of the minimum rate.
        sleep(Duration::from_millis(40)).await;
        assert!(client.peer.receive(1_000).await.is_some(), "it is closed for another reason");
    }
    broker.assert_logged("too slowly");
}

const PRODUCE_VERSION: i16 = 9;

/// A request that appends a batch of two kilobytes to `t`-0.
fn produce_body(acks: i16) -> Vec<u8> {
    let batch = testing::batch(&["x".repeat(2_000).as_str()]);
    let request = testing::request_of(acks, &[(0, Some(&batch))]);
    let mut body = BytesMut::new();
    request.encode(PRODUCE_VERSION, &mut body).unwrap();
    body.to_vec()
}

/// A broker whose clients may produce 100 bytes per second, and so about 1,000 at once.
fn broker_with_quota() -> Broker {
    let mut broker = Broker::start(&[]);
    let quota = ClientQuota {
        user: Named::Nobody,
        client_id: Named::Default,
        metered: Metered::Produced,
        bytes_per_second: 100.0,
    };
    broker.0.apply(ImageDelta { client_quotas: Some(vec![quota]), ..ImageDelta::default() });
    broker
}

#[tokio::test(start_paused = true)]
async fn a_client_over_its_quota_is_answered_at_once_and_then_muted_for_the_throttle_time() {
    let broker = broker_with_quota();
    let mut client = broker.connect();
    client.send(ApiKey::PRODUCE, PRODUCE_VERSION, &produce_body(1));
    client.send_metadata();
    let answered = client.receive(ApiKey::PRODUCE, PRODUCE_VERSION);
    let (waited_ms, (_, body)) = elapsed_ms(answered).await;
    assert_eq!(waited_ms, 0);
    let response = produce::Response::decode(PRODUCE_VERSION, &body).unwrap();
    assert_eq!(response.responses[0].partitions[0].error_code, 0);
    let told_ms = response.throttle_time_ms as u128;
    assert!(told_ms > 10_000, "{told_ms}");
    broker.connect().ask_metadata().await;
    let (waited_ms, _) = elapsed_ms(client.receive_metadata()).await;
    assert!((told_ms - 5..told_ms + 5).contains(&waited_ms), "{waited_ms} of {told_ms}");
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_muted_half_closed_connection_are_still_handled() {
    let broker = broker_with_quota();
    let mut client = broker.connect();
    client.send(ApiKey::PRODUCE, PRODUCE_VERSION, &produce_body(0));
    client.send(ApiKey::PRODUCE, PRODUCE_VERSION, &produce_body(0));
    client.peer.finish();
    assert!(client.peer.is_closed().await);
    assert_eq!(broker.0.offsets().log_end_offset, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_muted_client() {
    let broker = broker_with_quota();
    let mut client = broker.connect();
    client.send(ApiKey::PRODUCE, PRODUCE_VERSION, &produce_body(1));
    client.send_metadata();
    client.receive(ApiKey::PRODUCE, PRODUCE_VERSION).await;
    broker.0.ctx.network.connections.drain_all();
    assert_eq!(elapsed_ms(client.peer.is_closed()).await, (0, true));
}

/// A transport whose peer frees space whenever it is full, before the connection starts to wait.
#[derive(Default)]
struct AlwaysRoom {
    room: Mutex<usize>,
    taken: Arc<AtomicUsize>,
}

const ROOM: usize = 128 << 10;

impl Transport for AlwaysRoom {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        if !interest.is_writable() {
            return future::pending().await;
        }
        *self.room.lock() = ROOM;
        Ok(Ready::WRITABLE)
    }

    fn try_read(&self, _: &mut impl BufMut) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn try_write(&self, slices: &[io::IoSlice<'_>], _: bool) -> io::Result<usize> {
        let mut room = self.room.lock();
        let size = slices.iter().map(|slice| slice.len()).sum::<usize>().min(*room);
        if size == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *room -= size;
        self.taken.fetch_add(size, Ordering::Relaxed);
        Ok(size)
    }

    fn try_send_file(&self, _: BorrowedFd<'_>, _: u64, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_is_always_writable_is_sent_to_in_slices() {
    let broker = Broker::start(&[]);
    let (info, closing) = broker.accepted();
    let transport = AlwaysRoom::default();
    let taken = transport.taken.clone();
    let (network, handler) = broker.0.served();
    let mut connection = Connection::new(network, handler, transport, info, closing);
    let slice = connection.link.slice.clone();
    let mut response = Chunks::new();
    response.prepend(Bytes::from(vec![0; 16 << 20]));
    connection.output.push(&testing::header(ApiKey::METADATA, METADATA_VERSION), response.into());
    let mut sending = pin!(in_slices(&slice, connection.flush()));
    future::poll_fn(|cx| {
        let before = taken.load(Ordering::Relaxed);
        let polled = sending.as_mut().poll(cx);
        let sent = taken.load(Ordering::Relaxed) - before;
        assert!(sent < SLICE_BYTES_MAX + ROOM, "{sent} bytes in one slice");
        polled.map(|_| ())
    })
    .await;
    assert!(taken.load(Ordering::Relaxed) > 16 << 20);
}
