"""Spark's settings from outside of the program, as spark-submit reads them when PySpark starts its JVM by it."""

import os
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Final

from spark_udfs.environment import Spark

__all__ = ["default_settings", "submitted_settings"]

_OPTIONS: Final = {
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--master": "spark.master",
}
_SETTING: Final = re.compile(r"\s*(?P<name>spark\.[^\s=:]+)(?:\s*[=:]\s*|\s+)(?P<value>.*?)\s*")


def submitted_settings(arguments: str) -> dict[str, str]:
    """Those that spark-submit's options set, of the ones that `configure_spark` looks at.

    Args:
        arguments: `$PYSPARK_SUBMIT_ARGS`: "--packages a:b:1 --conf spark.x=y pyspark-shell".
    """
    words: list[str] = []
    for word in shlex.split(arguments):
        words += word.split("=", 1) if word.startswith("--") else [word]
    settings = {}
    for option, value in pairwise(words):
        if option in ("--conf", "-c"):
            name, _, value = value.partition("=")
            settings[name] = value
        elif option in _OPTIONS:
            settings[_OPTIONS[option]] = value
    return settings


def default_settings(spark: Spark) -> dict[str, str]:
    """Those of `spark-defaults.conf`: a name and a value on each line."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark.home / "conf")
    file = folder / "spark-defaults.conf"
    if not file.is_file():
        return {}
    lines = (_SETTING.fullmatch(line) for line in file.read_text().splitlines())
    return {line["name"]: line["value"] for line in lines if line}
