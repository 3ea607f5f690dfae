//! The response to a fetch, without the partitions that its session allows to omit.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_log::FetchedRecords;
use pykafka_wire::fetch::{
    AbortedTransaction, EpochEndOffset, PartitionResponse, Request, Response, SnapshotId,
    TopicResponse,
};
use pykafka_wire::structs::LeaderIdAndEpoch;
use pykafka_wire::{Chunks, Records};

use super::limits::Limits;
use super::target::{Fetched, Found, SessionUse, Target, Targets};
use crate::api::fetch_session::{FetchedState, SESSION_NONE, TopicKey};
use crate::api::leader_hint::{endpoints_of, leader_of};
use crate::api::quota::Client;
use crate::api::{PARTITIONS_AT_ONCE_MAX, replication_throttle};
use crate::context::Context;
use crate::control_api::settings::Side;
use crate::kafka_error::KafkaError;
use crate::network::outcome::Outcome;
use crate::network::reply::{Reply, StoredRecords};
use crate::partition::follower_fetch::Replica;
use crate::partition::log::read::Read;

/// First version whose responses name the current leader (KIP-951).
const LEADER_HINT_VERSION_MIN: i16 = 16;
/// First version with only an error for the whole request, and not for each partition.
const TOP_LEVEL_ERROR_ONLY_VERSION_MIN: i16 = 13;

/// Rejects a whole request: in the top-level error code, and before version 13 for each partition
/// too.
pub(super) fn refuse(version: i16, request: &Request<'_>, error: KafkaError) -> Outcome {
    let named = version < TOP_LEVEL_ERROR_ONLY_VERSION_MIN;
    let topics = if named { request.topics.as_slice() } else { &[] };
    let responses = (topics.iter())
        .map(|topic| TopicResponse {
            topic: topic.topic,
            topic_id: topic.topic_id,
            partitions: (topic.partitions.iter())
                .map(|partition| refused(partition.partition, error))
                .collect(),
        })
        .collect();
    let response = Response {
        throttle_time_ms: 0,
        error_code: error.code(),
        session_id: SESSION_NONE,
        responses,
        node_endpoints: Vec::new(),
    };
    encode(version, &response, Vec::new())
}

fn failed(index: i32, error: KafkaError, current_leader: LeaderIdAndEpoch) -> PartitionResponse {
    PartitionResponse {
        partition_index: index,
        error_code: error.code(),
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        diverging_epoch: EpochEndOffset::NONE,
        current_leader,
        snapshot_id: SnapshotId::NONE,
        aborted_transactions: None,
        preferred_read_replica: -1,
        records: Some(Records::Bytes(Bytes::new())),
    }
}

/// A partition that failed before its log was read. Kafka's response then has an empty list of
/// aborted transactions; after an error of the log it has a null list.
fn refused(index: i32, error: KafkaError) -> PartitionResponse {
    PartitionResponse {
        aborted_transactions: Some(Vec::new()),
        ..failed(index, error, LeaderIdAndEpoch::UNKNOWN)
    }
}

/// Encodes the response; `slices` fill its gaps.
fn encode(version: i16, response: &Response<'_>, slices: Vec<StoredRecords>) -> Outcome {
    let mut chunks = Chunks::new();
    match response.encode(version, &mut chunks) {
        Ok(()) => Outcome::Reply(Reply::new(chunks, slices)),
        Err(error) => Outcome::Close(format!("cannot answer fetch: {error}")),
    }
}

/// Everything that is needed to respond, now or later.
pub(super) struct PendingFetch {
    pub(super) ctx: Arc<Context>,
    pub(super) client: Client,
    /// Set if a replica sent the request.
    pub(super) replica: Option<Replica>,
    pub(super) limits: Limits,
    pub(super) targets: Targets,
}

impl PendingFetch {
    /// True if the request has too many partitions to read them on a network thread.
    pub(super) fn is_long(&self) -> bool {
        self.targets.list.len() > PARTITIONS_AT_ONCE_MAX
    }

    /// Records a follower's progress in the leaders. This must happen once per request.
    pub(super) fn booked(mut self) -> PendingFetch {
        if let Some(replica) = &self.replica {
            self.targets.book(&self.limits, replica);
        }
        self
    }

    /// Reads all targets within the limits; see [`Targets::read`].
    pub(super) fn read(&self, memory_max: usize) -> Found {
        self.targets.read(&self.limits, memory_max, self.holds_back())
    }

    /// True if throttled partitions are held back from followers that are not in sync.
    fn holds_back(&self) -> bool {
        let is_throttled = self.replica.is_some() && self.targets.has_throttled;
        is_throttled && {
            let image = self.ctx.image.load();
            replication_throttle::held_back(&self.ctx, &image.settings, Side::Leader).is_some()
        }
    }

    /// Counts the records of throttled partitions that a follower gets.
    fn count_replicated(&self, fetched: &[Fetched]) {
        if self.replica.is_some() && self.targets.has_throttled {
            let bytes = self.targets.throttled_bytes(fetched);
            let image = self.ctx.image.load();
            replication_throttle::record(&self.ctx, &image.settings, Side::Leader, bytes);
        }
    }

    /// Records the results in the session, omits the partitions that it allows to omit, and
    /// encodes.
    pub(super) fn encode(mut self, fetched: &[Fetched]) -> Outcome {
        let throttle_ms = match self.replica {
            Some(_) => 0,
            None => self.client.fetched(&self.ctx, records_bytes(fetched)),
        };
        if throttle_ms > 0 {
            return self.throttled(throttle_ms);
        }
        self.count_replicated(fetched);
        let (session_id, told) = self.tell_session(fetched);
        let image = self.ctx.image.load();
        let mut leaders: Vec<i32> = Vec::new();
        let mut responses: Vec<TopicResponse<'_>> = Vec::new();
        let mut last_topic: Option<&TopicKey> = None;
        let mut slices = Vec::new();
        for ((target, fetched), told) in self.targets.list.iter().zip(fetched).zip(told) {
            if !told {
                continue;
            }
            let leader = match fetched {
                Err(KafkaError::NotLeaderOrFollower | KafkaError::FencedLeaderEpoch)
                    if self.limits.version >= LEADER_HINT_VERSION_MIN =>
                {
                    leader_of(&image, &target.topic_id, target.key.index)
                }
                _ => LeaderIdAndEpoch::UNKNOWN,
            };
            if leader.leader_id >= 0 && !leaders.contains(&leader.leader_id) {
                leaders.push(leader.leader_id);
            }
            if last_topic != Some(&target.key.topic) {
                responses.push(topic_response(target));
                last_topic = Some(&target.key.topic);
            }
            if let (Ok(Read { records: FetchedRecords::Slice(slice), .. }), Ok(partition)) =
                (fetched, &target.partition)
            {
                slices.push(StoredRecords { slice: slice.clone(), failures: partition.clone() });
            }
            let partition = partition_response(target.key.index, fetched, leader);
            if let Some(topic) = responses.last_mut() {
                topic.partitions.push(partition);
            }
        }
        let node_endpoints = endpoints_of(&image, &self.client.conn.listener, &leaders);
        let response =
            Response { throttle_time_ms: 0, error_code: 0, session_id, responses, node_endpoints };
        encode(self.limits.version, &response, slices)
    }

    /// An empty response, because of the client's quota. An existing session does not change; no
    /// new one is granted.
    fn throttled(&self, throttle_time_ms: i32) -> Outcome {
        let session_id = match &self.targets.session {
            SessionUse::None | SessionUse::New(_) => SESSION_NONE,
            SessionUse::Continued(id, _) => *id,
        };
        let response = Response {
            throttle_time_ms,
            error_code: 0,
            session_id,
            responses: Vec::new(),
            node_endpoints: Vec::new(),
        };
        encode(self.limits.version, &response, Vec::new())
    }
}

fn records_bytes(fetched: &[Fetched]) -> usize {
    fetched.iter().flatten().map(|read| read.records.len()).sum()
}

impl PendingFetch {
    /// Returns the session id, and for each partition whether the response has it: only a continued
    /// session omits partitions.
    fn tell_session(&mut self, fetched: &[Fetched]) -> (i32, Vec<bool>) {
        let answered = || self.targets.list.iter().map(|target| &target.key).zip(fetched);
        match std::mem::replace(&mut self.targets.session, SessionUse::None) {
            SessionUse::None => (SESSION_NONE, vec![true; fetched.len()]),
            SessionUse::New(mut session) => {
                for (key, fetched) in answered() {
                    session.record(key, state_of(fetched));
                }
                let slots = self.ctx.image.load().settings.fetch_session_slots;
                let now_ns = self.ctx.clock.now_ns();
                let id = self.ctx.fetch_sessions.insert(*session, slots, now_ns);
                (id, vec![true; fetched.len()])
            }
            SessionUse::Continued(id, shared) => {
                let mut session = shared.lock();
                let told = answered()
                    .map(|(key, fetched)| session.record(key, state_of(fetched)))
                    .collect();
                (id, told)
            }
        }
    }
}

fn state_of(fetched: &Fetched) -> FetchedState {
    match fetched {
        Ok(read) => FetchedState {
            high_watermark: read.offsets.high_watermark,
            log_start_offset: read.offsets.log_start_offset,
            has_records: !read.records.is_empty(),
            must_tell: read.diverging.is_some() || read.preferred_replica.is_some(),
        },
        Err(_) => FetchedState {
            high_watermark: -1,
            log_start_offset: -1,
            has_records: false,
            must_tell: true,
        },
    }
}

fn topic_response(target: &Target) -> TopicResponse<'_> {
    match &target.key.topic {
        TopicKey::Name(name) => {
            TopicResponse { topic: name, topic_id: [0; 16], partitions: Vec::new() }
        }
        TopicKey::Id(id) => TopicResponse { topic: "", topic_id: *id, partitions: Vec::new() },
    }
}

fn partition_response(
    index: i32,
    fetched: &Fetched,
    leader: LeaderIdAndEpoch,
) -> PartitionResponse {
    let read = match fetched {
        Err(error @ (KafkaError::UnknownTopicOrPartition | KafkaError::UnknownTopicId)) => {
            return refused(index, *error);
        }
        Err(error) => return failed(index, *error, leader),
        Ok(read) => read,
    };
    let diverging_epoch = read.diverging.map_or(EpochEndOffset::NONE, |(epoch, end_offset)| {
        EpochEndOffset { epoch: epoch.get(), end_offset }
    });
    PartitionResponse {
        partition_index: index,
        error_code: 0,
        high_watermark: read.offsets.high_watermark,
        last_stable_offset: read.offsets.last_stable_offset,
        log_start_offset: read.offsets.log_start_offset,
        diverging_epoch,
        current_leader: leader,
        snapshot_id: SnapshotId::NONE,
        aborted_transactions: read.aborted.as_ref().map(|aborted| {
            (aborted.iter())
                .map(|txn| AbortedTransaction {
                    producer_id: txn.producer_id.get(),
                    first_offset: txn.first_offset,
                })
                .collect()
        }),
        preferred_read_replica: read.preferred_replica.unwrap_or(-1),
        records: Some(match &read.records {
            FetchedRecords::Read(bytes) => Records::Bytes(bytes.clone()),
            FetchedRecords::Slice(slice) => Records::Room(slice.len()),
        }),
    }
}
