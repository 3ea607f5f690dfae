"""What the APIs of transactional producers have in common."""

from pykafka_core.errors import InvalidProducerEpochError, ProducerFencedError
from pykafka_core.handlers.context import Context


def known_to(context: Context, error_code: int, fenced_version: int) -> int:
    """An error code as clients of this version know it: before ``fenced_version`` they do not know PRODUCER_FENCED."""
    is_old = context.caller.api_version < fenced_version
    is_fenced = error_code == ProducerFencedError.code
    return InvalidProducerEpochError.code if is_old and is_fenced else error_code
