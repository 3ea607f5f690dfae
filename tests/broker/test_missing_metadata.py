"""A metadata log that is gone, emptied or zeroed stops the start: an empty cluster would lose every topic."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.errors import StorageError
from tests.support.patience import PATIENCE_S

METADATA = "__cluster_metadata-0"
CHILD = """
import sys
from pykafka_core import Broker
broker = Broker(sys.argv[1])
broker.create_topic("orders")
print("made", flush=True)
sys.stdin.read()
"""


def _log(data: Path) -> Path:
    return data / METADATA / f"{0:020}.log"


def _directory_gone(data: Path) -> None:
    shutil.rmtree(data / METADATA)


def _log_gone(data: Path) -> None:
    _log(data).unlink()


def _log_empty(data: Path) -> None:
    _log(data).write_bytes(b"")


def _log_zeroed(data: Path) -> None:
    _log(data).write_bytes(bytes(_log(data).stat().st_size))


def _close(data: Path) -> None:
    with Broker(data) as broker:
        broker.create_topic("orders")


def _kill(data: Path) -> None:
    """SIGKILL once the checkpoints of the start are there."""
    command = [sys.executable, "-c", CHILD, str(data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"made\n"
        deadline = time.monotonic() + PATIENCE_S
        checkpoint = data / "recovery-point-offset-checkpoint"
        while not (checkpoint.exists() and "__cluster_metadata 0 " in checkpoint.read_text()):
            assert time.monotonic() < deadline, "no checkpoint was written"
        child.kill()


@pytest.mark.parametrize("end", [_close, _kill])
@pytest.mark.parametrize("damage", [_directory_gone, _log_gone, _log_empty, _log_zeroed])
def test_a_start_without_its_metadata_log_is_refused_every_time(
    tmp_path: Path, end: Callable[[Path], None], damage: Callable[[Path], None]
) -> None:
    data = tmp_path / "data"
    end(data)
    damage(data)
    for _ in range(2):
        with pytest.raises(StorageError, match="metadata log"):
            Broker(data)
