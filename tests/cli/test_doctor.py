"""``doctor`` reports problems, and changes nothing."""

import errno
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.identity import IdentityError
from pykafka_core.cli.doctor import limits, processes
from pykafka_core.cli.doctor import port as ports
from pykafka_core.cli.doctor.finding import Finding, Level
from pykafka_core.cli.doctor.processes import Holder, listening, lock_holder, socket_holder
from pykafka_core.log import Log
from pykafka_core.types import id_text
from tests.support.cli import run
from tests.support.patience import PATIENCE_S, eventually
from tests.support.processes.mounts import mounted
from tests.support.processes.nodes import SERVE
from tests.support.processes.proc import proc_with_lock

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
KILLED = ROOT / "tests" / "formats" / "golden" / "killed" / "data"


def diagnosed(capsys: Capture, *arguments: str | Path, code: int) -> list[Finding]:
    capsys.readouterr()
    assert run("doctor", "--json", *arguments) == code
    said = json.loads(capsys.readouterr().out)
    assert said["healthy"] is (code == 0)
    return [
        Finding(Level(one["level"]), one["subject"], one["text"], one["advice"])
        for one in said["findings"]
    ]


def about(found: list[Finding], subject: str) -> Finding:
    (one,) = (one for one in found if one.subject == subject)
    return one


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A directory of Apache Kafka after a kill, with damaged files."""
    copy = tmp_path / "data"
    shutil.copytree(KILLED, copy, copy_function=shutil.copyfile)
    return copy


def content(path: Path) -> dict[Path, bytes]:
    files = (one for one in path.rglob("*") if one.is_file() and one.name != ".lock")
    return {one: one.read_bytes() for one in files}


def test_the_metadata_log_is_opened_once(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was opened three times: for the image, for its start offset, and for its topics."""
    with Broker(tmp_path) as broker:
        broker.create_topic("orders")
        broker.delete_topic("orders")
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    opened: list[str] = []
    open_log = Log.open

    def counted(path: Path, **arguments: object) -> Log:
        opened.append(path.name)
        return open_log(path, **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Log, "open", counted)
    diagnosed(capsys, "--data-dir", tmp_path, code=0)
    assert opened == ["__cluster_metadata-0"]


def test_missing_directory_is_not_a_problem(tmp_path: Path, capsys: Capture) -> None:
    found = diagnosed(capsys, "--data-dir", tmp_path / "new" / "data", code=0)
    assert about(found, "directory").level is Level.OK
    assert not (tmp_path / "new").exists()


def test_directory_closed_by_a_broker_is_whole(tmp_path: Path, capsys: Capture) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t", 3)
        cluster_id = broker.cluster_id
    found = diagnosed(capsys, "--data-dir", tmp_path, code=0)
    assert cluster_id in about(found, "identity").text
    assert about(found, "metadata").text.startswith("1 topics")
    assert {one.level for one in found} <= {Level.OK, Level.WARNING}


def test_changed_node_id_is_named_with_the_right_one(tmp_path: Path, capsys: Capture) -> None:
    """A broker that starts with it leads none of the existing partitions."""
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t")
    properties = tmp_path / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=5"))
    found = diagnosed(capsys, "--data-dir", tmp_path, code=1)
    (bad,) = (one for one in found if one.level is Level.PROBLEM)
    assert bad.subject == "identity"
    assert "node.id=5" in bad.text
    assert bad.advice == f"set node.id=1 in {properties}"


def test_damage_is_named_with_the_command_that_shows_it_and_nothing_is_changed(
    killed: Path, capsys: Capture
) -> None:
    before = content(killed)
    found = diagnosed(capsys, "--data-dir", killed, code=1)
    (bad,) = (one for one in found if one.level is Level.PROBLEM)
    assert bad.text == "bad-crc-early-0: damaged: valid batches follow a damaged one at offset 100"
    assert f"pykafka-core repair {killed / 'bad-crc-early-0'}" in bad.advice
    assert content(killed) == before


def test_partitions_unknown_to_the_metadata_are_a_problem_before_the_start(
    killed: Path, capsys: Capture
) -> None:
    shutil.rmtree(killed / "__cluster_metadata-0")
    before = content(killed)
    found = diagnosed(capsys, "--data-dir", killed, code=1)
    lost = about(found, "metadata")
    assert lost.level is Level.PROBLEM
    assert f"{killed} holds " in lost.text
    assert "contains none of their topics" in lost.text
    assert f"move their directories out of {killed}" in lost.advice
    assert content(killed) == before


def test_byte_changed_after_a_clean_stop_is_found(tmp_path: Path, capsys: Capture) -> None:
    """As in Kafka, a start reads no batches of a cleanly closed log; `doctor` reads all of them."""
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for value in (b"first", b"second"):
            producer.produce("t", value)
            assert producer.flush(PATIENCE_S) == 0
    log = tmp_path / "t-0" / f"{0:020}.log"
    content = log.read_bytes()
    log.write_bytes(content.replace(b"first", b"First"))
    with Broker(tmp_path, durability="os") as broker:
        assert not any(broker.health().values())
    found = diagnosed(capsys, "--data-dir", tmp_path, code=1)
    (bad,) = (one.text for one in found if one.level is Level.PROBLEM)
    assert bad == "t-0: damaged: valid batches follow a damaged one at offset 0"


def test_copy_of_another_partition_is_a_problem_and_is_not_served(
    tmp_path: Path, capsys: Capture, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("t", 2)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for partition in range(2):
            producer.produce("t", b"record", partition=partition)
        assert producer.flush(PATIENCE_S) == 0
    shutil.rmtree(tmp_path / "t-1")
    shutil.copytree(tmp_path / "t-0", tmp_path / "t-1")
    found = diagnosed(capsys, "--data-dir", tmp_path, code=1)
    (wrong,) = (one for one in found if one.level is Level.PROBLEM)
    assert wrong.text == "t-1 has the files of partition 0 of its topic"
    with Broker(tmp_path):
        text = f"{tmp_path / 't-1'} has the files of partition 0 of its topic"
        eventually(lambda: text in caplog.text)
    assert (tmp_path / "t-1" / f"{0:020}.log").exists()


def test_each_finding_is_printed_with_its_advice(killed: Path, capsys: Capture) -> None:
    assert run("doctor", "--data-dir", killed) == 1
    out, errors = capsys.readouterr()
    assert "\nPROBLEM  logs: bad-crc-early-0: damaged" in out
    assert "\n           see what `pykafka-core repair" in out
    assert errors == "pykafka-core: 1 problem found\n"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str], int]]:
    data = tmp_path / "data"
    command = [*SERVE, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--data", str(data)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[1]
            yield data, process, int(address.rpartition(":")[2])
        finally:
            process.kill()


def test_process_that_holds_the_directory_and_the_port_is_named(
    served: tuple[Path, subprocess.Popen[str], int], capsys: Capture
) -> None:
    data, process, port = served
    found = diagnosed(capsys, "--data-dir", data, "--port", str(port), code=1)
    lock, used = about(found, "lock"), about(found, "port")
    assert (lock.level, used.level) == (Level.WARNING, Level.PROBLEM)
    assert f"process {process.pid} (" in lock.text
    assert f"process {process.pid} (" in used.text
    assert "pykafka_core.cli serve" in used.text
    assert "--listen" in used.advice


def test_check_of_a_broker_in_this_process_keeps_its_lock(tmp_path: Path, capsys: Capture) -> None:
    with Broker(tmp_path, durability="os"):
        found = diagnosed(capsys, "--data-dir", tmp_path, code=0)
        assert "this process" in about(found, "lock").text
        command = [sys.executable, "-m", "pykafka_core.cli", "repair", str(tmp_path)]
        again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "in use" in again.stderr


def test_files_that_a_broker_deletes_during_the_checks_are_not_findings(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition, file = tmp_path / "orders-0", tmp_path / "topic-id-checkpoint.tmp"
    partition.mkdir()
    file.touch()
    listed, accessible = os.listdir, os.access

    def lists(path: Path) -> list[str]:
        if Path(path) == partition:
            partition.rmdir()
        return listed(path)

    def access(path: Path, mode: int) -> bool:
        if path == file:
            file.unlink(missing_ok=True)
        return accessible(path, mode)

    monkeypatch.setattr(os, "listdir", lists)
    monkeypatch.setattr(os, "access", access)
    found = diagnosed(capsys, "--data-dir", tmp_path, code=0)
    assert about(found, "permissions").level is Level.OK
    assert not partition.exists()
    assert not file.exists()


def test_segments_of_other_partitions_are_counted_while_one_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deleted-0", "orders-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").touch()
    listed = os.listdir

    def lists(path: Path) -> list[str]:
        if Path(path).name == "deleted-0":
            shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", lists)
    assert limits.segments_of(tmp_path) == 1


@pytest.mark.parametrize("is_listed", [True, False], ids=["other user", "other container"])
def test_lock_of_an_invisible_process_is_reported(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, is_listed: bool
) -> None:
    data = tmp_path / "data"
    with Broker(data, durability="os"):
        monkeypatch.setattr(processes, "_PROC", proc_with_lock(tmp_path, data, is_listed=is_listed))
        assert lock_holder(data) == Holder(None)
        found = diagnosed(capsys, "--data-dir", data, code=0)
    assert "in use by a process of another user or container" in about(found, "lock").text


def test_lock_that_is_released_during_the_search_has_no_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    with Broker(data, durability="os"):
        proc = proc_with_lock(tmp_path, data, is_listed=True)
    monkeypatch.setattr(processes, "_PROC", proc)

    def release(_directory: Path) -> Iterator[Path]:
        (proc / "locks").write_text("")
        yield from ()

    monkeypatch.setattr(Path, "iterdir", release)
    assert lock_holder(data) is None


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ("version=2\n", "newer Kafka: version is '2'"),
        ("version=x\n", "version is 'x'"),
        (None, "meta.properties is missing"),
    ],
)
def test_a_directory_of_another_format_is_a_problem(
    killed: Path, capsys: Capture, meta: str | None, said: str
) -> None:
    if meta is None:
        (killed / "meta.properties").unlink()
    else:
        (killed / "meta.properties").write_text(meta)
    found = about(diagnosed(capsys, "--data-dir", killed, code=1), "identity")
    assert found.level is Level.PROBLEM
    assert said in found.text


@pytest.mark.parametrize("meta", [None, ""])
def test_registered_ids_are_shown_for_a_lost_meta_properties(
    tmp_path: Path, capsys: Capture, meta: str | None
) -> None:
    with Broker(tmp_path, durability="os"):
        identity = DataDirectory(tmp_path).identity()
    assert identity is not None
    assert identity.directory_id is not None
    (tmp_path / "meta.properties").unlink()
    if meta is not None:
        (tmp_path / "meta.properties").write_text(meta)
    before = content(tmp_path)
    found = diagnosed(capsys, "--data-dir", tmp_path, code=1)
    assert content(tmp_path) == before
    assert about(found, "metadata").text == (
        f"node.id=1 is registered with directory.id={id_text(identity.directory_id)}"
    )
    problem = about(found, "identity")
    with pytest.raises(IdentityError) as refused:
        Broker(tmp_path, durability="os")
    assert str(refused.value) == f"{problem.text}; {problem.advice}"


def test_a_directory_of_zookeeper_mode_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=x\n")
    (tmp_path / "orders-0").mkdir()
    found = about(diagnosed(capsys, "--data-dir", tmp_path, code=1), "identity")
    assert "ZooKeeper mode" in found.text
    assert found.advice == "migrate its cluster to KRaft with Apache Kafka 3.9 (KIP-866) first"


def test_a_directory_without_an_id_is_reported_as_ok(killed: Path, capsys: Capture) -> None:
    file = killed / "meta.properties"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("directory.id")]
    file.write_text("\n".join(kept) + "\n")
    (identity,) = (
        one for one in diagnosed(capsys, "--data-dir", killed, code=1) if one.subject == "identity"
    )
    assert identity.level is Level.OK
    assert "directory.id" not in file.read_text()


def test_unsupported_features_are_named(killed: Path, capsys: Capture) -> None:
    warned = about(diagnosed(capsys, "--data-dir", killed, code=1), "features")
    assert warned.level is Level.WARNING
    assert "does not support share.version=1, streams.version=1" in warned.text
    assert "downgrade --feature share.version=0 --feature streams.version=0" in warned.advice


def test_file_in_place_of_a_directory_is_a_problem(capsys: Capture) -> None:
    found = about(diagnosed(capsys, "--data-dir", __file__, code=1), "directory")
    assert found.text.endswith("is not a directory")


def test_file_without_permission_is_named(
    killed: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The access check is replaced, because root, who may run the tests, can access everything."""
    hidden = killed / "bad-crc-0" / "00000000000000000000.log"
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != hidden and allowed(path, mode))
    found = about(diagnosed(capsys, "--data-dir", killed, code=1), "permissions")
    assert str(hidden) in found.text
    assert "chown" in found.advice


@pytest.mark.parametrize(
    ("command", "place"),
    [(["repair"], ""), (["doctor", "--data-dir"], ""), (["doctor", "--data-dir"], "new")],
)
def test_a_read_only_file_system_is_named(command: list[str], place: str, killed: Path) -> None:
    mount = mounted(killed, "none", "bind,ro", str(killed))
    asked = [*mount, sys.executable, "-m", "pykafka_core.cli", *command, str(killed / place)]
    result = subprocess.run(
        asked, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=ROOT
    )
    said = result.stdout + result.stderr
    assert result.returncode == 1, said
    assert "read-only file system" in said.lower()
    assert "remount" in said
    for wrong in ("stop the broker", "chown", "as another user"):
        assert wrong not in said


@pytest.mark.parametrize(
    ("free", "level"), [(0, Level.PROBLEM), (512, Level.WARNING), (4096, Level.OK)]
)
def test_free_space_is_assessed(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    free: int,
    level: Level,
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=free * 1024**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    code = int(level is Level.PROBLEM)
    assert about(diagnosed(capsys, "--data-dir", tmp_path, code=code), "space").level is level


def test_unused_port_is_free(capsys: Capture) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    assert about(diagnosed(capsys, "--port", str(port), code=0), "port").level is Level.OK


def test_a_port_that_is_open_to_the_network_is_a_warning(capsys: Capture) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        found = diagnosed(capsys, "--port", str(port), code=1)
    open_to_all = about(found, "network")
    assert open_to_all.level is Level.WARNING
    assert f"0.0.0.0:{port}" in open_to_all.text
    assert f"process {os.getpid()} (" in about(found, "port").text


def test_socket_holder_is_found_if_an_earlier_file_closes_during_the_search() -> None:
    with socket.socket() as lower, socket.create_server(("127.0.0.1", 0)) as server:
        (one,) = listening(server.getsockname()[1])
        lower.close()  # the listing of the open files gets this number, below the server's
        assert socket_holder(one.inode) == os.getpid()


def test_addresses_of_sockets_are_parsed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        (one,) = listening(server.getsockname()[1])
        assert (one.host, one.is_loopback) == ("127.0.0.1", True)


def test_a_port_that_needs_privileges_is_a_problem(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = PermissionError(errno.EACCES, "no")
    monkeypatch.setattr(ports, "_refusal", lambda _: refusal)
    assert "above 1023" in about(diagnosed(capsys, "--port", "80", code=1), "port").advice


@pytest.mark.parametrize(
    ("count_max", "segments", "level"),
    [
        (resource.RLIM_INFINITY, 10**6, Level.OK),
        (4096, 0, Level.OK),
        (4096, 1, Level.WARNING),
        (5096, 1000, Level.OK),
        (1024, 0, Level.WARNING),
        (255, 0, Level.PROBLEM),
    ],
)
def test_open_files_limit_is_compared_with_the_number_of_segments(
    count_max: int, segments: int, level: Level
) -> None:
    assert limits.judge_files(count_max, segments).level is level


def test_mapped_files_limit_is_compared_with_the_number_of_segments() -> None:
    assert limits.judge_maps(65530, 100).level is Level.OK
    few = limits.judge_maps(65530, 100_000)
    assert few.level is Level.WARNING
    assert "sysctl -w vm.max_map_count=" in few.advice


def test_reachable_broker_is_ok_and_an_unreachable_one_is_a_problem(capsys: Capture) -> None:
    with Broker() as broker:
        found = diagnosed(capsys, "-b", broker.bootstrap_servers, code=0)
        assert broker.cluster_id in about(found, "broker").text
    gone = about(diagnosed(capsys, "-b", "127.0.0.1:1", code=1), "broker")
    assert "no broker answers at 127.0.0.1:1" in gone.text
    assert "pykafka-core serve" in gone.advice
