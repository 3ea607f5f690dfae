"""Clients as generators: one yields what it does and is sent what came of it."""

from collections.abc import Generator
from typing import Any, NamedTuple

from pykafka_core.protocol.messages import EndTxnRequest, Message, TxnOffsetCommitRequest
from tests.simulation.core import Produce

TV2_VERSION = 5
"""Of EndTxn and TxnOffsetCommit."""


class Ask(NamedTuple):
    """Send a request."""

    request: Message
    version: int


class Put(NamedTuple):
    """Produce a record."""

    record: Produce


class Wait(NamedTuple):
    """Do nothing."""

    duration_ms: int


Script = Generator[Ask | Put | Wait, Any, None]


class Client:
    """A script, and what it waits for."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.script = script
        self.call = 0
        """What it waits for; what comes for an earlier call is too late."""
        self.wake_ns: int | None = 0
        self.is_over = False


class Sent(NamedTuple):
    """What a client sent in which call."""

    client: Client
    call: int
    what: Ask | Put

    @property
    def is_given_up(self) -> bool:
        """Whether its client does not wait for it any more."""
        return self.client.call != self.call


def harms_next_transaction(what: Ask | Put) -> bool:
    """Whether it cannot be told from one of the same producer's next transaction: so it is in TV1, in Kafka too."""
    is_named = isinstance(what, Ask) and isinstance(
        what.request, EndTxnRequest | TxnOffsetCommitRequest
    )
    return is_named and isinstance(what, Ask) and what.version < TV2_VERSION
