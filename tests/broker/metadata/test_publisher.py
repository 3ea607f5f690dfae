"""The publisher: the same committed batches lead to the same image and the same steps, whichever
node proposed them.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.core_types import CoreTypes
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.core_bridge.projection import Projection
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.outcome import run_to_end
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.codec import decode_batches
from pykafka_core.metadata.records.snapshot import records_of
from pykafka_core.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    Message,
)
from pykafka_core.quorum.quorum import Committed
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC
from tests.support.simulated import fake_core
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

KAFKA_STORAGE_ERROR = 56

names = st.sampled_from(["a", "b", "c", "d"])


def create(name: str, partitions: int) -> Message:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    return CreateTopicsRequest(topics=[topic])


def delete(name: str) -> Message:
    return DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)])


def grow(name: str, count: int) -> Message:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count)
    return CreatePartitionsRequest(topics=[topic])


def alter(kind: int, name: str, value: str) -> Message:
    setting = "retention.ms" if kind == RESOURCE_TOPIC else "log.retention.ms"
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=setting, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


requests = st.one_of(
    st.builds(create, names, st.integers(1, 3)),
    st.builds(delete, names),
    st.builds(grow, names, st.integers(2, 5)),
    st.builds(alter, st.just(RESOURCE_TOPIC), names, st.sampled_from(["1", "2"])),
    st.builds(alter, st.just(RESOURCE_BROKER), st.just(""), st.sampled_from(["1", "2"])),
    st.just(InitProducerIdRequest(transactional_id=None)),
)
# The step after each request.
steps = st.sampled_from(["wait", "run", "commit", "commit", "fail"])


def history(asked: Sequence[tuple[Message, str]]) -> SimulatedBroker:
    """Return a broker after requests, commits and failures in this order, without a batch in
    flight.
    """
    broker = SimulatedBroker()
    broker.core.hold_appends = True
    for request, step in asked:
        broker.send(request)
        if step == "wait":
            continue
        broker.run()
        if step != "run" and broker.dispatcher.in_flight:
            broker.core.complete_append(0 if step == "commit" else KAFKA_STORAGE_ERROR)
            broker.run()
    broker.run()
    while not broker.dispatcher.idle:
        broker.core.complete_append()
        broker.run()
    return broker


def batches(broker: SimulatedBroker) -> list[Committed]:
    """Return the broker's metadata log, as another node reads it."""
    log = broker.core.logs[METADATA_PARTITION]
    read = []
    for first, end, data in log.batches:
        records = [record for _, record in decode_batches(data).records]
        read.append(Committed(first, end - 1, records))
    return read


def follower_of(found: Sequence[Committed]) -> tuple[Publisher, FakeCore]:
    """Return the publisher and the core of a node that publishes the batches one by one."""
    core = FakeCore()
    projection = Projection(cast("CoreTypes", fake_core), 1, BrokerConfigs())
    publisher = Publisher(
        core=cast("Core", core),
        projection=projection,
        node_id=1,
        replay=Replay(),
        faults=Faults(core.now_ns),
        snapshots=None,
    )
    publisher.publish_whole()
    for batch in found:
        run_to_end(publisher.publish(batch))
    return publisher, core


@pytest.mark.campaign
@given(st.lists(st.tuples(requests, steps), max_size=25))
def test_replays_of_the_same_batches_agree_with_the_leader(
    asked: list[tuple[Message, str]],
) -> None:
    leader = history(asked)
    found = batches(leader)
    at_once = Replay()
    for batch in found:
        at_once.apply_batch(batch.first_offset, batch.last_offset, batch.records)
    publisher, core = follower_of(found)
    assert publisher.image == at_once.image() == leader.image
    served = {key: topic for key, topic in leader.core.topics.items() if not topic.hidden}
    assert core.topics == served


@pytest.mark.campaign
@given(st.lists(requests, min_size=1, max_size=10))
def test_proposal_does_not_change_the_committed_image(asked: list[Message]) -> None:
    broker = history([(create("a", 2), "commit")])
    image, content, applied = broker.image, repr(broker.image.topics), len(broker.core.applied)
    for request in asked:
        broker.send(request)
    broker.run()
    assert broker.image is image
    assert (repr(image.topics), len(broker.core.applied)) == (content, applied)
    while broker.dispatcher.in_flight:
        broker.core.complete_append(KAFKA_STORAGE_ERROR)
        broker.run()
    assert broker.image is image
    assert (repr(image.topics), len(broker.core.applied)) == (content, applied)


@given(st.lists(st.tuples(requests, steps), max_size=25), st.data())
def test_the_image_of_a_snapshot_is_one_step_from_any_earlier_one(
    asked: list[tuple[Message, str]], data: st.DataObject
) -> None:
    leader = history(asked)
    found = batches(leader)
    publisher, core = follower_of(found[: data.draw(st.integers(0, len(found)))])
    before = publisher.image
    told: list[tuple[MetadataImage, Mapping[str, bytes]]] = []
    publisher.followers.append(lambda image, gone: told.append((image, gone)))
    snapshot = Replay()
    snapshot.apply_snapshot(records_of(leader.image), leader.image.offset + 1)
    run_to_end(publisher.replace(snapshot))
    image = publisher.image
    assert told == [(image, gone := told[0][1])]
    assert set(gone.values()) == before.topics.by_id.keys() - image.topics.by_id.keys()
    image.features_epoch = leader.image.features_epoch
    assert image == leader.image
    served = {key: topic for key, topic in leader.core.topics.items() if not topic.hidden}
    assert core.topics == served
    run_to_end(publisher.publish(Committed(image.offset + 1, image.offset + 1, ())))
    assert publisher.image.topics == leader.image.topics, "it goes on from there"
