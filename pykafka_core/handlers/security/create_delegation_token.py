"""CreateDelegationToken (38): refused on plain listeners (``KafkaApis.allowTokenRequests``)."""

from typing import Final

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

REQUESTER_VERSION: Final = 3
"""From this version on a token has an owner and a requester (KIP-373)."""
_REQUESTER: Final = ("User", "ANONYMOUS")


def handle(
    context: Context, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Refuse the token."""
    kind, name = request.owner_principal_type or "", request.owner_principal_name or ""
    owner_type, owner_name = (kind, name) if name else _REQUESTER
    response = CreateDelegationTokenResponse(
        error_code=DelegationTokenRequestNotAllowedError.code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if context.caller.api_version >= REQUESTER_VERSION:
        response.token_requester_principal_type, response.token_requester_principal_name = (
            _REQUESTER
        )
    return response
