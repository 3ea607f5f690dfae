"""A simulated broker for each test: handlers are asked as clients ask them, in bytes."""

import pytest

from pykafka_core.testing.simulated_broker import SimulatedBroker


@pytest.fixture
def broker() -> SimulatedBroker:
    """One node, in memory, that has just started."""
    return SimulatedBroker()
