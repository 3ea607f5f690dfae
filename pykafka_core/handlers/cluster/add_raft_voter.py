"""AddRaftVoter (80), KIP-853, on a broker without a controller listener.

On other nodes the quorum handles it (docs/design/0016).
"""

from pykafka_core.errors import UnsupportedVersionError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import AddRaftVoterRequest, AddRaftVoterResponse

ALONE = "this broker has no listener of controllers: set controller.listener.names"


def handle(_context: Context, _request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse the request: without a listener for other controllers there can be no more voters."""
    return AddRaftVoterResponse(error_code=UnsupportedVersionError.code, error_message=ALONE)
