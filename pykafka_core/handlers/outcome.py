"""What a handler may decide: answer, propose metadata records, or have logs maintained."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pykafka_core.errors import PolicyViolationError
from pykafka_core.protocol.messages import Message

RECORDS_MAX = 10_000
"""Metadata records of one request, as Kafka's ``MAX_RECORDS_PER_USER_OP``: one request must not
hold up the others for long, nor fill the disk."""


class Propose(NamedTuple):
    """Append ``records`` to the metadata log as one atomic batch, then answer.

    Args:
        records: Empty when there is nothing to change; then ``reply(0)`` comes at once.
        reply: Called with 0 once they are committed and applied, or with the error code with which
            they were refused; nothing was changed then.
    """

    records: Sequence[Message]
    reply: Callable[[int], Message]


class DeleteBefore(NamedTuple):
    """Advance a log's start to ``offset``; -1 is the high watermark."""

    topic_id: bytes
    partition: int
    offset: int


class Maintained(NamedTuple):
    """What came of a `DeleteBefore`: 0 and the new log start offset, or an error code."""

    error_code: int
    offset: int


class Maintain(NamedTuple):
    """Have logs changed, then answer; ``reply`` gets one result for each command, in order."""

    commands: Sequence[DeleteBefore]
    reply: Callable[[Sequence[Maintained]], Message]


Outcome = Message | Propose | Maintain


def bounded(records: Sequence[Message]) -> Sequence[Message]:
    """``records``, if one request may have so many.

    Raises:
        PolicyViolationError: More than `RECORDS_MAX`.
    """
    if len(records) > RECORDS_MAX:
        raise PolicyViolationError(
            f"The request needs {len(records)} metadata records; one may need {RECORDS_MAX}."
        )
    return records
