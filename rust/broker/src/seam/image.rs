//! The projection: what the data plane knows of the metadata, immutable and swapped whole.
//!
//! Python owns the truth (committed metadata records) and sends steps, [`ImageDelta`]. A request loads one image and answers
//! from it alone, so an answer is never made of two steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use pykafka_log::{ConfigError, LogConfig};

use crate::seam::shared::{Indexed, Pages, Shards};

use crate::seam::settings::{SettingError, Settings};

/// Sixteen bytes, as on the wire.
pub type TopicId = [u8; 16];
/// What a command names (docs/SEAM.md S3).
pub type PartitionId = (TopicId, i32);
/// The id of no topic.
pub const TOPIC_ID_ZERO: TopicId = [0; 16];

/// A live broker's endpoint at one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// Which broker.
    pub node_id: i32,
    /// Name of the listener.
    pub listener: Arc<str>,
    /// As advertised.
    pub host: Arc<str>,
    /// As advertised.
    pub port: u16,
    /// `broker.rack`.
    pub rack: Option<Arc<str>>,
    /// Of its registration, -1 if not known.
    pub broker_epoch: i64,
}

/// A partition as decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionEntry {
    /// Index.
    pub index: i32,
    /// Node id, -1 for none.
    pub leader: i32,
    /// Grows with every change of leader.
    pub leader_epoch: i32,
    /// Grows with every change.
    pub partition_epoch: i32,
    /// In assignment order.
    pub replicas: Vec<i32>,
    /// Committed.
    pub isr: Vec<i32>,
    /// Eligible leader replicas (KIP-966).
    pub elr: Vec<i32>,
    /// See KIP-966.
    pub last_known_elr: Vec<i32>,
}

/// A topic as decided.
#[derive(Debug, Clone)]
pub struct TopicEntry {
    /// Kafka's rules hold; Python checked them.
    pub name: Arc<str>,
    /// Never zero.
    pub id: TopicId,
    /// One of Kafka's own topics.
    pub internal: bool,
    /// Served to the seam alone: `__cluster_metadata`.
    pub hidden: bool,
    /// By ascending index.
    pub partitions: Pages<PartitionEntry>,
    /// Settings of the topic that differ from the broker's defaults, by Kafka's names.
    pub overrides: BTreeMap<String, String>,
    /// Effective: the broker's defaults with the overrides.
    pub config: Arc<LogConfig>,
}

impl TopicEntry {
    /// The entry of a partition.
    pub fn partition(&self, index: i32) -> Option<&PartitionEntry> {
        self.partitions.get(index)
    }
}

impl Indexed for PartitionEntry {
    fn index(&self) -> i32 {
        self.index
    }
}

/// A topic of a delta: new, replaced whole, or with some partitions added or replaced.
#[derive(Debug, Clone, Default)]
pub struct TopicImage {
    /// As in [`TopicEntry`].
    pub name: String,
    /// As in [`TopicEntry`].
    pub topic_id: TopicId,
    /// In any order.
    pub partitions: Vec<PartitionEntry>,
    /// As in [`TopicEntry`].
    pub overrides: BTreeMap<String, String>,
    /// As in [`TopicEntry`].
    pub internal: bool,
    /// As in [`TopicEntry`].
    pub hidden: bool,
    /// Whether the topic's other partitions stay as they are.
    pub partial: bool,
}

/// Finalized features: their epoch, and level by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinalizedFeatures {
    /// Metadata offset at which they were finalized; -1 for never.
    pub epoch: i64,
    /// By name.
    pub levels: BTreeMap<String, i16>,
}

/// One committed metadata step. `None` leaves a part as it was.
#[derive(Debug, Clone, Default)]
pub struct ImageDelta {
    /// Last offset of the step.
    pub metadata_offset: i64,
    /// Every live broker's endpoints, replaced whole.
    pub brokers: Option<Vec<BrokerEndpoint>>,
    /// Named by Metadata.
    pub controller_id: Option<i32>,
    /// Created or changed.
    pub topics: Vec<TopicImage>,
    /// Deletes come before creates.
    pub deleted: Vec<TopicId>,
    /// Effective broker-level defaults of every topic setting, by topic-level name.
    pub log_defaults: Option<BTreeMap<String, String>>,
    /// Effective broker settings.
    pub broker_settings: Option<BTreeMap<String, String>>,
    /// What `ApiVersions` says.
    pub finalized_features: Option<FinalizedFeatures>,
    /// Version ranges of the APIs that Python answers.
    pub api_versions: Option<BTreeMap<i16, (i16, i16)>>,
    /// What `ApiVersions` says.
    pub supported_features: Option<BTreeMap<String, (i16, i16)>>,
}

/// A part of a delta that cannot be carried out; it leaves what was there, or the default.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Of the defaults or of a topic.
    #[error("settings of {of}: {source}")]
    Config {
        /// `defaults`, or the topic's name.
        of: String,
        /// What is wrong.
        source: ConfigError,
    },
    /// Of the broker.
    #[error(transparent)]
    Setting(SettingError),
    /// Two topics of one name.
    #[error("topic {name} exists with another id")]
    NameTaken {
        /// Of both.
        name: String,
    },
}

/// The projection after one step.
#[derive(Debug, Clone)]
pub struct Image {
    /// Of the last step; -1 before the first.
    pub metadata_offset: i64,
    /// Live brokers, an entry for each listener.
    pub brokers: Arc<[BrokerEndpoint]>,
    /// Node id, -1 if not known.
    pub controller_id: i32,
    /// Effective broker-level defaults.
    pub log_defaults: Arc<LogConfig>,
    /// What the broker's durability alone says; `log_defaults` stand on it.
    durability_defaults: Arc<LogConfig>,
    /// Effective broker settings.
    pub settings: Arc<Settings>,
    /// What `ApiVersions` says.
    pub finalized_features: Arc<FinalizedFeatures>,
    /// What `ApiVersions` says.
    pub supported_features: Arc<BTreeMap<String, (i16, i16)>>,
    /// Version ranges of the APIs that Python answers, and narrower ranges of ours.
    pub api_versions: Arc<BTreeMap<i16, (i16, i16)>>,
    by_name: Shards<Arc<str>, Arc<TopicEntry>>,
    by_id: Shards<TopicId, Arc<TopicEntry>>,
}

/// The image after a delta, and what the partitions must hear of it.
#[derive(Debug)]
pub struct Step {
    /// Not yet visible to requests.
    pub image: Image,
    /// Topics that are new, replaced, or of which the effective settings changed.
    pub changed: Vec<Changed>,
    /// Topics that are gone.
    pub deleted: Vec<TopicId>,
    /// What [`Image::check`] says of the delta.
    pub refusals: Vec<Refusal>,
}

/// A topic that changed.
#[derive(Debug, Clone)]
pub struct Changed {
    /// As it is now.
    pub topic: Arc<TopicEntry>,
    /// Indexes of the partitions that changed; `None` for all of them.
    pub partitions: Option<Vec<i32>>,
}

impl Changed {
    fn whole(topic: Arc<TopicEntry>) -> Changed {
        Changed { topic, partitions: None }
    }

    /// Both changes of one topic as one: the topic as `later` has it, and the partitions that either changed.
    fn followed_by(self, later: Changed) -> Changed {
        let partitions = match (self.partitions, later.partitions) {
            (Some(earlier), Some(later)) => Some([earlier, later].concat()),
            _ => None,
        };
        Changed { topic: later.topic, partitions }
    }

    /// The partitions that changed.
    pub fn entries(&self) -> impl Iterator<Item = &PartitionEntry> {
        let some = self.partitions.iter().flatten();
        let all = self.partitions.is_none().then(|| self.topic.partitions.iter());
        some.filter_map(|&index| self.topic.partition(index)).chain(all.into_iter().flatten())
    }
}

impl Image {
    /// Before the first step; `log_defaults` hold until Python sends its own.
    pub fn empty(log_defaults: LogConfig) -> Image {
        let log_defaults = Arc::new(log_defaults);
        Image {
            durability_defaults: log_defaults.clone(),
            metadata_offset: -1,
            brokers: Arc::new([]),
            controller_id: -1,
            log_defaults,
            settings: Arc::new(Settings::default()),
            finalized_features: Arc::new(FinalizedFeatures { epoch: -1, levels: BTreeMap::new() }),
            supported_features: Arc::default(),
            api_versions: Arc::default(),
            by_name: Shards::default(),
            by_id: Shards::default(),
        }
    }

    /// A topic by name, hidden ones too.
    #[inline]
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicEntry>> {
        self.by_name.get(name)
    }

    /// A topic by id, hidden ones too.
    #[inline]
    pub fn topic_by_id(&self, id: &TopicId) -> Option<&Arc<TopicEntry>> {
        self.by_id.get(id)
    }

    /// All topics, hidden ones too, in no order.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicEntry>> {
        self.by_name.values()
    }

    /// What of `delta` cannot be carried out. Costs what the delta holds, whatever the image holds.
    pub fn check(&self, delta: &ImageDelta) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        if let Some(values) = &delta.broker_settings {
            settings(values, &mut refusals);
        }
        if let Some(values) = &delta.log_defaults {
            config(&self.durability_defaults, values, "defaults", &mut refusals);
        }
        for topic in &delta.topics {
            config(&self.log_defaults, &topic.overrides, &topic.name, &mut refusals);
            let taken = self.topic(&topic.name).filter(|taken| taken.id != topic.topic_id);
            if taken.is_some_and(|taken| !delta.deleted.contains(&taken.id)) {
                refusals.push(Refusal::NameTaken { name: topic.name.clone() });
            }
        }
        refusals
    }

    /// The image after `delta`; `None` if the delta is not newer than this. Total: the delta is committed, so what of
    /// it cannot be carried out is left out and reported.
    pub fn step(&self, delta: ImageDelta) -> Option<Step> {
        if delta.metadata_offset <= self.metadata_offset {
            return None;
        }
        let mut refusals = Vec::new();
        let mut image = self.clone();
        image.metadata_offset = delta.metadata_offset;
        image.controller_id = delta.controller_id.unwrap_or(self.controller_id);
        if let Some(brokers) = delta.brokers {
            image.brokers = brokers.into();
        }
        if let Some(values) = delta.broker_settings {
            image.settings = Arc::new(settings(&values, &mut refusals));
        }
        if let Some(features) = delta.finalized_features {
            image.finalized_features = Arc::new(features);
        }
        if let Some(features) = delta.supported_features {
            image.supported_features = Arc::new(features);
        }
        if let Some(versions) = delta.api_versions {
            image.api_versions = Arc::new(versions);
        }
        let mut changed = match delta.log_defaults {
            Some(defaults) => image.set_log_defaults(&defaults, &mut refusals),
            None => BTreeMap::new(),
        };
        let deleted: Vec<TopicId> =
            delta.deleted.into_iter().filter(|id| image.remove(id)).collect();
        changed.retain(|id, _| !deleted.contains(id));
        for topic in delta.topics {
            if let Some(change) = image.put(topic, &mut refusals) {
                let id = change.topic.id;
                let change = match changed.remove(&id) {
                    Some(earlier) => earlier.followed_by(change),
                    None => change,
                };
                changed.insert(id, change);
            }
        }
        Some(Step { image, changed: changed.into_values().collect(), deleted, refusals })
    }

    /// Topics whose effective settings change with the defaults: all of them.
    fn set_log_defaults(
        &mut self,
        defaults: &BTreeMap<String, String>,
        refusals: &mut Vec<Refusal>,
    ) -> BTreeMap<TopicId, Changed> {
        self.log_defaults = config(&self.durability_defaults, defaults, "defaults", refusals);
        let mut changed = BTreeMap::new();
        let entries: Vec<_> = self.by_id.values().cloned().collect();
        for entry in entries {
            let mut topic = TopicEntry::clone(&entry);
            // Its overrides were judged when they came.
            topic.config = config(&self.log_defaults, &topic.overrides, "", &mut Vec::new());
            changed.insert(entry.id, Changed::whole(self.store(topic)));
        }
        changed
    }

    fn remove(&mut self, id: &TopicId) -> bool {
        let Some(entry) = self.by_id.remove(id) else { return false };
        self.by_name.remove(&entry.name);
        true
    }

    fn put(&mut self, topic: TopicImage, refusals: &mut Vec<Refusal>) -> Option<Changed> {
        let known = self.by_id.get(&topic.topic_id).filter(|_| topic.partial).cloned();
        if let Some(known) = known.filter(|known| known.overrides == topic.overrides) {
            return Some(self.put_partitions(&known, topic.partitions));
        }
        let mut partitions = match self.by_id.get(&topic.topic_id) {
            Some(known) if topic.partial => known.partitions.clone(),
            _ => Pages::default(),
        };
        topic.partitions.into_iter().for_each(|entry| partitions.insert(entry));
        let config = config(&self.log_defaults, &topic.overrides, &topic.name, refusals);
        let TopicImage { topic_id: id, overrides, internal, hidden, .. } = topic;
        if self.by_name.get(topic.name.as_str()).is_some_and(|taken| taken.id != id) {
            refusals.push(Refusal::NameTaken { name: topic.name });
            return None;
        }
        let name = Arc::from(topic.name);
        let entry = TopicEntry { name, id, internal, hidden, partitions, overrides, config };
        Some(Changed::whole(self.store(entry)))
    }

    /// A topic of which only partitions changed.
    fn put_partitions(&mut self, known: &TopicEntry, entries: Vec<PartitionEntry>) -> Changed {
        let mut topic = known.clone();
        let indexes = entries.iter().map(|entry| entry.index).collect();
        for entry in entries {
            topic.partitions.insert(entry);
        }
        Changed { topic: self.store(topic), partitions: Some(indexes) }
    }

    fn store(&mut self, topic: TopicEntry) -> Arc<TopicEntry> {
        let entry = Arc::new(topic);
        self.by_name.insert(entry.name.clone(), entry.clone());
        self.by_id.insert(entry.id, entry.clone());
        entry
    }
}

fn pairs(values: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// `values` on top of `base`, which is shared by those who override nothing: nearly all topics.
fn config(
    base: &Arc<LogConfig>,
    values: &BTreeMap<String, String>,
    of: &str,
    refusals: &mut Vec<Refusal>,
) -> Arc<LogConfig> {
    if values.is_empty() {
        return base.clone();
    }
    let (config, refused) = LogConfig::resolve(base, pairs(values));
    refusals.extend(refused.into_iter().map(|source| Refusal::Config { of: of.into(), source }));
    Arc::new(config)
}

fn settings(values: &BTreeMap<String, String>, refusals: &mut Vec<Refusal>) -> Settings {
    let (settings, refused) = Settings::resolve(pairs(values));
    refusals.extend(refused.into_iter().map(Refusal::Setting));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, id: u8) -> TopicImage {
        let partitions =
            [1, 0].map(|index| PartitionEntry { index, leader: 1, ..PartitionEntry::default() });
        TopicImage {
            name: name.into(),
            topic_id: [id; 16],
            partitions: partitions.into(),
            ..TopicImage::default()
        }
    }

    fn delta(metadata_offset: i64) -> ImageDelta {
        ImageDelta { metadata_offset, ..ImageDelta::default() }
    }

    fn stepped(image: &Image, delta: ImageDelta) -> Step {
        let refused = image.check(&delta).len();
        let step = image.step(delta).expect("newer");
        assert_eq!(step.refusals.len(), refused);
        step
    }

    #[test]
    fn an_older_delta_changes_nothing() {
        let image = stepped(&Image::empty(LogConfig::default()), delta(5)).image;
        assert!(image.step(delta(5)).is_none());
        assert!(image.step(delta(4)).is_none());
    }

    #[test]
    fn a_partial_topic_adds_and_replaces_partitions_and_names_those_alone() {
        let empty = Image::empty(LogConfig::default());
        let image = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) }).image;
        let entry =
            |index, leader_epoch| PartitionEntry { index, leader_epoch, ..Default::default() };
        let mut part = TopicImage { partial: true, ..topic("a", 1) };
        part.partitions = vec![entry(1, 7), entry(2, 1)];
        let step = stepped(&image, ImageDelta { topics: vec![part.clone()], ..delta(2) });
        let epochs = |step: &Step| {
            let topic = step.image.topic("a").cloned().expect("known");
            topic.partitions.iter().map(|entry| entry.leader_epoch).collect::<Vec<_>>()
        };
        assert_eq!(epochs(&step), [0, 7, 1]);
        let named = |step: &Step| step.changed[0].entries().map(|e| e.index).collect::<Vec<_>>();
        assert_eq!((step.changed.len(), named(&step)), (1, vec![1, 2]));
        part.overrides.insert("retention.ms".into(), "7".into());
        part.partitions.clear();
        let step = stepped(&step.image, ImageDelta { topics: vec![part], ..delta(3) });
        assert_eq!((epochs(&step), named(&step)), (vec![0, 7, 1], vec![0, 1, 2]));
        assert_eq!(step.image.topic("a").map(|entry| entry.config.retention_ms), Some(7));
    }

    /// The new partition's change replaced that of the defaults: the other partitions kept the old settings.
    #[test]
    fn new_defaults_and_a_new_partition_in_one_step_change_every_partition() {
        let empty = Image::empty(LogConfig::default());
        let image = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) }).image;
        let mut part = TopicImage { partial: true, ..topic("a", 1) };
        part.partitions = vec![PartitionEntry { index: 2, ..Default::default() }];
        let defaults = BTreeMap::from([("retention.ms".to_owned(), "7".to_owned())]);
        let both = ImageDelta { log_defaults: Some(defaults), topics: vec![part], ..delta(2) };
        let step = stepped(&image, both);
        assert_eq!(step.changed.len(), 1);
        assert_eq!(step.changed[0].entries().map(|e| e.index).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(step.changed[0].topic.config.retention_ms, 7);
    }

    #[test]
    fn deletes_come_before_creates_of_the_same_name() {
        let empty = Image::empty(LogConfig::default());
        let image = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) }).image;
        let recreate =
            ImageDelta { deleted: vec![[1; 16]], topics: vec![topic("a", 2)], ..delta(2) };
        let step = stepped(&image, recreate);
        assert_eq!(step.deleted, [[1; 16]]);
        assert_eq!(step.image.topic("a").map(|entry| entry.id), Some([2; 16]));
        assert!(step.image.topic_by_id(&[1; 16]).is_none());
        let step = stepped(&image, ImageDelta { topics: vec![topic("a", 2)], ..delta(2) });
        assert!(matches!(step.refusals.as_slice(), [Refusal::NameTaken { .. }]));
        assert_eq!(step.image.topic("a").map(|entry| entry.id), Some([1; 16]));
    }

    /// A committed value that Rust refused ended the control thread, and the directory could not be opened again.
    #[test]
    fn what_cannot_be_used_is_reported_and_the_rest_of_the_step_is_made() {
        let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        let mut bad = topic("a", 1);
        bad.overrides = settings(&[("segment.ms", "0"), ("retention.ms", "7")]);
        let delta = ImageDelta {
            log_defaults: Some(settings(&[("flush.ms", "-1"), ("segment.ms", "9")])),
            broker_settings: Some(settings(&[("max.connections", "-1")])),
            topics: vec![bad],
            ..delta(1)
        };
        let step = stepped(&Image::empty(LogConfig::default()), delta);
        assert_eq!(step.refusals.len(), 3);
        assert_eq!(*step.image.settings, Settings::default());
        let config = &step.image.topic("a").expect("made").config;
        assert_eq!((config.segment_ms, config.retention_ms), (9, 7));
        assert_eq!(config.flush_ms, LogConfig::default().flush_ms);
    }

    #[test]
    fn new_defaults_change_every_topic_but_not_its_overrides() {
        let mut first = topic("a", 1);
        first.overrides.insert("retention.ms".into(), "7".into());
        let empty = Image::empty(LogConfig::default());
        let image =
            stepped(&empty, ImageDelta { topics: vec![first, topic("b", 2)], ..delta(1) }).image;
        let defaults = BTreeMap::from([("retention.ms".into(), "9".into())]);
        let step = stepped(&image, ImageDelta { log_defaults: Some(defaults), ..delta(2) });
        let retention = |name| step.image.topic(name).map(|entry| entry.config.retention_ms);
        assert_eq!((retention("a"), retention("b")), (Some(7), Some(9)));
        assert_eq!(step.changed.len(), 2);
    }

    /// `fsync` was lost with the first delta: nothing was synced before its acknowledgement.
    #[test]
    fn defaults_that_do_not_name_flushing_keep_what_the_durability_says() {
        let empty = Image::empty(LogConfig::for_durability(pykafka_log::Durability::Fsync));
        let defaults = BTreeMap::from([("retention.ms".into(), "9".into())]);
        let delta =
            ImageDelta { log_defaults: Some(defaults), topics: vec![topic("a", 1)], ..delta(1) };
        let step = stepped(&empty, delta);
        let synced = step.image.topic("a").map(|entry| entry.config.syncs_every_append());
        assert_eq!((synced, step.image.log_defaults.retention_ms), (Some(true), 9));
    }

    #[test]
    fn partitions_are_found_by_index_in_any_order_of_the_delta() {
        let empty = Image::empty(LogConfig::default());
        let step = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) });
        let entry = step.image.topic("a").expect("created");
        assert_eq!(entry.partition(1).map(|partition| partition.index), Some(1));
        assert!(entry.partition(2).is_none() && entry.partition(-1).is_none());
    }
}
