"""The Python examples of the pages: those of Spark share the session of the test run, others need
PostgreSQL, or only a broker.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SPARK_TUTORIAL = ROOT / "docs" / "tutorials" / "spark-exactly-once.md"
SPARK_GUIDES = sorted((ROOT / "docs" / "guides" / "spark").glob("*.md"))
"""The examples of each use the names and topics of the tutorial, and nothing of another guide."""
_FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(
    r"^```python\n((?:(?!^```).)*)^```\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE
)
_PORT = re.compile(r"(127\.0\.0\.1):\d+")


def examples(page: Path) -> list[str]:
    """Return the examples that need neither Spark nor PostgreSQL; each runs alone."""
    return [code for code in _all(page) if not _of_spark(code) and not _of_postgres(code)]


def spark_examples(page: Path) -> list[str]:
    """Return the examples of Spark, in the order of the page: they depend on each other."""
    return [code for code in _all(page) if _of_spark(code)]


def postgres_examples(page: Path) -> list[str]:
    """Return the examples that are tests with a PostgreSQL server; each runs alone."""
    return [code for code in _all(page) if _of_postgres(code)]


def shown_outputs(page: Path) -> dict[str, str]:
    """Return what the page shows below its examples, by their code."""
    return {match.group(1): match.group(2) for match in _OUTPUT.finditer(page.read_text())}


def without_ports(output: str) -> str:
    """Replace the ports of local addresses, which differ in each run."""
    return _PORT.sub(r"\1:PORT", output)


@contextmanager
def closing_databases() -> Iterator[None]:
    """Fail if the block leaves a connection to SQLite open: Python 3.13 warns of it."""
    connect = sqlite3.connect
    opened: list[sqlite3.Connection] = []

    def noting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    with patch.object(sqlite3, "connect", noting):
        yield
    assert not [connection for connection in opened if _is_open(connection)]


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


def _all(page: Path) -> list[str]:
    return [match.group(1) for match in _FENCE.finditer(page.read_text())]


def _of_spark(code: str) -> bool:
    return "spark" in code


def _of_postgres(code: str) -> bool:
    return "(postgres_dsn)" in code
