//! Structs that several hot messages share.

use super::message;

message! {
    /// A partition's leader, as known to the responding broker.
    pub struct LeaderIdAndEpoch {
        /// Node id, -1 if unknown.
        leader_id: i32 = -1, since(0);
        /// Leader epoch, -1 if unknown.
        leader_epoch: i32 = -1, since(0);
    }

    /// Address of a broker's listener.
    pub struct NodeEndpoint<'a> {
        /// Node id.
        node_id: i32 = 0, since(0);
        /// Host name.
        host: &'a str = "", since(0);
        /// Port.
        port: i32 = 0, since(0);
        /// Rack, null if none was assigned.
        rack: Option<&'a str> = None, since(0);
    }
}

impl LeaderIdAndEpoch {
    /// The default, which is not written.
    pub const UNKNOWN: LeaderIdAndEpoch = LeaderIdAndEpoch { leader_id: -1, leader_epoch: -1 };
}
