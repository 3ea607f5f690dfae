"""Drives a metadata quorum of one voter: passes events to it, executes its commands, returns
its notices.
"""

from collections import deque
from typing import assert_never

from pykafka_core._core import Core
from pykafka_core.broker.core_bridge.metadata_log import METADATA_PARTITION
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.quorum.quorum import (
    Append,
    Appended,
    BeginEpoch,
    Committed,
    Event,
    Proposal,
    Rejected,
)
from pykafka_core.quorum.single_voter import SingleVoter


class QuorumDriver:
    """The only owner of the quorum's value; implements `QuorumPort`.

    Args:
        core: Has the metadata log.
        completions: Pending appends.
        quorum: The initial value.
    """

    def __init__(self, core: Core, completions: Completions, quorum: SingleVoter) -> None:
        self._core = core
        self._completions = completions
        self._quorum = quorum
        self._notices: deque[Committed | Rejected] = deque()

    @property
    def quorum(self) -> SingleVoter:
        """The current quorum."""
        return self._quorum

    @property
    def leads(self) -> bool:
        """True: there is no other voter."""
        return True

    @property
    def can_propose(self) -> bool:
        """Whether all notices were taken, and no batch is in flight."""
        return self._quorum.can_propose and not self._notices

    @property
    def has_notice(self) -> bool:
        """Whether `take_notice` returns a notice."""
        return bool(self._notices)

    def begin_epoch(self) -> None:
        """Commit the start of this node's leadership."""
        self._handle(BeginEpoch())

    def propose(self, proposal: Proposal) -> None:
        """Propose a batch."""
        self._handle(proposal)

    def take_notice(self) -> Committed | Rejected | None:
        """Return the next notice, if any."""
        return self._notices.popleft() if self._notices else None

    def _handle(self, event: Event) -> None:
        committed = self._quorum.high_watermark
        self._quorum, outputs = self._quorum.handle(event)
        if self._quorum.high_watermark > committed:
            self._core.commit(METADATA_PARTITION, self._quorum.high_watermark)
        for output in outputs:
            match output:
                case Append():
                    self._append(output)
                case Committed() | Rejected():
                    self._notices.append(output)
                case _:
                    assert_never(output)

    def _append(self, command: Append) -> None:
        records = command.records
        epoch, control = command.leader_epoch, command.control
        token = self._completions.open(self._on_appended)
        self._core.append(token, METADATA_PARTITION, epoch, records, control=control)

    def _on_appended(self, completed: Completed) -> None:
        self._handle(Appended(completed.error_code, completed.offset))
