"""The log of the metadata records, as the core knows it."""

from pykafka_core.types import METADATA_TOPIC_ID

METADATA_PARTITION = (METADATA_TOPIC_ID, 0)
