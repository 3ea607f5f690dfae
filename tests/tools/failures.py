"""Tests that fail, each in its own way, for `test_evidence`.

Pytest does not collect this file by itself.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.protocol.messages import CreateTopicsRequest, MetadataRequest
from tests.support import patience
from tests.support.evidence import stacks
from tests.support.evidence.logs import new_log
from tests.support.patience import PATIENCE_S, eventually, exactly
from tests.support.processes.server import Server, serving
from tests.support.simulated.broker import SimulatedBroker
from tests.support.wire import Connection

SHORT_S = exactly(0.05, "it ends waits for what never comes")
HUNG_CHILD = """
import threading
def wait_in_the_child():
    print("ready", flush=True)
    threading.Event().wait()
wait_in_the_child()
"""
MISSING = MetadataRequest(
    topics=[MetadataRequest.MetadataRequestTopic(name="missing")], allow_auto_topic_creation=False
)

UNNAMED = CreateTopicsRequest.CreatableTopic(name="", num_partitions=1, replication_factor=1)


def test_with_a_broker_in_this_process() -> None:
    with Broker(config={"listeners": "PLAINTEXT://0.0.0.0:0"}):
        pytest.fail("planted")


def test_with_a_broker_in_a_child(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--set", "num.io.threads=3"):
        pytest.fail("planted")


@pytest.fixture
def lost_child() -> None:
    with new_log("the lost child") as log:
        command = [sys.executable, "-c", "raise ValueError('lost')"]
        subprocess.run(command, stderr=log, timeout=PATIENCE_S, check=True)


@pytest.mark.usefixtures("lost_child")
def test_with_a_fixture_that_fails() -> None:
    pass


@pytest.fixture(scope="module")
def lost_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("lost"), "--set", "num.io.threads=3") as server:
        yield server


def test_during_which_a_broker_dies(lost_broker: Server) -> None:
    assert lost_broker.process is not None
    os.kill(lost_broker.process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, lost_broker.process.pid, os.WEXITED | os.WNOWAIT)
    pytest.fail("planted")


def test_before_which_a_broker_died(lost_broker: Server) -> None:
    Connection(lost_broker.address)


def test_with_a_raw_connection() -> None:
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        connection.ask(3, 12, MISSING)
        pytest.fail("planted")


def test_with_a_simulated_broker() -> None:
    SimulatedBroker().ask(CreateTopicsRequest(topics=[UNNAMED]))
    pytest.fail("planted")


def test_with_a_child_that_fails() -> None:
    command = [sys.executable, "-c", "raise ValueError('its reason')"]
    subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)


@pytest.fixture
def hung_child() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", HUNG_CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def wait_in_a_thread(released: threading.Event) -> None:
    released.wait()


@pytest.fixture
def hung_thread() -> Iterator[threading.Thread]:
    released = threading.Event()
    thread = threading.Thread(target=wait_in_a_thread, args=(released,), name="hung thread")
    thread.start()
    try:
        yield thread
    finally:
        released.set()


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.usefixtures("hung_child")
def test_that_hangs(hung_thread: threading.Thread) -> None:
    signal.setitimer(
        signal.ITIMER_REAL, SHORT_S
    )  # The timeout fires now, and not before all is set up.
    hung_thread.join()


def test_whose_child_hangs(hung_child: "subprocess.Popen[str]") -> None:
    stacks.take_on_timeouts(PATIENCE_S, from_s=0)
    hung_child.wait(SHORT_S)


@pytest.mark.usefixtures("hung_thread")
def test_whose_wait_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", SHORT_S)
    in_sync = [0, 2]
    eventually(lambda: sorted(in_sync) == [0, 1, 2])


@pytest.mark.timeout(SHORT_S, func_only=True)
def test_that_hangs_with_the_gil() -> None:
    """No signal handler of Python can run."""
    library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
