"""AlterClientQuotas: KIP-546."""

from collections.abc import Mapping

import pytest

from pykafka_core.metadata.image.image import QuotaKey
from pykafka_core.protocol.messages import ClientQuotaRecord
from tests.handlers.foreign_brokers import commit
from tests.handlers.quotas.quota_requests import (
    CLIENT,
    INVALID_REQUEST,
    POLICY_VIOLATION,
    Entity,
    alter,
    described,
    entry,
    limit,
)
from tests.support.simulated.broker import SimulatedBroker


def core_quotas(broker: SimulatedBroker) -> object:
    """Return the quotas in the core's last step."""
    told = [delta.client_quotas for delta in broker.core.applied if delta.client_quotas is not None]
    return told[-1]


def test_limits_are_set_changed_and_removed_in_the_image_and_the_core(
    broker: SimulatedBroker,
) -> None:
    assert described(broker) == []
    limits = {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2048.0}
    assert limit(broker, CLIENT, limits) == (0, None)
    assert described(broker) == [(CLIENT, limits)]
    assert core_quotas(broker) == [((("client-id", "a"),), key, limits[key]) for key in limits]
    assert limit(broker, CLIENT, {"producer_byte_rate": 5.0}) == (0, None)
    assert described(broker) == [(CLIENT, limits | {"producer_byte_rate": 5.0})]
    assert limit(broker, CLIENT, dict.fromkeys(limits)) == (0, None)
    assert described(broker) == []
    assert core_quotas(broker) == []


def test_unchanged_limit_writes_no_record(broker: SimulatedBroker) -> None:
    assert limit(broker, CLIENT, {"producer_byte_rate": 5.0}) == (0, None)
    offset = broker.image.offset
    assert limit(broker, CLIENT, {"producer_byte_rate": 5.0}) == (0, None)
    assert limit(broker, CLIENT, {"consumer_byte_rate": None}) == (0, None)
    assert broker.image.offset == offset


def test_validate_only_changes_nothing(broker: SimulatedBroker) -> None:
    entries = entry(CLIENT, {"producer_byte_rate": 5.0}), entry({"user": ""}, {})
    assert alter(broker, *entries, validate_only=True) == [
        (0, None),
        (INVALID_REQUEST, "Empty user not supported"),
    ]
    assert described(broker) == []


@pytest.mark.parametrize(
    ("entity", "limits", "text"),
    [
        ({}, {}, "Invalid empty client quota entity"),
        ({"group": "a"}, {}, "Unhandled client quota entity type: group"),
        ({"user": ""}, {}, "Empty user not supported"),
        (
            {"ip": "127.0.0.1", "user": "a"},
            {},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        (CLIENT, {"producer_byte_rate": 0.0}, "Quota producer_byte_rate must be greater than 0"),
        (CLIENT, {"producer_byte_rate": -1.0}, "Quota producer_byte_rate must be greater than 0"),
        (
            CLIENT,
            {"producer_byte_rate": float("nan")},
            "Quota producer_byte_rate must be greater than 0",
        ),
        (
            CLIENT,
            {"consumer_byte_rate": 1e19},
            "Proposed value for consumer_byte_rate is too large for a LONG.",
        ),
        (
            CLIENT,
            {"consumer_byte_rate": 1.5},
            "consumer_byte_rate cannot be a fractional value.",
        ),
        (CLIENT, {"rate": 1.0}, "Invalid configuration key rate"),
        ({"ip": None}, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
        (
            CLIENT,
            {"request_percentage": 50.0},
            "request_percentage: this limit is not built; producer_byte_rate and consumer_byte_rate are",
        ),
        (
            {"ip": "127.0.0.1"},
            {"connection_creation_rate": 5.0},
            "connection_creation_rate: this limit is not built;"
            " producer_byte_rate and consumer_byte_rate are",
        ),
    ],
)
def test_invalid_limits_are_rejected_with_a_message(
    broker: SimulatedBroker, entity: Entity, limits: Mapping[str, float | None], text: str
) -> None:
    assert limit(broker, entity, limits) == (INVALID_REQUEST, text)
    assert described(broker) == []


def test_an_entity_that_is_named_twice_is_changed_once(broker: SimulatedBroker) -> None:
    result = alter(
        broker,
        entry(CLIENT, {"producer_byte_rate": 1.0}),
        entry({"user": None}, {"producer_byte_rate": 3.0}),
        entry(CLIENT, {"producer_byte_rate": 2.0}),
    )
    text = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=a})"
    assert result == [(INVALID_REQUEST, text), (0, None)]
    assert described(broker) == [
        (CLIENT, {"producer_byte_rate": 1.0}),
        ({"user": None}, {"producer_byte_rate": 3.0}),
    ]


def test_limit_named_twice_changes_nothing(broker: SimulatedBroker) -> None:
    twice = entry(CLIENT, {"producer_byte_rate": 1.0})
    twice.ops *= 2
    [(code, _)] = alter(broker, twice)
    assert code == INVALID_REQUEST
    assert described(broker) == []


def test_the_number_of_limits_is_bounded(broker: SimulatedBroker) -> None:
    entries = [entry({"user": str(n)}, {"producer_byte_rate": 1.0}) for n in range(10_001)]
    codes = [code for code, _ in alter(broker, *entries)]
    assert codes == [0] * 10_000 + [POLICY_VIOLATION]
    assert limit(broker, {"user": "5"}, {"producer_byte_rate": 2.0}) == (0, None)
    assert limit(broker, {"user": "5"}, {"producer_byte_rate": None}) == (0, None)
    assert limit(broker, {"user": "more"}, {"producer_byte_rate": 1.0}) == (0, None)
    assert limit(broker, {"user": "too many"}, {"producer_byte_rate": 1.0})[0] == POLICY_VIOLATION


def test_the_length_of_names_is_bounded(broker: SimulatedBroker) -> None:
    for length, code in ((1_024, 0), (1_025, POLICY_VIOLATION)):
        assert limit(broker, {"user": "u" * length}, {"producer_byte_rate": 1.0})[0] == code


def test_unsupported_limits_of_kafka_are_kept_and_can_be_removed(
    broker: SimulatedBroker,
) -> None:
    part = ClientQuotaRecord.EntityData(entity_type="ip", entity_name=None)
    commit(broker, ClientQuotaRecord(entity=[part], key="connection_creation_rate", value=5.0))
    assert described(broker) == [({"ip": None}, {"connection_creation_rate": 5.0})]
    assert limit(broker, {"ip": None}, {"connection_creation_rate": None}) == (0, None)
    assert described(broker) == []


def test_image_holds_the_limits_by_sorted_entity(broker: SimulatedBroker) -> None:
    limit(broker, {"user": "u", "client-id": None}, {"producer_byte_rate": 7.0})
    key = QuotaKey((("client-id", None), ("user", "u")), "producer_byte_rate")
    assert broker.image.client_quotas == {key: 7.0}
