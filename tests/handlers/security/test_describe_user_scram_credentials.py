"""DescribeUserScramCredentials, with the responses of Apache Kafka 4.2.1."""

from tests.handlers.security.scram_requests import (
    DUPLICATE,
    NOT_FOUND,
    SHA_256,
    SHA_512,
    alter,
    describe,
    upsertion,
)
from tests.support.simulated.broker import SimulatedBroker


def test_without_credentials_there_are_no_users(broker: SimulatedBroker) -> None:
    assert describe(broker) == {}


def test_users_have_their_mechanisms_in_order(broker: SimulatedBroker) -> None:
    alter(broker, upsertion("u", SHA_512, 10_000), upsertion("w"))
    alter(broker, upsertion("u", SHA_256, 9_999))
    of_u = (0, "", [(SHA_256, 9_999), (SHA_512, 10_000)])
    assert describe(broker) == {"u": of_u, "w": (0, "", [(SHA_256, 8_192)])}
    assert describe(broker, "u") == {"u": of_u}


def test_invalid_users_do_not_affect_others(broker: SimulatedBroker) -> None:
    alter(broker, upsertion("u"))
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: w"
    missing = "Attempt to describe a user credential that does not exist: "
    assert describe(broker, "u", "w", "w", "") == {
        "u": (0, "", [(SHA_256, 8_192)]),
        "w": (DUPLICATE, twice, []),
        "": (NOT_FOUND, missing, []),
    }
