"""The table of record types and their effects on a draft, which only change through it.

The effect of a setting is here. Each other part of the image has a module of its effects.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image import brokers, features, quotas, security, topics
from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol.messages import Message
from pykafka_core.types import ConfigResource

if TYPE_CHECKING:
    from pykafka_core.protocol.messages import ConfigRecord


def apply(draft: Draft, record: Message) -> None:
    """Apply one record.

    Raises:
        MetadataError: Its type is unknown, or it refers to a topic, partition or broker that does
            not exist. The draft must be dropped.
    """
    name = type(record).__name__
    mutate = MUTATORS.get(name)
    if mutate is None:
        raise MetadataError(f"metadata record {name} is not known to this version")
    mutate(draft, record)


def draft_of(image: MetadataImage, records: Iterable[Message]) -> Draft:
    """Return a draft of ``image`` with ``records`` applied."""
    draft = Draft(image)
    for record in records:
        apply(draft, record)
    return draft


def _apply_config(draft: Draft, record: "ConfigRecord") -> None:
    """Set one setting of one resource; a null value removes it."""
    resource = ConfigResource(record.resource_type, record.resource_name)
    settings = draft.own_config(resource)
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    if not settings:
        draft.forget_config(resource)


def _no_change(draft: Draft, record: Message) -> None:
    """Ignore NoOpRecord and the records of a metadata transaction, which `replay.py` resolves."""


# All record types of Kafka 4.4, by class name; each function expects its own record class.
MUTATORS: dict[str, Callable[[Draft, Any], None]] = {
    "AbortTransactionRecord": _no_change,
    "AccessControlEntryRecord": security.apply_access_control_entry,
    "BeginTransactionRecord": _no_change,
    "BrokerRegistrationChangeRecord": brokers.apply_broker_registration_change,
    "ClearElrRecord": topics.apply_clear_elr,
    "ClientQuotaRecord": quotas.apply_client_quota,
    "ConfigRecord": _apply_config,
    "DelegationTokenRecord": security.apply_delegation_token,
    "EndTransactionRecord": _no_change,
    "FeatureLevelRecord": features.apply_feature_level,
    "FenceBrokerRecord": brokers.apply_fence_broker,
    "NoOpRecord": _no_change,
    "PartitionChangeRecord": topics.apply_partition_change,
    "PartitionRecord": topics.apply_partition,
    "ProducerIdsRecord": features.apply_producer_ids,
    "RegisterBrokerRecord": brokers.apply_register_broker,
    "RegisterControllerRecord": brokers.apply_register_controller,
    "RemoveAccessControlEntryRecord": security.apply_remove_access_control_entry,
    "RemoveDelegationTokenRecord": security.apply_remove_delegation_token,
    "RemoveTopicRecord": topics.apply_remove_topic,
    "RemoveUserScramCredentialRecord": security.apply_remove_user_scram_credential,
    "TopicRecord": topics.apply_topic,
    "UnfenceBrokerRecord": brokers.apply_unfence_broker,
    "UnregisterBrokerRecord": brokers.apply_unregister_broker,
    "UnregisterControllerRecord": brokers.apply_unregister_controller,
    "UserScramCredentialRecord": security.apply_user_scram_credential,
    "ZkMigrationStateRecord": features.apply_zk_migration_state,
}
