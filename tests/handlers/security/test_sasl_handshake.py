"""SaslHandshake on a plain listener, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.errors import IllegalSaslStateError
from pykafka_core.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse
from tests.support.simulated.broker import SimulatedBroker


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize("mechanism", ["PLAIN", ""])
def test_handshake_is_rejected(broker: SimulatedBroker, version: int, mechanism: str) -> None:
    response = broker.ask(SaslHandshakeRequest(mechanism=mechanism), version)
    assert response == SaslHandshakeResponse(error_code=IllegalSaslStateError.code, mechanisms=[])
