"""Ctrl-C ends a program that embeds a broker like any other program, and its directory needs no
recovery.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.log import Log
from tests.broker.interrupted_child import ENOUGH
from tests.support.patience import PATIENCE_S

CHILD = "tests.broker.interrupted_child"


@pytest.mark.parametrize("end", ["with", "exit"])
@pytest.mark.parametrize("way", ["produce and wait", "produce ahead", "create topics"])
def test_ctrl_c_is_a_keyboard_interrupt_and_a_clean_stop(
    tmp_path: Path, way: str, end: str
) -> None:
    interrupt(way, end, tmp_path)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    if way == "create topics":
        with Broker(tmp_path) as broker:
            assert len(broker.topics()) >= ENOUGH
    else:
        assert sum(map(count_without_recovery, tmp_path.glob("orders-*"))) >= ENOUGH


def interrupt(way: str, end: str, data: Path) -> None:
    """Run the child until it is busy, and end it with Ctrl-C."""
    command = [sys.executable, "-m", CHILD, way, end, str(data)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "busy\n"
            program.send_signal(signal.SIGINT)
            # It ends at once; the timeout is for slow machines.
            _, errors = program.communicate(timeout=PATIENCE_S)
        finally:
            program.kill()
    assert program.returncode == -signal.SIGINT, errors
    assert errors.count("Traceback") == 1, errors
    assert errors.endswith("KeyboardInterrupt\n"), errors


def count_without_recovery(partition: Path) -> int:
    with Log.open(partition) as log:
        assert (log.damaged_at, log.truncated_bytes) == (None, 0)
        return len(list(log))
