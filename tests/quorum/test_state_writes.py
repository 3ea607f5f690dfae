"""Writes of quorum-state: in order, on a separate thread, and a failure ends the node."""

import threading
from typing import cast

import pytest

from pykafka_core._core import Core
from pykafka_core.broker.runtime.quorum.state_writes import StateWrites
from pykafka_core.errors import StorageError
from pykafka_core.quorum.values import ElectionState
from tests.support.patience import PATIENCE_S


class Wakes:
    """A core that is woken."""

    def __init__(self) -> None:
        self._wakes = threading.Semaphore(0)

    def wake(self) -> None:
        self._wakes.release()

    def wait(self) -> None:
        assert self._wakes.acquire(timeout=PATIENCE_S)


class HangingDisk:
    """Each write waits until it is let through."""

    def __init__(self) -> None:
        self.wakes = Wakes()
        self.goes_on = threading.Semaphore(0)
        self.written: list[int] = []
        self.threads: list[threading.Thread] = []
        self.persisted_count = 0
        self.writes = StateWrites(cast("Core", self.wakes), self._write, self._persisted)

    def add(self, epoch: int) -> None:
        self.writes.add(ElectionState(epoch), ())
        self.writes.begin()

    def let_through(self) -> None:
        self.goes_on.release()
        self.wakes.wait()
        self.writes.advance()
        self.writes.advance()

    def _write(self, state: ElectionState, _static_voters: tuple[int, ...]) -> None:
        assert self.goes_on.acquire(timeout=PATIENCE_S)
        if state.epoch < 0:
            raise StorageError("the disk fails")
        self.written.append(state.epoch)
        self.threads.append(threading.current_thread())

    def _persisted(self) -> None:
        self.persisted_count += 1


def test_a_write_that_hangs_holds_up_no_caller() -> None:
    disk = HangingDisk()
    disk.add(1)
    disk.writes.advance()
    assert disk.persisted_count == 0
    disk.let_through()
    assert (disk.written, disk.persisted_count) == ([1], 1)


def test_of_the_states_that_wait_the_last_one_is_written() -> None:
    disk = HangingDisk()
    for epoch in (1, 2, 3, 4):
        disk.add(epoch)
    disk.let_through()
    assert (disk.written, disk.persisted_count) == ([1], 1)
    disk.let_through()
    assert (disk.written, disk.persisted_count) == ([1, 4], 4)
    disk.add(5)
    disk.let_through()
    assert (disk.written, disk.persisted_count) == ([1, 4, 5], 5)


def test_states_of_one_turn_are_written_together() -> None:
    disk = HangingDisk()
    disk.writes.add(ElectionState(1), ())
    disk.writes.add(ElectionState(2), ())
    disk.writes.begin()
    disk.let_through()
    assert (disk.written, disk.persisted_count) == ([2], 2)


def test_finish_ignores_a_thread_that_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    disk = HangingDisk()
    with pytest.raises(RuntimeError, match="start"):
        disk.add(1)
    disk.writes.finish()


def test_one_thread_makes_all_writes_until_the_finish() -> None:
    """The control thread waited for the start of a thread in each step of an election."""
    disk = HangingDisk()
    for epoch in (1, 2, 3):
        disk.add(epoch)
        disk.let_through()
    assert disk.written == [1, 2, 3]
    (thread,) = set(disk.threads)
    disk.writes.finish()
    assert not thread.is_alive()


def test_a_write_that_fails_raises_on_the_control_thread() -> None:
    disk = HangingDisk()
    disk.add(-1)
    with pytest.raises(StorageError, match="the disk fails"):
        disk.let_through()
    assert disk.persisted_count == 0
