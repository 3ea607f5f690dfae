//! Fetch (API key 1).
//!
//! A request becomes a list of targets, from the request itself or from its session. The targets
//! are read within the size limits. If that does not yield enough bytes, the request is parked: it
//! watches its partitions, and each wake-up reads again, in the connection's own task. Large
//! results stay in their file, and small ones in the buffers that they were read into, up to the
//! socket.
//!
//! contract/kafka.md#24–#29, #62, #63. The leader records the progress of a follower's fetch before
//! it reads for it ([`PendingFetch::booked`]). A follower gets all appended records, limited only
//! by the limits of its request. `replica_authorization.rs` determines which requests count as a
//! follower's.

mod limits;
mod parked;
mod respond;
mod target;

use std::sync::Arc;

use bytes::Bytes;
use pykafka_wire::fetch::Request;

use self::limits::Limits;
use self::respond::{PendingFetch, refuse};
use self::target::{Opened, Targets};
use crate::api::endpoints::Endpoints;
use crate::api::fetch_session::Owner;
use crate::api::quota::Client;
use crate::api::worker::on_worker;
use crate::api::{PARTITIONS_AT_ONCE_MAX, replica_authorization};
use crate::context::Context;
use crate::control_api::image::Image;
use crate::kafka_error::KafkaError;
use crate::network::memory::budget::Share;
use crate::network::outcome::Outcome;
use crate::network::response_memory::WIDENED_BYTES_MIN;
use crate::partition::follower_fetch::Replica;
use crate::partition::log::await_open;
use crate::partition::log::read::Isolation;
use crate::request::{ConnectionInfo, Header};

/// Maximum wait, the maximum of librdkafka's `fetch.wait.max.ms` (300000); the client then sends
/// the next request.
const WAIT_MS_MAX: i32 = 300_000;
/// First version whose clients can fetch from followers (KIP-392).
const ANY_REPLICA_VERSION_MIN: i16 = 11;

/// Reads and responds, or waits until there are enough bytes.
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
    let (client, arrived_ns) = (Client::new(conn, header), header.received_ns);
    if partitions_count(ctx, &request) <= PARTITIONS_AT_ONCE_MAX {
        return begin(ctx, client, arrived_ns, version, &request, room);
    }
    let (ctx, body) = (ctx.clone(), body.clone());
    let host = ctx.partitions.host().clone();
    on_worker(&host, move || match Request::decode(version, &body) {
        Ok(request) => begin(&ctx, client, arrived_ns, version, &request, room),
        Err(error) => Outcome::malformed(error),
    })
}

/// Upper bound of the number of partitions to read.
fn partitions_count(ctx: &Context, request: &Request<'_>) -> usize {
    let named: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    named + ctx.fetch_sessions.count(request.session_id)
}

fn begin(
    ctx: &Arc<Context>,
    client: Client,
    arrived_ns: u64,
    version: i16,
    request: &Request<'_>,
    room: Share,
) -> Outcome {
    let image = ctx.image.load();
    let replica = match replica_of(ctx, &image, &client.conn, arrived_ns, request) {
        Ok(replica) => replica,
        Err(error) => return refuse(version, request, error),
    };
    let Some(isolation) = Isolation::from_id(request.isolation_level) else {
        return refuse(version, request, KafkaError::UnknownServerError);
    };
    let of_clients = || image.settings.fetch_bytes_max.min(client.fetch_bytes_max(ctx));
    let most = if replica.is_some() { i32::MAX } else { of_clients() };
    let bytes_max = bytes_max(ctx, request.max_bytes.min(most));
    let limits = Limits {
        version,
        isolation: replica.map_or(isolation, |replica| Isolation::Replica(replica.broker_id)),
        any_replica: replica.is_none() && version >= ANY_REPLICA_VERSION_MIN,
        bytes_max,
        bytes_min: i64::from(request.min_bytes).min(bytes_max),
        wait_ms: request.max_wait_ms.min(WAIT_MS_MAX),
    };
    let owner = replica.map_or(Owner::Client, |replica| Owner::Follower(replica.broker_id));
    let opened = match Opened::of(ctx, &image, version, owner, request) {
        Ok(opened) => opened,
        Err(error) => return refuse_session(version, error),
    };
    let targets = Targets::resolve(ctx, &image, opened).near(match replica {
        None => nearby(&image, &client.conn.listener, request.rack_id),
        Some(_) => Vec::new(),
    });
    drop(image);
    let fetch = PendingFetch { ctx: ctx.clone(), client, replica, limits, targets };
    match await_open::of(fetch.targets.partitions()) {
        None => book(fetch, room),
        Some(opened) => Outcome::Pending(Box::pin(async move {
            opened.await;
            book(fetch, room)
        })),
    }
}

/// The follower that sent the request; `None` for a client.
///
/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED` for a follower that may not fetch here.
fn replica_of(
    ctx: &Context,
    image: &Image,
    conn: &ConnectionInfo,
    arrived_ns: u64,
    request: &Request<'_>,
) -> Result<Option<Replica>, KafkaError> {
    let broker_id = request.replica();
    if broker_id < 0 {
        return Ok(None);
    }
    let registration = replica_authorization::registration(ctx.node_id, image, conn, broker_id)
        .ok_or(KafkaError::ClusterAuthorizationFailed)?;
    Ok(Some(Replica {
        broker_id,
        broker_epoch: request.replica_state.replica_epoch,
        registered_epoch: registration.broker_epoch,
        arrived_ns,
    }))
}

/// The brokers in a client's rack that it can reach, if it should read from a follower there.
fn nearby(image: &Image, listener: &str, rack: &str) -> Vec<i32> {
    if rack.is_empty() || !image.settings.reads_in_rack {
        return Vec::new();
    }
    (Endpoints::new(image, listener).iter())
        .filter(|broker| broker.rack.as_deref() == Some(rack))
        .map(|broker| broker.node_id)
        .collect()
}

/// Records the progress of a follower before anything that may wait.
fn book(fetch: PendingFetch, room: Share) -> Outcome {
    if fetch.replica.is_none() || !fetch.is_long() {
        return read_or_wait(fetch.booked(), room);
    }
    let host = fetch.ctx.partitions.host().clone();
    on_worker(&host, move || read_or_wait(fetch.booked(), room))
}

/// Maximum bytes of one response: a request for more would wait until its timeout.
fn bytes_max(ctx: &Context, wanted: i32) -> i64 {
    let wanted = i64::from(wanted);
    if ctx.partitions.host().in_memory {
        wanted.min(ctx.network.memory.responses.records_bytes_max() as i64)
    } else {
        wanted
    }
}

/// Reads after the memory budget permits the records.
fn read_or_wait(fetch: PendingFetch, mut room: Share) -> Outcome {
    let wanted = usize::try_from(fetch.limits.bytes_max).unwrap_or(0);
    if wanted == 0 {
        return respond_or_park(fetch, room, 0);
    }
    match fetch.ctx.network.memory.responses.widen(&mut room, wanted) {
        0 => Outcome::Pending(Box::pin(async move {
            let ctx = fetch.ctx.clone();
            let room =
                ctx.network.memory.responses.wider(room, WIDENED_BYTES_MIN, &*ctx.clock).await;
            respond_or_park(fetch, room, WIDENED_BYTES_MIN)
        })),
        memory_max => respond_or_park(fetch, room, memory_max),
    }
}

fn respond_or_park(fetch: PendingFetch, room: Share, memory_max: usize) -> Outcome {
    if !fetch.is_long() {
        return read(fetch, room, memory_max);
    }
    let host = fetch.ctx.partitions.host().clone();
    on_worker(&host, move || read(fetch, room, memory_max))
}

fn read(fetch: PendingFetch, room: Share, memory_max: usize) -> Outcome {
    let limits = fetch.limits;
    let found = fetch.read(memory_max);
    if limits.wait_ms <= 0 || found.is_enough(limits.bytes_min) {
        fetch.encode(&found.fetched).in_room(room)
    } else {
        drop(room);
        parked::park(fetch, &found)
    }
}

/// Rejects an unknown session or a wrong session epoch: the response has no partitions and no
/// session (contract/kafka.md#27).
fn refuse_session(version: i16, error: KafkaError) -> Outcome {
    refuse(version, &Request::default(), error)
}

#[cfg(test)]
mod replica_histories;
#[cfg(test)]
mod replica_tests;
#[cfg(test)]
mod tests;
