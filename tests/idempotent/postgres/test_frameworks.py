"""Effects with SQLAlchemy and Django: the guide's examples, and the advice in errors."""

import re
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
import sqlalchemy

from pykafka_core.idempotent import PostgresLedger
from tests.support.examples import PAGES, postgres_examples

pytestmark = pytest.mark.postgres

EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(postgres_examples(page))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code: str, request: pytest.FixtureRequest) -> None:
    scope: dict[str, Any] = {}
    exec(compile(code, "example", "exec"), scope)
    tests = [value for name, value in scope.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(*map(request.getfixturevalue, signature(test).parameters))


def commit_of_sqlalchemy(connection: Any) -> None:
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: connection)
    with engine.begin() as of_engine:
        of_engine.execute(sqlalchemy.text("SELECT 1"))


def commit_of_psycopg(connection: Any) -> None:
    connection.commit()


def rollback_of_psycopg(connection: Any) -> None:
    connection.rollback()


def autocommit_of_psycopg(connection: Any) -> None:
    connection.autocommit = False


@pytest.mark.parametrize(
    "effect", [commit_of_sqlalchemy, commit_of_psycopg, rollback_of_psycopg, autocommit_of_psycopg]
)
def test_effect_that_would_end_the_transaction_is_rejected_with_advice(
    postgres_dsn: str, effect: Callable[[Any], None]
) -> None:
    with pytest.raises(Exception, match=r"forbidden|autocommit") as caught:
        with PostgresLedger(postgres_dsn) as ledger, ledger.transaction("g") as transaction:
            effect(transaction.connection)
    (note,) = caught.value.__notes__
    named = re.findall(r"docs/guides/[\w/]+\.md", note)
    assert len(named) == 2
    assert {*named} <= {str(one.relative_to(PAGES[0].parent)) for one in PAGES}
