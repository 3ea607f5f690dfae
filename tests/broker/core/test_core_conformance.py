"""Common tests of the real core and the simulated one: equal calls have equal results."""

import socket
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from pykafka_core import _core
from pykafka_core.metadata.records.codec import decode_batches, encode
from pykafka_core.protocol.messages import ProducerIdsRecord
from pykafka_core.quorum.log.batches import cut
from pykafka_core.quorum.log.records import leader_change
from pykafka_core.types import METADATA_TOPIC_ID
from tests.support.patience import PATIENCE_NS, exactly
from tests.support.simulated import fake_core

if TYPE_CHECKING:
    from pykafka_core._core import Core, Marker, PartitionId, Peer

SOON_NS = exactly(1_000_000, "the deadline is tested, and it passes on every machine")
TOPIC = b"0123456789abcdef"
PARTITION = (TOPIC, 0)
METADATA_LOG = (METADATA_TOPIC_ID, 0)
EPOCH = 3
METADATA, BROKER_NOT_AVAILABLE, LISTENER_NOT_FOUND = 3, 8, 72

E = TypeVar(
    "E",
    _core.Appended,
    _core.Maintained,
    _core.LogDirs,
    _core.Producers,
    _core.RecordsRead,
    _core.MarkersWritten,
    _core.Replied,
)

RECORDS = [(None, encode(ProducerIdsRecord(next_producer_id=number))) for number in range(3)]


class Subject:
    """A core that leads one partition, with the classes of its image."""

    def __init__(self, core: "Core", types: ModuleType) -> None:
        self.core = core
        self.types: Any = types
        self.offset = -1

    def step(self, **parts: Any) -> None:
        self.offset += 1
        self.core.apply(self.types.ImageDelta(metadata_offset=self.offset, **parts))

    def lead(self, epoch: int) -> None:
        self._topic("__consumer_offsets", TOPIC, epoch)

    def open_metadata_log(self) -> None:
        self._topic("__cluster_metadata", METADATA_TOPIC_ID, EPOCH, hidden=True)

    def _topic(self, name: str, topic_id: bytes, epoch: int, *, hidden: bool = False) -> None:
        partition = self.types.PartitionImage(
            index=0, leader=1, leader_epoch=epoch, partition_epoch=epoch, replicas=[1], isr=[1]
        )
        topic = self.types.TopicImage(
            name=name, topic_id=topic_id, partitions=[partition], internal=True, hidden=hidden
        )
        self.step(topics=[topic])

    def event(self, kind: type[E]) -> E:
        """Return the next event of a class; skip others."""
        deadline = self.core.now_ns() + PATIENCE_NS
        while self.core.now_ns() < deadline:
            for event in self.core.wait(deadline):
                if isinstance(event, kind):
                    return event
        raise AssertionError(f"no {kind.__name__} came")

    def appended(self, epoch: int = EPOCH, token: int = 7) -> tuple[int, int, int]:
        self.core.append(token, PARTITION, epoch, RECORDS)
        event = self.event(_core.Appended)
        return event.token, event.error_code, event.offset


def fake() -> Subject:
    return Subject(cast("Core", fake_core.FakeCore()), fake_core)


def real() -> Subject:
    options = _core.CoreOptions(
        data_dir=None, node_id=1, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ", durability="memory"
    )
    return Subject(_core.Core(options), _core)


@pytest.fixture(params=[fake, real], ids=["fake", "real"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    make = cast("Callable[[], Subject]", request.param)
    subject = make()
    subject.lead(EPOCH)
    yield subject
    subject.core.stop(0)


def test_a_new_log_is_empty(subject: Subject) -> None:
    offsets = subject.core.offsets(PARTITION)
    assert (offsets.log_start_offset, offsets.high_watermark, offsets.log_end_offset) == (0, 0, 0)
    assert offsets.leader_epoch == EPOCH
    assert subject.core.read(PARTITION, 0, 1000, "log_end") == b""


def test_change_that_check_rejects_is_skipped_by_apply(subject: Subject) -> None:
    partition = subject.types.PartitionImage(
        index=0, leader=1, leader_epoch=EPOCH, partition_epoch=EPOCH, replicas=[1], isr=[1]
    )

    def topic(name: str, topic_id: bytes) -> Any:
        return subject.types.TopicImage(name=name, topic_id=topic_id, partitions=[partition])

    other = bytes(15) + b"\x77"
    delta = subject.types.ImageDelta
    good, taken = topic("orders", other), topic("__consumer_offsets", other)
    assert subject.core.check(delta(metadata_offset=9, topics=[good])) == []
    assert len(subject.core.check(delta(metadata_offset=9, topics=[taken]))) == 1
    assert subject.core.check(delta(metadata_offset=9, topics=[taken], deleted=[TOPIC])) == []
    subject.step(topics=[taken])
    assert subject.appended() == (7, 0, 0)
    subject.core.append(8, (other, 0), EPOCH, RECORDS)
    assert subject.event(_core.Appended).error_code != 0


def test_an_append_completes_with_its_base_offset(subject: Subject) -> None:
    assert subject.appended(token=7) == (7, 0, 0)
    assert subject.appended(token=8) == (8, 0, 3)
    offsets = subject.core.offsets(PARTITION)
    assert (offsets.high_watermark, offsets.log_end_offset) == (6, 6)


def test_appended_records_are_read_in_whole_batches(subject: Subject) -> None:
    subject.appended()
    subject.appended()
    decoded = decode_batches(subject.core.read(PARTITION, 0, 10**6, "log_end"))
    assert [offset for offset, _ in decoded.records] == [0, 1, 2, 3, 4, 5]
    first = decode_batches(subject.core.read(PARTITION, 1, 1, "high_watermark"))
    assert ([offset for offset, _ in first.records], first.next_offset) == ([0, 1, 2], 3)
    assert subject.core.read(PARTITION, 6, 1000, "log_end") == b""


def test_a_control_batch_takes_an_offset_and_holds_no_record(subject: Subject) -> None:
    subject.core.append(
        1, PARTITION, EPOCH, [(b"\0\0\0\x02", leader_change(1, [1], [1]))], control=2
    )
    assert subject.event(_core.Appended).offset == 0
    decoded = decode_batches(subject.core.read(PARTITION, 0, 1000, "log_end"))
    assert (decoded.records, decoded.next_offset) == ([], 1)


@pytest.mark.parametrize(("epoch", "code"), [(EPOCH - 1, 74), (EPOCH + 1, 75)])
def test_an_append_of_another_epoch_is_fenced(subject: Subject, epoch: int, code: int) -> None:
    assert subject.appended(epoch) == (7, code, -1)
    assert subject.core.offsets(PARTITION).log_end_offset == 0


def test_a_new_epoch_fences_the_old_one(subject: Subject) -> None:
    subject.lead(EPOCH + 1)
    assert subject.appended(EPOCH)[1] == 74
    assert subject.appended(EPOCH + 1)[1] == 0


def test_earlier_step_is_ignored(subject: Subject) -> None:
    subject.offset -= 1
    subject.step(deleted=[TOPIC])
    assert subject.appended()[1] == 0


def test_pieces_of_one_step_are_applied_in_ascending_order(subject: Subject) -> None:
    subject.offset -= 1
    subject.step(piece=2, topics=[])
    subject.offset -= 1
    subject.step(piece=1, deleted=[TOPIC])
    assert subject.appended()[1] == 0
    subject.offset -= 1
    subject.step(piece=3, deleted=[TOPIC])
    assert subject.appended()[1] == 100


def test_an_unfinished_topic_has_the_partitions_of_all_its_pieces(subject: Subject) -> None:
    other = bytes(15) + b"\x77"
    for piece in range(3):
        partition = subject.types.PartitionImage(
            index=piece, leader=1, leader_epoch=EPOCH, partition_epoch=1, replicas=[1], isr=[1]
        )
        topic = subject.types.TopicImage(
            name="orders",
            topic_id=other,
            partitions=[partition],
            partial=True,
            unfinished=piece < 2,
        )
        subject.step(topics=[topic])
    for index in range(3):
        subject.core.append(index, (other, index), EPOCH, RECORDS)
        assert subject.event(_core.Appended).error_code == 0


def test_deleted_partition_rejects_appends(subject: Subject) -> None:
    subject.step(deleted=[TOPIC])
    assert subject.appended()[1] == 100


def test_records_are_deleted_up_to_the_high_watermark(subject: Subject) -> None:
    subject.appended()
    for token, offset, expected in (
        (1, 2, (0, 2)),
        (2, 1, (0, 2)),
        (3, -1, (0, 3)),
        (4, 4, (1, -1)),
    ):
        subject.core.delete_before(token, PARTITION, offset)
        event = subject.event(_core.Maintained)
        assert (event.token, event.error_code, event.offset) == (token, *expected)


def test_waiting_ends_at_its_deadline(subject: Subject) -> None:
    deadline = subject.core.now_ns() + SOON_NS
    while subject.core.wait(deadline):  # the real core reports that it leads
        deadline = subject.core.now_ns() + SOON_NS
    assert subject.core.now_ns() >= deadline


def test_logs_are_described_by_size(subject: Subject) -> None:
    subject.core.describe_log_dirs(1, [PARTITION])
    assert subject.event(_core.LogDirs).sizes in ([], [(TOPIC, 0, 0)])
    subject.appended()
    subject.core.describe_log_dirs(2, [PARTITION, (TOPIC, 1)])
    described = subject.event(_core.LogDirs)
    ((topic_id, index, size),) = described.sizes
    assert (described.token, topic_id, index) == (2, *PARTITION)
    assert size == len(subject.core.read(PARTITION, 0, 10**6, "log_end"))
    assert (described.total_bytes, described.usable_bytes) == (-1, -1)


def test_producers_are_described_or_an_error_is_returned(subject: Subject) -> None:
    for token, partition, error_code in ((3, PARTITION, 0), (4, (TOPIC, 1), 100)):
        subject.core.describe_producers(token, partition)
        described = subject.event(_core.Producers)
        assert (described.token, described.error_code) == (token, error_code)
        assert described.states == []


def read_records(subject: Subject, offset: int, bytes_max: int) -> _core.RecordsRead:
    subject.core.read_records(5, PARTITION, offset, bytes_max)
    read = subject.event(_core.RecordsRead)
    assert (read.token, read.error_code) == (5, 0)
    return read


def test_records_are_read_batch_by_batch_to_the_log_end(subject: Subject) -> None:
    for token in (7, 8):
        subject.appended(token=token)
    first = read_records(subject, 0, 1)
    assert (first.offset, first.next_offset, first.log_end_offset) == (0, 3, 6)
    both = read_records(subject, 0, 10**6)
    assert (both.offset, both.next_offset, both.log_end_offset) == (0, 6, 6)
    inside = read_records(subject, 4, 10**6)
    assert (inside.offset, inside.next_offset) == (4, 6)
    assert first.records + inside.records == both.records
    end = read_records(subject, 6, 1)
    assert (end.records, end.offset, end.next_offset, end.log_end_offset) == (b"", 6, 6, 6)


def test_reading_records_starts_at_the_log_start(subject: Subject) -> None:
    for token in (7, 8):
        subject.appended(token=token)
    subject.core.delete_before(9, PARTITION, 3)
    assert subject.event(_core.Maintained).error_code == 0
    read = read_records(subject, 0, 10**6)
    assert (read.offset, read.next_offset, read.log_end_offset) == (3, 6, 6)


def test_log_without_records_reads_as_empty(subject: Subject) -> None:
    read = read_records(subject, 0, 10**6)
    assert (read.records, read.offset, read.next_offset, read.log_end_offset) == (b"", 0, 0, 0)


def test_read_of_an_unknown_partition_is_rejected(subject: Subject) -> None:
    subject.core.read_records(5, (TOPIC, 1), 0, 1)
    read = subject.event(_core.RecordsRead)
    assert (read.token, read.error_code, read.records, read.offset) == (5, 100, b"", -1)


def test_commit_notification_contains_the_high_watermark(subject: Subject) -> None:
    for offset in (0, 3):
        subject.appended(token=7)
        subject.core.when_committed(9, PARTITION, EPOCH, offset)
        told = subject.event(_core.Maintained)
        assert (told.token, told.error_code) == (9, 0)
        assert told.offset >= offset


@pytest.mark.parametrize(("index", "epoch", "code"), [(1, EPOCH, 100), (0, EPOCH + 1, 75)])
def test_waiting_for_a_commit_of_another_epoch_fails_at_once(
    subject: Subject, index: int, epoch: int, code: int
) -> None:
    subject.appended(token=7)
    subject.core.when_committed(9, (TOPIC, index), epoch, 99)
    told = subject.event(_core.Maintained)
    assert (told.token, told.error_code, told.offset) == (9, code, -1)


@pytest.fixture
def metadata(subject: Subject) -> Subject:
    """A core that also has the metadata log."""
    subject.open_metadata_log()
    return subject


def written(subject: Subject, epoch: int) -> tuple[int, int]:
    subject.core.append(7, METADATA_LOG, epoch, RECORDS)
    event = subject.event(_core.Appended)
    return event.error_code, event.offset


def fetched(subject: Subject, epoch: int, base_offset: int, within: int) -> tuple[int, int]:
    """Append another node's batch of ``epoch``, fetched in epoch ``within``."""
    data = _core.build_batch(RECORDS, base_offset=base_offset, leader_epoch=epoch)
    subject.core.append_fetched(8, METADATA_LOG, within, data)
    event = subject.event(_core.Appended)
    assert event.token == 8
    return event.error_code, event.offset


def truncated(subject: Subject, offset: int) -> tuple[int, int]:
    subject.core.truncate(9, METADATA_LOG, offset)
    event = subject.event(_core.Maintained)
    assert event.token == 9
    return event.error_code, event.offset


def committed_and_end(subject: Subject) -> tuple[int, int]:
    offsets = subject.core.offsets(METADATA_LOG)
    return offsets.high_watermark, offsets.log_end_offset


def test_quorum_sets_the_high_watermark_of_the_metadata_log(metadata: Subject) -> None:
    assert written(metadata, EPOCH) == (0, 0)
    assert committed_and_end(metadata) == (0, 3)
    for high_watermark, expected in ((2, 2), (1, 2), (99, 3)):
        metadata.core.commit(METADATA_LOG, high_watermark)
        assert committed_and_end(metadata) == (expected, 3)


def test_append_to_the_metadata_log_starts_the_epoch_that_it_names(metadata: Subject) -> None:
    assert written(metadata, EPOCH) == (0, 0)
    assert written(metadata, EPOCH + 4) == (0, 3)
    assert metadata.core.offsets(METADATA_LOG).leader_epoch == EPOCH + 4
    assert written(metadata, EPOCH)[0] == 74
    data = metadata.core.read(METADATA_LOG, 0, 10**6, "log_end")
    assert [batch.leader_epoch for batch in cut(data)] == [EPOCH, EPOCH + 4]


def test_batches_of_another_node_are_appended_unchanged(metadata: Subject) -> None:
    data = b"".join(
        _core.build_batch(RECORDS, base_offset=base, leader_epoch=epoch)
        for base, epoch in ((0, 1), (3, 1), (6, 4))
    )
    metadata.core.append_fetched(8, METADATA_LOG, 4, data)
    event = metadata.event(_core.Appended)
    assert (event.token, event.error_code, event.offset) == (8, 0, 0)
    assert metadata.core.read(METADATA_LOG, 0, 10**6, "log_end") == data
    assert committed_and_end(metadata) == (0, 9)


def test_batch_of_a_later_epoch_than_its_fetch_is_skipped(metadata: Subject) -> None:
    assert fetched(metadata, 2, 0, within=2) == (0, 0)
    assert fetched(metadata, 5, 3, within=4)[0] == 0
    assert committed_and_end(metadata) == (0, 3)


def test_node_can_lead_again_after_following(metadata: Subject) -> None:
    assert written(metadata, EPOCH) == (0, 0)
    assert fetched(metadata, EPOCH + 1, 3, within=EPOCH + 1) == (0, 3)
    assert written(metadata, EPOCH + 2) == (0, 6)
    assert committed_and_end(metadata) == (0, 9)


def test_metadata_log_is_truncated_at_an_offset(metadata: Subject) -> None:
    for epoch in (1, 2, 3):
        assert fetched(metadata, epoch, 3 * (epoch - 1), within=3)[0] == 0
    metadata.core.commit(METADATA_LOG, 3)
    assert truncated(metadata, 6) == (0, 6)
    assert committed_and_end(metadata) == (3, 6)
    assert truncated(metadata, 5) == (0, 3)
    assert fetched(metadata, 7, 3, within=7) == (0, 3)
    data = metadata.core.read(METADATA_LOG, 0, 10**6, "log_end")
    assert [batch.leader_epoch for batch in cut(data)] == [1, 7]


def restarted(subject: Subject, partition: "PartitionId", offset: int) -> tuple[int, int]:
    subject.core.restart_log(9, partition, offset)
    event = subject.event(_core.Maintained)
    assert event.token == 9
    return event.error_code, event.offset


def test_metadata_log_starts_at_the_end_of_the_snapshot_that_replaces_it(
    metadata: Subject,
) -> None:
    assert fetched(metadata, 1, 0, within=1) == (0, 0)
    assert restarted(metadata, METADATA_LOG, 20) == (0, 20)
    assert metadata.core.offsets(METADATA_LOG).log_start_offset == 20
    assert committed_and_end(metadata) == (20, 20)
    assert fetched(metadata, 7, 20, within=7) == (0, 20)
    data = metadata.core.read(METADATA_LOG, 20, 10**6, "log_end")
    assert [(batch.base_offset, batch.leader_epoch) for batch in cut(data)] == [(20, 7)]


def test_quorum_cannot_change_other_logs(subject: Subject) -> None:
    subject.appended()
    subject.core.append_fetched(8, PARTITION, EPOCH, b"")
    assert subject.event(_core.Appended).error_code == 42
    subject.core.truncate(9, PARTITION, 0)
    assert subject.event(_core.Maintained).error_code == 42
    assert restarted(subject, PARTITION, 0)[0] == 42
    subject.core.commit(PARTITION, 1)
    assert subject.core.offsets(PARTITION).high_watermark == 3


def test_missing_log_accepts_nothing_from_another_node(subject: Subject) -> None:
    subject.core.append_fetched(8, METADATA_LOG, EPOCH, b"")
    assert subject.event(_core.Appended).error_code == 100
    subject.core.truncate(9, METADATA_LOG, 0)
    assert subject.event(_core.Maintained).error_code == 100
    assert restarted(subject, METADATA_LOG, 0)[0] == 100
    subject.core.commit(METADATA_LOG, 1)


PRODUCER_ID = 41
INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED = 47, 52


def appended_in_transaction(subject: Subject, producer_epoch: int) -> tuple[int, int]:
    subject.core.append(7, PARTITION, EPOCH, RECORDS, (PRODUCER_ID, producer_epoch))
    event = subject.event(_core.Appended)
    return event.error_code, event.offset


def marker(
    producer_epoch: int,
    *,
    partition: "PartitionId" = PARTITION,
    coordinator_epoch: int = 0,
    transaction_version: int = 2,
) -> "Marker":
    topic_id, index = partition
    producer = PRODUCER_ID, producer_epoch
    return topic_id, index, *producer, coordinator_epoch, True, transaction_version


def marked(subject: Subject, *markers: "Marker") -> list[int]:
    subject.core.write_markers(9, markers)
    event = subject.event(_core.MarkersWritten)
    assert event.token == 9
    return event.error_codes


def stable_and_end(subject: Subject) -> tuple[int, int]:
    offsets = subject.core.offsets(PARTITION)
    return offsets.last_stable_offset, offsets.log_end_offset


def test_records_of_a_transaction_are_stable_once_its_marker_is_written(subject: Subject) -> None:
    assert subject.appended() == (7, 0, 0)
    assert appended_in_transaction(subject, 0) == (0, 3)
    assert appended_in_transaction(subject, 0) == (0, 6)
    assert stable_and_end(subject) == (3, 9)
    assert marked(subject, marker(1)) == [0]
    assert stable_and_end(subject) == (10, 10)


def test_open_transaction_is_listed_among_the_producers(subject: Subject) -> None:
    def producer() -> tuple[int, int, int, int]:
        subject.core.describe_producers(3, PARTITION)
        (state,) = subject.event(_core.Producers).states
        return (
            state.producer_id,
            state.producer_epoch,
            state.coordinator_epoch,
            state.current_txn_start_offset,
        )

    appended_in_transaction(subject, 0)
    assert producer() == (PRODUCER_ID, 0, -1, 0)
    marked(subject, marker(1, coordinator_epoch=6))
    assert producer() == (PRODUCER_ID, 1, 6, -1)


def test_a_transactional_batch_has_its_producer_and_no_sequence(subject: Subject) -> None:
    appended_in_transaction(subject, 5)
    marked(subject, marker(6))
    batches = subject.core.read(PARTITION, 0, 10**6, "log_end")
    size = 12 + int.from_bytes(batches[8:12], "big")
    for batch, attributes, producer_epoch in (
        (batches[:size], 1 << 4, 5),
        (batches[size:], 1 << 4 | 1 << 5, 6),
    ):
        assert int.from_bytes(batch[21:23], "big") == attributes
        assert int.from_bytes(batch[43:51], "big") == PRODUCER_ID
        assert int.from_bytes(batch[51:53], "big") == producer_epoch
        assert int.from_bytes(batch[53:57], "big", signed=True) == -1


def test_append_of_an_older_producer_epoch_is_rejected(subject: Subject) -> None:
    marked(subject, marker(4))
    assert appended_in_transaction(subject, 3) == (INVALID_PRODUCER_EPOCH, -1)
    assert appended_in_transaction(subject, 4)[0] == 0


@pytest.mark.parametrize(
    ("is_open", "known", "written", "transaction_version", "code"),
    [
        (True, 4, 3, 2, INVALID_PRODUCER_EPOCH),
        (True, 4, 4, 2, INVALID_PRODUCER_EPOCH),
        (True, 4, 5, 2, 0),
        (False, 4, 3, 2, INVALID_PRODUCER_EPOCH),
        (False, 4, 4, 2, 0),
        (False, 4, 5, 2, 0),
        (True, 4, 3, 1, INVALID_PRODUCER_EPOCH),
        (True, 4, 4, 1, 0),
        (True, 4, 5, 1, 0),
        (False, 4, 3, 0, INVALID_PRODUCER_EPOCH),
        (False, 4, 4, 0, 0),
    ],
)
def test_marker_is_checked_by_its_epoch_and_the_transaction_version(
    subject: Subject,
    is_open: bool,
    known: int,
    written: int,
    transaction_version: int,
    code: int,
) -> None:
    if is_open:
        appended_in_transaction(subject, known)
    else:
        marked(subject, marker(known))
    end = stable_and_end(subject)[1]
    assert marked(subject, marker(written, transaction_version=transaction_version)) == [code]
    assert stable_and_end(subject)[1] == end + (code == 0)


def test_a_marker_of_an_older_coordinator_epoch_is_fenced(subject: Subject) -> None:
    assert marked(subject, marker(1, coordinator_epoch=5)) == [0]
    fenced = marker(2, coordinator_epoch=4)
    assert marked(subject, fenced) == [TRANSACTION_COORDINATOR_FENCED]
    assert marked(subject, marker(2, coordinator_epoch=5)) == [0]


def test_marker_results_are_in_order(subject: Subject) -> None:
    marked(subject, marker(3))
    elsewhere = (bytes(16), 0)
    written = [marker(4), marker(4, partition=elsewhere), marker(2), marker(5)]
    assert marked(subject, *written) == [0, 100, INVALID_PRODUCER_EPOCH, 0]
    assert marked(subject) == []


def test_marker_follows_earlier_appends(subject: Subject) -> None:
    for token in range(20):
        subject.core.append(token, PARTITION, EPOCH, RECORDS, (PRODUCER_ID, 0))
    subject.core.write_markers(9, [marker(1)])
    assert subject.event(_core.MarkersWritten).error_codes == [0]
    assert stable_and_end(subject) == (61, 61)


def test_unexpected_verification_is_dropped(subject: Subject) -> None:
    subject.core.verified(77, [0])
    assert subject.appended() == (7, 0, 0)


def test_a_stopped_core_writes_no_marker() -> None:
    subject = real()
    subject.lead(EPOCH)
    subject.core.stop(0)
    assert marked(subject, marker(1)) == [8]


@pytest.mark.parametrize(("producer", "control"), [((-1, 0), None), ((1, -1), None), ((1, 1), 2)])
def test_append_with_an_invalid_producer_raises_a_value_error(
    producer: tuple[int, int], control: int | None
) -> None:
    subject = real()
    with pytest.raises(ValueError, match="producer"):
        subject.core.append(7, PARTITION, EPOCH, RECORDS, producer, control=control)
    subject.core.stop(0)


@pytest.fixture
def silent_peer(subject: Subject) -> Iterator["Peer"]:
    """A node that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = ("test", "127.0.0.1", listener.getsockname()[1])
        if isinstance(subject.core, fake_core.FakeCore):
            subject.core.peers.add(peer)
        yield peer


def replied(subject: Subject) -> tuple[int, int, bytes]:
    event = subject.event(_core.Replied)
    assert event.versions is None
    assert event.reason
    return event.token, event.error_code, event.body


def test_unreachable_node_does_not_reply(subject: Subject) -> None:
    with socket.socket() as bound:  # reserves the port, so that no process listens on it
        bound.bind(("127.0.0.1", 0))
        subject.core.send(7, ("test", *bound.getsockname()), METADATA, 12, b"", 60_000)
        assert replied(subject) == (7, LISTENER_NOT_FOUND, b"")


def test_watch_on_an_unreachable_node_fails(subject: Subject) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        subject.core.watch(7, ("test", *bound.getsockname()), 60_000)
        assert replied(subject) == (7, LISTENER_NOT_FOUND, b"")


def test_disconnecting_ends_a_watch(subject: Subject, silent_peer: "Peer") -> None:
    subject.core.watch(7, silent_peer, 60_000)
    subject.core.disconnect(silent_peer)
    assert replied(subject) == (7, BROKER_NOT_AVAILABLE, b"")


def test_disconnecting_ends_the_requests_to_a_node(subject: Subject, silent_peer: "Peer") -> None:
    subject.core.send(7, silent_peer, METADATA, 12, b"", 60_000)
    subject.core.disconnect(("other", *silent_peer[1:]))
    subject.core.disconnect(silent_peer)
    assert replied(subject) == (7, BROKER_NOT_AVAILABLE, b"")
    subject.core.disconnect(silent_peer)


def test_a_stop_ends_the_requests_to_other_nodes(subject: Subject, silent_peer: "Peer") -> None:
    subject.core.send(7, silent_peer, METADATA, 12, b"", 60_000)
    subject.core.stop(0)
    assert replied(subject) == (7, BROKER_NOT_AVAILABLE, b"")
    subject.core.send(8, silent_peer, METADATA, 12, b"", 60_000)
    assert replied(subject) == (8, BROKER_NOT_AVAILABLE, b"")
