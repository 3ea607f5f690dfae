"""Threads that hold the GIL in the broker's process do not cause a group rebalance.

`HOG_SECONDS` sets the duration (`make torture`: 600).
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.members import HEARTBEAT, Member, error_of, find_coordinator, join
from tests.support.patience import exactly

SECONDS = float(os.environ.get("HOG_SECONDS", "8"))
HOGS, MEMBERS = 4, 200
SESSION_TIMEOUT_MS = 6_000
INTERVAL_S = exactly(SESSION_TIMEOUT_MS / 3000, "a time between heartbeats bounds no wait")
"""A third of the session, as Kafka recommends to clients."""
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.load
def test_sessions_of_200_members_survive_threads_that_hog_the_gil() -> None:
    command = [sys.executable, "-m", "tests.faults.groups.hogged_broker", str(HOGS)]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as child,
        ExitStack() as open_ones,
    ):
        assert child.stdout is not None
        bootstrap = child.stdout.readline().strip()
        find_coordinator(bootstrap)
        members = [Member(bootstrap, "group", SESSION_TIMEOUT_MS) for _ in range(MEMBERS)]
        for member in members:
            open_ones.enter_context(member.connection)
        join(members)
        codes = beat(members, time.monotonic() + SECONDS)
    assert set(codes) == {0}, codes
    assert codes[0] >= MEMBERS


def beat(members: list[Member], end: float) -> Counter[int]:
    """Send heartbeats of all members until ``end``; return the number of each error code."""
    codes: Counter[int] = Counter()
    while time.monotonic() < end:
        begun = time.monotonic()
        for member in members:
            member.connection.send_frame(member.heartbeat())
        for member in members:
            codes[error_of(HEARTBEAT, member.connection.receive_body())] += 1
        threading.Event().wait(max(begun + INTERVAL_S - time.monotonic(), 0))
    return codes
