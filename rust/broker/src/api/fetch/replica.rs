//! Who may fetch as a replica.
//!
//! A fetch of a replica moves the high watermark and says who is in sync, so a client that could make one could have
//! records acknowledged that nobody else has (contract/replication.md#attack-16). Nothing authenticates a connection yet,
//! so the listener stands for it: `inter.broker.listener.name` says which one is for brokers, and whoever reaches that one
//! is trusted to be the broker that it says it is, as with Apache Kafka on a PLAINTEXT listener without an authorizer. So
//! it must be reachable for brokers only. Where no listener is named, as on a single node, nobody fetches as a replica.

use pykafka_wire::fetch::Request;

use crate::api::context::ConnectionInfo;
use crate::kafka_error::KafkaError;
use crate::partition::Replica;
use crate::seam::image::Image;

/// The follower that fetches, `None` for a client.
///
/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED` unless it is another broker that is registered, on the listener for brokers. It may be
/// fenced: that is how it catches up.
pub(super) fn of(
    node_id: i32,
    image: &Image,
    conn: &ConnectionInfo,
    arrived_ns: u64,
    request: &Request<'_>,
) -> Result<Option<Replica>, KafkaError> {
    let broker_id = request.replica();
    if broker_id < 0 {
        return Ok(None);
    }
    let listener = image.settings.inter_broker_listener.as_deref();
    match image.registrations.get(&broker_id) {
        Some(registration) if broker_id != node_id && listener == Some(&*conn.listener) => {
            Ok(Some(Replica {
                broker_id,
                broker_epoch: request.replica_state.replica_epoch,
                registered_epoch: registration.broker_epoch,
                arrived_ns,
            }))
        }
        _ => Err(KafkaError::ClusterAuthorizationFailed),
    }
}

#[cfg(test)]
mod tests;
