#!/usr/bin/env python3
"""Hold the output of an oracle run (this broker beside Apache Kafka) to tests/oracle.toml.

  oracle OURS KAFKA $(tools/oracle_filter.py --cases) | tools/oracle_filter.py

Prints each difference that no entry explains and each entry that explains nothing in this run; the
exit status is 1 when there is a difference left. Lines of cases that are not ours yet are ignored.
"""

import re
import sys
import tomllib
from pathlib import Path

EXPLAINED = Path(__file__).parent.parent / "tests" / "oracle.toml"
LINE = re.compile(
    r"(?P<case>[a-z0-9-]+): (?P<path>\d+ .*?|the case itself.*?): (?P<values>tested .*)"
)


def matches(entry: dict[str, str], line: re.Match[str]) -> bool:
    """Whether the entry is about this difference; its patterns are regular expressions."""
    return all(re.search(entry.get(key, ""), line[key]) for key in ("case", "path", "values"))


def main() -> int:
    """Filter standard input."""
    table = tomllib.loads(EXPLAINED.read_text())
    if "--cases" in sys.argv[1:]:
        print(" ".join(f"--case {case}" for case in table["cases"]))
        return 0
    lines = [line for text in sys.stdin if (line := LINE.fullmatch(text.rstrip("\n")))]
    ours = [line for line in lines if line["case"] in table["cases"]]
    left = [line[0] for line in ours if not any(matches(e, line) for e in table["explained"])]
    stale = [e for e in table["explained"] if not any(matches(e, line) for line in ours)]
    print("\n".join(left + [f"explains nothing: {e['case']} {e.get('path', '')}" for e in stale]))
    print(f"{len(ours)} differences, {len(ours) - len(left)} explained, {len(left)} left")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
