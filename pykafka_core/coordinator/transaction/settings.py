"""The settings of the transaction coordinator. They cannot change while the broker runs."""

from typing import NamedTuple

from pykafka_core.config import BrokerConfigs


class TransactionSettings(NamedTuple):
    """Settings with their Kafka names and units."""

    max_timeout_ms: int
    id_expiration_ms: int
    abort_timed_out_interval_ms: int
    remove_expired_interval_ms: int

    @staticmethod
    def of(settings: BrokerConfigs) -> "TransactionSettings":
        """Read the settings."""
        return TransactionSettings(
            max_timeout_ms=settings.int("transaction.max.timeout.ms"),
            id_expiration_ms=settings.int("transactional.id.expiration.ms"),
            abort_timed_out_interval_ms=settings.int(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            remove_expired_interval_ms=settings.int(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
        )
