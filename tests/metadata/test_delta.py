from pykafka_core.metadata.image.delta import PIECE_MAX, delta_of, whole
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.mutators import draft_of
from pykafka_core.protocol.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ID = b"0123456789abcdef"
ME = 1


def config(kind: int, resource: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def test_a_topics_settings_come_with_it() -> None:
    base = draft_of(MetadataImage(), [TopicRecord(name="orders", topic_id=ID)]).image
    draft = draft_of(base, [config(2, "orders", "retention.ms", "1")])
    delta = delta_of(draft.image, draft.changes, ME)
    assert [topic.name for topic in delta.topics] == ["orders"]
    assert delta.overrides == {"orders": {"retention.ms": "1"}}
    assert not delta.settings_changed


def test_only_settings_of_this_broker_or_of_all_matter() -> None:
    for resource, matters in (("", True), ("1", True), ("2", False)):
        draft = draft_of(MetadataImage(), [config(4, resource, "log.retention.ms", "1")])
        assert delta_of(draft.image, draft.changes, ME).settings_changed is matters


def test_deleted_topics_are_named_by_id() -> None:
    base = draft_of(MetadataImage(), [TopicRecord(name="orders", topic_id=ID)]).image
    draft = draft_of(base, [RemoveTopicRecord(topic_id=ID)])
    delta = delta_of(draft.image, draft.changes, ME)
    assert (delta.deleted, delta.topics) == ((ID,), ())


def test_fenced_brokers_are_not_told() -> None:
    records = [
        RegisterBrokerRecord(broker_id=node, broker_epoch=1, fenced=node == 2) for node in (2, 1)
    ]
    draft = draft_of(MetadataImage(), [*records])
    brokers = delta_of(draft.image, draft.changes, ME).brokers
    assert brokers is not None
    assert [broker.node_id for broker in brokers] == [1]


def test_features_without_their_coordinator_are_not_offered() -> None:
    levels = {"metadata.version": 29, "transaction.version": 2, "group.version": 1}
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    image = draft_of(MetadataImage(), [*records]).image
    assert image.features == levels
    assert whole(image).features == (-1, {"metadata.version": 29})


def test_what_did_not_change_is_none() -> None:
    draft = draft_of(MetadataImage(), [])
    delta = delta_of(draft.image, draft.changes, ME)
    assert (delta.brokers, delta.features, delta.topics) == (None, None, ())


def partitions(*indexes: int) -> list[PartitionRecord]:
    return [
        PartitionRecord(topic_id=ID, partition_id=index, replicas=[ME], isr=[ME], leader=ME)
        for index in indexes
    ]


def test_only_the_partitions_that_changed_are_named() -> None:
    """One more partition of 9,000 cost the other 8,999 too."""
    base = draft_of(
        MetadataImage(), [TopicRecord(name="orders", topic_id=ID), *partitions(0, 1, 2)]
    )
    assert delta_of(base.image, base.changes, ME).partial == {}, "a new topic is whole"
    changed = PartitionChangeRecord(topic_id=ID, partition_id=1, leader=ME)
    draft = draft_of(base.image, [*partitions(3), changed])
    assert delta_of(draft.image, draft.changes, ME).partial == {ID: (1, 3)}
    assert len(base.image.topics.by_id[ID].partitions) == 3
    draft = draft_of(base.image, [config(2, "orders", "retention.ms", "1")])
    assert delta_of(draft.image, draft.changes, ME).partial == {ID: ()}
    again = [RemoveTopicRecord(topic_id=ID), TopicRecord(name="orders", topic_id=ID[::-1])]
    draft = draft_of(base.image, [*again])
    delta = delta_of(draft.image, draft.changes, ME)
    assert (delta.deleted, delta.partial) == ((ID,), {})


def test_a_topic_grows_in_pieces_of_which_each_has_an_offset_of_its_own() -> None:
    grown = 4 * PIECE_MAX + 7
    base = draft_of(MetadataImage(), [TopicRecord(name="orders", topic_id=ID), *partitions(0)])
    draft = draft_of(base.image, [*partitions(*range(1, grown + 1))])
    draft.image.offset = 5000
    delta = delta_of(draft.image, draft.changes, ME)
    pieces = list(delta.pieces())
    changed = [piece.partial[ID] for piece in pieces]
    assert max(map(len, changed)) == PIECE_MAX
    assert [index for indexes in changed for index in indexes] == list(range(1, grown + 1))
    offsets = [piece.offset for piece in pieces]
    assert offsets == list(range(5001 - len(pieces), 5001))
    assert len(pieces) <= grown


def test_a_new_topic_is_never_seen_with_some_of_its_partitions() -> None:
    draft = draft_of(
        MetadataImage(),
        [TopicRecord(name="orders", topic_id=ID), *partitions(*range(2 * PIECE_MAX))],
    )
    (piece,) = delta_of(draft.image, draft.changes, ME).pieces()
    assert piece.partial == {}
