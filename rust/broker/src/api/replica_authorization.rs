//! Authorization of requests as a replica.
//!
//! The fetch of a replica moves the high watermark and decides which replicas are in sync. A client
//! that could send such a fetch could get records acknowledged that only the leader has
//! (contract/replication.md#attack-16). Connections are not authenticated yet, so the listener
//! decides: `inter.broker.listener.name` is the listener for brokers, and any peer that reaches it
//! is trusted to be the broker that it claims to be, as with Apache Kafka on a PLAINTEXT listener
//! without an authorizer. Only brokers may be able to reach it. Without such a listener, as on a
//! single node, no request counts as a replica's.

use crate::control_api::image::{Image, Registration};
use crate::request::ConnectionInfo;

/// The registration of the broker `broker_id` if this connection may send requests as that broker:
/// it must be another registered broker, and the listener must be the one for brokers. The broker
/// may be fenced, because a fenced broker must be able to catch up. The connection counts as a
/// node's from then on.
pub(crate) fn registration<'a>(
    node_id: i32,
    image: &'a Image,
    conn: &ConnectionInfo,
    broker_id: i32,
) -> Option<&'a Registration> {
    let is_for_brokers = image.settings.inter_broker_listener.as_deref() == Some(&*conn.listener);
    let registration = image.registrations.get(&broker_id)?;
    if !is_for_brokers || broker_id == node_id {
        return None;
    }
    conn.standing.set_node();
    Some(registration)
}
