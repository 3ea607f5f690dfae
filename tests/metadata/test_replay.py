import pytest

from pykafka_core.errors import MetadataError
from pykafka_core.metadata.image.replay import Replay
from pykafka_core.protocol.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FetchRequest,
    Message,
    ProducerIdsRecord,
    RemoveTopicRecord,
)


def ids(number: int) -> Message:
    return ProducerIdsRecord(next_producer_id=number)


def replayed(*records: Message) -> Replay:
    replay = Replay()
    replay.apply(enumerate(records, 10))
    return replay


def test_the_image_ends_at_the_last_record() -> None:
    image = replayed(ids(1), ids(2)).image()
    assert (image.offset, image.next_producer_id) == (11, 2)


def test_transaction_is_applied_when_it_ends() -> None:
    replay = replayed(ids(1), BeginTransactionRecord(), ids(2))
    assert (replay.in_transaction, replay.image().next_producer_id) == (True, 1)
    replay.apply([(13, EndTransactionRecord())])
    assert (replay.in_transaction, replay.image().next_producer_id) == (False, 2)


def test_aborted_transaction_is_not_applied() -> None:
    replay = replayed(BeginTransactionRecord(), ids(2), AbortTransactionRecord(), ids(3))
    assert (replay.in_transaction, replay.image().next_producer_id) == (False, 3)


def test_features_keep_the_offset_of_their_record() -> None:
    level = FeatureLevelRecord(name="metadata.version", feature_level=29)
    assert replayed(ids(1), level, ids(2)).image().features_epoch == 11


@pytest.mark.parametrize("record", [FetchRequest(), RemoveTopicRecord(topic_id=b"x" * 16)])
def test_invalid_record_is_named_with_its_offset(record: Message) -> None:
    with pytest.raises(MetadataError, match=f"offset 11.*{type(record).__name__}"):
        replayed(ids(1), record)


def test_snapshot_replaces_the_log_below_it() -> None:
    replay = Replay()
    replay.apply_snapshot([ids(1), ids(2)], end_offset=100)
    assert (replay.image().offset, replay.image().next_producer_id) == (99, 2)
