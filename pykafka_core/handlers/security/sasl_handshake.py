"""SaslHandshake (17): refused, as on a plain listener of Kafka."""

from pykafka_core.errors import IllegalSaslStateError
from pykafka_core.handlers.context import Context
from pykafka_core.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


def handle(_context: Context, _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse the request."""
    return SaslHandshakeResponse(error_code=IllegalSaslStateError.code)
