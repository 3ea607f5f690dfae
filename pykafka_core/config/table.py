"""The table of settings, read once from ``kafka_settings.txt`` in this folder."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from .setting import ConfigType, Scope, Setting, Support, Synonym, UpdateMode
from .validators import validator_from_text

_TABLE = Path(__file__).with_name("kafka_settings.txt")


def settings(scope: Scope) -> Mapping[str, Setting]:
    """Return every setting of a scope by its Kafka name, in alphabetical order."""
    return _tables()[scope]


def topic_settings() -> Mapping[str, Setting]:
    """Return every topic setting by its Kafka name."""
    return _tables()[Scope.TOPIC]


def broker_settings() -> Mapping[str, Setting]:
    """Return every broker setting by its Kafka name."""
    return _tables()[Scope.BROKER]


@cache
def _tables() -> Mapping[Scope, Mapping[str, Setting]]:
    tables: dict[Scope, dict[str, Setting]] = {scope: {} for scope in Scope}
    for setting in _rows(_TABLE.read_text(encoding="utf-8")):
        tables[setting.scope][setting.name] = setting
    return {scope: MappingProxyType(table) for scope, table in tables.items()}


def _rows(text: str) -> Iterator[Setting]:
    scope = Scope.TOPIC
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("["):
            scope = Scope(line.strip("[]"))
        elif line and not line.startswith("#"):
            yield _setting(scope, line.split(), next(lines).strip())


def _setting(scope: Scope, cells: list[str], documentation: str) -> Setting:
    name, type_, default, validator, importance, mode, support, synonyms, internal = cells
    return Setting(
        name=name,
        scope=scope,
        type=ConfigType[type_.upper()],
        default={"null": None, "required": None, '""': ""}.get(default, default),
        required=default == "required",
        validator=validator_from_text(validator),
        importance=importance,
        update_mode=None if mode == "-" else UpdateMode(mode),
        support=Support(support),
        synonyms=_synonyms(synonyms),
        internal=internal == "internal",
        documentation=documentation,
    )


def _synonyms(cell: str) -> tuple[Synonym, ...]:
    if cell == "-":
        return ()
    parts = (part.partition("*") for part in cell.split(","))
    return tuple(Synonym(name=name, factor=int(factor or "1")) for name, _, factor in parts)
