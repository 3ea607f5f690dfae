"""The system's limits of a process: open files and memory maps."""

import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .finding import Finding, ok, problem, warning

FILES_MIN = 256
"""Below this, a few clients and topics use up all files."""
FILES_ENOUGH = 4096
FILES_PER_SEGMENT = 1
"""A log that was written to or read keeps the file of its last segment open."""
MAPS_PER_SEGMENT = 3
"""The maximum: the records, the offset index and the time index."""
_MAP_COUNT = Path("/proc/sys/vm/max_map_count")


def check_limits(segments_count: int) -> Iterator[Finding]:
    """Yield whether the limits suffice for the present number of segments."""
    yield judge_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1], segments_count)
    with suppress(OSError, ValueError):
        yield judge_maps(int(_MAP_COUNT.read_text()), segments_count)


def judge_files(count_max: int, segments_count: int) -> Finding:
    """Check the hard limit; `serve` raises the soft limit to it."""
    if count_max == resource.RLIM_INFINITY:
        return ok("open files", "no limit")
    needed = FILES_ENOUGH + FILES_PER_SEGMENT * segments_count
    text = f"at most {count_max:,}"
    advice = f"raise it to {needed:,}: ulimit -Hn, LimitNOFILE= of systemd, or --ulimit nofile= of docker"
    if count_max < FILES_MIN:
        return problem("open files", text, advice)
    if count_max < needed:
        return warning(
            "open files", f"{text}; connections and segments may take {needed:,}", advice
        )
    return ok("open files", text)


def judge_maps(count_max: int, segments_count: int) -> Finding:
    """Check ``vm.max_map_count``."""
    needed = FILES_ENOUGH + MAPS_PER_SEGMENT * segments_count
    text = f"at most {count_max:,}"
    if count_max < needed:
        advice = f"raise it: sysctl -w vm.max_map_count={2 * needed}"
        return warning("mapped files", f"{text}; segments may take {needed:,}", advice)
    return ok("mapped files", text)


def segments_of(directory: Path) -> int:
    """Return the number of segments in a data directory; 0 if it cannot be read.

    A partition that a running broker deletes during the count has no segments.
    """
    count = 0
    with suppress(OSError):
        for partition in directory.iterdir():
            with suppress(OSError):
                count += sum(file.suffix == ".log" for file in partition.iterdir())
    return count
