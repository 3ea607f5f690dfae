"""DescribeDelegationToken on a plain listener, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.protocol.messages import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from tests.support.simulated.broker import SimulatedBroker


@pytest.mark.parametrize("version", range(1, 4))
def test_delegation_tokens_are_rejected(broker: SimulatedBroker, version: int) -> None:
    response = broker.ask(DescribeDelegationTokenRequest(owners=None), version)
    assert response == DescribeDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowedError.code
    )
