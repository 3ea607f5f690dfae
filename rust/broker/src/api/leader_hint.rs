//! The current leader, for clients that sent a request to the wrong broker (KIP-951,
//! contract/kafka.md#14).

use pykafka_wire::structs::{LeaderIdAndEpoch, NodeEndpoint};

use crate::control_api::image::{Image, TopicId};

/// The leader in the image.
pub(crate) fn leader_of(image: &Image, topic_id: &TopicId, index: i32) -> LeaderIdAndEpoch {
    let entry = image.topic_by_id(topic_id).and_then(|topic| topic.partition(index).cloned());
    entry.map_or(LeaderIdAndEpoch::UNKNOWN, |entry| LeaderIdAndEpoch {
        leader_id: entry.leader,
        leader_epoch: entry.leader_epoch.get(),
    })
}

/// Endpoints of `brokers` at the listener of the client.
pub(crate) fn endpoints_of<'a>(
    image: &'a Image,
    listener: &str,
    brokers: &[i32],
) -> Vec<NodeEndpoint<'a>> {
    if brokers.is_empty() {
        return Vec::new();
    }
    (image.brokers.iter())
        .filter(|broker| &*broker.listener == listener && brokers.contains(&broker.node_id))
        .map(|broker| NodeEndpoint {
            node_id: broker.node_id,
            host: &broker.host,
            port: i32::from(broker.port),
            rack: broker.rack.as_deref(),
        })
        .collect()
}
