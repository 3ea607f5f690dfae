//! From one image to the next: a delta is checked before it is committed and carried out after.

use std::collections::BTreeMap;
use std::sync::Arc;

use pykafka_log::{ConfigError, LogConfig};

use super::delta::{ImageDelta, TopicImage};
use super::{Image, PartitionEntry, TopicEntry, TopicId};
use crate::seam::settings::{SettingError, Settings};
use crate::seam::shared::Pages;

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
