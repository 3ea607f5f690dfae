from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core.broker.core_bridge.projection import Projection
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.metadata.image.cow_map import CowMap
from pykafka_core.metadata.image.delta import (
    PIECE_MAX,
    Delta,
    delta_in_slices,
    whole,
    with_all_topics,
)
from pykafka_core.metadata.image.draft import Changes
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.mutators import draft_of
from pykafka_core.protocol.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    Message,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.calls import counting_calls
from tests.support.simulated import fake_core

if TYPE_CHECKING:
    from pykafka_core.broker.core_bridge.core_types import CoreTypes

ID = b"0123456789abcdef"
ME = 1


def delta_of(image: MetadataImage, changes: Changes, node_id: int) -> Delta:
    return run_to_end(delta_in_slices(image, changes, node_id))


def config(kind: int, resource: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def test_settings_of_a_topic_are_in_the_delta_with_it() -> None:
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
    assert (delta.deleted, delta.topics) == ({ID: 0}, ())


def test_fenced_brokers_are_marked_in_the_delta() -> None:
    records = [
        RegisterBrokerRecord(broker_id=node, broker_epoch=1, fenced=node == 2) for node in (2, 1)
    ]
    draft = draft_of(MetadataImage(), [*records])
    brokers = delta_of(draft.image, draft.changes, ME).brokers
    assert brokers is not None
    assert [(broker.node_id, broker.fenced) for broker in brokers] == [(1, False), (2, True)]


def test_features_without_their_coordinator_are_not_offered() -> None:
    offered = {"metadata.version": 29, "transaction.version": 2, "group.version": 1}
    levels = {**offered, "share.version": 1}
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    image = draft_of(MetadataImage(), [*records]).image
    assert image.features == levels
    assert whole(image).features == (-1, offered)


def test_empty_delta_has_no_brokers_features_or_topics() -> None:
    draft = draft_of(MetadataImage(), [])
    delta = delta_of(draft.image, draft.changes, ME)
    assert (delta.brokers, delta.features, delta.topics) == (None, None, ())


def partitions(*indexes: int) -> list[PartitionRecord]:
    return [
        PartitionRecord(topic_id=ID, partition_id=index, replicas=[ME], isr=[ME], leader=ME)
        for index in indexes
    ]


def test_only_the_partitions_that_changed_are_named() -> None:
    """One changed partition of 9,000 included the other 8,999, too."""
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
    assert (delta.deleted, delta.partial) == ({ID: 3}, {})


@pytest.mark.parametrize("add", [False, True])
def test_delta_of_one_partition_costs_the_same_in_any_topic(add: bool) -> None:
    """The test counts calls from the record to the step, and no table of partitions is copied."""
    projection = Projection(cast("CoreTypes", fake_core), ME, BrokerConfigs())
    calls_of = {}
    for count in (1_000, 100_000):
        base = draft_of(
            MetadataImage(), [TopicRecord(name="orders", topic_id=ID), *partitions(*range(count))]
        ).image
        first = draft_of(base, [*partitions(count)]).image
        change = PartitionChangeRecord(topic_id=ID, partition_id=7, leader=-1)
        records = [*partitions(count + 1)] if add else [change]
        with counting_calls() as calls:
            draft = draft_of(first, [*records])
            (piece,) = delta_of(draft.image, draft.changes, ME).pieces()
            step = projection.step(piece, BrokerConfigs())
        assert [len(topic.partitions) for topic in cast("fake_core.ImageDelta", step).topics] == [1]
        before, after = (image.topics.by_id[ID].partitions for image in (first, draft.image))
        assert isinstance(before, CowMap)
        assert isinstance(after, CowMap)
        assert after._base is before._base
        assert len(after._changed) <= 2
        calls_of[count] = calls.count
    assert calls_of[1_000] == calls_of[100_000]


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def large(name: str, count: int) -> list[Message]:
    """Return the records of a topic whose id is the number of its partitions."""
    made = partitions(*range(count))
    for record in made:
        record.topic_id = topic_id(count)
    return [TopicRecord(name=name, topic_id=topic_id(count)), *made]


def costs(pieces: list[Delta]) -> list[int]:
    """Return the number of partitions and topics that the core handles for each piece."""
    made = []
    for piece in pieces:
        cost = sum(piece.deleted.values())
        for topic in piece.topics:
            changed = piece.partial.get(topic.topic_id)
            cost += 1 + len(topic.partitions if changed in (None, ()) else changed or ())
        made.append(cost)
    return made


def test_a_topic_grows_in_pieces() -> None:
    grown = 4 * PIECE_MAX + 7
    base = draft_of(MetadataImage(), [TopicRecord(name="orders", topic_id=ID), *partitions(0)])
    draft = draft_of(base.image, [*partitions(*range(1, grown + 1))])
    draft.image.offset = 5000
    delta = delta_of(draft.image, draft.changes, ME)
    pieces = list(delta.pieces())
    changed = [piece.partial[ID] for piece in pieces]
    assert max(map(len, changed)) == PIECE_MAX
    assert [index for indexes in changed for index in indexes] == list(range(1, grown + 1))
    assert [(piece.offset, piece.piece) for piece in pieces] == [(5000, n) for n in range(5)]
    assert not any(piece.unfinished for piece in pieces)


def test_a_large_new_topic_is_unfinished_until_its_last_piece() -> None:
    count = 4 * PIECE_MAX + 7
    draft = draft_of(
        MetadataImage(), [TopicRecord(name="orders", topic_id=ID), *partitions(*range(count))]
    )
    pieces = list(delta_of(draft.image, draft.changes, ME).pieces())
    changed = [piece.partial[ID] for piece in pieces]
    assert max(map(len, changed)) == PIECE_MAX
    assert [index for indexes in changed for index in indexes] == list(range(count))
    assert [ID in piece.unfinished for piece in pieces] == [True] * 4 + [False]


def test_a_new_topic_that_fits_into_one_piece_is_whole() -> None:
    records = [TopicRecord(name="orders", topic_id=ID), *partitions(*range(PIECE_MAX))]
    draft = draft_of(MetadataImage(), [*records])
    (piece,) = delta_of(draft.image, draft.changes, ME).pieces()
    assert (piece.partial, piece.unfinished) == ({}, set())


def test_an_empty_step_has_one_piece() -> None:
    """The core must get its offset and its features."""
    draft = draft_of(MetadataImage(), [])
    delta = delta_of(draft.image, draft.changes, ME)
    assert [piece.offset for piece in delta.pieces()] == [delta.offset]


def test_deleted_and_reconfigured_topics_count_with_their_partitions() -> None:
    """Each topic counted as one, so 250 large topics were handled in one turn of the control
    thread.
    """
    counts = range(100, 120)
    base = draft_of(
        MetadataImage(), [record for count in counts for record in large(f"t{count}", count)]
    )
    altered = draft_of(base.image, [config(2, f"t{n}", "retention.ms", "1") for n in counts])
    deleted = draft_of(base.image, [RemoveTopicRecord(topic_id=topic_id(n)) for n in counts])
    for draft in (altered, deleted):
        pieces = list(delta_of(draft.image, draft.changes, ME).pieces())
        assert sum(costs(pieces)) >= sum(counts)
        assert max(costs(pieces)) <= PIECE_MAX + max(counts)


def test_new_defaults_apply_to_every_topic_in_pieces() -> None:
    counts = range(100, 120)
    base = draft_of(
        MetadataImage(), [record for count in counts for record in large(f"t{count}", count)]
    )
    changes = [config(4, "", "log.retention.ms", "1"), config(2, "t110", "segment.ms", "9")]
    draft = draft_of(base.image, [*changes, *large("new", 3)])
    delta = run_to_end(with_all_topics(delta_of(draft.image, draft.changes, ME), draft.image))
    pieces = list(delta.pieces())
    named = [topic.name for piece in pieces for topic in piece.topics]
    assert sorted(named) == sorted(["new", *(f"t{count}" for count in counts)])
    assert [piece.settings_changed for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert max(costs(pieces)) <= PIECE_MAX + max(counts)
    overrides = {name: value for piece in pieces for name, value in piece.overrides.items()}
    assert overrides["t110"] == {"segment.ms": "9"}
