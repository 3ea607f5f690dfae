"""Answers to the handlers' questions about data: asked of the core each time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pykafka_core._core import Core
from pykafka_core.broker.runtime.quorum_driver import QuorumDriver
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.handlers.context import QuorumStatus
from pykafka_core.metadata.image.image import Endpoint

if TYPE_CHECKING:
    from pykafka_core._core import ProducerState


class CoreFacts:
    """`handlers.context.Facts` of one broker."""

    def __init__(self, core: Core, quorum: QuorumDriver, identity: Identity, log_dir: str) -> None:
        self._core = core
        self._quorum = quorum
        self._identity = identity
        self._log_dir = log_dir
        self.endpoints: tuple[Endpoint, ...] = ()
        """Where this broker listens."""

    def describe_log_dirs(self) -> Sequence[tuple[bytes, int, int]]:
        """(topic id, partition, bytes) of every log that has files."""
        return self._core.describe_log_dirs()

    def disk_space(self) -> tuple[int, int]:
        """(total, usable) bytes of the data directory's file system; -1, -1 in memory."""
        return self._core.disk_space()

    def describe_producers(self, partition: tuple[bytes, int]) -> "Sequence[ProducerState]":
        """Producers whose state the partition's log keeps."""
        return self._core.describe_producers(partition)

    def log_dir(self) -> str:
        """The data directory's absolute path; ``memory`` without one."""
        return self._log_dir

    def quorum(self) -> QuorumStatus:
        """The metadata quorum now."""
        quorum = self._quorum.quorum
        return QuorumStatus(
            leader_id=quorum.leader_id,
            leader_epoch=quorum.leader_epoch,
            high_watermark=quorum.high_watermark,
            log_end_offset=quorum.log_end_offset,
            directory_id=self._identity.directory_id,
            endpoints=self.endpoints,
        )
