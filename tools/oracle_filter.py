#!/usr/bin/env python3
"""Hold the output of an oracle run (this broker and Apache Kafka) to tests/oracle.toml.

  oracle OURS KAFKA $(tools/oracle_filter.py --cases) | tools/oracle_filter.py --release 4.4.0

`--release` is the release of Apache Kafka in this run: only the entries that name it apply. Prints
each difference that no entry explains and each entry that explains nothing in this run; the exit
status is 1 when there is a difference left. Lines of cases that are not ours yet are ignored.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path
from typing import TypedDict

EXPLAINED = Path(__file__).parent.parent / "tests" / "oracle.toml"
LINE = re.compile(
    r"(?P<case>[a-z0-9-]+): (?P<path>\d+ .*?|the case itself.*?): (?P<values>tested .*)"
)


class Entry(TypedDict, total=False):
    """An explained difference; `case`, `path` and `values` are regular expressions."""

    releases: list[str]
    case: str
    path: str
    values: str
    reason: str


def matches(entry: Entry, line: re.Match[str]) -> bool:
    """Whether the entry is about this difference."""
    patterns = {
        "case": entry.get("case", ""),
        "path": entry.get("path", ""),
        "values": entry.get("values", ""),
    }
    return all(re.search(pattern, line[part]) for part, pattern in patterns.items())


def main() -> int:
    """Filter standard input."""
    table = tomllib.loads(EXPLAINED.read_text())
    parser = argparse.ArgumentParser(description="Hold an oracle run to tests/oracle.toml.")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--cases", action="store_true", help="print the arguments of the oracle")
    asked.add_argument("--release", choices=table["releases"], help="of Apache Kafka in this run")
    options = parser.parse_args()
    if options.cases:
        print(" ".join(f"--case {case}" for case in table["cases"]))
        return 0
    entries = [entry for entry in table["explained"] if options.release in entry["releases"]]
    lines = [line for text in sys.stdin if (line := LINE.fullmatch(text.rstrip("\n")))]
    ours = [line for line in lines if line["case"] in table["cases"]]
    left = [line[0] for line in ours if not any(matches(e, line) for e in entries)]
    stale = [e for e in entries if not any(matches(e, line) for line in ours)]
    print("\n".join(left + [f"explains nothing: {e['case']} {e.get('path', '')}" for e in stale]))
    print(f"{len(ours)} differences, {len(ours) - len(left)} explained, {len(left)} left")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
