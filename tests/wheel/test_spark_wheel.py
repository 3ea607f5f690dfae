"""The pages about Spark run as users run them, with the wheel in an empty environment."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.examples import ROOT, SPARK_GUIDES, SPARK_TUTORIAL, spark_examples
from tests.support.spark.drivers import clean_environment
from tests.support.spark.standalone import standalone
from tests.support.wheel import make_environment, run, serving

README = [ROOT / "README.md"]
GUIDES = [SPARK_TUTORIAL, *SPARK_GUIDES]
"""The tutorial and the guides, which use its names: one program."""
SUBMIT = ROOT / "docs" / "guides" / "spark" / "spark-submit.md"
WHERE_FROM = "import spark_udfs; print(spark_udfs.__file__)"
SUBMITS = re.findall(r"`(spark-submit --(?:jars|packages) [^`]+)`", SUBMIT.read_text())
"""The commands that load the connector; a master and a program are appended to them."""


NOTEBOOK = ("nbclient", "ipykernel")
"""The packages that `jupyter execute` needs, without the pages that JupyterLab adds."""


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder with the commands of an environment with the wheel and the extras of the guides."""
    folder = tmp_path_factory.mktemp("environment")
    yield make_environment(folder, f"{wheel}[spark,postgres,delta]", *NOTEBOOK)
    shutil.rmtree(folder)  # pytest would keep this folder of 1 GB


def cells(pages: list[Path], address: str, dsn: str, *, snippets: int | None = None) -> list[str]:
    """Return the first Spark examples of pages, and one that prints the path of `spark_udfs`."""
    examples = [code for page in pages for code in spark_examples(page)]
    return [
        code.replace("localhost:9092", address).replace("dbname=shop", dsn)
        for code in [*examples[:snippets], WHERE_FROM]
    ]


def program(pages: list[Path], address: str, dsn: str, *, snippets: int | None = None) -> str:
    return "\n".join(cells(pages, address, dsn, snippets=snippets))


@pytest.mark.jvm
@pytest.mark.parametrize("pages", [README, GUIDES], ids=["README", "guides"])
def test_the_pages_run_from_top_to_bottom(
    pages: list[Path], scripts: Path, postgres_dsn: str, tmp_path: Path
) -> None:
    with serving(scripts, tmp_path) as address:
        folder = tmp_path / "empty"
        folder.mkdir()
        (folder / "program.py").write_text(program(pages, address, postgres_dsn))
        printed = run(str(scripts / "python"), "program.py", folder=folder)
    assert str(scripts.parent) in printed


def test_guide_explains_how_to_submit_with_the_connector() -> None:
    assert [line.split()[1] for line in SUBMITS] == ["--packages", "--jars"]


@pytest.mark.jvm
@pytest.mark.parametrize("submit", SUBMITS)
def test_the_guide_is_submitted(submit: str, scripts: Path, tmp_path: Path) -> None:
    with serving(scripts, tmp_path) as address:
        (tmp_path / "program.py").write_text(program(GUIDES, address, "", snippets=3))
        # The files that --packages downloads are stored in the folder, too.
        options = f"--master 'local[2]' --conf spark.jars.ivy={tmp_path}/ivy"
        line = f"{submit} {options} program.py"
        printed = run("bash", "-euc", line, folder=tmp_path, scripts=scripts)
    assert str(scripts.parent) in printed


@pytest.mark.jvm
def test_the_guide_runs_in_a_notebook(scripts: Path, postgres_dsn: str, tmp_path: Path) -> None:
    with serving(scripts, tmp_path) as address:
        notebook = tmp_path / "guide.ipynb"
        notebook.write_text(json.dumps(notebook_of(cells(GUIDES, address, postgres_dsn))))
        command = str(scripts / "jupyter"), "execute", "--inplace", notebook.name
        run(*command, folder=tmp_path, scripts=scripts)
    *_, last = json.loads(notebook.read_text())["cells"]
    assert str(scripts.parent) in "".join(last["outputs"][0]["text"])


def notebook_of(code: list[str]) -> dict[str, object]:
    """Return a notebook in Jupyter's file format, with one cell for each piece of code."""
    return {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {},
        "cells": [
            {
                "cell_type": "code",
                "metadata": {},
                "source": source,
                "execution_count": None,
                "outputs": [],
            }
            for source in code
        ],
    }


@pytest.mark.jvm
def test_the_guide_runs_on_a_cluster(scripts: Path, postgres_dsn: str, tmp_path: Path) -> None:
    """The executors run on the workers, with the Python of the environment."""
    python = {"PYSPARK_PYTHON": str(scripts / "python")}
    with (
        serving(scripts, tmp_path) as address,
        standalone(tmp_path, clean_environment() | python) as master,
    ):
        code = program(GUIDES, address, postgres_dsn)
        on_the_laptop = '.master("local[*]")'
        assert on_the_laptop in code
        (tmp_path / "program.py").write_text(code.replace(on_the_laptop, ""))
        line = f"{SUBMITS[1]} --master {master} --conf spark.driver.host=127.0.0.1 program.py"
        printed = run("bash", "-euc", line, folder=tmp_path, scripts=scripts)
    assert str(scripts.parent) in printed
