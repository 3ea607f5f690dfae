"""The first records of a cluster: from ``kafka-storage format`` and from the first controller."""

from collections.abc import Sequence

from pykafka_core.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    GROUP_VERSION_LEVEL,
    METADATA_VERSION,
    METADATA_VERSION_LEVEL,
    TRANSACTION_VERSION,
    TRANSACTION_VERSION_LEVEL,
)
from pykafka_core.metadata.partition_rules import MIN_ISR
from pykafka_core.protocol.messages import ConfigRecord, FeatureLevelRecord, Message
from pykafka_core.types import RESOURCE_BROKER


def bootstrap_records() -> list[Message]:
    """Return the feature levels: a reader needs the metadata version before all other records."""
    return [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_LEVEL),
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        FeatureLevelRecord(name=GROUP_VERSION, feature_level=GROUP_VERSION_LEVEL),
        FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=TRANSACTION_VERSION_LEVEL),
    ]


def with_min_isr(records: Sequence[Message], min_isr: int) -> list[Message]:
    """Add the cluster's ``min.insync.replicas`` if ELR is enabled and it is missing.

    Kafka then requires it as a cluster setting, so that it is the same for every broker (KIP-966).

    Args:
        records: The records of a new cluster.
        min_isr: The first controller's setting at its start; from then on the record overrides it.
    """
    added = list(records)
    levels = {one.name: one.feature_level for one in added if isinstance(one, FeatureLevelRecord)}
    if levels.get(ELIGIBLE_LEADER_REPLICAS) and not any(map(_is_min_isr, added)):
        added.append(
            ConfigRecord(
                resource_type=RESOURCE_BROKER, resource_name="", name=MIN_ISR, value=str(min_isr)
            )
        )
    return added


def _is_min_isr(record: Message) -> bool:
    return isinstance(record, ConfigRecord) and (
        record.resource_type,
        record.resource_name,
        record.name,
    ) == (RESOURCE_BROKER, "", MIN_ISR)
