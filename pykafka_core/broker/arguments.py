"""Converts the arguments of `Broker` to settings."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from pykafka_core.config import BrokerConfigs
from pykafka_core.errors import ConfigurationError
from pykafka_core.types import Durability

QUICK: Sequence[Mapping[str, str]] = (
    {"group.initial.rebalance.delay.ms": "0"},
    {
        "group.consumer.min.heartbeat.interval.ms": "50",
        "group.consumer.heartbeat.interval.ms": "50",
    },
    {
        "group.consumer.min.assignment.interval.ms": "0",
        "group.consumer.assignment.interval.ms": "0",
    },
)
"""The defaults of an embedded broker that differ from Kafka's.

With Kafka's defaults, the first members of a classic group wait 3 seconds for others. A KIP-848
group is assigned again after a second at the earliest, and its members receive a changed assignment
at their next heartbeat, up to 5 seconds later. The settings of one mapping depend on each other: if
one of them is given, Kafka's defaults apply to the others.
"""


def check_type(name: str, value: object, kind: type, wanted: str) -> None:
    """Raise a TypeError with advice unless ``value`` is None or of type ``kind``; a bool is not
    accepted.
    """
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise TypeError(f"{name}={value!r}: pass {wanted}")


def as_text(config: Mapping[str, object]) -> dict[str, str]:
    """Return the values as text, as in server.properties."""
    check_type("config", config, Mapping, "a mapping of Kafka names to values")
    for name in config:
        check_type("config", name, str, "names of settings as str")
    return {name: _text(value) for name, value in config.items()}


def with_defaults(
    given: Mapping[str, str], defaults: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Return ``given`` and each mapping of ``defaults`` that has none of its names."""
    settings = dict(given)
    for together in defaults:
        if not together.keys() & given.keys():
            settings |= together
    return settings


def data_dir_of(given: str | os.PathLike[str] | None, settings: BrokerConfigs) -> Path | None:
    """Return the data directory; None for memory."""
    if given is not None:
        if not os.fspath(given):
            raise ConfigurationError(["data_dir is empty: name a directory, '.' for this one"])
        return Path(given)
    log_dir = settings.start.log_dir
    return Path(log_dir) if log_dir else None


def durability_of(given: Durability | None, path: Path | None) -> Durability:
    """Return the given durability, or the default for the data directory.

    Raises:
        ConfigurationError: It is unknown, or contradicts the data directory.
    """
    default: Durability = "memory" if path is None else "fsync"
    if given is None:
        return default
    if given not in get_args(Durability):
        names = ", ".join(get_args(Durability))
        raise ConfigurationError([f"durability {given!r} is unknown: pass one of {names}"])
    if (given == "memory") != (path is None):
        raise ConfigurationError(
            [f"durability {given!r} and data_dir={str(path) if path else None!r} contradict"]
        )
    return given


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
