"""``demo`` with a part of its data: its output, and the report of a record that was changed on its
way.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.progress import Progress

from examples.demo import failover, round_trip
from examples.demo.__main__ import main
from examples.demo.flights import flights
from examples.demo.nodes import NODES, nodes
from examples.demo.records import PARTITIONS, Record
from examples.demo.retries import with_retries
from pykafka_core import Broker
from pykafka_core.cli.errors import CliError

FLIGHTS = 2_000
PLOTS = ("delays-per-carrier.png", "records-per-second.png")


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as caught:
        main(["--flights", str(FLIGHTS), *arguments])
    return caught.value.code


@pytest.mark.load
def test_flights_are_read_back_verified_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--no-spark", "--data", str(tmp_path)) == 0
    printed = capsys.readouterr().out
    assert f"Verified: {FLIGHTS:,} records are those that were sent" in printed
    assert f"{FLIGHTS:,} flights are stored once, each carrier's in order" in " ".join(
        printed.split()
    )
    assert f"the group has read {FLIGHTS:,} flights" in printed
    assert f"Verified: {FLIGHTS:,} speeds, each once, each carrier's in order" in printed
    carriers = {carrier for (carrier, _), _ in zip(flights(), range(FLIGHTS), strict=False)}
    first_cells = {line.split()[0] for line in printed.splitlines() if line.split()}
    assert carriers <= first_cells, "a carrier has no row"
    with Broker(tmp_path) as kept:
        assert kept.topics()[round_trip.TOPIC] == PARTITIONS


def test_a_changed_record_fails_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from examples.demo.records import send

    def send_others(
        bootstrap: str, topic: str, records: Sequence[Record], progress: Progress
    ) -> None:
        last = records[-1]._replace(value=records[-1].value.replace(b"2013", b"2014"))
        send(bootstrap, topic, [*records[:-1], last], progress)

    monkeypatch.setattr(round_trip, "send", send_others)
    assert run("--no-spark") == 1
    assert "is not the one that was sent" in capsys.readouterr().err


def test_unusable_data_directory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--no-spark", "--data", "/dev/null/x") == 1
    assert capsys.readouterr().err.startswith("demo: cannot read /dev/null/x")


def test_replicas_that_differ_fail_the_demo(tmp_path: Path) -> None:
    with nodes(tmp_path) as cluster:
        for node in NODES:
            for partition in range(PARTITIONS):
                folder = cluster.data(node) / f"{round_trip.TOPIC}-{partition}"
                folder.mkdir()
                (folder / f"{0:020}.log").write_bytes(b"same")
        assert failover.compare(cluster) == 4 * PARTITIONS
        (cluster.data(2) / f"{round_trip.TOPIC}-3" / f"{0:020}.log").write_bytes(b"samE")
        with pytest.raises(CliError, match="replicas of flights-3 are not the same"):
            failover.compare(cluster)


def test_three_in_ten_flights_are_retried_and_never_overtaken() -> None:
    source = [("AA", b"%d" % number) for number in range(5_000)]
    records = with_retries(source)
    assert len(records) == 6_500
    # A dict keeps the position of the first record of each id.
    by_id = {record.headers[0][1]: record.value for record in records}
    assert list(by_id.values()) == [value for _, value in source]


@pytest.mark.spark
def test_killed_spark_query_counts_each_flight_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--plots", str(tmp_path)) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Verified: {FLIGHTS:,} flights counted once" in printed
    known = re.search(r"([\d,]+) records were known by their offsets, ([\d,]+) by their", printed)
    assert known is not None
    redelivered, duplicates = (int(number.replace(",", "")) for number in known.groups())
    assert duplicates == FLIGHTS * 3 // 10
    assert redelivered > 0, "the killed batch was not repeated"
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in PLOTS)


def test_missing_connector_is_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYKAFKA_CONNECTOR_JARS", str(tmp_path))
    assert run() == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "spark-sql-kafka-0-10" in told.err
    assert "--no-spark" in told.err
