"""Bounds of settings, named as in the table; their texts and errors are Kafka's."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

Value = bool | int | float | str | tuple[str, ...]
"""A typed value: lists are tuples, classes and passwords are text."""

# Not compiled, because few starts need them; `re` compiles and caches them.
_THROTTLED = r"(?a)\d+:\d+\Z"
_DURATION = r"(?ai)-?P(?=[\dT])(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{0,9})?S)?)?\Z"
_ADDRESS_COUNT = r"(?:\[([^\[\]]*)\]|([^\[\]]*)):\s*(?:0*([0-9]{1,10}))\Z"
_COUNT_MAX = 2**31 - 1


class InvalidValueError(ValueError):
    """A value is invalid for its setting; the message is Kafka's."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.name = name
        self.reason = reason


class Validator(Protocol):
    """A bound on a typed value."""

    def check(self, name: str, value: Value) -> None:
        """Raise `InvalidValueError` when the value is out of bounds."""


class Range(NamedTuple):
    """Inclusive bounds of a number; ``extra`` is one more allowed value."""

    low: str
    high: str | None = None
    extra: str | None = None

    def __str__(self) -> str:
        if self.high is None:
            return f"[{self.low},...]"
        text = f"[{self.low},...,{self.high}]"
        return text if self.extra is None else f"{text} or {self.extra}"

    def check(self, name: str, value: Value) -> None:
        """See `Validator`."""
        assert isinstance(value, int | float)
        low = float(self.low) <= value
        high = self.high is None or value <= float(self.high)
        if (low and high) or (self.extra is not None and value == float(self.extra)):
            return
        if self.extra is not None:
            reason = f"Value must be between {self.low} and {self.high} or equal to {self.extra}"
        elif low:
            reason = f"Value must be no more than {self.high}"
        else:
            reason = f"Value must be at least {self.low}"
        raise InvalidValueError(name, value, reason)


class OneOf(NamedTuple):
    """One of some words."""

    words: tuple[str, ...]
    any_case: bool = False

    def __str__(self) -> str:
        return ("(case insensitive) " if self.any_case else "") + f"[{', '.join(self.words)}]"

    def check(self, name: str, value: Value) -> None:
        """See `Validator`."""
        assert isinstance(value, str)
        if value in self.words or (self.any_case and value.upper() in map(str.upper, self.words)):
            return
        kind = (
            "String must be one of (case insensitive)" if self.any_case else "String must be one of"
        )
        raise InvalidValueError(name, value, f"{kind}: {', '.join(self.words)}")


class ListOf(NamedTuple):
    """A list of some words, or of any words."""

    words: tuple[str, ...] = ()
    may_be_empty: bool = True

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""

    def check(self, name: str, value: Value) -> None:
        """See `Validator`."""
        assert isinstance(value, tuple)
        if not value and not self.may_be_empty:
            valid = str(self) or "any non-empty value"
            raise InvalidValueError(name, "[]", f"It must not be empty. Valid values: {valid}")
        for item in value if self.words else ():
            OneOf(self.words).check(name, item)


class Rule(NamedTuple):
    """A bound without parameters: Kafka's text for it, a predicate, the reason of a rejection."""

    text: str
    holds: Callable[[Value], bool]
    reason: str

    def __str__(self) -> str:
        return self.text

    def check(self, name: str, value: Value) -> None:
        """See `Validator`."""
        if not self.holds(value):
            shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else value
            raise InvalidValueError(name, shown, self.reason.format(name=name, value=value))


def _is_throttled_list(value: Value) -> bool:
    assert isinstance(value, tuple)
    return value == ("*",) or all(re.match(_THROTTLED, item) for item in value)


def _is_offset_reset(value: Value) -> bool:
    assert isinstance(value, str)
    kind, _, duration = value.partition(":")
    return value in ("latest", "earliest") or (
        kind == "by_duration" and re.match(_DURATION, duration) is not None and duration[0] != "-"
    )


def address_counts(text: str) -> Iterator[tuple[str, int] | None]:
    """Yield comma-separated ADDRESS:COUNT entries; None for an invalid entry.

    An IPv6 address may be in brackets; addresses are not looked up. A count is a Kafka INT.
    """
    for entry in filter(None, map(str.strip, text.split(","))):
        found = re.match(_ADDRESS_COUNT, entry)
        count = int(found[3]) if found else 0
        yield (
            ((found[1] or found[2] or "").strip(), count) if found and count <= _COUNT_MAX else None
        )


def _are_address_counts(value: Value) -> bool:
    from ipaddress import ip_address  # slow to import, only needed for this setting

    assert isinstance(value, str)
    for entry in address_counts(value):
        if entry is None:
            return False
        try:
            address = ip_address(entry[0])
        except ValueError:
            return False
        if getattr(address, "scope_id", None) is not None:  # the core's addresses have none
            return False
    return True


_RULES: dict[str, Validator] = {
    "any_list": ListOf(),
    "some_list": ListOf(may_be_empty=False),
    "distinct_list": Rule(
        "",
        lambda value: isinstance(value, tuple) and len(set(value)) == len(value),
        "Configuration '{name}' values must not be duplicated.",
    ),
    "non_null": Rule("non-null string", lambda _: True, ""),
    "non_empty": Rule("non-empty string", bool, "String must be non-empty"),
    # Kafka's text is stricter than its check: empty is the default and is accepted.
    "any_quorum_list": Rule("non-empty list", lambda _: True, ""),
    "address_counts": Rule(
        "", _are_address_counts, "Value must be ADDRESS:COUNT, separated by commas"
    ),
    "throttled_replicas": Rule(
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        _is_throttled_list,
        "{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    ),
    "offset_reset": Rule(
        "[latest, earliest, by_duration:PnDTnHnMn.nS]",
        _is_offset_reset,
        "Invalid value `{value}` for configuration {name}. The value must be either 'earliest', "
        "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    ),
}


def validator_from_text(text: str) -> Validator | None:
    """Return the validator in a cell of the table.

    Raises:
        KeyError: No such validator.
    """
    if text == "-":
        return None
    if text.startswith(">="):
        return Range(text[2:])
    if ".." in text:
        bounds, _, extra = text.partition("|")
        low, high = bounds.split("..")
        return Range(low, high, extra or None)
    name, parenthesis, words = text.rstrip(")").partition("(")
    if not parenthesis:
        return _RULES[name]
    if name in ("list_of", "some_of"):
        return ListOf(tuple(words.split(",")), may_be_empty=name == "list_of")
    return OneOf(tuple(words.split(",")), any_case={"one_of": False, "one_of_any_case": True}[name])
