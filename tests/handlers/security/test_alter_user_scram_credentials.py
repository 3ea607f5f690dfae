"""AlterUserScramCredentials, with the responses of Apache Kafka 4.2.1, and our own limits."""

import hashlib
import hmac

import pytest

from pykafka_core.handlers.security import alter_user_scram_credentials
from tests.handlers.security.scram_requests import (
    DUPLICATE,
    NOT_FOUND,
    POLICY_VIOLATION,
    SHA_256,
    SHA_512,
    UNACCEPTABLE,
    UNKNOWN_MECHANISM,
    Deletion,
    Upsertion,
    alter,
    describe,
    upsertion,
)
from tests.support.simulated.broker import SimulatedBroker

TWICE = "A user credential cannot be altered twice in the same request"
MISSING = "Attempt to delete a user credential that does not exist"


def test_the_keys_of_rfc_5802_are_stored_and_the_password_is_not(broker: SimulatedBroker) -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4_096)
    assert alter(broker, upsertion("u", SHA_256, 4_096, b"salt", salted)) == {"u": (0, None)}
    stored = broker.image.scram_credentials["u", SHA_256]
    assert (stored.salt, stored.iterations) == (b"salt", 4_096)
    client_key = hmac.new(salted, b"Client Key", "sha256").digest()
    assert stored.stored_key == hashlib.sha256(client_key).digest()
    assert stored.server_key == hmac.new(salted, b"Server Key", "sha256").digest()


def test_credentials_are_replaced_and_deleted(broker: SimulatedBroker) -> None:
    alter(broker, upsertion("u"))
    alter(broker, upsertion("u", iterations=5_000))
    alter(broker, upsertion("u", SHA_512))
    assert describe(broker)["u"][2] == [(SHA_256, 5_000), (SHA_512, 8_192)]
    assert alter(broker, Deletion(name="u", mechanism=SHA_256)) == {"u": (0, None)}
    assert describe(broker)["u"][2] == [(SHA_512, 8_192)]


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (Deletion(name="u", mechanism=SHA_256), NOT_FOUND, MISSING),
        (Deletion(name="", mechanism=9), UNACCEPTABLE, "Username must not be empty"),
        (Deletion(name="u", mechanism=0), UNKNOWN_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("", 9, 1), UNACCEPTABLE, "Username must not be empty"),
        (upsertion("u", 3, 1), UNKNOWN_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("u", iterations=4_095), UNACCEPTABLE, "Too few iterations"),
        (upsertion("u", iterations=16_385), UNACCEPTABLE, "Too many iterations"),
        (upsertion("u", password=b""), UNACCEPTABLE, "Salted password must not be empty"),
        (upsertion("u" * 1_025), POLICY_VIOLATION, None),
        (upsertion("u", salt=b"s" * 1_025), POLICY_VIOLATION, None),
    ],
)
def test_invalid_change_is_rejected(
    broker: SimulatedBroker, change: Deletion | Upsertion, code: int, text: str | None
) -> None:
    found = alter(broker, change, upsertion("other"))
    assert found[change.name][0] == code
    if text is not None:
        assert found[change.name][1] == text
    assert found["other"] == (0, None)
    assert describe(broker).keys() == {"other"}


def test_user_named_twice_stays_unchanged(broker: SimulatedBroker) -> None:
    alter(broker, upsertion("u"))
    deletion = Deletion(name="u", mechanism=SHA_256)
    for changes in (
        (deletion, deletion),
        (deletion, upsertion("u")),
        (upsertion("u"), upsertion("u", SHA_512)),
        (upsertion("u"), upsertion("u", iterations=1)),
    ):
        assert alter(broker, *changes) == {"u": (DUPLICATE, TWICE)}
    first_error = (upsertion("u", iterations=1), upsertion("u"))
    assert alter(broker, *first_error) == {"u": (UNACCEPTABLE, "Too few iterations")}
    assert describe(broker)["u"][2] == [(SHA_256, 8_192)]


def test_limit_of_credentials_allows_replacements_and_deletions(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alter_user_scram_credentials, "CREDENTIALS_MAX", 2)
    found = alter(broker, upsertion("a"), upsertion("b"), upsertion("c"))
    assert [found[name][0] for name in "abc"] == [0, 0, POLICY_VIOLATION]
    assert alter(broker, upsertion("a", iterations=5_000))["a"] == (0, None)
    assert alter(broker, Deletion(name="a", mechanism=SHA_256))["a"] == (0, None)
    assert alter(broker, upsertion("c"))["c"] == (0, None)
