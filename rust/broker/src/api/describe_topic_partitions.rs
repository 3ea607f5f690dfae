//! `DescribeTopicPartitions`: topics in the order of their names, in pages (KIP-966).

use std::collections::BTreeSet;
use std::sync::Arc;

use pykafka_wire::describe_topic_partitions::{
    Cursor, Partition, Request, Response, Topic, TopicResponse,
};

use crate::api::api_versions::encoded;
use crate::api::endpoints::Endpoints;
use crate::api::topic_name::{TOPIC_OPERATIONS_ALL, is_internal, missing_code};
use crate::context::Context;
use crate::control_api::image::{Image, PartitionEntry, TopicEntry};
use crate::network::outcome::Outcome;
use crate::request::{ConnectionInfo, Header};

const INVALID_REQUEST: i16 = 42;

/// Handles a request in version 0.
pub fn handle(ctx: &Arc<Context>, conn: &ConnectionInfo, header: &Header, body: &[u8]) -> Outcome {
    let version = header.api_version;
    let request = match Request::decode(version, body) {
        Ok(request) => request,
        Err(error) => return Outcome::malformed(error),
    };
    let image = ctx.image.load();
    let response = match names(&image, &request) {
        Some(names) => page(&image, &Endpoints::new(&image, &conn.listener), &request, names),
        None => refused(&request.topics),
    };
    encoded(|out| response.encode(version, out))
}

/// The topic names from the cursor on; `None` if the cursor is invalid for the request.
fn names<'a>(image: &'a Image, request: &Request<'a>) -> Option<BTreeSet<&'a str>> {
    let first = request.cursor.as_ref().map_or("", |cursor| cursor.topic_name);
    if request.cursor.as_ref().is_some_and(|cursor| cursor.partition_index < 0) {
        return None;
    }
    if request.topics.is_empty() {
        let shown = image.topics().filter(|topic| !topic.hidden).map(|topic| &*topic.name);
        return Some(shown.filter(|&name| name >= first).collect());
    }
    let asked = request.topics.iter().map(|topic| topic.name);
    let names: BTreeSet<_> = asked.filter(|&name| name >= first).collect();
    (request.cursor.is_none() || names.contains(first)).then_some(names)
}

fn refused<'a>(topics: &[Topic<'a>]) -> Response<'a> {
    let refused = topics.iter().map(|topic| TopicResponse {
        error_code: INVALID_REQUEST,
        name: Some(topic.name),
        ..TopicResponse::default()
    });
    Response { topics: refused.collect(), ..Response::default() }
}

fn page<'a>(
    image: &'a Image,
    endpoints: &Endpoints<'_>,
    request: &Request<'a>,
    names: BTreeSet<&'a str>,
) -> Response<'a> {
    let partitions_max = image.settings.request_partitions_max;
    let mut remaining = request.response_partition_limit.min(partitions_max).max(1) as usize;
    let mut response = Response::default();
    for name in names {
        if remaining == 0 {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: 0 });
            break;
        }
        let Some(topic) = image.topic(name).filter(|topic| !topic.hidden) else {
            response.topics.push(missing(name));
            continue;
        };
        let start = request.cursor.as_ref().filter(|cursor| cursor.topic_name == name);
        let start = start.map_or(0, |cursor| cursor.partition_index);
        let (described, next) = describe(topic, endpoints, start, remaining);
        remaining -= described.partitions.len();
        response.topics.push(described);
        if let Some(partition_index) = next {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index });
            break;
        }
    }
    response
}

fn missing(name: &str) -> TopicResponse<'_> {
    TopicResponse {
        error_code: missing_code(name),
        name: Some(name),
        is_internal: is_internal(name),
        topic_authorized_operations: TOPIC_OPERATIONS_ALL,
        ..TopicResponse::default()
    }
}

/// Describes at most `count` partitions from `start` on. Also returns the index of the next
/// partition.
fn describe<'a>(
    topic: &'a TopicEntry,
    endpoints: &Endpoints<'_>,
    start: i32,
    count: usize,
) -> (TopicResponse<'a>, Option<i32>) {
    let mut rest = topic.partitions.iter().skip_while(|partition| partition.index < start);
    let partitions: Vec<Partition> = rest
        .by_ref()
        .take(count)
        .map(|partition| describe_partition(partition, endpoints))
        .collect();
    let described = TopicResponse {
        name: Some(&topic.name),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions,
        topic_authorized_operations: TOPIC_OPERATIONS_ALL,
        ..TopicResponse::default()
    };
    (described, rest.next().map(|partition| partition.index))
}

fn describe_partition(partition: &PartitionEntry, endpoints: &Endpoints<'_>) -> Partition {
    let (error_code, leader_id) = endpoints.leader(partition, true);
    Partition {
        error_code,
        partition_index: partition.index,
        leader_id,
        leader_epoch: partition.leader_epoch.get(),
        replica_nodes: partition.replicas.clone(),
        isr_nodes: partition.isr.clone(),
        eligible_leader_replicas: Some(partition.elr.clone()),
        last_known_elr: Some(partition.last_known_elr.clone()),
        offline_replicas: endpoints.offline(partition),
    }
}
