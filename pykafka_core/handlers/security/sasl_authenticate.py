"""SaslAuthenticate (36): refused, as on a plain listener of Kafka."""

from pykafka_core.errors import IllegalSaslStateError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(_context: Context, _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse the request."""
    return SaslAuthenticateResponse(
        error_code=IllegalSaslStateError.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
