"""Settings given at start that Apache Kafka takes: the broker starts, and they mean what they mean there.

``log.retention.hours=-1``, Kafka's "for ever", stopped the start.
"""

import pytest

from pykafka_core import Broker

FOREVER = "-1"


@pytest.mark.parametrize(
    ("given", "topic_setting", "effective"),
    [
        ({"log.retention.hours": "-1"}, "retention.ms", FOREVER),
        ({"log.retention.minutes": "-7"}, "retention.ms", FOREVER),
        ({"log.retention.ms": "-2"}, "retention.ms", FOREVER),
        ({"log.retention.bytes": "-2"}, "retention.bytes", "-2"),
        ({"log.local.retention.ms": "-2"}, "local.retention.ms", "-2"),
        ({"log.retention.hours": "2147483647"}, "retention.ms", "7730941129200000"),
        ({"broker.id": "-1"}, "retention.ms", "604800000"),
        ({"replica.lag.time.max.ms": "9223372036854775807"}, "retention.ms", "604800000"),
    ],
)
def test_a_number_that_kafka_takes_starts_a_broker(
    given: dict[str, str], topic_setting: str, effective: str
) -> None:
    with Broker(config=given) as broker:
        broker.create_topic("t")
        assert broker.settings.topic_value(topic_setting, {}) == effective
