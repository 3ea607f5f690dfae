"""The settings of the group coordinator.

The settings of single groups and the broker's assignment interval can change at run time.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from pykafka_core.config import BrokerConfigs, Scope, capped
from pykafka_core.config import settings as table

ASSIGNOR_NAMES = ("uniform", "range")
_JAVA_PACKAGE = "org.apache.kafka.coordinator.group.assignor."
SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
"""Settings that can be set for one group."""
_NOTHING: Mapping[str, str] = {}
_NAMES = {name: name for name in ASSIGNOR_NAMES} | {
    f"{_JAVA_PACKAGE}{name.capitalize()}Assignor": name for name in ASSIGNOR_NAMES
}


class MigrationPolicy(Enum):
    """``group.consumer.migration.policy``: how groups with members may change their kind."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Return whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """Return whether a consumer group may become a classic group."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class ConsumerGroupSettings(NamedTuple):
    """Settings of consumer groups (``group.consumer.*``).

    Attributes:
        assignment_interval_ms: Minimum time between two target assignments.
        assignors: Assignors that members may request; the first one is the default.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ASSIGNOR_NAMES
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    @staticmethod
    def of(settings: BrokerConfigs, own: Mapping[str, str] = _NOTHING) -> "ConsumerGroupSettings":
        """Read the settings.

        Only built-in assignors are used, given by name or by Kafka's class name.

        Args:
            settings: Those of the broker.
            own: Those of one group (KIP-848, resource GROUP); an invalid value is ignored.
        """
        given = (settings.string("group.consumer.assignors") or "").split(",")
        named = [_NAMES[name.strip()] for name in given if name.strip() in _NAMES]
        return ConsumerGroupSettings(
            session_timeout_ms=_own(
                own, SESSION_TIMEOUT, settings, "group.consumer.session.timeout.ms"
            ),
            heartbeat_interval_ms=_own(
                own, HEARTBEAT_INTERVAL, settings, "group.consumer.heartbeat.interval.ms"
            ),
            assignment_interval_ms=_own(
                own, ASSIGNMENT_INTERVAL, settings, "group.consumer.assignment.interval.ms"
            ),
            max_size=settings.int("group.consumer.max.size"),
            assignors=tuple(dict.fromkeys(named)) or ASSIGNOR_NAMES,
            migration=MigrationPolicy(
                (settings.string("group.consumer.migration.policy") or "").lower()
            ),
        )


def _own(own: Mapping[str, str], name: str, settings: BrokerConfigs, inherited: str) -> int:
    text = own.get(name)
    usable = None if text is None else table(Scope.GROUP)[name].usable(text)
    if usable is None:
        return settings.int(inherited)
    return capped(name, int(usable), settings)


class GroupSettings(NamedTuple):
    """Settings with their Kafka names and units."""

    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    offset_metadata_bytes_max: int
    offsets_retention_ms: int
    offsets_retention_check_interval_ms: int
    consumer: ConsumerGroupSettings = ConsumerGroupSettings()

    @staticmethod
    def of(settings: BrokerConfigs) -> "GroupSettings":
        """Read the settings."""
        return GroupSettings(
            initial_rebalance_delay_ms=settings.int("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms=settings.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=settings.int("group.max.session.timeout.ms"),
            max_size=settings.int("group.max.size"),
            offset_metadata_bytes_max=settings.int("offset.metadata.max.bytes"),
            offsets_retention_ms=settings.int("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=settings.int("offsets.retention.check.interval.ms"),
            consumer=ConsumerGroupSettings.of(settings),
        )
