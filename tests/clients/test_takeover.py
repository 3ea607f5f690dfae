"""With short heartbeats, members of an embedded broker's group share a topic and take over."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer

from pykafka_core import Broker
from tests.support.patience import PATIENCE_S, POLL_S, eventually

pytestmark = pytest.mark.interval

PARTITIONS = 6
HEARTBEATS = PATIENCE_S
"""At Kafka's interval of 5 s, two members send 2/5 of this number within `PATIENCE_S`."""


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_take_over(
    kafka_broker: Broker,
    kafka_topic_factory: Callable[..., str],
    kafka_consumer: Callable[..., Consumer],
    protocol: str,
) -> None:
    """Regression: three KIP-848 members shared a topic after 5.2 s, and took over after 5.0 s."""
    topic = kafka_topic_factory(partitions=PARTITIONS)
    group, config = f"takeover-{protocol}", {"group.protocol": protocol}
    members = [kafka_consumer(topic, group=group, config=config) for _ in range(3)]

    def is_shared() -> bool:
        for one in members:
            one.poll(POLL_S)
        shares = {len(one.assignment()) for one in members}
        return shares == {PARTITIONS // len(members)}

    eventually(is_shared)
    members.pop().close()
    eventually(is_shared)
    if protocol == "consumer":  # the broker sets the interval
        before = kafka_broker.statistics()["control_requests"]
        eventually(lambda: kafka_broker.statistics()["control_requests"] - before > HEARTBEATS)
