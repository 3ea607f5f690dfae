"""AddRaftVoter (KIP-853) on a single broker; for clusters see tests/cluster/voters."""

from pykafka_core.errors import UnsupportedVersionError
from pykafka_core.protocol.messages import AddRaftVoterRequest, AddRaftVoterResponse
from tests.support.simulated.broker import SimulatedBroker


def test_quorum_without_a_controller_listener_accepts_no_voters(
    broker: SimulatedBroker,
) -> None:
    request = AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=1000,
        listeners=[],
        voter_id=2,
        voter_directory_id=bytes(15) + b"2",
    )
    response = broker.ask(request, 0)
    assert isinstance(response, AddRaftVoterResponse)
    assert response.error_code == UnsupportedVersionError.code
    assert "controller.listener.names" in (response.error_message or "")
