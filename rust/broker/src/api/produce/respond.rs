//! The response to a produce request: the result of each partition, and the log's errors as Kafka's
//! error codes.

use std::sync::Arc;

use pykafka_log::{AppendError, AppendInfo};
use pykafka_wire::Chunks;
use pykafka_wire::produce::{PartitionResponse, RecordError, Response, TopicResponse};
use pykafka_wire::structs::{LeaderIdAndEpoch, NodeEndpoint};

use super::plan::{TOPIC_ID_VERSION_MIN, TopicReference};
use crate::api::leader_hint::endpoints_of;
use crate::context::Context;
use crate::control_api::image::Image;
use crate::kafka_error::KafkaError;
use crate::network::outcome::Outcome;
use crate::partition::Partition;
use crate::partition::append::outcome::{AppendOutcome, AppendRefusal};

/// First version whose responses name the current leader (KIP-951).
const LEADER_HINT_VERSION_MIN: i16 = 10;

/// Upper bound of the memory for one result, before and after encoding.
const RESULT_BYTES: usize = 384;

/// The result of the append to one partition.
#[derive(Debug)]
pub(super) struct PartitionResult {
    pub(super) index: i32,
    pub(super) error: KafkaError,
    base_offset: i64,
    log_append_time_ms: i64,
    log_start_offset: i64,
    record_errors: Vec<(i32, String)>,
    message: Option<String>,
}

impl PartitionResult {
    fn appended(index: i32, info: &AppendInfo) -> PartitionResult {
        PartitionResult {
            index,
            error: KafkaError::None,
            base_offset: info.first_offset,
            log_append_time_ms: info.log_append_time_ms,
            log_start_offset: info.log_start_offset,
            record_errors: Vec::new(),
            message: None,
        }
    }

    pub(super) fn failed(index: i32, error: KafkaError) -> PartitionResult {
        PartitionResult {
            index,
            error,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            message: None,
        }
    }

    pub(super) fn with_message(self, message: String) -> PartitionResult {
        PartitionResult { message: Some(message), ..self }
    }

    /// The result of an append that the partition or the log refused.
    fn refused(index: i32, refusal: AppendRefusal, partition: &Partition) -> PartitionResult {
        let error = match &refusal {
            AppendRefusal::Partition(error) => *error,
            AppendRefusal::Log(error) => KafkaError::from(error),
        };
        let mut result = PartitionResult::failed(index, error);
        if tells_log_start(error) {
            result.log_start_offset =
                partition.opened_log().map_or(-1, |log| log.log_start_offset());
        }
        let AppendRefusal::Log(AppendError::Invalid(invalid)) = refusal else { return result };
        if invalid.record_faults().is_empty() {
            return result;
        }
        let message = Some(invalid.to_string());
        let record_errors = (invalid.record_faults().iter())
            .map(|fault| (fault.batch_index, fault.kind.to_string()))
            .collect();
        PartitionResult { record_errors, message, ..result }
    }

    fn encoded(&self, leader: LeaderIdAndEpoch) -> PartitionResponse<'_> {
        PartitionResponse {
            index: self.index,
            error_code: self.error.code(),
            base_offset: self.base_offset,
            log_append_time_ms: self.log_append_time_ms,
            log_start_offset: self.log_start_offset,
            record_errors: (self.record_errors.iter())
                .map(|(batch_index, message)| RecordError {
                    batch_index: *batch_index,
                    batch_index_error_message: Some(message),
                })
                .collect(),
            error_message: self.message.as_deref(),
            current_leader: leader,
        }
    }
}

/// True if the response to a refused append has the log start offset. Kafka omits it for these
/// errors.
fn tells_log_start(error: KafkaError) -> bool {
    !matches!(
        error,
        KafkaError::UnknownTopicOrPartition
            | KafkaError::UnknownTopicId
            | KafkaError::NotLeaderOrFollower
            | KafkaError::MessageTooLarge
            | KafkaError::RecordListTooLarge
            | KafkaError::CorruptMessage
            | KafkaError::KafkaStorageError
    )
}

/// The error code and message of a batch that is not appended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefusedAppend {
    pub(super) error: KafkaError,
    pub(super) message: Option<String>,
}

/// One topic's results, in the request's order.
#[derive(Debug)]
pub(super) struct TopicResults {
    pub(super) reference: TopicReference,
    pub(super) partitions: Vec<PartitionResult>,
}

impl TopicResults {
    pub(super) fn new(reference: TopicReference, count: usize) -> TopicResults {
        TopicResults { reference, partitions: Vec::with_capacity(count) }
    }

    fn encoded(&self, image: &Image, hints: bool, leaders: &mut Vec<i32>) -> TopicResponse<'_> {
        let (name, topic_id): (&str, _) = match &self.reference {
            TopicReference::Known(entry) => (&entry.name, entry.id),
            TopicReference::UnknownName(name) => (name, [0; 16]),
            TopicReference::UnknownId(id) => ("", *id),
        };
        let partitions = (self.partitions.iter())
            .map(|result| {
                let leader = if hints && result.error == KafkaError::NotLeaderOrFollower {
                    crate::api::leader_hint::leader_of(image, &topic_id, result.index)
                } else {
                    LeaderIdAndEpoch::UNKNOWN
                };
                if leader.leader_id >= 0 && !leaders.contains(&leader.leader_id) {
                    leaders.push(leader.leader_id);
                }
                result.encoded(leader)
            })
            .collect();
        TopicResponse { name, topic_id, partitions }
    }
}

/// All results, before encoding.
#[derive(Debug)]
pub(super) struct ProduceResults {
    pub(super) version: i16,
    pub(super) throttle_ms: i32,
    pub(super) topics: Vec<TopicResults>,
}

impl ProduceResults {
    /// Encodes after the memory budget permits it. Only a response with many partitions has to
    /// wait, and its appends are already queued, so they do not wait for it.
    pub(super) fn once_there_is_room(self, ctx: &Arc<Context>, listener: &Arc<str>) -> Outcome {
        let bytes_max =
            self.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>() * RESULT_BYTES;
        if let Some(room) = ctx.network.memory.responses.try_room(bytes_max) {
            return self.encode(&ctx.image.load(), listener).in_room(room);
        }
        let (ctx, listener) = (ctx.clone(), listener.clone());
        Outcome::Pending(Box::pin(async move {
            let room = ctx.network.memory.responses.room(bytes_max, &*ctx.clock).await;
            self.encode(&ctx.image.load(), &listener).in_room(room)
        }))
    }

    fn encode(&self, image: &Image, listener: &Arc<str>) -> Outcome {
        let mut leaders = Vec::new();
        let hints = self.version >= LEADER_HINT_VERSION_MIN;
        let responses =
            self.topics.iter().map(|topic| topic.encoded(image, hints, &mut leaders)).collect();
        let node_endpoints: Vec<NodeEndpoint<'_>> = endpoints_of(image, listener, &leaders);
        let response = Response { responses, throttle_time_ms: self.throttle_ms, node_endpoints };
        let mut chunks = Chunks::new();
        match response.encode(self.version, &mut chunks) {
            Ok(()) => Outcome::Reply(chunks.into()),
            Err(error) => Outcome::Close(format!("cannot answer produce: {error}")),
        }
    }

    /// With acks=0, closing the connection is the only way to report an error
    /// (contract/kafka.md#4).
    pub(super) fn nothing(&self) -> Outcome {
        let failed = (self.topics.iter().flat_map(|topic| &topic.partitions))
            .find(|partition| partition.error != KafkaError::None);
        match failed {
            None => Outcome::NoReply,
            Some(result) => Outcome::Close(format!("produce with acks=0 failed: {}", result.error)),
        }
    }

    /// Records the error of a batch that is not appended.
    pub(super) fn refuse(&mut self, (topic, place): (usize, usize), refused: RefusedAppend) {
        let result = &mut self.topics[topic].partitions[place];
        let failed = PartitionResult::failed(result.index, refused.error);
        *result = PartitionResult { message: refused.message, ..failed };
    }

    /// Records the outcome of the append to `partition`. If the topic was deleted in the meantime,
    /// a client that named it gets `UNKNOWN_TOPIC_OR_PARTITION`.
    pub(super) fn settle(
        &mut self,
        (topic, place): (usize, usize),
        outcome: AppendOutcome,
        partition: &Partition,
    ) {
        let result = &mut self.topics[topic].partitions[place];
        *result = match outcome {
            Ok(info) => PartitionResult::appended(result.index, &info),
            Err(AppendRefusal::Partition(KafkaError::UnknownTopicId))
                if self.version < TOPIC_ID_VERSION_MIN =>
            {
                PartitionResult::failed(result.index, KafkaError::UnknownTopicOrPartition)
            }
            Err(refusal) => PartitionResult::refused(result.index, refusal, partition),
        };
    }
}
