"""The log of the metadata records, as the core knows it."""

from pykafka_core.broker.seam.core import Core, PartitionId
from pykafka_core.quorum.quorum import Append
from pykafka_core.types import METADATA_TOPIC_ID

METADATA_PARTITION: PartitionId = (METADATA_TOPIC_ID, 0)


def append_metadata(core: Core, command: Append) -> None:
    """Carry out the quorum's wish: one batch in ``__cluster_metadata-0``, completed by ``Appended``."""
    records = [(command.key, value) for value in command.values]
    core.append(
        command.token, METADATA_PARTITION, command.leader_epoch, records, control=command.control
    )
