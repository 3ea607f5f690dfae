//! Messages of `raft`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{Int32, Int64, Of, String, Uuid};
use crate::schema::{Kind, MAX, Message, Struct, field};

static QUORUM_STATE_DATA: Struct = Struct { name: "QuorumStateData", index: 0, fields: &[field("cluster_id", String, 0, 0), field("leader_id", Int32, 0, MAX).or(-1), field("leader_epoch", Int32, 0, MAX).or(-1), field("voted_id", Int32, 0, MAX).or(-1), field("voted_directory_id", Uuid, 1, MAX), field("applied_offset", Int64, 0, 0), field("current_voters", Of(&QUORUM_STATE_DATA_VOTER), 0, 0).list().nullable(0, 0)] };
static QUORUM_STATE_DATA_VOTER: Struct = Struct { name: "Voter", index: 1, fields: &[field("voter_id", Int32, 0, 0)] };

/// Messages of this jar.
pub static MESSAGES: [Message; 1] = [
    Message::new(182, "QuorumStateData", Kind::Data, -1, [0, 1], 0, &[&QUORUM_STATE_DATA, &QUORUM_STATE_DATA_VOTER]),
];
