//! `Metadata`, answered from the image alone (contract/kafka.md#34, #35, #67).

use std::collections::HashSet;
use std::sync::Arc;

use pykafka_wire::metadata::{
    Broker, OPERATIONS_UNKNOWN, Partition, Request, Response, Topic, TopicResponse,
};
use pykafka_wire::{ByteCount, Chunks, DecodeError, EncodeError};

use crate::api::PARTITIONS_AT_ONCE_MAX;
use crate::api::endpoints::Endpoints;
use crate::api::topic_name::{
    CLUSTER_OPERATIONS_ALL, TOPIC_OPERATIONS_ALL, is_internal, is_valid, missing_code,
};
use crate::api::worker::on_worker;
use crate::context::Context;
use crate::control_api::event::Event;
use crate::control_api::image::{Image, PartitionEntry, TOPIC_ID_ZERO, TopicEntry};
use crate::network::memory::budget::Share;
use crate::network::outcome::Outcome;
use crate::request::{ConnectionInfo, Header};

/// Memory of a topic without its partitions, encoded and as [`TopicResponse`].
const TOPIC_BYTES: usize = 256;
/// Memory of a partition, encoded and as [`Partition`] with its lists.
const PARTITION_BYTES: usize = 256;
const REPLICA_BYTES: usize = 24;

const UNKNOWN_SERVER_ERROR: i16 = -1;
const REPLICA_NOT_AVAILABLE: i16 = 9;
const INVALID_REQUEST: i16 = 42;
const UNKNOWN_TOPIC_ID: i16 = 100;

/// Handles all versions.
pub fn handle(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: &[u8],
    room: Share,
) -> Outcome {
    let version = header.api_version;
    let request = match decoded(version, body) {
        Ok(request) => request,
        Err(error) => return Outcome::malformed(error),
    };
    if partitions_count(&ctx.image.load(), &request) <= PARTITIONS_AT_ONCE_MAX {
        return response(ctx, conn, version, &request).in_room(room);
    }
    let (ctx, conn, body) = (ctx.clone(), conn.clone(), body.to_vec());
    let host = ctx.partitions.host().clone();
    on_worker(&host, move || match decoded(version, &body) {
        Ok(request) => response(&ctx, &conn, version, &request).in_room(room),
        Err(error) => Outcome::malformed(error),
    })
}

/// Upper bound of the size of the response, including intermediate values; 0 if the request cannot
/// be parsed.
pub(crate) fn bytes_max(image: &Image, version: i16, body: &[u8]) -> usize {
    let Ok(request) = decoded(version, body) else { return 0 };
    let described: usize = match &request.topics {
        None => image.topics().map(|topic| bytes_of(topic)).sum(),
        Some(topics) => topics_of(image, topics).map(|topic| bytes_of(topic)).sum(),
    };
    described + request.topics.map_or(0, |topics| topics.len()) * TOPIC_BYTES + body.len()
}

fn bytes_of(topic: &TopicEntry) -> usize {
    let replicas = topic.partitions.iter().next().map_or(0, |partition| partition.replicas.len());
    TOPIC_BYTES
        + topic.name.len()
        + topic.partitions.len() * (PARTITION_BYTES + replicas * REPLICA_BYTES)
}

fn decoded(version: i16, body: &[u8]) -> Result<Request<'_>, DecodeError> {
    let mut request = Request::decode(version, body)?;
    if version == 0 && request.topics.as_ref().is_some_and(Vec::is_empty) {
        request.topics = None;
    }
    Ok(request)
}

/// Upper bound of the number of partitions in the response.
fn partitions_count(image: &Image, request: &Request<'_>) -> usize {
    match &request.topics {
        None => image.topics().map(|topic| topic.partitions.len()).sum(),
        Some(topics) => topics_of(image, topics).map(|topic| topic.partitions.len()).sum(),
    }
}

/// The requested topics that exist.
fn topics_of<'a>(
    image: &'a Image,
    topics: &'a [Topic<'a>],
) -> impl Iterator<Item = &'a Arc<TopicEntry>> {
    topics.iter().filter_map(|topic| match topic.name {
        Some(name) => image.topic(name),
        None => image.topic_by_id(&topic.topic_id),
    })
}

fn response(ctx: &Context, conn: &ConnectionInfo, version: i16, request: &Request<'_>) -> Outcome {
    let image = ctx.image.load();
    let asked = MetadataRequest {
        image: &image,
        endpoints: Endpoints::new(&image, &conn.listener),
        version,
    };
    let response = match refusal(request, version) {
        Some(error_code) => refused(request, error_code),
        None => asked.response(ctx, conn, request),
    };
    match encoded_to_size(version, &response) {
        Ok(body) => Outcome::Reply(body.into()),
        Err(error) => Outcome::Close(format!("metadata cannot be encoded: {error}")),
    }
}

/// Encodes into a buffer of the exact size; a buffer that grows would take up to twice as much.
fn encoded_to_size(version: i16, response: &Response<'_>) -> Result<Chunks, EncodeError> {
    let mut count = ByteCount::default();
    response.encode(version, &mut count)?;
    let mut out = Chunks::with_capacity(count.bytes());
    response.encode(version, &mut out)?;
    Ok(out)
}

/// Error code of a request that is refused as a whole.
fn refusal(request: &Request<'_>, version: i16) -> Option<i16> {
    let mut topics = request.topics.iter().flatten();
    if version < 12 {
        let by_id = |topic: &Topic<'_>| topic.name.is_none() || topic.topic_id != TOPIC_ID_ZERO;
        return topics.any(by_id).then_some(INVALID_REQUEST);
    }
    let by_nothing = |topic: &Topic<'_>| topic.name.is_none() && topic.topic_id == TOPIC_ID_ZERO;
    topics.any(by_nothing).then_some(UNKNOWN_SERVER_ERROR)
}

/// A response without brokers and cluster id, as Kafka's response to a request that it fails to
/// handle.
fn refused<'a>(request: &Request<'a>, error_code: i16) -> Response<'a> {
    let topics = request.topics.iter().flatten();
    let topics = topics.map(|topic| TopicResponse {
        error_code,
        name: Some(topic.name.unwrap_or_default()),
        topic_id: topic.topic_id,
        ..TopicResponse::default()
    });
    Response { topics: topics.collect(), ..Response::default() }
}

struct MetadataRequest<'a> {
    image: &'a Image,
    endpoints: Endpoints<'a>,
    version: i16,
}

impl<'a> MetadataRequest<'a> {
    fn response(
        &self,
        ctx: &'a Context,
        conn: &ConnectionInfo,
        request: &Request<'a>,
    ) -> Response<'a> {
        let mut topics = match &request.topics {
            None => self.all(),
            Some(topics) if topics.iter().any(|topic| topic.topic_id != TOPIC_ID_ZERO) => {
                self.by_id(topics)
            }
            Some(topics) => self.by_name(ctx, conn, request, topics),
        };
        if request.include_topic_authorized_operations {
            let known = topics.iter_mut().filter(|topic| topic.name.is_some());
            known.for_each(|topic| topic.topic_authorized_operations = TOPIC_OPERATIONS_ALL);
        }
        let include_cluster = request.include_cluster_authorized_operations;
        Response {
            brokers: self.brokers(),
            cluster_id: Some(&ctx.cluster_id),
            controller_id: self.image.controller_id,
            topics,
            cluster_authorized_operations: if include_cluster {
                CLUSTER_OPERATIONS_ALL
            } else {
                OPERATIONS_UNKNOWN
            },
            ..Response::default()
        }
    }

    fn brokers(&self) -> Vec<Broker<'a>> {
        let endpoints = self.endpoints.iter();
        endpoints
            .map(|endpoint| Broker {
                node_id: endpoint.node_id,
                host: &endpoint.host,
                port: i32::from(endpoint.port),
                rack: endpoint.rack.as_deref(),
            })
            .collect()
    }

    fn all(&self) -> Vec<TopicResponse<'a>> {
        let shown = self.image.topics().filter(|topic| !topic.hidden);
        shown.map(|topic| self.topic(topic)).collect()
    }

    fn by_id(&self, topics: &[Topic<'a>]) -> Vec<TopicResponse<'a>> {
        let mut seen = HashSet::new();
        topics
            .iter()
            .map(|topic| topic.topic_id)
            .filter(|&id| id != TOPIC_ID_ZERO && seen.insert(id))
            .map(|id| match self.image.topic_by_id(&id).filter(|topic| !topic.hidden) {
                Some(topic) => self.topic(topic),
                None => TopicResponse {
                    error_code: UNKNOWN_TOPIC_ID,
                    name: None,
                    topic_id: id,
                    ..TopicResponse::default()
                },
            })
            .collect()
    }

    fn by_name(
        &self,
        ctx: &Context,
        conn: &ConnectionInfo,
        request: &Request<'a>,
        topics: &[Topic<'a>],
    ) -> Vec<TopicResponse<'a>> {
        let mut seen = HashSet::new();
        let mut missing = Vec::new();
        let names = topics.iter().filter_map(|topic| topic.name).filter(|&name| seen.insert(name));
        let responses = names
            .map(|name| match self.image.topic(name) {
                Some(topic) if !topic.hidden => self.topic(topic),
                hidden => {
                    if hidden.is_none() && is_valid(name) {
                        missing.push(Arc::from(name));
                    }
                    TopicResponse {
                        error_code: missing_code(name),
                        name: Some(name),
                        is_internal: is_internal(name),
                        ..TopicResponse::default()
                    }
                }
            })
            .collect();
        let create =
            request.allow_auto_topic_creation && self.image.settings.auto_create_topics_enable;
        if create && !missing.is_empty() {
            let principal = conn.principal.clone();
            ctx.events.push(Event::TopicsMissing { names: missing, principal });
        }
        responses
    }

    fn topic(&self, topic: &'a TopicEntry) -> TopicResponse<'a> {
        TopicResponse {
            name: Some(&topic.name),
            topic_id: topic.id,
            is_internal: topic.internal,
            partitions: topic
                .partitions
                .iter()
                .map(|partition| self.partition(partition))
                .collect(),
            ..TopicResponse::default()
        }
    }

    fn partition(&self, partition: &PartitionEntry) -> Partition {
        let (mut error_code, leader_id) = self.endpoints.leader(partition, self.version >= 6);
        let (mut replica_nodes, mut isr_nodes) =
            (partition.replicas.clone(), partition.isr.clone());
        if self.version == 0 {
            // Clients of version 0 assume that they can reach every replica in the response.
            replica_nodes = self.endpoints.online(&replica_nodes);
            isr_nodes = self.endpoints.online(&isr_nodes);
            let fewer = replica_nodes.len() < partition.replicas.len()
                || isr_nodes.len() < partition.isr.len();
            if error_code == 0 && fewer {
                error_code = REPLICA_NOT_AVAILABLE;
            }
        }
        Partition {
            error_code,
            partition_index: partition.index,
            leader_id,
            leader_epoch: partition.leader_epoch.get(),
            offline_replicas: self.endpoints.offline(partition),
            replica_nodes,
            isr_nodes,
        }
    }
}
