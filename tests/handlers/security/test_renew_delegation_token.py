"""RenewDelegationToken on a plain listener, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from tests.support.simulated.broker import SimulatedBroker


@pytest.mark.parametrize("version", range(1, 3))
def test_delegation_token_is_rejected(broker: SimulatedBroker, version: int) -> None:
    response = broker.ask(RenewDelegationTokenRequest(hmac=b"x"), version)
    assert response == RenewDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowedError.code, expiry_timestamp_ms=-1
    )
