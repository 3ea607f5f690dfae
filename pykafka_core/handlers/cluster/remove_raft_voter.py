"""RemoveRaftVoter (81), KIP-853, on a broker without a controller listener.

On other nodes the quorum handles it (docs/design/0016).
"""

from pykafka_core.errors import UnsupportedVersionError
from pykafka_core.handlers.cluster.add_raft_voter import ALONE
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle(_context: Context, _request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Refuse the request: without a listener for other controllers there are no other voters."""
    return RemoveRaftVoterResponse(error_code=UnsupportedVersionError.code, error_message=ALONE)
