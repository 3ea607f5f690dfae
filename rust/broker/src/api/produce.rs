//! Produce (API key 0).
//!
//! The log validates and stamps each batch in the buffer of the request and writes it once; no
//! record is copied, and no memory is allocated per record. A batch that cannot be appended at once
//! waits in the queue of its partition. Each partition succeeds or fails separately; the response
//! keeps the order of the request.
//!
//! The first batch of a transaction waits for the transaction coordinator (`verification`).
//!
//! contract/kafka.md#4, #6–#17, #20, #57–#61.

mod acks;
mod pending;
mod plan;
mod respond;
mod verification;

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_record::{Batch, BatchError, Compression};

use self::acks::Acks;
use self::pending::{Appends, Pending, Produced};
use self::plan::{Entry, ProducePlan};
use self::respond::{PartitionResult, TopicResults};
use self::verification::{Rule, Verification};
use crate::api::quota::Client;
use crate::context::Context;
use crate::kafka_error::KafkaError;
use crate::network::outcome::Outcome;
use crate::partition::Partition;
use crate::partition::log::await_open;
use crate::request::{ConnectionInfo, Header};

/// The client id that may write to internal topics (contract/kafka.md#11).
const ADMIN_CLIENT_ID: &str = "__admin_client";

/// First version that may carry zstd.
const ZSTD_VERSION_MIN: i16 = 7;

/// Appends the batches of the request and responds.
pub fn handle(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    body: BytesMut,
) -> Outcome {
    let plan = match ProducePlan::decode(&ctx.image.load(), header.api_version, &body) {
        Ok(plan) => plan,
        Err(error) => return Outcome::malformed(error),
    };
    // Only an opened log can show whether a transaction is open.
    if plan.is_transactional()
        && let Some(opened) = await_open::of(plan.transaction_partitions(ctx))
    {
        let (ctx, conn, header) = (ctx.clone(), conn.clone(), header.clone());
        return Outcome::Held(Box::pin(async move {
            opened.await;
            begin(&ctx, &conn, &header, plan, body)
        }));
    }
    begin(ctx, conn, header, plan, body)
}

fn begin(
    ctx: &Arc<Context>,
    conn: &ConnectionInfo,
    header: &Header,
    plan: ProducePlan,
    body: BytesMut,
) -> Outcome {
    let acks = Acks::from_wire(plan.acks);
    let refusal = plan.refusal.or(acks.is_none().then_some(KafkaError::InvalidRequiredAcks));
    let acks = acks.unwrap_or(Acks::Leader);
    let may_write_internal = &*header.client_id == ADMIN_CLIENT_ID;
    let (transactional_id, batches) = plan.taken_apart(body);
    let mut batches = batches.into_iter();
    let mut appends = Appends::new(acks, conn);
    let mut verification = Verification::new(ctx, header);
    let mut topics = Vec::with_capacity(plan.topics.len());
    for topic in plan.topics {
        let mut results = TopicResults::new(topic.reference, topic.entries.len());
        for entry in topic.entries {
            let batch = batches.next().unwrap_or_default();
            let target = results.reference.partition(ctx, entry.index, may_write_internal);
            let checked = check_entry(target, refusal, header, &entry, &batch);
            let at = (topics.len(), results.partitions.len());
            let begun = checked.and_then(|partition| {
                let pending = Pending { at, partition, batch };
                let rule = verification.rule_of(&pending.partition, entry.transaction);
                match rule.map_err(|error| PartitionResult::failed(entry.index, error))? {
                    Rule::Known(rule) => appends.append(pending, rule),
                    Rule::Asked(question) => verification.hold(pending, question),
                }
                Ok(())
            });
            // Placeholder until the append is settled.
            let unsettled = || PartitionResult::failed(entry.index, KafkaError::RequestTimedOut);
            results.partitions.push(begun.map_or_else(|result| result, |()| unsettled()));
        }
        topics.push(results);
    }
    let throttle_ms = Client::new(conn, header).produced(ctx, header.bytes);
    let response = respond::ProduceResults { version: header.api_version, throttle_ms, topics };
    if refusal.is_some() {
        return response.once_there_is_room(ctx, &conn.listener);
    }
    let produced = Produced { appends, response, timeout_ms: plan.timeout_ms };
    if verification.is_empty() {
        return produced.respond(ctx, conn);
    }
    let transactional_id = String::from_utf8_lossy(&transactional_id);
    verification.ask(ctx, conn, &transactional_id, produced)
}

fn check_entry(
    target: Result<Arc<Partition>, KafkaError>,
    refusal: Option<KafkaError>,
    header: &Header,
    entry: &Entry,
    records: &[u8],
) -> Result<Arc<Partition>, PartitionResult> {
    let failed = |error| PartitionResult::failed(entry.index, error);
    if let Some(error) = refusal {
        return Err(failed(error));
    }
    // Error precedence: unknown topic or partition, then invalid batch, then not leader.
    if let Err(error @ (KafkaError::UnknownTopicOrPartition | KafkaError::UnknownTopicId)) = target
    {
        return Err(failed(error));
    }
    check_records(header.api_version, records)
        .map_err(|(error, text)| failed(error).with_message(text))?;
    let partition = target.map_err(failed)?;
    if entry.transaction.is_some_and(|batch| !batch.producer_id.is_some()) {
        return Err(failed(KafkaError::InvalidProducerIdMapping));
    }
    Ok(partition)
}

/// Checks that a partition of a produce request has one batch of magic 2. Trailing bytes that do
/// not form a whole batch are ignored (contract/kafka.md#6, #58).
fn check_records(version: i16, records: &[u8]) -> Result<(), (KafkaError, String)> {
    let invalid = |text: &str| (KafkaError::InvalidRecord, text.to_owned());
    let (batch, rest) = match Batch::split_v2(records) {
        Ok(split) => split,
        Err(BatchError::Incomplete { .. }) => {
            return Err(invalid("a partition of a produce request must have one record batch"));
        }
        Err(error) => return Err(malformed(&error)),
    };
    if version < ZSTD_VERSION_MIN && batch.compression().ok() == Some(Compression::Zstd) {
        let text = format!("zstd is not allowed in version {version} of produce requests");
        return Err((KafkaError::UnsupportedCompressionType, text));
    }
    match Batch::split_v2(rest) {
        Err(BatchError::Incomplete { .. }) => Ok(()),
        Ok(_) => Err(invalid("a partition of a produce request must have only one record batch")),
        Err(error) => Err(malformed(&error)),
    }
}

fn malformed(error: &BatchError) -> (KafkaError, String) {
    let kafka_error = match error {
        BatchError::Magic(0 | 1) => KafkaError::InvalidRecord,
        _ => KafkaError::CorruptMessage,
    };
    (kafka_error, error.to_string())
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
