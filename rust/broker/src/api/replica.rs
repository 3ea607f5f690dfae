//! Who may ask as a replica.
//!
//! A fetch of a replica moves the high watermark and says who is in sync, so a client that could make one could have
//! records acknowledged that nobody else has (contract/replication.md#attack-16). Nothing authenticates a connection yet,
//! so the listener stands for it: `inter.broker.listener.name` says which one is for brokers, and whoever reaches that one
//! is trusted to be the broker that it says it is, as with Apache Kafka on a PLAINTEXT listener without an authorizer. So
//! it must be reachable for brokers only. Where no listener is named, as on a single node, nobody asks as a replica.

use crate::api::context::ConnectionInfo;
use crate::seam::image::{Image, Registration};

/// The registration of the broker `broker_id` if this connection may ask as that one: another
/// broker that is registered, on the listener for brokers. It may be fenced: that is how it catches
/// up. The connection is a node's from then on.
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
