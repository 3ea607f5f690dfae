"""A broker's effective settings, validated when they are given.

Invalid settings at the start are rejected with all problems at once. An alteration while a broker
runs is validated before it is committed. Invalid settings that another version or Apache Kafka
committed must not prevent a start: `BrokerConfigs.with_dynamic` ignores and reports them.
"""

import os.path
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pykafka_core.errors import ConfigurationError
from pykafka_core.types import Durability

from .layers import NOTHING, Layers
from .listeners import EMBEDDED_LISTENER, with_names
from .rules import SettingProblem, joint_problems
from .setting import Support, UpdateMode
from .start import StartConfig
from .table import broker_settings, topic_settings
from .validation import validate
from .validators import InvalidValueError

# A durability sets the default of these topic settings, by the broker setting on the right.
_FLUSHING: Mapping[Durability, Mapping[str, tuple[str, str]]] = {
    "fsync": {"flush.messages": ("log.flush.interval.messages", "1")},
    "interval": {"flush.ms": ("log.flush.interval.ms", "100")},
    "os": {},
    "memory": {},
}


class BrokerConfigs(Layers):
    """A broker's settings. Immutable.

    Args:
        static: Settings at the start.

    Attributes:
        ignored: Altered settings that are invalid and have no effect.

    Raises:
        ConfigurationError: Lists every problem of ``static``, each with advice.
    """

    __slots__ = ("ignored",)

    def __init__(self, static: Mapping[str, str] = NOTHING) -> None:
        _check(validate(static))
        # Kafka has two names for one number: each sets the other.
        for given, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if other not in static and int(static.get(given, -1)) >= 0:
                static = {**static, other: static[given]}
        if "listeners" in static:
            static = {**static, "listeners": with_names(static["listeners"])}
        super().__init__(static)
        self.ignored: tuple[SettingProblem, ...] = ()

    def with_dynamic(
        self, cluster_default: Mapping[str, str], broker: Mapping[str, str]
    ) -> "BrokerConfigs":
        """Return the same broker with other altered settings, without invalid ones.

        Args:
            cluster_default: Altered for all brokers. Unknown names are ignored, and their number
                does not affect the cost.
            broker: Altered for this broker.
        """
        cluster_default, broker = _known(cluster_default), _known(broker)
        problems = [
            *_stored_problems(cluster_default, per_broker=False),
            *_stored_problems(broker, per_broker=True),
        ]
        unusable = {problem.name for problem in problems}
        while True:
            made = _made(
                self.static,
                _without(cluster_default, unusable),
                _without(broker, unusable),
                defaults=self.defaults,
                ignored=problems,
            )
            # Settings given at the start were validated then.
            found = joint_problems(made) if made.cluster_default or made.broker else []
            if not found:
                return made
            problems += found
            # Settings given at the start are valid by themselves, so an altered setting is
            # involved.
            altered = {name for problem in found for name in problem.names if made.is_altered(name)}
            unusable |= altered or {*cluster_default, *broker}

    def with_durability(self, durability: Durability) -> "BrokerConfigs":
        """Return the same broker with the defaults of ``durability``, except for given settings."""
        flushing = {
            name: value
            for topic_name, (name, value) in _FLUSHING[durability].items()
            if not self._is_given(topic_name)
        }
        return _made(self.static, defaults={**self.defaults, **flushing})

    def with_identity(
        self, node_id: int, log_dir: str | None, *, is_alone: bool
    ) -> "BrokerConfigs":
        """Return the same broker with its identity, which DescribeConfigs reports.

        Args:
            node_id: The node id in meta.properties.
            log_dir: None for memory.
            is_alone: No other node can join: a topic has one replica, whatever Kafka's default is.

        Raises:
            ConfigurationError: Other directories than ``log_dir`` are cordoned.
        """
        roles = (("broker", self.start.is_broker), ("controller", self.start.is_controller))
        defaults = {
            **self.defaults,
            "node.id": str(node_id),
            "broker.id": str(node_id),
            "process.roles": ",".join(role for role, has in roles if has),
            "listeners": EMBEDDED_LISTENER,
        }
        static = dict(self.static)
        if log_dir is not None:
            (static if "log.dirs" in static else defaults)["log.dirs"] = log_dir
        if _CORDONED in static:
            static[_CORDONED] = ",".join(map(_absolute, self.items(_CORDONED)))
        if is_alone:
            defaults |= dict.fromkeys(_REPLICATION_FACTORS, "1")
        identified = _made(static, defaults=defaults)
        _check(joint_problems(identified))
        return identified

    @property
    def cordons_log_dir(self) -> bool:
        """Whether the log directory accepts no new replicas (KIP-1066)."""
        return not {"*", *self.items("log.dirs")}.isdisjoint(self.items(_CORDONED))

    @property
    def start(self) -> StartConfig:
        """The identity and the listeners of this broker."""
        return StartConfig.from_settings(self.static)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning that lists given settings without effect here, and one for each that blocks all
        clients.
        """
        warnings = [
            f"{name}=0: {effect}" for name, effect in _LOCKING_OUT.items() if self.int(name) == 0
        ]
        ignored = [n for n in self.static if broker_settings()[n].support is Support.NO_MEANING]
        if ignored:
            text = "these settings have no meaning in this broker and are ignored: "
            warnings.append(text + ", ".join(ignored))
        return tuple(warnings)

    def log_defaults(self) -> dict[str, str]:
        """Return the broker's defaults of all topic settings, by topic-level name, for the core."""
        values = {name: self.inherited_value(s) for name, s in topic_settings().items()}
        return {name: value for name, value in values.items() if value is not None}

    def broker_settings(self) -> dict[str, str]:
        """Return the effective broker settings that are supported, by Kafka name, for the core."""
        names = (n for n, s in broker_settings().items() if s.support is Support.HONOURED)
        values = {name: self.broker_value(name) for name in names}
        return {
            name: broker_settings()[name].canonical(value)
            for name, value in values.items()
            if value is not None
        }

    def _is_given(self, topic_name: str) -> bool:
        names = (synonym.name for synonym in topic_settings()[topic_name].synonyms)
        return any(name in self.static for name in names)


_CORDONED = "cordoned.log.dirs"
_REPLICATION_FACTORS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
_LOCKING_OUT = {
    "max.connections": "no client can connect",
    "max.connection.creation.rate": "no client can connect",
    "message.max.bytes": "no record can be produced where its topic has no max.message.bytes",
}
"""Kafka starts with these values, but rejects the first two in requests."""


def _made(
    static: Mapping[str, str],
    cluster_default: Mapping[str, str] = NOTHING,
    broker: Mapping[str, str] = NOTHING,
    *,
    defaults: Mapping[str, str] = NOTHING,
    ignored: Iterable[SettingProblem] = (),
) -> BrokerConfigs:
    """Return settings whose ``static`` is already validated."""
    made = BrokerConfigs.__new__(BrokerConfigs)
    Layers.__init__(made, static, cluster_default, broker, defaults)
    made.ignored = tuple(ignored)
    return made


def _check(problems: Sequence[SettingProblem]) -> None:
    if problems:
        raise ConfigurationError([str(problem) for problem in problems])


def _absolute(entry: str) -> str:
    return entry if entry == "*" else os.path.abspath(entry)


def _known(layer: Mapping[str, str]) -> dict[str, str]:
    return {name: layer[name] for name in broker_settings() if name in layer} if layer else {}


def _stored_problems(layer: Mapping[str, str], *, per_broker: bool) -> Iterator[SettingProblem]:
    """Yield a problem for each altered setting that is invalid for any broker."""
    for name, text in layer.items():
        setting = broker_settings()[name]
        reason = None
        if setting.fixed:
            reason = f"{name} is read when a broker starts"
        elif setting.update_mode is UpdateMode.PER_BROKER and not per_broker:
            reason = f"{name} cannot be altered for all brokers"
        else:
            try:
                setting.parse(text)
            except InvalidValueError as error:
                reason = str(error)
        if reason is not None:
            yield SettingProblem(name, reason, "alter or delete it")


def _without(layer: Mapping[str, str], names: set[str]) -> Mapping[str, str]:
    return {n: v for n, v in layer.items() if n not in names} if names else layer


def canonical_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return a topic's stored overrides for the core: known names, canonical values.

    Settings of Apache Kafka that this table does not know, or that are invalid today, are omitted:
    a topic must still open.
    """
    table = topic_settings()
    usable = {name: table[name].usable(text) for name, text in overrides.items() if name in table}
    return {name: text for name, text in usable.items() if text is not None}
