"""ExpireDelegationToken (40): refused on plain listeners (``KafkaApis.allowTokenRequests``)."""

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def handle(
    _context: Context, _request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Refuse the request."""
    return ExpireDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowedError.code, expiry_timestamp_ms=-1
    )
