"""Run a share of the selected tests: ``pytest --share 2/3``.

The shares of one divisor are disjoint, and together they are all tests. A test's share depends on
its name alone, so a failure repeats with the same option.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zlib import crc32

import pytest


@dataclass(frozen=True, slots=True)
class Share:
    """The `number`-th of `count` shares, from 1 on."""

    number: int
    count: int

    def has(self, test: str) -> bool:
        """Report whether the test of this name belongs to the share."""
        return crc32(test.encode()) % self.count == self.number - 1


def parse(text: str) -> Share:
    """Parse ``2/3``.

    Raises:
        pytest.UsageError: The text has another form, or names a share that does not exist.
    """
    found = re.fullmatch(r"([1-9][0-9]*)/([1-9][0-9]*)", text, re.ASCII)
    if found is None or int(found[1]) > int(found[2]):
        raise pytest.UsageError(
            f"--share takes NUMBER/COUNT with 1 <= NUMBER <= COUNT, such as 2/3, not {text!r}"
        )
    return Share(int(found[1]), int(found[2]))


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run only the NUMBER-th of COUNT shares of the selected tests; default: all"
    parser.addoption("--share", default="1/1", metavar="NUMBER/COUNT", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Reject an invalid option before any test is collected."""
    parse(config.getoption("--share"))


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other shares."""
    share = parse(config.getoption("--share"))
    if others := [item for item in items if not share.has(item.nodeid)]:
        items[:] = [item for item in items if share.has(item.nodeid)]
        config.hook.pytest_deselected(items=others)
