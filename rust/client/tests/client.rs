//! A client, and peers that the test controls, on pipes in memory and with a paused clock.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use pykafka_client::{Client, ClientOptions, Connector, Destination, Request, SendError};
use pykafka_wire::ApiKey;
use pykafka_wire::api_versions::{ApiVersion, Response};
use pykafka_wire::frame::{RequestHeader, response_header};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, advance, timeout};

const ALTER_PARTITION: ApiKey = ApiKey(56);
const PIPE_BYTES: usize = 1 << 10;
const RESPONSE_BYTES_MAX: usize = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// Passes the other ends of its connections to the test, as long as the test accepts them.
struct Pipes {
    peers: mpsc::UnboundedSender<Peer>,
    tried: Arc<AtomicUsize>,
}

impl Connector for Pipes {
    type Stream = DuplexStream;

    fn open(&self, _: &Destination) -> impl Future<Output = io::Result<DuplexStream>> + Send {
        self.tried.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = duplex(PIPE_BYTES);
        let sent = self.peers.send(Peer(theirs));
        async move { sent.map(|()| ours).map_err(|_| io::ErrorKind::ConnectionRefused.into()) }
    }
}

/// The other end of a connection.
struct Peer(DuplexStream);

struct Asked {
    api_key: ApiKey,
    api_version: i16,
    correlation_id: i32,
    body: Vec<u8>,
}

impl Peer {
    async fn next(&mut self) -> Asked {
        let size = self.0.read_i32().await.expect("a request");
        let mut frame = vec![0; usize::try_from(size).expect("a size")];
        self.0.read_exact(&mut frame).await.expect("the whole request");
        let (header, body) = RequestHeader::decode(&frame).expect("a header");
        let RequestHeader { api_key, api_version, correlation_id, .. } = header;
        Asked { api_key, api_version, correlation_id, body: body.to_vec() }
    }

    async fn respond(&mut self, asked: &Asked, body: &[u8]) {
        let mut frame = Vec::new();
        response_header(asked.api_key, asked.api_version, asked.correlation_id, &mut frame);
        frame.extend_from_slice(body);
        self.write(&frame).await;
    }

    async fn write(&mut self, frame: &[u8]) {
        self.0.write_i32(frame.len().try_into().expect("small")).await.expect("room");
        self.0.write_all(frame).await.expect("room");
    }

    async fn tell_versions(&mut self) {
        let asked = self.next().await;
        assert_eq!((asked.api_key, asked.api_version), (ApiKey::API_VERSIONS, 3));
        self.respond(&asked, &versions(3)).await;
    }

    async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(timeout(SECOND, self.0.read(&mut byte)).await, Ok(Ok(0)))
    }
}

fn versions(version: i16) -> Vec<u8> {
    let range =
        |api_key, min_version, max_version| ApiVersion { api_key, min_version, max_version };
    let api_keys = vec![
        range(ApiKey::FETCH.0, 4, 18),
        range(ApiKey::METADATA.0, 0, 13),
        range(ALTER_PARTITION.0, 2, 3),
    ];
    encoded(version, &Response { api_keys, ..Response::default() })
}

fn encoded(version: i16, response: &Response<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    response.encode(version, &mut body).expect("it fits");
    body
}

struct Setting {
    client: Client<Pipes>,
    peers: mpsc::UnboundedReceiver<Peer>,
    tried: Arc<AtomicUsize>,
}

impl Setting {
    fn new() -> Setting {
        let (told, peers) = mpsc::unbounded_channel();
        let tried = Arc::new(AtomicUsize::new(0));
        let options = ClientOptions {
            client_id: "broker-1".into(),
            setup_timeout: 10 * SECOND,
            backoff_first: Duration::from_millis(50),
            backoff_max: SECOND,
            idle_max: 600 * SECOND,
            response_bytes_max: RESPONSE_BYTES_MAX,
            open_max: 100,
            seed: 7,
        };
        let pipes = Pipes { peers: told, tried: tried.clone() };
        Setting { client: Client::new(pipes, options, Handle::current()), peers, tried }
    }

    fn send(&self, body: &'static str) -> Ended {
        self.send_to("orders", 12, body, 30 * SECOND)
    }

    fn send_to(&self, purpose: &str, version: i16, body: &'static str, timeout: Duration) -> Ended {
        let body = Bytes::from_static(body.as_bytes());
        let (api_key, api_version) = (ApiKey::FETCH, version);
        self.ask(
            purpose,
            Request { api_key, api_version, body, timeout, response_bytes_expected: 0 },
        )
    }

    fn ask(&self, purpose: &str, request: Request) -> Ended {
        let (done, ended) = oneshot::channel();
        self.client.send(&destination(purpose), request, |end| drop(done.send(end)));
        ended
    }

    fn alter_partition(&self) -> Ended {
        let request = Request {
            api_key: ALTER_PARTITION,
            api_version: 3,
            body: Bytes::new(),
            timeout: 30 * SECOND,
            response_bytes_expected: 0,
        };
        self.ask("alter partition", request)
    }

    fn watch(&self, timeout: Duration) -> Ended {
        let (done, ended) = oneshot::channel();
        self.client.watch(&destination("orders"), timeout, |end| drop(done.send(end)));
        ended
    }

    async fn peer(&mut self) -> Peer {
        self.peers.recv().await.expect("the client is there")
    }

    /// A peer that has sent its versions.
    async fn told_peer(&mut self) -> Peer {
        let mut peer = self.peer().await;
        peer.tell_versions().await;
        peer
    }

    /// A peer that has answered a request.
    async fn connected(&mut self) -> Peer {
        let ended = self.send("first");
        let mut peer = self.peer().await;
        peer.tell_versions().await;
        let asked = peer.next().await;
        peer.respond(&asked, b"first response").await;
        assert_eq!(ended.await, Ok(Ok(Bytes::from_static(b"first response"))));
        peer
    }
}

type Ended = oneshot::Receiver<Result<Bytes, SendError>>;

fn destination(purpose: &str) -> Destination {
    Destination { purpose: purpose.into(), host: "127.0.0.1".into(), port: 9 }
}

async fn error_of(ended: Ended) -> SendError {
    ended.await.expect("it ends").expect_err("it fails")
}

fn is_disconnected(error: &SendError, reason: &str) -> bool {
    matches!(error, SendError::Disconnected(text) if text.contains(reason))
}

fn is_refused(error: &SendError) -> bool {
    matches!(error, SendError::Refused(text) if text.contains("connection refused"))
}

#[tokio::test(start_paused = true)]
async fn requests_are_sent_in_order_before_the_first_reply() {
    let mut setting = Setting::new();
    let (first, second) = (setting.send("one"), setting.send("two"));
    let mut peer = setting.peer().await;
    peer.tell_versions().await;
    let (one, two) = (peer.next().await, peer.next().await);
    assert_eq!((one.body.as_slice(), two.body.as_slice()), (&b"one"[..], &b"two"[..]));
    peer.respond(&one, b"to one").await;
    peer.respond(&two, b"to two").await;
    assert_eq!(first.await, Ok(Ok(Bytes::from_static(b"to one"))));
    assert_eq!(second.await, Ok(Ok(Bytes::from_static(b"to two"))));
    assert_eq!((setting.tried.load(Ordering::Relaxed), setting.client.open_count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn purposes_do_not_wait_for_each_other() {
    let mut setting = Setting::new();
    let slow = setting.send_to("fetch", 12, "waits", 30 * SECOND);
    let mut polled = setting.peer().await;
    polled.tell_versions().await;
    let _ = polled.next().await;
    let fast = setting.send_to("quorum", 12, "heartbeat", 30 * SECOND);
    let mut other = setting.peer().await;
    other.tell_versions().await;
    let asked = other.next().await;
    other.respond(&asked, b"alive").await;
    assert_eq!(fast.await, Ok(Ok(Bytes::from_static(b"alive"))));
    setting.client.disconnect(&destination("fetch"));
    assert_eq!(error_of(slow).await, SendError::Closed);
    assert!(polled.is_closed().await);
}

/// A controller uses the ids to order the requests, so no other request may use them up.
#[tokio::test(start_paused = true)]
async fn changes_of_an_isr_are_numbered_over_all_connections() {
    let mut setting = Setting::new();
    let given_up = setting.alter_partition();
    let mut peer = setting.told_peer().await;
    let first = peer.next().await.correlation_id;
    let other = setting.send_to("fetch", 12, "between", 30 * SECOND);
    let mut fetched = setting.peer().await;
    fetched.tell_versions().await;
    let _ = fetched.next().await;
    drop(peer);
    assert!(matches!(error_of(given_up).await, SendError::Disconnected(_)));
    let asked_again = setting.alter_partition();
    let mut again = setting.told_peer().await;
    assert_eq!(again.next().await.correlation_id, first + 1);
    drop((other, asked_again));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_peer_lacks_is_not_sent() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    let too_new = setting.send_to("orders", 19, "new", SECOND);
    assert_eq!(error_of(too_new).await, SendError::UnsupportedVersion { min: 4, max: 18 });
    let request = Request {
        api_key: ApiKey::PRODUCE,
        api_version: 3,
        body: Bytes::new(),
        timeout: SECOND,
        response_bytes_expected: 0,
    };
    let unknown = setting.ask("orders", request);
    assert_eq!(error_of(unknown).await, SendError::UnsupportedVersion { min: 0, max: -1 });
    let next = setting.send("next");
    assert_eq!(peer.next().await.body, b"next");
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_connection_can_be_awaited_during_requests() {
    let mut setting = Setting::new();
    let watched = setting.watch(3600 * SECOND);
    let mut peer = setting.peer().await;
    peer.tell_versions().await;
    let ended = setting.send("hello");
    let asked = peer.next().await;
    peer.respond(&asked, b"hello, too").await;
    assert_eq!(ended.await, Ok(Ok(Bytes::from_static(b"hello, too"))));
    let short = setting.watch(SECOND);
    assert_eq!(error_of(short).await, SendError::TimedOut);
    // Longer than the limit of a connection without requests.
    advance(1800 * SECOND).await;
    drop(peer);
    assert!(is_disconnected(&error_of(watched).await, "the peer closed it"));
    setting.peers.close();
    advance(2 * SECOND).await;
    assert!(is_refused(&error_of(setting.watch(SECOND)).await));
}

#[tokio::test(start_paused = true)]
async fn an_older_peer_is_asked_again_for_its_versions_in_version_0() {
    let mut setting = Setting::new();
    let ended = setting.send("hello");
    let mut peer = setting.peer().await;
    let asked = peer.next().await;
    let refusal = Response { error_code: 35, ..Response::default() };
    peer.respond(&asked, &encoded(0, &refusal)).await;
    let again = peer.next().await;
    assert_eq!((again.api_key, again.api_version), (ApiKey::API_VERSIONS, 0));
    peer.respond(&again, &versions(0)).await;
    let asked = peer.next().await;
    peer.respond(&asked, b"hello, too").await;
    assert_eq!(ended.await, Ok(Ok(Bytes::from_static(b"hello, too"))));
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_node_is_not_retried_for_a_while() {
    let mut setting = Setting::new();
    setting.peers.close();
    assert!(is_refused(&error_of(setting.send("one")).await));
    assert!(is_disconnected(&error_of(setting.send("two")).await, "is tried in"));
    assert_eq!(setting.tried.load(Ordering::Relaxed), 1);
    advance(Duration::from_millis(60)).await;
    assert!(is_refused(&error_of(setting.send("three")).await));
    assert_eq!(setting.tried.load(Ordering::Relaxed), 2);
    advance(Duration::from_millis(60)).await;
    assert!(is_disconnected(&error_of(setting.send("four")).await, "is tried in"));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_connection_fails_open_requests_and_the_next_one_reconnects() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    let lost = setting.send("lost");
    let _ = peer.next().await;
    drop(peer);
    assert!(is_disconnected(&error_of(lost).await, "the peer closed it"));
    let _peer = setting.connected().await;
    assert_eq!(setting.tried.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_timed_out_request_closes_the_connection_and_fails_later_requests() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    let (late, behind) = (setting.send_to("orders", 12, "late", SECOND), setting.send("behind"));
    let before = Instant::now();
    assert_eq!(error_of(late).await, SendError::TimedOut);
    assert_eq!(before.elapsed().as_millis() / 100, 10);
    assert!(is_disconnected(&error_of(behind).await, "did not answer in time"));
    let _ = (peer.next().await, peer.next().await);
    assert!(peer.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_before_the_versions_are_known_fails_only_its_request() {
    let mut setting = Setting::new();
    let (late, other) = (setting.send_to("orders", 12, "late", SECOND), setting.send("other"));
    assert_eq!(error_of(late).await, SendError::TimedOut);
    let mut peer = setting.peer().await;
    peer.tell_versions().await;
    let asked = peer.next().await;
    assert_eq!(asked.body, b"other");
    peer.respond(&asked, b"in time").await;
    assert_eq!(other.await, Ok(Ok(Bytes::from_static(b"in time"))));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_sends_no_versions_is_disconnected() {
    let mut setting = Setting::new();
    let ended = setting.send("hello");
    let _peer = setting.peer().await;
    let before = Instant::now();
    assert!(is_disconnected(&error_of(ended).await, "did not answer in time"));
    assert_eq!(before.elapsed().as_secs(), 10);
    assert!(is_disconnected(&error_of(setting.send("at once")).await, "is tried in"));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_reply_closes_the_connection() {
    let responses: [(&[u8], &str); 4] = [
        (&[0, 0, 0, 9, 0], "answered another request"),
        (&[0, 0], "a response of 2 bytes"),
        (&[0xff; 5], "no header"),
        (&[0, 0, 0, 1], "no header"),
    ];
    for (frame, reason) in responses {
        let mut setting = Setting::new();
        let mut peer = setting.connected().await;
        let ended = setting.send("next");
        let _ = peer.next().await;
        peer.write(frame).await;
        let error = error_of(ended).await;
        assert!(is_disconnected(&error, reason), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_above_the_limit_is_rejected_by_its_size_alone() {
    for size in [-1, i32::MAX, i32::try_from(RESPONSE_BYTES_MAX + 1).expect("small")] {
        let mut setting = Setting::new();
        let mut peer = setting.connected().await;
        let ended = setting.send("next");
        let _ = peer.next().await;
        peer.0.write_i32(size).await.expect("room");
        assert!(is_disconnected(&error_of(ended).await, &format!("a response of {size} bytes")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unexpected_reply_closes_the_connection() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    peer.write(&[0, 0, 0, 2, 0]).await;
    assert!(peer.is_closed().await);
    let _peer = setting.connected().await;
}

#[tokio::test(start_paused = true)]
async fn large_requests_and_replies_can_cross() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    let large = "x".repeat(100 * PIPE_BYTES).leak();
    let (one, two) = (setting.send("one"), setting.send(large));
    let asked = peer.next().await;
    // The peer reads nothing more until its response is sent, and the client has more to write than
    // the pipe can hold.
    peer.respond(&asked, large.as_bytes()).await;
    assert_eq!(one.await.expect("it ends").expect("a response").len(), large.len());
    let asked = peer.next().await;
    assert_eq!(asked.body.len(), large.len());
    peer.respond(&asked, b"").await;
    assert_eq!(two.await, Ok(Ok(Bytes::new())));
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_may_be_open_are_rejected() {
    let setting = Setting::new();
    let open: Vec<Ended> = (0..100).map(|_| setting.send("one")).collect();
    assert_eq!(error_of(setting.send("too many")).await, SendError::Full(100));
    assert_eq!(setting.client.open_count(), 100);
    setting.client.close();
    setting.client.wait_none().await;
    for ended in open {
        assert_eq!(error_of(ended).await, SendError::Closed);
    }
    assert_eq!(setting.client.open_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_close_every_request_fails_and_no_connection_stays() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    let open = setting.send("open");
    let _ = peer.next().await;
    setting.client.close();
    assert_eq!(error_of(open).await, SendError::Closed);
    assert_eq!(error_of(setting.send("late")).await, SendError::Closed);
    assert!(peer.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_with_its_task_and_reopened_on_demand() {
    let mut setting = Setting::new();
    let mut peer = setting.connected().await;
    advance(600 * SECOND).await;
    assert!(peer.is_closed().await);
    advance(600 * SECOND).await;
    let _peer = setting.connected().await;
    assert_eq!(setting.tried.load(Ordering::Relaxed), 2);
}
