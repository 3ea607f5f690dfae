"""Apache Kafka's Java client and tools as child processes; jars come by
`tests/clients/java/pom.xml`.
"""

import functools
import subprocess
from pathlib import Path

from tests.support.costs import charge
from tests.support.patience import seconds
from tests.support.processes.alone import alone

CLIENTS = Path(__file__).resolve().parent.parent / "clients"
FOLDER, STREAMS = CLIENTS / "java", CLIENTS / "streams"
"""Each folder has a pom.xml and programs of ours: for the client and its tools, and for Kafka
Streams and Kafka Connect."""
QUICK_TO_START = ("-Xshare:auto", "-XX:TieredStopAtLevel=1")


def _is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


def classpath(folder: Path = FOLDER) -> str:
    """Return the class path of a folder's jars and compiled programs, for a JVM of the caller.

    The first call fetches missing jars and compiles missing classes. Programs may use classes of
    the folder above.
    """
    charge("jvm")
    return _classpath(folder)


@functools.cache
def _classpath(folder: Path) -> str:
    target = folder / "target"
    listed, pom = target / "classpath", folder / "pom.xml"
    with alone(target):
        if _is_older(listed, pom):
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath"]
            part = listed.with_suffix(".part")
            subprocess.run([*command, f"-Dmdep.outputFile={part}"], check=True)
            part.replace(listed)
        shared = list(folder.parent.glob("*.java"))
        for program in folder.glob("*.java"):
            made = target / f"{program.stem}.class"
            if any(_is_older(made, source) for source in (program, *shared)):
                places = ["-cp", listed.read_text().strip(), "-sourcepath", str(folder.parent)]
                subprocess.run(["javac", *places, "-d", str(target), str(program)], check=True)
    return f"{target}:{listed.read_text().strip()}"


def java(main_class: str, *arguments: str, stdin: str = "", timeout: float = seconds(400)) -> str:
    """Run a main class of the jars; return its output, or raise an error with its error output."""
    done = subprocess.run(
        [
            "java",
            *QUICK_TO_START,
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
