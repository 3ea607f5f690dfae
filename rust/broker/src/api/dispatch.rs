//! Passes a request to the handler of its API.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pykafka_wire::ApiKey;

use crate::api::api_versions::served_versions;

use crate::api::{
    api_versions, describe_topic_partitions, fetch, forward_to_python, list_offsets, metadata,
    offset_for_leader_epoch, produce, response_size,
};
use crate::context::Context;
use crate::hot_apis::hot_index;
use crate::network::Handler;
use crate::network::memory::budget::Share;
use crate::network::outcome::Outcome;
use crate::request::{ConnectionInfo, Header};

/// Frames up to this size are copied before they wait for Python, so that they do not keep the
/// whole input buffer allocated.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// Passes each request to its handler.
pub(crate) struct Dispatcher(pub(crate) Arc<Context>);

impl Handler for Dispatcher {
    fn handle(&self, conn: &ConnectionInfo, header: &Header, body: BytesMut) -> Outcome {
        dispatch(&self.0, conn, header, body)
    }
}

/// Runs the handler as soon as the memory budget permits the response.
pub(crate) fn dispatch(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: BytesMut,
) -> Outcome {
    let (key, version) = (header.api_key, header.api_version);
    if key == ApiKey::API_VERSIONS && !api_versions::is_supported(version) {
        return api_versions::unsupported();
    }
    let image = ctx.image.load();
    if !served_versions(conn, &image, key).is_some_and(|served| served.contains(&version)) {
        return Outcome::Close(format!("API key {} in version {version} is not served", key.0));
    }
    match hot_index(key).filter(|_| is_answered_here(conn, key)) {
        Some(hot) => ctx.network.statistics.hot_requests[hot].add(1),
        None => ctx.network.statistics.control_requests.add(1),
    }
    let bytes_max = response_size::bytes_max(&image, key, version, &body);
    drop(image);
    if let Some(room) = ctx.network.memory.responses.try_room(bytes_max) {
        return respond_in_room(ctx, conn, header, body, room);
    }
    let (ctx, conn, header) = (ctx.clone(), conn.clone(), header.clone());
    Outcome::Pending(Box::pin(async move {
        let room = ctx.network.memory.responses.room(bytes_max, &*ctx.clock).await;
        respond_in_room(&ctx, &conn, &header, body, room)
    }))
}

/// True if Rust handles the API. On a controller listener, Rust handles only `ApiVersions`.
fn is_answered_here(conn: &ConnectionInfo, key: ApiKey) -> bool {
    conn.controller_apis.is_none() || key == ApiKey::API_VERSIONS
}

fn respond_in_room(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: BytesMut,
    room: Share,
) -> Outcome {
    match header.api_key {
        key if !is_answered_here(conn, key) => {
            forward_to_python::park(ctx, conn, header, parked(body), room)
        }
        ApiKey::API_VERSIONS => api_versions::handle(ctx, conn, header, &body).in_room(room),
        ApiKey::METADATA => metadata::handle(ctx, conn, header, &body, room),
        ApiKey::DESCRIBE_TOPIC_PARTITIONS => {
            describe_topic_partitions::handle(ctx, conn, header, &body).in_room(room)
        }
        // Produce reserves memory later: first its appends must be queued in the order of the
        // requests.
        ApiKey::PRODUCE => produce::handle(ctx, conn, header, body),
        ApiKey::FETCH => fetch::handle(ctx, conn, header, &body.freeze(), room),
        ApiKey::LIST_OFFSETS => list_offsets::handle(ctx, conn, header, &body.freeze(), room),
        ApiKey::OFFSET_FOR_LEADER_EPOCH => {
            offset_for_leader_epoch::handle(ctx, conn, header, &body.freeze()).in_room(room)
        }
        _ => forward_to_python::park(ctx, conn, header, parked(body), room),
    }
}

fn parked(body: BytesMut) -> Bytes {
    if body.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(&body) } else { body.freeze() }
}
