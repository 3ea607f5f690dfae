"""The jars of Spark's own Kafka connector (spark-sql-kafka-0-10) and where to find them.

`pip install pyspark` does not install them. They are searched in this order:
1. `$PYKAFKA_CONNECTOR_JARS`, a folder with all of them;
2. Spark's own `jars` folder;
3. `~/.cache/pykafka_core/` (or `$XDG_CACHE_HOME`), filled from Maven Central on first use by the
   Ivy library in Spark's jars. The resolution is that of `spark.jars.packages`, but it runs once,
   before the session starts, and its errors include advice.

The connector is published later than PySpark, or not at all for some releases. In that case the
newest published version with the same major version is used. `python -m spark_udfs.connector`
prints the jars for `spark-submit --jars`.
"""

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from spark_udfs.environment import (
    Spark,
    SparkSetupError,
    check_java,
    installed_spark,
    java_command,
    version_key,
)

__all__ = [
    "ConnectorMissing",
    "check_connector_version",
    "connector_advice",
    "connector_coordinate",
    "connector_jars",
]

ARTIFACT = "spark-sql-kafka-0-10"
_TOKEN_PROVIDER = "spark-token-provider-kafka-0-10"
JARS_VARIABLE = "PYKAFKA_CONNECTOR_JARS"
CONNECTOR_NAME = re.compile(rf"{ARTIFACT}_(?P<scala>[\d.]+)[:-](?P<version>\d[^/,:]*?)(?:\.jar)?$")
FETCH_TIMEOUT_SECONDS = 300
_IVY_JARS = "ivy", "commons-cli"
"""The jars of Spark that Ivy needs. Opening all jars takes Java longer than Ivy's own work."""
_BRIEF_JVM = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"
_IVY_MODULE = """<ivy-module version="2.0">
  <info organisation="pykafka_core" module="connector"/>
  <dependencies>
    <dependency org="org.apache.spark" name="{name}" rev="{version}" conf="default->master,compile,runtime"/>
    {rules}
  </dependencies>
</ivy-module>
"""
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" root="https://repo1.maven.org/maven2/"/></resolvers>
</ivysettings>
"""


_LOGGER = logging.getLogger("spark_udfs.connector")


class ConnectorMissing(SparkSetupError):
    """The connector's jars are not available, or are not for the installed Spark."""


def connector_coordinate(spark: Spark) -> str:
    """Return the coordinate: "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"."""
    return f"org.apache.spark:{ARTIFACT}_{spark.scala}:{spark.version}"


def connector_advice(spark: Spark) -> str:
    """Return advice on which connector to use if the one of Spark's version is not published."""
    return (
        f"use {connector_coordinate(spark)} or, if that is not published, the newest before it; "
        "`python -m spark_udfs.connector` prints such jars"
    )


def connector_jars(ivy_settings: str | Path | None = None) -> list[Path]:
    """Return the connector and its dependencies, sorted; download them on first use.

    Args:
        ivy_settings: Repositories, in the format of `spark.jars.ivySettings`; None: Maven Central.

    Returns:
        Local files for `spark.jars`. Files in Spark's own folder are included but not required.

    Raises:
        ConnectorMissing: The jars were not found and could not be downloaded, or are for another
            Spark or Scala version.
        SparkSetupError: See `installed_spark`; or Java, which runs the download, is missing.
    """
    spark = installed_spark()
    if folder := os.environ.get(JARS_VARIABLE):
        return _jars_of(Path(folder), spark, f"{JARS_VARIABLE}={folder}")
    if any(spark.jars.glob(f"{ARTIFACT}_*.jar")):
        names = (ARTIFACT, _TOKEN_PROVIDER, "kafka-clients", "commons-pool2")
        own = [path for name in names for path in spark.jars.glob(f"{name}[_-]*.jar")]
        check_connector_version(own[0].name, spark)
        return sorted(own)
    cached = _cache() / f"{ARTIFACT}_{spark.scala}-{spark.version}"
    if not cached.exists():
        _fetch(spark, cached, ivy_settings)
    return _jars_of(cached, spark, str(cached))


def check_connector_version(name: str, spark: Spark) -> None:
    """Check that a connector with this file name or coordinate is compatible with `spark`.

    It must have the same Scala version and the same major version, and must not be newer than
    Spark.

    Raises:
        ConnectorMissing: It is not compatible.
    """
    found = CONNECTOR_NAME.search(name)
    if found is None:
        raise ConnectorMissing(f"{name} does not say its version: {connector_advice(spark)}")
    theirs, ours = version_key(found["version"]), version_key(spark.version)
    if found["scala"] != spark.scala or theirs[0] != ours[0] or theirs > ours:
        raise ConnectorMissing(
            f"{name} is for Spark {found['version']} on Scala {found['scala']}; installed is Spark "
            f"{spark.version} on Scala {spark.scala}: {connector_advice(spark)}"
        )


def _jars_of(folder: Path, spark: Spark, said: str) -> list[Path]:
    jars = sorted(folder.glob("*.jar"))
    names = [jar.name for jar in jars if jar.name.startswith(ARTIFACT)]
    if not names:
        raise ConnectorMissing(
            f"{said} holds no {ARTIFACT} jar: put there what {connector_coordinate(spark)}, or the newest that "
            "is published, resolves to; or unset it to fetch that from Maven Central"
        )
    check_connector_version(names[0], spark)
    return jars


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pykafka_core"


def _fetch(spark: Spark, target: Path, ivy_settings: str | Path | None) -> None:
    """Resolve the connector into `target`, which is created atomically."""
    check_java()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent) as name:
            _resolve(spark, Path(name), ivy_settings)
            jars = Path(name) / "jars"
            jars.chmod(0o755)
            try:
                jars.rename(target)
            except OSError:  # another process was faster
                if not target.exists():
                    raise
    except subprocess.TimeoutExpired as error:
        reason = f"no response in {FETCH_TIMEOUT_SECONDS} s"
        raise ConnectorMissing(_explain(spark, [reason])) from error
    except OSError as error:
        raise ConnectorMissing(_explain(spark, [str(error)])) from error


def _resolve(spark: Spark, work: Path, ivy_settings: str | Path | None) -> None:
    """Use Ivy to put the jars into `work/jars`: Spark's version, else the newest published one.

    For an older connector, the token provider is resolved to its own newest version, because
    repositories lack artifacts of some releases.
    """
    problems = _retrieve(spark, work, ivy_settings, spark.version)
    if not problems:
        return
    shutil.rmtree(work / "jars", ignore_errors=True)
    major = version_key(spark.version)[0]
    older = _retrieve(spark, work, ivy_settings, f"[{major}.0.0,{spark.version}]", _TOKEN_PROVIDER)
    if older:
        raise ConnectorMissing(_explain(spark, problems + older))
    (found,) = (work / "jars").glob(f"{ARTIFACT}*.jar")
    _LOGGER.warning("%s is not published: %s is used", connector_coordinate(spark), found.name)


def _retrieve(
    spark: Spark,
    work: Path,
    ivy_settings: str | Path | None,
    version: str,
    same_version: str | None = None,
) -> list[str]:
    """Run Ivy.

    Args:
        spark: Jars that are part of it are excluded.
        work: Folder for Ivy's input and for the resulting `jars`.
        ivy_settings: See `connector_jars`.
        version: Version of the connector, or an Ivy range.
        same_version: Module to resolve with `version`, too, whatever the connector requires.

    Returns:
        Artifacts that were not found; empty on success.
    """
    done = subprocess.run(
        _ivy_command(spark, work, ivy_settings, version, same_version),
        capture_output=True,
        text=True,
        timeout=FETCH_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode == 0 and any((work / "jars").glob(f"{ARTIFACT}*.jar")):
        return []
    said = (done.stdout + done.stderr).splitlines()
    return [line.strip(" :\t") for line in said if "not found" in line.lower()] or ["Ivy failed"]


def _ivy_command(
    spark: Spark,
    work: Path,
    ivy_settings: str | Path | None,
    version: str,
    same_version: str | None,
) -> list[str]:
    """Write Ivy's input into `work`; return the command that retrieves into `work/jars`."""
    brought = {match[1] for jar in spark.jars.glob("*.jar") if (match := _JAR_NAME.match(jar.name))}
    rules = [f'<exclude module="{name}"/>' for name in sorted(brought)]
    if same_version:
        module = f'org="org.apache.spark" module="{same_version}_{spark.scala}" matcher="exact"'
        rules.append(f'<override {module} rev="{version}"/>')
    written = work / "ivy.xml"
    connector = f"{ARTIFACT}_{spark.scala}"
    written.write_text(
        _IVY_MODULE.format(name=connector, version=version, rules="\n    ".join(rules))
    )
    settings = Path(ivy_settings) if ivy_settings else work / "ivysettings.xml"
    if not ivy_settings:
        settings.write_text(_IVY_SETTINGS)
    elif not settings.is_file():
        raise ConnectorMissing(f"spark.jars.ivySettings={ivy_settings} is not a file")
    classpath = os.pathsep.join(
        str(jar) for name in _IVY_JARS for jar in spark.jars.glob(f"{name}-[0-9]*.jar")
    )
    return [
        *(java_command(), *_BRIEF_JVM, "-cp", classpath, "org.apache.ivy.Main"),
        *("-settings", str(settings), "-ivy", str(written), "-cache", str(work / "cache")),
        *("-types", "jar", "bundle", "-retrieve", f"{work}/jars/[artifact]-[revision].[ext]"),
    ]


_JAR_NAME = re.compile(r"(.+?)-\d[\w.-]*\.jar$")


def _explain(spark: Spark, problems: Sequence[str]) -> str:
    return (
        f"{connector_coordinate(spark)}, or an older one of this major version, could not be fetched"
        + (f" ({'; '.join(dict.fromkeys(problems))})" if problems else "")
        + f". Give its jars by {JARS_VARIABLE}=FOLDER or put them into {spark.jars}, name a repository that has "
        "them by spark.jars.ivySettings, or install a PySpark whose connector is published."
    )


if __name__ == "__main__":
    print(",".join(str(jar) for jar in connector_jars()))
