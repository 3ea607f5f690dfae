//! A produce request, resolved and owned: the body must be free of borrows when the log stamps batches in it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use pykafka_record::Batch;
use pykafka_wire::produce::Request;
use pykafka_wire::{DecodeError, span_within};

use super::Loaded;
use crate::api::context::Context;
use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::seam::image::{TopicEntry, TopicId};

/// First version that names topics by id.
pub(super) const TOPIC_ID_VERSION_MIN: i16 = 13;

/// A topic as the image knows it, or as the request named it.
#[derive(Debug, Clone)]
pub(super) enum TopicReference {
    Known(Arc<TopicEntry>),
    UnknownName(Arc<str>),
    UnknownId(TopicId),
}

impl TopicReference {
    /// The partition to append to.
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

/// One partition's records: where they lie in the body.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) index: i32,
    pub(super) records: Option<Range<usize>>,
    pub(super) transactional: bool,
}

/// One topic's partitions, at least one, in the request's order.
#[derive(Debug)]
pub(super) struct TopicPlan {
    pub(super) reference: TopicReference,
    pub(super) entries: Vec<Entry>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) acks: i16,
    pub(super) timeout_ms: i32,
    pub(super) topics: Vec<TopicPlan>,
    /// Refuses the request as a whole.
    pub(super) refusal: Option<KafkaError>,
}

impl Plan {
    pub(super) fn decode(
        image: Loaded<'_>,
        version: i16,
        body: &[u8],
    ) -> Result<Plan, DecodeError> {
        let request = Request::decode(version, body)?;
        let mut transactional = false;
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
                    transactional: partition.records.is_some_and(is_transactional),
                })
                .collect();
            transactional |= entries.iter().any(|entry| entry.transactional);
            // A topic named twice is answered once; one topic, the common case, needs no table.
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
        let refusal = (transactional && request.transactional_id.is_none())
            .then_some(KafkaError::TransactionalIdAuthorizationFailed);
        Ok(Plan { acks: request.acks, timeout_ms: request.timeout_ms, topics, refusal })
    }
}

impl Plan {
    /// The records of every entry, in the order of the entries; empty for none.
    pub(super) fn batches(&self, mut body: BytesMut) -> Vec<BytesMut> {
        let entries = self.topics.iter().flat_map(|topic| &topic.entries);
        let spans: Vec<_> = entries.map(|entry| entry.records.clone().unwrap_or(0..0)).collect();
        let mut by_position: Vec<usize> = (0..spans.len()).collect();
        by_position.sort_by_key(|index| spans[*index].start);
        let mut batches = vec![BytesMut::new(); spans.len()];
        let mut position = 0;
        for index in by_position {
            let span = spans[index].clone();
            if !span.is_empty() {
                body.advance(span.start - position);
                batches[index] = body.split_to(span.len());
                position = span.end;
            }
        }
        batches
    }
}

fn is_transactional(records: &[u8]) -> bool {
    Batch::split(records).is_ok_and(|(batch, _)| batch.is_transactional())
}

/// A partition named twice is appended to once, with the later records (contract/kafka.md#61).
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
