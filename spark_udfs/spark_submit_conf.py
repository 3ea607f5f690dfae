"""Spark settings from outside the program, as spark-submit reads them when PySpark starts a JVM."""

import os
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Final

from spark_udfs.environment import Spark, SparkSetupError

__all__ = ["file_settings", "submitted_settings"]

_OPTIONS: Final = {
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--master": "spark.master",
}
_FILE: Final = "--properties-file"
_DEFAULTS_TOO: Final = "--load-spark-defaults"
_SETTING: Final = re.compile(r"\s*(?P<name>spark\.[^\s=:]+)(?:\s*[=:]\s*|\s+)(?P<value>.*?)\s*")


def submitted_settings(arguments: str) -> dict[str, str]:
    """Return the settings from spark-submit options, limited to those that this package uses.

    Args:
        arguments: `$PYSPARK_SUBMIT_ARGS`: "--packages a:b:1 --conf spark.x=y pyspark-shell".

    Raises:
        SparkSetupError: spark-submit would reject the arguments.
    """
    words = _words(arguments)
    settings = {}
    for option, value in pairwise(words):
        if option in ("--conf", "-c"):
            name, equals, value = value.partition("=")
            if not equals:
                raise SparkSetupError(
                    f"PYSPARK_SUBMIT_ARGS says {option} {name}: a setting is NAME=VALUE"
                )
            settings[name] = value
        elif option in _OPTIONS:
            settings[_OPTIONS[option]] = value
    return settings


def file_settings(spark: Spark, arguments: str) -> dict[str, str]:
    """Return the settings in `spark-defaults.conf`, or in the file that ``arguments`` name instead.

    Args:
        spark: The Spark that will start.
        arguments: See `submitted_settings`.

    Raises:
        SparkSetupError: A named file does not exist.
    """
    words = _words(arguments)
    named = [Path(value) for option, value in pairwise(words) if option == _FILE]
    for file in named:
        if not file.is_file():
            raise SparkSetupError(f"PYSPARK_SUBMIT_ARGS says {_FILE} {file}: there is no such file")
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark.home / "conf")
    defaults = folder / "spark-defaults.conf"
    settings: dict[str, str] = {}
    if defaults.is_file() and (not named or _DEFAULTS_TOO in words):
        settings |= _read(defaults)
    return settings | _read(named[-1]) if named else settings


def _words(arguments: str) -> list[str]:
    """Split spark-submit's arguments; `--option=value` becomes two words."""
    try:
        split = shlex.split(arguments)
    except ValueError as error:
        raise SparkSetupError(
            f"PYSPARK_SUBMIT_ARGS cannot be read ({error}): {arguments}"
        ) from error
    if "pyspark-shell" not in split:
        raise SparkSetupError(
            f"PYSPARK_SUBMIT_ARGS must end with pyspark-shell, or be unset; it is: {arguments}"
        )
    words: list[str] = []
    for word in split:
        words += word.split("=", 1) if word.startswith("--") else [word]
    return words


def _read(file: Path) -> dict[str, str]:
    """Parse lines of a name and a value, as Spark does; a backslash continues a line.

    Invalid UTF-8 is replaced.
    """
    text = re.sub(r"\\\r?\n\s*", "", file.read_text(encoding="utf-8", errors="replace"))
    lines = (_SETTING.fullmatch(line) for line in text.splitlines())
    return {line["name"]: line["value"] for line in lines if line}
