//! Waits for the high watermark: `Core::when_committed`. A task of the engine watches the
//! partition, like a long poll.

use std::sync::Arc;

use pykafka_record::LeaderEpoch;

use crate::context::Context;
use crate::control_api::event::{Event, Token};
use crate::control_api::image::PartitionId;
use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::log::read::{Isolation, ReadRequest};
use crate::partition::purgatory::Parked;

/// Later than any deadline: only the stop of the broker ends the wait (`Purgatory::expire_all`).
const NO_DEADLINE_NS: u64 = u64::MAX - 2;

/// The awaited high watermark.
pub(crate) struct Wanted {
    /// The partition that this node must lead.
    pub(crate) partition: PartitionId,
    /// The wait ends when this epoch ends.
    pub(crate) leader_epoch: LeaderEpoch,
    /// The wait ends when the high watermark is this or more.
    pub(crate) offset: i64,
}

/// Sends exactly one event to Python, even if the task is dropped.
struct Completion {
    ctx: Arc<Context>,
    token: Token,
    outcome: Result<i64, KafkaError>,
}

impl Drop for Completion {
    fn drop(&mut self) {
        let (error_code, offset) = match self.outcome {
            Ok(offset) => (0, offset),
            Err(error) => (error.code(), -1),
        };
        self.ctx.events.push(Event::Maintained { token: self.token, error_code, offset });
    }
}

/// Ends the watch of a partition when dropped.
struct Watch {
    partition: Arc<Partition>,
    parked: Arc<Parked>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.partition.unwatch(&self.parked);
    }
}

/// Waits until the high watermark reaches the offset; `Maintained` carries it, or the error that
/// prevents it.
pub(crate) async fn wait(ctx: Arc<Context>, token: Token, wanted: Wanted) {
    let outcome = Err(KafkaError::BrokerNotAvailable);
    let mut completion = Completion { ctx: ctx.clone(), token, outcome };
    let (topic_id, index) = &wanted.partition;
    completion.outcome = match ctx.partitions.get(topic_id, *index) {
        Some(partition) => reached(&ctx, &partition, &wanted).await,
        None => Err(KafkaError::UnknownTopicId),
    };
}

async fn reached(
    ctx: &Context,
    partition: &Arc<Partition>,
    wanted: &Wanted,
) -> Result<i64, KafkaError> {
    let parked = Parked::new(1);
    let _parking = ctx.purgatory.park(&parked, NO_DEADLINE_NS, 0);
    let mut watch = None;
    loop {
        // Read first: the watch starts at the version that was read.
        let read = partition.read(&request(wanted))?;
        if read.offsets.high_watermark >= wanted.offset {
            return Ok(read.offsets.high_watermark);
        }
        if ctx.is_stopping() {
            return Err(KafkaError::BrokerNotAvailable);
        }
        if watch.is_none() {
            watch = Some(Watch { partition: partition.clone(), parked: parked.clone() });
            if !partition.watch(&parked, Isolation::ReadUncommitted, &read) {
                continue;
            }
        }
        parked.wait().await;
        parked.expect_bytes(1);
    }
}

/// A read of 0 bytes: it only checks that this node leads the partition in that epoch.
fn request(wanted: &Wanted) -> ReadRequest<'static> {
    ReadRequest {
        fetch_offset: wanted.offset,
        bytes_max: 0,
        at_least_one: false,
        current_leader_epoch: Some(wanted.leader_epoch),
        last_fetched_epoch: None,
        isolation: Isolation::ReadUncommitted,
        any_replica: false,
        nearby: &[],
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pykafka_log::Durability;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;
    use crate::control_api::image::PartitionEntry;
    use crate::control_api::image::delta::ImageDelta;
    use crate::partition::follower_fetch::Replica;
    use crate::testing::{Broker, NODE, TOPIC, batch, replicated};

    const EPOCH: LeaderEpoch = LeaderEpoch::new(0);
    const FOLLOWER: i32 = 2;

    /// A broker that leads `t`-0, with one record that the follower in sync does not have.
    fn broker() -> Broker {
        let mut broker = Broker::on_disk(Durability::Os).in_cluster();
        broker.replicate(replicated(0, &[NODE, FOLLOWER], &[NODE, FOLLOWER]), &[]);
        broker.append_waiting_for_nobody(&batch(&["a"]));
        broker
    }

    fn wanted(offset: i64) -> Wanted {
        Wanted { partition: (TOPIC, 0), leader_epoch: EPOCH, offset }
    }

    /// Returns the completion of `wait` if `happens` runs while it waits.
    fn told(broker: &mut Broker, wanted: Wanted, happens: impl FnOnce(&mut Broker)) -> (i16, i64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let waiting = tokio::spawn(wait(broker.ctx.clone(), 7, wanted));
            yield_now().await;
            assert_eq!(broker.maintained(), []);
            happens(broker);
            timeout(Duration::from_secs(60), waiting).await.expect("it ends").unwrap();
        });
        let [(7, error_code, offset)] = broker.maintained()[..] else { panic!("one completion") };
        (error_code, offset)
    }

    fn fetched(broker: &Broker, offset: i64) {
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let replica = Replica {
            broker_id: FOLLOWER,
            broker_epoch: 5,
            registered_epoch: 5,
            arrived_ns: broker.ctx.clock.now_ns(),
        };
        let isolation = Isolation::Replica(FOLLOWER);
        let request = ReadRequest { isolation, ..request(&wanted(offset)) };
        partition.follower_fetched(&replica, &request, 0).unwrap();
    }

    #[test]
    fn wait_ends_when_the_high_watermark_reaches_the_offset() {
        let told = told(&mut broker(), wanted(1), |broker| fetched(broker, 1));
        assert_eq!(told, (0, 1));
    }

    /// The committed record was appended before this leadership.
    #[test]
    fn wait_ends_for_records_appended_before_this_node_led() {
        let broker = broker();
        broker.ctx.partitions.get(&TOPIC, 0).unwrap().opened_log().unwrap().flush().unwrap();
        let mut broker = broker.killed_and_restarted(Durability::Os).in_cluster();
        broker.replicate(replicated(0, &[NODE, FOLLOWER], &[NODE, FOLLOWER]), &[]);
        assert_eq!(broker.offsets().log_end_offset, 1);
        let told = told(&mut broker, wanted(1), |broker| fetched(broker, 1));
        assert_eq!(told, (0, 1));
    }

    #[test]
    fn committed_records_need_no_wait() {
        let broker = broker();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(wait(broker.ctx.clone(), 7, wanted(0)));
        assert_eq!(broker.maintained(), [(7, 0, 0)]);
    }

    #[test]
    fn another_leader_epoch_ends_the_wait() {
        let lead = |leader: i32| {
            move |broker: &mut Broker| {
                let entry = replicated(1, &[NODE, FOLLOWER], &[NODE, FOLLOWER]);
                broker.replicate(
                    PartitionEntry { leader, leader_epoch: LeaderEpoch::new(1), ..entry },
                    &[],
                );
            }
        };
        let fenced = KafkaError::FencedLeaderEpoch.code();
        assert_eq!(told(&mut broker(), wanted(1), lead(NODE)), (fenced, -1));
        let (code, _) = told(&mut broker(), wanted(1), lead(FOLLOWER));
        assert!([fenced, KafkaError::NotLeaderOrFollower.code()].contains(&code));
    }

    #[test]
    fn a_deleted_topic_ends_the_wait() {
        let (code, _) = told(&mut broker(), wanted(1), |broker| {
            broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        });
        assert_ne!(code, 0);
    }

    #[test]
    fn a_missing_partition_is_unknown() {
        let broker = broker();
        let wanted = Wanted { partition: (TOPIC, 9), ..wanted(0) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(wait(broker.ctx.clone(), 7, wanted));
        assert_eq!(broker.maintained(), [(7, KafkaError::UnknownTopicId.code(), -1)]);
    }
}
