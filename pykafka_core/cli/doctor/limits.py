"""What the system lets a process have: open files and mapped ones."""

import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .finding import Finding, ok, problem, warning

FILES_MIN = 256
"""Below this, a few clients and topics use up all of them."""
FILES_ENOUGH = 4096
FILES_PER_SEGMENT = 1
"""A log that was written to or read keeps the file open that it appends to."""
MAPS_PER_SEGMENT = 3
"""At most: the records, the offset index, the time index."""
_MAP_COUNT = Path("/proc/sys/vm/max_map_count")


def check_limits(segments_count: int) -> Iterator[Finding]:
    """Yield whether the limits will do for as many segments as a data directory has now."""
    yield judge_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1], segments_count)
    with suppress(OSError, ValueError):
        yield judge_maps(int(_MAP_COUNT.read_text()), segments_count)


def judge_files(count_max: int, segments_count: int) -> Finding:
    """Judge the hard limit: `serve` raises the soft one to it."""
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
    """Judge ``vm.max_map_count``."""
    needed = FILES_ENOUGH + MAPS_PER_SEGMENT * segments_count
    text = f"at most {count_max:,}"
    if count_max < needed:
        advice = f"raise it: sysctl -w vm.max_map_count={2 * needed}"
        return warning("mapped files", f"{text}; segments may take {needed:,}", advice)
    return ok("mapped files", text)


def segments_of(directory: Path) -> int:
    """Return how many segments the partitions of a data directory have; 0 if it cannot be read."""
    with suppress(OSError):
        return sum(1 for _ in directory.glob("*/*.log"))
    return 0
