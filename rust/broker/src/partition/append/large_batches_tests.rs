//! Tests that batches which decompress to megabytes wait for each other and block nothing else: no
//! thread, and no other partition.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::{slice, thread};

use bytes::BytesMut;
use pykafka_log::{AppendOrigin, Durability};
use pykafka_record::{BatchOptions, Compression};
use pykafka_wire::{ApiKey, list_offsets, produce};

use crate::control_api::image::delta::ImageDelta;
use crate::kafka_error::KafkaError;
use crate::network::outcome::{Outcome, PendingOutcome};
use crate::partition::Host;
use crate::partition::append::large_batches::LargeBatchPermit;
use crate::partition::append::outcome::AppendOutcome;
use crate::partition::append::queued::Append;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::waiters::{AckWaiter, Promise};
use crate::testing::{
    Broker, START_MS, TOPIC, batch, batch_with, connection, header, pending, poll, replied,
    request_of,
};

/// More than the threads of a pool.
const MANY: i32 = 20;
/// A partition without large batches.
const FREE: i32 = MANY;
/// A partition with a large batch.
const STORED: i32 = MANY + 1;

/// A batch that is small when it is sent.
fn large() -> Vec<u8> {
    compressed(&"v".repeat(6 << 20))
}

fn compressed(value: &str) -> Vec<u8> {
    let options = BatchOptions { compression: Compression::Lz4, ..BatchOptions::default() };
    batch_with(options, &[value])
}

fn produce_to(broker: &Broker, partition: i32, records: &[u8]) -> Outcome {
    broker.produce_request(9, &request_of(1, &[(partition, Some(records))]))
}

/// Error code and base offset of the only partition.
fn produced(outcome: Outcome) -> (i16, i64) {
    let response = replied(outcome);
    let response = produce::Response::decode(9, &response).unwrap();
    let partition = &response.responses[0].partitions[0];
    (partition.error_code, partition.base_offset)
}

fn look_up(broker: &Broker, partitions: &[i32]) -> Outcome {
    let partitions = (partitions.iter())
        .map(|partition| list_offsets::Partition {
            partition_index: *partition,
            current_leader_epoch: -1,
            timestamp: START_MS,
        })
        .collect();
    let topic = list_offsets::Topic { name: "t", partitions };
    let request =
        list_offsets::Request { replica_id: -1, topics: vec![topic], ..Default::default() };
    let mut body = bytes::BytesMut::new();
    request.encode(5, &mut body).unwrap();
    let header = header(ApiKey::LIST_OFFSETS, 5);
    let (body, room) = (body.freeze(), broker.room());
    crate::api::list_offsets::handle(&broker.ctx, &connection(), &header, &body, room)
}

/// Error code and offset of each partition.
fn found(outcome: Outcome) -> Vec<(i16, i64)> {
    let response = replied(outcome);
    let response = list_offsets::Response::decode(5, &response).unwrap();
    let partitions = response.topics[0].partitions.iter();
    partitions.map(|partition| (partition.error_code, partition.offset)).collect()
}

fn host(broker: &Broker) -> Arc<Host> {
    broker.ctx.partitions.host().clone()
}

/// The permit, and large appends to the first `count` partitions that wait for it. No thread is
/// working.
fn waiting_for_room(broker: &Broker, count: i32) -> (LargeBatchPermit, Vec<PendingOutcome>) {
    let host = host(broker);
    let room = host.large.take().expect("nobody has it");
    let waiting = (0..count).map(|partition| pending(produce_to(broker, partition, &large())));
    let waiting = waiting.collect();
    while host.large.waiting().0 < count as usize {
        thread::yield_now();
    }
    broker.wait_idle();
    (room, waiting)
}

fn brokers() -> [Broker; 2] {
    [Broker::on_disk(Durability::Os), Broker::in_memory()].map(|broker| {
        let broker = broker.with_topic(STORED + 1, &[]);
        assert_eq!(produced(produce_to(&broker, STORED, &large())), (0, 0));
        assert_eq!(produced(produce_to(&broker, FREE, &batch(&["a"]))), (0, 0));
        broker
    })
}

#[test]
fn large_appends_wait_for_each_other_and_block_no_others() {
    for broker in brokers() {
        let (room, waiting) = waiting_for_room(&broker, MANY);
        let behind: Vec<_> = (0..MANY)
            .map(|partition| pending(produce_to(&broker, partition, &batch(&["behind"]))))
            .collect();
        assert_eq!(produced(produce_to(&broker, FREE, &compressed("small"))), (0, 1));
        assert_eq!(produced(produce_to(&broker, FREE, &batch(&["plain"]))), (0, 2));
        assert_eq!(found(look_up(&broker, slice::from_ref(&FREE))), [(0, 0)]);
        broker.ctx.partitions.delete_before(1, &(TOPIC, 0), 0);
        assert_eq!(broker.maintained(), [(1, 0, 0)], "commands do not wait");
        drop(room);
        for (large, behind) in waiting.into_iter().zip(behind) {
            assert_eq!(produced(Outcome::Pending(large)), (0, 0));
            assert_eq!(produced(Outcome::Pending(behind)), (0, 1));
        }
        broker.wait_idle();
        assert!(host(&broker).large.take().is_some(), "it was given back");
    }
}

#[test]
fn large_appends_of_one_partition_keep_their_order() {
    for broker in brokers() {
        let (room, waiting) = waiting_for_room(&broker, 2);
        let more = [large(), batch(&["small"]), large()];
        let more = more.map(|records| pending(produce_to(&broker, 0, &records)));
        drop(room);
        for waiting in waiting {
            assert_eq!(produced(Outcome::Pending(waiting)), (0, 0));
        }
        let offsets = more.map(|more| produced(Outcome::Pending(more)));
        assert_eq!(offsets, [(0, 1), (0, 2), (0, 3)]);
    }
}

#[test]
fn a_waiting_large_append_of_a_deleted_topic_is_rejected() {
    for mut broker in brokers() {
        let (room, waiting) = waiting_for_room(&broker, MANY);
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        for waiting in waiting {
            let unknown = KafkaError::UnknownTopicOrPartition.code();
            assert_eq!(produced(Outcome::Pending(waiting)), (unknown, -1));
        }
        broker.wait_idle();
        drop(room);
        assert!(host(&broker).large.take().is_some(), "nobody needs it");
    }
}

#[test]
fn a_close_validates_no_waiting_large_append() {
    for broker in brokers() {
        let (room, waiting) = waiting_for_room(&broker, MANY);
        broker.ctx.partitions.close(&MayWait::as_documented());
        for waiting in waiting {
            let gone = KafkaError::NotLeaderOrFollower.code();
            assert_eq!(produced(Outcome::Pending(waiting)), (gone, -1));
        }
        drop(room);
        assert!(host(&broker).large.take().is_some(), "nobody needs it");
    }
}

#[test]
fn a_large_append_of_a_closed_request_is_dropped_and_blocks_no_others() {
    for broker in brokers() {
        let (room, waiting) = waiting_for_room(&broker, 1);
        let again = pending(produce_to(&broker, 0, &large()));
        let behind = pending(produce_to(&broker, 0, &batch(&["behind"])));
        drop((waiting, again));
        assert_eq!(produced(Outcome::Pending(behind)), (0, 0), "while the room is taken");
        broker.wait_idle();
        drop(room);
        broker.wait_idle();
        assert_eq!(broker.offsets().log_end_offset, 1);
        assert!(host(&broker).large.take().is_some(), "nobody needs it");
        assert_eq!(produced(produce_to(&broker, 0, &large())), (0, 1));
    }
}

/// A waiter that leaves after it was checked with the permit taken: during the validation of its
/// append.
struct GoneMeanwhile {
    host: Arc<Host>,
    has_begun: AtomicBool,
}

impl AckWaiter for GoneMeanwhile {
    fn acknowledged(&self, _: usize, _: AppendOutcome) {}

    fn is_gone(&self) -> bool {
        let is_room_taken = self.host.large.take().is_none();
        is_room_taken && self.has_begun.swap(true, Ordering::Relaxed)
    }
}

#[test]
fn the_validation_of_a_large_append_ends_when_its_request_is_closed() {
    for broker in brokers() {
        let host = host(&broker);
        let waiter = GoneMeanwhile { host: host.clone(), has_begun: AtomicBool::new(false) };
        let append = Append {
            batch: BytesMut::from(&large()[..]),
            origin: AppendOrigin::Client,
            connection: 0,
            transaction: pykafka_log::TransactionRule::Vouched,
            needs_isr: false,
            leader_epoch: None,
            promise: Promise::Durable,
            waiter: Arc::new(waiter),
            slot: 0,
        };
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert!(partition.append(append).is_none(), "it is queued");
        broker.wait_idle();
        assert_eq!(broker.offsets().log_end_offset, 0);
        assert!(host.large.take().is_some(), "it was given back");
        assert_eq!(produced(produce_to(&broker, 0, &large())), (0, 0));
    }
}

/// The permit, and look-ups in a large batch that wait for it.
fn looking_for_room(
    broker: &Broker,
    room: LargeBatchPermit,
) -> (LargeBatchPermit, Vec<PendingOutcome>) {
    let (host, many) = (host(broker), MANY as usize);
    let mut waiting: Vec<_> =
        (0..many).map(|_| pending(look_up(broker, &[FREE, STORED, FREE]))).collect();
    while host.large.waiting().1 < many {
        assert!(waiting.iter_mut().all(|waiting| poll(waiting).is_none()));
        thread::yield_now();
    }
    (room, waiting)
}

/// Polls all futures, as the tasks of their connections do, until each has its result.
fn find_all(mut waiting: Vec<PendingOutcome>) {
    let repeated = KafkaError::InvalidRequest.code();
    while !waiting.is_empty() {
        waiting.retain_mut(|waiting| match poll(waiting) {
            Some(outcome) => {
                assert_eq!(found(outcome), [(repeated, -1), (0, 0)]);
                false
            }
            None => true,
        });
        thread::yield_now();
    }
}

#[test]
fn look_ups_in_large_batches_wait_for_each_other_and_block_no_others() {
    for broker in brokers() {
        let room = host(&broker).large.take().expect("nobody has it");
        let (room, waiting) = looking_for_room(&broker, room);
        assert_eq!(found(look_up(&broker, slice::from_ref(&FREE))), [(0, 0)]);
        assert_eq!(produced(produce_to(&broker, 0, &compressed("small"))), (0, 0));
        drop(room);
        find_all(waiting);
        assert!(host(&broker).large.take().is_some(), "it was given back");
    }
}

fn polled(wait: Pin<&mut impl Future<Output = LargeBatchPermit>>) -> Poll<LargeBatchPermit> {
    wait.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn look_ups_and_appends_alternate_in_the_use_of_the_large_buffer() {
    for broker in brokers() {
        let (room, appends) = waiting_for_room(&broker, MANY);
        let large = &host(&broker).large;
        let mut look_ups: Vec<_> = (0..MANY).map(|_| Box::pin(large.wait())).collect();
        assert!(look_ups.iter_mut().all(|look_up| polled(look_up.as_mut()).is_pending()));
        drop(room);
        for left in (0..look_ups.len()).rev() {
            let room = loop {
                match polled(look_ups[0].as_mut()) {
                    Poll::Ready(room) => break room,
                    Poll::Pending => thread::yield_now(),
                }
            };
            assert_eq!(large.waiting(), (left, left), "one of each has had it");
            drop(look_ups.remove(0));
            drop::<LargeBatchPermit>(room);
        }
        for append in appends {
            assert_eq!(produced(Outcome::Pending(append)), (0, 0));
        }
    }
}
