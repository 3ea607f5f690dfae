"""The processes of nodes on this machine: they restart when they end, and stop together."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from pykafka_core.cli.errors import CliError

STOP_S = 30
"""The time in which all nodes together stop before SIGKILL."""
RESTART_FIRST_S, RESTART_MAX_S = 1.0, 30.0
"""The delay doubles with each end of a node that has run for less than `STEADY_S`."""
STEADY_S = 60.0


class Signals:
    """Notices SIGTERM, Ctrl-C and the ends of children, from its creation on.

    Children do not inherit this, in contrast to a mask of blocked signals.
    """

    def __init__(self) -> None:
        self._came, wake_up = os.pipe()
        os.set_blocking(wake_up, False)
        signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)

    def wait_for_stop(self, timeout_s: float | None) -> bool:
        """Wait, and return whether SIGTERM or Ctrl-C came.

        The wait also ends when a child ends, and after the timeout.
        """
        if not select.select([self._came], [], [], timeout_s)[0]:
            return False
        return not {signal.SIGTERM, signal.SIGINT}.isdisjoint(os.read(self._came, 4096))


class Node:
    """One node: a process of ``pykafka-core serve``, or a pause before it starts again."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        arguments = (
            "--data",
            str(folder / str(number)),
            "--config",
            str(folder / f"{number}.properties"),
        )
        self._command = [sys.executable, "-m", "pykafka_core.cli", "serve", *arguments]
        self._delay_s = RESTART_FIRST_S
        self._starts_at: float | None = None
        """The time of its next start (monotonic, in seconds); None while it runs."""
        self._start()

    def _start(self) -> None:
        self._starts_at, self._started_at = None, time.monotonic()
        self.process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C signals the whole process group; the supervisor stops each node itself, once.
            start_new_session=True,
        )

    def wait_ready(self) -> bool:
        """Wait, and return whether it serves; False if it ended before that."""
        output = self.process.stdout
        assert output is not None, "it is a pipe"
        return output.readline().startswith("ready ")

    def look(self, now: float, report: Callable[[str], None]) -> float | None:
        """Notice the end of the process, or start it again if that is due.

        Returns:
            The time of its next start (monotonic, in seconds); None while it runs.
        """
        if self._starts_at is None and self.process.poll() is not None:
            if now - self._started_at >= STEADY_S:
                self._delay_s = RESTART_FIRST_S
            self._starts_at = now + self._delay_s
            report(
                f"node {self.number} ended ({self._end()}); it starts again in {self._delay_s:g} s"
            )
            self._delay_s = min(2 * self._delay_s, RESTART_MAX_S)
        elif self._starts_at is not None and self._starts_at <= now:
            self._start()
            threading.Thread(target=self._report_ready, args=(report,), daemon=True).start()
        return self._starts_at

    def _report_ready(self, report: Callable[[str], None]) -> None:
        if self.wait_ready():
            report(f"node {self.number} serves again")

    def _end(self) -> str:
        code = self.process.returncode
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


class Supervisor:
    """Runs the nodes of a folder while its block runs."""

    def __init__(self, numbers: Sequence[int], folder: Path) -> None:
        self._numbers, self._folder = numbers, folder
        self._nodes: list[Node] = []

    def __enter__(self) -> Self:
        """Start all nodes.

        Raises:
            CliError: A node ended before it served.
        """
        try:
            self._nodes += (Node(number, self._folder) for number in self._numbers)
            for node in self._nodes:
                if not node.wait_ready():
                    raise CliError(f"node {node.number} did not start; its output is above")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all nodes, with SIGTERM and after a time with SIGKILL."""
        self._stop()

    def run(self, signals: Signals, report: Callable[[str], None]) -> None:
        """Start nodes again when they end, until a signal comes."""
        wait_s: float | None = 0.0
        while not signals.wait_for_stop(wait_s):
            now = time.monotonic()
            starts = [at for node in self._nodes if (at := node.look(now, report)) is not None]
            wait_s = max(min(starts) - now, 0.0) if starts else None

    def _stop(self) -> None:
        for node in self._nodes:
            node.process.terminate()
        deadline = time.monotonic() + STOP_S
        for node in self._nodes:
            try:
                node.process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                node.process.kill()
                node.process.wait()
