"""Each page with Spark examples runs from top to bottom, and prints the output that it shows.

A guide runs after the tutorial, whose names and topics it uses.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.brokers import Serve
from tests.support.examples import (
    PAGES,
    SPARK_GUIDES,
    SPARK_TUTORIAL,
    closing_databases,
    shown_outputs,
    spark_examples,
)

FIRST = [page for page in PAGES if spark_examples(page) and page not in SPARK_GUIDES]


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in FIRST])
def test_the_page_and_its_guides_run_from_top_to_bottom(
    serve: Serve,
    page: Path,
    spark: SparkSession,
    postgres_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with serve() as broker, closing_databases():

        def run(page: Path, names: dict[str, object]) -> dict[str, object]:
            scope, shown = dict(names), shown_outputs(page)
            for code in spark_examples(page):
                here = code.replace("localhost:9092", broker.bootstrap_servers)
                here = here.replace("dbname=shop", postgres_dsn)
                capsys.readouterr()
                exec(compile(here, page.name, "exec"), scope)
                if code in shown:
                    assert capsys.readouterr().out == shown[code]
            assert scope["spark"] is spark
            return scope

        names = run(page, {})
        for guide in SPARK_GUIDES if page == SPARK_TUTORIAL else []:
            run(guide, names)
