//! Requests that Python handles: an event queues them, `respond` returns the response.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_wire::{Chunks, DecodeError, decoded_size};
use tokio::sync::oneshot;

use crate::context::Context;
use crate::network::outcome::Outcome;

use crate::control_api::event::{Event, RequestEvent};
use crate::control_api::requests::{NextStep, Room};
use crate::network::memory::budget::Share;
use crate::network::response_memory::SMALL_BYTES_MAX;
use crate::request::{ConnectionInfo, Header};

/// A larger body takes about a time slice to measure, so another thread than the network threads
/// measures it.
const WALKED_AT_ONCE_BYTES_MAX: usize = 16 << 10;

/// Notifies Python if the connection closes before the response.
struct Open {
    ctx: Arc<Context>,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.ctx.requests.cancel(self.id) {
            self.ctx.events.cancel(self.id);
        }
    }
}

/// Queues the request for Python, and waits for the response. `room_of_response` is held until the
/// response, unless Python releases it because the request waits for others; then the memory is
/// reserved again once the response exists.
pub(crate) fn park(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: Bytes,
    room_of_response: Share,
) -> Outcome {
    let (ctx, connection, header) = (ctx.clone(), conn.clone(), header.clone());
    let room = Room::new(room_of_response);
    let parked = room.clone();
    let answered = async move {
        let decoded = match decoded_bytes(&ctx, &header, &body, &room).await {
            Some(Ok(decoded)) => decoded,
            Some(Err(error)) => return Outcome::malformed(error),
            None => return Outcome::failed(),
        };
        let bytes = body.len() + decoded;
        if bytes > ctx.network.memory.decoded_bytes_max {
            return Outcome::malformed(format_args!("it takes {bytes} bytes once it is decoded"));
        }
        // The memory of small requests is part of the fixed cost of a connection.
        if bytes >= SMALL_BYTES_MAX {
            room.measured(bytes, &ctx.network.memory.requests);
        }
        let (id, response) = ctx.requests.park();
        let open = Open { ctx, id };
        let event = RequestEvent { id, connection, header, body, room: room.clone() };
        open.ctx.events.push(Event::Request(Box::new(event)));
        let Some(body) = answered(&open.ctx, &room, response).await else { return stopped() };
        let responses = &open.ctx.network.memory.responses;
        let room_of_response = match room.take_response() {
            Some(room) => room,
            // Python has released it, and the response is small or another node has encoded it.
            // Waiting here closes stalled peers that hold the memory.
            None => responses.room(body.len(), &*open.ctx.clock).await,
        };
        Outcome::Reply(Chunks::from(body).into()).in_room(room_of_response)
    };
    Outcome::Parked(Box::pin(answered), parked)
}

/// Waits for the response, and reserves memory for it as often as Python requests it; `None` if the
/// broker stops.
async fn answered(
    ctx: &Context,
    room: &Room,
    mut said: oneshot::Receiver<NextStep>,
) -> Option<Bytes> {
    loop {
        match said.await.ok()? {
            NextStep::Response(body) => return Some(body),
            NextStep::Reserve { token, bytes, next } => {
                // A holder of memory must not wait for more.
                drop(room.take_response());
                room.reserve_response(ctx.network.memory.responses.room(bytes, &*ctx.clock).await);
                ctx.events.push(Event::Maintained { token, error_code: 0, offset: -1 });
                said = next;
            }
        }
    }
}

/// Returns the size of the decoded `body` in Python, which `room` covers in the meantime; `None` if
/// the thread panicked. An invalid `body` never reaches Python, which would decode it up to the
/// error.
async fn decoded_bytes(
    ctx: &Context,
    header: &Header,
    body: &Bytes,
    room: &Room,
) -> Option<Result<usize, DecodeError>> {
    let (api_key, version) = (header.api_key, header.api_version);
    let (body_there, room_there) = (body.clone(), room.clone());
    let decoded = move || {
        let bytes = decoded_size(api_key, version, &body_there);
        drop(room_there);
        bytes
    };
    if body.len() <= WALKED_AT_ONCE_BYTES_MAX {
        return Some(decoded());
    }
    ctx.partitions.host().work(move |_| decoded()).await
}

fn stopped() -> Outcome {
    Outcome::Close("the broker stops".into())
}
