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

use crate::api::context::{ConnectionInfo, Context, Header, Outcome};
use crate::api::replica;
use crate::kafka_error::KafkaError;
use crate::network::memory::budget::Share;
use crate::partition::{
    Isolation, LargeRoom, LookUp, OffsetAnswer, OffsetQuery, Partition, opening,
};
use crate::seam::image::Image;

/// A search goes on for as long on its thread; then it stands behind others that wait for one.
const SEARCH_NS_MAX: u64 = 50_000_000;

/// Asks for the record with the largest timestamp.
const MAX_TIMESTAMP: i64 = -3;

/// First version in which a lagging high watermark has a code of its own.
const OFFSET_NOT_AVAILABLE_VERSION_MIN: i16 = 5;

/// First version that carries the epoch of the offset found.
const LEADER_EPOCH_VERSION_MIN: i16 = 4;

/// Looks offsets up, each partition by itself.
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
    let (opening, scans) = (opening::of(&partitions), scans(&request));
    if opening.is_none() && !scans {
        let mut search = Search::new(replica, room);
        search.go_on(ctx, version, &request, None, &|| false);
        return search.answer(version, &request);
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
                    Searched::All => ControlFlow::Break(search.answer(version, &request)),
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

/// A follower that asks where the log ends, to truncate its own, must not be told of the high watermark. Whoever may not
/// ask as one is a client.
fn replica_of(ctx: &Context, conn: &ConnectionInfo, request: &Request<'_>) -> Option<Isolation> {
    let (image, broker_id) = (ctx.image.load(), request.replica_id);
    let registration = replica::registration(ctx.node_id, &image, conn, broker_id);
    registration.map(|_| Isolation::Replica(broker_id))
}

/// Whether records have to be looked at, which may wait for the disk and inflates what is compressed.
fn scans(request: &Request<'_>) -> bool {
    let mut asked = request.topics.iter().flat_map(|topic| &topic.partitions);
    asked.any(|partition| partition.timestamp >= 0 || partition.timestamp == MAX_TIMESTAMP)
}

/// How far a search has come.
#[derive(Debug, PartialEq, Eq)]
enum Searched {
    All,
    /// To a large batch, without the room for one.
    UntilLarge,
    /// Until its time was over, or its request was gone.
    UntilOver,
}

struct Search {
    /// Who asks, if it is no client.
    replica: Option<Isolation>,
    /// The answers so far, in the order of the request; `None` for a partition that was answered before.
    answers: Vec<Option<Result<OffsetAnswer, KafkaError>>>,
    /// For the answer, and for the request while this is at work.
    room: Share,
}

impl Search {
    fn new(replica: Option<Isolation>, room: Share) -> Search {
        Search { replica, answers: Vec::new(), room }
    }

    /// Goes on with the first partition without an answer, and with one at least. Who needs to read a large batch is given
    /// the room for one: the next has to wait again, behind others.
    fn go_on(
        &mut self,
        ctx: &Context,
        version: i16,
        request: &Request<'_>,
        mut large: Option<LargeRoom>,
        is_over: &dyn Fn() -> bool,
    ) -> Searched {
        let image = ctx.image.load();
        let isolation = self.replica.or_else(|| Isolation::from_id(request.isolation_level));
        let isolation = isolation.ok_or(KafkaError::UnknownServerError);
        let mut repeated = repeated_partitions(request);
        let done = self.answers.len();
        for (at, (topic, partition)) in named_partitions(request).enumerate() {
            let told = repeated.get_mut(&(topic, partition.partition_index));
            let is_repeated = told.is_some();
            let is_told = told.is_some_and(|told| mem::replace(told, true));
            if at < self.answers.len() {
                continue;
            }
            let answer = match isolation {
                _ if is_told => None,
                _ if at > done && is_over() => return Searched::UntilOver,
                _ if is_repeated => Some(Err(KafkaError::InvalidRequest)),
                Err(error) => Some(Err(error)),
                Ok(isolation) => {
                    let large = large.take();
                    let look_up = large.as_ref().map_or(LookUp::Small, LookUp::Large);
                    match find(ctx, &image, version, topic, partition, look_up, isolation) {
                        Ok(None) => return Searched::UntilLarge,
                        Ok(Some(answer)) => Some(Ok(answer)),
                        Err(error) => Some(Err(error)),
                    }
                }
            };
            self.answers.push(answer);
        }
        Searched::All
    }

    fn answer(self, version: i16, request: &Request<'_>) -> Outcome {
        let mut answers = self.answers.into_iter();
        let topics = (request.topics.iter())
            .map(|topic| TopicResponse {
                name: topic.name,
                partitions: (topic.partitions.iter().zip(answers.by_ref()))
                    .filter_map(|(partition, answer)| {
                        Some(partition_response(version, partition.partition_index, answer?))
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
    look_up: LookUp<'_>,
    isolation: Isolation,
) -> Result<Option<OffsetAnswer>, KafkaError> {
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
