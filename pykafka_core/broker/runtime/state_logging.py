"""Logs the partition and disk states that the core reports (docs/PLANES.md S5), with advice on what
to do.
"""

import logging
import os

from pykafka_core._core import Core, DiskState, PartitionState
from pykafka_core.broker.rate_limited_logging import Notices
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.metadata.health import Directory, Replicas
from pykafka_core.metadata.image.image import Partition
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID

_log = GuardedLogger(__name__)


class Levels:
    """Reports faults of partitions and of the disk.

    Args:
        core: Provides the clock.
        publisher: Provides the names of topics.
        log_dir: The data directory's absolute path.
        replicas: Where each state is recorded.
    """

    def __init__(self, core: Core, publisher: Publisher, log_dir: str, replicas: Replicas) -> None:
        self._publisher = publisher
        self._log_dir = log_dir
        self._notices = Notices(core.now_ns)
        self._replicas = replicas

    def partition(self, event: PartitionState) -> None:
        """Report a partition that is unavailable; the inspection at the start and the first use may
        find the same fault.
        """
        self._replicas.note((event.topic_id, event.partition), event.faults)
        topic = self._publisher.image.topics.by_id.get(event.topic_id)
        known = METADATA_TOPIC if event.topic_id == METADATA_TOPIC_ID else topic and topic.name
        name = f"{known or event.topic_id.hex()}-{event.partition}"
        for fault, reason in event.faults.items():
            # The core logs a warning about the others.
            if fault not in ("offline", "read_only") or self._notices.admit((name, fault)) is None:
                continue
            partition = None if topic is None else topic.partitions.get(event.partition)
            advice = self._repair(name, partition) if fault == "read_only" else ""
            _log.error("partition %s is %s: %s%s", name, fault, reason, advice)

    def _repair(self, name: str, partition: Partition | None) -> str:
        """Return advice for a damaged log."""
        import shlex  # imported only when needed, to save time at each start

        repair = f"pykafka-core repair {shlex.quote(os.path.join(self._log_dir, name))}"
        if partition is None or len(partition.replicas) == 1:
            return f"; it rejects records: stop the broker and run {repair}"
        return (
            "; the missing records are fetched from its leader. If this broker leads it, no replica fetches it: "
            "restart the broker, so that another member of the ISR leads. Without another member, stop the broker and "
            f"elect another replica (pykafka-core topics elect --unclean), or run {repair}"
        )

    def disk(self, event: DiskState) -> None:
        """Report each change."""
        self._replicas.note_directory(Directory(event.state))
        level = logging.INFO if event.state == "ok" else logging.ERROR
        _log.log(level, "data directory is %s: %s", event.state, event.reason)
