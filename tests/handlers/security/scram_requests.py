"""Requests about SCRAM credentials, and their responses."""

from pykafka_core.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from tests.support.simulated.broker import SimulatedBroker

SHA_256, SHA_512 = 1, 2
NOT_FOUND, DUPLICATE, UNACCEPTABLE = 91, 92, 93
UNKNOWN_MECHANISM, POLICY_VIOLATION = 33, 44

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def upsertion(
    name: str,
    mechanism: int = SHA_256,
    iterations: int = 8_192,
    salt: bytes = b"salt",
    password: bytes = b"x" * 32,
) -> Upsertion:
    return Upsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=password,
    )


def alter(
    broker: SimulatedBroker, *changes: Deletion | Upsertion
) -> dict[str, tuple[int, str | None]]:
    """Alter credentials; return error codes and messages by user."""
    request = AlterUserScramCredentialsRequest(
        deletions=[one for one in changes if isinstance(one, Deletion)],
        upsertions=[one for one in changes if isinstance(one, Upsertion)],
    )
    response = broker.ask(request)
    assert isinstance(response, AlterUserScramCredentialsResponse)
    found = {one.user: (one.error_code, one.error_message) for one in response.results}
    assert len(found) == len(response.results)
    return found


def describe(
    broker: SimulatedBroker, *users: str
) -> dict[str, tuple[int, str | None, list[tuple[int, int]]]]:
    """Return error codes, messages and pairs of mechanism and iterations by user; by default for
    all users.
    """
    of = DescribeUserScramCredentialsRequest
    response = broker.ask(of(users=[of.UserName(name=user) for user in users] or None))
    assert isinstance(response, DescribeUserScramCredentialsResponse)
    assert (response.error_code, response.error_message) == (0, "")
    return {
        one.user: (
            one.error_code,
            one.error_message,
            [(info.mechanism, info.iterations) for info in one.credential_infos],
        )
        for one in response.results
    }
