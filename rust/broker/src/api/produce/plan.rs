//! A decoded produce request that owns its data: the log stamps batches in the body, so nothing may
//! borrow from the body.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use pykafka_log::FirstBatch;
use pykafka_record::Batch;
use pykafka_wire::produce::Request;
use pykafka_wire::{DecodeError, span_within};

use crate::context::Context;
use crate::control_api::image::{Image, TopicEntry, TopicId};
use crate::kafka_error::KafkaError;
use crate::partition::Partition;

/// First version that identifies topics by id.
pub(super) const TOPIC_ID_VERSION_MIN: i16 = 13;

/// First version of clients with transaction version 2 (KIP-890): their producer epoch rises with
/// each transaction, and their batches add partitions to the transaction.
pub(super) const ADD_PARTITIONS_VERSION_MIN: i16 = 12;

/// A topic of the image, or an unknown name or id from the request.
#[derive(Debug, Clone)]
pub(super) enum TopicReference {
    Known(Arc<TopicEntry>),
    UnknownName(Arc<str>),
    UnknownId(TopicId),
}

impl TopicReference {
    /// Returns the partition to append to.
    pub(super) fn partition(
        &self,
        ctx: &Context,
        index: i32,
        may_write_internal: bool,
    ) -> Result<Arc<Partition>, KafkaError> {
        let entry = match self {
            TopicReference::UnknownName(_) => return Err(KafkaError::UnknownTopicOrPartition),
            TopicReference::UnknownId(_) => return Err(KafkaError::UnknownTopicId),
            TopicReference::Known(entry) => entry,
        };
        let partition = ctx.partitions.find(entry, index)?;
        if entry.internal && !may_write_internal {
            return Err(KafkaError::InvalidTopicException);
        }
        Ok(partition)
    }
}

/// The byte range of one partition's records in the body.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) index: i32,
    pub(super) records: Option<Range<usize>>,
    /// For a transactional batch: the fields that verification needs if the batch is the first of
    /// its transaction.
    pub(super) transaction: Option<FirstBatch>,
}

/// One topic's partitions, at least one, in the request's order.
#[derive(Debug)]
pub(super) struct TopicPlan {
    pub(super) reference: TopicReference,
    pub(super) entries: Vec<Entry>,
}

/// A decoded request.
#[derive(Debug)]
pub(super) struct ProducePlan {
    pub(super) acks: i16,
    pub(super) timeout_ms: i32,
    /// Byte range of the transactional id in the body; `None` without transactional batches.
    pub(super) transactional_id: Option<Range<usize>>,
    pub(super) topics: Vec<TopicPlan>,
    /// Error for the whole request.
    pub(super) refusal: Option<KafkaError>,
}

impl ProducePlan {
    pub(super) fn decode(
        image: &Image,
        version: i16,
        body: &[u8],
    ) -> Result<ProducePlan, DecodeError> {
        let request = Request::decode(version, body)?;
        let mut producers = Producers::default();
        let mut topics: Vec<TopicPlan> = Vec::with_capacity(request.topics.len());
        let mut places = HashMap::new();
        let named = request.topics.iter().filter(|topic| !topic.partitions.is_empty());
        for topic in named {
            let reference = if version >= TOPIC_ID_VERSION_MIN {
                image
                    .topic_by_id(&topic.topic_id)
                    .filter(|entry| !entry.hidden)
                    .map_or(TopicReference::UnknownId(topic.topic_id), |entry| {
                        TopicReference::Known(entry.clone())
                    })
            } else {
                image.topic(topic.name).filter(|entry| !entry.hidden).map_or_else(
                    || TopicReference::UnknownName(topic.name.into()),
                    |entry| TopicReference::Known(entry.clone()),
                )
            };
            let entries: Vec<Entry> = (topic.partitions.iter())
                .map(|partition| Entry {
                    index: partition.index,
                    records: partition.records.and_then(|records| span_within(body, records)),
                    transaction: partition
                        .records
                        .and_then(|records| transaction_of(version, records)),
                })
                .collect();
            producers.note(&entries);
            // A topic named twice gets one response. A request for one topic, the common case,
            // needs no map.
            let place = match request.topics.len() {
                1 => 0,
                _ => *places.entry((topic.name, topic.topic_id)).or_insert(topics.len()),
            };
            match topics.get_mut(place) {
                Some(known) => known.entries.extend(entries),
                None => topics.push(TopicPlan { reference, entries }),
            }
        }
        for topic in &mut topics {
            topic.entries = last_of_each(std::mem::take(&mut topic.entries));
        }
        let refusal = producers.refusal(request.transactional_id);
        let transactional_id = producers
            .first
            .and(request.transactional_id)
            .and_then(|id| span_within(body, id.as_bytes()));
        let Request { acks, timeout_ms, .. } = request;
        Ok(ProducePlan { acks, timeout_ms, transactional_id, topics, refusal })
    }
}

impl ProducePlan {
    /// True if a batch belongs to a transaction and the request is not refused as a whole.
    pub(super) fn is_transactional(&self) -> bool {
        self.transactional_id.is_some() && self.refusal.is_none()
    }

    /// The partitions of the transactional batches, as far as this broker leads or follows them.
    pub(super) fn transaction_partitions<'a>(
        &'a self,
        ctx: &'a Context,
    ) -> impl Iterator<Item = Arc<Partition>> + 'a {
        let in_topic = move |topic: &'a TopicPlan| {
            let entries = topic.entries.iter().filter(|entry| entry.transaction.is_some());
            let reference = &topic.reference;
            entries.filter_map(move |entry| reference.partition(ctx, entry.index, true).ok())
        };
        self.topics.iter().flat_map(in_topic)
    }

    /// Splits the body into the transactional id and the records of each entry, in the order of the
    /// entries; missing parts are empty.
    pub(super) fn taken_apart(&self, mut body: BytesMut) -> (BytesMut, Vec<BytesMut>) {
        let entries = self.topics.iter().flat_map(|topic| &topic.entries);
        let spans: Vec<_> = entries.map(|entry| entry.records.clone().unwrap_or(0..0)).collect();
        let mut by_position: Vec<usize> = (0..spans.len()).collect();
        by_position.sort_by_key(|index| spans[*index].start);
        let mut batches = vec![BytesMut::new(); spans.len()];
        // The transactional id precedes the records in a request.
        let id = self.transactional_id.clone().unwrap_or(0..0);
        let mut position = id.end;
        let mut transactional_id = body.split_to(id.end);
        transactional_id.advance(id.start);
        for index in by_position {
            let span = spans[index].clone();
            if !span.is_empty() {
                body.advance(span.start - position);
                batches[index] = body.split_to(span.len());
                position = span.end;
            }
        }
        (transactional_id, batches)
    }
}

/// The producers of the transactional batches. A request with more than one producer is refused.
#[derive(Default)]
struct Producers {
    first: Option<FirstBatch>,
    differ: bool,
}

impl Producers {
    fn note(&mut self, entries: &[Entry]) {
        for batch in entries.iter().filter_map(|entry| entry.transaction) {
            let first = self.first.get_or_insert(batch);
            self.differ |= (first.producer_id, first.producer_epoch)
                != (batch.producer_id, batch.producer_epoch);
        }
    }

    fn refusal(&self, transactional_id: Option<&str>) -> Option<KafkaError> {
        self.first?;
        if transactional_id.is_none() {
            return Some(KafkaError::TransactionalIdAuthorizationFailed);
        }
        self.differ.then_some(KafkaError::InvalidProducerIdMapping)
    }
}

fn transaction_of(version: i16, records: &[u8]) -> Option<FirstBatch> {
    let (batch, _) = Batch::split(records).ok()?;
    batch.is_transactional().then(|| FirstBatch {
        producer_id: batch.producer_id(),
        producer_epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
        supports_epoch_bump: version >= ADD_PARTITIONS_VERSION_MIN,
    })
}

/// Keeps one entry for each partition: the last one wins, at the position of the first
/// (contract/kafka.md#61).
fn last_of_each(entries: Vec<Entry>) -> Vec<Entry> {
    if entries.len() < 2 {
        return entries;
    }
    let mut places = HashMap::with_capacity(entries.len());
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        if let Some(&place) = places.get(&entry.index) {
            kept[place] = entry;
        } else {
            places.insert(entry.index, kept.len());
            kept.push(entry);
        }
    }
    kept
}
