"""``topics elect`` and ``topics reassign``: leaders, and the placement of replicas."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka_core import Cluster
from pykafka_core.cli.client.reassignment import Move, PartitionOf, plan
from pykafka_core.cli.consume.reader import EARLIEST, Reader, Start
from tests.cluster.clients import consume, create_placed, produce
from tests.support.cli import run
from tests.support.patience import PATIENCE_S, eventually

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, config={"auto.leader.rebalance.enable": False}) as cluster:
        yield cluster


def test_replicas_move_to_other_nodes_with_their_records(cluster: Cluster, capsys: Capture) -> None:
    create_placed(cluster, "moving", [0, 1], [1, 0])
    values = [str(number) for number in range(20)]
    produce(cluster.bootstrap_servers, "moving", values)
    asked = "topics", "reassign", "moving", "--to", "1,2", "-b", cluster.bootstrap_servers
    assert run(*asked, "--dry-run", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    moves = [(move["now"], move["then"], move["copies"]) for move in said["moves"]]
    assert moves == [([0, 1], [1, 2], 1), ([1, 0], [1, 2], 1)]
    assert cluster.isr("moving", 0) == (0, 1), "a dry run changes nothing"
    assert run(*asked) == 0
    assert "moved 2 partitions" in capsys.readouterr().out
    for index in (0, 1):
        assert cluster.wait_isr("moving", index, [1, 2]) == (1, 2)
    assert run(*asked) == 0
    assert "nothing has to move" in capsys.readouterr().out
    assert consume(cluster.bootstrap_servers, "moving", 20) == sorted(values)


def test_consume_follows_a_topic_to_another_leader(cluster: Cluster) -> None:
    create_placed(cluster, "led", [0, 1, 2])
    start = Start(time=EARLIEST)
    servers = cluster.bootstrap_servers
    reader = Reader(servers, "led", [0], start, follow=True, patience_s=PATIENCE_S)
    with closing(reader.sets()) as sets:
        for leader, value in ((0, "before"), (1, "after")):
            assert cluster.leader("led") == leader
            produce(servers, "led", [value])
            found = next(record for _, records in sets for record in records)
            assert found.value == value.encode()
            if leader == 0:
                cluster.kill(0)
                cluster.wait_leader("led", other_than=0)
    cluster.start(0)
    cluster.wait_isr("led")


def test_plan_in_the_format_of_kafka_adds_replicas(
    cluster: Cluster, tmp_path: Path, capsys: Capture
) -> None:
    create_placed(cluster, "growing", [0])
    file = tmp_path / "plan.json"
    wanted = {"topic": "growing", "partition": 0, "replicas": [0, 2, 1]}
    text = json.dumps({"version": 1, "partitions": [wanted]})
    file.write_text(text, encoding="utf-8-sig")  # some editors write a byte order mark
    assert run("topics", "reassign", "--plan", str(file), "-b", cluster.bootstrap_servers) == 0
    assert cluster.wait_isr("growing") == (0, 1, 2)
    more = "topics", "reassign", "growing", "--replication-factor", "2"
    assert run(*more, "-b", cluster.bootstrap_servers) == 0
    assert cluster.wait_isr("growing") == (0, 2)


def test_move_that_cannot_complete_is_shown_and_cancelled(capsys: Capture) -> None:
    with Cluster(3) as cluster:
        gone = next(node for node in range(3) if node != cluster.controller())
        first, second = (node for node in range(3) if node != gone)
        create_placed(cluster, "stuck", [first, second])
        cluster.pause(gone)
        at = "-b", cluster.bootstrap_servers.split(",")[cluster.controller()]
        asked = "topics", "reassign", "stuck", "--to", f"{first},{gone}", "--no-wait"
        assert run(*asked, *at) == 0
        capsys.readouterr()
        assert run("topics", "reassign", "--list", "--json", *at) == 0
        (moving,) = json.loads(capsys.readouterr().out)
        assert (moving["adding"], moving["removing"]) == ([gone], [second])
        assert run("topics", "reassign", "--cancel", *at) == 0
        assert "cancelled stuck-0" in capsys.readouterr().out
        assert run("topics", "reassign", "--list", *at) == 0
        assert "nothing is in progress" in capsys.readouterr().out
        assert cluster.wait_isr("stuck") == tuple(sorted((first, second)))


def test_the_preferred_replica_leads_again(cluster: Cluster, capsys: Capture) -> None:
    create_placed(cluster, "preferred", [0, 1, 2])
    cluster.wait_isr("preferred")
    cluster.stop(0)
    assert cluster.wait_leader("preferred", other_than=0) == 1
    cluster.start(0)
    cluster.wait_isr("preferred")
    asked = "topics", "elect", "preferred", "-b", cluster.bootstrap_servers
    assert run(*asked, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"elected": ["preferred-0"], "failed": []}
    assert cluster.leader("preferred") == 0
    assert run(*asked) == 0
    assert "no election was needed" in capsys.readouterr().out


def test_out_of_sync_replica_leads_after_an_unclean_election(capsys: Capture) -> None:
    with Cluster(3) as cluster:
        create_placed(cluster, "lost", [0, 1])
        cluster.wait_isr("lost")
        cluster.kill(1)
        cluster.wait_isr("lost", 0, [0])
        cluster.kill(0)
        cluster.start(1)
        eventually(lambda: cluster.leader("lost") is None)
        at = "-b", cluster.bootstrap_servers.split(",")[1]
        assert run("topics", "elect", "lost", *at) == 1
        assert "lost-0" in capsys.readouterr().err
        assert run("topics", "elect", "lost", "--unclean", *at) == 0
        assert cluster.wait_leader("lost") == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["reassign"], "do not select one action"),
        (["reassign", "--cancel", "--to", "1"], "do not select one action"),
        (["reassign", "--cancel", "--throttle", "1"], "--throttle is only for moves"),
        (["reassign", "--to", "0", "--throttle", "-1"], "--throttle"),
        (["reassign", "--to", "0", "--throttle", str(2**63)], "--throttle"),
        (
            ["reassign", "--list", "--preserve-throttles"],
            "--preserve-throttles is only for --cancel",
        ),
        (["reassign", "--verify"], "name the topics to verify"),
        (["reassign", "--verify", "no-such"], "no topic no-such"),
        (["reassign", "--to", "0,9"], "no broker 9"),
        (["reassign", "--to", "x"], "is not a list of node ids"),
        (["reassign", "--replication-factor", "4"], "there are 3 nodes"),
        (["reassign", "no-such", "--to", "0"], "no topic no-such"),
        (["elect", "no-such"], "no topic no-such"),
        (["reassign", "--plan", "/no/such/file"], "is not a plan"),
    ],
)
def test_invalid_reassignment_is_rejected(
    cluster: Cluster, capsys: Capture, asked: list[str], said: str
) -> None:
    if "any" not in cluster.brokers[0].topics():
        create_placed(cluster, "any", [0])
    assert run("topics", *asked, "-b", cluster.bootstrap_servers) in (1, 2)
    assert said in capsys.readouterr().err


def test_plan_moves_few_replicas_and_keeps_the_order() -> None:
    replicas = {
        PartitionOf("t", 0): (1, 2),
        PartitionOf("t", 1): (2, 3),
        PartitionOf("t", 2): (3, 1),
    }
    assert plan(replicas, [1, 2, 3]) == []
    assert plan(replicas, [1, 2, 4]) == [
        Move(PartitionOf("t", 1), (2, 3), (2, 4)),
        Move(PartitionOf("t", 2), (3, 1), (1, 4)),
    ]


@given(
    st.lists(st.permutations(range(5)), min_size=1, max_size=8),
    st.integers(1, 3),
    st.sets(st.integers(0, 6), min_size=3),
)
def test_every_plan_has_distinct_replicas_and_keeps_those_on_remaining_nodes(
    orders: list[list[int]], factor: int, nodes: set[int]
) -> None:
    replicas = {PartitionOf("t", index): tuple(now[:factor]) for index, now in enumerate(orders)}
    moved = {move.at: tuple(move.then) for move in plan(replicas, sorted(nodes))}
    for at, now in replicas.items():
        then = moved.get(at, now)
        assert len(set(then)) == len(then) == factor
        assert set(then) <= nodes
        assert set(then) >= set(now) & nodes
