"""``min.insync.replicas`` for the rejection of records, and for members that leave an ISR."""

import pytest

from pykafka_core.config import BrokerConfigs
from pykafka_core.metadata.partition_rules import MIN_ISR, PartitionRules
from pykafka_core.protocol.messages import ConfigRecord
from pykafka_core.types import RESOURCE_BROKER
from tests.handlers.cluster_world import TOPIC_ID, ClusterWorld


@pytest.mark.parametrize(
    ("cluster", "broker", "topic", "own", "needed"),
    [
        ("2", "1", None, 1, 2),
        ("1", "2", None, 2, 2),
        ("2", "1", "3", 3, 3),
        ("2", "3", "1", 1, 1),
    ],
)
def test_broker_rejects_by_its_own_setting_and_resigns_by_the_larger_one(
    cluster: str, broker: str, topic: str | None, own: int, needed: int
) -> None:
    world = ClusterWorld((1, 2, 3))
    world.make_topic((1, 2, 3))
    world.commit(
        ConfigRecord(resource_type=RESOURCE_BROKER, resource_name="", name=MIN_ISR, value=cluster)
    )
    if topic is not None:
        world.set_topic(MIN_ISR, topic)
    settings = BrokerConfigs().with_dynamic({MIN_ISR: cluster}, {MIN_ISR: broker})
    rules = PartitionRules(world.image, settings)
    orders = world.image.topics.by_id[TOPIC_ID]
    assert (rules.own_min_isr(orders), rules.min_isr(orders)) == (own, needed)
