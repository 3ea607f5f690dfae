"""``pykafka-core serve`` as a process: its ready line, its signals, its exit codes."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from bench.fairness.disk import Disk
from pykafka_core import Broker
from pykafka_core.cli import main
from pykafka_core.cli.serve import ServeOptions
from pykafka_core.log import Log
from pykafka_core.protocol.messages import MetadataRequest
from pykafka_core.types import RESOURCE_BROKER
from tests.faults.disks.disk_full_child import Sender
from tests.support.evidence.logs import watch_lines
from tests.support.patience import PATIENCE_S, eventually
from tests.support.wire import Connection

ROOT = Path(__file__).resolve().parent.parent.parent
DAMAGED = ROOT / "tests" / "formats" / "golden" / "killed" / "data"
HEARTBEAT = "consumer.heartbeat.interval"
ENDLESS_STOP = """
import os, threading
from pykafka_core.cli.serve import _bounded

signalled, wake_up = os.pipe()
os.write(wake_up, b"!")
with _bounded(0, signalled, wake_up):
    threading.Event().wait()
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pykafka_core.cli", *arguments]


@contextmanager
def serving(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        command("serve", "--listen", "127.0.0.1:0", *arguments),
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        if process.poll() is None:
            process.kill()
        _, errors = process.communicate()
        watch_lines("the broker").append(errors)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_a_signal_and_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "new" / "data"
    with serving("--data", str(data)) as (process, line):
        word, address, where, cluster = line.split()
        assert word == "ready"
        assert address.startswith("127.0.0.1:")
        assert where == f"data={data}"
        assert cluster.startswith("cluster=")
        process.send_signal(number)
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, ""), errors


def test_a_stop_on_a_slow_disk_ends_at_its_limit_and_loses_no_record(tmp_path: Path) -> None:
    """Each sync takes longer than the timeout of the test."""
    disk = Disk(tmp_path / "disk")
    data = tmp_path / "data"
    arguments = ["--data", str(data), "--durability", "os", "--stop-timeout", "1"]
    with serving(*arguments, environment=disk.environment) as (process, line):
        producer = Producer({"bootstrap.servers": line.split()[1]})
        for partition in range(4):
            producer.produce(f"orders{partition}", b"order")
        assert producer.flush(PATIENCE_S) == 0
        with disk.slow(10 * 1000 * int(PATIENCE_S)):
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "the stop took longer than 1 s and was cancelled" in errors
    assert not (data / ".kafka_cleanshutdown").exists()
    Broker(data).close()
    for partition in range(4):
        with Log.open(data / f"orders{partition}-0", read_only=True) as log:
            assert log.log_end_offset == 1


def test_a_stop_with_a_broken_standard_error_ends_at_its_limit() -> None:
    """A broken pipe at standard error ended the thread that ends the process."""
    unread, errors = os.pipe()
    os.close(unread)
    with open(errors, "wb"):
        arguments = [sys.executable, "-c", ENDLESS_STOP]
        done = subprocess.run(arguments, stderr=errors, check=False, timeout=PATIENCE_S)
    assert done.returncode == 1


def test_start_on_a_slow_disk_ends_at_the_limit_of_a_stop(tmp_path: Path) -> None:
    """A start that recovered a directory did not end, even after a second signal."""
    disk, data = Disk(tmp_path / "disk"), tmp_path / "data"
    arguments = ["--data", str(data), "--durability", "os", "--stop-timeout", "1"]
    with serving(*arguments) as (process, line):
        assert Sender(line.split()[1]).send("orders", b"order") == 0
        process.kill()
        process.communicate()
    with disk.slow(10 * 1000 * int(PATIENCE_S), f"{data}/"):
        arguments = [*command("serve", "--listen", "127.0.0.1:0"), *arguments]
        starting = subprocess.Popen(
            arguments, env={**os.environ, **disk.environment}, stderr=subprocess.PIPE, text=True
        )
        eventually(disk.is_waited_for)
        starting.send_signal(signal.SIGTERM)
        _, errors = starting.communicate(timeout=PATIENCE_S)
    assert (starting.returncode, "was cancelled" in errors) == (1, True), errors
    Broker(data).close()
    with Log.open(data / "orders-0", read_only=True) as log:
        assert log.log_end_offset == 1


def test_ctrl_c_ends_a_start_at_any_point() -> None:
    """In a callback of importlib the exception was printed as ignored, and the broker continued."""
    program = """
import signal, sys, weakref
from pykafka_core import cli

class Referenced: pass

def interrupt(*_):
    signal.raise_signal(signal.SIGINT)

def settings(*_):
    referenced = Referenced()
    reference = weakref.ref(referenced, interrupt)
    del referenced
    sys.exit("served on")

from pykafka_core.cli import serve
serve.ServeOptions.from_arguments = settings
cli.main(["serve"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGINT, done
    assert "Traceback" not in done.stderr


def test_signal_delivered_to_another_thread_ends_the_server(tmp_path: Path) -> None:
    """The system may deliver it to any thread; only the main thread runs Python's handlers, and
    that thread sleeps.
    """
    with serving("--data", str(tmp_path / "data")) as (process, _):
        signal_another_thread(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors


def signal_another_thread(process: int, number: signal.Signals) -> None:
    threads = {int(path.name) for path in Path(f"/proc/{process}/task").iterdir()}
    for thread in sorted(threads - {process}):
        with suppress(ProcessLookupError):  # the thread of a pool may have ended
            return os.kill(thread, number)
    raise AssertionError("there is no other thread")


_FREES = """
from pathlib import Path
from pykafka_core.cli.serve import ServeOptions, _start

def resident_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmRSS"))

with _start(ServeOptions(listen="127.0.0.1:0", durability="memory"), print):
    # As large as the allocator keeps from now on, unless it was told otherwise.
    largest = b"x" * (30 << 20)
    del largest
    before = resident_mib()
    block, behind = b"x" * (20 << 20), b"x" * (100 << 10)
    del block
    print(resident_mib() - before)
"""


_COUNTS_HEAPS = """
import ctypes, os, threading
from pykafka_core.cli.serve import ServeOptions, _start

with _start(ServeOptions(listen="127.0.0.1:0", durability="memory"), print):
    held = threading.Barrier(9)

    def hold():
        block = b"x" * (100 << 10)
        held.wait()

    for _ in range(8):
        threading.Thread(target=hold).start()
    held.wait()
    libc = ctypes.CDLL(None)
    libc.fdopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fdopen(os.dup(1), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
"""


def test_threads_of_a_server_share_two_heaps() -> None:
    told = subprocess.check_output([sys.executable, "-c", _COUNTS_HEAPS], timeout=PATIENCE_S)
    assert 1 <= told.count(b"<heap ") <= 2


def test_server_returns_large_blocks_to_the_system() -> None:
    kept_mib = subprocess.check_output([sys.executable, "-c", _FREES], timeout=PATIENCE_S)
    assert int(kept_mib) < 10


def test_memory_durability_writes_no_files(tmp_path: Path) -> None:
    with serving("--durability", "memory") as (process, line):
        assert " data=memory " in line
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert list(tmp_path.iterdir()) == []


def test_defaults_of_a_server_are_those_of_kafka() -> None:
    with serving("--durability", "memory") as (_, line):
        admin = AdminClient({"bootstrap.servers": line.split()[1]})
        resource = ConfigResource(ConfigResource.Type.BROKER, "1")
        configs = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    found = [configs[f"group.{name}.ms"] for name in ("initial.rebalance.delay", HEARTBEAT)]
    assert [(one.value, one.is_default) for one in found] == [("3000", True), ("5000", True)]


def test_settings_shipped_with_kafka_start_a_broker(tmp_path: Path) -> None:
    stock = ROOT / "tests" / "config" / "golden" / "server.properties"
    with serving("--config", str(stock), "--data", str(tmp_path / "data")) as (process, line):
        assert line.startswith("ready 127.0.0.1:")
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    (warning,) = errors.splitlines()
    assert "no meaning" in warning
    assert "num.network.threads" in warning


def test_damage_is_reported_at_the_start_with_the_command_that_repairs_it(tmp_path: Path) -> None:
    """No client requests the partition; other lines report other damage in the same directory."""
    data = tmp_path / "data"
    shutil.copytree(DAMAGED, data, copy_function=shutil.copyfile)
    before = {path: path.read_bytes() for path in (data / "bad-crc-early-0").iterdir()}
    with serving("--data", str(data)) as (process, line):
        assert line.startswith("ready ")
        assert process.stderr is not None
        (found,) = islice((one for one in process.stderr if "bad-crc-early-0" in one), 1)
        assert "is read_only" in found
        assert f"pykafka-core repair {data}/bad-crc-early-0" in found
        assert before == {path: path.read_bytes() for path in (data / "bad-crc-early-0").iterdir()}


@pytest.mark.parametrize(("level", "is_shown"), [("info", True), ("error", False)])
def test_log_level_filters_lines(level: str, is_shown: bool) -> None:
    with serving("--durability", "memory", "--log-level", level) as (process, _):
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (" INFO pykafka_core." in errors) is is_shown


def test_advertised_listeners_can_be_set_with_listen() -> None:
    advertised = "--set", "advertised.listeners=PLAINTEXT://localhost:0"
    with serving("--durability", "memory", *advertised) as (_, line):
        assert line.startswith("ready localhost:")


def test_command_line_overrides_settings_altered_by_a_client(tmp_path: Path) -> None:
    """With a limit of one connection, held by another client, no client could undo the change."""
    serve = "--data", str(tmp_path / "data")
    with serving(*serve) as (_, line), Connection(line.split()[1]) as connection:
        assert connection.alter(RESOURCE_BROKER, "", "max.connections", "1") == 0
    with (
        serving(*serve, "--set", "max.connections=2") as (_, line),
        Connection(line.split()[1]) as held,
        Connection(line.split()[1]) as other,
    ):
        assert held.ask(3, 12, MetadataRequest()).brokers
        assert other.ask(3, 12, MetadataRequest()).brokers


def test_directory_cannot_be_served_twice(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path)):
        again = run("serve", "--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert again.returncode == 1
    assert str(tmp_path) in again.stderr


def test_used_address_is_reported(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path / "a")) as (_, line):
        again = run("serve", "--data", str(tmp_path / "b"), "--listen", line.split()[1])
    assert again.returncode == 1
    assert "--listen" in again.stderr


def test_all_bad_settings_are_reported_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partition=3\nssl.keystore.location=/x\n")
    data = tmp_path / "data"
    result = run(
        "serve", "--data", str(data), "--config", str(file), "--set", "log.retention.ms=soon"
    )
    assert result.returncode == 2
    for text in ("num.partitions?", "ssl.keystore.location is not built yet", "soon"):
        assert text in result.stderr
    assert not data.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "no-equals"],
        ["--data="],
        ["--data", ""],
        ["--listen="],
        ["--config", "/no/such/file"],
        ["--durability", "eventually"],
        ["--log-level", "trace"],
        ["--log-level="],
        ["--durability", "memory", "--data", "x"],
        ["--unknown", "x"],
        ["--data"],
    ],
)
def test_wrong_usage_is_code_2(
    arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["serve", *arguments])
    assert caught.value.code == 2
    assert capsys.readouterr().err


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_well_formed_arguments_need_no_typer() -> None:
    options = ServeOptions.from_arguments(
        ["--data=d", "--listen", "h:1", "--set", "a=b=c", "--set", "d=e", "--durability", "os"]
        + ["--log-level", "debug", "--stop-timeout", "9"]
    )
    assert options == ServeOptions(
        data=Path("d"),
        listen="h:1",
        durability="os",
        settings=("a=b=c", "d=e"),
        log_level="debug",
        stop_timeout_s=9,
    )
    assert ServeOptions.from_arguments(["--help"]) is None
    assert ServeOptions.from_arguments(["--stop-timeout", "0"]) is None


# The standard library modules that `serve` imports: each costs time at every start.
STANDARD = (
    "atexit, base64, collections.abc, contextlib, enum, errno, functools, gc, heapq, importlib, itertools, json,"
    "logging, math, os, pathlib, re, resource, runpy, select, signal, struct, threading, time, types, typing,"
    "warnings, weakref"
)
# Modules of this package that a broker only needs later, or never.
LATER = (
    "pykafka_core.cli.app",
    "pykafka_core.handlers.configs",
    "pykafka_core.handlers.topics",
    "pykafka_core.idempotent",
    "pykafka_core.kernels",
    "pykafka_core.log",
    "pykafka_core.metadata.records.snapshot",
    "pykafka_core.testing",
)


def imported(line: str) -> str:
    """Return the module in a line of ``-X importtime``; empty for the heading and other lines."""
    is_about_one = line.startswith("import time:") and not line.endswith("imported package")
    return line.rpartition("|")[2].strip() if is_about_one else ""


def imports_of(code: str) -> set[str]:
    program = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return {imported(line) for line in done.stderr.splitlines()}


def test_serve_imports_nothing_heavy_before_its_first_metadata_answer(tmp_path: Path) -> None:
    start = ["-X", "importtime", "-m", "pykafka_core.cli", "serve", "--listen", "127.0.0.1:0"]
    command = [sys.executable, *start, "--data", str(tmp_path / "data")]
    report = tmp_path / "imports"
    with (
        report.open("w") as lines,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=lines, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            with Connection(process.stdout.readline().split()[1]) as connection:
                assert connection.ask(3, 12, MetadataRequest()).brokers
        finally:
            process.kill()
    names = {imported(line) for line in report.read_text().splitlines()}
    assert "pykafka_core.broker.start.startup" in names
    others = {name for name in names if not name.startswith("pykafka_core")}
    assert others <= imports_of(f"import {STANDARD}")
    assert not {name for name in names if name.startswith(LATER)}
