"""Ctrl-C ends a command that waits for a broker, and errors of a broker are shown at once."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.cli import main
from pykafka_core.cli.client import clients
from tests.support.patience import PATIENCE_S

GOLDEN = Path(__file__).parent.parent / "formats" / "golden" / "killed"
PATIENT = """
from pykafka_core.cli import main
from pykafka_core.cli.client import clients
from pykafka_core.cli.client import clients
clients.TIMEOUT_S = 1000.0
main()
"""
"""The command with a timeout that is longer than the test's."""


class MuteBroker:
    """Accepts connections and never responds; `asked` is set once a client has sent a request."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked = threading.Event()
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                if connection.recv(1):
                    self.asked.set()
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for one in (self._listener, *self._connections):
            one.close()


@pytest.fixture
def mute() -> Iterator[MuteBroker]:
    broker = MuteBroker()
    yield broker
    broker.close()


@pytest.mark.parametrize(
    "command", ["topics list", "configs describe topic t", "produce t", "consume t"]
)
def test_ctrl_c_ends_the_wait_for_a_broker(command: str, mute: MuteBroker) -> None:
    arguments = [*command.split(), "-b", mute.address]
    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT, *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert mute.asked.wait(PATIENCE_S)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "")


@pytest.mark.parametrize(
    ("first", "ends"), [(KeyboardInterrupt, SystemExit), (ValueError, RuntimeError)]
)
def test_lock_error_caused_by_ctrl_c_counts_as_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, first: type[BaseException], ends: type[BaseException]
) -> None:
    def interrupted(bootstrap: str | None) -> None:
        lock = threading.Lock()
        with lock:
            lock.release()
            raise first

    monkeypatch.setattr(clients, "_knock", interrupted)
    with pytest.raises(ends) as caught:
        main(["topics", "list"])
    assert getattr(caught.value, "code", 130) == 130


@pytest.mark.interval
def test_damaged_partition_rejects_records_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(GOLDEN / "data", data, copy_function=shutil.copyfile)
    file = tmp_path / "lines"
    file.write_text("a\nb\n")
    with Broker(data) as broker:
        started = time.monotonic()
        arguments = ["produce", "bad-crc-early", str(file), "--partition", "0"]
        with pytest.raises(SystemExit) as caught:
            main([*arguments, "-b", broker.bootstrap_servers])
    assert time.monotonic() - started < PATIENCE_S
    assert caught.value.code == 1
    errors = capsys.readouterr().err
    assert "2 of 2 records were not delivered: Broker: Disk error" in errors
    assert "pykafka-core repair" in errors
