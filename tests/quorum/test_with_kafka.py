"""Our replica in a quorum with Apache Kafka's controller.

It follows that controller and votes for it, and both logs are equal byte for byte.
"""

import base64
import json
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.voters import VoterNode, quorum_records
from pykafka_core.metadata.records.codec import decode_batches
from pykafka_core.protocol.messages import FeatureLevelRecord, NoOpRecord, TopicRecord
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.quorum.wire.envelope import Endpoint
from tests.cluster.clients import create as create_led_by
from tests.cluster.voters.growing import growing
from tests.cluster.voters.static import static_voters
from tests.quorum.live import LiveReplica
from tests.support.evidence.logs import watch
from tests.support.patience import PATIENCE_S, eventually
from tests.support.processes.nodes import NOT_BUILT, format_kafka, kafka_command, reserve_port

pytestmark = pytest.mark.jvm

STANDS_BY = (
    "controller.quorum.election.timeout.ms=600000\ncontroller.quorum.fetch.timeout.ms=600000\n"
)
OWN = ReplicaKey(2, bytes(range(1, 17)))
THEIRS = ReplicaKey(1, bytes(range(101, 117)))


def text_of(directory_id: bytes) -> str:
    """Return the text that Kafka uses for a Uuid."""
    return base64.urlsafe_b64encode(directory_id).decode().rstrip("=")


CLUSTER_ID = text_of(bytes(range(50, 66)))


def voters_at(theirs: int, own: int) -> str:
    """Return both voters in the format of Kafka's storage tool."""
    ports = ((THEIRS, theirs), (OWN, own))
    return ",".join(
        f"{key.node_id}@127.0.0.1:{port}:{text_of(key.directory_id)}" for key, port in ports
    )


def property_of(data: Path, name: str) -> str:
    lines = (data / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))


def create(kafka: ApacheKafka, name: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)


def topics_in(live: LiveReplica) -> set[str]:
    records = decode_batches(live.committed).records if live.committed else ()
    return {record.name for _, record in records if isinstance(record, TopicRecord)}


def log_of(data: Path) -> bytes:
    return last_segment(data).read_bytes()


def last_segment(data: Path) -> Path:
    """Return the active segment.

    While a snapshot is installed, the segment that it replaces may also exist.
    """
    return max((data / "__cluster_metadata-0").glob("*.log"))


@contextmanager
def standby(folder: Path, port: int, cluster_id: str, voters: str) -> Iterator[Path]:
    """Run a controller of Kafka that does not become a candidate; yield its data directory."""
    quorum = ["-t", cluster_id, "--initial-controllers", voters]
    with controller_alone(folder, port, port, quorum) as data:
        yield data


@contextmanager
def observer(folder: Path, port: int, leader: int, cluster_id: str) -> Iterator[Path]:
    """Run a controller of Kafka that is not a voter; yield its data directory."""
    quorum = ["-t", cluster_id, "--no-initial-controllers"]
    with controller_alone(folder, port, leader, quorum) as data:
        yield data


@contextmanager
def controller_alone(
    folder: Path,
    port: int,
    bootstrap: int,
    quorum: Sequence[str],
    node_id: int = THEIRS.node_id,
    voters: str = "",
) -> Iterator[Path]:
    properties = folder / "controller.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id={node_id}\ncontroller.listener.names=CONTROLLER\n"
        + (
            f"controller.quorum.voters={voters}\n"
            if voters
            else f"controller.quorum.bootstrap.servers=127.0.0.1:{bootstrap}\n"
        )
        + f"listeners=CONTROLLER://127.0.0.1:{port}\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT\n"
        + ("" if voters else STANDS_BY)
        + f"log.dirs={folder / 'data'}\n"
    )
    java = ["java", *QUICK_TO_START, "-cp", ApacheKafka.classpath()]
    format_kafka(java, properties, *quorum)
    watch("Apache Kafka's controller", folder / "controller.log")
    with open(folder / "controller.log", "wb") as log:
        process = subprocess.Popen(kafka_command(java, properties), stdout=log)
    try:
        yield folder / "data"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def controller() -> Iterator[socket.socket]:
    with reserve_port() as reserved:
        yield reserved


def test_observer_holds_the_log_of_kafka_through_a_restart(
    tmp_path: Path, controller: socket.socket
) -> None:
    kafka = ApacheKafka(tmp_path, jvm=QUICK_TO_START, controller=controller)
    try:
        directory_id = base64.urlsafe_b64decode(property_of(kafka.data, "directory.id") + "==")
        leader = ReplicaKey(1, directory_id)
        peers = {1: Endpoint("127.0.0.1", controller.getsockname()[1])}
        cluster_id, own = property_of(kafka.data, "cluster.id"), tmp_path / "own"
        with LiveReplica(OWN, (leader,), cluster_id, peers, own) as live:
            create(kafka, "orders")
            live.wait_for(lambda: topics_in(live) == {"orders"}, "orders comes")
            before = live.replica.leader_epoch
            kafka.halt()
            kafka.start()
            create(kafka, "payments")
            live.wait_for(lambda: topics_in(live) == {"orders", "payments"}, "payments comes")
            assert live.replica.leader_epoch > before
            assert live.replica.leader_id == 1
            assert live.replica.state == "Observer"
            held = live.committed
        assert log_of(kafka.data).startswith(held)
    finally:
        kafka.stop()


SNAPSHOT_EACH_KILOBYTE = {"metadata.log.max.record.bytes.between.snapshots": "1000"}


def snapshots_in(data: Path) -> list[Path]:
    """Return the snapshots of a log, oldest first, without the bootstrap snapshot."""
    found = sorted((data / "__cluster_metadata-0").glob("*.checkpoint"))
    return [path for path in found if not path.name.startswith(f"{0:020}")]


def test_late_observer_gets_the_snapshot_of_kafka(
    tmp_path: Path, controller: socket.socket
) -> None:
    kafka = ApacheKafka(tmp_path, SNAPSHOT_EACH_KILOBYTE, jvm=QUICK_TO_START, controller=controller)
    try:
        for number in range(10):
            create(kafka, f"topic-{number}")
        eventually(lambda: bool(snapshots_in(kafka.data)))
        directory_id = base64.urlsafe_b64decode(property_of(kafka.data, "directory.id") + "==")
        peers = {1: Endpoint("127.0.0.1", controller.getsockname()[1])}
        cluster_id, own = property_of(kafka.data, "cluster.id"), tmp_path / "own"
        leader = ReplicaKey(1, directory_id)
        with LiveReplica(OWN, (leader,), cluster_id, peers, own) as live:
            live.wait_for(lambda: live.replaced, "a snapshot comes")
            create(kafka, "later")
            live.wait_for(lambda: "later" in topics_in(live), "later comes")
            held = live.committed
            start = live.log_start
            known = live.replaced[-1].replay.image()
            records = live.quorum_records
        assert {f"topic-{number}" for number in range(10)} >= set(known.topics.by_name)
        assert start > 0
        (own_snapshot,) = snapshots_in(own)
        theirs = kafka.data / "__cluster_metadata-0" / own_snapshot.name
        assert own_snapshot.read_bytes() == theirs.read_bytes()
        assert held in log_of(kafka.data)
        assert records.kraft_version is not None
        assert records.voters is not None
        assert directory_id in records.voters
    finally:
        kafka.stop()


def test_late_controller_of_kafka_gets_our_snapshot(
    tmp_path: Path, controller: socket.socket
) -> None:
    with reserve_port() as own_port:
        own_at, their_at = own_port.getsockname()[1], controller.getsockname()[1]
        voter = LiveReplica(OWN, (OWN,), CLUSTER_ID, {}, tmp_path / "own", own_at)
        with voter as live:
            live.wait_for(lambda: live.leads, "ours leads")
            live.propose([FeatureLevelRecord(name="metadata.version", feature_level=29)])
            for number in range(50):
                topic = TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big"))
                live.propose([topic])
            live.wait_until_committed(52)
            live.wait_for(lambda: sum(len(b.records) for b in live.published) == 51, "all is told")
            node = VoterNode(OWN, "127.0.0.1", own_at)
            snapshot_id = live.take_snapshot(quorum_records([node], "CONTROLLER"))
            with observer(tmp_path, their_at, own_at, CLUSTER_ID) as data:
                eventually(lambda: bool(snapshots_in(data)))
                live.propose([NoOpRecord()])
                live.wait_until_committed(snapshot_id.offset + 1)
                held = live.committed
                eventually(lambda: log_of(data).startswith(held))
            (ours,), (theirs,) = snapshots_in(tmp_path / "own"), snapshots_in(data)
            assert theirs.name == ours.name
            assert theirs.read_bytes() == ours.read_bytes()
            assert last_segment(data).name == f"{snapshot_id.offset:020}.log"


def test_voter_grants_votes_to_kafka_and_replicates_its_records(
    tmp_path: Path, controller: socket.socket
) -> None:
    """Both of two voters are needed: without ours, Kafka's could not lead or commit."""
    with reserve_port() as own_port:
        at = (controller.getsockname()[1], own_port.getsockname()[1])
        voters, peers = voters_at(*at), {1: Endpoint("127.0.0.1", at[0])}
        voter = LiveReplica(
            OWN, (THEIRS, OWN), CLUSTER_ID, peers, tmp_path / "own", port=at[1], is_candidate=False
        )
        with voter as live:
            kafka = ApacheKafka(
                tmp_path,
                jvm=QUICK_TO_START,
                controller=controller,
                quorum=("-t", CLUSTER_ID, "--initial-controllers", voters),
            )
            try:
                create(kafka, "orders")
                live.wait_for(lambda: topics_in(live) == {"orders"}, "orders comes")
                voted = set(live.votes)
                assert voted
                kafka.kill()
                kafka.start()
                create(kafka, "payments")
                live.wait_for(lambda: topics_in(live) == {"orders", "payments"}, "payments comes")
                assert voted < set(live.votes), "another epoch"
                assert set(live.votes.values()) == {THEIRS}
                assert live.replica.state == "Follower"
                assert log_of(kafka.data).startswith(live.committed)
            finally:
                kafka.stop()


def test_standby_of_kafka_holds_the_log_of_our_leader(
    tmp_path: Path, controller: socket.socket
) -> None:
    """Both of two voters are needed: the records that ours commits are on Kafka's disk."""
    with reserve_port() as own_port:
        at = (controller.getsockname()[1], own_port.getsockname()[1])
        peers = {1: Endpoint("127.0.0.1", at[0])}
        with (
            LiveReplica(OWN, (THEIRS, OWN), CLUSTER_ID, peers, tmp_path / "own", at[1]) as live,
            standby(tmp_path, at[0], CLUSTER_ID, voters_at(*at)) as data,
        ):
            live.wait_for(lambda: live.leads, "ours leads")
            feature = FeatureLevelRecord(name="metadata.version", feature_level=29)
            for batch in ([feature], [NoOpRecord(), NoOpRecord()], [NoOpRecord()]):
                live.propose(batch)
            live.wait_until_committed(5)
            held = live.committed
            assert len(held) > 0
            assert log_of(data).startswith(held)


def test_static_voters_of_both_kinds_make_a_quorum(
    tmp_path: Path, controller: socket.socket
) -> None:
    """Both of two voters are needed with each leader, before and after our voter is killed."""
    theirs = controller.getsockname()[1]
    with static_voters(tmp_path / "ours", 2) as cluster:
        cluster.use_voters({THEIRS.node_id: theirs, 2: cluster.controller_port(2)})
        cluster_id = property_of(cluster.data(2), "cluster.id")
        voters = str(cluster.config(2)["controller.quorum.voters"])
        quorum = ("-t", cluster_id, *NOT_BUILT)
        with controller_alone(tmp_path, theirs, theirs, quorum, voters=voters) as data:
            for name in ("orders", "payments"):
                cluster.start(2)
                create_led_by(cluster.bootstrap, name, 2)
                assert [one.node for one in cluster.quorum().voters] == [1, 2]
                eventually(lambda: is_same_log(cluster.data(2), data))
                cluster.kill(2)
            for known in (data, cluster.data(2)):
                state = json.loads((known / "__cluster_metadata-0" / "quorum-state").read_text())
                assert state["data_version"] == 0
                assert state["currentVoters"] == [{"voterId": 1}, {"voterId": 2}]


def is_same_log(one: Path, other: Path) -> bool:
    """Compare two logs without the reserved space after the last batch."""
    held = log_of(one).rstrip(bytes(1))
    return len(held) > 0 and held == log_of(other).rstrip(bytes(1))


# Voters that change (KIP-853).


def metadata_quorum(bootstrap: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Apache Kafka's tool kafka-metadata-quorum."""
    java = ["java", *QUICK_TO_START, "-cp", ApacheKafka.classpath()]
    command = "org.apache.kafka.tools.MetadataQuorumCommand"
    return subprocess.run(
        [*java, command, "--bootstrap-server", bootstrap, *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
    )


def test_tool_of_kafka_adds_its_controller_to_our_quorum_and_removes_it(
    tmp_path: Path, controller: socket.socket
) -> None:
    with growing(tmp_path, 1) as cluster:
        cluster.begin()
        found = DataDirectory(cluster.data(1)).identity()
        assert found is not None
        port = controller.getsockname()[1]
        quorum = ["-t", found.cluster_id, "--no-initial-controllers"]
        with controller_alone(tmp_path, port, cluster.controller_port(1), quorum, 9) as data:
            properties = str(tmp_path / "controller.properties")

            def has_caught_up() -> bool:
                replicas = cluster.quorum().replicas
                return any(one.node == 9 and one.lag == 0 for one in replicas)

            eventually(has_caught_up)
            command = "--command-config", properties, "add-controller"
            added = metadata_quorum(cluster.bootstrap, *command)
            assert added.returncode == 0, added.stdout
            assert cluster.voters() == [1, 9]
            create_led_by(cluster.bootstrap, "orders", 1)
            directory = property_of(data, "directory.id")
            ids = "--controller-id", "9", "--controller-directory-id", directory
            removed = metadata_quorum(cluster.bootstrap, "remove-controller", *ids)
            assert removed.returncode == 0, removed.stdout
            assert cluster.voters() == [1]


def test_our_controller_is_added_to_the_quorum_of_kafka_and_votes(
    tmp_path: Path, controller: socket.socket
) -> None:
    quorum = ("--standalone", "-t", CLUSTER_ID, *NOT_BUILT)
    kafka = ApacheKafka(tmp_path, jvm=QUICK_TO_START, controller=controller, quorum=quorum)
    try:
        with growing(tmp_path, 2) as cluster:
            cluster.format(2, cluster_id=CLUSTER_ID)
            cluster.settings["controller.quorum.bootstrap.servers"] = (
                f"127.0.0.1:{controller.getsockname()[1]}"
            )
            cluster.start(2)
            cluster.add(2, at=kafka.bootstrap)
            assert cluster.voters() == [1, 2]
            create(kafka, "orders")
            described = metadata_quorum(kafka.bootstrap, "describe", "--status").stdout
            assert "CurrentVoters" in described
            assert property_of(cluster.data(2), "directory.id") in described
            cluster.remove(2)
            assert cluster.voters() == [1]
    finally:
        kafka.stop()
