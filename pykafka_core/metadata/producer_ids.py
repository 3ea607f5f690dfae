"""Blocks of producer ids: a broker assigns the ids of a block that a record reserved (KIP-730)."""

from typing import Final

from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import ProducerIdsRecord

BLOCK_SIZE: Final = 1000
"""``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``; each start of a broker uses a new block."""
PRODUCER_ID_MAX: Final = 2**63 - 1


def next_block(image: MetadataImage, broker_id: int, broker_epoch: int) -> ProducerIdsRecord | None:
    """Return the record that reserves the next `BLOCK_SIZE` ids; None if too few are left."""
    first = image.next_producer_id
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        return None
    return ProducerIdsRecord(
        broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
