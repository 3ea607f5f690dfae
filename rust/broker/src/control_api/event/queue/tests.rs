//! Events that the queue keeps, merges and drops, and its horizon.

use super::*;
use crate::control_api::event::faults::{Faults, LogFault};
use crate::control_api::event::{DiskStateKind, RequestEvent};
use crate::control_api::requests::Room;
use crate::request::{ConnectionInfo, Header};
use bytes::Bytes;
use pykafka_log::ManualClock;
use pykafka_wire::ApiKey;

fn with_faults(partition: i32, found: &[LogFault]) -> Event {
    let mut faults = Faults::default();
    for fault in found {
        faults.begin(*fault, String::new());
    }
    Event::PartitionState { topic_id: [1; 16], partition, faults }
}

fn new_queue() -> (Arc<ManualClock>, Arc<EventQueue>) {
    let clock = Arc::new(ManualClock::new(0));
    (clock.clone(), Arc::new(EventQueue::new(clock)))
}

fn drain(queue: &EventQueue) -> Vec<Event> {
    queue.wait(0, 256)
}

fn request(id: u64, received_ns: u64) -> Event {
    let text: Arc<str> = Arc::from("");
    let connection = ConnectionInfo {
        controller_apis: None,
        id,
        listener: text.clone(),
        client_host: text.clone(),
        principal: text.clone(),
        mute: Arc::default(),
        standing: Arc::default(),
    };
    let header = Header {
        api_key: ApiKey(60),
        api_version: 0,
        correlation_id: 0,
        client_id: text,
        bytes: 0,
        received_ns,
        received_ms: 0,
    };
    let (body, room) = (Bytes::new(), Room::default());
    Event::Request(Box::new(RequestEvent { id, connection, header, body, room }))
}

#[test]
fn the_horizon_is_the_oldest_unread_event_or_now() {
    let (clock, queue) = new_queue();
    clock.advance_ms(10);
    let now_ns = queue.horizon_ns();
    queue.push(Event::Appended { token: 1, error_code: 0, offset: 0 });
    clock.advance_ms(10);
    assert_eq!(queue.horizon_ns(), now_ns);
    queue.push(request(7, 3));
    assert_eq!(queue.horizon_ns(), 3);
    assert_eq!(queue.wait(0, 1).len(), 1);
    assert_eq!(queue.horizon_ns(), 3);
    assert_eq!(queue.wait(0, 1).len(), 1);
    assert_eq!(queue.horizon_ns(), clock.now_ns());
}

#[test]
fn a_cancelled_request_leaves_the_queue_and_a_taken_one_is_reported() {
    let (clock, queue) = new_queue();
    (1..=3).for_each(|id| queue.push(request(id, id)));
    queue.cancel(2);
    queue.cancel(1);
    assert_eq!((queue.count(), queue.horizon_ns()), (1, 0));
    clock.advance_ms(1);
    assert_eq!(queue.horizon_ns(), 3);
    assert!(matches!(&drain(&queue)[..], [Event::Request(request)] if request.id == 3));
    queue.cancel(3);
    assert!(matches!(drain(&queue)[..], [Event::Cancelled { id: 3 }]));
}

#[test]
fn levels_coalesce_to_the_latest_in_their_position() {
    let (_, queue) = new_queue();
    queue.push(with_faults(0, &[LogFault::Unreadable]));
    queue.push(Event::Cancelled { id: 7 });
    queue.push(with_faults(0, &[]));
    queue.push(with_faults(1, &[LogFault::Offline]));
    let events = drain(&queue);
    assert_eq!(events.len(), 3);
    assert_eq!(events[0].faults().unwrap().count(), 0);
    assert!(matches!(events[1], Event::Cancelled { id: 7 }));
    assert!(drain(&queue).is_empty());
}

#[test]
fn returned_space_does_not_replace_a_queued_failed_directory() {
    use DiskStateKind::{Failed, Full, Ok};
    for (older, newer, left) in [(Failed, Ok, Failed), (Failed, Full, Failed), (Full, Ok, Ok)] {
        let (_, queue) = new_queue();
        for state in [older, newer] {
            queue.push(Event::DiskState { state, reason: String::new() });
        }
        let events = drain(&queue);
        let [Event::DiskState { state, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(*state, left, "{older:?}, then {newer:?}");
    }
}

#[test]
fn missing_topics_are_collected_once_each_and_bounded() {
    let (_, queue) = new_queue();
    for index in 0..TOPICS_MISSING_MAX * 2 {
        for _ in 0..2 {
            let names = vec![Arc::from(format!("t{index}"))];
            queue.push(Event::TopicsMissing { names, principal: Arc::from("User:ANONYMOUS") });
        }
    }
    let events = drain(&queue);
    let [Event::TopicsMissing { names, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(names.len(), TOPICS_MISSING_MAX);
}

#[test]
fn wake_before_wait_is_not_lost() {
    let (_, queue) = new_queue();
    queue.wake();
    assert!(queue.wait(u64::MAX, 1).is_empty());
}

#[test]
fn a_waiting_thread_gets_a_pushed_event() {
    let (_, queue) = new_queue();
    let events = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| queue.wait(u64::MAX, 8));
        queue.push(Event::Appended { token: 3, error_code: 0, offset: 5 });
        waiter.join().expect("the waiter does not panic")
    });
    assert!(matches!(events[..], [Event::Appended { token: 3, error_code: 0, offset: 5 }]));
}

#[test]
fn closed_queue_returns_the_rest_and_then_returns_at_once() {
    let (_, queue) = new_queue();
    queue.push(Event::Cancelled { id: 1 });
    queue.close();
    assert_eq!(queue.wait(u64::MAX, 8).len(), 1);
    assert!(queue.wait(u64::MAX, 8).is_empty());
}
