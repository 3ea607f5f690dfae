"""Names of the topics and groups of tests."""

import re

_STEM_SIZE_MAX = 200
"""Maximum length of the part from the test's name. Kafka allows 249 characters for a topic."""


def name_of(test: str, number: int, kind: str = "") -> str:
    """Return a name that starts with the test's name and is unique because of its number."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", test)[:_STEM_SIZE_MAX]
    return "-".join(filter(None, (stem, kind, str(number))))
