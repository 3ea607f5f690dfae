//! Passes a request frame to the handler of its API.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pykafka_wire::ApiKey;
use pykafka_wire::frame::RequestHeader;

use crate::api::api_versions::served_versions;

use crate::api::context::{Context, Outcome};
use crate::api::{
    answer_size, api_versions, control, describe_topic_partitions, fetch, list_offsets, metadata,
    offset_for_leader_epoch, produce,
};
use crate::hot_apis::hot_index;
use crate::network::memory::budget::Share;
use crate::request::{ConnectionInfo, Header};

/// Frames up to this size are copied before they wait for Python, so that they do not keep the
/// whole input buffer allocated.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The client id of the last request; the requests of a connection share one string.
#[derive(Debug)]
pub(crate) struct LastClientId(Arc<str>);

impl LastClientId {
    pub(crate) fn new() -> LastClientId {
        LastClientId(Arc::from(""))
    }

    fn shared(&mut self, client_id: &str) -> Arc<str> {
        if *self.0 != *client_id {
            self.0 = Arc::from(client_id);
        }
        self.0.clone()
    }
}

/// Decodes the header and runs the handler. The header is `None` if it cannot be decoded.
pub(crate) fn dispatch(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    last: &mut LastClientId,
    mut frame: BytesMut,
    (received_ns, received_ms): (u64, i64),
) -> (Option<Header>, Outcome) {
    let bytes = frame.len();
    let (header, body_size) = match RequestHeader::decode(&frame) {
        Ok((header, body)) => {
            let header = Header {
                api_key: header.api_key,
                api_version: header.api_version,
                correlation_id: header.correlation_id,
                client_id: last.shared(header.client_id.unwrap_or_default()),
                bytes,
                received_ns,
                received_ms,
            };
            (header, body.len())
        }
        Err(error) => return (None, Outcome::Close(format!("malformed request header: {error}"))),
    };
    let body = frame.split_off(frame.len() - body_size);
    drop(frame);
    let outcome = answer(ctx, conn, &header, body);
    (Some(header), outcome)
}

/// Runs the handler as soon as the memory budget permits the response.
fn answer(ctx: &Arc<Context>, conn: &ConnectionInfo, header: &Header, body: BytesMut) -> Outcome {
    let (key, version) = (header.api_key, header.api_version);
    if key == ApiKey::API_VERSIONS && !api_versions::is_supported(version) {
        return api_versions::unsupported();
    }
    let image = ctx.image.load();
    if !served_versions(conn, &image, key).is_some_and(|served| served.contains(&version)) {
        return Outcome::Close(format!("API key {} in version {version} is not served", key.0));
    }
    match hot_index(key).filter(|_| is_answered_here(conn, key)) {
        Some(hot) => ctx.statistics.hot_requests[hot].add(1),
        None => ctx.statistics.control_requests.add(1),
    }
    let bytes_max = answer_size::bytes_max(&image, key, version, &body);
    drop(image);
    if let Some(room) = ctx.memory.answers.try_room(bytes_max) {
        return answer_in_room(ctx, conn, header, body, room);
    }
    let (ctx, conn, header) = (ctx.clone(), conn.clone(), header.clone());
    Outcome::Pending(Box::pin(async move {
        let room = ctx.memory.answers.room(bytes_max, &*ctx.clock).await;
        answer_in_room(&ctx, &conn, &header, body, room)
    }))
}

/// True if Rust handles the API. On a controller listener, Rust handles only `ApiVersions`.
fn is_answered_here(conn: &ConnectionInfo, key: ApiKey) -> bool {
    conn.controller_apis.is_none() || key == ApiKey::API_VERSIONS
}

fn answer_in_room(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: BytesMut,
    room: Share,
) -> Outcome {
    match header.api_key {
        key if !is_answered_here(conn, key) => control::park(ctx, conn, header, parked(body), room),
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
        _ => control::park(ctx, conn, header, parked(body), room),
    }
}

fn parked(body: BytesMut) -> Bytes {
    if body.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(&body) } else { body.freeze() }
}
