"""Prometheus' text format, version 0.0.4."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "pykafka_core_"


class Sample(NamedTuple):
    """A value with its labels."""

    labels: Mapping[str, str | int]
    value: float


class Family(NamedTuple):
    """A metric. Counters end in ``_total``, and units are in the name: ``_seconds``, ``_bytes``."""

    name: str
    kind: Literal["counter", "gauge"]
    text: str
    samples: Iterable[Sample]


def lines(families: Iterable[Family]) -> Iterator[str]:
    """Yield the lines of all families, each with its line end; a family without samples has no
    lines.
    """
    for family in families:
        head = True
        for labels, value in family.samples:
            if head:
                yield f"# HELP {PREFIX}{family.name} {_help(family.text)}\n"
                yield f"# TYPE {PREFIX}{family.name} {family.kind}\n"
                head = False
            yield f"{PREFIX}{family.name}{_labels(labels)} {_number(value)}\n"


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _labels(labels: Mapping[str, str | int]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_value(value)}"' for name, value in labels.items()) + "}"


def _value(value: str | int) -> str:
    """Escape a label value; clients choose group ids, which may contain any text."""
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return escaped.encode(errors="replace").decode()


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
