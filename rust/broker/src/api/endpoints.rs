//! The brokers that clients of one listener can reach, and how that affects a partition's leader.

use crate::control_api::image::{BrokerEndpoint, Image, PartitionEntry};

const LEADER_NOT_AVAILABLE: i16 = 5;
const LISTENER_NOT_FOUND: i16 = 72;
/// Node id that means "no leader".
pub(crate) const NO_LEADER: i32 = -1;

/// The live brokers from the point of view of one listener's clients.
pub(crate) struct Endpoints<'a> {
    brokers: &'a [BrokerEndpoint],
    listener: &'a str,
}

impl<'a> Endpoints<'a> {
    pub(crate) fn new(image: &'a Image, listener: &'a str) -> Endpoints<'a> {
        Endpoints { brokers: &image.brokers, listener }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a BrokerEndpoint> {
        self.brokers.iter().filter(|broker| &*broker.listener == self.listener)
    }

    pub(crate) fn has(&self, node_id: i32) -> bool {
        self.iter().any(|broker| broker.node_id == node_id)
    }

    fn is_alive(&self, node_id: i32) -> bool {
        self.brokers.iter().any(|broker| broker.node_id == node_id)
    }

    /// Returns the error code and the node id of the leader. `names_listener`: the client supports
    /// `LISTENER_NOT_FOUND`.
    pub(crate) fn leader(&self, partition: &PartitionEntry, names_listener: bool) -> (i16, i32) {
        if self.has(partition.leader) {
            return (0, partition.leader);
        }
        if names_listener && self.is_alive(partition.leader) {
            return (LISTENER_NOT_FOUND, NO_LEADER);
        }
        (LEADER_NOT_AVAILABLE, NO_LEADER)
    }

    /// Replicas that this listener's clients cannot reach, or whose log directory failed.
    pub(crate) fn offline(&self, partition: &PartitionEntry) -> Vec<i32> {
        let is_offline = |replica: &i32| !self.has(*replica) || partition.lost.contains(replica);
        partition.replicas.iter().copied().filter(is_offline).collect()
    }

    /// Replicas that this listener's clients can reach.
    pub(crate) fn online(&self, replicas: &[i32]) -> Vec<i32> {
        replicas.iter().copied().filter(|&replica| self.has(replica)).collect()
    }
}
