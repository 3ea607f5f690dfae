"""RenewDelegationToken (39): refused on plain listeners (``KafkaApis.allowTokenRequests``)."""

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(
    _context: Context, _request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Refuse the request."""
    return RenewDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowedError.code, expiry_timestamp_ms=-1
    )
