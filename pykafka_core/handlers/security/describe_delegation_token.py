"""DescribeDelegationToken (41): refused on plain listeners (``KafkaApis.allowTokenRequests``)."""

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(
    _context: Context, _request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Refuse the request."""
    return DescribeDelegationTokenResponse(error_code=DelegationTokenRequestNotAllowedError.code)
