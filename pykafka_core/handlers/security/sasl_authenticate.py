"""SaslAuthenticate (36): refused, as a plain listener in Kafka refuses it."""

from pykafka_core.errors import IllegalSaslStateError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(_context: Context, _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse it."""
    return SaslAuthenticateResponse(
        error_code=IllegalSaslStateError.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
