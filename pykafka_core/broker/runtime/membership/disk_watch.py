"""Finds out whether this broker's disk is slow, by the waits of its clients and by probes.

`Resignation` decides what that means for replicas. The active controller hands over earlier: its
successor has to move this broker's leaderships within a session, and this node's metadata log is on
the same disk. Until a probe is quick, it leaves elections to other nodes first.

A client that waits for a quarter of the time that makes a leader resign starts a probe, and a probe
that takes as long shows that it is the disk, not one file.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.foundation import Foundation
from pykafka_core.broker.runtime.membership.resignation import Probe, Resignation
from pykafka_core.broker.runtime.timers import NS_PER_MS

CONTROLLER_PART: Final = 4
"""Part of the bound of stalls after which a controller hands over."""

_log = GuardedLogger(__name__)


class ControllerSeat(NamedTuple):
    """This node as the active controller.

    Attributes:
        is_taken: Whether it is.
        leave: Has another node elected, if there is one with a faster disk.
        recover: Ends the effect of ``leave`` on later elections.
    """

    is_taken: Callable[[], bool]
    leave: Callable[[], object]
    recover: Callable[[], object]


class DiskWatch:
    """One broker's disk. Belongs to the control thread.

    Args:
        foundation: Has the core, whose disk it is.
        stall_ms_max: How long a client may wait for the disk.
        resignation: Takes stalls and the results of probes.
        seat: Of the controller.
        changed: Called when the trust in the disk has changed.
    """

    def __init__(
        self,
        foundation: Foundation,
        *,
        stall_ms_max: int,
        resignation: Resignation,
        seat: ControllerSeat,
        changed: Callable[[], object],
    ) -> None:
        self._core = foundation.core
        self._completions = foundation.completions
        self._stall_ms_max = stall_ms_max
        self._resignation = resignation
        self._seat = seat
        self._changed = changed
        self._probed_ns: int | None = None
        """Begin of the running probe."""
        self._has_left = False
        """Whether another controller was to be elected, and no probe was quick since then."""

    def look(self) -> None:
        """Find stalls and probe."""
        now_ns = self._core.now_ns()
        self._resignation.note_stalls(now_ns, self._stalled(self._stall_ms_max))
        if self._probed_ns is not None:
            self._note_running((now_ns - self._probed_ns) // NS_PER_MS)
        elif self._resignation.wants_probe or self._has_left or self._is_controller_stalled:
            self.probe()

    def _stalled(self, wait_ms_min: int) -> frozenset[tuple[bytes, int]]:
        return frozenset(self._core.stalled(wait_ms_min * NS_PER_MS))

    @property
    def _is_controller_stalled(self) -> bool:
        return self._seat.is_taken() and bool(self._stalled(self._stall_ms_max // CONTROLLER_PART))

    # Probes.

    def probe(self) -> None:
        """Begin a probe, unless one is running."""
        if self._probed_ns is None:
            self._probed_ns = self._core.now_ns()
            token = self._completions.open(self._on_probed)
            self._core.probe_disk(token, needs_space=self._resignation.needs_space)

    def _note_running(self, taken_ms: int) -> None:
        self._note_duration(taken_ms)
        if taken_ms > self._stall_ms_max:
            self._note(Probe.FAILED, "a probe hangs")

    def _on_probed(self, completed: Completed) -> None:
        self._probed_ns = None
        if completed.error_code:
            self._note(Probe.FAILED, "a probe failed")
            return
        self._note_duration(completed.offset)
        reason = f"a probe took {completed.offset} ms"
        if completed.offset > self._stall_ms_max // 2:
            self._note(Probe.FAILED, reason)
        elif completed.offset > self._stall_ms_max // 8:
            self._note(Probe.MEDIOCRE, reason)
        else:
            self._recover()
            self._note(Probe.QUICK, reason)

    def _note_duration(self, taken_ms: int) -> None:
        if taken_ms > self._stall_ms_max // CONTROLLER_PART and self._seat.is_taken():
            self._seat.leave()
            if not self._seat.is_taken():
                self._has_left = True
                _log.error("a probe of the disk takes %d ms: another controller leads", taken_ms)

    def _recover(self) -> None:
        if self._has_left:
            self._has_left = False
            self._seat.recover()

    def _note(self, probe: Probe, reason: str) -> None:
        is_wanted = self._resignation.wants_probe  # not only by the controller
        if not is_wanted or not self._resignation.note_probe(self._core.now_ns(), probe):
            return
        if self._resignation.trusts_disk:
            _log.info("the disk works again (%s): this broker follows its leaders", reason)
        else:
            _log.error("the disk fails (%s): other replicas in sync are to lead", reason)
        self._changed()
