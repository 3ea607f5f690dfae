#!/usr/bin/env python3
"""Write docs/SETTINGS.md from the table of settings. Usage: python tools/settings.py."""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pykafka_core.config import Scope, Setting, Support, settings  # noqa: E402

INTRODUCTION = """# Settings

Every setting of Apache Kafka 4.2.1, those that later releases added to features of this broker, and how this broker
treats them. Written by `tools/settings.py` from `pykafka_core/config/kafka_settings.txt`; do not edit.

Broker settings come from `server.properties` or TOML (`serve --config FILE`), from
`serve --set NAME=VALUE`, or from `Broker(config={...})`. Unknown names stop the start. Values that clients
altered take precedence, except for names that `--set` gives: their alterations are undone at the start.
"""

SCOPES = {
    Scope.TOPIC: ("Topic settings", ""),
    Scope.BROKER: ("Broker settings", ""),
    Scope.GROUP: ("Group settings", ""),
    Scope.CLIENT_METRICS: ("Client metrics settings", "Stored."),
}

CLASSES = {
    Support.HONOURED: ("Honoured", "They have the same effect as in Kafka."),
    Support.STORED: ("Stored", "Kept and listed; the feature that they configure is not built."),
    Support.NO_MEANING: ("No meaning here", "Accepted, with one warning that names them."),
    Support.NOT_BUILT: ("Not built", "Refused by name, unless set to their default."),
}


def render() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for scope, (title, remark) in SCOPES.items():
        yield f"## {title}\n"
        if remark:
            yield f"{remark}\n"
            yield _table(list(settings(scope).values()))
            continue
        for support, (heading, meaning) in CLASSES.items():
            rows = [s for s in settings(scope).values() if s.support is support]
            if rows:
                yield f"### {heading}\n\n{meaning}\n"
                yield _table(rows)


def _table(rows: list[Setting]) -> str:
    head = (
        "| Name | Type | Default | Values | Changed | What it does |\n|---|---|---|---|---|---|\n"
    )
    return head + "".join(map(_row, rows))


def _row(setting: Setting) -> str:
    default = (
        "" if setting.default is None else f"`{setting.default}`" if setting.default else "empty"
    )
    values = "" if setting.validator is None else str(setting.validator)
    mode = "" if setting.update_mode is None else setting.update_mode.value
    cells = [f"`{setting.name}`", setting.type.name.lower(), default, values, mode]
    return "| " + " | ".join([*cells, _text(setting)]) + " |\n"


def _text(setting: Setting) -> str:
    text = setting.documentation.replace("|", "\\|")
    if setting.synonyms and setting.scope is Scope.TOPIC:
        names = ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms)
        return f"{text} Default: {names}."
    return text


if __name__ == "__main__":
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / "docs" / "SETTINGS.md").write_text(render(), encoding="utf-8")
