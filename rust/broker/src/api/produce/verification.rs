//! Verifies transactions (KIP-890): the coordinator is asked before the first batch of a
//! transaction is appended.
//!
//! A verification guard is created in each log first. Then one event asks the control plane about
//! all partitions of the request. Until it decides, the request is held, and no later request of
//! the connection starts. Refused batches are not appended. Allowed batches are appended with
//! the guard, which is invalid if a marker was written in the meantime. Batches of an open
//! transaction skip all of this.
//!
//! From version 12 on, the coordinator adds the partitions to the transaction (transaction version
//! 2); before, they must be part of it already.
//! contract/kafka.md#20.

use std::sync::Arc;

use pykafka_log::{FirstBatch, TransactionRule, VerificationGuard};
use tokio::sync::oneshot;

use super::pending::{Pending, Produced};
use super::plan::{ADD_PARTITIONS_VERSION_MIN, TOPIC_ID_VERSION_MIN};
use super::respond::RefusedAppend;
use crate::context::Context;
use crate::control_api::event::{Event, Token, VerifyTransaction};
use crate::control_api::image::PartitionId;
use crate::control_api::settings::Settings;
use crate::kafka_error::KafkaError;
use crate::network::outcome::Outcome;
use crate::partition::Partition;
use crate::partition::purgatory::Parked;
use crate::request::{ConnectionInfo, Header};

/// First version whose clients support `TRANSACTION_ABORTABLE`.
const ABORTABLE_VERSION_MIN: i16 = 11;
/// Minimum timeout for the coordinator; clients that do not wait for replicas may send 0.
const TIMEOUT_MS_MIN: i32 = 1_000;

/// The transaction rule of a batch.
pub(super) enum Rule {
    Known(TransactionRule),
    /// Known after its transaction is verified.
    Asked(Question),
}

/// A transaction to verify, and the guard for it.
pub(super) struct Question {
    batch: FirstBatch,
    guard: VerificationGuard,
}

/// A batch that waits for its verification.
struct Held {
    pending: Pending,
    question: Question,
}

/// The batches of a request that start a transaction.
pub(super) struct Verification {
    version: i16,
    received_ns: u64,
    settings: Arc<Settings>,
    held: Vec<Held>,
}

impl Verification {
    pub(super) fn new(ctx: &Context, header: &Header) -> Verification {
        let Header { api_version: version, received_ns, .. } = *header;
        let settings = ctx.image.load().settings.clone();
        Verification { version, received_ns, settings, held: Vec::new() }
    }

    /// Returns the rule for a batch to `partition`, or creates a guard if the transaction needs
    /// verification.
    pub(super) fn rule_of(
        &self,
        partition: &Partition,
        transaction: Option<FirstBatch>,
    ) -> Result<Rule, KafkaError> {
        let is_required = self.settings.transaction_verification_enable;
        let Some(batch) = transaction else { return Ok(Rule::Known(TransactionRule::Vouched)) };
        if !is_required && !self.adds() {
            return Ok(Rule::Known(TransactionRule::Vouched));
        }
        match partition.begin_verification(&batch).map_err(|error| self.named(error))? {
            Some(guard) => Ok(Rule::Asked(Question { batch, guard })),
            None => Ok(Rule::Known(rule(&self.settings, None))),
        }
    }

    pub(super) fn hold(&mut self, pending: Pending, question: Question) {
        self.held.push(Held { pending, question });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Asks the coordinator, then continues the request.
    pub(super) fn ask(
        self,
        ctx: &Arc<Context>,
        conn: &ConnectionInfo,
        transactional_id: &str,
        produced: Produced,
    ) -> Outcome {
        let (ctx, conn) = (ctx.clone(), conn.clone());
        let timeout_ms = u64::try_from(produced.timeout_ms.max(TIMEOUT_MS_MIN)).unwrap_or(0);
        let deadline_ns = ctx.clock.now_ns().saturating_add(timeout_ms * 1_000_000);
        let asked = self.open(&ctx, transactional_id);
        Outcome::Held(Box::pin(async move {
            let codes = asked.decided(deadline_ns).await;
            self.settle(produced, codes.as_deref()).respond(&ctx, &conn)
        }))
    }

    /// A client that named a deleted topic gets `UNKNOWN_TOPIC_OR_PARTITION`.
    fn named(&self, error: KafkaError) -> KafkaError {
        match error {
            KafkaError::UnknownTopicId if self.version < TOPIC_ID_VERSION_MIN => {
                KafkaError::UnknownTopicOrPartition
            }
            error => error,
        }
    }

    /// True if the coordinator adds the partitions to the transaction.
    fn adds(&self) -> bool {
        self.version >= ADD_PARTITIONS_VERSION_MIN
    }

    /// Appends the batches that the coordinator allows. `codes` are its error codes in the order of
    /// the partitions; `None`, no decision in time, is `COORDINATOR_NOT_AVAILABLE`.
    fn settle(self, mut produced: Produced, codes: Option<&[i16]>) -> Produced {
        let count = self.held.len();
        let codes = codes.map_or(vec![KafkaError::CoordinatorNotAvailable; count], |codes| {
            errors_of(codes, count)
        });
        let Verification { version, settings, held, .. } = self;
        for (Held { pending, question }, code) in held.into_iter().zip(codes) {
            match refusal(code, version) {
                None => produced.appends.append(pending, rule(&settings, Some(question.guard))),
                Some(refused) => {
                    if is_unknown(code) {
                        let Question { batch, guard } = question;
                        pending.partition.abandon_verification(batch.producer_id, guard);
                    }
                    produced.response.refuse(pending.at, refused);
                }
            }
        }
        produced
    }

    /// Sends a question to the coordinator.
    fn open(&self, ctx: &Arc<Context>, transactional_id: &str) -> VerificationRequest {
        let (token, verdict) = ctx.verifications.open();
        let asked = VerificationRequest { ctx: ctx.clone(), token, verdict };
        if ctx.is_stopping() {
            ctx.verifications.cancel(token);
            return asked;
        }
        let batch = &self.held.first().expect("it asks for a batch that it holds").question.batch;
        ctx.events.push(Event::VerifyTransaction(Box::new(VerifyTransaction {
            token,
            transactional_id: Arc::from(transactional_id),
            producer_id: batch.producer_id,
            producer_epoch: batch.producer_epoch,
            partitions: self.partitions(),
            add: self.adds(),
            received_ns: self.received_ns,
        })));
        asked
    }

    fn partitions(&self) -> Vec<PartitionId> {
        let partitions = self.held.iter().map(|held| &held.pending.partition);
        partitions.map(|partition| (partition.topic_id, partition.index)).collect()
    }
}

fn rule(settings: &Settings, guard: Option<VerificationGuard>) -> TransactionRule {
    if settings.transaction_verification_enable {
        TransactionRule::Verified(guard)
    } else {
        TransactionRule::Vouched
    }
}

impl Context {
    /// Waits until the clock reaches `deadline_ns`, or until the broker stops.
    async fn passed(&self, deadline_ns: u64) {
        let parked = Parked::new(0);
        let _parking = self.purgatory.park(&parked, deadline_ns, 0);
        while !parked.is_expired() {
            parked.wait().await;
        }
    }
}

/// A question that Python has not decided. Dropping it withdraws the question.
struct VerificationRequest {
    ctx: Arc<Context>,
    token: Token,
    verdict: oneshot::Receiver<Vec<i16>>,
}

impl VerificationRequest {
    /// Returns `None` without a decision before the deadline.
    async fn decided(mut self, deadline_ns: u64) -> Option<Vec<i16>> {
        let ctx = self.ctx.clone();
        tokio::select! {
            biased;
            verdict = &mut self.verdict => verdict.ok(),
            () = ctx.passed(deadline_ns) => None,
        }
    }
}

impl Drop for VerificationRequest {
    fn drop(&mut self) {
        if self.ctx.verifications.cancel(self.token) {
            self.ctx.events.cancel_verification(self.token);
        }
    }
}

/// Converts the codes to errors, one for each of `count` partitions.
fn errors_of(codes: &[i16], count: usize) -> Vec<KafkaError> {
    let unknown = KafkaError::UnknownServerError;
    let errors = codes.iter().map(|code| KafkaError::from_code(*code).unwrap_or(unknown));
    errors.chain(std::iter::repeat(unknown)).take(count).collect()
}

/// True if the coordinator does not know the producer; the guard will not be used.
fn is_unknown(error: KafkaError) -> bool {
    matches!(error, KafkaError::InvalidProducerIdMapping | KafkaError::TransactionalIdNotFound)
}

/// Maps the coordinator's error to the one for a client of this version; `None` if the batch may be
/// appended.
fn refusal(error: KafkaError, version: i16) -> Option<RefusedAppend> {
    use KafkaError as E;
    let returned = match error {
        E::None => return None,
        E::ProducerFenced => E::InvalidProducerEpoch,
        E::TransactionAbortable if version < ABORTABLE_VERSION_MIN => E::InvalidTxnState,
        E::ConcurrentTransactions if version >= ADD_PARTITIONS_VERSION_MIN => error,
        // Clients retry these errors only for requests to their own coordinators. They retry
        // NOT_ENOUGH_REPLICAS always, without a metadata update.
        E::ConcurrentTransactions
        | E::NetworkException
        | E::CoordinatorLoadInProgress
        | E::CoordinatorNotAvailable
        | E::NotCoordinator => E::NotEnoughReplicas,
        other => other,
    };
    let message = match returned {
        E::NotEnoughReplicas => Some(format!("the transaction could not be verified: {error}")),
        E::InvalidTxnState => Some("the partition is not part of the transaction".to_owned()),
        _ => None,
    };
    Some(RefusedAppend { error: returned, message })
}

#[cfg(test)]
mod tests;
