"""What both databases ask of a statement and of the rows that it is for."""

import re
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any, Final

from pykafka_core.errors import ConfigurationError, UsageError

STAGED: Final = "staged"

KEYWORDS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "SELECT", "WITH"})
"""How a statement begins that both databases know."""

_NOTED_MAX: Final = 1000

# Comments and spaces, then a word. A comment within a comment ends differently in the two databases: it does not match.
_FIRST_WORD: Final = re.compile(
    r"(?:[ \t\r\n\f\v]+|--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/)*([A-Za-z_]+)", re.DOTALL
)


def checked_sql(sql: str, keywords: Collection[str]) -> str:
    """The statement, if it begins with one of these words.

    Raises:
        ConfigurationError: It does not: it is no text, empty, or another kind of statement, such as COMMIT.
    """
    if not isinstance(sql, str) or "\0" in sql:
        raise ConfigurationError([f"a statement is text without NUL, not {sql!r}"])
    found = _FIRST_WORD.match(sql)
    if found is None or found[1].upper() not in keywords:
        raise ConfigurationError(
            [
                f"a statement begins with one of {', '.join(sorted(keywords))}, not {sql[:80]!r}: it changes rows, and "
                "the ledger commits"
            ]
        )
    return sql


def checked_columns(table: Any, folded: Callable[[str], str]) -> list[str]:
    """The names of the table's columns.

    Args:
        table: A ``pyarrow.Table``.
        folded: Gives names that the database takes for one the same text.

    Raises:
        UsageError: It is no table, or has no columns, one without a name, or two of one name.
    """
    import pyarrow as pa

    if not isinstance(table, pa.Table):
        raise UsageError(f"a statement's rows are a pyarrow.Table, not {type(table).__name__}")
    names: list[str] = table.column_names
    if not names:
        raise UsageError("a statement's rows have no columns")
    unusable = [name for name in names if not name or "\0" in name]
    if unusable:
        raise UsageError(f"a column cannot be called {unusable[0]!r}: rename it")
    seen = [folded(name) for name in names]
    repeated = [name for name, key in zip(names, seen, strict=True) if seen.count(key) > 1]
    if repeated:
        raise UsageError(f"two columns are called {' and '.join(map(repr, repeated))}: rename one")
    return names


def check_untouched(count: int, found: int) -> None:
    """Do nothing if the staged rows are as many as they were.

    Raises:
        UsageError: They are not. What a statement writes there is dropped, so another table was meant.
    """
    if found != count:
        raise UsageError(
            f"the statement changed the temporary table {STAGED}, which had {count} rows and has {found}, and is "
            f"dropped: name the schema of a table of yours that is called {STAGED}"
        )


def quoted(name: str) -> str:
    """As an identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def noting(sql: str) -> Generator[None]:
    """Say with each error which statement it is of."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The effect is one statement: {sql[:_NOTED_MAX]}")
        raise
