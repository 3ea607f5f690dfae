"""The settings of the group coordinator. None of them can be altered while the broker runs."""

from typing import NamedTuple

from pykafka_core.config import BrokerConfigs


class GroupSettings(NamedTuple):
    """By their Kafka names, with the units of those."""

    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    offset_metadata_bytes_max: int
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int

    @staticmethod
    def of(settings: BrokerConfigs) -> "GroupSettings":
        """Read them."""
        return GroupSettings(
            initial_rebalance_delay_ms=settings.int("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms=settings.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=settings.int("group.max.session.timeout.ms"),
            max_size=settings.int("group.max.size"),
            offset_metadata_bytes_max=settings.int("offset.metadata.max.bytes"),
            offsets_retention_ms=settings.int("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=settings.int("offsets.retention.check.interval.ms"),
        )
