"""One Kafka setting: its type, its default, how it may be altered, and whether this broker supports
it.
"""

from collections.abc import Mapping
from enum import Enum, IntEnum
from math import isfinite
from typing import NamedTuple

from .validators import InvalidValueError, Validator, Value

VALUE_LENGTH_MAX = 2**15 - 1
"""Maximum length of a client's value, in UTF-16 characters, as in Kafka's
``ConfigurationControlManager``."""
VALUE_TOO_LONG = (
    "The configuration value cannot be added because it exceeds the maximum value size of "
    f"{VALUE_LENGTH_MAX} bytes."
)
_OPENED_AT_START = frozenset({"listeners", "listener.security.protocol.map"})
_INTEGERS: Mapping[str, int] = {"INT": 31, "SHORT": 15, "LONG": 63}


class ConfigType(IntEnum):
    """Kafka's types of settings; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Scope(Enum):
    """The resource of a setting; the values are sections of the table."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"
    CLIENT_METRICS = "client_metrics"


class UpdateMode(Enum):
    """Whether a broker setting may be altered while the broker runs, and for which brokers."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Support(Enum):
    """Whether this broker supports a setting."""

    HONOURED = "honoured"
    STORED = "stored"
    """Stored and listed; its function is not implemented."""
    NO_MEANING = "no-meaning"
    """Accepted, with a warning."""
    NOT_BUILT = "not-built"
    """Rejected, unless it is set to its default."""


class Synonym(NamedTuple):
    """A broker setting whose value, times ``factor``, is the default of a topic or group
    setting.
    """

    name: str
    factor: int = 1


class Setting(NamedTuple):
    """One row of the table.

    Attributes:
        default: As text; ``None`` where Kafka has no default or a null one.
        required: Kafka requires a value. Never required here, where one node can choose it.
        update_mode: ``None`` except for broker settings.
        synonyms: In order of precedence.
        internal: Listed by DescribeConfigs only when set.
    """

    name: str
    scope: Scope
    type: ConfigType
    default: str | None
    required: bool
    validator: Validator | None
    importance: str
    update_mode: UpdateMode | None
    support: Support
    synonyms: tuple[Synonym, ...]
    internal: bool
    documentation: str

    @property
    def accepted(self) -> str:
        """Its type, bounds and default as text."""
        bounds = f" {self.validator}" if str(self.validator or "") else ""
        default = f", {self.default} by default" if self.default else ""
        return f"a value of type {self.type.name.lower()}{bounds}{default}"

    @property
    def sensitive(self) -> bool:
        """Whether the value is secret."""
        return self.type is ConfigType.PASSWORD

    @property
    def read_only(self) -> bool:
        """Whether it cannot be altered while the broker runs."""
        return self.update_mode is UpdateMode.READ_ONLY

    @property
    def fixed(self) -> bool:
        """Whether this broker reads it only at its start.

        Kafka can alter listeners while it runs.
        """
        return self.read_only or self.name in _OPENED_AT_START

    def parse(self, text: str) -> Value:
        """Return the typed value.

        Raises:
            InvalidValueError: It is of another type, or rejected by the validator; the text is
                Kafka's.
        """
        value = _parse(self.name, self.type, text)
        if self.validator is not None:
            self.validator.check(self.name, value)
        return value

    def canonical(self, text: str) -> str:
        """Return the value as Kafka prints it: trimmed, lists without spaces, booleans in lower
        case.

        Raises:
            InvalidValueError: See `parse`.
        """
        return to_text(self.parse(text))

    def usable(self, text: str) -> str | None:
        """Return a stored value in canonical form; None if it is invalid today, and treated as not
        stored.
        """
        try:
            return self.canonical(text)
        except InvalidValueError:
            return None

    def shown(self, text: str) -> str:
        """Return a stored value for people: canonical, or unchanged if it is invalid."""
        usable = self.usable(text)
        return text if usable is None else usable


def is_too_long(text: str) -> bool:
    """Return whether a value has more than `VALUE_LENGTH_MAX` UTF-16 characters; one outside the
    BMP counts twice.
    """
    if 2 * len(text) <= VALUE_LENGTH_MAX:
        return False
    return (
        len(text) > VALUE_LENGTH_MAX
        or len(text) + sum(c > "\uffff" for c in text) > VALUE_LENGTH_MAX
    )


def to_text(value: Value) -> str:
    """Return a typed value as Kafka prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _double_text(value) if isinstance(value, float) else str(value)


def _double_text(value: float) -> str:
    """Format like Java's ``Double.toString``: plain from 0.001 to 10,000,000, else one digit before
    the point.
    """
    if value == 0 or not isfinite(value) or 1e-3 <= abs(value) < 1e7:
        return str(value)
    tries = (f"{value:.{precision}e}" for precision in range(1, 17))
    mantissa, power = next(text for text in tries if float(text) == value).split("e")
    return f"{mantissa}E{int(power)}"


def _parse(name: str, type_: ConfigType, text: str) -> Value:
    trimmed = text.strip()
    if type_ is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise InvalidValueError(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if type_ is ConfigType.LIST:
        return tuple(part.strip() for part in trimmed.split(",")) if trimmed else ()
    if type_ is ConfigType.DOUBLE:
        return _double(name, trimmed)
    if type_.name in _INTEGERS:
        return _integer(name, type_.name, trimmed)
    return text if type_ is ConfigType.PASSWORD else trimmed


def _integer(name: str, type_name: str, text: str) -> int:
    """Parse like Java: ASCII digits with an optional sign, within the type's range."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isascii() and digits.isdigit() and len(digits) <= 40:
        bound = 1 << _INTEGERS[type_name]
        if -bound <= int(text) < bound:
            return int(text)
    raise InvalidValueError(name, text, f"Not a number of type {type_name}")


def _double(name: str, text: str) -> float:
    try:
        if "_" in text or not text.isascii():  # Python takes both
            raise ValueError
        return float(text)
    except ValueError:
        raise InvalidValueError(name, text, "Not a number of type DOUBLE") from None
