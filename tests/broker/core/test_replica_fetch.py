"""Fetches of a replica from a single broker, which has no followers
(contract/replication.md#attack-16).
"""

from collections.abc import Iterator

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClusterAuthorizationFailedError
from pykafka_core.protocol.messages import FetchRequest
from tests.support.wire import Connection

TOPIC = "t"
OTHER, UNKNOWN = 2, 2**31 - 1
REFUSED = ClusterAuthorizationFailedError.code


def partition(fetch_offset: int) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=0, fetch_offset=fetch_offset, partition_max_bytes=1 << 20, log_start_offset=0
    )


@pytest.fixture(params=[{}, {"inter.broker.listener.name": "PLAINTEXT"}], ids=["unnamed", "named"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(listeners="127.0.0.1:0", config=request.param) as broker:
        broker.create_topic(TOPIC, partitions=1)
        yield broker


@pytest.mark.parametrize("replica_id", ["self", OTHER, UNKNOWN])
@pytest.mark.parametrize("session_epoch", [0, -1], ids=["session", "no session"])
def test_fetch_of_a_replica_is_rejected_and_changes_nothing(
    broker: Broker, replica_id: int | str, session_epoch: int
) -> None:
    node_id = broker.node_id if replica_id == "self" else replica_id
    assert isinstance(node_id, int)
    with Connection(broker.bootstrap_servers) as connection:
        by_name = FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition(0)])
        old = FetchRequest(
            replica_id=node_id, max_bytes=1 << 20, session_epoch=session_epoch, topics=[by_name]
        )
        response = connection.ask(1, 12, old)
        refused = response.responses[0].partitions[0]
        assert (response.error_code, response.session_id) == (REFUSED, 0)
        assert (refused.error_code, refused.records) == (REFUSED, b"")
        new = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=node_id, replica_epoch=1),
            session_epoch=session_epoch,
        )
        for version in (15, 16, 17, 18):
            response = connection.ask(1, version, new)
            assert (response.error_code, response.session_id, response.responses) == (
                REFUSED,
                0,
                [],
            )
        # Requests of clients on this connection are served as before.
        client = FetchRequest(max_bytes=1 << 20, session_epoch=-1, topics=[by_name])
        served = connection.ask(1, 12, client).responses[0].partitions[0]
        assert (served.error_code, served.high_watermark) == (0, 0)
