//! Deltas applied to images: changed, shared and rejected parts.

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
fn a_partial_topic_adds_and_replaces_partitions_and_names_only_those() {
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

#[test]
fn an_unfinished_topic_is_hidden_until_its_last_piece() {
    let piece = |piece, index, unfinished| {
        let entry = PartitionEntry { index, leader: 1, ..PartitionEntry::default() };
        let partitions = vec![entry];
        let topic = TopicImage { partitions, partial: true, unfinished, ..topic("a", 1) };
        ImageDelta { piece, topics: vec![topic], ..delta(7) }
    };
    let mut image = Image::empty(LogConfig::default());
    for (number, unfinished) in [(0, true), (1, true), (2, false)] {
        let step = stepped(&image, piece(number, number as i32, unfinished));
        let [change] = &step.changed[..] else { panic!("{:?}", step.changed) };
        assert_eq!(change.entries().map(|e| e.index).collect::<Vec<_>>(), [number as i32]);
        image = step.image;
        assert!(image.step(piece(number, 9, unfinished)).is_none(), "the piece was made");
        assert_eq!(image.topic("a").is_none(), unfinished);
        assert_eq!(image.topic_by_id(&[1; 16]).is_none(), unfinished);
        assert_eq!(image.topics().count(), usize::from(!unfinished));
    }
    assert_eq!(image.topic("a").map(|entry| entry.partitions.len()), Some(3));
    assert!(image.unfinished.values().next().is_none());
}

#[test]
fn an_existing_topic_stays_visible_during_later_pieces() {
    let empty = Image::empty(LogConfig::default());
    let image = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) }).image;
    let more = TopicImage { partial: true, unfinished: true, ..topic("a", 1) };
    let image = stepped(&image, ImageDelta { topics: vec![more], ..delta(2) }).image;
    assert!(image.topic("a").is_some());
    assert!(image.unfinished.values().next().is_none());
}

/// Regression: one changed setting of the broker updated every partition at once: 180 ms for 57,000
/// partitions.
#[test]
fn new_defaults_apply_to_the_topics_that_steps_name() {
    let empty = Image::empty(LogConfig::default());
    let topics = vec![topic("a", 1), topic("b", 2)];
    let image = stepped(&empty, ImageDelta { topics, ..delta(1) }).image;
    let defaults = BTreeMap::from([("retention.ms".to_owned(), "7".to_owned())]);
    let named =
        |name, id| vec![TopicImage { partial: true, partitions: Vec::new(), ..topic(name, id) }];
    let first = ImageDelta { log_defaults: Some(defaults), topics: named("a", 1), ..delta(2) };
    let second = ImageDelta { piece: 1, topics: named("b", 2), ..delta(2) };
    let retention_ms =
        |image: &Image, name| image.topic(name).map(|entry| entry.config.retention_ms);
    let before = retention_ms(&image, "b");
    let step = stepped(&image, first);
    assert_eq!(step.changed.iter().flat_map(super::step::Changed::entries).count(), 2);
    assert_eq!((retention_ms(&step.image, "a"), retention_ms(&step.image, "b")), (Some(7), before));
    let step = stepped(&step.image, second);
    assert_eq!((step.changed.len(), retention_ms(&step.image, "b")), (1, Some(7)));
}

/// Regression: the change of a new partition replaced that of the defaults, so that the other
/// partitions kept the old settings.
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
fn new_settings_apply_to_the_partitions_of_each_piece_when_it_arrives() {
    let empty = Image::empty(LogConfig::default());
    let mut image = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) }).image;
    for (piece, index, unfinished) in [(0, 0, true), (1, 1, false)] {
        let overrides = BTreeMap::from([("retention.ms".to_owned(), "7".to_owned())]);
        let mut part = TopicImage { partial: true, unfinished, overrides, ..topic("a", 1) };
        part.partitions.retain(|entry| entry.index == index);
        let step = stepped(&image, ImageDelta { piece, topics: vec![part], ..delta(2) });
        assert_eq!(step.changed[0].entries().map(|e| e.index).collect::<Vec<_>>(), [index]);
        assert_eq!(step.changed[0].topic.config.retention_ms, 7);
        image = step.image;
    }
    assert_eq!(image.topic("a").map(|entry| entry.partitions.len()), Some(2));
}

#[test]
fn deletions_precede_creations_of_the_same_name() {
    let empty = Image::empty(LogConfig::default());
    let image = stepped(&empty, ImageDelta { topics: vec![topic("a", 1)], ..delta(1) }).image;
    let recreate = ImageDelta { deleted: vec![[1; 16]], topics: vec![topic("a", 2)], ..delta(2) };
    let step = stepped(&image, recreate);
    assert_eq!(step.deleted.iter().map(|topic| topic.id).collect::<Vec<_>>(), [[1; 16]]);
    assert_eq!(step.image.topic("a").map(|entry| entry.id), Some([2; 16]));
    assert!(step.image.topic_by_id(&[1; 16]).is_none());
    let step = stepped(&image, ImageDelta { topics: vec![topic("a", 2)], ..delta(2) });
    assert!(matches!(step.refusals.as_slice(), [Refusal::NameTaken { .. }]));
    assert_eq!(step.image.topic("a").map(|entry| entry.id), Some([1; 16]));
}

/// Regression: a committed value that Rust rejected ended the control thread, and the directory
/// could not be opened again.
#[test]
fn unusable_values_are_reported_and_the_rest_of_the_step_is_applied() {
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
fn new_defaults_change_the_topics_that_a_step_names_but_not_their_overrides() {
    let mut first = topic("a", 1);
    first.overrides.insert("retention.ms".into(), "7".into());
    let empty = Image::empty(LogConfig::default());
    let topics = vec![first, topic("b", 2)];
    let image = stepped(&empty, ImageDelta { topics: topics.clone(), ..delta(1) }).image;
    let defaults = BTreeMap::from([("retention.ms".into(), "9".into())]);
    let named = |topic| TopicImage { partial: true, partitions: Vec::new(), ..topic };
    let topics = topics.into_iter().map(named).collect();
    let step = stepped(&image, ImageDelta { log_defaults: Some(defaults), topics, ..delta(2) });
    let retention = |name| step.image.topic(name).map(|entry| entry.config.retention_ms);
    assert_eq!((retention("a"), retention("b")), (Some(7), Some(9)));
    assert_eq!(step.changed.len(), 2);
}

/// Regression: `fsync` was lost with the first delta, so that appends were acknowledged before a
/// sync.
#[test]
fn defaults_without_flush_settings_keep_the_durability() {
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
