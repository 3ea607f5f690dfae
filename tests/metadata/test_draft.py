"""Records only change drafts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image import mutators
from pykafka_core.metadata.image.draft import Draft
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.mutators import MUTATORS, draft_of
from pykafka_core.protocol import messages
from pykafka_core.protocol.messages import (
    ClearElrRecord,
    ConfigRecord,
    Message,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykafka_core.types import ConfigResource

# Every schema of type "metadata" in Kafka 4.4's kafka-metadata jar.
KAFKA_4_4_RECORDS = {
    "AbortTransactionRecord", "AccessControlEntryRecord", "BeginTransactionRecord",
    "BrokerRegistrationChangeRecord", "ClearElrRecord", "ClientQuotaRecord", "ConfigRecord",
    "DelegationTokenRecord", "EndTransactionRecord", "FeatureLevelRecord", "FenceBrokerRecord",
    "NoOpRecord", "PartitionChangeRecord", "PartitionRecord", "ProducerIdsRecord",
    "RegisterBrokerRecord", "RegisterControllerRecord", "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord", "RemoveTopicRecord", "RemoveUserScramCredentialRecord",
    "TopicRecord", "UnfenceBrokerRecord", "UnregisterBrokerRecord", "UnregisterControllerRecord",
    "UserScramCredentialRecord", "ZkMigrationStateRecord",
}  # fmt: skip

ID = b"0123456789abcdef"


def topic(name: str = "orders", topic_id: bytes = ID, partitions: int = 1) -> list[Message]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                topic_id=topic_id,
                partition_id=index,
                replicas=[1, 2],
                isr=[1, 2],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes(16), bytes(16)],
            )
            for index in range(partitions)
        ),
    ]


def image(*records: Message) -> MetadataImage:
    return draft_of(MetadataImage(), list(records)).image


def test_every_record_type_of_kafka_4_4_is_applied() -> None:
    assert MUTATORS.keys() == KAFKA_4_4_RECORDS


def test_unknown_record_is_rejected_by_name() -> None:
    with pytest.raises(MetadataError, match="FetchRequest"):
        mutators.apply(Draft(MetadataImage()), messages.FetchRequest())


def test_draft_does_not_change_its_base() -> None:
    base = image(*topic(), config("retention.ms", "1"))
    before = repr(base)
    draft = Draft(base)
    for record in [
        PartitionChangeRecord(topic_id=ID, partition_id=0, leader=2),
        config("retention.ms", "2"),
        *topic("other", b"x" * 16),
        RemoveTopicRecord(topic_id=ID),
    ]:
        mutators.apply(draft, record)
    assert repr(base) == before
    assert list(draft.image.topics.by_name) == ["other"]


def config(name: str, value: str | None, kind: int = 2, resource: str = "orders") -> Message:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def test_change_replaces_only_the_fields_that_it_names() -> None:
    changed = image(*topic(), PartitionChangeRecord(topic_id=ID, partition_id=0, isr=[1]))
    partition = changed.topics.by_id[ID].partitions[0]
    assert (partition.isr, partition.leader, partition.replicas) == ((1,), 1, (1, 2))
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)


@pytest.mark.parametrize("leader", [1, 2, -1])
def test_naming_a_leader_is_an_election(leader: int) -> None:
    elected = image(*topic(), PartitionChangeRecord(topic_id=ID, partition_id=0, leader=leader))
    partition = elected.topics.by_id[ID].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (leader, 1, 1)


def test_eligible_leaders_are_kept_and_cleared() -> None:
    change = PartitionChangeRecord(
        topic_id=ID, partition_id=0, eligible_leader_replicas=[2], last_known_elr=[1]
    )
    eligible = image(*topic(), change)
    partition = eligible.topics.by_id[ID].partitions[0]
    assert (partition.elr, partition.last_known_elr) == ((2,), (1,))
    for name in ("orders", ""):
        cleared = draft_of(eligible, [ClearElrRecord(topic_name=name)]).image
        after = cleared.topics.by_id[ID].partitions[0]
        assert (after.elr, after.last_known_elr) == ((), ())
        # As in Apache Kafka: a leader requests its next ISR in this epoch.
        assert after.partition_epoch == partition.partition_epoch + 1
        assert draft_of(cleared, [ClearElrRecord(topic_name=name)]).image.topics == cleared.topics


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="orders", topic_id=b"x" * 16),
        TopicRecord(name="other", topic_id=ID),
        PartitionRecord(topic_id=b"x" * 16, partition_id=0),
        PartitionChangeRecord(topic_id=ID, partition_id=9),
        PartitionChangeRecord(topic_id=b"x" * 16, partition_id=0),
        RemoveTopicRecord(topic_id=b"x" * 16),
        ClearElrRecord(topic_name="nobody"),
        messages.FenceBrokerRecord(id=7, epoch=1),
        messages.UnregisterBrokerRecord(broker_id=7, broker_epoch=1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_contradictory_record_is_rejected(record: Message) -> None:
    with pytest.raises(MetadataError):
        mutators.apply(Draft(image(*topic())), record)


def test_topic_is_deleted_with_its_settings() -> None:
    gone = image(*topic(), config("retention.ms", "1"), RemoveTopicRecord(topic_id=ID))
    assert gone.configs.by_resource == {}


def test_a_null_value_removes_a_setting() -> None:
    removed = image(config("a", "1"), config("b", "2"), config("a", None))
    assert removed.configs.of(2, "orders") == {"b": "2"}
    assert removed.configs.names(2) == ["orders"]
    assert draft_of(removed, [config("b", None)]).image.configs.by_resource == {}


def test_changes_name_the_touched_objects() -> None:
    base = image(*topic("old", b"o" * 16), *topic("kept", b"k" * 16))
    draft = draft_of(
        base,
        [
            *topic(),
            RemoveTopicRecord(topic_id=b"o" * 16),
            *topic("brief", b"b" * 16),
            RemoveTopicRecord(topic_id=b"b" * 16),
            config("min.insync.replicas", "1", kind=4, resource=""),
        ],
    )
    assert list(draft.changes.topics) == [ID]
    assert draft.changes.deleted_topics == {b"o" * 16: base.topics.by_name["old"]}
    assert draft.changes.configs == {ConfigResource(4, "")}
    assert (draft.changes.brokers, draft.changes.features) == (False, False)


def test_registrations_follow_their_records() -> None:
    endpoint = messages.RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="h", port=9)
    register = messages.RegisterBrokerRecord(
        broker_id=7, broker_epoch=5, end_points=[endpoint], rack="r", fenced=True
    )
    change = messages.BrokerRegistrationChangeRecord
    registered = image(register)
    assert registered.brokers[7].fenced
    unfenced = draft_of(registered, [change(broker_id=7, broker_epoch=5, fenced=-1)]).image
    assert not unfenced.brokers[7].fenced
    assert unfenced.brokers[7].endpoints[0].port == 9
    leaving = draft_of(
        unfenced, [change(broker_id=7, broker_epoch=5, in_controlled_shutdown=1)]
    ).image
    assert leaving.brokers[7].in_controlled_shutdown
    gone = draft_of(leaving, [messages.UnregisterBrokerRecord(broker_id=7, broker_epoch=5)]).image
    assert gone.brokers == {}


def test_credentials_quotas_and_rights_are_kept() -> None:
    entity = messages.ClientQuotaRecord.EntityData
    quota = messages.ClientQuotaRecord(
        entity=[entity(entity_type="user", entity_name=None)], key="producer_byte_rate", value=5.0
    )
    kept = image(
        quota,
        messages.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s"),
        messages.AccessControlEntryRecord(id=ID, principal="User:u"),
        messages.DelegationTokenRecord(token_id="t"),
        messages.ProducerIdsRecord(next_producer_id=3000),
        messages.ZkMigrationStateRecord(zk_migration_state=3),
    )
    assert list(kept.client_quotas.values()) == [5.0]
    assert list(kept.scram_credentials) == [("u", 1)]
    assert (list(kept.acls), list(kept.delegation_tokens)) == ([ID], ["t"])
    assert kept.next_producer_id == 3000
    emptied = draft_of(
        kept,
        [
            messages.ClientQuotaRecord(entity=quota.entity, key=quota.key, remove=True),
            messages.RemoveUserScramCredentialRecord(name="u", mechanism=1),
            messages.RemoveAccessControlEntryRecord(id=ID),
            messages.RemoveDelegationTokenRecord(token_id="t"),
        ],
    ).image
    assert not (emptied.client_quotas)
    assert not (emptied.scram_credentials)
    assert not (emptied.acls)
    assert not (emptied.delegation_tokens)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["make", "remove", "elect", "set"]))))
def test_applying_in_one_draft_or_in_many_is_the_same(steps: list[tuple[int, str]]) -> None:
    one, many = Draft(MetadataImage()), MetadataImage()
    for number, action in steps:
        topic_id = bytes(15) + bytes([number])
        exists = topic_id in one.image.topics.by_id
        records: list[Message] = []
        if action == "make" and not exists:
            records = topic(str(number), topic_id)
        elif action == "remove" and exists:
            records = [RemoveTopicRecord(topic_id=topic_id)]
        elif action == "elect" and exists:
            records = [PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)]
        elif action == "set":
            records = [config("retention.ms", str(number), resource=str(number))]
        for record in records:
            mutators.apply(one, record)
        many = draft_of(many, records).image
    assert one.image == many
    assert one.image.topics.by_id == {t.topic_id: t for t in many.topics.by_name.values()}
