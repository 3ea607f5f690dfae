//! Transactions that a produce request begins: their coordinator is asked before anything is appended (KIP-890).
//!
//! A guard is made in each log first, then the control plane is asked once for all partitions of the request; while it
//! decides, the request is held, and nothing of its connection begins behind it. What it refuses is not appended. What it
//! allows is appended under the guard, which a marker that was written meanwhile has taken away. A transaction that is open
//! costs nothing of this.
//!
//! From version 12 on the partitions become part of the transaction (transaction version 2), else they must be so.
//! contract/kafka.md#20.

use std::sync::Arc;

use pykafka_log::{FirstBatch, TransactionRule, VerificationGuard};
use tokio::sync::oneshot;

use super::Produced;
use super::pending::Pending;
use super::plan::{ADD_PARTITIONS_VERSION_MIN, TOPIC_ID_VERSION_MIN};
use super::respond::Refused;
use crate::api::context::{ConnectionInfo, Context, Header, Outcome};
use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::purgatory::Parked;
use crate::seam::event::{Event, Token, VerifyTransaction};
use crate::seam::image::PartitionId;
use crate::seam::settings::Settings;

/// First version whose clients know `TRANSACTION_ABORTABLE`.
const ABORTABLE_VERSION_MIN: i16 = 11;
/// What a coordinator has at least: clients that wait for no replica may say 0.
const TIMEOUT_MS_MIN: i32 = 1_000;

/// How a batch is to be appended.
pub(super) enum Rule {
    Known(TransactionRule),
    /// Once its transaction is verified.
    Asked(Question),
}

/// A transaction that has to be verified, and the guard for it.
pub(super) struct Question {
    batch: FirstBatch,
    guard: VerificationGuard,
}

/// A batch that waits.
struct Held {
    pending: Pending,
    question: Question,
}

/// The batches of a request that begin a transaction.
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

    /// How a batch to `partition` is to be appended.
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

    /// Asks the coordinator, then goes on with the request.
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
            self.settle(produced, codes.as_deref()).answer(&ctx, &conn)
        }))
    }

    /// A topic that is deleted is unknown as the request names it.
    fn named(&self, error: KafkaError) -> KafkaError {
        match error {
            KafkaError::UnknownTopicId if self.version < TOPIC_ID_VERSION_MIN => {
                KafkaError::UnknownTopicOrPartition
            }
            error => error,
        }
    }

    /// Whether the partitions become part of the transaction.
    fn adds(&self) -> bool {
        self.version >= ADD_PARTITIONS_VERSION_MIN
    }

    /// Appends what the coordinator allows; `codes` are its own, in the order of the partitions. One that does not answer is
    /// not available.
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
                    produced.answer.refuse(pending.at, refused);
                }
            }
        }
        produced
    }

    /// Begins a question to the coordinator.
    fn open(&self, ctx: &Arc<Context>, transactional_id: &str) -> Asked {
        let (token, verdict) = ctx.verifications.open();
        let asked = Asked { ctx: ctx.clone(), token, verdict };
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
    /// Waits for a time of the clock, or for the end of the broker.
    async fn passed(&self, deadline_ns: u64) {
        let parked = Parked::new(0);
        let _parking = self.purgatory.park(&parked, deadline_ns, 0);
        while !parked.is_expired() {
            parked.wait().await;
        }
    }
}

/// A question that Python has not answered. Dropping it withdraws it.
struct Asked {
    ctx: Arc<Context>,
    token: Token,
    verdict: oneshot::Receiver<Vec<i16>>,
}

impl Asked {
    /// `None` if nobody answers until the deadline.
    async fn decided(mut self, deadline_ns: u64) -> Option<Vec<i16>> {
        let ctx = self.ctx.clone();
        tokio::select! {
            biased;
            verdict = &mut self.verdict => verdict.ok(),
            () = ctx.passed(deadline_ns) => None,
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.ctx.verifications.cancel(self.token) {
            self.ctx.events.cancel_verification(self.token);
        }
    }
}

/// One error for each of `count` partitions.
fn errors_of(codes: &[i16], count: usize) -> Vec<KafkaError> {
    let unknown = KafkaError::UnknownServerError;
    let errors = codes.iter().map(|code| KafkaError::from_code(*code).unwrap_or(unknown));
    errors.chain(std::iter::repeat(unknown)).take(count).collect()
}

/// Whether the coordinator knows nothing of the producer: then nothing will come of its guard.
fn is_unknown(error: KafkaError) -> bool {
    matches!(error, KafkaError::InvalidProducerIdMapping | KafkaError::TransactionalIdNotFound)
}

/// What a client of this version is told of the coordinator's answer; `None` if the batch may be appended.
fn refusal(error: KafkaError, version: i16) -> Option<Refused> {
    use KafkaError as E;
    let told = match error {
        E::None => return None,
        E::ProducerFenced => E::InvalidProducerEpoch,
        E::TransactionAbortable if version < ABORTABLE_VERSION_MIN => E::InvalidTxnState,
        E::ConcurrentTransactions if version >= ADD_PARTITIONS_VERSION_MIN => error,
        // Clients retry these for their own coordinators only; a lack of replicas they all do, without a look at the metadata.
        E::ConcurrentTransactions
        | E::NetworkException
        | E::CoordinatorLoadInProgress
        | E::CoordinatorNotAvailable
        | E::NotCoordinator => E::NotEnoughReplicas,
        other => other,
    };
    let message = match told {
        E::NotEnoughReplicas => Some(format!("the transaction could not be verified: {error}")),
        E::InvalidTxnState => Some("the partition is not part of the transaction".to_owned()),
        _ => None,
    };
    Some(Refused { error: told, message })
}

#[cfg(test)]
mod tests;
