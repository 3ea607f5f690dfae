"""Clients as generators: one yields its actions and receives their results."""

from collections.abc import Generator
from typing import Any, NamedTuple

from pykafka_core.protocol.messages import EndTxnRequest, Message, TxnOffsetCommitRequest
from tests.simulation.core import Produce

TV2_VERSION = 5
"""First version of EndTxn and TxnOffsetCommit with TV2."""


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
    """A script, and the call that it waits for."""

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self.script = script
        self.call = 0
        """Number of the current call; results of earlier calls are dropped."""
        self.wake_ns: int | None = 0
        self.is_over = False


class Sent(NamedTuple):
    """A client's action in a call."""

    client: Client
    call: int
    what: Ask | Put

    @property
    def is_given_up(self) -> bool:
        """Whether its client no longer waits for it."""
        return self.client.call != self.call


def harms_next_transaction(what: Ask | Put) -> bool:
    """Return whether it may affect the producer's next transaction, as in TV1, also in Kafka."""
    is_named = isinstance(what, Ask) and isinstance(
        what.request, EndTxnRequest | TxnOffsetCommitRequest
    )
    return is_named and isinstance(what, Ask) and what.version < TV2_VERSION
