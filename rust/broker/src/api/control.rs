//! Requests that Python handles: an event queues them, `respond` returns the response.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_wire::{Chunks, decoded_size};

use crate::api::context::{Context, Outcome};

use crate::network::memory::budget::Share;
use crate::request::{ConnectionInfo, Header};
use crate::seam::event::{Event, RequestEvent};

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

/// Waits until the budget of parked requests permits the body, then for the response of Python.
pub(crate) fn park(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: Bytes,
    room_of_answer: Share,
) -> Outcome {
    let (ctx, connection, header) = (ctx.clone(), conn.clone(), header.clone());
    Outcome::Pending(Box::pin(async move {
        let arrival = ctx.events.arrive(header.received_ns);
        let measured = decoded_bytes(&ctx, &header, &body, room_of_answer).await;
        let Some((decoded, room_of_answer)) = measured else { return Outcome::failed() };
        let bytes = body.len() + decoded;
        if bytes > ctx.memory.decoded_bytes_max {
            return Outcome::malformed(format_args!("it takes {bytes} bytes once it is decoded"));
        }
        let room = ctx.requests.admit(bytes).await;
        let (id, answer) = ctx.requests.park();
        let open = Open { ctx, id };
        let event = RequestEvent { id, connection, header, body, room };
        open.ctx.events.push(Event::Request(Box::new(event)));
        drop(arrival);
        match answer.await {
            Ok(body) => Outcome::Reply(Chunks::from(body).into()).in_room(room_of_answer),
            Err(_) => stopped(),
        }
    }))
}

/// Returns the size of the decoded `body` in Python, and `room`, which covers it in the meantime;
/// `None` if the thread panicked. The size is 0 if `body` cannot be parsed, because Python stops
/// decoding at the error.
async fn decoded_bytes(
    ctx: &Context,
    header: &Header,
    body: &Bytes,
    room: Share,
) -> Option<(usize, Share)> {
    let (api_key, version, owned) = (header.api_key, header.api_version, body.clone());
    let decoded = move || (decoded_size(api_key, version, &owned).unwrap_or(0), room);
    if body.len() <= WALKED_AT_ONCE_BYTES_MAX {
        return Some(decoded());
    }
    ctx.partitions.host().work(move |_| decoded()).await
}

fn stopped() -> Outcome {
    Outcome::Close("the broker stops".into())
}
