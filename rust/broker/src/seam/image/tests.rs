//! Deltas on images: what changes, what is shared, what is refused.

use pykafka_record::LeaderEpoch;

use super::delta::{ImageDelta, TopicImage};
use super::step::{Refusal, Step};
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
    let entry = |index, leader_epoch| PartitionEntry {
        index,
        leader_epoch: LeaderEpoch::new(leader_epoch),
        ..Default::default()
    };
    let mut part = TopicImage { partial: true, ..topic("a", 1) };
    part.partitions = vec![entry(1, 7), entry(2, 1)];
    let step = stepped(&image, ImageDelta { topics: vec![part.clone()], ..delta(2) });
    let epochs = |step: &Step| {
        let topic = step.image.topic("a").cloned().expect("known");
        topic.partitions.iter().map(|entry| entry.leader_epoch.get()).collect::<Vec<_>>()
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
    let recreate = ImageDelta { deleted: vec![[1; 16]], topics: vec![topic("a", 2)], ..delta(2) };
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
