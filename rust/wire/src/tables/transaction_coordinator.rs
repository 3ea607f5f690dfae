//! Messages of `transaction-coordinator`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{Int16, Int32, Int64, Int8, Of, String};
use crate::schema::{Kind, MAX, Message, Struct, field};

static TRANSACTION_LOG_KEY: Struct = Struct { name: "TransactionLogKey", index: 0, fields: &[field("transactional_id", String, 0, 0)] };
static TRANSACTION_LOG_VALUE: Struct = Struct { name: "TransactionLogValue", index: 0, fields: &[field("producer_id", Int64, 0, MAX), field("previous_producer_id", Int64, 1, MAX).tagged(0, 1, MAX).or(-1), field("next_producer_id", Int64, 1, MAX).tagged(1, 1, MAX).or(-1), field("producer_epoch", Int16, 0, MAX), field("next_producer_epoch", Int16, 1, MAX).tagged(3, 1, MAX).or(-1), field("transaction_timeout_ms", Int32, 0, MAX), field("transaction_status", Int8, 0, MAX), field("transaction_partitions", Of(&TRANSACTION_LOG_VALUE_PARTITIONS_SCHEMA), 0, MAX).list().nullable(0, MAX), field("transaction_last_update_timestamp_ms", Int64, 0, MAX), field("transaction_start_timestamp_ms", Int64, 0, MAX), field("client_transaction_version", Int16, 1, MAX).tagged(2, 1, MAX)] };
static TRANSACTION_LOG_VALUE_PARTITIONS_SCHEMA: Struct = Struct { name: "PartitionsSchema", index: 1, fields: &[field("topic", String, 0, MAX), field("partition_ids", Int32, 0, MAX).list()] };

/// Messages of this jar.
pub static MESSAGES: [Message; 2] = [
    Message::new(252, "TransactionLogKey", Kind::CoordinatorKey, 0, [0, 0], MAX, &[&TRANSACTION_LOG_KEY]),
    Message::new(253, "TransactionLogValue", Kind::CoordinatorValue, 0, [0, 1], 1, &[&TRANSACTION_LOG_VALUE, &TRANSACTION_LOG_VALUE_PARTITIONS_SCHEMA]),
];
