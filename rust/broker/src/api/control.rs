//! Requests that Python answers: queued as an event, answered by `respond`.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_wire::Chunks;

use crate::api::context::{ConnectionInfo, Context, Header, Outcome};
use crate::seam::event::{Event, RequestEvent};
use crate::seam::requests::Room;

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
) -> Outcome {
    let (ctx, conn, header) = (ctx.clone(), conn.clone(), header.clone());
    Outcome::Pending(Box::pin(async move {
        let arrival = ctx.events.arrive(header.received_ns);
        let Some(room) = ctx.requests.admit(body.len()).await else { return stopped() };
        let (id, answer) = ctx.requests.park();
        let open = Open { ctx, id };
        open.ctx.events.push(Event::Request(Box::new(event(id, &conn, &header, body, room))));
        drop(arrival);
        match answer.await {
            Ok(body) => Outcome::Reply(Chunks::from(body).into()),
            Err(_) => stopped(),
        }
    }))
}

fn stopped() -> Outcome {
    Outcome::Close("the broker stops".into())
}

fn event(id: u64, conn: &ConnectionInfo, header: &Header, body: Bytes, room: Room) -> RequestEvent {
    RequestEvent {
        id,
        connection: conn.id,
        principal: conn.principal.clone(),
        client_host: conn.client_host.clone(),
        listener: conn.listener.clone(),
        client_id: header.client_id.clone(),
        api_key: header.api_key.0,
        api_version: header.api_version,
        received_ns: header.received_ns,
        received_ms: header.received_ms,
        body,
        room,
    }
}
