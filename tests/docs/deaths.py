"""Run an example again and again, dying later each time: `-m tests.docs.deaths PROGRAM STEP COUNT ADDRESS DIRECTORY`.

Each run is a fork of this process, which holds no client, and kills itself when it comes to its line. Counted
are the lines of the program and of ``pykafka_core.idempotent``. The last run is left alone.
"""

import importlib.util
import os
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

from confluent_kafka import Consumer  # noqa: F401  (loaded once, before the forks)

import pykafka_core.idempotent

# A run that is to die has records to come; only the last one waits for its end.
IDLE_SECONDS, IDLE_SECONDS_LAST = 60.0, 4.0
LIBRARY = str(Path(pykafka_core.idempotent.__file__).parent)


class Death:
    """SIGKILL at the n-th line, from 0."""

    def __init__(self, program: str, line: int) -> None:
        self._program, self._left = program, line

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name != self._program and not name.startswith(LIBRARY):
            return None
        if event == "line":
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.trace


def run(program: str, death: Death | None, address: str, directory: Path) -> int:
    """In a child; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            spec = importlib.util.spec_from_file_location("example", program)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            if death is not None:
                sys.settrace(death.trace)
            module.main(address, directory, IDLE_SECONDS_LAST if death is None else IDLE_SECONDS)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def main(program: str, step: str, count: str, address: str, directory: str) -> None:
    warnings.simplefilter("error")
    for number in range(int(count)):
        status = run(program, Death(program, number * int(step)), address, Path(directory))
        assert status == signal.SIGKILL, f"run {number} was not killed: {status}"
    assert run(program, None, address, Path(directory)) == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
