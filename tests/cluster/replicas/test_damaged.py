"""A damaged replica fetches its log again, and never leads with the rest (docs/DURABILITY.md)."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pykafka_core import Cluster
from pykafka_core.protocol.messages import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    FetchRequest,
    FetchResponse,
)
from tests.cluster.clients import consume, produce
from tests.support.patience import eventually
from tests.support.wire import Connection

ALL = (0, 1, 2)
TOPIC = "orders"
BATCHES = 8
VALUE_BYTES = 300_000
"""Three batches fill a segment."""
SIZE_POSITION = 8
"""Position of a batch's size."""
CONFIG = {"segment.bytes": "1048576", "flush.messages": "1", "min.insync.replicas": "1"}


GivenUp = Callable[[], list[str]]


@pytest.fixture
def given_up(caplog: pytest.LogCaptureFixture) -> GivenUp:
    """Log lines of replicas that dropped records."""
    return lambda: [text for text in caplog.messages if "as its log was damaged" in text]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        cluster.create_topic(TOPIC, 1, config=CONFIG)
        cluster.wait_isr(TOPIC)
        yield cluster


def write(cluster: Cluster, batches: int = BATCHES) -> list[str]:
    """Write batches of one record each; all replicas have them on return."""
    values = [f"{number} of {batches} ".ljust(VALUE_BYTES, "x") for number in range(batches)]
    for value in values:
        produce(cluster.bootstrap_servers, TOPIC, [value])
    wait_equal(cluster)
    return values


def wait_equal(cluster: Cluster) -> None:
    """Wait until all replicas are in sync, with the same bytes."""
    cluster.wait_isr(TOPIC)
    eventually(lambda: len({content(cluster, node) for node in ALL}) == 1)


def directory(cluster: Cluster, node: int) -> Path:
    data = cluster.brokers[node].data_dir
    assert data is not None
    return data / f"{TOPIC}-0"


def segments(cluster: Cluster, node: int) -> list[Path]:
    return sorted(directory(cluster, node).glob("*.log"))


def content(cluster: Cluster, node: int) -> bytes:
    """Return all batches, without preallocated zeros."""
    return b"".join(path.read_bytes().rstrip(b"\0") for path in segments(cluster, node))


def flip(path: Path) -> None:
    """Change a byte of the records in the first half of a file."""
    found = bytearray(path.read_bytes())
    found[100] ^= 0x55
    path.write_bytes(found)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: VALUE_BYTES * 3 // 2])


def read_at(cluster: Cluster, node: int, offset: int) -> int:
    """Send a consumer's Fetch to a node, leader or follower; return its error code."""
    of = FetchRequest
    partition = of.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    topic = of.FetchTopic(topic=TOPIC, partitions=[partition])
    request = of(replica_id=-1, max_wait_ms=0, min_bytes=0, topics=[topic])
    with Connection(cluster.brokers[node].bootstrap_servers) as connection:
        response = connection.ask(1, 12, request, FetchResponse)
    return int(response.responses[0].partitions[0].error_code)


def find_damage(cluster: Cluster, node: int) -> None:
    """Change the size of a batch while its node runs, and read it."""
    path = segments(cluster, node)[1]
    with path.open("r+b") as file:  # in place: the node may have it mapped
        file.seek(SIZE_POSITION)
        file.write(b"\x55" * 4)
    assert read_at(cluster, node, int(path.stem)) != 0


def elect_uncleanly(cluster: Cluster, node: int) -> None:
    of = ElectLeadersRequest
    partitions = [of.TopicPartitions(topic=TOPIC, partitions=[0])]
    request = of(election_type=1, topic_partitions=partitions, timeout_ms=30_000)
    with Connection(cluster.brokers[node].bootstrap_servers) as connection:
        response = connection.ask(43, 2, request, ElectLeadersResponse)
    assert response.error_code == 0
    assert response.replica_election_results[0].partition_result[0].error_code == 0


def followers(cluster: Cluster) -> list[int]:
    leader = cluster.wait_leader(TOPIC)
    return [node for node in ALL if node != leader]


def assert_whole(cluster: Cluster, values: list[str]) -> None:
    wait_equal(cluster)
    assert consume(cluster.bootstrap_servers, TOPIC, len(values)) == sorted(values)


@pytest.mark.cluster
def test_killed_followers_with_a_changed_byte_fetch_from_there_again(
    cluster: Cluster, given_up: GivenUp
) -> None:
    values = write(cluster)
    others = followers(cluster)
    cluster.kill(*others)
    for node, place in zip(others, (0, -1), strict=True):
        # Without it all segments are read, like those written in the last seconds.
        data = directory(cluster, node).parent
        (data / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
        flip(segments(cluster, node)[place])
    cluster.start(*others)
    assert_whole(cluster, values)
    eventually(lambda: len(given_up()) == 2)


@pytest.mark.cluster
def test_followers_that_lost_a_segment_fetch_from_the_one_that_is_whole(
    cluster: Cluster, given_up: GivenUp
) -> None:
    values = write(cluster)
    others = followers(cluster)
    cluster.stop(*others)
    segments(cluster, others[0])[1].unlink()
    shorten(segments(cluster, others[1])[1])
    cluster.start(*others)
    assert_whole(cluster, values)
    eventually(lambda: len(given_up()) == 2)
    values += write(cluster, 1)
    assert_whole(cluster, values)


@pytest.mark.cluster
def test_a_damaged_follower_that_is_killed_while_it_fetches_again_recovers(
    cluster: Cluster, given_up: GivenUp
) -> None:
    values = write(cluster)
    node = followers(cluster)[0]
    cluster.stop(node)
    shutil.rmtree(directory(cluster, node))
    cluster.start(node)
    eventually(lambda: bool(given_up()))
    cluster.kill(node)
    cluster.start(node)
    assert_whole(cluster, values)


@pytest.mark.cluster
def test_followers_with_damaged_leader_epochs_join_the_isr_by_themselves(cluster: Cluster) -> None:
    """A leader refuses fetches that name an epoch which it never had."""
    values = write(cluster, 1)
    for _ in range(2):
        leader = cluster.wait_leader(TOPIC)
        cluster.stop(leader)
        cluster.wait_leader(TOPIC, other_than=leader)
        cluster.start(leader)
        values += write(cluster, 1)
    leader, node = cluster.wait_leader(TOPIC), followers(cluster)[0]
    name = "leader-epoch-checkpoint"
    whole = (directory(cluster, leader) / name).read_text()
    first, *_, last = whole.splitlines()[2:]
    end, later = len(values), int(last.split()[0]) + 50
    for damaged in (
        "garbage",
        "",
        whole[:-2],
        f"0\n1\n{first}\n",
        f"0\n1\n{last}\n",
        f"0\n2\n{first}\n{later} 1\n",
        whole.replace("0\n3\n", "0\n4\n") + f"{later} {end}\n",
    ):
        cluster.stop(node)
        (directory(cluster, node) / name).write_text(damaged)
        cluster.start(node)
        wait_equal(cluster)
        assert (directory(cluster, node) / name).read_text() == whole, damaged
    assert_whole(cluster, values)


@pytest.mark.cluster
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_of_three_stopped_nodes_the_damaged_one_takes_nothing_from_the_others(
    cluster: Cluster, first: bool, given_up: GivenUp, caplog: pytest.LogCaptureFixture
) -> None:
    """The last one is the ISR; damaged, it stays offline. A damaged index costs no record."""
    values = write(cluster)
    others = followers(cluster)
    last = next(node for node in ALL if node not in others)
    order = [*others, last]
    for place in (1, 2):
        cluster.stop(order[place - 1])
        cluster.wait_isr(TOPIC, isr=order[place:])
    cluster.stop(last)
    whole = content(cluster, order[1])
    damaged = order[0] if first else last
    segments(cluster, damaged)[1].unlink()
    for index in directory(cluster, order[1]).glob("*.*index"):
        index.write_bytes(b"\x55" * 7)
    cluster.start(*ALL)
    if first:
        assert_whole(cluster, values)
        eventually(lambda: len(given_up()) == 1)
        return
    assert cluster.wait_leader(TOPIC) == last
    refused = f"{TOPIC}-0 does not follow node {last} now: KAFKA_STORAGE_ERROR"
    eventually(lambda: refused in caplog.text)
    assert [content(cluster, node) for node in order[:2]] == [whole, whole]
    assert cluster.isr(TOPIC) == (last,)
    cluster.stop(last)
    elect_uncleanly(cluster, order[0])
    cluster.start(last)
    assert_whole(cluster, values)
    eventually(lambda: bool(given_up()))


@pytest.mark.cluster
def test_a_member_of_the_isr_that_finds_damage_while_it_runs_leaves_it_until_it_is_restarted(
    cluster: Cluster, given_up: GivenUp
) -> None:
    values = write(cluster)
    node = followers(cluster)[0]
    find_damage(cluster, node)
    cluster.wait_isr(TOPIC, isr=set(ALL) - {node})
    assert not given_up()
    cluster.stop(node)
    cluster.start(node)
    eventually(lambda: bool(given_up()))
    assert_whole(cluster, values)
    values += write(cluster, 1)
    assert_whole(cluster, values)


def test_a_leader_that_finds_damage_while_it_runs_is_replaced_and_fetches_it_again(
    cluster: Cluster, given_up: GivenUp
) -> None:
    """Regression: it responded KAFKA_STORAGE_ERROR for that batch, and still led."""
    values = write(cluster)
    node = cluster.wait_leader(TOPIC)
    find_damage(cluster, node)
    eventually(lambda: cluster.leader(TOPIC) not in (node, None))
    eventually(lambda: bool(given_up()))
    values += write(cluster, 1)
    assert_whole(cluster, values)


@pytest.mark.cluster
def test_a_damaged_leader_with_one_other_member_in_sync_leads_until_a_third_one_joins(
    cluster: Cluster, given_up: GivenUp
) -> None:
    """Its resignation waits for enough members, and loses no acknowledged record."""
    values = write(cluster)
    node, absent = cluster.wait_leader(TOPIC), followers(cluster)[0]
    cluster.stop(absent)
    cluster.wait_isr(TOPIC, isr=set(ALL) - {absent})
    find_damage(cluster, node)
    produce(cluster.bootstrap_servers, TOPIC, later := ["later"])
    assert cluster.leader(TOPIC) == node
    cluster.start(absent)
    eventually(lambda: cluster.leader(TOPIC) not in (node, None))
    eventually(lambda: bool(given_up()))
    assert_whole(cluster, values + later)


@pytest.mark.cluster
def test_a_damaged_leader_that_is_killed_before_it_was_checked_gives_records_up_at_the_start(
    cluster: Cluster, given_up: GivenUp
) -> None:
    """All segments without a recovery point are read, such as those of the last seconds."""
    values = write(cluster)
    node = cluster.wait_leader(TOPIC)
    find_damage(cluster, node)
    cluster.kill(node)
    (directory(cluster, node).parent / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    assert cluster.wait_leader(TOPIC, other_than=node) != node
    cluster.start(node)
    eventually(lambda: bool(given_up()))
    assert_whole(cluster, values)


@pytest.mark.cluster
def test_the_last_isr_with_another_topics_directory_takes_nothing_from_the_others(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: the node led with an empty log, and its followers truncated theirs to 0."""
    cluster.create_topic("other", 1, config=CONFIG)
    produce(cluster.bootstrap_servers, "other", ["a"])
    values = write(cluster)
    others = followers(cluster)
    last = next(node for node in ALL if node not in others)
    for node, isr in zip(others, ([others[1], last], [last]), strict=True):
        cluster.stop(node)
        cluster.wait_isr(TOPIC, isr=isr)
    cluster.stop(last)
    whole = content(cluster, last)
    place = directory(cluster, last)
    place.rename(tmp_path / "backup")
    (place.parent / "other-0").rename(place)
    cluster.start(*ALL)
    assert cluster.wait_leader(TOPIC) == last
    refused = f"{TOPIC}-0 does not follow node {last} now: KAFKA_STORAGE_ERROR"
    eventually(lambda: refused in caplog.text)
    assert [content(cluster, node) for node in others] == [whole, whole]
    (stray,) = place.parent.glob(f"{TOPIC}-0.*-stray")
    cluster.stop(last)
    stray.rename(place.parent / "other-0")
    (tmp_path / "backup").rename(place)
    cluster.start(last)
    assert_whole(cluster, values)
