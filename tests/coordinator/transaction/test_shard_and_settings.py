"""Settings are read by their Kafka names, and the shard implements the runtime's interface."""

from pykafka_core.config import BrokerConfigs
from pykafka_core.coordinator.shard import Shard
from pykafka_core.coordinator.transaction.settings import TransactionSettings
from pykafka_core.coordinator.transaction.states import TransactionState
from tests.coordinator.transaction.world import World, transaction


def test_defaults_equal_those_of_kafka() -> None:
    assert TransactionSettings.of(BrokerConfigs()) == TransactionSettings(
        max_timeout_ms=900_000,
        id_expiration_ms=604_800_000,
        abort_timed_out_interval_ms=10_000,
        remove_expired_interval_ms=3_600_000,
    )


def test_each_setting_is_read_by_its_name() -> None:
    names = (
        "transaction.max.timeout.ms",
        "transactional.id.expiration.ms",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
    )
    given = BrokerConfigs({name: str(value) for value, name in enumerate(names, 1)})
    assert TransactionSettings.of(given) == (1, 2, 3, 4)


def test_markers_and_deleted_topics_do_not_change_a_transaction_shard() -> None:
    world = World(transaction(TransactionState.ONGOING))
    shard: Shard = world.shard
    before, result = world.dump(), world.turn()
    shard.replay_marker(7, committed=True)
    shard.topics_deleted({"t": bytes(16)}, result)
    assert world.dump() == before
    assert not any((result.records, result.responses, result.effects))
