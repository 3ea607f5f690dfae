//! Messages of `share-coordinator`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{Int16, Int32, Int64, Int8, Of, String, Uuid};
use crate::schema::{Kind, MAX, Message, Struct, field};

static SHARE_SNAPSHOT_KEY: Struct = Struct { name: "ShareSnapshotKey", index: 0, fields: &[field("group_id", String, 0, 0), field("topic_id", Uuid, 0, 0), field("partition", Int32, 0, 0)] };
static SHARE_SNAPSHOT_VALUE: Struct = Struct { name: "ShareSnapshotValue", index: 0, fields: &[field("snapshot_epoch", Int32, 0, MAX), field("state_epoch", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX), field("start_offset", Int64, 0, MAX), field("delivery_complete_count", Int32, 0, MAX).tagged(0, 0, MAX).or(-1), field("create_timestamp", Int64, 0, MAX), field("write_timestamp", Int64, 0, MAX), field("state_batches", Of(&SHARE_SNAPSHOT_VALUE_STATE_BATCH), 0, MAX).list()] };
static SHARE_SNAPSHOT_VALUE_STATE_BATCH: Struct = Struct { name: "StateBatch", index: 1, fields: &[field("first_offset", Int64, 0, MAX), field("last_offset", Int64, 0, MAX), field("delivery_state", Int8, 0, MAX), field("delivery_count", Int16, 0, MAX)] };
static SHARE_UPDATE_KEY: Struct = Struct { name: "ShareUpdateKey", index: 0, fields: &[field("group_id", String, 0, 0), field("topic_id", Uuid, 0, 0), field("partition", Int32, 0, 0)] };
static SHARE_UPDATE_VALUE: Struct = Struct { name: "ShareUpdateValue", index: 0, fields: &[field("snapshot_epoch", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX), field("start_offset", Int64, 0, MAX), field("delivery_complete_count", Int32, 0, MAX).tagged(0, 0, MAX).or(-1), field("state_batches", Of(&SHARE_UPDATE_VALUE_STATE_BATCH), 0, MAX).list()] };
static SHARE_UPDATE_VALUE_STATE_BATCH: Struct = Struct { name: "StateBatch", index: 1, fields: &[field("first_offset", Int64, 0, MAX), field("last_offset", Int64, 0, MAX), field("delivery_state", Int8, 0, MAX), field("delivery_count", Int16, 0, MAX)] };

/// Messages of this jar.
pub static MESSAGES: [Message; 4] = [
    Message::new(225, "ShareSnapshotKey", Kind::CoordinatorKey, 0, [0, 0], MAX, &[&SHARE_SNAPSHOT_KEY]),
    Message::new(226, "ShareSnapshotValue", Kind::CoordinatorValue, 0, [0, 0], 0, &[&SHARE_SNAPSHOT_VALUE, &SHARE_SNAPSHOT_VALUE_STATE_BATCH]),
    Message::new(227, "ShareUpdateKey", Kind::CoordinatorKey, 1, [0, 0], MAX, &[&SHARE_UPDATE_KEY]),
    Message::new(228, "ShareUpdateValue", Kind::CoordinatorValue, 1, [0, 0], 0, &[&SHARE_UPDATE_VALUE, &SHARE_UPDATE_VALUE_STATE_BATCH]),
];
