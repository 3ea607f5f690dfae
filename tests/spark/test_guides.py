"""Each page with Spark examples runs from top to bottom, and prints the output that it shows."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.brokers import Serve
from tests.support.examples import PAGES, closing_databases, shown_outputs, spark_examples

GUIDES = [page for page in PAGES if spark_examples(page)]


@pytest.mark.parametrize("guide", [pytest.param(guide, id=guide.stem) for guide in GUIDES])
def test_the_guide_runs_from_top_to_bottom(
    serve: Serve,
    guide: Path,
    spark: SparkSession,
    postgres_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    shown = shown_outputs(guide)
    with serve() as broker, closing_databases():
        for code in spark_examples(guide):
            here = code.replace("localhost:9092", broker.bootstrap_servers)
            here = here.replace("dbname=shop", postgres_dsn)
            capsys.readouterr()
            exec(compile(here, guide.name, "exec"), scope)
            if code in shown:
                assert capsys.readouterr().out == shown[code]
    assert scope["spark"] is spark
