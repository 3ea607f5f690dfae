"""Rules for combinations of settings, applied to the effective values of all layers.

The table limits each value by itself. Kafka's further checks are in ``KafkaConfig.validateValues``,
``GroupCoordinatorConfig``, ``LogConfig.validateValues`` and in the ``validateReconfiguration`` of
reconfigurable components; the texts are Kafka's.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

from .layers import Layers
from .table import topic_settings
from .validators import address_counts

_MIB = 1024 * 1024


class SettingProblem(NamedTuple):
    """One invalid setting.

    Attributes:
        name: Its Kafka name.
        text: The problem.
        advice: How to fix it.
        also: Other settings that are involved.
    """

    name: str
    text: str
    advice: str
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}"

    @property
    def names(self) -> tuple[str, ...]:
        """All settings that are involved."""
        return (self.name, *self.also)


def joint_problems(layers: Layers) -> list[SettingProblem]:
    """Return the problems of a broker's effective settings in combination."""
    return [problem for rule in _RULES for problem in rule(layers)]


def _segments(layers: Layers) -> Iterator[SettingProblem]:
    yield from _derived(layers, "segment.ms", lambda ms: ms >= 1, "greater than or equal to 1")
    yield from _derived(
        layers, "segment.jitter.ms", lambda ms: ms >= 0, "greater than or equal to 0"
    )


def _retention(layers: Layers) -> Iterator[SettingProblem]:
    """Every negative time means unlimited retention."""
    wanted = "unlimited (-1) or, greater than or equal to 1"
    yield from _derived(layers, "retention.ms", lambda ms: ms != 0, wanted)


def _flush(layers: Layers) -> Iterator[SettingProblem]:
    """Kafka accepts any number in requests; a negative one is treated as 0."""
    if not layers.is_altered("log.flush.interval.ms"):
        yield from _derived(layers, "flush.ms", lambda ms: ms >= 0, "at least 0")


def _derived(
    layers: Layers, topic_name: str, holds: Callable[[int], bool], wanted: str
) -> Iterator[SettingProblem]:
    """Check a topic setting whose value comes from the broker's synonyms."""
    setting = topic_settings()[topic_name]
    number = layers.inherited_number(setting)
    if number is not None and not holds(number):
        names = tuple(synonym.name for synonym in setting.synonyms)
        given = next(name for name in names if layers.broker_value(name) is not None)
        others = tuple(name for name in names if name != given)
        yield SettingProblem(given, f"{names[0]} must be {wanted}", f"change {given}", others)


def _cleaner(layers: Layers) -> Iterator[SettingProblem]:
    buffer, threads = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"
    count = layers.int(threads)
    if count == 0 or layers.int(buffer) // count <= _MIB:
        text = f"{buffer} must be at least 1MB per cleaner thread."
        yield SettingProblem(buffer, text, f"raise it, or set {threads} from 1 on", (threads,))
    low, high = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    yield from _at_most(layers, low, high)


def _replication(layers: Layers) -> Iterator[SettingProblem]:
    for high in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        yield from _at_most(layers, "replica.fetch.wait.max.ms", high)


def _cordoned(layers: Layers) -> Iterator[SettingProblem]:
    name, known = "cordoned.log.dirs", layers.items("log.dirs")
    given = layers.items(name)
    if "*" in given and len(given) > 1:
        text = f"When {name} is set to *, it must not contain other values"
        yield SettingProblem(name, text, "name directories, or *")
    missing = [entry for entry in given if known and entry not in (*known, "*")]
    if missing:
        text = f"All entries in {name} must be present in log.dirs or log.dir."
        text += f" Missing entries : {', '.join(missing)}"
        yield SettingProblem(name, text, "name the log directory, or *", ("log.dirs",))


def _connections(layers: Layers) -> Iterator[SettingProblem]:
    queued, largest = "queued.max.request.bytes", "socket.request.max.bytes"
    if layers.int(queued) > 0:
        yield from _at_most(layers, largest, queued)
    delay, idle = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
    if 0 <= layers.int(idle) <= layers.int(delay):
        text = f"{delay}={layers.int(delay)} should always be less than {idle}={layers.int(idle)}"
        yield SettingProblem(idle, text, "raise it; a negative number is for ever", (delay,))
    # With 0, no client could connect any more, including the one that altered it.
    per_ip, overrides = "max.connections.per.ip", "max.connections.per.ip.overrides"
    for name in ("max.connections", "max.connection.creation.rate", per_ip):
        if layers.is_altered(name) and layers.int(name) == 0:
            yield SettingProblem(name, f"Invalid {name} 0", "set it from 1 on")
    if layers.is_altered(overrides):
        counts = address_counts(layers.string(overrides) or "")
        shut_out = next((entry[0] for entry in counts if entry and entry[1] == 0), None)
        if shut_out is not None:
            text = f"Invalid {overrides} {shut_out}:0"
            yield SettingProblem(overrides, text, "set it from 1 on")
    if layers.int(per_ip) == 0 and not layers.string(overrides):
        text = f"{per_ip} can be set to zero only if {overrides} property is set."
        yield SettingProblem(per_ip, text, "set it from 1 on", (overrides,))


def _groups(layers: Layers) -> Iterator[SettingProblem]:
    kinds, times = ("consumer", "share", "streams"), ("heartbeat.interval.ms", "session.timeout.ms")
    for kind, what in [("consumer", "assignment.interval.ms"), *product(kinds, times)]:
        low, high = f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"
        if layers.int(low) > layers.int(high):
            yield from _at_most(layers, low, high)
        else:
            yield from _at_most(layers, low, f"group.{kind}.{what}")
            yield from _at_most(layers, f"group.{kind}.{what}", high)
    yield from _at_most(layers, "group.share.max.size", "group.share.max.share.sessions")
    standby = "group.streams.{}standby.replicas"
    yield from _at_most(layers, standby.format("num."), standby.format("max."))


def _coordinators(layers: Layers) -> Iterator[SettingProblem]:
    """Kafka checks these limits where the values are used, not in its table."""
    for name, high in (
        ("offsets.topic.compression.codec", 4),
        ("share.coordinator.state.topic.compression.codec", 4),
        ("share.coordinator.snapshot.update.records.per.snapshot", 500),
    ):
        if not 0 <= layers.int(name) <= high:
            text = f"{name} must be between 0 and {high}, not {layers.int(name)}"
            yield SettingProblem(name, text, "set it within these bounds")


def _at_most(layers: Layers, low: str, high: str) -> Iterator[SettingProblem]:
    if layers.int(low) > layers.int(high):
        text = f"{high} must be greater than or equal to {low}, which is {layers.int(low)}"
        yield SettingProblem(high, text, f"raise it, or lower {low}", (low,))


_RULES = (
    _segments,
    _retention,
    _flush,
    _cleaner,
    _replication,
    _cordoned,
    _connections,
    _groups,
    _coordinators,
)
