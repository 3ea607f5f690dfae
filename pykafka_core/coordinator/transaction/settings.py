"""The settings of the transaction coordinator. None of them can be altered while the broker runs."""

from typing import NamedTuple

from pykafka_core.config import BrokerConfigs


class TransactionSettings(NamedTuple):
    """By their Kafka names, with the units of those."""

    max_timeout_ms: int
    id_expiration_ms: int
    abort_timed_out_interval_ms: int
    remove_expired_interval_ms: int

    @staticmethod
    def of(settings: BrokerConfigs) -> "TransactionSettings":
        """Read them."""
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
