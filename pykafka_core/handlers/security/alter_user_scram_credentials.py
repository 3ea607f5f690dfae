"""AlterUserScramCredentials (51): KIP-554; ``ScramControlManager`` in Kafka.

Credentials are stored as in Kafka, but no listener authenticates with them yet.
"""

import hashlib
import hmac
from collections.abc import Iterator

from pykafka_core.errors import (
    DuplicateResourceError,
    KafkaError,
    PolicyViolationError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import MetadataWrite, Work, collect, without_traceback
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    Message,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

LEVEL_MIN = 11
"""3.5-IV2, the first ``metadata.version`` with SCRAM credentials."""
CREDENTIALS_MAX = 10_000
NAME_LENGTH_MAX = 1_024
SALT_BYTES_MAX = 1_024
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384

_HASHES = {1: "sha256", 2: "sha512"}
_Request = AlterUserScramCredentialsRequest
_Change = _Request.ScramCredentialDeletion | _Request.ScramCredentialUpsertion
_Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def handle(context: Context, request: _Request) -> Work[MetadataWrite]:
    """Plan one change for each user; a user that is named twice is not changed."""
    planned: dict[str, Message | KafkaError] = {}
    room = CREDENTIALS_MAX - len(context.image.scram_credentials)
    changes: tuple[_Change, ...] = (*request.deletions, *request.upsertions)
    for change in changes:
        yield
        before = planned.get(change.name)
        if isinstance(before, KafkaError):
            continue
        if before is not None:
            text = "A user credential cannot be altered twice in the same request"
            planned[change.name] = DuplicateResourceError(text)
            continue
        try:
            planned[change.name] = _record(context.image, change, room)
        except KafkaError as error:
            planned[change.name] = without_traceback(error)
        else:
            room -= isinstance(change, _Request.ScramCredentialUpsertion)

    def reply(code: int) -> Work[AlterUserScramCredentialsResponse]:
        failed = error_of(code)() if code else None
        results = yield from collect(_results(planned, failed))
        return AlterUserScramCredentialsResponse(results=results)

    records = [one for one in planned.values() if not isinstance(one, KafkaError)]
    return MetadataWrite(records, reply)


def _results(
    planned: dict[str, Message | KafkaError], failed: KafkaError | None
) -> Iterator[_Result]:
    for name, one in planned.items():
        error = one if isinstance(one, KafkaError) else failed
        yield _Result(
            user=name,
            error_code=error.code if error else 0,
            error_message=str(error) if error else None,
        )


def _record(image: MetadataImage, change: _Change, room: int) -> Message:
    if image.features.get(METADATA_VERSION, 0) < LEVEL_MIN:
        raise UnsupportedVersionError("The current metadata version does not support SCRAM")
    if not change.name:
        raise UnacceptableCredentialError("Username must not be empty")
    if change.mechanism not in _HASHES:
        raise UnsupportedSaslMechanismError("Unknown SCRAM mechanism")
    is_stored = (change.name, change.mechanism) in image.scram_credentials
    if isinstance(change, _Request.ScramCredentialDeletion):
        if not is_stored:
            text = "Attempt to delete a user credential that does not exist"
            raise ResourceNotFoundError(text)
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    _check(change)
    if not is_stored and room <= 0:
        raise PolicyViolationError(f"There are {CREDENTIALS_MAX} SCRAM credentials at most.")
    return _credential(change)


def _check(change: _Request.ScramCredentialUpsertion) -> None:
    if change.iterations < ITERATIONS_MIN:
        raise UnacceptableCredentialError("Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise UnacceptableCredentialError("Too many iterations")
    if not change.salted_password:
        raise UnacceptableCredentialError("Salted password must not be empty")
    if len(change.name) > NAME_LENGTH_MAX:
        text = f"A user with a SCRAM credential has {NAME_LENGTH_MAX} characters at most."
        raise PolicyViolationError(text)
    if len(change.salt) > SALT_BYTES_MAX:
        raise PolicyViolationError(f"A salt has {SALT_BYTES_MAX} bytes at most.")


def _credential(change: _Request.ScramCredentialUpsertion) -> UserScramCredentialRecord:
    """Return the keys of RFC 5802, section 3; the salted password is not stored."""
    name, salted = _HASHES[change.mechanism], change.salted_password
    client_key = hmac.digest(salted, b"Client Key", name)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", name),
        iterations=change.iterations,
    )
