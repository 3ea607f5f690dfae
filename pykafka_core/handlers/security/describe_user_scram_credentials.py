"""DescribeUserScramCredentials (50): KIP-554; ``ScramImage.describe`` in Kafka."""

from collections import Counter

from pykafka_core.errors import DuplicateResourceError, KafkaError, ResourceNotFoundError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work
from pykafka_core.protocol.messages import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
_Info = DescribeUserScramCredentialsResponse.CredentialInfo


def handle(
    context: Context, request: DescribeUserScramCredentialsRequest
) -> Work[DescribeUserScramCredentialsResponse]:
    """List the mechanisms of the requested users, or of all; never return keys."""
    found: dict[str, list[_Info]] = {}
    for (name, mechanism), credential in context.image.scram_credentials.items():
        yield
        info = _Info(mechanism=mechanism, iterations=credential.iterations)
        found.setdefault(name, []).append(info)
    wanted = Counter(user.name for user in request.users) if request.users else None
    results = []
    for name in found if wanted is None else wanted:
        yield
        times = 1 if wanted is None else wanted[name]
        results.append(_result(name, found.get(name), times))
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _result(name: str, infos: list[_Info] | None, times: int) -> _Result:
    error: KafkaError
    if times > 1:
        error = DuplicateResourceError(
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
    elif infos is None:
        error = ResourceNotFoundError(
            f"Attempt to describe a user credential that does not exist: {name}"
        )
    else:
        infos.sort(key=lambda info: info.mechanism)
        return _Result(user=name, error_message="", credential_infos=infos)
    return _Result(user=name, error_code=error.code, error_message=str(error))
