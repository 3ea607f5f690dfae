"""RemoveRaftVoter (KIP-853) on a single broker; for clusters see tests/cluster/voters."""

from pykafka_core.errors import UnsupportedVersionError
from pykafka_core.protocol.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tests.support.simulated.broker import SimulatedBroker


def test_quorum_without_a_controller_listener_has_no_other_voters(
    broker: SimulatedBroker,
) -> None:
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=2, voter_directory_id=bytes(15) + b"2"
    )
    response = broker.ask(request, 0)
    assert isinstance(response, RemoveRaftVoterResponse)
    assert response.error_code == UnsupportedVersionError.code
    assert "controller.listener.names" in (response.error_message or "")
