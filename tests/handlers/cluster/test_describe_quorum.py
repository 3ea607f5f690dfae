"""DescribeQuorum: KIP-595, KIP-836, KIP-853."""

import pytest

from pykafka_core.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from tests.support.simulated.broker import SimulatedBroker


def describe(
    broker: SimulatedBroker, name: str = "__cluster_metadata", index: int = 0, version: int = 2
) -> DescribeQuorumResponse:
    partition = DescribeQuorumRequest.PartitionData(partition_index=index)
    topic = DescribeQuorumRequest.TopicData(topic_name=name, partitions=[partition])
    response = broker.ask(DescribeQuorumRequest(topics=[topic]), version)
    assert isinstance(response, DescribeQuorumResponse)
    return response


@pytest.mark.parametrize("version", range(3))
def test_the_only_voter_leads_in_every_version(broker: SimulatedBroker, version: int) -> None:
    partition = describe(broker, version=version).topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    assert partition.high_watermark == broker.image.offset + 1
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert [voter.log_end_offset for voter in partition.current_voters] == [
        partition.high_watermark
    ]
    assert partition.observers == []


@pytest.mark.parametrize(("name", "index"), [("orders", 0), ("__cluster_metadata", 1)])
def test_other_quorums_do_not_exist(broker: SimulatedBroker, name: str, index: int) -> None:
    assert describe(broker, name, index).topics[0].partitions[0].error_code == 3
