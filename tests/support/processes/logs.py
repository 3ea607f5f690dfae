"""Servers of other programs, which log when they are ready."""

import re
import subprocess
import threading

from tests.support.evidence.logs import watch_lines
from tests.support.patience import PATIENCE_S


def wait_for_line(process: "subprocess.Popen[str]", pattern: str, name: str) -> re.Match[str]:
    """Return the first match in the process's stderr. A thread reads it to its end, because a full
    pipe would block the process.

    Args:
        name: The title of its last lines in the report of a failed test.

    Raises:
        AssertionError: The process ended, or `PATIENCE_S` passed, before a line matched.
    """
    found: list[re.Match[str]] = []
    done, lines = threading.Event(), watch_lines(name)

    def read() -> None:
        assert process.stderr is not None
        with process.stderr as log:
            for line in log:
                lines.append(line)
                if not done.is_set() and (match := re.search(pattern, line)):
                    found.append(match)
                    done.set()
        done.set()

    threading.Thread(target=read, daemon=True).start()
    in_time = done.wait(PATIENCE_S)
    assert in_time, f"{name}: no {pattern!r} within {PATIENCE_S} s: {lines.tail()}"
    assert found, f"{name} ended without {pattern!r}: {lines.tail()}"
    return found[0]
