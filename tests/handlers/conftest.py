"""A simulated broker for each test; requests and responses are encoded as for clients."""

import pytest

from tests.support.simulated.broker import SimulatedBroker


@pytest.fixture
def broker() -> SimulatedBroker:
    """One node in memory, directly after its start."""
    return SimulatedBroker()
