"""Checks of a statement and its rows that are common to both databases."""

import re
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pykafka_core.errors import ConfigurationError, UsageError

STAGED: Final = "staged"
"""The view that the statement reads. It is a view because no statement can change one."""

ROWS: Final = "pykafka_rows"
"""The temporary table that the view selects from."""

KEYWORDS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "SELECT", "WITH"})
"""First words of statements that both databases support."""

_NOTED_MAX: Final = 1000

_WORD: Final = re.compile("[A-Za-z_]*")


@dataclass(frozen=True, kw_only=True)
class Language:
    """A database's lexical rules for the start of a statement.

    Attributes:
        keywords: Allowed first words.
        spaces: Characters that are skipped.
        line_end: End of a comment that starts with two hyphens.
        bracket: Delimiters inside a comment that starts with a slash and an asterisk.
    """

    keywords: Collection[str]
    spaces: str
    line_end: re.Pattern[str]
    bracket: re.Pattern[str]

    def first_word(self, sql: str) -> str:
        """Return the first word after comments and spaces; empty if there is none."""
        at = 0
        while at < len(sql):
            if sql.startswith("--", at):
                found = self.line_end.search(sql, at)
                at = found.end() if found else len(sql)
            elif sql.startswith("/*", at):
                at = self._comment_end(sql, at + 2)
            elif sql[at] in self.spaces:
                at += 1
            else:
                break
        word = _WORD.match(sql, at)
        return word[0] if word else ""

    def _comment_end(self, sql: str, start: int) -> int:
        depth = 1
        for found in self.bracket.finditer(sql, start):
            depth += 1 if found[0] == "/*" else -1
            if depth == 0:
                return found.end()
        return len(sql)


def checked_sql(sql: str, language: Language) -> str:
    """Return the statement if it starts with one of the language's keywords.

    Raises:
        ConfigurationError: It is not text, empty, or another kind of statement, such as COMMIT.
    """
    if not isinstance(sql, str) or "\0" in sql:
        raise ConfigurationError([f"a statement is text without NUL, not {sql!r}"])
    if language.first_word(sql).upper() not in language.keywords:
        raise ConfigurationError(
            [
                f"a statement begins with one of {', '.join(sorted(language.keywords))}, not {sql[:80]!r}: it changes "
                "rows, and the ledger commits"
            ]
        )
    return sql


def checked_columns(table: Any, folded: Callable[[str], str]) -> list[str]:
    """Return the names of the table's columns.

    Args:
        table: A ``pyarrow.Table``.
        folded: Maps names that the database considers equal to the same text.

    Raises:
        UsageError: It is not a table, has no columns, a column without a name, or two with the same
            name.
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


def changes_staged() -> UsageError:
    """Return the error for a statement that would change the view `STAGED`."""
    return UsageError(
        f"the statement would change {STAGED}, which only shows the rows that it is given: name the schema of a table "
        f"of yours that is called {STAGED}"
    )


def quoted(name: str) -> str:
    """Return the name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def noting(sql: str) -> Generator[None]:
    """Add the statement to each error as a note."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The effect is one statement: {sql[:_NOTED_MAX]}")
        raise
