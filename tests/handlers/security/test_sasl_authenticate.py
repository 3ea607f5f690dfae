"""SaslAuthenticate on a plain listener, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.errors import IllegalSaslStateError
from pykafka_core.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse
from tests.support.simulated.broker import SimulatedBroker


@pytest.mark.parametrize("version", range(3))
def test_authentication_is_rejected(broker: SimulatedBroker, version: int) -> None:
    response = broker.ask(SaslAuthenticateRequest(auth_bytes=b"\0user\0password"), version)
    assert response == SaslAuthenticateResponse(
        error_code=IllegalSaslStateError.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
