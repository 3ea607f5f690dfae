"""List the slowest tests of recorded runs; fail if one without a marker of cost is too slow.

    python -m tools.durations [--limit SECONDS] [--again] [--top COUNT] [--json]

The limit is 2 s on a quiet machine. On a busy machine every test is slower, so the limit grows
with the mean of the faster unmarked tests, from `QUIET_MEAN_S` on. A busy machine also stops single
tests for seconds, so ``make test-all`` uses 10 s and runs slower tests again, alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

FILE = Path("target/durations.json")
DELETE = "delete it and run `make test` again"
LIMIT_S = 2.0
QUIET_MEAN_S = 0.03
"""The mean time of the unmarked tests on two quiet cores, rounded up."""
TESTS_MIN = 1000
"""The mean of fewer tests says nothing about the machine."""


@dataclass(frozen=True, slots=True)
class Duration:
    """One test: the seconds of its setup and body, and its markers of cost."""

    test: str
    seconds: float
    costs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.seconds:8.2f} s  {self.test}" + (
            f"  ({', '.join(self.costs)})" if self.costs else ""
        )


class EmptyRecordError(Exception):
    """A record without any test."""


def read(file: Path) -> list[Duration]:
    """Return the recorded tests, slowest first.

    Raises:
        FileNotFoundError: No run has been recorded.
        ValueError: The file is damaged.
        EmptyRecordError: The file has no test.
    """
    rows = json.loads(file.read_text())
    if rows == {}:
        raise EmptyRecordError
    found = [Duration(name, row["seconds"], tuple(row["costs"])) for name, row in rows.items()]
    return sorted(found, key=lambda one: (-one.seconds, one.test))


def too_slow(durations: list[Duration], limit_s: float) -> list[Duration]:
    """Return the tests without a marker that took longer than `limit_s`."""
    return [one for one in durations if not one.costs and one.seconds > limit_s]


def stretched(limit_s: float, durations: list[Duration]) -> float:
    """Return the limit times the factor by which the machine was slower than a quiet one."""
    faster = [one.seconds for one in durations if not one.costs and one.seconds <= limit_s]
    mean_s = sum(faster) / len(faster) if len(faster) >= TESTS_MIN else 0.0
    return limit_s * max(1.0, mean_s / QUIET_MEAN_S)


def run_again(slow: list[Duration]) -> int:
    """Run tests one after another, and return the status of pytest, which records durations."""
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", *(one.test for one in slow)]
    return subprocess.run(command, check=False).returncode


def main(arguments: list[str]) -> int:
    """Print the tests; return 1 if one is too slow, 2 without a record, or that of a second run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="SECONDS")
    parser.add_argument(
        "--top", type=int, default=30, metavar="COUNT", help="unmarked tests to list"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the tests that are too slow as JSON"
    )
    parser.add_argument(
        "--again", action="store_true", help="run tests that are too slow once more, alone"
    )
    options = parser.parse_args(arguments)
    failed = 0
    try:
        durations = read(FILE)
        limit_s = stretched(options.limit, durations)
        if options.again and (slow := too_slow(durations, limit_s)):
            failed = run_again(slow)
            if failed == pytest.ExitCode.USAGE_ERROR:
                print(f"{FILE} has tests that do not exist: {DELETE}", file=sys.stderr)
                return 2
            durations = read(FILE)
    except FileNotFoundError:
        print(f"{FILE} is missing: run `make test` first", file=sys.stderr)
        return 2
    except EmptyRecordError:
        print(f"{FILE} has no test: run `make test` again", file=sys.stderr)
        return 2
    except (ValueError, KeyError, TypeError, AttributeError):
        print(f"{FILE} is damaged: {DELETE}", file=sys.stderr)
        return 2
    slow = too_slow(durations, limit_s)
    if options.json:
        print(json.dumps([asdict(one) for one in slow]))
    else:
        _print(durations, slow, limit_s, options.top)
    return failed or bool(slow)


def _print(durations: list[Duration], slow: list[Duration], limit_s: float, top: int) -> None:
    unmarked = [one for one in durations if not one.costs]
    total = sum(one.seconds for one in unmarked)
    print(f"{len(unmarked)} tests without a marker of cost took {total:.0f} s; the slowest:")
    print(*unmarked[:top], sep="\n")
    if slow:
        print(
            f"\n{len(slow)} of them took more than {limit_s:.3g} s. Make each faster, or mark what it costs"
        )
        print("(the markers are described in pyproject.toml; `make test-all` runs marked tests):")
        print(*slow, sep="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
