"""Settings files: Kafka's ``server.properties`` and TOML, read into text by Kafka name."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

# Not compiled, because few starts need them; `re` compiles and caches them.
_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = r"(?<!\\)(?:\\\\)*[=:\s]"


class SettingsFileError(ValueError):
    """A settings file cannot be read; the message has the file and advice."""


def read_settings(path: Path) -> dict[str, str]:
    """Return the settings in a file: TOML if the suffix is ``.toml``, else Java properties.

    Tables of TOML are prefixes of names: ``[log] dirs = "x"`` is ``log.dirs``; a list is a comma-
    separated value.

    Raises:
        SettingsFileError: The file is unreadable, not UTF-8 or malformed, or a value is of an
            invalid type.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsFileError(f"cannot read {path}: {error}") from error
    if path.suffix != ".toml":
        return parse_properties(text)
    return _parse_toml(path, text)


def parse_properties(text: str) -> dict[str, str]:
    """Return the entries of Java properties; the last of two equal names is used, as in Java."""
    return dict(map(_entry, _logical_lines(text)))


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments; a line with an odd number of backslashes at its end continues
    in the next.
    """
    pending = ""
    for line in text.splitlines():
        stripped = line.lstrip()
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        pending += stripped
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
        else:
            yield pending
            pending = ""
    if pending:
        yield pending


def _entry(line: str) -> tuple[str, str]:
    found = re.search(_SEPARATOR, line)
    if found is None:
        return _unescape(line), ""
    name, rest = line[: found.end() - 1], line[found.end() - 1 :].lstrip()
    return _unescape(name), _unescape(rest[1:].lstrip() if rest[:1] in ("=", ":") else rest)


def _unescape(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        escape = found[1]
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _PLAIN.get(escape, escape)

    return re.sub(_ESCAPE, plain, text)


def _parse_toml(path: Path, text: str) -> dict[str, str]:
    import tomllib

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsFileError(f"{path} is not TOML: {error}") from error
    return dict(_flattened(path, "", document))


def _flattened(path: Path, prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _flattened(path, f"{name}.", value)
        elif isinstance(value, list):
            yield name, ",".join(_scalar(path, name, item) for item in value)
        else:
            yield name, _scalar(path, name, value)


def _scalar(path: Path, name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise SettingsFileError(
        f"{path}: {name} must be a text, a number, true or false, or a list of such"
    )
