"""Apache Kafka's Java client and tools as child processes; jars come by `tests/clients/java/pom.xml`."""

import functools
import subprocess
from pathlib import Path

from tests.support.alone import alone

FOLDER = Path(__file__).resolve().parent.parent / "clients" / "java"
TARGET = FOLDER / "target"


def _is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


@functools.cache
def classpath() -> str:
    """Kafka's jars and our compiled driver, fetched and compiled when first asked for."""
    listed, pom, driver = TARGET / "classpath", FOLDER / "pom.xml", FOLDER / "Driver.java"
    with alone(TARGET):
        if _is_older(listed, pom):
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"]
            part = listed.with_suffix(".part")
            subprocess.run([*command, f"-Dmdep.outputFile={part}"], check=True)
            part.replace(listed)
        if _is_older(TARGET / "Driver.class", driver):
            jars = listed.read_text().strip()
            subprocess.run(["javac", "-cp", jars, "-d", str(TARGET), str(driver)], check=True)
    return f"{TARGET}:{listed.read_text().strip()}"


def java(main_class: str, *arguments: str, stdin: str = "", timeout: float = 400) -> str:
    """Run a main class of the jars; return what it printed, raise with its errors if it failed."""
    done = subprocess.run(
        [
            "java",
            "-Xshare:auto",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            classpath(),
            main_class,
            *arguments,
        ],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(
            f"{main_class} failed ({done.returncode}): {done.stdout}\n{done.stderr}"
        )
    return done.stdout
