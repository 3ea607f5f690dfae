"""Records with which a new cluster begins, as ``kafka-storage format`` would leave in the image."""

from pykafka_core.metadata.image.features import (
    ELIGIBLE_LEADER_REPLICAS,
    GROUP_VERSION,
    GROUP_VERSION_LEVEL,
    METADATA_VERSION,
    METADATA_VERSION_LEVEL,
    TRANSACTION_VERSION,
    TRANSACTION_VERSION_LEVEL,
)
from pykafka_core.protocol.messages import ConfigRecord, FeatureLevelRecord, Message
from pykafka_core.types import RESOURCE_BROKER


def bootstrap_records() -> list[Message]:
    """Feature levels first: a reader has to know the metadata version before anything else.

    With eligible leader replicas on, Kafka keeps ``min.insync.replicas`` as a setting of the
    cluster, so that it can be the same for every broker (KIP-966).
    """
    return [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_LEVEL),
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        FeatureLevelRecord(name=GROUP_VERSION, feature_level=GROUP_VERSION_LEVEL),
        FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=TRANSACTION_VERSION_LEVEL),
        ConfigRecord(
            resource_type=RESOURCE_BROKER, resource_name="", name="min.insync.replicas", value="1"
        ),
    ]
