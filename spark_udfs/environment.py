"""What a Spark session needs around it: Spark itself, Java, a Python for its workers.

Each is checked before anything starts, because Spark reports a missing one late and in other words:
no Java as `JAVA_GATEWAY_EXITED`, a worker with another Python as a failed task, a foreign `SPARK_HOME` as
`NoSuchMethodError`.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Spark",
    "SparkSetupError",
    "check_java",
    "check_worker_python",
    "installed_spark",
    "pyspark_version",
]

JAVA_VERSION_MIN = 17  # of Spark 4
SPARK_VERSION_MIN = (4, 2)  # the first with everything that this package uses
_SPARK_CORE = re.compile(r"spark-core_(?P<scala>[\d.]+)-(?P<version>.+)\.jar")


class SparkSetupError(RuntimeError):
    """Spark cannot start as asked; the text says what is wrong and what to do."""


@dataclass(frozen=True, kw_only=True)
class Spark:
    """The Spark that `getOrCreate` would start."""

    home: Path
    version: str
    scala: str  # the binary version: "2.13"

    @property
    def jars(self) -> Path:
        """The folder of the jars that every session loads."""
        return self.home / "jars"


def version_key(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparing: "4.2.0-preview1" → (4, 2, 0)."""
    leading = re.match(r"[\d.]*\d", version)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def pyspark_version() -> str:
    """PySpark's version, which is that of the JVM it talks to.

    Raises:
        SparkSetupError: No PySpark, or one before 4.2.
    """
    try:
        import pyspark
    except ImportError:
        raise SparkSetupError(
            "PySpark is not installed: pip install 'pykafka_core[spark]'"
        ) from None
    if version_key(pyspark.__version__) < SPARK_VERSION_MIN:
        raise SparkSetupError(
            f"PySpark {pyspark.__version__} is installed and 4.2 or later is needed: "
            "pip install --upgrade 'pykafka_core[spark]'"
        )
    return str(pyspark.__version__)


def installed_spark() -> Spark:
    """Find Spark as PySpark does: `$SPARK_HOME`, else what `pip install pyspark` brought.

    Raises:
        SparkSetupError: See `pyspark_version`; a `$SPARK_HOME` that holds another version.
    """
    version = pyspark_version()
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    cores = [_SPARK_CORE.fullmatch(path.name) for path in home.glob("jars/spark-core_*.jar")]
    found = next((core for core in cores if core), None)
    if found is None:
        raise SparkSetupError(f"no Spark at {home}: unset SPARK_HOME to use what pip installed")
    if found["version"] != version:
        raise SparkSetupError(
            f"PySpark is {version} and SPARK_HOME={home} holds Spark {found['version']}: "
            "unset SPARK_HOME, or pip install pyspark==" + found["version"]
        )
    return Spark(home=home, version=found["version"], scala=found["scala"])


def java_command() -> str:
    """The Java that Spark's launcher takes: `$JAVA_HOME`, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def check_java() -> None:
    """Do nothing if the Java that Spark would take is new enough.

    Raises:
        SparkSetupError: None is found, it does not run, or it is older than 17.
    """
    java = java_command()
    advice = f"install a JDK {JAVA_VERSION_MIN} or later, or set JAVA_HOME to one"
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SparkSetupError(f"Spark needs Java, and {java} does not run: {advice}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', shown.stderr)
    if version is None or int(version[1]) < JAVA_VERSION_MIN:
        raise SparkSetupError(
            f"Spark needs Java {JAVA_VERSION_MIN}, and {java} {_java_said(shown.stderr)}: {advice}"
        )


def _java_said(text: str) -> str:
    """What `java -version` printed, without what it picks up from the environment."""
    lines = [line for line in text.splitlines() if line and not line.startswith("Picked up ")]
    return f"is {lines[0]}" if lines else "tells no version"


def check_worker_python(python: str) -> None:
    """Do nothing if `python` can run the workers of a driver like this one.

    Raises:
        SparkSetupError: It does not run, is of another minor version, or lacks what the workers import.
    """
    if python == sys.executable:
        return
    advice = f"set PYSPARK_PYTHON={sys.executable}, or install pykafka_core[spark] there"
    code = "import sys; print('%d.%d' % sys.version_info[:2]); import pyarrow, pykafka_core"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SparkSetupError(f"PYSPARK_PYTHON={python} does not run: {advice}") from error
    driver = f"{sys.version_info[0]}.{sys.version_info[1]}"
    worker = done.stdout.strip()
    if not worker:
        raise SparkSetupError(f"PYSPARK_PYTHON={python} is no Python: {advice}")
    if worker != driver:
        raise SparkSetupError(
            f"PYSPARK_PYTHON={python} is Python {worker}, the driver is {driver}: {advice}"
        )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise SparkSetupError(f"PYSPARK_PYTHON={python} cannot run workers: {reason}; {advice}")
