//! `ListOffsets` (API key 2): contract/kafka.md#29, #31, #64.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::LeaderEpoch;
use pykafka_wire::Chunks;
use pykafka_wire::list_offsets::{
    Partition as PartitionRequest, PartitionResponse, Request, Response, Topic, TopicResponse,
};

use crate::context::Context;
use crate::network::outcome::Outcome;

use crate::api::replica_authorization;
use crate::control_api::image::Image;
use crate::kafka_error::KafkaError;
use crate::network::memory::budget::Share;
use crate::partition::Partition;
use crate::partition::append::large_batches::LargeBatchPermit;
use crate::partition::log::await_open;
use crate::partition::log::lookup::{FoundOffset, LookUp, OffsetQuery};
use crate::partition::log::read::Isolation;
use crate::request::{ConnectionInfo, Header};

/// Maximum time of a search on its thread; after that it queues again, after other work.
const SEARCH_NS_MAX: u64 = 50_000_000;

/// Timestamp that requests the record with the largest timestamp.
const MAX_TIMESTAMP: i64 = -3;

/// First version with a separate error code for a lagging high watermark.
const OFFSET_NOT_AVAILABLE_VERSION_MIN: i16 = 5;

/// First version that returns the leader epoch of the offset.
const LEADER_EPOCH_VERSION_MIN: i16 = 4;

/// Finds offsets, separately for each partition.
pub fn handle(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: &Bytes,
    room: Share,
) -> Outcome {
    let version = header.api_version;
    let request = match Request::decode(version, body) {
        Ok(request) => request,
        Err(error) => return Outcome::malformed(error),
    };
    let replica = replica_of(ctx, conn, &request);
    let partitions = partitions_of(ctx, &request);
    let (opening, scans) = (await_open::of(&partitions), scans(&request));
    if opening.is_none() && !scans {
        let mut search = Search::new(replica, room);
        search.go_on(ctx, version, &request, None, &|| false);
        return search.response(version, &request);
    }
    let (ctx, body) = (ctx.clone(), body.clone());
    Outcome::Pending(Box::pin(async move {
        if let Some(opened) = opening {
            opened.await;
        }
        let host = ctx.partitions.host().clone();
        let (mut search, mut large) = (Search::new(replica, room), None);
        loop {
            let (ctx, body) = (ctx.clone(), body.clone());
            let searched = host.work(move |is_gone| {
                let request = match Request::decode(version, &body) {
                    Ok(request) => request,
                    Err(error) => return ControlFlow::Break(Outcome::malformed(error)),
                };
                let over_ns = ctx.clock.now_ns() + SEARCH_NS_MAX;
                let is_over = || is_gone() || ctx.clock.now_ns() > over_ns;
                match search.go_on(&ctx, version, &request, large, &is_over) {
                    Searched::All => ControlFlow::Break(search.response(version, &request)),
                    searched => ControlFlow::Continue((search, searched)),
                }
            });
            let searched_to;
            (search, searched_to) = match searched.await {
                Some(ControlFlow::Continue(search)) => search,
                Some(ControlFlow::Break(outcome)) => return outcome,
                None => return Outcome::failed(),
            };
            large = match searched_to {
                Searched::UntilLarge => Some(host.large.wait().await),
                Searched::All | Searched::UntilOver => None,
            };
        }
    }))
}

/// The requested partitions that are on this broker, each as often as it is named.
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

/// Returns the isolation of a replica: a follower truncates its log at the log end offset, so it
/// must not get the high watermark. Requests that may not come from a replica count as client
/// requests; for them this is `None`.
fn replica_of(ctx: &Context, conn: &ConnectionInfo, request: &Request<'_>) -> Option<Isolation> {
    let (image, broker_id) = (ctx.image.load(), request.replica_id);
    let registration = replica_authorization::registration(ctx.node_id, &image, conn, broker_id);
    registration.map(|_| Isolation::Replica(broker_id))
}

/// True if records must be read, which may wait for the disk and decompresses batches.
fn scans(request: &Request<'_>) -> bool {
    let mut asked = request.topics.iter().flat_map(|topic| &topic.partitions);
    asked.any(|partition| partition.timestamp >= 0 || partition.timestamp == MAX_TIMESTAMP)
}

/// Progress of a search.
#[derive(Debug, PartialEq, Eq)]
enum Searched {
    All,
    /// It stopped at a large batch, for which it has no permit.
    UntilLarge,
    /// It stopped because its time was over, or because its request was cancelled.
    UntilOver,
}

struct Search {
    /// Set if a replica sent the request.
    replica: Option<Isolation>,
    /// The results so far, in the order of the request; `None` for a repetition of a partition that
    /// has a result.
    responses: Vec<Option<Result<FoundOffset, KafkaError>>>,
    /// Covers the response, and the request during the search.
    room: Share,
}

impl Search {
    fn new(replica: Option<Isolation>, room: Share) -> Search {
        Search { replica, responses: Vec::new(), room }
    }

    /// Continues with the first partition without a result, and processes at least one. `large`
    /// permits one large batch; before the next one the search has to wait for another permit.
    fn go_on(
        &mut self,
        ctx: &Context,
        version: i16,
        request: &Request<'_>,
        mut large: Option<LargeBatchPermit>,
        is_over: &dyn Fn() -> bool,
    ) -> Searched {
        let image = ctx.image.load();
        let isolation = self.replica.or_else(|| Isolation::from_id(request.isolation_level));
        let isolation = isolation.ok_or(KafkaError::UnknownServerError);
        let mut repeated = repeated_partitions(request);
        let done = self.responses.len();
        for (at, (topic, partition)) in named_partitions(request).enumerate() {
            let told = repeated.get_mut(&(topic, partition.partition_index));
            let is_repeated = told.is_some();
            let is_told = told.is_some_and(|told| mem::replace(told, true));
            if at < self.responses.len() {
                continue;
            }
            let response = match isolation {
                _ if is_told => None,
                _ if at > done && is_over() => return Searched::UntilOver,
                _ if is_repeated => Some(Err(KafkaError::InvalidRequest)),
                Err(error) => Some(Err(error)),
                Ok(isolation) => {
                    let large = large.take();
                    let look_up = large.as_ref().map_or(LookUp::Small, LookUp::Large);
                    match find(ctx, &image, version, topic, partition, look_up, isolation) {
                        Ok(None) => return Searched::UntilLarge,
                        Ok(Some(response)) => Some(Ok(response)),
                        Err(error) => Some(Err(error)),
                    }
                }
            };
            self.responses.push(response);
        }
        Searched::All
    }

    fn response(self, version: i16, request: &Request<'_>) -> Outcome {
        let mut responses = self.responses.into_iter();
        let topics = (request.topics.iter())
            .map(|topic| TopicResponse {
                name: topic.name,
                partitions: (topic.partitions.iter().zip(responses.by_ref()))
                    .filter_map(|(partition, response)| {
                        Some(partition_response(version, partition.partition_index, response?))
                    })
                    .collect(),
            })
            .filter(|topic: &TopicResponse<'_>| !topic.partitions.is_empty())
            .collect();
        let response = Response { throttle_time_ms: 0, topics };
        let mut chunks = Chunks::new();
        match response.encode(version, &mut chunks) {
            Ok(()) => Outcome::Reply(chunks.into()).in_room(self.room),
            Err(error) => Outcome::Close(format!("cannot answer list offsets: {error}")),
        }
    }
}

fn named_partitions<'a>(
    request: &'a Request<'a>,
) -> impl Iterator<Item = (&'a str, &'a PartitionRequest)> {
    let topics = request.topics.iter();
    topics.flat_map(|topic| topic.partitions.iter().map(|partition| (topic.name, partition)))
}

/// Partitions that the request names more than once: each fails with one `INVALID_REQUEST`. The
/// values become true once that error is in the response.
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
    look_up: LookUp<'_>,
    isolation: Isolation,
) -> Result<Option<FoundOffset>, KafkaError> {
    let query = query_of(request.timestamp, version).ok_or(KafkaError::UnsupportedVersion)?;
    let entry = image.topic(topic).filter(|entry| !entry.hidden);
    let entry = entry.ok_or(KafkaError::UnknownTopicOrPartition)?;
    let partition = ctx.partitions.find(entry, request.partition_index)?;
    let current_leader_epoch = LeaderEpoch::from_wire(request.current_leader_epoch);
    let found = partition.find_offset(query, look_up, isolation, current_leader_epoch);
    found.map_err(|error| match error {
        KafkaError::OffsetNotAvailable if version < OFFSET_NOT_AVAILABLE_VERSION_MIN => {
            KafkaError::LeaderNotAvailable
        }
        KafkaError::UnknownTopicId => KafkaError::UnknownTopicOrPartition,
        error => error,
    })
}

/// Maps a timestamp to a query; `None` for a negative value that is unknown in this version.
fn query_of(timestamp: i64, version: i16) -> Option<OffsetQuery> {
    let (query, since) = match timestamp {
        0.. => (OffsetQuery::Timestamp(timestamp), 0),
        -1 => (OffsetQuery::Latest, 0),
        -2 => (OffsetQuery::Earliest, 0),
        MAX_TIMESTAMP => (OffsetQuery::MaxTimestamp, 7),
        // The local log start offset: the log start offset, because there is no tiered storage.
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
    response: Result<FoundOffset, KafkaError>,
) -> PartitionResponse {
    let (error, response) = match response {
        Ok(response) => (KafkaError::None, response),
        Err(error) => (error, FoundOffset::UNKNOWN),
    };
    PartitionResponse {
        partition_index,
        error_code: error.code(),
        timestamp: response.timestamp,
        offset: response.offset,
        leader_epoch: LeaderEpoch::to_wire(
            response.leader_epoch.filter(|_| version >= LEADER_EPOCH_VERSION_MIN),
        ),
    }
}

#[cfg(test)]
mod tests;
