"""The part of the disk reserve for the next start cannot be used by requests that clients may
repeat.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_core.broker.runtime.metadata.controller import need_of
from pykafka_core.broker.storage.reserve import Need
from pykafka_core.protocol.messages import (
    BrokerRegistrationChangeRecord,
    Message,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)

ALTER_PARTITION, REASSIGN, ELECT, DELETE, CREATE = 56, 45, 43, 20, 19


@pytest.mark.parametrize(
    ("api_key", "record", "need"),
    [
        (None, BrokerRegistrationChangeRecord(), Need.START),
        (ALTER_PARTITION, PartitionChangeRecord(), Need.START),
        (REASSIGN, PartitionChangeRecord(), Need.GROWTH),
        (ELECT, PartitionChangeRecord(), Need.GROWTH),
        (DELETE, RemoveTopicRecord(), Need.DELETION),
        (CREATE, TopicRecord(), Need.GROWTH),
    ],
)
def test_api_and_record_decide_the_need(api_key: int | None, record: Message, need: Need) -> None:
    asked: Any = SimpleNamespace(api_key=api_key)
    assert need_of([asked], [record]) is need


def test_batch_has_the_need_of_its_least_urgent_request() -> None:
    both: list[Any] = [SimpleNamespace(api_key=key) for key in (ALTER_PARTITION, REASSIGN)]
    assert need_of(both, [PartitionChangeRecord()] * 2) is Need.GROWTH
