"""Requests whose records exceed an internal topic's ``max.message.bytes`` get the same responses as
from Apache Kafka 4.2.1.
"""

from collections.abc import Callable

import pytest

from pykafka_core.errors import UnknownServerError
from pykafka_core.handlers.configs.changes import SET
from pykafka_core.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    LeaveGroupRequest,
)
from pykafka_core.types import GROUP_TOPIC, RESOURCE_TOPIC, TRANSACTION_TOPIC
from tests.handlers.group_requests import join_request, joined
from tests.handlers.offset_requests import commit
from tests.handlers.transaction_requests import ID, producer_of, transactional_broker
from tests.support.simulated.broker import SimulatedBroker

TOO_SMALL = "60"
"""A batch's header alone takes 61 bytes."""


def limit(broker: SimulatedBroker, topic: str) -> None:
    alterable = IncrementalAlterConfigsRequest.AlterableConfig
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=RESOURCE_TOPIC,
        resource_name=topic,
        configs=[alterable(name="max.message.bytes", config_operation=SET, value=TOO_SMALL)],
    )
    broker.ask(IncrementalAlterConfigsRequest(resources=[resource]))


def initialized(broker: SimulatedBroker, name: str) -> int:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
    return int(broker.ask(request, 5).error_code)  # type: ignore[attr-defined]


ASKED: dict[str, Callable[[SimulatedBroker], int]] = {
    "InitProducerId, new": lambda broker: initialized(broker, "new"),
    "InitProducerId, known": lambda broker: initialized(broker, ID),
    "JoinGroup": lambda broker: (
        broker.ask(  # type: ignore[attr-defined]
            join_request(group_id="new", group_instance_id="i"), 5
        ).error_code
    ),
    "ConsumerGroupHeartbeat": lambda broker: (
        broker.ask(  # type: ignore[attr-defined]
            ConsumerGroupHeartbeatRequest(
                group_id="n",
                member_id="m",
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            )
        ).error_code
    ),
    "OffsetCommit": lambda broker: commit(broker, {0: 1})[0],
    "DeleteGroups": lambda broker: deleted(broker, "left"),
}


def deleted(broker: SimulatedBroker, group_id: str) -> int:
    response = broker.ask(DeleteGroupsRequest(groups_names=[group_id]))
    assert isinstance(response, DeleteGroupsResponse)
    return response.results[0].error_code


@pytest.mark.parametrize("api", ASKED)
def test_record_that_fits_into_no_batch_is_an_unknown_server_error(api: str) -> None:
    broker = transactional_broker()
    producer_of(broker)
    broker.ask(LeaveGroupRequest(group_id="left", member_id=joined(broker, "left")), 1)
    for topic in (GROUP_TOPIC, TRANSACTION_TOPIC):
        limit(broker, topic)
    assert ASKED[api](broker) == UnknownServerError.code
