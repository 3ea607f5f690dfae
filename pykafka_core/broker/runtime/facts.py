"""Answers to the handlers' questions that need no log."""

from pykafka_core.broker.runtime.quorum_driver import QuorumDriver
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.handlers.context import QuorumStatus
from pykafka_core.metadata.image.image import Endpoint


class CoreFacts:
    """`handlers.context.Facts` of one broker."""

    def __init__(self, quorum: QuorumDriver, identity: Identity, log_dir: str) -> None:
        self._quorum = quorum
        self._identity = identity
        self._log_dir = log_dir
        self.endpoints: tuple[Endpoint, ...] = ()
        """Where this broker listens."""

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
