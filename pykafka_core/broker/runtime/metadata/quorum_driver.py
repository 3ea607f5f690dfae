"""Runs the metadata quorum: feeds its value with events, carries out its commands, passes on its notices."""

from collections.abc import Callable
from typing import assert_never

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.seam.metadata_log import METADATA_PARTITION
from pykafka_core.quorum.quorum import (
    Append,
    Appended,
    Committed,
    Event,
    MetadataQuorum,
    Notice,
    Output,
    Rejected,
)


class QuorumDriver:
    """Holds the quorum's value, and nothing else does.

    Args:
        core: Has the metadata log.
        completions: Where its appends are waited for.
        quorum: The value to begin with.

    Attributes:
        notify: Takes the notices; the start's at first, then the controller's.
    """

    def __init__(
        self, core: Core, completions: Completions, quorum: MetadataQuorum[Event, Output]
    ) -> None:
        self._core = core
        self._completions = completions
        self._quorum = quorum
        self.notify: Callable[[Notice], object] = lambda _: None

    @property
    def quorum(self) -> MetadataQuorum[Event, Output]:
        """The quorum now."""
        return self._quorum

    def handle(self, event: Event) -> None:
        """Take in an event. What a command or a notice raises, this raises."""
        committed = self._quorum.high_watermark
        self._quorum, outputs = self._quorum.handle(event)
        if self._quorum.high_watermark > committed:
            self._core.commit(METADATA_PARTITION, self._quorum.high_watermark)
        for output in outputs:
            match output:
                case Append():
                    self._append(output)
                case Committed() | Rejected():
                    self.notify(output)
                case _:
                    assert_never(output)

    def _append(self, command: Append) -> None:
        records = [(command.key, value) for value in command.values]
        epoch, control = command.leader_epoch, command.control
        token = self._completions.open(self._on_appended)
        self._core.append(token, METADATA_PARTITION, epoch, records, control=control)

    def _on_appended(self, completed: Completed) -> None:
        self.handle(Appended(completed.error_code, completed.offset))
