"""The embedded broker: its life cycle, and events of the process that affect it."""

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.errors import (
    ClosedError,
    ConfigurationError,
    ForkedError,
    InvalidConfigError,
    InvalidTopicError,
    StorageError,
    StorageLockedError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from tests.support.patience import PATIENCE_S, eventually, exactly


def control_threads() -> int:
    return sum(thread.name == "pykafka-core-control" for thread in threading.enumerate())


def test_broker_creates_and_deletes_topics() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=3, config={"retention.ms": 1000})
        broker.create_topic("payments")
        assert broker.topics() == {"orders": 3, "payments": 1}
        broker.delete_topic("orders")
        assert broker.topics() == {"payments": 1}


def test_settings_without_effect_are_named_in_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Broker(config={"num.io.threads": 3, "background.threads": 9}):
        (warning,) = [r for r in caplog.records if "no meaning" in r.getMessage()]
    assert warning.levelname == "WARNING"
    assert "num.io.threads, background.threads" in warning.getMessage()


def test_errors_of_topics_have_the_codes_of_kafka() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        with pytest.raises(TopicAlreadyExistsError):
            broker.create_topic("orders")
        with pytest.raises(InvalidTopicError):
            broker.create_topic("or/ders")
        with pytest.raises(InvalidConfigError, match="retention"):
            broker.create_topic("other", config={"retention.ms": "soon"})
        with pytest.raises(UnknownTopicOrPartitionError):
            broker.delete_topic("nobody")


def test_reading_the_address_binds_the_loopback_once() -> None:
    with Broker() as broker:
        assert broker.listeners == {}
        address = broker.bootstrap_servers
        assert address.startswith("127.0.0.1:")
        assert broker.bootstrap_servers == address
        assert broker.listeners == {"PLAINTEXT": address}


def test_given_listeners_are_bound_at_once() -> None:
    with Broker(listeners="127.0.0.1:0,LAB://127.0.0.1:0", config=LAB) as broker:
        assert set(broker.listeners) == {"PLAINTEXT", "LAB"}
        assert broker.bootstrap_servers == ",".join(broker.listeners.values())


LAB = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LAB:PLAINTEXT"}


def test_closed_broker_rejects_calls() -> None:
    broker = Broker()
    assert not broker.closed
    broker.close()
    broker.close()
    assert broker.closed
    with pytest.raises(ClosedError):
        broker.create_topic("orders")
    with pytest.raises(ClosedError):
        _ = broker.bootstrap_servers


def test_two_brokers_live_in_one_process() -> None:
    with Broker() as one, Broker() as other:
        one.create_topic("orders")
        assert (one.topics(), other.topics()) == ({"orders": 1}, {})
        assert one.cluster_id != other.cluster_id
        assert one.bootstrap_servers != other.bootstrap_servers


def pool_threads() -> int:
    """Return the number of the core's threads for single brokers; all brokers share those of the
    network.
    """
    count = 0
    for task in Path("/proc/self/task").iterdir():
        # A thread may end during the iteration.
        with contextlib.suppress(OSError):
            count += (task / "comm").read_text().startswith(("pykafka-disk", "pykafka-maint"))
    return count


def test_closed_brokers_that_are_kept_have_no_threads(tmp_path: Path) -> None:
    before, closed = pool_threads(), []
    for number in range(20):
        broker = Broker(tmp_path / str(number), durability="fsync")
        with broker:
            broker.create_topic("orders", partitions=8)
        closed.append(broker)
    eventually(lambda: pool_threads() <= before)
    assert len(closed) == 20


def test_a_second_close_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returned at once, while the directory was still locked."""
    stopping, go_on = threading.Event(), threading.Event()

    def slow_stop(loop: ControlLoop) -> None:
        stopping.set()
        assert go_on.wait(PATIENCE_S)
        stop(loop)

    stop = ControlLoop.stop
    monkeypatch.setattr(ControlLoop, "stop", slow_stop)
    broker = Broker(tmp_path)
    first, second = (threading.Thread(target=broker.close) for _ in range(2))
    first.start()
    assert stopping.wait(PATIENCE_S)
    second.start()
    second.join(exactly(0.05, "the second call must wait for the first one"))
    assert second.is_alive()
    go_on.set()
    second.join()
    Broker(tmp_path).close()
    first.join()


def test_signal_handler_may_close_the_broker_during_its_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The handler must not wait for a thread if the interrupted code already waits for its end."""

    def stop_again(loop: ControlLoop) -> None:
        nested.append(broker.closed)
        if len(nested) == 1:
            broker.close()
        stop(loop)

    nested: list[bool] = []
    stop = ControlLoop.stop
    monkeypatch.setattr(ControlLoop, "stop", stop_again)
    broker = Broker()
    broker.close()
    assert len(nested) == 2  # both by the same thread


def test_broker_whose_control_thread_cannot_start_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: ControlLoop) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ControlLoop, "start", refuse)
    with pytest.raises(RuntimeError, match="new thread"):
        Broker(tmp_path, listeners="127.0.0.1:0")
    monkeypatch.undo()
    Broker(tmp_path).close()


def test_garbage_collector_closes_a_broker() -> None:
    gc.collect()  # objects of other tests
    before = control_threads()
    broker = Broker()
    assert control_threads() == before + 1
    gone = weakref.ref(broker)
    del broker
    gc.collect()
    assert gone() is None
    assert control_threads() == before


def test_topics_and_identity_survive_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        broker.create_topic("orders", partitions=3, config={"retention.ms": 1000})
        broker.create_topic("gone")
        broker.delete_topic("gone")
        identity = (broker.cluster_id, broker.node_id)
        image = broker._image()
    with Broker(tmp_path / "data") as broker:
        assert (broker.cluster_id, broker.node_id) == identity
        assert broker.topics() == {"orders": 3}
        assert broker._image().topics == image.topics
        assert broker._image().configs == image.configs


def test_a_directory_is_locked_while_it_is_open(tmp_path: Path) -> None:
    with Broker(tmp_path), pytest.raises(StorageLockedError):
        Broker(tmp_path)
    with Broker(tmp_path) as broker:
        assert not broker.closed


def test_a_copy_of_a_killed_directory_gets_new_leader_epochs(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        broker.create_topic("orders")
        # A checkpoint that the core is writing may be renamed while it is copied.
        half_written = shutil.ignore_patterns("*-checkpoint.tmp")
        shutil.copytree(tmp_path / "data", tmp_path / "killed", ignore=half_written)
    with Broker(tmp_path / "killed") as broker:
        assert broker._image().topics.by_name["orders"].partitions[0].leader_epoch == 1
    with Broker(tmp_path / "killed") as broker:
        assert broker._image().topics.by_name["orders"].partitions[0].leader_epoch == 1


def test_directory_of_another_node_is_rejected(tmp_path: Path) -> None:
    Broker(tmp_path, config={"node.id": 5}).close()
    with pytest.raises(StorageError, match="node 5"):
        Broker(tmp_path, config={"node.id": 6})
    with Broker(tmp_path) as broker:
        assert broker.node_id == 5


def test_all_invalid_settings_are_named() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Broker(config={"num.partitions": "many", "no.such.setting": 1})
    assert len(caught.value.problems) == 2


def test_durability_must_match_the_storage(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        Broker(durability="fsync")
    with pytest.raises(ConfigurationError):
        Broker(tmp_path, durability="memory")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_cannot_use_a_broker() -> None:
    with Broker() as broker:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                broker.create_topic("orders")
                os.write(write, b"used")
            except ForkedError:
                broker.close()
                os.write(write, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 100) == b"refused"
        os.close(read)
        os.close(write)
        broker.create_topic("orders")


def test_end_of_the_interpreter_closes_a_broker(tmp_path: Path) -> None:
    script = "import sys; from pykafka_core import Broker; b = Broker(sys.argv[1]); b.create_topic('orders')"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_statistics_contain_the_waiting_time_of_requests() -> None:
    with Broker() as broker:
        assert broker.statistics()["control.requests.count"] == 0
