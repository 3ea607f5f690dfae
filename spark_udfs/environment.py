"""The environment of a Spark session: Spark itself, Java, and the Python of its workers.

Each is checked before anything starts, because Spark reports problems late and unclearly: missing
Java as `JAVA_GATEWAY_EXITED`, a worker with another Python as a failed task, and a `SPARK_HOME` of
another version as `NoSuchMethodError`.
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

JAVA_VERSION_MIN = 17  # required by Spark 4
SPARK_VERSION_MIN = (4, 2)  # the first version with everything that this package uses
_SPARK_CORE = re.compile(r"spark-core_(?P<scala>[\d.]+)-(?P<version>.+)\.jar")


class SparkSetupError(RuntimeError):
    """Spark cannot start with this setup; the text names the problem and a fix."""


@dataclass(frozen=True, kw_only=True)
class Spark:
    """The Spark that `getOrCreate` would start."""

    home: Path
    version: str
    scala: str  # the binary version: "2.13"

    @property
    def jars(self) -> Path:
        """Return the folder of the jars that every session loads."""
        return self.home / "jars"


def version_key(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, for comparison: "4.2.0-preview1" → (4, 2, 0)."""
    leading = re.match(r"[\d.]*\d", version)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def pyspark_version() -> str:
    """Return PySpark's version, which equals the version of its JVM.

    Raises:
        SparkSetupError: PySpark is missing, or older than 4.2.
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
    """Find Spark as PySpark does: in `$SPARK_HOME`, else in the `pyspark` package.

    Raises:
        SparkSetupError: See `pyspark_version`; `$SPARK_HOME` contains another version, or no Spark.
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
    """Return the Java that Spark's launcher runs: in `$JAVA_HOME`, else `java` on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def check_java() -> None:
    """Check that the Java that Spark would run is new enough.

    Raises:
        SparkSetupError: Java was not found, does not run, or is older than 17.
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
    """Return the version line of `java -version`, without notes on environment variables."""
    lines = [line for line in text.splitlines() if line and not line.startswith("Picked up ")]
    return f"is {lines[0]}" if lines else "prints no version"


def check_worker_python(python: str) -> None:
    """Check that `python` can run the workers of a driver that runs this Python.

    Raises:
        SparkSetupError: It does not run, has another minor version, or lacks packages that workers
            import.
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
        raise SparkSetupError(f"PYSPARK_PYTHON={python} is not a Python: {advice}")
    if worker != driver:
        raise SparkSetupError(
            f"PYSPARK_PYTHON={python} is Python {worker}, the driver is {driver}: {advice}"
        )
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise SparkSetupError(f"PYSPARK_PYTHON={python} cannot run workers: {reason}; {advice}")
