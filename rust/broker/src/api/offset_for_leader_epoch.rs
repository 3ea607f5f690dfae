//! `OffsetForLeaderEpoch` (API key 23): the end offset of an epoch, for readers that detect
//! truncation (contract/kafka.md#29, #30).

use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::LeaderEpoch;
use pykafka_wire::Chunks;
use pykafka_wire::offset_for_leader_epoch::{
    EpochEndOffset, Partition as PartitionRequest, Request, Response, Topic, TopicResponse,
};

use crate::context::Context;
use crate::network::outcome::Outcome;

use crate::control_api::image::Image;
use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::log::await_open;
use crate::request::{ConnectionInfo, Header};

/// Finds the end offsets of leader epochs, separately for each partition.
pub fn handle(ctx: &Arc<Context>, _: &ConnectionInfo, header: &Header, body: &Bytes) -> Outcome {
    let version = header.api_version;
    let request = match Request::decode(version, body) {
        Ok(request) => request,
        Err(error) => return Outcome::malformed(error),
    };
    match await_open::of(partitions_of(ctx, &request)) {
        None => response(ctx, version, &request),
        Some(opened) => {
            let (ctx, body) = (ctx.clone(), body.clone());
            Outcome::Pending(Box::pin(async move {
                opened.await;
                match Request::decode(version, &body) {
                    Ok(request) => response(&ctx, version, &request),
                    Err(error) => Outcome::malformed(error),
                }
            }))
        }
    }
}

/// The requested partitions that are on this broker.
fn partitions_of(ctx: &Context, request: &Request<'_>) -> Vec<Arc<Partition>> {
    let image = ctx.image.load();
    let named = |topic: &Topic<'_>| {
        let entry = image.topic(topic.topic).cloned();
        let indexes = topic.partitions.iter().map(|partition| partition.partition);
        indexes
            .filter_map(|index| ctx.partitions.find(entry.as_ref()?, index).ok())
            .collect::<Vec<_>>()
    };
    request.topics.iter().flat_map(named).collect()
}

fn response(ctx: &Context, version: i16, request: &Request<'_>) -> Outcome {
    let image = ctx.image.load();
    let topics = (request.topics.iter())
        .map(|topic| TopicResponse {
            topic: topic.topic,
            partitions: (topic.partitions.iter())
                .map(|partition| {
                    let found = find(ctx, &image, topic.topic, partition);
                    partition_response(partition.partition, found)
                })
                .collect(),
        })
        .collect();
    let response = Response { throttle_time_ms: 0, topics };
    let mut chunks = Chunks::new();
    match response.encode(version, &mut chunks) {
        Ok(()) => Outcome::Reply(chunks.into()),
        Err(error) => Outcome::Close(format!("cannot answer offset for leader epoch: {error}")),
    }
}

fn find(
    ctx: &Context,
    image: &Image,
    topic: &str,
    request: &PartitionRequest,
) -> Result<Option<(LeaderEpoch, i64)>, KafkaError> {
    let entry = image.topic(topic).filter(|entry| !entry.hidden);
    let entry = entry.ok_or(KafkaError::UnknownTopicOrPartition)?;
    let partition = ctx.partitions.find(entry, request.partition)?;
    let epoch = LeaderEpoch::from_wire(request.leader_epoch);
    let current_leader_epoch = LeaderEpoch::from_wire(request.current_leader_epoch);
    let found = partition.end_offset_for_epoch(epoch, current_leader_epoch);
    found.map_err(|error| match error {
        KafkaError::UnknownTopicId => KafkaError::UnknownTopicOrPartition,
        error => error,
    })
}

fn partition_response(
    partition: i32,
    found: Result<Option<(LeaderEpoch, i64)>, KafkaError>,
) -> EpochEndOffset {
    let (error, found) = match found {
        Ok(found) => (KafkaError::None, found),
        Err(error) => (error, None),
    };
    let (leader_epoch, end_offset) = found.map_or((-1, -1), |(epoch, end)| (epoch.get(), end));
    EpochEndOffset { error_code: error.code(), partition, leader_epoch, end_offset }
}
