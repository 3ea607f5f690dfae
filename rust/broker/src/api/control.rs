//! Requests that Python answers: queued as an event, answered by `respond`.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_wire::Chunks;

use crate::api::context::{ConnectionInfo, Context, Header, Outcome};
use crate::network::memory::budget::Share;
use crate::seam::event::{Event, RequestEvent};

/// Tells Python when the connection goes away before the answer.
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

/// Waits for room among the parked bytes, then for Python.
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
        let Some(room) = ctx.requests.admit(body.len()).await else { return stopped() };
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

fn stopped() -> Outcome {
    Outcome::Close("the broker stops".into())
}
