//! `ListOffsets` (API key 2): contract/kafka.md#29, #31, #64.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::LeaderEpoch;
use pykafka_wire::Chunks;
use pykafka_wire::list_offsets::{
    Partition as PartitionRequest, PartitionResponse, Request, Response, Topic, TopicResponse,
};

use crate::api::context::{ConnectionInfo, Context, Header, Outcome};
use crate::kafka_error::KafkaError;
use crate::network::memory::budget::Share;
use crate::partition::{Isolation, OffsetAnswer, OffsetQuery, Partition, opening};
use crate::seam::image::Image;

/// Asks for the record with the largest timestamp.
const MAX_TIMESTAMP: i64 = -3;

/// First version in which a lagging high watermark has a code of its own.
const OFFSET_NOT_AVAILABLE_VERSION_MIN: i16 = 5;

/// First version that carries the epoch of the offset found.
const LEADER_EPOCH_VERSION_MIN: i16 = 4;

/// Looks offsets up, each partition by itself.
pub fn handle(
    ctx: &Arc<Context>,
    _: &ConnectionInfo,
    header: &Header,
    body: &Bytes,
    room: Share,
) -> Outcome {
    let version = header.api_version;
    let request = match Request::decode(version, body) {
        Ok(request) => request,
        Err(error) => return Outcome::malformed(error),
    };
    let partitions = partitions_of(ctx, &request);
    let (opening, scans) = (opening::of(&partitions), scans(&request));
    if opening.is_none() && !scans {
        return answer(ctx, version, &request).in_room(room);
    }
    let (ctx, body) = (ctx.clone(), body.clone());
    Outcome::Pending(Box::pin(async move {
        if let Some(opened) = opening {
            opened.await;
        }
        let host = ctx.partitions.host().clone();
        let answered = host.work(move || match Request::decode(version, &body) {
            Ok(request) => answer(&ctx, version, &request).in_room(room),
            Err(error) => Outcome::malformed(error),
        });
        answered.await.unwrap_or_else(|| Outcome::Close("a lookup of offsets failed".into()))
    }))
}

/// Those the request names that are here, each as often as it is named.
fn partitions_of(ctx: &Context, request: &Request<'_>) -> Vec<Arc<Partition>> {
    let image = ctx.image.load();
    let named = |topic: &Topic<'_>| {
        let entry = image.topic(topic.name).cloned();
        let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
        indexes
            .filter_map(|index| ctx.partitions.find(entry.as_ref()?, index).ok())
            .collect::<Vec<_>>()
    };
    request.topics.iter().flat_map(named).collect()
}

/// Whether records have to be looked at, which may wait for the disk and inflates what is compressed.
fn scans(request: &Request<'_>) -> bool {
    let mut asked = request.topics.iter().flat_map(|topic| &topic.partitions);
    asked.any(|partition| partition.timestamp >= 0 || partition.timestamp == MAX_TIMESTAMP)
}

fn answer(ctx: &Context, version: i16, request: &Request<'_>) -> Outcome {
    let image = ctx.image.load();
    let isolation =
        Isolation::from_id(request.isolation_level).ok_or(KafkaError::UnknownServerError);
    let mut repeated = repeated_partitions(request);
    let topics = (request.topics.iter())
        .map(|topic| TopicResponse {
            name: topic.name,
            partitions: (topic.partitions.iter())
                .filter_map(|partition| {
                    let index = partition.partition_index;
                    let answer = match repeated.get_mut(&(topic.name, index)) {
                        Some(told) if *told => return None,
                        Some(told) => {
                            *told = true;
                            Err(KafkaError::InvalidRequest)
                        }
                        None => isolation.and_then(|isolation| {
                            find(ctx, &image, version, topic.name, partition, isolation)
                        }),
                    };
                    Some(partition_response(version, index, answer))
                })
                .collect(),
        })
        .filter(|topic: &TopicResponse<'_>| !topic.partitions.is_empty())
        .collect();
    let response = Response { throttle_time_ms: 0, topics };
    let mut chunks = Chunks::new();
    match response.encode(version, &mut chunks) {
        Ok(()) => Outcome::Reply(chunks.into()),
        Err(error) => Outcome::Close(format!("cannot answer list offsets: {error}")),
    }
}

/// Partitions that the request names more than once, none of them told so yet: each is refused, in one answer.
fn repeated_partitions<'a>(request: &Request<'a>) -> HashMap<(&'a str, i32), bool> {
    let named = (request.topics.iter())
        .flat_map(|topic| topic.partitions.iter().map(|p| (topic.name, p.partition_index)));
    let mut seen = HashSet::new();
    named.filter(|partition| !seen.insert(*partition)).map(|partition| (partition, false)).collect()
}

fn find(
    ctx: &Context,
    image: &Image,
    version: i16,
    topic: &str,
    request: &PartitionRequest,
    isolation: Isolation,
) -> Result<OffsetAnswer, KafkaError> {
    let query = query_of(request.timestamp, version).ok_or(KafkaError::UnsupportedVersion)?;
    let entry = image.topic(topic).filter(|entry| !entry.hidden);
    let entry = entry.ok_or(KafkaError::UnknownTopicOrPartition)?;
    let partition = ctx.partitions.find(entry, request.partition_index)?;
    let current_leader_epoch = LeaderEpoch::from_wire(request.current_leader_epoch);
    partition.find_offset(query, isolation, current_leader_epoch).map_err(|error| match error {
        KafkaError::OffsetNotAvailable if version < OFFSET_NOT_AVAILABLE_VERSION_MIN => {
            KafkaError::LeaderNotAvailable
        }
        KafkaError::UnknownTopicId => KafkaError::UnknownTopicOrPartition,
        error => error,
    })
}

/// What a timestamp means in a version; `None` for a negative one the version does not have.
fn query_of(timestamp: i64, version: i16) -> Option<OffsetQuery> {
    let (query, since) = match timestamp {
        0.. => (OffsetQuery::Timestamp(timestamp), 0),
        -1 => (OffsetQuery::Latest, 0),
        -2 => (OffsetQuery::Earliest, 0),
        MAX_TIMESTAMP => (OffsetQuery::MaxTimestamp, 7),
        // The local log start: without tiering, the log start.
        -4 => (OffsetQuery::Earliest, 8),
        -5 => (OffsetQuery::Tiered, 9),
        -6 => (OffsetQuery::Tiered, 11),
        _ => return None,
    };
    (version >= since).then_some(query)
}

fn partition_response(
    version: i16,
    partition_index: i32,
    answer: Result<OffsetAnswer, KafkaError>,
) -> PartitionResponse {
    let (error, answer) = match answer {
        Ok(answer) => (KafkaError::None, answer),
        Err(error) => (error, OffsetAnswer::UNKNOWN),
    };
    PartitionResponse {
        partition_index,
        error_code: error.code(),
        timestamp: answer.timestamp,
        offset: answer.offset,
        leader_epoch: LeaderEpoch::to_wire(
            answer.leader_epoch.filter(|_| version >= LEADER_EPOCH_VERSION_MIN),
        ),
    }
}

#[cfg(test)]
mod tests;
