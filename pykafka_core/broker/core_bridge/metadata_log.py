"""The partition of the metadata log in the core."""

from pykafka_core.types import METADATA_TOPIC_ID

METADATA_PARTITION = (METADATA_TOPIC_ID, 0)
