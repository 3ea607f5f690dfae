"""Checks of altered configs of brokers, groups and client-metrics subscriptions."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Final

from pykafka_core.config import (
    GROUP_BOUNDS,
    BrokerConfigs,
    InvalidValueError,
    Scope,
    Setting,
    Support,
    UpdateMode,
    broker_settings,
    settings,
)
from pykafka_core.errors import InvalidConfigError, InvalidRequestError, PolicyViolationError
from pykafka_core.handlers.configs.java_pattern import is_java_pattern
from pykafka_core.handlers.outcome import Work, collect
from pykafka_core.metadata.image.features import (
    CORDONED_DIRECTORIES_LEVEL,
    ELIGIBLE_LEADER_REPLICAS,
    METADATA_VERSION,
)
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.types import RESOURCE_BROKER

# ``DynamicBrokerConfig.DynamicSecurityConfigs``
_SECURITY = re.compile(
    r"ssl\.(key\.password|keystore\.(certificate\.chain|key|location|password|type)"
    r"|truststore\.(certificates|location|password|type))"
)
UNKNOWN_NAMES_MAX: Final = 1_000
"""The limit of unknown configs per resource.

Kafka keeps them for plugins, which this broker does not have. Every snapshot contains them, and
every start reads them.
"""
_MIN_ISR = "min.insync.replicas"
_CORDONED = "cordoned.log.dirs"
_INTERVAL_MS = (100, 3_600_000)
_MATCHES = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_broker_changes(
    changes: Mapping[str, str], existing: Mapping[str, str], *, per_broker: bool
) -> Work[None]:
    """Refuse changes that need a restart; unknown names are kept as in Kafka, up to a limit.

    Raises:
        InvalidRequestError: With Kafka's text.
        InvalidConfigError: Kafka accepts the change, but it is not implemented here.
        PolicyViolationError: Kafka accepts the change, but there are too many unknown names.
    """
    yield from _check_unknown(changes, existing)
    known = {n: s for n, s in broker_settings().items() if n in changes}
    fixed = [n for n, s in known.items() if s.fixed]
    _refuse("Cannot update these configs dynamically: Set({})", fixed)
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: Set({})",
        [n for n in known if _SECURITY.fullmatch(n)],
    )
    for name, setting in known.items():
        yield
        try:
            setting.parse(changes[name])
        except InvalidValueError as error:
            raise InvalidRequestError(str(error)) from None
    if not per_broker:
        single = [n for n, s in known.items() if s.update_mode is UpdateMode.PER_BROKER]
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "Set({})",
            single,
        )
    _check_built(changes, known)


def _check_unknown(changes: Mapping[str, str], existing: Mapping[str, str]) -> Work[None]:
    table = broker_settings()
    new = yield from collect(n for n in changes if n not in table and n not in existing)
    count = len(new) + len(existing) - sum(n in existing for n in table)
    if new and count > UNKNOWN_NAMES_MAX:
        raise PolicyViolationError(
            f"The broker resource would have {count} settings of unknown names; it may have {UNKNOWN_NAMES_MAX}."
        )


def check_broker_future(
    image: MetadataImage, settings: BrokerConfigs, name: str, future: Mapping[str, str]
) -> None:
    """Refuse values that this broker cannot use, alone or with its other configs.

    Args:
        image: The metadata with the present dynamic configs.
        settings: The settings, including those of the start.
        name: The broker's id, or "" for all brokers.
        future: All dynamic configs of ``name`` after the change.

    Raises:
        InvalidRequestError: With Kafka's text.
    """
    of_all, of_one = (image.configs.of(RESOURCE_BROKER, key) for key in ("", name))
    now = settings.with_dynamic(of_all, of_one)
    then = settings.with_dynamic(of_all, future) if name else settings.with_dynamic(future, of_one)
    is_own = name in ("", settings.string("node.id"))
    for problem in then.ignored:
        # The directories of another node are unknown here.
        if problem not in now.ignored and (is_own or problem.name != _CORDONED):
            raise InvalidRequestError(problem.text)


def check_cordoned(image: MetadataImage, changes: Container[str]) -> None:
    """Refuse to cordon directories below the level that supports it (KIP-1066).

    Raises:
        InvalidConfigError: With Kafka's text.
    """
    level = image.features.get(METADATA_VERSION, 0)
    if _CORDONED in changes and level < CORDONED_DIRECTORIES_LEVEL:
        raise InvalidConfigError(
            f"The {_CORDONED} configuration value cannot be set because it requires "
            "metadata.version >= 4.3-IV0"
        )


def check_cordoned_subset(changes: Mapping[str, str], existing: Mapping[str, str]) -> None:
    """Refuse to cordon more directories: only the broker itself can check that it has them.

    Raises:
        InvalidConfigError: As Kafka words it.
    """
    old, new = (_directories(layer.get(_CORDONED, "")) for layer in (existing, changes))
    if not new <= old:
        raise InvalidConfigError(
            f"When updating {_CORDONED} via controllers,  the new value must be a subset of the "
            "current configuration value."
        )


def _directories(text: str) -> set[str]:
    return {entry.strip() for entry in text.split(",")} if text.strip() else set()


def check_min_insync_replicas(
    image: MetadataImage, changes: Mapping[str, str | None], *, per_broker: bool
) -> None:
    """Refuse changes that eligible leader replicas (KIP-966) do not allow.

    Raises:
        InvalidConfigError: With Kafka's text.
    """
    if _MIN_ISR not in changes or not image.features.get(ELIGIBLE_LEADER_REPLICAS):
        return
    if per_broker:
        raise InvalidConfigError(f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled.")
    if changes[_MIN_ISR] is None:
        raise InvalidConfigError(
            f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled."
        )


def _refuse(text: str, names: Iterable[str]) -> None:
    joined = ", ".join(names)
    if joined:
        raise InvalidRequestError(text.format(joined))


def _check_built(changes: Mapping[str, str], known: Mapping[str, Setting]) -> None:
    for name, text in changes.items():
        setting = known.get(name)
        if setting is None:
            missing = name.startswith("listener.name.")
        else:
            missing = setting.support is Support.NOT_BUILT and text.strip() != setting.default
        if missing:
            raise InvalidConfigError(f"{name} is not built yet")


def check_client_metrics(future: Mapping[str, str]) -> Work[None]:
    """Refuse configs of a subscription that Kafka refuses.

    Raises:
        InvalidRequestError: An unknown name or an interval out of bounds.
        InvalidConfigError: A pattern is invalid.
    """
    table = settings(Scope.CLIENT_METRICS)
    for name, text in future.items():
        if name not in table:
            raise InvalidRequestError(f"Unknown client metrics configuration: {name}")
        value = _parsed(table[name], text)
        low, high = _INTERVAL_MS
        if isinstance(value, int) and not low <= value <= high:
            raise InvalidRequestError(
                f"Invalid value {value} for {name}, interval must be between {low} and {high} "
                "(1 hour)"
            )
        if name == "match" and isinstance(value, tuple):
            yield from _check_patterns(value)


def _check_patterns(patterns: Iterable[str]) -> Work[None]:
    """Check patterns as ``ClientMetricsConfigs.parseMatchingPatterns`` does.

    It splits at each ``=``, and drops empty parts at the end.
    """
    for pattern in patterns:
        yield
        key, _, expression = pattern.rstrip("=").partition("=")
        is_pair = expression and "=" not in expression and key.strip() in _MATCHES
        if not is_pair or not (yield from is_java_pattern(expression.strip())):
            raise InvalidConfigError(f"Illegal client matching pattern: {pattern}")


def check_group(future: Mapping[str, str], broker: BrokerConfigs) -> None:
    """Refuse configs of a group that are unknown, malformed or outside the broker's bounds.

    Raises:
        InvalidConfigError: With Kafka's text.
    """
    table = settings(Scope.GROUP)
    for name, text in future.items():
        if name not in table:
            raise InvalidConfigError(f"Unknown group config name: {name}")
        value = _parsed(table[name], text)
        if isinstance(value, int):
            _check_bounds(name, value, broker)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(session, future, broker) <= _number(heartbeat, future, broker):
            raise InvalidConfigError(f"{session} must be greater than {heartbeat}")


def _check_bounds(name: str, value: int, broker: BrokerConfigs) -> None:
    low, high = GROUP_BOUNDS.get(name, (None, None))
    if low is not None and value < broker.int(low):
        raise InvalidConfigError(f"{name} must be greater than or equal to {low}")
    if high is not None and value > broker.int(high):
        raise InvalidConfigError(f"{name} must be less than or equal to {high}")


def _number(name: str, future: Mapping[str, str], broker: BrokerConfigs) -> int:
    return int(future[name]) if name in future else broker.int(f"group.{name}")


def _parsed(setting: Setting, text: str) -> object:
    try:
        return setting.parse(text)
    except InvalidValueError as error:
        raise InvalidConfigError(str(error)) from None
