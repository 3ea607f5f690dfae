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


DELAY = "group.initial.rebalance.delay.ms"
INTERVAL = "group.consumer.heartbeat.interval.ms"
INTERVAL_MIN = "group.consumer.min.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("given", "effective"),
    [
        ({}, (0, 50, 50)),
        ({DELAY: 3000}, (3000, 50, 50)),
        ({INTERVAL: 5000}, (0, 5000, 5000)),
        ({INTERVAL_MIN: 2000}, (0, 2000, 5000)),
        ({INTERVAL_MIN: 20, INTERVAL: 20}, (0, 20, 20)),
    ],
)
def test_an_embedded_broker_has_quick_settings_where_none_are_given(
    given: dict[str, int], effective: tuple[int, int, int]
) -> None:
    with Broker(config=given) as broker:
        settings = broker.settings
        assert tuple(map(settings.int, (DELAY, INTERVAL_MIN, INTERVAL))) == effective
