"""Servers of other programs, which say in their log when they are ready."""

import re
import subprocess
import threading

START_SECONDS_MAX = 200


def wait_for_line(process: "subprocess.Popen[str]", pattern: str) -> re.Match[str]:
    """The first match in the process's errors, which are read now and for ever: a full pipe would stop it."""
    found: list[re.Match[str]] = []
    done, lines = threading.Event(), []

    def read() -> None:
        assert process.stderr is not None
        with process.stderr as log:
            for line in log:
                if done.is_set():
                    continue
                lines.append(line)
                if match := re.search(pattern, line):
                    found.append(match)
                    done.set()
        done.set()

    threading.Thread(target=read, daemon=True).start()
    in_time = done.wait(START_SECONDS_MAX)
    assert in_time, "".join(lines)
    assert found, "".join(lines)
    return found[0]
