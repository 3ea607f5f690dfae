//! The requests of a fetcher, and the handling of the leader's responses.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pykafka_client::Destination;
use pykafka_record::{LeaderEpoch, batches};
use pykafka_wire::fetch::{
    ForgottenTopic, Partition as WantedPartition, PartitionResponse, ReplicaState, Request,
    Response, Topic,
};
use pykafka_wire::{ApiKey, Records, list_offsets};
use tokio::time::Instant;

use super::{Closed, Ended, Fetcher, PATIENCE, Stage, duration, ended};
use crate::control_api::image::{PartitionId, TOPIC_ID_ZERO, TopicId};
use crate::fetcher::assigned::LASTING_ERRORS;
use crate::fetcher::session::{Ask, Spec};
use crate::kafka_error::KafkaError;
use crate::partition::follower::log::{FetchedRecords, FollowError, Position};

/// First version that identifies topics by id.
const TOPIC_ID_VERSION_MIN: i16 = 13;
/// First version with node id and broker epoch of the replica in one place (KIP-903).
const REPLICA_STATE_VERSION_MIN: i16 = 15;
/// This version has leader epochs, and every leader since Kafka 2.8 supports it.
const LIST_OFFSETS_VERSION: i16 = 6;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

type Names = HashMap<TopicId, Arc<str>>;

impl Fetcher {
    /// The next Fetch; `None` if another one must be created, after an error that is recorded.
    pub(super) fn fetch_request(&mut self, ask: &Ask) -> Option<Bytes> {
        let is_by_name = self.version < TOPIC_ID_VERSION_MIN;
        // By name, a topic that was created again cannot be distinguished from the removed one.
        if is_by_name && !ask.forgotten.is_empty() {
            self.session.lost();
            return None;
        }
        let names = if is_by_name { self.names() } else { Names::new() };
        let mut body = Vec::new();
        match self.request_of(ask, &names).encode(self.version, &mut body) {
            Ok(()) => Some(body.into()),
            Err(error) => {
                self.session.lost();
                self.fetch_failed(&format!("the request cannot be encoded: {error}"));
                None
            }
        }
    }

    fn names(&self) -> Names {
        let name = |(id, assigned): (&PartitionId, &super::Assigned)| {
            (id.0, assigned.partition.topic.clone())
        };
        self.partitions.iter().map(name).collect()
    }

    fn request_of<'a>(&self, ask: &Ask, names: &'a Names) -> Request<'a> {
        let image = self.ctx.image.load();
        let settings = image.settings.replica_fetch;
        let node_id = self.ctx.node_id;
        let registration = image.registrations.get(&node_id);
        let replica_epoch = registration.map_or(-1, |registration| registration.broker_epoch);
        let says_state = self.version >= REPLICA_STATE_VERSION_MIN;
        let replica_state = ReplicaState { replica_id: node_id, replica_epoch };
        let wait_ms = self.wait_max(settings.wait_ms_max).as_millis();
        Request {
            replica_id: if says_state { -1 } else { node_id },
            replica_state: if says_state { replica_state } else { ReplicaState::CONSUMER },
            max_wait_ms: i32::try_from(wait_ms).unwrap_or(i32::MAX),
            min_bytes: settings.bytes_min,
            max_bytes: settings.bytes_max,
            session_id: ask.session_id,
            session_epoch: ask.session_epoch,
            topics: by_topic(ask.wanted.iter().map(|(id, spec)| {
                (id.0, wanted_partition(id.1, spec, settings.partition_bytes_max))
            }))
            .into_iter()
            .map(|(topic_id, partitions)| Topic {
                topic: names.get(&topic_id).map_or("", |name| name),
                topic_id,
                partitions,
            })
            .collect(),
            forgotten_topics_data: by_topic(ask.forgotten.iter().map(|id| (id.0, id.1)))
                .into_iter()
                .map(|(topic_id, partitions)| ForgottenTopic { topic: "", topic_id, partitions })
                .collect(),
            ..Request::default()
        }
    }

    /// Maximum wait at the leader: until the pause of a partition that is not part of the Fetch
    /// ends, and only a short time if the Fetch could not be cancelled for news.
    fn wait_max(&self, wait_ms_max: i32) -> Duration {
        let now = Instant::now();
        let due = self.restless().filter_map(|(_, assigned)| assigned.due(now)).min();
        let has_given_up = now < self.gives_up_from;
        let wait = duration(wait_ms_max).min(if has_given_up { PATIENCE } else { Duration::MAX });
        due.map_or(wait, |due| wait.min(due - now))
    }

    /// Processes a response; may send further requests about its partitions.
    pub(super) async fn handle_response(
        &mut self,
        to: &Destination,
        body: &Bytes,
    ) -> Result<(), Closed> {
        let response = match Response::decode_shared(self.version, body) {
            Ok(response) => response,
            Err(error) => {
                self.session.lost();
                self.client.disconnect(to);
                self.fetch_failed(&format!("its response cannot be read: {error}"));
                return Ok(());
            }
        };
        if response.error_code != 0 {
            self.refused(response.error_code);
            return Ok(());
        }
        self.pause.succeeded();
        self.session.responded(response.session_id);
        self.wait_for_ahead().await?;
        let ids = self.ids_by_name();
        let mut out_of_range = Vec::new();
        for topic in response.responses {
            let named = || ids.get(topic.topic).copied().unwrap_or(TOPIC_ID_ZERO);
            let topic_id = if topic.topic_id == TOPIC_ID_ZERO { named() } else { topic.topic_id };
            for partition in topic.partitions {
                let id = (topic_id, partition.partition_index);
                if let Some(spec) = self.asked(&id) {
                    let code = partition.error_code;
                    if code == KafkaError::OffsetOutOfRange.code() {
                        out_of_range.push(id);
                    } else if code != 0 {
                        self.partition_refused(&id, code);
                    } else {
                        self.handle_partition(id, spec, partition);
                    }
                }
            }
        }
        if out_of_range.is_empty() { Ok(()) } else { self.find_leader(to, out_of_range).await }
    }

    /// Topic ids by name; only needed if responses identify topics by name.
    fn ids_by_name(&self) -> HashMap<Arc<str>, TopicId> {
        if self.version >= TOPIC_ID_VERSION_MIN {
            return HashMap::new();
        }
        self.names().into_iter().map(|(id, name)| (name, id)).collect()
    }

    /// The parameters of a partition in the last request, if they are still current
    /// (contract/replication.md#16).
    fn asked(&self, id: &PartitionId) -> Option<Spec> {
        let standing = self.partitions.get(id)?.standing()?;
        (self.session.told(id) == Some(&standing)).then_some(standing)
    }

    /// Handles an error of the whole Fetch.
    fn refused(&mut self, code: i16) {
        self.session.lost();
        let name = KafkaError::from_code(code).map_or("an unknown error", KafkaError::name);
        self.fetch_failed(&format!("{name} ({code})"));
    }

    fn handle_partition(&mut self, id: PartitionId, spec: Spec, response: PartitionResponse) {
        let Some(assigned) = self.partitions.get_mut(&id) else { return };
        let Spec { leader_epoch, position: standing, .. } = spec;
        let fetch_offset = standing.log_end_offset;
        let diverging = response.diverging_epoch;
        if let Some(epoch) = LeaderEpoch::from_wire(diverging.epoch.max(-1))
            && diverging.end_offset >= 0
        {
            let parting = (epoch, diverging.end_offset);
            return self.work(id, move |partition, writer| {
                let position = partition.truncate_as_follower(leader_epoch, parting, writer)?;
                if position == standing {
                    return Err(FollowError::Refused("the leader's log parts from it".into()));
                }
                Ok(position)
            });
        }
        let is_doubtful = assigned.partition.is_doubtful();
        let records = match response.records {
            Some(Records::Bytes(bytes)) => bytes,
            Some(Records::Room(_)) | None => Bytes::new(),
        };
        let PartitionResponse { high_watermark, log_start_offset, .. } = response;
        assigned.leader_high_watermark = Some(high_watermark);
        let changes_log =
            !records.is_empty() || log_start_offset > standing.log_start_offset || is_doubtful;
        if !changes_log {
            // A partition with refused records gets none while others are served first.
            if !assigned.is_refused {
                assigned.pause.succeeded();
            }
            return assigned.partition.follow_leader(leader_epoch, high_watermark);
        }
        let waits = is_doubtful || assigned.is_slow || assigned.is_refused;
        self.count(&id, records.len());
        let fetched = FetchedRecords { fetch_offset, records, high_watermark, log_start_offset };
        let ahead = if waits { None } else { committed_end(standing, &fetched) };
        self.write(id, fetch_offset, ahead, move |partition, writer| {
            partition.append_as_follower(leader_epoch, &fetched, writer)
        });
    }

    /// Handles an error of one partition.
    fn partition_refused(&mut self, id: &PartitionId, code: i16) {
        let backoff = self.backoff();
        let error = KafkaError::from_code(code);
        let reported_at =
            if error.is_some_and(ends_with_equal_images) { LASTING_ERRORS } else { 1 };
        let name = error.map_or("an unknown error", KafkaError::name);
        let Some(assigned) = self.partitions.get_mut(id) else { return };
        self.restless.insert(*id);
        if error == Some(KafkaError::FencedLeaderEpoch) {
            // The image will contain the newer epoch.
            assigned.stage = Stage::Stopped;
        } else if assigned.pause.failed(backoff) == reported_at {
            self.note(id, &format!("{name} ({code})"));
        }
    }

    /// Requests the bounds of logs whose offset ranges do not contain the fetch offset
    /// (contract/replication.md#22).
    async fn find_leader(&mut self, to: &Destination, ids: Vec<PartitionId>) -> Result<(), Closed> {
        let backoff = self.backoff();
        let starts = self.list_offsets(to, &ids, EARLIEST).await;
        let ends = self.list_offsets(to, &ids, LATEST).await;
        self.take_news()?;
        for id in ids {
            let Some(spec) = self.asked(&id) else { continue };
            if let (Some(&start), Some(&end)) = (starts.get(&id), ends.get(&id)) {
                self.work(id, move |partition, writer| {
                    partition.go_to_leader(spec.leader_epoch, (start, end), writer)
                });
            }
            // Also if the bounds are known now, so that a leader that continues to refuse does not
            // get requests without a pause.
            if let Some(assigned) = self.partitions.get_mut(&id) {
                self.restless.insert(id);
                assigned.pause.failed(backoff);
            }
        }
        Ok(())
    }

    /// The leader's offsets for those of `ids` that it leads in the epoch that is known here.
    async fn list_offsets(
        &mut self,
        to: &Destination,
        ids: &[PartitionId],
        timestamp: i64,
    ) -> HashMap<PartitionId, i64> {
        let names = self.names();
        let wanted = ids.iter().filter_map(|id| {
            let current_leader_epoch = self.partitions.get(id)?.leader_epoch.get();
            let partition_index = id.1;
            Some((
                id.0,
                list_offsets::Partition { partition_index, current_leader_epoch, timestamp },
            ))
        });
        let topics = by_topic(wanted).into_iter().map(|(topic_id, partitions)| {
            let name = names.get(&topic_id).map_or("", |name| name);
            list_offsets::Topic { name, partitions }
        });
        let request = list_offsets::Request {
            replica_id: self.ctx.node_id,
            topics: topics.collect(),
            ..list_offsets::Request::default()
        };
        let mut body = Vec::new();
        if request.encode(LIST_OFFSETS_VERSION, &mut body).is_err() {
            return HashMap::new();
        }
        let response = self.send(to, ApiKey::LIST_OFFSETS, LIST_OFFSETS_VERSION, body.into());
        let Ended::Responded(body) = ended(response.await) else { return HashMap::new() };
        let Ok(response) = list_offsets::Response::decode(LIST_OFFSETS_VERSION, &body) else {
            return HashMap::new();
        };
        let known: HashMap<_, _> = names.iter().map(|(id, name)| (&**name, *id)).collect();
        let mut offsets = HashMap::new();
        for topic in response.topics {
            let Some(topic_id) = known.get(topic.name) else { continue };
            let good = topic.partitions.iter().filter(|found| found.error_code == 0);
            let good = good.filter(|found| found.offset >= 0);
            offsets.extend(good.map(|found| ((*topic_id, found.partition_index), found.offset)));
        }
        offsets
    }
}

/// The position of a log after a response is written, if all of its records, and later ones, are
/// committed.
///
/// It may be sent to the leader before the write: below the leader's high watermark a follower's
/// records do not count, and do not let it join the ISR (contract/replication.md#25).
fn committed_end(position: Position, fetched: &FetchedRecords) -> Option<Position> {
    // Batches are not parsed for a follower that has all committed records.
    if fetched.high_watermark <= position.log_end_offset
        || fetched.log_start_offset > position.log_start_offset
    {
        return None;
    }
    let last = batches(&fetched.records).flatten().last()?;
    let follows = last.next_offset() < fetched.high_watermark
        && last.base_offset() >= position.log_end_offset;
    follows.then(|| Position {
        log_start_offset: position.log_start_offset,
        log_end_offset: last.next_offset(),
        latest_epoch: last.partition_leader_epoch(),
    })
}

/// True if an error ends once the leader has the same image as this node, with a new topic or
/// epoch.
fn ends_with_equal_images(error: KafkaError) -> bool {
    matches!(
        error,
        KafkaError::UnknownTopicId
            | KafkaError::UnknownTopicOrPartition
            | KafkaError::UnknownLeaderEpoch
            | KafkaError::NotLeaderOrFollower
    )
}

fn wanted_partition(index: i32, spec: &Spec, bytes_max: i32) -> WantedPartition {
    let Position { log_start_offset, log_end_offset, latest_epoch } = spec.position;
    WantedPartition {
        partition: index,
        current_leader_epoch: spec.leader_epoch.get(),
        fetch_offset: log_end_offset,
        last_fetched_epoch: latest_epoch.map_or(-1, LeaderEpoch::get),
        log_start_offset,
        // The first partition with records still returns one whole batch.
        partition_max_bytes: if spec.is_one_batch { 1 } else { bytes_max },
        ..WantedPartition::default()
    }
}

fn by_topic<T>(items: impl Iterator<Item = (TopicId, T)>) -> HashMap<TopicId, Vec<T>> {
    let mut topics: HashMap<TopicId, Vec<T>> = HashMap::new();
    for (topic_id, item) in items {
        topics.entry(topic_id).or_default().push(item);
    }
    topics
}

#[cfg(test)]
mod tests {
    use pykafka_record::BatchMut;

    use super::*;
    use crate::testing::batch;

    /// A response with the records 7 and 8 to a log that ends at offset 7.
    fn committed(high_watermark: i64, log_start_offset: i64) -> Option<Position> {
        let position = Position { log_start_offset: 2, log_end_offset: 7, latest_epoch: None };
        let mut records = Vec::new();
        for (base_offset, epoch) in [(7, 1), (8, 3)] {
            let mut one = batch(&["a"]);
            let mut stamped = BatchMut::new(&mut one).unwrap();
            stamped.set_base_offset(base_offset);
            stamped.set_partition_leader_epoch(LeaderEpoch::new(epoch));
            records.extend(one);
        }
        let cut_off = batch(&["b"]);
        records.extend(&cut_off[..cut_off.len() - 1]);
        let fetch_offset = position.log_end_offset;
        let fetched = FetchedRecords {
            fetch_offset,
            records: records.into(),
            high_watermark,
            log_start_offset,
        };
        committed_end(position, &fetched)
    }

    /// contract/replication.md#25.
    #[test]
    fn a_follower_fetches_ahead_only_of_records_committed_without_it() {
        let latest_epoch = Some(LeaderEpoch::new(3));
        let ahead = Position { log_start_offset: 2, log_end_offset: 9, latest_epoch };
        assert_eq!(committed(10, 2), Some(ahead));
        assert_eq!(committed(9, 2), None);
        assert_eq!(committed(8, 2), None);
    }

    /// The write moves the log start offset as well.
    #[test]
    fn a_follower_does_not_fetch_ahead_of_a_log_start_that_moves() {
        assert_eq!(committed(10, 3), None);
    }
}
