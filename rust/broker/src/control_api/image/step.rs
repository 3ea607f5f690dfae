//! Creates the next image: a delta is checked before it is committed and applied after.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pykafka_log::{ConfigError, LogConfig};

use super::client_quotas::ClientQuotas;
use super::delta::{ImageDelta, TopicImage};
use super::throttled::ThrottledReplicas;
use super::{BrokerEndpoint, Image, PartitionEntry, Registration, TopicEntry, TopicId};
use crate::control_api::settings::{SettingError, Settings};

/// A part of a delta that cannot be applied; the previous value is kept, or the default.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Settings of the defaults or of a topic.
    #[error("settings of {of}: {source}")]
    Config {
        /// `defaults`, or the topic's name.
        of: String,
        /// The problem.
        source: ConfigError,
    },
    /// A setting of the broker.
    #[error(transparent)]
    Setting(SettingError),
    /// Two topics have the same name.
    #[error("topic {name} exists with another id")]
    NameTaken {
        /// The name of both topics.
        name: String,
    },
}

/// The image after a delta, and the changes for the partitions.
#[derive(Debug)]
pub struct Step {
    /// Not yet visible to requests.
    pub image: Image,
    /// Topics that are new, replaced, or whose effective settings changed.
    pub changed: Vec<Changed>,
    /// Deleted topics.
    pub deleted: Vec<Arc<TopicEntry>>,
    /// The result of [`Image::check`] for the delta.
    pub refusals: Vec<Refusal>,
}

/// A topic that changed.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The topic after the step.
    pub topic: Arc<TopicEntry>,
    /// Indexes of the partitions that changed; `None` for all of them.
    pub partitions: Option<Vec<i32>>,
}

impl Changed {
    /// The partitions that changed.
    pub fn entries(&self) -> impl Iterator<Item = &PartitionEntry> {
        let some = self.partitions.iter().flatten();
        let all = self.partitions.is_none().then(|| self.topic.partitions.iter());
        some.filter_map(|&index| self.topic.partition(index)).chain(all.into_iter().flatten())
    }
}

fn registrations(brokers: &[BrokerEndpoint]) -> HashMap<i32, Registration> {
    let registration = |broker: &BrokerEndpoint| Registration {
        broker_epoch: broker.broker_epoch,
        is_eligible: !broker.fenced && !broker.in_controlled_shutdown,
    };
    brokers.iter().map(|broker| (broker.node_id, registration(broker))).collect()
}

impl Image {
    /// The parts of `delta` that cannot be applied. The cost depends on the size of the delta, not
    /// of the image.
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

    /// The image after `delta`; `None` if the delta is not newer than this. Total: the delta is
    /// committed, so a part that cannot be applied is skipped and reported.
    pub fn step(&self, delta: ImageDelta) -> Option<Step> {
        let made = (delta.metadata_offset, delta.piece);
        if made <= self.made {
            return None;
        }
        let mut refusals = Vec::new();
        let mut image = self.clone();
        image.made = made;
        image.controller_id = delta.controller_id.unwrap_or(self.controller_id);
        if let Some(brokers) = delta.brokers {
            image.registrations = Arc::new(registrations(&brokers));
            let hosts = brokers.iter().map(|at| (at.node_id, at.host.clone()));
            image.hosts = Arc::new(hosts.collect());
            image.brokers = brokers.into_iter().filter(|broker| !broker.fenced).collect();
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
        if let Some(quotas) = delta.client_quotas {
            image.client_quotas = Arc::new(ClientQuotas::new(quotas));
        }
        if let Some(values) = delta.log_defaults {
            let defaults = config(&image.durability_defaults, &values, "defaults", &mut refusals);
            if defaults != image.log_defaults {
                image.log_defaults = defaults;
            }
        }
        let deleted: Vec<_> = delta.deleted.iter().filter_map(|id| image.remove(id)).collect();
        let changed =
            delta.topics.into_iter().filter_map(|topic| image.put(topic, &mut refusals)).collect();
        Some(Step { image, changed, deleted, refusals })
    }

    fn remove(&mut self, id: &TopicId) -> Option<Arc<TopicEntry>> {
        let entry = self.by_id.remove(id)?;
        self.by_name.remove(&entry.name);
        Some(entry)
    }

    fn put(&mut self, topic: TopicImage, refusals: &mut Vec<Refusal>) -> Option<Changed> {
        if self.by_name.get(topic.name.as_str()).is_some_and(|taken| taken.id != topic.topic_id) {
            refusals.push(Refusal::NameTaken { name: topic.name });
            return None;
        }
        let known = if topic.partial { self.known(&topic.topic_id) } else { None };
        let finished = !topic.unfinished;
        if let Some(known) = known.as_ref().filter(|known| self.is_configured(known, &topic)) {
            return Some(self.put_partitions(known, topic.partitions, finished));
        }
        let named = topic.partitions.iter().map(|entry| entry.index).collect();
        let changed = (known.is_some() && topic.unfinished).then_some(named);
        let mut partitions = known.map(|known| known.partitions.clone()).unwrap_or_default();
        topic.partitions.into_iter().for_each(|entry| partitions.insert(entry));
        let defaults = self.log_defaults.clone();
        let config = config(&defaults, &topic.overrides, &topic.name, refusals);
        let TopicImage { topic_id: id, overrides, internal, hidden, .. } = topic;
        let name = Arc::from(topic.name);
        let throttled = Arc::new(ThrottledReplicas::of(&overrides));
        let entry = TopicEntry {
            name,
            id,
            internal,
            hidden,
            partitions,
            overrides,
            config,
            throttled,
            defaults,
        };
        Some(Changed { topic: self.store(entry, finished), partitions: changed })
    }

    /// A topic, or the received pieces of a new one.
    fn known(&self, id: &TopicId) -> Option<Arc<TopicEntry>> {
        self.by_id.get(id).or_else(|| self.unfinished.get(id)).cloned()
    }

    /// Whether the settings of a topic are unchanged.
    fn is_configured(&self, known: &TopicEntry, topic: &TopicImage) -> bool {
        known.overrides == topic.overrides && Arc::ptr_eq(&known.defaults, &self.log_defaults)
    }

    /// Updates a topic with changed partitions only.
    fn put_partitions(
        &mut self,
        known: &TopicEntry,
        entries: Vec<PartitionEntry>,
        finished: bool,
    ) -> Changed {
        let mut topic = known.clone();
        let indexes = entries.iter().map(|entry| entry.index).collect();
        for entry in entries {
            topic.partitions.insert(entry);
        }
        Changed { topic: self.store(topic, finished), partitions: Some(indexes) }
    }

    fn store(&mut self, topic: TopicEntry, finished: bool) -> Arc<TopicEntry> {
        let entry = Arc::new(topic);
        if finished || self.by_id.get(&entry.id).is_some() {
            self.unfinished.remove(&entry.id);
            self.by_name.insert(entry.name.clone(), entry.clone());
            self.by_id.insert(entry.id, entry.clone());
        } else {
            self.unfinished.insert(entry.id, entry.clone());
        }
        entry
    }
}

fn pairs(values: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Applies `values` to `base`. Without values, `base` is shared, as for nearly all topics.
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
