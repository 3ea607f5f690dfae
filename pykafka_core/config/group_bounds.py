"""Bounds of a group's own settings, which are settings of the broker."""

from .layers import Layers

GROUP_BOUNDS = {
    "consumer.assignment.interval.ms": (
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    "consumer.heartbeat.interval.ms": (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    "consumer.session.timeout.ms": (
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    "share.heartbeat.interval.ms": (
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    "share.record.lock.duration.ms": (
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    "share.session.timeout.ms": (
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    "streams.heartbeat.interval.ms": (
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    "streams.session.timeout.ms": (
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}
"""Broker settings that a group's own one must not be below, and not above."""


def capped(name: str, value: int, broker: Layers) -> int:
    """Return the stored value of a group's setting within the bounds that its broker has now.

    As ``GroupConfig.evaluate`` of Kafka 4.4: the bounds may have changed since the check.
    """
    low, high = GROUP_BOUNDS.get(name, (None, None))
    if low is not None:
        value = max(value, broker.int(low))
    if high is not None:
        value = min(value, broker.int(high))
    return value
