"""Cluster-wide records: feature levels, producer ids, the ZooKeeper migration."""

from typing import TYPE_CHECKING

from pykafka_core.metadata.image.draft import Draft

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import (
        FeatureLevelRecord,
        ProducerIdsRecord,
        ZkMigrationStateRecord,
    )

METADATA_VERSION = "metadata.version"
METADATA_VERSION_LEVEL = 29
"""4.2-IV1, the level of a new cluster: nodes of Kafka 4.2 can join it."""
METADATA_VERSION_MAX = 33
"""4.4-IV2, the level of Kafka 4.4."""
CORDONED_DIRECTORIES_LEVEL = 30
"""4.3-IV0: registrations have cordoned directories (KIP-1066)."""
CONTROLLER_REMOVAL_LEVEL = 33
"""4.4-IV2: registrations of controllers can be removed."""
DIRECTORY_ASSIGNMENT_LEVEL = 17
"""3.7-IV2: brokers report the log directory of each replica (KIP-858)."""
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
KRAFT_VERSION = "kraft.version"
GROUP_VERSION = "group.version"
GROUP_VERSION_LEVEL = 1
"""Consumer groups of KIP-848."""
TRANSACTION_VERSION = "transaction.version"
TRANSACTION_VERSION_LEVEL = 2
"""Each transaction has its own producer epoch (KIP-890)."""

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
    GROUP_VERSION: (0, GROUP_VERSION_LEVEL),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, METADATA_VERSION_MAX),
    TRANSACTION_VERSION: (0, TRANSACTION_VERSION_LEVEL),
}
"""Features in ApiVersions. ``share.version`` and ``streams.version`` will be added with their
coordinators: clients rely on the features that are listed."""


def apply_feature_level(draft: Draft, record: "FeatureLevelRecord") -> None:
    """Finalise a level; 0 disables the feature."""
    image = draft.image
    image.features = table = draft.own("features", image.features)
    if record.feature_level:
        table[record.name] = record.feature_level
    else:
        table.pop(record.name, None)
    draft.changes.features = True


def apply_producer_ids(draft: Draft, record: "ProducerIdsRecord") -> None:
    """Reserve all producer ids below ``next_producer_id``."""
    draft.image.next_producer_id = record.next_producer_id


def apply_zk_migration_state(draft: Draft, record: "ZkMigrationStateRecord") -> None:
    """Keep the state in logs from ZooKeeper clusters; it has had no effect since Kafka 4.0."""
    draft.image.zk_migration_state = record.zk_migration_state
