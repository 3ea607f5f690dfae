"""No request that a client may send holds the control thread: each API gets the largest one at 16,000 partitions.

The control thread is the test's, on the real core in memory. What counts is the processor time of a turn, which other
programs of the machine do not change much; the bound scales with the speed of the machine.
"""

import gc
import os
from collections.abc import Callable, Iterator
from itertools import count
from time import thread_time
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

from pykafka_core import _core
from pykafka_core._core import Request
from pykafka_core.broker.start.startup import plan, start
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.registry import BY_KEY, ROWS
from pykafka_core.protocol import decode_response, encode_request
from pykafka_core.protocol.messages import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    ListConfigResourcesRequest,
    Message,
)
from pykafka_core.types import RESOURCE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

TURN_S_MAX = 0.05
SMALL, LARGE = 8_000, 8_000
"""Topics of one partition, and partitions of one topic."""
RECORDS_MAX = 9_999
TRIES = 5
REFERENCE_S = 0.02
"""What `reference` takes on the machine that the bound was written for."""


class Catching:
    """The real core, whose answers stay with the test."""

    def __init__(self, core: _core.Core) -> None:
        self.replies: dict[int, bytes] = {}
        self._core = core

    def respond(self, replies: "Sequence[tuple[int, bytes]]") -> None:
        self.replies.update(replies)

    def __getattr__(self, name: str) -> object:
        return getattr(self._core, name)


class Driven:
    """A broker whose control thread is the caller's."""

    def __init__(self) -> None:
        settings = BrokerConfigs({"listeners": "PLAINTEXT://127.0.0.1:0"})
        planned = plan(settings, None, lambda: os.urandom(16))
        options = _core.CoreOptions(
            data_dir=None,
            node_id=planned.identity.node_id,
            cluster_id=planned.identity.cluster_id,
            durability="memory",
            memory_max=256 << 20,
            clock_ms=None,
        )
        self.core = _core.Core(options)
        self._catching = Catching(self.core)
        core = cast("_core.Core", self._catching)
        self._machine = start(core, _core, planned).control.dispatcher
        self._ids = count(2**40)

    def ask(self, api_key: int, request: Message) -> tuple[Message, float]:
        """The answer, and the processor time of the longest turn."""
        version = BY_KEY[api_key].versions[1]
        event = Request(
            id=next(self._ids),
            connection=1,
            principal="User:ANONYMOUS",
            client_host="127.0.0.1",
            listener="PLAINTEXT",
            client_id="test",
            api_key=api_key,
            api_version=version,
            received_ns=self.core.now_ns(),
            received_ms=0,
            body=encode_request(request, version),
        )
        began, longest = thread_time(), 0.0
        self._machine.take(event)
        while event.id not in self._catching.replies:
            is_busy = self._machine.advance()
            longest = max(longest, thread_time() - began)
            events = self.core.wait(0 if is_busy else self.core.now_ns() + 10**8)
            began = thread_time()
            for found in events:
                self._machine.take(found)
        body = self._catching.replies.pop(event.id)
        return decode_response(api_key, version, body), longest


def creation(first: int, topics: int, partitions: int) -> Message:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=f"t{first + n}", num_partitions=partitions, replication_factor=1
            )
            for n in range(topics)
        ]
    )


NAMES = [f"t{n}" for n in range(SMALL)]
BIG = f"t{SMALL}"


@pytest.fixture(scope="module")
def driven() -> Iterator[Driven]:
    """The collector is the program's; what is judged here is the control plane."""
    gc.collect()
    gc.disable()
    driven = Driven()
    for first in range(0, SMALL, SMALL // 2):
        driven.ask(19, creation(first, SMALL // 2, 1))
    driven.ask(19, creation(SMALL, 1, LARGE))
    yield driven
    driven.core.stop(0)
    gc.enable()


def partitions_of(make: Callable[[str, list[int]], T]) -> list[T]:
    """One item for each small topic, and one for the large one."""
    return [*(make(name, [0]) for name in NAMES), make(BIG, list(range(LARGE)))]


def delete_records() -> Message:
    one = DeleteRecordsRequest.DeleteRecordsPartition
    of = DeleteRecordsRequest.DeleteRecordsTopic
    topics = partitions_of(
        lambda name, indexes: of(
            name=name, partitions=[one(partition_index=index, offset=-1) for index in indexes]
        )
    )
    return DeleteRecordsRequest(topics=topics)


def describe_producers() -> Message:
    of = DescribeProducersRequest.TopicRequest
    topics = partitions_of(lambda name, indexes: of(name=name, partition_indexes=indexes))
    return DescribeProducersRequest(topics=topics)


def describe_log_dirs() -> Message:
    of = DescribeLogDirsRequest.DescribableLogDirTopic
    topics = partitions_of(lambda name, indexes: of(topic=name, partitions=indexes))
    return DescribeLogDirsRequest(topics=topics)


def describe_configs() -> Message:
    of = DescribeConfigsRequest.DescribeConfigsResource
    resources = [of(resource_type=RESOURCE_TOPIC, resource_name=name) for name in [*NAMES, BIG]]
    return DescribeConfigsRequest(resources=resources, include_synonyms=True)


def alter_configs() -> Message:
    of, setting = AlterConfigsRequest.AlterConfigsResource, AlterConfigsRequest.AlterableConfig
    configs = [setting(name="retention.ms", value="70000")]
    names = [*NAMES, BIG]
    return AlterConfigsRequest(
        resources=[
            of(resource_type=RESOURCE_TOPIC, resource_name=name, configs=configs) for name in names
        ]
    )


def incremental_alter_configs() -> Message:
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [IncrementalAlterConfigsRequest.AlterableConfig(name="segment.ms", value="70000")]
    names = [*NAMES, BIG]
    return IncrementalAlterConfigsRequest(
        resources=[
            of(resource_type=RESOURCE_TOPIC, resource_name=name, configs=configs) for name in names
        ]
    )


def too_many_alterations() -> Message:
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = [of(resource_type=RESOURCE_TOPIC, resource_name=f"n{n}") for n in range(50_000)]
    return IncrementalAlterConfigsRequest(resources=resources)


def create_partitions() -> Message:
    of = CreatePartitionsRequest.CreatePartitionsTopic
    return CreatePartitionsRequest(
        topics=[of(name=name, count=2, assignments=None) for name in NAMES], timeout_ms=1
    )


def delete_topics() -> Message:
    of = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(topics=[of(name=name) for name in NAMES])


LARGEST: list[tuple[int, Callable[[], Message]]] = [
    (10, lambda: FindCoordinatorRequest(coordinator_keys=[f"g{n}" for n in range(16_000)])),
    (22, lambda: InitProducerIdRequest(transactional_id=None)),
    (60, DescribeClusterRequest),
    (55, DescribeQuorumRequest),
    (74, ListConfigResourcesRequest),
    (32, describe_configs),
    (35, describe_log_dirs),
    (35, lambda: DescribeLogDirsRequest(topics=None)),
    (61, describe_producers),
    (21, delete_records),
    (33, alter_configs),
    (44, incremental_alter_configs),
    (44, too_many_alterations),
    (19, lambda: creation(SMALL + 1, RECORDS_MAX // 2, 1)),
    (37, create_partitions),
    (20, delete_topics),
]


def reference() -> float:
    """Processor time to make and free 50,000 objects, to know the machine by."""
    began = thread_time()
    made = [(str(number), [number]) for number in range(50_000)]
    del made
    return thread_time() - began


def test_every_api_has_its_largest_request() -> None:
    assert {api_key for api_key, _ in LARGEST} == {row.api_key for row in ROWS}


@pytest.mark.parametrize(
    ("api_key", "make"),
    LARGEST,
    ids=[f"{n}-{BY_KEY[key].name}" for n, (key, _) in enumerate(LARGEST)],
)
def test_no_request_holds_the_control_thread(
    driven: Driven, api_key: int, make: Callable[[], Message]
) -> None:
    request, longest, bounds = make(), [], []
    for _ in range(TRIES):
        slowness = max(1.0, reference() / REFERENCE_S)
        _, took = driven.ask(api_key, request)
        longest.append(took)
        bounds.append(TURN_S_MAX * slowness)
        if took <= bounds[-1]:
            break
    print(f"{BY_KEY[api_key].name}: longest turns {[round(1000 * s, 1) for s in longest]} ms")
    assert any(took <= bound for took, bound in zip(longest, bounds, strict=True))
