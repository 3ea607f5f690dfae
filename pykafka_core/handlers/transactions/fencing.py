"""Common parts of the APIs of transactional producers."""

from pykafka_core.errors import InvalidProducerEpochError, ProducerFencedError
from pykafka_core.handlers.context import Context


def known_to(context: Context, error_code: int, fenced_version: int) -> int:
    """Return the error code for this version of the API: before ``fenced_version``, PRODUCER_FENCED
    is replaced by INVALID_PRODUCER_EPOCH.
    """
    is_old = context.caller.api_version < fenced_version
    is_fenced = error_code == ProducerFencedError.code
    return InvalidProducerEpochError.code if is_old and is_fenced else error_code
