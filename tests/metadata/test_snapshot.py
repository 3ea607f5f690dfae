"""A snapshot contains the whole content of an image."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core._records import RecordBatchReader
from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.metadata.records.codec import decode_batches, encode
from pykafka_core.metadata.records.quorum_records import QuorumRecords
from pykafka_core.metadata.records.snapshot import (
    BATCH_RECORDS_MAX,
    FOOTER_KEY,
    HEADER_KEY,
    decode_snapshot,
    encode_snapshot,
    records_of,
)
from pykafka_core.protocol.messages import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    Message,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from tests.support.snapshots import with_a_malformed_record


def id_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


Entity = ClientQuotaRecord.EntityData
ENDPOINT = {"name": "PLAINTEXT", "host": "h", "port": 9, "security_protocol": 0}
FEATURE = {"name": "f", "min_supported_version": 0, "max_supported_version": 2}
ALL: list[Message] = [
    FeatureLevelRecord(name="metadata.version", feature_level=29),
    RegisterBrokerRecord(
        broker_id=3,
        incarnation_id=id_of(8),
        broker_epoch=7,
        end_points=[RegisterBrokerRecord.BrokerEndpoint(**ENDPOINT)],  # type: ignore[arg-type]
        features=[RegisterBrokerRecord.BrokerFeature(**FEATURE)],  # type: ignore[arg-type]
        rack="r",
        fenced=True,
        in_controlled_shutdown=True,
        log_dirs=[id_of(9)],
    ),
    RegisterBrokerRecord(
        broker_id=5,
        incarnation_id=id_of(12),
        broker_epoch=8,
        log_dirs=[id_of(13), id_of(14)],
        cordoned_log_dirs=[id_of(13)],
    ),
    RegisterControllerRecord(
        controller_id=4,
        incarnation_id=id_of(10),
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(**ENDPOINT)  # type: ignore[arg-type]
        ],
        features=[RegisterControllerRecord.ControllerFeature(**FEATURE)],  # type: ignore[arg-type]
    ),
    ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
    ClientQuotaRecord(
        entity=[Entity(entity_type="user", entity_name=None)], key="producer_byte_rate", value=1.5
    ),
    ProducerIdsRecord(broker_id=3, broker_epoch=7, next_producer_id=2000),
    AccessControlEntryRecord(id=id_of(11), principal="User:a", resource_name="t", host="*"),
    UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v"),
    DelegationTokenRecord(owner="o", requester="o", token_id="t"),
    ZkMigrationStateRecord(zk_migration_state=1),
]


def image_of(records: list[Message]) -> MetadataImage:
    replay = Replay()
    replay.apply(enumerate(records))
    return replay.image()


def loaded(image: MetadataImage) -> MetadataImage:
    content = encode_snapshot(records_of(image), leader_epoch=5, time_ms=1000)
    replay = Replay()
    records = [record for _, record in decode_batches(content).records]
    replay.apply_snapshot(records, image.offset + 1)
    found = replay.image()
    # A snapshot does not contain the step that finalized a feature: its end counts instead.
    found.features_epoch = image.features_epoch
    return found


nodes = st.lists(st.integers(0, 9), max_size=4, unique=True)


@st.composite
def topics(draw: st.DrawFn) -> list[Message]:
    records: list[Message] = []
    for number in range(draw(st.integers(0, 4))):
        records.append(TopicRecord(name=f"t{number}", topic_id=id_of(100 + number)))
        for index in range(draw(st.integers(0, 3))):
            records.append(
                PartitionRecord(
                    topic_id=id_of(100 + number),
                    partition_id=index,
                    replicas=draw(nodes),
                    isr=draw(nodes),
                    removing_replicas=draw(nodes),
                    adding_replicas=draw(nodes),
                    leader=draw(st.integers(-1, 9)),
                    leader_recovery_state=draw(st.integers(0, 1)),
                    leader_epoch=draw(st.integers(0, 2**31 - 1)),
                    partition_epoch=draw(st.integers(0, 2**31 - 1)),
                    directories=[id_of(draw(st.integers(0, 2**120)))],
                    eligible_leader_replicas=draw(st.none() | nodes),
                    last_known_elr=draw(st.none() | nodes),
                )
            )
        configs = draw(
            st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "é"]))
        )
        for name, value in configs.items():
            records.append(
                ConfigRecord(resource_type=2, resource_name=f"t{number}", name=name, value=value)
            )
    return records


@given(topics())
def test_image_can_be_loaded_from_its_snapshot(records: list[Message]) -> None:
    image = image_of(ALL + records)
    assert loaded(image) == image


def test_snapshot_contains_every_part_of_an_image() -> None:
    image = image_of([*ALL, TopicRecord(name="t", topic_id=id_of(1))])
    empty = MetadataImage()
    for name in MetadataImage.__slots__:
        assert getattr(image, name) != getattr(empty, name), f"{name} is empty in this test"


def test_header_and_footer_frame_batches_without_gaps() -> None:
    records = [ProducerIdsRecord(next_producer_id=n + 1) for n in range(BATCH_RECORDS_MAX + 1)]
    content = encode_snapshot(records, leader_epoch=5, time_ms=1000)
    found = list(RecordBatchReader(content, control=True))
    assert [record.offset for record in found] == list(range(len(records) + 2))
    assert {record.leader_epoch for record in found} == {5}
    assert (found[0].key, found[-1].key) == (HEADER_KEY, FOOTER_KEY)
    assert found[0].value == b"\0\0" + (1000).to_bytes(8, "big") + b"\0"


def test_records_of_the_quorum_are_kept_byte_for_byte() -> None:
    """Without them, Apache Kafka cannot start with the directory again (KIP-853)."""
    quorum = QuorumRecords(kraft_version=b"\0\0\0\x01\0", voters=b"\0\0\x01\0")
    content = encode_snapshot([], 7, 1000, quorum)
    assert decode_snapshot(content) == []
    assert QuorumRecords().after(content) == quorum
    older = QuorumRecords(kraft_version=b"old", voters=b"old")
    assert older.after(content) == quorum
    assert quorum.after(encode_snapshot([], 8, 1000)) == quorum


def test_malformed_record_with_a_right_checksum_is_damage() -> None:
    whole = encode_snapshot([FeatureLevelRecord(name="metadata.version", feature_level=29)], 3, 0)
    with pytest.raises(MetadataError):
        decode_snapshot(with_a_malformed_record(whole))


@pytest.mark.parametrize(
    ("cordoned", "versions"), [(None, (3, 2)), ([], (4, 3)), ([id_of(9)], (4, 3))]
)
def test_only_cordoned_directories_need_a_record_version_of_kafka_4_3(
    cordoned: list[bytes] | None, versions: tuple[int, int]
) -> None:
    for version, record in zip(
        versions,
        (
            RegisterBrokerRecord(cordoned_log_dirs=cordoned),
            BrokerRegistrationChangeRecord(cordoned_log_dirs=cordoned),
        ),
        strict=True,
    ):
        assert encode(record)[2] == version
