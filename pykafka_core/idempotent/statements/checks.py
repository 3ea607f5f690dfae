"""What both databases ask of a statement and of the rows that it is for."""

import re
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pykafka_core.errors import ConfigurationError, UsageError

STAGED: Final = "staged"
"""The view that the statement reads. A view, because no statement can change it: one that tries to meant another."""

ROWS: Final = "pykafka_rows"
"""The temporary table that it shows."""

KEYWORDS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "SELECT", "WITH"})
"""How a statement begins that both databases know."""

_NOTED_MAX: Final = 1000

_WORD: Final = re.compile("[A-Za-z_]*")


@dataclass(frozen=True, kw_only=True)
class Language:
    """How a database reads the beginning of a statement.

    Attributes:
        keywords: Those with which it may begin.
        spaces: The characters that it passes by.
        line_end: What ends a comment that begins with two hyphens.
        bracket: What begins or ends a comment within one that begins with a slash and an asterisk.
    """

    keywords: Collection[str]
    spaces: str
    line_end: re.Pattern[str]
    bracket: re.Pattern[str]

    def first_word(self, sql: str) -> str:
        """What follows the comments and spaces; empty if that is no word."""
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
    """The statement, if it begins with one of the language's keywords.

    Raises:
        ConfigurationError: It does not: it is no text, empty, or another kind of statement, such as COMMIT.
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


def changes_staged() -> UsageError:
    """What to raise when the database says that the statement would change the view `STAGED`."""
    return UsageError(
        f"the statement would change {STAGED}, which only shows the rows that it is given: name the schema of a table "
        f"of yours that is called {STAGED}"
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
