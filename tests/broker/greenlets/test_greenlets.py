"""Brokers work in programs that gevent or eventlet patched, before or after the import.

Before, `Broker()` never returned there, without a message: its control thread was a greenlet, which
waited in the core and so blocked the only thread.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pykafka_core.broker import native
from tests.support.patience import PATIENCE_S

CHILD = Path(__file__).with_name("patched_child.py")


def run(library: str, order: str, what: str, data: Path) -> None:
    command = [sys.executable, str(CHILD), library, order, what, str(data)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("what", ["broker", "log"])
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_patched_programs_use_brokers_and_logs(
    tmp_path: Path, library: str, order: str, what: str
) -> None:
    run(library, order, what, tmp_path)


@pytest.mark.cluster
@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_patched_programs_use_clusters(tmp_path: Path, library: str, order: str) -> None:
    run(library, order, "cluster", tmp_path)


def test_programs_without_a_patch_get_the_threads_of_the_standard_library() -> None:
    assert (native.Thread, native.Lock) == (threading.Thread, threading.Lock)
    assert native.get_ident() == threading.get_ident()
