"""Names of topics and groups that tests make."""

import re

_STEM_SIZE_MAX = 200
"""Of 249 that Kafka allows a topic; the rest is for what follows."""


def name_of(test: str, number: int, kind: str = "") -> str:
    """Return a name that begins with the test's, with a number that makes it the only one."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", test)[:_STEM_SIZE_MAX]
    return "-".join(filter(None, (stem, kind, str(number))))
